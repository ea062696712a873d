//! The engine's view of language models.
//!
//! Here live requests, stream events, errors and the [`Gateway`] trait. Not here: any provider, HTTP, configuration.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The player, or data for the model.
    User,
    /// The model.
    Assistant,
    /// A tool result.
    Tool,
}

/// A tool call a model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Call id, unique in one reply.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as the JSON text the model wrote (may be broken).
    pub arguments: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Who.
    pub role: Role,
    /// Text.
    pub content: String,
    /// Calls, for an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call answered, for a tool message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message with text only.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }
    /// The answer to a tool call.
    pub fn tool_result(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: Role::Tool, content: content.into(), tool_calls: Vec::new(), tool_call_id: Some(call_id.into()) }
    }
}

/// A tool offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// Whether the model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// Some tool.
    Required,
    /// This tool.
    Named(String),
}

/// The story situation, for models that are part of the engine (the offline storyteller).
/// HTTP protocols never send it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoryContext {
    /// World package.
    pub world_id: Option<String>,
    /// Session.
    pub session_id: String,
    /// Logical turn, from 1.
    pub logical_turn: u32,
    /// The runtime asking.
    pub runtime_id: String,
    /// What the player wrote.
    pub player_message: String,
    /// Session language.
    pub locale: String,
    /// Deterministic seed text.
    pub seed: String,
    /// Does the caller want story prose?
    pub story: bool,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// Slot name (`story`, `plugin`, ...).
    pub slot: String,
    /// System prompt.
    pub system: String,
    /// Messages in order.
    pub messages: Vec<Message>,
    /// Tools offered.
    pub tools: Vec<ToolSpec>,
    /// Tool choice.
    pub tool_choice: ToolChoice,
    /// Reasoning off.
    pub reasoning_disabled: bool,
    /// JSON Schema the reply should fit.
    pub response_schema: Option<Value>,
    /// Lowers the slot's output budget.
    pub max_output_tokens: Option<u32>,
    /// Longest wait for the first piece, milliseconds (0 = the gateway's own default).
    pub first_token_timeout_ms: u64,
    /// Longest silence after that, milliseconds (0 = the gateway's own default).
    pub idle_timeout_ms: u64,
    /// The story situation.
    pub story: StoryContext,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// Finished.
    #[default]
    Stop,
    /// Out of output tokens.
    Length,
    /// To have tools called.
    ToolCalls,
    /// Refused.
    ContentFilter,
    /// Provider error.
    Error,
    /// Anything else.
    Other,
}

impl FinishReason {
    /// Normalises a provider's own word (lower-cased, `-` read as `_`; missing counts as `stop`).
    pub fn normalise(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().replace('-', "_").as_str() {
            "" | "stop" | "end_turn" | "stop_sequence" | "complete" | "completed" => Self::Stop,
            "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => Self::Length,
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Self::ToolCalls,
            "content_filter" | "refusal" | "safety" | "recitation" | "blocklist" | "prohibited_content" => {
                Self::ContentFilter
            }
            "error" => Self::Error,
            _ => Self::Other,
        }
    }
}

/// Tokens used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input.
    pub input_tokens: u64,
    /// Output.
    pub output_tokens: u64,
    /// Input read from a cache.
    pub cached_input_tokens: u64,
}

/// One piece of a streamed reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Story or answer text.
    Text(String),
    /// Reasoning text, never shown as story.
    Reasoning(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// The last event of a good stream.
    Done {
        /// Why it ended.
        finish: FinishReason,
        /// Tokens.
        usage: Usage,
        /// The model that answered, as reported.
        model: Option<String>,
    },
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// Connect, DNS, TLS.
    Unreachable,
    /// Too slow.
    Timeout,
    /// 401, 403.
    Auth,
    /// 402.
    Quota,
    /// 429.
    RateLimited,
    /// 404.
    NotFound,
    /// Other 4xx.
    BadRequest,
    /// 503, 529.
    Overloaded,
    /// Other 5xx, broken or malformed stream.
    Server,
    /// The model refused.
    Refused,
    /// Wrong configuration; nothing was sent.
    Config,
    /// The caller cancelled.
    Cancelled,
    /// The request budget (requests or time) is used up.
    Budget,
}

/// A failed request. Never holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Kind.
    pub kind: ModelErrorKind,
    /// One sentence for people.
    pub message: String,
    /// Would the same request have a chance later?
    pub retriable: bool,
    /// The provider's own code, if any.
    pub provider_code: Option<String>,
}

impl ModelError {
    /// An error of a kind, with the retry rule of that kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        use ModelErrorKind::{Overloaded, RateLimited, Server, Timeout, Unreachable};
        Self {
            kind,
            message: message.into(),
            retriable: matches!(kind, Unreachable | Timeout | RateLimited | Overloaded | Server),
            provider_code: None,
        }
    }
    /// Stable code for documents and events.
    pub fn code(&self) -> &'static str {
        match self.kind {
            ModelErrorKind::Unreachable => "model-unreachable",
            ModelErrorKind::Timeout => "model-timeout",
            ModelErrorKind::Auth => "model-auth",
            ModelErrorKind::Quota => "model-quota",
            ModelErrorKind::RateLimited => "model-rate-limited",
            ModelErrorKind::NotFound => "model-not-found",
            ModelErrorKind::BadRequest => "model-bad-request",
            ModelErrorKind::Overloaded => "model-overloaded",
            ModelErrorKind::Server => "model-provider-error",
            ModelErrorKind::Refused => "model-refused",
            ModelErrorKind::Config => "model-config",
            ModelErrorKind::Cancelled => "cancelled",
            ModelErrorKind::Budget => "model-budget-exceeded",
        }
    }
}

/// A reply in pieces. The last item of a good stream is [`ModelEvent::Done`]; an error ends it; an end without
/// either is a broken stream.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// The way to models. Implementations are shared by all sessions.
pub trait Gateway: Send + Sync + 'static {
    /// Starts a request. Nothing is sent before the stream is polled. Cancelling `cancel` ends the stream with
    /// [`ModelErrorKind::Cancelled`] and drops the connection.
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream;

    /// A short name for diagnostics (`offline`, `openai-chat-v1`).
    fn name(&self) -> &str;
}

/// A shared gateway.
pub type SharedGateway = Arc<dyn Gateway>;
