//! A trace as people and programs read it: the stored part, the turn document and the plan, joined.

use std::collections::BTreeMap;

use covel_graph::{
    PlanDigest, RuntimeIx, SessionId, TurnId,
    archive::PlanHandle,
    plan::{ArchivedEdgeKind, NONE},
};
use serde::{Deserialize, Serialize};

use super::draft::{FORMAT, Stored, StoredRuntime, unpack};
use crate::{
    document::{ErrorInfo, RuntimeDocument, RuntimeStatus, TurnDocument},
    engine::Engine,
    error::ExecError,
    reads::TraceRead,
    services::{
        operation::{OperationDocument, OperationStatus},
        trace::ServiceCall,
    },
    tape::End,
};

/// What one execution did. Every row has a `seq`, which counts over all lists in the order in which things happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceDocument {
    /// Session.
    pub session_id: String,
    /// Turn.
    pub turn_id: String,
    /// What it was: `player`, `setup`, `continuation`, `manual`...
    pub origin: String,
    /// The caller's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What the player wrote.
    pub message: String,
    /// Is it stored?
    pub committed: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Logical turn, from 1.
    pub logical_turn: u32,
    /// ISO time of the start.
    pub started_at: String,
    /// ISO time of the commit, or of giving up.
    pub ended_at: String,
    /// Microseconds from the start to the commit.
    pub duration_micros: u64,
    /// Digest of the plan.
    pub plan: String,
    /// World and its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<TracePackage>,
    /// Packages of the plan.
    pub packages: Vec<TracePackage>,
    /// Runtimes in execution order.
    pub runtimes: Vec<TraceRuntime>,
    /// Runtimes of the plan that took no part.
    pub idle: Vec<TraceIdle>,
    /// Events in the order in which they counted.
    pub events: Vec<TraceEvent>,
    /// Service calls, by caller and call. TRC-2
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<TraceService>,
    /// What write services staged; `failed` ones came to nothing at the commit (`operation.failed`). WSV-9
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<TraceOperation>,
    /// Model calls, by runtime and call.
    pub models: Vec<TraceModel>,
    /// What became of each runtime at the commit.
    pub commit: Vec<TraceCommit>,
    /// Journal entry the commit made; for an execution that did not commit, the one that would have been next.
    pub journal_seq: u64,
    /// Can it be replayed, as far as this record goes?
    pub replayable: bool,
    /// Parts were left out to keep the record small.
    pub truncated: bool,
}

/// One service call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceService {
    /// Position over all lists.
    pub seq: u64,
    /// The call.
    #[serde(flatten)]
    pub call: ServiceCall,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceOperation {
    /// Position over all lists.
    pub seq: u64,
    /// `operation.committed`, `operation.failed` or `operation.discarded`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The operation.
    #[serde(flatten)]
    pub operation: OperationDocument,
}

/// A package, or a world, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePackage {
    /// Id.
    pub id: String,
    /// Version, of a package.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Digest of its content.
    pub digest: String,
}

/// One runtime that took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceRuntime {
    /// Position over all lists.
    pub seq: u64,
    /// Runtime.
    pub runtime_id: String,
    /// Package.
    pub plugin_id: String,
    /// Stage, `event` or `manual`.
    pub stage: String,
    /// Layer inside the stage or depth, from 0.
    pub layer: u32,
    /// Event depth, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// How it ended.
    pub status: RuntimeStatus,
    /// Skip reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Microseconds from the execution's start.
    pub started_micros: u64,
    /// The same, of its end.
    pub ended_micros: u64,
    /// Runtimes of this execution that the plan made it wait for, by id.
    pub waited_for: Vec<String>,
    /// The event that started it: topic and emitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<(String, String)>,
    /// Runtimes whose results or writes it read.
    pub reads_from: Vec<String>,
    /// Plugin data it read.
    pub reads: Vec<TraceRead>,
    /// More was read than is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_reads: bool,
    /// Writes it made.
    pub writes: u32,
    /// Events it emitted.
    pub events: u32,
    /// How often its call was made again because it was lost with another's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u32,
    /// BLAKE3 of its output as JSON; absent when it gave none, or is concealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_digest: Option<String>,
    /// Bytes of its output.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub output_bytes: usize,
}

/// A runtime that took no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceIdle {
    /// Position over all lists.
    pub seq: u64,
    /// Runtime.
    pub runtime_id: String,
    /// `no-event`, `cooldown`, `interval`, `start-turn`, `max-trigger-count`, `manual`, `setup`, `other-phase`,
    /// `subagent-only`, `background`, `not-asked-for`, `not-reached`.
    pub reason: String,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEvent {
    /// Position over all lists.
    pub seq: u64,
    /// Topic.
    pub topic: String,
    /// Who emitted it.
    pub runtime_id: String,
    /// Depth at which its followers run.
    pub depth: u32,
    /// Another of its topic came first at this depth.
    pub dropped: bool,
    /// Runtimes it started.
    pub followers: Vec<String>,
    /// Bytes of its payload.
    pub bytes: usize,
}

/// One model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceModel {
    /// Position over all lists.
    pub seq: u64,
    /// Who asked.
    pub runtime_id: String,
    /// Slot.
    pub slot: String,
    /// The model that answered, as reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `stop`, `tool_calls`...; `error: CODE`; `cut off`.
    pub finish: String,
    /// Bytes of the reply.
    pub bytes: usize,
    /// Input tokens, as reported.
    pub input_tokens: u64,
    /// Output tokens, as reported.
    pub output_tokens: u64,
    /// Digest of the request.
    pub request_digest: String,
}

/// What became of a runtime at the commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceCommit {
    /// Position over all lists.
    pub seq: u64,
    /// Runtime.
    pub runtime_id: String,
    /// Were its results kept?
    pub kept: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_nothing(number: &usize) -> bool {
    *number == 0
}

/// The parts a trace is joined from.
pub(crate) struct Parts {
    pub(crate) stored: Stored,
    pub(crate) document: TurnDocument,
    pub(crate) plan: Option<PlanHandle>,
    pub(crate) tape: Option<crate::tape::Tape>,
}

impl Engine {
    /// What an execution did: of a committed turn, or of one that failed.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`]; [`ExecError::NotFound`] `trace-not-found` when there is none (any more).
    pub fn trace(&self, session_id: &str, turn_id: &str) -> Result<TraceDocument, ExecError> {
        Ok(self.0.trace_parts(session_id, turn_id)?.join())
    }
}

impl crate::engine::Inner {
    pub(crate) fn trace_parts(&self, session_id: &str, turn_id: &str) -> Result<Parts, ExecError> {
        self.session(session_id)?;
        let (session, turn) = (SessionId::from(session_id), TurnId::from(turn_id));
        let not_found = || ExecError::NotFound {
            code: "trace-not-found",
            message: format!("there is no trace of {turn_id:?} in session {session_id:?}; the newest are kept"),
        };
        let damaged = |what: &str| ExecError::Internal(format!("the trace of {turn_id} has no readable {what}"));
        let (row, stored_turn) = self.store.read(|reader| {
            Ok::<_, covel_store::StoreError>((reader.get_trace(&session, &turn)?, reader.get_turn(&session, &turn)?))
        })?;
        let row = row.ok_or_else(not_found)?;
        let mut stored: Stored =
            serde_json::from_value(row.trace.value().clone()).map_err(|_| damaged("stored part"))?;
        if stored.format != FORMAT {
            return Err(not_found());
        }
        let document = match (stored.document.take(), stored_turn) {
            (Some(document), _) => document,
            (None, Some(row)) => serde_json::from_value(row.document.value().clone()).map_err(|_| damaged("turn"))?,
            (None, None) => return Err(not_found()),
        };
        let digest = PlanDigest::from(document.plan.as_str());
        let bytes = self.store.read(|reader| {
            Ok::<_, covel_store::StoreError>(reader.get_plan(&digest)?.map(std::sync::Arc::<[u8]>::from))
        })?;
        // Without its plan a trace is poorer, not lost.
        let plan = bytes.and_then(|bytes| PlanHandle::open(bytes, &digest).ok());
        Ok(Parts { stored, document, plan, tape: unpack(&row.consumed) })
    }
}

/// Counts over all lists.
struct Seq(u64);

impl Seq {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0 - 1
    }
}

impl Parts {
    /// One document of all parts.
    pub(crate) fn join(self) -> TraceDocument {
        let Self { stored, document, plan, tape } = self;
        let mut seq = Seq(0);
        let id = |ix: u32| match &plan {
            Some(plan) if (ix as usize) < plan.runtimes.len() => plan.runtimes[ix as usize].id.as_str().to_owned(),
            _ => format!("#{ix}"),
        };
        let idle = stored
            .idle
            .iter()
            .map(|(ix, reason)| TraceIdle { seq: seq.next(), runtime_id: id(*ix), reason: reason.clone() })
            .collect();
        let by_id: BTreeMap<String, &StoredRuntime> = stored.runtimes.iter().map(|row| (id(row.ix), row)).collect();
        let followers = |at: usize| -> Vec<String> {
            let started =
                stored.runtimes.iter().filter(|row| row.trigger.is_some_and(|trigger| trigger as usize == at));
            started.map(|row| id(row.ix)).collect()
        };
        let runtimes = document
            .runtimes
            .iter()
            .map(|row| runtime(&document, row, by_id.get(&row.runtime_id).copied(), plan.as_ref(), seq.next()))
            .collect();
        let events = document
            .events
            .iter()
            .enumerate()
            .map(|(at, event)| TraceEvent {
                seq: seq.next(),
                topic: event.topic.clone(),
                runtime_id: event.runtime_id.clone(),
                depth: event.depth,
                dropped: stored.dropped_events.iter().any(|dropped| *dropped as usize == at),
                followers: followers(at),
                bytes: event.data.byte_len(),
            })
            .collect();
        let models = tape
            .iter()
            .flat_map(|tape| &tape.runtimes)
            .flat_map(|(runtime, tape)| tape.replies.iter().map(move |reply| (runtime.clone(), reply)));
        let models = models.map(|(runtime_id, reply)| model(runtime_id, reply, seq.next())).collect();
        let services =
            stored.services.iter().map(|call| TraceService { seq: seq.next(), call: call.clone() }).collect();
        let operations = document
            .operations
            .iter()
            .map(|operation| TraceOperation {
                seq: seq.next(),
                kind: match operation.status {
                    OperationStatus::Committed => "operation.committed",
                    OperationStatus::Failed => "operation.failed",
                    OperationStatus::Discarded => "operation.discarded",
                }
                .to_owned(),
                operation: operation.clone(),
            })
            .collect();
        let commit = document
            .runtimes
            .iter()
            .filter_map(|row| {
                let isolated = document.isolated.iter().find(|isolated| isolated.runtime_id == row.runtime_id);
                let ended_well = row.status == RuntimeStatus::Success || isolated.is_some();
                ended_well.then(|| TraceCommit {
                    seq: seq.next(),
                    runtime_id: row.runtime_id.clone(),
                    kept: document.committed && isolated.is_none(),
                    error: isolated.map(|isolated| isolated.error.clone()).or_else(|| document.error.clone()),
                })
            })
            .collect();
        let packages = plan.iter().flat_map(|plan| plan.plugins.iter()).map(|plugin| TracePackage {
            id: plugin.id.as_str().to_owned(),
            version: plugin.version.as_str().to_owned(),
            digest: plugin.fragment.as_str().to_owned(),
        });
        TraceDocument {
            packages: packages.collect(),
            world: stored.world.map(|(id, digest)| TracePackage { id, version: String::new(), digest }),
            replayable: tape.is_some_and(|tape| !tape.incomplete) && !stored.asked.seeded,
            request_id: stored.asked.request_id,
            ended_at: stored.ended_at,
            journal_seq: stored.journal_seq,
            truncated: stored.truncated,
            session_id: document.session_id,
            turn_id: document.turn_id,
            origin: document.origin,
            message: document.message,
            committed: document.committed,
            error: document.error,
            logical_turn: document.logical_turn,
            started_at: document.created_at,
            duration_micros: document.duration_micros,
            plan: document.plan,
            runtimes,
            idle,
            events,
            services,
            operations,
            models,
            commit,
        }
    }
}

fn runtime(
    document: &TurnDocument,
    row: &RuntimeDocument,
    stored: Option<&StoredRuntime>,
    plan: Option<&PlanHandle>,
    seq: u64,
) -> TraceRuntime {
    let trigger = stored.and_then(|stored| document.events.get(stored.trigger? as usize));
    let took_part = |id: &str| document.runtimes.iter().any(|row| row.runtime_id == id);
    TraceRuntime {
        seq,
        runtime_id: row.runtime_id.clone(),
        plugin_id: row.plugin_id.clone(),
        stage: row.stage.clone(),
        layer: row.layer,
        depth: row.depth,
        status: row.status,
        reason: row.reason.clone(),
        error: row.error.clone(),
        started_micros: row.started_micros,
        ended_micros: row.started_micros.saturating_add(row.duration_micros),
        waited_for: plan.map(|plan| waits(plan, &row.runtime_id, took_part)).unwrap_or_default(),
        triggered_by: trigger.map(|event| (event.topic.clone(), event.runtime_id.clone())),
        reads_from: row.reads_from.clone(),
        reads: stored.map(|stored| stored.reads.clone()).unwrap_or_default(),
        more_reads: stored.is_some_and(|stored| stored.more_reads),
        writes: stored.map_or(0, |stored| stored.writes),
        events: stored.map_or(0, |stored| stored.events),
        repeats: stored.map_or(0, |stored| stored.repeats),
        output_digest: row.output.as_ref().map(|output| blake3::hash(output.text().as_bytes()).to_hex().to_string()),
        output_bytes: row.output.as_ref().map_or(0, covel_graph::Json::byte_len),
    }
}

/// Whom the plan's edges made a runtime wait for, of those that took part.
fn waits(plan: &PlanHandle, id: &str, took_part: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(runtime) = plan.runtime_by_id(id) else { return Vec::new() };
    let mut ids: Vec<String> = Vec::new();
    let mut add = |target: RuntimeIx| {
        let target = plan.runtime(target).id.as_str();
        if target != id && took_part(target) && !ids.iter().any(|known| known == target) {
            ids.push(target.to_owned());
        }
    };
    for edge in plan.edges_of(runtime) {
        // Committed inputs and needs met in an earlier execution order nothing.
        if edge.session_scope && !matches!(edge.kind, ArchivedEdgeKind::After) {
            continue;
        }
        if edge.runtime.to_native() != NONE {
            add(RuntimeIx(edge.runtime.to_native()));
        }
        if edge.contract.to_native() != NONE {
            plan.providers_of(edge.contract.to_native()).for_each(&mut add);
        }
    }
    ids.sort_unstable();
    ids
}

fn model(runtime_id: String, reply: &crate::tape::Reply, seq: u64) -> TraceModel {
    let (finish, usage, model) = match &reply.end {
        Some(End::Done { finish, usage, model }) => {
            let word = serde_json::to_value(finish).ok().and_then(|word| word.as_str().map(str::to_owned));
            (word.unwrap_or_default(), *usage, model.clone())
        }
        Some(End::Failed { kind, .. }) => {
            let code = covel_model::ModelError::new(*kind, "").code();
            (format!("error: {code}"), covel_model::Usage::default(), None)
        }
        None => ("cut off".to_owned(), covel_model::Usage::default(), None),
    };
    TraceModel {
        seq,
        runtime_id,
        slot: reply.slot.clone(),
        model,
        finish,
        bytes: reply.bytes(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        request_digest: reply.request.clone(),
    }
}
