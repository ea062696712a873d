//! Tools an agent or `ctx.tools.call` reaches: the calling package's own, and the framework's. TOL-2

use std::sync::Arc;

use covel_abi::{CallContext, CallError, CallHost, CallLimits, CallRequest, CallTarget, JsHost};
use covel_graph::Json;
use covel_model::ToolSpec;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    call_host::{RuntimeCall, check_names},
    limits::{MAX_EVENT_BYTES, MAX_OUTPUT_BYTES},
    overlay::{DataOp, DataWrite},
    results::{EmittedEvent, from_tool},
    services::{self, ToolHost},
    write::Write,
};

/// Wall-clock limit of one plugin tool call.
const TOOL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// A failed tool call as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFailure {
    /// `UNAUTHORIZED INVALID_ARGS VALIDATION_ERROR EXECUTION_ERROR CANCELLED`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// Validation details.
    pub details: Option<Value>,
}

impl ToolFailure {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }
    /// The JSON a model reads.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"success": false, "error": self.message, "code": self.code});
        if self.code == "conflict" {
            value["refused"] = true.into();
        }
        if let Some(details) = &self.details {
            value["details"] = details.clone();
        }
        value
    }
}

/// What a tool call gave.
#[derive(Debug, Default)]
pub struct ToolReply {
    /// Full content.
    pub content: Value,
    /// Events it emitted.
    pub events: Vec<EmittedEvent>,
    /// It ended the runtime (`runtime-done`).
    pub done: bool,
}

/// The tools one runtime may call.
pub struct Toolbox {
    call: Arc<RuntimeCall>,
    js: JsHost,
    plugin_tools: Vec<String>,
    builtin_tools: Vec<String>,
}

impl Toolbox {
    /// A box of exactly these tools.
    pub fn new(call: Arc<RuntimeCall>, js: JsHost, plugin_tools: Vec<String>, builtin_tools: Vec<String>) -> Self {
        Self { call, js, plugin_tools, builtin_tools }
    }

    /// What a model is offered.
    pub fn specs(&self, topics: &[(String, String, String)], offer_done: bool) -> Vec<ToolSpec> {
        let shared = self.call.shared();
        let package = shared.plan.package(self.call.runtime());
        let mut specs: Vec<ToolSpec> = self
            .plugin_tools
            .iter()
            .filter_map(|name| package.tools.get(name))
            .map(|tool| ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.json_schema.value().clone(),
            })
            .collect();
        for name in &self.builtin_tools {
            specs.extend(builtin_spec(name, topics));
        }
        if offer_done && !specs.iter().any(|spec| spec.name == "runtime-done") {
            specs.extend(builtin_spec("runtime-done", topics));
        }
        specs
    }

    /// Is this a tool of the calling package (a business tool), not the framework's?
    pub fn is_own(&self, name: &str) -> bool {
        self.plugin_tools.iter().any(|own| own == name)
    }

    /// Is this one of the framework's tools that this runtime declared?
    pub fn offers(&self, name: &str) -> bool {
        self.builtin_tools.iter().any(|known| known == name)
    }

    /// Calls a tool by its final name. A failed call leaves no write and no event. WSV-7
    ///
    /// # Errors
    /// [`ToolFailure`] as the model sees it.
    pub async fn call(
        &self,
        name: &str,
        arguments: Json,
        topics: &[(String, String, String)],
        cancel: &CancellationToken,
    ) -> Result<ToolReply, ToolFailure> {
        if self.is_own(name) {
            return self.call_own(name, arguments, cancel).await;
        }
        if name == "runtime-done" {
            return Ok(ToolReply { content: json!({"success": true}), done: true, ..ToolReply::default() });
        }
        if self.builtin_tools.iter().any(|known| known == name) {
            return self.call_builtin(name, arguments.value(), topics);
        }
        Err(ToolFailure::new("UNAUTHORIZED", format!("this runtime has no tool {name:?}")))
    }

    async fn call_own(
        &self,
        name: &str,
        arguments: Json,
        cancel: &CancellationToken,
    ) -> Result<ToolReply, ToolFailure> {
        let shared = self.call.shared();
        let package = shared.plan.package(self.call.runtime());
        let Some(generation) = &package.generation else {
            return Err(ToolFailure::new("UNAUTHORIZED", format!("the code of {:?} is not active", package.id())));
        };
        let context = CallContext {
            fields: base_fields(&self.call),
            argument: Some(arguments),
            services: true,
            ..CallContext::default()
        };
        let own = ToolHost::new(&self.call, &self.js, cancel, None);
        let host: Arc<dyn CallHost> = Arc::clone(&own) as Arc<dyn CallHost>;
        let limits = CallLimits { timeout: TOOL_TIMEOUT, max_output_bytes: MAX_OUTPUT_BYTES };
        let target = CallTarget::Tool { name: name.to_owned() };
        let returned = self
            .js
            .call(CallRequest { generation: generation.clone(), target, context, host, limits, cancel: cancel.clone() })
            .await
            .map_err(|error| match error {
                error if let Some(failure) = services::tool_failure(&error) => failure,
                CallError::Thrown { code, message, details, .. } if code.as_deref() == Some("VALIDATION_ERROR") => {
                    ToolFailure { code: "VALIDATION_ERROR", message, details: details.map(|json| json.value().clone()) }
                }
                CallError::Cancelled => ToolFailure::new("CANCELLED", "cancelled"),
                other => ToolFailure::new("EXECUTION_ERROR", other.to_string()),
            })?;
        let outcome = from_tool(&returned.value).map_err(|message| ToolFailure::new("EXECUTION_ERROR", message))?;
        self.check_events(&outcome.events)?;
        self.call
            .apply_writes(&outcome.writes, true)
            .map_err(|error| ToolFailure::new("EXECUTION_ERROR", error.message))?;
        own.end(true);
        Ok(ToolReply { content: outcome.content, events: outcome.events, done: false })
    }

    fn check_events(&self, events: &[EmittedEvent]) -> Result<(), ToolFailure> {
        for event in events {
            if event.data.byte_len() > MAX_EVENT_BYTES {
                return Err(ToolFailure::new(
                    "EXECUTION_ERROR",
                    format!("the payload has {} bytes; at most {MAX_EVENT_BYTES}", event.data.byte_len()),
                ));
            }
            self.call
                .shared()
                .plan
                .check_event(&event.topic, &event.data)
                .map_err(|error| ToolFailure::new("EXECUTION_ERROR", error.message))?;
        }
        Ok(())
    }

    fn call_builtin(
        &self,
        name: &str,
        arguments: &Value,
        topics: &[(String, String, String)],
    ) -> Result<ToolReply, ToolFailure> {
        let text = |field: &str| {
            arguments
                .get(field)
                .and_then(Value::as_str)
                .ok_or_else(|| ToolFailure::new("INVALID_ARGS", format!("{name} needs a string `{field}`")))
        };
        let failed = |error: covel_abi::HostError| ToolFailure::new("EXECUTION_ERROR", error.message);
        match name {
            "emit-event" => {
                let topic = text("topic")?;
                if !topics.iter().any(|(known, ..)| known == topic) {
                    let known: Vec<&str> = topics.iter().map(|(known, ..)| known.as_str()).collect();
                    return Err(ToolFailure::new(
                        "EXECUTION_ERROR",
                        format!("unknown topic {topic:?}; known topics: {}", known.join(", ")),
                    ));
                }
                let data = Json::from_value(arguments.get("data").cloned().unwrap_or_else(|| json!({})));
                let event = EmittedEvent { topic: topic.to_owned(), data };
                self.check_events(std::slice::from_ref(&event))?;
                Ok(ToolReply { content: json!({"success": true, "topic": topic}), events: vec![event], done: false })
            }
            "plugin-data-set" => {
                let (namespace, key) = (text("namespace")?, text("key")?);
                let value = arguments
                    .get("value")
                    .ok_or_else(|| ToolFailure::new("INVALID_ARGS", "plugin-data-set needs a `value`"))?;
                let write = DataWrite {
                    namespace: namespace.into(),
                    key: key.into(),
                    op: DataOp::Set(Json::from_value(value.clone())),
                };
                self.call.apply_writes(&[Write::Data(write)], false).map_err(failed)?;
                Ok(reply(json!({"success": true, "namespace": namespace, "key": key})))
            }
            "plugin-data-set-batch" => {
                let items = arguments
                    .get("items")
                    .and_then(Value::as_array)
                    .ok_or_else(|| ToolFailure::new("INVALID_ARGS", "plugin-data-set-batch needs a list `items`"))?;
                let mut writes = Vec::with_capacity(items.len());
                for item in items {
                    let field = |name: &str| item.get(name).and_then(Value::as_str);
                    let (Some(namespace), Some(key), Some(value)) =
                        (field("namespace"), field("key"), item.get("value"))
                    else {
                        return Err(ToolFailure::new("INVALID_ARGS", "an item has `namespace`, `key` and `value`"));
                    };
                    let op = DataOp::Set(Json::from_value(value.clone()));
                    writes.push(Write::Data(DataWrite { namespace: namespace.into(), key: key.into(), op }));
                }
                self.call.apply_writes(&writes, false).map_err(failed)?;
                Ok(reply(json!({"success": true, "count": writes.len()})))
            }
            "plugin-data-get" => {
                let (namespace, key) = (text("namespace")?, text("key")?);
                // Reserved namespaces look absent to models.
                let found = match check_names(namespace, key, false) {
                    Ok(()) => self.call.get(namespace, key).map_err(failed)?,
                    Err(_) => None,
                };
                let mut answer = json!({"found": found.is_some(), "namespace": namespace, "key": key});
                if let Some(value) = found {
                    answer["value"] = value.value().clone();
                }
                Ok(reply(answer))
            }
            "plugin-data-list" => {
                let namespaces: Vec<String> = match arguments.get("namespace").and_then(Value::as_str) {
                    Some(namespace) => vec![namespace.to_owned()],
                    None => {
                        let package = self.call.shared().plan.package(self.call.runtime());
                        package.fragment().data.iter().map(|data| data.namespace.clone()).collect()
                    }
                };
                let mut items = Vec::new();
                for namespace in namespaces.iter().filter(|namespace| !namespace.starts_with('_')) {
                    for row in self.call.list(namespace).map_err(failed)? {
                        items.push(json!({
                            "namespace": namespace, "key": row.key, "value": row.value, "updatedAt": row.updated_at,
                        }));
                    }
                }
                Ok(reply(json!({"count": items.len(), "items": items})))
            }
            other => Err(ToolFailure::new("EXECUTION_ERROR", format!("this host does not offer {other:?} yet"))),
        }
    }
}

fn reply(content: Value) -> ToolReply {
    ToolReply { content, ..ToolReply::default() }
}

/// Identity fields of every call of a runtime.
pub fn base_fields(call: &RuntimeCall) -> Vec<(&'static str, Json)> {
    let shared = call.shared();
    let plan = &shared.plan;
    let text = |value: &str| Json::from_value(Value::String(value.to_owned()));
    vec![
        ("sessionId", text(&shared.session.id)),
        ("turnId", text(&shared.turn_id)),
        ("pluginId", text(plan.plugin_id(call.runtime()))),
        ("runtimeId", text(plan.runtime_id(call.runtime()))),
        ("locale", text(&shared.session.locale)),
        ("logicalTurn", Json::from_value(shared.logical_turn.into())),
    ]
}

/// Specifications of the framework tools this host offers.
fn builtin_spec(name: &str, topics: &[(String, String, String)]) -> Option<ToolSpec> {
    let (description, parameters) = match name {
        "emit-event" => {
            let known: Vec<&str> = topics.iter().map(|(topic, ..)| topic.as_str()).collect();
            (
                "Emit one event of this turn.",
                json!({"type": "object", "properties": {
                    "topic": {"type": "string", "enum": known}, "data": {"type": "object"}},
                    "required": ["topic"], "additionalProperties": false}),
            )
        }
        "suspend" => (
            "Stop here and wait for an answer from outside; you go on when it comes.",
            json!({"type": "object", "properties": {
                "reason": {"type": "string"}, "resumeSchema": {"type": "object"}}, "required": ["reason"]}),
        ),
        "runtime-done" => ("Say that your work is finished.", json!({"type": "object", "properties": {}})),
        "plugin-data-set" => (
            "Store one record of this package.",
            json!({"type": "object", "properties": {
                "namespace": {"type": "string"}, "key": {"type": "string"}, "value": {}},
                "required": ["namespace", "key", "value"]}),
        ),
        "plugin-data-set-batch" => (
            "Store several records of this package.",
            json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "object",
                "properties": {"namespace": {"type": "string"}, "key": {"type": "string"}, "value": {}},
                "required": ["namespace", "key", "value"]}}}, "required": ["items"]}),
        ),
        "plugin-data-get" => (
            "Read one record of this package.",
            json!({"type": "object", "properties": {
                "namespace": {"type": "string"}, "key": {"type": "string"}}, "required": ["namespace", "key"]}),
        ),
        "plugin-data-list" => (
            "List records of this package.",
            json!({"type": "object", "properties": {"namespace": {"type": "string"}}}),
        ),
        _ => return None,
    };
    Some(ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters })
}

/// What a model reads of a tool's content: `_text` alone when present, else the JSON without its `ui`.
pub fn model_text(content: &Value) -> String {
    if let Some(text) = content.get("_text").and_then(Value::as_str) {
        return text.to_owned();
    }
    match content {
        Value::String(text) => text.clone(),
        Value::Object(map) if map.contains_key("ui") => {
            let mut map = map.clone();
            map.shift_remove("ui");
            Value::Object(map).to_string()
        }
        other => other.to_string(),
    }
}
