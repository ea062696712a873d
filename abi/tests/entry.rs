//! Entries: registrations, the two-way rule, disposers, tools.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};

use covel_abi::{CallError, CallTarget, Declared, DeclaredService, GenerationSpec, LoadError};
use serde_json::json;
use support::{host, load, load_entry, request, run};

const DICE: &str = r#"
export default (covel) => {
    const { tool, z } = covel.toolkit;
    covel.registerTool(tool({
        name: "roll",
        description: "Rolls dice",
        parameters: z.object({ sides: z.number().int().min(2), label: z.string().regex(/^\p{L}+$/u).optional() }),
        execute: async ({ sides }, ctx) => ({ kind: "covel.tool-result", content: { rolled: ctx.random.int(1, sides + 1), by: ctx.pluginId }, pendingProposals: [] }),
    }));
    covel.registerRpc("reset", async (payload, ctx) => ({ got: payload, session: ctx.sessionId }), { description: "Resets" });
};"#;

fn dice() -> Declared {
    Declared { tools: vec!["roll".into()], actions: vec!["reset".into()], ..Declared::default() }
}

#[tokio::test]
async fn tools_and_actions_are_registered_and_called() {
    let host = host();
    let generation = load_entry(&host, dice(), &[("entry.js", DICE)]).await.unwrap();
    assert_eq!(generation.tools().len(), 1);
    assert_eq!(generation.tools()[0].description, "Rolls dice");
    assert_eq!(
        generation.tools()[0].json_schema.value(),
        &json!({"type": "object", "properties": {"sides": {"type": "integer", "minimum": 2, "maximum": 9_007_199_254_740_991_i64}, "label": {"type": "string"}}, "required": ["sides"]})
    );
    assert_eq!(generation.actions()[0].description.as_deref(), Some("Resets"));

    let mut call = request(&generation, CallTarget::Tool { name: "roll".into() });
    call.context.fields = vec![("pluginId", json!("p").into())];
    call.context.argument = Some(json!({"sides": 6}).into());
    assert_eq!(
        run(&host, call).await.unwrap(),
        json!({"kind": "covel.tool-result", "content": {"rolled": 1, "by": "p"}, "pendingProposals": []})
    );

    let mut call = request(&generation, CallTarget::Rpc { action: "reset".into() });
    call.context.fields = vec![("sessionId", json!("s").into())];
    call.context.argument = Some(json!([1]).into());
    assert_eq!(run(&host, call).await.unwrap(), json!({"got": [1], "session": "s"}));
}

#[tokio::test]
async fn bad_tool_arguments_are_named() {
    let host = host();
    let generation = load_entry(&host, dice(), &[("entry.js", DICE)]).await.unwrap();
    let mut call = request(&generation, CallTarget::Tool { name: "roll".into() });
    call.context.argument = Some(json!({"sides": 1, "label": "7"}).into());
    match run(&host, call).await {
        Err(CallError::Thrown { name, code, details, .. }) => {
            assert_eq!((name.as_str(), code.as_deref()), ("ToolValidationError", Some("VALIDATION_ERROR")));
            let details = details.unwrap();
            let paths: Vec<_> =
                details.value().as_array().unwrap().iter().map(|d| d["path"].as_str().unwrap()).collect();
            assert_eq!(paths, ["sides", "label"]);
            assert!(details.value()[0]["message"].as_str().unwrap().contains(">=2"), "{details:?}");
        }
        other => panic!("{other:?}"),
    }
}

/// Covers: HKS-2, SVC-3, EXP-1, TOL-1
#[tokio::test]
async fn registrations_and_declarations_match_both_ways() {
    let tool = |name: &str| {
        format!(
            "covel.registerTool(covel.toolkit.tool({{name: '{name}', description: 'd', parameters: covel.toolkit.z.object({{}}), execute() {{}}}}));"
        )
    };
    let service = |name: &str, contract: &str, more: &str| {
        format!(
            "covel.registerService({{name: '{name}', contract: '{contract}', input: {{parse: (x) => x}}, output: {{parse: (x) => x}}, handler() {{}} {more}}});"
        )
    };
    let declared_service =
        |contract: &str| DeclaredService { contract: contract.into(), model_facing: false, write: false };
    let none = Declared::default;
    let cases: Vec<(String, Declared, &str)> = vec![
        (tool("a"), none(), "tool `a`"),
        (String::new(), Declared { tools: vec!["a".into()], ..none() }, "tool `a`"),
        (tool("a") + &tool("a"), Declared { tools: vec!["a".into()], ..none() }, "tool `a` twice"),
        ("covel.registerRpc('x', () => 1)".into(), none(), "action `x`"),
        (String::new(), Declared { actions: vec!["x".into()], ..none() }, "action `x`"),
        ("covel.on('TurnStart', () => {})".into(), none(), "hook on `TurnStart`"),
        (
            "covel.on('TurnStart', () => {}, {enforce: 'pre'})".into(),
            Declared { hooks: vec![("TurnStart".into(), "normal".into())], ..none() },
            "enforce `pre`",
        ),
        (
            String::new(),
            Declared { hooks: vec![("TurnStart".into(), "normal".into())], ..none() },
            "TurnStart (normal)",
        ),
        ("covel.provideExtension('prompt.segment@1', 'a', {handler() {}})".into(), none(), "prompt.segment@1 a"),
        (
            String::new(),
            Declared { extensions: vec![("prompt.segment@1".into(), "a".into())], ..none() },
            "prompt.segment@1 a",
        ),
        ("covel.registerFormValidator('f', () => {})".into(), none(), "form validator `f`"),
        (String::new(), Declared { forms: vec!["f".into()], ..none() }, "form validator `f`"),
        ("covel.registerWires({image: [{id: 'w', generate() {}}]})".into(), none(), "wire `w`"),
        (String::new(), Declared { wires: vec!["w".into()], ..none() }, "wire `w`"),
        (service("s", "a.b@1", ""), none(), "contract `a.b@1`"),
        (
            String::new(),
            Declared { services: vec![declared_service("a.b@1")], ..none() },
            "1 and the entry registers 0",
        ),
        (
            service("s", "a.b@1", "") + &service("t", "a.b@1", ""),
            Declared { services: vec![declared_service("a.b@1")], ..none() },
            "1 and the entry registers 2",
        ),
        (
            service("s", "a.b@1", ", modelFacing: true"),
            Declared { services: vec![declared_service("a.b@1")], ..none() },
            "a.b@1",
        ),
        (service("s", "A@0", ""), none(), "not a contract"),
        // Catching the refusal does not help.
        (format!("try {{ {} }} catch {{}}", tool("a")), none(), "tool `a`"),
    ];
    let host = host();
    for (code, declared, expected) in cases {
        let entry = format!("export default (covel) => {{ {code} }}");
        match load_entry(&host, declared, &[("entry.js", &entry)]).await {
            Err(error @ LoadError::Registration { .. }) => {
                assert_eq!(error.code(), "plugin_registration_invalid");
                assert!(error.to_string().contains(expected), "{code}: {error}");
            }
            other => panic!("{code}: {other:?}"),
        }
    }
}

/// Covers: HKS-1
#[tokio::test]
async fn one_declared_hook_may_have_several_handlers() {
    let host = host();
    let declared = Declared { hooks: vec![("TurnStart".into(), "normal".into())], ..Declared::default() };
    let generation = load_entry(&host, declared, &[("entry.js", "export default (covel) => { covel.on('TurnStart', () => 1); covel.on('TurnStart', () => 2, {timeoutMs: 9, match: () => true}) }")]).await.unwrap();
    let hooks = &generation.registrations().hooks;
    assert_eq!(
        hooks.iter().map(|h| (h.index, h.timeout_ms, h.has_match)).collect::<Vec<_>>(),
        [(0, None, false), (1, Some(9), true)]
    );
}

#[tokio::test]
async fn registering_after_the_factory_is_refused() {
    let host = host();
    let entry = r"
        let kept;
        export default (covel) => { kept = covel; covel.registerRpc('late', () => { kept.registerRpc('more', () => 1) }); };";
    let generation =
        load_entry(&host, Declared { actions: vec!["late".into()], ..Declared::default() }, &[("entry.js", entry)])
            .await
            .unwrap();
    match run(&host, request(&generation, CallTarget::Rpc { action: "late".into() })).await {
        Err(CallError::Thrown { code, .. }) => {
            assert_eq!(code.as_deref(), Some("plugin_registration_closed"))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_failing_entry_says_what_and_where() {
    let host = host();
    let cases = [
        ("export default () => { throw new TypeError('boom') }", "plugin-entry-threw", "boom"),
        ("export const x = 1", "plugin-module-invalid", "entry.js has no default function export"),
        ("export default () => {\n  const = 1;\n}", "plugin-module-invalid", "p/entry.js:2"),
        ("import './missing.js'; export default () => {}", "plugin-module-invalid", "missing.js"),
        ("throw new RangeError('top'); export default () => {}", "plugin-module-invalid", "RangeError: top"),
    ];
    for (entry, code, text) in &cases {
        let error = load_entry(&host, Declared::default(), &[("entry.js", entry)]).await.unwrap_err();
        assert_eq!(error.code(), *code, "{entry}: {error}");
        assert!(error.to_string().contains(text), "{entry}: {error}");
    }
}

/// Covers: LIF-2
#[tokio::test]
async fn disposers_run_in_reverse_after_the_signal_and_report_failures_together() {
    let host = host();
    let entry = r"
        export default (covel) => {
            const order = [];
            covel.signal.addEventListener('abort', () => order.push('signal'));
            covel.onDispose(() => { order.push('first'); throw new Error(order.join()); });
            covel.onDispose(async () => { await new Promise((r) => setTimeout(r, 1)); order.push('second'); throw new Error('second failed'); });
            covel.onDispose(() => { order.push('third'); });
        };";
    let generation = load_entry(&host, Declared::default(), &[("entry.js", entry)]).await.unwrap();
    let report = generation.close().await;
    assert_eq!(report.failures, ["second failed", "signal,third,second,first"]);
    assert!(!report.timed_out);
    assert_eq!(generation.close().await, covel_abi::CloseReport::default());
    assert!(matches!(
        run(&host, request(&generation, CallTarget::Rpc { action: "x".into() })).await,
        Err(CallError::Load { .. })
    ));
}

/// Covers: LIF-1, LIF-3
#[tokio::test]
async fn a_failed_entry_is_cleaned_up() {
    // What a disposer did is seen from outside by the file it imports.
    let entry = r"
        export default (covel) => {
            covel.onDispose(async () => { await import(covel.signal.aborted ? './aborted.js' : './not-aborted.js'); });
            throw new Error('no');
        };";
    let read = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&read);
    let files = move |path: &str| {
        seen.lock().unwrap().push(path.to_owned());
        let text = if path == "entry.js" { entry } else { "export {}" };
        Some(Arc::from(text.as_bytes()))
    };
    let host = host();
    let spec = GenerationSpec { entry: Some("entry.js".into()), ..GenerationSpec::new("p".into(), 1, Arc::new(files)) };
    assert_eq!(host.load(spec).await.unwrap_err().code(), "plugin-entry-threw");
    // The only worker does what was asked in order, so the clean-up is over when the next load is.
    let fine = load_entry(&host, Declared::default(), &[("entry.js", "export default () => {}")]).await.unwrap();
    let read = read.lock().unwrap().clone();
    assert!(read.iter().any(|path| path == "aborted.js"), "{read:?}");
    assert!(!read.iter().any(|path| path == "not-aborted.js"), "{read:?}");
    assert_eq!(fine.close().await, covel_abi::CloseReport::default());
}

#[tokio::test]
async fn services_hooks_extensions_and_forms_are_called() {
    let entry = r"
        export default (covel) => {
            const { z } = covel.toolkit;
            covel.registerService({name: 's', contract: 'a.b@1', input: z.object({n: z.coerce.number()}), output: z.object({twice: z.number()}),
                handler: async ({ n }, ctx) => ({ twice: n === 13 ? 'bad' : n * 2, extra: ctx.callerPluginId }) });
            covel.on('TurnStart', (ctx, payload) => ({ action: 'continue', replace: { ...payload, active: ctx.activePluginIds.has('x') } }), { match: (p) => p.go });
            covel.provideExtension('prompt.segment@1', 'seg', { handler: (input, ctx) => [{ id: input.turnId, content: ctx.locale }] });
            covel.registerFormValidator('f', (values, data, { locale }) => values.age < data.min ? { field: 'age', message: locale } : undefined);
        };";
    let declared = Declared {
        services: vec![DeclaredService { contract: "a.b@1".into(), model_facing: false, write: false }],
        hooks: vec![("TurnStart".into(), "normal".into())],
        extensions: vec![("prompt.segment@1".into(), "seg".into())],
        forms: vec!["f".into()],
        ..Declared::default()
    };
    let host = host();
    let generation = load_entry(&host, declared, &[("entry.js", entry)]).await.unwrap();
    let call = async |target: CallTarget, argument: serde_json::Value| {
        let mut call = request(&generation, target);
        call.context.argument = Some(argument.into());
        call.context.fields = vec![
            ("locale", json!("en").into()),
            ("activePluginIds", json!(["x"]).into()),
            ("callerPluginId", json!("c").into()),
        ];
        run(&host, call).await
    };
    let service = || CallTarget::Service { name: "s".into() };
    assert_eq!(call(service(), json!({"n": "4"})).await.unwrap(), json!({"twice": 8}));
    for (argument, expected) in [(json!({"n": "x"}), "invalid-input"), (json!({"n": 13}), "invalid-output")] {
        match call(service(), argument).await {
            Err(CallError::Thrown { code, .. }) => assert_eq!(code.as_deref(), Some(expected)),
            other => panic!("{other:?}"),
        }
    }
    let hook = || CallTarget::Hook { index: 0 };
    assert_eq!(
        call(hook(), json!({"go": true})).await.unwrap(),
        json!({"action": "continue", "replace": {"go": true, "active": true}})
    );
    assert_eq!(call(hook(), json!({"go": 1})).await.unwrap(), json!(null));
    let extension = CallTarget::Extension { point: "prompt.segment@1".into(), id: "seg".into() };
    assert_eq!(call(extension, json!({"turnId": "t"})).await.unwrap(), json!([{"id": "t", "content": "en"}]));
    let form = || CallTarget::Form { name: "f".into() };
    assert_eq!(
        call(form(), json!({"values": {"age": 3}, "data": {"min": 5}})).await.unwrap(),
        json!({"field": "age", "message": "en"})
    );
    assert_eq!(call(form(), json!({"values": {"age": 7}, "data": {"min": 5}})).await.unwrap(), json!(null));
}

#[tokio::test]
async fn timers_of_an_entry_go_on_until_it_is_closed() {
    let entry = "export default (covel) => { let n = 0; setInterval(() => n++, 1); setTimeout(() => { for (;;) {} }, 1); covel.registerRpc('n', async () => { while (n <= 3) await new Promise((r) => setTimeout(r, 5)); return true }) }";
    let host = host();
    let generation =
        load_entry(&host, Declared { actions: vec!["n".into()], ..Declared::default() }, &[("entry.js", entry)])
            .await
            .unwrap();
    assert_eq!(run(&host, request(&generation, CallTarget::Rpc { action: "n".into() })).await.unwrap(), json!(true));
    assert_eq!(generation.close().await, covel_abi::CloseReport::default());
    assert_eq!(host.heap_used(&generation).await, None);
}

#[tokio::test]
async fn handlers_and_tools_of_one_generation_share_modules() {
    let host = host();
    let files = [
        ("state.js", "export const state = { n: 0 };"),
        (
            "entry.js",
            "import { state } from './state.js'; export default (covel) => { covel.registerRpc('n', () => ++state.n) };",
        ),
        ("h.js", "import { state } from './state.js'; export default () => ++state.n;"),
    ];
    let generation =
        load_entry(&host, Declared { actions: vec!["n".into()], ..Declared::default() }, &files).await.unwrap();
    assert_eq!(run(&host, request(&generation, CallTarget::Rpc { action: "n".into() })).await.unwrap(), json!(1));
    assert_eq!(run(&host, request(&generation, support::handler("h.js"))).await.unwrap(), json!(2));
}

/// Covers: SVC-5, SVC-11
#[tokio::test]
async fn calls_of_services_take_options_and_end_with_the_callers_signal() {
    let code = r"
        const tell = async (what) => { try { return await what(); } catch (error) { return [error.name, error.code ?? null, error.message.slice(0, 20)]; } };
        export default async (ctx) => {
            const call = (options, contract = 'a.b@1') => tell(() => ctx.services.call({ contract, input: 1 }, options));
            const late = new AbortController();
            const never = call({ signal: late.signal }, 'never@1');
            const kept = call({ signal: late.signal }, 'kept@1');
            await null;
            late.abort(new RangeError('enough'));
            return {
                plain: await call(), timed: await call({ timeoutMs: 0.5 }), open: await call({ signal: new AbortController().signal }),
                bad: await Promise.all([0, -1, NaN, Infinity, 2147483648, '5', null].map((timeoutMs) => call({ timeoutMs }))),
                request: await Promise.all([null, undefined, 'a.b@1', { contract: 'a.b@1', input: () => 1 }].map((request) => tell(() => ctx.services.call(request)))),
                signal: await call({ signal: {} }), early: await call({ signal: AbortSignal.abort(new RangeError('before')) }),
                never: await never, kept: await kept,
            };
        };";
    let host = host();
    let generation = load(&host, "p", &[("h.js", code)]).await;
    let mut call = request(&generation, CallTarget::Handler { module: "h.js".into() });
    call.context.services = true;
    let value = run(&host, call).await.unwrap();
    assert_eq!(value["plain"], json!({"request": {"contract": "a.b@1", "input": 1}, "timeoutMs": null}));
    assert_eq!(value["timed"]["timeoutMs"], json!(0.5));
    assert_eq!(value["open"]["timeoutMs"], json!(null));
    for refused in value["bad"].as_array().unwrap() {
        assert_eq!(refused.as_array().unwrap()[..2], [json!("RangeError"), json!("invalid-input")], "{refused}");
    }
    for refused in value["request"].as_array().unwrap() {
        assert_eq!(refused.as_array().unwrap()[..2], [json!("TypeError"), json!("invalid-input")], "{refused}");
    }
    assert_eq!(value["signal"][1], "invalid-input");
    assert_eq!(value["early"], json!(["RangeError", null, "before"]));
    assert_eq!(value["never"], json!(["RangeError", null, "enough"]));
    // What counted before the signal came still counts.
    assert_eq!(value["kept"], json!("kept"));
    // Without leave there are no services.
    let mut call = request(&generation, CallTarget::Handler { module: "h.js".into() });
    call.context.services = false;
    let value = run(&host, call).await.unwrap();
    assert_eq!(value["plain"].as_array().unwrap()[..2], [json!("ServiceError"), json!("unavailable")]);
}
