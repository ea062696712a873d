//! `GET /api/events/stream`: names, ids, replay, limits.

use std::time::Duration;

use axum::{body::Body, http::Request};
use serde_json::json;

use super::support::{Event, Host, Stream, host, request};

fn stream(query: &str) -> Request<Body> {
    request("GET", &format!("/api/events/stream?{query}"), Body::empty())
}

pub(crate) async fn connected(host: &Host, query: &str) -> (Stream, String) {
    let mut stream = host.open(stream(query)).await;
    let hello = stream.event().await.unwrap();
    assert_eq!((hello.name.as_str(), &hello.id), ("system.connected", &None));
    let cursor = hello.data["cursor"].as_str().unwrap().to_owned();
    (stream, cursor)
}

pub(crate) async fn through(stream: &mut Stream, name: &str) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = stream.event().await.unwrap();
        let found = event.name == name;
        events.push(event);
        if found {
            return events;
        }
    }
}

#[tokio::test]
async fn events_are_live_numbered_and_can_be_replayed() {
    let host = host(json!([])).await;
    host.session("s").await;
    let (mut live, start) = connected(&host, "sessionId=s").await;
    let (mut second, _) = connected(&host, "sessionId=s").await;
    host.act("s", "execute_command", json!({ "command": "/add 5" })).await;
    let events = through(&mut live, "execution.completed").await;
    assert_eq!(through(&mut second, "execution.completed").await.len(), events.len());
    let (epoch, from) = start.rsplit_once(':').unwrap();
    let from: u64 = from.parse().unwrap();
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.id.as_deref(), Some(format!("{epoch}:{}", from + 1 + place as u64).as_str()));
        assert_eq!(event.data["type"], event.name.as_str());
        assert_eq!((&event.data["sessionId"], event.data["id"].as_str()), (&json!("s"), event.id.as_deref()));
        assert!(event.data["payload"].is_object() && event.data["timestamp"].is_string());
    }
    assert!(events.iter().any(|event| event.name == "plugin-data.changed"));

    // From the start, by query; from the first event, by the header a browser sends.
    let (mut replay, cursor) = connected(&host, &format!("sessionId=s&lastEventId={start}")).await;
    assert_eq!(cursor, start);
    assert_eq!(through(&mut replay, "execution.completed").await.len(), events.len());
    let mut again = stream(&format!("sessionId=s&lastEventId={start}"));
    again.headers_mut().insert("last-event-id", events[0].id.as_deref().unwrap().parse().unwrap());
    let mut again = host.open(again).await;
    again.event().await.unwrap();
    assert_eq!(again.event().await.unwrap().id, events[1].id, "the header is newer than the address");
}

#[tokio::test]
async fn a_cursor_that_cannot_be_met_is_reset() {
    let host = host(json!([])).await;
    host.session("s").await;
    let (mut reader, now) = connected(&host, "sessionId=s&lastEventId=earlier-process:7").await;
    let reset = reader.event().await.unwrap();
    assert_eq!((reset.name.as_str(), reset.id), ("system.reset", None));
    assert_eq!(reset.data["reason"], "epoch-change");
    assert_eq!(reset.data["cursor"], now.as_str());
    assert!(reset.data["oldestSeq"].is_u64() && reset.data["latestSeq"].is_u64() && reset.data["epoch"].is_string());
}

#[tokio::test]
async fn streams_of_one_session_are_limited() {
    let host = host(json!([])).await;
    host.session("s").await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(connected(&host, "sessionId=s").await);
    }
    let refused = host.send(stream("sessionId=s")).await;
    assert_eq!(refused.refusal(), (429, "too_many_streams".to_owned()));
    open.pop();
    open.push(connected(&host, "sessionId=s").await);
}

#[tokio::test]
async fn deleting_a_session_ends_its_streams() {
    let host = host(json!([])).await;
    host.session("s").await;
    let (mut reader, _) = connected(&host, "sessionId=s").await;
    host.send(request("DELETE", "/api/sessions/s", Body::empty())).await;
    assert!(reader.event().await.is_none());
}

#[tokio::test]
async fn silence_is_filled_with_heartbeats() {
    let host = host(json!([])).await;
    host.session("s").await;
    let (mut reader, _) = connected(&host, "sessionId=s").await;
    // From here on nothing but the clock moves.
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let beat = reader.event().await.unwrap();
    assert_eq!((beat.name.as_str(), beat.id), ("system.heartbeat", None));
    assert!(started.elapsed() >= Duration::from_secs(30));
}
