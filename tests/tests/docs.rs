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

/// The walk-through: commands of ```sh run``` blocks, and files of `edit=` blocks, in their order.
#[test]
fn the_walk_through_of_the_authors_guide_works() {
    let guide = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/authors.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut lines = guide.lines();
    let (mut commands, mut edits) = (0, 0);
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some((_, file)) = info.split_once("edit=") {
            let path = folder.path().join(file);
            assert!(path.is_file(), "{file} is not there to be changed");
            fs::write(path, body.join("\n")).unwrap();
            edits += 1;
        } else if info == "sh run" {
            for line in body {
                // Quoted text is one word; the package is in the folder of this test.
                let make = line.starts_with("covel new");
                let mut words: Vec<String> = Vec::new();
                for (at, part) in line.split('"').enumerate() {
                    if at % 2 == 1 {
                        words.push(part.to_owned());
                        continue;
                    }
                    for word in part.split_whitespace() {
                        let is_package = word == "tide-clock" && !make;
                        words.push(if is_package {
                            folder.path().join(word).display().to_string()
                        } else {
                            word.to_owned()
                        });
                    }
                }
                if make {
                    words.extend(["--dir".to_owned(), folder.path().display().to_string()]);
                }
                let (mut out, mut err) = (Vec::new(), Vec::new());
                let logs = covel_server::cli::logging::Logs::default();
                let mut streams = covel_server::cli::Streams { out: &mut out, err: &mut err, logs: &logs };
                let status = covel_server::cli::run(words.into_iter().map(Into::into), &mut streams);
                let text = [out, err].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
                assert_eq!(status, 0, "{line}\n{text}");
                commands += 1;
            }
        }
    }
    assert_eq!((commands, edits), (5, 2));
}
