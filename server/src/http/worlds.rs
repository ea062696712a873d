//! Worlds: what can be played.

use axum::{extract::State, response::Response};
use covel_graph::world::World;
use serde_json::{Map, Value, json};

use super::{
    ApiError, AppState,
    extract::{PathParams, items, ok},
};

pub(super) async fn list(State(state): State<AppState>) -> Response {
    let worlds: Vec<Value> = state.engine.worlds().iter().map(|world| summary(world)).collect();
    items(&worlds)
}

pub(super) async fn one(
    State(state): State<AppState>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let worlds = state.engine.worlds();
    let world = worlds
        .iter()
        .find(|world| world.id.as_str() == id)
        .ok_or_else(|| ApiError::not_found("world_not_found", format!("there is no world {id:?}")))?;
    let mut body = summary(world);
    body["lore"] = text(&world.lore);
    body["requiredContracts"] = json!(world.required_contracts);
    body["pluginSettings"] = json!(world.plugin_settings);
    Ok(ok(&body))
}

fn summary(world: &World) -> Value {
    json!({
        "id": world.id,
        "version": world.version,
        "name": text(&world.name),
        "description": text(&world.description),
        "tags": world.tags,
        "locale": world.default_locale,
        "locales": world.locales,
        "defaultPluginIds": world.default_plugins,
    })
}

/// Text for people: the plain string when there is one language only, else a map from locale.
pub(super) fn text(text: &[(String, String)]) -> Value {
    match text {
        [] => Value::String(String::new()),
        [(_, only)] => Value::String(only.clone()),
        many => {
            let map: Map<String, Value> =
                many.iter().map(|(locale, text)| (locale.clone(), Value::String(text.clone()))).collect();
            Value::Object(map)
        }
    }
}
