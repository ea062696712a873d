//! Archives: how fragments and plans are kept as bytes, and the only place that trusts them.
//!
//! An archive is a header (magic, kind, format, content hash) and an rkyv payload. Opening checks the header, the
//! hash, the structure (bytecheck) and, for plans, that every index points inside its table. After that reads are
//! free. Anything that does not check is an error for the caller to rebuild from source; it is never patched up.

use std::{ops::Deref, sync::Arc};

use rkyv::{rancor, util::AlignedVec};

use crate::{
    fragment::{ArchivedFragment, Fragment},
    ids::PlanDigest,
    plan::{ArchivedCsr, ArchivedPlan, PLAN_FORMAT, Plan},
};

/// Version of the fragment layout; another version is rebuilt, never read.
pub const FRAGMENT_FORMAT: u32 = 1;

const MAGIC: [u8; 4] = *b"COVL";
/// Magic 4, kind 4, format 4, reserved 4, hash 32: a multiple of 16, so the payload keeps the buffer's alignment.
pub(crate) const HEADER: usize = 48;
const HASH_AT: usize = 16;

/// Why an archive was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// Not an archive of this program, or of another kind.
    #[error("these {len} bytes are not a {kind} archive")]
    Foreign {
        /// `plan` or `fragment`.
        kind: &'static str,
        /// Length of what was given.
        len: usize,
    },
    /// Written by another version of this program.
    #[error("the {kind} archive has format {found}; this program reads {expected}")]
    Format {
        /// `plan` or `fragment`.
        kind: &'static str,
        /// Format found.
        found: u32,
        /// Format read here.
        expected: u32,
    },
    /// The content hash in the header does not fit the content.
    #[error("the {kind} archive is damaged: its content does not match its hash")]
    Damaged {
        /// `plan` or `fragment`.
        kind: &'static str,
    },
    /// Intact, but not the one asked for.
    #[error("the plan archive is {found}, not {expected}")]
    OtherDigest {
        /// Digest asked for.
        expected: String,
        /// Digest found.
        found: String,
    },
    /// The payload is not a value of the kind its header claims.
    #[error("the {kind} archive has a malformed payload: {message}")]
    Malformed {
        /// `plan` or `fragment`.
        kind: &'static str,
        /// What is malformed.
        message: String,
    },
}

impl ArchiveError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ArchiveError::Foreign { .. } => "archive-foreign",
            ArchiveError::Format { .. } => "archive-format",
            ArchiveError::Damaged { .. } => "archive-damaged",
            ArchiveError::OtherDigest { .. } => "archive-other-digest",
            ArchiveError::Malformed { .. } => "archive-malformed",
        }
    }
}

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    tag: [u8; 4],
    format: u32,
}

const PLAN: Kind = Kind { name: "plan", tag: *b"PLAN", format: PLAN_FORMAT };
const FRAGMENT: Kind = Kind { name: "fragment", tag: *b"FRAG", format: FRAGMENT_FORMAT };

fn hash(kind: Kind, payload: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&kind.tag).update(&kind.format.to_le_bytes()).update(payload);
    hasher.finalize()
}

fn seal(kind: Kind, payload: &[u8]) -> (AlignedVec, blake3::Hash) {
    let hash = hash(kind, payload);
    let mut bytes = AlignedVec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&kind.tag);
    bytes.extend_from_slice(&kind.format.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(hash.as_bytes());
    bytes.extend_from_slice(payload);
    (bytes, hash)
}

fn unseal(kind: Kind, bytes: &[u8]) -> Result<(&[u8], blake3::Hash), ArchiveError> {
    let name = kind.name;
    if bytes.len() < HEADER || bytes[..4] != MAGIC || bytes[4..8] != kind.tag || bytes[12..16] != [0; 4] {
        return Err(ArchiveError::Foreign { kind: name, len: bytes.len() });
    }
    let mut format = [0; 4];
    format.copy_from_slice(&bytes[8..12]);
    let found = u32::from_le_bytes(format);
    if found != kind.format {
        return Err(ArchiveError::Format { kind: name, found, expected: kind.format });
    }
    let payload = &bytes[HEADER..];
    let hash = hash(kind, payload);
    if bytes[HASH_AT..HEADER] != *hash.as_bytes() {
        return Err(ArchiveError::Damaged { kind: name });
    }
    Ok((payload, hash))
}

fn malformed(kind: Kind) -> impl Fn(rancor::Error) -> ArchiveError {
    move |error| ArchiveError::Malformed { kind: kind.name, message: error.to_string() }
}

/// Archives a plan. The digest names format and content: equal plans have equal digests.
///
/// # Errors
/// When rkyv cannot serialise it (a table beyond its offset range).
pub fn encode_plan(plan: &Plan) -> Result<(AlignedVec, PlanDigest), ArchiveError> {
    let payload = rkyv::to_bytes::<rancor::Error>(plan).map_err(malformed(PLAN))?;
    let (bytes, hash) = seal(PLAN, &payload);
    Ok((bytes, PlanDigest::from(hash.to_hex().as_str())))
}

/// Archives a fragment.
///
/// # Errors
/// When rkyv cannot serialise it.
pub fn encode_fragment(fragment: &Fragment) -> Result<Vec<u8>, ArchiveError> {
    let payload = rkyv::to_bytes::<rancor::Error>(fragment).map_err(malformed(FRAGMENT))?;
    Ok(seal(FRAGMENT, &payload).0.to_vec())
}

/// Reads a fragment back, whole.
///
/// # Errors
/// When the bytes are not an intact fragment archive of this format.
pub fn decode_fragment(bytes: &[u8]) -> Result<Fragment, ArchiveError> {
    let (payload, _) = unseal(FRAGMENT, bytes)?;
    let archived = rkyv::access::<ArchivedFragment, rancor::Error>(payload).map_err(malformed(FRAGMENT))?;
    rkyv::deserialize::<Fragment, rancor::Error>(archived).map_err(malformed(FRAGMENT))
}

/// A checked plan archive, read in place. Cloning shares the bytes.
#[derive(Clone)]
pub struct PlanHandle {
    bytes: Arc<[u8]>,
    digest: PlanDigest,
}

impl PlanHandle {
    /// Checks an archive once and keeps it.
    ///
    /// # Errors
    /// When the bytes are foreign, damaged, of another format, malformed, or not the plan `expected` names.
    pub fn open(bytes: Arc<[u8]>, expected: &PlanDigest) -> Result<PlanHandle, ArchiveError> {
        let (payload, hash) = unseal(PLAN, &bytes)?;
        let found = hash.to_hex();
        if found.as_str() != expected.as_str() {
            return Err(ArchiveError::OtherDigest {
                expected: expected.as_str().to_owned(),
                found: found.as_str().to_owned(),
            });
        }
        let plan = rkyv::access::<ArchivedPlan, rancor::Error>(payload).map_err(malformed(PLAN))?;
        check_indexes(plan).map_err(|message| ArchiveError::Malformed { kind: PLAN.name, message: message.into() })?;
        Ok(PlanHandle { bytes, digest: expected.clone() })
    }

    /// The digest that names this plan.
    pub fn digest(&self) -> &PlanDigest {
        &self.digest
    }

    /// The whole archive, header included.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

impl Deref for PlanHandle {
    type Target = ArchivedPlan;

    fn deref(&self) -> &ArchivedPlan {
        trusted_plan(&self.bytes)
    }
}

impl std::fmt::Debug for PlanHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlanHandle({})", self.digest)
    }
}

/// The one place that reads an archive without checking it.
#[allow(unsafe_code)]
fn trusted_plan(bytes: &[u8]) -> &ArchivedPlan {
    // SAFETY: only `PlanHandle::open` makes a handle, and it has run bytecheck over exactly this slice, at this
    // root type. The bytes are behind an `Arc<[u8]>` that no one can get mutably, so they are unchanged since.
    // Archived types have alignment 1 (rkyv feature `unaligned`), so the position in memory does not matter.
    unsafe { rkyv::access_unchecked::<ArchivedPlan>(&bytes[HEADER..]) }
}

/// bytecheck proves structure, not meaning: every index must also point inside its table.
fn check_indexes(plan: &ArchivedPlan) -> Result<(), &'static str> {
    let runtimes = plan.runtimes.len();
    let within = |value: u32, len: usize| (value as usize) < len;
    let none_or = |value: u32, len: usize| value == crate::plan::NONE || (value as usize) < len;
    if plan.format.to_native() != PLAN_FORMAT {
        return Err("plan format");
    }
    for row in plan.runtimes.iter() {
        if !within(row.plugin.to_native(), plan.plugins.len())
            || !none_or(row.topic.to_native(), plan.topics.len())
            || !none_or(row.contract.to_native(), plan.contracts.len())
            || row.stage > 5
        {
            return Err("runtime row");
        }
    }
    let stages: Vec<u32> = plan.stage_starts.iter().map(|start| start.to_native()).collect();
    if !stages.is_sorted() || stages[0] != 0 || stages[6] as usize != runtimes {
        return Err("stage starts");
    }
    let starts: Vec<u32> = plan.edge_starts.iter().map(|start| start.to_native()).collect();
    if starts.len() != runtimes + 1 || !starts.is_sorted() || starts[runtimes] as usize != plan.edges.len() {
        return Err("edge starts");
    }
    for edge in plan.edges.iter() {
        if !none_or(edge.runtime.to_native(), runtimes)
            || !none_or(edge.contract.to_native(), plan.contracts.len())
            || !within(edge.file.to_native(), plan.files.len())
        {
            return Err("edge row");
        }
    }
    let order = &plan.order;
    let choices = order.choice_waiter.len();
    check_csr(&plan.providers, plan.contracts.len(), runtimes)?;
    check_csr(&plan.subscribers, plan.topics.len(), runtimes)?;
    check_csr(&plan.slots, runtimes, crate::plan::SLOT_UNCHECKED as usize + 1)?;
    check_csr(&order.hard, runtimes, runtimes)?;
    check_csr(&order.choice_providers, choices, runtimes)?;
    check_csr(&order.releases, runtimes, choices)?;
    let all_within = |items: &rkyv::vec::ArchivedVec<rkyv::primitive::ArchivedU32>| {
        items.iter().all(|item| within(item.to_native(), runtimes))
    };
    if !all_within(&order.choice_waiter)
        || !all_within(&order.by_id)
        || !all_within(&order.id_rank)
        || order.by_id.len() != runtimes
        || order.id_rank.len() != runtimes
    {
        return Err("order table");
    }
    Ok(())
}

fn check_csr(csr: &ArchivedCsr, groups: usize, items: usize) -> Result<(), &'static str> {
    let mut last = 0;
    for start in csr.starts.iter().map(|start| start.to_native()) {
        if start < last {
            return Err("group starts");
        }
        last = start;
    }
    let fits = csr.starts.len() == groups + 1
        && csr.starts[0].to_native() == 0
        && last as usize == csr.items.len()
        && csr.items.iter().all(|item| (item.to_native() as usize) < items);
    if fits { Ok(()) } else { Err("group table") }
}
