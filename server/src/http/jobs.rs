//! Background jobs of a session: listing, calling off, trying again. What a job runs on never leaves the engine.

use axum::{extract::State, http::StatusCode, response::Response};

use super::{
    ApiError, AppState,
    extract::{NoBody, PathParams, items, ok, with_status},
};

pub(super) async fn list(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(items(&state.engine.jobs(&session)?))
}

pub(super) async fn one(
    State(state): State<AppState>,
    PathParams((session, job)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    Ok(ok(&state.engine.job(&session, &job)?))
}

pub(super) async fn cancel(
    State(state): State<AppState>,
    PathParams((session, job)): PathParams<(String, String)>,
    _: NoBody,
) -> Result<Response, ApiError> {
    Ok(ok(&state.engine.cancel_job(&session, &job).await?))
}

pub(super) async fn retry(
    State(state): State<AppState>,
    PathParams((session, job)): PathParams<(String, String)>,
    _: NoBody,
) -> Result<Response, ApiError> {
    Ok(with_status(StatusCode::ACCEPTED, &state.engine.retry_job(&session, &job).await?))
}
