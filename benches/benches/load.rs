//! Turns under load: reads and writes, many sessions, long sessions, many stored sessions, memory of live executions.
//! `cargo bench -p covel-benches --bench load [-- reads|tracking|sessions|growth|memory]`
//!
//! Not criterion: what is compared here must run interleaved, beside a raw write and sync of the same minute. Prints
//! one table a part.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use covel_benches::{agent_package, engine, engine_with, read_upstream, read_write, session};
use covel_exec::{Engine, ExecutionRequest, NewSession};
use covel_model::{Gateway, ModelRequest, ModelStream};
use fixedbitset::FixedBitSet;
use tokio::{runtime::Runtime, sync::Semaphore};
use tokio_util::sync::CancellationToken;

/// Counts live bytes, so that "memory per execution" is a count and not a guess from the resident set.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)] // Forwards to the system allocator and counts; layouts are passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let host = Runtime::new().unwrap();
    if run("reads") {
        host.block_on(reads());
    }
    if run("tracking") {
        host.block_on(tracking());
    }
    if run("sessions") {
        host.block_on(sessions());
    }
    if run("growth") {
        host.block_on(growth());
    }
    if run("memory") {
        host.block_on(memory());
    }
}

/// Sorted microseconds.
struct Times(Vec<f64>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times.into_iter().map(|time| time.as_secs_f64() * 1e6).collect())
    }
    fn at(&self, share: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let index = ((self.0.len() - 1) as f64 * share).round() as usize;
        self.0[index]
    }
    fn p50(&self) -> f64 {
        self.at(0.5)
    }
}

async fn turn(engine: &Engine, session: &str) -> Duration {
    let begun = Instant::now();
    let turn = engine.execute(ExecutionRequest::player(session, "go"), None).await.unwrap();
    let took = begun.elapsed();
    assert!(turn.committed, "{turn:?}");
    took
}

/// A raw write of 4 KiB and its sync, in the folder the engine writes to.
struct Probe(std::fs::File);

impl Probe {
    fn new(folder: &std::path::Path) -> Self {
        Self(std::fs::File::create(folder.join("probe")).unwrap())
    }
    fn once(&mut self) -> Duration {
        let begun = Instant::now();
        self.0.write_all(&[7; 4096]).unwrap();
        self.0.sync_data().unwrap();
        begun.elapsed()
    }
}

/// Native runtimes that each read 1 KB and write 1 KB; in memory and durable turns take turns.
async fn reads() {
    println!(
        "\n| runtimes (1 KB read + 1 KB write each) | no sync p50 | per runtime | allocations | durable p50 | p99 | raw sync p50 |"
    );
    println!("|---|---|---|---|---|---|---|");
    for count in [10, 100, 1_000] {
        let rounds = if count == 1_000 { 40 } else { 200 };
        let (fast, _fast_folder) = engine(false);
        let (durable, folder) = engine(true);
        let mut ids = Vec::new();
        for engine in [&fast, &durable] {
            engine.publish_native(read_write(count)).await.unwrap();
            ids.push(session(engine).await);
            for _ in 0..3 {
                turn(engine, ids.last().unwrap()).await;
            }
        }
        let mut probe = Probe::new(folder.path());
        let (mut quick, mut synced, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        turn(&fast, &ids[0]).await;
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        for _ in 0..rounds {
            quick.push(turn(&fast, &ids[0]).await);
            synced.push(turn(&durable, &ids[1]).await);
            raw.push(probe.once());
        }
        let (quick, synced, raw) = (Times::new(quick), Times::new(synced), Times::new(raw));
        #[allow(clippy::cast_precision_loss)]
        let each = quick.p50() / count as f64;
        println!(
            "| {count} | {:.0} us | {each:.2} us | {allocations} | {:.0} us | {:.0} us | {:.0} us |",
            quick.p50(),
            synced.p50(),
            synced.at(0.99),
            raw.p50()
        );
        fast.close().await;
        durable.close().await;
    }
}

/// What recording reads costs: the sets a runtime notes its producers in, made and filled alone, beside the turn whose
/// runtimes each read uncommitted data of another.
async fn tracking() {
    const COUNT: usize = 1_000;
    let (engine, _folder) = engine(false);
    engine.publish_native(read_upstream(COUNT)).await.unwrap();
    let id = session(&engine).await;
    for _ in 0..3 {
        turn(&engine, &id).await;
    }
    let (mut turns, mut notes) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        turns.push(turn(&engine, &id).await);
        let begun = Instant::now();
        for at in 0..COUNT {
            let mut producers = FixedBitSet::new();
            let mut data: Option<Box<FixedBitSet>> = None;
            producers.grow_and_insert(at);
            data.get_or_insert_default().grow_and_insert(at);
            std::hint::black_box((&producers, &data));
        }
        notes.push(begun.elapsed());
    }
    let (turns, notes) = (Times::new(turns), Times::new(notes));
    println!("\n| turn of {COUNT} runtimes that read each other | noting its reads, alone | share |");
    println!("|---|---|---|");
    let share = notes.p50() / turns.p50() * 100.0;
    println!("| {:.0} us | {:.0} us | {share:.2} % |", turns.p50(), notes.p50());
    engine.close().await;
}

/// Durable turns a second with more and more sessions playing at once: group commit.
async fn sessions() {
    println!("\n| sessions at once | durable turns/s | p50 | p99 | raw sync p50 |");
    println!("|---|---|---|---|---|");
    for count in [1_usize, 8, 64] {
        let (engine, folder) = engine(true);
        engine.publish_native(read_write(10)).await.unwrap();
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(session(&engine).await);
        }
        let mut probe = Probe::new(folder.path());
        let raw = Times::new((0..100).map(|_| probe.once()).collect());
        let begun = Instant::now();
        let rounds = if count == 1 { 300 } else { 2_400 / count };
        let players: Vec<_> = ids
            .into_iter()
            .map(|id| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    let mut times = Vec::with_capacity(rounds);
                    for _ in 0..rounds {
                        times.push(turn(&engine, &id).await);
                    }
                    times
                })
            })
            .collect();
        let mut times = Vec::new();
        for player in players {
            times.extend(player.await.unwrap());
        }
        let spent = begun.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        let rate = times.len() as f64 / spent;
        let times = Times::new(times);
        println!("| {count} | {rate:.0} | {:.0} us | {:.0} us | {:.0} us |", times.p50(), times.at(0.99), raw.p50());
        engine.close().await;
    }
}

/// Does a turn cost the same late in a session, and beside many stored sessions?
async fn growth() {
    println!("\n| what grows | small | large | ratio |");
    println!("|---|---|---|---|");
    let (engine, _folder) = engine(false);
    engine.publish_native(read_write(10)).await.unwrap();
    let (old, young) = (session(&engine).await, session(&engine).await);
    for _ in 0..10_000 {
        turn(&engine, &old).await;
    }
    for _ in 0..10 {
        turn(&engine, &young).await;
    }
    report("turn 10 -> turn 10,000 of a session", interleave(&engine, &young, &engine, &old).await);

    let (few, _folder_few) = covel_benches::engine(false);
    few.publish_native(read_write(10)).await.unwrap();
    let one = session(&few).await;
    let (many, _folder_many) = covel_benches::engine(false);
    many.publish_native(read_write(10)).await.unwrap();
    let mut last = String::new();
    for at in 0..10_000 {
        let new = NewSession { id: Some(format!("stored-{at:05}")), ..NewSession::default() };
        last = many.create_session(new).await.unwrap().id;
    }
    report("1 -> 10,000 stored sessions", interleave(&few, &one, &many, &last).await);
}

async fn interleave(a: &Engine, a_session: &str, b: &Engine, b_session: &str) -> (Times, Times) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for round in 0..640 {
        let (l, r) = (turn(a, a_session).await, turn(b, b_session).await);
        // The first rounds warm caches up.
        if round >= 40 {
            left.push(l);
            right.push(r);
        }
    }
    (Times::new(left), Times::new(right))
}

fn report(what: &str, (small, large): (Times, Times)) {
    println!("| {what} | {:.0} us | {:.0} us | {:.2} |", small.p50(), large.p50(), large.p50() / small.p50());
}

/// Holds every request until it is let go.
struct Holding {
    waiting: Arc<Semaphore>,
}

impl Gateway for Holding {
    fn stream(&self, _: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let waiting = Arc::clone(&self.waiting);
        Box::pin(futures_util::stream::once(async move {
            waiting.add_permits(1);
            cancel.cancelled().await;
            Err(covel_model::ModelError::new(covel_model::ModelErrorKind::Cancelled, "let go"))
        }))
    }
    fn name(&self) -> &str {
        "holding"
    }
}

/// What an execution holds while its story waits for a model: ten runtimes with 1 KB written each before it.
async fn memory() {
    println!("\n| live executions | bytes held by each |");
    println!("|---|---|");
    for count in [1_u32, 16, 64] {
        let waiting = Arc::new(Semaphore::new(0));
        let (engine, _folder) = engine_with(false, Arc::new(Holding { waiting: Arc::clone(&waiting) }));
        engine.publish_native(read_write(10)).await.unwrap();
        engine.publish(vec![agent_package()]).await;
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(session(&engine).await);
        }
        let hold = async |ids: &[String]| {
            let cancel = CancellationToken::new();
            let running: Vec<_> = ids
                .iter()
                .map(|id| {
                    let request = ExecutionRequest { cancel: cancel.clone(), ..ExecutionRequest::player(id, "go") };
                    let engine = engine.clone();
                    tokio::spawn(async move { engine.execute(request, None).await.unwrap() })
                })
                .collect();
            waiting.acquire_many(u32::try_from(ids.len()).unwrap()).await.unwrap().forget();
            let live = LIVE.load(Ordering::Relaxed);
            cancel.cancel();
            for turn in running {
                assert!(!turn.await.unwrap().committed);
            }
            live
        };
        hold(&ids).await; // Plans, layers and buffers are made once.
        let idle = LIVE.load(Ordering::Relaxed);
        let live = hold(&ids).await;
        println!("| {count} | {} |", live.saturating_sub(idle) / count as usize);
        engine.close().await;
    }
}
