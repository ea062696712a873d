//! Durable background jobs, end to end on a temporary store.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use covel_exec::{
    Ambient, BackgroundRequest, DataFilter, Engine, EngineOptions, ExecError, ExecutionRequest, JobActivation,
    JobDocument, JobStatus, NativeContext, NativeOutput, NativePackage, NativeRuntime, NewSession, ScriptedGateway,
    SessionStatus, TurnDocument,
};
use covel_graph::{
    Json, Stage,
    fragment::{CompletionDecl, CompletionMode, EffectsDecl, InputDecl, ManualExecution, RuntimeDecl, TriggerKind},
    package::Package,
};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use support::{function, package, row};

/// A clock that moves only when it is told to.
struct Clock {
    now: AtomicU64,
    ids: AtomicU64,
}

impl Clock {
    fn new() -> Arc<Self> {
        Arc::new(Self { now: AtomicU64::new(1_767_225_600_000), ids: AtomicU64::new(0) })
    }
    fn advance(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Ambient for Clock {
    fn now_millis(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now.load(Ordering::Relaxed) - 1_767_225_600_000)
    }
    fn fresh_bits(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

struct Play {
    engine: Engine,
    clock: Arc<Clock>,
    folder: tempfile::TempDir,
}

fn open(folder: &std::path::Path, clock: &Arc<Clock>, workers: usize) -> Engine {
    let mut options = EngineOptions::new(folder, Arc::new(ScriptedGateway::parse("[]").unwrap()));
    options.ambient = Arc::clone(clock) as Arc<dyn Ambient>;
    options.durable = false;
    options.job_workers = workers;
    Engine::open(options).unwrap()
}

/// Closes an engine and opens its folder again.
async fn reopen(engine: Engine, folder: &std::path::Path, clock: &Arc<Clock>, workers: usize) -> Engine {
    engine.close().await;
    drop(engine);
    open(folder, clock, workers)
}

impl Play {
    fn new(workers: usize) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::new());
        Self { engine: open(folder.path(), &clock, workers), clock, folder }
    }

    async fn native(self, packages: Vec<NativePackage>) -> Self {
        for package in packages {
            self.engine.publish_native(package).await.unwrap();
        }
        self.session().await;
        self
    }

    async fn js(self, packages: Vec<Arc<Package>>) -> Self {
        for state in self.engine.publish(packages).await {
            assert_eq!(state.error, None, "{}", state.plugin_id);
        }
        self.session().await;
        self
    }

    async fn session(&self) {
        let new = NewSession { id: Some("s".into()), seed: Some("seed".into()), ..NewSession::default() };
        self.engine.create_session(new).await.unwrap();
    }

    async fn turn(&self) -> TurnDocument {
        self.engine.execute(ExecutionRequest::player("s", "go"), None).await.unwrap()
    }

    fn jobs(&self) -> Vec<JobDocument> {
        self.engine.jobs("s").unwrap()
    }

    async fn drained(&self) -> Vec<JobDocument> {
        self.engine.drain_jobs(Some("s")).await;
        self.jobs()
    }

    fn data(&self, namespace: &str) -> Vec<(String, Value)> {
        let filter = DataFilter { namespace: Some(namespace.into()), ..DataFilter::default() };
        let rows = self.engine.data("s", filter).unwrap();
        rows.into_iter().map(|row| (row.key, row.value.value().clone())).collect()
    }
}

fn statuses(jobs: &[JobDocument]) -> Vec<JobStatus> {
    jobs.iter().map(|job| job.status).collect()
}

/// Lets heavy native runtimes through one by one.
#[derive(Default)]
struct Gate {
    state: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        state.0 += 1;
        self.changed.notify_all();
        while state.1 == 0 {
            self.changed.wait(&mut state);
        }
        state.1 -= 1;
    }
    fn open(&self, times: usize) {
        self.state.lock().1 += times;
        self.changed.notify_all();
    }
    /// Waits until so many have arrived in all.
    fn arrived(&self, count: usize) {
        let mut state = self.state.lock();
        while state.0 < count {
            self.changed.wait(&mut state);
        }
    }
    fn count(&self) -> usize {
        self.state.lock().0
    }
}

type Body = dyn Fn(&NativeContext<'_>) -> Result<NativeOutput, String> + Send + Sync;

/// Does its work, then waits at a gate before it returns.
struct Gated(Arc<Gate>, Box<Body>);

impl NativeRuntime for Gated {
    fn run(&self, context: &NativeContext<'_>) -> Result<NativeOutput, String> {
        let output = (self.1)(context);
        self.0.pass();
        output
    }
    fn is_heavy(&self) -> bool {
        true
    }
}

fn gated(
    gate: &Arc<Gate>,
    body: impl Fn(&NativeContext<'_>) -> Result<NativeOutput, String> + Send + Sync + 'static,
) -> Gated {
    Gated(Arc::clone(gate), Box::new(body))
}

fn background(topic: &str) -> RuntimeDecl {
    RuntimeDecl {
        trigger: TriggerKind::Event,
        topic: Some(topic.into()),
        manual: ManualExecution::Background,
        ..RuntimeDecl::default()
    }
}

fn emit(topic: &str, data: Value) -> NativeOutput {
    NativeOutput { events: vec![(topic.into(), Json::from_value(data))], ..NativeOutput::default() }
}

fn ok() -> Result<NativeOutput, String> {
    Ok(NativeOutput::default())
}

/// A package whose runtime emits `a.first` every turn, with a background follower.
fn follower(
    gate: &Arc<Gate>,
    body: impl Fn(&NativeContext<'_>) -> Result<NativeOutput, String> + Send + Sync + 'static,
) -> NativePackage {
    NativePackage::new("jobs")
        .runtime("emit", Stage::PreTurn, |context: &NativeContext<'_>| {
            Ok(emit("a.first", json!({"turn": context.logical_turn()})))
        })
        .add("late", background("a.first"), gated(gate, body))
}

/// Covers: EVT-3
#[tokio::test(flavor = "multi_thread")]
async fn a_background_follower_runs_after_the_turn_in_a_commit_of_its_own() {
    let package = package(&[
        (
            "PLUGIN.md",
            "---\nid: chain\nkind: plugin\ndescription: A chain.\ncontributes:\n  events:\n    - { topic: a.first, schema: ./any.json, description: First. }\n---\n",
        ),
        ("any.json", "{}"),
        (
            "runtimes/start/RUNTIME.md",
            "---\ntype: function\nschedule: { stage: pre-turn }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/start/h.js",
            "export default async () => ({ outcome: 'success', effects: { events: [{ topic: 'a.first', data: { n: 7 } }] } });",
        ),
        (
            "runtimes/late/RUNTIME.md",
            "---\ntype: function\nschedule: { trigger: { type: event, topic: a.first }, manual: { execution: background } }\nio: { inputs: { turn: { from: { kernel: turn-digest@1 } } } }\nfunction: { handler: ./h.js }\n---\n",
        ),
        (
            "runtimes/late/h.js",
            "export default async (ctx) => { await ctx.pluginData.set('log', 'late', { activation: ctx.activation, topic: ctx.triggerEvent.topic, message: ctx.playerMessage, turn: ctx.logicalTurn, source: ctx.inputs.turn.value.turnId, said: ctx.inputs.turn.value.playerMessage, seen: (await ctx.store.listTurnMessages()).length }); return { outcome: 'success', value: { n: ctx.triggerEvent.data.n } }; };",
        ),
    ]);
    let play = Play::new(4).js(vec![package]).await;
    let turn = play.turn().await;
    assert!(turn.committed);
    assert!(turn.runtimes.iter().all(|row| row.runtime_id == "chain/start"), "{:?}", turn.runtimes);
    assert_eq!(turn.jobs[0].value()["runtimeId"], "chain/late");
    play.turn().await;
    let jobs = play.drained().await;
    assert_eq!(statuses(&jobs), [JobStatus::Succeeded, JobStatus::Succeeded], "{jobs:#?}");
    assert_eq!(turn.jobs[0].value()["jobId"], json!(jobs[0].job_id));
    let first = &jobs[0];
    assert_eq!(first.origin.activation, JobActivation::Event);
    assert_eq!(first.origin.source_turn_id.as_deref(), Some(turn.turn_id.as_str()));
    assert_eq!(first.origin.source_runtime_id.as_deref(), Some("chain/start"));
    assert_eq!(first.result.as_ref().unwrap().output.as_ref().unwrap().text(), r#"{"n":7}"#);
    let (_, seen) = &play.data("log")[0];
    assert_eq!(seen["activation"], json!({"source": "event", "detached": true, "payload": {"n": 7}}));
    assert_eq!((&seen["topic"], &seen["message"], &seen["said"]), (&json!("a.first"), &json!("go"), &json!("go")));
    // The second job saw the dialogue as its turn saw it: the one message of the first turn.
    assert_eq!((&seen["turn"], &seen["seen"]), (&json!(2), &json!(1)));
    let turns = play.engine.turns("s", 10).unwrap();
    let origins: Vec<&str> = turns.iter().map(|turn| turn.origin.as_str()).collect();
    assert_eq!(origins.iter().filter(|origin| **origin == "background").count(), 2, "{origins:?}");
    assert_eq!(play.engine.session("s").unwrap().completed_player_turns, 2);
}

/// Covers: EVT-3
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_at_two_depths_defers_its_background_follower_once_with_one_note() {
    let native = NativePackage::new("jobs")
        .runtime("emit", Stage::PreTurn, |_: &NativeContext<'_>| {
            let events = [("a.first", 1), ("b.second", 1)];
            Ok(NativeOutput {
                events: events.iter().map(|(t, n)| ((*t).into(), Json::from_value(json!({"n": n})))).collect(),
                ..NativeOutput::default()
            })
        })
        .follower("again", "b.second", |_: &NativeContext<'_>| Ok(emit("a.first", json!({"n": 2}))))
        .add("late", background("a.first"), |context: &NativeContext<'_>| {
            let (_, data) = context.trigger_event().ok_or("no event")?;
            context.set("log", "late", data.clone()).map_err(|error| error.to_string())?;
            ok()
        });
    let play = Play::new(4).native(vec![native]).await;
    let turn = play.turn().await;
    assert_eq!(turn.jobs.len(), 1);
    let notes: Vec<&str> = turn.notes.iter().map(|note| note.code.as_str()).collect();
    assert_eq!(notes, ["background-follower-repeated"]);
    assert_eq!(statuses(&play.drained().await), [JobStatus::Succeeded]);
    assert_eq!(play.data("log"), [("late".to_owned(), json!({"n": 1}))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stale_only_when_something_it_read_changed() {
    for (reads, status) in [
        ("record", JobStatus::Stale),
        ("absent", JobStatus::Stale),
        ("update", JobStatus::Succeeded),
        ("other", JobStatus::Succeeded),
        ("people", JobStatus::Stale),
        ("dimensions", JobStatus::Succeeded),
        ("nothing", JobStatus::Succeeded),
    ] {
        let gate = Arc::new(Gate::default());
        let native = follower(&gate, move |context| {
            let failed = |error: covel_abi::HostError| error.to_string();
            match reads {
                "record" => drop(context.get("n", "shared").map_err(failed)?),
                "absent" => drop(context.get("n", "coming").map_err(failed)?),
                "other" => drop(context.get("n", "fixed").map_err(failed)?),
                "people" => drop(context.world("characters").map_err(failed)?),
                "dimensions" => drop(context.world("dimensions").map_err(failed)?),
                "update" => {
                    let ops = json!([{"op": "inc", "path": "/count", "by": 1}]);
                    context.update("n", "shared", Json::from_value(ops)).map_err(failed)?;
                }
                _ => {}
            }
            context.set("done", "job", Json::from_value(json!(true))).map_err(failed)?;
            ok()
        })
        .runtime("write", Stage::PreTurn, |context: &NativeContext<'_>| {
            let failed = |error: covel_abi::HostError| error.to_string();
            let turn = context.logical_turn();
            context.propose("character.upsert", &json!({"id": "ana", "name": "Ana"})).map_err(failed)?;
            context.set("n", "shared", Json::from_value(json!({"count": turn * 100}))).map_err(failed)?;
            if turn == 1 {
                context.set("n", "fixed", Json::from_value(json!(0))).map_err(failed)?;
            } else {
                context.set("n", "coming", Json::from_value(json!(turn))).map_err(failed)?;
            }
            ok()
        });
        let play = Play::new(1).native(vec![native]).await;
        play.turn().await;
        gate.arrived(1);
        // The session is not held while the job runs: the next turn commits meanwhile.
        assert!(play.turn().await.committed);
        gate.open(10);
        let jobs = play.drained().await;
        assert_eq!(jobs[0].status, status, "{reads}: {:?}", jobs[0]);
        if status == JobStatus::Stale {
            assert_eq!(jobs[0].reason.as_deref(), Some("commit-barrier-rejected"));
            assert_eq!(jobs[0].error.as_ref().unwrap().code, "job-stale");
        } else if reads == "update" {
            // Both writers of the record survive.
            assert_eq!(play.data("n")[0].1, json!({"count": 202}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_runtime_run_one_at_a_time_in_the_order_of_their_turns() {
    let gate = Arc::new(Gate::default());
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let native = follower(&gate, move |context| {
        let turn = context.trigger_event().map(|(_, data)| data.value()["turn"].clone());
        seen.lock().push(turn.unwrap_or_default());
        ok()
    });
    let play = Play::new(4).native(vec![native]).await;
    for _ in 0..5 {
        play.turn().await;
    }
    gate.arrived(1);
    assert_eq!(gate.count(), 1, "the others wait although workers are free");
    gate.open(5);
    assert_eq!(statuses(&play.drained().await), [JobStatus::Succeeded; 5]);
    assert_eq!(*order.lock(), [json!(1), json!(2), json!(3), json!(4), json!(5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_or_running_job_is_cancelled_and_leaves_nothing_and_can_be_tried_again() {
    let gate = Arc::new(Gate::default());
    let native = follower(&gate, |context| {
        context.set("done", "job", Json::from_value(json!(true))).map_err(|error| error.to_string())?;
        ok()
    });
    let play = Play::new(1).native(vec![native]).await;
    play.turn().await;
    play.turn().await;
    gate.arrived(1);
    let jobs = play.jobs();
    assert_eq!(statuses(&jobs), [JobStatus::Running, JobStatus::Queued]);
    for job in &jobs {
        assert!(matches!(play.engine.retry_job("s", &job.job_id).await, Err(ExecError::JobNotRetryable { .. })));
        assert_eq!(play.engine.cancel_job("s", &job.job_id).await.unwrap().status, JobStatus::Cancelled);
    }
    // Threads of cancelled heavy runtimes cannot be stopped; nothing of what they do counts.
    gate.open(9);
    assert_eq!(statuses(&play.drained().await), [JobStatus::Cancelled; 2]);
    assert!(play.data("done").is_empty());
    let again = play.engine.cancel_job("s", &jobs[0].job_id).await;
    assert!(matches!(again, Err(ExecError::JobNotCancellable { .. })), "{again:?}");
    assert!(matches!(play.engine.job("s", "nobody"), Err(ExecError::JobNotFound(_))));

    let retried = play.engine.retry_job("s", &jobs[0].job_id).await.unwrap();
    assert_ne!(retried.job_id, jobs[0].job_id);
    assert_eq!((retried.attempt, retried.origin.retry_of.as_deref()), (2, Some(jobs[0].job_id.as_str())));
    assert_eq!(play.drained().await[2].status, JobStatus::Succeeded);
    assert_eq!(play.data("done").len(), 1);
    assert!(matches!(play.engine.retry_job("s", &retried.job_id).await, Err(ExecError::JobNotRetryable { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_too_long_times_out_and_one_that_runs_too_long_too() {
    let play = Play::new(0).native(vec![follower(&Arc::default(), |_| ok())]).await;
    play.turn().await;
    play.clock.advance(600_000);
    play.engine.maintain_jobs().await.unwrap();
    assert_eq!(statuses(&play.jobs()), [JobStatus::Queued]);
    play.clock.advance(1);
    play.engine.maintain_jobs().await.unwrap();
    let jobs = play.jobs();
    assert_eq!((jobs[0].status, jobs[0].reason.as_deref()), (JobStatus::TimedOut, Some("queue-timeout")));

    let looping = function(
        "loops",
        "{ trigger: { type: manual }, manual: { execution: background }, completion: { maxExecutionMs: 60 } }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('done', 'x', {}); for (;;) {} };",
    );
    let play = Play::new(1).js(vec![looping]).await;
    let request = BackgroundRequest {
        session_id: "s".into(),
        runtime_id: "loops".into(),
        payload: Json::null(),
        message: String::new(),
    };
    play.engine.enqueue_runtime(request).await.unwrap();
    let jobs = play.drained().await;
    assert_eq!((jobs[0].status, jobs[0].reason.as_deref()), (JobStatus::TimedOut, Some("execution-timeout")));
    assert!(play.data("done").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_job_gets_its_payload_and_a_failure_is_kept_with_its_words() {
    let manual = function(
        "mark",
        "{ trigger: { type: manual }, manual: { execution: background } }",
        "",
        "",
        "export default async (ctx) => { if (ctx.manualPayload.fail) throw new Error('no ink'); await ctx.pluginData.set('marks', ctx.manualPayload.at, ctx.activation); return { outcome: 'success', effects: { jobStatus: ctx.manualPayload.sorry ? [{ jobId: 'x', state: 'failed', message: 'half a mark', sequence: 1 }] : [] } }; };",
    );
    let play = Play::new(4).js(vec![manual]).await;
    let request = |payload: Value| BackgroundRequest {
        session_id: "s".into(),
        runtime_id: "mark".into(),
        payload: Json::from_value(payload),
        message: "please".into(),
    };
    for payload in [json!({"at": "pier"}), json!({"fail": true}), json!({"at": "quay", "sorry": true})] {
        play.engine.enqueue_runtime(request(payload)).await.unwrap();
    }
    let missing = BackgroundRequest { runtime_id: "nobody".into(), ..request(json!(null)) };
    assert!(matches!(play.engine.enqueue_runtime(missing).await, Err(ExecError::RuntimeNotActive(_))));
    let jobs = play.drained().await;
    assert_eq!(statuses(&jobs), [JobStatus::Succeeded, JobStatus::Failed, JobStatus::Failed]);
    assert_eq!(jobs[1].reason.as_deref(), Some("execution-failed"));
    assert!(jobs[1].error.as_ref().unwrap().message.contains("no ink"));
    // Its writes land all the same.
    assert_eq!(jobs[2].reason.as_deref(), Some("runtime-reported-failure"));
    assert_eq!(jobs[2].error.as_ref().unwrap().message, "half a mark");
    let marks = play.data("marks");
    assert_eq!(marks.len(), 2);
    assert_eq!(marks[0].1, json!({"source": "manual", "detached": true, "payload": {"at": "pier"}}));
    assert_eq!(play.engine.session("s").unwrap().turn_count, 0, "a job is no turn");
}

/// Covers: COM-8, EVT-3
#[tokio::test(flavor = "multi_thread")]
async fn a_page_emits_only_own_topics_and_each_follower_is_a_job_of_its_own() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let log = |name: &'static str| {
        move |context: &NativeContext<'_>| {
            let (topic, data) = context.trigger_event().ok_or("no event")?;
            if data.value()["n"] == 13 && name == "one" {
                return Err("unlucky".to_owned());
            }
            let value = Json::from_value(json!({"topic": topic, "data": data}));
            context.set("log", name, value).map_err(|error| error.to_string())?;
            ok()
        }
    };
    let sync = RuntimeDecl { start_turn: 50, max_trigger_count: 1, ..background("page.clicked") };
    let own = NativePackage::new("page")
        .event("page.clicked", &schema)
        .event("page.quiet", &json!({}))
        .follower("one", "page.clicked", log("one"))
        .add("two", sync, log("two"));
    let other = NativePackage::new("other").event("other.done", &json!({}));
    let play = Play::new(4).native(vec![own, other]).await;
    let emit = |plugin: &'static str, topic: &'static str, data: Value| {
        let engine = play.engine.clone();
        async move { engine.emit_ui_event("s", plugin, topic, Json::from_value(data)).await }
    };
    for (plugin, topic, data, code) in [
        ("page", "other.done", json!({}), "event-not-declared"),
        ("page", "page.missing", json!({}), "event-not-declared"),
        ("page", "page.clicked", json!({}), "event-payload-invalid"),
        ("page", "page.clicked", json!(3), "event-payload-invalid"),
        ("page", "page.clicked", json!({"n": 1, "pad": "x".repeat(70_000)}), "event-payload-invalid"),
        ("nobody", "page.clicked", json!({"n": 1}), "plugin-not-active"),
    ] {
        assert_eq!(emit(plugin, topic, data).await.unwrap_err().code(), code, "{plugin} {topic}");
    }
    assert!(emit("page", "page.quiet", json!({})).await.unwrap().jobs.is_empty());
    let event = emit("page", "page.clicked", json!({"n": 13})).await.unwrap();
    let ids: Vec<&str> = event.jobs.iter().map(|job| job.runtime_id.as_str()).collect();
    assert_eq!(ids, ["page/one", "page/two"]);
    emit("page", "page.clicked", json!({"n": 2})).await.unwrap();
    let jobs = play.drained().await;
    // One failed; the other does not care. Limits and start turns do not count for a page's events.
    assert_eq!(statuses(&jobs), [JobStatus::Failed, JobStatus::Succeeded, JobStatus::Succeeded, JobStatus::Succeeded]);
    assert_eq!(jobs[0].error.as_ref().unwrap().message, "unlucky");
    let log = play.data("log");
    assert_eq!(log.len(), 2);
    assert!(log.iter().all(|(_, value)| value["data"] == json!({"n": 2})), "{log:?}");
}

fn detached(after: &str) -> RuntimeDecl {
    RuntimeDecl {
        stage: Some(Stage::PostTurn),
        completion: CompletionDecl { mode: CompletionMode::Detached, ..CompletionDecl::default() },
        effects: EffectsDecl { writes: vec![after.into()], ..EffectsDecl::default() },
        ..RuntimeDecl::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_runtime_runs_after_the_turn_on_the_inputs_of_its_level() {
    let gate = Arc::new(Gate::default());
    let native = NativePackage::new("jobs")
        .runtime("count", Stage::PreTurn, |context: &NativeContext<'_>| {
            Ok(NativeOutput::value(json!({"turn": context.logical_turn()})))
        })
        .provides("jobs.count@1")
        .add(
            "late",
            detached("plugin-data:self:log"),
            gated(&gate, |context| {
                let slot = context.input("count").ok_or("no input")?.clone();
                let key = slot.value()["value"]["turn"].to_string();
                context.set("log", &key, slot).map_err(|error| error.to_string())?;
                ok()
            }),
        )
        .input(InputDecl {
            name: "count".into(),
            contract: Some("jobs.count@1".into()),
            required: true,
            ..InputDecl::default()
        })
        .add("wide", detached("characters:*"), |_: &NativeContext<'_>| ok());
    let play = Play::new(4).native(vec![native]).await;
    let turn = play.turn().await;
    assert!(turn.committed, "{:?}", turn.error);
    assert_eq!(row(&turn, "jobs/late").reason.as_deref(), Some("deferred"));
    assert_eq!(row(&turn, "jobs/late").reads_from, ["jobs/count"]);
    assert_eq!(turn.jobs.len(), 1);
    // What writes more than its own part stays in the turn, and says why.
    let notes: Vec<&str> = turn.notes.iter().map(|note| note.code.as_str()).collect();
    assert_eq!(notes, ["detached-kept-in-turn"]);
    assert!(turn.notes[0].message.contains("characters:*"), "{}", turn.notes[0].message);
    play.turn().await;
    gate.open(2);
    let jobs = play.drained().await;
    assert_eq!(statuses(&jobs), [JobStatus::Succeeded; 2], "{jobs:#?}");
    assert_eq!(jobs[0].origin.activation, JobActivation::Stage);
    let log = play.data("log");
    assert_eq!(log.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(log[0].1["source"]["resultId"], json!(format!("{}:jobs/count", turn.turn_id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_execution_waits_for_a_job_that_asks_for_it_but_not_for_ever() {
    let gate = Arc::new(Gate::default());
    let late = |wait: u64| {
        let mut decl = background("a.first");
        decl.completion = CompletionDecl { settle: true, max_settle_wait_ms: wait, ..CompletionDecl::default() };
        NativePackage::new("jobs")
            .runtime("emit", Stage::PreTurn, |_: &NativeContext<'_>| Ok(emit("a.first", json!({}))))
            .runtime("look", Stage::PreTurn, |context: &NativeContext<'_>| {
                let seen = context.get("n", "job").map_err(|error| error.to_string())?;
                Ok(NativeOutput::value(json!({"seen": seen.is_some()})))
            })
            .add(
                "late",
                decl,
                gated(&gate, |context| {
                    context.set("n", "job", Json::from_value(json!(1))).map_err(|error| error.to_string())?;
                    ok()
                }),
            )
    };
    let seen = |turn: &TurnDocument| row(turn, "jobs/look").output.as_ref().unwrap().value()["seen"].clone();
    let codes = |turn: &TurnDocument| turn.notes.iter().map(|note| note.code.clone()).collect::<Vec<_>>();

    let play = Play::new(1).native(vec![late(60_000)]).await;
    assert_eq!(seen(&play.turn().await), json!(false));
    gate.arrived(1);
    let engine = play.engine.clone();
    let next = tokio::spawn(async move { engine.execute(ExecutionRequest::player("s", "go"), None).await.unwrap() });
    gate.open(1);
    let next = next.await.unwrap();
    assert_eq!((seen(&next), codes(&next)), (json!(true), vec![]));
    gate.open(1);
    play.drained().await;

    // Here nobody opens the gate in time.
    let play = Play::new(1).native(vec![late(30)]).await;
    play.turn().await;
    gate.arrived(3);
    let next = play.turn().await;
    assert_eq!((seen(&next), codes(&next)), (json!(false), vec!["execution.settle-timeout".to_owned()]));
    assert!(next.committed);
    gate.open(2);
    assert_eq!(statuses(&play.drained().await), [JobStatus::Succeeded; 2], "nothing was cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_jobs_go_on_after_a_restart_once_their_package_is_there() {
    let native = || {
        follower(&Arc::new(Gate { state: Mutex::new((0, 100)), changed: Condvar::new() }), |context| {
            context.set("done", "job", Json::from_value(json!(true))).map_err(|error| error.to_string())?;
            ok()
        })
    };
    let play = Play::new(0).native(vec![native()]).await;
    play.turn().await;
    assert_eq!(statuses(&play.drained().await), [JobStatus::Queued]);
    let Play { engine, clock, folder } = play;
    let engine = reopen(engine, folder.path(), &clock, 2).await;
    engine.drain_jobs(None).await;
    assert_eq!(engine.jobs("s").unwrap()[0].status, JobStatus::Queued);
    engine.publish_native(native()).await.unwrap();
    engine.drain_jobs(None).await;
    assert_eq!(engine.jobs("s").unwrap()[0].status, JobStatus::Succeeded);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_another_version_or_of_a_resting_session_is_stale_before_it_starts() {
    let versioned = |version: &str| {
        let code = "export default async () => ({ outcome: 'success' });";
        function(
            "mark",
            "{ trigger: { type: manual }, manual: { execution: background } }",
            "",
            &format!("version: {version}\n"),
            code,
        )
    };
    let request = BackgroundRequest {
        session_id: "s".into(),
        runtime_id: "mark".into(),
        payload: Json::null(),
        message: String::new(),
    };
    let play = Play::new(0).js(vec![versioned("1.0.0")]).await;
    play.engine.enqueue_runtime(request.clone()).await.unwrap();
    let Play { engine, clock, folder } = play;
    let engine = reopen(engine, folder.path(), &clock, 1).await;
    engine.publish(vec![versioned("2.0.0")]).await;
    engine.drain_jobs(None).await;
    let job = engine.jobs("s").unwrap().remove(0);
    assert_eq!((job.status, job.reason.as_deref()), (JobStatus::Stale, Some("pre-execution-rejected")));
    let retried = engine.retry_job("s", &job.job_id).await.unwrap();
    engine.drain_jobs(None).await;
    assert_eq!(engine.job("s", &retried.job_id).unwrap().status, JobStatus::Succeeded);

    let engine = reopen(engine, folder.path(), &clock, 0).await;
    engine.publish(vec![versioned("2.0.0")]).await;
    engine.enqueue_runtime(request.clone()).await.unwrap();
    engine.set_status("s", SessionStatus::Paused).await.unwrap();
    assert!(matches!(engine.enqueue_runtime(request).await, Err(ExecError::SessionNotActive { .. })));
    let engine = reopen(engine, folder.path(), &clock, 1).await;
    engine.publish(vec![versioned("2.0.0")]).await;
    engine.drain_jobs(None).await;
    assert_eq!(engine.jobs("s").unwrap().last().unwrap().status, JobStatus::Stale);
    engine.delete_session("s").await.unwrap();
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_holds_a_thousand_open_jobs_and_keeps_twenty_ended_ones_of_a_runtime() {
    let native = || {
        NativePackage::new("jobs")
            .event("a.first", &json!({}))
            .runtime("emit", Stage::PreTurn, |_: &NativeContext<'_>| Ok(emit("a.first", json!({}))))
            .add("late", background("a.first"), |_: &NativeContext<'_>| ok())
    };
    let play = Play::new(0).native(vec![native()]).await;
    for _ in 0..covel_exec::limits::MAX_OPEN_JOBS_PER_SESSION {
        play.engine.emit_ui_event("s", "jobs", "a.first", Json::from_value(json!({}))).await.unwrap();
    }
    let over = play.engine.emit_ui_event("s", "jobs", "a.first", Json::from_value(json!({}))).await;
    assert!(matches!(over, Err(ExecError::BackgroundQueueFull { .. })));
    let turn = play.turn().await;
    assert!(turn.committed && turn.jobs.is_empty());
    assert_eq!(turn.notes[0].code, "background-queue-full");
    let Play { engine, clock, folder } = play;
    let engine = reopen(engine, folder.path(), &clock, 4).await;
    engine.publish_native(native()).await.unwrap();
    engine.drain_jobs(None).await;
    let jobs = engine.jobs("s").unwrap();
    assert_eq!(statuses(&jobs), [JobStatus::Succeeded; covel_exec::limits::MAX_TERMINAL_JOBS_PER_RUNTIME]);
    let turn = engine.execute(ExecutionRequest::player("s", "go"), None).await.unwrap();
    assert_eq!(turn.jobs.len(), 1, "there is room again");
    engine.drain_jobs(None).await;
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_jobs_that_make_jobs_ends() {
    let native = NativePackage::new("jobs")
        .runtime("emit", Stage::PreTurn, |_: &NativeContext<'_>| Ok(emit("a.first", json!({}))))
        .add("ping", background("a.first"), |_: &NativeContext<'_>| Ok(emit("b.second", json!({}))))
        .add("pong", background("b.second"), |_: &NativeContext<'_>| Ok(emit("a.first", json!({}))));
    let play = Play::new(2).native(vec![native]).await;
    play.turn().await;
    let jobs = play.drained().await;
    assert_eq!(jobs.len(), covel_exec::limits::MAX_JOB_CHAIN as usize + 1);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Succeeded));
    let turns = play.engine.turns("s", 100).unwrap();
    assert_eq!(turns.last().unwrap().notes[0].code, "job-chain-exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_takes_its_jobs_with_it() {
    let gate = Arc::new(Gate::default());
    let native = follower(&gate, |context| {
        context.set("done", "job", Json::from_value(json!(true))).map_err(|error| error.to_string())?;
        ok()
    });
    let play = Play::new(1).native(vec![native]).await;
    play.turn().await;
    play.turn().await;
    gate.arrived(1);
    play.engine.delete_session("s").await.unwrap();
    play.session().await;
    gate.open(2);
    assert!(play.drained().await.is_empty());
    assert!(play.data("done").is_empty(), "the new session of the same id got nothing");
    let Play { engine, clock, folder } = play;
    let engine = reopen(engine, folder.path(), &clock, 1).await;
    engine.drain_jobs(None).await;
    assert!(engine.jobs("s").unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn job_states_are_told_in_order_with_growing_sequence() {
    let native = follower(&Arc::new(Gate { state: Mutex::new((0, 9)), changed: Condvar::new() }), |_| ok());
    let play = Play::new(1).native(vec![native]).await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    play.engine.listen_to_jobs(sender);
    let turn = play.turn().await;
    play.drained().await;
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if event.kind == "job-status.updated" {
            assert_eq!(event.turn_id, turn.turn_id);
            let payload = event.payload.value();
            told.push((payload["sequence"].as_u64().unwrap(), payload["state"].as_str().unwrap().to_owned()));
        }
    }
    assert_eq!(told.iter().map(|(_, state)| state.as_str()).collect::<Vec<_>>(), ["queued", "running", "succeeded"]);
    assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_reports_its_progress_live_and_once() {
    let code = "export default async (ctx) => { ctx.progress.report({ progress: 0.25, message: 'a quarter', sequence: 1 }); ctx.progress.report({ progress: 0.2, sequence: 1 }); ctx.progress.report({ state: 'succeeded', progress: 1, data: { pages: 4 }, sequence: 2 }); let refused = ''; try { ctx.progress.report({ state: 'perfect' }); } catch (error) { refused = error.code; } return { outcome: 'success', value: { refused } }; };";
    let schedule = "{ trigger: { type: manual }, manual: { execution: background } }";
    let play = Play::new(1).js(vec![function("slow", schedule, "", "", code)]).await;
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    play.engine.listen_to_jobs(sender);
    let request = BackgroundRequest {
        session_id: "s".into(),
        runtime_id: "slow".into(),
        payload: Json::null(),
        message: String::new(),
    };
    play.engine.enqueue_runtime(request).await.unwrap();
    let jobs = play.drained().await;
    assert_eq!(jobs[0].status, JobStatus::Succeeded, "{:?}", jobs[0]);
    assert_eq!(jobs[0].result.as_ref().unwrap().output.as_ref().unwrap().text(), r#"{"refused":"invalid-input"}"#);
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        if event.kind == "job-status.updated" {
            let payload = event.payload.value();
            told.push((payload["state"].clone(), payload["progress"].clone(), payload["sequence"].as_u64().unwrap()));
        }
    }
    let states: Vec<&str> = told.iter().map(|(state, ..)| state.as_str().unwrap()).collect();
    // A runtime cannot say that it has succeeded: that is true once its writes have landed.
    assert_eq!(states, ["queued", "running", "progress", "progress", "succeeded"]);
    assert_eq!(told[2].1, json!(0.25));
    assert!(told.windows(2).all(|pair| pair[0].2 < pair[1].2), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_runtime_whose_event_did_not_commit_is_not_made() {
    // Two packages emit one topic; the one whose payload counts first is dropped at commit, the story is kept.
    let conflict = |context: &NativeContext<'_>| {
        let failed = |error: covel_abi::HostError| error.to_string();
        context
            .update("n", "shared", Json::from_value(json!([{"op": "add", "path": "/mine", "value": 1}])))
            .map_err(failed)?;
        Ok::<_, String>(())
    };
    for (second, made) in [(true, Some(json!({"from": "two"}))), (false, None)] {
        let mut native = NativePackage::new("jobs")
            // Deletes in the same layer what the next one changes: at commit there is nothing any more.
            .runtime("a-first", Stage::PreTurn, |context: &NativeContext<'_>| {
                context.set("n", "shared", Json::from_value(json!([]))).map_err(|error| error.to_string())?;
                ok()
            })
            .runtime("one", Stage::PreTurn, move |context: &NativeContext<'_>| {
                conflict(context)?;
                Ok(emit("a.first", json!({"from": "one"})))
            })
            .add(
                "tale",
                RuntimeDecl {
                    stage: Some(Stage::Narrative),
                    visibility: covel_graph::fragment::Visibility::Story,
                    ..RuntimeDecl::default()
                },
                |_: &NativeContext<'_>| Ok(NativeOutput::value(json!({"narrativeOutput": "Rain."}))),
            )
            .add("late", background("a.first"), |context: &NativeContext<'_>| {
                let (_, data) = context.trigger_event().ok_or("no event")?;
                context.set("log", "late", data.clone()).map_err(|error| error.to_string())?;
                ok()
            });
        if second {
            native = native
                .runtime("two", Stage::PreTurn, |_: &NativeContext<'_>| Ok(emit("a.first", json!({"from": "two"}))));
        }
        let play = Play::new(1).native(vec![native]).await;
        let turn = play.turn().await;
        assert!(turn.committed, "{:?}", turn.error);
        let isolated: Vec<&str> = turn.isolated.iter().map(|one| one.runtime_id.as_str()).collect();
        assert_eq!(isolated, ["jobs/one"], "{turn:#?}");
        play.drained().await;
        assert_eq!(play.data("log").into_iter().map(|(_, value)| value).next(), made);
        assert_eq!(turn.jobs.len(), usize::from(second));
    }
}
