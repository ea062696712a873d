//! The documents a turn leaves: what `covel turn --json` prints and `GET /sessions/:id/turns` lists.

use covel_graph::Json;
use serde::{Deserialize, Serialize};

use crate::services::operation::OperationDocument;

/// How a runtime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeStatus {
    /// It succeeded; its writes commit.
    Success,
    /// It did not run, or its guard said not to.
    Skipped,
    /// It failed; nothing of it commits.
    Failed,
    /// It waits for someone.
    Suspended,
}

/// A coded error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Stable kebab-case code.
    pub code: String,
    /// One sentence.
    pub message: String,
}

impl ErrorInfo {
    /// A coded error.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// One runtime's row in a turn document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeDocument {
    /// Runtime.
    pub runtime_id: String,
    /// Package.
    pub plugin_id: String,
    /// Stage, or `event` / `manual` for runtimes without one.
    pub stage: String,
    /// Layer inside the stage (or event depth's own layering), from 0.
    pub layer: u32,
    /// Event depth, for event followers, from 1.
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
    /// Business output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Its value is no object: `output` is `{value}` around it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapped: bool,
    /// Runtimes whose results or writes of this execution it read, by id. RDD-1
    pub reads_from: Vec<String>,
    /// Microseconds from the execution's start to this runtime's start.
    pub started_micros: u64,
    /// Microseconds it took.
    pub duration_micros: u64,
}

/// A runtime that waits for someone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionDocument {
    /// Its suspension.
    pub suspension_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Why.
    pub reason: String,
    /// JSON Schema of what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_schema: Option<Json>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDocument {
    /// Topic.
    pub topic: String,
    /// Payload.
    pub data: Json,
    /// Emitting package.
    pub plugin_id: String,
    /// Emitting runtime.
    pub runtime_id: String,
    /// Depth at which its followers run, from 1.
    pub depth: u32,
}

/// A runtime dropped at commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IsolatedDocument {
    /// Runtime.
    pub runtime_id: String,
    /// Why.
    pub error: ErrorInfo,
}

/// A changed plugin-data record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataChange {
    /// Owner.
    pub plugin_id: String,
    /// Namespace.
    pub namespace: String,
    /// Key.
    pub key: String,
    /// New value, or none when deleted.
    pub value: Option<Json>,
}

impl DataChange {
    /// Its entry in a `plugin-data.changed` event.
    pub(crate) fn to_event(&self) -> serde_json::Value {
        serde_json::json!({
            "namespace": self.namespace, "key": self.key, "value": self.value,
            "operation": if self.value.is_some() { "set" } else { "delete" },
        })
    }
}

/// One committed write beyond plugin data, as the protocol tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeDocument {
    /// Event name: `character.upserted`, `state.changed`, `interaction.requested`...
    #[serde(rename = "type")]
    pub kind: String,
    /// Writing package.
    pub plugin_id: String,
    /// Writing runtime.
    pub runtime_id: String,
    /// Payload of the event, without the two ids above.
    pub payload: Json,
}

/// One execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnDocument {
    /// Session.
    pub session_id: String,
    /// Turn.
    pub turn_id: String,
    /// `player`, `setup`, `continuation`, `manual`.
    pub origin: String,
    /// Is it stored?
    pub committed: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The story text of this turn.
    pub narrative: String,
    /// Runtimes in execution order.
    pub runtimes: Vec<RuntimeDocument>,
    /// Events in order.
    pub events: Vec<EventDocument>,
    /// Committed writes beyond plugin data, in order: characters, lorebook, dimensions, state, what is shown and asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeDocument>,
    /// Runtimes dropped at commit.
    pub isolated: Vec<IsolatedDocument>,
    /// What write services staged, and what became of it. WSV-9
    pub operations: Vec<OperationDocument>,
    /// Durable jobs enqueued.
    pub jobs: Vec<Json>,
    /// Notes for authors: hazards, stripped effects, dropped payloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ErrorInfo>,
    /// The setup execution, when this request ran one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Box<TurnDocument>>,
    /// Runtimes of this execution that wait for someone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspensions: Vec<SuspensionDocument>,
    /// The suspension this execution went on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<String>,
    /// The turn whose failed runtimes this execution ran again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// `aborted-by-player`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<String>,
    /// What the player added while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steers: Vec<String>,
    /// What the player wrote.
    #[serde(default)]
    pub message: String,
    /// Logical turn, from 1.
    pub logical_turn: u32,
    /// ISO time of the start.
    pub created_at: String,
    /// Microseconds from start to acknowledged commit.
    pub duration_micros: u64,
    /// Digest of the plan used.
    pub plan: String,
}
