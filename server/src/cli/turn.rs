//! `covel turn`: one player turn in this process.

use std::{collections::BTreeMap, path::PathBuf};

use covel_exec::{Engine, EngineOptions, ExecError, ExecutionKind, ExecutionRequest, NewSession, TurnDocument};
use covel_graph::Json;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{DONE, REFUSED, Streams, args::TurnArgs, plan, runtime, text};
use crate::{
    error::ServerError,
    limits,
    load::{Loaded, load, load_kept},
    models,
};

type Settings = BTreeMap<String, BTreeMap<String, Json>>;

pub(super) fn run(arguments: &TurnArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let settings = settings(&arguments.settings)?;
    let sources = plan::sources_of(&arguments.packages)?;
    let loaded = match &arguments.data {
        Some(data) => load_kept(&sources, data)?,
        None => load(&sources)?,
    };
    let loaded = loaded.strict()?;
    let requested = plan::requested(&arguments.packages, &loaded)?;
    let document = runtime()?.block_on(play(arguments, loaded, requested, settings))?;
    if arguments.json {
        streams.document(&document)?;
    } else {
        streams.print(&text::turn(&document));
    }
    // A job that was waited for and did not do its work is no success.
    let failed = arguments.wait_jobs
        && document.jobs.iter().any(|job| job.value().get("status").and_then(Value::as_str) != Some("succeeded"));
    Ok(if document.committed && !failed { DONE } else { REFUSED })
}

async fn play(
    arguments: &TurnArgs,
    mut loaded: Loaded,
    requested: Vec<String>,
    settings: Settings,
) -> Result<TurnDocument, ServerError> {
    let gateway = match (&arguments.script, &arguments.llm) {
        (Some(script), _) => models::scripted(script)?,
        (None, Some(llm)) => models::configured(llm)?,
        (None, None) => models::offline(&mut loaded),
    };
    for found in loaded.diagnostics.iter().filter(|found| !found.is_error()) {
        tracing::info!("{found}");
    }
    // Kept until the engine is closed.
    let (data_dir, temporary) = data_folder(arguments)?;
    let mut options = EngineOptions::new(data_dir, gateway);
    options.durable = temporary.is_none();
    if !arguments.wait_jobs {
        // They stay in the data folder for whoever opens it next.
        options.job_workers = 0;
    }
    options.effects = arguments.effects.policy();
    let engine = Engine::open(options)?;
    let result = with_engine(&engine, arguments, &loaded, requested, settings).await;
    if matches!(result, Err(ServerError::Interrupted)) {
        // What was interrupted may not end by itself; nothing of it is acknowledged.
        let _ = tokio::time::timeout(limits::CLOSE_TIMEOUT, engine.close()).await;
    } else {
        engine.close().await;
    }
    drop(temporary);
    result
}

fn data_folder(arguments: &TurnArgs) -> Result<(PathBuf, Option<tempfile::TempDir>), ServerError> {
    if let Some(dir) = &arguments.data {
        return Ok((dir.clone(), None));
    }
    let temporary = tempfile::tempdir()
        .map_err(|error| ServerError::Unwritable { path: std::env::temp_dir(), message: error.to_string() })?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

async fn with_engine(
    engine: &Engine,
    arguments: &TurnArgs,
    loaded: &Loaded,
    requested: Vec<String>,
    settings: Settings,
) -> Result<TurnDocument, ServerError> {
    let prepared = prepare(engine, arguments, loaded, requested, settings);
    let session_id = tokio::select! {
        // First, so that the handler is there before any code of a package runs.
        biased;
        Ok(()) = tokio::signal::ctrl_c() => return Err(ServerError::Interrupted),
        session_id = prepared => session_id?,
    };
    let cancel = CancellationToken::new();
    let request = ExecutionRequest {
        session_id,
        kind: ExecutionKind::Player { message: arguments.message.clone() },
        cancel: cancel.clone(),
        request_id: None,
    };
    let execution = engine.execute(request, None);
    tokio::pin!(execution);
    let mut document = loop {
        tokio::select! {
            result = &mut execution => break result?,
            Ok(()) = tokio::signal::ctrl_c() => {
                // The first ends the turn, not the program: the document still says what happened.
                if cancel.is_cancelled() {
                    return Err(ServerError::Interrupted);
                }
                cancel.cancel();
            }
        }
    };
    if arguments.wait_jobs {
        tokio::select! {
            () = engine.drain_jobs(Some(&document.session_id)) => {}
            Ok(()) = tokio::signal::ctrl_c() => return Err(ServerError::Interrupted),
        }
        for entry in &mut document.jobs {
            let id = entry.value().get("jobId").and_then(Value::as_str).unwrap_or_default();
            // One that is not kept any more stays as the turn listed it.
            if let Ok(job) = engine.job(&document.session_id, id) {
                *entry = Json::of(&job).map_err(|error| ServerError::Internal(error.to_string()))?;
            }
        }
    }
    Ok(document)
}

/// Publishes the packages and finds or makes the session.
async fn prepare(
    engine: &Engine,
    arguments: &TurnArgs,
    loaded: &Loaded,
    requested: Vec<String>,
    settings: Settings,
) -> Result<String, ServerError> {
    for state in engine.publish(loaded.packages()).await {
        if let Some(error) = &state.error {
            tracing::warn!(plugin = %state.plugin_id, "the code of this package was not activated: {error}");
        }
    }
    if arguments.data.is_some() {
        engine.remember(loaded.remember.clone()).await?;
    }
    for world in &loaded.worlds {
        engine.add_world(world.as_ref().clone());
    }
    session(engine, arguments, loaded, requested, settings).await
}

/// The session asked for, or a new one.
async fn session(
    engine: &Engine,
    arguments: &TurnArgs,
    loaded: &Loaded,
    requested: Vec<String>,
    settings: Settings,
) -> Result<String, ServerError> {
    if let Some(id) = &arguments.session {
        match engine.session(id) {
            Ok(record) => return Ok(record.id),
            Err(ExecError::SessionNotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let record = engine
        .create_session(NewSession {
            id: arguments.session.clone(),
            world_id: loaded.worlds.first().map(|world| world.id.to_string()),
            locale: arguments.locale.clone(),
            plugins: Some(requested),
            excluded: arguments.packages.exclude.clone(),
            approved: arguments.packages.approve.clone(),
            seed: arguments.seed.clone(),
            settings,
        })
        .await?;
    Ok(record.id)
}

/// `PLUGIN.KEY=VALUE`; a value that is not JSON is text.
fn settings(texts: &[String]) -> Result<Settings, ServerError> {
    let mut settings = Settings::new();
    for text in texts {
        let parts = text.split_once('=').and_then(|(name, value)| Some((name.split_once('.')?, value)));
        let Some(((plugin, key), value)) = parts else {
            return Err(ServerError::Usage(format!("--set {text:?} is not of the form PLUGIN.KEY=VALUE")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        settings.entry(plugin.to_owned()).or_default().insert(key.to_owned(), Json::from_value(value));
    }
    Ok(settings)
}
