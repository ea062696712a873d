//! What the world around a turn may do to it: a full disk, a folder that cannot be written or is in use, a clock
//! that jumps back, a damaged record. A coded result, nothing lost, the next turn fine.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use covel_exec::{
    Ambient, DataFilter, Engine, EngineOptions, ExecError, ExecutionRequest, NativeContext, NativeOutput,
    NativePackage, NewSession, ScriptedGateway, TurnDocument,
};
use covel_graph::{Json, PluginId, SessionId, Stage};
use serde_json::json;

const FOLDER: &str = "COVEL_SURROUNDINGS_FOLDER";

fn options(folder: &Path) -> EngineOptions {
    EngineOptions::new(folder, Arc::new(ScriptedGateway::parse("[]").unwrap()))
}

/// Writes 100 KB a turn under the turn's number and counts turns.
async fn writing(options: EngineOptions) -> Engine {
    let engine = Engine::open(options).unwrap();
    let package = NativePackage::new("writer").runtime("write", Stage::PreTurn, |context: &NativeContext<'_>| {
        let text = "x".repeat(100_000);
        let key = format!("{:05}", context.logical_turn());
        context.set("rows", &key, Json::from_value(json!(text))).map_err(|error| error.message)?;
        let seen = context.get("count", "turns").map_err(|error| error.message)?;
        let ops = json!([{"op": "inc", "path": "/n", "by": 1}]);
        context.update("count", "turns", Json::from_value(ops)).map_err(|error| error.message)?;
        Ok(NativeOutput::value(json!({"before": seen})))
    });
    engine.publish_native(package).await.unwrap();
    if engine.session("s").is_err() {
        engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    }
    engine
}

async fn turn(engine: &Engine) -> TurnDocument {
    engine.execute(ExecutionRequest::player("s", "on"), None).await.unwrap()
}

/// Everything of `turns` turns is there, and nothing else.
fn whole(engine: &Engine, turns: u32) {
    assert_eq!(engine.session("s").unwrap().completed_player_turns, turns);
    assert_eq!(engine.turns("s", 10_000).unwrap().len(), turns as usize);
    let data = engine.data("s", DataFilter::default()).unwrap();
    assert_eq!(data.iter().filter(|row| row.namespace == "rows").count(), turns as usize);
    let counted =
        data.iter().find(|row| row.namespace == "count").map_or(0, |row| row.value.value()["n"].as_u64().unwrap());
    assert_eq!(counted, u64::from(turns));
    assert_eq!(engine.messages("s", 10_000).unwrap().len(), turns as usize);
}

async fn fill_the_disk(folder: &Path) {
    let engine = writing(options(folder)).await;
    let mut turns = 0;
    let refused = loop {
        let turn = turn(&engine).await;
        if !turn.committed {
            break turn.error.unwrap();
        }
        turns += 1;
        println!("\nacknowledged {turns}");
        assert!(turns < 1_000, "no limit in force");
    };
    assert_eq!(refused.code, "store-disk-full", "{}", refused.message);
    whole(&engine, turns);
    // The engine does not fall over: the next turn is refused the same way, and reads go on.
    assert_eq!(turn(&engine).await.error.unwrap().code, "store-disk-full");
    whole(&engine, turns);
    println!("\nfilled {turns}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_the_turn_whole_and_the_next_one_runs_when_there_is_room() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill_the_disk(&PathBuf::from(folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    // A limit on the size of files stops writes as a full disk does; with the signal ignored they fail instead of ending
    // the process.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8192 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_full_disk_refuses_the_turn_whole_and_the_next_one_runs_when_there_is_room", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let filled = text.lines().find_map(|line| line.strip_prefix("filled ")?.parse::<u32>().ok());
    let filled = filled.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert!(filled > 0);
    let engine = writing(options(folder.path())).await;
    whole(&engine, filled);
    assert!(turn(&engine).await.committed);
    whole(&engine, filled + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_use_is_refused_and_the_one_who_uses_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let engine = writing(options(folder.path())).await;
    let refused = Engine::open(options(folder.path())).err().unwrap();
    assert_eq!(refused.code(), "store-locked");
    assert!(turn(&engine).await.committed);
    whole(&engine, 1);
    engine.close().await;
    drop(engine);
    let engine = writing(options(folder.path())).await;
    assert!(turn(&engine).await.committed);
    whole(&engine, 2);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_refused_with_a_code() {
    // Nobody may write here, whoever runs the test.
    let refused = Engine::open(options(Path::new("/sys/covel-engine-test"))).err().unwrap();
    assert_eq!(refused.code(), "store-read-only", "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let refused = Engine::open(options(&file)).err().unwrap();
    assert!(matches!(refused, ExecError::Store(_)), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
}

/// A clock someone sets back by a year between any two readings.
#[derive(Default)]
struct Backwards(AtomicU64);

impl Ambient for Backwards {
    fn now_millis(&self) -> u64 {
        2_000_000_000_000 - self.0.fetch_add(1, Ordering::Relaxed) * 31_536_000_000
    }
    fn monotonic(&self) -> Duration {
        // Even this one: a reading below an earlier one must not end a turn.
        Duration::from_secs(1_000_000 - self.0.fetch_add(1, Ordering::Relaxed))
    }
    fn fresh_bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_back_changes_no_order_and_ends_no_turn() {
    let folder = tempfile::tempdir().unwrap();
    let engine =
        writing(EngineOptions { durable: false, ambient: Arc::new(Backwards::default()), ..options(folder.path()) })
            .await;
    let mut told = Vec::new();
    for _ in 0..5 {
        let turn = turn(&engine).await;
        assert!(turn.committed, "{turn:?}");
        told.push(turn.turn_id);
    }
    whole(&engine, 5);
    let messages: Vec<String> = engine.messages("s", 100).unwrap().into_iter().map(|message| message.turn_id).collect();
    assert_eq!(messages, told);
    let mut stored: Vec<String> = engine.turns("s", 100).unwrap().into_iter().map(|turn| turn.turn_id).collect();
    if stored.first() != told.first() {
        stored.reverse(); // Newest first or oldest first; but in order.
    }
    assert_eq!(stored, told);
}

/// A record whose bytes are no JSON is refused, not taken for `null` and written over.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let engine = writing(EngineOptions { durable: false, ..options(folder.path()) }).await;
    assert!(turn(&engine).await.committed);
    let damaged = |text: &'static str| {
        engine.store().transact_blocking(move |tx| {
            let (session, plugin) = (SessionId::from("s"), PluginId::from("writer"));
            tx.put_data(&session, &plugin, "count", "turns", &Json::trusted(text), "2026-01-01T00:00:00.000Z").map(drop)
        })
    };
    damaged("{\"n\": 1").unwrap();
    let turn = turn(&engine).await;
    let row = support::row(&turn, "writer/write");
    let error = row.error.as_ref().unwrap();
    assert!(error.message.contains("count/turns cannot be read back"), "{error:?}");
    let value = engine
        .store()
        .read(|reader| reader.get_data(&SessionId::from("s"), &PluginId::from("writer"), "count", "turns"));
    assert_eq!(value.unwrap().unwrap().value.text(), "{\"n\": 1");
}
