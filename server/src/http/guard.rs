//! What every request must pass: a name this server knows, a page of its own when it writes, a server that is not
//! stopping. And what every answer carries: headers that keep a browser from being used against it.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{ApiError, AppState};

/// Names in a `Host` header under which the server answers.
///
/// Against DNS rebinding: a hostile page can point its own name at this machine, but the browser then sends that name.
/// IP addresses and `localhost` cannot be taken over that way, so they always pass; other names must be listed.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts {
    names: Vec<String>,
}

impl AllowedHosts {
    /// `localhost`, IP addresses, and these names (without port; letter case does not matter).
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    fn accepts(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.names.contains(&name)
    }
}

pub(super) async fn check(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let api = request.uri().path() == "/api" || request.uri().path().starts_with("/api/");
    let health = request.uri().path() == "/api/health";
    let kind = match request.uri().path() {
        FRAME_PATH => Kind::Frame,
        _ if api => Kind::Api,
        _ => Kind::Page,
    };
    let refusal = match refuse(&state, &request) {
        Some(refusal) => Some(refusal),
        None if api && !health && state.is_closing() => {
            Some(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_shutting_down", "the server is stopping"))
        }
        None => None,
    };
    let mut response = match refusal {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    secure(response.headers_mut(), kind);
    response
}

fn refuse(state: &AppState, request: &Request) -> Option<ApiError> {
    let host = host_of(request);
    if !host.is_some_and(|host| state.hosts.accepts(host)) {
        return Some(ApiError::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            "this server is not known under that name; use its IP address or localhost, or list the name in its configuration",
        ));
    }
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !safe && is_foreign(request.headers(), host) {
        return Some(ApiError::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            "only this server's own page may write from a browser",
        ));
    }
    None
}

fn host_of(request: &Request) -> Option<&str> {
    // A second Host header is a smuggling attempt or a broken client.
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => request.uri().authority().map(Authority::as_str),
        _ => None,
    }
}

/// Does the request come from another site's page? Clients other than browsers send no `Origin` and pass.
fn is_foreign(headers: &HeaderMap, host: Option<&str>) -> bool {
    let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site");
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let foreign = match (origins.next(), origins.next()) {
        (None, _) => false,
        (Some(origin), None) => {
            let authority = origin
                .to_str()
                .ok()
                .and_then(|origin| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")));
            match (authority, host) {
                (Some(authority), Some(host)) => !authority.eq_ignore_ascii_case(host),
                _ => true,
            }
        }
        _ => true,
    };
    foreign || cross_site
}

/// Styles may be inline because components set them at run time; scripts never.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
     font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
     form-action 'none'; object-src 'none'";

/// The outer frame of web views. Exactly this path has a policy of its own. WEB-1
const FRAME_PATH: &str = "/plugin-frame.html";

/// What a package's HTML may do: run and draw. No network, no form, no frame, no origin; only the page may show it. The file
/// says the same again but for the last two, which only a header can say.
const FRAME_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
     frame-src 'none'; connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; \
     sandbox allow-scripts";

/// What a response is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Api,
    Frame,
}

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

fn secure(headers: &mut HeaderMap, kind: Kind) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if kind == Kind::Frame {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FRAME_POLICY));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    }
    if kind == Kind::Api && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy in the file is the one in the header, in case the file is served by something else.
    #[test]
    fn the_frame_of_web_views_carries_its_policy() {
        let file = include_str!("../../web/public/plugin-frame.html");
        let written = file.split("content=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let rights = FRAME_POLICY.split("; frame-ancestors").next().unwrap();
        assert_eq!(written, rights);
    }

    #[test]
    fn hosts_that_cannot_be_rebound_pass_and_others_must_be_listed() {
        let hosts = AllowedHosts::new(["Tales.example".to_owned()]);
        for host in ["localhost", "localhost:3001", "127.0.0.1:3001", "[::1]:3001", "192.168.1.5", "tales.EXAMPLE:80"] {
            assert!(hosts.accepts(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost", "", "a b"] {
            assert!(!hosts.accepts(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_foreign_unless_it_is_the_host_itself() {
        let foreign = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            is_foreign(&headers, Some("localhost:3001"))
        };
        assert!(!foreign("http://localhost:3001"));
        for origin in ["http://localhost:3002", "https://evil.example", "null", "http://localhost:3001/", "file://"] {
            assert!(foreign(origin), "{origin}");
        }
        assert!(!is_foreign(&HeaderMap::new(), Some("localhost:3001")));
    }
}
