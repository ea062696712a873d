//! Every limit of the gateway, named once.
//!
//! Sizes in bytes unless the name says otherwise. Durations that a host may change live in
//! [`CallLimits`]; the constants protect memory and are not configurable.

use std::time::Duration;

/// Largest `llm.toml`.
pub const MAX_CONFIG_BYTES: usize = 256 * 1024;
/// Most slots in one file.
pub const MAX_SLOTS: usize = 64;
/// Longest slot, provider or variable name, characters.
pub const MAX_NAME_CHARS: usize = 64;
/// Longest single text value in `llm.toml`, after `${NAME}` was replaced.
pub const MAX_VALUE_BYTES: usize = 8 * 1024;
/// Longest API key.
pub const MAX_KEY_BYTES: usize = 4 * 1024;
/// Output budget of a slot that sets none, tokens.
pub const DEFAULT_OUTPUT_TOKENS: u32 = 16_384;
/// Context window of a model that declares none, tokens.
pub const DEFAULT_CONTEXT_WINDOW: u32 = 262_144;

/// Largest request body.
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// Most raw bytes read of one reply.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;
/// Most text, reasoning and tool arguments accepted in one reply.
pub const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;
/// Most of an error body that is read.
pub const MAX_ERROR_BODY_BYTES: usize = 16 * 1024;
/// Most tool calls in one reply.
pub const MAX_TOOL_CALLS: usize = 1_024;
/// Longest line of an event stream.
pub const MAX_SSE_LINE_BYTES: usize = 1024 * 1024;
/// Most data of one event of an event stream.
pub const MAX_SSE_EVENT_BYTES: usize = 4 * 1024 * 1024;
/// Longest error message, characters.
pub const MAX_ERROR_CHARS: usize = 600;
/// Longest reported model name or provider code, characters.
pub const MAX_LABEL_CHARS: usize = 200;

/// Counts and waits of one logical call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// HTTP requests, retries and fallbacks included.
    pub requests: u32,
    /// Retries after a rejected request or a broken connection, in total.
    pub transport_retries: u32,
    /// The call ends when nothing came for this long, queueing and waits included.
    pub silence: Duration,
    /// The call ends after this long whatever comes.
    pub ceiling: Duration,
    /// Wait for the first piece of a reply, when the request names none.
    pub first_token: Duration,
    /// Wait for the next piece, when the request names none.
    pub idle: Duration,
    /// Wait for a TCP connection.
    pub connect: Duration,
    /// Wait for usage figures after the reply has said how it ended.
    pub tail: Duration,
    /// Wait for the body of a rejection.
    pub error_body: Duration,
    /// Longest wait a provider may demand before a retry.
    pub demanded_wait: Duration,
    /// First wait when the provider demands none; doubles each time.
    pub backoff_base: Duration,
    /// Longest such wait.
    pub backoff_cap: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            requests: 8,
            transport_retries: 3,
            silence: Duration::from_secs(120),
            ceiling: Duration::from_secs(30 * 60),
            first_token: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            connect: Duration::from_secs(10),
            tail: Duration::from_secs(2),
            error_body: Duration::from_secs(5),
            demanded_wait: Duration::from_secs(60),
            backoff_base: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(8),
        }
    }
}
