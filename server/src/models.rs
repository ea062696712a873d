//! Which models answer: the offline storyteller, a script of replies, or providers from an `llm.toml`.

use std::{path::Path, sync::Arc, time::Duration};

use covel_exec::{ScriptedGateway, ScriptedReply};
use covel_gateway::offline::OfflineGateway;
use covel_model::{Gateway, ModelEvent, ModelRequest, ModelStream, SharedGateway};
use futures_util::StreamExt;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServerError,
    load::{Loaded, read_text},
};

/// The offline storyteller over the worlds that were loaded.
pub fn offline(loaded: &mut Loaded) -> SharedGateway {
    Arc::new(OfflineGateway::new(loaded.books()))
}

/// The offline storyteller at reading speed: it has every word at once, and nobody can watch that.
pub fn offline_paced(loaded: &mut Loaded, pace: Duration) -> SharedGateway {
    Arc::new(Paced { inner: OfflineGateway::new(loaded.books()), pace })
}

/// Replies from a file: `{"llmResponses": [...]}` or the list alone.
///
/// # Errors
/// When it cannot be read or is no such file.
pub fn scripted(path: &Path) -> Result<SharedGateway, ServerError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Script {
        List(Vec<ScriptedReply>),
        #[serde(rename_all = "camelCase")]
        Object { llm_responses: Vec<ScriptedReply> },
    }
    let text = read_text(path)?;
    let refuse = |error: serde_json::Error| ServerError::Script { path: path.to_owned(), message: error.to_string() };
    // The tree first: what an untagged enum says about broken JSON helps nobody.
    let value: serde_json::Value = serde_json::from_str(&text).map_err(refuse)?;
    let replies = if value.is_array() {
        serde_json::from_value(value).map_err(refuse)?
    } else {
        match serde_json::from_value(value).map_err(|_| ServerError::Script {
            path: path.to_owned(),
            message: "it is neither a list of replies nor an object with llmResponses".to_owned(),
        })? {
            Script::List(replies) | Script::Object { llm_responses: replies } => replies,
        }
    };
    Ok(Arc::new(ScriptedGateway::new(replies)))
}

struct Paced<G> {
    inner: G,
    pace: Duration,
}

impl<G: Gateway> Gateway for Paced<G> {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        // Only a story is read as it comes.
        if !request.story.story {
            return self.inner.stream(request, cancel);
        }
        let pace = self.pace;
        let waiting = cancel.clone();
        Box::pin(self.inner.stream(request, cancel).then(move |event| {
            let waiting = waiting.clone();
            async move {
                if matches!(event, Ok(ModelEvent::Text(_))) {
                    // Cancelled: no more waiting; the stream itself says that it ended.
                    let _ = tokio::time::timeout(pace, waiting.cancelled()).await;
                }
                event
            }
        }))
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
