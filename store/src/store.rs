//! The store handle: opening, reading, transacting, closing.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering, mpsc},
    thread::{self, JoinHandle, ThreadId},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    env::{DATA_FILE, Environment, round_up},
    error::{StoreError, TransactError},
    limits,
    read::{self, Reader, Snapshot},
    tx::Tx,
    writer::{self, Counts, Queue, Transaction},
};

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The disk: an acknowledged commit survives a crash of the process and of the system.
    #[default]
    Durable,
    /// Nothing: for benches and tests. A crash of the system may damage the file; a crash of the process may not.
    NoSync,
}

/// How to open a store. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// First size of the map; it grows by itself. Rounded up to [`limits::MAP_STEP_BYTES`].
    pub map_size: usize,
    /// The size growth never exceeds.
    pub max_map_size: usize,
    /// Read transactions that may be open at once.
    pub max_readers: u32,
    /// How long a commit that must grow the map waits for open reads; at most [`limits::MAX_GROWTH_PATIENCE`].
    pub growth_patience: Duration,
    /// What a commit waits for.
    pub durability: Durability,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            map_size: limits::DEFAULT_MAP_BYTES,
            max_map_size: limits::DEFAULT_MAX_MAP_BYTES,
            max_readers: limits::DEFAULT_MAX_READERS,
            growth_patience: limits::DEFAULT_GROWTH_PATIENCE,
            durability: Durability::Durable,
        }
    }
}

impl StoreOptions {
    /// Default options without syncing, for benches and tests.
    pub fn no_sync() -> Self {
        Self { durability: Durability::NoSync, ..Self::default() }
    }

    pub(crate) fn checked_map_bytes(&self) -> Result<usize, StoreError> {
        Ok(round_up(self.map_size.max(limits::MIN_MAP_BYTES)).min(self.checked_max_map_bytes()?))
    }

    pub(crate) fn checked_max_map_bytes(&self) -> Result<usize, StoreError> {
        let size = self.max_map_size / limits::MAP_STEP_BYTES * limits::MAP_STEP_BYTES;
        let accepted = limits::MIN_MAP_BYTES..=limits::DEFAULT_MAX_MAP_BYTES;
        if accepted.contains(&size) {
            return Ok(size);
        }
        Err(StoreError::Options {
            option: "max_map_size",
            found: self.max_map_size as u64,
            accepted: format!("{} to {}", accepted.start(), accepted.end()),
        })
    }

    pub(crate) fn checked_max_readers(&self) -> Result<u32, StoreError> {
        if (1..=limits::MAX_READERS).contains(&self.max_readers) {
            return Ok(self.max_readers);
        }
        Err(StoreError::Options {
            option: "max_readers",
            found: self.max_readers.into(),
            accepted: format!("1 to {}", limits::MAX_READERS),
        })
    }
}

/// Totals since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions whose closure failed or panicked.
    pub refused: u64,
    /// Group commits, those with nothing to write included.
    pub batches: u64,
    /// Syncs waited for.
    pub syncs: u64,
    /// Times the map grew.
    pub map_growths: u64,
    /// Current size of the map in bytes.
    pub map_size: usize,
}

/// A folder of remembered things. Clones share one environment and one writer thread.
///
/// Dropping the last clone waits until every queued transaction is committed. The folder is unlocked once the
/// last snapshot is gone too.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    env: Arc<Environment>,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    writer: Mutex<Option<JoinHandle<()>>>,
    writer_id: ThreadId,
}

impl Store {
    /// Opens the store in a folder, creating both when missing.
    ///
    /// # Errors
    /// `store-locked` when it is open already, here or in another process; `store-not-a-folder`,
    /// `store-read-only`, `store-disk-full`; `store-format` for a file this version cannot read; `store-options`.
    pub fn open(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self, StoreError> {
        let env = Arc::new(Environment::open(path.as_ref(), &options)?);
        let queue = Arc::new(Queue::default());
        let counts = Arc::new(Counts::default());
        let writer = thread::Builder::new()
            .name("covel-store".to_owned())
            .spawn({
                let (env, queue, counts) = (env.clone(), queue.clone(), counts.clone());
                move || writer::run(&env, &queue, &counts)
            })
            .map_err(|error| StoreError::from_io("starting the writer thread", path.as_ref(), &error))?;
        let writer_id = writer.thread().id();
        Ok(Self { inner: Arc::new(Inner { env, queue, counts, writer: Mutex::new(Some(writer)), writer_id }) })
    }

    /// Is there a store in this folder? Looks, and makes nothing.
    pub fn exists(path: impl AsRef<Path>) -> bool {
        path.as_ref().join(DATA_FILE).is_file()
    }

    /// Reads one consistent view. The closure is synchronous: no read transaction is ever held across an `await`
    /// (invariant 9). Keep it short; while it runs, the map cannot grow.
    ///
    /// # Errors
    /// The closure's own; `store-readers-full`, `store-broken`, `store-io`.
    pub fn read<T, E: From<StoreError>>(&self, body: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        read::read(&self.inner.env, body)
    }

    /// An owned view of this instant; see [`Snapshot`] for how long to keep it.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(&self.inner.env)
    }

    /// Runs a closure as one transaction and answers once it is durable. When the closure fails or panics, or the
    /// commit fails, nothing of it is kept.
    ///
    /// Once queued it runs to its end, even when this future is dropped. The closure runs on the writer thread:
    /// it must neither block nor transact itself.
    ///
    /// # Errors
    /// [`TransactError::Refused`] with the closure's error, [`TransactError::Panicked`], or
    /// [`TransactError::Store`]: `store-busy`, `store-closed`, `store-disk-full`, `store-full`, `store-map-busy`...
    pub async fn transact<T, E>(
        &self,
        body: impl FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, TransactError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        // The caller may have gone; the commit stands all the same.
        self.inner.queue.push(Transaction::job(body, move |outcome| drop(sender.send(outcome))))?;
        receiver.await.unwrap_or(Err(TransactError::Store(StoreError::Closed)))
    }

    /// [`Store::transact`] for callers without an async runtime; blocks the thread until the commit is durable.
    ///
    /// # Errors
    /// As [`Store::transact`]; `store-reentrant` inside a transaction, which would wait for itself.
    pub fn transact_blocking<T, E>(
        &self,
        body: impl FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, TransactError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        if self.inner.is_writer_thread() {
            return Err(TransactError::Store(StoreError::Reentrant));
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        self.inner.queue.push(Transaction::job(body, move |outcome| drop(sender.send(outcome))))?;
        receiver.recv().unwrap_or(Err(TransactError::Store(StoreError::Closed)))
    }

    /// Refuses later transactions and waits until the queued ones are committed. Reading goes on working.
    pub fn close(&self) {
        self.inner.close();
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.inner.env.path()
    }

    /// Totals since the store was opened.
    pub fn stats(&self) -> StoreStats {
        let counts = &self.inner.counts;
        StoreStats {
            commits: counts.commits.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            batches: counts.batches.load(Ordering::Relaxed),
            syncs: counts.syncs.load(Ordering::Relaxed),
            map_growths: counts.growths.load(Ordering::Relaxed),
            map_size: self.inner.env.map_bytes(),
        }
    }
}

impl Inner {
    fn is_writer_thread(&self) -> bool {
        thread::current().id() == self.writer_id
    }

    fn close(&self) {
        self.queue.close();
        // A closure that held the last clone drops it on the writer thread, which must not wait for itself.
        if self.is_writer_thread() {
            return;
        }
        // Joining under the lock: whoever closes second waits for the drain too.
        if self.writer.lock().take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
