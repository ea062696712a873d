//! `turn --wait-jobs` and `jobs`: what a turn leaves for later, and what became of it.

use std::{fs, path::Path};

use serde_json::json;

use super::support::covel;

/// A package whose every turn leaves one job, which fails when the player says `no`.
fn bell(folder: &Path) -> String {
    let package = folder.join("plugins/bell");
    for (path, text) in [
        (
            "PLUGIN.md",
            "---\nid: bell\nkind: plugin\ndescription: A bell.\ncontributes:\n  events:\n    - { topic: bell.rang, schema: ./any.json, description: Rang. }\n---\n",
        ),
        ("any.json", "{}"),
        (
            "runtimes/ring/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/ring/h.js",
            "export default async () => ({ outcome: 'success', effects: { events: [{ topic: 'bell.rang', data: {} }] } });\n",
        ),
        (
            "runtimes/echo/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: bell.rang }, manual: { execution: background } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/echo/h.js",
            "export default async (ctx) => { if (ctx.playerMessage === 'no') throw new Error('no echo'); await ctx.pluginData.set('log', String(ctx.logicalTurn), true); return { outcome: 'success' }; };\n",
        ),
    ] {
        let path = package.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder.join("plugins").display().to_string()
}

#[test]
fn a_turn_leaves_its_jobs_or_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = bell(folder.path());
    let data = folder.path().join("data").display().to_string();
    let turn = |message: &str, more: &[&str]| {
        let arguments = ["turn", "--plugins", &plugins, "--data", &data, "--session", "s", "--message", message];
        covel(&[&arguments[..], more].concat())
    };
    let left = turn("yes", &["--json"]);
    assert_eq!(left.status, 0, "{}{}", left.out, left.err);
    let left = left.json();
    assert_eq!((&left["jobs"][0]["status"], &left["jobs"][0]["runtimeId"]), (&json!("queued"), &json!("bell/echo")));
    let list = || covel(&["jobs", "s", "--data", &data, "--json"]).json();
    assert_eq!(
        (list()[0]["status"].clone(), list()[0]["jobId"].clone()),
        (json!("queued"), left["jobs"][0]["jobId"].clone())
    );

    // The next turn that waits runs what the first one left, too.
    let waited = turn("yes", &["--wait-jobs", "--json"]);
    assert_eq!(waited.status, 0, "{}{}", waited.out, waited.err);
    assert_eq!(waited.json()["jobs"][0]["status"], json!("succeeded"));
    let statuses: Vec<_> = list().as_array().unwrap().iter().map(|job| job["status"].clone()).collect();
    assert_eq!(statuses, [json!("succeeded"), json!("succeeded")]);

    let failed = turn("no", &["--wait-jobs"]);
    assert_eq!(failed.status, 1, "{}{}", failed.out, failed.err);
    assert!(failed.out.contains("bell/echo failed"), "{}", failed.out);
    let text = covel(&["jobs", "s", "--data", &data]).out;
    assert!(text.lines().last().unwrap().contains("no echo"), "{text}");
    assert_eq!(covel(&["jobs", "nobody", "--data", &data, "--json"]).code(), "session-not-found");
    let nowhere = folder.path().join("nowhere").display().to_string();
    assert_eq!(covel(&["jobs", "s", "--data", &nowhere, "--json"]).status, 2);
    assert!(!Path::new(&nowhere).exists(), "reading makes no store");
}
