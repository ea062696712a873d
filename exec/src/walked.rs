//! What a walk leaves: a table of slots, and the rows, events and prose read from it.

use std::{sync::Arc, time::Duration};

use covel_graph::{Json, RuntimeIx, fragment::Visibility};
use fixedbitset::FixedBitSet;
use serde_json::{Value, json};

use crate::{
    call_host::Shared,
    core::{PhaseKind, Status, TurnCore},
    document::{ErrorInfo, EventDocument, RuntimeDocument, RuntimeStatus, TurnDocument},
    reads::ReadSet,
    results::RuntimeResult,
    services::operation::{Operation, OperationDocument},
};

/// A success that gave nothing: what most runtimes of a quiet turn have. Shared, so that a slot stays small.
static NOTHING: RuntimeResult = RuntimeResult::nothing();

/// One runtime's row in the execution's table.
#[derive(Default)]
pub struct Slot {
    full: Option<Box<RuntimeResult>>,
    nothing: bool,
    /// It was kept from starting by what it needs.
    pub held_back: bool,
    /// How often its call was made again.
    pub repeats: u8,
    /// Runtimes it read from.
    pub producers: FixedBitSet,
    /// Of these, whose uncommitted data it read. RDD-1
    pub data_reads: Option<Box<FixedBitSet>>,
    /// The records it read, with versions.
    pub(crate) read_set: Option<Box<ReadSet>>,
    /// Runtimes whose staged operations it read.
    pub(crate) staged_reads: Option<Box<FixedBitSet>>,
    /// What write services staged on its result.
    pub(crate) operations: Vec<Operation>,
    /// Start, from the execution's start.
    pub started: Duration,
    /// How long it took.
    pub took: Duration,
}

impl Slot {
    /// Result, once it ended.
    pub fn result(&self) -> Option<&RuntimeResult> {
        if self.nothing { Some(&NOTHING) } else { self.full.as_deref() }
    }

    /// Records the result.
    pub fn set(&mut self, result: RuntimeResult) {
        self.full = Some(Box::new(result));
    }

    /// Records a success that gave nothing.
    pub fn set_nothing(&mut self) {
        self.nothing = true;
    }

    /// Takes the notes out of the result.
    pub fn take_notes(&mut self) -> Vec<ErrorInfo> {
        self.full.as_mut().map(|result| std::mem::take(&mut result.notes)).unwrap_or_default()
    }
}

/// A finished walk, ready to be committed.
pub struct Walked {
    /// Shared frozen state.
    pub shared: Arc<Shared>,
    /// The core, with statuses, places and events.
    pub core: TurnCore,
    /// One slot a runtime.
    pub slots: Vec<Slot>,
    /// Runtimes in the order in which they started or were skipped.
    pub order: Vec<RuntimeIx>,
    /// Notes for authors.
    pub notes: Vec<ErrorInfo>,
    /// Detached runtimes that became due, with their inputs as they were then.
    pub staged: Vec<Staged>,
}

/// A detached runtime set aside for a job.
pub struct Staged {
    /// Runtime.
    pub runtime: RuntimeIx,
    /// Its bound inputs.
    pub inputs: Vec<(String, Json)>,
}

impl Walked {
    /// Stage word, layer and event depth of a runtime.
    pub fn place(&self, runtime: RuntimeIx) -> (&'static str, u32, u32) {
        let place = self.core.place(runtime);
        let stage = match self.core.phase_kind(place) {
            Some(PhaseKind::Stage(stage)) => stage.as_str(),
            Some(PhaseKind::Manual) => "manual",
            Some(PhaseKind::Followers) => "event",
            None => "event",
        };
        (stage, place.layer, place.depth)
    }

    /// A runtime's row.
    pub fn document(&self, runtime: RuntimeIx) -> RuntimeDocument {
        let plan = &self.shared.plan;
        let slot = &self.slots[runtime.index()];
        let (stage, layer, depth) = self.place(runtime);
        let concealed = plan.decl(runtime).concealed;
        let result = slot.result();
        RuntimeDocument {
            runtime_id: plan.runtime_id(runtime).to_owned(),
            plugin_id: plan.plugin_id(runtime).to_owned(),
            stage: stage.to_owned(),
            layer,
            depth: (depth > 0).then_some(depth),
            status: result.map_or(RuntimeStatus::Skipped, |result| result.status),
            reason: match result {
                // Its own words stay hidden; the host's say nothing about it.
                Some(result) if concealed && !slot.held_back => result.reason.as_ref().map(|_| "concealed".to_owned()),
                Some(result) => result.reason.clone(),
                None => Some("cancelled".to_owned()),
            },
            error: result.and_then(|result| result.error.clone()).map(
                |error| {
                    if concealed { conceal(error) } else { error }
                },
            ),
            output: result.and_then(|result| result.output.clone()).filter(|_| !concealed),
            wrapped: result.and_then(|result| result.value.as_ref()).is_some_and(|value| !value.value().is_object()),
            reads_from: {
                let mut ids: Vec<String> = slot
                    .producers
                    .ones()
                    .filter_map(|ix| u32::try_from(ix).ok())
                    .map(|ix| plan.runtime_id(RuntimeIx(ix)).to_owned())
                    .collect();
                ids.sort();
                ids
            },
            started_micros: micros(slot.started),
            duration_micros: micros(slot.took),
        }
    }

    /// All rows, in execution order; ties of one layer by id.
    pub fn documents(&self) -> Vec<RuntimeDocument> {
        self.order.iter().map(|runtime| self.document(*runtime)).collect()
    }

    /// Every operation of the execution, none of them settled.
    fn operation_rows(&self) -> Vec<OperationDocument> {
        let plan = &self.shared.plan;
        let mut rows = Vec::new();
        for runtime in &self.order {
            for operation in &self.slots[runtime.index()].operations {
                let provider = plan.packages[operation.provider as usize].id();
                let concealed = plan.decl(*runtime).concealed;
                rows.push(operation.document(provider, plan.runtime_id(*runtime), concealed));
            }
        }
        rows
    }

    /// Writes what happened into the execution's document: notes, rows, events, story text.
    pub fn fill(&mut self, document: &mut TurnDocument) {
        let plan = &self.shared.plan;
        document.notes = std::mem::take(&mut self.notes);
        document.operations = self.operation_rows();
        for runtime in &self.order {
            let mut notes = self.slots[runtime.index()].take_notes();
            if plan.decl(*runtime).concealed {
                notes = notes.into_iter().map(conceal).collect();
            }
            document.notes.append(&mut notes);
        }
        for event in self.core.events().iter().filter(|event| event.dropped) {
            document.notes.push(ErrorInfo::new(
                "event-payload-dropped",
                format!(
                    "{} emitted a topic that came first from another runtime at depth {}",
                    plan.runtime_id(event.emitter),
                    event.depth
                ),
            ));
        }
        for deferred in self.core.deferred().iter().filter(|deferred| deferred.repeated) {
            document.notes.push(ErrorInfo::new(
                "background-follower-repeated",
                format!(
                    "the topic {} follows came up at several depths; it runs once",
                    plan.runtime_id(deferred.runtime)
                ),
            ));
        }
        for (runtime, why) in &plan.kept_in_turn {
            if self.core.status(*runtime) != Status::Idle {
                let message = format!("{} is declared detached but runs in the turn: {why}", plan.runtime_id(*runtime));
                document.notes.push(ErrorInfo::new("detached-kept-in-turn", message));
            }
        }
        document.runtimes = self.documents();
        document.events = self.events();
        document.narrative = self.prose().join("\n\n");
    }

    /// Events that count, in order.
    pub fn events(&self) -> Vec<EventDocument> {
        self.core
            .events()
            .iter()
            .filter_map(|event| {
                let emitted = self.slots[event.emitter.index()].result()?.events.get(event.local as usize)?;
                Some(EventDocument {
                    topic: emitted.topic.clone(),
                    data: emitted.data.clone(),
                    plugin_id: self.shared.plan.plugin_id(event.emitter).to_owned(),
                    runtime_id: self.shared.plan.runtime_id(event.emitter).to_owned(),
                    depth: event.depth,
                })
            })
            .collect()
    }

    /// Story text written so far, in execution order.
    pub fn prose(&self) -> Vec<String> {
        self.order
            .iter()
            .filter(|runtime| self.shared.plan.decl(**runtime).visibility == Visibility::Story)
            .filter_map(|runtime| self.slots[runtime.index()].result()?.narrative.clone())
            .collect()
    }

    /// Prose of earlier stages, for a runtime about to start.
    pub fn prose_before(&self, runtime: RuntimeIx) -> Vec<String> {
        let phase = self.core.place(runtime).phase;
        let earlier = self
            .order
            .iter()
            .filter(|earlier| self.core.place(**earlier).phase < phase)
            .filter_map(|earlier| self.slots[earlier.index()].result()?.narrative.clone());
        self.shared.given.prose.iter().cloned().chain(earlier).collect()
    }

    /// `turn-digest@1`.
    pub fn digest(&self) -> Json {
        let seeds = self.shared.given.seeds.iter().map(|(runtime, _)| runtime);
        let mut tools = Vec::new();
        let runtimes: Vec<Value> = seeds
            .chain(&self.order)
            .filter_map(|runtime| {
                let result = self.slots[runtime.index()].result()?;
                if !self.shared.plan.decl(*runtime).concealed {
                    let id = self.shared.plan.runtime_id(*runtime);
                    tools.extend(
                        result
                            .tool_calls
                            .iter()
                            .map(|call| json!({"runtimeId": id, "toolName": call.name, "success": call.ok})),
                    );
                }
                Some(json!({"runtimeId": self.shared.plan.runtime_id(*runtime), "status": result.status}))
            })
            .collect();
        Json::from_value(json!({
            "turnId": self.shared.turn_id,
            "playerMessage": self.shared.message,
            "actions": self.shared.player_actions(),
            "locale": self.shared.session.locale,
            "narrativeText": self.shared.given.prose.iter().cloned().chain(self.prose()).collect::<Vec<_>>().join("\n\n"),
            "toolCallSummaries": tools,
            "lastPlayerInput": self.shared.last_player_input(),
            "runtimeResults": runtimes,
        }))
    }
}

/// A failure of a concealed runtime as others see it.
pub fn conceal(error: ErrorInfo) -> ErrorInfo {
    ErrorInfo { message: "a concealed runtime failed".to_owned(), ..error }
}

/// Whole microseconds of a duration.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
