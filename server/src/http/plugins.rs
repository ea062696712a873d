//! Packages: what is loaded, what a session uses, what panels they bring.

use std::collections::BTreeSet;

use axum::{extract::State, response::Response};
use covel_exec::{CommandInfo, PackageInfo};
use covel_graph::fragment::{CommandDecl, Fragment, SettingDecl};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ApiError, AppState, BrokenPackage,
    extract::{PathParams, QueryParams, items, ok},
    spec_text,
    worlds::text,
};

pub(super) async fn list(State(state): State<AppState>) -> Response {
    let mut packages: Vec<Value> = state.engine.packages().iter().map(summary).collect();
    packages.extend(state.broken.iter().map(broken_summary));
    items(&packages)
}

pub(super) async fn one(
    State(state): State<AppState>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let packages = state.engine.packages();
    let info = packages
        .iter()
        .find(|info| info.package.fragment.plugin_id == id)
        .ok_or_else(|| ApiError::not_found("plugin_not_found", format!("there is no package {id:?}")))?;
    let fragment = &info.package.fragment;
    let mut body = summary(info);
    body["digest"] = json!(info.package.digest);
    body["dataSchemas"] = fragment
        .data
        .iter()
        .map(|data| json!({ "namespace": data.namespace, "version": data.version, "schema": parsed(&data.schema) }))
        .collect();
    body["commands"] = fragment.commands.iter().map(|command| command_view(&fragment.plugin_id, command)).collect();
    body["ui"] = fragment.ui.iter().map(|ui| json!({ "surface": ui.surface, "path": ui.path })).collect();
    Ok(ok(&body))
}

pub(super) async fn of_session(
    State(state): State<AppState>,
    PathParams(session): PathParams<String>,
) -> Result<Response, ApiError> {
    let record = state.engine.session(&session)?;
    let active: BTreeSet<&str> = record.active_plugins.iter().map(String::as_str).collect();
    let requested: BTreeSet<&str> = record.requested_plugins.iter().map(String::as_str).collect();
    let plugins: Vec<Value> = state
        .engine
        .packages()
        .iter()
        .map(|info| {
            let id = info.package.fragment.plugin_id.as_str();
            let mut item = summary(info);
            item["active"] = json!(active.contains(id));
            item["autoAdded"] = json!(active.contains(id) && !requested.contains(id));
            item
        })
        .collect();
    let commands: Vec<Value> = state.engine.commands(&session)?.iter().map(command_of).collect();
    Ok(ok(&json!({ "commands": commands, "items": plugins })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpecsQuery {
    session_id: Option<String>,
}

pub(super) async fn ui_specs(
    State(state): State<AppState>,
    QueryParams(query): QueryParams<SpecsQuery>,
) -> Result<Response, ApiError> {
    let active: Option<BTreeSet<String>> = match &query.session_id {
        Some(session) => Some(state.engine.session(session)?.active_plugins.into_iter().collect()),
        None => None,
    };
    let packages = state.engine.packages();
    let shown: Vec<&PackageInfo> = packages
        .iter()
        .filter(|info| active.as_ref().is_none_or(|active| active.contains(&info.package.fragment.plugin_id)))
        .collect();
    let surface = |name: &str| -> Vec<Value> {
        shown
            .iter()
            .filter_map(|info| {
                let fragment = &info.package.fragment;
                let specs: Vec<Value> = fragment
                    .ui
                    .iter()
                    .filter(|ui| ui.surface == name)
                    .map(|ui| spec_text::translated(parsed(&ui.spec), &fragment.messages))
                    .collect();
                (!specs.is_empty()).then(|| json!({ "pluginId": fragment.plugin_id, "specs": specs }))
            })
            .collect()
    };
    // Specs that are wrong never get here: such a package does not compile, and `covel validate` says why.
    Ok(ok(&json!({
        "right": surface("right"),
        "message": surface("message"),
        "left": surface("left"),
        "diagnostics": [],
    })))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn summary(info: &PackageInfo) -> Value {
    let fragment: &Fragment = &info.package.fragment;
    let mut summary = json!({
        "id": fragment.plugin_id,
        "version": fragment.version,
        "displayName": text(&fragment.display_name),
        "description": text(&fragment.description),
        "kind": fragment.kind,
        "source": source(info.state.community),
        "hostState": info.state.host_state,
        "provides": fragment.provides.iter().map(|provide| &provide.contract).collect::<Vec<_>>(),
        "requires": fragment.requires.iter().map(|wanted| &wanted.contract).collect::<Vec<_>>(),
        "optional": fragment.optional.iter().map(|wanted| &wanted.contract).collect::<Vec<_>>(),
        "conflicts": fragment.conflicts.iter().map(|wanted| &wanted.contract).collect::<Vec<_>>(),
        "eventTopics": fragment.events.iter().map(|event| &event.topic).collect::<Vec<_>>(),
        "tools": fragment.tools,
        "tags": fragment.tags,
        "languages": languages(fragment),
        "runtimes": fragment
            .runtimes
            .iter()
            .map(|runtime| json!({ "id": runtime.id, "stage": runtime.stage, "type": runtime.kind, "trigger": runtime.trigger }))
            .collect::<Vec<_>>(),
        "userSettings": fragment.settings.iter().map(setting).collect::<Vec<_>>(),
    });
    if let Some(error) = &info.state.error {
        summary["error"] = json!(error);
    }
    summary
}

/// What there is to say of a package that says nothing sensible itself.
fn broken_summary(package: &BrokenPackage) -> Value {
    json!({
        "id": package.id,
        "displayName": package.id,
        "description": "",
        "source": source(package.community),
        "hostState": "error",
        "error": package.error,
        "runtimes": [],
        "tags": [],
        "userSettings": [],
    })
}

fn source(community: bool) -> &'static str {
    if community { "community" } else { "builtin" }
}

fn languages(fragment: &Fragment) -> BTreeSet<&str> {
    fragment.messages.iter().map(|(locale, _)| locale.as_str()).chain(["en"]).collect()
}

fn setting(setting: &SettingDecl) -> Value {
    let mut view = json!({ "key": setting.key, "type": setting.kind, "label": text(&setting.label) });
    if !setting.description.is_empty() {
        view["description"] = text(&setting.description);
    }
    if !setting.default.is_empty() {
        view["default"] = parsed(&setting.default);
    }
    for (name, bound) in [("min", setting.min), ("max", setting.max), ("step", setting.step)] {
        if let Some(bound) = bound {
            view[name] = number(bound);
        }
    }
    if !setting.options.is_empty() {
        view["options"] = setting
            .options
            .iter()
            .map(|option| json!({ "value": option.value, "label": text(&option.label) }))
            .collect();
    }
    view
}

/// Whole numbers without `.0`.
fn number(value: f64) -> Value {
    #[allow(clippy::cast_possible_truncation)] // checked: integral and small
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

fn command_of(info: &CommandInfo) -> Value {
    let mut view = command_view(&info.plugin_id, &info.declaration);
    view["commandId"] = json!(info.command_id);
    view
}

fn command_view(plugin_id: &str, command: &CommandDecl) -> Value {
    json!({
        "commandId": format!("{plugin_id}:{}", command.name),
        "pluginId": plugin_id,
        "name": command.name,
        "aliases": command.aliases,
        "description": text(&command.description),
        "arguments": command
            .arguments
            .iter()
            .map(|argument| json!({
                "name": argument.name,
                "type": argument.kind,
                "description": text(&argument.description),
                "required": argument.required,
                "variadic": argument.variadic,
                "choices": argument.choices,
            }))
            .collect::<Vec<_>>(),
    })
}
