//! The plans a data folder keeps: which there are, who uses them, and what nobody needs any more.
//!
//! A session needs the plan it last used, that plan's package versions (fragments) and their files (blobs). All of
//! these are made again from packages when they are missing, so clearing away costs time at most, never a story.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use covel_exec::{COMPILED_NAMES, ExecError};
use covel_graph::{PlanDigest, PlanHandle, decode_fragment};
use covel_store::{Reader, Store, StoreError, StoreOptions, Tx};
use serde::Serialize;

use crate::{error::ServerError, limits, load::unreadable};

/// Names under which the engine finds a plan by the package versions it links.
const PLAN_NAMES: &str = "plan:";

/// A package version of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotPackage {
    /// Package id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Digest of its fragment.
    pub fragment: String,
}

/// A stored plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRow {
    /// Digest that names it.
    pub digest: String,
    /// Size of its archive.
    pub bytes: u64,
    /// Its package versions; empty when it cannot be read.
    pub packages: Vec<SnapshotPackage>,
    /// Number of runtimes.
    pub runtimes: usize,
    /// Sessions that last used it, by id.
    pub sessions: Vec<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

/// A stored package version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FragmentRow {
    /// Digest that names it.
    pub digest: String,
    /// Size of its archive.
    pub bytes: u64,
    /// Package id, when it can be read.
    pub plugin_id: Option<String>,
    /// Package version, when it can be read.
    pub version: Option<String>,
}

/// A stored file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobRow {
    /// Digest that names it.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
}

/// What stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Plans.
    pub plans: usize,
    /// Package versions.
    pub fragments: usize,
    /// Files.
    pub blobs: usize,
}

/// What no session needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waste {
    /// Plans.
    pub plans: Vec<SnapshotRow>,
    /// Package versions.
    pub fragments: Vec<FragmentRow>,
    /// Files.
    pub blobs: Vec<BlobRow>,
    /// Bytes of all of these.
    pub bytes: u64,
    /// What stays.
    pub kept: Kept,
    #[serde(skip)]
    names: Vec<String>,
}

/// Opens the store of a data folder that has one; nothing is made.
///
/// # Errors
/// When there is none; `store-locked` while another process has it open.
pub fn open(dir: &Path) -> Result<Store, ServerError> {
    require_store(dir)?;
    Ok(Store::open(dir, StoreOptions::default()).map_err(ExecError::from)?)
}

/// Refuses a folder without a store: opening one would make it.
pub(crate) fn require_store(dir: &Path) -> Result<(), ServerError> {
    std::fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
    if Store::exists(dir) {
        return Ok(());
    }
    Err(ServerError::Unreadable { path: dir.to_owned(), message: "it holds no data of sessions".to_owned() })
}

/// All stored plans, by digest.
///
/// # Errors
/// When the store cannot be read.
pub fn list(store: &Store) -> Result<Vec<SnapshotRow>, ServerError> {
    let rows = store.read(|reader| plans(reader, &uses(reader)?));
    rows.map_err(engine)
}

/// The plan whose digest begins with `wanted`.
///
/// # Errors
/// [`ServerError::NoSnapshot`] when there is none or more than one; [`ServerError::Archive`] when it is damaged.
pub fn find(store: &Store, wanted: &str) -> Result<PlanHandle, ServerError> {
    let found = store.read(|reader| {
        let mut digests = reader.list_plans()?;
        digests.retain(|digest| digest.as_str().starts_with(wanted));
        let bytes = match digests.as_slice() {
            [digest] => reader.get_plan(digest)?.map(Arc::<[u8]>::from),
            _ => None,
        };
        Ok::<_, StoreError>((digests, bytes))
    });
    let (digests, bytes) = found.map_err(engine)?;
    match (digests.as_slice(), bytes) {
        ([digest], Some(bytes)) if wanted.len() >= limits::MIN_DIGEST_PREFIX => Ok(PlanHandle::open(bytes, digest)?),
        _ => Err(ServerError::NoSnapshot { wanted: wanted.to_owned(), count: digests.len() }),
    }
}

/// What no session needs, without touching it.
///
/// # Errors
/// When the store cannot be read.
pub fn waste(store: &Store) -> Result<Waste, ServerError> {
    store.read(waste_of).map_err(engine)
}

/// Removes it. Plans go before the package versions they name, those before their files: whenever this is cut short,
/// what is left is whole, and the next run removes the rest.
///
/// # Errors
/// When the store cannot be written.
pub fn remove(store: &Store, waste: &Waste) -> Result<(), ServerError> {
    let plans = waste.plans.iter().map(|plan| plan.digest.clone()).collect();
    let digests = |rows: &[FragmentRow]| rows.iter().map(|row| row.digest.clone()).collect();
    let blobs = waste.blobs.iter().map(|blob| blob.digest.clone()).collect();
    in_batches(store, waste.names.clone(), |tx, name| tx.delete_meta(name))?;
    in_batches(store, plans, |tx, plan| tx.delete_plan(&PlanDigest::from(plan)))?;
    in_batches(store, digests(&waste.fragments), |tx, digest| tx.delete_fragment(digest))?;
    in_batches(store, blobs, |tx, digest| tx.delete_blob(digest))
}

fn in_batches(
    store: &Store,
    all: Vec<String>,
    delete: fn(&mut Tx<'_>, &str) -> Result<bool, StoreError>,
) -> Result<(), ServerError> {
    for batch in all.chunks(limits::GC_BATCH) {
        let batch = batch.to_vec();
        store
            .transact_blocking(move |tx| {
                for name in &batch {
                    delete(tx, name)?;
                }
                Ok::<_, StoreError>(())
            })
            .map_err(|error| engine(error.flatten()))?;
    }
    Ok(())
}

fn engine(error: StoreError) -> ServerError {
    ServerError::Exec(ExecError::from(error))
}

/// Who uses which plan.
#[derive(Default)]
struct Uses {
    /// Plan -> sessions that last used it.
    plans: BTreeMap<String, Vec<String>>,
    /// Packages of sessions, with the plan those sessions last used, if one is known.
    packages: Vec<(Option<String>, Vec<String>)>,
}

fn uses(reader: &Reader<'_>) -> Result<Uses, StoreError> {
    let mut uses = Uses::default();
    for row in reader.list_sessions()? {
        let record = row.record.value();
        let recorded = record["plan"].as_str().map(str::to_owned);
        let plan = match recorded {
            Some(plan) => Some(plan),
            // A record of a version that did not keep it yet: its last turn did.
            None => reader
                .last_turns(&row.id, .., 1)?
                .first()
                .and_then(|turn| turn.document.value()["plan"].as_str().map(str::to_owned)),
        };
        if let Some(plan) = &plan {
            let users = uses.plans.entry(plan.clone()).or_default();
            users.push(row.id.as_str().to_owned());
        }
        let active = record["activePlugins"].as_array().into_iter().flatten();
        let active = active.filter_map(|id| id.as_str().map(str::to_owned));
        uses.packages.push((plan, active.collect()));
    }
    for users in uses.plans.values_mut() {
        users.sort();
    }
    Ok(uses)
}

fn plans(reader: &Reader<'_>, uses: &Uses) -> Result<Vec<SnapshotRow>, StoreError> {
    let mut rows = Vec::new();
    for digest in reader.list_plans()? {
        let Some(bytes) = reader.get_plan(&digest)? else {
            continue;
        };
        let mut row = SnapshotRow {
            digest: digest.as_str().to_owned(),
            bytes: bytes.len() as u64,
            packages: Vec::new(),
            runtimes: 0,
            sessions: uses.plans.get(digest.as_str()).cloned().unwrap_or_default(),
            damaged: None,
        };
        match PlanHandle::open(Arc::from(bytes), &digest) {
            Ok(plan) => {
                row.runtimes = plan.runtime_count();
                row.packages = plan
                    .plugins
                    .iter()
                    .map(|plugin| SnapshotPackage {
                        id: plugin.id.as_str().to_owned(),
                        version: plugin.version.as_str().to_owned(),
                        fragment: plugin.fragment.as_str().to_owned(),
                    })
                    .collect();
            }
            Err(error) => row.damaged = Some(error.to_string()),
        }
        rows.push(row);
    }
    Ok(rows)
}

fn waste_of(reader: &Reader<'_>) -> Result<Waste, StoreError> {
    let uses = uses(reader)?;
    let (kept, unused): (Vec<_>, Vec<_>) =
        plans(reader, &uses)?.into_iter().partition(|plan| plan.damaged.is_none() && !plan.sessions.is_empty());
    let stays: BTreeSet<&str> = kept.iter().map(|plan| plan.digest.as_str()).collect();
    let needed: BTreeSet<&str> =
        kept.iter().flat_map(|plan| plan.packages.iter().map(|package| package.fragment.as_str())).collect();
    // A session whose plan is not there will link one from its packages: every stored version of those stays.
    let orphans: BTreeSet<&str> = uses
        .packages
        .iter()
        .filter(|(plan, _)| plan.as_deref().is_none_or(|plan| !stays.contains(plan)))
        .flat_map(|(_, packages)| packages.iter().map(String::as_str))
        .collect();

    let mut waste = Waste {
        plans: Vec::new(),
        fragments: Vec::new(),
        blobs: Vec::new(),
        bytes: 0,
        kept: Kept { plans: kept.len(), fragments: 0, blobs: 0 },
        names: Vec::new(),
    };
    let mut files = BTreeSet::new();
    let mut kept_fragments = BTreeSet::new();
    for digest in reader.list_fragments()? {
        let bytes = reader.get_fragment(&digest)?.unwrap_or_default();
        // One that cannot be read helps nobody; without it the package is kept anew when it is next published.
        let fragment = decode_fragment(bytes).ok();
        let stays = fragment
            .as_ref()
            .is_some_and(|fragment| needed.contains(digest.as_str()) || orphans.contains(fragment.plugin_id.as_str()));
        match fragment {
            Some(fragment) if stays => {
                waste.kept.fragments += 1;
                kept_fragments.insert(digest);
                files.extend(fragment.files.into_iter().map(|file| file.digest));
            }
            fragment => {
                let (plugin_id, version) = fragment.map(|fragment| (fragment.plugin_id, fragment.version)).unzip();
                waste.fragments.push(FragmentRow { digest, bytes: bytes.len() as u64, plugin_id, version });
            }
        }
    }
    for digest in reader.list_blobs()? {
        if files.contains(&digest) {
            waste.kept.blobs += 1;
        } else {
            let bytes = reader.get_blob(&digest)?.unwrap_or_default().len() as u64;
            waste.blobs.push(BlobRow { digest, bytes });
        }
    }
    for name in reader.list_meta()? {
        if name.starts_with(COMPILED_NAMES) {
            let record = reader.get_meta(&name)?;
            let fragment = record.as_ref().and_then(|record| record.value()["fragment"].as_str());
            if !fragment.is_some_and(|fragment| kept_fragments.contains(fragment)) {
                waste.names.push(name);
            }
        } else if name.starts_with(PLAN_NAMES) {
            let plan = reader.get_meta(&name)?;
            let stays = plan.is_some_and(|plan| plan.value().as_str().is_some_and(|plan| stays.contains(plan)));
            if !stays {
                waste.names.push(name);
            }
        }
    }
    waste.plans = unused;
    waste.bytes = waste.plans.iter().map(|plan| plan.bytes).sum::<u64>()
        + waste.fragments.iter().map(|fragment| fragment.bytes).sum::<u64>()
        + waste.blobs.iter().map(|blob| blob.bytes).sum::<u64>();
    Ok(waste)
}
