//! What the tests of the gateway share.
#![allow(dead_code)]

use std::time::Duration;

use covel_gateway::config::{LlmConfig, Surroundings};
use covel_gateway::limits::CallLimits;
use covel_gateway::{HttpGateway, HttpOptions};
use covel_model::{
    FinishReason, Gateway, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Role, ToolCall, Usage,
};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

/// The key that must never be seen outside its header.
pub(crate) const KEY: &str = "sk-proj-Zx81QqTt4499aaBBccDD";

pub(crate) fn config(text: &str) -> LlmConfig {
    let variable = |name: &str| name.ends_with("_API_KEY").then(|| KEY.to_owned());
    LlmConfig::parse(text.as_bytes(), &Surroundings { variable: &variable, loopback_allowed: true })
        .expect("a configuration")
}

pub(crate) fn slot(name: &str, base_url: &str, fields: &str) -> String {
    format!("[covel.{name}]\nprovider = \"test\"\nmodel = \"test-model\"\nbaseUrl = \"{base_url}\"\n{fields}\n")
}

/// Limits under which nothing real is waited for long.
pub(crate) fn quick() -> CallLimits {
    CallLimits {
        backoff_base: Duration::from_millis(1),
        backoff_cap: Duration::from_millis(2),
        tail: Duration::from_millis(50),
        ..CallLimits::default()
    }
}

pub(crate) fn gateway(base_url: &str, limits: CallLimits) -> HttpGateway {
    HttpGateway::new(config(&slot("story", base_url, "")), HttpOptions { limits, ..HttpOptions::default() })
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest { slot: "story".into(), messages: vec![Message::new(Role::User, "Hello")], ..ModelRequest::default() }
}

/// Everything a stream gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) done: Option<(FinishReason, Usage, Option<String>)>,
    pub(crate) error: Option<ModelError>,
    pub(crate) events: usize,
}

impl Outcome {
    pub(crate) fn kind(&self) -> Option<ModelErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }

    pub(crate) fn finish(&self) -> Option<FinishReason> {
        self.done.as_ref().map(|(finish, ..)| *finish)
    }
}

/// Runs a call to its end and checks the order every stream keeps.
pub(crate) async fn ask_with(gateway: &HttpGateway, request: ModelRequest, cancel: CancellationToken) -> Outcome {
    let mut stream = gateway.stream(request, cancel);
    let mut outcome = Outcome::default();
    while let Some(event) = stream.next().await {
        assert!(outcome.done.is_none() && outcome.error.is_none(), "nothing follows the end");
        outcome.events += 1;
        match event {
            Ok(ModelEvent::Text(text)) => {
                assert!(!text.is_empty() && outcome.calls.is_empty(), "tool calls come last");
                outcome.text.push_str(&text);
            }
            Ok(ModelEvent::Reasoning(text)) => outcome.reasoning.push_str(&text),
            Ok(ModelEvent::ToolCall(call)) => outcome.calls.push(call),
            Ok(ModelEvent::Done { finish, usage, model }) => outcome.done = Some((finish, usage, model)),
            Err(error) => outcome.error = Some(error),
        }
    }
    assert!(outcome.done.is_some() != outcome.error.is_some(), "one end: {outcome:?}");
    assert!(stream.next().await.is_none(), "an ended stream stays ended");
    outcome
}

pub(crate) async fn ask(gateway: &HttpGateway) -> Outcome {
    ask_with(gateway, request(), CancellationToken::new()).await
}
