//! The engine: one data folder, the published packages, the sessions that play.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use covel_abi::{JsHost, JsOptions};
use covel_graph::{EffectsPolicy, world::World};
use covel_model::SharedGateway;
use covel_store::{Store, StoreOptions};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};

use crate::{
    activations::ActivationCache,
    active::{ActivePlan, LoadedPackage},
    ambient::{Ambient, SystemAmbient, fresh_id, iso_time},
    error::ExecError,
    jobs::Jobs,
    limits::{DEFAULT_JOB_WORKERS, MAX_TURNS_IN_FLIGHT},
    recovery::Executions,
    snapshot::ForkLimiter,
    tape::Playback,
};

/// How to open an engine.
pub struct EngineOptions {
    /// Data folder; created when missing.
    pub data_dir: PathBuf,
    /// Models.
    pub gateway: SharedGateway,
    /// Time and ids.
    pub ambient: Arc<dyn Ambient>,
    /// Seed of sessions that name none.
    pub random_seed: Option<String>,
    /// Threads that run plugin code.
    pub js_workers: usize,
    /// Longest initialisation of a package's entry. LIF-4
    pub entry_limit: Duration,
    /// What is done about runtimes of one layer that touch the same thing.
    pub effects: EffectsPolicy,
    /// Wait for the disk at each commit. Without it a crash of the system may lose or harm the data: for tests and
    /// benches.
    pub durable: bool,
    /// Background jobs run at the same time. With 0 this engine only enqueues them; they wait for another opening.
    pub job_workers: usize,
}

impl EngineOptions {
    /// Durable, two workers, the system's clock.
    pub fn new(data_dir: impl Into<PathBuf>, gateway: SharedGateway) -> Self {
        Self {
            data_dir: data_dir.into(),
            gateway,
            ambient: Arc::new(SystemAmbient::default()),
            random_seed: None,
            js_workers: 2,
            entry_limit: covel_abi::limits::ENTRY_LIMIT,
            effects: EffectsPolicy::default(),
            durable: true,
            job_workers: DEFAULT_JOB_WORKERS,
        }
    }
}

/// An open engine. Cloning is cheap; all clones are the same engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) js: JsHost,
    pub(crate) gateway: SharedGateway,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) random_seed: Option<String>,
    pub(crate) effects: EffectsPolicy,
    pub(crate) packages: RwLock<BTreeMap<String, Arc<LoadedPackage>>>,
    /// Raised with every publication, while `packages` is locked for writing.
    pub(crate) registry: AtomicU64,
    /// Outcomes of activation by what went in.
    pub(crate) activations: ActivationCache,
    pub(crate) worlds: RwLock<BTreeMap<String, Arc<World>>>,
    /// Linked plans by the publications they link.
    pub(crate) plans: Mutex<HashMap<Vec<u64>, Arc<ActivePlan>>>,
    /// Sessions with something running.
    pub(crate) locks: Mutex<SessionLocks>,
    /// Told when a session is let go.
    pub(crate) session_freed: Notify,
    /// Grants of community code, by session incarnation; never stored.
    pub(crate) approvals: Arc<Mutex<HashMap<String, HashSet<String>>>>,
    pub(crate) jobs: Jobs,
    /// What runs, ran last, or was interrupted.
    pub(crate) executions: Executions,
    pub(crate) forks: ForkLimiter,
    pub(crate) in_flight: Semaphore,
    pub(crate) epoch: AtomicU64,
    /// This engine plays a recorded execution.
    pub(crate) played: Option<Arc<Playback>>,
    pub(crate) closing: AtomicBool,
}

impl Engine {
    /// Opens a data folder.
    ///
    /// # Errors
    /// [`ExecError::Store`] when the folder cannot be used (locked by another process, not a folder, read-only).
    pub fn open(options: EngineOptions) -> Result<Self, ExecError> {
        let js = JsHost::start(JsOptions {
            workers: options.js_workers.max(1),
            entry_limit: options.entry_limit,
            ..JsOptions::default()
        })
        .map_err(|error| ExecError::Internal(format!("the isolates could not be started: {error}")))?;
        Self::open_with(options, js, None)
    }

    /// An engine over isolates that run already; with a playback, one that plays a recorded execution.
    pub(crate) fn open_with(
        options: EngineOptions,
        js: JsHost,
        played: Option<Arc<Playback>>,
    ) -> Result<Self, ExecError> {
        let store_options = if options.durable { StoreOptions::default() } else { StoreOptions::no_sync() };
        let store = Store::open(&options.data_dir, store_options)?;
        let executions = Executions::open(&options.data_dir, &store)?;
        let owner = format!("{:032x}", options.ambient.fresh_bits());
        let inner = Inner {
            store,
            js,
            gateway: options.gateway,
            ambient: options.ambient,
            random_seed: options.random_seed,
            effects: options.effects,
            packages: RwLock::default(),
            registry: AtomicU64::new(0),
            activations: ActivationCache::default(),
            worlds: RwLock::default(),
            plans: Mutex::default(),
            locks: Mutex::default(),
            session_freed: Notify::new(),
            approvals: Arc::default(),
            executions,
            forks: ForkLimiter::default(),
            in_flight: Semaphore::new(MAX_TURNS_IN_FLIGHT),
            epoch: AtomicU64::new(1),
            played,
            closing: AtomicBool::new(false),
            jobs: Jobs::new(owner, options.job_workers),
        };
        inner.recover_jobs()?;
        Ok(Self(Arc::new(inner)))
    }

    /// Adds or replaces a world.
    pub fn add_world(&self, world: World) {
        self.0.worlds.write().insert(world.id.as_str().to_owned(), Arc::new(world));
    }

    /// Worlds by id.
    pub fn worlds(&self) -> Vec<Arc<World>> {
        self.0.worlds.read().values().cloned().collect()
    }

    /// The model gateway in use.
    pub fn gateway(&self) -> &SharedGateway {
        &self.0.gateway
    }

    /// The store, for diagnostics and benches.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Waits for running turns, closes all package code (disposers run) and the store. Later calls are refused.
    pub async fn close(&self) {
        if self.0.closing.swap(true, Ordering::SeqCst) {
            return;
        }
        // All permits at once: nothing runs any more.
        let permits = u32::try_from(MAX_TURNS_IN_FLIGHT).unwrap_or(u32::MAX);
        let _all = self.0.in_flight.acquire_many(permits).await;
        // Nor does a job; what waits goes on at the next opening.
        self.0.jobs.idle().await;
        let packages: Vec<_> = std::mem::take(&mut *self.0.packages.write()).into_values().collect();
        self.0.plans.lock().clear();
        for package in packages {
            if let Some(generation) = &package.generation {
                let report = generation.close().await;
                for failure in report.failures {
                    tracing::warn!(plugin = package.id(), "disposer failed: {failure}");
                }
                if report.timed_out {
                    tracing::warn!(plugin = package.id(), "disposers took too long");
                }
            }
        }
        self.0.store.close();
    }
}

impl Inner {
    pub(crate) fn check_open(&self) -> Result<(), ExecError> {
        if self.closing.load(Ordering::SeqCst) { Err(ExecError::Closing) } else { Ok(()) }
    }

    pub(crate) fn now(&self) -> String {
        iso_time(self.ambient.now_millis())
    }

    /// A fresh lowercase hex id of `digits` digits.
    pub(crate) fn fresh_id(&self, digits: usize) -> String {
        fresh_id(&*self.ambient, digits)
    }

    pub(crate) fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::Relaxed)
    }
}

/// Who holds a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// An execution or a command: others are refused.
    Execution,
    /// A job that commits: others wait, it takes a moment.
    Job,
}

/// Which sessions are held.
#[derive(Default)]
pub(crate) struct SessionLocks {
    held: HashMap<String, Holder>,
    /// Jobs that wait to commit. They go before the next execution, or a busy session would starve them.
    jobs_waiting: HashMap<String, usize>,
}

/// Holds a session for one execution, command or job commit; at most one at a time.
pub(crate) struct SessionLock {
    inner: Arc<Inner>,
    id: String,
}

impl SessionLock {
    /// Takes a session for an execution. Waits while a job commits.
    ///
    /// # Errors
    /// [`ExecError::SessionBusy`] when an execution holds it.
    pub(crate) async fn take(inner: &Arc<Inner>, id: &str) -> Result<Self, ExecError> {
        loop {
            // Made before looking, so that no wake-up is lost.
            let freed = inner.session_freed.notified();
            {
                let mut locks = inner.locks.lock();
                let holder = locks.held.get(id).copied();
                if holder == Some(Holder::Execution) {
                    return Err(ExecError::SessionBusy(id.to_owned()));
                }
                if holder.is_none() && !locks.jobs_waiting.contains_key(id) {
                    locks.held.insert(id.to_owned(), Holder::Execution);
                    return Ok(Self { inner: Arc::clone(inner), id: id.to_owned() });
                }
            }
            freed.await;
        }
    }

    /// Takes a session for the commit of a job; waits for whoever holds it.
    pub(crate) async fn take_for_job(inner: &Arc<Inner>, id: &str) -> Self {
        let _waiting = JobWaiting::new(inner, id);
        loop {
            let freed = inner.session_freed.notified();
            {
                let mut locks = inner.locks.lock();
                if !locks.held.contains_key(id) {
                    locks.held.insert(id.to_owned(), Holder::Job);
                    return Self { inner: Arc::clone(inner), id: id.to_owned() };
                }
            }
            freed.await;
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        self.inner.locks.lock().held.remove(&self.id);
        self.inner.session_freed.notify_waiters();
    }
}

/// Counts a job that waits, also when the wait is given up.
struct JobWaiting<'a> {
    inner: &'a Arc<Inner>,
    id: &'a str,
}

impl<'a> JobWaiting<'a> {
    fn new(inner: &'a Arc<Inner>, id: &'a str) -> Self {
        *inner.locks.lock().jobs_waiting.entry(id.to_owned()).or_default() += 1;
        Self { inner, id }
    }
}

impl Drop for JobWaiting<'_> {
    fn drop(&mut self) {
        let mut locks = self.inner.locks.lock();
        if let Some(count) = locks.jobs_waiting.get_mut(self.id) {
            *count -= 1;
            if *count == 0 {
                locks.jobs_waiting.remove(self.id);
            }
        }
        drop(locks);
        self.inner.session_freed.notify_waiters();
    }
}
