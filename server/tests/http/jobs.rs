use axum::http::StatusCode;
use covel_exec::{NativeContext, NativeOutput, NativePackage, NewSession};
use covel_graph::{
    Json, Stage,
    fragment::{ManualExecution, RuntimeDecl, TriggerKind},
};
use serde_json::json;

use super::{
    streams::{connected, through},
    support::{Host, host},
};

/// A session whose turns leave a job each; a job of a message `no` fails.
async fn with_jobs() -> Host {
    let host = host(json!([])).await;
    let late = RuntimeDecl {
        trigger: TriggerKind::Event,
        topic: Some("bell.rang".into()),
        manual: ManualExecution::Background,
        ..RuntimeDecl::default()
    };
    let bell = NativePackage::new("bell")
        .runtime("ring", Stage::PreTurn, |_: &NativeContext<'_>| {
            let data = Json::from_value(json!({"secret": "frozen"}));
            Ok(NativeOutput { events: vec![("bell.rang".into(), data)], ..NativeOutput::default() })
        })
        .add("echo", late, |context: &NativeContext<'_>| match context.player_message() {
            "no" => Err("no echo".to_owned()),
            _ => Ok(NativeOutput::default()),
        });
    host.state.engine.publish_native(bell).await.unwrap();
    let new = NewSession { id: Some("j".into()), plugins: Some(vec!["bell".into()]), ..NewSession::default() };
    host.state.engine.create_session(new).await.unwrap();
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_called_off_and_tried_again() {
    let host = with_jobs().await;
    assert_eq!(host.get("/api/sessions/nobody/runtime-jobs").await.refusal(), (404, "session_not_found".into()));
    assert_eq!(host.get("/api/sessions/j/runtime-jobs").await.json(), json!({ "items": [] }));
    for message in ["yes", "no"] {
        assert_eq!(host.act("j", "send_message", json!({ "content": message })).await.status, StatusCode::OK);
        host.state.engine.drain_jobs(Some("j")).await;
    }
    let answer = host.get("/api/sessions/j/runtime-jobs").await;
    assert!(!answer.text.contains("frozen"), "what a job runs on stays inside: {}", answer.text);
    let list = answer.json();
    let [done, failed] = &list["items"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&done["status"], &done["state"]), (&json!("succeeded"), &json!("succeeded")));
    assert_eq!(done["origin"]["activation"], json!("event"));
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("failed"), &json!("execution-failed")));
    assert_eq!(failed["error"]["message"], json!("no echo"));

    let path = |job: &serde_json::Value, action: &str| {
        format!("/api/sessions/j/runtime-jobs/{}{action}", job["jobId"].as_str().unwrap())
    };
    assert_eq!(host.get(&path(done, "")).await.json(), *done);
    let refused = host.post(&path(done, "/cancel"), &json!({})).await.refusal();
    assert_eq!(refused, (409, "runtime_job_not_cancellable".into()));
    let refused = host.post(&path(done, "/retry"), &json!({})).await.refusal();
    assert_eq!(refused, (409, "runtime_job_not_retryable".into()));
    let missing = json!({ "jobId": "nobody" });
    for action in ["/cancel", "/retry"] {
        let refused = host.post(&path(&missing, action), &json!({})).await.refusal();
        assert_eq!(refused, (404, "runtime_job_not_found".into()));
    }
    let again = host.post(&path(failed, "/retry"), &json!({})).await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    assert_eq!((&again.json()["attempt"], &again.json()["origin"]["retryOf"]), (&json!(2), &failed["jobId"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_stream_tells_where_jobs_stand() {
    let host = with_jobs().await;
    let (mut stream, _) = connected(&host, "sessionId=j").await;
    let forwarding = tokio::spawn(covel_server::http::forward_jobs(host.state.clone()));
    // The forwarder has to be there before the job ends.
    tokio::task::yield_now().await;
    while !host.state.engine.hears_jobs() {
        tokio::task::yield_now().await;
    }
    host.act("j", "send_message", json!({ "content": "yes" })).await;
    let mut states = Vec::new();
    while states.last().is_none_or(|state| *state != json!("succeeded")) {
        let events = through(&mut stream, "job-status.updated").await;
        states.push(events.last().unwrap().data["payload"]["state"].clone());
    }
    assert_eq!(states, [json!("queued"), json!("running"), json!("succeeded")]);
    forwarding.abort();
}
