//! The page: embedded files, with the start page for every path the page itself routes.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{ApiError, AppState};

/// The start page's file.
const INDEX: &str = "index.html";
/// Files below this folder carry a hash in their name and never change.
const HASHED: &str = "assets/";

struct File {
    bytes: &'static [u8],
    tag: HeaderValue,
}

/// The files of the page by path.
#[derive(Default)]
pub struct Page {
    files: BTreeMap<&'static str, File>,
}

impl Page {
    /// A page of these files.
    pub fn new(files: &[(&'static str, &'static [u8])]) -> Self {
        let file = |bytes: &'static [u8]| {
            let tag = format!("\"{}\"", &blake3::hash(bytes).to_hex()[..32]);
            // Hex digits and quotes are always a header value.
            File { bytes, tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")) }
        };
        Self { files: files.iter().map(|(path, bytes)| (*path, file(bytes))).collect() }
    }
}

pub(super) async fn serve(State(state): State<AppState>, request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("{} does not take {}", request.uri().path(), request.method()),
        )
        .into_response();
    }
    let path = request.uri().path().trim_start_matches('/');
    let files = &state.page.files;
    // A path whose last part has a dot names a file; any other is a place inside the page.
    let names_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
    let found = match files.get_key_value(path) {
        Some(found) => Some(found),
        None if names_file => None,
        None => files.get_key_value(INDEX),
    };
    let Some((path, file)) = found else {
        return ApiError::not_found("file_not_found", format!("there is no file {}", request.uri().path()))
            .into_response();
    };
    let cache = if path.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let known = request.headers().get(header::IF_NONE_MATCH).is_some_and(|tag| *tag == file.tag);
    let (status, body) = if known {
        (StatusCode::NOT_MODIFIED, Body::empty())
    } else if *request.method() == Method::HEAD {
        (StatusCode::OK, Body::empty())
    } else {
        (StatusCode::OK, Body::from(file.bytes))
    };
    let mut response = (
        status,
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type(path))),
            (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
            (header::ETAG, file.tag.clone()),
        ],
        body,
    )
        .into_response();
    if *request.method() == Method::HEAD && !known {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(file.bytes.len()));
    }
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
