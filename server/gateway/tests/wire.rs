//! The gateway against a real HTTP server that plays recorded wire shapes back.
#![cfg(feature = "http")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use covel_gateway::limits::CallLimits;
use covel_gateway::testing::{FixtureServer, Reply, Step};
use covel_gateway::{HttpGateway, HttpOptions};
use covel_model::{FinishReason, Gateway, ModelErrorKind, ModelEvent, Usage};
use futures_util::StreamExt;
use serde_json::{Value, json};
use support::{KEY, Outcome, ask, ask_with, config, gateway, quick, request, slot};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chat").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn server(script: impl IntoIterator<Item = Reply>) -> FixtureServer {
    FixtureServer::start(script).await.expect("a free port")
}

/// Plays one fixture and says how the gateway took it.
async fn play(name: &str) -> Outcome {
    let server = server([Reply::sse(fixture(name))]).await;
    ask(&gateway(&server.base_url(), quick())).await
}

fn calls(outcome: &Outcome) -> Vec<(&str, &str, &str)> {
    outcome.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

#[tokio::test]
async fn text_comes_in_pieces() {
    let server = server([Reply::sse(fixture("text.sse"))]).await;
    let outcome = ask(&gateway(&server.base_url(), quick())).await;
    assert_eq!(outcome.text, "The rain stops — 雨停了。");
    assert_eq!(outcome.events, 4);
    let usage = Usage { input_tokens: 24, output_tokens: 9, cached_input_tokens: 16 };
    assert_eq!(outcome.done, Some((FinishReason::Stop, usage, Some("gpt-4o-mini-2024-07-18".into()))));

    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert!(sent.header("accept").is_some_and(|accept| accept.starts_with("text/event-stream")));
    assert_eq!(sent.json()["messages"], json!([{"role": "user", "content": "Hello"}]));
    assert_eq!(sent.json()["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn any_chunk_size_gives_the_same() {
    for bytes in [1, 2, 3, 7, 64, 1000] {
        let server = server([Reply::sse(fixture("text.sse")).in_chunks_of(bytes)]).await;
        assert_eq!(ask(&gateway(&server.base_url(), quick())).await.text, "The rain stops — 雨停了。", "{bytes}");
    }
}

#[tokio::test]
async fn pieces_are_handed_over_before_the_reply_ends() {
    let (go, text) = (Arc::new(Notify::new()), fixture("text.sse"));
    let middle = text.windows(5).position(|window| window == b" stop").expect("in the fixture");
    let reply = Reply::sse(&text[..middle]).then(Step::Wait(go.clone())).then(Step::Send(text[middle..].to_vec()));
    let server = server([reply]).await;
    let gateway = gateway(&server.base_url(), quick());
    let mut stream = gateway.stream(request(), CancellationToken::new());
    assert_eq!(stream.next().await.and_then(Result::ok), Some(ModelEvent::Text("The rain".into())));
    go.notify_one();
    assert_eq!(stream.collect::<Vec<_>>().await.len(), 3);
}

#[tokio::test]
async fn tool_calls_are_put_together() {
    let outcome = play("tool-call.sse").await;
    assert_eq!(calls(&outcome), [("call_8JkQ", "roll_dice", "{\"sides\": 20}")]);
    assert_eq!((outcome.finish(), outcome.events), (Some(FinishReason::ToolCalls), 2));
    let outcome = play("parallel-tool-calls.sse").await;
    let expected =
        [("call_A1", "roll_dice", "{\"sides\":6}"), ("call_B2", "quest_log_add", "{\"title\":\"Find the bell\"}")];
    assert_eq!(calls(&outcome), expected);
    let outcome = play("tool-calls-without-index.sse").await;
    let expected =
        [("function-call-1", "roll_dice", "{\"sides\":6}"), ("function-call-2", "roll_dice", "{\"sides\":8}")];
    assert_eq!((calls(&outcome), outcome.finish()), (expected.to_vec(), Some(FinishReason::ToolCalls)));
}

#[tokio::test]
async fn reasoning_is_kept_apart() {
    let outcome = play("reasoning.sse").await;
    assert_eq!(
        (outcome.reasoning.as_str(), outcome.text.as_str()),
        ("The bell rang twice, so it is late.", "It is late.")
    );
    assert_eq!(outcome.done.map(|(_, usage, _)| (usage.input_tokens, usage.output_tokens)), Some((30, 14)));
    let outcome = play("content-parts.sse").await;
    assert_eq!((outcome.reasoning.as_str(), outcome.text.as_str()), ("Twice.", "Late."));
}

#[tokio::test]
async fn a_reply_cut_by_its_budget_says_so() {
    let outcome = play("length.sse").await;
    assert_eq!((outcome.text.as_str(), outcome.finish()), ("The road goes on and", Some(FinishReason::Length)));
}

#[tokio::test]
async fn refusals_are_errors_whatever_came_before() {
    for name in ["content-filter.sse", "refusal.sse"] {
        let outcome = play(name).await;
        let error = outcome.error.expect("refused");
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Refused, false), "{name}");
    }
    let message = play("refusal.sse").await.error.map(|error| error.message).unwrap_or_default();
    assert!(message.ends_with("the model refused to answer: I can't help with that."), "{message}");
    let error = json!({"error": {"message": "flagged", "code": "content_filter"}});
    let server = server([Reply::json(400, &error)]).await;
    assert_eq!(ask(&gateway(&server.base_url(), quick())).await.kind(), Some(ModelErrorKind::Refused));
}

#[tokio::test]
async fn broken_streams_keep_what_came_and_end_in_an_error() {
    for name in [
        "error-mid-stream.sse",
        "done-without-finish.sse",
        "cut-mid-event.sse",
        "invalid-utf8.sse",
        "malformed-json.sse",
    ] {
        // The script has one reply: a second request would show as another error and another count.
        let server = server([Reply::sse(fixture(name))]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        assert!(outcome.text.starts_with("The door"), "{name}: {outcome:?}");
        let error = outcome.error.as_ref().unwrap_or_else(|| panic!("{name} must fail"));
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Server, true), "{name}: {error}");
        assert_eq!(server.requests().len(), 1, "{name}: nothing is asked again after output");
    }
    let error = play("error-mid-stream.sse").await.error.expect("failed");
    assert!(error.message.ends_with("Provider disconnected unexpectedly"), "{error}");
    assert_eq!(error.provider_code.as_deref(), Some("502"));
}

#[tokio::test]
async fn a_connection_cut_in_a_chunk_is_an_error_but_not_after_the_end() {
    let text = fixture("text.sse");
    let cut = text.len() / 2;
    let server_cut = server([Reply::sse(&text[..cut]).then(Step::Abort)]).await;
    let outcome = ask(&gateway(&server_cut.base_url(), quick())).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("The rain stops — ", Some(ModelErrorKind::Server)));

    // The reply has said how it ended; only figures were still to come.
    let end = text.windows(8).rposition(|window| window == b"\"usage\":").expect("in the fixture");
    for last in [Step::Abort, Step::Hang] {
        let server = server([Reply::sse(&text[..end]).then(last)]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        assert_eq!((outcome.text.as_str(), outcome.finish()), ("The rain stops — 雨停了。", Some(FinishReason::Stop)));
        assert_eq!(outcome.done.map(|(_, usage, _)| usage), Some(Usage::default()));
    }
}

#[tokio::test]
async fn a_stream_without_output_is_followed_by_one_whole_request() {
    let whole: Value = serde_json::from_slice(&fixture("whole.json")).expect("JSON");
    let overloaded = Reply::sse(fixture("error-first.sse"));
    let nothing = Reply::sse("");
    let cut = Reply::status(200).header("content-type", "text/event-stream").then(Step::Abort);
    let error_body = Reply::json(200, &json!({"error": {"message": "try later", "type": "server_error"}}));
    for first in [overloaded, nothing, cut, error_body] {
        let server = server([first.clone(), Reply::json(200, &whole)]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        assert_eq!(outcome.text, "A coin falls.", "{first:?}");
        assert_eq!(calls(&outcome), [("call_W1", "roll_dice", "{\"sides\":2}")]);
        let usage = Usage { input_tokens: 33, output_tokens: 12, cached_input_tokens: 8 };
        assert_eq!(outcome.done, Some((FinishReason::ToolCalls, usage, Some("gpt-4o-mini-2024-07-18".into()))));
        let requests = server.requests();
        assert_eq!((requests.len(), requests[1].json().get("stream")), (2, None));
    }
    // When that fails too, the first failure is told.
    let server = server([Reply::sse(fixture("error-first.sse")), Reply::json(400, &json!({"error": "second"}))]).await;
    let outcome = ask(&gateway(&server.base_url(), quick())).await;
    assert_eq!((outcome.kind(), server.requests().len()), (Some(ModelErrorKind::Overloaded), 2));
}

#[tokio::test]
async fn a_whole_reply_to_a_streaming_request_is_taken() {
    let whole: Value = serde_json::from_slice(&fixture("whole.json")).expect("JSON");
    let server = server([Reply::json(200, &whole)]).await;
    let outcome = ask(&gateway(&server.base_url(), quick())).await;
    assert_eq!((outcome.text.as_str(), server.requests().len()), ("A coin falls.", 1));
}

#[tokio::test]
async fn success_with_an_error_inside_is_an_error() {
    for (body, kind) in [
        (json!({"error": {"message": "no such model", "code": "model_not_found"}}), ModelErrorKind::NotFound),
        (json!({"error": {"message": "bad", "code": 400}}), ModelErrorKind::BadRequest),
        (json!({"object": "error", "message": "bad", "code": 400}), ModelErrorKind::BadRequest),
        (json!({"error": "who are you", "type": "invalid_api_key"}), ModelErrorKind::Auth),
    ] {
        let server = server([Reply::json(200, &body)]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        assert_eq!((outcome.kind(), server.requests().len()), (Some(kind), 1), "{body}");
    }
    let page =
        Reply::status(200).header("content-type", "text/html").then(Step::Send(b"<html>Sign in</html>".to_vec()));
    let server = server([page.clone(), page]).await;
    let outcome = ask(&gateway(&server.base_url(), quick())).await;
    assert_eq!(outcome.kind(), Some(ModelErrorKind::Server));
    assert!(outcome.error.is_some_and(|error| error.message.contains("baseUrl")));
}

#[tokio::test]
async fn rejections_are_told_apart_and_not_repeated() {
    for (status, kind) in [
        (400, ModelErrorKind::BadRequest),
        (401, ModelErrorKind::Auth),
        (402, ModelErrorKind::Quota),
        (403, ModelErrorKind::Auth),
        (404, ModelErrorKind::NotFound),
        (422, ModelErrorKind::BadRequest),
    ] {
        let body = json!({"error": {"message": "no", "type": "t", "code": "c-1"}});
        let server = server([Reply::json(status, &body)]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        let error = outcome.error.expect("rejected");
        assert_eq!(
            (error.kind, error.retriable, error.provider_code.as_deref()),
            (kind, false, Some("c-1")),
            "{status}"
        );
        assert_eq!(error.message, format!("slot `story` (test, test-model): HTTP {status}: no"));
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn passing_failures_are_retried() {
    let limited = Reply::json(429, &json!({"error": {"message": "slow"}})).header("retry-after-ms", "3");
    let at_once = Reply::status(503).header("retry-after", "0");
    let server = server([limited, Reply::status(500), at_once, Reply::chat_text(&["Fine", "."])]).await;
    let outcome = ask(&gateway(&server.base_url(), quick())).await;
    assert_eq!((outcome.text.as_str(), server.requests().len()), ("Fine.", 4));
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "the same request each time");
}

#[tokio::test]
async fn broken_connections_are_retried_and_bad_addresses_are_not() {
    let hang_up = server([Reply::hang_up(), Reply::hang_up(), Reply::chat_text(&["Fine."])]).await;
    let outcome = ask(&gateway(&hang_up.base_url(), quick())).await;
    assert_eq!((outcome.text.as_str(), hang_up.requests().len()), ("Fine.", 3));

    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let error = ask(&gateway(&closed, quick())).await.error.expect("nobody listens");
    assert_eq!((error.kind, error.retriable), (ModelErrorKind::Unreachable, true), "{error}");

    let gopher = || Reply::raw("220 mail ready\r\n\r\n");
    let not_http = server([gopher(), gopher()]).await;
    let error = ask(&gateway(&not_http.base_url(), quick())).await.error.expect("no HTTP");
    assert_eq!(error.kind, ModelErrorKind::Server, "{error}");
}

#[tokio::test]
async fn redirects_are_refused() {
    let elsewhere = server([Reply::chat_text(&["stolen"])]).await;
    for status in [301, 302, 307, 308] {
        let redirect = Reply::status(status).header("location", &elsewhere.base_url()).header("retry-after", "0");
        let server = server([redirect]).await;
        let outcome = ask(&gateway(&server.base_url(), quick())).await;
        assert_eq!((outcome.kind(), server.requests().len()), (Some(ModelErrorKind::BadRequest), 1));
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn silence_ends_in_a_time_out() {
    let limits =
        CallLimits { first_token: Duration::from_millis(40), idle: Duration::from_millis(40), requests: 1, ..quick() };
    let head_only = Reply::status(200).header("content-type", "text/event-stream").then(Step::Hang);
    let role_only =
        Reply::sse("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n").then(Step::Hang);
    let comments =
        Reply::status(200).header("content-type", "text/event-stream").then(Step::Repeat(b": wait\n\n".to_vec()));
    let text = fixture("text.sse");
    let stalled = Reply::sse(&text[..text.len() / 2]).then(Step::Hang);
    for (reply, began) in
        [(Reply::silent(), false), (head_only, false), (role_only, false), (comments, false), (stalled, true)]
    {
        let server = server([reply]).await;
        let outcome = ask(&gateway(&server.base_url(), limits)).await;
        let error = outcome.error.as_ref().expect("too slow");
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Timeout, true), "{error}");
        assert_eq!(!outcome.text.is_empty(), began);
        server.abandoned(1).await;
    }
}

#[tokio::test]
async fn endless_output_ends() {
    let chunk = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "x".repeat(100_000)}}]}));
    let comments = format!(": {}\n\n", "x".repeat(500_000));
    let line = "x".repeat(100_000);
    for bytes in [chunk, comments, line] {
        let endless =
            || Reply::status(200).header("content-type", "text/event-stream").then(Step::Repeat(bytes.clone().into()));
        let server = server([endless(), endless()]).await;
        let error = ask(&gateway(&server.base_url(), quick())).await.error.expect("cut off");
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Server, false), "{error}");
        server.abandoned(1).await;
        assert_eq!(server.requests().len(), 1);
    }
    let body = Reply::status(400).then(Step::Repeat(vec![b'x'; 10_000]));
    let server = server([body]).await;
    let error = ask(&gateway(&server.base_url(), quick())).await.error.expect("rejected");
    assert!(error.kind == ModelErrorKind::BadRequest && error.message.len() < 1000, "{error}");
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    let text = fixture("text.sse");
    for (reply, pieces) in [(Reply::silent(), 0), (Reply::sse(&text[..text.len() / 2]).then(Step::Hang), 2)] {
        let server = server([reply]).await;
        let gateway = gateway(&server.base_url(), quick());
        let cancel = CancellationToken::new();
        let mut stream = gateway.stream(request(), cancel.clone());
        for _ in 0..pieces {
            assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Text(_)))));
        }
        let (ended, ()) = tokio::join!(stream.next(), async {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        let error = ended.and_then(Result::err).expect("cancelled");
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Cancelled, false));
        assert!(stream.next().await.is_none());
        // The stream still exists; the connection does not.
        server.abandoned(1).await;
        drop(stream);
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let text = fixture("text.sse");
    let server = server([Reply::sse(&text[..text.len() / 2]).then(Step::Hang)]).await;
    let gateway = gateway(&server.base_url(), quick());
    let mut stream = gateway.stream(request(), CancellationToken::new());
    assert!(stream.next().await.is_some());
    drop(stream);
    server.abandoned(1).await;
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = server([Reply::chat_text(&["One."]), Reply::chat_text(&["Two."])]).await;
    let gateway = gateway(&server.base_url(), quick());
    assert_eq!(ask(&gateway).await.text, "One.");
    assert_eq!(ask(&gateway).await.text, "Two.");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_reload_changes_later_calls_only() {
    let (old, new) = (server([Reply::chat_text(&["old"])]).await, server([Reply::chat_text(&["new"])]).await);
    let gateway = gateway(&old.base_url(), quick());
    let stream = gateway.stream(request(), CancellationToken::new());
    let mut stream = Box::pin(stream);
    assert!(stream.next().await.is_some_and(|event| event.is_ok()));
    gateway.reload(config(&slot("story", &new.base_url(), "")));
    assert_eq!(stream.collect::<Vec<_>>().await.len(), 1);
    assert_eq!(ask(&gateway).await.text, "new");
}

/// No eight characters of the key anywhere in what people can see.
fn scan(what: &str) {
    for window in KEY.to_ascii_lowercase().as_bytes().windows(8) {
        let window = std::str::from_utf8(window).expect("ASCII");
        assert!(!what.to_ascii_lowercase().contains(window), "{window} in {what}");
    }
}

/// Covers: MOD-7
#[tokio::test]
async fn no_key_in_any_error() {
    let half = &KEY[..14];
    let replies = [
        Reply::json(
            401,
            &json!({"error": {"message": format!("Incorrect API key provided: {half}****. Use {KEY}."), "code": KEY}}),
        ),
        Reply::json(400, &json!({"error": format!("Bearer {KEY}"), "type": KEY.to_uppercase()})),
        Reply::json(422, &json!({"detail": [{"msg": KEY}]})),
        Reply::status(404).then(Step::Send(format!("<p>{KEY}{KEY}</p>").into())),
        Reply::status(400).then(Step::Send(format!("{}{KEY}", "x".repeat(195)).into())),
        Reply::status(307).header("location", &format!("https://x.org/{KEY}")),
        Reply::json(200, &json!({"error": {"message": KEY, "type": "invalid_request_error"}})),
        Reply::sse(format!("event: error\ndata: {{\"message\":\"{KEY}\",\"type\":\"invalid_request_error\"}}\n\n")),
        Reply::chat(&[json!({"refusal": KEY})], "stop"),
    ];
    let count = replies.len();
    let server = server(replies).await;
    let gateway = gateway(&server.base_url(), quick());
    for number in 0..count {
        let error = ask(&gateway).await.error.unwrap_or_else(|| panic!("reply {number} fails"));
        assert!(error.message.contains("[redacted]") || number == 5, "{number}: {error}");
        scan(&format!("{error} {error:?}"));
    }
    assert_eq!(server.requests().len(), count);
    scan(&format!("{gateway:?}"));
}

#[tokio::test]
async fn wrong_configuration_sends_nothing() {
    let server = server([]).await;
    let url = server.base_url();
    let picture = slot("story", &url, "tag = \"image\"");
    let other = slot("story", &url, "protocol = \"anthropic-messages-v1\"");
    let no_key = "[covel.story]\nprovider = \"keyless\"\nmodel = \"m\"\nbaseUrl = \"https://unset.example\"\n";
    for (text, part) in
        [(picture.as_str(), "line 1"), (other.as_str(), "anthropic-messages-v1"), (no_key, "KEYLESS_API_KEY")]
    {
        let variable = |name: &str| (name == "TEST_API_KEY").then(|| KEY.to_owned());
        let surroundings = covel_gateway::Surroundings { variable: &variable, loopback_allowed: true };
        let config = covel_gateway::LlmConfig::parse(text.as_bytes(), &surroundings).expect("a configuration");
        let gateway = HttpGateway::new(config, HttpOptions::default());
        let error = ask(&gateway).await.error.expect("refused");
        assert_eq!((error.kind, error.retriable), (ModelErrorKind::Config, false));
        assert!(error.message.contains(part) && error.message.contains("story"), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn many_calls_at_once_keep_apart() {
    let server = server((0..20).map(|_| Reply::sse(fixture("text.sse")).in_chunks_of(50))).await;
    let gateway = gateway(&server.base_url(), quick());
    let outcomes =
        futures_util::future::join_all((0..20).map(|_| ask_with(&gateway, request(), CancellationToken::new()))).await;
    assert!(outcomes.iter().all(|outcome| outcome.text == "The rain stops — 雨停了。"));
}
