//! Hostile packages beside well-behaved ones: `cases/hostile.yaml` through the real engine.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecutionRequest, FixedAmbient, NewSession, RuntimeStatus, ScriptedGateway,
    TurnDocument,
};
use covel_graph::package::{Discovery, Package, compile_in_memory};
use serde::Deserialize;
use serde_json::{Value, json};

/// Deadline of a handler that is to run into it, and of any other.
const DEADLINE_MS: u64 = 250;
const AMPLE_MS: u64 = 20_000;
/// What the process may have grown by when all rows are through, beyond the first ten.
const GROWTH_LIMIT: usize = 384 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    name: String,
    does: Option<String>,
    module: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    manifest: String,
    ends: Option<String>,
    #[serde(default)]
    or: Vec<String>,
    says: Option<String>,
    load: Option<String>,
    second: Option<String>,
    #[serde(default)]
    wrecks: bool,
    #[serde(default)]
    never_calm: bool,
}

impl Row {
    fn package(&self) -> Arc<Package> {
        let deadline = if self.ends.as_deref() == Some("handler-timeout") { DEADLINE_MS } else { AMPLE_MS };
        let manifest = format!(
            "---\nid: hostile\nkind: plugin\ndescription: Hostile.\n{}runtime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./handler.js, timeoutMs: {deadline}, tools: {{ builtin: [emit-event] }} }}\n---\n",
            self.manifest
        );
        let handler = self.module.clone().unwrap_or_else(|| {
            let body = self.does.as_deref().unwrap_or("return { outcome: 'success' };");
            format!(
                "export default async (ctx) => {{\n  if (ctx.playerMessage === 'calm') return {{ outcome: 'success', value: 'calm' }};\n  {body}\n}};\n"
            )
        });
        let mut files = vec![("PLUGIN.md", manifest.as_str()), ("handler.js", handler.as_str())];
        files.extend(self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        compile(&files)
    }

    fn accepts(&self, ended: &str) -> bool {
        self.ends.as_deref() == Some(ended) || self.or.iter().any(|other| other == ended)
    }
}

fn compile(files: &[(&str, &str)]) -> Arc<Package> {
    let compiled = compile_in_memory(files, Discovery::Builtin);
    let problems: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    compiled.package.unwrap_or_else(|| panic!("{}", problems.join("\n")))
}

/// Two that answer with what they see of the language and of their own records.
fn neighbours() -> Vec<Arc<Package>> {
    const HANDLER: &str = r#"
        export default async (ctx) => {
          const before = (await ctx.pluginData.get("seen", "turns")) ?? 0;
          await ctx.pluginData.set("seen", "turns", before + 1);
          const inherited = [];
          for (const key in {}) inherited.push(key);
          for (const key in []) inherited.push(key);
          return {
            outcome: "success",
            value: {
              before, inherited,
              then: {}.then === undefined,
              outcome: ({}).outcome === undefined,
              json: JSON.stringify({ a: [1, "x", null] }),
              sorted: [3, 1, 2].sort(), map: [...new Map([[1, 2]])],
              drawn: ctx.random.int(1, 1000000),
              awaited: await Promise.resolve("yes"),
              globals: Object.getOwnPropertyNames(globalThis).length,
            },
          };
        };"#;
    let plain = |id: &str, extra: &str| {
        format!(
            "---\nid: {id}\nkind: plugin\ndescription: A neighbour.\n{extra}runtime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./handler.js }}\n---\n"
        )
    };
    let early = plain("a-neighbour", "");
    let late = plain("z-neighbour", "entry: ./entry.js\ncontributes:\n  actions: [ping]\n");
    vec![
        compile(&[("PLUGIN.md", &early), ("handler.js", HANDLER)]),
        compile(&[
            ("PLUGIN.md", &late),
            ("handler.js", HANDLER),
            ("entry.js", "export default (covel) => { covel.registerRpc('ping', () => 'pong'); };"),
        ]),
    ]
}

struct Theatre {
    engine: Engine,
    _folder: tempfile::TempDir,
}

impl Theatre {
    async fn open(packages: Vec<Arc<Package>>) -> (Self, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::parse("[]").unwrap()));
        options.ambient = Arc::new(FixedAmbient::default());
        options.durable = false;
        options.entry_limit = Duration::from_millis(400);
        let engine = Engine::open(options).unwrap();
        let mut failed = None;
        for state in engine.publish(packages).await {
            if state.plugin_id == "hostile" {
                failed = state.error;
            } else {
                assert_eq!(state.error, None, "{}", state.plugin_id);
            }
        }
        let new = NewSession { id: Some("s".into()), seed: Some("seed".into()), ..NewSession::default() };
        engine.create_session(new).await.unwrap();
        (Self { engine, _folder: folder }, failed)
    }

    async fn turn(&self, message: &str) -> TurnDocument {
        self.engine.execute(ExecutionRequest::player("s", message), None).await.unwrap()
    }

    /// What the neighbours said and stored.
    fn of_neighbours(&self, turn: &TurnDocument) -> Value {
        let rows: Vec<Value> = turn
            .runtimes
            .iter()
            .filter(|row| row.runtime_id.ends_with("neighbour"))
            .map(|row| json!([row.runtime_id, row.status, row.output, row.error]))
            .collect();
        let data: Vec<Value> = self
            .engine
            .data("s", DataFilter { hidden: true, ..DataFilter::default() })
            .unwrap()
            .into_iter()
            .filter(|row| row.plugin_id.ends_with("neighbour"))
            .map(|row| json!([row.plugin_id, row.namespace, row.key, row.value]))
            .collect();
        json!({ "committed": turn.committed, "rows": rows, "data": data })
    }
}

fn ended(turn: &TurnDocument) -> (String, String) {
    let row = turn.runtimes.iter().find(|row| row.runtime_id == "hostile").unwrap();
    match row.status {
        RuntimeStatus::Failed => {
            let error = row.error.as_ref().unwrap();
            (error.code.clone(), error.message.clone())
        }
        status => (
            format!("{status:?}").to_lowercase(),
            row.output.as_ref().map_or_else(String::new, |output| output.text().to_string()),
        ),
    }
}

/// Everything wrong with a row; empty when it holds.
async fn play(row: &Row, alone: &[Value; 3]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut packages = neighbours();
    packages.push(row.package());
    let (theatre, failed) = Theatre::open(packages).await;
    let as_told = match (&failed, &row.load) {
        (Some(message), Some(words)) => message.contains(words.as_str()),
        (None, None) => true,
        _ => false,
    };
    if !as_told {
        wrong.push(format!("publication: {failed:?}, not {:?}", row.load));
    }
    for (at, message) in ["go", "go", "calm"].into_iter().enumerate() {
        let turn = theatre.turn(message).await;
        let seen = theatre.of_neighbours(&turn);
        if seen != alone[at] {
            wrong.push(format!("turn {}: the neighbours saw {seen}\ninstead of {}", at + 1, alone[at]));
        }
        let (code, message) = ended(&turn);
        if row.load.is_some() {
            if code != "handler-load-failed" {
                wrong.push(format!("turn {}: {code} ({message}) of a package that did not load", at + 1));
            }
            continue;
        }
        match (at, &row.second) {
            (1, Some(second)) if *second != code => {
                wrong.push(format!("second turn: {code} ({message}), not {second}"))
            }
            (1, Some(_)) => {}
            (0 | 1, _) => {
                // A wrecked language is its owner's trouble from then on; the outcome still has a code.
                if !(row.accepts(&code) || (at == 1 && row.wrecks && !code.is_empty())) {
                    wrong.push(format!("turn {}: {code} ({message}), not {:?} {:?}", at + 1, row.ends, row.or));
                }
                if at == 0 && row.says.as_ref().is_some_and(|words| !message.contains(words.as_str())) {
                    wrong.push(format!("says {message:?}, not {:?}", row.says));
                }
            }
            _ => {
                if !(code == "success" || row.never_calm || row.wrecks) {
                    wrong.push(format!("asked politely: {code} ({message})"));
                }
            }
        }
    }
    theatre.engine.close().await;
    wrong
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or(0) * 1024
}

/// Invariants 4 to 6: whatever a package does, its runtime ends with a code within its limit, the process lives,
/// the neighbours' results are what they are without it, and the memory comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_packages_hurt_only_themselves() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/hostile.yaml");
    let rows: Vec<Row> = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(rows.len() >= 60);
    let only = std::env::var("HOSTILE_ROW").ok();

    let (theatre, _) = Theatre::open(neighbours()).await;
    let mut alone = Vec::new();
    for message in ["go", "go", "calm"] {
        let turn = theatre.turn(message).await;
        alone.push(theatre.of_neighbours(&turn));
    }
    let alone: [Value; 3] = alone.try_into().unwrap();

    let mut wrong = Vec::new();
    let mut early = 0;
    for (at, row) in rows.iter().enumerate() {
        if only.as_ref().is_some_and(|only| *only != row.name) {
            continue;
        }
        let begun = std::time::Instant::now();
        let found = play(row, &alone).await;
        eprintln!("{:>6} ms {:>5} MiB  {}", begun.elapsed().as_millis(), resident() / 1_048_576, row.name);
        wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", row.name)));
        if at == 10 {
            early = resident();
        }
    }
    if only.is_none() {
        let grown = resident().saturating_sub(early);
        eprintln!("{} rows; resident memory grew by {} KiB after the first ten", rows.len(), grown / 1024);
        assert!(grown < GROWTH_LIMIT, "resident memory grew by {grown} bytes");
    }
    assert!(wrong.is_empty(), "{} problems\n{}", wrong.len(), wrong.join("\n"));
}
