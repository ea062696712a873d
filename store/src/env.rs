//! The LMDB environment of one folder: opening, locking, transactions, growth.
//!
//! The only module with `unsafe`: LMDB maps a file, so the borrow checker cannot see who else changes it.
#![allow(unsafe_code)]

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use heed::{CommitOrAbort, Env, EnvFlags, EnvOpenOptions, MdbError, RoTxn, RwTxn, WithoutTls, types::Bytes};

use crate::{
    Durability, StoreOptions,
    error::StoreError,
    failpoint,
    gate::Gate,
    keys::Key,
    limits,
    overlay::Overlay,
    tables::{Databases, Table},
};

/// Raised when a layout of keys or records changes.
pub(crate) const FORMAT: u32 = 2;
const LOCK_FILE: &str = "covel.lock";
pub(crate) const DATA_FILE: &str = "data.mdb";

/// An open folder. Field order is drop order: the environment closes before the folder is unlocked.
pub(crate) struct Environment {
    env: Env<WithoutTls>,
    databases: Databases,
    gate: Gate,
    max_map_bytes: usize,
    growth_patience: Duration,
    durability: Durability,
    path: PathBuf,
    _lock: File,
}

impl Environment {
    pub(crate) fn open(path: &Path, options: &StoreOptions) -> Result<Self, StoreError> {
        let map_bytes = options.checked_map_bytes()?;
        let max_map_bytes = options.checked_max_map_bytes()?;
        let max_readers = options.checked_max_readers()?;
        fs::create_dir_all(path).map_err(|error| StoreError::from_io("creating the data folder", path, &error))?;
        let lock = lock(path)?;
        let fresh = !path.join(DATA_FILE).exists();

        let mut builder = EnvOpenOptions::new().read_txn_without_tls();
        builder.map_size(map_bytes).max_readers(max_readers).max_dbs(Table::COUNT as u32);
        if options.durability == Durability::NoSync {
            // SAFETY: NO_SYNC risks the file when the system crashes, never memory. It is documented as such.
            unsafe { builder.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: the file is mapped, so nobody else may change it while it is open. The exclusive lock on the
        // folder, taken above and held until after the environment is closed, keeps every other store away.
        let env = unsafe { builder.open(path) }.map_err(|error| match error {
            heed::Error::Mdb(MdbError::Invalid | MdbError::VersionMismatch) => {
                format_error(path, "a file that is not a store")
            }
            other => StoreError::from_heed("opening the store", path, other),
        })?;
        // A reader of a process that was killed would keep old pages from being reused.
        env.clear_stale_readers().map_err(|error| StoreError::from_heed("opening the store", path, error))?;
        if !fresh {
            check_format(&env, path)?;
        }
        let databases = loop {
            match create_databases(&env) {
                Ok(databases) => break databases,
                Err(heed::Error::Mdb(MdbError::MapFull)) => {
                    let size = env.info().map_size;
                    let larger = size.saturating_mul(2).min(max_map_bytes);
                    if larger <= size {
                        return Err(StoreError::MapFull { limit: max_map_bytes });
                    }
                    // SAFETY: no transaction exists yet: the failed one is gone and nobody else has this handle.
                    unsafe { env.resize(larger) }
                        .map_err(|error| StoreError::from_heed("growing the store", path, error))?;
                }
                Err(error) => return Err(StoreError::from_heed("opening the store", path, error)),
            }
        };
        if options.durability == Durability::Durable {
            sync_folder(path)?;
        }
        Ok(Self {
            env,
            databases,
            gate: Gate::default(),
            max_map_bytes,
            growth_patience: options.growth_patience.min(limits::MAX_GROWTH_PATIENCE),
            durability: options.durability,
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    pub(crate) fn databases(&self) -> &Databases {
        &self.databases
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn map_bytes(&self) -> usize {
        self.env.info().map_size
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn error(&self, during: &'static str, error: heed::Error) -> StoreError {
        match error {
            heed::Error::Mdb(MdbError::ReadersFull) => StoreError::ReadersFull { limit: self.env.max_readers() },
            other => StoreError::from_heed(during, &self.path, other),
        }
    }

    /// A read transaction. Everyone but the writer thread enters the gate first.
    pub(crate) fn read_txn(&self) -> Result<RoTxn<'_, WithoutTls>, StoreError> {
        self.env.read_txn().map_err(|error| self.error("reading", error))
    }

    /// A read transaction that borrows nothing.
    pub(crate) fn owned_read_txn(&self) -> Result<RoTxn<'static, WithoutTls>, StoreError> {
        self.env.clone().static_read_txn().map_err(|error| self.error("reading", error))
    }

    /// Writes an overlay in one transaction and one sync, growing the map as often as needed.
    /// Returns how often it grew. Called by the writer thread only, which holds no transaction then.
    pub(crate) fn flush(&self, overlay: &Overlay) -> Result<u64, StoreError> {
        let mut growths = 0;
        loop {
            match self.try_flush(overlay) {
                Ok(()) => return Ok(growths),
                Err(heed::Error::Mdb(MdbError::MapFull)) => {
                    self.grow(overlay.bytes())?;
                    growths += 1;
                }
                Err(error) => {
                    let error = match self.error("committing", error) {
                        StoreError::Io { during, message } => self.explain(during, message),
                        other => other,
                    };
                    if let StoreError::Broken { message } = &error {
                        self.gate.break_down(message.clone());
                    }
                    return Err(error);
                }
            }
        }
    }

    fn try_flush(&self, overlay: &Overlay) -> Result<(), heed::Error> {
        // Dropping the transaction on the way out of an error aborts it.
        failpoint::pass("flush-started");
        let mut txn: RwTxn<'_> = self.env.write_txn()?;
        for (table, key, value) in overlay.writes() {
            failpoint::pass("flush-half-way");
            let database = self.databases.of(table);
            match value {
                Some(value) => database.put(&mut txn, key, value)?,
                None => drop(database.delete(&mut txn, key)?),
            }
        }
        failpoint::pass("flush-written");
        txn.commit()?;
        failpoint::pass("flush-durable");
        Ok(())
    }

    /// A disk that fills up in the middle of a write gives a short write, which LMDB reports as a plain I/O error.
    /// Writing behind the end of the file, where LMDB has put nothing yet, tells which it was.
    fn explain(&self, during: &'static str, message: String) -> StoreError {
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileExt;
            let probe = self.env.try_clone_inner_file().map_err(|error| self.error(during, error)).and_then(|file| {
                let end = file.metadata().map(|data| data.len());
                end.and_then(|end| file.write_all_at(&[0; limits::DISK_PROBE_BYTES], end))
                    .map_err(|error| StoreError::from_io(during, &self.path, &error))
            });
            if let Err(full @ StoreError::DiskFull { .. }) = probe {
                return full;
            }
        }
        StoreError::Io { during, message }
    }

    fn grow(&self, needed: usize) -> Result<(), StoreError> {
        let size = self.map_bytes();
        if size >= self.max_map_bytes {
            return Err(StoreError::MapFull { limit: self.max_map_bytes });
        }
        let wanted = size.saturating_mul(2).max(size.saturating_add(needed.saturating_mul(2)));
        let larger = round_up(wanted).min(self.max_map_bytes);
        tracing::debug!(from = size, to = larger, "growing the map");
        self.gate
            .alone(self.growth_patience, || {
                // SAFETY: a map may move only while this process has no transaction. Readers are outside (the gate is
                // held), and the only writer is the thread that calls this, after its transaction was aborted.
                let Err(error) = (unsafe { self.env.resize(larger) }) else {
                    return Ok(());
                };
                // LMDB gave up the old mapping before it failed to make the new one: go back, or stop for good.
                // SAFETY: as above; still inside the gate.
                if unsafe { self.env.resize(size) }.is_err() {
                    return Err(StoreError::Broken { message: format!("the file could not be mapped again: {error}") });
                }
                Err(self.error("growing the store", error))
            })?
            .inspect_err(|error| {
                if let StoreError::Broken { message } = error {
                    self.gate.break_down(message.clone());
                }
            })
    }

    /// Forces written data to disk; only [`Durability::NoSync`] has any left.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.env.force_sync().map_err(|error| self.error("syncing", error))
    }
}

pub(crate) fn round_up(bytes: usize) -> usize {
    bytes.div_ceil(limits::MAP_STEP_BYTES).saturating_mul(limits::MAP_STEP_BYTES)
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let file = path.join(LOCK_FILE);
    let during = "locking the data folder";
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&file)
        .map_err(|error| StoreError::from_io(during, path, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(StoreError::from_io(during, path, &error)),
    }
}

fn format_key() -> Key {
    Key::of("store").text("format")
}

fn format_error(path: &Path, found: impl Into<String>) -> StoreError {
    StoreError::Format { path: path.display().to_string(), found: found.into(), supported: FORMAT }
}

/// Refuses a file written by something else or by another format, before anything is created in it.
fn check_format(env: &Env<WithoutTls>, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::from_heed("reading the store format", path, error);
    let txn = env.read_txn().map_err(failed)?;
    let meta = env
        .open_databases_and_commit(txn, |opener, txn| {
            let meta = opener.open_database::<Bytes, Bytes>(txn, Some(Table::Meta.name()))?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(meta))
        })
        .map_err(failed)?
        .commit()
        .flatten();
    let txn = env.read_txn().map_err(failed)?;
    let Some(meta) = meta else {
        // A crash between creating the file and the first commit leaves a file without any database.
        let entries = env.unnamed_database_stat().entries;
        return if entries == 0 { Ok(()) } else { Err(format_error(path, "data of another program")) };
    };
    match meta.get(&txn, format_key().as_bytes()).map_err(failed)? {
        Some(bytes) if bytes == FORMAT.to_be_bytes() => Ok(()),
        Some(bytes) => Err(format_error(
            path,
            match <[u8; 4]>::try_from(bytes) {
                Ok(number) => format!("store format {}", u32::from_be_bytes(number)),
                Err(_) => "an unreadable store format".to_owned(),
            },
        )),
        None => Err(format_error(path, "data without a store format")),
    }
}

/// Creates or opens every database and writes the format record, in one transaction.
fn create_databases(env: &Env<WithoutTls>) -> Result<Databases, heed::Error> {
    let txn = env.write_txn()?;
    let opened = env.create_databases_and_commit(txn, |opener, txn| {
        let meta = opener.create_database::<Bytes, Bytes>(txn, Some(Table::Meta.name()))?;
        let mut all = [meta; Table::COUNT];
        for table in Table::ALL {
            all[table.index()] = opener.create_database::<Bytes, Bytes>(txn, Some(table.name()))?;
        }
        let key = format_key();
        if meta.get(txn, key.as_bytes())?.is_none() {
            meta.put(txn, key.as_bytes(), &FORMAT.to_be_bytes())?;
        }
        Ok::<_, heed::Error>(CommitOrAbort::<_, std::convert::Infallible>::Commit(all))
    })?;
    match opened {
        CommitOrAbort::Commit(databases) => Ok(Databases(databases)),
        CommitOrAbort::Abort(never) => match never {},
    }
}

/// Makes the files' names durable too: they are new, or a crash came before this the last time.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let sync = |folder: &Path| File::open(folder).and_then(|folder| folder.sync_all());
    if cfg!(unix) {
        sync(path).map_err(|error| StoreError::from_io("syncing the data folder", path, &error))?;
        // The parent may be unreadable to us; then the folder existed before and its name is durable already.
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = sync(parent);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
