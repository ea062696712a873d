//! A bounded log a session owns: rows numbered from 1, the oldest dropped as new ones come.
//!
//! `(session)` holds the bounds, `(session) seq` a row. Numbers are never given twice.

use covel_graph::SessionId;

use crate::{
    codec::{RecordReader, RecordWriter, corrupt},
    error::StoreError,
    keys::Key,
    read::Reader,
    tables::Table,
    tx::Tx,
};

/// Which log, and how much of it is kept.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    pub(crate) table: Table,
    pub(crate) max_rows: u64,
    pub(crate) max_bytes: u64,
}

/// What a log holds: rows `first..next`, with `bytes` bytes of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) bytes: u64,
}

impl Bounds {
    pub(crate) const EMPTY: Self = Self { first: 1, next: 1, bytes: 0 };
}

impl Ring {
    pub(crate) fn bounds(self, reader: &Reader<'_>, session: &Key) -> Result<Bounds, StoreError> {
        let Some(bytes) = reader.get_raw(self.table, session.as_bytes())? else {
            return Ok(Bounds::EMPTY);
        };
        let mut record = RecordReader::new(self.table, bytes)?;
        let bounds = Bounds { first: record.number()?, next: record.number()?, bytes: record.number()? };
        if bounds.first > bounds.next {
            return Err(corrupt(self.table, "bounds are inverted"));
        }
        Ok(bounds)
    }

    pub(crate) fn row<'a>(self, reader: &Reader<'a>, session: &Key, seq: u64) -> Result<Option<&'a [u8]>, StoreError> {
        reader.get_raw(self.table, session.clone().number(seq).as_bytes())
    }

    pub(crate) fn set_bounds(self, tx: &mut Tx<'_>, session: &Key, bounds: Bounds) {
        let value = RecordWriter::new(24).number(bounds.first).number(bounds.next).number(bounds.bytes).tail(&[]);
        tx.overlay.set(self.table, session.as_bytes().to_vec(), Some(value.into_boxed_slice()));
    }

    /// Appends a row and drops the oldest ones over the limits; `dropped` sees each before it goes. A row larger
    /// than the log itself leaves an empty log. Answers the row's number.
    pub(crate) fn append(
        self,
        tx: &mut Tx<'_>,
        session: &Key,
        value: Vec<u8>,
        mut dropped: impl FnMut(&mut Tx<'_>, &[u8]) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut bounds = self.bounds(&tx.read(), session)?;
        let seq = bounds.next;
        bounds.next += 1;
        bounds.bytes += value.len() as u64;
        tx.overlay.set(self.table, session.clone().number(seq).into_bytes(), Some(value.into_boxed_slice()));
        while bounds.first < bounds.next
            && (bounds.next - bounds.first > self.max_rows || bounds.bytes > self.max_bytes)
        {
            let key = session.clone().number(bounds.first).into_bytes();
            if let Some(row) = tx.read().get_raw(self.table, &key)?.map(<[u8]>::to_vec) {
                bounds.bytes = bounds.bytes.saturating_sub(row.len() as u64);
                dropped(tx, &row)?;
                tx.overlay.set(self.table, key, None);
            }
            bounds.first += 1;
        }
        self.set_bounds(tx, session, bounds);
        Ok(seq)
    }
}

/// The prefix of everything a session owns.
pub(crate) fn session_key(session: &SessionId) -> Key {
    Key::of(session.as_str())
}
