//! `kill -9` at any moment, and the process ending itself at every named point of a commit: every acknowledged turn is
//! there, whole, nothing else is half there, and nothing happened twice.
//!
//! `COVEL_CRASH_ROUNDS` sets how often the child is killed (500 is the long mode), `COVEL_CRASH_SEED` the choices.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecutionKind, ExecutionRequest, NativeContext, NativeOutput, NativePackage,
    NewSession, ScriptedGateway,
};
use covel_graph::{
    Json, Stage,
    fragment::{ManualExecution, RuntimeDecl, TriggerKind},
};
use serde_json::json;

const FOLDER: &str = "COVEL_CRASH_FOLDER";
const ERA: &str = "COVEL_CRASH_ERA";
/// Read once by the store: `<point>:<how many times it is passed before the process ends>`.
const FAILPOINT: &str = "COVEL_FAILPOINT";
const ROUNDS: u64 = 30;
/// Sessions that play at once.
const SESSIONS: usize = 4;
/// Rounds after which new sessions begin, so that checking one round stays cheap.
const ROUNDS_PER_ERA: u64 = 15;
/// Jobs that run at once.
const WORKERS: usize = 4;
/// Turns after which a child gives up waiting to be killed.
const ENOUGH_TURNS: usize = 600;
/// Where a commit can be cut off. The last is after it is durable and before anyone is told.
const POINTS: [&str; 6] =
    ["execution-walked", "commit-applied", "flush-started", "flush-half-way", "flush-written", "flush-durable"];

/// Counts one more in a record, at commit.
fn count(context: &NativeContext<'_>, key: &str) -> Result<(), String> {
    let ops = json!([{"op": "inc", "path": "/n", "by": 1}]);
    context.update("count", key, Json::from_value(ops)).map_err(|error| error.message)
}

/// Two write in every turn, and one follows: a turn is whole when all three counted it and wrote its row.
fn writer(id: &str) -> NativePackage {
    let write = |context: &NativeContext<'_>| {
        let key = context.logical_turn().to_string();
        context.set("rows", &key, Json::from_value(json!({"turn": key}))).map_err(|error| error.message)?;
        count(context, "turns")?;
        Ok(NativeOutput {
            events: vec![("bell.rung".to_owned(), Json::from_value(json!({"turn": key})))],
            ..NativeOutput::default()
        })
    };
    NativePackage::new(id).event("bell.rung", &json!({})).runtime("write", Stage::PreTurn, write)
}

fn other(id: &str) -> NativePackage {
    let manual = RuntimeDecl { trigger: TriggerKind::Manual, ..RuntimeDecl::default() };
    let background = RuntimeDecl {
        trigger: TriggerKind::Event,
        topic: Some("bell.rung".into()),
        manual: ManualExecution::Background,
        ..RuntimeDecl::default()
    };
    NativePackage::new(id)
        .runtime("write", Stage::PostTurn, |context: &NativeContext<'_>| {
            let key = context.logical_turn().to_string();
            context.set("rows", &key, Json::from_value(json!({"turn": key}))).map_err(|error| error.message)?;
            count(context, "turns").map(|()| NativeOutput::default())
        })
        .follower("follow", "bell.rung", |context: &NativeContext<'_>| {
            count(context, "followed").map(|()| NativeOutput::default())
        })
        .add("job", background, |context: &NativeContext<'_>| {
            let turn = context.trigger_event().map(|(_, data)| data.value()["turn"].as_str().unwrap().to_owned());
            context.set("jobs", &turn.unwrap(), Json::from_value(json!(1))).map_err(|error| error.message)?;
            count(context, "jobs").map(|()| NativeOutput::default())
        })
        .add("by-hand", manual, |context: &NativeContext<'_>| {
            count(context, "by-hand").map(|()| NativeOutput::default())
        })
}

async fn open(folder: &Path) -> Engine {
    let gateway = ScriptedGateway::parse("[]").unwrap();
    let engine = Engine::open(EngineOptions::new(folder, Arc::new(gateway))).unwrap();
    engine.publish_native(writer("one")).await.unwrap();
    engine.publish_native(other("two")).await.unwrap();
    engine
}

fn name(era: u64, number: usize) -> String {
    format!("e{era}-s{number}")
}

fn by_hand(session: &str) -> ExecutionRequest {
    let kind = ExecutionKind::Manual {
        runtime_id: "two/by-hand".into(),
        payload: Json::null(),
        message: String::new(),
        ignore_upstreams: false,
    };
    ExecutionRequest { kind, ..ExecutionRequest::player(session, "") }
}

/// Not a test of its own: the child that is killed. It plays turns in several sessions and says so after each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_plays_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let era: u64 = std::env::var(ERA).unwrap().parse().unwrap();
    let engine = open(&PathBuf::from(folder)).await;
    let players = (0..SESSIONS).map(|number| {
        let (engine, id) = (engine.clone(), name(era, number));
        tokio::spawn(async move {
            if engine.session(&id).is_err() {
                engine.create_session(NewSession { id: Some(id.clone()), ..NewSession::default() }).await.unwrap();
            }
            for round in 0..ENOUGH_TURNS {
                let request = if round % 3 == 2 { by_hand(&id) } else { ExecutionRequest::player(&id, "on") };
                let turn = engine.execute(request, None).await.unwrap();
                assert!(turn.committed, "{:?}", turn.error);
                let mut out = std::io::stdout().lock();
                writeln!(out, "\nacknowledged {id} {}", turn.turn_id).unwrap();
                out.flush().unwrap();
            }
        })
    });
    futures_util::future::join_all(players).await;
}

/// Splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Default)]
struct Tally {
    kills: u64,
    ended_at: BTreeMap<&'static str, u64>,
    acknowledged: BTreeMap<String, Vec<String>>,
    /// Turns that were stored without anyone having been told.
    unheard: usize,
    jobs: usize,
    given_up: usize,
}

/// One life of the child; gives the ids it acknowledged.
fn live(folder: &Path, era: u64, seed: &mut u64, round: u64, tally: &mut Tally) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child_that_plays_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .env(ERA, era.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Every other child ends itself, at each point in turn.
    let point = (round % 2 == 1).then(|| POINTS[(round / 2) as usize % POINTS.len()]);
    if let Some(point) = point {
        let passes = if point == "flush-half-way" { 1 + random(seed) % 200 } else { 1 + random(seed) % 25 };
        command.env(FAILPOINT, format!("{point}:{passes}"));
    }
    let mut wanted = if point.is_some() { u64::MAX } else { 1 + random(seed) % 40 };
    let mut child = command.spawn().unwrap();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // A line cut short by the kill is no acknowledgement.
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split(' ').collect();
        let ["acknowledged", session, turn] = words[..] else { continue };
        tally.acknowledged.entry(session.to_owned()).or_default().push(turn.to_owned());
        wanted -= 1;
        if wanted == 0 {
            break;
        }
    }
    match point {
        Some(point) => *tally.ended_at.entry(point).or_default() += 1,
        None => {
            child.kill().unwrap();
            tally.kills += 1;
        }
    }
    assert!(!child.wait().unwrap().success(), "the child was to die at {point:?}");
}

/// What a session turned out to hold.
#[derive(Default)]
struct Checked {
    unheard: usize,
    jobs: usize,
    given_up: usize,
}

/// Is everything acknowledged there, whole and once?
async fn check(engine: &Engine, session: &str, acknowledged: &[String], lives: usize) -> Checked {
    let Ok(record) = engine.session(session) else {
        assert!(acknowledged.is_empty(), "{session} is gone");
        return Checked::default();
    };
    let turns = engine.turns(session, 100_000).unwrap();
    let stored: BTreeSet<&str> = turns.iter().map(|turn| turn.turn_id.as_str()).collect();
    assert_eq!(stored.len(), turns.len(), "{session}: a turn is there twice");
    for turn in acknowledged {
        assert!(stored.contains(turn.as_str()), "{session}: {turn} was acknowledged and is lost");
    }
    let players = turns.iter().filter(|turn| turn.origin == "player").count();
    let by_hand = turns.iter().filter(|turn| turn.origin == "manual").count();
    let background = turns.len() - players - by_hand;
    assert_eq!(record.completed_player_turns as usize, players, "{session}");
    assert_eq!(record.turn_count as usize, players + by_hand, "{session}");
    let data = engine.data(session, DataFilter::default()).unwrap();
    let counted = |plugin: &str, key: &str| {
        let row = data.iter().find(|row| row.plugin_id == plugin && row.namespace == "count" && row.key == key);
        row.map_or(0, |row| row.value.value()["n"].as_u64().unwrap() as usize)
    };
    for (plugin, key, expected) in [
        ("one", "turns", players),
        ("two", "turns", players),
        ("two", "followed", players),
        ("two", "by-hand", by_hand),
        // A job's writes and its document are one commit; a job that ran twice would have counted twice.
        ("two", "jobs", background),
    ] {
        assert_eq!(counted(plugin, key), expected, "{session}: {plugin} {key} is half there or there twice");
    }
    for plugin in ["one", "two"] {
        let rows = data.iter().filter(|row| row.plugin_id == plugin && row.namespace == "rows");
        let rows: BTreeSet<usize> = rows.map(|row| row.key.parse().unwrap()).collect();
        assert_eq!(rows, (1..=players).collect(), "{session}: rows of {plugin}");
    }
    let jobs = data.iter().filter(|row| row.plugin_id == "two" && row.namespace == "jobs").count();
    assert_eq!(jobs, background, "{session}: a job of one turn ran twice");
    // What was queued at a kill runs afterwards; only what a worker held then is given up, and not run again.
    let given_up = players - jobs;
    assert!(given_up <= WORKERS * lives, "{session}: {given_up} jobs are gone after {lives} lives");
    assert!(engine.jobs(session).unwrap().iter().all(|job| job.status.is_terminal()), "{session}");
    let messages = engine.messages(session, 100_000).unwrap();
    assert!(messages.iter().all(|message| stored.contains(message.turn_id.as_str())));
    Checked { unheard: players + by_hand - acknowledged.len(), jobs, given_up }
}

/// Invariant 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_turn_is_lost_and_none_is_half_there_or_there_twice() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (rounds, first) = (number("COVEL_CRASH_ROUNDS").unwrap_or(ROUNDS), number("COVEL_CRASH_SEED").unwrap_or(1));
    println!("COVEL_CRASH_SEED={first}");
    let mut seed = first;
    let folder = tempfile::tempdir().unwrap();
    let mut tally = Tally::default();
    let nothing = Vec::new();
    for round in 0..rounds {
        let era = round / ROUNDS_PER_ERA;
        live(folder.path(), era, &mut seed, round, &mut tally);
        let engine = open(folder.path()).await;
        engine.drain_jobs(None).await;
        let lives = (round % ROUNDS_PER_ERA + 1) as usize;
        // The last look at the sessions of an era is the one that counts their unheard turns.
        let last = round + 1 == rounds || (round + 1) % ROUNDS_PER_ERA == 0;
        for session in (0..SESSIONS).map(|number| name(era, number)) {
            let heard = tally.acknowledged.get(&session).unwrap_or(&nothing);
            let checked = check(&engine, &session, heard, lives).await;
            if last {
                tally.unheard += checked.unheard;
                tally.jobs += checked.jobs;
                tally.given_up += checked.given_up;
            }
        }
        if round + 1 == rounds {
            for (session, acknowledged) in &tally.acknowledged {
                check(&engine, session, acknowledged, ROUNDS_PER_ERA as usize).await;
            }
        }
        engine.close().await;
    }
    let acknowledged: usize = tally.acknowledged.values().map(Vec::len).sum();
    println!(
        "{} kills, {} ends at named points {:?}; {acknowledged} turns acknowledged, 0 lost, 0 partial, 0 twice; {} more were durable and unheard of; {} jobs ran once, {} were under way at a kill and given up",
        tally.kills,
        tally.ended_at.values().sum::<u64>(),
        tally.ended_at,
        tally.unheard,
        tally.jobs,
        tally.given_up
    );
    assert!(acknowledged as u64 > rounds);
}

const RECOVERY_FOLDER: &str = "COVEL_RECOVERY_FOLDER";

/// A package whose second turn never ends.
fn endless() -> Arc<covel_graph::package::Package> {
    support::function(
        "endless",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => { if (ctx.playerMessage === 'wait') await new Promise(() => {}); return { outcome: 'success' }; };",
    )
}

async fn open_endless(folder: &Path) -> Engine {
    let gateway = ScriptedGateway::parse("[]").unwrap();
    let engine = Engine::open(EngineOptions::new(folder, Arc::new(gateway))).unwrap();
    engine.publish(vec![endless()]).await;
    engine
}

/// Not a test of its own: the child that is killed in the middle of a turn.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed_in_a_turn() {
    let Some(folder) = std::env::var_os(RECOVERY_FOLDER) else { return };
    let engine = open_endless(&PathBuf::from(folder)).await;
    engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    engine.execute(ExecutionRequest::player("s", "hello"), None).await.unwrap();
    let (sink, mut events) = tokio::sync::mpsc::unbounded_channel();
    let request = ExecutionRequest { request_id: Some("r-7".into()), ..ExecutionRequest::player("s", "wait") };
    let turn = engine.execute(request, Some(sink));
    let told = async {
        while let Some(event) = events.recv().await {
            if event.kind == "runtime.started" {
                let mut out = std::io::stdout().lock();
                writeln!(out, "\nbegun {}", event.turn_id).unwrap();
                out.flush().unwrap();
            }
        }
    };
    tokio::join!(turn, told).0.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_turn_is_known_after_the_kill_and_can_be_asked_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed_in_a_turn", "--nocapture"])
        .env(RECOVERY_FOLDER, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let turn = lines.find_map(|line| line.unwrap().strip_prefix("begun ").map(str::to_owned)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    // Known by every process that comes after, until something commits.
    open_endless(folder.path()).await.close().await;
    let engine = open_endless(folder.path()).await;
    let info = engine.execution("s").unwrap();
    assert_eq!((info.status, info.turn_id.as_deref()), ("interrupted", Some(turn.as_str())));
    assert_eq!(info.request_id.as_deref(), Some("r-7"));
    assert_eq!(*info.retry.unwrap().value(), json!({"type": "send_message", "payload": {"content": "wait"}}));
    assert_eq!(engine.turns("s", 10).unwrap().len(), 1, "nothing of it is there");

    let recover = |turn: &str| covel_exec::ExecutionOptions {
        recover_from_turn_id: Some(turn.to_owned()),
        ..covel_exec::ExecutionOptions::default()
    };
    let ask = |message: &str| ExecutionRequest::player("s", message);
    for (message, of) in [("something else", turn.as_str()), ("wait", "t1-other")] {
        let refused = engine.execute_with(ask(message), recover(of), None).await.unwrap_err();
        assert_eq!(refused.code(), "recovery-mismatch");
    }
    let request = ask("wait");
    let cancel = request.cancel.clone();
    let (sink, mut events) = tokio::sync::mpsc::unbounded_channel();
    let again = engine.execute_with(request, recover(&turn), Some(sink));
    let stop = async {
        while let Some(event) = events.recv().await {
            if event.kind == "runtime.started" {
                cancel.cancel();
            }
        }
    };
    assert!(!tokio::join!(again, stop).0.unwrap().committed);
    // Not committed, so it may be asked again; a committed turn settles it.
    assert_eq!(engine.execution("s").unwrap().status, "interrupted");
    assert!(engine.execute(ask("hello again"), None).await.unwrap().committed);
    assert_eq!(engine.execution("s").unwrap().status, "completed");
    let late = engine.execute_with(ask("wait"), recover(&turn), None).await.unwrap_err();
    assert_eq!(late.code(), "recovery-mismatch");
}
