//! A gateway that answers from a list: for tests, cases and `--script`.

use std::collections::VecDeque;

use covel_model::{
    FinishReason, Gateway, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, ToolCall, Usage,
};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// One scripted reply, in the `llmResponses` shape.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ScriptedReply {
    /// Text, streamed word by word.
    pub content: String,
    /// `stop`, `tool_calls`, `length`... ; from the calls when absent.
    pub finish_reason: Option<String>,
    /// Tool calls.
    pub tool_calls: Vec<ScriptedCall>,
    /// Tokens.
    pub usage: Usage,
    /// Only for this runtime; replies without one serve whoever asks.
    pub runtime_id: Option<String>,
    /// Fails with this message instead of answering.
    pub error: Option<String>,
    /// Never ends: says `content`, then waits.
    pub hang: bool,
}

/// One scripted tool call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedCall {
    /// Id; made up when absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Tool.
    pub name: String,
    /// JSON text, or a JSON value.
    #[serde(default)]
    pub arguments: Value,
}

/// Plays replies in order; out of replies, a request fails with a coded error.
pub struct ScriptedGateway {
    replies: Mutex<VecDeque<ScriptedReply>>,
}

impl ScriptedGateway {
    /// A gateway over these replies.
    pub fn new(replies: Vec<ScriptedReply>) -> Self {
        Self { replies: Mutex::new(replies.into()) }
    }

    /// Reads a script: a list of replies, or an object with `llmResponses` or `llmResponse`.
    ///
    /// # Errors
    /// A sentence with line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let list = match value {
            Value::Array(_) => value,
            Value::Object(mut map) => match (map.remove("llmResponses"), map.remove("llmResponse")) {
                (Some(list), _) => list,
                (None, Some(one)) => Value::Array(vec![one]),
                (None, None) => return Err("a script is a list of replies, or has `llmResponses`".into()),
            },
            _ => return Err("a script is a list of replies".into()),
        };
        serde_json::from_value(list).map(Self::new).map_err(|error| error.to_string())
    }

    /// Replies not yet used.
    pub fn left(&self) -> usize {
        self.replies.lock().len()
    }

    fn next(&self, runtime: &str) -> Option<ScriptedReply> {
        let mut replies = self.replies.lock();
        let at = replies.iter().position(|reply| reply.runtime_id.as_deref().is_none_or(|id| id == runtime))?;
        replies.remove(at)
    }
}

impl Gateway for ScriptedGateway {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let Some(reply) = self.next(&request.story.runtime_id) else {
            let error = ModelError::new(
                ModelErrorKind::Config,
                format!("the script has no reply left for {}", request.story.runtime_id),
            );
            return stream::iter([Err(error)]).boxed();
        };
        if let Some(message) = reply.error {
            return stream::iter([Err(ModelError::new(ModelErrorKind::Server, message))]).boxed();
        }
        if reply.hang {
            let begun = (!reply.content.is_empty()).then_some(Ok(ModelEvent::Text(reply.content)));
            let waits = stream::once(async move {
                cancel.cancelled().await;
                Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"))
            });
            return stream::iter(begun).chain(waits).boxed();
        }
        let mut events: Vec<Result<ModelEvent, ModelError>> = Vec::new();
        for piece in reply.content.split_inclusive(' ') {
            events.push(Ok(ModelEvent::Text(piece.to_owned())));
        }
        let has_calls = !reply.tool_calls.is_empty();
        for (at, call) in reply.tool_calls.into_iter().enumerate() {
            let arguments = match call.arguments {
                Value::String(text) => text,
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            };
            let id = call.id.unwrap_or_else(|| format!("call-{at}"));
            events.push(Ok(ModelEvent::ToolCall(ToolCall { id, name: call.name, arguments })));
        }
        let finish = match reply.finish_reason {
            Some(word) => FinishReason::normalise(&word),
            None if has_calls => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        };
        events.push(Ok(ModelEvent::Done { finish, usage: reply.usage, model: Some("script".into()) }));
        stream::iter(events).boxed()
    }

    fn name(&self) -> &str {
        "script"
    }
}
