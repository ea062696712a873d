//! `kill -9` at any moment: every acknowledged turn is there, whole, and nothing else is half there.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use covel_exec::{DataFilter, Engine, EngineOptions, ExecutionRequest, NewSession, ScriptedGateway};
use serde_json::json;

const FOLDER: &str = "COVEL_CRASH_FOLDER";
const ROUNDS: usize = 12;

async fn open(folder: &Path) -> Engine {
    let gateway = ScriptedGateway::parse("[]").unwrap();
    let engine = Engine::open(EngineOptions::new(folder, Arc::new(gateway))).unwrap();
    // Two runtimes write in every turn: a turn is whole when both records name it.
    let writer = |id: &str| {
        support::function(
            id,
            "{ stage: pre-turn }",
            "",
            "",
            "export default async (ctx) => { await ctx.pluginData.set('n', 'last', { turn: ctx.logicalTurn }); await ctx.pluginData.set('all', String(ctx.logicalTurn), { turn: ctx.logicalTurn }); return { outcome: 'success' }; };",
        )
    };
    engine.publish(vec![writer("one"), writer("two")]).await;
    engine
}

/// Not a test of its own: the child that is killed. It plays turns and says so after each.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_plays_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let engine = open(&PathBuf::from(folder)).await;
    if engine.session("s").is_err() {
        engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    }
    loop {
        let turn = engine.execute(ExecutionRequest::player("s", "on"), None).await.unwrap();
        assert!(turn.committed);
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nacknowledged {}", turn.logical_turn).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_turn_is_lost_and_none_is_half_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0u32;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_plays_until_it_is_killed", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed after a varying number of turns, always while the next one is on its way.
        let mut wanted = 1 + (round * 7) % 11;
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

        let engine = open(folder.path()).await;
        let session = engine.session("s").unwrap();
        let turns = session.completed_player_turns;
        assert!(turns >= acknowledged, "round {round}: {acknowledged} acknowledged, {turns} stored");
        assert_eq!(engine.turns("s", 10_000).unwrap().len(), turns as usize);
        let data = engine.data("s", DataFilter::default()).unwrap();
        for plugin in ["one", "two"] {
            let of = |namespace: &str| {
                data.iter().filter(|row| row.plugin_id == plugin && row.namespace == namespace).collect::<Vec<_>>()
            };
            assert_eq!(*of("n")[0].value.value(), json!({"turn": turns}), "round {round}");
            assert_eq!(of("all").len(), turns as usize, "round {round}");
        }
        engine.close().await;
    }
    assert!(acknowledged as usize > ROUNDS);
    println!("{ROUNDS} kills, {acknowledged} turns acknowledged, none lost, none partial");
}
