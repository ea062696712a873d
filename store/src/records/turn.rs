//! Turn documents of a session, numbered from 1 in the order they were first put, and found by turn id.

use std::ops::RangeBounds;

use covel_graph::{Json, SessionId, TurnId};

use super::{numbered, page};
use crate::{
    codec::{self, RecordReader, RecordWriter, corrupt},
    error::StoreError,
    keys::{Key, Parts},
    read::{Reader, Rows},
    tables::Table,
    tx::Tx,
};

/// A turn as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// Its number in the session, from 1.
    pub number: u64,
    /// Its id.
    pub id: TurnId,
    /// The result document, as its owner wrote it.
    pub document: Json,
}

fn prefix(session: &SessionId) -> Key {
    Key::of(session.as_str())
}

fn id_key(session: &SessionId, turn: &TurnId) -> Key {
    prefix(session).text(turn.as_str())
}

fn parse(number: u64, bytes: &[u8]) -> Result<TurnRow, StoreError> {
    let mut reader = RecordReader::new(Table::Turns, bytes)?;
    let id = TurnId::from(reader.text()?);
    Ok(TurnRow { number, id, document: reader.json()? })
}

/// The turn id in a stored turn.
pub(crate) fn id(bytes: &[u8]) -> Result<&str, StoreError> {
    RecordReader::new(Table::Turns, bytes)?.text()
}

fn rows(rows: Rows<'_>, limit: usize) -> Result<Vec<TurnRow>, StoreError> {
    rows.take(page(limit))
        .map(|row| {
            let (key, bytes) = row?;
            let mut parts = Parts::of(key);
            let number = parts.text().and_then(|_| parts.number());
            parse(number.ok_or_else(|| corrupt(Table::Turns, "unreadable key"))?, bytes)
        })
        .collect()
}

impl Reader<'_> {
    /// A turn by its id.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_turn(&self, session: &SessionId, turn: &TurnId) -> Result<Option<TurnRow>, StoreError> {
        match self.turn_number(session, turn)? {
            Some(number) => self.get_turn_by_number(session, number),
            None => Ok(None),
        }
    }

    /// A turn by its number.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_turn_by_number(&self, session: &SessionId, number: u64) -> Result<Option<TurnRow>, StoreError> {
        let bytes = self.get_raw(Table::Turns, prefix(session).number(number).as_bytes())?;
        bytes.map(|bytes| parse(number, bytes)).transpose()
    }

    /// A turn's number.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn turn_number(&self, session: &SessionId, turn: &TurnId) -> Result<Option<u64>, StoreError> {
        let bytes = self.get_raw(Table::TurnIds, id_key(session, turn).as_bytes())?;
        bytes.map(|bytes| codec::number(Table::TurnIds, bytes)).transpose()
    }

    /// The first `limit` turns with a number in `range`, oldest first. At most [`crate::limits::MAX_PAGE_ROWS`].
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_turns(
        &self,
        session: &SessionId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<TurnRow>, StoreError> {
        let (from, to) = numbered(&prefix(session), range);
        rows(self.range_raw(Table::Turns, &from, &to)?, limit)
    }

    /// The last `limit` turns with a number in `range`, oldest first. The cost is that of the rows returned.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn last_turns(
        &self,
        session: &SessionId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<TurnRow>, StoreError> {
        let (from, to) = numbered(&prefix(session), range);
        let mut rows = rows(self.rev_range_raw(Table::Turns, &from, &to)?, limit)?;
        rows.reverse();
        Ok(rows)
    }
}

impl Tx<'_> {
    /// Adds a turn or replaces its document; answers its number.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-transaction-too-large`, `store-corrupt`.
    pub fn put_turn(&mut self, session: &SessionId, turn: &TurnId, document: &Json) -> Result<u64, StoreError> {
        let existing = self.read().turn_number(session, turn)?;
        let number = match existing {
            Some(number) => number,
            None => {
                let number = self.count_up(Table::Counters, prefix(session).text("turns"))?;
                self.put_raw(Table::TurnIds, id_key(session, turn), number.to_be_bytes().to_vec())?;
                number
            }
        };
        let text = document.text().as_bytes();
        let bytes = RecordWriter::new(text.len() + turn.as_str().len() + 4).text(turn.as_str()).tail(text);
        self.put_raw(Table::Turns, prefix(session).number(number), bytes)?;
        Ok(number)
    }
}
