//! The HTTP client: hyper, rustls with ring, the system's root certificates.
//!
//! HTTP/1.1 only: each running reply has its own connection, so dropping a reply really ends it at the provider.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;

use super::transport::{HttpReply, HttpRequest, Transport, TransportError};

const POOL_IDLE: Duration = Duration::from_secs(30);
const POOL_PER_HOST: usize = 8;
/// Most bytes of a reply's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

type Plain = Client<HttpConnector, Full<Bytes>>;
type Encrypted = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The one HTTP client. Proxies from the environment are not used.
#[derive(Clone)]
pub struct HttpTransport {
    plain: Plain,
    /// Made at first use: reading the system's certificates takes milliseconds that a local model does not need.
    encrypted: Arc<OnceCell<Encrypted>>,
    connect: Duration,
    extra_roots: Arc<Vec<Vec<u8>>>,
}

impl std::fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpTransport")
    }
}

impl HttpTransport {
    /// A client that waits this long for a connection and trusts these certificates (DER) besides the system's.
    pub fn new(connect: Duration, extra_roots: Vec<Vec<u8>>) -> Self {
        Self {
            plain: builder().build(connector(connect)),
            encrypted: Arc::new(OnceCell::new()),
            connect,
            extra_roots: Arc::new(extra_roots),
        }
    }

    async fn encrypted(&self) -> Result<Encrypted, TransportError> {
        let (connect, extra) = (self.connect, self.extra_roots.clone());
        let client = self.encrypted.get_or_try_init(async || {
            let tls = tokio::task::spawn_blocking(move || tls_config(&extra)).await;
            let tls = tls.map_err(|_| failure("the certificates could not be read"))??;
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_only()
                .enable_http1()
                .wrap_connector(connector(connect));
            Ok(builder().build(connector))
        });
        client.await.cloned()
    }
}

fn builder() -> hyper_util::client::legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST)
        .http1_max_buf_size(MAX_HEAD_BYTES);
    builder
}

fn connector(connect: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect));
    connector
}

fn tls_config(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, TransportError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (added, skipped) = roots.add_parsable_certificates(system.certs);
    for extra in extra_roots {
        roots
            .add(CertificateDer::from(extra.clone()))
            .map_err(|_| failure("an extra root certificate is not valid"))?;
    }
    tracing::debug!(added, skipped, unreadable = system.errors.len(), "root certificates read");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|_| failure("TLS is not available"))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

fn failure(reason: &str) -> TransportError {
    TransportError { reason: reason.to_owned(), broken_connection: false, not_http: false, sent: false }
}

impl Transport for HttpTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpReply, TransportError>> {
        let this = self.clone();
        async move {
            let secure = request.endpoint.origin().starts_with("https://");
            if !secure && !request.endpoint.is_loopback() {
                return Err(failure("unencrypted requests go to this machine only"));
            }
            let mut outgoing = Request::post(request.endpoint.at(&request.path))
                .body(Full::new(request.body))
                .map_err(|_| failure("the address is not valid"))?;
            *outgoing.headers_mut() = request.headers;
            let reply = if secure {
                this.encrypted().await?.request(outgoing).await
            } else {
                this.plain.request(outgoing).await
            };
            let reply = reply.map_err(|error| classify(&error, !error.is_connect()))?;
            let (head, body) = reply.into_parts();
            let body = body.into_data_stream().map(|piece| piece.map_err(|error| classify(&error, true))).boxed();
            Ok(HttpReply { status: head.status, headers: head.headers, body })
        }
        .boxed()
    }
}

/// Finds out what happened from the chain of causes.
fn classify(error: &(dyn Error + 'static), sent: bool) -> TransportError {
    let mut broken = false;
    let mut not_http = false;
    let mut reason = String::new();
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            broken |= error.is_incomplete_message() || error.is_closed() || error.is_canceled();
            not_http |= error.is_parse();
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof};
            let kinds = [BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof];
            broken |= kinds.contains(&error.kind());
        }
        reason = error.to_string();
        cause = error.source();
    }
    TransportError { reason, broken_connection: broken && !not_http, not_http, sent }
}
