//! Every route with bad input: a clear coded refusal, and nothing changed.

use axum::body::Body;
use serde_json::json;

use super::support::{action, host, request};

/// Every route that reads a body.
const WRITES: [(&str, &str); 4] = [
    ("POST", "/api/sessions"),
    ("PATCH", "/api/sessions/s"),
    ("POST", "/api/sessions/s/abort"),
    ("POST", "/api/actions"),
];

#[tokio::test]
async fn bodies_that_are_no_json_object_are_refused_everywhere() {
    let host = host(json!([])).await;
    host.session("s").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies: [(&[u8], &str); 10] = [
        (b"{", "invalid_json"),
        (b"{\"a\":}", "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b"{} {}", "invalid_json"),
        (deep.as_bytes(), "invalid_json"),
        (b"null", "invalid_body"),
        (b"[]", "invalid_body"),
        (b"3", "invalid_body"),
        (b"\"text\"", "invalid_body"),
        (b"true", "invalid_body"),
    ];
    for (method, path) in WRITES {
        for (body, code) in bodies {
            let answer = host.send(request(method, path, Body::from(body.to_vec()))).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(20)]).into_owned();
            assert_eq!(answer.refusal(), (400, code.to_owned()), "{method} {path} {shown}");
        }
    }
    assert_eq!(host.get("/api/sessions").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn fields_that_are_unknown_or_of_another_type_are_named() {
    let host = host(json!([])).await;
    host.session("s").await;
    let cases = [
        ("POST", "/api/sessions", json!({ "wrold": "yard" }), "wrold"),
        ("POST", "/api/sessions", json!({ "worldId": 3 }), "invalid type"),
        ("POST", "/api/sessions", json!({ "plugins": "teller" }), "invalid type"),
        ("POST", "/api/sessions", json!({ "settings": { "counter": 3 } }), "invalid type"),
        ("PATCH", "/api/sessions/s", json!({ "status": "gone" }), "gone"),
        ("PATCH", "/api/sessions/s", json!({}), "status"),
        ("PATCH", "/api/sessions/s", json!({ "status": "paused", "phase": "playing" }), "phase"),
    ];
    for (method, path, body, part) in cases {
        let answer = host.send(request(method, path, Body::from(body.to_string()))).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{body}");
        assert!(answer.text.contains(part), "{}", answer.text);
    }
}

#[tokio::test]
async fn actions_are_checked_before_anything_runs() {
    let host = host(json!([])).await;
    host.session("s").await;
    let long = "x".repeat(100_001);
    let cases = [
        json!({}),
        json!({ "requestId": "r", "type": "send_message", "sessionId": "s" }),
        json!({ "requestId": "r", "type": "send_message", "sessionId": "s", "payload": [] }),
        json!({ "requestId": "r", "type": "send_message", "sessionId": "s", "payload": { "content": "a" }, "locale": "en" }),
        json!({ "requestId": 3, "type": "send_message", "sessionId": "s", "payload": { "content": "a" } }),
        json!({ "requestId": "", "type": "send_message", "sessionId": "s", "payload": { "content": "a" } }),
        json!({ "requestId": "r".repeat(200), "type": "send_message", "sessionId": "s", "payload": { "content": "a" } }),
        action("s", "send_mesage", json!({ "content": "a" })),
        action("s", "send_message", json!({})),
        action("s", "send_message", json!({ "content": 3 })),
        action("s", "send_message", json!({ "content": " \n" })),
        action("s", "send_message", json!({ "content": long })),
        action("s", "send_message", json!({ "content": "a", "model": "b" })),
        action("s", "start_session", json!({ "content": "a" })),
        action("s", "execute_command", json!({ "command": "" })),
        action("s", "execute_command", json!({ "content": "/add 1" })),
    ];
    for body in cases {
        let answer = host.post("/api/actions", &body).await;
        assert_eq!(answer.refusal(), (400, "invalid_action_request".to_owned()), "{:.200}", body.to_string());
    }
    for (command, refusal) in [
        ("/nothing", (404, "command_not_active".to_owned())),
        ("/add", (400, "command_invalid".to_owned())),
        ("/add six", (400, "command_invalid".to_owned())),
    ] {
        let answer = host.act("s", "execute_command", json!({ "command": command })).await;
        assert_eq!(answer.refusal(), refusal, "{command}");
    }
    assert_eq!(host.get("/api/sessions/s/turns").await.json()["items"], json!([]));
}

#[tokio::test]
async fn player_settings_in_a_header_may_only_repeat_the_session_s() {
    let host = host(json!([{ "content": "Nothing." }])).await;
    let new = json!({ "id": "s", "worldId": "yard", "settings": { "counter": { "step": 3 } } });
    assert_eq!(host.post("/api/sessions", &new).await.status, 201);
    let act = |settings: &str| {
        let body = action("s", "send_message", json!({ "content": "a" })).to_string();
        let mut request = request("POST", "/api/actions", Body::from(body));
        request.headers_mut().insert("x-plugin-user-settings", settings.parse().unwrap());
        request
    };
    for (header, code) in [
        ("***", "invalid_action_request"),
        ("bnVsbA==", "invalid_action_request"),                          // null
        ("eyJjb3VudGVyIjozfQ==", "invalid_action_request"),              // {"counter":3}
        ("eyJjb3VudGVyIjp7InN0ZXAiOjR9fQ==", "settings_not_changeable"), // {"counter":{"step":4}}
    ] {
        assert_eq!(host.send(act(header)).await.refusal(), (400, code.to_owned()), "{header}");
    }
    // {"counter":{"step":3}}
    let frames = host.send(act("eyJjb3VudGVyIjp7InN0ZXAiOjN9fQ==")).await.frames();
    assert_eq!(frames.last().unwrap()["payload"]["committed"], true);
    assert_eq!(host.get("/api/sessions/s/plugin-data/counter/counts/turns").await.json()["value"]["n"], 3);
}

#[tokio::test]
async fn unknown_sessions_worlds_plugins_and_routes_are_404() {
    let host = host(json!([])).await;
    let session = "session_not_found";
    let cases = [
        ("GET", "/api/sessions/none", session),
        ("DELETE", "/api/sessions/none", session),
        ("GET", "/api/sessions/none/messages", session),
        ("GET", "/api/sessions/none/turns", session),
        ("GET", "/api/sessions/none/plan", session),
        ("GET", "/api/sessions/none/plugins", session),
        ("GET", "/api/sessions/none/execution", session),
        ("POST", "/api/sessions/none/abort", session),
        ("GET", "/api/sessions/none/plugin-data", session),
        ("GET", "/api/sessions/none/plugin-data/p", session),
        ("GET", "/api/sessions/none/plugin-data/p/n", session),
        ("GET", "/api/sessions/none/plugin-data/p/n/k", session),
        ("GET", "/api/ui-specs?sessionId=none", session),
        ("GET", "/api/events/stream?sessionId=none", session),
        ("GET", "/api/worlds/none", "world_not_found"),
        ("GET", "/api/plugins/none", "plugin_not_found"),
        ("GET", "/api/nothing", "route_not_found"),
        ("GET", "/api", "route_not_found"),
        ("GET", "/api/sessions/s/nothing", "route_not_found"),
    ];
    for (method, path, code) in cases {
        assert_eq!(host.send(request(method, path, Body::empty())).await.refusal(), (404, code.to_owned()), "{path}");
    }
    let patch = host.send(request("PATCH", "/api/sessions/none", r#"{"status":"ended"}"#.into())).await;
    assert_eq!(patch.refusal(), (404, session.to_owned()));
    let act = host.act("none", "send_message", json!({ "content": "a" })).await;
    assert_eq!(act.refusal(), (404, session.to_owned()));
    for (body, code) in [
        (json!({ "worldId": "none" }), "world_not_found"),
        (json!({ "worldId": "yard", "plugins": ["none"] }), "plugin_not_found"),
    ] {
        assert_eq!(host.post("/api/sessions", &body).await.refusal(), (404, code.to_owned()));
    }
}

#[tokio::test]
async fn sessions_that_cannot_be_are_refused() {
    let host = host(json!([])).await;
    host.session("s").await;
    let taken = host.post("/api/sessions", &json!({ "id": "s" })).await;
    assert_eq!(taken.refusal(), (409, "session_already_exists".to_owned()));
    for id in ["", "../up", "a b", "ä", &"x".repeat(200)] {
        let answer = host.post("/api/sessions", &json!({ "id": id })).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{id}");
        assert_eq!(answer.json()["details"]["field"], "id");
    }
    let nobody = host.post("/api/sessions", &json!({ "plugins": [] })).await;
    assert_eq!(nobody.refusal(), (400, "no_active_plugins".to_owned()));
    let many: Vec<String> = (0..501).map(|n| format!("p{n}")).collect();
    assert_eq!(host.post("/api/sessions", &json!({ "plugins": many })).await.refusal().0, 400);
    assert_eq!(host.get("/api/sessions").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn bad_queries_and_paths_are_400() {
    let host = host(json!([])).await;
    host.session("s").await;
    for path in [
        "/api/sessions/s/messages?limit=0",
        "/api/sessions/s/messages?limit=501",
        "/api/sessions/s/messages?limit=many",
        "/api/sessions/s/turns?limit=-1",
        "/api/events/stream",
        "/api/events/stream?sessionId=",
    ] {
        assert_eq!(host.get(path).await.refusal(), (400, "invalid_query".to_owned()), "{path}");
    }
    assert_eq!(host.get("/api/sessions/%ff/messages").await.refusal(), (400, "invalid_path".to_owned()));
}

#[tokio::test]
async fn wrong_methods_are_405() {
    let host = host(json!([])).await;
    for (method, path) in [
        ("GET", "/api/actions"),
        ("PUT", "/api/sessions"),
        ("POST", "/api/health"),
        ("POST", "/"),
        ("DELETE", "/index.html"),
    ] {
        let answer = host.send(request(method, path, Body::empty())).await;
        assert_eq!(answer.refusal(), (405, "method_not_allowed".to_owned()), "{method} {path}");
    }
}

#[tokio::test]
async fn large_bodies_are_413_declared_or_not() {
    let host = host(json!([])).await;
    host.session("s").await;
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024));
    for (method, path) in WRITES {
        let mut declared = request(method, path, Body::from(large.clone()));
        declared.headers_mut().insert("content-length", large.len().into());
        assert_eq!(host.send(declared).await.refusal(), (413, "body_too_large".to_owned()), "{path}");
        let pieces = large.clone().into_bytes();
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
            pieces.chunks(4096).map(|piece| Ok(piece.to_vec())).collect();
        let undeclared = request(method, path, Body::from_stream(futures_util::stream::iter(pieces)));
        assert_eq!(host.send(undeclared).await.refusal(), (413, "body_too_large".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn other_sites_may_not_write_and_other_names_may_not_ask() {
    let host = host(json!([])).await;
    let with = |method: &str, headers: &[(&'static str, &'static str)]| {
        let mut request = request(method, "/api/sessions", Body::from("{}"));
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request
    };
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://localhost:3002")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(
            host.send(with("POST", headers)).await.refusal(),
            (403, "origin_not_allowed".to_owned()),
            "{headers:?}"
        );
    }
    assert_eq!(
        host.send(with("GET", &[("origin", "https://evil.example")])).await.status,
        200,
        "reading is not writing"
    );
    let own = with("POST", &[("origin", "http://localhost:3001"), ("sec-fetch-site", "same-origin")]);
    assert_eq!(host.send(own).await.status, 201);

    let rebound = with("GET", &[("host", "evil.example")]);
    assert_eq!(host.send(rebound).await.refusal(), (403, "host_not_allowed".to_owned()));
    let mut nameless = with("GET", &[]);
    nameless.headers_mut().remove("host");
    assert_eq!(host.send(nameless).await.refusal(), (403, "host_not_allowed".to_owned()));
    let mut two = with("GET", &[]);
    two.headers_mut().append("host", "localhost".parse().unwrap());
    assert_eq!(host.send(two).await.refusal(), (403, "host_not_allowed".to_owned()));
    assert_eq!(host.get("/api/sessions").await.json()["items"].as_array().unwrap().len(), 1);
}
