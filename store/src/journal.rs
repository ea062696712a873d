//! The journal: what each committed transaction changed of a session, so that it can be undone.
//!
//! Every transaction leaves at most one entry a session, made from the transaction's own undo log. A change holds
//! what was there **before**, as the middle part in which it differs from what is there after; so undoing walks
//! back from the present (`past`). New turns and messages are numbered, so the counters tell which are later and
//! only the replacing and deleting of old ones is written down.

use std::{collections::BTreeMap, ops::RangeBounds};

use covel_graph::SessionId;

use crate::{
    codec::{RecordReader, RecordWriter, corrupt},
    error::StoreError,
    keys::{self, Key, Part, Parts},
    limits,
    read::Reader,
    records::numbered,
    ring::{Bounds, Ring, session_key},
    tables::Table,
    tx::Tx,
};

pub(crate) const JOURNAL: Ring =
    Ring { table: Table::Journal, max_rows: limits::MAX_JOURNAL_ENTRIES, max_bytes: limits::MAX_JOURNAL_BYTES };

/// Who made a transaction. Kinds in use: `turn`, `job`, `rpc`, `host`, `fork`; an owner may add others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// What kind of thing made it; empty when nobody said.
    pub kind: String,
    /// Which one: a turn id, a job id.
    pub id: String,
    /// When, as an ISO time.
    pub at: String,
}

/// What one transaction changed of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its number in the session, from 1. Numbers only grow.
    pub seq: u64,
    /// Who made it.
    pub cause: Cause,
    /// What changed, by table, then key.
    pub changes: Vec<JournalChange>,
}

/// One changed row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalChange {
    /// `sessions`, `data`, `items`, `counters`, `messages` or `turns`.
    pub table: &'static str,
    /// The parts of its key after the session. A part too long for a key reads `...`; a number is its digits.
    pub key: Vec<String>,
    /// Was the row there before?
    pub existed: bool,
}

/// Which entries a session's journal holds: `first..next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBounds {
    /// The earliest entry kept, or `next` when there is none.
    pub first: u64,
    /// The number the next entry will get.
    pub next: u64,
    /// Bytes of all entries.
    pub bytes: u64,
}

impl From<Bounds> for JournalBounds {
    fn from(Bounds { first, next, bytes }: Bounds) -> Self {
        Self { first, next, bytes }
    }
}

/// What was there before, relative to what is there after.
enum Before<'a> {
    Absent,
    Whole(&'a [u8]),
    /// The same first and last bytes, and another middle.
    Middle {
        head: usize,
        tail: usize,
        middle: &'a [u8],
    },
}

impl<'a> Before<'a> {
    fn of(before: Option<&'a [u8]>, after: Option<&[u8]>) -> Self {
        let (before, after) = match (before, after) {
            (None, _) => return Self::Absent,
            (Some(before), None) => return Self::Whole(before),
            (Some(before), Some(after)) => (before, after),
        };
        let shorter = before.len().min(after.len());
        let head = common(before.iter().zip(after));
        let tail = common(before.iter().rev().zip(after.iter().rev())).min(shorter - head);
        Self::Middle { head, tail, middle: &before[head..before.len() - tail] }
    }

    fn write(&self, record: RecordWriter) -> RecordWriter {
        match self {
            Self::Absent => record.byte(0),
            Self::Whole(bytes) => record.byte(1).counted(bytes),
            Self::Middle { head, tail, middle } => record.byte(2).varint(*head).varint(*tail).counted(middle),
        }
    }

    fn read(record: &mut RecordReader<'a>) -> Result<Self, StoreError> {
        match record.bytes(1)? {
            [0] => Ok(Self::Absent),
            [1] => {
                let length = record.varint()?;
                Ok(Self::Whole(record.bytes(length)?))
            }
            [2] => {
                let (head, tail, length) = (record.varint()?, record.varint()?, record.varint()?);
                Ok(Self::Middle { head, tail, middle: record.bytes(length)? })
            }
            _ => Err(corrupt(Table::Journal, "unknown kind of change")),
        }
    }

    fn bytes(&self, after: Option<&[u8]>) -> Result<Option<Box<[u8]>>, StoreError> {
        match *self {
            Self::Absent => Ok(None),
            Self::Whole(bytes) => Ok(Some(bytes.into())),
            Self::Middle { head, tail, middle } => {
                let unfit = || corrupt(Table::Journal, "an entry does not fit what is stored");
                let after = after.ok_or_else(unfit)?;
                if head.checked_add(tail).is_none_or(|kept| kept > after.len()) {
                    return Err(unfit());
                }
                Ok(Some([&after[..head], middle, &after[after.len() - tail..]].concat().into()))
            }
        }
    }
}

fn common<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    pairs.take_while(|(a, b)| a == b).count()
}

/// One stored change. Its key lacks the session.
pub(crate) struct Change<'a> {
    pub(crate) table: Table,
    pub(crate) key: &'a [u8],
    before: Before<'a>,
}

impl Change<'_> {
    /// What was there before, given what is there after.
    pub(crate) fn before(&self, after: Option<&[u8]>) -> Result<Option<Box<[u8]>>, StoreError> {
        self.before.bytes(after)
    }

    fn describe(&self) -> JournalChange {
        JournalChange {
            table: self.table.name(),
            key: key_parts(self.key),
            existed: !matches!(self.before, Before::Absent),
        }
    }
}

/// The readable parts of a key that lacks its session.
pub(crate) fn key_parts(mut rest: &[u8]) -> Vec<String> {
    let mut key = Vec::new();
    while let Some(part) = keys::first_part(rest) {
        key.push(match Parts::of(part).text() {
            Some(Part::Exact(text)) => text,
            _ => "...".to_owned(),
        });
        rest = &rest[part.len()..];
    }
    if let Ok(number) = rest.try_into() {
        key.push(u64::from_be_bytes(number).to_string());
    }
    key
}

/// Reads an entry.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Cause, Vec<Change<'_>>), StoreError> {
    let mut record = RecordReader::new(Table::Journal, bytes)?;
    let cause = cause(&mut record)?;
    let mut changes = Vec::new();
    while !record.is_done() {
        let table = Table::from_index(record.bytes(1)?[0]).filter(|table| Table::JOURNALED.contains(table));
        let table = table.ok_or_else(|| corrupt(Table::Journal, "a change of no known table"))?;
        let length = record.varint()?;
        let key = record.bytes(length)?;
        changes.push(Change { table, key, before: Before::read(&mut record)? });
    }
    Ok((cause, changes))
}

fn cause(record: &mut RecordReader<'_>) -> Result<Cause, StoreError> {
    let (kind, id, at) = (record.text()?.to_owned(), record.text()?.to_owned(), record.text()?.to_owned());
    Ok(Cause { kind, id, at })
}

impl Reader<'_> {
    /// The first `limit` entries of a session's journal with a number in `range`, oldest first.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn journal(
        &self,
        session: &SessionId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let (from, to) = numbered(&session_key(session), range);
        self.range_raw(Table::Journal, &from, &to)?
            .take(limit.min(limits::MAX_PAGE_ROWS))
            .map(|row| {
                let (key, bytes) = row?;
                let mut parts = Parts::of(key);
                let seq = parts.text().and_then(|_| parts.number());
                let seq = seq.ok_or_else(|| corrupt(Table::Journal, "unreadable key"))?;
                let (cause, changes) = parse(bytes)?;
                Ok(JournalEntry { seq, cause, changes: changes.iter().map(Change::describe).collect() })
            })
            .collect()
    }

    /// Which entries a session's journal holds.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn journal_bounds(&self, session: &SessionId) -> Result<JournalBounds, StoreError> {
        JOURNAL.bounds(self, &session_key(session)).map(JournalBounds::from)
    }

    /// The number of the newest entry with this cause. Looks at every entry kept, newest first.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn find_journal(&self, session: &SessionId, kind: &str, id: &str) -> Result<Option<u64>, StoreError> {
        let (from, to) = numbered(&session_key(session), ..);
        for row in self.rev_range_raw(Table::Journal, &from, &to)? {
            let (key, bytes) = row?;
            let cause = cause(&mut RecordReader::new(Table::Journal, bytes)?)?;
            if cause.kind == kind && cause.id == id {
                let mut parts = Parts::of(key);
                return Ok(parts.text().and_then(|_| parts.number()));
            }
        }
        Ok(None)
    }
}

/// A session's key part and its encoded entry.
type SessionEntry = (Vec<u8>, Vec<u8>);
/// What was there before, by changed key: the outer `None` when the transaction has not said, the inner when nothing was.
type BeforeImages<'a> = BTreeMap<(Table, &'a [u8]), Option<Option<&'a [u8]>>>;

impl Tx<'_> {
    /// Says who makes this transaction, for the journal. The last word counts; parts over
    /// [`limits::MAX_CAUSE_BYTES`] are cut.
    pub fn set_cause(&mut self, kind: &str, id: &str, at: &str) {
        let cut = |text: &str| text[..text.floor_char_boundary(limits::MAX_CAUSE_BYTES)].to_owned();
        self.cause = Cause { kind: cut(kind), id: cut(id), at: cut(at) };
    }

    /// Writes the entries of this transaction: one for each session it changed.
    pub(crate) fn write_journal(&mut self) -> Result<(), StoreError> {
        for (session, entry) in self.journal_entries()? {
            JOURNAL.append(self, &Key::stored(&session), entry, |_, _| Ok(()))?;
        }
        Ok(())
    }

    fn journal_entries(&self) -> Result<Vec<SessionEntry>, StoreError> {
        let stored = Reader::new(self.env, self.txn, None);
        // By session: the first thing said of each key is what was there before.
        let mut sessions: BTreeMap<&[u8], BeforeImages<'_>> = BTreeMap::new();
        for (table, key, before) in self.overlay.changes() {
            if table == Table::Journal {
                // Its bounds are written here only when a journal ends or starts: nothing before counts.
                sessions.remove(key);
            } else if Table::JOURNALED.contains(&table)
                && let Some(session) = keys::first_part(key)
            {
                sessions.entry(session).or_default().entry((table, key)).or_insert(before);
            }
        }
        let mut entries = Vec::with_capacity(sessions.len());
        for (session, changes) in sessions {
            let mut record = RecordWriter::new(256).text(&self.cause.kind).text(&self.cause.id).text(&self.cause.at);
            let mut changed = false;
            for ((table, key), before) in changes {
                let before = match before {
                    Some(said) => said,
                    None => stored.get_raw(table, key)?,
                };
                let after = self.overlay.get(table, key).flatten();
                changed |= before != after;
                if before == after || (before.is_none() && table.is_numbered()) {
                    continue;
                }
                record = record.byte(table.index() as u8).counted(&key[session.len()..]);
                record = Before::of(before, after).write(record);
            }
            if changed {
                entries.push((session.to_vec(), record.tail(&[])));
            }
        }
        Ok(entries)
    }
}
