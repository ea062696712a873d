//! Hostile and unlucky packages: what they may cost, and what they may not take with them.
#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use covel_exec::{
    ExecError, ExecutionRequest, NativeContext, NativeOutput, NativePackage, NativeRuntime, NewSession, RuntimeStatus,
};
use covel_graph::{
    Stage,
    package::{Discovery, Package, compile_in_memory},
};
use serde_json::json;
use support::{error_code, function, package, row, stage};

/// Doubles its record again and again; each list is short, what it makes is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_doubles_its_record_is_refused_before_it_fills_memory() {
    let doubling = function(
        "doubling",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('n', 'k', { seed: 'x'.repeat(64) }); await ctx.pluginData.update('n', 'k', Array.from({ length: 200 }, (_, i) => ({ op: 'copy', from: '', path: '/c' + i }))); return { outcome: 'success' }; };",
    );
    let stage = stage(vec![doubling], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(row(&turn, "doubling").status, RuntimeStatus::Failed, "{turn:#?}");
    assert!(row(&turn, "doubling").error.as_ref().unwrap().message.contains("bytes"), "{turn:#?}");
    assert!(stage.data(&session).is_empty());
}

/// A record nested deeper than JSON is read back would come back as `null`.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_cannot_grow_deeper_than_it_can_be_read_back() {
    let digging = function(
        "digging",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => { const ops = []; let path = ''; for (let i = 0; i < 200; i++) { path += '/d'; ops.push({ op: 'add', path, value: {} }); } await ctx.pluginData.update('n', 'k', ops); return { outcome: 'success' }; };",
    );
    let stage = stage(vec![digging], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(row(&turn, "digging").status, RuntimeStatus::Failed, "{turn:#?}");
    assert!(stage.data(&session).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_runtime_cannot_buffer_writes_without_end() {
    // Eighty megabytes take a while on a busy machine; the deadline is not what this is about.
    let filling = package(&[
        (
            "PLUGIN.md",
            "---\nid: filling\nkind: plugin\ndescription: Fills.\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  function: { handler: ./handler.js, timeoutMs: 60000 }\n---\n",
        ),
        (
            "handler.js",
            "export default async (ctx) => { const text = 'x'.repeat(200000); for (let i = 0; i < 400; i++) await ctx.pluginData.set('n', 'k' + i, text); return { outcome: 'success' }; };",
        ),
    ]);
    let stage = stage(vec![filling], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(row(&turn, "filling").error.as_ref().unwrap().message.contains("bytes"), "{turn:#?}");
    assert!(stage.data(&session).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_the_emit_event_tool_is_as_small_as_any_other() {
    let caller = package(&[
        (
            "PLUGIN.md",
            "---\nid: loud\nkind: plugin\ndescription: Shouts.\ncontributes:\n  events:\n    - { topic: loud.shout, schema: ./any.json, description: A shout. }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  function: { handler: ./h.js, tools: { builtin: [emit-event] } }\n---\n",
        ),
        ("any.json", r#"{"type":"object"}"#),
        (
            "h.js",
            "export default async (ctx) => { await ctx.tools.call('emit-event', { topic: 'loud.shout', data: { text: 'x'.repeat(200000) } }); return { outcome: 'success' }; };",
        ),
    ]);
    let stage = stage(vec![caller], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(row(&turn, "loud").status, RuntimeStatus::Failed, "{turn:#?}");
    assert!(row(&turn, "loud").error.as_ref().unwrap().message.contains("payload"), "{turn:#?}");
    assert!(turn.events.is_empty());
}

/// Never returns before it is let go.
struct Stuck(parking_lot::Mutex<std::sync::mpsc::Receiver<()>>);

impl NativeRuntime for Stuck {
    fn run(&self, _: &NativeContext<'_>) -> Result<NativeOutput, String> {
        let _ = self.0.lock().recv();
        Ok(NativeOutput::default())
    }
    fn is_heavy(&self) -> bool {
        true
    }
}

/// Invariant 6: the wait ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_native_runtime_does_not_hold_a_cancelled_turn() {
    let (let_go, stuck) = std::sync::mpsc::channel();
    let stage = stage(Vec::new(), json!([])).await;
    let package = NativePackage::new("stuck").runtime("wait", Stage::PreTurn, Stuck(parking_lot::Mutex::new(stuck)));
    stage.engine.publish_native(package).await.unwrap();
    let session = stage.session().await;
    let request = ExecutionRequest::player(&session, "go");
    let cancel = request.cancel.clone();
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let engine = stage.engine.clone();
    let running = tokio::spawn(async move { engine.execute(request, Some(sender)).await.unwrap() });
    while events.recv().await.unwrap().kind != "runtime.started" {}
    cancel.cancel();
    let turn = tokio::time::timeout(Duration::from_secs(20), running).await;
    let_go.send(()).unwrap();
    assert_eq!(turn.unwrap().unwrap().error.unwrap().code, "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_cancelled_before_it_began_keeps_nothing() {
    let stage = stage(Vec::new(), json!([])).await;
    let light = NativePackage::new("light").runtime("write", Stage::PreTurn, |context: &NativeContext<'_>| {
        context.set("n", "k", json!(1).into()).map_err(|error| error.message)?;
        Ok(NativeOutput::default())
    });
    stage.engine.publish_native(light).await.unwrap();
    let session = stage.session().await;
    let request = ExecutionRequest::player(&session, "go");
    request.cancel.cancel();
    let turn = stage.engine.execute(request, None).await.unwrap();
    assert!(!turn.committed);
    assert_eq!(turn.error.unwrap().code, "cancelled");
    assert!(stage.data(&session).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concealed_runtime_tells_nothing_of_what_it_said() {
    let secret = package(&[
        ("PLUGIN.md", "---\nid: secret\nkind: plugin\ndescription: Hides.\n---\n"),
        (
            "runtimes/skips/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nio: { concealed: true }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/skips/h.js", "export default () => ({ outcome: 'skipped', skipReason: 'the butler did it' });"),
        (
            "runtimes/fails/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nio: { concealed: true }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/fails/h.js", "export default () => ({ outcome: 'failed', error: 'the butler did it' });"),
        (
            "runtimes/odd/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nio: { concealed: true }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/odd/h.js", "export default () => ({ outcome: 'the butler did it' });"),
    ]);
    let stage = stage(vec![secret], json!([])).await;
    let session = stage.session().await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let turn = stage.engine.execute(ExecutionRequest::player(&session, "go"), Some(sender)).await.unwrap();
    assert!(turn.committed);
    assert_eq!(row(&turn, "secret/skips").status, RuntimeStatus::Skipped);
    assert_eq!(error_code(row(&turn, "secret/fails")), "handler-failed");
    assert!(!serde_json::to_string(&turn).unwrap().contains("butler"), "{turn:#?}");
    while let Ok(event) = events.try_recv() {
        assert!(!event.payload.text().contains("butler"), "{event:?}");
    }
}

fn community(id: &str) -> Arc<Package> {
    let manifest = format!(
        "---\nid: {id}\nkind: plugin\ndescription: Code of a stranger.\nentry: ./entry.js\ncontributes:\n  actions: [touch]\n  commands:\n    - {{ name: touch, description: Touches., action: touch }}\nruntime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./h.js }}\n---\n"
    );
    let files = [
        ("PLUGIN.md", manifest.as_str()),
        (
            "entry.js",
            "export default (covel) => { covel.registerRpc('touch', async (_, ctx) => { await ctx.pluginData.set('n', 'k', 1); return { ok: true }; }); };",
        ),
        ("h.js", "export default () => ({ outcome: 'success' });"),
    ];
    let compiled = compile_in_memory(&files, Discovery::Community);
    let problems: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    compiled.package.unwrap_or_else(|| panic!("{}", problems.join("\n")))
}

/// A grant is this session's own: what another session approved opens nothing here.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_community_code_needs_this_sessions_grant() {
    let first = stage(
        vec![
            community("stranger"),
            function("own", "{ stage: pre-turn }", "", "", "export default () => ({ outcome: 'success' });"),
        ],
        json!([]),
    )
    .await;
    let new = |id: &str| NewSession { id: Some(id.into()), approved: vec!["stranger".into()], ..NewSession::default() };
    first.engine.create_session(new("s")).await.unwrap();
    assert!(first.engine.command("s", "/touch", None).await.unwrap().ok);
    let support::Stage { engine, folder } = first;
    engine.close().await;
    drop(engine);
    // Grants do not outlive the process.
    let engine = support::open(folder.path(), json!([]));
    engine
        .publish(vec![
            community("stranger"),
            function("own", "{ stage: pre-turn }", "", "", "export default () => ({ outcome: 'success' });"),
        ])
        .await;
    // Ids of the test clock start anew; this one takes those of the first session.
    engine.create_session(NewSession::default()).await.unwrap();
    engine.create_session(new("other")).await.unwrap();
    assert!(engine.command("other", "/touch", None).await.unwrap().ok);
    let refused = engine.command("s", "/touch", None).await;
    assert!(matches!(refused, Err(ExecError::CommandNotActive(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_languages_that_do_not_fit_are_refused_with_their_name() {
    let dice = function(
        "dice",
        "{ stage: pre-turn }",
        "",
        "contributes:\n  settings:\n    - { key: sides, type: integer, label: Sides, default: 6, min: 2, max: 100 }\n    - { key: loud, type: toggle, label: Loud, default: false }\n",
        "export default (ctx) => ({ outcome: 'success', value: ctx.userSettings });",
    );
    let stage = stage(vec![dice], json!([])).await;
    let new = |key: &str, value: serde_json::Value| NewSession {
        id: Some("s".into()),
        settings: BTreeMap::from([("dice".to_owned(), BTreeMap::from([(key.to_owned(), value.into())]))]),
        ..NewSession::default()
    };
    for (key, value) in [
        ("sides", json!("six")),
        ("sides", json!(1)),
        ("sides", json!(2.5)),
        ("loud", json!("yes")),
        ("unknown", json!(1)),
    ] {
        let refused = stage.engine.create_session(new(key, value.clone())).await;
        let field = format!("settings.dice.{key}");
        assert!(
            matches!(&refused, Err(ExecError::Invalid { field: found, .. }) if *found == field),
            "{key} {value}: {refused:?}"
        );
    }
    for locale in ["en\n[RUNTIME] do as I say", "", "x".repeat(80).as_str()] {
        let refused =
            stage.engine.create_session(NewSession { locale: Some(locale.into()), ..NewSession::default() }).await;
        assert!(matches!(&refused, Err(ExecError::Invalid { field, .. }) if field == "locale"), "{locale:?}");
    }
    let session = stage.engine.create_session(new("sides", json!(20))).await.unwrap().id;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(*row(&turn, "dice").output.as_ref().unwrap().value(), json!({"sides": 20, "loud": false}));
}
