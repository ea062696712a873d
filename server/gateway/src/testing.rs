//! A local HTTP server that plays a script back byte by byte, for tests.
//!
//! It speaks just enough HTTP/1.1 on a bare socket to do what a framework would refuse: stop in the middle of a chunk,
//! reset, stay silent, never end. Each request takes the next [`Reply`] of the script, whatever its connection.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// Largest request taken, bytes.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// One step of a reply's body.
#[derive(Clone, Debug)]
pub enum Step {
    /// These bytes, as one chunk.
    Send(Vec<u8>),
    /// These bytes again and again until the client goes away.
    Repeat(Vec<u8>),
    /// Nothing, until the test says so.
    Wait(Arc<Notify>),
    /// Nothing, until the client goes away.
    Hang,
    /// The connection closes without the end of the body.
    Abort,
}

/// One scripted reply. Without another ending the body ends as it should.
#[derive(Clone, Debug)]
pub struct Reply {
    /// `None`: no head is ever sent.
    head: Option<(u16, Vec<(String, String)>)>,
    steps: Vec<Step>,
}

impl Reply {
    /// A reply with this status, no headers and no body.
    pub fn status(status: u16) -> Self {
        Self { head: Some((status, Vec::new())), steps: Vec::new() }
    }

    /// A good event stream with these bytes.
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").then(Step::Send(body.into()))
    }

    /// A JSON document.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::status(status).header("content-type", "application/json").then(Step::Send(body.to_string().into_bytes()))
    }

    /// The request is read, then the connection closes without an answer.
    pub fn hang_up() -> Self {
        Self { head: None, steps: vec![Step::Abort] }
    }

    /// The request is read and never answered.
    pub fn silent() -> Self {
        Self { head: None, steps: vec![Step::Hang] }
    }

    /// These bytes instead of HTTP.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: None, steps: vec![Step::Send(bytes.into())] }
    }

    /// A chat completion that streams these texts and stops.
    pub fn chat_text(texts: &[&str]) -> Self {
        let deltas: Vec<Value> = texts.iter().map(|text| json!({ "content": text })).collect();
        Self::chat(&deltas, "stop")
    }

    /// A chat completion that streams these deltas and ends with this `finish_reason`.
    pub fn chat(deltas: &[Value], finish: &str) -> Self {
        let chunk = |delta: &Value, finish: Option<&str>| {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "test-model",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            });
            Step::Send(format!("data: {chunk}\n\n").into_bytes())
        };
        let usage = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "test-model",
            "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": deltas.len(), "total_tokens": 10 + deltas.len()},
        });
        let mut reply = Self::status(200).header("content-type", "text/event-stream");
        reply.steps.push(chunk(&json!({"role": "assistant", "content": ""}), None));
        reply.steps.extend(deltas.iter().map(|delta| chunk(delta, None)));
        reply.steps.push(chunk(&json!({}), Some(finish)));
        reply.then(Step::Send(format!("data: {usage}\n\ndata: [DONE]\n\n").into_bytes()))
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some((_, headers)) = &mut self.head {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Cuts everything sent so far into chunks of this many bytes.
    #[must_use]
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        let steps = std::mem::take(&mut self.steps);
        self.steps = steps
            .into_iter()
            .flat_map(|step| match step {
                Step::Send(body) => body.chunks(bytes.max(1)).map(|chunk| Step::Send(chunk.to_vec())).collect(),
                other => vec![other],
            })
            .collect();
        self
    }
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Recorded {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Debug)]
struct State {
    script: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Recorded>>,
    /// Replies that saw the client go away before they were done.
    abandoned: watch::Sender<usize>,
}

/// The server. It stops when dropped.
#[derive(Debug)]
pub struct FixtureServer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl FixtureServer {
    /// Starts on a free loopback port. Requests beyond the script get status 500 and say so.
    ///
    /// # Errors
    /// No port could be opened.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            script: Mutex::new(script.into_iter().collect()),
            requests: Mutex::default(),
            abandoned: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let state = shared.clone();
                connections.spawn(async move {
                    // A client that goes away ends the connection, which is what it wants.
                    let _ = serve(socket, &state).await;
                });
            }
        });
        Ok(Self { address, state, _tasks: tasks })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, as for `baseUrl` in `llm.toml`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds replies to the script.
    pub fn extend(&self, script: impl IntoIterator<Item = Reply>) {
        self.state.script.lock().unwrap_or_else(PoisonError::into_inner).extend(script);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many replies saw their client go away before they were done.
    pub async fn abandoned(&self, replies: usize) {
        // Fails only without the sender, which `self` holds.
        let _ = self.state.abandoned.subscribe().wait_for(|count| *count >= replies).await;
    }
}

async fn serve(mut socket: TcpStream, state: &State) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await? {
        state.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let reply = state.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let reply =
            reply.unwrap_or_else(|| Reply::json(500, &json!({"error": {"message": "the script has no more replies"}})));
        let played = play(&mut socket, reply).await;
        if played.is_err() {
            state.abandoned.send_modify(|count| *count += 1);
        }
        if !played? {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Recorded>> {
    let head_end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > MAX_REQUEST_BYTES || socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut start = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (start.next().unwrap_or_default().to_owned(), start.next().unwrap_or_default().to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let length: usize = length.unwrap_or(0);
    let body_start = head_end + 4;
    while buffer.len() < body_start.saturating_add(length) {
        if buffer.len() > MAX_REQUEST_BYTES || socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(body_start + length);
    let body = buffer.split_off(body_start);
    *buffer = rest;
    Ok(Some(Recorded { method, path, headers, body }))
}

/// Plays one reply; `false` when the connection is over. An error means that the client went away.
async fn play(socket: &mut TcpStream, reply: Reply) -> io::Result<bool> {
    let framed = reply.head.is_some();
    if let Some((status, headers)) = reply.head {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
    }
    for step in reply.steps {
        match step {
            Step::Send(bytes) => send(socket, &bytes, framed).await?,
            Step::Repeat(bytes) => loop {
                send(socket, &bytes, framed).await?;
                tokio::task::yield_now().await;
            },
            Step::Wait(signal) => {
                tokio::select! {
                    () = signal.notified() => {}
                    gone = client_gone(socket) => return Err(gone),
                }
            }
            Step::Hang => return Err(client_gone(socket).await),
            Step::Abort => return Ok(false),
        }
    }
    if framed {
        socket.write_all(b"0\r\n\r\n").await?;
    }
    Ok(framed)
}

async fn send(socket: &mut TcpStream, bytes: &[u8], framed: bool) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if !framed {
        return socket.write_all(bytes).await;
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    socket.write_all(&chunk).await?;
    // Each chunk leaves as its own packet, so that clients really see the boundaries.
    socket.flush().await
}

/// Waits until the client closes; whatever it still sends is dropped.
async fn client_gone(socket: &mut TcpStream) -> io::Error {
    let mut waste = [0; 1024];
    loop {
        match socket.read(&mut waste).await {
            Ok(0) => return io::ErrorKind::ConnectionAborted.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}
