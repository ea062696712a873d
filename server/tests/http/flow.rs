//! Around turns over HTTP: retries, suspensions, steering, recovery's answers, setup, snapshots and forks.

use covel_graph::package::{Discovery, compile_in_memory};
use serde_json::{Value, json};

use super::support::{Answer, Host, action, host, request};
use axum::body::Body;

/// A function runtime that waits, then fails until it is told otherwise.
const WAIT: &str = "export default async (ctx) => {
  if (ctx.resumeData === undefined) return { outcome: 'suspended', reason: 'a name', resumeSchema: { type: 'object', required: ['name'] } };
  return { outcome: 'success', value: ctx.resumeData };
};";

async fn publish(host: &Host, id: &str, schedule: &str, code: &str) {
    let manifest = format!(
        "---\nid: {id}\nkind: plugin\ndescription: A test package.\nruntime:\n  type: function\n  schedule: {schedule}\n  function: {{ handler: ./h.js }}\n---\n"
    );
    let compiled = compile_in_memory(&[("PLUGIN.md", &manifest), ("h.js", code)], Discovery::Builtin);
    host.state.engine.publish(vec![compiled.package.unwrap()]).await;
}

async fn session(host: &Host, id: &str, plugins: &[&str]) {
    let answer = host.post("/api/sessions", &json!({ "id": id, "plugins": plugins })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

fn last(answer: &Answer) -> Value {
    answer.frames().pop().unwrap()
}

async fn delete(host: &Host, path: &str) -> Answer {
    host.send(request("DELETE", path, Body::empty())).await
}

#[tokio::test]
async fn failed_runtimes_are_retried_by_action() {
    let host = host(json!([])).await;
    publish(&host, "shaky", "{ stage: post-turn }", "let tries = 0; export default () => { tries += 1; if (tries === 1) throw new Error('once'); return { outcome: 'success' }; };").await;
    session(&host, "s", &["shaky"]).await;
    let turn = last(&host.act("s", "send_message", json!({ "content": "go" })).await)["turnId"].clone();
    let payload = json!({ "retryFromTurnId": turn, "runtimeIds": ["shaky"] });
    let retried = host.act("s", "retry_failed_runtimes", payload.clone()).await.frames();
    assert_eq!(retried[0]["payload"]["sourceTurnId"], turn);
    assert_eq!(retried[0]["payload"]["sourceFailedRuntimeIds"], json!(["shaky"]));
    assert_eq!(retried.last().unwrap()["payload"]["committed"], true);
    let again = host.act("s", "retry_failed_runtimes", payload).await;
    assert_eq!(again.refusal(), (409, "retry_nothing_failed".to_owned()));
    let one = host.act("s", "retry_runtime", json!({ "runtimeId": "shaky", "retryFromTurnId": "t9-x" })).await;
    assert_eq!(one.refusal(), (404, "retry_turn_not_found".to_owned()));
    let plain = host.act("s", "retry_runtime", json!({ "runtimeId": "shaky" })).await;
    assert_eq!(last(&plain)["payload"]["committed"], true);
    let new = host.act("s", "retry_turn", json!({})).await;
    assert_eq!(last(&new)["payload"]["committed"], true);
    assert_eq!(host.get("/api/sessions/s").await.json()["completedPlayerTurns"], 2);
    for (kind, payload) in [
        ("retry_turn", json!({ "content": "x" })),
        ("retry_runtime", json!({})),
        ("retry_failed_runtimes", json!({ "runtimeIds": ["a"] })),
        ("retry_failed_runtimes", json!({ "runtimeIds": "a", "retryFromTurnId": "t" })),
        ("retry_everything", json!({})),
    ] {
        let refused = host.act("s", kind, payload).await;
        assert_eq!(refused.refusal(), (400, "invalid_action_request".to_owned()), "{kind}");
    }
}

#[tokio::test]
async fn a_suspension_is_listed_resumed_and_given_up() {
    let host = host(json!([])).await;
    publish(&host, "wait", "{ stage: post-turn }", WAIT).await;
    session(&host, "s", &["wait"]).await;
    let frames = host.act("s", "send_message", json!({ "content": "go" })).await.frames();
    let told = frames.iter().find(|frame| frame["type"] == "turn.suspended").unwrap();
    let id = told["payload"]["suspensionId"].as_str().unwrap();
    let listed = host.get("/api/sessions/s/suspensions").await.json()["items"][0].clone();
    assert_eq!((listed["id"].as_str(), &listed["reason"]), (Some(id), &json!("a name")));
    assert!(listed.get("continuation").is_none());
    let path = format!("/api/sessions/s/suspensions/{id}/resume");
    assert_eq!(host.post(&path, &json!({ "data": {} })).await.refusal(), (400, "invalid_request".to_owned()));
    let resumed = host.post(&path, &json!({ "data": { "name": "Ada" } })).await.frames();
    assert!(resumed.iter().any(|frame| frame["type"] == "turn.resumed"));
    assert_eq!(resumed.last().unwrap()["payload"]["committed"], true);
    let again = host.post(&path, &json!({ "data": { "name": "Ada" } })).await;
    assert_eq!(again.refusal(), (409, "suspension_resolved".to_owned()));
    let unknown = host.post("/api/sessions/s/suspensions/none/resume", &json!({ "data": 1 })).await;
    assert_eq!(unknown.refusal(), (404, "suspension_not_found".to_owned()));

    host.act("s", "send_message", json!({ "content": "go" })).await;
    let rows = host.get("/api/sessions/s/suspensions").await.json();
    let open = rows["items"].as_array().unwrap().iter().find(|row| row["resolved"].is_null()).unwrap()["id"].clone();
    let path = format!("/api/sessions/s/suspensions/{}", open.as_str().unwrap());
    assert_eq!(delete(&host, &path).await.json(), json!({ "ok": true }));
    assert_eq!(delete(&host, &path).await.refusal(), (409, "suspension_resolved".to_owned()));
    assert_eq!(host.get("/api/sessions/s").await.json()["completedPlayerTurns"], 2);
}

#[tokio::test]
async fn a_running_turn_is_steered_and_an_abort_says_so() {
    let host = host(json!([{ "hang": true }])).await;
    host.session("s").await;
    let steer = |text: &str| json!({ "message": text });
    let idle = host.post("/api/sessions/s/steer", &steer("hey")).await;
    assert_eq!(idle.refusal(), (409, "nothing_running".to_owned()));
    let body = action("s", "send_message", json!({ "content": "I wait." })).to_string();
    let mut stream = host.open(request("POST", "/api/actions", Body::from(body))).await;
    // Twice: setup, then the turn.
    stream.until("execution.started").await;
    stream.until("execution.started").await;
    stream.until("runtime.started").await;
    assert_eq!(host.post("/api/sessions/s/steer", &steer("hey")).await.json(), json!({ "ok": true }));
    assert_eq!(host.post("/api/sessions/s/steer", &steer(" ")).await.refusal().0, 400);
    host.post("/api/sessions/s/abort", &json!({})).await;
    let last = stream.until("execution.completed").await.pop().unwrap();
    assert_eq!(last["payload"]["abortReason"], "aborted-by-player");
    let info = host.get("/api/sessions/s/execution").await.json();
    assert_eq!((&info["status"], &info["abortReason"]), (&json!("failed"), &json!("aborted-by-player")));
    assert_eq!(info["retry"], json!({ "type": "send_message", "payload": { "content": "I wait." } }));
}

#[tokio::test]
async fn an_action_may_name_what_it_repeats_and_whom_it_means() {
    let host = host(json!([])).await;
    publish(&host, "quiet", "{ stage: post-turn }", "export default () => ({ outcome: 'success' });").await;
    session(&host, "s", &["quiet"]).await;
    let with = |field: &str, value: &str| {
        let mut body = action("s", "send_message", json!({ "content": "go" }));
        body[field] = json!(value);
        body
    };
    let repeat = host.post("/api/actions", &with("recoverFromTurnId", "t1-x")).await;
    assert_eq!(repeat.refusal(), (409, "recovery_mismatch".to_owned()));
    let other = host.post("/api/actions", &with("incarnation", "x")).await;
    assert_eq!(other.refusal(), (409, "session_incarnation_changed".to_owned()));
    let incarnation = host.get("/api/sessions/s").await.json()["incarnation"].as_str().unwrap().to_owned();
    let same = host.post("/api/actions", &with("incarnation", &incarnation)).await;
    assert_eq!(last(&same)["payload"]["committed"], true);
    let named = json!({ "content": "go", "inputMessageId": "mine" });
    assert_eq!(last(&host.act("s", "send_message", named.clone()).await)["payload"]["committed"], true);
    let twice = last(&host.act("s", "send_message", named).await);
    assert_eq!(
        (&twice["payload"]["committed"], &twice["payload"]["code"]),
        (&json!(false), &json!("input-message-conflict"))
    );
}

#[tokio::test]
async fn blocked_setup_is_retried_or_waived() {
    let host = host(json!([])).await;
    publish(&host, "init", "{ stage: setup }", "export default () => { throw new Error('not yet'); };").await;
    session(&host, "s", &["init"]).await;
    let retry = "/api/sessions/s/setup/init/retry";
    assert_eq!(host.post(retry, &json!({})).await.refusal(), (409, "setup_not_blocked".to_owned()));
    for _ in 0..3 {
        host.act("s", "start_session", json!({})).await;
    }
    assert_eq!(host.post(retry, &json!({})).await.json()["setupRuntimes"]["init"]["state"], "pending");
    for _ in 0..3 {
        host.act("s", "send_message", json!({ "content": "go" })).await;
    }
    let waive = "/api/sessions/s/setup/init/waive";
    assert_eq!(host.post(waive, &json!({})).await.refusal(), (400, "confirm_required".to_owned()));
    let waived = host.post(waive, &json!({ "confirm": true })).await.json();
    assert_eq!(waived["setupRuntimes"]["init"]["state"], "done");
}

#[tokio::test]
async fn a_session_is_noted_and_forked_at_most_ten_times_a_minute() {
    let host = host(json!([])).await;
    publish(&host, "quiet", "{ stage: post-turn }", "export default () => ({ outcome: 'success' });").await;
    session(&host, "s", &["quiet"]).await;
    host.act("s", "send_message", json!({ "content": "go" })).await;
    let snapshot = host.post("/api/sessions/s/snapshots", &json!({})).await;
    assert_eq!(snapshot.status, 201);
    let snapshot = snapshot.json()["id"].clone();
    let kinds: Vec<Value> = host.get("/api/sessions/s/snapshots").await.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["kind"].clone())
        .collect();
    assert_eq!(kinds, ["auto", "manual"]);
    host.act("s", "send_message", json!({ "content": "on" })).await;
    let forked = host.post("/api/sessions/s/fork", &json!({ "fromSnapshotId": snapshot, "id": "f" })).await;
    assert_eq!(forked.status, 201, "{}", forked.text);
    let forked = forked.json();
    assert_eq!(
        (&forked["sessionId"], &forked["parentSessionId"], &forked["fromSnapshotId"]),
        (&json!("f"), &json!("s"), &snapshot)
    );
    assert_eq!(host.get("/api/sessions/f").await.json()["completedPlayerTurns"], 1);
    assert_eq!(host.get("/api/sessions/f/turns").await.json()["items"].as_array().unwrap().len(), 1);
    for (body, refusal) in [
        (json!({ "fromSnapshotId": "none" }), (404, "snapshot_not_found")),
        (json!({ "fromTurnId": "none" }), (404, "turn_not_found")),
        (json!({ "fromTurnId": "t", "fromSnapshotId": "s" }), (400, "invalid_request")),
        (json!({ "id": "f" }), (409, "session_already_exists")),
        (json!({ "unknown": 1 }), (400, "invalid_request")),
    ] {
        let refused = host.post("/api/sessions/s/fork", &body).await;
        assert_eq!(refused.refusal(), (refusal.0, refusal.1.to_owned()), "{body}");
    }
    let mut limited = None;
    for _ in 0..10 {
        let answer = host.post("/api/sessions/s/fork", &json!({})).await;
        if answer.status != 201 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.unwrap();
    assert_eq!(limited.refusal(), (429, "rate_limit_exceeded".to_owned()));
    assert!(limited.headers.contains_key("retry-after"));
}
