//! The narrow way out: one request, one reply with a body in pieces.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{HeaderMap, StatusCode};

use crate::config::Endpoint;

/// A POST request. Its `Debug` form shows no header values.
pub struct HttpRequest {
    /// Where to; decides whether the connection is encrypted.
    pub endpoint: Endpoint,
    /// Path below the endpoint, from a slash.
    pub path: String,
    /// Headers, the key among them.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "POST {:?} ({} bytes)", self.endpoint, self.body.len())
    }
}

/// The body of a reply. Dropping it closes the connection.
pub type Body = BoxStream<'static, Result<Bytes, TransportError>>;

/// A reply whose body is still to come.
pub struct HttpReply {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Body,
}

impl std::fmt::Debug for HttpReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HTTP reply {}", self.status.as_u16())
    }
}

/// Why there is no reply, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TransportError {
    /// In words, without addresses or secrets.
    pub reason: String,
    /// Was the connection refused or broken, so that another try may succeed?
    pub broken_connection: bool,
    /// Did anything but HTTP come back?
    pub not_http: bool,
    /// May the request have reached the provider?
    pub sent: bool,
}

/// Sends requests. Never follows redirects, never retries.
pub trait Transport: Send + Sync + std::fmt::Debug + 'static {
    /// Sends one request and waits for the head of the reply. Dropping the future gives the request up.
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpReply, TransportError>>;
}
