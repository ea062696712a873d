//! Plays a row and compares.

use std::{collections::BTreeMap, sync::Arc};

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecutionKind, ExecutionRequest, FixedAmbient, NewSession, RuntimeStatus,
    ScriptedGateway, TurnDocument,
};
use covel_graph::Json;
use serde_json::{Value, json};

use crate::{
    kit::Kit,
    row::{Ending, Row, full, packages},
};

const SESSION: &str = "s";

/// Everything that is otherwise than stated.
pub async fn play(row: &Row, show: bool) -> Result<(), Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::parse("[]").unwrap()));
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    let result = on_stage(row, &engine, show).await;
    engine.close().await;
    result
}

async fn publish(engine: &Engine, packages: Vec<Arc<covel_graph::package::Package>>) -> Result<(), Vec<String>> {
    let failed: Vec<String> = engine
        .publish(packages)
        .await
        .into_iter()
        .filter_map(|state| Some(format!("{}: {}", state.plugin_id, state.error?)))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed) }
}

async fn on_stage(row: &Row, engine: &Engine, show: bool) -> Result<(), Vec<String>> {
    let empty = BTreeMap::new();
    let mut before = None;
    let new = NewSession { id: Some(SESSION.into()), seed: Some("seed".into()), ..NewSession::default() };
    if let Some(past) = &row.before {
        let none = Kit { services: &BTreeMap::new(), tools: &BTreeMap::new() };
        publish(engine, packages(&past.runtimes, &past.contracts, &row.topics, &empty, none)?).await?;
        engine.create_session(new.clone()).await.map_err(|error| vec![error.to_string()])?;
        let turn = engine.execute(ExecutionRequest::player(SESSION, "before"), None).await.unwrap();
        if !turn.committed {
            return Err(vec![format!("the turn before was refused: {:?}", turn.error)]);
        }
        before = Some(turn);
    }
    let kit = Kit { services: &row.services, tools: &row.tools };
    let written = packages(&row.runtimes, &row.contracts, &row.topics, &row.stores, kit);
    let written = match (written, &row.unloadable) {
        (Ok(written), None) => written,
        (Err(codes), Some(code)) if codes.iter().any(|found| found.starts_with(code.as_str())) => return Ok(()),
        (Err(codes), _) => return Err(vec![format!("does not load: {codes:?}")]),
        (Ok(written), Some(code)) => {
            let failed = publish(engine, written).await.err().unwrap_or_default();
            return if failed.iter().any(|error| error.contains(code.as_str())) {
                Ok(())
            } else {
                Err(vec![format!("{code} was stated; it came to {failed:?}")])
            };
        }
    };
    publish(engine, written).await?;
    if row.before.is_none() {
        engine.create_session(new).await.map_err(|error| vec![error.to_string()])?;
    }
    let mut turn = run(row, engine).await;
    for _ in 1..row.turns {
        before = Some(turn);
        turn = run(row, engine).await;
    }
    if show {
        println!("{turn:#?}");
    }
    let mut wrong = compare(row, engine, &turn, before.as_ref());
    if row.again {
        before = Some(turn);
        let next = run(row, engine).await;
        let second = compare(row, engine, &next, before.as_ref());
        wrong.extend(second.into_iter().map(|problem| format!("next turn: {problem}")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

async fn run(row: &Row, engine: &Engine) -> TurnDocument {
    let mut request = ExecutionRequest::player(SESSION, "go");
    if let Some(target) = &row.manual {
        request.kind = ExecutionKind::Manual {
            runtime_id: full(target),
            payload: Json::from_value(row.payload.clone().unwrap_or(Value::Null)),
            message: String::new(),
            ignore_upstreams: false,
        };
    }
    let cancel = request.cancel.clone();
    match row.cancel.as_deref() {
        None => engine.execute(request, None).await.unwrap(),
        Some("before") => {
            cancel.cancel();
            engine.execute(request, None).await.unwrap()
        }
        Some(runtime) => {
            let (sink, mut events) = tokio::sync::mpsc::unbounded_channel();
            let (engine, id) = (engine.clone(), full(runtime));
            let running = tokio::spawn(async move { engine.execute(request, Some(sink)).await.unwrap() });
            while let Some(event) = events.recv().await {
                if event.kind == "runtime.started" && event.payload.value()["runtimeId"] == json!(id) {
                    cancel.cancel();
                }
            }
            running.await.unwrap()
        }
    }
}

fn short(id: &str) -> String {
    id.strip_prefix("story/").unwrap_or(id).to_owned()
}

fn compare(row: &Row, engine: &Engine, turn: &TurnDocument, before: Option<&TurnDocument>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differs = |what: &str, found: &dyn std::fmt::Debug, stated: &dyn std::fmt::Debug| {
        wrong.push(format!("{what}: {found:?}, not {stated:?}"));
    };
    // A turn that was kept from starting by its setup shows the setup.
    let shown = if turn.runtimes.is_empty() { turn.setup.as_deref().unwrap_or(turn) } else { turn };
    match (&turn.error, &row.refused) {
        (None, None) => {}
        (Some(error), Some(code)) if error.code == *code && !turn.committed => {}
        (found, stated) => differs("refused", found, stated),
    }
    for (name, ending) in &row.ends {
        for problem in compare_ending(name, ending, shown, before) {
            differs(name, &problem, &"as stated");
        }
    }
    let isolated: BTreeMap<String, String> =
        turn.isolated.iter().map(|one| (short(&one.runtime_id), one.error.code.clone())).collect();
    if isolated != row.isolated {
        differs("isolated", &isolated, &row.isolated);
    }
    for code in &row.notes {
        if !turn.notes.iter().any(|note| note.code == *code) {
            differs("notes", &turn.notes, code);
        }
    }
    if let Some(stated) = &row.data {
        let filter = DataFilter { hidden: true, ..DataFilter::default() };
        let data: BTreeMap<String, Value> = engine
            .data(SESSION, filter)
            .unwrap()
            .into_iter()
            .filter(|record| record.namespace != "clash" && !record.plugin_id.starts_with("__kernel"))
            .map(|record| (format!("{}/{}", record.namespace, record.key), record.value.value().clone()))
            .collect();
        if data != *stated {
            differs("data", &data, stated);
        }
    }
    if let Some(stated) = &row.events {
        let events: Vec<String> = turn
            .events
            .iter()
            .map(|event| format!("{} {} {}", event.topic, event.depth, short(&event.runtime_id)))
            .collect();
        if events != *stated {
            differs("events", &events, stated);
        }
    }
    if let Some(stated) = &row.operations {
        let word = |value: &dyn Fn() -> Value| value().as_str().unwrap_or_default().to_owned();
        let operations: Vec<String> = turn
            .operations
            .iter()
            .map(|one| {
                let status = word(&|| json!(one.status));
                let caller = short(&one.caller_runtime_id);
                let text = format!("{} {} {caller} {status}", one.provider_plugin_id, one.service);
                one.code.as_ref().map_or_else(|| text.clone(), |code| format!("{text} {code}"))
            })
            .collect();
        if operations != *stated {
            differs("operations", &operations, stated);
        }
    }
    if let Some(stated) = &row.calls {
        let calls: Vec<String> = engine
            .trace(SESSION, &shown.turn_id)
            .map(|trace| trace.services)
            .unwrap_or_default()
            .iter()
            .map(|one| {
                let call = &one.call;
                let text =
                    format!("{} > {} {} {}", call.caller_plugin_id, call.provider_plugin_id, call.name, call.outcome);
                call.error_code.as_ref().map_or_else(|| text.clone(), |code| format!("{text} {code}"))
            })
            .collect();
        if calls != *stated {
            differs("calls", &calls, stated);
        }
    }
    if let Some(stated) = &row.jobs {
        let id = |job: &Json| short(job.value()["runtimeId"].as_str().unwrap_or_default());
        let jobs: Vec<String> = turn.jobs.iter().map(id).collect();
        if jobs != *stated {
            differs("jobs", &jobs, stated);
        }
    }
    if let Some(stated) = &row.messages {
        let messages: Vec<String> = engine
            .messages(SESSION, 100)
            .unwrap()
            .into_iter()
            .filter(|message| message.turn_id == turn.turn_id)
            .map(|message| format!("{}: {}", message.role, message.content))
            .collect();
        if messages != *stated {
            differs("messages", &messages, stated);
        }
    }
    let session = engine.session(SESSION).unwrap();
    if row.count.is_some_and(|count| count != session.completed_player_turns) {
        differs("counted turns", &session.completed_player_turns, &row.count);
    }
    let phase = format!("{:?}", session.phase).to_lowercase();
    if row.phase.as_ref().is_some_and(|stated| *stated != phase) {
        differs("phase", &phase, &row.phase);
    }
    wrong
}

fn compare_ending(name: &str, ending: &Value, turn: &TurnDocument, before: Option<&TurnDocument>) -> Vec<String> {
    let stated = match ending {
        Value::String(is) => Ending { is: Some(is.clone()), ..Ending::default() },
        other => serde_json::from_value(other.clone()).unwrap(),
    };
    let is = stated.is.as_deref().unwrap_or("success");
    let id = full(name);
    let Some(found) = turn.runtimes.iter().find(|row| row.runtime_id == id) else {
        return if is == "absent" { Vec::new() } else { vec!["it is not in the document".to_owned()] };
    };
    let error = found.error.as_ref();
    let came_to = match found.status {
        RuntimeStatus::Success => "success".to_owned(),
        RuntimeStatus::Suspended => "suspended".to_owned(),
        RuntimeStatus::Skipped => format!("skipped {}", found.reason.as_deref().unwrap_or_default()),
        RuntimeStatus::Failed => format!("failed {}", error.map_or("", |error| error.code.as_str())),
    };
    let mut wrong = Vec::new();
    if came_to != is {
        wrong.push(format!("came to {came_to:?} ({}), not {is:?}", error.map_or("", |error| error.message.as_str())));
    }
    if let Some(words) = &stated.says
        && !error.is_some_and(|error| error.message.contains(words.as_str()))
    {
        wrong.push(format!("says {error:?}, not {words:?}"));
    }
    if let Some(sees) = &stated.sees {
        let mut text = found.output.as_ref().map_or_else(|| "null".to_owned(), |output| output.text().to_owned());
        text = text.replace(&turn.turn_id, "TURN");
        if let Some(before) = before {
            text = text.replace(&before.turn_id, "BEFORE");
        }
        let output: Value = serde_json::from_str(&text).unwrap();
        if let Err(problem) = contains(&output, sees, "") {
            wrong.push(format!("{problem}; its output is {output}"));
        }
    }
    if stated.layer.is_some_and(|layer| layer != found.layer) {
        wrong.push(format!("layer {}", found.layer));
    }
    if stated.depth.is_some_and(|depth| Some(depth) != found.depth) {
        wrong.push(format!("depth {:?}", found.depth));
    }
    if let Some(reads) = &stated.reads_from {
        let found: Vec<String> = found.reads_from.iter().map(|id| short(id)).collect();
        if found != *reads {
            wrong.push(format!("reads from {found:?}"));
        }
    }
    wrong
}

/// Is what is stated part of what is there? Objects may hold more, lists may not; `absent` states that a key is not there.
fn contains(found: &Value, stated: &Value, path: &str) -> Result<(), String> {
    match (found, stated) {
        (Value::Object(found), Value::Object(stated)) => {
            for (key, stated) in stated {
                let path = format!("{path}/{key}");
                match (found.get(key), stated) {
                    (None, Value::String(word)) if word == "absent" => {}
                    (None, _) => return Err(format!("nothing at {path}")),
                    (Some(found), stated) => contains(found, stated, &path)?,
                }
            }
            Ok(())
        }
        (Value::Array(found), Value::Array(stated)) if found.len() == stated.len() => {
            found.iter().zip(stated).enumerate().try_for_each(|(at, (f, s))| contains(f, s, &format!("{path}/{at}")))
        }
        (found, stated) if found == stated => Ok(()),
        _ => Err(format!("{found} at {path}, not {stated}")),
    }
}
