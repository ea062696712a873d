//! Fixtures the benches share: generated packages, engines on temporary folders.
#![allow(clippy::unwrap_used)] // A bench that cannot set itself up stops.

use std::sync::Arc;

use covel_exec::{
    Engine, EngineOptions, FixedAmbient, NativeContext, NativeOutput, NativePackage, NativeRuntime, NewSession,
    ScriptedGateway, SystemAmbient,
};
use covel_graph::{
    Stage,
    fragment::{NeedDecl, RuntimeDecl},
    package::{Discovery, Package, compile_in_memory},
};
use covel_model::SharedGateway;
use tempfile::TempDir;

/// An engine on a temporary folder.
pub fn engine(durable: bool) -> (Engine, TempDir) {
    engine_with(durable, Arc::new(ScriptedGateway::new(Vec::new())))
}

/// An engine with this gateway.
pub fn engine_with(durable: bool, gateway: SharedGateway) -> (Engine, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), gateway);
    options.durable = durable;
    options.ambient = Arc::new(SystemAmbient::default());
    (Engine::open(options).unwrap(), folder)
}

/// An engine whose clock does not read the system.
pub fn engine_without_clock() -> (Engine, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::new(Vec::new())));
    options.durable = false;
    options.ambient = Arc::new(FixedAmbient::default());
    (Engine::open(options).unwrap(), folder)
}

/// A session of everything published.
pub async fn session(engine: &Engine) -> String {
    engine.create_session(NewSession::default()).await.unwrap().id
}

/// `count` native runtimes in five layers, each needing one of the layer before. `run` makes the one at a place, told
/// whom it needs.
fn layered<R: NativeRuntime>(id: &str, count: usize, run: impl Fn(usize, Option<usize>) -> R) -> NativePackage {
    let width = count.div_ceil(5);
    (0..count).fold(NativePackage::new(id), |package, at| {
        let needed = at.checked_sub(width);
        let mut decl = RuntimeDecl { stage: Some(Stage::PreTurn), ..RuntimeDecl::default() };
        decl.needs.extend(
            needed.map(|needed| NeedDecl { runtime: Some(format!("{id}/r{needed:04}")), ..NeedDecl::default() }),
        );
        package.add(&format!("r{at:04}"), decl, run(at, needed))
    })
}

/// Reads one record and writes another of 1 KB.
fn reading(read: usize, write: usize) -> impl NativeRuntime {
    let (read, write, text) = (format!("k{read:04}"), format!("k{write:04}"), "x".repeat(1_000));
    move |context: &NativeContext<'_>| {
        let before = context.get("log", &read).map_err(|error| error.message)?;
        let turns = before.and_then(|value| value.value()["n"].as_u64()).unwrap_or(0);
        let value = serde_json::json!({"n": turns + 1, "text": text});
        context.set("log", &write, value.into()).map_err(|error| error.message)?;
        Ok(NativeOutput::default())
    }
}

/// `count` no-op runtimes.
pub fn no_ops(count: usize) -> NativePackage {
    layered("no-ops", count, |_, _| |_: &NativeContext<'_>| Ok(NativeOutput::default()))
}

/// `count` runtimes that each read a record of 1 KB that they wrote the turn before and write it.
pub fn read_write(count: usize) -> NativePackage {
    layered("read-write", count, |at, _| reading(at, at))
}

/// As [`read_write`], but each runtime reads what one of the layer before has written in this turn.
pub fn read_upstream(count: usize) -> NativePackage {
    layered("read-upstream", count, |at, needed| reading(needed.unwrap_or(at), at))
}

/// A story agent.
pub fn agent_package() -> Arc<Package> {
    compiled(&[(
        "PLUGIN.md",
        "---\nid: teller\nkind: plugin\ndescription: A bench package.\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { model: story }\n---\nTell.\n",
    )])
}

/// `count` packages of one JavaScript runtime each that reads its context and one record and writes one of about 1 KB.
pub fn js_packages(count: usize) -> Vec<Arc<Package>> {
    let code = "export default async (ctx) => {
        const before = await ctx.pluginData.get('log', 'last');
        const words = ctx.playerMessage.split(' ').length;
        const value = { n: (before?.n ?? 0) + 1, words, text: 'x'.repeat(900) };
        await ctx.pluginData.set('log', 'last', value);
        return { outcome: 'success', value: { n: value.n, locale: ctx.locale } };
    };";
    (0..count)
        .map(|at| {
            let manifest = format!(
                "---\nid: js-{at:02}\nkind: plugin\ndescription: A bench package.\nruntime:\n  type: function\n  schedule: {{ stage: {} }}\n  function: {{ handler: ./handler.js }}\n---\n",
                if at % 2 == 0 { "pre-turn" } else { "post-turn" }
            );
            compiled(&[("PLUGIN.md", &manifest), ("handler.js", code)])
        })
        .collect()
}

/// `count` packages that provide and want contracts of each other.
pub fn linked_packages(count: usize) -> Vec<Arc<Package>> {
    (0..count)
        .map(|at| {
            let input = if at == 0 {
                String::new()
            } else {
                format!("    inputs: {{ before: {{ from: {{ contract: link.c{}@1 }} }} }}\n", at - 1)
            };
            let optional = if at == 0 { String::new() } else { format!("optional: [link.c{}@1]\n", at - 1) };
            let manifest = format!(
                "---\nid: link-{at:02}\nkind: plugin\ndescription: A bench package.\nprovides: [link.c{at}@1]\n{optional}contracts: {{ link.c{at}@1: {{ schema: ./any.json }} }}\nruntime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  io:\n    output: {{ contract: link.c{at}@1 }}\n{input}  function: {{ handler: ./handler.js }}\n---\n"
            );
            compiled(&[
                ("PLUGIN.md", &manifest),
                ("any.json", "{}"),
                ("handler.js", "export default () => ({ outcome: 'success', value: {} });"),
            ])
        })
        .collect()
}

fn compiled(files: &[(&str, &str)]) -> Arc<Package> {
    let compiled = compile_in_memory(files, Discovery::Builtin);
    let problems: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    compiled.package.unwrap_or_else(|| panic!("{}", problems.join("\n")))
}
