//! Limits: each ends what it limits, and leaves neighbours and later calls fine.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use covel_abi::{CallError, CallTarget, Declared, Generation, JsHost, JsOptions};
use serde_json::{Value, json};
use support::{FakeHost, handler, host, host_with, load, load_entry, request, run};

async fn timed(host: &JsHost, generation: &Generation, module: &str, ms: u64) -> Result<Value, CallError> {
    let mut call = request(generation, handler(module));
    call.limits.timeout = Duration::from_millis(ms);
    run(host, call).await
}

#[tokio::test]
async fn endless_code_is_stopped_and_the_next_call_is_fine() {
    let host = host();
    let loops = [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch {} finally {} }",
        "for (;;) await null;",
        "await new Promise(() => {})",
        "const f = () => Promise.resolve().then(f); await f();",
        "const f = () => { queueMicrotask(f); queueMicrotask(f) }; f(); await new Promise(() => {});",
        "await ctx.tools.call('never')",
        "new Promise(() => { for (;;) {} })",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "[1, 2, 3].sort(() => { for (;;) {} })",
        "JSON.stringify({ get x() { for (;;) {} } })",
        "return { get x() { for (;;) {} } }",
        "return new Proxy({}, { ownKeys() { for (;;) {} } })",
        "setInterval(() => {}, 1); await new Promise(() => {})",
        "await { then() {} }",
        "throw { get message() { for (;;) {} } }",
    ];
    let files: Vec<(String, String)> = loops
        .iter()
        .enumerate()
        .map(|(i, code)| (format!("h{i}.js"), format!("export default async (ctx) => {{ {code} }}")))
        .collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    all.push(("ok.js", "export default async () => 'ok'"));
    for (index, code) in loops.iter().enumerate() {
        let generation = load(&host, "p", &all).await;
        let begun = Instant::now();
        let result = timed(&host, &generation, &format!("h{index}.js"), 60).await;
        assert!(matches!(result, Err(CallError::Timeout { limit_ms: 60 })), "{code}: {result:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{code}: {:?}", begun.elapsed());
        assert_eq!(timed(&host, &generation, "ok.js", 5_000).await.unwrap(), json!("ok"), "after {code}");
    }
}

#[tokio::test]
async fn a_plugin_that_broke_its_own_globals_gets_a_fresh_isolate() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[
            (
                "break.js",
                "export default async () => { Object.prototype.then = function () { for (;;) {} }; return {} }",
            ),
            ("ok.js", "export default async () => ({})"),
        ],
    )
    .await;
    assert!(matches!(timed(&host, &generation, "break.js", 50).await, Err(CallError::Timeout { .. })));
    assert!(matches!(timed(&host, &generation, "ok.js", 50).await, Err(CallError::Timeout { .. })));
    assert_eq!(timed(&host, &generation, "ok.js", 5_000).await.unwrap(), json!({}));
}

#[tokio::test]
async fn recursion_is_stopped() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[("h.js", "const f = () => f() + 1; export default async () => f()"), ("ok.js", "export default () => 1")],
    )
    .await;
    assert!(matches!(timed(&host, &generation, "h.js", 5_000).await, Err(CallError::StackOverflow)));
    assert_eq!(timed(&host, &generation, "ok.js", 5_000).await.unwrap(), json!(1));
}

#[tokio::test]
async fn a_full_heap_replaces_the_isolate() {
    let host = host_with(JsOptions { workers: 1, heap_limit_bytes: 8 * 1024 * 1024, ..JsOptions::default() });
    let bombs = [
        "const a = []; for (;;) a.push('x'.repeat(1000) + a.length);",
        "globalThis.kept = []; for (;;) globalThis.kept.push({});",
        "new ArrayBuffer(1e9)",
        "'x'.repeat(2 ** 29)",
    ];
    let files: Vec<(String, String)> = bombs
        .iter()
        .enumerate()
        .map(|(i, code)| (format!("h{i}.js"), format!("export default async (ctx) => {{ {code} }}")))
        .collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    all.push(("entry.js", "export default (covel) => { covel.registerRpc('n', () => 'registered again') }"));
    let generation =
        load_entry(&host, Declared { actions: vec!["n".into()], ..Declared::default() }, &all).await.unwrap();
    for (index, code) in bombs.iter().enumerate() {
        let result = timed(&host, &generation, &format!("h{index}.js"), 10_000).await;
        assert!(matches!(result, Err(CallError::HeapLimit { limit_bytes: 8_388_608 })), "{code}: {result:?}");
        assert_eq!(
            run(&host, request(&generation, CallTarget::Rpc { action: "n".into() })).await.unwrap(),
            json!("registered again"),
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_worker_stuck_in_a_native_builtin_is_replaced() {
    let host = host();
    let bad = load(
        &host,
        "bad",
        &[("h.js", "export default async () => new Array(2 ** 31).join('')"), ("ok.js", "export default () => 2")],
    )
    .await;
    let good = load(
        &host,
        "good",
        &[
            ("h.js", "export default async (ctx) => { await ctx.tools.call('t'); return 1 }"),
            ("p.js", "export default async (ctx) => { await new Promise(() => {}) }"),
        ],
    )
    .await;
    assert_eq!(timed(&host, &good, "h.js", 5_000).await.unwrap(), json!(1));
    let parked = timed(&host, &good, "p.js", 30_000);
    let stuck = timed(&host, &bad, "h.js", 100);
    let (parked, stuck) = tokio::join!(parked, stuck);
    assert!(matches!(stuck, Err(CallError::Timeout { limit_ms: 100 })), "{stuck:?}");
    assert!(matches!(parked, Err(CallError::WorkerLost)), "{parked:?}");
    assert_eq!(host.workers_replaced(), 1);
    assert_eq!(timed(&host, &good, "h.js", 5_000).await.unwrap(), json!(1));
    assert_eq!(timed(&host, &bad, "ok.js", 5_000).await.unwrap(), json!(2));
}

#[tokio::test]
async fn cancelling_ends_running_and_parked_calls() {
    let host = host();
    let generation = load(&host, "p", &[
        ("loop.js", "export default async () => { console.log(1); for (;;) {} }"),
        ("park.js", "export default async (ctx) => { console.log(1); await new Promise(() => {}) }"),
        ("listen.js", "let seen = 'not aborted'; export default async (ctx) => { if (ctx.playerMessage) return seen; ctx.signal.addEventListener('abort', () => { seen = ctx.signal.reason.name }); console.log(1); await new Promise(() => {}) }"),
    ]).await;
    for module in ["loop.js", "park.js", "listen.js"] {
        let mut call = request(&generation, handler(module));
        let fake = Arc::new(FakeHost::default());
        call.host = fake.clone();
        let cancel = call.cancel.clone();
        let (result, ()) = tokio::join!(run(&host, call), async {
            while fake.logs.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert!(matches!(result, Err(CallError::Cancelled)), "{module}: {result:?}");
    }
    let mut call = request(&generation, handler("listen.js"));
    call.context.fields = vec![("playerMessage", json!("x").into())];
    assert_eq!(run(&host, call).await.unwrap(), json!("AbortError"));
}

#[tokio::test]
async fn concurrent_calls_of_one_isolate_have_their_own_deadlines() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[
            (
                "sleep.js",
                "export default async (ctx) => { await new Promise((r) => setTimeout(r, 150)); return 'slept' }",
            ),
            ("loop.js", "export default async (ctx) => { await ctx.tools.call('t'); for (;;) {} }"),
            ("forever.js", "export default async (ctx) => { await ctx.tools.call('never') }"),
        ],
    )
    .await;
    let (slept, looped, parked) = tokio::join!(
        timed(&host, &generation, "sleep.js", 5_000),
        timed(&host, &generation, "loop.js", 50),
        timed(&host, &generation, "forever.js", 80)
    );
    assert_eq!(slept.unwrap(), json!("slept"));
    assert!(matches!(looped, Err(CallError::Timeout { limit_ms: 50 })));
    assert!(matches!(parked, Err(CallError::Timeout { limit_ms: 80 })));
}

#[tokio::test]
async fn isolates_do_not_share_prototypes() {
    let host = host();
    let bad = load(&host, "bad", &[("h.js", "export default async () => { Object.prototype.polluted = 1; Array.prototype.map = 0; Promise.prototype.then = 0; JSON.stringify = 0; return 1 }")]).await;
    let good = load(&host, "good", &[("h.js", "export default async () => [({}).polluted ?? null, typeof [].map, typeof Promise.prototype.then, JSON.stringify([1])]")]).await;
    let _ = timed(&host, &bad, "h.js", 1_000).await;
    assert_eq!(timed(&host, &good, "h.js", 1_000).await.unwrap(), json!([null, "function", "function", "[1]"]));
}

#[tokio::test]
async fn strings_cannot_become_code() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", r#"
        export default async () => {
            const tries = {
                eval: () => (0, eval)("1"),
                Function: () => new Function("return 1")(),
                constructor: () => (() => {}).constructor("return 1")(),
                AsyncFunction: () => (async () => {}).constructor("return 1")(),
                GeneratorFunction: () => (function* () {}).constructor("yield 1")(),
            };
            return Object.fromEntries(Object.entries(tries).map(([name, run]) => { try { return [name, String(run())]; } catch (e) { return [name, "refused"]; } }));
        }"#)]).await;
    let value = timed(&host, &generation, "h.js", 1_000).await.unwrap();
    assert!(value.as_object().unwrap().values().all(|v| v == "refused"), "{value}");
}

#[tokio::test]
async fn memory_returns_after_many_generations() {
    let host = host();
    let entry = "export default (covel) => { covel.registerTool(covel.toolkit.tool({name: 't', description: 'd', parameters: covel.toolkit.z.object({a: covel.toolkit.z.string()}), execute() {}})); globalThis.kept = new Array(10000).fill('x') }";
    let declared = || Declared { tools: vec!["t".into()], ..Declared::default() };
    let mut after_warm_up = 0;
    for round in 0..200 {
        let generation = load_entry(&host, declared(), &[("entry.js", entry)]).await.unwrap();
        if round % 2 == 0 {
            generation.close().await;
        }
        drop(generation);
        if round == 50 {
            after_warm_up = resident();
        }
    }
    let grown = resident().saturating_sub(after_warm_up);
    assert!(grown < 16 * 1024 * 1024, "grew by {grown} bytes in 150 loads");
}

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn everything_can_be_dropped_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..20 {
        runtime.block_on(async {
            let host = host_with(JsOptions { workers: 2, ..JsOptions::default() });
            let generation = load(
                &host,
                "p",
                &[(
                    "h.js",
                    "export default async (ctx) => { setInterval(() => {}, 1); await ctx.tools.call('never') }",
                )],
            )
            .await;
            let call = run(&host, request(&generation, handler("h.js")));
            let _ = tokio::time::timeout(Duration::from_millis(5), call).await;
        });
    }
}
