//! What a function runtime may ask that takes time: `ctx.tools.call`, `ctx.gateway` and `ctx.services`.

use std::sync::Arc;

use covel_abi::{HostError, HostRequest, JsHost};
use covel_graph::{Json, fragment::FunctionDecl};
use covel_model::{FinishReason, Message, ModelEvent, ModelRequest, Role, SharedGateway, StoryContext, Usage};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    active::check,
    call_host::RuntimeCall,
    limits::MAX_REPLY_BYTES,
    services::Client,
    tools::{ToolFailure, Toolbox},
};

/// Lets a function runtime call its declared tools and the models.
pub fn serve(call: &Arc<RuntimeCall>, js: &JsHost, gateway: &SharedGateway, function: &FunctionDecl) {
    let toolbox = Arc::new(Toolbox::new(
        Arc::clone(call),
        js.clone(),
        function.plugin_tools.clone(),
        function.builtin_tools.clone(),
    ));
    let call_in = Arc::clone(call);
    let gateway = Arc::clone(gateway);
    let ended = call.shared().cancel.child_token();
    let cancel = ended.clone();
    let services = Client::of_handler(call, js.clone(), Arc::clone(&gateway), ended.clone());
    call.offer_services(services.clone());
    call.serve_requests(
        Arc::new(move |request| {
            let request = match request {
                HostRequest::ServiceCall { request, timeout_ms, settlement } => {
                    return services.call(&request, timeout_ms, settlement);
                }
                other => other,
            };
            let (toolbox, call, gateway) = (Arc::clone(&toolbox), Arc::clone(&call_in), Arc::clone(&gateway));
            let cancel = cancel.clone();
            Box::pin(async move {
                match request {
                    HostRequest::ToolCall { name, arguments } => {
                        tool_call(&call, &toolbox, &name, arguments, &cancel).await
                    }
                    HostRequest::GenerateText { options } => generate(&call, &gateway, &options, false, cancel).await,
                    HostRequest::GenerateObject { options } => generate(&call, &gateway, &options, true, cancel).await,
                    HostRequest::ServiceCall { .. } => Err(HostError::new("internal", "answered above")),
                }
            })
        }),
        ended,
    );
}

async fn tool_call(
    call: &RuntimeCall,
    toolbox: &Toolbox,
    name: &str,
    arguments: Json,
    cancel: &CancellationToken,
) -> Result<Json, HostError> {
    let shared = Arc::clone(call.shared());
    let own = shared.plan.plugin_id(call.runtime()).to_owned();
    let topics: Vec<(String, String, String)> = shared
        .plan
        .advertised_topics(&own)
        .into_iter()
        .map(|(topic, event)| (topic.to_owned(), String::new(), event.schema.clone()))
        .collect();
    match toolbox.call(name, arguments, &topics, cancel).await {
        Ok(reply) => {
            call.note_tool(Ok(reply.events));
            Ok(Json::from_value(reply.content))
        }
        Err(ToolFailure { code, message, .. }) => {
            // Any failed call fails the runtime, even when the handler catches it.
            call.note_tool(Err(format!("{name}: {message}")));
            Err(HostError { name: "ToolError", code: code.to_owned(), message })
        }
    }
}

/// One unstreamed model call for plugin code. MOD-4, MOD-5
pub(crate) async fn generate(
    call: &RuntimeCall,
    gateway: &SharedGateway,
    options: &Json,
    object: bool,
    cancel: CancellationToken,
) -> Result<Json, HostError> {
    let request = request(call, options.value(), object)?;
    let schema = request.response_schema.clone();
    let mut stream = gateway.stream(request, cancel);
    let (mut text, mut reasoning, mut end) = (String::new(), String::new(), None);
    while let Some(event) = stream.next().await {
        match event.map_err(|error| HostError {
            name: "Error",
            code: error.code().to_owned(),
            message: error.message,
        })? {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::Reasoning(piece) => reasoning.push_str(&piece),
            ModelEvent::ToolCall(_) => {}
            ModelEvent::Done { finish, usage, model } => end = Some((finish, usage, model)),
        }
        if text.len() + reasoning.len() > MAX_REPLY_BYTES {
            return Err(HostError::new(
                "model-provider-error",
                format!("the reply has more than {MAX_REPLY_BYTES} bytes"),
            ));
        }
    }
    let Some((finish, usage, model)) = end else {
        return Err(HostError::new("model-provider-error", "the reply broke off before its end"));
    };
    let mut answer = json!({
        "finishReason": finish_word(finish), "usage": usage_json(usage), "model": model, "provider": gateway.name(),
    });
    if !reasoning.is_empty() {
        answer["reasoningContent"] = reasoning.into();
    }
    if object {
        let invalid = |message: String| HostError::new("SCHEMA_VALIDATION_FAILED", message);
        let value: Value =
            serde_json::from_str(text.trim()).map_err(|error| invalid(format!("the reply is not JSON: {error}")))?;
        if let Some(schema) = schema {
            let validator = covel_graph::schema::Validator::new(&schema)
                .map_err(|message| HostError::new("CONFIG_ERROR", format!("the schema does not compile: {message}")))?;
            check(&validator, &value).map_err(|message| invalid(format!("the reply does not fit: {message}")))?;
        }
        answer["object"] = value;
    } else {
        answer["text"] = text.into();
    }
    Ok(Json::from_value(answer))
}

fn request(call: &RuntimeCall, options: &Value, object: bool) -> Result<ModelRequest, HostError> {
    let shared = call.shared();
    let invalid = |message: &str| HostError::new("invalid-input", message);
    let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut messages = Vec::new();
    for message in options.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(invalid("a message has a role of system, user or assistant")),
        };
        let content = message.get("content").and_then(Value::as_str).ok_or_else(|| invalid("a message has text"))?;
        messages.push(Message::new(role, content));
    }
    if let Some(prompt) = text("prompt") {
        messages.push(Message::new(Role::User, prompt));
    }
    if messages.is_empty() {
        return Err(invalid("a model call has a `prompt` or `messages`"));
    }
    let response_schema = if object {
        Some(options.get("schema").cloned().ok_or_else(|| invalid("generateObject needs a `schema`"))?)
    } else {
        options.pointer("/responseFormat/schema").cloned()
    };
    Ok(ModelRequest {
        slot: text("presetId").unwrap_or_else(|| "plugin".to_owned()),
        system: text("system").unwrap_or_default(),
        messages,
        response_schema,
        max_output_tokens: options
            .get("maxOutputTokens")
            .and_then(Value::as_u64)
            .and_then(|tokens| u32::try_from(tokens).ok()),
        reasoning_disabled: options.pointer("/defaults/reasoningEffort").and_then(Value::as_str) == Some("disabled"),
        story: StoryContext {
            world_id: shared.session.world_id.clone(),
            session_id: shared.session.id.clone(),
            logical_turn: shared.logical_turn,
            runtime_id: shared.plan.runtime_id(call.runtime()).to_owned(),
            player_message: shared.message.clone(),
            locale: shared.session.locale.clone(),
            seed: shared.session.seed.clone(),
            story: false,
        },
        ..ModelRequest::default()
    })
}

fn finish_word(finish: FinishReason) -> Value {
    serde_json::to_value(finish).unwrap_or(Value::Null)
}

fn usage_json(usage: Usage) -> Value {
    serde_json::to_value(usage).unwrap_or(Value::Null)
}
