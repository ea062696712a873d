//! Messages of a session, numbered from 1 in the order they were appended.

use std::ops::RangeBounds;

use covel_graph::{Json, SessionId};

use super::{numbered, page};
use crate::{
    codec::{RecordReader, RecordWriter, corrupt},
    error::StoreError,
    keys::{Key, Parts},
    read::{Reader, Rows},
    tables::Table,
    tx::Tx,
};

/// A message as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    /// Its number in the session, from 1. Numbers only grow; a deleted one is never given again.
    pub order: u64,
    /// The message, as its owner wrote it.
    pub message: Json,
}

fn prefix(session: &SessionId) -> Key {
    Key::of(session.as_str())
}

fn rows(rows: Rows<'_>, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
    rows.take(page(limit))
        .map(|row| {
            let (key, bytes) = row?;
            let mut parts = Parts::of(key);
            let order = parts.text().and_then(|_| parts.number());
            let order = order.ok_or_else(|| corrupt(Table::Messages, "unreadable key"))?;
            Ok(MessageRow { order, message: RecordReader::new(Table::Messages, bytes)?.json()? })
        })
        .collect()
}

impl Reader<'_> {
    /// One message.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_message(&self, session: &SessionId, order: u64) -> Result<Option<Json>, StoreError> {
        let bytes = self.get_raw(Table::Messages, prefix(session).number(order).as_bytes())?;
        bytes.map(|bytes| RecordReader::new(Table::Messages, bytes)?.json()).transpose()
    }

    /// The first `limit` messages with an order in `range`, oldest first.
    /// At most [`crate::limits::MAX_PAGE_ROWS`].
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_messages(
        &self,
        session: &SessionId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let (from, to) = numbered(&prefix(session), range);
        rows(self.range_raw(Table::Messages, &from, &to)?, limit)
    }

    /// The last `limit` messages with an order in `range`, oldest first. The cost is that of the rows returned.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn last_messages(
        &self,
        session: &SessionId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let (from, to) = numbered(&prefix(session), range);
        let mut rows = rows(self.rev_range_raw(Table::Messages, &from, &to)?, limit)?;
        rows.reverse();
        Ok(rows)
    }
}

impl Tx<'_> {
    /// Appends a message; answers its order.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-transaction-too-large`.
    pub fn append_message(&mut self, session: &SessionId, message: &Json) -> Result<u64, StoreError> {
        let order = self.count_up(Table::Counters, prefix(session).text("messages"))?;
        self.write_message(session, order, message)?;
        Ok(order)
    }

    /// Replaces a message; answers whether it exists. A missing one is not created.
    ///
    /// # Errors
    /// As [`Tx::append_message`].
    pub fn replace_message(&mut self, session: &SessionId, order: u64, message: &Json) -> Result<bool, StoreError> {
        if self.read().get_raw(Table::Messages, prefix(session).number(order).as_bytes())?.is_none() {
            return Ok(false);
        }
        self.write_message(session, order, message)?;
        Ok(true)
    }

    /// Deletes a message; answers whether it was there.
    ///
    /// # Errors
    /// `store-io`.
    pub fn delete_message(&mut self, session: &SessionId, order: u64) -> Result<bool, StoreError> {
        self.delete_raw(Table::Messages, prefix(session).number(order).as_bytes())
    }

    fn write_message(&mut self, session: &SessionId, order: u64, message: &Json) -> Result<(), StoreError> {
        let text = message.text().as_bytes();
        self.put_raw(Table::Messages, prefix(session).number(order), RecordWriter::new(text.len()).tail(text))
    }
}
