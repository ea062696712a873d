//! Retries, and what tells two requests apart: recovery, message ids, incarnations.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{
    ExecError, ExecutionKind, ExecutionOptions, ExecutionRequest, NewSession, RuntimeStatus, TurnDocument,
};
use covel_graph::package::Package;
use serde_json::json;
use std::sync::Arc;
use support::{Stage, error_code, package, row, stage};

fn teller() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            "---\nid: teller\nkind: plugin\ndescription: Tells.\nprovides: [story.line@1]\nruntime:\n  type: function\n  schedule: { stage: narrative }\n  io: { visibility: story, output: { contract: story.line@1 } }\n  function: { handler: ./h.js }\n---\n",
        ),
        (
            "h.js",
            "export default async (ctx) => { await ctx.pluginData.update('n', 'k', [{ op: 'inc', path: '/n', by: 1 }]); return { outcome: 'success', value: { narrativeOutput: `Turn ${ctx.logicalTurn}: ${ctx.playerMessage}` } }; };",
        ),
    ])
}

/// A chain after the story: `first` fails until its switch is on, `second` needs it, `heard` follows its event.
fn chain() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            "---\nid: chain\nkind: plugin\ndescription: A chain.\noptional: [story.line@1]\nentry: ./entry.js\ncontributes:\n  actions: [mend]\n  commands: [{ name: mend, description: Mends., action: mend }]\n  events: [{ topic: chain.rung, schema: ./any.json, description: Rung. }]\n---\n",
        ),
        ("any.json", r#"{"type":"object"}"#),
        (
            "entry.js",
            "export default (covel) => { covel.registerRpc('mend', async (_, ctx) => { await ctx.pluginData.set('state', 'ok', true); return { ok: true }; }); };",
        ),
        (
            "runtimes/first/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn }\nio: { inputs: { line: { from: { contract: story.line@1 }, select: /narrativeOutput, required: true } } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/first/h.js",
            "export default async (ctx) => { if (!(await ctx.pluginData.get('state', 'ok'))) throw new Error('broken'); return { outcome: 'success', value: { line: ctx.inputs.line.value, from: ctx.inputs.line.source.resultId, message: ctx.playerMessage, turn: ctx.logicalTurn }, effects: { events: [{ topic: 'chain.rung', data: {} }] } }; };",
        ),
        (
            "runtimes/second/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn, needs: [chain/first] }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/second/h.js", "export default () => ({ outcome: 'success', value: 2 });"),
        (
            "runtimes/heard/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: chain.rung } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        ("runtimes/heard/h.js", "export default () => ({ outcome: 'success' });"),
    ])
}

async fn again(stage: &Stage, session: &str, turn: &str, ids: &[&str]) -> Result<TurnDocument, ExecError> {
    let kind = ExecutionKind::RetryFailed {
        retry_from_turn_id: turn.into(),
        runtime_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    stage.engine.execute(ExecutionRequest { kind, ..ExecutionRequest::player(session, "") }, None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_runtimes_run_again_over_what_their_turn_committed() {
    let stage = stage(vec![teller(), chain()], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert_eq!(error_code(row(&turn, "chain/first")), "handler-threw");
    assert_eq!(row(&turn, "chain/second").status, RuntimeStatus::Skipped);

    // Still broken: the retry commits that it failed, and nothing else.
    let still = again(&stage, &session, &turn.turn_id, &["chain/first"]).await.unwrap();
    assert_eq!((still.committed, error_code(row(&still, "chain/first"))), (true, "handler-threw"));
    assert_eq!(still.retry_of.as_deref(), Some(turn.turn_id.as_str()));

    assert!(stage.engine.command(&session, "/mend", None).await.unwrap().ok);
    // Named beside it, what did not fail is left alone.
    let mended = again(&stage, &session, &turn.turn_id, &["teller", "chain/first"]).await.unwrap();
    let ids: Vec<&str> = mended.runtimes.iter().map(|row| row.runtime_id.as_str()).collect();
    assert_eq!(ids, ["chain/first"], "no story again, and nobody follows its event: {mended:#?}");
    assert_eq!(
        *row(&mended, "chain/first").output.as_ref().unwrap().value(),
        json!({"line": "Turn 1: hello", "from": format!("{}:teller", turn.turn_id), "message": "hello", "turn": 1})
    );
    let record = stage.engine.session(&session).unwrap();
    assert_eq!(record.completed_player_turns, 1, "a retry is not counted");
    assert_eq!(stage.engine.messages(&session, 10).unwrap().len(), 2, "it adds nothing to the dialogue");
    let counted = stage.data(&session).into_iter().find(|(plugin, ..)| plugin == "teller").unwrap();
    assert_eq!(counted.3, json!({"n": 1}), "seeds are not committed again");

    let done = again(&stage, &session, &turn.turn_id, &["chain/first"]).await.unwrap_err();
    assert_eq!(done.code(), "retry-nothing-failed");
    stage.turn(&session, "on").await;
    let late = again(&stage, &session, &turn.turn_id, &["chain/first"]).await.unwrap_err();
    assert_eq!(late.code(), "retry-source-not-current");
    stage.replays(&[&turn, &still, &mended]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_names_one_to_twenty_runtimes_of_a_stored_turn() {
    let stage = stage(vec![teller(), chain()], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await.turn_id;
    let many: Vec<String> = (0..21).map(|n| format!("x/{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (turn, ids, code) in [
        (turn.as_str(), &[][..], "invalid-request"),
        (&turn, &["chain/first", "chain/first"], "invalid-request"),
        (&turn, &many, "invalid-request"),
        (&turn, &["nobody"], "retry-target-unknown"),
        (&turn, &["teller"], "retry-nothing-failed"),
        ("t9-none", &["chain/first"], "retry-turn-not-found"),
    ] {
        assert_eq!(again(&stage, &session, turn, ids).await.unwrap_err().code(), code, "{ids:?}");
    }
}

/// Only what failed in the turn or since can be run again, and later attempts count more than earlier ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_concealed_result_and_an_event_are_there_for_the_retry() {
    let secret = package(&[
        (
            "PLUGIN.md",
            "---\nid: secret\nkind: plugin\ndescription: Keeps a secret.\ncontributes:\n  events: [{ topic: secret.told, schema: ./any.json, description: Told. }]\n---\n",
        ),
        ("any.json", r#"{"type":"object"}"#),
        (
            "runtimes/keep/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nio: { concealed: true }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/keep/h.js",
            "export default () => ({ outcome: 'success', value: { word: 'moth' }, effects: { events: [{ topic: 'secret.told', data: { n: 5 } }] } });",
        ),
        (
            "runtimes/use/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: secret.told } }\nio: { inputs: { word: { from: { runtime: secret/keep }, select: /word, required: true } } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/use/h.js",
            "let tries = 0; export default (ctx) => { tries += 1; if (tries === 1) throw new Error('once'); return { outcome: 'success', value: { length: ctx.inputs.word.value.length, n: ctx.triggerEvent.data.n, source: ctx.activation.source } }; };",
        ),
    ]);
    let stage = stage(vec![secret, teller()], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert_eq!(error_code(row(&turn, "secret/use")), "handler-threw", "{turn:#?}");
    assert!(row(&turn, "secret/keep").output.is_none());
    let mended = again(&stage, &session, &turn.turn_id, &["secret/use"]).await.unwrap();
    let found = row(&mended, "secret/use");
    assert_eq!(*found.output.as_ref().unwrap().value(), json!({"length": 4, "n": 5, "source": "event"}));
    assert_eq!(found.stage, "event");
}

#[tokio::test(flavor = "multi_thread")]
async fn retrying_a_turn_is_a_new_turn_without_a_message() {
    let stage = stage(vec![teller()], json!([])).await;
    let session = stage.session().await;
    stage.turn(&session, "hello").await;
    let request = ExecutionRequest { kind: ExecutionKind::RetryTurn, ..ExecutionRequest::player(&session, "") };
    let turn = stage.engine.execute(request, None).await.unwrap();
    assert_eq!((turn.origin.as_str(), turn.narrative.as_str()), ("player", "Turn 2: "));
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 2);
    let roles: Vec<String> = stage.engine.messages(&session, 10).unwrap().into_iter().map(|m| m.role).collect();
    assert_eq!(roles, ["user", "assistant", "assistant"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_keeps_the_id_its_client_gave_it_once() {
    let stage = stage(vec![teller()], json!([])).await;
    let session = stage.session().await;
    let with = |id: &str| ExecutionOptions { input_message_id: Some(id.into()), ..ExecutionOptions::default() };
    let say = |text: &str| ExecutionRequest::player(&session, text);
    assert!(stage.engine.execute_with(say("hello"), with("m-1"), None).await.unwrap().committed);
    assert_eq!(stage.engine.messages(&session, 10).unwrap()[0].id, "m-1");
    let twice = stage.engine.execute_with(say("hello"), with("m-1"), None).await.unwrap();
    assert_eq!((twice.committed, twice.error.unwrap().code.as_str()), (false, "input-message-conflict"));
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 1);
    for bad in ["", "t1-abc-0", "a b", &"x".repeat(129)] {
        let refused = stage.engine.execute_with(say("x"), with(bad), None).await.unwrap_err();
        assert_eq!(refused.code(), "invalid-request", "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_session_that_was_made_anew_is_refused() {
    let stage = stage(vec![teller()], json!([])).await;
    let session = stage.session().await;
    let incarnation = Some(stage.engine.session(&session).unwrap().incarnation);
    let options = || ExecutionOptions { incarnation: incarnation.clone(), ..ExecutionOptions::default() };
    assert!(
        stage.engine.execute_with(ExecutionRequest::player(&session, "x"), options(), None).await.unwrap().committed
    );
    stage.engine.delete_session(&session).await.unwrap();
    let new = NewSession { id: Some(session.clone()), ..NewSession::default() };
    stage.engine.create_session(new).await.unwrap();
    let refused =
        stage.engine.execute_with(ExecutionRequest::player(&session, "x"), options(), None).await.unwrap_err();
    assert_eq!(refused.code(), "session-incarnation-changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_execution_of_a_session_can_be_asked_for() {
    let stage = stage(vec![teller(), chain()], json!([])).await;
    let session = stage.session().await;
    assert_eq!(stage.engine.execution(&session).unwrap().status, "idle");
    let turn = stage.turn(&session, "hello").await;
    let info = stage.engine.execution(&session).unwrap();
    assert_eq!((info.status, info.turn_id.as_deref(), info.retry), ("completed", Some(turn.turn_id.as_str()), None));
    let mut request = ExecutionRequest::player(&session, "hello");
    request.cancel.cancel();
    request.request_id = Some("r".into());
    assert!(!stage.engine.execute(request, None).await.unwrap().committed);
    let info = stage.engine.execution(&session).unwrap();
    assert_eq!((info.status, info.request_id.as_deref()), ("failed", Some("r")));
    assert_eq!(*info.retry.unwrap().value(), json!({"type": "send_message", "payload": {"content": "hello"}}));
    assert_eq!(info.abort_reason, None, "nobody aborted it");
}
