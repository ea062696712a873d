//! One logical call: slots in turn, requests, retries. Reading a reply is next door, in `reading`.

use std::future::Future;
use std::sync::Arc;

use covel_model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::budget::{Budget, Deadline, Late};
use super::reading::Reading;
use super::retry::{self, Retry};
use super::transport::{HttpReply, HttpRequest, TransportError};
use crate::config::{Key, Slot, Tag};
use crate::limits::MAX_ERROR_BODY_BYTES;
use crate::protocol::{self, Fault, Mode, Protocol, WireRequest};

/// A failed attempt.
struct Failure {
    fault: Fault,
    /// Was anything of the reply already handed over, or counted as progress?
    started: bool,
    /// Did the provider answer or at least get the request?
    reached: bool,
}

impl Failure {
    fn before(fault: Fault) -> Self {
        Self { fault, started: false, reached: false }
    }

    /// May another slot be tried? After HTTP errors only 429 and 5xx, never after output, refusals or wrong
    /// configuration.
    fn may_fall_back(&self) -> bool {
        use ModelErrorKind::{Overloaded, Quota, RateLimited, Server, Timeout, Unreachable};
        let kind = matches!(self.fault.kind, Overloaded | Quota | RateLimited | Server | Timeout | Unreachable);
        let status = self.fault.status.is_none_or(|status| status == 429 || status >= 500);
        kind && status && !self.started
    }

    /// May a whole reply succeed where the stream failed? Not when the provider turned the request itself down.
    fn may_ask_whole(&self) -> bool {
        use ModelErrorKind::{Overloaded, Server, Timeout, Unreachable};
        let kind = matches!(self.fault.kind, Overloaded | Server | Timeout | Unreachable);
        kind && self.fault.retriable && self.reached && !self.started
    }
}

/// Runs a call. Pieces go to `pieces`; the result says how it ended.
pub(super) async fn run(
    shared: Arc<Shared>,
    request: ModelRequest,
    pieces: Sender<ModelEvent>,
) -> Result<(), ModelError> {
    let configured = shared.configured();
    let config = |error: crate::config::ConfigError| {
        configured.explain(None, Fault::new(ModelErrorKind::Config, error.to_string()))
    };
    let first = configured.config.resolve(&request.slot, Tag::Text).map_err(config)?;
    let mut call = Call {
        budget: Budget::new(shared.limits, &request, Instant::now()),
        shared: &shared,
        request: &request,
        pieces: &pieces,
    };
    let chain = configured.config.chain(first);
    for (at, slot) in chain.iter().enumerate() {
        slot.ready().map_err(config)?;
        let Err(failure) = call.ask(slot).await else {
            return Ok(());
        };
        if at + 1 == chain.len() || !failure.may_fall_back() {
            return Err(configured.explain(Some(slot), failure.fault));
        }
        tracing::warn!(slot = slot.name(), next = chain[at + 1].name(), kind = ?failure.fault.kind, "falling back");
    }
    // A chain holds at least its first slot, so the loop has returned.
    Err(ModelError::new(ModelErrorKind::Config, "no slot to ask"))
}

struct Call<'a> {
    shared: &'a Shared,
    request: &'a ModelRequest,
    pieces: &'a Sender<ModelEvent>,
    budget: Budget,
}

impl Call<'_> {
    /// Asks one slot: a stream with retries, then once for a whole reply when the stream gave nothing.
    async fn ask(&mut self, slot: &Slot) -> Result<(), Failure> {
        let protocol = protocol::by_id(&slot.protocol);
        let protocol = protocol
            .ok_or_else(|| Failure::before(Fault::new(ModelErrorKind::Config, "its protocol is not spoken")))?;
        if !slot.options.ignored.is_empty() {
            tracing::warn!(slot = slot.name(), options = ?slot.options.ignored, "unknown provider options ignored");
        }
        let wire = protocol.write(slot, self.request, Mode::Stream).map_err(Failure::before)?;
        let Err(failure) = self.ask_streaming(slot, protocol, &wire).await else {
            return Ok(());
        };
        if !failure.may_ask_whole() || self.budget.take_request(Instant::now()).is_err() {
            return Err(failure);
        }
        tracing::warn!(slot = slot.name(), kind = ?failure.fault.kind, "the stream gave nothing, asking for a whole reply");
        let wire = protocol.write(slot, self.request, Mode::Whole).map_err(Failure::before)?;
        match self.ask_once(slot, protocol, &wire, Mode::Whole).await {
            Ok(()) => Ok(()),
            // What went wrong first says more, unless the second try got further or ran out of time.
            Err((second, _)) if second.started || second.fault.kind == ModelErrorKind::Budget => Err(second),
            Err((second, _)) if second.fault.kind == ModelErrorKind::Refused => Err(second),
            Err(_) => Err(failure),
        }
    }

    async fn ask_streaming(&mut self, slot: &Slot, protocol: &dyn Protocol, wire: &WireRequest) -> Result<(), Failure> {
        loop {
            self.budget.take_request(Instant::now()).map_err(Failure::before)?;
            let Err((mut failure, retry)) = self.ask_once(slot, protocol, wire, Mode::Stream).await else {
                return Ok(());
            };
            let now = Instant::now();
            let too_long = match retry {
                Retry::Never => return Err(failure),
                Retry::Backoff => false,
                Retry::After(wait) => !self.budget.has(wait, now),
                Retry::TooLong => true,
            };
            if too_long {
                failure.fault.kind = ModelErrorKind::RateLimited;
                failure.fault.retriable = true;
                return Err(failure);
            }
            let wait = self.budget.take_retry(
                |number| match retry {
                    Retry::After(wait) => wait,
                    _ => self.shared.spread.backoff(number, &self.shared.limits),
                },
                now,
            );
            let Some(wait) = wait else {
                return Err(failure);
            };
            tracing::debug!(slot = slot.name(), status = ?failure.fault.status, wait = ?wait, "request retried");
            sleep(wait).await;
        }
    }

    /// One HTTP request and its reply. The error says whether the same request may be sent again.
    async fn ask_once(
        &mut self,
        slot: &Slot,
        protocol: &dyn Protocol,
        wire: &WireRequest,
        mode: Mode,
    ) -> Result<(), (Failure, Retry)> {
        let never = |failure: Failure| (failure, Retry::Never);
        let queue = self.shared.permits.clone().acquire_owned();
        let permit = before(self.budget.end(), queue).await.map_err(|late| never(Failure::before(late.fault())))?;
        if Instant::now() >= self.budget.end().at {
            // The turn came in the very moment in which the time ran out.
            return Err(never(Failure::before(Late::Budget.fault())));
        }
        let outgoing = outgoing(slot, protocol, wire, mode).map_err(|fault| never(Failure::before(fault)))?;
        let deadline = match mode {
            Mode::Stream => self.budget.first_piece(Instant::now()),
            Mode::Whole => self.budget.end(),
        };
        let reply = before(deadline, self.shared.transport.send(outgoing)).await;
        let reply = reply.map_err(|late| never(Failure { fault: late.fault(), started: false, reached: true }))?;
        let reply = reply.map_err(|error| {
            let retry = if error.broken_connection { Retry::Backoff } else { Retry::Never };
            let reached = error.sent;
            (Failure { fault: unreachable(error), started: false, reached }, retry)
        })?;
        if !reply.status.is_success() {
            let (fault, retry) = self.rejection(reply, deadline).await;
            drop(permit);
            return Err((Failure { fault, started: false, reached: true }, retry));
        }
        let mut reading = Reading {
            budget: &mut self.budget,
            pieces: self.pieces,
            tail: self.shared.limits.tail,
            reader: protocol.reader(wire),
            deadline,
            started: false,
        };
        let outcome = match (mode, content_kind(&reply.headers)) {
            (_, ContentKind::Page) => Err(Fault::malformed("the answer is a web page; is `baseUrl` right?")),
            // Some providers answer a request for a stream with a whole reply, and errors often come that way.
            (Mode::Whole, _) | (_, ContentKind::Json) => reading.whole(reply.body).await,
            (Mode::Stream, ContentKind::Other) => reading.stream(reply.body).await,
        };
        let started = reading.started;
        outcome.map_err(|fault| never(Failure { fault, started, reached: true }))
    }

    /// Reads a rejection, as much of it as is needed, and drops the rest.
    async fn rejection(&self, reply: HttpReply, deadline: Deadline) -> (Fault, Retry) {
        let HttpReply { status, headers, mut body } = reply;
        let mut text = Vec::new();
        if !status.is_redirection() {
            let end = deadline.at.min(Instant::now() + self.shared.limits.error_body);
            while text.len() < MAX_ERROR_BODY_BYTES
                && let Ok(Some(Ok(piece))) = timeout_at(end, body.next()).await
            {
                text.extend_from_slice(&piece[..piece.len().min(MAX_ERROR_BODY_BYTES - text.len())]);
            }
        }
        let fault = protocol::from_status(status, &text);
        let retry = match fault.kind {
            // Money and refusals do not come back by waiting.
            ModelErrorKind::Quota | ModelErrorKind::Refused => Retry::Never,
            _ => retry::wanted(status, &headers, (self.shared.now)(), self.shared.limits.demanded_wait),
        };
        (fault, retry)
    }
}

/// `work`, unless the deadline comes first.
pub(super) async fn before<T>(deadline: Deadline, work: impl Future<Output = T>) -> Result<T, Late> {
    timeout_at(deadline.at, work).await.map_err(|_| deadline.meaning)
}

fn outgoing(slot: &Slot, protocol: &dyn Protocol, wire: &WireRequest, mode: Mode) -> Result<HttpRequest, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accept = if mode == Mode::Stream { "text/event-stream, application/json" } else { "application/json" };
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("covel/", env!("CARGO_PKG_VERSION"))));
    if let Key::Set(secret) = &slot.key {
        let key = protocol.key_header(secret);
        let (name, value) = key.ok_or_else(|| Fault::new(ModelErrorKind::Config, "its key fits no header"))?;
        headers.insert(name, value);
    }
    Ok(HttpRequest { endpoint: slot.endpoint.clone(), path: wire.path.clone(), headers, body: wire.body.clone() })
}

fn unreachable(error: TransportError) -> Fault {
    if error.not_http {
        return Fault::new(ModelErrorKind::Server, format!("the answer is not HTTP: {}", error.reason));
    }
    Fault::new(ModelErrorKind::Unreachable, format!("the provider cannot be reached: {}", error.reason))
}

enum ContentKind {
    Json,
    Page,
    /// An event stream, or something that has to show what it is.
    Other,
}

fn content_kind(headers: &HeaderMap) -> ContentKind {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => ContentKind::Json,
        "text/html" | "application/xhtml+xml" => ContentKind::Page,
        _ => ContentKind::Other,
    }
}
