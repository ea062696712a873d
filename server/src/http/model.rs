//! The world of a session beyond plugin data: characters, lorebook, dimensions, shared state, seats.

use axum::{extract::State, http::StatusCode, response::Response};
use covel_graph::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    ApiError, AppState,
    extract::{JsonBody, NoBody, PathParams, items, ok, with_status},
};

pub(super) async fn characters(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(items(&state.engine.characters(&session)?))
}

pub(super) async fn put_character(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let (sender, events) = mpsc::unbounded_channel();
    let character = state.engine.put_character(&session, &body, Some(sender)).await?;
    tell(&state, &session, events);
    Ok(with_status(StatusCode::CREATED, &character))
}

pub(super) async fn character_schema(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(ok(&state.engine.character_schema(&session)?.unwrap_or_else(Json::null)))
}

pub(super) async fn lorebook(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(items(&state.engine.lorebook(&session)?))
}

pub(super) async fn put_lore_entry(
    State(state): State<AppState>,
    PathParams((session, entry)): PathParams<(String, String)>,
    JsonBody(mut body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    if let Value::Object(map) = &mut body {
        map.insert("id".into(), entry.into());
    }
    Ok(ok(&state.engine.put_lore_entry(&session, &body).await?))
}

pub(super) async fn delete_lore_entry(
    State(state): State<AppState>,
    PathParams((session, entry)): PathParams<(String, String)>,
    _: NoBody,
) -> Result<Response, ApiError> {
    if state.engine.delete_lore_entry(&session, &entry).await? {
        return Ok(ok(&json!({ "ok": true })));
    }
    Err(ApiError::not_found("lorebook_entry_not_found", format!("the player has no lorebook entry {entry:?}")))
}

pub(super) async fn dimensions(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(ok(&state.engine.dimensions(&session)?))
}

pub(super) async fn tables(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(ok(&json!({ "tables": state.engine.state_tables(&session)? })))
}

pub(super) async fn seats(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(items(&state.engine.seats(&session)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SeatBody {
    character_id: String,
}

/// Lets a seat play another of its characters. SEA-4
pub(super) async fn switch_seat(
    State(state): State<AppState>,
    PathParams((session, seat)): PathParams<(String, String)>,
    JsonBody(body): JsonBody<SeatBody>,
) -> Result<Response, ApiError> {
    let (sender, events) = mpsc::unbounded_channel();
    let seat = state.engine.switch_seat_character(&session, &seat, &body.character_id, Some(sender)).await?;
    tell(&state, &session, events);
    Ok(ok(&seat))
}

/// Publishes what a change outside a turn had to tell.
fn tell(state: &AppState, session: &str, mut events: mpsc::UnboundedReceiver<covel_exec::TurnEvent>) {
    while let Ok(event) = events.try_recv() {
        let timestamp = state.now();
        state.bus.publish(session, event.kind, |id, seq| {
            json!({
                "id": id, "type": event.kind, "sessionId": session, "seq": seq, "timestamp": timestamp,
                "payload": event.payload,
            })
            .to_string()
        });
    }
}
