//! Which models answer: the offline storyteller, a script of replies, or providers from an `llm.toml`.

use std::{path::Path, sync::Arc, time::Duration};

use covel_exec::ScriptedGateway;
use covel_gateway::{ConfigError, HttpGateway, HttpOptions, LlmConfig, Surroundings, offline::OfflineGateway};
use covel_model::{Gateway, ModelEvent, ModelRequest, ModelStream, SharedGateway};
use futures_util::StreamExt;
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

/// Replies from a file: a list, or an object with `llmResponses`.
///
/// # Errors
/// When it cannot be read or is no such file.
pub fn scripted(path: &Path) -> Result<SharedGateway, ServerError> {
    let gateway = ScriptedGateway::parse(&read_text(path)?)
        .map_err(|message| ServerError::Script { path: path.to_owned(), message })?;
    Ok(Arc::new(gateway))
}

/// Providers from an `llm.toml`; their keys come from the environment.
///
/// # Errors
/// When the file is wrong, or no slot in it can be used.
pub fn configured(path: &Path) -> Result<SharedGateway, ServerError> {
    let variable = |name: &str| std::env::var(name).ok();
    // Whoever starts this program owns this machine, so a model on it is fine.
    let surroundings = Surroundings { variable: &variable, loopback_allowed: true };
    let refuse = |error: &ConfigError| ServerError::Models { path: path.to_owned(), message: error.to_string() };
    let config = LlmConfig::load(path, &surroundings).map_err(|error| refuse(&error))?;
    let problems = config.problems();
    match problems.first() {
        Some(first) if problems.len() == config.slots().len() => return Err(refuse(first)),
        _ => problems.iter().for_each(|problem| tracing::warn!("{}: {problem}", path.display())),
    }
    Ok(Arc::new(HttpGateway::new(config, HttpOptions::default())))
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
