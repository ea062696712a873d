//! What went wrong with a reply, before it is put into words for people, and the table from status to kind.

use covel_model::ModelErrorKind;
use http::StatusCode;
use serde_json::Value;

use super::label;

/// A failed exchange. `text` may quote the provider; it is redacted and cut when it becomes a `ModelError`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: ModelErrorKind,
    pub(crate) text: String,
    pub(crate) retriable: bool,
    pub(crate) code: Option<String>,
    pub(crate) status: Option<u16>,
}

impl Fault {
    pub(crate) fn new(kind: ModelErrorKind, text: impl Into<String>) -> Self {
        use ModelErrorKind::{Overloaded, RateLimited, Server, Timeout, Unreachable};
        let retriable = matches!(kind, Unreachable | Timeout | RateLimited | Overloaded | Server);
        Self { kind, text: text.into(), retriable, code: None, status: None }
    }

    /// A reply that breaks its protocol.
    pub(crate) fn malformed(text: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Server, text)
    }

    /// A reply that does not end: asking again would only get another.
    pub(crate) fn endless(text: impl Into<String>) -> Self {
        Self { retriable: false, ..Self::new(ModelErrorKind::Server, text) }
    }

    /// The model refused. `reason` is its own text, possibly empty.
    pub(crate) fn refused(reason: &str) -> Self {
        let text = match reason.trim() {
            "" => "the model refused to answer".to_owned(),
            reason => format!("the model refused to answer: {reason}"),
        };
        Self::new(ModelErrorKind::Refused, text)
    }
}

/// The kind of an HTTP status.
fn kind_of(status: u16) -> ModelErrorKind {
    match status {
        401 | 403 => ModelErrorKind::Auth,
        402 => ModelErrorKind::Quota,
        404 => ModelErrorKind::NotFound,
        408 | 504 => ModelErrorKind::Timeout,
        429 => ModelErrorKind::RateLimited,
        503 | 529 => ModelErrorKind::Overloaded,
        300..=499 => ModelErrorKind::BadRequest,
        _ => ModelErrorKind::Server,
    }
}

/// The kind of a provider's own word, where it says more than the status.
fn kind_of_word(word: &str) -> Option<ModelErrorKind> {
    let word = word.to_ascii_lowercase().replace(['-', ' '], "_");
    Some(match word.as_str() {
        "insufficient_quota" | "billing_hard_limit_reached" | "insufficient_balance" | "billing_error" => {
            ModelErrorKind::Quota
        }
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" | "resource_exhausted" => {
            ModelErrorKind::RateLimited
        }
        "overloaded" | "overloaded_error" | "server_overloaded" | "service_unavailable" | "unavailable" => {
            ModelErrorKind::Overloaded
        }
        "invalid_api_key" | "authentication_error" | "permission_error" | "unauthorized" => ModelErrorKind::Auth,
        "model_not_found" | "not_found_error" => ModelErrorKind::NotFound,
        "content_filter" | "content_policy_violation" => ModelErrorKind::Refused,
        "context_length_exceeded" | "invalid_request_error" | "invalid_request" | "bad_request" => {
            ModelErrorKind::BadRequest
        }
        "timeout" | "timeout_error" | "request_timeout" | "gateway_timeout" => ModelErrorKind::Timeout,
        _ => return None,
    })
}

/// What a provider says about its error.
#[derive(Debug, Default)]
pub(crate) struct Said {
    text: String,
    words: Vec<String>,
    /// Status-like number in the body.
    number: Option<u16>,
}

/// The error a JSON document reports, in any of the shapes in use: `{"error": {..}}`, `{"error": ".."}`,
/// `[{"error": ..}]`, `{"object": "error", ..}`.
pub(crate) fn read_error(document: &Value) -> Option<Said> {
    match document {
        Value::Array(items) => items.first().and_then(read_error),
        Value::Object(map) => match map.get("error") {
            Some(Value::Null) | None if map.get("object").and_then(Value::as_str) == Some("error") => {
                Some(said(document))
            }
            Some(Value::Null | Value::Bool(false)) | None => None,
            Some(Value::String(text)) => Some(Said { text: text.clone(), ..said(document) }),
            Some(error) => Some(said(error)),
        },
        _ => None,
    }
}

fn said(error: &Value) -> Said {
    let text = ["message", "detail", "msg"].iter().find_map(|name| error.get(name)).map(|text| match text {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let mut said = Said { text: text.unwrap_or_default(), ..Said::default() };
    for name in ["code", "type", "status"] {
        match error.get(name) {
            Some(Value::String(word)) => match word.parse() {
                Ok(number) => said.number = said.number.or(Some(number)),
                Err(_) => said.words.push(word.clone()),
            },
            Some(Value::Number(number)) => {
                said.number = said.number.or_else(|| number.as_u64().and_then(|number| u16::try_from(number).ok()));
            }
            _ => {}
        }
    }
    said
}

/// A rejection: status and body. The body may be anything.
pub(crate) fn from_status(status: StatusCode, body: &[u8]) -> Fault {
    let document: Option<Value> = serde_json::from_slice(body).ok();
    let said = document.as_ref().and_then(|document| {
        read_error(document).or_else(|| {
            let said = said(document);
            (!said.text.is_empty()).then_some(said)
        })
    });
    // Not cut here: a key at the cut could no longer be recognised.
    let said = said.unwrap_or_else(|| Said { text: String::from_utf8_lossy(body).into_owned(), ..Said::default() });
    let number = status.as_u16();
    let mut kind = kind_of(number);
    for word in &said.words {
        match (kind, kind_of_word(word)) {
            (ModelErrorKind::RateLimited | ModelErrorKind::Auth, Some(ModelErrorKind::Quota)) => {
                kind = ModelErrorKind::Quota;
            }
            (ModelErrorKind::BadRequest, Some(ModelErrorKind::Refused)) => kind = ModelErrorKind::Refused,
            (ModelErrorKind::BadRequest, Some(ModelErrorKind::NotFound)) => kind = ModelErrorKind::NotFound,
            _ => {}
        }
    }
    let what = match number {
        300..=399 => "a redirect, which is never followed; set `baseUrl` to the final address".to_owned(),
        _ => said.text,
    };
    let text = if what.trim().is_empty() { format!("HTTP {number}") } else { format!("HTTP {number}: {what}") };
    let mut fault = Fault::new(kind, text);
    fault.retriable |= matches!(number, 408 | 409);
    fault.status = Some(number);
    fault.code = said.words.iter().find_map(|word| label(word));
    fault
}

/// An error reported inside a reply that began with status 200.
pub(crate) fn from_error_body(said: Said) -> Fault {
    let by_word = said.words.iter().find_map(|word| kind_of_word(word));
    let by_number = said.number.filter(|number| (400..600).contains(number)).map(kind_of);
    let kind = by_word.or(by_number).unwrap_or(ModelErrorKind::Server);
    let text = match said.text.trim() {
        "" => "the provider reported an error without a message".to_owned(),
        text => format!("the provider reported an error: {text}"),
    };
    let mut fault = Fault::new(kind, text);
    fault.code = said.words.iter().find_map(|word| label(word)).or(said.number.map(|number| number.to_string()));
    fault
}

#[cfg(test)]
mod tests {
    use ModelErrorKind::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_map_to_kinds() {
        for (status, kind, retriable) in [
            (301, BadRequest, false),
            (400, BadRequest, false),
            (401, Auth, false),
            (402, Quota, false),
            (403, Auth, false),
            (404, NotFound, false),
            (408, Timeout, true),
            (409, BadRequest, true),
            (422, BadRequest, false),
            (429, RateLimited, true),
            (500, Server, true),
            (502, Server, true),
            (503, Overloaded, true),
            (504, Timeout, true),
            (529, Overloaded, true),
            (599, Server, true),
        ] {
            let fault = from_status(StatusCode::from_u16(status).expect("status"), b"");
            assert_eq!((fault.kind, fault.retriable, fault.status), (kind, retriable, Some(status)));
        }
    }

    #[test]
    fn every_shape_of_error_body_is_read() {
        for body in [
            json!({"error": {"message": "no", "type": "x"}}),
            json!({"error": "no"}),
            json!([{"error": {"message": "no", "code": 400}}]),
            json!({"object": "error", "message": "no", "code": 400}),
            json!({"detail": "no"}),
            json!({"message": "no"}),
        ] {
            let fault = from_status(StatusCode::BAD_REQUEST, body.to_string().as_bytes());
            assert_eq!(fault.text, "HTTP 400: no", "{body}");
        }
        assert!(read_error(&json!({"error": null, "choices": []})).is_none());
        assert_eq!(from_status(StatusCode::BAD_GATEWAY, b"<html>oops").text, "HTTP 502: <html>oops");
    }

    #[test]
    fn providers_words_refine_the_kind() {
        let quota = json!({"error": {"message": "no money", "code": "insufficient_quota"}}).to_string();
        let fault = from_status(StatusCode::TOO_MANY_REQUESTS, quota.as_bytes());
        assert_eq!((fault.kind, fault.retriable, fault.code.as_deref()), (Quota, false, Some("insufficient_quota")));
        let filter = json!({"error": {"message": "no", "code": "content_filter"}}).to_string();
        assert_eq!(from_status(StatusCode::BAD_REQUEST, filter.as_bytes()).kind, Refused);
        for (body, kind) in [
            (json!({"error": {"message": "m", "code": 429}}), RateLimited),
            (json!({"error": {"message": "m", "code": "503"}}), Overloaded),
            (json!({"error": {"message": "m", "type": "overloaded_error"}}), Overloaded),
            (json!({"error": {"message": "m", "code": 7}}), Server),
            (json!({"error": {}}), Server),
            (json!({"error": 3}), Server),
        ] {
            assert_eq!(from_error_body(read_error(&body).expect("an error")).kind, kind, "{body}");
        }
    }
}
