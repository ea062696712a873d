//! Suspending a runtime and going on with it later.
//!
//! A suspended runtime keeps what it was given (inputs, trigger, activation, message, logical turn), what it had
//! buffered, and, for an agent, its conversation. All of it is stored by the commit of its execution, and comes back
//! when the suspension is resumed: one execution of that runtime alone, over committed data, committed together with
//! the mark that the suspension is resolved. RDD-6

use covel_graph::{Json, SessionId, schema::Validator};
use covel_model::{Message, ToolCall};
use covel_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    commit::Refused,
    document::ErrorInfo,
    engine::{Engine, Inner, SessionLock},
    error::ExecError,
    limits::{
        MAX_OPEN_SUSPENSIONS, MAX_REASON_CHARS, MAX_RESOLVED_SUSPENSIONS, MAX_RESUME_DATA_BYTES,
        MAX_RESUME_SCHEMA_BYTES, MAX_SUSPENSION_AGE_MS, MAX_SUSPENSION_BYTES,
    },
    results::EmittedEvent,
    session::{OpenSuspension, SessionRecord},
};

/// Kind of stored suspensions.
pub(crate) const SUSPENSION: &str = "suspension";

/// A stored suspension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionRecord {
    /// Id.
    pub id: String,
    /// Session.
    pub session_id: String,
    /// The turn that suspended it.
    pub turn_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Package.
    pub plugin_id: String,
    /// Why it waits.
    pub reason: String,
    /// JSON Schema of what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_schema: Option<Json>,
    /// ISO time.
    pub created_at: String,
    /// Milliseconds since 1970: it can be resumed for [`MAX_SUSPENSION_AGE_MS`].
    pub created_millis: u64,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolution>,
    /// Where it stopped; gone once it is resolved. Never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
}

/// How a suspension ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// The turn that resumed it; none when it was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// ISO time.
    pub at: String,
}

/// What a suspended runtime goes on with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Continuation {
    /// Digest of its package's content.
    pub package_digest: String,
    /// Digest of the plan it ran in.
    pub plan: String,
    /// Logical turn.
    pub logical_turn: u32,
    /// What the player wrote.
    pub message: String,
    /// The turn that is counted once nothing of it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// Bound inputs.
    pub inputs: Vec<(String, Json)>,
    /// The event that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<(String, Json)>,
    /// `ctx.activation`.
    pub activation: Json,
    /// Writes it had buffered, as proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<Value>,
    /// Events it had gathered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<(String, Json)>,
    /// An agent's conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentState>,
}

/// Where an agent stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// System prompt.
    pub system: String,
    /// The conversation up to the call of `suspend`.
    pub messages: Vec<Message>,
    /// That call.
    pub call_id: String,
    /// Answers to calls made after it in the same reply.
    pub after: Vec<Message>,
    /// Steps used.
    pub steps: u32,
    /// Story text so far.
    pub prose: String,
    /// Successful calls of own tools.
    pub business_calls: usize,
    /// It has had its one correction.
    pub corrected: bool,
}

/// A suspension in the making: a runtime's result carries it to the commit.
#[derive(Clone, Debug, Default)]
pub struct Suspending {
    /// JSON Schema of what it waits for.
    pub resume_schema: Option<Json>,
    /// An agent's conversation.
    pub agent: Option<AgentState>,
    /// What it was given and had buffered; filled in when its call ends.
    pub continuation: Option<Continuation>,
}

/// What `suspend` or a suspended outcome asks for.
pub(crate) struct SuspendRequest {
    /// Why.
    pub reason: String,
    /// JSON Schema of what is waited for.
    pub resume_schema: Option<Json>,
}

impl SuspendRequest {
    /// Reads `{reason, resumeSchema?}`.
    ///
    /// # Errors
    /// A sentence: which field, and what would be accepted.
    pub(crate) fn read(object: &Map<String, Value>) -> Result<Self, String> {
        let reason = match object.get("reason") {
            None | Some(Value::Null) => "suspended".to_owned(),
            Some(Value::String(text)) if text.chars().count() <= MAX_REASON_CHARS => text.clone(),
            Some(_) => return Err(format!("reason is a text of at most {MAX_REASON_CHARS} characters")),
        };
        let resume_schema = match object.get("resumeSchema") {
            None | Some(Value::Null) => None,
            Some(schema @ Value::Object(_)) => {
                let json = Json::from_value(schema.clone());
                if json.byte_len() > MAX_RESUME_SCHEMA_BYTES {
                    return Err(format!(
                        "resumeSchema has {} bytes; at most {MAX_RESUME_SCHEMA_BYTES}",
                        json.byte_len()
                    ));
                }
                Validator::new(schema).map_err(|message| format!("resumeSchema: {message}"))?;
                Some(json)
            }
            Some(_) => return Err("resumeSchema is a JSON Schema (an object)".to_owned()),
        };
        Ok(Self { reason, resume_schema })
    }
}

/// The answer a model gets for calls made after `suspend` in the same reply.
pub(crate) fn cancelled_call(call: &ToolCall) -> Message {
    let text = serde_json::json!({"success": false, "code": "CANCELLED", "error": "the runtime was suspended"});
    Message::tool_result(call.id.clone(), text.to_string())
}

/// Events as they are kept.
pub(crate) fn keep_events(events: &[EmittedEvent]) -> Vec<(String, Json)> {
    events.iter().map(|event| (event.topic.clone(), event.data.clone())).collect()
}

/// Events that were kept.
pub(crate) fn kept_events(events: &[(String, Json)]) -> Vec<EmittedEvent> {
    events.iter().map(|(topic, data)| EmittedEvent { topic: topic.clone(), data: data.clone() }).collect()
}

/// Stores a new suspension; `counts` is the logical turn that waits for it.
pub(crate) fn open(
    tx: &mut Tx<'_>,
    session_id: &SessionId,
    session: &SessionRecord,
    record: &SuspensionRecord,
    counts: Option<String>,
) -> Result<(), Refused> {
    let mut record = record.clone();
    if let Some(continuation) = &mut record.continuation {
        continuation.counts = counts;
    }
    if session.suspended.len() >= MAX_OPEN_SUSPENSIONS {
        return Err(Refused::Rule(ErrorInfo::new(
            "too-many-suspensions",
            format!("a session has at most {MAX_OPEN_SUSPENSIONS} open suspensions"),
        )));
    }
    let json = Json::of(&record).map_err(|error| Refused::Rule(ErrorInfo::new("internal", error.to_string())))?;
    if json.byte_len() > MAX_SUSPENSION_BYTES {
        return Err(Refused::Rule(ErrorInfo::new(
            "suspension-too-large",
            format!("what it would go on with has {} bytes; at most {MAX_SUSPENSION_BYTES}", json.byte_len()),
        )));
    }
    tx.put_item(session_id, SUSPENSION, &record.id, &json)?;
    Ok(())
}

/// Marks a suspension as resolved and lets go of what it kept. The oldest resolved ones are forgotten.
///
/// # Errors
/// When the store cannot be read or written.
pub(crate) fn resolve(
    tx: &mut Tx<'_>,
    session_id: &SessionId,
    id: &str,
    resolution: Resolution,
) -> Result<bool, StoreError> {
    let Some(stored) = tx.read().get_item(session_id, SUSPENSION, id)? else { return Ok(false) };
    let Ok(mut record) = serde_json::from_value::<SuspensionRecord>(stored.value().clone()) else { return Ok(false) };
    if record.resolved.is_some() {
        return Ok(false);
    }
    record.resolved = Some(resolution);
    record.continuation = None;
    let Ok(json) = Json::of(&record) else { return Ok(false) };
    tx.put_item(session_id, SUSPENSION, id, &json)?;
    let resolved: Vec<String> = tx
        .read()
        .list_items(session_id, SUSPENSION)?
        .into_iter()
        .filter(|row| row.record.value().get("resolved").is_some())
        .map(|row| row.id)
        .collect();
    for old in &resolved[..resolved.len().saturating_sub(MAX_RESOLVED_SUSPENSIONS)] {
        tx.delete_item(session_id, SUSPENSION, old)?;
    }
    Ok(true)
}

/// Does anything of a logical turn still wait?
pub(crate) fn still_waits(suspended: &std::collections::BTreeMap<String, OpenSuspension>, turn: &str) -> bool {
    suspended.values().any(|open| open.counts.as_deref() == Some(turn))
}

impl Inner {
    /// An open suspension, ready to be resumed with this data.
    ///
    /// # Errors
    /// `suspension-not-found`, `suspension-resolved`, `suspension-expired`, `resume-data-invalid`.
    pub(crate) fn open_suspension(
        &self,
        session: &SessionRecord,
        id: &str,
        data: &Json,
    ) -> Result<(SuspensionRecord, Continuation), ExecError> {
        let mut record = self.suspension(&session.id, id)?;
        let open = session.suspended.get(&record.runtime_id).is_some_and(|open| open.id == id);
        let Some(continuation) = record.continuation.take().filter(|_| open && record.resolved.is_none()) else {
            return Err(resolved(id));
        };
        if self.ambient.now_millis().saturating_sub(record.created_millis) > MAX_SUSPENSION_AGE_MS {
            return Err(ExecError::Conflict {
                code: "suspension-expired",
                message: format!("suspension {id:?} can be resumed for {} hours", MAX_SUSPENSION_AGE_MS / 3_600_000),
            });
        }
        if data.byte_len() > MAX_RESUME_DATA_BYTES {
            return Err(ExecError::Invalid {
                field: "data".into(),
                message: format!("has {} bytes; at most {MAX_RESUME_DATA_BYTES}", data.byte_len()),
            });
        }
        if let Some(schema) = &record.resume_schema {
            let validator = Validator::new(schema.value())
                .map_err(|error| ExecError::Internal(format!("a stored resume schema: {error}")))?;
            crate::active::check(&validator, data.value())
                .map_err(|message| ExecError::Invalid { field: "data".into(), message })?;
        }
        Ok((record, continuation))
    }

    pub(crate) fn suspension(&self, session: &str, id: &str) -> Result<SuspensionRecord, ExecError> {
        let stored = self.store.read(|reader| reader.get_item(&SessionId::from(session), SUSPENSION, id))?;
        let stored = stored.ok_or_else(|| ExecError::NotFound {
            code: "suspension-not-found",
            message: format!("session {session:?} has no suspension {id:?}"),
        })?;
        read(&stored)
    }
}

fn resolved(id: &str) -> ExecError {
    ExecError::Conflict { code: "suspension-resolved", message: format!("suspension {id:?} is resolved already") }
}

fn read(stored: &Json) -> Result<SuspensionRecord, ExecError> {
    serde_json::from_value(stored.value().clone())
        .map_err(|error| ExecError::Internal(format!("a stored suspension cannot be read: {error}")))
}

impl Engine {
    /// The suspensions of a session, oldest first, without what they keep.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn suspensions(&self, session: &str) -> Result<Vec<SuspensionRecord>, ExecError> {
        self.0.session(session)?;
        let rows = self.0.store.read(|reader| reader.list_items(&SessionId::from(session), SUSPENSION))?;
        rows.iter()
            .map(|row| {
                read(&row.record).map(|record| SuspensionRecord {
                    continuation: None,
                    session_id: session.to_owned(),
                    ..record
                })
            })
            .collect()
    }

    /// Gives up an open suspension: its runtime never goes on, what it had buffered is dropped. The turn it belongs to
    /// is counted when nothing else of it waits.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionBusy`], `suspension-not-found`, `suspension-resolved`.
    pub async fn discard_suspension(&self, session: &str, id: &str) -> Result<(), ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let _lock = SessionLock::take(inner, session).await?;
        let mut record = inner.session(session)?;
        let suspension = inner.suspension(session, id)?;
        let open = record.suspended.get(&suspension.runtime_id).filter(|open| open.id == id).cloned();
        let Some(open) = open else { return Err(resolved(id)) };
        record.suspended.remove(&suspension.runtime_id);
        if let Some(turn) = &open.counts
            && !still_waits(&record.suspended, turn)
        {
            record.completed_player_turns += 1;
        }
        record.updated_at = inner.now();
        let (key, id) = (SessionId::from(session), id.to_owned());
        let resolution = Resolution { turn_id: None, at: record.updated_at.clone() };
        let json = Json::of(&record).map_err(|error| ExecError::Internal(error.to_string()))?;
        inner
            .store
            .transact(move |tx| {
                resolve(tx, &key, &id, resolution)?;
                tx.put_session(&key, &json)
            })
            .await
            .map_err(|error| ExecError::Store(error.flatten()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_waited_for_is_checked_when_the_runtime_suspends() {
        let read = |value: Value| SuspendRequest::read(value.as_object().unwrap());
        assert_eq!(read(json!({})).unwrap_or_else(|e| panic!("{e}")).reason, "suspended");
        assert!(read(json!({"reason": "a form", "resumeSchema": {"type": "object"}})).is_ok());
        for bad in [
            json!({"reason": 3}),
            json!({"reason": "x".repeat(MAX_REASON_CHARS + 1)}),
            json!({"resumeSchema": []}),
            json!({"resumeSchema": {"type": 7}}),
            json!({"resumeSchema": {"description": "x".repeat(MAX_RESUME_SCHEMA_BYTES)}}),
        ] {
            assert!(read(bad.clone()).is_err(), "{}", bad.to_string().chars().take(80).collect::<String>());
        }
    }
}
