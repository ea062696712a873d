//! Writing a chat completion request.

use covel_model::{Message, ModelErrorKind, ModelRequest, Role, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use crate::config::{CacheKey, Feature, ReasoningEffort, Slot};
use crate::limits::MAX_REQUEST_BYTES;
use crate::protocol::{Fault, Mode, ToolNames, WireRequest, digest};

/// Fields the gateway owns: nothing configured may set them.
const PROTECTED: [&str; 16] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "stream",
    "stream_options",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "input",
    "contents",
    "systemInstruction",
    "generationConfig",
];

/// Metadata that routes media requests and is for no wire.
const ROUTING: [&str; 4] = ["imageWire", "speechWire", "transcriptionWire", "musicWire"];

pub(super) fn write(slot: &Slot, request: &ModelRequest, mode: Mode) -> Result<WireRequest, Fault> {
    let mut body = Map::new();
    body.insert("model".into(), slot.model.as_str().into());
    body.insert("messages".into(), messages(slot, request).into());
    tools(request, &mut body)?;
    if request.response_schema.is_some() && slot.may(Feature::StructuredOutput) {
        body.insert("response_format".into(), json!({"type": "json_object"}));
    }
    let budget = slot.token_limits(request.max_output_tokens).max_output_tokens;
    let budget_field = if is_newer_openai(&slot.model) { "max_completion_tokens" } else { "max_tokens" };
    body.insert(budget_field.into(), budget.into());
    if mode == Mode::Stream {
        body.insert("stream".into(), true.into());
        // Mistral reports usage unasked and takes no unknown fields.
        if slot.provider != "mistral" {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
    reasoning(slot, request, &mut body);
    options(slot, request, &mut body);

    let bytes = serde_json::to_vec(&Value::Object(body))
        .map_err(|error| Fault::new(ModelErrorKind::BadRequest, format!("the request cannot be written: {error}")))?;
    if bytes.len() > MAX_REQUEST_BYTES {
        return Err(Fault::new(
            ModelErrorKind::BadRequest,
            format!("the request has {} bytes, more than the limit of {MAX_REQUEST_BYTES}", bytes.len()),
        ));
    }
    Ok(WireRequest { path: "/chat/completions".into(), body: bytes.into(), tool_names: ToolNames::new(request) })
}

fn messages(slot: &Slot, request: &ModelRequest) -> Vec<Value> {
    let mut out = Vec::with_capacity(request.messages.len() + 1);
    let mut system = request.system.clone();
    if let Some(schema) = &request.response_schema {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str("Answer with one JSON value and nothing else. It must fit this JSON Schema:\n");
        system.push_str(&schema.to_string());
    }
    if !system.is_empty() {
        out.push(json!({"role": "system", "content": system}));
    }
    let late_as_user = slot.options.late_system_as_user.unwrap_or(false);
    let mut started = false;
    for message in &request.messages {
        started |= message.role != Role::System;
        out.push(write_message(message, late_as_user && started));
    }
    out
}

fn write_message(message: &Message, late_as_user: bool) -> Value {
    let role = match message.role {
        Role::System if late_as_user => "user",
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut out = Map::new();
    out.insert("role".into(), role.into());
    let calls = &message.tool_calls;
    let content =
        if message.content.is_empty() && !calls.is_empty() { Value::Null } else { message.content.as_str().into() };
    out.insert("content".into(), content);
    if message.role == Role::Assistant && !calls.is_empty() {
        out.insert("tool_calls".into(), calls.iter().map(write_call).collect::<Vec<_>>().into());
    }
    if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id) {
        out.insert("tool_call_id".into(), id.as_str().into());
    }
    Value::Object(out)
}

fn write_call(call: &ToolCall) -> Value {
    // Several servers parse the arguments of past calls and reject the whole request when they are broken.
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ if call.arguments.trim().is_empty() => "{}".to_owned(),
        _ => json!({"invalidArguments": call.arguments}).to_string(),
    };
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": ToolNames::wire(&call.name), "arguments": arguments},
    })
}

fn tools(request: &ModelRequest, body: &mut Map<String, Value>) -> Result<(), Fault> {
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": {
                        "name": ToolNames::wire(&tool.name),
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                })
            })
            .collect();
        body.insert("tools".into(), tools.into());
    }
    let choice = match &request.tool_choice {
        ToolChoice::Auto => return Ok(()),
        ToolChoice::Required if !request.tools.is_empty() => json!("required"),
        ToolChoice::Named(name) if request.tools.iter().any(|tool| tool.name == *name) => {
            json!({"type": "function", "function": {"name": ToolNames::wire(name)}})
        }
        ToolChoice::Required => {
            return Err(config("the request demands a tool call but offers no tool"));
        }
        ToolChoice::Named(_) => {
            return Err(config("the request demands a call of a tool it does not offer"));
        }
    };
    body.insert("tool_choice".into(), choice);
    Ok(())
}

fn config(text: &str) -> Fault {
    Fault::new(ModelErrorKind::Config, text)
}

/// The request wins over the slot, the slot over its provider options.
fn reasoning(slot: &Slot, request: &ModelRequest, body: &mut Map<String, Value>) {
    use ReasoningEffort::{Automatic, Disabled, Minimal, None as Off, ProviderDefault};

    let effort = if request.reasoning_disabled {
        Some(Disabled)
    } else {
        slot.reasoning_effort.or(slot.options.reasoning_effort).filter(|effort| *effort != ProviderDefault)
    };
    let Some(effort) = effort else { return };
    let off = matches!(effort, Off | Disabled);
    match slot.provider.as_str() {
        "deepseek" | "zhipu" | "volcengine" | "moonshot" => {
            body.insert("thinking".into(), json!({"type": if off { "disabled" } else { "enabled" }}));
            if slot.provider == "deepseek" && !off && effort != Automatic {
                body.insert("reasoning_effort".into(), effort.word().into());
            }
        }
        "dashscope" => {
            body.insert("enable_thinking".into(), (!off).into());
        }
        "openrouter" => {
            let reasoning = if effort == Automatic {
                json!({"enabled": true})
            } else {
                json!({"effort": if off { "none" } else { effort.word() }})
            };
            body.insert("reasoning".into(), reasoning);
        }
        // Elsewhere a model that does not reason rejects the field: it is sent when the operator asked for a level,
        // and for "off" only to models known to take it.
        _ if effort == Automatic => {}
        _ if !off => {
            body.insert("reasoning_effort".into(), effort.word().into());
        }
        _ => {
            let level = match model_name(&slot.model) {
                "gpt-5" | "gpt-5-mini" | "gpt-5-nano" => Some(Minimal.word()),
                name if name.starts_with("gpt-5") || name.starts_with("gpt-6") => Some(Off.word()),
                _ if slot.reasoning_effort.is_some_and(|effort| matches!(effort, Off | Disabled)) => Some(Off.word()),
                _ => None,
            };
            if let Some(level) = level {
                body.insert("reasoning_effort".into(), level.into());
            }
        }
    }
}

fn options(slot: &Slot, request: &ModelRequest, body: &mut Map<String, Value>) {
    let options = &slot.options;
    let mut merge = |fields: &Map<String, Value>, source: &str| {
        for (name, value) in fields {
            if PROTECTED.contains(&name.as_str()) {
                tracing::warn!(
                    slot = slot.name(),
                    field = name.as_str(),
                    source,
                    "field belongs to the gateway, ignored"
                );
            } else if !ROUTING.contains(&name.as_str()) {
                body.insert(name.clone(), value.clone());
            }
        }
    };
    merge(&slot.request_metadata, "providerRequestMetadata");
    merge(&options.extra_body, "extraBody");
    if let (Some(parallel), false) = (options.parallel_tool_calls, request.tools.is_empty()) {
        body.insert("parallel_tool_calls".into(), parallel.into());
    }
    if let Some(store) = options.store {
        body.insert("store".into(), store.into());
    }
    if let Some(seed) = options.seed {
        body.insert("seed".into(), seed.into());
    }
    if let Some(user) = &options.user {
        body.insert("user".into(), user.as_str().into());
    }
    if let Some(key) = cache_key(slot, request) {
        body.insert("prompt_cache_key".into(), key.into());
    }
}

/// One key a session and runtime keeps their requests on one cache. It is a digest: no session id goes out.
fn cache_key(slot: &Slot, request: &ModelRequest) -> Option<String> {
    let wanted = match &slot.options.prompt_cache_key {
        Some(CacheKey::Own(key)) => return Some(key.clone()),
        Some(CacheKey::Switch(on)) => *on,
        None => slot.endpoint.host() == "api.openai.com",
    };
    let story = &request.story;
    if !wanted || story.session_id.is_empty() || request.response_schema.is_some() {
        return None;
    }
    Some(format!("covel-{}", digest(&[story.session_id.as_bytes(), story.runtime_id.as_bytes()], 32)))
}

/// `openai/gpt-5-mini` is `gpt-5-mini`.
fn model_name(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Models that reject `max_tokens`.
fn is_newer_openai(model: &str) -> bool {
    let name = model_name(model);
    let o_series = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    o_series || name.starts_with("gpt-5") || name.starts_with("gpt-6")
}
