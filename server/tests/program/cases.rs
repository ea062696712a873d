//! `covel test-runtime`.

use std::fs;

use serde_json::json;

use super::support::{covel, fixture, shipped};

#[test]
fn the_cases_of_every_shipped_package_pass() {
    for id in
        ["narrator", "dice-check", "quest-log", "weather", "world-init", "shop", "notes-workbench", "lifecycle-probe"]
    {
        let run = covel(&["test-runtime", id, "--plugins-dir", &shipped().display().to_string(), "--json"]);
        assert_eq!(run.status, 0, "{id}: {}\n{}", run.out, run.err);
        let report = run.json();
        assert!(report["cases"].as_array().unwrap().len() > 1, "{id}");
    }
}

#[test]
fn cases_check_results_events_logs_and_data() {
    let run = covel(&["test-runtime", &fixture("plugins/counter"), "--json"]);
    assert_eq!(run.status, 0, "{}\n{}", run.out, run.err);
    let report = run.json();
    assert_eq!((&report["ok"], &report["pluginId"]), (&json!(true), &json!("counter")));
    assert_eq!(report["cases"][1]["commitStatus"], "committed");
    assert!(report["cases"][1]["logs"].to_string().contains("counted to 4"));
    assert_eq!(report["unsupportedCapabilities"], json!([{ "pluginId": "counter", "kind": "rpc", "name": "add" }]));
    let one = covel(&["test-runtime", &fixture("plugins/counter"), "--case", "the count starts", "--json"]);
    assert_eq!(one.json()["cases"].as_array().unwrap().len(), 1);
}

#[test]
fn cases_that_are_not_met_fail_with_a_sentence_each() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("counter");
    copy(fixture("plugins/counter").as_ref(), &package);
    let cases = json!([
        { "name": "wrong status", "runtimeId": "keeper", "expect": { "runtimeResults": [{ "runtimeId": "keeper", "status": "failed" }] } },
        { "name": "no such event", "runtimeId": "keeper", "expect": { "events": ["counter.stopped"] } },
        { "name": "wrong payload", "runtimeId": "keeper", "expect": { "events": [{ "topic": "counter.counted", "data": { "n": 9 } }] } },
        { "name": "no such line", "runtimeId": "keeper", "expect": { "logs": ["nothing of the kind"] } },
        { "name": "wrong value", "runtimeId": "keeper", "expect": { "pluginData": [{ "namespace": "counts", "key": "turns", "field": "n", "value": 9 }] } },
        { "name": "no such record", "runtimeId": "keeper", "expect": { "pluginData": [{ "namespace": "counts", "key": "__proto__" }] } },
        { "name": "bad setting", "runtimeId": "keeper", "userSettings": { "step": 1.5 } },
        { "name": "no media", "runtimeId": "keeper", "expect": { "assetGenerations": [] } }
    ]);
    fs::write(package.join("tests/runtime-cases.json"), cases.to_string()).unwrap();
    let run = covel(&["test-runtime", &package.display().to_string(), "--json"]);
    assert_eq!(run.status, 1, "{}", run.err);
    for case in run.json()["cases"].as_array().unwrap() {
        assert_eq!(case["ok"], false, "{case}");
        assert!(!case["failures"].as_array().unwrap().is_empty());
    }
    let text = covel(&["test-runtime", &package.display().to_string(), "--case", "wrong value"]);
    assert!(text.out.contains("FAIL wrong value") && text.out.contains("counts/turns"), "{}", text.out);

    fs::write(package.join("tests/runtime-cases.json"), r#"[{"name": "a", "expects": {}}]"#).unwrap();
    let run = covel(&["test-runtime", &package.display().to_string(), "--json"]);
    assert_eq!(run.code(), "invalid-cases");
}

/// Covers: EXA-5
#[test]
fn a_missing_companion_is_refused_before_code_runs() {
    let run = covel(&["test-runtime", &fixture("plugins/counter"), "--with-plugin", "nobody", "--json"]);
    assert_eq!(run.code(), "usage");
    let run = covel(&["test-runtime", &fixture("plugins/counter"), "--with-plugin", "teller", "--json"]);
    assert_eq!(run.status, 0, "{}\n{}", run.out, run.err);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
