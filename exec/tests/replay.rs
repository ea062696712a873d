//! Traces, and running recorded executions again to the same bytes.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{ExecutionKind, ExecutionRequest, NewSession, ReplayReport, RuntimeStatus, TurnDocument};
use covel_graph::Json;
use serde_json::json;
use support::{Stage, function, package, stage};

const AGENT: &str = "---\nid: narrator\nkind: plugin\ndescription: Tells the story.\nruntime:\n  type: agent\n  schedule: { stage: narrative, trigger: { type: auto } }\n  io: { visibility: story }\n  agent: { loop: { maxRetries: 0 } }\n---\nTell the story.\n";

/// Takes everything plugin code can take from outside, and writes it.
const TAKES: &str = "import { randomUUID } from 'node:crypto';
    export default async (ctx) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        const before = await ctx.pluginData.get('taken', 'all');
        await ctx.pluginData.set('taken', 'all', {
            count: (before?.count ?? 0) + 1,
            times: [Date.now(), new Date().toISOString(), performance.now()],
            ids: [randomUUID(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(20))]],
            chance: [Math.random(), Math.random(), ctx.random.int(0, 1000000)],
        });
        const text = await ctx.gateway.generateText({ prompt: 'a word' });
        return { outcome: 'success', value: { text: text.text, at: Date.now() } };
    };";

fn story() -> std::sync::Arc<covel_graph::package::Package> {
    package(&[("PLUGIN.md", AGENT)])
}

async fn everything() -> Stage {
    let emitter = package(&[
        (
            "PLUGIN.md",
            "---\nid: bell\nkind: plugin\ndescription: Rings.\ncontributes:\n  events:\n    - { topic: bell.rung, schema: ./any.json, description: It rang. }\nruntime:\n  type: function\n  schedule: { stage: post-turn }\n  function: { handler: ./h.js }\n---\n",
        ),
        ("any.json", "{}"),
        (
            "h.js",
            "export default async () => ({ outcome: 'success', value: {}, effects: { events: [{ topic: 'bell.rung', data: { at: Date.now() } }] } });",
        ),
    ]);
    let follower = function(
        "ear",
        "{ trigger: { type: event, topic: bell.rung } }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('heard', 'last', ctx.triggerEvent.data); return { outcome: 'success', value: { heard: true } }; };",
    );
    let sleeper = function(
        "sleeper",
        "{ stage: audit, trigger: { type: scheduled, interval: 5 } }",
        "",
        "",
        "export default () => ({ outcome: 'success', value: {} })",
    );
    let takes = function("takes", "{ stage: pre-turn, trigger: { type: auto } }", "", "", TAKES);
    let reply = |text: &str| json!({ "runtimeId": "narrator", "content": text });
    let word = |text: &str| json!({ "runtimeId": "takes", "content": text });
    let script = json!([
        word("one"),
        reply("Once upon a time."),
        word("two"),
        reply("There was more."),
        word("three"),
        reply("The end."),
    ]);
    stage(vec![story(), takes, emitter, follower, sleeper], script).await
}

async fn replay(stage: &Stage, turn: &TurnDocument) -> ReplayReport {
    stage.engine.replay(&turn.session_id, &turn.turn_id).await.unwrap()
}

fn assert_equal(report: &ReplayReport) {
    assert!(report.equal, "{report:#?}");
    assert_eq!(report.difference, None);
    assert!(report.rows > 0);
}

#[tokio::test]
async fn functions_agents_events_random_and_time_replay_to_the_same_bytes() {
    let stage = everything().await;
    let session = stage.session().await;
    let mut turns = Vec::new();
    for message in ["hello", "and then?", "go on"] {
        let turn = stage.turn(&session, message).await;
        assert!(turn.committed, "{turn:#?}");
        turns.push(turn);
    }
    let before = stage.data(&session);
    // Also of a turn that others have built on since.
    stage.replays(&turns.iter().collect::<Vec<_>>()).await;
    assert_eq!(stage.data(&session), before, "a replay changes nothing");
    assert_eq!(before.iter().find(|row| row.1 == "taken").unwrap().3["count"], 3);
}

#[tokio::test]
async fn a_trace_tells_who_ran_who_did_not_and_why() {
    let stage = everything().await;
    let session = stage.session().await;
    let mut turn = stage.turn(&session, "hello").await;
    turn = {
        let next = stage.turn(&session, "again").await;
        assert!(turn.committed);
        next
    };
    let trace = stage.engine.trace(&session, &turn.turn_id).unwrap();
    let of = |id: &str| trace.runtimes.iter().find(|row| row.runtime_id == id).unwrap();
    assert_eq!(trace.idle.len(), 1);
    assert_eq!((trace.idle[0].runtime_id.as_str(), trace.idle[0].reason.as_str()), ("sleeper", "interval"));
    let takes = of("takes");
    assert_eq!((takes.status, takes.writes), (RuntimeStatus::Success, 1));
    assert_eq!(takes.reads.len(), 1);
    assert_eq!((takes.reads[0].namespace.as_str(), takes.reads[0].version), ("taken", Some(1)));
    let output = turn.runtimes.iter().find(|row| row.runtime_id == "takes").unwrap().output.clone().unwrap();
    assert_eq!(takes.output_digest.as_deref(), Some(blake3::hash(output.text().as_bytes()).to_hex().as_str()));
    assert_eq!(of("ear").triggered_by, Some(("bell.rung".to_owned(), "bell".to_owned())));
    assert_eq!(trace.events.len(), 1);
    assert_eq!(trace.events[0].followers, ["ear"]);
    let models: Vec<_> = trace.models.iter().map(|call| (call.runtime_id.as_str(), call.finish.as_str())).collect();
    assert_eq!(models, [("narrator", "stop"), ("takes", "stop")]);
    assert!(trace.commit.iter().all(|unit| unit.kept) && trace.commit.len() == 4);
    let entry =
        stage.engine.store().read(|r| r.journal(&session.as_str().into(), trace.journal_seq..=trace.journal_seq, 1));
    assert_eq!(entry.unwrap()[0].cause.id, turn.turn_id);
    assert!(trace.replayable && !trace.truncated);
    // Numbers count over all lists.
    let mut numbers: Vec<u64> = trace.idle.iter().map(|row| row.seq).collect();
    numbers.extend(trace.runtimes.iter().map(|row| row.seq));
    numbers.extend(trace.events.iter().map(|row| row.seq));
    numbers.extend(trace.models.iter().map(|row| row.seq));
    numbers.extend(trace.commit.iter().map(|row| row.seq));
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    let missing = stage.engine.trace(&session, "t9").unwrap_err();
    assert_eq!(missing.code(), "trace-not-found");
}

#[tokio::test]
async fn a_failed_execution_leaves_a_trace_and_replays() {
    let stage = stage(vec![story()], json!([{ "error": "out of order" }])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert!(!turn.committed);
    let trace = stage.engine.trace(&session, &turn.turn_id).unwrap();
    assert!(!trace.committed);
    assert_eq!(trace.runtimes[0].status, RuntimeStatus::Failed);
    assert_eq!(trace.models.last().unwrap().finish, "error: model-provider-error");
    let report = replay(&stage, &turn).await;
    assert!(!report.committed);
    assert_equal(&report);
}

#[tokio::test]
async fn setup_opening_and_manual_executions_replay() {
    let setup = function(
        "prologue",
        "{ stage: setup, trigger: { type: auto } }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('n', 'k', Math.random()); return { outcome: 'success', completion: 'done', value: {} }; };",
    );
    let by_name = function(
        "lever",
        "{ trigger: { type: manual } }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('pulled', 'by', ctx.manualPayload); return { outcome: 'success', value: { at: Date.now() } }; };",
    );
    let stage = stage(vec![story(), setup, by_name], json!([{ "content": "It begins." }])).await;
    let session = stage.session().await;
    let start = |kind| ExecutionRequest { kind, ..ExecutionRequest::player(&session, "") };
    let opening = stage.engine.execute(start(ExecutionKind::Start), None).await.unwrap();
    assert!(opening.committed, "{opening:#?}");
    let manual = ExecutionKind::Manual {
        runtime_id: "lever".into(),
        payload: Json::from_value(json!({ "hand": "left" })),
        message: String::new(),
        ignore_upstreams: false,
    };
    let manual = stage.engine.execute(start(manual), None).await.unwrap();
    assert!(manual.committed, "{manual:#?}");
    stage.replays(&[opening.setup.as_ref().unwrap(), &opening, &manual]).await;
    let trace = stage.engine.trace(&session, &manual.turn_id).unwrap();
    assert!(trace.idle.iter().all(|row| row.reason == "not-asked-for"));
}

/// Code that remembers outside the session is told apart, with the place.
#[tokio::test]
async fn the_first_difference_is_named() {
    let code = "let calls = 0;
        export default async (ctx) => {
            calls += 1;
            await ctx.pluginData.set('n', 'k', { deep: [1, calls] });
            return { outcome: 'success', value: {} };
        };";
    let forgetful = function("forgetful", "{ stage: pre-turn, trigger: { type: auto } }", "", "", code);
    let stage = stage(vec![forgetful], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    let report = replay(&stage, &turn).await;
    assert!(!report.equal);
    let difference = report.difference.unwrap();
    assert_eq!(difference.pointer, "/data/forgetful/n/k/value/deep/1");
    assert_eq!(difference.recorded.unwrap().value(), &json!(1));
    assert_eq!(difference.replayed.unwrap().value(), &json!(2));
}

#[tokio::test]
async fn another_version_of_a_package_is_refused() {
    let version = |answer: u32| {
        let code = format!("export default () => ({{ outcome: 'success', value: {{ n: {answer} }} }})");
        function("p", "{ stage: pre-turn, trigger: { type: auto } }", "", "", &code)
    };
    let stage = stage(vec![version(1)], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert_equal(&replay(&stage, &turn).await);
    stage.engine.publish(vec![version(2)]).await;
    let error = stage.engine.replay(&session, &turn.turn_id).await.unwrap_err();
    assert_eq!(error.code(), "replay-package-changed");
    assert!(error.to_string().contains("\"p\""), "{error}");
    stage.engine.publish(vec![version(1)]).await;
    assert_equal(&replay(&stage, &turn).await);
}

#[tokio::test]
async fn what_the_journal_forgot_cannot_be_replayed() {
    let stage = stage(vec![story()], json!([{ "content": "Once." }])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    let large = |letter: &str| Json::from_value(letter.repeat(40 * 1024 * 1024).into());
    for letter in ["a", "b", "c"] {
        let value = large(letter);
        let put = stage.engine.store().transact(move |tx| tx.put_item(&"s".into(), "large", "one", &value));
        put.await.unwrap();
    }
    let error = stage.engine.replay(&session, &turn.turn_id).await.unwrap_err();
    assert_eq!(error.code(), "replay-pruned");
}

#[tokio::test]
async fn more_than_a_tape_holds_is_said() {
    let greedy = "export default async () => { for (let i = 0; i < 80; i++) crypto.getRandomValues(new Uint8Array(65536)); return { outcome: 'success', value: {} }; }";
    let greedy = function("greedy", "{ stage: pre-turn, trigger: { type: auto } }", "", "", greedy);
    let stage = stage(vec![greedy], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert!(turn.committed, "{turn:#?}");
    assert!(!stage.engine.trace(&session, &turn.turn_id).unwrap().replayable);
    let error = stage.engine.replay(&session, &turn.turn_id).await.unwrap_err();
    assert_eq!(error.code(), "replay-incomplete");
}

#[tokio::test]
async fn sessions_of_other_names_are_not_found() {
    let stage = stage(vec![story()], json!([])).await;
    stage.engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    assert_eq!(stage.engine.trace("t", "t1").unwrap_err().code(), "session-not-found");
    assert_eq!(stage.engine.replay("s", "t1").await.unwrap_err().code(), "trace-not-found");
}

/// Jobs they make are part of what turns commit; characters and the other writes of the world are too.
#[tokio::test(flavor = "multi_thread")]
async fn turns_that_make_jobs_replay_and_jobs_say_that_they_do_not() {
    let bell = package(&[
        (
            "PLUGIN.md",
            "---\nid: bell\nkind: plugin\ndescription: Rings.\ncontributes:\n  events:\n    - { topic: bell.rung, schema: ./any.json, description: It rang. }\n---\n",
        ),
        ("any.json", "{}"),
        (
            "runtimes/ring/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: post-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/ring/h.js",
            "export default async () => ({ outcome: 'success', value: {}, effects: { events: [{ topic: 'bell.rung', data: { at: Date.now() } }] } });",
        ),
        (
            "runtimes/echo/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: bell.rung }, manual: { execution: background } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/echo/h.js",
            "export default async (ctx) => { await ctx.pluginData.set('n', 'k', Date.now()); return { outcome: 'success', value: {} }; };",
        ),
    ]);
    let stage = stage(vec![bell], json!([])).await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "hello").await;
    assert!(turn.committed && !turn.jobs.is_empty(), "{turn:#?}");
    stage.engine.drain_jobs(None).await;
    stage.replays(&[&turn]).await;
    let job = turn.jobs[0].value()["jobId"].as_str().unwrap().to_owned();
    assert_eq!(stage.engine.trace(&session, &job).unwrap().origin, "background");
    assert_eq!(stage.engine.replay(&session, &job).await.unwrap_err().code(), "replay-unsupported");
}
