//! All database names, in one place.

use heed::{Database, types::Bytes};

/// One LMDB database. Keys are built in [`crate::keys`], values in [`crate::codec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    /// `(owner, name)` -> bytes. Owner `store` is this crate, `user` is everyone else.
    Meta,
    /// `(session)` -> session record.
    Sessions,
    /// `(session) number` -> turn document.
    Turns,
    /// `(session, turn id)` -> turn number.
    TurnIds,
    /// `(session) order` -> message.
    Messages,
    /// `(session, plugin, namespace, key)` -> plugin data record.
    Data,
    /// `(session, kind, id)` -> JSON: trigger ledger, set-up records and whatever else a session owns.
    Items,
    /// `(session, name)` or `(session, name, plugin, namespace)` -> number.
    Counters,
    /// `(session)` -> bounds of its journal, `(session) seq` -> journal entry.
    Journal,
    /// `(session)` -> bounds of its traces, `(session) seq` -> what one execution did and consumed.
    Traces,
    /// `(session, turn id)` -> position in the traces.
    TraceIds,
    /// `(digest)` -> compiled package version.
    Fragments,
    /// `(digest)` -> linked plan.
    Plans,
    /// `(digest)` -> any other bytes.
    Blobs,
}

impl Table {
    pub(crate) const COUNT: usize = 14;

    pub(crate) const ALL: [Table; Self::COUNT] = [
        Self::Meta,
        Self::Sessions,
        Self::Turns,
        Self::TurnIds,
        Self::Messages,
        Self::Data,
        Self::Items,
        Self::Counters,
        Self::Journal,
        Self::Traces,
        Self::TraceIds,
        Self::Fragments,
        Self::Plans,
        Self::Blobs,
    ];

    /// Tables whose keys start with a session: deleting a session empties its prefix in each.
    pub(crate) const OF_A_SESSION: [Table; 10] = [
        Self::Sessions,
        Self::Turns,
        Self::TurnIds,
        Self::Messages,
        Self::Data,
        Self::Items,
        Self::Counters,
        Self::Journal,
        Self::Traces,
        Self::TraceIds,
    ];

    /// Tables whose changes the journal can undo.
    pub(crate) const JOURNALED: [Table; 7] =
        [Self::Sessions, Self::Turns, Self::TurnIds, Self::Messages, Self::Data, Self::Items, Self::Counters];

    /// Tables whose new rows are numbered: a counter tells which are later, so their making is not journaled.
    pub(crate) const fn is_numbered(self) -> bool {
        matches!(self, Self::Turns | Self::TurnIds | Self::Messages)
    }

    pub(crate) fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Sessions => "sessions",
            Self::Turns => "turns",
            Self::TurnIds => "turn-ids",
            Self::Messages => "messages",
            Self::Data => "data",
            Self::Items => "items",
            Self::Counters => "counters",
            Self::Journal => "journal",
            Self::Traces => "traces",
            Self::TraceIds => "trace-ids",
            Self::Fragments => "fragments",
            Self::Plans => "plans",
            Self::Blobs => "blobs",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// The opened databases, by [`Table::index`].
#[derive(Clone, Copy)]
pub(crate) struct Databases(pub(crate) [Database<'static, Bytes, Bytes>; Table::COUNT]);

impl Databases {
    pub(crate) fn of(&self, table: Table) -> &Database<'static, Bytes, Bytes> {
        &self.0[table.index()]
    }
}
