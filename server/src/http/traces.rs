//! What executions did.

use axum::{extract::State, response::Response};
use serde_json::{Value, json};

use super::{
    ApiError, AppState,
    extract::{PathParams, QueryParams, items, list_limit, ok},
};

/// Newest committed turns, oldest first, without their contents.
pub(super) async fn turns(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    QueryParams(query): QueryParams<super::sessions::LimitQuery>,
) -> Result<Response, ApiError> {
    let turns = state.engine.turns(&session, list_limit(query.limit)?)?;
    let rows = turns.iter().map(|turn| {
        json!({
            "turnId": turn.turn_id,
            "origin": turn.origin,
            "logicalTurn": turn.logical_turn,
            "startedAt": turn.created_at,
            "durationMicros": turn.duration_micros,
            "runtimeCount": turn.runtimes.len(),
        })
    });
    Ok(items(&rows.collect::<Vec<Value>>()))
}

/// One execution, also of one that did not commit.
pub(super) async fn one(
    State(state): State<AppState>,
    PathParams((session, turn)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    Ok(ok(&state.engine.trace(&session, &turn)?))
}
