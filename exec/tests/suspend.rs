//! Suspending and resuming: functions, agents, the count of the turn, what makes a resumption impossible.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{ExecError, ExecutionKind, ExecutionRequest, RuntimeStatus, SetupState, TurnDocument};
use covel_graph::package::Package;
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Stage, error_code, function, package, row, stage};

/// Suspends at first; resumed, it stores the answer and tells what it saw.
const FORM: &str = "export default async (ctx) => {
  if (ctx.resumeData === undefined) {
    await ctx.pluginData.set('kept', 'before', { turn: ctx.logicalTurn });
    return { outcome: 'suspended', reason: 'a name is needed', resumeSchema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } };
  }
  await ctx.pluginData.set('kept', 'name', ctx.resumeData.name);
  const seen = await ctx.pluginData.get('kept', 'before');
  return { outcome: 'success', value: { name: ctx.resumeData.name, seen, from: ctx.resumedFromSuspensionId, message: ctx.playerMessage, turn: ctx.logicalTurn, source: ctx.activation.source, input: ctx.inputs.clock ? ctx.inputs.clock.value : null } };
};";

fn form(extra: &str, package_extra: &str) -> Arc<Package> {
    function("form", "{ stage: post-turn }", extra, package_extra, FORM)
}

/// A story function.
fn teller() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            "---\nid: teller\nkind: plugin\ndescription: Tells.\nruntime:\n  type: function\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  function: { handler: ./h.js }\n---\n",
        ),
        (
            "h.js",
            "export default (ctx) => ({ outcome: 'success', value: { narrativeOutput: `Turn ${ctx.logicalTurn}.` } });",
        ),
    ])
}

async fn resume(stage: &Stage, session: &str, id: &str, data: Value) -> Result<TurnDocument, ExecError> {
    let kind = ExecutionKind::Resume { suspension_id: id.into(), data: data.into() };
    stage.engine.execute(ExecutionRequest { kind, ..ExecutionRequest::player(session, "") }, None).await
}

fn suspension(turn: &TurnDocument) -> String {
    assert!(turn.committed, "{turn:#?}");
    turn.suspensions[0].suspension_id.clone()
}

/// Covers: COM-2
#[tokio::test(flavor = "multi_thread")]
async fn a_function_goes_on_with_what_it_was_given_and_commits_all_at_once() {
    let clock = package(&[
        (
            "PLUGIN.md",
            "---\nid: clock\nkind: plugin\ndescription: The hour.\nprovides: [town.hour@1]\ncontracts: { town.hour@1: { schema: ./hour.json } }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: town.hour@1 } }\n  function: { handler: ./h.js }\n---\n",
        ),
        ("hour.json", r#"{"type":"integer"}"#),
        ("h.js", "export default (ctx) => ({ outcome: 'success', value: 6 + ctx.logicalTurn });"),
    ]);
    let reader =
        form("  io: { inputs: { clock: { from: { contract: town.hour@1 } } } }\n", "optional: [town.hour@1]\n");
    let stage = stage(vec![clock, reader, teller()], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    let id = suspension(&turn);
    assert_eq!(row(&turn, "form").status, RuntimeStatus::Suspended);
    assert!(stage.data(&session).iter().all(|(plugin, ..)| plugin != "form"), "nothing of it is committed yet");
    // The count waits for it.
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 0);
    let open = stage.engine.suspensions(&session).unwrap();
    assert_eq!((open[0].reason.as_str(), open[0].continuation.is_none()), ("a name is needed", true));

    let wrong = resume(&stage, &session, &id, json!({"name": 3})).await.unwrap_err();
    assert_eq!(wrong.code(), "invalid-request");
    assert_eq!(resume(&stage, &session, "sus-x", json!({})).await.unwrap_err().code(), "suspension-not-found");

    let resumed = resume(&stage, &session, &id, json!({"name": "Ada"})).await.unwrap();
    assert!(resumed.committed, "{resumed:#?}");
    assert_eq!((resumed.origin.as_str(), resumed.resumed.as_deref()), ("resume", Some(id.as_str())));
    assert_eq!(
        *row(&resumed, "form").output.as_ref().unwrap().value(),
        json!({"name": "Ada", "seen": {"turn": 1}, "from": id, "message": "hello", "turn": 1, "source": "stage", "input": 7})
    );
    let kept: Vec<String> =
        stage.data(&session).into_iter().filter(|(plugin, ..)| plugin == "form").map(|(_, _, key, _)| key).collect();
    assert_eq!(kept, ["before", "name"]);
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 1);
    assert_eq!(resume(&stage, &session, &id, json!({"name": "Ada"})).await.unwrap_err().code(), "suspension-resolved");
    stage.replays(&[&turn, &resumed]).await;
}

/// Covers: RDD-6
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_runtime_reads_what_is_committed_now_and_records_nothing() {
    let pair = package(&[
        ("PLUGIN.md", "---\nid: pair\nkind: plugin\ndescription: Two.\n---\n"),
        (
            "runtimes/count/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/count/h.js",
            "export default async (ctx) => { await ctx.pluginData.update('n', 'k', [{ op: 'inc', path: '/n', by: 1 }]); return { outcome: 'success' }; };",
        ),
        (
            "runtimes/wait/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn, trigger: { type: auto, maxTriggerCount: 1 } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/wait/h.js",
            "export default async (ctx) => ctx.resumeData === undefined ? { outcome: 'suspended' } : { outcome: 'success', value: (await ctx.pluginData.get('n', 'k')).n };",
        ),
    ]);
    let stage = stage(vec![pair], json!([])).await;
    let session = stage.session().await;
    let id = suspension(&stage.turn(&session, "one").await);
    // It is suspended, so it cannot suspend again: that run of it fails, alone.
    let second = stage.turn(&session, "two").await;
    assert_eq!(error_code(row(&second, "pair/wait")), "suspension-open");
    let resumed = resume(&stage, &session, &id, json!(null)).await.unwrap();
    let found = row(&resumed, "pair/wait");
    assert_eq!(*found.output.as_ref().unwrap().value(), json!({"value": 2}));
    assert!(found.reads_from.is_empty());
}

/// Covers: COM-2
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_counted_once_when_the_last_of_it_was_resumed() {
    let twice = "export default (ctx) => (ctx.resumeData === undefined || ctx.resumeData.again) ? { outcome: 'suspended', reason: 'more' } : { outcome: 'success' };";
    let a = function("a", "{ stage: post-turn }", "", "", twice);
    let b = function("b", "{ stage: post-turn }", "", "", twice);
    let stage = stage(vec![a, b, teller()], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    let count = || stage.engine.session(&session).unwrap().completed_player_turns;
    let (first, second) = (turn.suspensions[0].suspension_id.clone(), turn.suspensions[1].suspension_id.clone());
    let again = resume(&stage, &session, &first, json!({"again": true})).await.unwrap();
    assert!(again.committed, "{again:#?}");
    resume(&stage, &session, &second, json!({})).await.unwrap();
    assert_eq!(count(), 0, "one of them waits again");
    resume(&stage, &session, &again.suspensions[0].suspension_id, json!({})).await.unwrap();
    assert_eq!(count(), 1);
    // Giving up the last one settles the turn, too.
    let turn = stage.turn(&session, "go on").await;
    for open in &turn.suspensions {
        stage.engine.discard_suspension(&session, &open.suspension_id).await.unwrap();
    }
    assert_eq!(count(), 2);
    let gone = stage.engine.discard_suspension(&session, &turn.suspensions[0].suspension_id).await.unwrap_err();
    assert_eq!(gone.code(), "suspension-resolved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumption_that_fails_leaves_nothing_and_can_be_tried_again() {
    let code = "export default async (ctx) => {
      if (ctx.resumeData === undefined) return { outcome: 'suspended' };
      await ctx.pluginData.set('n', 'k', 1);
      if (ctx.resumeData.fail) throw new Error('no');
      return { outcome: 'success', value: 'done' };
    };";
    let stage = stage(vec![function("wait", "{ stage: post-turn }", "", "", code)], json!([])).await;
    let session = stage.session().await;
    let id = suspension(&stage.turn(&session, "go").await);
    let failed = resume(&stage, &session, &id, json!({"fail": true})).await.unwrap();
    assert_eq!((failed.committed, failed.error.as_ref().unwrap().code.as_str()), (false, "handler-threw"));
    assert!(stage.data(&session).is_empty());
    assert!(resume(&stage, &session, &id, json!({})).await.unwrap().committed);
    assert_eq!(stage.data(&session).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumption_needs_the_code_that_was_suspended() {
    let stage = stage(vec![form("", "")], json!([])).await;
    let session = stage.session().await;
    let id = suspension(&stage.turn(&session, "go").await);
    let newer = function("form", "{ stage: post-turn }", "", "version: 2.0.0\n", FORM);
    stage.engine.publish(vec![newer]).await;
    let refused = resume(&stage, &session, &id, json!({"name": "Ada"})).await.unwrap_err();
    assert_eq!(refused.code(), "suspension-package-changed");
    // The very same content again is the same package.
    stage.engine.publish(vec![form("", "")]).await;
    assert!(resume(&stage, &session, &id, json!({"name": "Ada"})).await.unwrap().committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_outlives_the_engine() {
    let stage = stage(vec![form("", "")], json!([])).await;
    let session = stage.session().await;
    let id = suspension(&stage.turn(&session, "go").await);
    let Stage { engine, folder } = stage;
    engine.close().await;
    drop(engine);
    let engine = support::open(folder.path(), json!([]));
    engine.publish(vec![form("", "")]).await;
    let stage = Stage { engine, folder };
    assert!(resume(&stage, &session, &id, json!({"name": "Ada"})).await.unwrap().committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setup_step_may_wait_and_the_session_begins_when_it_went_on() {
    let code = "export default (ctx) => ctx.resumeData === undefined ? { outcome: 'suspended', reason: 'who are you' } : { outcome: 'success', completion: 'done' };";
    let stage = stage(vec![function("intro", "{ stage: setup }", "", "", code), teller()], json!([])).await;
    let session = stage.session().await;
    let start = || ExecutionRequest { kind: ExecutionKind::Start, ..ExecutionRequest::player(&session, "") };
    let first = stage.engine.execute(start(), None).await.unwrap();
    let setup = first.setup.unwrap();
    let id = suspension(&setup);
    for _ in 0..4 {
        // It waits: it is not run again, and uses up nothing.
        let again = stage.engine.execute(start(), None).await.unwrap();
        assert_eq!(again.error.unwrap().code, "setup-incomplete");
    }
    assert!(resume(&stage, &session, &id, json!(1)).await.unwrap().committed);
    let record = stage.engine.session(&session).unwrap();
    assert!(matches!(record.setup_runtimes["intro"], SetupState::Done { .. }));
    assert_eq!((record.phase, record.completed_player_turns), (covel_exec::Phase::Playing, 0));
    assert!(stage.turn(&session, "go").await.committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_suspends_in_the_middle_and_goes_on_with_its_conversation() {
    let asker = package(&[
        (
            "PLUGIN.md",
            "---\nid: asker\nkind: plugin\ndescription: Asks.\ncontributes:\n  data: { kept: { version: 1, schema: ./kept.json } }\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { tools: { builtin: [suspend, plugin-data-set] }, loop: { maxRetries: 0 } }\n---\nAsk, then tell.\n",
        ),
        ("kept.json", r#"{"type":"object"}"#),
    ]);
    let script = json!([
        {"content": "The door opens.", "toolCalls": [
            {"id": "c1", "name": "plugin-data-set", "arguments": {"namespace": "kept", "key": "door", "value": {"open": true}}},
            {"id": "c2", "name": "suspend", "arguments": {"reason": "left or right", "resumeSchema": {"enum": ["left", "right"]}}},
            {"id": "c3", "name": "plugin-data-set", "arguments": {"namespace": "kept", "key": "late", "value": {}}},
        ]},
        {"content": "You go left."},
    ]);
    let stage = stage(vec![asker], script).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "look").await;
    let id = suspension(&turn);
    assert_eq!(turn.narrative, "");
    assert!(stage.data(&session).is_empty());
    assert_eq!(resume(&stage, &session, &id, json!("up")).await.unwrap_err().code(), "invalid-request");
    let resumed = resume(&stage, &session, &id, json!("left")).await.unwrap();
    assert_eq!(resumed.narrative, "The door opens.\n\nYou go left.", "{resumed:#?}");
    let keys: Vec<String> = stage.data(&session).into_iter().map(|(_, _, key, _)| key).collect();
    assert_eq!(keys, ["door"], "calls after `suspend` in the same reply were cancelled");
    let said: Vec<String> = stage.engine.messages(&session, 10).unwrap().into_iter().map(|m| m.content).collect();
    assert_eq!(said, ["look", "The door opens.\n\nYou go left."]);
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 1);
    stage.replays(&[&turn, &resumed]).await;
}
