//! `trace` and `replay`.

use std::fs;

use serde_json::json;

use super::support::{copy, covel, fixture};

/// A data folder with a session of two turns; answers the second one's id.
fn played(folder: &std::path::Path, plugins: &str) -> (String, String) {
    let data = folder.join("data").display().to_string();
    let script = folder.join("script.json");
    let reply = |text: &str| json!({ "content": text, "finishReason": "stop" });
    let mut turn = String::new();
    for text in ["A cat looks up.", "It <b>leaves</b> & is gone."] {
        fs::write(&script, json!({ "llmResponses": [reply(text)] }).to_string()).unwrap();
        let script = script.display().to_string();
        let world = fixture("worlds/yard");
        let run = covel(&[
            "turn",
            "--plugins",
            plugins,
            "--world",
            &world,
            "--data",
            &data,
            "--session",
            "s",
            "--message",
            "I <script>call</script>.",
            "--script",
            &script,
            "--json",
        ]);
        assert_eq!(run.status, 0, "{}", run.err);
        turn = run.json()["turnId"].as_str().unwrap().to_owned();
    }
    (data, turn)
}

#[test]
fn a_trace_is_a_table_a_document_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let (data, turn) = played(folder.path(), &fixture("plugins"));
    let table = covel(&["trace", "s", "last", "--data", &data]);
    assert_eq!(table.status, 0, "{}", table.err);
    for part in
        [turn.as_str(), "narrative", "teller", "counter/keeper", "slot story", "took no part", "2 kept, 0 dropped"]
    {
        assert!(table.out.contains(part), "{part} is not in\n{}", table.out);
    }
    let document = covel(&["trace", "s", &turn, "--data", &data, "--json"]).json();
    assert_eq!((&document["turnId"], &document["committed"]), (&json!(turn), &json!(true)));
    assert_eq!(document["runtimes"][0]["runtimeId"], "teller");
    assert_eq!(covel(&["trace", "s", "2", "--data", &data, "--json"]).json(), document);

    let file = folder.path().join("trace.html");
    let path = file.display().to_string();
    let run = covel(&["trace", "s", &turn, "--data", &data, "--html", &path]);
    assert_eq!((run.status, run.out.as_str()), (0, ""), "{}", run.err);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("I &lt;script&gt;call&lt;/script&gt;."), "what the player wrote is escaped");
    assert_eq!(page.matches("<script>").count(), 1, "the page's own script alone");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
    assert!(page.contains("data-row=0") && page.contains("lang=zh"));
}

#[test]
fn traces_that_are_not_there_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none").display().to_string();
    assert_eq!(covel(&["trace", "s", "last", "--data", &missing, "--json"]).status, 2);
    assert!(!folder.path().join("none").exists(), "looking makes nothing");
    let (data, _) = played(folder.path(), &fixture("plugins"));
    assert_eq!(covel(&["trace", "other", "last", "--data", &data, "--json"]).code(), "session-not-found");
    assert_eq!(covel(&["trace", "s", "t99", "--data", &data, "--json"]).code(), "trace-not-found");
    assert_eq!(covel(&["trace", "s", "99", "--data", &data, "--json"]).code(), "trace-not-found");
    let nowhere = folder.path().join("no/such/folder.html").display().to_string();
    let run = covel(&["trace", "s", "last", "--data", &data, "--html", &nowhere, "--json"]);
    assert_eq!(run.code(), "unwritable-output");
}

#[test]
fn a_replay_is_equal_until_a_package_changes() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    copy(fixture("plugins").as_ref(), &plugins);
    let plugins = plugins.display().to_string();
    let (data, turn) = played(folder.path(), &plugins);
    let world = fixture("worlds/yard");
    let replay =
        |turn: &str| covel(&["replay", "s", turn, "--data", &data, "--plugins", &plugins, "--world", &world, "--json"]);
    for turn in [turn.as_str(), "1", "last"] {
        let run = replay(turn);
        assert_eq!(run.status, 0, "{}\n{}", run.out, run.err);
        assert_eq!(run.json()["equal"], true);
    }
    let text = covel(&["replay", "s", "last", "--data", &data, "--plugins", &plugins, "--world", &world]);
    assert!(text.out.contains("the same commit"), "{}", text.out);
    assert_eq!(
        covel(&["replay", "s", "last", "--data", &data, "--plugins", &plugins, "--json"]).code(),
        "replay-world-changed"
    );

    let manifest = folder.path().join("plugins/counter/PLUGIN.md");
    let changed = fs::read_to_string(&manifest).unwrap() + "\nOne more line.\n";
    fs::write(&manifest, changed).unwrap();
    assert_eq!(replay(&turn).code(), "replay-package-changed");
}
