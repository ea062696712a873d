//! Reading one reply: a stream of events or a whole document.

use std::time::Duration;

use covel_model::ModelEvent;
use futures_util::StreamExt;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::budget::{Budget, Deadline, Late};
use super::call::before;
use super::transport::{Body, TransportError};
use crate::limits::MAX_RESPONSE_BYTES;
use crate::protocol::{Ending, Fault, Piece, Progress, ReplyReader};
use crate::sse::{SseError, SseParser};

/// A reply being read.
pub(super) struct Reading<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) pieces: &'a Sender<ModelEvent>,
    pub(super) tail: Duration,
    pub(super) reader: Box<dyn ReplyReader>,
    pub(super) deadline: Deadline,
    /// Was anything handed over, or counted as progress?
    pub(super) started: bool,
}

impl Reading<'_> {
    /// Reads events until the reply is over and hands its pieces over as they come.
    pub(super) async fn stream(&mut self, mut body: Body) -> Result<(), Fault> {
        let mut parser = SseParser::new();
        let mut pieces = Vec::new();
        let mut read = 0usize;
        // Set once the reply has said how it ended: from then on nothing can go wrong but the figures missing.
        let mut tail: Option<Deadline> = None;
        'reply: loop {
            loop {
                let event = match parser.next_event() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(_) if tail.is_some() => break 'reply,
                    Err(error @ SseError::NotUtf8) => {
                        return Err(Fault::malformed(error.to_string()));
                    }
                    Err(error) => return Err(Fault::endless(error.to_string())),
                };
                let progress = self.reader.event(&event, &mut pieces)?;
                self.hand_over(&mut pieces).await;
                match progress {
                    Progress::Open => {}
                    Progress::Ended if tail.is_some() => {}
                    Progress::Ended => {
                        let at = Instant::now() + self.tail;
                        tail = Some(Deadline { at, meaning: Late::Budget });
                    }
                    Progress::Closed => break 'reply,
                }
            }
            match before(tail.unwrap_or(self.deadline), body.next()).await {
                Ok(Some(Ok(bytes))) => {
                    read += bytes.len();
                    if read > MAX_RESPONSE_BYTES {
                        return Err(Fault::endless(format!("the reply is longer than {MAX_RESPONSE_BYTES} bytes")));
                    }
                    parser.push(&bytes);
                }
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) if tail.is_some() => break,
                Ok(Some(Err(error))) => return Err(cut_off(&error)),
                Err(late) => return Err(late.fault()),
            }
        }
        drop(body);
        self.finish().await
    }

    /// Reads one JSON document and hands it over when it is all there.
    pub(super) async fn whole(&mut self, mut body: Body) -> Result<(), Fault> {
        let mut text = Vec::new();
        loop {
            match before(self.deadline, body.next()).await {
                Ok(Some(Ok(bytes))) if text.len() + bytes.len() > MAX_RESPONSE_BYTES => {
                    return Err(Fault::endless(format!("the reply is longer than {MAX_RESPONSE_BYTES} bytes")));
                }
                Ok(Some(Ok(bytes))) => text.extend_from_slice(&bytes),
                Ok(Some(Err(error))) => return Err(cut_off(&error)),
                Ok(None) => break,
                Err(late) => return Err(late.fault()),
            }
        }
        let mut pieces = Vec::new();
        self.reader.whole(&text, &mut pieces)?;
        // Refusals show only at the end: ask before anything is handed over.
        let ending = self.reader.end()?;
        self.hand_over(&mut pieces).await;
        self.close(ending).await;
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        let ending = self.reader.end()?;
        self.close(ending).await;
        Ok(())
    }

    async fn hand_over(&mut self, pieces: &mut Vec<Piece>) {
        if pieces.is_empty() {
            return;
        }
        self.started = true;
        for piece in pieces.drain(..) {
            let event = match piece {
                Piece::Text(text) => ModelEvent::Text(text),
                Piece::Reasoning(text) => ModelEvent::Reasoning(text),
                Piece::ToolFragment => continue,
            };
            self.send(event).await;
        }
        // Counted from when the caller took them: its own pauses are not the provider's silence.
        let now = Instant::now();
        self.budget.progress(now);
        self.deadline = self.budget.next_piece(now);
    }

    async fn close(&mut self, ending: Ending) {
        self.started = true;
        for tool_call in ending.tool_calls {
            self.send(ModelEvent::ToolCall(tool_call)).await;
        }
        self.send(ModelEvent::Done { finish: ending.finish, usage: ending.usage, model: ending.model }).await;
    }

    async fn send(&self, event: ModelEvent) {
        // Fails only when the stream is gone, and then this future is dropped with it.
        let _ = self.pieces.send(event).await;
    }
}

fn cut_off(error: &TransportError) -> Fault {
    Fault::malformed(format!("the reply was cut off: {}", error.reason))
}
