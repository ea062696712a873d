//! UI specs: JSON files that describe panels. Checked lightly; a bad one is left out with a warning, so that it
//! takes no other panel with it.

use serde_json::Value;

use super::source::Context;
use crate::{
    files::resolve,
    fragment::{Fragment, UiDecl},
    limits::{MAX_DOCUMENT_DEPTH, MAX_WEBVIEW_BYTES},
    yaml::Node,
};

/// Reads the specs of `contributes.ui`, webview HTML inlined. UIP-1, UIP-5
pub(super) fn read(context: &mut Context<'_>, contributes: &Node, fragment: &mut Fragment) {
    let Some(node) = contributes.get("ui") else {
        return;
    };
    for surface in ["right", "message", "left"] {
        for (place, item) in node.get(surface).map(Node::items).unwrap_or_default().iter().enumerate() {
            let path = format!("contributes.ui.{surface}[{place}]");
            let Some((file, _, mut spec)) = context.json_at("", item, &path) else {
                continue;
            };
            match check(context, &file, &mut spec) {
                Ok(()) => {
                    let spec = spec.to_string();
                    fragment.ui.push(UiDecl { surface: surface.to_owned(), path: file, spec });
                }
                Err(message) => {
                    let help = "the panel is left out; the rest of the package is used";
                    context.warning_help("ui-spec-invalid", item.at, &path, format!("{file}: {message}"), help);
                }
            }
        }
    }
}

fn check(context: &mut Context<'_>, file: &str, spec: &mut Value) -> Result<(), String> {
    let Value::Object(map) = spec else {
        return Err("a UI spec is a JSON object".into());
    };
    if map.contains_key("_componentPath") {
        return Err("`_componentPath` is not accepted".into());
    }
    if let Some(version) = map.get("specVersion")
        && version.as_u64() != Some(1)
    {
        return Err(format!("`specVersion` {version} is not known; write 1 or leave it out"));
    }
    if let Some(surfaces) = map.get("surfaces") {
        let known = |one: &Value| matches!(one.as_str(), Some("panel" | "stage"));
        if !surfaces.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(known)) {
            return Err("`surfaces` is a non-empty list of `panel` and `stage`".into());
        }
    }
    match (map.contains_key("view"), map.contains_key("webview")) {
        (true, true) => return Err("`view` and `webview` exclude each other".into()),
        (false, false) => return Err("exactly one of `view` and `webview` is needed".into()),
        (true, false) if depth(&map["view"]) > MAX_DOCUMENT_DEPTH => {
            return Err(format!("`view` is nested more than {MAX_DOCUMENT_DEPTH} deep"));
        }
        _ => {}
    }
    if let Some(webview) = map.get_mut("webview") {
        inline(context, file, webview)?;
    }
    Ok(())
}

/// Puts the HTML in the place of `entry`.
fn inline(context: &mut Context<'_>, file: &str, webview: &mut Value) -> Result<(), String> {
    let Value::Object(map) = webview else {
        return Err("`webview` is an object with `entry`".into());
    };
    let Some(entry) = map.get("entry").and_then(Value::as_str) else {
        return Err("`webview.entry` names an HTML file".into());
    };
    if !entry.to_ascii_lowercase().ends_with(".html") {
        return Err("`webview.entry` ends in .html".into());
    }
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path =
        resolve(folder, entry).map_err(|_| format!("`webview.entry` `{entry}` does not stay inside the package"))?;
    let Some(html) = context.reader.text(&path, context.report) else {
        return Err(format!("there is no file `{path}` in the package"));
    };
    if html.len() as u64 > MAX_WEBVIEW_BYTES {
        return Err(format!("`{path}` has {} bytes; at most {MAX_WEBVIEW_BYTES} are accepted", html.len()));
    }
    map.remove("entry");
    map.insert("html".to_owned(), Value::String(html));
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
