//! `openai-chat-v1`: chat completions, the protocol most providers speak.

mod reply;
mod request;

use covel_model::ModelRequest;
use http::{HeaderName, HeaderValue, header};

use super::{Fault, Mode, Protocol, ReplyReader, WireRequest};
use crate::config::Slot;
use crate::secret::Secret;

pub(crate) use reply::ChatReader;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn id(&self) -> &'static str {
        "openai-chat-v1"
    }

    fn write(&self, slot: &Slot, request: &ModelRequest, mode: Mode) -> Result<WireRequest, Fault> {
        request::write(slot, request, mode)
    }

    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        value.set_sensitive(true);
        Some((header::AUTHORIZATION, value))
    }

    fn reader(&self, request: &WireRequest) -> Box<dyn ReplyReader> {
        Box::new(ChatReader::new(request))
    }
}

#[cfg(test)]
mod reply_tests;
#[cfg(test)]
mod request_tests;
