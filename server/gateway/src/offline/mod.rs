//! The offline storyteller: a [`Gateway`] with no network, no key, no clock and no random source.
//!
//! It tells a world's own scene material ([`SceneBook`]) and answers plugin agents with the tool calls a scene asks
//! for. A reply is a function of the request alone: same seed, same turn, same history, same words; where the story
//! stands is read back from the prose in the history. Not here: reading world folders, HTTP, configuration.

mod agent;
mod book;
mod document;
mod schema;
mod story;
mod template;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use covel_model::{FinishReason, Gateway, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Usage};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

pub use book::{
    BookError, MAX_BEATS, MAX_BOOK_BYTES, MAX_LIST, MAX_LOCALES, MAX_PROSE_BYTES, MAX_SCENES, MAX_VARIANTS,
    MIN_ANCHOR_CHARS, OWN_SLOTS, SceneBook,
};

/// The model name reported with every reply.
pub const OFFLINE_MODEL: &str = "offline-storyteller";

/// The offline storyteller over the scene books of the known worlds.
#[derive(Clone, Debug)]
pub struct OfflineGateway {
    books: BTreeMap<String, Arc<SceneBook>>,
    generic: Arc<SceneBook>,
}

impl OfflineGateway {
    /// A storyteller that knows these worlds. A request for any other world is told from a book of its own that
    /// suits every setting.
    pub fn new(worlds: Vec<Arc<SceneBook>>) -> Self {
        let books = worlds.into_iter().map(|book| (book.world_id().to_owned(), book)).collect();
        Self { books, generic: Arc::new(SceneBook::generic()) }
    }

    fn book(&self, world: Option<&str>) -> &SceneBook {
        world.and_then(|world| self.books.get(world)).unwrap_or(&self.generic)
    }
}

impl SceneBook {
    /// The book for worlds without scene material.
    pub fn generic() -> Self {
        let material = serde_json::from_str(include_str!("generic.json")).unwrap_or_default();
        // The embedded text never changes after the build; a test reads it.
        Self::from_json("generic", &material).expect("the embedded scene book is valid")
    }
}

impl Gateway for OfflineGateway {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let reply = agent::answer(self.book(request.story.world_id.as_deref()), &request);
        let events = events(reply, &request);
        Box::pin(stream::unfold(events.into_iter(), move |mut events| {
            let cancel = cancel.clone();
            async move {
                if events.as_slice().is_empty() {
                    return None;
                }
                // Lets the reader, and whoever cancels, run between two pieces.
                tokio::task::yield_now().await;
                if cancel.is_cancelled() {
                    let error = ModelError::new(ModelErrorKind::Cancelled, "the request was cancelled");
                    return Some((Err(error), Vec::new().into_iter()));
                }
                events.next().map(|event| (Ok(event), events))
            }
        }))
    }

    fn name(&self) -> &str {
        "offline"
    }
}

/// The reply in pieces, within the output budget.
fn events(reply: agent::Reply, request: &ModelRequest) -> Vec<ModelEvent> {
    let mut finish = if reply.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let budget = request.max_output_tokens.map_or(u64::MAX, u64::from);
    let mut output_tokens = 0;
    let mut events = Vec::new();
    let mut told = String::new();
    for piece in words::pieces(&reply.text) {
        told.push_str(&piece);
        let tokens = words::tokens(&told);
        if tokens > budget {
            finish = FinishReason::Length;
            break;
        }
        output_tokens = tokens;
        events.push(ModelEvent::Text(piece));
    }
    output_tokens += reply.calls.iter().map(|call| words::tokens(&call.arguments)).sum::<u64>();
    events.extend(reply.calls.into_iter().map(ModelEvent::ToolCall));
    let read: u64 = request.messages.iter().map(|message| words::tokens(&message.content)).sum();
    let usage = Usage { input_tokens: words::tokens(&request.system) + read, output_tokens, cached_input_tokens: 0 };
    events.push(ModelEvent::Done { finish, usage, model: Some(OFFLINE_MODEL.into()) });
    events
}
