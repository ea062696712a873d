//! The plugin host: cold isolates, warm calls, contexts, data, deadlines, and the same handlers under Node.js.
//! `cargo bench -p covel-benches --bench host [-- cold|calls|data|deadline|start|node]`
//!
//! Not criterion: most of this has to be seen in a fresh process, or as a distribution. Prints one table a part.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use covel_abi::{
    CallContext, CallError, CallHost, CallLimits, CallOutput, CallRequest, CallTarget, DataRow, Declared, Generation,
    GenerationSpec, HostError, HostRequest, JsHost, JsOptions, LogLevel, author::NODE_MODULES,
};
use covel_benches::engine;
use covel_graph::{
    Json, PluginId,
    package::{Discovery, Package, compile_in_memory},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const ENTRY: &str = include_str!("../handlers/entry.js");
const WARM: &str = include_str!("../handlers/warm.js");
const READ: &str = include_str!("../handlers/read.js");
const DATA: &str = include_str!("../handlers/data.js");
/// Fresh processes for figures of a first time.
const PROCESSES: usize = 7;
/// Sizes of a context's document, and its rows.
const SIZES: [(&str, usize); 3] = [("1 KB", 10), ("10 KB", 100), ("100 KB", 1_000)];
/// Parts of it that are read, per cent.
const SHARES: [u32; 3] = [0, 10, 100];

/// Answers from memory.
struct Memory(BTreeMap<String, Json>);

impl CallHost for Memory {
    fn data_get(&self, _: &str, key: &str) -> Result<Option<Json>, HostError> {
        Ok(self.0.get(key).cloned())
    }
    fn data_list(&self, _: &str) -> Result<Vec<DataRow>, HostError> {
        Ok(Vec::new())
    }
    fn data_set(&self, _: &str, _: &str, _: Json) -> Result<(), HostError> {
        Ok(())
    }
    fn data_delete(&self, _: &str, _: &str) -> Result<(), HostError> {
        Ok(())
    }
    fn data_update(&self, _: &str, _: &str, _: Json) -> Result<(), HostError> {
        Ok(())
    }
    fn random_int(&self, min: i64, _: i64) -> Result<i64, HostError> {
        Ok(min)
    }
    fn world(&self, _: &str) -> Result<Json, HostError> {
        Ok(Json::null())
    }
    fn store(&self, _: &str, _: &Json) -> Result<Json, HostError> {
        Ok(Json::null())
    }
    fn log(&self, _: LogLevel, _: &str, _: Option<&Json>) {}
    fn request(&self, _: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        async { Ok(Json::null()) }.boxed()
    }
}

fn memory() -> Arc<dyn CallHost> {
    Arc::new(Memory((0..100).map(|at| (format!("k{at}"), json!({ "n": at }).into())).collect()))
}

fn spec(id: &str, files: &[(&str, &str)]) -> GenerationSpec {
    let files: BTreeMap<String, Arc<[u8]>> =
        files.iter().map(|(path, text)| ((*path).to_owned(), Arc::from(text.as_bytes()))).collect();
    GenerationSpec::new(PluginId::from(id), 1, Arc::new(move |path: &str| files.get(path).cloned()))
}

fn with_entry(id: &str) -> GenerationSpec {
    let mut spec = spec(id, &[("entry.js", ENTRY)]);
    spec.entry = Some("entry.js".into());
    spec.declared = Declared { tools: vec!["note-add".into()], ..Declared::default() };
    spec
}

fn one_worker() -> JsHost {
    JsHost::start(JsOptions { workers: 1, ..JsOptions::default() }).unwrap()
}

async fn call(
    js: &JsHost,
    generation: &Generation,
    host: &Arc<dyn CallHost>,
    context: CallContext,
    timeout: Duration,
) -> Result<CallOutput, CallError> {
    js.call(CallRequest {
        generation: generation.clone(),
        target: CallTarget::Handler { module: "h.js".into() },
        context,
        host: Arc::clone(host),
        limits: CallLimits { timeout, max_output_bytes: 1_000_000 },
        cancel: CancellationToken::new(),
    })
    .await
}

fn context(logical_turn: u32, inputs: Vec<(String, Json)>) -> CallContext {
    CallContext {
        fields: vec![("logicalTurn", Json::from_value(logical_turn.into()))],
        inputs,
        writable: true,
        ..CallContext::default()
    }
}

/// Resident memory of this process, in KiB; 0 where it cannot be read.
fn resident() -> u64 {
    let pages =
        fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4
}

/// Median microseconds of one run: 21 batches of `each` runs, after warming up.
async fn measure<F: Future>(each: u32, run: impl Fn() -> F) -> f64 {
    for _ in 0..each {
        run().await;
    }
    let mut times = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        for _ in 0..each {
            run().await;
        }
        times.push(micros(start.elapsed()) / f64::from(each));
    }
    at(&mut times, 0.5)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The value below which this share of the values lies.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn at(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let host = Runtime::new().unwrap();
    if let Some(name) = arguments.iter().skip_while(|argument| *argument != "--fresh").nth(1) {
        return host.block_on(fresh(name));
    }
    // `cargo test` builds and runs benches too; there is nothing to measure then.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|want| *want == name);
    if run("cold") {
        from_fresh_processes(
            "cold",
            &[
                "isolate with the author's library and zod, first of a process (from source), us",
                "the same, later (byte code kept), us",
                "later, an entry that loads nothing, us",
                "later, one that loads zod alone, us",
                "later, one that loads the author's library alone, us",
                "heap of such an isolate, KiB",
                "resident memory of such an isolate (of 20), KiB",
            ],
        );
    }
    if run("start") {
        from_fresh_processes(
            "start",
            &[
                "engine opened and 20 packages with such entries published, first of a process, us",
                "the same again in that process, us",
            ],
        );
    }
    if run("calls") {
        host.block_on(calls());
    }
    if run("data") {
        host.block_on(data());
    }
    if run("deadline") {
        host.block_on(deadline());
    }
    if run("node") {
        node();
    }
}

/// Runs a part in processes of its own and prints the median of each figure.
fn from_fresh_processes(name: &str, labels: &[&str]) {
    let mut columns = vec![Vec::new(); labels.len()];
    for _ in 0..PROCESSES {
        let output = Command::new(std::env::current_exe().unwrap()).args(["--fresh", name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let figures: Vec<f64> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(figures.len(), labels.len());
        for (column, figure) in columns.iter_mut().zip(figures) {
            column.push(figure);
        }
    }
    println!("\n| {name} | median of {PROCESSES} processes | min-max |\n|---|---|---|");
    for (label, mut column) in labels.iter().zip(columns) {
        println!("| {label} | {:.0} | {:.0}-{:.0} |", at(&mut column, 0.5), at(&mut column, 0.0), at(&mut column, 1.0));
    }
}

/// What one fresh process measures: a list of figures on standard output.
async fn fresh(name: &str) {
    let figures = match name {
        "cold" => cold().await,
        "start" => vec![start().await, start().await],
        other => panic!("there is no part {other}"),
    };
    println!("{}", serde_json::to_string(&figures).unwrap());
}

#[allow(clippy::cast_precision_loss)]
async fn cold() -> Vec<f64> {
    let js = one_worker();
    let start = Instant::now();
    let first = js.load(with_entry("p0")).await.unwrap();
    let from_source = micros(start.elapsed());
    let heap = js.heap_used(&first).await.unwrap_or(0) as f64 / 1024.0;
    let (mut times, mut kept, before) = (Vec::new(), vec![first], resident());
    for n in 1..=20 {
        let start = Instant::now();
        kept.push(js.load(with_entry(&format!("p{n}"))).await.unwrap());
        times.push(micros(start.elapsed()));
    }
    let each = resident().saturating_sub(before) as f64 / 20.0;
    let mut figures = vec![from_source, at(&mut times, 0.5)];
    for imports in ["", "import 'zod';", "import '@covel/plugin-handlers-utils';"] {
        let mut times = Vec::new();
        for n in 0..20 {
            let mut spec = spec(&format!("q{n}"), &[("entry.js", &format!("{imports} export default () => {{}};"))]);
            spec.entry = Some("entry.js".into());
            let start = Instant::now();
            kept.push(js.load(spec).await.unwrap());
            times.push(micros(start.elapsed()));
        }
        figures.push(at(&mut times, 0.5));
    }
    figures.extend([heap, each]);
    figures
}

/// 20 packages whose entries load the author's library and zod.
fn packages() -> Vec<Arc<Package>> {
    (0..20)
        .map(|n| {
            let manifest = format!(
                "---\nid: start-{n:02}\nkind: plugin\ndescription: A bench package.\nentry: ./entry.js\ncontributes: {{ tools: [note-add] }}\n---\n"
            );
            compile_in_memory(&[("PLUGIN.md", &manifest), ("entry.js", ENTRY)], Discovery::Builtin).package.unwrap()
        })
        .collect()
}

async fn start() -> f64 {
    let packages = packages();
    let start = Instant::now();
    let (engine, _folder) = engine(false);
    for state in engine.publish(packages).await {
        assert_eq!(state.error, None);
    }
    let took = micros(start.elapsed());
    engine.close().await;
    took
}

fn document(rows: usize) -> Json {
    let rows: Vec<_> = (0..rows)
        .map(|at| json!({"id": format!("row-{at}"), "name": format!("Name {at}"), "n": at, "text": "x".repeat(50)}))
        .collect();
    json!({"cardinality": "one", "value": {"rows": rows}}).into()
}

/// Warm calls, and what reading a context costs.
async fn calls() {
    let (js, host, limit) = (one_worker(), memory(), Duration::from_secs(5));
    println!("\n| warm call, from another thread and back | parsed before, us | from text, us |\n|---|---|---|");
    let generation = js.load(spec("warm", &[("h.js", WARM)])).await.unwrap();
    let took =
        measure(500, || async { call(&js, &generation, &host, context(1, Vec::new()), limit).await.unwrap() }).await;
    println!("| nothing but one field | {took:.1} | |");
    let generation = js.load(spec("read", &[("h.js", READ)])).await.unwrap();
    for (size, rows) in SIZES {
        let parsed = document(rows);
        let text = parsed.text().to_owned();
        for share in SHARES {
            let run = |document: Json| {
                call(&js, &generation, &host, context(share, vec![("doc".to_owned(), document)]), limit)
            };
            let shared = measure(100, || async { run(parsed.clone()).await.unwrap() }).await;
            let fresh = measure(100, || async { run(Json::parse(&text).unwrap()).await.unwrap() }).await;
            println!("| context of {size}, {share} % read | {shared:.1} | {fresh:.1} |");
        }
    }
}

/// `ctx.pluginData.get` from plugin code, over a host that answers from memory.
async fn data() {
    let (js, host) = (one_worker(), memory());
    let generation = js.load(spec("data", &[("h.js", DATA)])).await.unwrap();
    let run = || async { call(&js, &generation, &host, context(1, Vec::new()), Duration::from_secs(5)).await.unwrap() };
    println!(
        "\n| data | us |\n|---|---|\n| one `await ctx.pluginData.get` of a thousand | {:.2} |",
        measure(5, run).await / 1_000.0
    );
}

/// How long after its deadline a call that does not end is answered.
async fn deadline() {
    const LIMIT: Duration = Duration::from_millis(20);
    println!("\n| overshoot of a deadline of 20 ms | p50, us | p99, us |\n|---|---|---|");
    for (name, code) in [
        ("a loop", "export default () => { while (true); }"),
        ("a promise that never settles", "export default () => new Promise(() => {})"),
        ("a loop of awaits", "export default async () => { while (true) await null; }"),
        ("a sort whose comparison loops", "export default () => [3, 2, 1].sort(() => { while (true); })"),
        ("a regular expression", "export default () => /^(a+)+$/.test('a'.repeat(64) + 'b')"),
    ] {
        let (js, host) = (one_worker(), memory());
        let generation = js.load(spec("late", &[("h.js", code)])).await.unwrap();
        let mut late = Vec::new();
        for _ in 0..100 {
            let start = Instant::now();
            let ended = call(&js, &generation, &host, context(1, Vec::new()), LIMIT).await;
            late.push(micros(start.elapsed().saturating_sub(LIMIT)));
            assert!(matches!(ended, Err(CallError::Timeout { .. })), "{name}: {ended:?}");
        }
        println!("| {name} | {:.0} | {:.0} |", at(&mut late, 0.5), at(&mut late, 0.99));
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The same handlers under Node.js.
fn node() {
    let Ok(version) = Command::new("node").arg("--version").output() else {
        println!("\nnode is not on the PATH: nothing to compare with");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in NODE_MODULES {
        write(&folder.path().join("node_modules").join(path), text);
    }
    for (name, text) in [("entry", ENTRY), ("warm", WARM), ("read", READ), ("data", DATA)] {
        write(&folder.path().join(format!("handlers/{name}.js")), text);
    }
    write(&folder.path().join("package.json"), r#"{ "type": "module" }"#);
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("node/host.mjs");
    write(&folder.path().join("host.mjs"), &fs::read_to_string(script).unwrap());
    let output = Command::new("node").arg("host.mjs").current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    println!("\n| node {} | us |\n|---|---|", String::from_utf8_lossy(&version.stdout).trim());
    for (name, value) in figures {
        let label = match name.as_str() {
            "entry" => "library and entry imported, zod too, in a started process",
            "warm" => "warm call, awaited, in the same thread",
            "data" => "one `await ctx.pluginData.get` of a thousand, from parsed text",
            other => other,
        };
        println!("| {label} | {:.2} |", value.as_f64().unwrap());
    }
}
