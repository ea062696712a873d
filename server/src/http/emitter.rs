//! Turns engine events into frames: for the client of an action, and for the session's event stream.

use std::{borrow::Cow, mem};

use axum::body::Bytes;
use covel_exec::{TurnDocument, TurnEvent};
use covel_graph::Json;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{ApiError, AppState};
use crate::{limits, running::RunningGuard};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    request_id: &'a str,
    trace_id: &'a str,
    flow_id: &'a str,
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    seq: u64,
    timestamp: &'a str,
    payload: &'a Json,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StreamEvent<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    seq: u64,
    timestamp: &'a str,
    payload: &'a Json,
}

/// Puts an event on its session's stream.
fn publish(
    state: &AppState,
    session_id: &str,
    kind: &'static str,
    turn_id: Option<&str>,
    request_id: Option<&str>,
    payload: &Json,
) {
    let timestamp = state.now();
    state.bus.publish(session_id, kind, |id, seq| {
        let event = StreamEvent { id, kind, session_id, turn_id, request_id, seq, timestamp: &timestamp, payload };
        line(&event).into_owned()
    });
}

/// Puts what background jobs tell on the streams of their sessions, until the server stops.
pub(super) async fn forward_jobs(state: AppState) {
    let (sender, mut events) = mpsc::unbounded_channel();
    state.engine.listen_to_jobs(sender);
    loop {
        let event: TurnEvent = tokio::select! {
            received = events.recv() => match received {
                Some(event) => event,
                None => return,
            },
            () = state.streams.cancelled() => return,
        };
        let turn = (!event.turn_id.is_empty()).then_some(event.turn_id.as_str());
        publish(&state, &event.session_id, event.kind, turn, None, &event.payload);
    }
}

/// The client of an action: first it waits for the verdict, then it takes frames.
enum Client {
    /// Nothing was answered yet.
    Waiting(oneshot::Sender<Result<mpsc::Receiver<Bytes>, ApiError>>),
    Streaming(mpsc::Sender<Bytes>),
    Gone,
}

/// One action's frames.
pub(super) struct Emitter {
    state: AppState,
    session_id: String,
    request_id: String,
    trace_id: String,
    seq: u64,
    client: Client,
    /// `execution.completed` held back: a stream carries one, the last.
    completed: Option<TurnEvent>,
}

impl Emitter {
    pub(super) fn new(
        state: AppState,
        session_id: String,
        request_id: String,
        verdict: oneshot::Sender<Result<mpsc::Receiver<Bytes>, ApiError>>,
    ) -> Self {
        let trace_id = state.fresh_id();
        Self { state, session_id, request_id, trace_id, seq: 0, client: Client::Waiting(verdict), completed: None }
    }

    /// Has the client been answered with a stream (or left)?
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.client, Client::Waiting(_))
    }

    /// Answers the client with a refusal; only before the first frame.
    pub(super) fn refuse(&mut self, error: ApiError) {
        if let Client::Waiting(verdict) = mem::replace(&mut self.client, Client::Gone) {
            // The client may have left already.
            let _ = verdict.send(Err(error));
        }
    }

    /// An event of the engine.
    pub(super) async fn event(&mut self, event: TurnEvent, guard: &RunningGuard) {
        if event.kind == "execution.started" {
            guard.set_turn(&event.turn_id);
        }
        let turn = (!event.turn_id.is_empty()).then_some(event.turn_id.as_str());
        self.publish(event.kind, turn, &event.payload);
        if event.kind == "execution.completed" {
            self.completed = Some(event);
            return;
        }
        self.send(event.kind, turn, &event.payload).await;
    }

    /// An event of the server itself, for both channels.
    pub(super) async fn own(&mut self, kind: &'static str, turn: Option<&str>, payload: Value) {
        let payload = Json::from_value(payload);
        self.publish(kind, turn, &payload);
        self.send(kind, turn, &payload).await;
    }

    /// The last frame of a turn: what the engine reported, with the document's verdict.
    pub(super) async fn finish_turn(mut self, document: &TurnDocument) {
        let held = self.completed.take();
        let mut payload = match held {
            Some(event) if event.payload.value().is_object() => event.payload.value().clone(),
            _ => {
                json!({ "runtimeCount": document.runtimes.len(), "durationMs": document.duration_micros / 1_000 })
            }
        };
        payload["committed"] = json!(document.committed);
        if let Some(error) = &document.error {
            payload["error"] = json!(error.message);
            payload["code"] = json!(error.code);
        }
        self.send("execution.completed", Some(&document.turn_id), &Json::from_value(payload)).await;
    }

    /// The last frame of an action that has no turn document.
    pub(super) async fn finish(mut self, payload: Value) {
        let (turn, published) = match self.completed.take() {
            Some(event) => (Some(event.turn_id), true),
            None => (None, false),
        };
        let payload = Json::from_value(payload);
        if !published {
            self.publish("execution.completed", turn.as_deref(), &payload);
        }
        self.send("execution.completed", turn.as_deref(), &payload).await;
    }

    fn publish(&self, kind: &'static str, turn_id: Option<&str>, payload: &Json) {
        publish(&self.state, &self.session_id, kind, turn_id, Some(&self.request_id), payload);
    }

    async fn send(&mut self, kind: &str, turn_id: Option<&str>, payload: &Json) {
        if matches!(self.client, Client::Waiting(_)) {
            self.begin();
        }
        let Client::Streaming(frames) = &self.client else {
            return;
        };
        let timestamp = self.state.now();
        let frame = Frame {
            kind,
            request_id: &self.request_id,
            trace_id: &self.trace_id,
            flow_id: &self.trace_id,
            session_id: &self.session_id,
            turn_id,
            seq: self.seq,
            timestamp: &timestamp,
            payload,
        };
        let text = Bytes::from(format!("data: {}\n\n", line(&frame)));
        self.seq += 1;
        let sent = frames.send_timeout(text, limits::ACTION_SEND_TIMEOUT).await;
        if sent.is_err() {
            // It left, or it does not read. The turn goes on; the session's event stream has what it missed.
            self.client = Client::Gone;
        }
    }

    fn begin(&mut self) {
        let (sender, receiver) = mpsc::channel(limits::ACTION_QUEUE);
        if let Client::Waiting(verdict) = mem::replace(&mut self.client, Client::Gone)
            && verdict.send(Ok(receiver)).is_ok()
        {
            self.client = Client::Streaming(sender);
        }
    }
}

/// One line of JSON; compact JSON text has no raw line breaks.
fn line<T: Serialize>(value: &T) -> Cow<'static, str> {
    serde_json::to_string(value).map_or(Cow::Borrowed("{}"), Cow::Owned)
}
