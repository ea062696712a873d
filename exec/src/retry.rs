//! Running failed runtimes of a committed turn again.
//!
//! A sourced retry starts from what the turn (and earlier retries of it) committed: those results are seeds, readable
//! and never committed again. Only the targets run, in their stages and layers; nothing follows their events.

use std::collections::{BTreeMap, BTreeSet};

use covel_graph::{Json, RuntimeIx, SessionId, Stage, TurnId};
use fixedbitset::FixedBitSet;
use serde_json::{Map, Value};

use crate::{
    active::ActivePlan,
    core::{Phase, PhaseKind, Status},
    document::{RuntimeDocument, RuntimeStatus, TurnDocument},
    engine::Inner,
    error::ExecError,
    flow::{HIDDEN_RESULTS, RETRIES},
    given::Given,
    limits::{MAX_RETRY_ATTEMPTS, MAX_RETRY_TARGETS},
    results::RuntimeResult,
    select::{Selection, setup_done},
    session::SessionRecord,
    walked::Walked,
};

/// A retry ready to run.
pub(crate) struct Retry {
    pub source: TurnDocument,
    pub targets: Vec<String>,
    /// Everything of the turn that failed and did not succeed since.
    pub failed: Vec<String>,
    pub earlier: Vec<String>,
    pub selection: Selection,
    pub given: Given,
}

fn refused(code: &'static str, message: String) -> ExecError {
    ExecError::Conflict { code, message }
}

/// 1 to 20 different ids.
fn check_targets(ids: &[String]) -> Result<(), ExecError> {
    let different: BTreeSet<&String> = ids.iter().collect();
    if ids.is_empty() || ids.len() > MAX_RETRY_TARGETS || different.len() != ids.len() {
        return Err(ExecError::Invalid {
            field: "runtimeIds".into(),
            message: format!("names 1 to {MAX_RETRY_TARGETS} different runtimes"),
        });
    }
    Ok(())
}

impl Inner {
    /// Prepares a sourced retry. To be called under the session's lock.
    ///
    /// # Errors
    /// `retry-turn-not-found`, `retry-source-not-current`, `retry-target-unknown`, `retry-nothing-failed`,
    /// `retry-attempts-exhausted`, a bad list of targets.
    pub(crate) fn prepare_retry(
        &self,
        session: &SessionRecord,
        plan: &ActivePlan,
        source: &str,
        ids: &[String],
    ) -> Result<Retry, ExecError> {
        check_targets(ids)?;
        let document = self.turn(&session.id, source)?;
        if session.story_turn.as_deref() != Some(source) {
            return Err(refused(
                "retry-source-not-current",
                format!("turn {source:?} is not the newest of the story; a later one was committed"),
            ));
        }
        let earlier = self.retries_of(&session.id, source)?;
        if earlier.len() >= MAX_RETRY_ATTEMPTS {
            return Err(refused(
                "retry-attempts-exhausted",
                format!("turn {source:?} was retried {MAX_RETRY_ATTEMPTS} times"),
            ));
        }
        let mut rows: BTreeMap<String, RuntimeDocument> = BTreeMap::new();
        let mut order = Vec::new();
        for runtime in &document.runtimes {
            order.push(runtime.runtime_id.clone());
            rows.insert(runtime.runtime_id.clone(), runtime.clone());
        }
        for turn in &earlier {
            for runtime in self.turn(&session.id, turn)?.runtimes {
                rows.insert(runtime.runtime_id.clone(), runtime);
            }
        }
        let is_failed = |id: &str| rows.get(id).is_some_and(|row| row.status == RuntimeStatus::Failed);
        if let Some(unknown) = ids.iter().find(|id| !rows.contains_key(*id)) {
            return Err(refused(
                "retry-target-unknown",
                format!("{unknown:?} was not part of turn {source:?}; its failed runtimes can be retried"),
            ));
        }
        let mut targets: Vec<String> = Vec::new();
        for id in &order {
            let Some(runtime) = plan.runtime_ix(id).filter(|_| ids.contains(id) && is_failed(id)) else { continue };
            // A follower whose event went with its emitter has nothing to follow.
            let follows = plan.decl(runtime).topic.is_some();
            if !follows || rows.get(id).is_some_and(|row| trigger(&document, row, plan, runtime).is_some()) {
                targets.push(id.clone());
            }
        }
        if targets.is_empty() {
            return Err(refused(
                "retry-nothing-failed",
                format!("none of these runtimes is active and still failed in turn {source:?}"),
            ));
        }
        let hidden = self.hidden_results(&session.id, source)?;
        let failed = order.iter().filter(|id| is_failed(id)).cloned().collect();
        let mut given = Given {
            prose: Some(document.narrative.clone()).filter(|text| !text.is_empty()).into_iter().collect(),
            turn: Some(source.to_owned()),
            ..Given::default()
        };
        let mut seeds = Vec::new();
        for id in &order {
            let (Some(runtime), Some(row)) = (plan.runtime_ix(id), rows.get(id)) else { continue };
            if targets.contains(id) {
                if let Some(event) = trigger(&document, row, plan, runtime) {
                    given.triggers.insert(runtime, event);
                }
                continue;
            }
            let (status, result) = seed(row, hidden.get(id));
            seeds.push((runtime, status));
            given.seeds.push((runtime, result));
        }
        let indexes: Vec<RuntimeIx> = targets.iter().filter_map(|id| plan.runtime_ix(id)).collect();
        let selection = select(plan, session, &indexes, seeds);
        Ok(Retry { source: document, targets, failed, earlier, selection, given })
    }

    fn turn(&self, session: &str, turn: &str) -> Result<TurnDocument, ExecError> {
        let row = self.store.read(|reader| reader.get_turn(&SessionId::from(session), &TurnId::from(turn)))?;
        let row = row.ok_or_else(|| ExecError::NotFound {
            code: "retry-turn-not-found",
            message: format!("session {session:?} has no committed turn {turn:?}"),
        })?;
        serde_json::from_value(row.document.value().clone())
            .map_err(|error| ExecError::Internal(format!("a stored turn cannot be read: {error}")))
    }

    fn retries_of(&self, session: &str, source: &str) -> Result<Vec<String>, ExecError> {
        let stored = self.store.read(|reader| reader.get_item(&SessionId::from(session), RETRIES, RETRIES))?;
        let Some(stored) = stored.filter(|stored| stored.value()["source"] == source) else { return Ok(Vec::new()) };
        let turns = stored.value()["turns"].as_array().into_iter().flatten();
        Ok(turns.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn hidden_results(&self, session: &str, source: &str) -> Result<Map<String, Value>, ExecError> {
        let key = SessionId::from(session);
        let stored = self.store.read(|reader| reader.get_item(&key, HIDDEN_RESULTS, HIDDEN_RESULTS))?;
        let stored = stored.filter(|stored| stored.value()["turn"] == source);
        Ok(stored.and_then(|stored| stored.value()["values"].as_object().cloned()).unwrap_or_default())
    }
}

/// The event that started a follower: the first of its topic at its depth.
fn trigger(
    document: &TurnDocument,
    row: &RuntimeDocument,
    plan: &ActivePlan,
    runtime: RuntimeIx,
) -> Option<(String, Json)> {
    let depth = row.depth?;
    let topic = plan.decl(runtime).topic.as_deref()?;
    let event = document.events.iter().find(|event| event.topic == topic && event.depth == depth)?;
    Some((event.topic.clone(), event.data.clone()))
}

/// What a row of a stored turn says to those who read it.
fn seed(row: &RuntimeDocument, hidden: Option<&Value>) -> (Status, RuntimeResult) {
    let output = row.output.clone().or_else(|| hidden.map(|value| value["output"].clone()).map(Json::from_value));
    let wrapped = row.wrapped;
    let guard_skip = row.status == RuntimeStatus::Skipped
        && output.is_some()
        && row.reason.as_deref().is_some_and(|reason| matches!(reason, "guard" | "concealed"));
    let value = match (&output, wrapped) {
        (Some(output), true) => output.pointer("/value"),
        (output, _) => output.clone(),
    };
    let narrative = value.as_ref().and_then(|value| value.value().get("narrativeOutput")?.as_str()).map(str::to_owned);
    let status = match row.status {
        RuntimeStatus::Success => Status::Success,
        RuntimeStatus::Skipped if guard_skip => Status::GuardSkip,
        RuntimeStatus::Skipped => Status::Skipped,
        RuntimeStatus::Failed => Status::Failed,
        RuntimeStatus::Suspended => Status::Suspended,
    };
    let result = RuntimeResult {
        status: row.status,
        guard_skip,
        reason: row.reason.clone(),
        error: row.error.clone(),
        value,
        output,
        narrative,
        ..RuntimeResult::default()
    };
    (status, result)
}

/// The targets by stage, then followers of events; nobody follows what they emit.
fn select(
    plan: &ActivePlan,
    session: &SessionRecord,
    targets: &[RuntimeIx],
    seeds: Vec<(RuntimeIx, Status)>,
) -> Selection {
    let count = plan.plan.runtimes.len();
    let in_stage = |stage: Option<Stage>| {
        let mut members = FixedBitSet::with_capacity(count);
        for target in targets.iter().filter(|target| plan.decl(**target).stage == stage) {
            members.insert(target.index());
        }
        members
    };
    let stages = [Stage::Setup, Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit];
    let mut phases: Vec<Phase> = stages
        .into_iter()
        .map(|stage| Phase { kind: PhaseKind::Stage(stage), members: in_stage(Some(stage)) })
        .collect();
    phases.push(Phase { kind: PhaseKind::Followers, members: in_stage(None) });
    phases.retain(|phase| !phase.members.is_clear());
    Selection {
        phases,
        session_done: setup_done(&plan.plan, session),
        eligible: FixedBitSet::with_capacity(count),
        ignore_upstreams: false,
        seeds,
    }
}

/// Outputs of concealed runtimes, which the turn's document does not show: a later retry may need them.
pub(crate) fn hidden_results(walked: &Walked) -> Option<Json> {
    let plan = &walked.shared.plan;
    let mut values = Map::new();
    for runtime in walked.order.iter().filter(|runtime| plan.decl(**runtime).concealed) {
        let Some(result) = walked.slots[runtime.index()].result().filter(|result| result.is_ok()) else { continue };
        let Some(output) = &result.output else { continue };
        values.insert(plan.runtime_id(*runtime).to_owned(), serde_json::json!({"output": output}));
    }
    (!values.is_empty()).then(|| Json::from_value(serde_json::json!({"turn": walked.shared.turn_id, "values": values})))
}
