//! Services between packages, where a row of `tests/cases/services.yaml` cannot show it: grants, agents and their tools,
//! guards, notices, resumption, retries, schedules, replay, services in Rust.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use covel_exec::{
    Engine, EngineOptions, ExecutionKind, ExecutionRequest, FixedAmbient, NativeContext, NativeOutput, NativePackage,
    NewSession, OperationStatus, ScriptedGateway, ServiceContext, TurnDocument,
};
use covel_graph::{
    Json, Stage,
    package::{Discovery, Package, compile_in_memory},
};
use serde_json::{Value, json};
use support::{Stage as Table, error_code, function, package, row, stage};

/// A package that only serves.
fn provider(id: &str, declared: &str, code: &str) -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            &format!(
                "---\nid: {id}\nkind: plugin\ndescription: Serves.\nentry: ./entry.js\ncontributes:\n  services: {declared}\n---\n"
            ),
        ),
        (
            "entry.js",
            &format!("export default (covel) => {{ const {{ z }} = covel.toolkit; const any = z.any();\n{code}\n}};"),
        ),
    ])
}

fn caller(id: &str, schedule: &str, code: &str) -> Arc<Package> {
    function(
        id,
        schedule,
        "",
        "",
        &format!(
            "const tell = async (what) => {{ try {{ return await what(); }} catch (error) {{ return {{ error: error.code ?? null, name: error.name }}; }} }};\n\
             export default async (ctx) => {{ const call = (contract, input, options) => tell(() => ctx.services.call({{ contract, input }}, options));\n\
             const value = await (async () => {{ {code} }})(); return {{ outcome: 'success', value }}; }}"
        ),
    )
}

/// A bag that puts things in, and shows them.
fn bag() -> Arc<Package> {
    provider(
        "bag",
        "[{ contract: bag.add@1, access: write }, bag.look@1]",
        r"covel.registerService({ name: 'add', contract: 'bag.add@1', access: 'write', input: any, output: any,
            handler: async (input, ctx) => { await ctx.pluginData.set('items', input?.item ?? 'rope', 1); return 'added'; } });
          covel.registerService({ name: 'look', contract: 'bag.look@1', input: any, output: any,
            handler: async (input, ctx) => (await ctx.pluginData.list('items')).map((row) => row.key) });",
    )
}

fn seen<'a>(turn: &'a TurnDocument, id: &str) -> &'a Value {
    row(turn, id).output.as_ref().unwrap_or_else(|| panic!("{:#?}", row(turn, id))).value()
}

fn operations(turn: &TurnDocument) -> Vec<(&str, &str, OperationStatus)> {
    turn.operations.iter().map(|one| (one.caller_runtime_id.as_str(), one.service.as_str(), one.status)).collect()
}

/// Remembers what models were asked.
struct Recording {
    script: ScriptedGateway,
    seen: parking_lot::Mutex<Vec<covel_model::ModelRequest>>,
}

impl covel_model::Gateway for Recording {
    fn stream(
        &self,
        request: covel_model::ModelRequest,
        cancel: tokio_util::sync::CancellationToken,
    ) -> covel_model::ModelStream {
        self.seen.lock().push(request.clone());
        self.script.stream(request, cancel)
    }
    fn name(&self) -> &str {
        "recording"
    }
}

impl Recording {
    fn new(script: &Value) -> Arc<Self> {
        Arc::new(Self { script: ScriptedGateway::parse(&script.to_string()).unwrap(), seen: Default::default() })
    }

    /// The texts of request number `at`, system prompt first.
    fn asked(&self, at: usize) -> String {
        let seen = self.seen.lock();
        let texts = seen[at].messages.iter().map(|message| message.content.as_str());
        std::iter::once(seen[at].system.as_str()).chain(texts).collect::<Vec<_>>().join("\n")
    }
}

async fn recorded(packages: Vec<Arc<Package>>, script: Value) -> (Table, Arc<Recording>) {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Recording::new(&script);
    let mut options = EngineOptions::new(folder.path(), Arc::clone(&gateway) as Arc<dyn covel_model::Gateway>);
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    for state in engine.publish(packages).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    (Table { engine, folder }, gateway)
}

/// A story agent with tools that call services.
fn teller(agent: &str, more: &str) -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            &format!(
                "---\nid: teller\nkind: plugin\ndescription: Tells.\nentry: ./entry.js\ncontributes:\n  tools: [buy, spoil, look]\nruntime:\n  type: agent\n  schedule: {{ stage: narrative }}\n  io: {{ visibility: story }}\n{more}  agent: {{ loop: {{ maxRetries: 0 }}{agent} }}\n---\nTell.\n"
            ),
        ),
        (
            "guard.js",
            "export default async (ctx) => { const found = []; for (const contract of ['bag.look@1', 'bag.add@1']) { try { found.push(await ctx.services.call({ contract })); } catch (error) { found.push(error.code); } } return found[0].length === 0 && found[1] === 'unavailable' && (await ctx.services.discover('bag.add@1')).length === 1 ? { skip: false } : { skip: true, found }; };",
        ),
        (
            "entry.js",
            "export default (covel) => { const { tool, z } = covel.toolkit; const add = (name, execute) => covel.registerTool(tool({ name, description: name, parameters: z.looseObject({}), execute })); \
             add('buy', async ({ item }, ctx) => ({ got: await ctx.services.call({ contract: 'bag.add@1', input: { item } }) })); \
             add('look', async ({ contract }, ctx) => ({ got: await ctx.services.call({ contract: contract ?? 'bag.look@1' }) })); \
             add('spoil', async ({ item }, ctx) => { await ctx.services.call({ contract: 'bag.add@1', input: { item } }); throw new Error('spoiled'); }); };",
        ),
    ])
}

/// Covers: TOL-3, TOL-4, WSV-7, WSV-8
#[tokio::test(flavor = "multi_thread")]
async fn an_agents_tools_stage_what_their_success_keeps() {
    let script = json!([
        {"toolCalls": [
            {"name": "buy", "arguments": {"item": "rope"}}, {"name": "spoil", "arguments": {"item": "milk"}},
            {"name": "look", "arguments": {}}, {"name": "look", "arguments": {"contract": "bag.none@1"}},
        ]},
        {"content": "You own a rope."},
    ]);
    let (stage, gateway) = recorded(vec![bag(), teller("", "")], script).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "buy").await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(
        operations(&turn),
        [("teller", "add", OperationStatus::Committed), ("teller", "add", OperationStatus::Discarded)]
    );
    assert_eq!(stage.data(&session), [("bag".into(), "items".into(), "rope".into(), json!(1))]);
    let asked = gateway.asked(1);
    assert!(asked.contains(r#"{"got":"added"}"#), "{asked}");
    assert!(asked.contains(r#""error":"Error: spoiled"#) || asked.contains("spoiled"), "{asked}");
    // Withdrawn at once: the next tool does not see it any more.
    assert!(asked.contains(r#"{"got":["rope"]}"#), "{asked}");
    assert!(asked.contains(r#""code":"unavailable"#), "{asked}");
    stage.replays(&[&turn]).await;
}

/// Covers: SVC-8, WSV-11
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_reads_and_does_not_stage() {
    let script = json!([{"content": "The bag is empty."}]);
    let (stage, _) = recorded(vec![bag(), teller("", "  guard: ./guard.js\n")], script).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "look").await;
    assert_eq!(turn.narrative, "The bag is empty.", "{turn:#?}");
    assert!(turn.operations.is_empty());
}

/// Covers: WSV-11
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_suspend_stages_nothing() {
    let script = json!([
        {"toolCalls": [{"name": "buy", "arguments": {"item": "rope"}}]},
        {"content": "Nothing is sold."},
    ]);
    let tools = ", tools: { builtin: [suspend], plugin: [buy] }";
    let (stage, gateway) = recorded(vec![bag(), teller(tools, "")], script).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "buy").await;
    assert!(turn.committed, "{turn:#?}");
    assert!(turn.operations.is_empty());
    let asked = gateway.asked(1);
    assert!(asked.contains("Write services cannot be called here.") && asked.contains("unavailable"), "{asked}");
}

/// A shop with one rope.
fn shop() -> Arc<Package> {
    provider(
        "shop",
        "[{ contract: shop.sell@1, access: write }]",
        r"covel.registerService({ name: 'sell', contract: 'shop.sell@1', access: 'write', input: any, output: any,
            handler: async (input, ctx) => { await ctx.pluginData.update('stock', 'rope', [{ op: 'inc', path: '/sold', by: 1, max: 1 }]); return 'sold'; } });",
    )
}

/// Covers: WSV-9, WSV-10
#[tokio::test(flavor = "multi_thread")]
async fn a_storys_lost_operations_are_told_to_the_player_and_next_turn_to_the_agent() {
    let first = caller("aa", "{ stage: narrative }", "return call('shop.sell@1');");
    let teller = package(&[
        (
            "PLUGIN.md",
            "---\nid: teller\nkind: plugin\ndescription: Tells.\nentry: ./entry.js\ncontributes:\n  tools: [buy]\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell.\n",
        ),
        (
            "entry.js",
            "export default (covel) => { const { tool, z } = covel.toolkit; covel.registerTool(tool({ name: 'buy', description: 'Buys.', parameters: z.looseObject({}), execute: async (input, ctx) => ({ got: await ctx.services.call({ contract: 'shop.sell@1' }) }) })); };",
        ),
    ]);
    let other = caller("other", "{ trigger: { type: manual } }", "return 1;");
    let script = json!([
        {"toolCalls": [{"name": "buy", "arguments": {}}]}, {"content": "You bought it."},
        {"content": "Then you slept."}, {"content": "And woke."},
    ]);
    let (stage, gateway) = recorded(vec![shop(), first, teller, other], script).await;
    let session = stage.session().await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let turn = stage.engine.execute(ExecutionRequest::player(&session, "buy"), Some(sender)).await.unwrap();
    assert!(turn.committed && turn.error.is_none() && turn.isolated.is_empty(), "{turn:#?}");
    assert_eq!(
        operations(&turn),
        [("aa", "sell", OperationStatus::Committed), ("teller", "sell", OperationStatus::Failed)]
    );
    assert_eq!(turn.operations[1].code.as_deref(), Some("conflict"));
    let mut notices = Vec::new();
    while let Ok(event) = events.try_recv() {
        assert_ne!(event.kind, "proposal.failed");
        if event.kind == "ui.rendered" {
            notices.push(event.payload.value()["render"]["parts"][0]["content"].clone());
        }
    }
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0]["count"], json!(1));
    assert_eq!(notices[0]["message"], "1 change to another plugin's data did not take effect.");
    let trace = stage.engine.trace(&session, &turn.turn_id).unwrap();
    let kinds: Vec<&str> = trace.operations.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(kinds, ["operation.committed", "operation.failed"]);

    // What runs by name in between neither hears of it nor ends it.
    let kind = ExecutionKind::Manual {
        runtime_id: "other".into(),
        payload: Json::null(),
        message: String::new(),
        ignore_upstreams: false,
    };
    let request = ExecutionRequest { kind, ..ExecutionRequest::player(&session, "") };
    assert!(stage.engine.execute(request, None).await.unwrap().committed);
    let next = stage.turn(&session, "sleep").await;
    assert!(next.committed, "{next:#?}");
    let block = "<operations-not-applied>\n- shop.sell@1 (shop): conflict\n</operations-not-applied>";
    assert!(gateway.asked(2).contains(block), "{}", gateway.asked(2));
    // It follows the newest turn only: the first caller failed in this one, the teller lost nothing.
    let last = stage.turn(&session, "wake").await;
    assert!(last.committed && !gateway.asked(3).contains("operations-not-applied"), "{}", gateway.asked(3));
    stage.replays(&[&turn, &next]).await;
}

/// Covers: WSV-11
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_staged_twice_by_resumptions_retries_and_jobs() {
    let wait = function(
        "wait",
        "{ trigger: { type: manual } }",
        "",
        "",
        "export default async (ctx) => { if (ctx.resumeData === undefined) return { outcome: 'suspended', reason: 'wait' };\n\
         let code; try { await ctx.services.call({ contract: 'bag.add@1' }); } catch (error) { code = error.code; }\n\
         return { outcome: 'success', value: { code, look: await ctx.services.call({ contract: 'bag.look@1' }) } }; };",
    );
    let stage = stage(vec![bag(), wait], json!([])).await;
    let session = stage.session().await;
    let manual = |runtime: &str| ExecutionRequest {
        kind: ExecutionKind::Manual {
            runtime_id: runtime.into(),
            payload: Json::null(),
            message: String::new(),
            ignore_upstreams: false,
        },
        ..ExecutionRequest::player(&session, "")
    };
    let turn = stage.engine.execute(manual("wait"), None).await.unwrap();
    let kind = ExecutionKind::Resume { suspension_id: turn.suspensions[0].suspension_id.clone(), data: Json::null() };
    let request = ExecutionRequest { kind, ..ExecutionRequest::player(&session, "") };
    let resumed = stage.engine.execute(request, None).await.unwrap();
    assert_eq!(*seen(&resumed, "wait"), json!({"code": "unavailable", "look": []}), "{resumed:#?}");
    assert!(resumed.operations.is_empty());
}

/// Covers: SVC-4, SVC-8
#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_did_not_approve_is_neither_found_nor_called() {
    let files = [
        (
            "PLUGIN.md",
            "---\nid: stranger\nkind: plugin\ndescription: Serves.\nentry: ./entry.js\ncontributes:\n  services: [stranger.now@1]\n---\n",
        ),
        (
            "entry.js",
            "export default (covel) => { const { z } = covel.toolkit; covel.registerService({ name: 'now', contract: 'stranger.now@1', input: z.any(), output: z.any(), handler: () => 'now' }); };",
        ),
    ];
    let stranger = compile_in_memory(&files, Discovery::Community).package.unwrap();
    let own = caller(
        "own",
        "{ stage: pre-turn }",
        "return { found: (await ctx.services.discover('stranger.now@1')).length, now: await call('stranger.now@1'), named: await tell(() => ctx.services.call({ pluginId: 'stranger', name: 'now', contract: 'stranger.now@1' })) };",
    );
    let stage = stage(vec![stranger, own], json!([])).await;
    let new = |id: &str, approved: &[&str]| NewSession {
        id: Some(id.into()),
        approved: approved.iter().map(|one| (*one).to_owned()).collect(),
        ..NewSession::default()
    };
    stage.engine.create_session(new("without", &[])).await.unwrap();
    let refused = json!({"error": "unavailable", "name": "ServiceError"});
    let turn = stage.turn("without", "go").await;
    assert_eq!(*seen(&turn, "own"), json!({"found": 0, "now": refused, "named": refused}));
    stage.engine.create_session(new("with", &["stranger"])).await.unwrap();
    let turn = stage.turn("with", "go").await;
    assert_eq!(*seen(&turn, "own"), json!({"found": 1, "now": "now", "named": "now"}));
    // What one session approved opens nothing in another.
    let turn = stage.turn("without", "again").await;
    assert_eq!(*seen(&turn, "own"), json!({"found": 0, "now": refused, "named": refused}));
}

fn request(contract: &str, input: Value) -> Json {
    Json::from_value(json!({"contract": contract, "input": input}))
}

/// Covers: SVC-9, SVC-10, WSV-2, WSV-5, WSV-6, WSV-13, CTX-3, RDD-1
#[tokio::test(flavor = "multi_thread")]
async fn services_and_callers_in_rust_keep_the_same_rules() {
    let code = |error: covel_abi::HostError| json!(error.code);
    let bank = NativePackage::new("bank")
        .write_service("pay", "bank.pay@1", |input: &Json, context: &ServiceContext<'_>| {
            let by = input.value()["by"].as_i64().ok_or_else(|| ServiceContext::invalid_input("`by` is a number"))?;
            let ops = json!([{"op": "inc", "path": "/n", "by": by, "min": 0}]);
            context.set("log", context.caller_plugin_id(), input.clone())?;
            context.update("purse", "coins", Json::from_value(ops))?;
            Ok(context.get("purse", "coins")?.unwrap_or_else(Json::null))
        })
        .described("Pays.")
        .service("look", "bank.look@1", |_: &Json, context: &ServiceContext<'_>| {
            assert!(context.set("purse", "coins", Json::null()).is_err());
            let roll = context.random_int(0, 1_000)?;
            let rows = context.list("purse")?.len();
            Ok(Json::from_value(json!({"rows": rows, "coins": context.get("purse", "coins")?, "roll": roll})))
        })
        .service("loop", "bank.loop@1", |_: &Json, context: &ServiceContext<'_>| {
            Ok(Json::from_value(json!(context.call(&request("bank.loop@1", json!(null))).unwrap_err().code)))
        })
        .service("panics", "bank.panics@1", |_: &Json, _: &ServiceContext<'_>| panic!("no"))
        .service("huge", "bank.huge@1", |_: &Json, _: &ServiceContext<'_>| {
            Ok(Json::from_value(json!("x".repeat(2_000_000))))
        });
    let client = NativePackage::new("client").runtime("pays", Stage::PreTurn, move |context: &NativeContext<'_>| {
        let call = |contract: &str, input: Value| {
            context.call_service(&request(contract, input)).map_or_else(code, |answer| answer.value().clone())
        };
        let value = json!({
            "pay": call("bank.pay@1", json!({"by": 5})), "again": call("bank.pay@1", json!({"by": 2})),
            "short": call("bank.pay@1", json!({"by": -100})), "odd": call("bank.pay@1", json!({})),
            "look": call("bank.look@1", json!(null)), "loop": call("bank.loop@1", json!(null)),
            "panics": call("bank.panics@1", json!(null)), "huge": call("bank.huge@1", json!(null)),
            "js": call("bag.look@1", json!(null)), "none": call("bank.none@1", json!(null)), "bad": call("Bank", json!(null)),
            "found": context.discover_services("bank.pay@1").unwrap(),
        });
        Ok(NativeOutput::value(value))
    });
    let reader = caller(
        "reader",
        "{ stage: post-turn }",
        "return { look: await call('bank.look@1'), pay: await call('bank.pay@1', { by: 1 }) };",
    );
    let stage = stage(vec![bag(), reader], json!([])).await;
    stage.engine.publish_native(bank).await.unwrap();
    stage.engine.publish_native(client).await.unwrap();
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    let pays = seen(&turn, "client/pays");
    for (name, expected) in [
        ("pay", json!({"n": 5})),
        ("again", json!({"n": 7})),
        ("short", json!("conflict")),
        ("odd", json!("invalid-input")),
        ("loop", json!("cycle")),
        ("panics", json!("provider-error")),
        ("huge", json!("invalid-output")),
        ("js", json!("unavailable")),
        ("none", json!("unavailable")),
        ("bad", json!("invalid-input")),
        ("found", json!([{"pluginId": "bank", "name": "pay", "contract": "bank.pay@1", "description": "Pays."}])),
    ] {
        assert_eq!(pays[name], expected, "{name}");
    }
    assert_eq!(pays["look"]["rows"], 1);
    assert_eq!(pays["look"]["coins"], json!({"n": 7}));
    // A service in Rust serves JavaScript as well, and sees what was staged in the layer before.
    assert_eq!(seen(&turn, "reader")["look"]["coins"], json!({"n": 7}));
    assert_eq!(seen(&turn, "reader")["pay"], json!({"n": 8}));
    assert_eq!(row(&turn, "reader").reads_from, ["client/pays"]);
    assert_eq!(turn.operations.len(), 3);
    assert!(stage.data(&session).contains(&("bank".into(), "purse".into(), "coins".into(), json!({"n": 8}))));
    let twice = |contract: &str| {
        let nothing = |_: &Json, _: &ServiceContext<'_>| Ok(Json::null());
        NativePackage::new("twice").service("a", "twice.a@1", nothing).service("a", contract, nothing)
    };
    assert!(stage.engine.publish_native(twice("twice.b@1")).await.is_err());
    let wrong =
        NativePackage::new("wrong").service("a", "Wrong@1", |_: &Json, _: &ServiceContext<'_>| Ok(Json::null()));
    assert!(stage.engine.publish_native(wrong).await.is_err());
}

/// Two buyers of the last rope, over many schedules: threads that start and end in every order. One commits, the other
/// is refused, never both and never none; and it is always the same one. `COVEL_SCHEDULES` plays so many.
///
/// Covers: WSV-5, WSV-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_rope_is_sold_once_in_every_schedule() {
    struct Buyer(&'static str, Arc<AtomicU64>);
    impl covel_exec::NativeRuntime for Buyer {
        fn run(&self, context: &NativeContext<'_>) -> Result<NativeOutput, String> {
            // Work of a length that differs from turn to turn, before and after the purchase.
            let spin = |salt: u64| {
                let mut state = self.1.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed) ^ salt;
                state ^= state >> 29;
                for _ in 0..state % 3_000 {
                    std::hint::spin_loop();
                }
            };
            spin(self.0.len() as u64);
            let answer = context.call_service(&request("shop.sell@1", json!({"to": self.0})));
            spin(77);
            Ok(NativeOutput::value(json!({"got": answer.is_ok()})))
        }
        fn is_heavy(&self) -> bool {
            true
        }
    }
    let clock = Arc::new(AtomicU64::new(1));
    let shop = NativePackage::new("shop")
        .runtime("stock", Stage::PreTurn, |context: &NativeContext<'_>| {
            context.set("stock", "rope", Json::from_value(json!({"n": 1}))).map_err(|error| error.message)?;
            Ok(NativeOutput::default())
        })
        .write_service("sell", "shop.sell@1", |input: &Json, context: &ServiceContext<'_>| {
            let ops = json!([{"op": "inc", "path": "/n", "by": -1, "min": 0}]);
            context.update("stock", "rope", Json::from_value(ops))?;
            context.set("sold", "to", input.clone())?;
            Ok(Json::null())
        });
    let stage = stage(
        vec![function(
            "teller",
            "{ stage: narrative }",
            "  io: { visibility: story }\n",
            "",
            "export default () => ({ outcome: 'success', value: { narrativeOutput: 'A market.' } });",
        )],
        json!([]),
    )
    .await;
    stage.engine.publish_native(shop).await.unwrap();
    for name in ["ann", "bob"] {
        let buyer = NativePackage::new(name).runtime("buys", Stage::PostTurn, Buyer(name, Arc::clone(&clock)));
        stage.engine.publish_native(buyer).await.unwrap();
    }
    let session = stage.session().await;
    let schedules = std::env::var("COVEL_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for _ in 0..schedules {
        let turn = stage.turn(&session, "buy").await;
        assert!(turn.committed, "{turn:#?}");
        assert_eq!(
            operations(&turn),
            [("ann/buys", "sell", OperationStatus::Committed), ("bob/buys", "sell", OperationStatus::Failed)]
        );
        assert_eq!(turn.isolated.len(), 1);
        assert_eq!(error_code(row(&turn, "bob/buys")), "conflict");
        // Both were told that it is theirs: nobody sees what a sibling stages.
        assert_eq!(*seen(&turn, "ann/buys"), json!({"got": true}));
    }
    let data = stage.data(&session);
    assert!(data.contains(&("shop".into(), "sold".into(), "to".into(), json!({"to": "ann"}))), "{data:?}");
}

/// Covers: SVC-5, SVC-10, TRC-2
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_services_and_a_chain_of_eight_have_traces_that_add_up() {
    let mut packages = Vec::new();
    for at in 0..10 {
        let contracts: Vec<String> = (0..20).map(|n| format!("p{at}.s{n}@1")).collect();
        let code: String = (0..20)
            .map(|n| {
                format!(
                    "covel.registerService({{ name: 's{n}', contract: 'p{at}.s{n}@1', input: any, output: any, handler: async (input, ctx) => input + {n} + ctx.random.int(0, 1) }});"
                )
            })
            .collect();
        packages.push(provider(&format!("p{at}"), &format!("[{}]", contracts.join(", ")), &code));
    }
    for at in 0..2 {
        let levels = (1..=8).filter(|level| level % 2 == at);
        let contracts: Vec<String> = levels.clone().map(|level| format!("deep.l{level}@1")).collect();
        let code: String = levels
            .map(|level| {
                let next = level + 1;
                let call = if level == 8 { "'bottom'".to_owned() } else { format!("[await ctx.services.call({{ contract: 'deep.l{next}@1' }})]") };
                format!("covel.registerService({{ name: 'l{level}', contract: 'deep.l{level}@1', input: any, output: any, handler: async (input, ctx) => {call} }});")
            })
            .collect();
        packages.push(provider(&format!("d{at}"), &format!("[{}]", contracts.join(", ")), &code));
    }
    packages.push(caller(
        "fan",
        "{ stage: pre-turn }",
        "const sums = []; for (let p = 0; p < 10; p += 2) { const calls = []; for (const q of [p, p + 1]) for (let n = 0; n < 20; n++) calls.push(ctx.services.call({ contract: `p${q}.s${n}@1`, input: q })); sums.push(...await Promise.all(calls)); } return { count: sums.length, sum: sums.reduce((a, b) => a + b, 0) };",
    ));
    packages.push(caller("chain", "{ stage: pre-turn }", "return { deep: await call('deep.l1@1') };"));
    // The system's clock, so that durations are measured.
    let folder = tempfile::tempdir().unwrap();
    let gateway = Arc::new(ScriptedGateway::parse("[]").unwrap());
    let options = EngineOptions { durable: false, ..EngineOptions::new(folder.path(), gateway) };
    let stage = Table { engine: Engine::open(options).unwrap(), folder };
    for state in stage.engine.publish(packages).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(*seen(&turn, "fan"), json!({"count": 200, "sum": 10 * 190 + 20 * 45}));
    assert_eq!(*seen(&turn, "chain"), json!({"deep": [[[[[[["bottom"]]]]]]]}));
    let trace = stage.engine.trace(&session, &turn.turn_id).unwrap();
    let of = |runtime: &str| -> Vec<_> {
        trace.services.iter().map(|one| &one.call).filter(|call| call.runtime_id.as_deref() == Some(runtime)).collect()
    };
    let (fan, chain) = (of("fan"), of("chain"));
    assert_eq!((fan.len(), chain.len(), trace.services.len()), (200, 8, 208));
    assert!(trace.services.iter().all(|one| one.call.outcome == "success"));
    assert!(fan.iter().all(|call| call.parent_call_id.is_none()));
    for (at, call) in fan.iter().enumerate() {
        assert_eq!(
            (call.provider_plugin_id.clone(), call.name.clone()),
            (format!("p{}", at / 20), format!("s{}", at % 20))
        );
    }
    for (outer, inner) in chain.iter().zip(&chain[1..]) {
        assert_eq!(inner.parent_call_id.as_ref(), Some(&outer.call_id));
        assert_eq!(inner.caller_plugin_id, outer.provider_plugin_id);
        assert!(inner.duration_micros <= outer.duration_micros);
    }
    let took = row(&turn, "chain").duration_micros;
    assert!(chain[7].duration_micros > 0 && chain[0].duration_micros <= took, "{} {took}", chain[0].duration_micros);
    let mut ids: Vec<&str> = trace.services.iter().map(|one| one.call.call_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 208);
}

/// Covers: SVC-9, CTX-1
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_services_replays_to_the_same_bytes() {
    let dice = provider(
        "dice",
        "[dice.roll@1, { contract: dice.keep@1, access: write }]",
        r"covel.registerService({ name: 'roll', contract: 'dice.roll@1', input: any, output: any,
            handler: async (input, ctx) => ({ int: ctx.random.int(0, 1000), unit: Math.random(), date: Date.now(), uuid: crypto.randomUUID() }) });
          covel.registerService({ name: 'keep', contract: 'dice.keep@1', access: 'write', input: any, output: any,
            handler: async (input, ctx) => { await ctx.pluginData.set('kept', 'k' + ctx.random.int(0, 9), Date.now()); return ctx.random.int(0, 1000); } });",
    );
    let rolls = "const all = await Promise.all([1, 2, 3, 4].map(() => call('dice.roll@1'))); const kept = await Promise.all([1, 2].map(() => call('dice.keep@1'))); return { all, kept };";
    let stage = stage(
        vec![dice, caller("one", "{ stage: pre-turn }", rolls), caller("two", "{ stage: pre-turn }", rolls)],
        json!([]),
    )
    .await;
    let session = stage.session().await;
    let first = stage.turn(&session, "roll").await;
    let second = stage.turn(&session, "roll").await;
    assert!(first.committed && first.operations.len() == 4, "{first:#?}");
    let of = |turn: &TurnDocument, id: &str| {
        seen(turn, id)["all"].as_array().unwrap().iter().map(|one| one["int"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let mut all: Vec<u64> = [of(&first, "one"), of(&first, "two"), of(&second, "one")].concat();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() >= 10, "calls draw numbers of their own: {all:?}");
    stage.replays(&[&first, &second]).await;
}
