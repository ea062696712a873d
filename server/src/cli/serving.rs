//! `covel play` and `covel serve`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use covel_exec::{Engine, EngineOptions, SystemAmbient};
use covel_graph::EffectsPolicy;
use covel_model::SharedGateway;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    DONE, Streams,
    args::{PlayArgs, ServeArgs},
    runtime,
};
use crate::{
    assets, config,
    error::ServerError,
    http::{AllowedHosts, AppState, BrokenPackage},
    limits,
    load::{Loaded, Sources, load_kept},
    models, serve,
};

/// Pause between two pieces of the offline story.
const PACE: Duration = Duration::from_millis(20);

/// What is served, whichever command asked.
struct Plan {
    address: SocketAddr,
    tries: u16,
    data_dir: PathBuf,
    hosts: Vec<String>,
    sources: Sources,
    llm: Option<PathBuf>,
    effects: EffectsPolicy,
    json: bool,
}

pub(super) fn play(arguments: &PlayArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let data_dir = data_folder(arguments.data.as_deref())?;
    let shipped = assets::unpack(&data_dir)?;
    let mut sources = Sources {
        plugins: vec![shipped.plugins],
        community: arguments.community.clone(),
        worlds: vec![shipped.worlds],
    };
    sources.plugins.extend(arguments.plugins.iter().cloned());
    sources.worlds.extend(arguments.world.iter().cloned());
    let plan = Plan {
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), arguments.port),
        tries: limits::PORT_TRIES,
        data_dir,
        hosts: Vec::new(),
        sources,
        llm: arguments.llm.clone(),
        effects: arguments.effects.policy(),
        json: arguments.json,
    };
    run(plan, streams)
}

pub(super) fn serve(arguments: &ServeArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let config = config::read(&arguments.config)?;
    if config.plugins.is_empty() && config.community.is_empty() {
        return Err(ServerError::Config {
            path: arguments.config.clone(),
            line: 1,
            message: "[packages] names no folder; give plugins = [\"...\"]".to_owned(),
        });
    }
    let plan = Plan {
        address: arguments.bind.unwrap_or(config.bind),
        tries: 0,
        data_dir: data_folder(arguments.data.as_deref().or(config.data_dir.as_deref()))?,
        sources: config.sources(),
        hosts: config.hosts,
        llm: arguments.llm.clone().or(config.llm_toml),
        effects: arguments.effects.effects.map_or(config.effects, EffectsPolicy::from),
        json: arguments.json,
    };
    run(plan, streams)
}

fn run(plan: Plan, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let mut loaded = load_kept(&plan.sources, &plan.data_dir)?;
    let gateway = match &plan.llm {
        Some(file) => models::configured(file)?,
        None => models::offline_paced(&mut loaded, PACE),
    };
    // One broken package does not keep the others from being played.
    for diagnostic in &loaded.diagnostics {
        if diagnostic.is_error() {
            streams.complain(&diagnostic.to_string());
        } else {
            tracing::info!("{diagnostic}");
        }
    }
    runtime()?.block_on(start(&plan, loaded, gateway, streams))
}

async fn start(
    plan: &Plan,
    mut loaded: Loaded,
    gateway: SharedGateway,
    streams: &mut Streams<'_>,
) -> Result<u8, ServerError> {
    let listener = serve::listen(plan.address, plan.tries).await?;
    let address = listener
        .local_addr()
        .map_err(|error| ServerError::Bind { address: plan.address.to_string(), message: error.to_string() })?;
    let models = gateway.name().to_owned();
    // Handlers first: a signal that comes right after the address is printed must not kill a turn.
    let mut signals = Signals::install()?;
    let mut options = EngineOptions::new(&plan.data_dir, gateway);
    options.effects = plan.effects;
    let engine = Engine::open(options)?;
    let states = tokio::select! {
        states = engine.publish(loaded.packages()) => states,
        () = signals.next() => {
            // Code of a package may be looping; nothing was promised to anybody yet.
            let _ = tokio::time::timeout(limits::CLOSE_TIMEOUT, engine.close()).await;
            return Ok(DONE);
        }
    };
    for state in states {
        if let Some(error) = &state.error {
            streams.complain(&format!("covel: the code of {} was not activated: {error}", state.plugin_id));
        }
    }
    if let Err(error) = engine.remember(std::mem::take(&mut loaded.remember)).await {
        streams.complain(&format!("covel: compiled packages are not kept for the next start: {error}"));
    }
    for world in &loaded.worlds {
        engine.add_world(world.as_ref().clone());
    }
    let hosts = AllowedHosts::new(plan.hosts.iter().cloned());
    let state = AppState::new(engine, Arc::new(SystemAmbient::default()), hosts, assets::page(), broken(&loaded));
    let stop = CancellationToken::new();
    let (stopping, running) = (stop.clone(), Arc::clone(&state.running));
    let watcher = tokio::spawn(async move {
        signals.next().await;
        stopping.cancel();
        // Whoever asks twice does not want to wait for the turns.
        signals.next().await;
        running.cancel_all();
    });
    let url = format!("http://{address}/");
    if plan.json {
        streams.document(&json!({ "address": url, "dataDir": plan.data_dir, "models": models }))?;
    } else {
        streams.print(&format!("Covel plays at {url} (data in {}; models: {models})\n", plan.data_dir.display()));
    }
    let drained = serve::serve(listener, state, stop.cancelled_owned())
        .await
        .map_err(|error| ServerError::Bind { address: address.to_string(), message: error.to_string() })?;
    watcher.abort();
    if !drained {
        streams.complain("covel: turns that did not finish in time were cancelled");
    }
    Ok(DONE)
}

/// Packages to show as unusable.
fn broken(loaded: &Loaded) -> Vec<BrokenPackage> {
    let unusable = loaded.compiled.iter().enumerate().filter(|(_, compiled)| compiled.package.is_none());
    unusable
        .map(|(place, compiled)| BrokenPackage {
            id: match (&compiled.plugin_id, compiled.dir.file_name()) {
                (Some(id), _) => id.to_string(),
                (None, Some(name)) => name.to_string_lossy().into_owned(),
                (None, None) => compiled.dir.display().to_string(),
            },
            community: place >= loaded.trusted,
            error: compiled
                .diagnostics
                .iter()
                .find(|found| found.is_error())
                .map_or_else(String::new, |found| format!("{}:{}: {}", found.file, found.line, found.message)),
        })
        .collect()
}

/// Signals that stop the program.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn install() -> Result<Self, ServerError> {
        use tokio::signal::unix::{SignalKind, signal};
        let install = |kind| signal(kind).map_err(|error| ServerError::Internal(format!("no signal handler: {error}")));
        Ok(Self { terminate: install(SignalKind::terminate())?, interrupt: install(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn install() -> Result<Self, ServerError> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// The folder named, else the user's own.
pub(super) fn data_folder(named: Option<&Path>) -> Result<PathBuf, ServerError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    user_data(|name| std::env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
        ServerError::Usage("there is no home folder to keep data in; name a folder with --data DIR".to_owned())
    })
}

/// Where programs of a user keep data, by platform.
fn user_data(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // A relative path in such a variable is to be ignored.
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let base = if cfg!(target_os = "windows") {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("covel"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_follows_the_platform() {
        let with = |pairs: &'static [(&str, &str)]| {
            user_data(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
        };
        assert_eq!(with(&[("HOME", "/home/a")]), Some("/home/a/.local/share/covel".into()));
        assert_eq!(with(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "/data")]), Some("/data/covel".into()));
        assert_eq!(with(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "data")]), Some("/home/a/.local/share/covel".into()));
        assert_eq!(with(&[]), None);
    }
}
