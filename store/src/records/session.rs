//! Sessions, and the end of all that belongs to one.

use covel_graph::{Json, SessionId};

use crate::{
    codec::{RecordReader, RecordWriter},
    error::StoreError,
    keys::Key,
    read::Reader,
    tables::Table,
    tx::Tx,
};

/// A session as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Position in creation order, from 1.
    pub created_seq: u64,
    /// The record, as its owner wrote it.
    pub record: Json,
}

fn key(session: &SessionId) -> Key {
    Key::of(session.as_str())
}

fn parse(bytes: &[u8]) -> Result<SessionRow, StoreError> {
    let mut reader = RecordReader::new(Table::Sessions, bytes)?;
    let created_seq = reader.number()?;
    let id = SessionId::from(reader.text()?);
    Ok(SessionRow { id, created_seq, record: reader.json()? })
}

impl Reader<'_> {
    /// A session's record.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_session(&self, session: &SessionId) -> Result<Option<Json>, StoreError> {
        let bytes = self.get_raw(Table::Sessions, key(session).as_bytes())?;
        bytes.map(|bytes| parse(bytes).map(|row| row.record)).transpose()
    }

    /// Does the session exist? Cheaper than reading it.
    ///
    /// # Errors
    /// `store-io`.
    pub fn has_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        Ok(self.get_raw(Table::Sessions, key(session).as_bytes())?.is_some())
    }

    /// All sessions in creation order. Reads every session record and sorts.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let rows = self.range_raw(Table::Sessions, &[0], &[0xFF])?;
        let mut rows = rows.map(|row| parse(row?.1)).collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| row.created_seq);
        Ok(rows)
    }
}

impl Tx<'_> {
    /// Creates a session or replaces its record. A replaced one keeps its place in creation order.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-transaction-too-large`, `store-corrupt`.
    pub fn put_session(&mut self, session: &SessionId, record: &Json) -> Result<(), StoreError> {
        let key = key(session);
        let existing = self.read().get_raw(Table::Sessions, key.as_bytes())?.map(parse).transpose()?;
        let created_seq = match existing {
            Some(row) => row.created_seq,
            None => self.count_up(Table::Meta, Key::of("store").text("sessions"))?,
        };
        let text = record.text().as_bytes();
        let bytes = RecordWriter::new(text.len() + session.as_str().len() + 12)
            .number(created_seq)
            .text(session.as_str())
            .tail(text);
        self.put_raw(Table::Sessions, key, bytes)
    }

    /// Deletes a session with its turns, messages, plugin data and items; answers whether it existed.
    /// Fragments, plans and blobs stay: sessions share them. Costs one scan and memory for each key deleted.
    ///
    /// # Errors
    /// `store-transaction-too-large`, `store-io`.
    pub fn delete_session(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        let existed = self.read().has_session(session)?;
        for table in Table::OF_A_SESSION {
            self.delete_prefix_raw(table, &key(session))?;
        }
        Ok(existed)
    }
}
