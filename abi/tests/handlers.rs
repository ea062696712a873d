//! Handlers: what they are given, what they may give back.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_abi::{CallContext, CallError};
use serde_json::json;
use support::{FakeHost, eval, handler, host, load, request, run};

#[tokio::test]
async fn a_handler_returns_a_value() {
    assert_eq!(
        eval("return {outcome: 'success', value: [1, 2.5, 'x', null, true]}").await.unwrap(),
        json!({"outcome": "success", "value": [1, 2.5, "x", null, true]})
    );
}

#[tokio::test]
async fn a_sync_handler_and_undefined_are_fine() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", "export default () => {}")]).await;
    assert_eq!(run(&host, request(&generation, handler("h.js"))).await.unwrap(), json!(null));
}

#[tokio::test]
async fn context_fields_are_own_frozen_and_lazy() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[(
            "h.js",
            r#"
        export default async (ctx) => {
            const inputs = ctx.inputs;
            return {
                keys: Object.keys(ctx).filter((k) => ['sessionId', 'playerMessage', 'inputs'].includes(k)),
                frozen: Object.isFrozen(ctx) && Object.isFrozen(inputs),
                names: Object.keys(inputs),
                missing: inputs.toString === undefined ? 'absent' : 'present',
                proto: inputs.__proto__?.value ?? null,
                deep: inputs.mood.value.list[1].name,
                same: inputs.mood === inputs.mood,
                session: ctx.sessionId,
                absent: 'triggerEvent' in ctx,
            };
        }"#,
        )],
    )
    .await;
    let mut call = request(&generation, handler("h.js"));
    call.context = CallContext {
        fields: vec![("sessionId", json!("s1").into()), ("playerMessage", json!("hi").into())],
        inputs: vec![
            (
                "mood".into(),
                covel_graph::Json::trusted(r#"{"cardinality":"one","value":{"list":[1,{"name":"é😀"}]},"source":{}}"#),
            ),
            ("unused".into(), covel_graph::Json::trusted("this is never parsed")),
        ],
        ..call.context
    };
    let value = run(&host, call).await.unwrap();
    assert_eq!(value["frozen"], true);
    assert_eq!(value["names"], json!(["mood", "unused"]));
    assert_eq!(value["deep"], "é😀");
    assert_eq!(value["same"], true);
    assert_eq!(value["session"], "s1");
    assert_eq!(value["absent"], false);
}

/// Small fields and large ones, the host's parts and the methods: nothing tells them apart but their moment of conversion.
#[tokio::test]
async fn every_member_of_a_context_is_own_fixed_and_always_the_same() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", r#"
        Object.defineProperty(Object.prototype, 'sessionId', { set() { throw new Error('not reached'); }, configurable: true });
        export default async (ctx) => {
            const odd = [];
            for (const key of Reflect.ownKeys(ctx)) {
                const { enumerable, configurable, writable } = Object.getOwnPropertyDescriptor(ctx, key);
                if (!enumerable || configurable || writable) odd.push(key);
                if (ctx[key] !== ctx[key]) odd.push(`${key} changes`);
                try { ctx[key] = 1; odd.push(`${key} takes a value`); } catch {}
            }
            const { get } = ctx.pluginData;
            const { int } = ctx.random;
            return {
                odd, keys: Object.keys(ctx).sort(), plain: Object.getPrototypeOf(ctx) === Object.prototype,
                text: [ctx.sessionId, ctx.playerMessage.length, ctx.logicalTurn], settings: ctx.userSettings, event: ctx.triggerEvent.data.a[2],
                active: [ctx.activePluginIds instanceof Set, ctx.activePluginIds.has('b')], got: await get('n', 'k'), number: int(3, 4),
            };
        }"#)]).await;
    for repeat in [1, 2_000] {
        let mut call = request(&generation, handler("h.js"));
        call.context.fields = vec![
            ("sessionId", json!("s1").into()),
            ("playerMessage", json!("long ".repeat(repeat)).into()),
            ("logicalTurn", json!(7).into()),
            ("userSettings", json!({"a": [], "b": "c"}).into()),
            ("triggerEvent", json!({"topic": "t", "data": {"a": [1, 2, 3]}}).into()),
            ("activePluginIds", json!(vec!["b"; repeat]).into()),
        ];
        let value = run(&host, call).await.unwrap();
        assert_eq!(value["odd"], json!([]), "{repeat}");
        assert_eq!(value["plain"], true);
        assert_eq!(value["text"], json!(["s1", 5 * repeat, 7]));
        assert_eq!(value["settings"], json!({"a": [], "b": "c"}));
        assert_eq!(value["event"], 3);
        assert_eq!(value["active"], json!([true, true]));
        assert_eq!(value["got"], json!(null));
        assert_eq!(value["number"], 3);
        assert_eq!(
            value["keys"],
            json!([
                "activePluginIds",
                "gateway",
                "getOwnSettings",
                "inputs",
                "logger",
                "logicalTurn",
                "playerMessage",
                "pluginData",
                "progress",
                "random",
                "services",
                "sessionId",
                "signal",
                "store",
                "tools",
                "triggerEvent",
                "userSettings",
                "world"
            ])
        );
    }
}

#[tokio::test]
async fn plugin_data_goes_to_the_host() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[(
            "h.js",
            r#"
        export default async (ctx) => {
            await ctx.pluginData.set('n', 'k', {__proto__: null, a: 1});
            const got = await ctx.pluginData.get('n', 'k');
            const none = await ctx.pluginData.get('n', 'absent');
            const list = await ctx.pluginData.list('n');
            await ctx.pluginData.delete('n', 'k');
            return {got, none, list, after: await ctx.pluginData.get('n', 'k')};
        }"#,
        )],
    )
    .await;
    assert_eq!(
        run(&host, request(&generation, handler("h.js"))).await.unwrap(),
        json!({"got": {"a": 1}, "none": null, "list": [{"key": "k", "value": {"a": 1}, "createdAt": "c", "updatedAt": "u"}], "after": null})
    );
}

/// Covers: DAT-2
#[tokio::test]
async fn a_read_only_call_has_no_write_methods() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", "export default async (ctx) => Object.keys(ctx.pluginData)")]).await;
    let mut call = request(&generation, handler("h.js"));
    call.context.writable = false;
    assert_eq!(run(&host, call).await.unwrap(), json!(["get", "list"]));
}

#[tokio::test]
async fn logs_reach_the_host() {
    let host = host();
    let generation = load(
        &host,
        "p",
        &[("h.js", "export default async (ctx) => { console.warn('a', {b: 1}); ctx.logger.info('m', {c: 2}); }")],
    )
    .await;
    let fake = Arc::new(FakeHost::default());
    let mut call = request(&generation, handler("h.js"));
    call.host = fake.clone();
    run(&host, call).await.unwrap();
    assert_eq!(*fake.logs.lock().unwrap(), vec!["Warn a {\"b\":1}".to_owned(), "Info m {\"c\":2}".to_owned()]);
}

#[tokio::test]
async fn rejections_nobody_handles_are_logged() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", "export default async () => { Promise.reject('lost'); Promise.reject('fine').catch(() => {}); try { await Promise.reject(1) } catch {} }")]).await;
    let fake = Arc::new(FakeHost::default());
    let mut call = request(&generation, handler("h.js"));
    call.host = fake.clone();
    run(&host, call).await.unwrap();
    // The log is written at the end of the turn, which a second call can only follow.
    run(&host, request(&generation, handler("h.js"))).await.unwrap();
    assert_eq!(*fake.logs.lock().unwrap(), vec!["Warn a promise was rejected and nobody handles it: lost".to_owned()]);
}

#[tokio::test]
async fn tools_and_models_are_asked_through_the_host() {
    let value = eval("return [await ctx.tools.call('t', {x: 1}), await ctx.gateway.generateText({prompt: 'p'})]")
        .await
        .unwrap();
    assert_eq!(value, json!([{"tool": "t", "arguments": {"x": 1}}, {"options": {"prompt": "p"}}]));
    let value = eval("try { await ctx.tools.call('fails', {}) } catch (e) { return [e.name, e.code, e.message, e instanceof Error] }").await.unwrap();
    assert_eq!(value, json!(["ToolError", "EXECUTION_ERROR", "no luck", true]));
}

#[tokio::test]
async fn what_is_thrown_names_the_authors_line() {
    let host = host();
    let generation = load(&host, "dice", &[("lib/h.js", "export default async (ctx) => {\n  const x = 1;\n  throw Object.assign(new TypeError('bad dice'), {code: 'dice', details: {sides: 0}});\n}")]).await;
    match run(&host, request(&generation, handler("lib/h.js"))).await {
        Err(CallError::Thrown { name, code, message, stack, details }) => {
            assert_eq!((name.as_str(), code.as_deref(), message.as_str()), ("TypeError", Some("dice"), "bad dice"));
            assert!(stack.as_ref().unwrap().contains("dice/lib/h.js:3"), "{stack:?}");
            assert_eq!(details.unwrap().value(), &json!({"sides": 0}));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn results_that_are_not_json_are_refused_with_their_path() {
    let cases = [
        ("return {a: [() => 1]}", "$.a[0]"),
        ("return Symbol()", "$"),
        ("return {n: 1n}", "$.n"),
        ("return {n: NaN}", "$.n"),
        ("return {n: [1, -Infinity]}", "$.n[1]"),
        ("const o = {}; o.self = {o}; return o", "$.self.o"),
        ("return {get x() { throw new Error('no') }}", "$.x"),
        ("return {when: new Date(0)}", "$.when"),
        ("return new Map([[1, 2]])", "$"),
        ("return {toJSON() { return 1 }}", "$.toJSON"),
        ("return {'a b': Promise.resolve(1)}", "$[\"a b\"]"),
        ("return new Error('x')", "$"),
        ("return '\\ud800'", "$"),
        ("return {a: new Uint8Array(3)}", "$.a"),
        ("let o = {}; for (let i = 0; i < 1000; i++) o = {o}; return o", "$.o.o"),
    ];
    for (code, expected) in cases {
        match eval(code).await {
            Err(CallError::NotJson { path, .. }) => {
                assert!(path.starts_with(expected), "{code}: {path}")
            }
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn large_results_are_refused() {
    for code in [
        "return 'x'.repeat(200000)",
        "const a = []; a.length = 4294967295; return a",
        "return Array.from({length: 60000}, (_, i) => i)",
    ] {
        assert!(matches!(eval(code).await, Err(CallError::OutputTooLarge { limit_bytes: 100_000 })), "{code}");
    }
}

#[tokio::test]
async fn names_from_data_are_ordinary_keys() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", "export default async (ctx) => { const v = ctx.inputs.x; return [Object.keys(v), v.__proto__, Object.getPrototypeOf(v) === Object.prototype, {...v}] }")]).await;
    for json in [
        covel_graph::Json::trusted(r#"{"__proto__":{"a":1},"constructor":2,"":3}"#),
        json!({"__proto__": {"a": 1}, "constructor": 2, "": 3}).into(),
    ] {
        let mut call = request(&generation, handler("h.js"));
        call.context.inputs = vec![("x".into(), json)];
        assert_eq!(
            run(&host, call).await.unwrap().to_string(),
            r#"[["__proto__","constructor",""],{"a":1},true,{"__proto__":{"a":1},"constructor":2,"":3}]"#
        );
    }
}

/// Covers: SVC-7
#[tokio::test]
async fn a_context_is_closed_when_its_call_has_ended() {
    let host = host();
    let generation = load(&host, "p", &[("h.js", r#"
        let kept;
        export default async (ctx) => {
            if (kept === undefined) { kept = ctx; return 'first'; }
            const codes = [];
            for (const use of [() => kept.pluginData.get('a', 'b'), () => kept.random.int(0, 2), () => kept.tools.call('t'), () => kept.world.characters]) {
                try { await use(); codes.push('worked'); } catch (e) { codes.push(e.code); }
            }
            return codes;
        }"#)]).await;
    assert_eq!(run(&host, request(&generation, handler("h.js"))).await.unwrap(), json!("first"));
    assert_eq!(
        run(&host, request(&generation, handler("h.js"))).await.unwrap(),
        json!(["closed", "closed", "closed", "closed"])
    );
}

#[tokio::test]
async fn large_documents_are_converted_as_they_are_read() {
    let big = json!({
        "small": 1,
        "big": (0..50).map(|i| json!({"n": i, "deep": (0..40).collect::<Vec<_>>()})).collect::<Vec<_>>(),
        "__proto__": (0..40).collect::<Vec<_>>(),
    });
    let code = r#"
        export default async (ctx) => {
            const v = ctx.inputs.doc;
            const lazily = typeof Object.getOwnPropertyDescriptor(v, "big").get;
            const one = v.big[7].deep[3];
            const plain = "value" in Object.getOwnPropertyDescriptor(v, "big");
            v.big[7].deep.push("mine");
            v.big[8] = "replaced";
            const frozen = Object.freeze(v.big[9]);
            return {
                lazily, one, plain, keys: Object.keys(v), proto: Object.getPrototypeOf(v) === Object.prototype, lens: [v.big.length, v.big[7].deep.length, frozen.deep.length, frozen.deep === frozen.deep],
                replaced: v.big[8], array: Array.isArray(v.big) && Array.isArray(v.big[10].deep), text: JSON.stringify(v.big[11]), own: v["__proto__"].length, whole: ctx.inputs.copy,
            };
        };"#;
    let host = host();
    let generation = load(&host, "p", &[("h.js", code)]).await;
    for document in [covel_graph::Json::from_value(big.clone()), covel_graph::Json::trusted(big.to_string())] {
        let mut call = request(&generation, handler("h.js"));
        call.context.inputs = vec![("doc".into(), document.clone()), ("copy".into(), document)];
        let value = run(&host, call).await.unwrap();
        assert_eq!(value["lazily"], "function");
        assert_eq!(value["one"], 3);
        assert_eq!(value["plain"], true);
        assert_eq!(value["keys"], json!(["small", "big", "__proto__"]));
        assert_eq!(value["proto"], true);
        assert_eq!(value["lens"], json!([50, 41, 40, true]));
        assert_eq!(value["replaced"], "replaced");
        assert_eq!(value["array"], true);
        assert_eq!(value["text"], big["big"][11].to_string());
        assert_eq!(value["own"], 40);
        assert_eq!(value["whole"], big);
    }
}

#[tokio::test]
async fn web_globals_behave() {
    let code = r#"
        const order = [];
        setTimeout(() => order.push("t2"), 2); setTimeout(() => order.push("t1"), 1); queueMicrotask(() => order.push("m"));
        const cleared = setTimeout(() => order.push("never"), 1); clearTimeout(cleared);
        let n = 0;
        await new Promise((resolve) => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); resolve(); } }, 1); });
        await new Promise((resolve) => setTimeout(resolve, 5));
        const any = AbortSignal.any([AbortSignal.timeout(1), new AbortController().signal]);
        await new Promise((resolve) => any.addEventListener("abort", resolve));
        const controller = new AbortController();
        controller.abort(new RangeError("mine"));
        const original = { d: new Date(0), m: new Map([[1, { a: 1 }]]), s: new Set([1]), r: /x/g, n: undefined };
        original.self = original;
        const copy = structuredClone(original);
        let refused;
        try { structuredClone(() => 1) } catch (e) { refused = e.name }
        const url = new URL("../b?x=1&y=é#h", "https://例え.jp:443/a/c");
        url.searchParams.append("z", "a b");
        return {
            order, n, reason: any.reason.name, mine: controller.signal.reason.message,
            clone: [copy.d.getTime(), copy.m.get(1).a, copy.s.has(1), copy.r.flags, copy.self === copy, copy !== original], refused,
            url: url.href,
            text: new TextDecoder().decode(new TextEncoder().encode("é😀")),
            random: crypto.getRandomValues(new Uint8Array(4)).length,
            types: [typeof fetch, typeof process, typeof require, typeof WebAssembly],
        };"#;
    assert_eq!(
        eval(code).await.unwrap(),
        json!({
            "order": ["m", "t1", "t2"], "n": 3, "reason": "TimeoutError", "mine": "mine",
            "clone": [0, 1, true, "g", true, true], "refused": "DataCloneError",
            "url": "https://xn--r8jz45g.jp/b?x=1&y=%C3%A9&z=a+b#h",
            "text": "é😀", "random": 4, "types": ["undefined", "undefined", "undefined", "undefined"],
        })
    );
}

#[tokio::test]
async fn urls_follow_the_standard() {
    let code = r#"
        const u = new URL("https://user:p@example.com:8080/a/./b/../c?x=1#f");
        u.port = "443"; u.pathname = "/ü"; u.hash = ""; u.searchParams.set("x", "2 3"); u.searchParams.append("y", "&");
        const keep = u.searchParams; u.search = "?q=1";
        const bad = ["", "//x", "http://[::1", "http://a b"].map((text) => { try { return new URL(text).href } catch (e) { return `${e.name} ${e.code}` } });
        const p = new URLSearchParams({ b: "2", a: "1" }); p.sort();
        return { href: u.href, origin: u.origin, host: u.host, q: keep.get("q"), bad, p: [...p], text: `${new URLSearchParams([["a", "é"]])}`, can: URL.canParse("/x", "http://h"), json: JSON.stringify({ u: new URL("http://H") }), file: new URL("../p/", "file:///a/b.js").href };"#;
    assert_eq!(
        eval(code).await.unwrap(),
        json!({
            "href": "https://user:p@example.com/%C3%BC?q=1", "origin": "https://example.com", "host": "example.com", "q": "1",
            "bad": ["TypeError ERR_INVALID_URL", "TypeError ERR_INVALID_URL", "TypeError ERR_INVALID_URL", "TypeError ERR_INVALID_URL"],
            "p": [["a", "1"], ["b", "2"]], "text": "a=%C3%A9", "can": true, "json": "{\"u\":\"http://h/\"}", "file": "file:///p/",
        })
    );
}
