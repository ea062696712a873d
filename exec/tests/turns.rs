//! Whole turns through packages, plan, layers and commit.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{ExecError, ExecutionKind, ExecutionRequest, NewSession, RuntimeStatus};
use covel_graph::package::Package;
use serde_json::json;
use std::sync::Arc;
use support::{error_code, function, package, row, stage};

const OK: &str = "export default async () => ({ outcome: 'success', value: {} });";

/// A story agent.
fn narrator() -> Arc<Package> {
    package(&[(
        "PLUGIN.md",
        "---\nid: narrator\nkind: plugin\ndescription: Tells.\nprovides: [narrative-engine@1]\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story, output: { contract: narrative-engine@1 } }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell the story.\n",
    )])
}

/// Covers: COM-1
#[tokio::test(flavor = "multi_thread")]
async fn inputs_carry_value_and_provenance_and_order_the_layers() {
    let producer = package(&[
        (
            "PLUGIN.md",
            "---\nid: hours\nkind: plugin\ndescription: The hour.\nprovides: [town.hour@1]\ncontracts: { town.hour@1: { schema: ./hour.json } }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: town.hour@1 } }\n  function: { handler: ./handler.js }\n---\n",
        ),
        ("hour.json", r#"{"type":"object","properties":{"hour":{"type":"integer"}},"required":["hour"]}"#),
        ("handler.js", "export default () => ({ outcome: 'success', value: { hour: 7 } });"),
    ]);
    let reader = function(
        "reader",
        "{ stage: pre-turn }",
        "  io: { inputs: { clock: { from: { contract: town.hour@1 }, select: /hour, required: true } } }\n",
        "optional: [town.hour@1]\n",
        "export default (ctx) => ({ outcome: 'success', value: { slot: ctx.inputs.clock, own: Object.keys(ctx.inputs), inherited: !Object.hasOwn(ctx.inputs, 'constructor') } });",
    );
    let stage = stage(vec![producer, reader], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert!(turn.committed, "{turn:#?}");
    let found = row(&turn, "reader");
    assert_eq!((row(&turn, "hours").layer, found.layer), (0, 1));
    assert_eq!(found.reads_from, ["hours"]);
    assert_eq!(
        *found.output.as_ref().unwrap().value(),
        json!({
            "slot": {"cardinality": "one", "value": 7,
                     "source": {"pluginId": "hours", "runtimeId": "hours", "resultId": format!("{}:hours", turn.turn_id)}},
            "own": ["clock"],
            "inherited": true,
        })
    );
}

/// Covers: COM-1
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_failed_required_input_skips_with_its_reason() {
    let consumer = |id: &str, required: bool| {
        function(
            id,
            "{ stage: post-turn }",
            &format!("  io: {{ inputs: {{ a: {{ from: {{ contract: a.b@1 }}, required: {required} }} }} }}\n"),
            "optional: [a.b@1]\n",
            "export default (ctx) => ({ outcome: 'success', value: { has: 'a' in ctx.inputs } });",
        )
    };
    let stage_without = stage(vec![consumer("strict", true), consumer("loose", false)], json!([])).await;
    let session = stage_without.session().await;
    let turn = stage_without.turn(&session, "x").await;
    assert_eq!(row(&turn, "strict").reason.as_deref(), Some("missing-provider"));
    assert_eq!(*row(&turn, "loose").output.as_ref().unwrap().value(), json!({"has": false}));

    let failing = package(&[
        (
            "PLUGIN.md",
            "---\nid: failing\nkind: plugin\ndescription: Fails.\nprovides: [a.b@1]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: a.b@1 } }\n  function: { handler: ./handler.js }\n---\n",
        ),
        ("handler.js", "export default () => { throw new Error('no'); };"),
    ]);
    let stage_failing = stage(vec![consumer("strict", true), consumer("loose", false), failing], json!([])).await;
    let session = stage_failing.session().await;
    let turn = stage_failing.turn(&session, "x").await;
    assert_eq!(error_code(row(&turn, "failing")), "handler-threw");
    assert!(row(&turn, "failing").error.as_ref().unwrap().message.contains("handler.js:1"));
    assert_eq!(row(&turn, "strict").reason.as_deref(), Some("upstream-failed"));
    assert_eq!(row(&turn, "loose").status, RuntimeStatus::Success);
}

/// Covers: COM-1
#[tokio::test(flavor = "multi_thread")]
async fn an_input_whose_source_can_never_fit_is_withheld_or_skips_its_runtime() {
    let producer = package(&[
        (
            "PLUGIN.md",
            "---\nid: hours\nkind: plugin\ndescription: The hour.\nprovides: [town.hour@1]\ncontracts: { town.hour@1: { schema: ./hour.json } }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: town.hour@1 } }\n  function: { handler: ./handler.js }\n---\n",
        ),
        ("hour.json", r#"{"type":"object","properties":{"hour":{"type":"integer"}},"required":["hour"]}"#),
        ("handler.js", "export default () => ({ outcome: 'success', value: { hour: 7 } });"),
    ]);
    let consumer = |id: &str, required: bool| {
        let manifest = format!(
            "---\nid: {id}\nkind: plugin\ndescription: Reads.\noptional: [town.hour@1]\nruntime:\n  type: function\n  schedule: {{ stage: post-turn }}\n  io: {{ inputs: {{ clock: {{ from: {{ contract: town.hour@1 }}, select: /hour, required: {required}, accepts: ./text.json }} }} }}\n  function: {{ handler: ./handler.js }}\n---\n"
        );
        package(&[
            ("PLUGIN.md", &manifest),
            ("text.json", r#"{"type":"string"}"#),
            ("handler.js", "export default (ctx) => ({ outcome: 'success', value: { has: 'clock' in ctx.inputs } });"),
        ])
    };
    let stage = stage(vec![producer, consumer("strict", true), consumer("loose", false)], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "x").await;
    assert_eq!(row(&turn, "strict").reason.as_deref(), Some("input-schema-incompatible"));
    assert_eq!(*row(&turn, "loose").output.as_ref().unwrap().value(), json!({"has": false}));
    assert!(turn.notes.iter().any(|note| note.code == "input-schema-incompatible"), "{:?}", turn.notes);
}

/// Covers: COM-2
#[tokio::test(flavor = "multi_thread")]
async fn committed_inputs_read_the_export_from_before_this_execution() {
    let exporter = package(&[
        (
            "PLUGIN.md",
            "---\nid: exporter\nkind: plugin\ndescription: Exports.\nprovides: [count.turns@1]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io:\n    output: { contract: count.turns@1, schema: ./n.json, recordAs: n }\n  function: { handler: ./handler.js }\n---\n",
        ),
        ("n.json", r#"{"type":"object"}"#),
        ("handler.js", "export default (ctx) => ({ outcome: 'success', value: { n: ctx.logicalTurn } });"),
    ]);
    let reader = function(
        "reader",
        "{ stage: post-turn }",
        "  io: { inputs: { before: { from: { contract: count.turns@1 }, scope: committed, recordAs: n } } }\n",
        "optional: [count.turns@1]\n",
        "export default (ctx) => ({ outcome: 'success', value: { before: ctx.inputs.before ? ctx.inputs.before.value.n : null } });",
    );
    let stage = stage(vec![exporter, reader], json!([])).await;
    let session = stage.session().await;
    for (turn, expected) in [(1, json!(null)), (2, json!(1)), (3, json!(2))] {
        let document = stage.turn(&session, "go").await;
        assert_eq!(
            *row(&document, "reader").output.as_ref().unwrap().value(),
            json!({"before": expected}),
            "turn {turn}"
        );
    }
}

/// Covers: COM-6, EVT-1
#[tokio::test(flavor = "multi_thread")]
async fn events_reach_followers_depth_by_depth_and_later_layers_see_earlier_writes() {
    let chain = package(&[
        (
            "PLUGIN.md",
            "---\nid: chain\nkind: plugin\ndescription: A chain.\ncontributes:\n  events:\n    - { topic: a.first, schema: ./any.json, description: First. }\n    - { topic: a.second, schema: ./any.json, description: Second. }\n---\n",
        ),
        ("any.json", r#"{"type":"object"}"#),
        (
            "runtimes/start/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/start/h.js",
            "export default async (ctx) => { await ctx.pluginData.set('log', 'a', { by: 'start' }); return { outcome: 'success', effects: { events: [{ topic: 'a.first', data: { n: 1 } }] } }; };",
        ),
        (
            "runtimes/mid/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: a.first } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/mid/h.js",
            "export default async (ctx) => { const seen = await ctx.pluginData.get('log', 'a'); await ctx.pluginData.set('log', 'b', { seen, n: ctx.triggerEvent.data.n }); return { outcome: 'success', effects: { events: [{ topic: 'a.second', data: { n: 2 } }, { topic: 'a.first', data: { n: 9 } }] } }; };",
        ),
        (
            "runtimes/end/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: a.second } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/end/h.js",
            "export default async (ctx) => ({ outcome: 'success', value: { keys: (await ctx.pluginData.list('log')).map((row) => row.key), n: ctx.activation.payload.n } });",
        ),
    ]);
    let stage = stage(vec![chain], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed, "{turn:#?}");
    let events: Vec<_> = turn.events.iter().map(|event| (event.topic.as_str(), event.depth)).collect();
    assert_eq!(events, [("a.first", 1), ("a.second", 2), ("a.first", 2)]);
    assert_eq!(row(&turn, "chain/end").depth, Some(2));
    assert_eq!(*row(&turn, "chain/end").output.as_ref().unwrap().value(), json!({"keys": ["a", "b"], "n": 2}));
    assert_eq!(row(&turn, "chain/end").reads_from, ["chain/mid", "chain/start"]);
    let data = stage.data(&session);
    assert_eq!(data[1].3, json!({"seen": {"by": "start"}, "n": 1}));

    // Whoever watches is told the depth, too.
    let (sink, mut events) = tokio::sync::mpsc::unbounded_channel();
    let request = covel_exec::ExecutionRequest::player(session.as_str(), "again");
    stage.engine.execute(request, Some(sink)).await.unwrap();
    let mut depths = Vec::new();
    while let Some(event) = events.recv().await {
        let payload = event.payload.value();
        if event.kind == "runtime.started" || event.kind == "runtime.completed" {
            depths.push((payload["runtimeId"].as_str().unwrap().to_owned(), payload.get("depth").cloned()));
        }
    }
    let told = |id: &str, depth: Option<u32>| (id.to_owned(), depth.map(|depth| json!(depth)));
    for expected in [told("chain/start", None), told("chain/mid", Some(1)), told("chain/end", Some(2))] {
        assert_eq!(depths.iter().filter(|found| **found == expected).count(), 2, "{expected:?} in {depths:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_of_a_layer_do_not_see_each_other() {
    let pair = |id: &str| {
        function(
            id,
            "{ stage: pre-turn }",
            "",
            "",
            "export default async (ctx) => { const before = await ctx.pluginData.list('n'); await ctx.pluginData.set('n', ctx.runtimeId, { mine: true }); const after = await ctx.pluginData.list('n'); return { outcome: 'success', value: { before: before.length, after: after.length } }; };",
        )
    };
    let stage = stage(vec![pair("one"), pair("two")], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    for id in ["one", "two"] {
        assert_eq!(*row(&turn, id).output.as_ref().unwrap().value(), json!({"before": 0, "after": 1}));
        assert!(row(&turn, id).reads_from.is_empty());
    }
}

/// Covers: DAT-1
#[tokio::test(flavor = "multi_thread")]
async fn two_updates_of_one_record_in_one_layer_both_survive() {
    let both = package(&[
        ("PLUGIN.md", "---\nid: purse\nkind: plugin\ndescription: Coins.\n---\n"),
        (
            "runtimes/one/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/one/h.js",
            "export default async (ctx) => { await ctx.pluginData.update('purse', 'coins', [{ op: 'inc', path: '/gold', by: 2 }]); return { outcome: 'success' }; };",
        ),
        (
            "runtimes/two/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/two/h.js",
            "export default async (ctx) => { await ctx.pluginData.update('purse', 'coins', [{ op: 'inc', path: '/silver', by: 3 }, { op: 'inc', path: '/gold', by: 1 }]); return { outcome: 'success' }; };",
        ),
    ]);
    let stage = stage(vec![both], json!([])).await;
    let session = stage.session().await;
    assert!(stage.turn(&session, "go").await.committed);
    assert_eq!(stage.data(&session)[0].3, json!({"gold": 3, "silver": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_keeps_going_when_an_auxiliary_runtime_is_refused_at_commit() {
    // Both updates hold on what each saw; together they break the maximum, so the second is refused at commit.
    let both = package(&[
        ("PLUGIN.md", "---\nid: purse\nkind: plugin\ndescription: Coins.\n---\n"),
        (
            "runtimes/one/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/one/h.js",
            "export default async (ctx) => { await ctx.pluginData.update('purse', 'coins', [{ op: 'inc', path: '/n', by: 2, max: 3 }]); return { outcome: 'success' }; };",
        ),
        (
            "runtimes/two/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/two/h.js",
            "export default async (ctx) => { await ctx.pluginData.update('purse', 'coins', [{ op: 'inc', path: '/n', by: 2, max: 3 }]); return { outcome: 'success' }; };",
        ),
        (
            "runtimes/reader/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn, needs: [purse/two] }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/reader/h.js",
            "export default async (ctx) => { await ctx.pluginData.set('seen', 'x', {}); return { outcome: 'success' }; };",
        ),
    ]);
    let script = json!([{"content": "The lamps went out."}]);
    let stage = stage(vec![both, narrator()], script).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(turn.narrative, "The lamps went out.");
    let isolated: Vec<_> = turn.isolated.iter().map(|i| (i.runtime_id.as_str(), i.error.code.as_str())).collect();
    assert_eq!(isolated, [("purse/two", "conflict"), ("purse/reader", "upstream-not-committed")]);
    assert_eq!(stage.data(&session).len(), 1);
    assert_eq!(stage.data(&session)[0].3, json!({"n": 2}));

    // Without a story the same refusal refuses the whole execution.
    let both = stage.engine.packages().into_iter().find(|p| p.state.plugin_id == "purse").unwrap().package;
    let alone = support::stage(vec![both], json!([])).await;
    let session = alone.session().await;
    let turn = alone.turn(&session, "go").await;
    assert!(!turn.committed);
    assert_eq!(turn.error.unwrap().code, "conflict");
    assert!(alone.data(&session).is_empty());
    assert_eq!(alone.engine.session(&session).unwrap().completed_player_turns, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_that_misbehave_fail_alone_with_a_coded_reason() {
    let rows = [
        ("throws", "export default () => { throw new TypeError('bad day'); };", "handler-threw"),
        ("number", "export default () => 3;", "output-schema-invalid"),
        ("nothing", "export default () => {};", "output-schema-invalid"),
        ("outcome", "export default () => ({ outcome: 'maybe' });", "output-schema-invalid"),
        ("bigint", "export default () => ({ outcome: 'success', value: 1n });", "output-not-json"),
        (
            "cycle",
            "export default () => { const a = {}; a.a = a; return { outcome: 'success', value: a }; };",
            "output-not-json",
        ),
        ("endless", "export default () => { for (;;); };", "handler-timeout"),
        ("parked", "export default () => new Promise(() => {});", "handler-timeout"),
        ("deep", "const f = (n) => f(n + 1) + 1; export default () => f(0);", "handler-stack-overflow"),
        (
            "greedy",
            "export default () => { const a = []; for (;;) a.push(new Array(1000).fill(7)); };",
            "handler-out-of-memory",
        ),
        (
            "reserved",
            "export default async (ctx) => { await ctx.pluginData.set('_secret', 'a', 1); return { outcome: 'success' }; };",
            "handler-threw",
        ),
        (
            "huge",
            "export default async (ctx) => { await ctx.pluginData.set('n', 'a', 'x'.repeat(262143)); return { outcome: 'success' }; };",
            "handler-threw",
        ),
        (
            "event",
            "export default () => ({ outcome: 'success', effects: { events: [{ topic: 'Not A Topic' }] } });",
            "output-schema-invalid",
        ),
    ];
    let mut packages: Vec<_> =
        rows.iter().map(|(id, code, _)| function(id, "{ stage: pre-turn }", "", "", code)).collect();
    packages.push(function("fine", "{ stage: pre-turn }", "", "", "export default async (ctx) => { await ctx.pluginData.set('n', 'edge', 'x'.repeat(262142)); return { outcome: 'success' }; };"));
    let stage = stage(packages, json!([])).await;
    let session = stage.session().await;
    for _ in 0..2 {
        let turn = stage.turn(&session, "go").await;
        assert!(turn.committed, "{:?}", turn.error);
        for (id, _, code) in rows {
            assert_eq!(row(&turn, id).status, RuntimeStatus::Failed, "{id}");
            assert_eq!(error_code(row(&turn, id)), code, "{id}: {:?}", row(&turn, id).error);
        }
        assert_eq!(row(&turn, "fine").status, RuntimeStatus::Success, "{:?}", row(&turn, "fine").error);
    }
    // Invariant 4: what failed left nothing.
    assert!(stage.data(&session).iter().all(|(plugin, ..)| plugin == "fine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_runs_once_before_the_first_turn_and_again_after_a_version_bump() {
    let setup = |version: &str| {
        package(&[
            (
                "PLUGIN.md",
                &format!(
                    "---\nid: init\nkind: plugin\nversion: {version}\ndescription: Sets up.\nruntime:\n  type: function\n  schedule: {{ stage: setup }}\n  function: {{ handler: ./h.js }}\n---\n"
                ),
            ),
            (
                "h.js",
                "export default async (ctx) => { await ctx.pluginData.update('facts', 'runs', [{ op: 'inc', path: '/n', by: 1 }]); return { outcome: 'success', completion: 'done' }; };",
            ),
        ])
    };
    let stage = stage(vec![setup("1.0.0"), function("other", "{ stage: pre-turn }", "", "", OK)], json!([])).await;
    let session = stage.session().await;
    let first = stage.turn(&session, "go").await;
    let ran = first.setup.as_ref().unwrap();
    assert_eq!((ran.origin.as_str(), ran.runtimes[0].stage.as_str(), ran.committed), ("setup", "setup", true));
    assert!(stage.turn(&session, "go").await.setup.is_none());
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 2);
    stage.engine.publish(vec![setup("1.1.0")]).await;
    assert!(stage.turn(&session, "go").await.setup.is_some());
    assert_eq!(stage.data(&session)[0].3, json!({"n": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_that_does_not_finish_uses_up_its_budget_and_then_blocks() {
    let failing = function("init", "{ stage: setup }", "", "", "export default () => { throw new Error('not yet'); };");
    let stage = stage(vec![failing, function("other", "{ stage: pre-turn }", "", "", OK)], json!([])).await;
    let session = stage.session().await;
    for _ in 0..2 {
        let turn = stage.turn(&session, "go").await;
        assert_eq!(turn.error.unwrap().code, "setup-incomplete");
    }
    // The third attempt is the last one; the session then plays without it.
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed, "{turn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_agent_streams_calls_tools_and_a_failing_model_leaves_nothing() {
    let quests = package(&[
        (
            "PLUGIN.md",
            "---\nid: teller\nkind: plugin\ndescription: Tells and keeps.\nentry: ./entry.js\ncontributes:\n  tools: [keep]\n  data: { kept: { version: 1, schema: ./kept.json } }\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell.\n",
        ),
        ("kept.json", r#"{"type":"object","required":["what"]}"#),
        (
            "entry.js",
            "export default (covel) => { const { tool, z, withPendingProposals } = covel.toolkit; covel.registerTool(tool({ name: 'keep', description: 'Keeps.', parameters: z.object({ what: z.string().min(1) }), execute: async ({ what }, ctx) => withPendingProposals({ kept: what }, [{ type: 'plugin.data', payload: { namespace: 'kept', key: what, value: { what } } }]) })); };",
        ),
    ]);
    let script = json!([
        {"toolCalls": [{"name": "keep", "arguments": {"what": "lamp"}}, {"name": "keep", "arguments": {}}, {"name": "nope", "arguments": {}}]},
        {"content": "You keep the lamp."},
        {"content": "Half a", "error": "the provider fell over"},
    ]);
    let stage = stage(vec![quests], script).await;
    let session = stage.session().await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let turn = stage.engine.execute(ExecutionRequest::player(&session, "take it"), Some(sender)).await.unwrap();
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(turn.narrative, "You keep the lamp.");
    let mut kinds = Vec::new();
    let mut text = String::new();
    while let Ok(event) = events.try_recv() {
        if event.kind == "narrative.delta" {
            text.push_str(event.payload.value()["delta"].as_str().unwrap());
        } else {
            kinds.push(event.kind);
        }
    }
    assert_eq!(text, "You keep the lamp.");
    assert_eq!(
        kinds,
        [
            "execution.started",
            "runtime.started",
            "runtime.completed",
            "narrative.completed",
            "plugin-data.changed",
            "state.snapshot.created",
            "execution.completed"
        ]
    );
    assert_eq!(stage.data(&session).len(), 1);
    let messages = stage.engine.messages(&session, 10).unwrap();
    let roles: Vec<_> = messages.iter().map(|m| (m.role.as_str(), m.content.as_str())).collect();
    assert_eq!(roles, [("user", "take it"), ("assistant", "You keep the lamp.")]);

    let failed = stage.turn(&session, "again").await;
    assert!(!failed.committed);
    assert_eq!(failed.error.unwrap().code, "model-provider-error");
    assert_eq!(stage.engine.messages(&session, 10).unwrap().len(), 2);
    assert_eq!(stage.engine.turns(&session, 10).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_model_is_cancelled_and_two_turns_at_once_are_refused() {
    let stage = stage(vec![narrator()], json!([{"content": "It is", "hang": true}, {"content": "Morning."}])).await;
    let session = stage.session().await;
    let request = ExecutionRequest::player(&session, "wait");
    let cancel = request.cancel.clone();
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let engine = stage.engine.clone();
    let running = tokio::spawn(async move { engine.execute(request, Some(sender)).await.unwrap() });
    // The model has been asked: its one hanging reply is taken.
    while events.recv().await.unwrap().kind != "narrative.delta" {}
    let second = stage.engine.execute(ExecutionRequest::player(&session, "me too"), None).await;
    assert!(matches!(second, Err(ExecError::SessionBusy(_))));
    cancel.cancel();
    let turn = running.await.unwrap();
    assert!(!turn.committed);
    assert_eq!(turn.error.unwrap().code, "cancelled");
    let next = stage.turn(&session, "go on").await;
    assert_eq!(next.narrative, "Morning.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_runtime_commits_alone_and_does_not_count_as_a_turn() {
    let manual = function(
        "mark",
        "{ trigger: { type: manual } }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('marks', ctx.manualPayload.at, { ok: true }); return { outcome: 'success' }; };",
    );
    let stage = stage(vec![manual], json!([])).await;
    let session = stage.session().await;
    assert!(stage.turn(&session, "go").await.runtimes.is_empty());
    let request = |runtime: &str| ExecutionRequest {
        kind: ExecutionKind::Manual {
            runtime_id: runtime.into(),
            payload: json!({"at": "pier"}).into(),
            message: String::new(),
            ignore_upstreams: false,
        },
        ..ExecutionRequest::player(&session, "")
    };
    let done = stage.engine.execute(request("mark"), None).await.unwrap();
    assert!(done.committed);
    assert_eq!((done.origin.as_str(), done.runtimes[0].stage.as_str()), ("manual", "manual"));
    assert_eq!(stage.data(&session)[0].2, "pier");
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 1);
    assert!(matches!(stage.engine.execute(request("nobody"), None).await, Err(ExecError::RuntimeNotActive(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_runtimes_follow_interval_start_cooldown_and_budget() {
    let runtime =
        |id: &str, trigger: &str| function(id, &format!("{{ stage: pre-turn, trigger: {trigger} }}"), "", "", OK);
    let stage = stage(
        vec![
            runtime("every-two", "{ type: scheduled, interval: 2 }"),
            runtime("from-three", "{ type: auto, startTurn: 3 }"),
            runtime("twice", "{ type: auto, maxTriggerCount: 2 }"),
            runtime("rests", "{ type: auto, cooldownTurns: 2 }"),
        ],
        json!([]),
    )
    .await;
    let session = stage.session().await;
    let mut ran = Vec::new();
    for _ in 0..5 {
        let turn = stage.turn(&session, "go").await;
        ran.push(turn.runtimes.iter().map(|row| row.runtime_id.clone()).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(ran, ["rests twice", "every-two twice", "from-three", "every-two from-three rests", "from-three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_inputs_give_the_same_bytes() {
    let draws = function(
        "draws",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => { const value = { a: ctx.random.int(0, 1000), b: ctx.random.int(0, 1000) }; await ctx.pluginData.set('d', String(ctx.logicalTurn), value); return { outcome: 'success', value }; };",
    );
    let mut seen = Vec::new();
    for _ in 0..2 {
        let stage = stage(vec![Arc::clone(&draws)], json!([])).await;
        let session = stage.session().await;
        let first = stage.turn(&session, "one").await;
        let second = stage.turn(&session, "two").await;
        assert_ne!(first.runtimes[0].output, second.runtimes[0].output);
        seen.push(stage.data(&session));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_bad_sessions_are_refused() {
    let stage = stage(vec![function("one", "{ stage: pre-turn }", "", "", OK)], json!([])).await;
    let create = |new: NewSession| stage.engine.create_session(new);
    let named = |id: &str| NewSession { id: Some(id.into()), ..NewSession::default() };
    assert!(matches!(
        stage.engine.execute(ExecutionRequest::player("nobody", "x"), None).await,
        Err(ExecError::SessionNotFound(_))
    ));
    for bad in ["", "a b", "../x", &"x".repeat(129)] {
        assert!(matches!(create(named(bad)).await, Err(ExecError::Invalid { .. })), "{bad}");
    }
    create(named("a")).await.unwrap();
    assert!(matches!(create(named("a")).await, Err(ExecError::SessionExists(_))));
    let unknown = NewSession { plugins: Some(vec!["ghost".into()]), ..NewSession::default() };
    assert!(matches!(create(unknown).await, Err(ExecError::PluginNotFound(_))));
    let world = NewSession { world_id: Some("ghost".into()), ..NewSession::default() };
    assert!(matches!(create(world).await, Err(ExecError::WorldNotFound(_))));
    let long = ExecutionRequest::player("a", "x".repeat(100_001));
    assert!(matches!(stage.engine.execute(long, None).await, Err(ExecError::Invalid { .. })));
    stage.engine.set_status("a", covel_exec::SessionStatus::Ended).await.unwrap();
    assert!(matches!(
        stage.engine.execute(ExecutionRequest::player("a", "x"), None).await,
        Err(ExecError::SessionNotActive { .. })
    ));
    stage.engine.delete_session("a").await.unwrap();
    assert!(stage.engine.sessions().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reopened_engine_reads_its_plan_from_the_archive_and_goes_on() {
    let packages = || vec![function("one", "{ stage: pre-turn }", "", "", OK)];
    let folder = tempfile::tempdir().unwrap();
    let mut plans = Vec::new();
    for round in 0..2 {
        let engine = support::open(folder.path(), json!([]));
        engine.publish(packages()).await;
        if round == 0 {
            engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
        }
        let turn = engine.execute(ExecutionRequest::player("s", "go"), None).await.unwrap();
        assert_eq!(turn.logical_turn, round + 1);
        plans.push(turn.plan);
        engine.close().await;
        assert!(matches!(engine.execute(ExecutionRequest::player("s", "go"), None).await, Err(ExecError::Closing)));
    }
    assert_eq!(plans[0], plans[1]);
}
