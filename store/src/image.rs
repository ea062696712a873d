//! All rows of one session, to be put elsewhere or compared.

use covel_graph::{Json, SessionId};
use serde_json::{Value, json};

use crate::{
    codec::{self, RecordReader},
    error::StoreError,
    journal::{JOURNAL, key_parts},
    keys::Key,
    read::Reader,
    ring::{Bounds, session_key},
    tables::Table,
    tx::Tx,
};

/// All rows of one session but its journal and traces, ordered by table, then key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionImage {
    rows: Vec<ImageRow>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRow {
    table: Table,
    /// Without the session.
    key: Vec<u8>,
    full_key: Vec<u8>,
    value: Vec<u8>,
}

impl SessionImage {
    /// The rows.
    pub fn rows(&self) -> &[ImageRow] {
        &self.rows
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.full_key.len() + row.value.len()).sum()
    }

    /// The rows in which two images differ, in order: this one's and the other's, or nothing where it has none.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a ImageRow>, Option<&'a ImageRow>)> {
        let (mut mine, mut theirs) = (self.rows.iter().peekable(), other.rows.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let order = match (mine.peek(), theirs.peek()) {
                    (Some(mine), Some(theirs)) => mine.place().cmp(&theirs.place()),
                    (Some(_), None) => std::cmp::Ordering::Less,
                    (None, Some(_)) => std::cmp::Ordering::Greater,
                    (None, None) => return None,
                };
                let pair =
                    (order.is_le().then(|| mine.next()).flatten(), order.is_ge().then(|| theirs.next()).flatten());
                if pair.0.map(|row| &row.value) != pair.1.map(|row| &row.value) {
                    return Some(pair);
                }
            }
        })
    }
}

impl ImageRow {
    fn place(&self) -> (Table, &[u8]) {
        (self.table, &self.key)
    }

    /// `sessions`, `turns`, `turn-ids`, `messages`, `data`, `items` or `counters`.
    pub fn table(&self) -> &'static str {
        self.table.name()
    }

    /// The parts of its key after the session. A part too long for a key reads `...`; a number is its digits.
    pub fn key(&self) -> Vec<String> {
        key_parts(&self.key)
    }

    /// The record as JSON: what its owner wrote, for plugin data with versions and times around it.
    ///
    /// # Errors
    /// `store-corrupt`.
    pub fn to_json(&self) -> Result<Json, StoreError> {
        let mut record = match self.table {
            Table::Counters | Table::TurnIds => {
                return codec::number(self.table, &self.value).map(|number| Json::from_value(number.into()));
            }
            table => RecordReader::new(table, &self.value)?,
        };
        match self.table {
            Table::Data => {
                let (version, created_seq) = (record.number()?, record.number()?);
                let (created_at, updated_at) = (record.text()?.to_owned(), record.text()?.to_owned());
                if record.number()? != 0 {
                    for _ in 0..3 {
                        record.text()?;
                    }
                }
                let value: Value = record.json()?.value().clone();
                return Ok(Json::from_value(json!({
                    "value": value, "version": version, "createdSeq": created_seq,
                    "createdAt": created_at, "updatedAt": updated_at,
                })));
            }
            Table::Items | Table::Sessions => {
                record.number()?;
                record.text()?;
            }
            Table::Turns => drop(record.text()?),
            _ => {}
        }
        record.json()
    }
}

impl Reader<'_> {
    /// All rows of a session but its journal and traces. Costs the memory of them all.
    ///
    /// # Errors
    /// `store-io`.
    pub fn session_image(&self, session: &SessionId) -> Result<SessionImage, StoreError> {
        let prefix = session_key(session);
        let mut rows = Vec::new();
        for table in Table::JOURNALED {
            for row in self.prefix_raw(table, &prefix)? {
                let (key, value) = row?;
                let own = key[prefix.as_bytes().len()..].to_vec();
                rows.push(ImageRow { table, key: own, full_key: key.to_vec(), value: value.to_vec() });
            }
        }
        rows.sort_by(|a, b| a.place().cmp(&b.place()));
        Ok(SessionImage { rows })
    }
}

impl Tx<'_> {
    /// Puts the rows of a session as they were, under the same id; its journal goes on with number `journal_next`.
    ///
    /// # Errors
    /// `store-session-exists`, `store-transaction-too-large`.
    pub fn put_image(&mut self, image: &SessionImage, journal_next: u64) -> Result<(), StoreError> {
        let Some(first) = image.rows.first() else { return Ok(()) };
        let session = Key::stored(&first.full_key[..first.full_key.len() - first.key.len()]);
        if self.read().get_raw(Table::Sessions, session.as_bytes())?.is_some() {
            let session = String::from_utf8_lossy(session.as_bytes()).into_owned();
            return Err(StoreError::SessionExists { session });
        }
        for row in &image.rows {
            self.put_raw(row.table, Key::stored(&row.full_key), row.value.clone())?;
        }
        JOURNAL.set_bounds(self, &session, Bounds { first: journal_next, next: journal_next, bytes: 0 });
        Ok(())
    }
}
