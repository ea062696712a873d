//! A small stage for whole turns: packages as text, scripted models, a temporary store.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use covel_exec::{
    Engine, EngineOptions, ExecutionRequest, FixedAmbient, NewSession, RuntimeDocument, ScriptedGateway, TurnDocument,
};
use covel_graph::package::{Discovery, Package, compile_in_memory};
use serde_json::Value;

pub struct Stage {
    pub engine: Engine,
    pub folder: tempfile::TempDir,
}

/// Compiles a package from `(path, text)` files and insists that it has no errors.
pub fn package(files: &[(&str, &str)]) -> Arc<Package> {
    let compiled = compile_in_memory(files, Discovery::Builtin);
    let problems: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    compiled.package.unwrap_or_else(|| panic!("{}", problems.join("\n")))
}

/// A package of one function runtime in `stage` (empty: none), with extra front matter of package and runtime.
pub fn function(id: &str, schedule: &str, extra: &str, package_extra: &str, code: &str) -> Arc<Package> {
    let manifest = format!(
        "---\nid: {id}\nkind: plugin\ndescription: A test package.\n{package_extra}runtime:\n  type: function\n  schedule: {schedule}\n{extra}  function: {{ handler: ./handler.js, timeoutMs: 5000 }}\n---\n"
    );
    package(&[("PLUGIN.md", &manifest), ("handler.js", code)])
}

pub async fn stage(packages: Vec<Arc<Package>>, script: Value) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), script);
    for state in engine.publish(packages).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    Stage { engine, folder }
}

pub fn open(folder: &std::path::Path, script: Value) -> Engine {
    let gateway = ScriptedGateway::parse(&script.to_string()).unwrap();
    let mut options = EngineOptions::new(folder, Arc::new(gateway));
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    Engine::open(options).unwrap()
}

impl Stage {
    pub async fn session(&self) -> String {
        let new = NewSession { id: Some("s".into()), seed: Some("seed".into()), ..NewSession::default() };
        self.engine.create_session(new).await.unwrap().id
    }

    pub async fn turn(&self, session: &str, message: &str) -> TurnDocument {
        self.engine.execute(ExecutionRequest::player(session, message), None).await.unwrap()
    }

    /// Insists that these executions, run again, give the same bytes.
    pub async fn replays(&self, turns: &[&TurnDocument]) {
        for turn in turns {
            let report = self.engine.replay(&turn.session_id, &turn.turn_id).await.unwrap();
            assert!(report.equal && report.rows > 0, "{report:#?}");
        }
    }

    pub fn data(&self, session: &str) -> Vec<(String, String, String, Value)> {
        self.engine
            .data(session, covel_exec::DataFilter { hidden: true, ..Default::default() })
            .unwrap()
            .into_iter()
            .map(|row| (row.plugin_id, row.namespace, row.key, row.value.value().clone()))
            .collect()
    }
}

pub fn row<'a>(turn: &'a TurnDocument, id: &str) -> &'a RuntimeDocument {
    turn.runtimes
        .iter()
        .find(|row| row.runtime_id == id)
        .unwrap_or_else(|| panic!("{id} is not in {:#?}", turn.runtimes))
}

pub fn error_code(row: &RuntimeDocument) -> &str {
    row.error.as_ref().map_or("", |error| error.code.as_str())
}
