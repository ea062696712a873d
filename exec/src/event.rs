//! What an execution tells while it runs. Best effort: nobody listening changes nothing.

use std::sync::Arc;

use covel_graph::{Json, RuntimeIx};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    active::ActivePlan,
    document::{ChangeDocument, RuntimeDocument},
};

/// Where events go. Each is small and bounded by the execution's own limits.
pub type EventSink = UnboundedSender<TurnEvent>;

/// One event of a running execution; names and payloads as the protocol has them.
#[derive(Clone, Debug)]
pub struct TurnEvent {
    /// `execution.started`, `runtime.started`, `narrative.delta`...
    pub kind: &'static str,
    /// Session.
    pub session_id: String,
    /// Turn.
    pub turn_id: String,
    /// Payload.
    pub payload: Json,
}

/// Committed changes that the protocol has an event for.
const CHANGE_EVENTS: [&str; 8] = [
    "state.changed",
    "interaction.requested",
    "ui.rendered",
    "asset.generated",
    "character.upserted",
    "character-schema.changed",
    "dimensions.changed",
    "dimensions.settlement.changed",
];

/// The event of a committed change: its payload with who wrote it.
pub(crate) fn of_change(change: &ChangeDocument) -> Option<(&'static str, Value)> {
    let kind = CHANGE_EVENTS.into_iter().find(|kind| *kind == change.kind)?;
    let mut payload = change.payload.value().clone();
    if let Value::Object(map) = &mut payload {
        map.insert("pluginId".into(), change.plugin_id.as_str().into());
        map.insert("runtimeId".into(), change.runtime_id.as_str().into());
    }
    Some((kind, payload))
}

/// Sends the events of one execution.
#[derive(Clone)]
pub struct Emitter {
    sink: Option<EventSink>,
    plan: Arc<ActivePlan>,
    session_id: String,
    turn_id: String,
}

impl Emitter {
    /// An emitter; without a sink it is silent.
    pub fn new(sink: Option<EventSink>, plan: Arc<ActivePlan>, session_id: &str, turn_id: &str) -> Self {
        Self { sink, plan, session_id: session_id.to_owned(), turn_id: turn_id.to_owned() }
    }

    /// Does anyone listen?
    pub fn is_live(&self) -> bool {
        self.sink.is_some()
    }

    /// Sends one event.
    pub fn send(&self, kind: &'static str, payload: Value) {
        if let Some(sink) = &self.sink {
            let event = TurnEvent {
                kind,
                session_id: self.session_id.clone(),
                turn_id: self.turn_id.clone(),
                payload: Json::from_value(payload),
            };
            // A closed receiver means nobody listens any more.
            let _ = sink.send(event);
        }
    }

    fn identity(&self, runtime: RuntimeIx) -> Value {
        let decl = self.plan.decl(runtime);
        json!({
            "runtimeId": self.plan.runtime_id(runtime),
            "pluginId": self.plan.plugin_id(runtime),
            "turnId": self.turn_id,
            "runId": format!("{}:{}", self.turn_id, self.plan.runtime_id(runtime)),
            "label": decl.description.first().map(|(_, text)| text.as_str()),
        })
    }

    /// `runtime.started`; `depth` is the event depth, 0 for runtimes that follow no event.
    pub fn started(&self, runtime: RuntimeIx, stage: &str, layer: u32, depth: u32) {
        if self.is_live() {
            let mut payload = self.identity(runtime);
            payload["stage"] = stage.into();
            payload["layer"] = layer.into();
            if depth > 0 {
                payload["depth"] = depth.into();
            }
            self.send("runtime.started", payload);
        }
    }

    /// `runtime.completed`, `.failed` or `.skipped`.
    pub fn ended(&self, runtime: RuntimeIx, document: &RuntimeDocument) {
        use crate::document::RuntimeStatus::{Failed, Skipped, Success, Suspended};
        if self.is_live() {
            let mut payload = self.identity(runtime);
            payload["stage"] = document.stage.as_str().into();
            payload["layer"] = document.layer.into();
            if let Some(depth) = document.depth {
                payload["depth"] = depth.into();
            }
            payload["status"] = json!(document.status);
            payload["durationMs"] = (document.duration_micros / 1_000).into();
            payload["durationMicros"] = document.duration_micros.into();
            payload["startedMicros"] = document.started_micros.into();
            if let Some(reason) = &document.reason {
                payload["reason"] = reason.as_str().into();
            }
            if let Some(error) = &document.error {
                payload["error"] = error.message.as_str().into();
                payload["code"] = error.code.as_str().into();
            }
            let kind = match document.status {
                Success | Suspended => "runtime.completed",
                Failed => "runtime.failed",
                Skipped => "runtime.skipped",
            };
            self.send(kind, payload);
        }
    }

    /// `narrative.delta`; `reset` is the whole text so far, after an attempt was taken back.
    pub fn delta(&self, runtime: RuntimeIx, delta: &str, reset: Option<&str>) {
        if self.is_live() {
            let mut payload = json!({
                "runtimeId": self.plan.runtime_id(runtime),
                "pluginId": self.plan.plugin_id(runtime),
                "kind": "story",
                "delta": delta,
            });
            if let Some(whole) = reset {
                payload["reset"] = true.into();
                payload["delta"] = whole.into();
            }
            self.send("narrative.delta", payload);
        }
    }
}
