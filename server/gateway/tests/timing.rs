//! Waits, budgets and fallback, with time that passes only when nothing else can happen.
#![cfg(feature = "http")]

mod support;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use covel_gateway::http::{HttpReply, HttpRequest, Transport, TransportError};
use covel_gateway::limits::CallLimits;
use covel_gateway::{HttpGateway, HttpOptions};
use covel_model::{Gateway, ModelErrorKind, ModelRequest};
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use support::{Outcome, ask_with, config, request, slot};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// A scripted reply: after `wait`, this status, these headers, and a body in timed pieces.
#[derive(Clone)]
struct Scripted {
    wait: Duration,
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: Vec<(Duration, String)>,
}

fn status(status: u16) -> Scripted {
    Scripted { wait: Duration::ZERO, status, header: None, body: Vec::new() }
}

fn text(waits: &[u64]) -> Scripted {
    let piece = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let mut body: Vec<_> = waits.iter().map(|wait| (Duration::from_secs(*wait), piece("x"))).collect();
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    body.push((Duration::ZERO, end.to_owned()));
    Scripted { body, ..status(200) }
}

#[derive(Default)]
struct Script {
    replies: Mutex<VecDeque<Scripted>>,
    /// Host and time of each request.
    requests: Mutex<Vec<(String, Instant)>>,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

impl Transport for Script {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpReply, TransportError>> {
        self.requests.lock().expect("lock").push((request.endpoint.host().to_owned(), Instant::now()));
        let reply = self.replies.lock().expect("lock").pop_front();
        async move {
            let Some(reply) = reply else {
                return std::future::pending().await;
            };
            sleep(reply.wait).await;
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = reply.header {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let body = stream::iter(reply.body).then(|(wait, text)| async move {
                sleep(wait).await;
                Ok(Bytes::from(text))
            });
            Ok(HttpReply { status: StatusCode::from_u16(reply.status).expect("a status"), headers, body: body.boxed() })
        }
        .boxed()
    }
}

struct Run {
    outcome: Outcome,
    elapsed: Duration,
    /// Host and seconds since the start of each request.
    requests: Vec<(String, u64)>,
}

async fn run_with(slots: &str, options: HttpOptions, request: ModelRequest, replies: Vec<Scripted>) -> Run {
    let script = Arc::new(Script { replies: Mutex::new(replies.into()), ..Script::default() });
    let gateway = HttpGateway::with_transport(config(slots), options, script.clone());
    let start = Instant::now();
    let outcome = ask_with(&gateway, request, CancellationToken::new()).await;
    let requests = script.requests.lock().expect("lock");
    let requests = requests.iter().map(|(host, at)| (host.clone(), (*at - start).as_secs())).collect();
    Run { outcome, elapsed: start.elapsed(), requests }
}

async fn run(replies: Vec<Scripted>) -> Run {
    run_with(&slot("story", "https://a.example", ""), HttpOptions::default(), request(), replies).await
}

fn at(seconds: &[u64]) -> Vec<(String, u64)> {
    seconds.iter().map(|second| ("a.example".to_owned(), *second)).collect()
}

#[tokio::test(start_paused = true)]
async fn silence_is_waited_for_two_minutes_and_no_more() {
    let run = run(Vec::new()).await;
    assert_eq!(run.outcome.kind(), Some(ModelErrorKind::Timeout));
    assert_eq!((run.elapsed.as_secs(), run.requests), (120, at(&[0])));
}

#[tokio::test(start_paused = true)]
async fn an_early_time_out_leaves_room_for_a_whole_request() {
    let request = ModelRequest { first_token_timeout_ms: 30_000, ..request() };
    let whole = "{\"choices\":[{\"message\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}";
    let whole =
        Scripted { wait: Duration::from_secs(80), body: vec![(Duration::ZERO, whole.to_owned())], ..status(200) };
    let late = Scripted { wait: Duration::from_secs(40), ..text(&[0]) };
    let run =
        run_with(&slot("story", "https://a.example", ""), HttpOptions::default(), request, vec![late, whole]).await;
    assert_eq!((run.outcome.text.as_str(), run.elapsed.as_secs(), run.requests), ("whole", 110, at(&[0, 30])));
}

#[tokio::test(start_paused = true)]
async fn pauses_within_the_limit_are_fine_and_longer_ones_are_not() {
    assert_eq!(run(vec![text(&[100, 119, 119, 100])]).await.outcome.text, "xxxx");
    let run = run(vec![text(&[100, 121])]).await;
    assert_eq!((run.outcome.text.as_str(), run.outcome.kind()), ("x", Some(ModelErrorKind::Timeout)));
    assert_eq!(run.elapsed.as_secs(), 220);
}

#[tokio::test(start_paused = true)]
async fn the_request_may_name_its_own_waits() {
    let request = ModelRequest { first_token_timeout_ms: 300_000, idle_timeout_ms: 2_000, ..request() };
    let slots = slot("story", "https://a.example", "");
    let fine = run_with(&slots, HttpOptions::default(), request.clone(), vec![text(&[250, 1, 1])]).await;
    assert_eq!(fine.outcome.text, "xxx");
    let slow = run_with(&slots, HttpOptions::default(), request, vec![text(&[250, 1, 3])]).await;
    assert_eq!((slow.outcome.kind(), slow.elapsed.as_secs()), (Some(ModelErrorKind::Timeout), 253));
}

#[tokio::test(start_paused = true)]
async fn a_trickle_ends_at_the_ceiling() {
    let run = run(vec![text(&[101; 40])]).await;
    let error = run.outcome.error.expect("too long");
    assert_eq!((error.kind, error.retriable), (ModelErrorKind::Budget, false));
    assert_eq!((run.elapsed.as_secs(), run.outcome.text.len()), (1800, 17));
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_rejections_is_bounded() {
    let limited = run(vec![status(429); 20]).await;
    assert_eq!((limited.outcome.kind(), limited.requests.len()), (Some(ModelErrorKind::RateLimited), 4));
    assert!(limited.elapsed < Duration::from_secs(5), "{:?}", limited.elapsed);
    // After 5xx a whole reply is asked for once more.
    let broken = run(vec![status(500); 20]).await;
    assert_eq!((broken.outcome.kind(), broken.requests.len()), (Some(ModelErrorKind::Server), 5));
}

#[tokio::test(start_paused = true)]
async fn demanded_waits_are_kept_while_they_fit() {
    let demand = |value| Scripted { header: Some(("retry-after", value)), ..status(429) };
    let fits = run(vec![demand("50"), demand("40"), text(&[0])]).await;
    assert_eq!((fits.outcome.text.as_str(), fits.requests), ("x", at(&[0, 50, 90])));
    let beyond = run(vec![demand("50"), demand("50"), demand("50"), text(&[0])]).await;
    assert_eq!((beyond.outcome.kind(), beyond.requests), (Some(ModelErrorKind::RateLimited), at(&[0, 50, 100])));
    assert_eq!(beyond.elapsed.as_secs(), 100, "a wait that cannot fit is not begun");
    let unwanted = run(vec![Scripted { header: Some(("retry-after", "61")), ..status(503) }, text(&[0])]).await;
    assert_eq!((unwanted.outcome.kind(), unwanted.requests.len()), (Some(ModelErrorKind::RateLimited), 1));
}

fn chain() -> String {
    let one = |name: &str, next: &str| slot(name, &format!("https://{name}.example"), next);
    [one("story", "fallback = \"b\""), one("b", "fallback = \"c\""), one("c", "fallback = \"story\"")].concat()
}

async fn run_chain(replies: Vec<Scripted>) -> (Outcome, Vec<String>) {
    let run = run_with(&chain(), HttpOptions::default(), request(), replies).await;
    (run.outcome, run.requests.into_iter().map(|(host, _)| host).collect())
}

#[tokio::test(start_paused = true)]
async fn the_next_slot_is_asked_only_when_that_makes_sense() {
    let no_retry = |code| Scripted { header: Some(("x-should-retry", "false")), ..status(code) };
    let (outcome, hosts) = run_chain(vec![no_retry(429), no_retry(429), text(&[0])]).await;
    assert_eq!(
        (outcome.text.as_str(), hosts),
        ("x", ["story", "b", "c"].map(|name| format!("{name}.example")).to_vec())
    );

    for code in [400, 401, 403, 404, 408, 422, 307] {
        let (outcome, hosts) = run_chain(vec![no_retry(code), text(&[0]), text(&[0])]).await;
        let asked_elsewhere = hosts.iter().any(|host| host != "story.example");
        assert!(!asked_elsewhere, "{code}: {hosts:?} {outcome:?}");
    }
    // Never after output, and never after a refusal.
    let (outcome, hosts) = run_chain(vec![text(&[0, 121]), text(&[0])]).await;
    assert_eq!((outcome.kind(), hosts.len()), (Some(ModelErrorKind::Timeout), 1));
    let refusal = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n";
    let refusal = Scripted { body: vec![(Duration::ZERO, refusal.to_owned())], ..status(200) };
    let (outcome, hosts) = run_chain(vec![refusal, text(&[0])]).await;
    assert_eq!((outcome.kind(), hosts.len()), (Some(ModelErrorKind::Refused), 1));
}

#[tokio::test(start_paused = true)]
async fn one_budget_spans_retries_and_slots() {
    let (outcome, hosts) = run_chain(vec![status(500); 30]).await;
    // Four streams and a whole request at the first slot; no retries are left for the others; eight requests in all.
    let count = |name: &str| hosts.iter().filter(|host| host.starts_with(name)).count();
    assert_eq!((count("story"), count("b"), count("c")), (5, 2, 1), "{hosts:?}");
    assert_eq!(outcome.kind(), Some(ModelErrorKind::Server));
    let options = HttpOptions { limits: CallLimits { requests: 5, ..CallLimits::default() }, ..HttpOptions::default() };
    let run = run_with(&chain(), options, request(), vec![status(500); 30]).await;
    assert_eq!((run.outcome.kind(), run.requests.len()), (Some(ModelErrorKind::Budget), 5));
}

#[tokio::test(start_paused = true)]
async fn a_slow_caller_is_not_taken_for_a_slow_provider() {
    let script = Arc::new(Script { replies: Mutex::new([text(&[1, 1, 1])].into()), ..Script::default() });
    let gateway =
        HttpGateway::with_transport(config(&slot("story", "https://a.example", "")), HttpOptions::default(), script);
    let mut stream = gateway.stream(request(), CancellationToken::new());
    let mut events = 0;
    while let Some(event) = stream.next().await {
        event.expect("a good stream");
        events += 1;
        sleep(Duration::from_secs(200)).await;
    }
    assert_eq!(events, 4);
}

#[tokio::test(start_paused = true)]
async fn calls_queue_within_their_budget() {
    let replies = [text(&[35]), text(&[35]), text(&[35]), text(&[35])];
    let script = Arc::new(Script { replies: Mutex::new(replies.into()), ..Script::default() });
    let options = HttpOptions { concurrent: 1, ..HttpOptions::default() };
    let gateway = HttpGateway::with_transport(config(&slot("story", "https://a.example", "")), options, script.clone());
    let start = Instant::now();
    let outcomes = join_all((0..5).map(|_| ask_with(&gateway, request(), CancellationToken::new()))).await;
    let texts: Vec<_> = outcomes.iter().map(|outcome| outcome.text.as_str()).collect();
    assert_eq!(texts, ["x", "x", "x", "", ""]);
    // The fourth had its turn too late to finish, the fifth none: both end with the budget.
    assert!(outcomes[3..].iter().all(|outcome| outcome.kind() == Some(ModelErrorKind::Budget)), "{outcomes:?}");
    assert_eq!(start.elapsed().as_secs(), 120);
    assert_eq!(script.requests.lock().expect("lock").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_stream_is_polled_or_after_it_is_cancelled() {
    let script = Arc::new(Script::default());
    let gateway = HttpGateway::with_transport(
        config(&slot("story", "https://a.example", "")),
        HttpOptions::default(),
        script.clone(),
    );
    let cancel = CancellationToken::new();
    let stream = gateway.stream(request(), cancel.clone());
    sleep(Duration::from_secs(5)).await;
    cancel.cancel();
    let events: Vec<_> = stream.collect().await;
    assert_eq!(events.len(), 1);
    assert!(matches!(&events[0], Err(error) if error.kind == ModelErrorKind::Cancelled));
    assert!(script.requests.lock().expect("lock").is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_waits() {
    let wait = Scripted { header: Some(("retry-after", "50")), ..status(429) };
    let script = Arc::new(Script { replies: Mutex::new([wait].into()), ..Script::default() });
    let gateway = HttpGateway::with_transport(
        config(&slot("story", "https://a.example", "")),
        HttpOptions::default(),
        script.clone(),
    );
    let (cancel, start) = (CancellationToken::new(), Instant::now());
    let (outcome, ()) = tokio::join!(ask_with(&gateway, request(), cancel.clone()), async {
        sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    });
    assert_eq!((outcome.kind(), start.elapsed().as_secs()), (Some(ModelErrorKind::Cancelled), 10));
    assert_eq!(script.requests.lock().expect("lock").len(), 1);
}
