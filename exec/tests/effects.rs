//! Runtimes of one layer that touch the same thing, under both policies.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{Engine, EngineOptions, FixedAmbient, NewSession, ScriptedGateway, TurnDocument};
use covel_graph::{EffectsPolicy, package::Package};
use serde_json::json;
use support::{package, row};

/// Three runtimes of one package, due at once: `a` and `b` say that they write the scene, `c` touches nothing.
fn scene() -> Arc<Package> {
    let runtime = |effects: &str| {
        format!(
            "---\ntype: function\nschedule: {{ stage: pre-turn }}\n{effects}function: {{ handler: ../../handler.js }}\n---\n"
        )
    };
    let touching = runtime("effects: { writes: [\"plugin-data:self:scene\"] }\n");
    package(&[
        (
            "PLUGIN.md",
            "---\nid: scene\nkind: plugin\ndescription: Writes a scene.\ncontributes: { data: { scene: { version: 1, schema: ./any.json } } }\n---\n",
        ),
        ("any.json", "{}"),
        (
            "handler.js",
            "export default async (ctx) => {
                const before = await ctx.pluginData.get('scene', 'last');
                await ctx.pluginData.set('scene', 'last', { by: ctx.runtimeId });
                return { outcome: 'success', value: { before: before?.by ?? 'nobody' } };
            };",
        ),
        ("runtimes/a/RUNTIME.md", &touching),
        ("runtimes/b/RUNTIME.md", &touching),
        ("runtimes/c/RUNTIME.md", &runtime("").replace("handler.js", "still.js")),
        ("still.js", "export default () => ({ outcome: 'success', value: { before: 'no matter' } });"),
    ])
}

async fn turn(policy: EffectsPolicy) -> TurnDocument {
    let folder = tempfile::tempdir().unwrap();
    let gateway = ScriptedGateway::parse("[]").unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(gateway));
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    options.effects = policy;
    let engine = Engine::open(options).unwrap();
    let states = engine.publish(vec![scene()]).await;
    assert_eq!(states[0].error, None);
    let new = NewSession { id: Some("s".into()), seed: Some("seed".into()), ..NewSession::default() };
    engine.create_session(new).await.unwrap();
    let turn = engine.execute(covel_exec::ExecutionRequest::player("s", "go"), None).await.unwrap();
    engine.close().await;
    assert!(turn.committed, "{turn:#?}");
    turn
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_runs_what_touches_the_same_thing_one_after_another_by_id() {
    let placed = |turn: &TurnDocument| {
        ["scene/a", "scene/b", "scene/c"].map(|id| {
            let row = row(turn, id);
            (row.layer, row.output.as_ref().unwrap().value()["before"].clone())
        })
    };
    let warn = placed(&turn(EffectsPolicy::Warn).await);
    assert_eq!(warn, [(0, json!("nobody")), (0, json!("nobody")), (0, json!("no matter"))]);
    for _ in 0..3 {
        let strict = placed(&turn(EffectsPolicy::Strict).await);
        assert_eq!(strict, [(0, json!("nobody")), (1, json!("scene/a")), (0, json!("no matter"))]);
    }
}
