//! Models over HTTP: the gateway, its exchange loop and its one client.
//!
//! [`HttpGateway`] picks the slot, the `protocol` module writes and reads, `call` does the waiting: time-outs, retries,
//! budget, fallback. All bytes go through one [`Transport`]. Not here: what a protocol looks like, prompts, tools.

mod budget;
mod call;
mod client;
mod reading;
mod retry;
mod transport;

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::SystemTime;

use covel_model::{Gateway, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

pub use client::HttpTransport;
pub use transport::{Body, HttpReply, HttpRequest, Transport, TransportError};

use crate::config::{LlmConfig, Slot, Tag};
use crate::limits::{CallLimits, MAX_ERROR_CHARS};
use crate::protocol::Fault;
use crate::secret::Redactor;

/// Most requests in flight by default.
pub const DEFAULT_CONCURRENT: usize = 4;

/// What a host may choose about a gateway.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Counts and waits.
    pub limits: CallLimits,
    /// Most requests in flight at once, from 1. Others queue within their budget.
    pub concurrent: usize,
    /// Root certificates trusted besides the system's, DER.
    pub extra_roots: Vec<Vec<u8>>,
    /// The wall clock, for `Retry-After` dates.
    pub now: fn() -> SystemTime,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            limits: CallLimits::default(),
            concurrent: DEFAULT_CONCURRENT,
            extra_roots: Vec::new(),
            now: SystemTime::now,
        }
    }
}

/// Configuration and what follows from it, replaced as one.
#[derive(Debug)]
struct Configured {
    config: LlmConfig,
    redactor: Redactor,
}

/// What all calls share.
#[derive(Debug)]
struct Shared {
    configured: RwLock<Arc<Configured>>,
    transport: Arc<dyn Transport>,
    limits: CallLimits,
    permits: Arc<Semaphore>,
    now: fn() -> SystemTime,
    spread: retry::Spread,
}

/// Models over HTTP, by the slots of `llm.toml`. Cheap to clone; needs a tokio runtime when its streams are polled.
#[derive(Clone, Debug)]
pub struct HttpGateway {
    shared: Arc<Shared>,
}

impl HttpGateway {
    /// A gateway with the HTTP client of this crate.
    pub fn new(config: LlmConfig, options: HttpOptions) -> Self {
        let transport = HttpTransport::new(options.limits.connect, options.extra_roots.clone());
        Self::with_transport(config, options, Arc::new(transport))
    }

    /// A gateway over another transport.
    pub fn with_transport(config: LlmConfig, options: HttpOptions, transport: Arc<dyn Transport>) -> Self {
        let shared = Shared {
            configured: RwLock::new(Arc::new(Configured::new(config))),
            transport,
            limits: options.limits,
            permits: Arc::new(Semaphore::new(options.concurrent.clamp(1, Semaphore::MAX_PERMITS))),
            now: options.now,
            spread: retry::Spread::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Puts another configuration in place. Calls already started keep theirs.
    pub fn reload(&self, config: LlmConfig) {
        let configured = Arc::new(Configured::new(config));
        *self.shared.configured.write().unwrap_or_else(PoisonError::into_inner) = configured;
    }

    /// The slot that would answer a text call for this name.
    ///
    /// # Errors
    /// [`ModelErrorKind::Config`] when none fits.
    pub fn resolve(&self, name: &str) -> Result<Slot, ModelError> {
        let configured = self.shared.configured();
        let slot = configured.config.resolve(name, Tag::Text);
        slot.cloned().map_err(|error| ModelError::new(ModelErrorKind::Config, error.to_string()))
    }
}

impl Configured {
    fn new(config: LlmConfig) -> Self {
        let redactor = Redactor::new(config.secrets());
        Self { config, redactor }
    }

    /// Words a fault for people: which slot and model, one line, bounded, without any key.
    fn explain(&self, slot: Option<&Slot>, fault: Fault) -> ModelError {
        let text = match slot {
            Some(slot) => format!("slot `{}` ({}, {}): {}", slot.name(), slot.provider, slot.model, fault.text),
            None => fault.text,
        };
        ModelError {
            kind: fault.kind,
            message: one_line(&self.redactor.redact(&text)),
            retriable: fault.retriable,
            provider_code: fault.code.map(|code| one_line(&self.redactor.redact(&code))),
        }
    }
}

/// Control, direction and line-break characters become spaces; what is too long is cut.
fn one_line(text: &str) -> String {
    let hidden = |character: char| {
        character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let text: String = text.chars().map(|character| if hidden(character) { ' ' } else { character }).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

impl Shared {
    fn configured(&self) -> Arc<Configured> {
        self.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Gateway for HttpGateway {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        // One piece at a time: a caller that does not read holds the provider back instead of filling memory.
        let (pieces, arrivals) = mpsc::channel(1);
        let call = call::run(self.shared.clone(), request, pieces);
        CallStream { call: Some(call.boxed()), cancelled: cancel.cancelled_owned().boxed(), arrivals, failure: None }
            .boxed()
    }

    fn name(&self) -> &str {
        "http"
    }
}

/// A running call and the pieces it has handed over. No task of its own: dropping it ends everything.
struct CallStream {
    /// `None` once the call has ended.
    call: Option<BoxFuture<'static, Result<(), ModelError>>>,
    cancelled: BoxFuture<'static, ()>,
    arrivals: mpsc::Receiver<ModelEvent>,
    failure: Option<ModelError>,
}

impl Stream for CallStream {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.call.is_some() && this.cancelled.as_mut().poll(context).is_ready() {
            // Dropping the call drops the response body, and with it the connection.
            this.call = None;
            this.arrivals.close();
            while this.arrivals.try_recv().is_ok() {}
            this.failure = Some(ModelError::new(ModelErrorKind::Cancelled, "the model call was cancelled"));
        }
        if let Some(call) = &mut this.call {
            if let Poll::Ready(Some(event)) = this.arrivals.poll_recv(context) {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Poll::Ready(outcome) = call.as_mut().poll(context) {
                this.call = None;
                this.failure = outcome.err();
            }
        }
        // With the call gone its sender is gone too, so what is left comes out and then the end.
        match this.arrivals.poll_recv(context) {
            Poll::Ready(Some(event)) => Poll::Ready(Some(Ok(event))),
            Poll::Ready(None) => Poll::Ready(this.failure.take().map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }
}
