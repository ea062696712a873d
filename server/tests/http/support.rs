//! A server over a temporary store, scripted model replies and two small packages.

use std::{path::Path, sync::Arc};

use axum::{
    Router,
    body::{Body, BodyDataStream},
    http::{HeaderMap, HeaderValue, Request, StatusCode},
};
use covel_exec::{Engine, EngineOptions, FixedAmbient, ScriptedGateway};
use covel_server::{
    http::{AllowedHosts, AppState, Page, router},
    load::{Sources, load},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Files of a small page.
pub(crate) const PAGE: &[(&str, &[u8])] = &[
    ("index.html", b"<!doctype html><title>start</title>"),
    ("assets/app-1a2b.js", b"export {}"),
    ("favicon.svg", b"<svg/>"),
];

pub(crate) struct Host {
    pub(crate) state: AppState,
    pub(crate) router: Router,
    _folder: tempfile::TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
    /// The refusal's status and code, after checking that it has the one body shape.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert!(body["error"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        let code = body["code"].as_str().unwrap_or_else(|| panic!("no code: {body}")).to_owned();
        assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
        (self.status.as_u16(), code)
    }
    pub(crate) fn frames(&self) -> Vec<Value> {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        frames(&self.text)
    }
}

/// Frames of a data-only stream.
pub(crate) fn frames(text: &str) -> Vec<Value> {
    text.split("\n\n")
        .filter(|part| !part.is_empty() && !part.starts_with(':'))
        .map(|part| serde_json::from_str(part.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

pub(crate) fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A server whose models say these replies in order.
pub(crate) async fn host(replies: Value) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let gateway = ScriptedGateway::parse(&replies.to_string()).unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(gateway));
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    let sources = Sources {
        plugins: vec![fixtures().join("plugins")],
        worlds: vec![fixtures().join("worlds")],
        ..Sources::default()
    };
    let loaded = load(&sources).unwrap().strict().unwrap();
    for state in engine.publish(loaded.packages()).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    for world in &loaded.worlds {
        engine.add_world(world.as_ref().clone());
    }
    let hosts = AllowedHosts::new(Vec::new());
    let state = AppState::new(engine, Arc::new(FixedAmbient::default()), hosts, Page::new(PAGE), Vec::new());
    Host { router: router(state.clone()), state, _folder: folder }
}

impl Host {
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 16 * 1024 * 1024).await.unwrap();
        Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// A stream that is read piece by piece.
    pub(crate) async fn open(&self, request: Request<Body>) -> Stream {
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        Stream { body: response.into_body().into_data_stream(), text: String::new() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path, Body::empty())).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(request("POST", path, Body::from(body.to_string()))).await
    }

    /// A session of the test world.
    pub(crate) async fn session(&self, id: &str) {
        let answer = self.post("/api/sessions", &json!({ "id": id, "worldId": "yard" })).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    }

    pub(crate) async fn act(&self, session: &str, kind: &str, payload: Value) -> Answer {
        self.post("/api/actions", &action(session, kind, payload)).await
    }
}

pub(crate) fn action(session: &str, kind: &str, payload: Value) -> Value {
    json!({ "requestId": "r1", "type": kind, "sessionId": session, "payload": payload })
}

pub(crate) fn request(method: &str, path: &str, body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).body(body).unwrap();
    request.headers_mut().insert("host", HeaderValue::from_static("localhost:3001"));
    request
}

/// An open stream.
pub(crate) struct Stream {
    body: BodyDataStream,
    text: String,
}

/// A named event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Stream {
    /// The next block up to an empty line, or nothing at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                let block = std::mem::replace(&mut self.text, rest);
                return Some(block.trim_end().to_owned());
            }
            let piece = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next frame of a data-only stream.
    pub(crate) async fn frame(&mut self) -> Option<Value> {
        let block = self.block().await?;
        Some(serde_json::from_str(block.strip_prefix("data: ").unwrap()).unwrap())
    }

    /// Frames until one of a type, that one included.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame().await {
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
        panic!("the stream ended before {kind}: {frames:?}");
    }

    /// The next named event.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        let block = self.block().await?;
        let mut event = Event { name: String::new(), id: None, data: Value::Null };
        for line in block.lines() {
            match line.split_once(": ").unwrap() {
                ("event", name) => event.name = name.to_owned(),
                ("id", id) => event.id = Some(id.to_owned()),
                ("data", data) => event.data = serde_json::from_str(data).unwrap(),
                (other, _) => panic!("unexpected field {other}"),
            }
        }
        Some(event)
    }
}
