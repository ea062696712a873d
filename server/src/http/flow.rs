//! What a player or host does around turns: steering, suspensions, blocked setup, snapshots and forks.

use axum::{extract::State, http::StatusCode, response::Response};
use covel_exec::{ExecError, ExecutionKind, ForkFrom, SuspensionRecord};
use covel_graph::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ApiError, AppState, actions,
    extract::{JsonBody, NoBody, PathParams, items, ok, with_status},
    sessions::view,
};

/// Who forks, for the limit: the server does not tell its clients apart.
const CLIENT: &str = "http";

/// Nobody changes a session while an action runs in it.
fn check_idle(state: &AppState, session: &str) -> Result<(), ApiError> {
    state.engine.session(session)?;
    if state.running.get(session).is_some() {
        return Err(ApiError::busy(session));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SteerBody {
    message: String,
}

pub(super) async fn steer(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    JsonBody(body): JsonBody<SteerBody>,
) -> Result<Response, ApiError> {
    state.engine.steer(&session, &body.message)?;
    Ok(ok(&json!({ "ok": true })))
}

fn shown(record: &SuspensionRecord) -> Value {
    json!({
        "id": record.id, "sessionId": record.session_id, "turnId": record.turn_id, "runtimeId": record.runtime_id,
        "pluginId": record.plugin_id, "reason": record.reason, "resumeSchema": record.resume_schema,
        "createdAt": record.created_at, "resolved": record.resolved,
    })
}

pub(super) async fn suspensions(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    let rows: Vec<Value> = state.engine.suspensions(&session)?.iter().map(shown).collect();
    Ok(items(&rows))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ResumeBody {
    data: Json,
    #[serde(default)]
    request_id: Option<String>,
}

/// Answers with the frames of an action.
pub(super) async fn resume(
    State(state): State<AppState>,
    PathParams((session, suspension)): PathParams<(String, String)>,
    JsonBody(body): JsonBody<ResumeBody>,
) -> Result<Response, ApiError> {
    state.engine.session(&session)?;
    let request_id = body.request_id.unwrap_or_else(|| state.fresh_id());
    let kind = ExecutionKind::Resume { suspension_id: suspension, data: body.data };
    actions::run_kind(state, session, request_id, "resume", kind).await
}

pub(super) async fn discard(
    State(state): State<AppState>,
    PathParams((session, suspension)): PathParams<(String, String)>,
    _: NoBody,
) -> Result<Response, ApiError> {
    check_idle(&state, &session)?;
    state.engine.discard_suspension(&session, &suspension).await?;
    Ok(ok(&json!({ "ok": true })))
}

pub(super) async fn retry_setup(
    State(state): State<AppState>,
    PathParams((session, runtime)): PathParams<(String, String)>,
    _: NoBody,
) -> Result<Response, ApiError> {
    check_idle(&state, &session)?;
    Ok(ok(&view(&state.engine.retry_setup(&session, &runtime).await?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaiveBody {
    #[serde(default)]
    confirm: bool,
}

pub(super) async fn waive_setup(
    State(state): State<AppState>,
    PathParams((session, runtime)): PathParams<(String, String)>,
    JsonBody(body): JsonBody<WaiveBody>,
) -> Result<Response, ApiError> {
    check_idle(&state, &session)?;
    if !body.confirm {
        let message = "a waived setup never runs again for this version; send {\"confirm\": true}";
        return Err(ApiError::bad_request("confirm_required", message));
    }
    Ok(ok(&view(&state.engine.waive_setup(&session, &runtime).await?)))
}

pub(super) async fn snapshots(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(items(&state.engine.snapshots(&session)?))
}

pub(super) async fn create_snapshot(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    _: NoBody,
) -> Result<Response, ApiError> {
    check_idle(&state, &session)?;
    let snapshot = state.engine.create_snapshot(&session).await?;
    let payload = json!({
        "turnId": snapshot.turn_id, "snapshotId": snapshot.id, "kind": snapshot.kind,
    });
    announce(&state, &session, "state.snapshot.created", &payload);
    Ok(with_status(StatusCode::CREATED, &snapshot))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ForkBody {
    #[serde(default)]
    from_snapshot_id: Option<String>,
    #[serde(default)]
    from_turn_id: Option<String>,
    #[serde(default)]
    id: Option<String>,
}

pub(super) async fn fork(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    JsonBody(body): JsonBody<ForkBody>,
) -> Result<Response, ApiError> {
    let from = match (body.from_snapshot_id, body.from_turn_id) {
        (Some(snapshot), None) => ForkFrom::Snapshot(snapshot),
        (None, Some(turn)) => ForkFrom::Turn(turn),
        (None, None) => ForkFrom::Now,
        (Some(_), Some(_)) => {
            let message = "names a snapshot or a turn, not both".to_owned();
            return Err(ExecError::Invalid { field: "fromTurnId".into(), message }.into());
        }
    };
    let forked = state.engine.fork_session(&session, from, body.id, Some(CLIENT)).await?;
    let payload = json!({
        "parentSessionId": session, "childSessionId": forked.session.id,
        "fromSnapshotId": forked.from_snapshot_id, "forkSnapshotId": forked.fork_snapshot_id,
    });
    let created = json!({
        "snapshotId": forked.fork_snapshot_id, "kind": "fork", "parentSnapshotId": forked.from_snapshot_id,
    });
    announce(&state, &forked.session.id, "state.snapshot.created", &created);
    announce(&state, &session, "session.forked", &payload);
    let mut answer = view(&forked.session);
    answer["sessionId"] = json!(forked.session.id);
    answer["parentSessionId"] = json!(session);
    answer["fromSnapshotId"] = json!(forked.from_snapshot_id);
    answer["forkSnapshotId"] = json!(forked.fork_snapshot_id);
    Ok(with_status(StatusCode::CREATED, &answer))
}

/// Tells those who watch the session.
fn announce(state: &AppState, session: &str, kind: &'static str, payload: &Value) {
    let timestamp = state.now();
    state.bus.publish(session, kind, |id, seq| {
        json!({
            "id": id, "type": kind, "sessionId": session, "seq": seq, "timestamp": timestamp, "payload": payload,
        })
        .to_string()
    });
}
