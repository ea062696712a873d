//! Listening, and stopping without losing a turn.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    error::ServerError,
    http::{self, AppState},
    limits,
};

/// Listens on an address; when its port is taken, on one of the next `tries`.
///
/// # Errors
/// When none of them is free, or the address is not ours.
pub async fn listen(address: SocketAddr, tries: u16) -> Result<TcpListener, ServerError> {
    let refused = |error: io::Error| ServerError::Bind { address: address.to_string(), message: error.to_string() };
    let mut candidate = address;
    for _ in 0..tries {
        match TcpListener::bind(candidate).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match candidate.port().checked_add(1) {
                Some(port) => candidate.set_port(port),
                None => return Err(refused(error)),
            },
            Err(error) => return Err(refused(error)),
        }
    }
    TcpListener::bind(candidate).await.map_err(refused)
}

/// Serves until `stop`, then lets running turns finish and closes the engine. Answers whether all of them did.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, state: AppState, stop: impl Future<Output = ()>) -> io::Result<bool> {
    let router = http::router(state.clone());
    let _jobs = tokio::spawn(http::forward_jobs(state.clone()));
    let quiet = CancellationToken::new();
    let listener = PatientListener { listener, places: Arc::new(Semaphore::new(limits::MAX_CONNECTIONS)) };
    let connections = TaskTracker::new();
    let accepting = tokio::spawn(accept(listener, router, quiet.clone(), connections.clone()));
    stop.await;
    // Still accepting: whoever comes now is told that the server stops.
    let drained = state.close().await;
    quiet.cancel();
    connections.close();
    let ended = async {
        let result = accepting.await;
        connections.wait().await;
        result
    };
    match tokio::time::timeout(limits::CLOSE_TIMEOUT, ended).await {
        Ok(Ok(())) => Ok(drained),
        Ok(Err(error)) => Err(io::Error::other(error)),
        // Connections that do not end are cut by the end of the process.
        Err(_) => Ok(drained),
    }
}

async fn accept(mut listener: PatientListener, router: Router, quiet: CancellationToken, connections: TaskTracker) {
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = quiet.cancelled() => return,
        };
        connections.spawn(converse(stream, router.clone(), quiet.clone()));
    }
}

/// Answers the requests of one connection, until it ends or, between two requests, `quiet` is asked for.
///
/// `axum::serve` sets no timer, so a client that sends half a head would hold its place for ever.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, quiet: CancellationToken) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIMEOUT)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = quiet.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!("a connection ended: {error}");
    }
}

/// Accepts a bounded number of connections, each of which may stall a write for a bounded time.
struct PatientListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Listener for PatientListener {
    type Io = PatientStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The semaphore is never closed; without a place the connection simply is not counted.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Frames are small and must not wait for more.
        let _ = stream.set_nodelay(true);
        (PatientStream { stream, stalled: None, limit: limits::WRITE_TIMEOUT, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection whose writes fail when the other side takes nothing for too long. Without this a client that stops
/// reading would hold its stream, and a place, for ever.
struct PatientStream<S = TcpStream> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    limit: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl<S> PatientStream<S> {
    fn watch<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, poll)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pair(limit: Duration) -> (PatientStream<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(16);
        (PatientStream { stream: near, stalled: None, limit, _place: None }, far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails_in_time() {
        let (mut near, _far) = pair(Duration::from_secs(10));
        let started = Instant::now();
        let error = near.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_but_living_reader_is_served() {
        let (mut near, mut far) = pair(Duration::from_secs(10));
        let reader = tokio::spawn(async move {
            let mut taken = 0;
            while taken < 64 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                taken += far.read(&mut [0; 16]).await.unwrap();
            }
        });
        near.write_all(&[0; 64]).await.unwrap();
        reader.await.unwrap();
    }

    /// Sends these bytes as a client that then only listens; answers all that came back, and after how long.
    async fn listens_after(sent: &[u8], router: Router) -> (String, Duration) {
        let (near, mut far) = tokio::io::duplex(limits::MAX_HEAD_BYTES * 3);
        let started = Instant::now();
        let server = tokio::spawn(converse(near, router, CancellationToken::new()));
        far.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = far.read_to_end(&mut answer).await;
        server.await.unwrap();
        (String::from_utf8_lossy(&answer).into_owned(), started.elapsed())
    }

    fn slow_route() -> Router {
        Router::new().route(
            "/",
            axum::routing::get(|| async {
                tokio::time::sleep(limits::HEAD_TIMEOUT * 3).await;
                "done"
            }),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_half_a_head_or_nothing_is_cut_off_in_time() {
        for sent in [&b""[..], b"GET / HT", b"GET / HTTP/1.1\r\nhost: localhost\r\nx-a: "] {
            let (answer, took) = listens_after(sent, slow_route()).await;
            assert!(!answer.contains("200"), "{answer}");
            assert_eq!(took.as_secs(), limits::HEAD_TIMEOUT.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kept_connection_is_cut_off_in_time_and_a_slow_answer_is_not() {
        let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let (answer, took) = listens_after(request, slow_route()).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
        assert_eq!(took.as_secs(), limits::HEAD_TIMEOUT.as_secs() * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn request_lines_and_headers_are_bounded() {
        let long = "a".repeat(limits::MAX_HEAD_BYTES);
        let with = |line: &str| format!("GET / HTTP/1.1\r\nhost: localhost\r\n{line}\r\n");
        for (request, status) in [
            (format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"), "414"),
            (format!("GET /{long}{long}"), "431"),
            (with(&format!("x: {long}{long}\r\n")), "431"),
            (with(&"x: y\r\n".repeat(200)), "431"),
            (with("x y\r\n"), "400"),
            (with("content-length: 1\r\ncontent-length: 2\r\n"), "400"),
            ("GET / HTTP/9.9\r\n\r\n".to_owned(), "400"),
        ] {
            let (answer, _) = listens_after(request.as_bytes(), slow_route()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_gives_the_next_free_one() {
        let first = listen("127.0.0.1:0".parse().unwrap(), 0).await.unwrap();
        let taken = first.local_addr().unwrap();
        let second = listen(taken, limits::PORT_TRIES).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), taken);
        assert!(matches!(listen(taken, 0).await, Err(ServerError::Bind { .. })));
    }
}
