//! Reading: one view over LMDB and, inside a transaction, over the writes not yet flushed.

use std::{iter::Peekable, ops::Bound, sync::Arc};

use heed::{RoTxn, WithoutTls};

use crate::{
    env::Environment,
    error::StoreError,
    keys::Key,
    overlay::Overlay,
    tables::{Databases, Table},
};

/// A consistent view of the store. Typed accessors are beside the records they read (`records`).
///
/// A reader borrows a read transaction, so it cannot cross an `await` (invariant 9). Borrowed bytes live as long
/// as the reader's transaction.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub(crate) env: &'a Environment,
    pub(crate) txn: &'a RoTxn<'a>,
    pub(crate) overlay: Option<&'a Overlay>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(env: &'a Environment, txn: &'a RoTxn<'a>, overlay: Option<&'a Overlay>) -> Self {
        Self { env, txn, overlay }
    }

    fn databases(&self) -> &'a Databases {
        self.env.databases()
    }

    pub(crate) fn get_raw(&self, table: Table, key: &[u8]) -> Result<Option<&'a [u8]>, StoreError> {
        if let Some(slot) = self.overlay.and_then(|overlay| overlay.get(table, key)) {
            return Ok(slot);
        }
        self.databases().of(table).get(self.txn, key).map_err(|error| self.env.error("reading", error))
    }

    /// Rows with `from <= key < to`, ascending.
    pub(crate) fn range_raw(&self, table: Table, from: &[u8], to: &[u8]) -> Result<Rows<'a>, StoreError> {
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        let stored = self.databases().of(table).range(self.txn, &bounds);
        let stored = stored.map_err(|error| self.env.error("reading", error))?;
        let pending: Option<Pending<'a>> =
            self.overlay.map(|overlay| Box::new(overlay.range(table, from, to)) as Pending<'a>);
        Ok(Rows::new(self.env, Box::new(stored), pending, false))
    }

    /// The same rows, descending.
    pub(crate) fn rev_range_raw(&self, table: Table, from: &[u8], to: &[u8]) -> Result<Rows<'a>, StoreError> {
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        let stored = self.databases().of(table).rev_range(self.txn, &bounds);
        let stored = stored.map_err(|error| self.env.error("reading", error))?;
        let pending: Option<Pending<'a>> =
            self.overlay.map(|overlay| Box::new(overlay.range(table, from, to).rev()) as Pending<'a>);
        Ok(Rows::new(self.env, Box::new(stored), pending, true))
    }

    pub(crate) fn prefix_raw(&self, table: Table, prefix: &Key) -> Result<Rows<'a>, StoreError> {
        self.range_raw(table, prefix.as_bytes(), &prefix.after_prefix())
    }
}

type Stored<'a> = Box<dyn Iterator<Item = heed::Result<(&'a [u8], &'a [u8])>> + 'a>;
type Pending<'a> = Box<dyn Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a>;

/// Stored rows merged with pending ones, which win.
pub(crate) struct Rows<'a> {
    env: &'a Environment,
    stored: Peekable<Stored<'a>>,
    pending: Option<Peekable<Pending<'a>>>,
    descending: bool,
}

impl<'a> Rows<'a> {
    fn new(env: &'a Environment, stored: Stored<'a>, pending: Option<Pending<'a>>, descending: bool) -> Self {
        Self { env, stored: stored.peekable(), pending: pending.map(Iterator::peekable), descending }
    }

    fn next_stored(&mut self) -> Option<<Self as Iterator>::Item> {
        self.stored.next().map(|row| row.map_err(|error| self.env.error("reading", error)))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(&(pending_key, _)) = self.pending.as_mut().and_then(Peekable::peek) else {
                return self.next_stored();
            };
            let order = match self.stored.peek() {
                Some(Ok((stored_key, _))) => {
                    let order = stored_key.cmp(&pending_key);
                    if self.descending { order.reverse() } else { order }
                }
                Some(Err(_)) => return self.next_stored(),
                None => std::cmp::Ordering::Greater,
            };
            if order.is_lt() {
                return self.next_stored();
            }
            if order.is_eq() {
                self.stored.next();
            }
            // A pending deletion hides the stored row and is no row itself.
            if let Some((key, Some(value))) = self.pending.as_mut().and_then(Iterator::next) {
                return Some(Ok((key, value)));
            }
        }
    }
}

/// Leaves the gate when the read is over, whatever ended it.
struct Pass<'a>(&'a Environment);

impl<'a> Pass<'a> {
    fn take(env: &'a Environment) -> Result<Self, StoreError> {
        env.gate().enter()?;
        Ok(Self(env))
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.gate().leave();
    }
}

pub(crate) fn read<T, E: From<StoreError>>(
    env: &Environment,
    body: impl FnOnce(&Reader<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // Declared before the transaction, so dropped after it.
    let _pass = Pass::take(env)?;
    let txn = env.read_txn()?;
    body(&Reader::new(env, &txn, None))
}

/// An owned view of one instant, which may move between threads.
///
/// While it lives, pages freed by later commits are not reused and the map cannot grow: keep it for microseconds
/// to milliseconds, never across an `await`. A commit that must grow the map waits for it about ten seconds,
/// then fails with `store-map-busy`.
pub struct Snapshot {
    // Field order is drop order: the transaction ends before the gate is left.
    txn: RoTxn<'static, WithoutTls>,
    _pass: OwnedPass,
}

struct OwnedPass(Arc<Environment>);

impl Drop for OwnedPass {
    fn drop(&mut self) {
        self.0.gate().leave();
    }
}

impl Snapshot {
    pub(crate) fn take(env: &Arc<Environment>) -> Result<Self, StoreError> {
        env.gate().enter()?;
        let pass = OwnedPass(env.clone());
        let txn = env.owned_read_txn()?;
        Ok(Self { txn, _pass: pass })
    }

    /// The view.
    pub fn read(&self) -> Reader<'_> {
        Reader::new(&self._pass.0, &self.txn, None)
    }
}
