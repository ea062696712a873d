//! Small records a session owns, by kind and id: the trigger ledger, set-up records, jobs and the like.

use covel_graph::{Json, RuntimeId, SessionId};

use crate::{
    codec::{RecordReader, RecordWriter},
    error::StoreError,
    keys::Key,
    read::Reader,
    tables::Table,
    tx::Tx,
};

/// An item as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRow {
    /// Its id.
    pub id: String,
    /// Position in the session's creation order of items.
    pub created_seq: u64,
    /// The record, as its owner wrote it.
    pub record: Json,
}

const TRIGGER: &str = "trigger";
const SETUP: &str = "setup";

fn prefix(session: &SessionId, kind: &str) -> Key {
    Key::of(session.as_str()).text(kind)
}

fn parse(bytes: &[u8]) -> Result<ItemRow, StoreError> {
    let mut reader = RecordReader::new(Table::Items, bytes)?;
    let created_seq = reader.number()?;
    let id = reader.text()?.to_owned();
    Ok(ItemRow { id, created_seq, record: reader.json()? })
}

impl Reader<'_> {
    /// An item.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_item(&self, session: &SessionId, kind: &str, id: &str) -> Result<Option<Json>, StoreError> {
        let bytes = self.get_raw(Table::Items, prefix(session, kind).text(id).as_bytes())?;
        bytes.map(|bytes| parse(bytes).map(|row| row.record)).transpose()
    }

    /// All items of a kind in creation order. Reads the whole kind and sorts.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_items(&self, session: &SessionId, kind: &str) -> Result<Vec<ItemRow>, StoreError> {
        let rows = self.prefix_raw(Table::Items, &prefix(session, kind))?;
        let mut rows = rows.map(|row| parse(row?.1)).collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| row.created_seq);
        Ok(rows)
    }

    /// A runtime's entry in the session's trigger ledger.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_trigger(&self, session: &SessionId, runtime: &RuntimeId) -> Result<Option<Json>, StoreError> {
        self.get_item(session, TRIGGER, runtime.as_str())
    }

    /// The session's trigger ledger, in creation order.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_triggers(&self, session: &SessionId) -> Result<Vec<ItemRow>, StoreError> {
        self.list_items(session, TRIGGER)
    }

    /// A runtime's set-up record.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_setup(&self, session: &SessionId, runtime: &RuntimeId) -> Result<Option<Json>, StoreError> {
        self.get_item(session, SETUP, runtime.as_str())
    }

    /// The session's set-up records, in creation order.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_setups(&self, session: &SessionId) -> Result<Vec<ItemRow>, StoreError> {
        self.list_items(session, SETUP)
    }
}

impl Tx<'_> {
    /// Creates or replaces an item. A replaced one keeps its place in creation order.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-transaction-too-large`, `store-corrupt`.
    pub fn put_item(&mut self, session: &SessionId, kind: &str, id: &str, record: &Json) -> Result<(), StoreError> {
        let key = prefix(session, kind).text(id);
        let existing = self.read().get_raw(Table::Items, key.as_bytes())?.map(parse).transpose()?;
        let created_seq = match existing {
            Some(row) => row.created_seq,
            None => self.count_up(Table::Counters, Key::of(session.as_str()).text("items"))?,
        };
        let text = record.text().as_bytes();
        let bytes = RecordWriter::new(text.len() + id.len() + 12).number(created_seq).text(id).tail(text);
        self.put_raw(Table::Items, key, bytes)
    }

    /// Deletes an item; answers whether it was there.
    ///
    /// # Errors
    /// `store-io`.
    pub fn delete_item(&mut self, session: &SessionId, kind: &str, id: &str) -> Result<bool, StoreError> {
        self.delete_raw(Table::Items, prefix(session, kind).text(id).as_bytes())
    }

    /// Sets a runtime's entry in the session's trigger ledger.
    ///
    /// # Errors
    /// As [`Tx::put_item`].
    pub fn put_trigger(&mut self, session: &SessionId, runtime: &RuntimeId, record: &Json) -> Result<(), StoreError> {
        self.put_item(session, TRIGGER, runtime.as_str(), record)
    }

    /// Sets a runtime's set-up record.
    ///
    /// # Errors
    /// As [`Tx::put_item`].
    pub fn put_setup(&mut self, session: &SessionId, runtime: &RuntimeId, record: &Json) -> Result<(), StoreError> {
        self.put_item(session, SETUP, runtime.as_str(), record)
    }
}
