//! Case files: what to run, what the model says, what must come of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use covel_exec::ScriptedReply;
use covel_graph::Json;
use serde::Deserialize;
use serde_json::Value;

use crate::{error::ServerError, limits, load::read_text};

/// Where cases are looked for inside a package, in this order.
pub(super) const CASE_FILES: [&str; 2] = ["tests/runtime-cases.json", "covel.test.json"];

/// One case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Case {
    /// Name, unique in its file.
    pub(super) name: String,
    /// The runtime to start; without one a player turn runs.
    pub(super) runtime_id: Option<String>,
    /// The package tested; the file's own when absent.
    pub(super) plugin_id: Option<String>,
    /// What the player wrote.
    pub(super) message: String,
    /// Manual payload.
    pub(super) payload: Option<Json>,
    /// Player settings of the tested package.
    pub(super) user_settings: BTreeMap<String, Json>,
    /// `mock`, `live` or `both`; live ones need a provider and are left out.
    pub(super) mode: Option<Mode>,
    /// Language of the session.
    pub(super) locale: Option<String>,
    /// One model reply.
    pub(super) llm_response: Option<ScriptedReply>,
    /// Model replies in order.
    pub(super) llm_responses: Vec<ScriptedReply>,
    /// One model reply of text alone.
    pub(super) llm_content: Option<String>,
    /// One model reply of JSON.
    pub(super) llm_object: Option<Json>,
    /// Runs although what the target needs has not run.
    pub(super) ignore_upstreams: bool,
    /// A background job must follow.
    pub(super) expects_background_follower: bool,
    /// Packages beside the tested one.
    pub(super) with_plugins: Option<Vec<String>>,
    /// Files to keep; needs media, which are not there yet.
    pub(super) artifacts: Option<Json>,
    /// What runs first, in the same session; each must be committed.
    pub(super) before: Vec<Step>,
    /// What must come of it.
    pub(super) expect: Expect,
}

/// An execution before the one a case is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Step {
    /// The runtime to start; without one a player turn runs.
    pub(super) runtime_id: Option<String>,
    /// What the player wrote.
    pub(super) message: String,
    /// Manual payload.
    pub(super) payload: Option<Json>,
}

/// Where a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// With scripted replies.
    Mock,
    /// With a provider.
    Live,
    /// Both.
    Both,
}

/// Expectations; each list must be met in full, in any order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Expect {
    /// Runtimes.
    pub(super) runtime_results: Vec<ExpectRuntime>,
    /// Events.
    pub(super) events: Vec<ExpectEvent>,
    /// Log lines.
    pub(super) logs: Vec<ExpectLog>,
    /// Stored data of the tested package.
    pub(super) plugin_data: Vec<ExpectData>,
    /// Generated media; not there yet.
    pub(super) asset_generations: Option<Value>,
}

/// A runtime that must have ended so.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectRuntime {
    /// Full id, or the part after the package's id.
    pub(super) runtime_id: String,
    /// `success skipped failed suspended`.
    #[serde(default)]
    pub(super) status: Option<String>,
    /// Part of the error's message, its code, or the skip reason.
    #[serde(default)]
    pub(super) error_includes: Option<String>,
    /// Parts of the output: an object matches when each of its fields does.
    #[serde(default)]
    pub(super) output: Option<Value>,
}

/// An event that must have been emitted.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ExpectEvent {
    /// By topic.
    Topic(String),
    /// By topic and more.
    Detailed(ExpectEventDetail),
}

/// See [`ExpectEvent`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectEventDetail {
    /// Topic.
    pub(super) topic: String,
    /// Parts of the payload.
    #[serde(default)]
    pub(super) data: Option<Value>,
    /// Emitting package.
    #[serde(default)]
    pub(super) plugin_id: Option<String>,
}

/// A line that must have been logged.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ExpectLog {
    /// Part of it.
    Includes(String),
    /// Part of it, and its level.
    Detailed(ExpectLogDetail),
}

/// See [`ExpectLog`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectLogDetail {
    /// Level.
    #[serde(default)]
    pub(super) level: Option<String>,
    /// Part of the line.
    #[serde(alias = "message", alias = "includes")]
    pub(super) message_includes: String,
}

/// A record that must be stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExpectData {
    /// Namespace.
    pub(super) namespace: String,
    /// Key; any when absent.
    #[serde(default)]
    pub(super) key: Option<String>,
    /// Value of its field `status`.
    #[serde(default)]
    pub(super) status: Option<String>,
    /// A field (dot path) it must have.
    #[serde(default)]
    pub(super) field: Option<String>,
    /// Parts of the field's value, or of the record's when no field is named.
    #[serde(default, alias = "equals")]
    pub(super) value: Option<Value>,
    /// The record must not be there.
    #[serde(default)]
    pub(super) absent: bool,
}

/// The cases of a package and the file they are from; none when it has no such file.
///
/// # Errors
/// When the file is not a list of cases, or two have one name.
pub(super) fn read(package: &Path) -> Result<Option<(PathBuf, Vec<Case>)>, ServerError> {
    let Some(path) = CASE_FILES.iter().map(|file| package.join(file)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let text = read_text(&path)?;
    let cases = parse(&text).map_err(|message| ServerError::Cases { path: path.clone(), message })?;
    Ok(Some((path, cases)))
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match (object.remove("cases"), object.keys().next()) {
            (_, Some(other)) => return Err(format!("unknown field `{other}`; expected `cases`")),
            (Some(Value::Array(list)), None) => list,
            _ => return Err("`cases` must be a list".to_owned()),
        },
        _ => return Err("it must be a list of cases or an object with `cases`".to_owned()),
    };
    if list.is_empty() {
        return Err("it holds no case".to_owned());
    }
    if list.len() > limits::MAX_CASES {
        return Err(format!("it holds {} cases; at most {} are accepted", list.len(), limits::MAX_CASES));
    }
    let mut cases: Vec<Case> = Vec::new();
    for (place, value) in list.into_iter().enumerate() {
        let case: Case = serde_json::from_value(value).map_err(|error| format!("case {place}: {error}"))?;
        if case.name.trim().is_empty() {
            return Err(format!("case {place}: `name` is missing"));
        }
        if cases.iter().any(|earlier| earlier.name == case.name) {
            return Err(format!("case {place}: the name {:?} is taken by an earlier case", case.name));
        }
        if case.before.len() > limits::MAX_CASE_STEPS {
            return Err(format!("case {place}: `before` holds at most {} steps", limits::MAX_CASE_STEPS));
        }
        cases.push(case);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_an_object_are_read() {
        let list =
            r#"[{"name": "a", "runtimeId": "p/r", "expect": {"events": ["x.y", {"topic": "x.z", "data": {"a": 1}}]}}]"#;
        assert_eq!(parse(list).unwrap()[0].expect.events.len(), 2);
        assert_eq!(parse(r#"{"cases": [{"name": "a"}]}"#).unwrap().len(), 1);
    }

    #[test]
    fn steps_before_a_case_are_few() {
        let steps = |count: usize| {
            parse(&format!(r#"[{{"name": "a", "before": [{}]}}]"#, vec![r#"{"message": "on"}"#; count].join(",")))
        };
        assert_eq!(steps(limits::MAX_CASE_STEPS).unwrap()[0].before.len(), limits::MAX_CASE_STEPS);
        assert!(steps(limits::MAX_CASE_STEPS + 1).unwrap_err().contains("at most"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("[", "EOF"),
            ("3", "list of cases"),
            ("[]", "no case"),
            (r#"{"cases": 1}"#, "must be a list"),
            (r#"{"cases": [], "more": 1}"#, "more"),
            (r#"[{"runtimeId": "p"}]"#, "name"),
            (r#"[{"name": "a"}, {"name": "a"}]"#, "taken"),
            (r#"[{"name": "a", "expects": {}}]"#, "expects"),
            (r#"[{"name": "a", "expect": {"pluginData": [{"key": "k"}]}}]"#, "namespace"),
            (r#"[{"name": "a", "before": [{"runtime": "x"}]}]"#, "runtime"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
