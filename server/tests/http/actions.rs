//! `POST /api/actions`: frames and their order, one turn at a time, clients that leave.

use axum::body::Body;
use serde_json::{Value, json};

use super::support::{Host, Stream, action, host, request};

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

async fn open(host: &Host, session: &str, content: &str) -> Stream {
    let body = action(session, "send_message", json!({ "content": content })).to_string();
    host.open(request("POST", "/api/actions", Body::from(body))).await
}

#[tokio::test]
async fn frames_are_numbered_and_end_with_one_completion() {
    let host = host(json!([{ "content": "The rope is wet." }])).await;
    host.session("s").await;
    let frames = host.act("s", "send_message", json!({ "content": "I pull the rope." })).await.frames();
    for (place, frame) in frames.iter().enumerate() {
        assert_eq!(frame["seq"], place, "{frame}");
        assert_eq!((&frame["requestId"], &frame["sessionId"]), (&json!("r1"), &json!("s")));
        assert_eq!(frame["traceId"], frames[0]["traceId"]);
        assert_eq!(frame["flowId"], frame["traceId"]);
        assert!(frame["timestamp"].as_str().unwrap().ends_with('Z') && frame["payload"].is_object());
    }
    let kinds = kinds(&frames);
    assert_eq!(kinds[0], "execution.started");
    assert_eq!(kinds.iter().filter(|kind| **kind == "execution.completed").count(), 1, "setup and turn share one");
    assert_eq!(*kinds.last().unwrap(), "execution.completed");
    let place = |kind: &str, id: &str| {
        frames.iter().position(|frame| frame["type"] == kind && frame["payload"]["runtimeId"] == id).unwrap()
    };
    assert!(place("runtime.completed", "counter/opener") < place("runtime.started", "teller"));
    assert!(place("runtime.started", "teller") < place("narrative.delta", "teller"));
    assert!(place("narrative.delta", "teller") < place("runtime.completed", "teller"));
    assert!(place("runtime.completed", "teller") < place("runtime.started", "counter/keeper"));
    let told: String = frames
        .iter()
        .filter(|frame| frame["type"] == "narrative.delta")
        .map(|frame| frame["payload"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(told, "The rope is wet.");
    assert!(kinds.iter().filter(|kind| **kind == "narrative.delta").count() > 1, "the story comes in pieces");
    let find = |kind: &str| frames.iter().find(|frame| frame["type"] == kind).unwrap();
    assert_eq!(find("narrative.completed")["payload"]["content"], "The rope is wet.");
    assert_eq!(find("event.emitted")["payload"]["topic"], "counter.counted");
    assert!(kinds.contains(&"plugin-data.changed"));
    let last = frames.last().unwrap();
    assert_eq!((&last["payload"]["committed"], &last["payload"]["runtimeCount"]), (&json!(true), &json!(2)));
    assert_eq!(last["turnId"], find("narrative.completed")["turnId"]);
}

#[tokio::test]
async fn start_session_runs_setup_and_an_opening_turn_in_one_stream() {
    let host = host(json!([{ "content": "Morning." }])).await;
    host.session("s").await;
    let frames = host.act("s", "start_session", json!({})).await.frames();
    assert_eq!(kinds(&frames).iter().filter(|kind| **kind == "execution.started").count(), 2);
    assert_eq!(kinds(&frames).iter().filter(|kind| **kind == "execution.completed").count(), 1);
    assert_eq!(frames.last().unwrap()["payload"]["committed"], true);
    let session = host.get("/api/sessions/s").await.json();
    assert_eq!((&session["phase"], &session["completedPlayerTurns"]), (&json!("playing"), &json!(0)));
    let again = host.act("s", "start_session", json!({})).await;
    assert_eq!(again.refusal(), (409, "session_already_started".to_owned()));
}

#[tokio::test]
async fn one_turn_at_a_time_and_abort_ends_it() {
    let host = host(json!([{ "hang": true }, { "content": "Later." }])).await;
    host.session("s").await;
    assert_eq!(host.post("/api/sessions/s/abort", &json!({})).await.refusal(), (409, "nothing_running".to_owned()));
    let mut first = open(&host, "s", "I wait.").await;
    first.until("runtime.completed").await;

    let second = host.act("s", "send_message", json!({ "content": "I wait, too." })).await;
    assert_eq!(second.refusal(), (409, "session_busy".to_owned()));
    let command = host.act("s", "execute_command", json!({ "command": "/add 1" })).await;
    assert_eq!(command.refusal(), (409, "session_busy".to_owned()));
    for (method, body) in [("DELETE", ""), ("PATCH", r#"{"status":"ended"}"#)] {
        let answer = host.send(request(method, "/api/sessions/s", body.into())).await;
        assert_eq!(answer.refusal(), (409, "session_busy".to_owned()), "{method}");
    }
    let running = host.get("/api/sessions/s/execution").await.json();
    assert_eq!(
        (&running["status"], &running["requestId"], &running["type"]),
        (&json!("running"), &json!("r1"), &json!("send_message"))
    );
    assert!(running["turnId"].is_string());
    // Another session is free.
    host.session("other").await;
    assert_eq!(host.act("other", "execute_command", json!({ "command": "/add 1" })).await.status, 200);

    assert_eq!(host.post("/api/sessions/s/abort", &json!({})).await.json(), json!({ "ok": true }));
    let rest = first.until("execution.completed").await;
    assert_eq!(rest.last().unwrap()["payload"]["committed"], false);
    assert!(first.frame().await.is_none(), "nothing after the completion");
    assert_eq!(host.get("/api/sessions/s").await.json()["completedPlayerTurns"], 0, "nothing of it is kept");

    let after = host.act("s", "send_message", json!({ "content": "I go on." })).await.frames();
    assert_eq!(after.last().unwrap()["payload"]["committed"], true, "the next turn is fine");
}

#[tokio::test]
async fn a_turn_outlives_its_client() {
    let host = host(json!([{ "content": "The bell rings once." }])).await;
    host.session("s").await;
    let mut events = host.open(request("GET", "/api/events/stream?sessionId=s", Body::empty())).await;
    let mut client = open(&host, "s", "I listen.").await;
    assert_eq!(client.frame().await.unwrap()["type"], "execution.started");
    drop(client);
    loop {
        let event = events.event().await.unwrap();
        if event.name == "execution.completed" && event.data["payload"]["runtimeCount"] == 2 {
            assert_eq!(event.data["payload"]["committed"], true);
            break;
        }
    }
    assert_eq!(host.get("/api/sessions/s/messages").await.json()["items"][1]["content"], "The bell rings once.");
}

#[tokio::test]
async fn a_failed_story_is_told_as_an_error_and_leaves_nothing() {
    let host =
        host(json!([{ "error": "the provider fell over" }, { "error": "again" }, { "error": "and again" }])).await;
    host.session("s").await;
    let frames = host.act("s", "send_message", json!({ "content": "Hello" })).await.frames();
    let last = &frames.last().unwrap()["payload"];
    assert_eq!(last["committed"], false, "{last}");
    assert!(last["error"].is_string() && last["code"].is_string(), "{last}");
    assert!(kinds(&frames).contains(&"error.occurred"));
    assert_eq!(host.get("/api/sessions/s/messages").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_command_tells_its_answer_and_its_changes() {
    let host = host(json!([])).await;
    host.session("s").await;
    let frames = host.act("s", "execute_command", json!({ "command": "/add 5" })).await.frames();
    let changes: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "plugin-data.changed").collect();
    assert_eq!(changes.len(), 1, "each change is told once");
    assert_eq!(
        changes[0]["payload"],
        json!({ "pluginId": "counter", "changes": [{ "namespace": "counts", "key": "added", "value": { "n": 5 }, "operation": "set" }] })
    );
    let done = frames.iter().find(|frame| frame["type"] == "command.completed").unwrap();
    assert_eq!(
        done["payload"],
        json!({ "commandId": "counter:add", "ok": true, "message": "Added 5.", "data": { "amount": 5 } })
    );
    assert_eq!(kinds(&frames).last(), Some(&"execution.completed"));
    assert_eq!(frames.last().unwrap()["payload"]["committed"], true);
    let refused = host.act("s", "execute_command", json!({ "command": "/add -5" })).await.frames();
    let done = refused.iter().find(|frame| frame["type"] == "command.completed").unwrap();
    assert_eq!((&done["payload"]["ok"], &done["payload"]["message"]), (&json!(false), &json!("Only upwards.")));
}

#[tokio::test]
async fn a_stopping_server_lets_turns_finish_and_refuses_new_ones() {
    let host = host(json!([{ "hang": true }])).await;
    host.session("s").await;
    let mut events = host.open(request("GET", "/api/events/stream?sessionId=s", Body::empty())).await;
    assert_eq!(events.event().await.unwrap().name, "system.connected");
    let mut turn = open(&host, "s", "I wait.").await;
    turn.until("runtime.completed").await;
    let state = host.state.clone();
    let closing = tokio::spawn(async move { state.close().await });
    while !host.state.is_closing() {
        tokio::task::yield_now().await;
    }
    for path in ["/api/worlds", "/api/sessions/s"] {
        let answer = host.get(path).await;
        assert_eq!(answer.refusal(), (503, "server_shutting_down".to_owned()));
        assert_eq!(answer.headers["retry-after"], "1");
    }
    assert_eq!(host.get("/api/health").await.json()["status"], "stopping");
    while events.event().await.is_some() {}
    host.state.running.cancel("s");
    turn.until("execution.completed").await;
    assert!(closing.await.unwrap(), "the turn ended within its time");
}
