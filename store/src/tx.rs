//! Writing inside a transaction: everything goes to the overlay; nothing reaches LMDB before the batch is flushed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use heed::RoTxn;

use crate::{
    codec, env::Environment, error::StoreError, journal::Cause, keys::Key, limits, overlay::Overlay, read::Reader,
    tables::Table,
};

/// A transaction under way. Its reads see the head state, earlier transactions of the same group commit, and its
/// own writes. Typed accessors are beside the records they write (`records`).
///
/// It runs on the store's only writer thread: while a closure computes, nobody commits. Prepare outside.
pub struct Tx<'t> {
    pub(crate) env: &'t Environment,
    pub(crate) txn: &'t RoTxn<'t>,
    pub(crate) overlay: &'t mut Overlay,
    pub(crate) cause: Cause,
    written_before: usize,
    depth: usize,
}

impl<'t> Tx<'t> {
    pub(crate) fn new(env: &'t Environment, txn: &'t RoTxn<'t>, overlay: &'t mut Overlay) -> Self {
        let written_before = overlay.written();
        Self { env, txn, overlay, cause: Cause::default(), written_before, depth: 0 }
    }

    /// The view this transaction has, its own writes included.
    pub fn read(&self) -> Reader<'_> {
        Reader::new(self.env, self.txn, Some(self.overlay))
    }

    /// Runs `body`; when it fails, what it wrote is undone and the transaction goes on. Savepoints nest.
    ///
    /// # Errors
    /// The body's own, or `store-savepoint-depth` beyond [`limits::MAX_SAVEPOINT_DEPTH`].
    pub fn savepoint<T, E: From<StoreError>>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        if self.depth >= limits::MAX_SAVEPOINT_DEPTH {
            return Err(StoreError::SavepointDepth { limit: limits::MAX_SAVEPOINT_DEPTH }.into());
        }
        let mark = self.overlay.mark();
        let depth = self.depth;
        self.depth += 1;
        // A panic that the transaction's closure catches itself must not leave half a savepoint behind.
        let outcome = catch_unwind(AssertUnwindSafe(|| body(self)));
        self.depth = depth;
        if !matches!(outcome, Ok(Ok(_))) {
            self.overlay.roll_back(mark);
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub(crate) fn put_raw(&mut self, table: Table, key: Key, value: Vec<u8>) -> Result<(), StoreError> {
        if value.len() > limits::MAX_RECORD_BYTES {
            return Err(StoreError::ValueTooLarge {
                table: table.name(),
                found: value.len(),
                limit: limits::MAX_RECORD_BYTES,
            });
        }
        self.charge(key.as_bytes().len() + value.len())?;
        self.overlay.set(table, key.into_bytes(), Some(value.into_boxed_slice()));
        Ok(())
    }

    /// Deletes; answers whether there was anything.
    pub(crate) fn delete_raw(&mut self, table: Table, key: &[u8]) -> Result<bool, StoreError> {
        if self.read().get_raw(table, key)?.is_none() {
            return Ok(false);
        }
        self.charge(key.len())?;
        self.overlay.set(table, key.to_vec(), None);
        Ok(true)
    }

    /// Deletes every row with this prefix. Costs memory for each key until the commit.
    pub(crate) fn delete_prefix_raw(&mut self, table: Table, prefix: &Key) -> Result<usize, StoreError> {
        let keys = self.read().prefix_raw(table, prefix)?;
        let keys = keys.map(|row| row.map(|(key, _)| key.to_vec())).collect::<Result<Vec<_>, _>>()?;
        for key in &keys {
            self.charge(key.len())?;
            self.overlay.set(table, key.clone(), None);
        }
        Ok(keys.len())
    }

    fn charge(&self, bytes: usize) -> Result<(), StoreError> {
        let written = self.overlay.written() - self.written_before;
        if written.saturating_add(bytes) > limits::MAX_TRANSACTION_BYTES {
            return Err(StoreError::TransactionTooLarge { limit: limits::MAX_TRANSACTION_BYTES });
        }
        Ok(())
    }

    /// Adds to a counter (absent = 0) and returns its new value.
    pub(crate) fn count_up(&mut self, table: Table, key: Key) -> Result<u64, StoreError> {
        let next = self.read().counter(table, &key)?.saturating_add(1);
        self.put_raw(table, key, next.to_be_bytes().to_vec())?;
        Ok(next)
    }

    pub(crate) fn count_down(&mut self, table: Table, key: Key) -> Result<(), StoreError> {
        match self.read().counter(table, &key)?.saturating_sub(1) {
            0 => self.delete_raw(table, key.as_bytes()).map(drop),
            left => self.put_raw(table, key, left.to_be_bytes().to_vec()),
        }
    }
}

impl Reader<'_> {
    pub(crate) fn counter(&self, table: Table, key: &Key) -> Result<u64, StoreError> {
        self.get_raw(table, key.as_bytes())?.map_or(Ok(0), |bytes| codec::number(table, bytes))
    }
}
