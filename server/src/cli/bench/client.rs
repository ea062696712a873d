//! The least HTTP client that can play a turn: one connection, one request at a time, the time of the first byte.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Longest answer that is read, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// The last chunk of an answer.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// How long an answer took.
pub(super) struct Took {
    /// To the first byte of its body.
    pub(super) first: Duration,
    /// To its end.
    pub(super) whole: Duration,
}

pub(super) struct Client {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Plays a player's turn and reads its event stream to the end.
    pub(super) async fn turn(&mut self, session: &str) -> io::Result<Took> {
        let body = format!(
            r#"{{"requestId":"bench","type":"send_message","sessionId":"{session}","payload":{{"content":"go"}}}}"#
        );
        let request = format!(
            "POST /api/actions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.buffer.clear();
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        let (mut head, mut first) = (None, None);
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if head.is_none() {
                head = self.buffer.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
            }
            let Some(head) = head else { continue };
            if self.buffer.len() > head {
                first.get_or_insert_with(|| begun.elapsed());
            }
            if self.buffer.ends_with(END) {
                break;
            }
            if self.buffer.len() > MAX_ANSWER {
                return Err(io::Error::other("the answer is too long"));
            }
        }
        let whole = begun.elapsed();
        let text = String::from_utf8_lossy(&self.buffer);
        if !text.starts_with("HTTP/1.1 200") || !text.contains(r#""committed":true"#) {
            return Err(io::Error::other(format!(
                "the turn was not played: {}",
                text.lines().next().unwrap_or_default()
            )));
        }
        Ok(Took { first: first.unwrap_or(whole), whole })
    }
}
