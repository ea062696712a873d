//! From what plugin code returned to a checked runtime result.

// A refusal is itself a runtime's result, made once a call: boxing it would only add noise.
#![allow(clippy::result_large_err)]

use covel_graph::Json;
use serde_json::{Map, Value};

use crate::{
    document::{ErrorInfo, RuntimeStatus},
    limits::{MAX_DATA_DEPTH, MAX_EVENT_BYTES, MAX_LOG_META_CHARS, MAX_OUTPUT_BYTES},
    ops,
    overlay::{DataOp, DataWrite},
    suspend::{SuspendRequest, Suspending},
    write::{Fault, Proposal, Write, read_effect},
};

/// An event a runtime wants to emit.
#[derive(Clone, Debug, PartialEq)]
pub struct EmittedEvent {
    /// Topic.
    pub topic: String,
    /// Payload.
    pub data: Json,
}

/// A runtime's result after normalisation.
#[derive(Clone, Debug)]
pub struct RuntimeResult {
    /// How it ended.
    pub status: RuntimeStatus,
    /// The guard said skip and gave `output`.
    pub guard_skip: bool,
    /// Skip or suspension reason.
    pub reason: Option<String>,
    /// Failure.
    pub error: Option<ErrorInfo>,
    /// The raw value, for exports and bindings; none = no export.
    pub value: Option<Json>,
    /// What documents and consumers see: an object, `{value}` for other values, `{}` without one.
    pub output: Option<Json>,
    /// Story text, for story runtimes.
    pub narrative: Option<String>,
    /// Events, in order.
    pub events: Vec<EmittedEvent>,
    /// Domain writes in order.
    pub writes: Vec<Write>,
    /// What it reported of its own work, in order.
    pub job_status: Vec<Value>,
    /// `completion: done`, or `preGameDone` from an agent.
    pub completion_done: bool,
    /// Notes for authors.
    pub notes: Vec<ErrorInfo>,
    /// What a suspended runtime waits for and goes on with.
    pub suspending: Option<Box<Suspending>>,
    /// Tools an agent called, in order.
    pub tool_calls: Vec<ToolCallSummary>,
}

/// A tool an agent called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallSummary {
    /// Tool.
    pub name: String,
    /// Did it succeed?
    pub ok: bool,
}

impl Default for RuntimeResult {
    fn default() -> Self {
        Self::nothing()
    }
}

impl RuntimeResult {
    /// A success that gave nothing.
    pub const fn nothing() -> Self {
        Self {
            status: RuntimeStatus::Success,
            guard_skip: false,
            reason: None,
            error: None,
            value: None,
            output: None,
            narrative: None,
            events: Vec::new(),
            writes: Vec::new(),
            job_status: Vec::new(),
            completion_done: false,
            notes: Vec::new(),
            suspending: None,
            tool_calls: Vec::new(),
        }
    }
}

impl RuntimeResult {
    /// A failure; nothing of it commits. Invariant 4
    pub fn failed(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: RuntimeStatus::Failed, error: Some(ErrorInfo::new(code, message)), ..Self::default() }
    }

    /// A skip.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self { status: RuntimeStatus::Skipped, reason: Some(reason.into()), ..Self::default() }
    }

    /// It waits for someone.
    pub(crate) fn suspended(request: SuspendRequest, agent: Option<crate::suspend::AgentState>) -> Self {
        let SuspendRequest { reason, resume_schema } = request;
        Self {
            status: RuntimeStatus::Suspended,
            reason: Some(reason),
            suspending: Some(Box::new(Suspending { resume_schema, agent, ..Suspending::default() })),
            ..Self::default()
        }
    }

    /// Does its result exist for others?
    pub fn is_ok(&self) -> bool {
        self.status == RuntimeStatus::Success || self.guard_skip
    }
}

/// Effect channels of a successful result.
const CHANNELS: [&str; 11] = [
    "events",
    "pluginData",
    "statePatches",
    "interactions",
    "ui",
    "assetGenerations",
    "notifications",
    "characters",
    "lorebook",
    "jobStatus",
    "diagnostics",
];
/// Most diagnostics taken from one result.
const MAX_DIAGNOSTICS: usize = 100;

fn schema_invalid(message: impl Into<String>) -> RuntimeResult {
    RuntimeResult::failed("output-schema-invalid", message)
}

/// Business output as documents show it.
pub fn project_output(value: Option<&Json>) -> Json {
    match value {
        None => Json::from_value(Value::Object(Map::new())),
        Some(value) if value.value().is_object() => value.clone(),
        Some(value) => {
            let mut map = Map::new();
            map.insert("value".into(), value.value().clone());
            Json::from_value(Value::Object(map))
        }
    }
}

/// Normalises what a function handler returned.
pub fn from_handler(returned: &Json) -> RuntimeResult {
    let (body, pending, emitted) = open_envelope(returned.value());
    let Some(object) = body.as_object() else {
        return schema_invalid(format!("a handler returns an object with `outcome`, not {}", kind_of(body)));
    };
    let outcome = object.get("outcome").and_then(Value::as_str);
    let mut result = match outcome {
        Some("success") => match success(object) {
            Ok(result) => result,
            Err(result) => return result,
        },
        Some("skipped") => RuntimeResult::skipped(text(object, "skipReason").unwrap_or("skipped by the handler")),
        Some("failed") => RuntimeResult::failed("handler-failed", error_text(object)),
        Some("suspended") => match SuspendRequest::read(object) {
            Ok(request) => RuntimeResult::suspended(request, None),
            Err(message) => return schema_invalid(message),
        },
        Some(other) => {
            return schema_invalid(format!("unknown outcome {other:?}; accepted: success, skipped, failed, suspended"));
        }
        None => return schema_invalid("the handler's result has no `outcome`"),
    };
    if result.status == RuntimeStatus::Success {
        if let Err(error) = apply_proposals(&mut result, pending, emitted) {
            return error;
        }
        return result;
    }
    let effects = object.get("effects").and_then(Value::as_object);
    let told = effects.and_then(|effects| effects.get("diagnostics")?.as_array());
    told.into_iter().flatten().filter_map(Value::as_object).for_each(|told| diagnostic(told, &mut result));
    if effects.is_some_and(has_domain_effects) || !pending.is_empty() {
        result.notes.push(ErrorInfo::new(
            "non-success-domain-effects-stripped",
            "only a successful result may write; its effects were dropped",
        ));
    }
    result
}

fn success(object: &Map<String, Value>) -> Result<RuntimeResult, RuntimeResult> {
    let mut result = RuntimeResult::default();
    if let Some(value) = object.get("value") {
        let value = Json::from_value(value.clone());
        if value.byte_len() > MAX_OUTPUT_BYTES {
            return Err(RuntimeResult::failed(
                "output-too-large",
                format!("the value has {} bytes; at most {MAX_OUTPUT_BYTES} are kept", value.byte_len()),
            ));
        }
        result.value = Some(value);
    }
    result.output = Some(project_output(result.value.as_ref()));
    match object.get("completion") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == "done" => result.completion_done = true,
        Some(Value::String(word)) if word == "pending" => {}
        Some(other) => return Err(schema_invalid(format!("completion is `done` or `pending`, not {other}"))),
    }
    match object.get("effects") {
        None | Some(Value::Null) => {}
        Some(value @ Value::Object(effects)) => {
            if ops::is_too_deep(value) {
                return Err(schema_invalid(format!("effects are nested deeper than {MAX_DATA_DEPTH} levels")));
            }
            apply_effects(&mut result, effects)?;
        }
        Some(other) => return Err(schema_invalid(format!("effects is {}, not an object", kind_of(other)))),
    }
    Ok(result)
}

fn has_domain_effects(effects: &Map<String, Value>) -> bool {
    effects.keys().any(|key| key != "jobStatus" && key != "diagnostics")
}

fn apply_effects(result: &mut RuntimeResult, effects: &Map<String, Value>) -> Result<(), RuntimeResult> {
    for (channel, list) in effects {
        if !CHANNELS.contains(&channel.as_str()) {
            return Err(schema_invalid(format!(
                "unknown effect channel effects.{channel}; known: {}",
                CHANNELS.join(" ")
            )));
        }
        if list.is_null() {
            continue;
        }
        let Some(items) = list.as_array() else {
            return Err(schema_invalid(format!("effects.{channel} is not a list")));
        };
        for (at, item) in items.iter().enumerate() {
            let path = format!("effects.{channel}[{at}]");
            let Some(object) = item.as_object() else {
                return Err(schema_invalid(format!("{path} is not an object")));
            };
            match channel.as_str() {
                "events" => {
                    let event = event(object).map_err(|message| schema_invalid(format!("{path}: {message}")))?;
                    result.events.push(event);
                }
                "pluginData" => {
                    let write = data_write(object).map_err(|message| schema_invalid(format!("{path}: {message}")))?;
                    result.writes.push(Write::Data(write));
                }
                "diagnostics" => diagnostic(object, result),
                "jobStatus" => result.job_status.push(item.clone()),
                channel => {
                    if let Some(read) = read_effect(channel, object) {
                        let proposal = read.map_err(|fault| schema_invalid(fault.at(&path)))?;
                        result.writes.push(proposal.into());
                    }
                }
            }
        }
    }
    Ok(())
}

/// What plugin code tells its author; kept whatever the outcome.
fn diagnostic(object: &Map<String, Value>, result: &mut RuntimeResult) {
    if result.notes.len() < MAX_DIAGNOSTICS {
        let code = text(object, "code").unwrap_or("diagnostic");
        let message: String = text(object, "message").unwrap_or_default().chars().take(MAX_LOG_META_CHARS).collect();
        result.notes.push(ErrorInfo::new(code, message));
    }
}

fn event(object: &Map<String, Value>) -> Result<EmittedEvent, String> {
    let topic = text(object, "topic").ok_or("an event has a string `topic`")?;
    if !covel_graph::ids::is_topic(topic) {
        return Err(format!("{topic:?} is not a topic: two or more dot-separated lowercase segments"));
    }
    let data = Json::from_value(object.get("data").cloned().unwrap_or_else(|| Value::Object(Map::new())));
    if data.byte_len() > MAX_EVENT_BYTES {
        return Err(format!("the payload has {} bytes; at most {MAX_EVENT_BYTES}", data.byte_len()));
    }
    Ok(EmittedEvent { topic: topic.to_owned(), data })
}

fn data_write(object: &Map<String, Value>) -> Result<DataWrite, String> {
    let namespace = text(object, "namespace").ok_or("has no string `namespace`")?;
    let key = text(object, "key").ok_or("has no string `key`")?;
    let op = match (object.get("value"), object.get("ops")) {
        (Some(value), None) => DataOp::Set(Json::from_value(value.clone())),
        (None, Some(ops)) => DataOp::Update(Json::from_value(ops.clone())),
        _ => return Err("has exactly one of `value` and `ops`".into()),
    };
    Ok(DataWrite { namespace: namespace.into(), key: key.into(), op })
}

/// Reads a proposal of a tool result into writes. Its envelope says nothing: who it comes from is known.
fn proposal(object: &Map<String, Value>, out: &mut RuntimeResult) -> Result<(), Fault> {
    let kind = text(object, "type").ok_or("a proposal has a string `type`")?;
    let payload = object.get("payload").and_then(Value::as_object).ok_or("a proposal has an object `payload`")?;
    match kind {
        "plugin.data" | "plugin.data.update" => out.writes.push(Write::Data(data_write(payload)?)),
        "plugin.data.batch" => {
            let items = payload.get("items").and_then(Value::as_array).ok_or("a batch has a list `items`")?;
            for item in items {
                out.writes.push(Write::Data(data_write(item.as_object().ok_or("a batch item is an object")?)?));
            }
        }
        "plugin.data.delete" => out.writes.push(Write::Data(DataWrite {
            namespace: text(payload, "namespace").ok_or("has no string `namespace`")?.into(),
            key: text(payload, "key").ok_or("has no string `key`")?.into(),
            op: DataOp::Delete,
        })),
        "event.emit" => out.events.push(event(payload)?),
        other => out.writes.push(Proposal::read(other, payload)?.into()),
    }
    Ok(())
}

/// A buffered write as a proposal: what a suspension keeps.
pub(crate) fn to_proposal(write: &Write) -> Value {
    let write = match write {
        Write::Data(write) => write,
        Write::Proposal(proposal) => {
            return serde_json::json!({"type": proposal.kind(), "payload": proposal.payload()});
        }
    };
    let (namespace, key) = (&*write.namespace, &*write.key);
    match &write.op {
        DataOp::Set(value) => serde_json::json!({"type": "plugin.data",
            "payload": {"namespace": namespace, "key": key, "value": value}}),
        DataOp::Delete => serde_json::json!({"type": "plugin.data.delete",
            "payload": {"namespace": namespace, "key": key}}),
        DataOp::Update(list) => serde_json::json!({"type": "plugin.data.update",
            "payload": {"namespace": namespace, "key": key, "ops": list}}),
    }
}

/// Writes that were kept as proposals.
///
/// # Errors
/// A sentence, when one of them cannot be read.
pub(crate) fn from_proposals(kept: &[Value]) -> Result<Vec<Write>, String> {
    let mut collected = RuntimeResult::default();
    apply_proposals(&mut collected, kept, &[])
        .map_err(|failed| failed.error.map_or_else(String::new, |error| error.message))?;
    Ok(collected.writes)
}

fn apply_proposals(result: &mut RuntimeResult, pending: &[Value], emitted: &[Value]) -> Result<(), RuntimeResult> {
    for (channel, items) in [("pendingProposals", pending), ("emittedEvents", emitted)] {
        for (at, item) in items.iter().enumerate() {
            let object = item.as_object().ok_or_else(|| schema_invalid(format!("{channel}[{at}] is not an object")))?;
            if ops::is_too_deep(item) {
                return Err(schema_invalid(format!("{channel}[{at}] is nested deeper than {MAX_DATA_DEPTH} levels")));
            }
            let read = if channel == "emittedEvents" {
                event(object).map(|event| result.events.push(event)).map_err(Fault::Rule)
            } else {
                proposal(object, result)
            };
            read.map_err(|fault| schema_invalid(fault.at(&format!("{channel}[{at}]"))))?;
        }
    }
    Ok(())
}

/// Splits a `covel.tool-result` envelope into content, proposals and events; other values are all content.
pub fn open_envelope(value: &Value) -> (&Value, &[Value], &[Value]) {
    let Some(object) = value.as_object() else { return (value, &[], &[]) };
    if object.get("kind").and_then(Value::as_str) != Some("covel.tool-result") {
        return (value, &[], &[]);
    }
    let list = |name: &str| object.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    (object.get("content").unwrap_or(&Value::Null), list("pendingProposals"), list("emittedEvents"))
}

/// What a tool gave: content for the model, and writes and events of the calling runtime.
#[derive(Debug, Default)]
pub struct ToolOutcome {
    /// Content.
    pub content: Value,
    /// Writes.
    pub writes: Vec<Write>,
    /// Events.
    pub events: Vec<EmittedEvent>,
}

/// Reads what a plugin tool returned.
///
/// # Errors
/// A sentence, when the result's proposals are malformed; the call then failed.
pub fn from_tool(returned: &Json) -> Result<ToolOutcome, String> {
    let (content, pending, emitted) = open_envelope(returned.value());
    let mut collected = RuntimeResult::default();
    apply_proposals(&mut collected, pending, emitted)
        .map_err(|failed| failed.error.map_or_else(String::new, |error| error.message))?;
    shown_to_player(content, &mut collected)?;
    Ok(ToolOutcome { content: content.clone(), writes: collected.writes, events: collected.events })
}

/// A tool's `ui` blocks and its `interaction` are writes of the calling runtime.
fn shown_to_player(content: &Value, out: &mut RuntimeResult) -> Result<(), String> {
    let blocks = content.get("ui").and_then(Value::as_array);
    for (at, block) in blocks.into_iter().flatten().enumerate() {
        let path = format!("ui[{at}]");
        let object = block.as_object().ok_or_else(|| format!("{path} is not an object"))?;
        out.writes.push(Proposal::read("ui.render", object).map_err(|fault| fault.at(&path))?.into());
    }
    if let Some(block) = content.get("interaction").and_then(Value::as_object) {
        let read = Proposal::read("interaction.request", block).map_err(|fault| fault.at("interaction"))?;
        out.writes.push(read.into());
    }
    Ok(())
}

/// Reads a guard's answer: `None` = run; otherwise the skipped result whose output others may bind.
pub fn from_guard(returned: &Json) -> Result<Option<RuntimeResult>, RuntimeResult> {
    let (body, pending, emitted) = open_envelope(returned.value());
    let Some(object) = body.as_object() else {
        return Err(schema_invalid("a guard returns {skip: false} or {skip: true, ...}"));
    };
    match object.get("skip") {
        Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => {
            let mut output = object.clone();
            output.shift_remove("skip");
            let value = Json::from_value(Value::Object(output));
            let mut result = RuntimeResult {
                status: RuntimeStatus::Skipped,
                guard_skip: true,
                reason: Some("guard".into()),
                value: Some(value.clone()),
                output: Some(value),
                completion_done: true,
                ..RuntimeResult::default()
            };
            apply_proposals(&mut result, pending, emitted)?;
            Ok(Some(result))
        }
        _ => Err(schema_invalid("a guard's `skip` is true or false")),
    }
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn error_text(object: &Map<String, Value>) -> String {
    match object.get("error") {
        Some(Value::String(message)) => message.clone(),
        Some(Value::Object(error)) => text(error, "message").unwrap_or("the handler reported a failure").to_owned(),
        _ => "the handler reported a failure".to_owned(),
    }
}

/// What kind of JSON a value is, in words.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn writes_of_every_type_can_be_kept_and_read_back() {
        let kept = [
            json!({"type": "plugin.data", "payload": {"namespace": "n", "key": "k", "value": {"__proto__": 1}}}),
            json!({"type": "plugin.data.delete", "payload": {"namespace": "n", "key": "k"}}),
            json!({"type": "plugin.data.update", "payload": {"namespace": "n", "key": "k", "ops": [{"op": "inc", "path": "/n", "by": 1}]}}),
            json!({"type": "state.patch", "payload": {"table": "t", "field": "f", "value": 1, "reason": "so"}}),
            json!({"type": "interaction.request", "payload": {"interactionId": "i", "type": "form", "fields": [{"name": "a"}]}}),
            json!({"type": "ui.render", "payload": {"parts": [{"id": "p", "type": "text"}], "layout": "split", "status": "success"}}),
            json!({"type": "asset.generate", "payload": {"ref": {"id": "a", "mime": "image/png"}, "modality": "image"}}),
            json!({"type": "character.upsert", "payload": {"id": "c", "name": "Ada", "type": "npc", "description": "d", "aliases": ["A"], "fields": {"hp": 1}}}),
            json!({"type": "character.upsert", "payload": {"id": "c", "expectedVersion": 2, "fields": null, "description": null, "removeAliases": ["A"]}}),
            json!({"type": "character.schema.set", "payload": {"types": ["npc"], "attributes": []}}),
            json!({"type": "lorebook.upsert", "payload": {"entries": [{"id": "l", "content": "x", "strategy": "constant"}]}}),
            json!({"type": "dimension.initialize", "payload": {"definitions": {"d": {"name": "D", "schema": {"type": "number"}, "initialValue": 1}}}}),
            json!({"type": "dimension.update", "payload": {"updates": [{"id": "d", "expectedVersion": 1, "value": 2}], "source": {"resultId": "r", "turnNumber": 1}, "readVersions": {"d": 1}, "settlement": "manual"}}),
        ];
        for value in kept {
            let once = from_proposals(std::slice::from_ref(&value)).unwrap_or_else(|e| panic!("{value}: {e}"));
            let again: Vec<Value> = once.iter().map(to_proposal).collect();
            let mut twice = from_proposals(&again).unwrap_or_else(|e| panic!("{again:?}: {e}"));
            // How many bytes the payload had when it was written matters to its limit only.
            assert_eq!(again, twice.iter().map(to_proposal).collect::<Vec<_>>());
            if value["type"] != "character.upsert" {
                assert_eq!(once, std::mem::take(&mut twice), "{value}");
            }
        }
    }

    fn handler(value: Value) -> RuntimeResult {
        from_handler(&Json::from_value(value))
    }

    #[test]
    fn malformed_results_fail_with_a_coded_error() {
        for value in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({}),
            json!({"outcome": "great"}),
            json!({"outcome": 3}),
            json!({"outcome": "success", "effects": []}),
            json!({"outcome": "success", "effects": {"events": {}}}),
            json!({"outcome": "success", "effects": {"events": [null]}}),
            json!({"outcome": "success", "effects": {"events": [{"topic": "Bad Topic"}]}}),
            json!({"outcome": "success", "effects": {"statePatches": [null]}}),
            json!({"outcome": "success", "effects": {"pluginData": [{"namespace": "n"}]}}),
            json!({"outcome": "success", "effects": {"surprise": []}}),
            json!({"outcome": "success", "completion": "maybe"}),
        ] {
            let result = handler(value.clone());
            assert_eq!(result.status, RuntimeStatus::Failed, "{value}");
            assert_eq!(result.error.unwrap().code, "output-schema-invalid", "{value}");
        }
    }

    #[test]
    fn scalars_lists_and_null_are_wrapped_and_absent_values_export_nothing() {
        for (value, output) in [
            (json!(3), json!({"value": 3})),
            (json!(null), json!({"value": null})),
            (json!([1]), json!({"value": [1]})),
            (json!({"events": [1]}), json!({"events": [1]})),
        ] {
            let result = handler(json!({"outcome": "success", "value": value}));
            assert_eq!(*result.output.unwrap().value(), output);
            assert!(result.events.is_empty());
        }
        let result = handler(json!({"outcome": "success"}));
        assert_eq!(result.output.unwrap().text(), "{}");
        assert!(result.value.is_none());
    }

    #[test]
    fn effects_of_unsuccessful_results_are_stripped_and_noted() {
        for outcome in ["failed", "skipped"] {
            let result = handler(json!({"outcome": outcome, "effects": {"events": [{"topic": "a.b"}]}}));
            assert!(result.events.is_empty());
            assert_eq!(result.notes[0].code, "non-success-domain-effects-stripped");
        }
    }

    #[test]
    fn guards_skip_with_their_remaining_fields() {
        let skip = from_guard(&Json::from_value(json!({"skip": true, "mood": "calm"}))).unwrap().unwrap();
        assert!(skip.guard_skip && skip.is_ok());
        assert_eq!(*skip.output.unwrap().value(), json!({"mood": "calm"}));
        assert!(from_guard(&Json::from_value(json!({"skip": false}))).unwrap().is_none());
        assert!(from_guard(&Json::from_value(json!({"skip": 1}))).is_err());
        assert!(from_guard(&Json::null()).is_err());
    }
}
