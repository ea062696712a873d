//! `kill -9` while jobs run: what was acknowledged is there, and no job takes effect twice.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecutionRequest, JobStatus, NativeContext, NativeOutput, NativePackage,
    NewSession, ScriptedGateway,
};
use covel_graph::{
    Json, Stage,
    fragment::{ManualExecution, RuntimeDecl, TriggerKind},
};
use serde_json::json;

const FOLDER: &str = "COVEL_CRASH_JOBS_FOLDER";
const ROUNDS: usize = 12;

async fn open(folder: &Path, workers: usize) -> Engine {
    let mut options = EngineOptions::new(folder, Arc::new(ScriptedGateway::parse("[]").unwrap()));
    options.job_workers = workers;
    let engine = Engine::open(options).unwrap();
    let late = RuntimeDecl {
        trigger: TriggerKind::Event,
        topic: Some("a.made".into()),
        manual: ManualExecution::Background,
        ..RuntimeDecl::default()
    };
    let package = NativePackage::new("jobs")
        // Each turn makes one job, named by the turn.
        .runtime("make", Stage::PreTurn, |context: &NativeContext<'_>| {
            let data = Json::from_value(json!({"turn": context.logical_turn()}));
            Ok(NativeOutput { events: vec![("a.made".into(), data)], ..NativeOutput::default() })
        })
        // Each job counts itself in two records of one commit: a second effect, or half of one, shows.
        .add("late", late, |context: &NativeContext<'_>| {
            let (_, data) = context.trigger_event().ok_or("no event")?;
            let one_more = Json::from_value(json!([{"op": "inc", "path": "/n", "by": 1}]));
            let failed = |error: covel_abi::HostError| error.to_string();
            context.update("runs", &data.value()["turn"].to_string(), one_more.clone()).map_err(failed)?;
            context.update("total", "all", one_more).map_err(failed)?;
            Ok(NativeOutput::default())
        });
    engine.publish_native(package).await.unwrap();
    engine
}

/// Not a test of its own: the child that is killed. It plays turns and says so after each; jobs run beside them.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_plays_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let engine = open(&PathBuf::from(folder), 4).await;
    if engine.session("s").is_err() {
        engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    }
    loop {
        let turn = engine.execute(ExecutionRequest::player("s", "on"), None).await.unwrap();
        assert!(turn.committed && turn.jobs.len() == 1);
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nacknowledged {}", turn.logical_turn).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_takes_effect_twice_and_none_is_half_there() {
    let folder = tempfile::tempdir().unwrap();
    // Turn -> the end of its job that was seen.
    let mut ends: BTreeMap<String, JobStatus> = BTreeMap::new();
    let (mut orphaned, mut continued) = (0, 0);
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_plays_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed after a varying number of turns, with jobs waiting, running and committing.
        let mut wanted = 1 + (round * 5) % 9;
        let mut acknowledged = 0u32;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some(turn) = line.strip_prefix("acknowledged ") else { continue };
            acknowledged = turn.parse().unwrap();
            wanted -= 1;
            if wanted == 0 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();

        // First without workers: every job is where the crash left it, or orphaned; nothing runs.
        let engine = open(folder.path(), 0).await;
        let turns = engine.session("s").unwrap().completed_player_turns;
        assert!(turns >= acknowledged, "round {round}: {acknowledged} acknowledged, {turns} stored");
        let note = |ends: &mut BTreeMap<String, JobStatus>, engine: &Engine| {
            for job in engine.jobs("s").unwrap() {
                ends.insert(job.origin.source_turn_id.clone().unwrap(), job.status);
            }
        };
        note(&mut ends, &engine);
        let open_jobs = engine.jobs("s").unwrap();
        assert!(
            open_jobs.iter().all(|job| job.status == JobStatus::Queued
                || job.state == covel_exec::JobState::Failed
                || job.status == JobStatus::Succeeded),
            "{open_jobs:#?}"
        );
        continued += open_jobs.iter().filter(|job| job.status == JobStatus::Queued).count();
        engine.close().await;
        drop(engine);

        let engine = open(folder.path(), 4).await;
        engine.drain_jobs(None).await;
        note(&mut ends, &engine);
        assert!(engine.jobs("s").unwrap().iter().all(|job| job.status.is_terminal()));
        let data = engine.data("s", DataFilter::default()).unwrap();
        let runs: Vec<_> = data.iter().filter(|row| row.namespace == "runs").collect();
        let total =
            data.iter().find(|row| row.namespace == "total").map_or(0, |row| row.value.value()["n"].as_u64().unwrap());
        for run in &runs {
            assert_eq!(*run.value.value(), json!({"n": 1}), "round {round}: the job of turn {} ran twice", run.key);
        }
        assert_eq!(total, runs.len() as u64, "round {round}: a job is half there");
        orphaned = ends.values().filter(|status| **status == JobStatus::Orphaned).count();
        assert_eq!(runs.len() + orphaned, turns as usize, "round {round}: each turn's job ran once or is orphaned");
        engine.close().await;
        drop(engine);
    }
    println!("{ROUNDS} kills, {} jobs, {continued} continued, {orphaned} orphaned, no double effect", ends.len());
}
