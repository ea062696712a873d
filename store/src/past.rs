//! What a session was: the present with journal entries undone. And copying a session as it was.

use covel_graph::{Json, SessionId};
use heed::RoTxn;

use crate::{
    env::Environment,
    error::StoreError,
    journal::{self, JOURNAL},
    keys::Key,
    overlay::Overlay,
    read::Reader,
    records::turn,
    ring::{Bounds, session_key},
    tables::Table,
    tx::Tx,
};

/// The store with one session as it was. Everything else is as it is now.
pub struct Past<'a> {
    env: &'a Environment,
    txn: &'a RoTxn<'a>,
    overlay: Overlay,
}

impl Past<'_> {
    /// The view. Its journal and traces are those of the present.
    pub fn read(&self) -> Reader<'_> {
        Reader::new(self.env, self.txn, Some(&self.overlay))
    }
}

impl<'a> Reader<'a> {
    /// A session as it was before journal entry `seq`; the number after the last entry stands for the present.
    /// Data, items, counters and the session record are undone, later turns and messages are left out. The cost
    /// is that of the entries undone.
    ///
    /// # Errors
    /// `store-journal-pruned` when the journal does not reach `seq`; `store-corrupt`, `store-io`.
    pub fn state_before(&self, session: &SessionId, seq: u64) -> Result<Past<'a>, StoreError> {
        let prefix = session_key(session);
        let bounds = JOURNAL.bounds(self, &prefix)?;
        let pruned = || StoreError::JournalPruned {
            session: session.to_string(),
            found: seq,
            first: bounds.first,
            next: bounds.next,
        };
        if seq < bounds.first || seq > bounds.next {
            return Err(pruned());
        }
        let mut past = Past { env: self.env, txn: self.txn, overlay: self.pending_of(&prefix) };
        for number in (seq..bounds.next).rev() {
            let entry = JOURNAL.row(self, &prefix, number)?.ok_or_else(pruned)?;
            for change in journal::parse(entry)?.1 {
                let key = [prefix.as_bytes(), change.key].concat();
                let before = change.before(past.read().get_raw(change.table, &key)?)?;
                past.overlay.set(change.table, key, before);
            }
            past.overlay.keep();
        }
        past.hide_later(&prefix)?;
        Ok(past)
    }

    /// A copy of what the transaction under way has written of a session.
    fn pending_of(&self, session: &Key) -> Overlay {
        let mut copy = Overlay::default();
        let (from, to) = (session.as_bytes(), session.after_prefix());
        for (overlay, table) in self.overlay.iter().flat_map(|overlay| Table::JOURNALED.map(|table| (overlay, table))) {
            for (key, value) in overlay.range(table, from, &to) {
                copy.set(table, key.to_vec(), value.map(Into::into));
            }
        }
        copy
    }
}

impl Past<'_> {
    fn hide_later(&mut self, session: &Key) -> Result<(), StoreError> {
        for (table, counter) in [(Table::Messages, "messages"), (Table::Turns, "turns")] {
            let last = self.read().counter(Table::Counters, &session.clone().text(counter))?;
            let (from, to) = (session.clone().number(last.saturating_add(1)), session.after_prefix());
            let rows = self.read().range_raw(table, from.as_bytes(), &to)?;
            let later = rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
            for (key, value) in later.collect::<Result<Vec<_>, _>>()? {
                if table == Table::Turns {
                    let id = session.clone().text(turn::id(&value)?);
                    self.overlay.set(Table::TurnIds, id.into_bytes(), None);
                }
                self.overlay.set(table, key, None);
            }
        }
        self.overlay.keep();
        Ok(())
    }
}

/// What a copy of a session leaves out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave<'a> {
    /// Items of these kinds.
    pub item_kinds: &'a [&'a str],
    /// Plugin data of these owners.
    pub plugins: &'a [&'a str],
}

impl Tx<'_> {
    /// Copies a session as it was before journal entry `seq` (see [`Reader::state_before`]) to a new session:
    /// data with its versions, items, counters, messages and turns. Journal and traces stay behind: the child's
    /// journal starts here. The **record** is not copied but returned, for its owner to change and put.
    ///
    /// # Errors
    /// `store-session-exists` when the child is there, `store-session-missing` when the parent was not there then,
    /// `store-journal-pruned`, `store-transaction-too-large`, `store-corrupt`, `store-io`.
    pub fn copy_session_at(
        &mut self,
        parent: &SessionId,
        seq: u64,
        child: &SessionId,
        leave: Leave<'_>,
    ) -> Result<Json, StoreError> {
        let (from, to) = (session_key(parent), session_key(child));
        if self.read().has_session(child)? {
            return Err(StoreError::SessionExists { session: child.to_string() });
        }
        let left_out = leave
            .item_kinds
            .iter()
            .map(|kind| (Table::Items, from.clone().text(kind)))
            .chain(leave.plugins.iter().flat_map(|plugin| {
                let counts = from.clone().text("data-count").text(plugin);
                [(Table::Data, from.clone().text(plugin)), (Table::Counters, counts)]
            }))
            .collect::<Vec<_>>();
        let past = self.read().state_before(parent, seq)?;
        let reader = past.read();
        let record = reader.get_session(parent)?;
        let record = record.ok_or_else(|| StoreError::SessionMissing { session: parent.to_string() })?;
        let mut rows = Vec::new();
        for table in Table::JOURNALED.into_iter().filter(|table| *table != Table::Sessions) {
            for row in reader.prefix_raw(table, &from)? {
                let (key, value) = row?;
                if !left_out.iter().any(|(of, prefix)| *of == table && key.starts_with(prefix.as_bytes())) {
                    let key = [to.as_bytes(), &key[from.as_bytes().len()..]].concat();
                    rows.push((table, key, value.to_vec()));
                }
            }
        }
        drop(past);
        for (table, key, value) in rows {
            self.put_raw(table, Key::stored(&key), value)?;
        }
        JOURNAL.set_bounds(self, &to, Bounds::EMPTY);
        Ok(record)
    }
}
