//! `tests/cases/world.yaml` through the real engine.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{Engine, ExecutionKind, ExecutionRequest, NewSession, TurnDocument};
use covel_graph::Json;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use support::{package, stage};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    says: String,
    #[serde(default)]
    before: Vec<Writes>,
    #[serde(default)]
    effects: Option<Value>,
    #[serde(default)]
    proposals: Vec<Map<String, Value>>,
    ends: String,
    #[serde(default)]
    words: String,
    #[serde(default)]
    characters: Map<String, Value>,
    #[serde(default)]
    changes: Option<Vec<String>>,
    #[serde(default)]
    state: Option<Value>,
    #[serde(default)]
    dimensions: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Writes {
    #[serde(default)]
    effects: Option<Value>,
    #[serde(default)]
    proposals: Vec<Map<String, Value>>,
}

/// Replaces `$x5` by `xxxxx` everywhere.
fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(count) = text.strip_prefix("$x").and_then(|count| count.parse().ok()) {
                *text = "x".repeat(count);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(map) => map.values_mut().for_each(expand),
        _ => {}
    }
}

/// What the handler returns.
fn returned(effects: Option<&Value>, proposals: &[Map<String, Value>]) -> Value {
    let pending: Vec<Value> =
        proposals.iter().flatten().map(|(kind, payload)| json!({"type": kind, "payload": payload})).collect();
    let mut content = json!({"outcome": "success", "value": {}});
    if let Some(effects) = effects {
        content["effects"] = effects.clone();
    }
    let mut value =
        json!({"kind": "covel.tool-result", "content": content, "pendingProposals": pending, "emittedEvents": []});
    expand(&mut value);
    value
}

async fn run(engine: &Engine, session: &str, payload: Value) -> TurnDocument {
    let kind = ExecutionKind::Manual {
        runtime_id: "keeper".into(),
        payload: Json::from_value(payload),
        message: String::new(),
        ignore_upstreams: false,
    };
    engine.execute(ExecutionRequest { kind, ..ExecutionRequest::player(session, "") }, None).await.unwrap()
}

/// How it ended: `success`, or code and message.
fn end(turn: &TurnDocument) -> (String, String) {
    let failed = turn.runtimes[0].error.as_ref().or(turn.error.as_ref());
    match failed {
        Some(error) => (error.code.clone(), error.message.clone()),
        None if turn.committed => ("success".into(), String::new()),
        None => ("not committed".into(), String::new()),
    }
}

/// Covers: COM-6, SEA-5, SWC-3, DAT-1
#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_table_holds() {
    let keeper = package(&[
        (
            "PLUGIN.md",
            "---\nid: keeper\nkind: plugin\ndescription: Does as told.\nprovides: [world.dimensions@1]\nruntime:\n  type: function\n  schedule: { trigger: { type: manual } }\n  function: { handler: ./handler.js }\n---\n",
        ),
        ("handler.js", "export default async (ctx) => ctx.manualPayload;"),
    ]);
    let stage = stage(vec![keeper], json!([])).await;
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../../tests/cases/world.yaml")).unwrap();
    assert!(cases.len() > 60);
    let mut wrong = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let new = NewSession { id: Some(format!("s{at}")), ..NewSession::default() };
        let session = stage.engine.create_session(new).await.unwrap().id;
        for before in &case.before {
            let turn = run(&stage.engine, &session, returned(before.effects.as_ref(), &before.proposals)).await;
            assert_eq!(end(&turn).0, "success", "before {}: {turn:#?}", case.says);
        }
        let turn = run(&stage.engine, &session, returned(case.effects.as_ref(), &case.proposals)).await;
        for fault in check(&stage.engine, &session, case, &turn) {
            wrong.push(format!("{}: {fault}", case.says));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(engine: &Engine, session: &str, case: &Case, turn: &TurnDocument) -> Vec<String> {
    let mut wrong = Vec::new();
    let (code, message) = end(turn);
    if code != case.ends || !message.contains(&case.words) {
        wrong.push(format!("ended with {code}: {message}"));
    }
    let kinds: Vec<&str> = turn.changes.iter().map(|change| change.kind.as_str()).collect();
    if case.changes.as_ref().is_some_and(|changes| *changes != kinds) {
        wrong.push(format!("changed {kinds:?}"));
    }
    let stored = engine.characters(session).unwrap();
    for (id, wanted) in &case.characters {
        let Some(found) = stored.iter().find(|record| record.value()["id"] == json!(id)) else {
            wrong.push(format!("there is no character {id}"));
            continue;
        };
        for (field, value) in wanted.as_object().unwrap() {
            let found = found.value().get(field).unwrap_or(&Value::Null);
            if found != value {
                wrong.push(format!("{id}.{field} is {found}, not {value}"));
            }
        }
    }
    let public = engine.dimensions(session).unwrap();
    for (id, wanted) in &case.dimensions {
        let found = public.value()["dimensions"].get(id).unwrap_or(&Value::Null);
        let shown = format!("{} {}", found["value"], found["version"]);
        if Some(shown.as_str()) != wanted.as_str() {
            wrong.push(format!("dimension {id} is {shown}"));
        }
    }
    if let Some(state) = &case.state {
        let tables = engine.state_tables(session).unwrap();
        if tables.value() != state {
            wrong.push(format!("state is {}", tables.text()));
        }
    }
    // A write that is refused leaves nothing.
    if case.ends != "success" && !turn.changes.is_empty() {
        wrong.push("something was kept".into());
    }
    wrong
}
