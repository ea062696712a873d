//! Text protocols: how a request is written and a reply read. Pure: no sockets, no clock, no environment.
//!
//! A protocol is one [`Protocol`] value in [`PROTOCOLS`]; adding one means a folder here and a line there. The exchange
//! itself (time-outs, retries, cancellation) is the same for all and lives in `http`.

pub(crate) mod chat;
mod fault;
mod names;

use covel_model::{FinishReason, ModelRequest, ToolCall, Usage};
use http::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

pub(crate) use fault::{Fault, from_error_body, from_status, read_error};
pub(crate) use names::ToolNames;

use crate::config::Slot;
use crate::limits::{MAX_LABEL_CHARS, MAX_OUTPUT_BYTES};
use crate::secret::Secret;
use crate::sse::SseEvent;

/// Is the reply wanted in pieces?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As server-sent events.
    Stream,
    /// As one JSON document.
    Whole,
}

/// A request as it goes out, without its key.
#[derive(Debug)]
pub(crate) struct WireRequest {
    /// Path below the base URL, from a slash.
    pub(crate) path: String,
    /// Body, JSON.
    pub(crate) body: bytes::Bytes,
    /// Names as sent and as meant.
    pub(crate) tool_names: ToolNames,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// Text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// Part of a tool call: counts as progress, is delivered only when the call is complete.
    ToolFragment,
}

/// What comes at the end of a good reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending {
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) finish: FinishReason,
    pub(crate) usage: Usage,
    pub(crate) model: Option<String>,
}

/// How far a streamed reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is needed.
    Open,
    /// It has said how it ended; usage may follow.
    Ended,
    /// Nothing follows.
    Closed,
}

/// Reads one reply.
pub(crate) trait ReplyReader: Send + Sync {
    /// Takes one event of a stream.
    fn event(&mut self, event: &SseEvent, pieces: &mut Vec<Piece>) -> Result<Progress, Fault>;
    /// Takes a whole reply.
    fn whole(&mut self, body: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault>;
    /// Closes the reply: is it complete, and was it refused?
    fn end(&mut self) -> Result<Ending, Fault>;
}

/// A text protocol.
pub(crate) trait Protocol: Send + Sync + std::fmt::Debug {
    /// Id, as in `llm.toml`.
    fn id(&self) -> &'static str;
    /// Writes a request.
    fn write(&self, slot: &Slot, request: &ModelRequest, mode: Mode) -> Result<WireRequest, Fault>;
    /// The header that carries the key.
    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)>;
    /// A reader for the reply to `request`.
    fn reader(&self, request: &WireRequest) -> Box<dyn ReplyReader>;
}

/// Every protocol spoken.
const PROTOCOLS: [&dyn Protocol; 1] = [&chat::OpenAiChat];

/// The protocol of this id.
pub(crate) fn by_id(id: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.into_iter().find(|protocol| protocol.id() == id)
}

/// The ids of all protocols spoken, for messages.
pub(crate) fn spoken() -> String {
    PROTOCOLS.map(Protocol::id).join(", ")
}

/// First hexadecimal digits of the SHA-256 of the parts, each behind its length.
pub(crate) fn digest(parts: &[&[u8]], digits: usize) -> String {
    use std::fmt::Write;

    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(digits);
    hex
}

/// A name reported by a provider, fit to be shown.
pub(crate) fn label(text: &str) -> Option<String> {
    let text: String = text.trim().chars().filter(|character| !character.is_control()).take(MAX_LABEL_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

/// Counts what a reply gives, and ends a reply without end.
#[derive(Debug, Default)]
pub(crate) struct OutputMeter(usize);

impl OutputMeter {
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Fault> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MAX_OUTPUT_BYTES {
            return Err(Fault::endless(format!("the reply is longer than {MAX_OUTPUT_BYTES} bytes")));
        }
        Ok(())
    }
}
