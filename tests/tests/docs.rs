//! The examples of the authors' guide compile and play. (Those of the embedding guide are doc tests of this crate.)
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use covel_exec::{DataFilter, Engine, EngineOptions, ExecutionRequest, NewSession, ScriptedGateway};
use covel_graph::package::{Discovery, compile_in_memory};
use serde_json::json;

/// Files of a guide's fenced blocks with `file=package/path`, by package.
fn packages_of(guide: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(guide);
    let text = fs::read_to_string(path).unwrap();
    let mut packages: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(file) = line.strip_prefix("```").and_then(|info| info.split_once("file=")).map(|(_, file)| file)
        else {
            continue;
        };
        let (package, name) = file.split_once('/').unwrap();
        let body: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
        packages.entry(package.to_owned()).or_default().push((name.to_owned(), body));
    }
    packages
}

#[tokio::test(flavor = "multi_thread")]
async fn the_packages_of_the_authors_guide_compile_without_a_warning_and_play() {
    let mut compiled = Vec::new();
    for (id, files) in packages_of("authors.md") {
        let files: Vec<(&str, &str)> = files.iter().map(|(name, body)| (name.as_str(), body.as_str())).collect();
        let package = compile_in_memory(&files, Discovery::Builtin);
        assert!(package.diagnostics.is_empty(), "{id}: {:?}", package.diagnostics);
        compiled.push(package.package.unwrap());
    }
    assert_eq!(compiled.len(), 3);
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::new(Vec::new())));
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    for state in engine.publish(compiled).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    let session = engine.create_session(NewSession::default()).await.unwrap().id;
    for n in 1..=2 {
        let turn = engine.execute(ExecutionRequest::player(&session, "hello"), None).await.unwrap();
        assert!(turn.committed, "{turn:#?}");
        let output = |id: &str| turn.runtimes.iter().find(|row| row.runtime_id == id).unwrap().output.clone().unwrap();
        assert_eq!(*output("greeter").value(), json!({"text": format!("Hello, turn {n}"), "n": n}));
        assert_eq!(*output("listener").value(), json!({"n": n}));
        assert_eq!(*output("gatekeeper").value(), json!({"met": n}));
    }
    let heard = engine.data(&session, DataFilter { plugin: Some("listener".into()), ..DataFilter::default() }).unwrap();
    assert_eq!(heard.len(), 2);
}
