//! Sessions and what they remember.

use std::collections::BTreeMap;

use axum::{extract::State, http::StatusCode, response::Response};
use covel_exec::{DataFilter, DataRecord, NewSession, SessionRecord, SessionStatus};
use covel_graph::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ApiError, AppState,
    extract::{JsonBody, NoBody, PathParams, QueryParams, items, list_limit, ok, with_status},
};
use crate::limits;

/// What a client sees of a session. The trigger ledger and the seed of its dice stay here.
pub(super) fn view(record: &SessionRecord) -> Value {
    json!({
        "id": record.id,
        "worldId": record.world_id,
        "locale": record.locale,
        "status": record.status,
        "phase": record.phase,
        "completedPlayerTurns": record.completed_player_turns,
        "setupRuntimes": record.setup_runtimes,
        "requestedPlugins": record.requested_plugins,
        "excludedPlugins": record.excluded_plugins,
        "activePlugins": record.active_plugins,
        "incarnation": record.incarnation,
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreateBody {
    #[serde(default)]
    world_id: Option<String>,
    #[serde(default)]
    locale: Option<String>,
    #[serde(default)]
    plugins: Option<Vec<String>>,
    #[serde(default)]
    excluded: Vec<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    seed: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, BTreeMap<String, Json>>,
}

pub(super) async fn create(
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CreateBody>,
) -> Result<Response, ApiError> {
    let named = body.plugins.as_ref().map_or(0, Vec::len) + body.excluded.len() + body.settings.len();
    if named > limits::MAX_PLUGIN_IDS {
        return Err(ApiError::bad_request(
            "invalid_request",
            format!("the request names {named} plugins; at most {} are accepted", limits::MAX_PLUGIN_IDS),
        ));
    }
    let new = NewSession {
        id: body.id,
        world_id: body.world_id,
        locale: body.locale,
        plugins: body.plugins,
        excluded: body.excluded,
        // Over HTTP nothing is approved at creation.
        approved: Vec::new(),
        seed: body.seed,
        settings: body.settings,
    };
    let record = state.engine.create_session(new).await?;
    Ok(with_status(StatusCode::CREATED, &view(&record)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListQuery {
    world_id: Option<String>,
}

pub(super) async fn list(
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Response, ApiError> {
    let sessions = state.engine.sessions()?;
    let wanted = |record: &&SessionRecord| query.world_id.is_none() || record.world_id == query.world_id;
    let views: Vec<Value> = sessions.iter().filter(wanted).map(view).collect();
    Ok(items(&views))
}

pub(super) async fn one(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    Ok(ok(&view(&state.engine.session(&session)?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeBody {
    status: SessionStatus,
}

pub(super) async fn change(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Result<Response, ApiError> {
    state.engine.session(&session)?;
    if state.running.get(&session).is_some() {
        return Err(ApiError::busy(&session));
    }
    Ok(ok(&view(&state.engine.set_status(&session, body.status).await?)))
}

pub(super) async fn remove(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    _: NoBody,
) -> Result<Response, ApiError> {
    state.engine.session(&session)?;
    if state.running.get(&session).is_some() {
        return Err(ApiError::busy(&session));
    }
    state.engine.delete_session(&session).await?;
    state.bus.remove(&session);
    Ok(ok(&json!({ "ok": true })))
}

#[derive(Deserialize)]
pub(super) struct LimitQuery {
    pub(super) limit: Option<usize>,
}

pub(super) async fn messages(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    QueryParams(query): QueryParams<LimitQuery>,
) -> Result<Response, ApiError> {
    let limit = list_limit(query.limit)?;
    state.engine.session(&session)?;
    Ok(items(&state.engine.messages(&session, limit)?))
}

pub(super) async fn turns(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    QueryParams(query): QueryParams<LimitQuery>,
) -> Result<Response, ApiError> {
    let limit = list_limit(query.limit)?;
    state.engine.session(&session)?;
    Ok(items(&state.engine.turns(&session, limit)?))
}

pub(super) async fn plan(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    let handle = state.engine.plan(&session).await?;
    Ok(ok(&covel_graph::explain::PlanDocument::of(&handle, &[])))
}

pub(super) async fn execution(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    state.engine.session(&session)?;
    Ok(ok(&match state.running.get(&session) {
        Some(action) => {
            let mut body = json!(action);
            body["status"] = json!("running");
            body
        }
        None => json!(state.engine.execution(&session)?),
    }))
}

pub(super) async fn abort(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
    _: NoBody,
) -> Result<Response, ApiError> {
    state.engine.session(&session)?;
    let aborted = state.engine.abort(&session);
    if state.running.cancel(&session) || aborted {
        return Ok(ok(&json!({ "ok": true })));
    }
    Err(ApiError::new(StatusCode::CONFLICT, "nothing_running", format!("nothing is running in session {session:?}")))
}

pub(super) async fn data(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    let records = read(&state, &session, None, None, None)?;
    let rows: Vec<Value> = records.iter().map(|record| row(record, true)).collect();
    Ok(items(&rows))
}

pub(super) async fn data_of_plugin(
    State(state): State<AppState>,
    PathParams((session, plugin)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    let records = read(&state, &session, Some(plugin), None, None)?;
    let rows: Vec<Value> = records.iter().map(|record| row(record, true)).collect();
    Ok(items(&rows))
}

pub(super) async fn data_of_namespace(
    State(state): State<AppState>,
    PathParams((session, plugin, namespace)): PathParams<(String, String, String)>,
) -> Result<Response, ApiError> {
    let records = read(&state, &session, Some(plugin), Some(namespace), None)?;
    let rows: Vec<Value> = records.iter().map(|record| row(record, false)).collect();
    Ok(items(&rows))
}

pub(super) async fn data_record(
    State(state): State<AppState>,
    PathParams((session, plugin, namespace, key)): PathParams<(String, String, String, String)>,
) -> Result<Response, ApiError> {
    let records = read(&state, &session, Some(plugin), Some(namespace), Some(key.clone()))?;
    let record = records
        .first()
        .ok_or_else(|| ApiError::not_found("plugin_data_not_found", format!("there is no record {key:?}")))?;
    Ok(ok(&row(record, true)))
}

fn read(
    state: &AppState,
    session: &str,
    plugin: Option<String>,
    namespace: Option<String>,
    key: Option<String>,
) -> Result<Vec<DataRecord>, ApiError> {
    state.engine.session(session)?;
    Ok(state.engine.data(session, DataFilter { plugin, namespace, key, hidden: false })?)
}

fn row(record: &DataRecord, whole: bool) -> Value {
    let mut row = json!({
        "key": record.key,
        "value": record.value,
        "version": record.version,
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
    });
    if whole {
        row["pluginId"] = json!(record.plugin_id);
        row["namespace"] = json!(record.namespace);
    }
    row
}
