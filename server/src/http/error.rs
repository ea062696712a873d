//! Refusals: `{error, code, details?}`. One table maps engine errors to status and code.

use std::borrow::Cow;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use covel_exec::ExecError;
use covel_store::StoreError;
use serde_json::{Value, json};

/// A refused request.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// Stable snake_case code.
    pub code: Cow<'static, str>,
    /// One sentence.
    pub message: String,
    /// Anything a client can act on.
    pub details: Option<Box<Value>>,
}

impl ApiError {
    /// A refusal.
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), details: None }
    }
    /// 400.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }
    /// 404.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }
    /// 409, another turn runs.
    pub fn busy(session: &str) -> Self {
        ExecError::SessionBusy(session.to_owned()).into()
    }
    /// Adds details.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }
    /// The body.
    pub fn body(&self) -> Value {
        let mut body = json!({ "error": self.message, "code": self.code });
        if let Some(details) = &self.details {
            body["details"] = (**details).clone();
        }
        body
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response =
            (self.status, [(header::CONTENT_TYPE, "application/json")], self.body().to_string()).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The table: which status an engine error has. The code is the engine's own with `_` for `-`, but for two that the
/// HTTP surface names differently.
fn status_of(error: &ExecError) -> (StatusCode, Option<&'static str>) {
    use StatusCode as S;
    match error {
        ExecError::SessionNotFound(_) => (S::NOT_FOUND, None),
        ExecError::WorldNotFound(_) | ExecError::PluginNotFound(_) => (S::NOT_FOUND, None),
        ExecError::SeatNotFound(_) => (S::NOT_FOUND, None),
        ExecError::RuntimeNotActive(_) | ExecError::CommandNotActive(_) => (S::NOT_FOUND, None),
        ExecError::PluginNotActive(_) | ExecError::JobNotFound(_) => (S::NOT_FOUND, None),
        ExecError::JobNotCancellable { .. } | ExecError::JobNotRetryable { .. } => (S::CONFLICT, None),
        ExecError::BackgroundQueueFull { .. } => (S::TOO_MANY_REQUESTS, None),
        ExecError::UiEvent { code, .. } if code == "event-not-declared" => (S::NOT_FOUND, None),
        ExecError::UiEvent { .. } => (S::BAD_REQUEST, None),
        ExecError::SessionExists(_) => (S::CONFLICT, None),
        ExecError::SessionBusy(_) => (S::CONFLICT, None),
        ExecError::SessionNotActive { status, .. } if status == "ended" => (S::CONFLICT, Some("session_ended")),
        ExecError::SessionNotActive { .. } => (S::CONFLICT, None),
        ExecError::Activation { .. } => (S::BAD_REQUEST, None),
        ExecError::Command { .. } | ExecError::Invalid { .. } | ExecError::Refused { .. } => (S::BAD_REQUEST, None),
        ExecError::Package { .. } | ExecError::Conflict { .. } => (S::CONFLICT, None),
        ExecError::NotFound { .. } => (S::NOT_FOUND, None),
        ExecError::RateLimited { .. } => (S::TOO_MANY_REQUESTS, None),
        ExecError::Closing => (S::SERVICE_UNAVAILABLE, Some("server_shutting_down")),
        ExecError::Store(store) => (status_of_store(store), None),
        ExecError::Internal(_) => (S::INTERNAL_SERVER_ERROR, None),
    }
}

fn status_of_store(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Busy { .. } | StoreError::MapBusy { .. } | StoreError::ReadersFull { .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        StoreError::DiskFull { .. } | StoreError::MapFull { .. } => StatusCode::INSUFFICIENT_STORAGE,
        StoreError::Closed => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<ExecError> for ApiError {
    fn from(error: ExecError) -> Self {
        let (status, code) = status_of(&error);
        let code = code.map_or_else(|| Cow::Owned(error.code().replace('-', "_")), Cow::Borrowed);
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            // Paths and system messages are for the log, not for whoever asks.
            tracing::error!(code = %code, "{error}");
            return Self::new(status, code, "the server could not do this; its log says why");
        }
        let details = match &error {
            ExecError::Invalid { field, .. } => Some(Box::new(json!({ "field": field }))),
            ExecError::SessionNotActive { status, .. } => Some(Box::new(json!({ "status": status }))),
            _ => None,
        };
        Self { status, code, message: error.to_string(), details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_errors_have_their_status_and_a_snake_case_code() {
        let cases: Vec<(ExecError, u16, &str)> = vec![
            (ExecError::SessionNotFound("s".into()), 404, "session_not_found"),
            (ExecError::SessionExists("s".into()), 409, "session_already_exists"),
            (ExecError::SessionBusy("s".into()), 409, "session_busy"),
            (ExecError::SessionNotActive { id: "s".into(), status: "paused".into() }, 409, "session_not_active"),
            (ExecError::SessionNotActive { id: "s".into(), status: "ended".into() }, 409, "session_ended"),
            (ExecError::WorldNotFound("w".into()), 404, "world_not_found"),
            (ExecError::PluginNotFound("p".into()), 404, "plugin_not_found"),
            (
                ExecError::Activation { code: "world-requirement-unmet".into(), message: "m".into() },
                400,
                "world_requirement_unmet",
            ),
            (ExecError::CommandNotActive("c".into()), 404, "command_not_active"),
            (ExecError::SeatNotFound("x".into()), 404, "seat_not_found"),
            (ExecError::Refused { code: "character-invalid".into(), message: "m".into() }, 400, "character_invalid"),
            (ExecError::Closing, 503, "server_shutting_down"),
            (ExecError::Store(StoreError::Closed), 503, "store_closed"),
            (ExecError::Internal("secret path".into()), 500, "internal"),
        ];
        for (error, status, code) in cases {
            let text = error.to_string();
            let api = ApiError::from(error);
            assert_eq!((api.status.as_u16(), api.code.as_ref()), (status, code), "{text}");
        }
        let hidden = ApiError::from(ExecError::Internal("secret path".into()));
        assert!(!hidden.message.contains("secret"));
    }
}
