//! 64 sessions play at once on one store, each with two players who do not wait for each other, and each against a
//! model of what it must hold in the end.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecError, ExecutionKind, ExecutionRequest, NativeContext, NativeOutput,
    NativePackage, NewSession, ScriptedGateway, TurnDocument,
};
use covel_graph::{
    Json, Stage,
    fragment::{RuntimeDecl, TriggerKind},
};
use parking_lot::Mutex;
use serde_json::json;

const SESSIONS: usize = 64;
/// Requests each of a session's two players makes.
const REQUESTS: usize = 10;

fn inc(context: &NativeContext<'_>, key: &str, max: Option<u32>) -> Result<(), String> {
    let mut op = json!({"op": "inc", "path": "/n", "by": 2});
    if let Some(max) = max {
        op["max"] = json!(max);
    }
    context.update("count", key, Json::from_value(json!([op]))).map_err(|error| error.message)
}

fn packages() -> Vec<NativePackage> {
    let write = |context: &NativeContext<'_>| {
        if context.player_message() == "fail" {
            return Err("as asked".to_owned());
        }
        inc(context, "shared", None)?;
        if context.player_message() == "clash" {
            inc(context, "clash", Some(3))?;
        }
        context
            .set("last", "message", Json::from_value(json!(context.player_message())))
            .map_err(|error| error.message)?;
        Ok(NativeOutput { events: vec![("bell.rung".into(), Json::from_value(json!({})))], ..NativeOutput::default() })
    };
    let manual = RuntimeDecl { trigger: TriggerKind::Manual, ..RuntimeDecl::default() };
    vec![
        NativePackage::new("one")
            .event("bell.rung", &json!({}))
            .runtime("a", Stage::PreTurn, write)
            .runtime("b", Stage::PreTurn, write)
            .follower("f", "bell.rung", |context: &NativeContext<'_>| {
                inc(context, "followed", None).map(|()| NativeOutput::default())
            })
            .add("m", manual, |context: &NativeContext<'_>| {
                inc(context, "by-hand", None).map(|()| NativeOutput::default())
            }),
    ]
}

/// What a session must hold.
#[derive(Default)]
struct Model {
    /// Committed turns in the order in which they were acknowledged: id, message, by hand.
    kept: Vec<(String, String, bool)>,
    refused: usize,
    busy: usize,
}

async fn player(engine: Engine, id: String, number: u64, model: Arc<Mutex<Model>>) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for round in 0..REQUESTS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let choice = state % 10;
        let message = match choice {
            0 => "clash".to_owned(),
            1 => "fail".to_owned(),
            _ => format!("{id} {number} {round}"),
        };
        let mut request = ExecutionRequest::player(&id, &message);
        let by_hand = choice == 2;
        if by_hand {
            request.kind = ExecutionKind::Manual {
                runtime_id: "one/m".into(),
                payload: Json::null(),
                message: message.clone(),
                ignore_upstreams: false,
            };
        }
        if choice == 3 {
            request.cancel.cancel();
        }
        let turn: TurnDocument = loop {
            match engine.execute(request.clone(), None).await {
                Ok(turn) => break turn,
                Err(ExecError::SessionBusy(_)) => {
                    model.lock().busy += 1;
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        let mut model = model.lock();
        match (choice, turn.committed) {
            (0, false) => assert_eq!(turn.error.unwrap().code, "conflict"),
            (3, false) => assert_eq!(turn.error.unwrap().code, "cancelled"),
            (_, true) if choice != 0 && choice != 3 => {
                model.kept.push((turn.turn_id, message, by_hand));
                continue;
            }
            _ => panic!("{choice}: {turn:#?}"),
        }
        model.refused += 1;
    }
}

/// What every commit rewrites must not grow with the turns a session has seen, nor with runtimes nobody limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_record_does_not_grow_with_turns_or_runtimes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = support::open(folder.path(), json!([]));
    let mut many = NativePackage::new("many");
    for at in 0..200 {
        many = many.runtime(&format!("r{at:03}"), Stage::PreTurn, |_: &NativeContext<'_>| Ok(NativeOutput::default()));
    }
    engine.publish_native(many).await.unwrap();
    engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    let stored = |key: &'static str| {
        let row =
            engine.store().read(|reader| reader.get_session(&covel_graph::SessionId::from(key))).unwrap().unwrap();
        row.byte_len()
    };
    let mut sizes = Vec::new();
    for turn in 1..=60 {
        assert!(engine.execute(ExecutionRequest::player("s", "on"), None).await.unwrap().committed);
        if turn == 10 || turn == 60 {
            sizes.push(stored("s"));
        }
    }
    assert_eq!(sizes[0], sizes[1], "the session record grows with turns");
    assert!(sizes[1] < 2_000, "{} bytes for 200 runtimes without limits", sizes[1]);
}

/// Invariants 1, 3, 5: what was acknowledged is there, once and in order; sessions never see each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_at_once_end_as_their_models_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::parse("[]").unwrap()));
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    for package in packages() {
        engine.publish_native(package).await.unwrap();
    }
    let mut models = Vec::new();
    let mut players = Vec::new();
    for number in 0..SESSIONS {
        let id = format!("s{number:02}");
        engine.create_session(NewSession { id: Some(id.clone()), ..NewSession::default() }).await.unwrap();
        let model = Arc::new(Mutex::new(Model::default()));
        for seat in 0..2 {
            let played = player(engine.clone(), id.clone(), (number * 2 + seat) as u64 + 1, Arc::clone(&model));
            players.push(tokio::spawn(played));
        }
        models.push((id, model));
    }
    for player in players {
        player.await.unwrap();
    }
    let (mut kept, mut refused, mut busy) = (0, 0, 0);
    for (id, model) in &models {
        let model = model.lock();
        let session = engine.session(id).unwrap();
        let mut turns = engine.turns(id, 1_000).unwrap();
        turns.sort_by_key(|turn| turn.turn_id.split('-').next().unwrap()[1..].parse::<u64>().unwrap());
        let stored: Vec<&str> = turns.iter().map(|turn| turn.turn_id.as_str()).collect();
        let mut acknowledged: Vec<&str> = model.kept.iter().map(|(turn, ..)| turn.as_str()).collect();
        acknowledged.sort_by_key(|turn| turn.split('-').next().unwrap()[1..].parse::<u64>().unwrap());
        assert_eq!(stored, acknowledged, "{id}");
        let players: Vec<_> = model.kept.iter().filter(|(.., by_hand)| !by_hand).collect();
        let well = players.iter().filter(|(_, message, _)| message != "fail").count() as u64;
        assert_eq!(session.completed_player_turns as usize, players.len(), "{id}");
        assert_eq!(session.turn_count as usize, model.kept.len(), "{id}");
        let data = engine.data(id, DataFilter::default()).unwrap();
        let counted = |key: &str| {
            let row = data.iter().find(|row| row.namespace == "count" && row.key == key);
            row.map_or(0, |row| row.value.value()["n"].as_u64().unwrap() / 2)
        };
        // Two runtimes of one layer count in one record: neither loses the other's.
        assert_eq!(counted("shared"), 2 * well, "{id}");
        assert_eq!(counted("followed"), well, "{id}");
        assert_eq!(counted("by-hand"), (model.kept.len() - players.len()) as u64, "{id}");
        assert_eq!(counted("clash"), 0, "{id}");
        let messages = engine.messages(id, 1_000).unwrap();
        let mut said: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let mut meant: Vec<&str> = players.iter().map(|(_, message, _)| message.as_str()).collect();
        assert!(said.iter().all(|said| !said.starts_with('s') || said.starts_with(id.as_str())), "{id}: {said:?}");
        said.sort_unstable();
        meant.sort_unstable();
        assert_eq!(said, meant, "{id}");
        kept += model.kept.len();
        refused += model.refused;
        busy += model.busy;
    }
    println!("{SESSIONS} sessions: {kept} turns kept, {refused} refused, {busy} times another turn was under way");
    assert_eq!(kept + refused, SESSIONS * 2 * REQUESTS);
    assert!(refused > 0 && busy > 0);
    // All of it is still there when the folder is opened again.
    let before: Vec<_> = models.iter().map(|(id, _)| engine.session(id).unwrap()).collect();
    engine.close().await;
    drop(engine);
    let engine = support::open(folder.path(), json!([]));
    let after: Vec<_> = models.iter().map(|(id, _)| engine.session(id).unwrap()).collect();
    assert_eq!(before, after);
}
