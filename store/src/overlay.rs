//! Writes not yet in LMDB: one map per table over the head state, and an undo log for savepoints.
//!
//! Ordered maps, so that flushing the same writes gives LMDB the same sequence of operations (invariant 7).

use std::{collections::BTreeMap, ops::Bound};

use crate::tables::Table;

/// `None` marks a deleted key.
type Slot = Option<Box<[u8]>>;

#[derive(Default)]
pub(crate) struct Overlay {
    tables: [BTreeMap<Vec<u8>, Slot>; Table::COUNT],
    undo: Vec<Undo>,
    bytes: usize,
    written: usize,
}

struct Undo {
    table: Table,
    key: Vec<u8>,
    before: Option<Slot>,
}

/// A point to roll back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    undo: usize,
    bytes: usize,
}

impl Overlay {
    /// What this overlay says of a key: `None` nothing, `Some(None)` deleted.
    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        self.tables[table.index()].get(key).map(|slot| slot.as_deref())
    }

    pub(crate) fn range<'a>(
        &'a self,
        table: Table,
        from: &[u8],
        to: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(from), Bound::Excluded(to));
        // A BTreeMap panics on an inverted range; such a range is empty here.
        let range = (from < to).then(|| self.tables[table.index()].range::<[u8], _>(bounds));
        range.into_iter().flatten().map(|(key, slot)| (key.as_slice(), slot.as_deref()))
    }

    pub(crate) fn set(&mut self, table: Table, key: Vec<u8>, value: Slot) {
        let added = size(&key, &value);
        let before = self.tables[table.index()].insert(key.clone(), value);
        let removed = before.as_ref().map_or(0, |slot| size(&key, slot));
        self.bytes = self.bytes + added - removed;
        self.written = self.written.saturating_add(added);
        self.undo.push(Undo { table, key, before });
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { undo: self.undo.len(), bytes: self.bytes }
    }

    pub(crate) fn roll_back(&mut self, to: Mark) {
        for Undo { table, key, before } in self.undo.drain(to.undo..).rev() {
            let map = &mut self.tables[table.index()];
            match before {
                Some(slot) => drop(map.insert(key, slot)),
                None => drop(map.remove(&key)),
            }
        }
        self.bytes = to.bytes;
    }

    /// Keeps everything written so far: no earlier mark may be used again.
    pub(crate) fn keep(&mut self) {
        self.undo.clear();
    }

    /// What was written since the last [`Overlay::keep`], in order: table, key and what the overlay said before.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (Table, &[u8], Option<Option<&[u8]>>)> {
        self.undo.iter().map(|undo| (undo.table, undo.key.as_slice(), undo.before.as_ref().map(|slot| slot.as_deref())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.iter().all(BTreeMap::is_empty)
    }

    /// Bytes of all keys and values held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes ever written, overwritten and rolled back ones included: what bounds the undo log.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Every write, by table, then key.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        Table::ALL.into_iter().flat_map(move |table| {
            self.tables[table.index()].iter().map(move |(key, slot)| (table, key.as_slice(), slot.as_deref()))
        })
    }
}

fn size(key: &[u8], slot: &Slot) -> usize {
    key.len() + slot.as_ref().map_or(0, |value| value.len())
}
