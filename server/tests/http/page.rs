//! The page: files, the start page for places inside it, headers.

use axum::body::Body;
use serde_json::json;

use super::support::{host, request};

#[tokio::test]
async fn files_are_served_with_type_and_cache() {
    let host = host(json!([])).await;
    for (path, kind, cache) in [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/index.html", "text/html; charset=utf-8", "no-cache"),
        ("/play/some-session", "text/html; charset=utf-8", "no-cache"),
        ("/assets/app-1a2b.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        ("/favicon.svg", "image/svg+xml", "no-cache"),
    ] {
        let answer = host.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            (&answer.headers["content-type"], &answer.headers["cache-control"]),
            (&kind.parse().unwrap(), &cache.parse().unwrap())
        );
    }
    for path in ["/missing.js", "/assets/old-0000.js", "/../Cargo.toml", "/assets/..%2findex.html"] {
        assert_eq!(host.get(path).await.refusal(), (404, "file_not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn an_unchanged_file_is_not_sent_again() {
    let host = host(json!([])).await;
    let first = host.get("/favicon.svg").await;
    let mut again = request("GET", "/favicon.svg", Body::empty());
    again.headers_mut().insert("if-none-match", first.headers["etag"].clone());
    let again = host.send(again).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    let head = host.send(request("HEAD", "/favicon.svg", Body::empty())).await;
    assert_eq!(
        (head.status.as_u16(), head.text.as_str(), &head.headers["content-length"]),
        (200, "", &"6".parse().unwrap())
    );
}

#[tokio::test]
async fn every_answer_carries_the_policy() {
    let host = host(json!([])).await;
    for path in ["/", "/missing.js", "/api/health", "/api/nothing"] {
        let headers = host.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers.get("access-control-allow-origin"), None);
    }
    assert_eq!(host.get("/api/health").await.headers["cache-control"], "no-store");
}

/// The frame of web views has a policy of its own, and nothing else has.
///
/// Covers: WEB-1, WEB-3
#[tokio::test]
async fn only_the_frame_of_web_views_may_be_framed() {
    let host = host(json!([])).await;
    for path in ["/plugin-frame.html", "/plugin-frame.html?x=1"] {
        let headers = host.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        for part in ["default-src 'none'", "frame-src 'none'", "connect-src 'none'", "form-action 'none'"] {
            assert!(policy.contains(part), "{path}: {part}");
        }
        assert!(policy.ends_with("frame-ancestors 'self'; sandbox allow-scripts"), "{path}");
        assert_eq!(headers["x-frame-options"], "SAMEORIGIN", "{path}");
    }
    for path in ["/", "/plugin-frame.html/", "/x/plugin-frame.html", "/api/health"] {
        let headers = host.get(path).await.headers;
        assert_eq!(headers["x-frame-options"], "DENY", "{path}");
        assert!(!headers["content-security-policy"].to_str().unwrap().contains("sandbox"), "{path}");
    }
}
