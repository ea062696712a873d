//! Comparing what came with what was expected.

use covel_exec::{RuntimeDocument, RuntimeStatus, TurnDocument};
use serde_json::Value;

use super::Bench;
use crate::cli::{
    cases::{Case, ExpectData, ExpectEvent, ExpectEventDetail, ExpectLog, ExpectRuntime},
    logging::LogLine,
};

/// A runtime's full id from what a case calls it.
pub(super) fn full_id(bench: &Bench<'_>, plugin: &str, name: &str) -> String {
    let packages = bench.loaded.packages();
    let known =
        |id: &str| packages.iter().flat_map(|package| package.fragment.runtimes.iter()).any(|runtime| runtime.id == id);
    let inside = format!("{plugin}/{name}");
    if !known(name) && known(&inside) { inside } else { name.to_owned() }
}

/// Everything that is not as expected, one sentence each.
pub(super) fn failures(
    case: &Case,
    plugin: &str,
    turn: &TurnDocument,
    data: &[Value],
    logs: &[LogLine],
) -> Vec<String> {
    let mut failures = Vec::new();
    let expect = &case.expect;
    let all = || turn.setup.iter().flat_map(|setup| setup.runtimes.iter()).chain(turn.runtimes.iter());
    let is = |row: &RuntimeDocument, id: &str| row.runtime_id == id || row.runtime_id == format!("{plugin}/{id}");

    for wanted in &expect.runtime_results {
        match all().find(|row| is(row, &wanted.runtime_id)) {
            None => failures.push(format!("runtime {} did not run", wanted.runtime_id)),
            Some(row) => check_runtime(wanted, row, &mut failures),
        }
    }
    // A failure nobody expected fails the case; so does a target that was skipped without anyone saying so.
    for row in all().filter(|row| row.status == RuntimeStatus::Failed) {
        if !expect.runtime_results.iter().any(|wanted| is(row, &wanted.runtime_id)) {
            failures.push(format!("runtime {} failed: {}", row.runtime_id, explain(row)));
        }
    }
    if let Some(target) = &case.runtime_id {
        let row = all().find(|row| is(row, target));
        let named = expect
            .runtime_results
            .iter()
            .any(|wanted| wanted.runtime_id == *target || row.is_some_and(|row| is(row, &wanted.runtime_id)));
        match row {
            None if !named => failures.push(format!("runtime {target} did not run")),
            Some(row) if !named && row.status == RuntimeStatus::Skipped => {
                failures.push(format!("runtime {target} was skipped: {}", explain(row)));
            }
            _ => {}
        }
    }
    let failure_expected = expect.runtime_results.iter().any(|wanted| wanted.status.as_deref() == Some("failed"));
    if !turn.committed && !failure_expected {
        let why = turn.error.as_ref().map_or_else(String::new, |error| format!(": [{}] {}", error.code, error.message));
        failures.push(format!("the execution was not committed{why}"));
    }
    for isolated in &turn.isolated {
        let expected = expect.runtime_results.iter().any(|wanted| {
            (isolated.runtime_id == wanted.runtime_id
                || isolated.runtime_id == format!("{plugin}/{}", wanted.runtime_id))
                && wanted.status.as_deref() == Some("failed")
        });
        if !expected {
            failures.push(format!(
                "runtime {} was dropped at commit: [{}] {}",
                isolated.runtime_id, isolated.error.code, isolated.error.message
            ));
        }
    }
    for wanted in &expect.events {
        check_event(wanted, turn, &mut failures);
    }
    for wanted in &expect.logs {
        check_log(wanted, logs, &mut failures);
    }
    for wanted in &expect.plugin_data {
        check_data(wanted, data, &mut failures);
    }
    if case.expects_background_follower && turn.jobs.is_empty() {
        failures.push("no background job followed".to_owned());
    }
    if expect.asset_generations.is_some() || case.artifacts.is_some() {
        failures.push("this version generates no media, so assetGenerations and artifacts cannot be met".to_owned());
    }
    failures
}

fn check_runtime(wanted: &ExpectRuntime, row: &RuntimeDocument, failures: &mut Vec<String>) {
    let status = word(row.status);
    if let Some(expected) = &wanted.status
        && expected != status
    {
        failures.push(format!("runtime {} is {status} ({}), expected {expected}", row.runtime_id, explain(row)));
    }
    if let Some(part) = &wanted.error_includes
        && !explain(row).contains(part.as_str())
    {
        failures.push(format!("runtime {}: {:?} does not include {part:?}", row.runtime_id, explain(row)));
    }
    if let Some(parts) = &wanted.output {
        let output = row.output.as_ref().map_or(Value::Null, |output| output.value().clone());
        if !includes(&output, parts) {
            failures.push(format!("runtime {}: the output {output} does not include {parts}", row.runtime_id));
        }
    }
}

fn check_event(wanted: &ExpectEvent, turn: &TurnDocument, failures: &mut Vec<String>) {
    let detail = match wanted {
        ExpectEvent::Topic(topic) => ExpectEventDetail { topic: topic.clone(), data: None, plugin_id: None },
        ExpectEvent::Detailed(detail) => detail.clone(),
    };
    let found = turn.events.iter().any(|event| {
        event.topic == detail.topic
            && detail.plugin_id.as_ref().is_none_or(|plugin| *plugin == event.plugin_id)
            && detail.data.as_ref().is_none_or(|parts| includes(event.data.value(), parts))
    });
    if !found {
        let same: Vec<&str> =
            turn.events.iter().filter(|event| event.topic == detail.topic).map(|event| event.data.text()).collect();
        failures.push(if same.is_empty() {
            format!("no event {} was emitted", detail.topic)
        } else {
            format!("no event {} is as expected; emitted: {}", detail.topic, same.join(", "))
        });
    }
}

fn check_log(wanted: &ExpectLog, logs: &[LogLine], failures: &mut Vec<String>) {
    let (level, part) = match wanted {
        ExpectLog::Includes(part) => (None, part),
        ExpectLog::Detailed(detail) => (detail.level.as_ref(), &detail.message_includes),
    };
    let found =
        logs.iter().any(|line| line.message.contains(part.as_str()) && level.is_none_or(|level| *level == line.level));
    if !found {
        failures.push(format!("nothing was logged that includes {part:?}"));
    }
}

fn check_data(wanted: &ExpectData, data: &[Value], failures: &mut Vec<String>) {
    let place = match &wanted.key {
        Some(key) => format!("{}/{key}", wanted.namespace),
        None => wanted.namespace.clone(),
    };
    let candidates: Vec<&Value> = data
        .iter()
        .filter(|row| row["namespace"] == wanted.namespace.as_str())
        .filter(|row| wanted.key.as_ref().is_none_or(|key| row["key"] == key.as_str()))
        .map(|row| &row["value"])
        .collect();
    let meets = |value: &&&Value| {
        wanted.status.as_ref().is_none_or(|status| value.get("status").is_some_and(|found| found == status.as_str()))
            && match (&wanted.field, &wanted.value) {
                (Some(field), Some(parts)) => at(value, field).is_some_and(|found| includes(found, parts)),
                (Some(field), None) => at(value, field).is_some(),
                (None, Some(parts)) => includes(value, parts),
                (None, None) => true,
            }
    };
    let found = candidates.iter().find(meets);
    match (found, wanted.absent) {
        (Some(value), true) => failures.push(format!("{place} is stored, which it should not be: {value}")),
        (None, false) if candidates.is_empty() => failures.push(format!("nothing is stored at {place}")),
        (None, false) => {
            let texts: Vec<String> = candidates.iter().map(ToString::to_string).collect();
            failures.push(format!("{place} is not as expected; stored: {}", texts.join(", ")));
        }
        _ => {}
    }
}

/// A dot path through own fields and list places.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Object(object) => object.get(part),
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Does a value have every part? Objects by field, lists in full, numbers by value.
fn includes(value: &Value, parts: &Value) -> bool {
    match (value, parts) {
        (Value::Object(object), Value::Object(wanted)) => {
            wanted.iter().all(|(name, part)| object.get(name).is_some_and(|value| includes(value, part)))
        }
        (Value::Array(list), Value::Array(wanted)) => {
            list.len() == wanted.len() && list.iter().zip(wanted).all(|(value, part)| includes(value, part))
        }
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (value, part) => value == part,
    }
}

fn explain(row: &RuntimeDocument) -> String {
    match (&row.error, &row.reason) {
        (Some(error), _) => format!("[{}] {}", error.code, error.message),
        (None, Some(reason)) => reason.clone(),
        (None, None) => word(row.status).to_owned(),
    }
}

fn word(status: RuntimeStatus) -> &'static str {
    match status {
        RuntimeStatus::Success => "success",
        RuntimeStatus::Skipped => "skipped",
        RuntimeStatus::Failed => "failed",
        RuntimeStatus::Suspended => "suspended",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_found_and_missing_ones_are_not() {
        let value = json!({ "a": { "b": [1, { "c": 2.0 }] }, "constructor": 1 });
        assert!(includes(&value, &json!({ "a": { "b": [1, { "c": 2 }] } })));
        assert!(!includes(&value, &json!({ "a": { "b": [1] } })));
        assert!(!includes(&value, &json!({ "toString": {} })));
        assert_eq!(at(&value, "a.b.1.c"), Some(&json!(2.0)));
        assert_eq!(at(&value, "constructor"), Some(&json!(1)));
        assert_eq!(at(&value, "a.b.x"), None);
    }

    #[test]
    fn stored_data_is_checked_by_key_status_and_field() {
        let data =
            [json!({ "namespace": "quests", "key": "q1", "value": { "status": "open", "steps": { "done": 1 } } })];
        let check = |text: &str| {
            let wanted: ExpectData = serde_json::from_str(text).unwrap();
            let mut failures = Vec::new();
            check_data(&wanted, &data, &mut failures);
            failures
        };
        assert!(check(r#"{"namespace": "quests"}"#).is_empty());
        assert!(check(r#"{"namespace": "quests", "key": "q1", "status": "open", "field": "steps.done"}"#).is_empty());
        assert!(check(r#"{"namespace": "quests", "field": "steps.done", "value": 1}"#).is_empty());
        assert!(check(r#"{"namespace": "quests", "key": "q2", "absent": true}"#).is_empty());
        for wrong in [
            r#"{"namespace": "constructor"}"#,
            r#"{"namespace": "quests", "key": "q2"}"#,
            r#"{"namespace": "quests", "status": "done"}"#,
            r#"{"namespace": "quests", "field": "steps.left"}"#,
            r#"{"namespace": "quests", "field": "steps.done", "value": 2}"#,
            r#"{"namespace": "quests", "absent": true}"#,
        ] {
            assert_eq!(check(wrong).len(), 1, "{wrong}");
        }
    }
}
