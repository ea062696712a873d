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

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep},
};
use tokio_util::sync::CancellationToken;

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
    let refused = |error: io::Error| ServerError::Bind {
        address: address.to_string(),
        message: error.to_string(),
    };
    let mut candidate = address;
    for _ in 0..tries {
        match TcpListener::bind(candidate).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                match candidate.port().checked_add(1) {
                    Some(port) => candidate.set_port(port),
                    None => return Err(refused(error)),
                }
            }
            Err(error) => return Err(refused(error)),
        }
    }
    TcpListener::bind(candidate).await.map_err(refused)
}

/// Serves until `stop`, then lets running turns finish and closes the engine. Answers whether all of them did.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    stop: impl Future<Output = ()>,
) -> io::Result<bool> {
    let router = http::router(state.clone());
    let quiet = CancellationToken::new();
    let listener = PatientListener {
        listener,
        places: Arc::new(Semaphore::new(limits::MAX_CONNECTIONS)),
    };
    let shutdown = quiet.clone().cancelled_owned();
    let server = tokio::spawn(async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(shutdown)
            .await
    });
    stop.await;
    // Still accepting: whoever comes now is told that the server stops.
    let drained = state.close().await;
    quiet.cancel();
    match tokio::time::timeout(limits::CLOSE_TIMEOUT, server).await {
        Ok(Ok(result)) => result.map(|()| drained),
        Ok(Err(error)) => Err(io::Error::other(error)),
        // Connections that do not end are cut by the end of the process.
        Err(_) => Ok(drained),
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
        (
            PatientStream {
                stream,
                stalled: None,
                limit: limits::WRITE_TIMEOUT,
                _place: place,
            },
            address,
        )
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
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let limit = self.limit;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read",
        )))
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
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
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

    fn pair(
        limit: Duration,
    ) -> (
        PatientStream<tokio::io::DuplexStream>,
        tokio::io::DuplexStream,
    ) {
        let (near, far) = tokio::io::duplex(16);
        (
            PatientStream {
                stream: near,
                stalled: None,
                limit,
                _place: None,
            },
            far,
        )
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

    #[tokio::test]
    async fn a_taken_port_gives_the_next_free_one() {
        let first = listen("127.0.0.1:0".parse().unwrap(), 0).await.unwrap();
        let taken = first.local_addr().unwrap();
        let second = listen(taken, limits::PORT_TRIES).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), taken);
        assert!(matches!(
            listen(taken, 0).await,
            Err(ServerError::Bind { .. })
        ));
    }
}
