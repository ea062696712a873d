//! Group commit: one thread takes all waiting transactions, runs their closures over one overlay, flushes the
//! overlay in one LMDB transaction with one sync, and only then answers each caller.

use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Condvar, Mutex};

use crate::{
    Durability,
    env::Environment,
    error::{StoreError, TransactError},
    limits,
    overlay::Overlay,
    tx::Tx,
};

/// A transaction in the queue.
pub(crate) trait Job: Send {
    /// Runs the closure; `true` when its writes stay.
    fn run(&mut self, tx: &mut Tx<'_>) -> bool;
    /// Answers the caller. `failed` is why the batch it ran in was not committed.
    fn answer(self: Box<Self>, failed: Option<&StoreError>);
}

/// The one implementation of [`Job`].
pub(crate) struct Transaction<T, E, F, A> {
    body: Option<F>,
    outcome: Option<Result<T, TransactError<E>>>,
    answer: A,
}

impl<T, E, F, A> Transaction<T, E, F, A>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    A: FnOnce(Result<T, TransactError<E>>) + Send + 'static,
{
    pub(crate) fn job(body: F, answer: A) -> Box<dyn Job> {
        Box::new(Self { body: Some(body), outcome: None, answer })
    }
}

impl<T, E, F, A> Job for Transaction<T, E, F, A>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    A: FnOnce(Result<T, TransactError<E>>) + Send + 'static,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> bool {
        let Some(body) = self.body.take() else {
            return false;
        };
        let outcome = match catch_unwind(AssertUnwindSafe(|| body(tx))) {
            // Its own journal entry is the last thing a transaction writes.
            Ok(Ok(value)) => match tx.write_journal() {
                Ok(()) => Ok(value),
                Err(error) => Err(TransactError::Store(error)),
            },
            Ok(Err(error)) => Err(TransactError::Refused(error)),
            Err(panic) => Err(TransactError::Panicked(panic_message(&*panic))),
        };
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, failed: Option<&StoreError>) {
        let outcome = match (failed, self.outcome) {
            (Some(error), _) => Err(TransactError::Store(error.clone())),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(TransactError::Store(StoreError::Closed)),
        };
        (self.answer)(outcome);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Transactions waiting for the writer thread.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
}

impl Queue {
    pub(crate) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StoreError::Closed);
        }
        if state.jobs.len() >= limits::MAX_WAITING_TRANSACTIONS {
            return Err(StoreError::Busy { limit: limits::MAX_WAITING_TRANSACTIONS });
        }
        state.jobs.push_back(job);
        self.arrived.notify_one();
        Ok(())
    }

    /// Refuses later transactions; those already queued still run.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
    }

    /// The next transaction; waits for one. `None` once closed and empty.
    fn wait(&self) -> Option<Box<dyn Job>> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            self.arrived.wait(&mut state);
        }
    }

    fn try_next(&self) -> Option<Box<dyn Job>> {
        self.state.lock().jobs.pop_front()
    }
}

/// Running totals since the store was opened.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) growths: AtomicU64,
}

/// The writer thread's body: runs until the queue is closed and empty.
pub(crate) fn run(env: &Arc<Environment>, queue: &Queue, counts: &Counts) {
    // Should this thread ever end early, callers get an answer instead of waiting for ever.
    let _guard = AbandonOnExit(queue);
    while let Some(first) = queue.wait() {
        commit_batch(env, queue, counts, first);
    }
    if env.durability() == Durability::NoSync
        && let Err(error) = env.sync()
    {
        tracing::error!(code = error.code(), %error, "the last sync failed");
    }
}

struct AbandonOnExit<'a>(&'a Queue);

impl Drop for AbandonOnExit<'_> {
    fn drop(&mut self) {
        self.0.close();
        while let Some(job) = self.0.try_next() {
            job.answer(Some(&StoreError::Closed));
        }
    }
}

/// A transaction that ran and waits for its batch.
struct Ran {
    job: Box<dyn Job>,
    /// Its answer may rest on writes of this batch, so it must not be given before they are durable.
    depends_on_batch: bool,
}

fn commit_batch(env: &Arc<Environment>, queue: &Queue, counts: &Counts, first: Box<dyn Job>) {
    let mut overlay = Overlay::default();
    let mut ran = Vec::new();
    let mut kept = 0;
    let failed = match env.read_txn() {
        Err(error) => {
            ran.push(Ran { job: first, depends_on_batch: true });
            Some(error)
        }
        Ok(txn) => {
            let mut next = Some(first);
            while let Some(mut job) = next.take() {
                let saw_pending = !overlay.is_empty();
                let mark = overlay.mark();
                let keep = job.run(&mut Tx::new(env, &txn, &mut overlay));
                if keep {
                    overlay.keep();
                    kept += 1;
                } else {
                    overlay.roll_back(mark);
                }
                ran.push(Ran { job, depends_on_batch: keep || saw_pending });
                if ran.len() < limits::MAX_BATCH_TRANSACTIONS && overlay.bytes() < limits::MAX_BATCH_BYTES {
                    next = queue.try_next();
                }
            }
            // The read transaction must end before the flush: the map may have to move.
            drop(txn);
            if overlay.is_empty() { None } else { flush(env, counts, &overlay).err() }
        }
    };
    counts.batches.fetch_add(1, Ordering::Relaxed);
    counts.refused.fetch_add(ran.len() as u64 - kept, Ordering::Relaxed);
    if failed.is_none() {
        counts.commits.fetch_add(kept, Ordering::Relaxed);
    }
    for Ran { job, depends_on_batch } in ran {
        let failed = failed.as_ref().filter(|_| depends_on_batch);
        // What a caller sent may panic when dropped; that must not stop the writer.
        let _ = catch_unwind(AssertUnwindSafe(|| job.answer(failed)));
    }
}

fn flush(env: &Environment, counts: &Counts, overlay: &Overlay) -> Result<(), StoreError> {
    let growths = env.flush(overlay).inspect_err(|error| {
        tracing::warn!(code = error.code(), %error, "a group commit failed");
    })?;
    counts.growths.fetch_add(growths, Ordering::Relaxed);
    if env.durability() == Durability::Durable {
        counts.syncs.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
