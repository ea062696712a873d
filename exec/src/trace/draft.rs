//! The stored part of a trace, gathered from the tables an execution leaves.

use std::sync::Arc;

use covel_graph::{Json, RuntimeIx, SessionId, Stage, TurnId};
use covel_store::{Store, StoreError, Tx};
use serde::{Deserialize, Serialize};

use crate::{
    core::Status,
    document::TurnDocument,
    limits::MAX_TRACE_BYTES,
    reads::TraceRead,
    select::idle_reason,
    services::trace::ServiceCall,
    tape::{Recorder, Tape},
    walked::Walked,
};

/// Version of the stored form.
pub(crate) const FORMAT: u32 = 1;
/// Versions of packed tapes: plain JSON behind LZ4.
const PACKED: u8 = 1;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Asked {
    pub(crate) origin: String,
    pub(crate) message: String,
    pub(crate) payload: Json,
    /// Runtime of a manual execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ignore_upstreams: bool,
    /// Turn and runtimes of a sourced retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<(String, Vec<String>)>,
    /// Suspension gone on with, and the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumes: Option<(String, Json)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// It took something this record does not hold: what a job froze, what a player added while it ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) seeded: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            origin: String::new(),
            message: String::new(),
            payload: Json::null(),
            target: None,
            ignore_upstreams: false,
            retries: None,
            resumes: None,
            input_message_id: None,
            request_id: None,
            seeded: false,
        }
    }
}

impl Asked {
    /// A job: it goes on with what its origin froze.
    pub(crate) fn background(message: &str) -> Self {
        Self { origin: "background".into(), message: message.to_owned(), seeded: true, ..Self::default() }
    }
}

/// What a trace holds beside the turn document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Stored {
    pub(crate) format: u32,
    /// Journal entry the commit made; for an execution that did not commit, the one that would have been next.
    pub(crate) journal_seq: u64,
    pub(crate) asked: Asked,
    /// ISO time of the commit, or of giving up.
    pub(crate) ended_at: String,
    /// World and its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<(String, String)>,
    /// Runtimes of the plan that took no part: index and why.
    pub(crate) idle: Vec<(u32, String)>,
    /// What single runtimes left that no other table tells.
    pub(crate) runtimes: Vec<StoredRuntime>,
    /// Service calls, in the order in which they were made. TRC-2
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) services: Vec<ServiceCall>,
    /// Event by event: was it dropped, for another of its topic came first?
    pub(crate) dropped_events: Vec<u32>,
    /// The document, when it is not stored as a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) document: Option<TurnDocument>,
    /// Something was left out to keep within [`MAX_TRACE_BYTES`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) truncated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StoredRuntime {
    pub(crate) ix: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<TraceRead>,
    /// Reads beyond the limit were left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) more_reads: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) writes: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) events: u32,
    /// Index of the event that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<u32>,
    /// How often its call was made again.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) repeats: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A trace about to be written.
pub(crate) struct Draft {
    pub(crate) stored: Stored,
    recorder: Arc<Recorder>,
    tape: Vec<u8>,
}

impl Draft {
    /// Gathers what an execution left.
    pub(crate) fn new(walked: &Walked, asked: Asked) -> Self {
        let shared = &walked.shared;
        let plan = &shared.plan;
        let id = |runtime: RuntimeIx| plan.runtime_id(runtime).to_owned();
        let setup = asked.origin == "setup";
        let mut stored = Stored {
            format: FORMAT,
            world: shared.world.as_ref().map(|world| (world.id.as_str().to_owned(), world.digest.clone())),
            ..Stored::default()
        };
        for (ix, row) in plan.plan.runtimes.iter().enumerate() {
            let ix = u32::try_from(ix).unwrap_or(u32::MAX);
            if walked.core.status(RuntimeIx(ix)) == Status::Idle {
                let by_name = asked.target.is_some() || asked.retries.is_some() || asked.resumes.is_some();
                let reason = match by_name || asked.origin == "background" {
                    true => "not-asked-for",
                    false if setup && row.stage != Stage::Setup as u8 => "other-phase",
                    false => idle_reason(&plan.plan, &shared.session, shared.logical_turn, ix as usize),
                };
                stored.idle.push((ix, reason.to_owned()));
            }
        }
        for runtime in &walked.order {
            let slot = &walked.slots[runtime.index()];
            let trigger = walked.core.trigger_of(*runtime);
            let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
            let result = slot.result();
            // What a concealed runtime looks at, and what a package hides, is told to nobody.
            let seen = slot.read_set.as_ref().filter(|_| !plan.decl(*runtime).concealed);
            let mut reads = seen.map(|reads| reads.to_trace(id)).unwrap_or_default();
            reads.retain(|read| !read.namespace.starts_with("_hidden."));
            let row = StoredRuntime {
                ix: runtime.0,
                reads,
                more_reads: seen.is_some_and(|reads| reads.is_cut()),
                writes: result.map_or(0, |result| count(result.writes.len())),
                events: result.map_or(0, |result| count(result.events.len())),
                trigger: (trigger != covel_graph::plan::NONE).then_some(trigger),
                repeats: slot.repeats.into(),
            };
            if row != (StoredRuntime { ix: row.ix, ..StoredRuntime::default() }) {
                stored.runtimes.push(row);
            }
        }
        let events = walked.core.events().iter().zip(0_u32..);
        stored.dropped_events = events.filter(|(event, _)| event.dropped).map(|(_, at)| at).collect();
        if !shared.service_log.is_empty() {
            let (calls, cut) = shared.service_log.sorted();
            stored.services = calls;
            stored.truncated |= cut;
        }
        stored.asked = asked;
        Self { stored, recorder: Arc::clone(&shared.recorder), tape: Vec::new() }
    }

    /// Packs the tape. The last thing before the transaction, so that what the commit takes is on it too.
    pub(crate) fn seal(&mut self, ended_at: &str) {
        ended_at.clone_into(&mut self.stored.ended_at);
        self.tape = pack(&self.recorder.tape());
    }

    /// Writes the trace as part of the transaction that commits the execution.
    pub(crate) fn write(mut self, tx: &mut Tx<'_>, session: &SessionId, turn: &str) -> Result<(), StoreError> {
        self.stored.journal_seq = tx.read().journal_bounds(session)?.next;
        let trace = fit(self.stored)?;
        tx.put_trace(session, &TurnId::from(turn), &trace, &self.tape)
    }

    /// Keeps the trace of an execution that did not commit. Its loss is no fault of the execution.
    pub(crate) async fn write_failed(mut self, store: &Store, document: &TurnDocument, ended_at: &str) {
        self.seal(ended_at);
        self.stored.document = Some(document.clone());
        let (session, turn) = (SessionId::from(document.session_id.as_str()), document.turn_id.clone());
        let kept = store.transact(move |tx| {
            if tx.read().has_session(&session)? {
                self.write(tx, &session, &turn)?;
            }
            Ok::<_, StoreError>(())
        });
        if let Err(error) = kept.await {
            tracing::warn!(session = document.session_id, turn = document.turn_id, "the trace is not kept: {error}");
        }
    }
}

/// JSON within [`MAX_TRACE_BYTES`]: reads are left out first, then who was idle, then the document's outputs.
fn fit(mut stored: Stored) -> Result<Json, StoreError> {
    let steps: [fn(&mut Stored); 4] = [
        |_| {},
        |stored| stored.runtimes.iter_mut().for_each(|row| row.reads.clear()),
        |stored| stored.idle.clear(),
        |stored| {
            stored.runtimes.clear();
            stored.services.clear();
            stored.dropped_events.clear();
            stored.document = None;
            stored.asked.payload = Json::null();
        },
    ];
    let mut json = Json::null();
    for (at, step) in steps.into_iter().enumerate() {
        step(&mut stored);
        stored.truncated |= at > 0;
        json =
            Json::of(&stored).map_err(|error| StoreError::Corrupt { table: "traces", message: error.to_string() })?;
        if json.byte_len() <= MAX_TRACE_BYTES {
            break;
        }
    }
    Ok(json)
}

fn pack(tape: &Tape) -> Vec<u8> {
    // A tape is plain data; it always has a JSON form.
    let json = serde_json::to_vec(tape).unwrap_or_default();
    let mut packed = vec![PACKED];
    packed.extend(lz4_flex::compress_prepend_size(&json));
    packed
}

/// Reads a packed tape; `None` when there is none or it cannot be read.
pub(crate) fn unpack(packed: &[u8]) -> Option<Tape> {
    let (&PACKED, rest) = packed.split_first()? else { return None };
    let size = rest.first_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize)?;
    // A damaged size must not ask for all memory.
    if size > crate::limits::MAX_TAPE_BYTES.saturating_mul(8) {
        return None;
    }
    let json = lz4_flex::decompress_size_prepended(rest).ok()?;
    serde_json::from_slice(&json).ok()
}
