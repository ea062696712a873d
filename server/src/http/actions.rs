//! `POST /api/actions`: the only way to make a session act. Answers with a stream of frames.
//!
//! The action runs in a task of its own: it finishes whether or not its client stays to watch.

use std::{collections::BTreeMap, convert::Infallible, time::Instant};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use covel_exec::{
    CommandOutcome, EventSink, ExecError, ExecutionKind, ExecutionOptions, ExecutionRequest, Phase, SessionStatus,
    TurnDocument,
};
use covel_graph::Json;
use data_encoding::BASE64;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{ApiError, AppState, emitter::Emitter, extract::ObjectBody};
use crate::{limits, running::RunningGuard};

const INVALID: &str = "invalid_action_request";

/// Player settings of one request: plugin, key, value.
type Settings = BTreeMap<String, BTreeMap<String, Json>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ActionBody {
    request_id: String,
    #[serde(rename = "type")]
    kind: String,
    session_id: String,
    payload: Map<String, Value>,
    /// The interrupted turn that this action repeats.
    #[serde(default)]
    recover_from_turn_id: Option<String>,
    /// The incarnation of the session that is meant.
    #[serde(default)]
    incarnation: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SendMessage {
    content: String,
    #[serde(default)]
    input_message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryTurn {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RetryRuntime {
    runtime_id: String,
    #[serde(default)]
    retry_from_turn_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RetryFailedRuntimes {
    runtime_ids: Vec<String>,
    retry_from_turn_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteCommand {
    command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartSession {}

enum Action {
    Turn(ExecutionKind, ExecutionOptions),
    Command(String),
}

pub(super) async fn act(
    State(state): State<AppState>,
    headers: HeaderMap,
    ObjectBody(body): ObjectBody,
) -> Result<Response, ApiError> {
    let body: ActionBody = shaped(Value::Object(body))?;
    let action = action(&body)?;
    let settings = settings(&headers)?;
    check_session(&state, &body.session_id, &action, &settings)?;
    if let Action::Command(_) = action {
        check_command(&state, &body)?;
    }
    begin(state, Begin { session_id: body.session_id, request_id: body.request_id, kind: body.kind }, action).await
}

/// A command writes at once and is never interrupted half-way, so it repeats nothing.
fn check_command(state: &AppState, body: &ActionBody) -> Result<(), ApiError> {
    let code = if body.recover_from_turn_id.is_some() {
        "recovery_mismatch"
    } else if body.incarnation.as_ref().is_some_and(|wanted| {
        state.engine.session(&body.session_id).is_ok_and(|session| session.incarnation != *wanted)
    }) {
        "session_incarnation_changed"
    } else {
        return Ok(());
    };
    let message = "this is not the session or the turn that the command was meant for";
    Err(ApiError::new(axum::http::StatusCode::CONFLICT, code, message))
}

/// Runs an execution as an action: its answer is a stream of frames.
pub(super) async fn run_kind(
    state: AppState,
    session_id: String,
    request_id: String,
    kind: &str,
    execution: ExecutionKind,
) -> Result<Response, ApiError> {
    let action = Action::Turn(execution, ExecutionOptions::default());
    check_session(&state, &session_id, &action, &Settings::new())?;
    begin(state, Begin { session_id, request_id, kind: kind.to_owned() }, action).await
}

/// Who asks for what.
struct Begin {
    session_id: String,
    request_id: String,
    kind: String,
}

async fn begin(state: AppState, body: Begin, action: Action) -> Result<Response, ApiError> {
    if body.request_id.is_empty() || body.request_id.len() > limits::MAX_REQUEST_ID_BYTES {
        return Err(ApiError::bad_request(
            INVALID,
            format!("requestId must have 1 to {} bytes", limits::MAX_REQUEST_ID_BYTES),
        ));
    }
    let guard = state
        .running
        .begin(&body.session_id, &body.request_id, &body.kind, state.now())
        .ok_or_else(|| ApiError::busy(&body.session_id))?;
    // Looked at again after claiming: a server that began to stop in between may not wait for this one.
    if state.is_closing() {
        return Err(ExecError::Closing.into());
    }
    let (verdict, answer) = oneshot::channel();
    let emitter = Emitter::new(state.clone(), body.session_id.clone(), body.request_id.clone(), verdict);
    let _detached = tokio::spawn(drive(state, body, action, guard, emitter));
    match answer.await {
        Ok(Ok(frames)) => Ok(event_stream(frames)),
        Ok(Err(refusal)) => Err(refusal),
        Err(_) => Err(ExecError::Internal("an action ended without an answer".into()).into()),
    }
}

/// Reads one of the actions and its payload.
fn action(body: &ActionBody) -> Result<Action, ApiError> {
    let payload = Value::Object(body.payload.clone());
    match body.kind.as_str() {
        "send_message" => {
            let SendMessage { content, input_message_id } = shaped(payload)?;
            bounded("payload.content", &content, limits::MAX_MESSAGE_CHARS)?;
            let options = ExecutionOptions { input_message_id, ..options(body) };
            Ok(Action::Turn(ExecutionKind::Player { message: content }, options))
        }
        "start_session" => {
            let StartSession {} = shaped(payload)?;
            Ok(Action::Turn(ExecutionKind::Start, options(body)))
        }
        "retry_turn" => {
            let RetryTurn {} = shaped(payload)?;
            Ok(Action::Turn(ExecutionKind::RetryTurn, options(body)))
        }
        "retry_runtime" => {
            let RetryRuntime { runtime_id, retry_from_turn_id } = shaped(payload)?;
            let kind = match retry_from_turn_id {
                Some(retry_from_turn_id) => {
                    ExecutionKind::RetryFailed { retry_from_turn_id, runtime_ids: vec![runtime_id] }
                }
                None => ExecutionKind::Manual {
                    runtime_id,
                    payload: Json::null(),
                    message: String::new(),
                    ignore_upstreams: false,
                },
            };
            Ok(Action::Turn(kind, options(body)))
        }
        "retry_failed_runtimes" => {
            let RetryFailedRuntimes { runtime_ids, retry_from_turn_id } = shaped(payload)?;
            Ok(Action::Turn(ExecutionKind::RetryFailed { retry_from_turn_id, runtime_ids }, options(body)))
        }
        "execute_command" => {
            let ExecuteCommand { command } = shaped(payload)?;
            bounded("payload.command", &command, limits::MAX_COMMAND_CHARS)?;
            Ok(Action::Command(command))
        }
        other => Err(ApiError::bad_request(
            INVALID,
            format!(
                "type {other:?} is not one of send_message, start_session, execute_command, retry_turn, retry_runtime, retry_failed_runtimes"
            ),
        )),
    }
}

fn options(body: &ActionBody) -> ExecutionOptions {
    ExecutionOptions {
        recover_from_turn_id: body.recover_from_turn_id.clone(),
        incarnation: body.incarnation.clone(),
        input_message_id: None,
    }
}

fn shaped<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| ApiError::bad_request(INVALID, error.to_string()))
}

fn bounded(field: &str, text: &str, most: usize) -> Result<(), ApiError> {
    let count = text.chars().count();
    if text.trim().is_empty() {
        return Err(ApiError::bad_request(INVALID, format!("{field} is empty")));
    }
    if count > most {
        return Err(ApiError::bad_request(
            INVALID,
            format!("{field} has {count} characters; at most {most} are accepted"),
        ));
    }
    Ok(())
}

/// `X-Plugin-User-Settings`: base64 of `{plugin: {key: value}}`. A session keeps the settings it was created with, so
/// these may only repeat them.
fn settings(headers: &HeaderMap) -> Result<Settings, ApiError> {
    let Some(header) = headers.get("x-plugin-user-settings") else {
        return Ok(Settings::new());
    };
    let invalid = |message: &str| ApiError::bad_request(INVALID, format!("X-Plugin-User-Settings {message}"));
    if header.len() > limits::MAX_SETTINGS_HEADER_BYTES {
        return Err(invalid("is too large"));
    }
    let bytes = BASE64.decode(header.as_bytes()).map_err(|_| invalid("is not base64"))?;
    serde_json::from_slice(&bytes).map_err(|_| invalid("is not a JSON object of plugins with objects of settings"))
}

/// What can be refused before anything runs.
fn check_session(state: &AppState, id: &str, action: &Action, settings: &Settings) -> Result<(), ApiError> {
    let session = state.engine.session(id)?;
    for (plugin, values) in settings {
        let stored = session.settings.get(plugin);
        if let Some((key, _)) =
            values.iter().find(|(key, value)| stored.and_then(|stored| stored.get(*key)) != Some(value))
        {
            return Err(ApiError::bad_request(
                "settings_not_changeable",
                format!("{plugin}.{key} is not what the session was created with; give settings to POST /api/sessions"),
            ));
        }
    }
    if session.status != SessionStatus::Active {
        let status = if session.status == SessionStatus::Ended { "ended" } else { "paused" };
        return Err(ExecError::SessionNotActive { id: id.to_owned(), status: status.to_owned() }.into());
    }
    match action {
        Action::Turn(ExecutionKind::Start, _) if session.active_plugins.is_empty() => {
            Err(ApiError::bad_request(INVALID, "the session has no active plugins"))
        }
        Action::Turn(ExecutionKind::Start, _) if session.phase == Phase::Playing && session.turn_count > 0 => Err(
            ApiError::new(axum::http::StatusCode::CONFLICT, "session_already_started", "the session has begun already"),
        ),
        _ => Ok(()),
    }
}

enum Outcome {
    Turn(Box<TurnDocument>),
    Command(CommandOutcome),
}

async fn drive(state: AppState, body: Begin, action: Action, guard: RunningGuard, mut emitter: Emitter) {
    let started = Instant::now();
    let (sink, mut events) = mpsc::unbounded_channel();
    // In a task of its own: a client that reads slowly must not hold up the turn.
    let mut work = tokio::spawn(run(state, body, action, guard.cancel().clone(), sink));
    let result = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => emitter.event(event, &guard).await,
            result = &mut work => break result,
        }
    };
    while let Ok(event) = events.try_recv() {
        emitter.event(event, &guard).await;
    }
    // Whoever reads the last frame may act again at once.
    drop(guard);
    let result = result.unwrap_or_else(|error| Err(ExecError::Internal(format!("an action panicked: {error}"))));
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match result {
        Ok(Outcome::Turn(document)) => emitter.finish_turn(&document).await,
        Ok(Outcome::Command(outcome)) => finish_command(emitter, outcome, duration_ms).await,
        Err(error) if emitter.has_begun() => {
            let error = ApiError::from(error);
            emitter.own("error.occurred", None, json!({ "message": error.message, "code": error.code })).await;
            let payload = json!({
                "committed": false, "runtimeCount": 0, "durationMs": duration_ms, "error": error.message, "code": error.code,
            });
            emitter.finish(payload).await;
        }
        Err(error) => emitter.refuse(error.into()),
    }
}

async fn run(
    state: AppState,
    body: Begin,
    action: Action,
    cancel: CancellationToken,
    sink: EventSink,
) -> Result<Outcome, ExecError> {
    match action {
        Action::Turn(kind, options) => {
            let request =
                ExecutionRequest { session_id: body.session_id, kind, cancel, request_id: Some(body.request_id) };
            let document = state.engine.execute_with(request, options, Some(sink)).await?;
            Ok(Outcome::Turn(Box::new(document)))
        }
        Action::Command(line) => state.engine.command(&body.session_id, &line, Some(sink)).await.map(Outcome::Command),
    }
}

async fn finish_command(mut emitter: Emitter, outcome: CommandOutcome, duration_ms: u64) {
    let payload = json!({
        "commandId": outcome.command_id, "ok": outcome.ok, "message": outcome.message, "data": outcome.data,
    });
    emitter.own("command.completed", None, payload).await;
    let mut payload = json!({ "committed": outcome.ok, "runtimeCount": 0, "durationMs": duration_ms });
    if let Some(message) = outcome.message.filter(|_| !outcome.ok) {
        payload["error"] = json!(message);
    }
    emitter.finish(payload).await;
}

/// Frames as `text/event-stream`, with a comment in long silences so that nothing on the way gives up.
fn event_stream(frames: mpsc::Receiver<Bytes>) -> Response {
    let pieces = stream::unfold(frames, |mut frames| async move {
        let piece = match tokio::time::timeout(limits::HEARTBEAT, frames.recv()).await {
            Ok(frame) => frame?,
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok::<_, Infallible>(piece), frames))
    });
    sse(Body::from_stream(pieces))
}

/// An event-stream answer that proxies neither buffer nor keep.
pub(super) fn sse(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}
