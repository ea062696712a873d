//! `turn`, `plan`, `validate`, `data`: what they print and how they end.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::support::{copy, covel, fixture, shipped};

fn script(folder: &std::path::Path, replies: &Value) -> String {
    let path = folder.join("script.json");
    fs::write(&path, replies.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn a_turn_prints_one_document_with_setup_and_story() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        script(folder.path(), &json!({ "llmResponses": [{ "content": "A cat looks up.", "finishReason": "stop" }] }));
    let data = folder.path().join("data").display().to_string();
    let (plugins, world) = (fixture("plugins"), fixture("worlds/yard"));
    let run = covel(&[
        "turn",
        "--plugins",
        &plugins,
        "--world",
        &world,
        "--data",
        &data,
        "--session",
        "s",
        "--message",
        "I call.",
        "--seed",
        "one",
        "--set",
        "counter.step=2",
        "--script",
        &script,
        "--json",
    ]);
    assert_eq!(run.status, 0, "{}", run.err);
    let document = run.json();
    assert_eq!(
        (&document["sessionId"], &document["committed"], &document["narrative"]),
        (&json!("s"), &json!(true), &json!("A cat looks up."))
    );
    assert!(document.get("error").is_none());
    let rows: Vec<(&str, &str, u64, &str)> = document["runtimes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert!(row["durationMicros"].is_u64() && row["readsFrom"].is_array() && row["pluginId"].is_string());
            (
                row["runtimeId"].as_str().unwrap(),
                row["stage"].as_str().unwrap(),
                row["layer"].as_u64().unwrap(),
                row["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(rows, [("teller", "narrative", 0, "success"), ("counter/keeper", "post-turn", 0, "success")]);
    assert_eq!(
        document["events"],
        json!([{ "topic": "counter.counted", "data": { "n": 2 }, "pluginId": "counter", "runtimeId": "counter/keeper", "depth": 1 }])
    );
    for name in ["isolated", "operations", "jobs"] {
        assert_eq!(document[name], json!([]), "{name}");
    }
    let setup = &document["setup"];
    assert_eq!((&setup["committed"], &setup["runtimes"][0]["runtimeId"]), (&json!(true), &json!("counter/opener")));
    // What plugins log is on standard error, never in the document.
    assert!(!run.out.contains("counted to"));

    let again = covel(&[
        "turn",
        "--plugins",
        &plugins,
        "--world",
        &world,
        "--data",
        &data,
        "--session",
        "s",
        "--script",
        &script,
        "--json",
    ]);
    let document = again.json();
    assert!(document.get("setup").is_none(), "setup runs once");
    assert_eq!(document["logicalTurn"], 2);

    let rows = covel(&["data", "--data", &data, "--session", "s", "--json"]);
    assert_eq!(rows.status, 0, "{}", rows.err);
    let version = rows.json()[0]["version"].clone();
    assert_eq!(
        rows.json(),
        json!([{ "pluginId": "counter", "namespace": "counts", "key": "turns", "value": { "n": 4 }, "version": version }])
    );
    for (filter, count) in [
        (["--plugin", "counter"], 1),
        (["--plugin", "teller"], 0),
        (["--namespace", "counts"], 1),
        (["--namespace", "none"], 0),
    ] {
        let rows = covel(&["data", "--data", &data, "--session", "s", "--json", filter[0], filter[1]]);
        assert_eq!(rows.json().as_array().unwrap().len(), count, "{filter:?}");
    }
    assert_eq!(covel(&["data", "--data", &data, "--session", "none", "--json"]).code(), "session-not-found");
    let missing = folder.path().join("missing").display().to_string();
    assert_eq!(covel(&["data", "--data", &missing, "--session", "s", "--json"]).code(), "unreadable-input");
    assert!(!folder.path().join("missing").exists(), "reading makes nothing");
}

#[test]
fn a_turn_that_does_not_commit_prints_its_document_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), &json!([{ "error": "no" }, { "error": "no" }, { "error": "no" }]));
    let run = covel(&["turn", "--plugins", &fixture("plugins"), "--message", "Hello", "--script", &script, "--json"]);
    assert_eq!(run.status, 1, "{}", run.err);
    let document = run.json();
    assert_eq!(document["committed"], false);
    assert!(document["error"]["code"].is_string() && document["error"]["message"].is_string());
    let teller = document["runtimes"].as_array().unwrap().iter().find(|row| row["runtimeId"] == "teller").unwrap();
    assert_eq!(teller["status"], "failed");
    assert!(teller["error"]["code"].is_string());
}

#[test]
fn the_offline_storyteller_plays_the_shipped_packages_the_same_for_the_same_seed() {
    let plugins = shipped();
    let world = plugins.join("worlds");
    let turn = |seed: &str| {
        let run = covel(&[
            "turn",
            "--plugins",
            &plugins.display().to_string(),
            "--world",
            &world.display().to_string(),
            "--message",
            "I look around.",
            "--session",
            "s",
            "--seed",
            seed,
            "--json",
        ]);
        assert_eq!(run.status, 0, "{}\n{}", run.out, run.err);
        run.json()
    };
    let one = turn("one");
    assert!(one["narrative"].as_str().unwrap().len() > 200);
    let stages: std::collections::BTreeSet<&str> = one["runtimes"]
        .as_array()
        .unwrap()
        .iter()
        .chain(one["setup"]["runtimes"].as_array().unwrap())
        .map(|row| row["stage"].as_str().unwrap())
        .collect();
    for stage in ["setup", "pre-turn", "narrative", "post-turn", "audit"] {
        assert!(stages.contains(stage), "{stage} is missing from {stages:?}");
    }
    assert_eq!(turn("one")["narrative"], one["narrative"]);
    assert_ne!(turn("two")["narrative"], one["narrative"]);
}

#[test]
fn what_cannot_be_used_ends_with_2_and_an_error_document() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    let missing = folder.path().join("missing").display().to_string();
    let bad_script = script(folder.path(), &json!({ "replies": [] }));
    let plugins = fixture("plugins");
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["turn", "--json"], "usage"),
        (vec!["turn", "--plugins", &missing, "--json"], "unreadable-input"),
        (vec!["turn", "--plugins", &empty, "--json"], "no-packages"),
        (vec!["turn", "--plugins", &plugins, "--world", &empty, "--json"], "unreadable-input"),
        (vec!["turn", "--plugins", &plugins, "--enable", "none", "--json"], "usage"),
        (vec!["turn", "--plugins", &plugins, "--set", "counter", "--json"], "usage"),
        (vec!["turn", "--plugins", &plugins, "--script", &missing, "--json"], "unreadable-input"),
        (vec!["turn", "--plugins", &plugins, "--script", &bad_script, "--json"], "invalid-script"),
        (vec!["turn", "--plugins", &plugins, "--session", "../x", "--json"], "invalid-request"),
        (vec!["turn", "--plugins", &plugins, "--llm", &missing, "--json"], "invalid-models"),
        (vec!["turn", "--plugins", &plugins, "--unknown", "--json"], "usage"),
        (vec!["plan", "--plugins", &plugins, "--format", "picture", "--json"], "usage"),
        (vec!["plan", "--json"], "usage"),
        (vec!["validate", "--json"], "usage"),
        (vec!["validate", &missing, "--json"], "unreadable-input"),
        (vec!["validate", &empty, "--json"], "no-packages"),
        (vec!["serve", "--config", &missing, "--json"], "unreadable-input"),
        (vec!["test-runtime", "none", "--json"], "usage"),
        (vec!["test-runtime", "none", "--plugins-dir", &plugins, "--json"], "usage"),
        (vec!["nothing", "--json"], "usage"),
    ];
    for (arguments, code) in cases {
        assert_eq!(covel(&arguments).code(), code, "{arguments:?}");
    }
    // Without --json the same is said to people, and nothing is printed.
    let run = covel(&["turn", "--plugins", &missing]);
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    assert!(run.err.contains("missing"), "{}", run.err);
}

#[test]
fn a_broken_package_is_named_with_file_and_line() {
    let broken = fixture("broken");
    let run = covel(&["turn", "--plugins", &broken, "--json"]);
    assert_eq!(run.status, 2);
    let error = &run.json()["error"];
    let first = &error["diagnostics"][0];
    assert_eq!(first["line"], 7, "{error}");
    assert!(first["file"].as_str().unwrap().ends_with("torn/PLUGIN.md"));
    assert!(error["message"].as_str().unwrap().contains("PLUGIN.md:7:"), "{error}");
    assert_eq!(error["code"], first["code"]);

    let run = covel(&["validate", &broken, "--json"]);
    assert_eq!(run.status, 1);
    let document = run.json();
    assert_eq!(document["ok"], false);
    let found = &document["diagnostics"][0];
    assert_eq!((&found["severity"], &found["line"], &found["pluginId"]), (&json!("error"), &json!(7), &json!("torn")));
    assert!(found["column"].is_u64() && found["code"].is_string() && found["message"].is_string());
    // People see the line, with a mark under the place.
    let run = covel(&["validate", &broken]);
    let lines: Vec<&str> = run.out.lines().collect();
    let shown = lines.iter().position(|line| line.starts_with(" 7 | ")).unwrap_or_else(|| panic!("{}", run.out));
    assert!(lines[shown + 1].trim_start().starts_with("| ") && lines[shown + 1].ends_with('^'), "{}", run.out);
}

#[test]
fn what_is_wrong_between_packages_is_named_with_its_file_too() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["one", "two"] {
        let dir = folder.path().join(id);
        fs::create_dir(&dir).unwrap();
        let text = format!(
            "---\nid: {id}\nkind: plugin\ndescription: A package.\nruntime:\n  type: agent\n  schedule: {{ trigger: {{ type: event, topic: nobody.says }} }}\n---\n"
        );
        fs::write(dir.join("PLUGIN.md"), text).unwrap();
    }
    let document = covel(&["validate", &folder.path().display().to_string(), "--json"]).json();
    let files: Vec<&str> =
        document["diagnostics"].as_array().unwrap().iter().map(|found| found["file"].as_str().unwrap()).collect();
    assert_eq!(files.len(), 2, "{document}");
    assert!(files[0].ends_with("one/PLUGIN.md") && files[1].ends_with("two/PLUGIN.md"), "{files:?}");
}

#[test]
fn the_shipped_packages_and_worlds_are_valid() {
    let run = covel(&[
        "validate",
        &shipped().display().to_string(),
        &shipped().join("worlds").display().to_string(),
        "--json",
    ]);
    assert_eq!(run.status, 0, "{}", run.out);
    let document = run.json();
    assert_eq!((&document["ok"], &document["diagnostics"]), (&json!(true), &json!([])));
}

#[test]
fn a_plan_is_printed_in_four_forms() {
    let plugins = fixture("plugins");
    let plan = |format: &str| {
        let run = covel(&["plan", "--plugins", &plugins, "--format", format]);
        assert_eq!(run.status, 0, "{}", run.err);
        run
    };
    let document = plan("json").json();
    assert_eq!(document["digest"].as_str().unwrap().len(), 64);
    let stages: Vec<&str> =
        document["stages"].as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["setup", "pre-turn", "narrative", "post-turn", "audit"]);
    assert_eq!(document["stages"][2]["layers"], json!([["teller"]]));
    for name in ["edges", "subscriptions", "diagnostics"] {
        assert!(document[name].is_array(), "{name}");
    }
    let edge = &document["edges"][0];
    assert!(
        edge["from"].is_string() && edge["to"].is_string() && edge["kind"].is_string() && edge["line"].is_u64(),
        "{edge}"
    );
    assert_eq!(covel(&["plan", "--plugins", &plugins, "--json"]).json(), document);
    assert!(plan("text").out.contains("teller"));
    assert!(plan("mermaid").out.contains("flowchart") || plan("mermaid").out.contains("graph"));
    assert!(plan("dot").out.contains("digraph"));
    let only = covel(&["plan", "--plugins", &plugins, "--enable", "teller", "--json"]).json();
    assert_ne!(only["digest"], document["digest"]);
}

#[test]
fn community_code_runs_only_when_it_is_approved() {
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), &json!([{ "content": "Quiet." }]));
    let (trusted, community) = (fixture("plugins/teller"), fixture("plugins/counter"));
    let base = ["turn", "--plugins", &trusted, "--community", &community, "--script", &script, "--json"];
    let ran = |extra: &[&str]| {
        let run = covel(&[&base[..], extra].concat());
        assert_eq!(run.status, 0, "{}\n{}", run.out, run.err);
        run.json()["runtimes"].to_string().contains("counter/keeper")
    };
    assert!(!ran(&[]));
    assert!(ran(&["--approve", "counter"]));
    let run = covel(&["turn", "--plugins", &trusted, "--community", &trusted, "--json"]);
    assert_eq!(run.code(), "duplicate-plugin", "a community package takes nobody's place");
}

#[test]
fn a_runtime_of_a_plan_is_explained() {
    let plugins = fixture("plugins");
    let run = covel(&["plan", "--plugins", &plugins, "--why", "counter/keeper", "--json"]);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    let document = run.json();
    assert_eq!((&document["runtimeId"], &document["stage"]), (&json!("counter/keeper"), &json!("post-turn")));
    let waits = document["waitsFor"].to_string();
    assert!(waits.contains("teller") && waits.contains("RUNTIME.md:"), "{document}");
    let teller = covel(&["plan", "--plugins", &plugins, "--why", "teller", "--json"]).json();
    assert_eq!(teller["awaitedBy"][0]["to"], "counter/keeper", "{teller}");
    let text = covel(&["plan", "--plugins", &plugins, "--why", "teller"]).out;
    assert!(text.contains("every turn") && text.contains("counter/keeper"), "{text}");
    let run = covel(&["plan", "--plugins", &plugins, "--why", "keeper", "--json"]);
    assert_eq!(run.code(), "usage");
    assert!(run.out.contains("counter/keeper"), "it says which there are: {}", run.out);
}

#[test]
fn scene_material_of_worlds_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("yard");
    copy(std::path::Path::new(&fixture("worlds/yard")), &world);
    fs::create_dir(world.join("scenes")).unwrap();
    fs::write(
        world.join("scenes/yard.yaml"),
        "scenes:\n  - id: yard\n    opening: [\"A yard of grey stones, wet with rain.\"]\n",
    )
    .unwrap();
    let world = world.display().to_string();
    let run = covel(&["validate", &world, "--json"]);
    assert_eq!(run.status, 1, "{}{}", run.out, run.err);
    let document = run.json();
    let found = &document["diagnostics"][0];
    assert_eq!((&found["code"], &found["severity"]), (&json!("scenes-incomplete"), &json!("error")));
    assert!(found["message"].as_str().unwrap().contains("title"), "{found}");
    assert!(found["file"].as_str().unwrap().ends_with("scenes/yard.yaml"), "{found}");
    assert_eq!((&found["line"], &found["column"]), (&json!(2), &json!(5)), "{found}");

    // A beat is found inside its scene, in whichever file that is.
    fs::write(
        Path::new(&world).join("scenes/yard.yaml"),
        "scenes:\n  - id: yard\n    title: The yard\n    opening: [\"A yard of grey stones.\"]\n    beats:\n      - id: one\n        prose: [\"The {colour} rain falls on the stones of the old yard.\"]\n",
    )
    .unwrap();
    let document = covel(&["validate", &world, "--json"]).json();
    let found = &document["diagnostics"][0];
    assert_eq!((&found["code"], &found["line"]), (&json!("scenes-slot-unknown"), &json!(6)), "{found}");
}

/// A world's values are checked against the settings of the packages beside it, each at its line.
#[test]
fn settings_of_worlds_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("dice");
    fs::create_dir(&package).unwrap();
    fs::write(
        package.join("PLUGIN.md"),
        "---\nid: dice\nkind: plugin\ndescription: Dice.\ncontributes:\n  settings:\n    - { key: sides, type: integer, label: Sides, default: 6, min: 2, max: 100 }\n---\n",
    )
    .unwrap();
    let world = folder.path().join("worlds/isle");
    fs::create_dir_all(&world).unwrap();
    fs::write(
        world.join("world.yaml"),
        "id: isle\nname: Isle\npluginSettings:\n  dice:\n    sides: many\n    colour: red\n  absent-package:\n    x: 1\n",
    )
    .unwrap();
    let [plugins, worlds] =
        [folder.path().join("dice"), folder.path().join("worlds")].map(|path| path.display().to_string());
    let run = covel(&["validate", &plugins, &worlds, "--json"]);
    assert_eq!(run.status, 1, "{}{}", run.out, run.err);
    let document = run.json();
    let found: Vec<_> = document["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["code"] == "world-setting-invalid")
        .collect();
    assert_eq!(found.len(), 2, "{document}");
    assert_eq!((&found[0]["line"], &found[1]["line"]), (&json!(5), &json!(6)), "{document}");
    assert!(found[0]["message"].as_str().unwrap().contains("a number is accepted"), "{document}");
    assert!(found[1]["message"].as_str().unwrap().contains("there are: sides"), "{document}");
}

#[test]
fn warnings_can_be_made_errors() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("counter");
    copy(std::path::Path::new(&fixture("plugins/counter")), &package);
    let manifest = package.join("runtimes/keeper/RUNTIME.md");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("type: auto", "type: auto, interval: 2")).unwrap();
    let folder = folder.path().display().to_string();
    let plain = covel(&["validate", &folder, "--json"]);
    let strict = covel(&["validate", &folder, "--warnings-as-errors", "--json"]);
    assert_eq!(plain.status, 0, "{}", plain.out);
    assert_eq!(plain.json()["diagnostics"][0]["severity"], "warning", "{}", plain.out);
    assert_eq!(strict.status, 1);
    let document = strict.json();
    assert_eq!((&document["ok"], &document["diagnostics"][0]["severity"]), (&json!(false), &json!("error")));
    let sound = covel(&["validate", &fixture("plugins"), "--warnings-as-errors"]);
    assert_eq!(sound.status, 0, "{}", sound.out);
}

#[test]
fn the_schemas_of_manifests_are_printed_for_editors() {
    for (kind, field) in [("plugin", "contributes"), ("runtime", "schedule")] {
        let run = covel(&["validate", "--schema", kind]);
        assert_eq!(run.status, 0, "{}", run.err);
        let schema = run.json();
        assert_eq!(schema["type"], "object");
        assert!(schema["$schema"].is_string());
        assert!(schema["properties"].get(field).is_some(), "{kind} {field}");
    }
    assert_eq!(covel(&["validate", "--schema", "other", "--json"]).code(), "usage");
    assert_eq!(covel(&["validate", "--schema", "plugin", ".", "--json"]).code(), "usage");
}

#[test]
fn two_folders_of_packages_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (fixture("plugins"), folder.path().join("plugins"));
    copy(std::path::Path::new(&before), &after);
    let keeper = after.join("counter/runtimes/keeper");
    fs::rename(&keeper, after.join("counter/runtimes/ledger")).unwrap();
    let after = after.display().to_string();
    let run = covel(&["plan", "--diff", &before, &after, "--json"]);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    let document = run.json();
    assert_ne!(document["from"], document["to"]);
    assert_eq!(
        (&document["runtimes"]["added"], &document["runtimes"]["removed"]),
        (&json!(["counter/ledger"]), &json!(["counter/keeper"]))
    );
    let text = covel(&["plan", "--diff", &before, &after]).out;
    assert!(text.contains("counter/ledger"), "{text}");
    let same = covel(&["plan", "--diff", &before, &before, "--json"]).json();
    assert_eq!(same["from"], same["to"]);
    assert_eq!(same["runtimes"]["added"], json!([]));
    for arguments in [
        vec!["plan", "--diff", &before, "--json"],
        vec!["plan", "--diff", &before, &after, "--why", "teller", "--json"],
        vec!["plan", "--diff", &before, &after, "--plugins", &before, "--json"],
    ] {
        assert_eq!(covel(&arguments).code(), "usage", "{arguments:?}");
    }
    let broken = fixture("broken");
    let run = covel(&["plan", "--diff", &before, &broken, "--json"]);
    assert_eq!((run.status, run.json()["error"]["diagnostics"].is_array()), (2, true));
}
