//! The five things that are measured.

use std::{
    fs::File,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use covel_exec::{Engine, EngineOptions, ExecutionRequest, NewSession, SystemAmbient, TurnDocument, probe::WalkProbe};
use covel_graph::package::Package;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    client::Client,
    fixtures::{self, Instant as InstantModel},
    samples::{Row, Samples},
};
use crate::{
    cli::args::BenchProfile,
    error::ServerError,
    http::{AllowedHosts, AppState, Page},
    serve,
};

/// Turns and walks before the first that counts: caches, pools and isolates are warm then.
const WARM_UP: usize = 5;
/// Sessions that play at once.
const AT_ONCE: usize = 64;
/// Connections that play at once.
const CLIENTS: usize = 16;

/// Measures one profile for about `time`, with its data in `folder`.
pub(super) async fn run(profile: BenchProfile, time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    match profile {
        BenchProfile::Scheduler => scheduler(time, folder).await,
        BenchProfile::Js => javascript(time, folder).await,
        BenchProfile::Durable => durable(time, folder).await,
        BenchProfile::Http => http(time, folder).await,
        BenchProfile::Agents => agents(time, folder).await,
    }
}

/// Runs `once` until the time is up, twice at least.
async fn repeat<E>(time: Duration, mut once: impl AsyncFnMut() -> Result<(), E>) -> Result<(), E> {
    let end = Instant::now() + time;
    once().await?;
    loop {
        once().await?;
        if Instant::now() >= end {
            return Ok(());
        }
    }
}

fn engine(folder: &Path, name: &str, durable: bool, calls: usize) -> Result<Engine, ServerError> {
    let mut options = EngineOptions::new(folder.join(name), Arc::new(InstantModel { calls }));
    options.durable = durable;
    Ok(Engine::open(options)?)
}

async fn publish(engine: &Engine, packages: Vec<Arc<Package>>) -> Result<(), ServerError> {
    for state in engine.publish(packages).await {
        if let Some(error) = state.error {
            return Err(ServerError::Internal(format!("{}: {error}", state.plugin_id)));
        }
    }
    Ok(())
}

async fn session(engine: &Engine) -> Result<String, ServerError> {
    Ok(engine.create_session(NewSession::default()).await?.id)
}

/// Plays one turn; how long it took, and its document.
async fn turn(engine: &Engine, session: &str, message: &str) -> Result<(Duration, TurnDocument), ServerError> {
    let request = ExecutionRequest::player(session, message);
    let begun = Instant::now();
    let document = engine.execute(request, None).await?;
    let took = begun.elapsed();
    match &document.error {
        Some(error) => Err(ServerError::Internal(format!("a measured turn was refused: {}", error.message))),
        None => Ok((took, document)),
    }
}

/// A turn by its parts: until the first runtime starts, the runtimes, and from the last one's end until it is committed.
#[derive(Default)]
struct Parts {
    before: Samples,
    runtimes: Samples,
    commit: Samples,
    total: Samples,
}

impl Parts {
    fn push(&mut self, took: Duration, document: &TurnDocument) {
        let begin = document.runtimes.iter().map(|runtime| runtime.started_micros).min().unwrap_or_default();
        let end = document.runtimes.iter().map(|runtime| runtime.started_micros + runtime.duration_micros).max();
        let end = end.unwrap_or_default().min(document.duration_micros);
        let outside = took.saturating_sub(Duration::from_micros(document.duration_micros));
        self.before.push(outside + Duration::from_micros(begin));
        self.runtimes.push(Duration::from_micros(end.saturating_sub(begin)));
        self.commit.push(Duration::from_micros(document.duration_micros - end));
        self.total.push(took);
    }

    fn rows(self, profile: &str, name: &str) -> impl Iterator<Item = Row> {
        let parts =
            [(self.before, "before"), (self.runtimes, "runtimes"), (self.commit, "commit"), (self.total, "total")];
        let (profile, name) = (profile.to_owned(), name.to_owned());
        parts.into_iter().filter_map(move |(samples, part)| samples.row(&profile, &name, part))
    }
}

/// Turns one after another until the time is up.
async fn turns(engine: &Engine, message: &str, time: Duration) -> Result<Parts, ServerError> {
    let id = session(engine).await?;
    for _ in 0..WARM_UP {
        turn(engine, &id, message).await?;
    }
    let mut parts = Parts::default();
    repeat(time, async || {
        let (took, document) = turn(engine, &id, message).await?;
        parts.push(took, &document);
        Ok::<_, ServerError>(())
    })
    .await?;
    Ok(parts)
}

/// Walks of runtimes that do nothing, and a whole turn of them.
async fn scheduler(time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    type Needs = fn(usize) -> Vec<usize>;
    let shapes: [(&str, usize, Needs); 4] = [
        ("chain of 10", 10, |at| at.checked_sub(1).into_iter().collect()),
        ("fan-out to 98, joined (100)", 100, |at| match at {
            0 => Vec::new(),
            99 => (1..99).collect(),
            _ => vec![0],
        }),
        ("5 layers of 20", 100, |at| at.checked_sub(20).into_iter().collect()),
        ("5 layers of 200", 1_000, |at| at.checked_sub(200).into_iter().collect()),
    ];
    let each = time / 5;
    let mut rows = Vec::new();
    for (at, (name, count, needs)) in shapes.into_iter().enumerate() {
        let engine = engine(folder, &format!("scheduler-{at}"), false, 0)?;
        engine.publish_native(fixtures::no_ops(count, needs)).await?;
        let probe = WalkProbe::new(&engine, &session(&engine).await?, "go").await?;
        for _ in 0..WARM_UP {
            if probe.walk().await != count {
                return Err(ServerError::Internal(format!("a measured walk did not run all of {name}")));
            }
        }
        let mut walks = Samples::default();
        repeat(each, async || {
            let begun = Instant::now();
            std::hint::black_box(probe.walk().await);
            walks.push(begun.elapsed());
            Ok::<_, ServerError>(())
        })
        .await?;
        rows.extend(walks.row("scheduler", name, "walk"));
        if count == 1_000 {
            rows.extend(turns(&engine, "go", each).await?.rows("scheduler", name));
        }
        engine.close().await;
    }
    Ok(rows)
}

/// Turns of JavaScript runtimes, without waiting for the disk.
async fn javascript(time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    let mut rows = Vec::new();
    for (count, name) in [(1, "1 package"), (10, "10 packages")] {
        let engine = engine(folder, &format!("js-{count}"), false, 0)?;
        publish(&engine, fixtures::javascript(count)?).await?;
        rows.extend(turns(&engine, &"word ".repeat(200), time / 2).await?.rows("js", name));
        engine.close().await;
    }
    Ok(rows)
}

/// Durable turns beside a raw write and sync of the same moment, then many sessions at once.
async fn durable(time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    let unwritable = |error: io::Error| ServerError::Unwritable { path: folder.to_owned(), message: error.to_string() };
    let engine = engine(folder, "durable", true, 0)?;
    engine.publish_native(fixtures::read_write(10)).await?;
    let id = session(&engine).await?;
    for _ in 0..WARM_UP {
        turn(&engine, &id, "go").await?;
    }
    let mut probe = File::create(folder.join("probe")).map_err(unwritable)?;
    let (mut parts, mut raw) = (Parts::default(), Samples::default());
    repeat(time / 2, async || {
        let (took, document) = turn(&engine, &id, "go").await?;
        parts.push(took, &document);
        let begun = Instant::now();
        probe.write_all(&[7; 4096]).and_then(|()| probe.sync_data()).map_err(unwritable)?;
        raw.push(begun.elapsed());
        Ok::<_, ServerError>(())
    })
    .await?;
    let mut rows: Vec<Row> = raw.row("durable", "4 KiB", "write and sync").into_iter().collect();
    rows.extend(parts.rows("durable", "10 runtimes, 1 KB each"));

    let mut sessions = Vec::with_capacity(AT_ONCE);
    for _ in 0..AT_ONCE {
        let id = session(&engine).await?;
        turn(&engine, &id, "go").await?;
        sessions.push(id);
    }
    let begun = Instant::now();
    let players = sessions.into_iter().map(|id| tokio::spawn(play(engine.clone(), id, begun + time / 2))).collect();
    rows.extend(at_once("durable", &format!("{AT_ONCE} sessions at once"), begun, players).await?);
    engine.close().await;
    Ok(rows)
}

/// Turns of one session until `end`.
async fn play(engine: Engine, id: String, end: Instant) -> Result<Samples, ServerError> {
    let mut samples = Samples::default();
    while Instant::now() < end {
        samples.push(turn(&engine, &id, "go").await?.0);
    }
    Ok(samples)
}

/// Turns of one session over one connection until `end`.
async fn play_over(mut client: Client, id: String, end: Instant) -> Result<Samples, ServerError> {
    let mut samples = Samples::default();
    while Instant::now() < end {
        samples.push(client.turn(&id).await.map_err(failed)?.whole);
    }
    Ok(samples)
}

fn failed(error: io::Error) -> ServerError {
    ServerError::Internal(format!("a measured request failed: {error}"))
}

/// What players that began together measured: the times of each turn, and how many there were a second.
async fn at_once(
    profile: &str,
    name: &str,
    begun: Instant,
    players: Vec<JoinHandle<Result<Samples, ServerError>>>,
) -> Result<Option<Row>, ServerError> {
    let mut all = Samples::default();
    for player in players {
        all.extend(player.await.map_err(|error| ServerError::Internal(error.to_string()))??);
    }
    let spent = begun.elapsed().as_secs_f64();
    Ok(all.row(profile, name, "total").map(|row| {
        #[allow(clippy::cast_precision_loss)] // a count of samples
        let per_second = Some(row.samples as f64 / spent);
        Row { per_second, ..row }
    }))
}

/// The whole way: a request over a connection, an event stream back.
async fn http(time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    let engine = engine(folder, "http", false, 0)?;
    publish(&engine, vec![fixtures::agent()?]).await?;
    let mut sessions = Vec::with_capacity(CLIENTS);
    for _ in 0..CLIENTS {
        sessions.push(session(&engine).await?);
    }
    let listener = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 0).await?;
    let address = listener.local_addr().map_err(failed)?;
    let hosts = AllowedHosts::default();
    let state = AppState::new(engine, Arc::new(SystemAmbient::default()), hosts, Page::default(), Vec::new());
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve::serve(listener, state, stop.clone().cancelled_owned()));

    let measured = async {
        let mut client = Client::connect(address).await.map_err(failed)?;
        for _ in 0..WARM_UP {
            client.turn(&sessions[0]).await.map_err(failed)?;
        }
        let (mut first, mut whole) = (Samples::default(), Samples::default());
        repeat(time / 2, async || {
            let took = client.turn(&sessions[0]).await.map_err(failed)?;
            first.push(took.first);
            whole.push(took.whole);
            Ok::<_, ServerError>(())
        })
        .await?;
        drop(client);
        let mut rows: Vec<Row> = first.row("http", "1 connection", "first byte").into_iter().collect();
        rows.extend(whole.row("http", "1 connection", "total"));
        let mut clients = Vec::with_capacity(CLIENTS);
        for id in sessions {
            clients.push((Client::connect(address).await.map_err(failed)?, id));
        }
        let begun = Instant::now();
        let spawn = |(client, id)| tokio::spawn(play_over(client, id, begun + time / 2));
        let players = clients.into_iter().map(spawn).collect();
        rows.extend(at_once("http", &format!("{CLIENTS} connections at once"), begun, players).await?);
        Ok(rows)
    }
    .await;
    stop.cancel();
    let _ = serving.await;
    measured
}

/// A story agent around a model that takes no time.
async fn agents(time: Duration, folder: &Path) -> Result<Vec<Row>, ServerError> {
    let mut rows = Vec::new();
    for (calls, name) in [(0, "no tool call"), (5, "5 tool calls"), (20, "20 tool calls")] {
        let engine = engine(folder, &format!("agents-{calls}"), false, calls)?;
        publish(&engine, vec![fixtures::agent()?]).await?;
        rows.extend(turns(&engine, "go", time / 3).await?.rows("agents", name));
        engine.close().await;
    }
    Ok(rows)
}
