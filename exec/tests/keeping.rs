//! What a commit keeps and what falls with what.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{ExecutionKind, ExecutionRequest, NewSession, RuntimeStatus, SetupState, TurnDocument};
use covel_graph::package::Package;
use serde_json::json;
use support::{function, package, row, stage};

const OK: &str = "export default async () => ({ outcome: 'success', value: {} });";

fn narrator() -> Arc<Package> {
    package(&[(
        "PLUGIN.md",
        "---\nid: narrator\nkind: plugin\ndescription: Tells.\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell the story.\n",
    )])
}

/// One package; `one` and `two` together break a maximum, so `two` is refused at commit.
fn purse(reader: &str, handler: &str) -> Arc<Package> {
    let inc = "export default async (ctx) => { await ctx.pluginData.update('purse', 'coins', [{ op: 'inc', path: '/n', by: 2, max: 3 }]); if (ctx.runtimeId === 'purse/two') await ctx.pluginData.set('purse', 'by-two', { secret: 1 }); return { outcome: 'success', value: { n: 1 } }; };";
    package(&[
        ("PLUGIN.md", "---\nid: purse\nkind: plugin\ndescription: Coins.\n---\n"),
        (
            "runtimes/one/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/one/h.js", inc),
        (
            "runtimes/two/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/two/h.js", inc),
        ("runtimes/reader/RUNTIME.md", reader),
        ("runtimes/reader/h.js", handler),
    ])
}

/// Covers: RDD-1, RDD-2
#[tokio::test(flavor = "multi_thread")]
async fn who_read_the_writes_of_a_dropped_runtime_falls_even_when_it_also_binds_it_as_an_option() {
    let reads = "export default async (ctx) => { const seen = await ctx.pluginData.get('purse', 'by-two'); await ctx.pluginData.set('log', 'seen', { seen }); return { outcome: 'success' }; };";
    let binds = "export default async (ctx) => { await ctx.pluginData.set('log', 'bound', { bound: 'two' in ctx.inputs }); return { outcome: 'success' }; };";
    let decl = "---\ntype: function\nschedule: { stage: post-turn }\nio: { inputs: { two: { from: { runtime: purse/two }, required: false } } }\nfunction: { handler: ./h.js }\n---\n";
    for (handler, kept) in [(reads, false), (binds, true)] {
        let stage = stage(vec![purse(decl, handler), narrator()], json!([{"content": "A day."}])).await;
        let session = stage.session().await;
        let turn = stage.turn(&session, "go").await;
        assert!(turn.committed, "{turn:#?}");
        let isolated: Vec<_> = turn.isolated.iter().map(|isolated| isolated.runtime_id.as_str()).collect();
        assert_eq!(isolated.contains(&"purse/reader"), !kept, "{turn:#?}");
        assert_eq!(stage.data(&session).iter().any(|row| row.1 == "log"), kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_cannot_be_stored_does_not_take_its_runtime_with_it() {
    let exporter = package(&[
        (
            "PLUGIN.md",
            "---\nid: big\nkind: plugin\ndescription: Exports much.\nprovides: [big.text@1]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io:\n    output: { contract: big.text@1, schema: ./n.json, recordAs: n }\n  function: { handler: ./h.js }\n---\n",
        ),
        ("n.json", r#"{"type":"object"}"#),
        (
            "h.js",
            "export default async (ctx) => { await ctx.pluginData.set('n', 'k', 1); return { outcome: 'success', value: { text: 'x'.repeat(400000) } }; };",
        ),
    ]);
    let stage = stage(vec![exporter], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed, "{:?}", turn.error);
    assert_eq!(stage.data(&session).len(), 1);
    assert!(turn.notes.iter().any(|note| note.code == "export-not-stored"), "{:?}", turn.notes);
}

/// Its writes commit, so its events count too.
#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_guard_that_skips_reach_followers() {
    let agent = package(&[
        (
            "PLUGIN.md",
            "---\nid: watch\nkind: plugin\ndescription: Watches.\ncontributes:\n  events:\n    - { topic: watch.quiet, schema: ./any.json, description: Quiet. }\n---\n",
        ),
        ("any.json", r#"{"type":"object"}"#),
        (
            "runtimes/look/RUNTIME.md",
            "---\ntype: agent\nschedule: { stage: post-turn }\nguard: ./guard.js\n---\nLook.\n",
        ),
        (
            "runtimes/look/guard.js",
            "export default () => ({ kind: 'covel.tool-result', content: { skip: true, mood: 'calm' }, emittedEvents: [{ topic: 'watch.quiet', data: { n: 1 } }] });",
        ),
        (
            "runtimes/hear/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: watch.quiet } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/hear/h.js", "export default (ctx) => ({ outcome: 'success', value: ctx.triggerEvent.data });"),
    ]);
    let stage = stage(vec![agent], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(row(&turn, "watch/look").status, RuntimeStatus::Skipped, "{turn:#?}");
    assert_eq!(turn.events.len(), 1);
    assert_eq!(*row(&turn, "watch/hear").output.as_ref().unwrap().value(), json!({"n": 1}));
}

/// A setup runtime that says `done` but cannot be committed must not be tried for ever.
#[tokio::test(flavor = "multi_thread")]
async fn setup_that_is_refused_at_commit_uses_up_its_budget() {
    let inc = "export default async (ctx) => { await ctx.pluginData.update('n', 'k', [{ op: 'inc', path: '/n', by: 2, max: 3 }]); return { outcome: 'success', completion: 'done' }; };";
    let clash = package(&[
        ("PLUGIN.md", "---\nid: clash\nkind: plugin\ndescription: Clashes.\n---\n"),
        (
            "runtimes/one/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: setup }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/one/h.js", inc),
        (
            "runtimes/two/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: setup }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/two/h.js", inc),
    ]);
    let stage = stage(vec![clash, function("other", "{ stage: pre-turn }", "", "", OK)], json!([])).await;
    let session = stage.session().await;
    for attempt in 1..=3 {
        let turn = stage.turn(&session, "go").await;
        assert_eq!(turn.committed, attempt > 3, "attempt {attempt}: {turn:#?}");
        assert_eq!(turn.error.unwrap().code, "conflict");
    }
    let states = stage.engine.session(&session).unwrap().setup_runtimes;
    assert!(matches!(states["clash/two"], SetupState::Blocked { .. }), "{states:?}");
    assert!(stage.turn(&session, "go").await.committed);
}

/// It never ran, so it has used up nothing.
#[tokio::test(flavor = "multi_thread")]
async fn setup_that_waits_for_a_failing_one_keeps_its_budget() {
    let pair = package(&[
        ("PLUGIN.md", "---\nid: pair\nkind: plugin\ndescription: Two steps.\n---\n"),
        (
            "runtimes/first/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: setup }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/first/h.js", "export default () => { throw new Error('not yet'); };"),
        (
            "runtimes/second/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: setup, needs: [pair/first] }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/second/h.js", "export default () => ({ outcome: 'success', completion: 'done' });"),
    ]);
    let stage = stage(vec![pair], json!([])).await;
    let session = stage.session().await;
    stage.turn(&session, "go").await;
    let states = stage.engine.session(&session).unwrap().setup_runtimes;
    assert!(matches!(states["pair/first"], SetupState::Pending { attempts: 1, .. }), "{states:?}");
    assert!(matches!(states["pair/second"], SetupState::Pending { attempts: 0, .. }), "{states:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_run_adds_nothing_to_the_dialogue() {
    let stage = stage(vec![narrator()], json!([{"content": "A day."}, {"content": "Again."}])).await;
    let session = stage.session().await;
    stage.turn(&session, "go").await;
    let request = ExecutionRequest {
        kind: ExecutionKind::Manual {
            runtime_id: "narrator".into(),
            payload: json!({}).into(),
            message: String::new(),
            ignore_upstreams: false,
        },
        ..ExecutionRequest::player(&session, "")
    };
    let again = stage.engine.execute(request, None).await.unwrap();
    assert_eq!((again.committed, again.narrative.as_str()), (true, "Again."));
    assert_eq!(stage.engine.messages(&session, 10).unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_failed_can_be_started_again() {
    let init = function(
        "init",
        "{ stage: setup }",
        "",
        "",
        "export default () => ({ outcome: 'success', completion: 'done' });",
    );
    let stage = stage(vec![init, narrator()], json!([{"error": "no line"}, {"content": "It begins."}])).await;
    let session = stage.session().await;
    let start = || ExecutionRequest { kind: ExecutionKind::Start, ..ExecutionRequest::player(&session, "") };
    let failed = stage.engine.execute(start(), None).await.unwrap();
    assert!(!failed.committed);
    let opened = stage.engine.execute(start(), None).await.unwrap();
    assert_eq!((opened.committed, opened.narrative.as_str()), (true, "It begins."));
    assert!(stage.engine.execute(start(), None).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_found_by_its_name_before_any_alias() {
    let command = |id: &str, name: &str, alias: &str| {
        let manifest = format!(
            "---\nid: {id}\nkind: plugin\ndescription: A command.\nentry: ./entry.js\ncontributes:\n  actions: [go]\n  commands:\n    - {{ name: {name}, aliases: [{alias}], description: Goes., action: go }}\n---\n"
        );
        package(&[
            ("PLUGIN.md", manifest.as_str()),
            (
                "entry.js",
                "export default (covel) => { covel.registerRpc('go', async (_, ctx) => ({ ok: true, message: ctx.pluginId })); };",
            ),
        ])
    };
    let stage = stage(vec![command("early", "attack", "roll"), command("late", "roll", "dice")], json!([])).await;
    let session = stage.session().await;
    let found = stage.engine.command(&session, "/roll", None).await.unwrap();
    assert_eq!(found.message.as_deref(), Some("late"));
}

/// The active set is that of the player's request and of what is published now, whatever was resolved before.
/// Covers: REL-6
#[tokio::test(flavor = "multi_thread")]
async fn a_publication_between_turns_is_resolved_anew_from_the_players_request() {
    let wanting = |version: &str, requires: &str| {
        package(&[
            (
                "PLUGIN.md",
                &format!(
                    "---\nid: wanting\nkind: plugin\nversion: {version}\ndescription: Wants.\n{requires}runtime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./h.js }}\n---\n"
                ),
            ),
            ("h.js", "export default () => ({ outcome: 'success' });"),
        ])
    };
    let stage = stage(vec![wanting("1.0.0", ""), steady()], json!([])).await;
    let new = NewSession {
        id: Some("s".into()),
        plugins: Some(vec!["wanting".into(), "steady".into()]),
        ..NewSession::default()
    };
    stage.engine.create_session(new).await.unwrap();
    let active = |turn: &TurnDocument| turn.runtimes.iter().map(|row| row.runtime_id.clone()).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(active(&stage.turn("s", "go").await), ["steady", "wanting"]);
    }
    // A contract nobody provides: the stale activation must not be used.
    stage.engine.publish(vec![wanting("1.1.0", "requires: [gone@1]\n")]).await;
    assert_eq!(active(&stage.turn("s", "go").await), ["steady"]);
    // The choice is kept: once it can be met again it is.
    stage.engine.publish(vec![wanting("1.2.0", "")]).await;
    assert_eq!(active(&stage.turn("s", "go").await), ["steady", "wanting"]);
}

fn steady() -> Arc<Package> {
    function("steady", "{ stage: pre-turn }", "", "", "export default () => ({ outcome: 'success' });")
}

/// Event schemas are compiled when a version is published and belong to it: files edited on disk change nothing before
/// the next publication, which brings validators of its own.
/// Covers: REL-7
#[tokio::test(flavor = "multi_thread")]
async fn event_schemas_are_those_of_the_published_version() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crier");
    std::fs::create_dir(&root).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    write(
        "PLUGIN.md",
        "---\nid: crier\nkind: plugin\ndescription: Cries.\ncontributes:\n  events: [{ topic: town.cry, schema: ./cry.json, description: A cry. }]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  function: { handler: ./h.js }\n---\n",
    );
    write(
        "h.js",
        "export default () => ({ outcome: 'success', effects: { events: [{ topic: 'town.cry', data: { said: 'hear' } }] } });",
    );
    write("cry.json", r#"{"type":"object","properties":{"said":{"type":"string"}}}"#);
    let compiled = || {
        let compiled = covel_graph::compile_package(&root, covel_graph::Discovery::Builtin);
        compiled.package.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
    };
    let stage = stage(vec![compiled()], json!([])).await;
    let session = stage.session().await;
    assert_eq!(row(&stage.turn(&session, "go").await, "crier").status, RuntimeStatus::Success);

    write("cry.json", r#"{"type":"object","properties":{"said":{"type":"number"}}}"#);
    assert_eq!(row(&stage.turn(&session, "go").await, "crier").status, RuntimeStatus::Success);

    stage.engine.publish(vec![compiled()]).await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(support::error_code(row(&turn, "crier")), "event-payload-invalid");

    // A schema that is none never gets as far as a turn.
    write("cry.json", r#"{"type":"object","properties":{"said":{"type":"nonsense"}}}"#);
    let broken = covel_graph::compile_package(&root, covel_graph::Discovery::Builtin);
    assert!(broken.package.is_none(), "{:#?}", broken.diagnostics);
}

/// An action's store writes take effect one by one: a refused record stays as it was, what was written before it stays
/// written though the action fails, and no turn is recorded.
/// Covers: DAT-4, UIW-1
#[tokio::test(flavor = "multi_thread")]
async fn an_actions_refused_write_leaves_its_record_and_no_turn() {
    let ledger = package(&[
        (
            "PLUGIN.md",
            "---\nid: ledger\nkind: plugin\ndescription: Keeps.\nentry: ./entry.js\ncontributes:\n  data: { gold: { version: 1, schema: ./gold.json } }\n  actions: [pay]\n  commands:\n    - { name: pay, description: Pays., action: pay, arguments: [{ name: amount, type: string, required: true }] }\n---\n",
        ),
        (
            "gold.json",
            r#"{"type":"object","required":["coins"],"properties":{"coins":{"type":"integer","minimum":0}}}"#,
        ),
        (
            "entry.js",
            "export default (covel) => { covel.registerRpc('pay', async ({ args: payload }, ctx) => { await ctx.store.setPluginData({ namespace: 'notes', key: 'last', value: payload.amount }); if (payload.amount === 'wrong') await ctx.store.setPluginData('gold', 'purse', 1); await ctx.store.setPluginData({ namespace: 'gold', key: 'purse', value: { coins: JSON.parse(payload.amount) } }); return { ok: true }; }); };",
        ),
    ]);
    let stage = stage(vec![ledger], json!([])).await;
    let session = stage.session().await;
    let purse = || {
        let data = stage.data(&session);
        let mut records: Vec<_> =
            data.into_iter().map(|(_, namespace, key, value)| (format!("{namespace}/{key}"), value)).collect();
        records.sort_by(|a, b| a.0.cmp(&b.0));
        records
    };
    assert!(stage.engine.command(&session, "/pay 5", None).await.unwrap().ok);
    assert_eq!(purse(), [("gold/purse".to_owned(), json!({"coins": 5})), ("notes/last".to_owned(), json!("5"))]);
    let refused = stage.engine.command(&session, "/pay -1", None).await;
    let told = format!("{refused:?}");
    assert!(refused.is_err() && told.contains("schema"), "{told}");
    assert_eq!(purse(), [("gold/purse".to_owned(), json!({"coins": 5})), ("notes/last".to_owned(), json!("-1"))]);
    // Arguments of another shape write nothing, least of all a record without a name.
    let wrong = stage.engine.command(&session, "/pay wrong", None).await;
    assert!(format!("{wrong:?}").contains("namespace, key and value"), "{wrong:?}");
    assert_eq!(purse().len(), 2);
    assert!(stage.engine.turns(&session, 10).unwrap().is_empty());
}
