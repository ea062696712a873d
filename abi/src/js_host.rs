//! The way in: workers, loading, calls.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

use crate::{
    call::{Call, CallError, CallOutput},
    error::LoadError,
    generation::{Generation, GenerationInner, GenerationSpec, Home},
    isolate::Sizes,
    limits::{
        CLEANUP_LIMIT, DEFAULT_HEAP_BYTES, DEFAULT_STACK_BYTES, DEFAULT_WORKERS, ENTRY_LIMIT, STUCK_GRACE,
        WATCHDOG_PERIOD, WORKER_STACK_HEADROOM,
    },
    queue::{Message, Queue},
    worker::{Shared, Waiting, Worker, answer},
};

/// Options of a [`JsHost`].
#[derive(Clone, Debug)]
pub struct JsOptions {
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Heap of one isolate, in bytes.
    pub heap_limit_bytes: usize,
    /// JavaScript stack of one isolate, in bytes.
    pub stack_limit_bytes: usize,
    /// Longest entry initialisation. LIF-4
    pub entry_limit: Duration,
    /// Longest cleanup: disposers, and what a failed entry acquired. LIF-4
    pub cleanup_limit: Duration,
    /// Where futures of [`CallHost::request`](crate::CallHost::request) run. When absent: the runtime `start` is called in,
    /// else one of the host's own.
    pub runtime: Option<Handle>,
}

impl Default for JsOptions {
    fn default() -> Self {
        Self {
            workers: DEFAULT_WORKERS,
            heap_limit_bytes: DEFAULT_HEAP_BYTES,
            stack_limit_bytes: DEFAULT_STACK_BYTES,
            entry_limit: ENTRY_LIMIT,
            cleanup_limit: CLEANUP_LIMIT,
            runtime: None,
        }
    }
}

struct WorkerSlot {
    queue: Arc<Queue>,
    shared: Mutex<Arc<Shared>>,
}

struct Pool {
    slots: Vec<WorkerSlot>,
    sizes: Sizes,
    handle: Handle,
    stop: AtomicBool,
    replaced: AtomicU64,
}

pub(crate) struct HostInner {
    pool: Arc<Pool>,
    next_key: AtomicU64,
    /// Kept for its threads.
    own_runtime: Mutex<Option<tokio::runtime::Runtime>>,
}

/// Runs plugin code. Cloning is cheap; the workers stop when the last clone and the last [`Generation`] are gone.
#[derive(Clone)]
pub struct JsHost(Arc<HostInner>);

impl JsHost {
    /// Starts the workers.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(options: JsOptions) -> Result<Self, LoadError> {
        let internal =
            |error: std::io::Error| LoadError::Internal { message: format!("the plugin host does not start: {error}") };
        let mut own_runtime = None;
        let handle = match options.runtime.or_else(|| Handle::try_current().ok()) {
            Some(handle) => handle,
            None => {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .enable_all()
                    .thread_name("covel-host")
                    .build()
                    .map_err(internal)?;
                own_runtime.insert(runtime).handle().clone()
            }
        };
        let slots = (0..options.workers.max(1))
            .map(|_| WorkerSlot { queue: Arc::default(), shared: Mutex::new(Shared::new()) })
            .collect();
        let pool = Arc::new(Pool {
            slots,
            sizes: Sizes {
                heap: options.heap_limit_bytes,
                stack: options.stack_limit_bytes,
                entry: options.entry_limit,
                cleanup: options.cleanup_limit,
            },
            handle,
            stop: AtomicBool::new(false),
            replaced: AtomicU64::new(0),
        });
        let host = Self(Arc::new(HostInner {
            pool: Arc::clone(&pool),
            next_key: AtomicU64::new(1),
            own_runtime: Mutex::new(own_runtime),
        }));
        for index in 0..pool.slots.len() {
            pool.spawn(index).map_err(internal)?;
        }
        thread::Builder::new().name("covel-js-watch".into()).spawn(move || watch(&pool)).map_err(internal)?;
        Ok(host)
    }

    /// Makes the isolate of a package version and runs its entry. Nothing is published unless the whole entry succeeds
    /// and matches the manifest.
    ///
    /// # Errors
    /// See [`LoadError`]. What a failed entry acquired is released. LIF-3
    pub async fn load(&self, spec: GenerationSpec) -> Result<Generation, LoadError> {
        let key = self.0.next_key.fetch_add(1, Ordering::Relaxed);
        let workers = self.0.pool.slots.len();
        let inner = GenerationInner {
            key,
            home: Home::new(usize::try_from(key).unwrap_or(0) % workers, spec.entry.is_some()),
            spec: Arc::new(spec),
            images: Arc::new(Mutex::new(HashMap::new())),
            registered: Arc::new(OnceLock::new()),
            closed: AtomicBool::new(false),
            host: Arc::clone(&self.0),
        };
        let (reply, loaded) = oneshot::channel();
        self.0.send(inner.home.slot(), Message::Load { blueprint: inner.blueprint(), reply });
        // A caller that stops waiting drops `inner`, which closes what was loaded.
        match loaded.await {
            Ok(Ok(())) => Ok(Generation(Arc::new(inner))),
            Ok(Err(error)) => {
                inner.closed.store(true, Ordering::SeqCst);
                Err(error)
            }
            Err(_) => Err(LoadError::Closed),
        }
    }

    /// Starts calls; each answers once on its `reply`. Calls of one worker go to it as one batch, so a whole layer costs one
    /// wake-up a worker. Calls of one isolate run interleaved: each until it waits for its host.
    pub fn submit(&self, batch: Vec<Call>) {
        let pool = &self.0.pool;
        let mut per_worker: Vec<Vec<Message>> = Vec::new();
        per_worker.resize_with(pool.slots.len(), Vec::new);
        // Calls that are bound to a worker first; those that may still choose then see how busy each is.
        let (settled, free): (Vec<Call>, Vec<Call>) =
            batch.into_iter().partition(|call| call.generation.0.home.is_settled());
        for call in settled.into_iter().chain(free) {
            let generation = &call.generation.0;
            if generation.closed.load(Ordering::SeqCst) || pool.stop.load(Ordering::SeqCst) {
                let _ =
                    call.reply.send((call.tag, Err(CallError::Load { message: "the generation is closed".into() })));
                continue;
            }
            let slot = self.place(generation, &per_worker);
            per_worker[slot].push(Message::Call(Box::new(call)));
        }
        for (slot, messages) in pool.slots.iter().zip(per_worker) {
            if !messages.is_empty() {
                slot.queue.extend(messages.into_iter());
            }
        }
    }

    /// The slot of a generation's calls, chosen now if it was not before: the one with the fewest calls of this batch.
    fn place(&self, generation: &GenerationInner, per_worker: &[Vec<Message>]) -> usize {
        let home = &generation.home;
        if !home.is_settled() {
            let before = home.slot();
            let calls = |slot: &usize| per_worker.get(*slot).map_or(0, Vec::len);
            let emptiest = (0..per_worker.len()).min_by_key(|slot| (calls(slot), *slot != before));
            if let Some(left) = home.settle(emptiest.unwrap_or(before)) {
                // No call has reached it: whoever makes one settles first.
                let key = generation.key;
                self.0.send(left, Message::Close { key, reply: None });
            }
        }
        home.slot()
    }

    /// Makes one call and waits for it. Dropping the future cancels the call.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(&self, request: CallRequest) -> Result<CallOutput, CallError> {
        let (reply, mut answers) = mpsc::unbounded_channel();
        let CallRequest { generation, target, context, host, limits, cancel } = request;
        let cancel = cancel.child_token();
        let guard = cancel.clone().drop_guard();
        self.submit(vec![Call { generation, target, context, host, limits, cancel, tag: 0, reply }]);
        let answer = answers.recv().await;
        drop(guard.disarm());
        answer.map_or(Err(CallError::WorkerLost), |(_, result)| result)
    }

    /// Heap bytes in use by a generation's isolate; `None` when it has none at present.
    pub async fn heap_used(&self, generation: &Generation) -> Option<u64> {
        let (reply, answer) = oneshot::channel();
        self.0.send(generation.0.home.slot(), Message::Memory { key: generation.0.key, reply });
        answer.await.ok().flatten()
    }

    /// How many stuck workers were replaced since the start.
    pub fn workers_replaced(&self) -> u64 {
        self.0.pool.replaced.load(Ordering::Relaxed)
    }
}

/// What [`JsHost::call`] takes.
pub struct CallRequest {
    /// Whose code.
    pub generation: Generation,
    /// Which code.
    pub target: crate::CallTarget,
    /// Its context.
    pub context: crate::CallContext,
    /// What answers its questions.
    pub host: Arc<dyn crate::CallHost>,
    /// Limits.
    pub limits: crate::CallLimits,
    /// Cancels the call.
    pub cancel: tokio_util::sync::CancellationToken,
}

impl HostInner {
    pub(crate) fn send(&self, slot: usize, message: Message) {
        if let Some(slot) = self.pool.slots.get(slot) {
            slot.queue.push(message);
        }
    }
}

impl Drop for HostInner {
    fn drop(&mut self) {
        self.pool.stop.store(true, Ordering::SeqCst);
        for slot in &self.pool.slots {
            slot.shared.lock().pulse.abandon();
            slot.queue.stop();
        }
        if let Some(runtime) = self.own_runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Pool {
    fn spawn(&self, index: usize) -> std::io::Result<()> {
        let Some(slot) = self.slots.get(index) else {
            return Ok(());
        };
        let (queue, shared, handle, sizes) =
            (Arc::clone(&slot.queue), Arc::clone(&slot.shared.lock()), self.handle.clone(), self.sizes);
        thread::Builder::new()
            .name(format!("covel-js-{index}"))
            .stack_size(sizes.stack + WORKER_STACK_HEADROOM)
            .spawn(move || Worker::new(queue, shared, handle, sizes).run())?;
        Ok(())
    }
}

/// Replaces workers that do not come back from a native builtin the engine cannot interrupt.
fn watch(pool: &Arc<Pool>) {
    while !pool.stop.load(Ordering::SeqCst) {
        thread::park_timeout(WATCHDOG_PERIOD);
        let now = Instant::now();
        for (index, slot) in pool.slots.iter().enumerate() {
            let stuck = {
                let mut shared = slot.shared.lock();
                if !shared.pulse.stuck(now, STUCK_GRACE) {
                    continue;
                }
                shared.pulse.abandon();
                std::mem::replace(&mut *shared, Shared::new())
            };
            pool.replaced.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(worker = index, "a worker stuck in a native builtin is replaced");
            let culprit = stuck.running.load(Ordering::Relaxed);
            let waiting: Vec<_> = stuck.waiting.lock().drain().collect();
            if let Err(error) = pool.spawn(index) {
                tracing::error!(worker = index, %error, "no replacement for a stuck worker");
            }
            for (id, waiting) in waiting {
                let error = match &waiting {
                    Waiting::Call { limit, .. } if u64::from(id) == culprit => {
                        CallError::Timeout { limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
                    }
                    _ => CallError::WorkerLost,
                };
                answer(waiting, Err(error));
            }
        }
    }
    for slot in &pool.slots {
        for message in slot.queue.drain() {
            if let Message::Call(call) = message {
                let _ = call.reply.send((call.tag, Err(CallError::Cancelled)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn load(host: &JsHost, entry: bool) -> Generation {
        let files = Arc::new(|_: &str| Some(Arc::from(&b"export default () => {}"[..])));
        let mut spec = GenerationSpec::new(covel_graph::PluginId::new("p"), 1, files);
        spec.entry = entry.then(|| "entry.js".to_owned());
        host.load(spec).await.unwrap()
    }

    fn memory(key: u64) -> Message {
        let (reply, _) = oneshot::channel();
        Message::Memory { key, reply }
    }

    #[tokio::test]
    async fn the_first_batch_of_code_without_an_entry_spreads_it_and_later_ones_do_not_move_it() {
        let host = JsHost::start(JsOptions { workers: 2, ..JsOptions::default() }).unwrap();
        let mut generations = Vec::new();
        for _ in 0..8 {
            generations.push(load(&host, false).await);
        }
        // Every second one: all were loaded by the same worker.
        let layer: Vec<_> = generations.iter().step_by(2).collect();
        let first = layer[0].0.home.slot();
        assert!(layer.iter().all(|g| g.0.home.slot() == first));
        let mut queues = [Vec::new(), Vec::new()];
        for generation in &layer {
            queues[host.place(&generation.0, &queues)].push(memory(0));
        }
        assert_eq!([queues[0].len(), queues[1].len()], [2, 2]);
        let homes: Vec<_> = layer.iter().map(|g| g.0.home.slot()).collect();
        for (generation, home) in layer.iter().zip(homes) {
            let busy = [vec![memory(0)], vec![memory(0)]];
            let mut lopsided = busy;
            lopsided[1 - home].clear();
            assert_eq!(host.place(&generation.0, &lopsided), home);
        }
    }

    #[tokio::test]
    async fn code_with_an_entry_stays_where_it_was_loaded() {
        let host = JsHost::start(JsOptions { workers: 2, ..JsOptions::default() }).unwrap();
        let generation = load(&host, true).await;
        let home = generation.0.home.slot();
        let mut lopsided = [Vec::new(), Vec::new()];
        lopsided[home].push(memory(0));
        assert_eq!(host.place(&generation.0, &lopsided), home);
    }
}
