//! Reading requests and writing answers. Every input is hostile; every refusal has the one body shape.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Request, rejection::BytesRejection},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::error::ApiError;
use crate::limits;

/// 200 with a JSON body.
pub(super) fn ok<T: Serialize>(value: &T) -> Response {
    with_status(StatusCode::OK, value)
}

/// 200 with `{items}`.
pub(super) fn items<T: Serialize>(items: &[T]) -> Response {
    #[derive(Serialize)]
    struct Items<'a, T> {
        items: &'a [T],
    }
    ok(&Items { items })
}

/// A JSON body.
pub(super) fn with_status<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => {
            tracing::error!("an answer has no JSON form: {error}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer has no JSON form").into_response()
        }
    }
}

/// A request body that is one JSON object of a known shape; unknown fields are refused by the shape itself.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let value = Value::Object(read_object(request, state).await?);
        serde_json::from_value(value)
            .map(Self)
            .map_err(|error| ApiError::bad_request("invalid_request", error.to_string()))
    }
}

/// A request body that is absent or a JSON object; the object is not looked at.
pub(super) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = read_bytes(request, state).await?;
        if !bytes.is_empty() {
            parse_object(&bytes)?;
        }
        Ok(Self)
    }
}

/// The raw object of a body, for requests whose shape depends on a field.
pub(super) struct ObjectBody(pub(super) serde_json::Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for ObjectBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        read_object(request, state).await.map(Self)
    }
}

async fn read_object<S: Send + Sync>(request: Request, state: &S) -> Result<serde_json::Map<String, Value>, ApiError> {
    parse_object(&read_bytes(request, state).await?)
}

fn parse_object(bytes: &[u8]) -> Result<serde_json::Map<String, Value>, ApiError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => {
            Err(ApiError::bad_request("invalid_body", format!("the body is {}; send a JSON object", kind_of(&other))))
        }
        Err(error) => Err(ApiError::bad_request("invalid_json", format!("the body is not JSON: {error}"))
            .with(json!({ "line": error.line(), "column": error.column() }))),
    }
}

async fn read_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > limits::MAX_BODY_BYTES as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(limits::BODY_TIMEOUT, Bytes::from_request(request, state));
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(rejection)) => Err(rejected(&rejection)),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body did not arrive in time")),
    }
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("the body is larger than {} bytes", limits::MAX_BODY_BYTES),
    )
}

fn rejected(rejection: &BytesRejection) -> ApiError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return too_large();
    }
    ApiError::bad_request("invalid_body", "the body could not be read")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Path parameters; a path that is not UTF-8 is refused.
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|path| Self(path.0)).map_err(|_| ApiError::bad_request("invalid_path", "the path is not valid UTF-8"))
    }
}

/// Query parameters; unknown ones are ignored, as browsers and proxies add their own.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|query| Self(query.0))
            .map_err(|rejection| ApiError::bad_request("invalid_query", rejection.body_text()))
    }
}

/// Checks a `limit` parameter.
pub(super) fn list_limit(limit: Option<usize>) -> Result<usize, ApiError> {
    match limit {
        None => Ok(limits::DEFAULT_LIST),
        Some(limit) if (1..=limits::MAX_LIST).contains(&limit) => Ok(limit),
        Some(limit) => Err(ApiError::bad_request(
            "invalid_query",
            format!("limit is {limit}; accepted: 1 to {}", limits::MAX_LIST),
        )),
    }
}
