//! Reading a chat completion, streamed or whole.

use covel_model::{FinishReason, ModelErrorKind, ToolCall, Usage};
use serde_json::{Map, Value};

use crate::limits::MAX_TOOL_CALLS;
use crate::protocol::{
    Ending, Fault, OutputMeter, Piece, Progress, ReplyReader, ToolNames, WireRequest, digest, from_error_body, label,
    read_error,
};
use crate::sse::SseEvent;

/// A tool call being put together.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// The reader.
#[derive(Debug)]
pub(crate) struct ChatReader {
    tool_names: ToolNames,
    /// Makes ids for calls that come without one.
    id_seed: String,
    calls: Vec<PartialCall>,
    finish: Option<String>,
    refusal: String,
    usage: Usage,
    model: Option<String>,
    meter: OutputMeter,
}

impl ChatReader {
    pub(crate) fn new(request: &WireRequest) -> Self {
        Self {
            tool_names: request.tool_names.clone(),
            id_seed: digest(&[&request.body], 64),
            calls: Vec::new(),
            finish: None,
            refusal: String::new(),
            usage: Usage::default(),
            model: None,
            meter: OutputMeter::default(),
        }
    }

    /// Takes what both shapes have in common and returns the choice asked for.
    fn envelope(&mut self, document: Value) -> Result<Option<Map<String, Value>>, Fault> {
        if let Some(said) = read_error(&document) {
            return Err(from_error_body(said));
        }
        let Value::Object(mut document) = document else {
            return Err(Fault::malformed("the reply holds JSON that is no object"));
        };
        if let Some(model) = document.get("model").and_then(Value::as_str) {
            self.model = label(model);
        }
        if let Some(Value::Object(usage)) = document.get("usage") {
            self.usage = read_usage(usage);
        }
        let choices = match document.remove("choices") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(choices)) => choices,
            Some(_) => return Err(Fault::malformed("`choices` is no list")),
        };
        // One choice is asked for; others are nobody's.
        for choice in choices {
            match choice {
                Value::Object(choice) if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 => {
                    return Ok(Some(choice));
                }
                Value::Object(_) => {}
                _ => return Err(Fault::malformed("a choice is no object")),
            }
        }
        Ok(None)
    }

    fn choice(&mut self, choice: &mut Map<String, Value>, part: &str, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        match choice.remove(part) {
            None | Some(Value::Null) => {}
            Some(Value::Object(message)) => self.message(message, pieces)?,
            Some(_) => return Err(Fault::malformed(format!("`{part}` is no object"))),
        }
        match choice.get("finish_reason") {
            None | Some(Value::Null) => {}
            Some(Value::String(word)) if word.trim().is_empty() => {}
            Some(Value::String(word)) => {
                self.finish.get_or_insert_with(|| word.clone());
            }
            Some(_) => return Err(Fault::malformed("`finish_reason` is no text")),
        }
        Ok(())
    }

    fn message(&mut self, mut message: Map<String, Value>, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        // Two names for the same field are in use; some providers send both.
        let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|name| message.get(*name)?.as_str());
        if let Some(text) = reasoning {
            self.piece(Piece::Reasoning(text.to_owned()), pieces)?;
        }
        match message.remove("content") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => self.piece(Piece::Text(text), pieces)?,
            Some(Value::Array(parts)) => {
                for part in &parts {
                    self.part(part, pieces)?;
                }
            }
            Some(_) => return Err(Fault::malformed("`content` is neither text nor a list")),
        }
        if let Some(Value::String(text)) = message.get("refusal") {
            self.meter.add(text.len())?;
            self.refusal.push_str(text);
        }
        match message.remove("tool_calls") {
            None | Some(Value::Null) => {}
            Some(Value::Array(fragments)) => {
                for fragment in fragments {
                    let Value::Object(fragment) = fragment else {
                        return Err(Fault::malformed("a tool call is no object"));
                    };
                    self.fragment(&fragment)?;
                    pieces.push(Piece::ToolFragment);
                }
            }
            Some(_) => return Err(Fault::malformed("`tool_calls` is no list")),
        }
        Ok(())
    }

    /// Content given as a list: text, and reasoning as `thinking` with text parts inside.
    fn part(&mut self, part: &Value, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let text = |value: &Value| value.get("text").and_then(Value::as_str).map(str::to_owned);
        match part.get("type").and_then(Value::as_str) {
            Some("text") => text(part).map_or(Ok(()), |text| self.piece(Piece::Text(text), pieces)),
            Some("thinking") => {
                let inner = part.get("thinking").and_then(Value::as_array);
                for text in inner.into_iter().flatten().filter_map(text) {
                    self.piece(Piece::Reasoning(text), pieces)?;
                }
                Ok(())
            }
            // Pictures, references and the like are no text.
            _ => Ok(()),
        }
    }

    fn piece(&mut self, piece: Piece, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        if let Piece::Text(text) | Piece::Reasoning(text) = &piece {
            if text.is_empty() {
                return Ok(());
            }
            self.meter.add(text.len())?;
        }
        pieces.push(piece);
        Ok(())
    }

    /// Adds a fragment to the call it belongs to. Fragments go by `index`; servers that leave it out, or give every
    /// call the same one, start a new call with a new id.
    fn fragment(&mut self, fragment: &Map<String, Value>) -> Result<(), Fault> {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = fragment.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = fragment.get("function");
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.and_then(|function| function.get("arguments")) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(map)) => Value::Object(map.clone()).to_string(),
            Some(_) => return Err(Fault::malformed("`arguments` of a tool call is no text")),
        };
        self.meter.add(id.len() + name.len() + arguments.len())?;

        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        let other_call =
            |call: &PartialCall| !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty();
        let at = match known.filter(|at| !other_call(&self.calls[*at])) {
            Some(at) => at,
            None if self.calls.len() == MAX_TOOL_CALLS => {
                return Err(Fault::endless(format!("the reply makes more than {MAX_TOOL_CALLS} tool calls")));
            }
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // Some servers repeat the name in every fragment, some send it in parts.
        if call.name != name {
            call.name.push_str(name);
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }

    fn tool_calls(&mut self, finish: FinishReason) -> Result<Vec<ToolCall>, Fault> {
        let mut out: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (position, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
            if finish == FinishReason::Length && !is_json() {
                // Cut off in the middle, so not a complete call.
                continue;
            }
            if call.name.is_empty() {
                return Err(Fault::malformed("a tool call has no name"));
            }
            let id = if call.id.is_empty() || out.iter().any(|other| other.id == call.id) {
                format!("call_{}", digest(&[self.id_seed.as_bytes(), position.to_string().as_bytes()], 24))
            } else {
                call.id
            };
            let arguments = if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments };
            out.push(ToolCall { id, name: self.tool_names.meant(&call.name), arguments });
        }
        Ok(out)
    }
}

impl ReplyReader for ChatReader {
    fn event(&mut self, event: &SseEvent, pieces: &mut Vec<Piece>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(Progress::Closed);
        }
        if !data.is_empty() {
            let document: Value = serde_json::from_str(data)
                .map_err(|error| Fault::malformed(format!("an event of the stream is not JSON ({error})")))?;
            if event.name == "error" && read_error(&document).is_none() {
                let wrapped = serde_json::json!({ "error": document });
                return Err(read_error(&wrapped)
                    .map_or_else(|| Fault::malformed("the provider sent an error event"), from_error_body));
            }
            if let Some(mut choice) = self.envelope(document)? {
                self.choice(&mut choice, "delta", pieces)?;
            }
        }
        Ok(if self.finish.is_some() { Progress::Ended } else { Progress::Open })
    }

    fn whole(&mut self, body: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let document: Value = serde_json::from_slice(body)
            .map_err(|error| Fault::malformed(format!("the reply is not JSON ({error})")))?;
        let mut choice = self.envelope(document)?.ok_or_else(|| Fault::malformed("the reply holds no choice"))?;
        if !choice.get("message").is_some_and(Value::is_object) {
            return Err(Fault::malformed("the reply holds no message"));
        }
        self.choice(&mut choice, "message", pieces)?;
        // Only a stream has to say how it ended; a whole reply is all there.
        self.finish.get_or_insert_with(|| "stop".to_owned());
        Ok(())
    }

    fn end(&mut self) -> Result<Ending, Fault> {
        let Some(word) = self.finish.take() else {
            return Err(Fault::malformed("the reply was cut off: it never said how it ended"));
        };
        let mut finish = FinishReason::normalise(&word);
        if finish == FinishReason::ContentFilter || !self.refusal.trim().is_empty() {
            return Err(Fault { code: label(&word), ..Fault::refused(&self.refusal) });
        }
        if finish == FinishReason::Error {
            return Err(Fault::new(ModelErrorKind::Server, "the provider ended the reply with an error"));
        }
        let tool_calls = self.tool_calls(finish)?;
        match finish {
            // Several servers say `stop` after tool calls.
            FinishReason::Stop if !tool_calls.is_empty() => finish = FinishReason::ToolCalls,
            FinishReason::ToolCalls if tool_calls.is_empty() => {
                return Err(Fault::malformed("the reply announces tool calls and makes none"));
            }
            _ => {}
        }
        Ok(Ending { tool_calls, finish, usage: self.usage, model: self.model.take() })
    }
}

fn read_usage(usage: &Map<String, Value>) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let details = usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
    Usage {
        input_tokens: count("prompt_tokens").unwrap_or(0),
        output_tokens: count("completion_tokens").unwrap_or(0),
        cached_input_tokens: details
            .and_then(Value::as_u64)
            .or_else(|| count("prompt_cache_hit_tokens"))
            .or_else(|| count("cached_tokens"))
            .unwrap_or(0),
    }
}
