//! Snapshots and forks: a fork is what the session was, and goes its own way.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{DataFilter, Engine, ExecutionKind, ExecutionRequest, ForkFrom, SessionStatus, SnapshotKind, limits};
use covel_graph::package::Package;
use serde_json::{Value, json};
use support::{Stage, function, package, stage};

/// Writes, replaces and deletes; draws; tells.
fn world() -> Vec<Arc<Package>> {
    let keeper = function(
        "keeper",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => {
          const n = ctx.logicalTurn;
          await ctx.pluginData.set('all', String(n), { n, roll: ctx.random.int(0, 1000) });
          await ctx.pluginData.set('last', 'turn', n);
          if (n > 2) await ctx.pluginData.delete('all', String(n - 2));
          return { outcome: 'success', effects: { statePatches: [{ table: 'clock', field: 'n', value: n }] } };
        };",
    );
    let teller = package(&[
        (
            "PLUGIN.md",
            "---\nid: teller\nkind: plugin\ndescription: Tells.\nruntime:\n  type: function\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  function: { handler: ./h.js }\n---\n",
        ),
        (
            "h.js",
            "export default (ctx) => ({ outcome: 'success', value: { narrativeOutput: `Turn ${ctx.logicalTurn}.` } });",
        ),
    ]);
    vec![keeper, teller]
}

/// Everything of a session that a fork must have, without names and times of the session itself.
fn state(engine: &Engine, session: &str) -> Value {
    let mut record = serde_json::to_value(engine.session(session).unwrap()).unwrap();
    for own in ["id", "incarnation", "createdAt", "updatedAt", "status"] {
        record.as_object_mut().unwrap().remove(own);
    }
    let filter = DataFilter { hidden: true, ..DataFilter::default() };
    let turns: Vec<String> = engine.turns(session, 1_000).unwrap().into_iter().map(|turn| turn.turn_id).collect();
    json!({
        "record": record, "data": engine.data(session, filter).unwrap(), "turns": turns,
        "messages": engine.messages(session, 1_000).unwrap(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_at_any_turn_equals_the_session_as_it_was_then() {
    let stage = stage(world(), json!([])).await;
    let session = stage.session().await;
    let mut then = Vec::new();
    for n in 0..12 {
        let turn = stage.turn(&session, &format!("message {n}")).await;
        assert!(turn.committed, "{turn:#?}");
        then.push((turn.turn_id, state(&stage.engine, &session)));
    }
    for (n, (turn, expected)) in then.iter().enumerate() {
        let child = format!("child-{n}");
        let forked =
            stage.engine.fork_session(&session, ForkFrom::Turn(turn.clone()), Some(child.clone()), None).await.unwrap();
        assert_eq!(forked.session.id, child);
        assert_eq!(state(&stage.engine, &child), *expected, "turn {n}");
        assert!(stage.engine.turns(&child, 100).unwrap().iter().all(|turn| turn.session_id == child));
    }
    // The parent is what it was, and the same next turn is the same turn in a fork of it.
    assert_eq!(state(&stage.engine, &session), then[11].1);
    stage.turn(&session, "on").await;
    stage.turn("child-11", "on").await;
    let values = |session: &str| -> Vec<Value> {
        stage
            .engine
            .data(session, DataFilter::default())
            .unwrap()
            .into_iter()
            .map(|row| row.value.value().clone())
            .collect()
    };
    assert_eq!(values("child-11"), values(&session));
    stage.turn("child-3", "elsewhere").await;
    assert_eq!(stage.engine.session("child-3").unwrap().completed_player_turns, 5);
    assert_eq!(stage.engine.session(&session).unwrap().completed_player_turns, 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_taken_by_the_clock_and_by_hand_and_can_be_forked() {
    let stage = stage(world(), json!([])).await;
    let session = stage.session().await;
    for _ in 0..11 {
        stage.turn(&session, "go").await;
    }
    let auto: Vec<(u32, Option<String>)> = stage
        .engine
        .snapshots(&session)
        .unwrap()
        .into_iter()
        .map(|snapshot| (snapshot.completed_player_turns, snapshot.turn_id))
        .collect();
    let turns = stage.engine.turns(&session, 100).unwrap();
    let at = |n: usize| (n as u32, Some(turns[n - 1].turn_id.clone()));
    assert_eq!(auto, [at(1), at(5), at(10)]);
    let manual = stage.engine.create_snapshot(&session).await.unwrap();
    assert_eq!((manual.kind, manual.completed_player_turns), (SnapshotKind::Manual, 11));
    let before = state(&stage.engine, &session);
    stage.turn(&session, "on").await;

    let from = |id: &str| ForkFrom::Snapshot(id.to_owned());
    let forked = stage.engine.fork_session(&session, from(&manual.id), None, None).await.unwrap();
    assert_eq!(state(&stage.engine, &forked.session.id), before);
    assert_eq!(forked.from_snapshot_id.as_deref(), Some(manual.id.as_str()));
    let early = stage.engine.fork_session(&session, from("auto-5"), Some("early".into()), None).await.unwrap();
    assert_eq!(early.session.completed_player_turns, 5);
    assert_eq!(stage.engine.turns("early", 100).unwrap().len(), 5);
    // A fork begins with a snapshot of its own; its parent's stay behind.
    let own = stage.engine.snapshots("early").unwrap();
    assert_eq!((own.len(), own[0].kind, own[0].id == early.fork_snapshot_id), (1, SnapshotKind::Fork, true));
    assert_eq!(own[0].parent_snapshot_id.as_deref(), Some("auto-5"));
    let again = stage.engine.fork_session("early", from(&own[0].id), Some("again".into()), None).await.unwrap();
    assert_eq!(again.session.completed_player_turns, 5);
    assert!(stage.engine.snapshots(&session).unwrap().iter().any(|row| row.id == "auto-5" && row.forked));
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_are_refused_with_their_reason() {
    let stage = stage(world(), json!([])).await;
    let session = stage.session().await;
    stage.turn(&session, "go").await;
    let fork = |from: ForkFrom, child: &str| {
        let (engine, session, child) = (stage.engine.clone(), session.clone(), child.to_owned());
        async move { engine.fork_session(&session, from, Some(child), None).await.unwrap_err().code().to_owned() }
    };
    assert_eq!(fork(ForkFrom::Snapshot("snap-x".into()), "c").await, "snapshot-not-found");
    assert_eq!(fork(ForkFrom::Turn("t9-x".into()), "c").await, "turn-not-found");
    assert_eq!(fork(ForkFrom::Now, "s").await, "session-already-exists");
    assert_eq!(fork(ForkFrom::Now, "a b").await, "invalid-request");
    let nobody = stage.engine.fork_session("nobody", ForkFrom::Now, None, None).await.unwrap_err();
    assert_eq!(nobody.code(), "session-not-found");
    for _ in 0..limits::MAX_FORKS_PER_WINDOW {
        stage.engine.fork_session(&session, ForkFrom::Now, None, Some("c")).await.unwrap();
    }
    let limited = stage.engine.fork_session(&session, ForkFrom::Now, None, Some("c")).await.unwrap_err();
    assert_eq!(limited.code(), "rate-limit-exceeded");
    assert!(stage.engine.fork_session(&session, ForkFrom::Now, None, Some("d")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_keeps_what_waits_and_leaves_an_end_behind() {
    let wait = function(
        "wait",
        "{ stage: post-turn, trigger: { type: auto, maxTriggerCount: 1 } }",
        "",
        "",
        "export default async (ctx) => { if (ctx.resumeData === undefined) return { outcome: 'suspended' }; await ctx.pluginData.set('n', 'answer', ctx.resumeData); return { outcome: 'success' }; };",
    );
    let Stage { engine, folder: _folder } = stage(vec![wait], json!([])).await;
    let new = covel_exec::NewSession { id: Some("s".into()), ..Default::default() };
    engine.create_session(new).await.unwrap();
    let turn = engine.execute(ExecutionRequest::player("s", "go"), None).await.unwrap();
    engine.set_status("s", SessionStatus::Ended).await.unwrap();
    let forked = engine.fork_session("s", ForkFrom::Now, Some("f".into()), None).await.unwrap();
    assert_eq!(forked.session.status, SessionStatus::Paused);
    engine.set_status("f", SessionStatus::Active).await.unwrap();
    let kind =
        ExecutionKind::Resume { suspension_id: turn.suspensions[0].suspension_id.clone(), data: json!("yes").into() };
    let resumed = engine.execute(ExecutionRequest { kind, ..ExecutionRequest::player("f", "") }, None).await.unwrap();
    assert!(resumed.committed, "{resumed:#?}");
    assert_eq!(engine.data("f", DataFilter::default()).unwrap().len(), 1);
    assert!(engine.data("s", DataFilter::default()).unwrap().is_empty());
}
