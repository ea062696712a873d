//! Errors with stable codes. All of them are cheap to clone: one failed group commit answers many callers.

use std::{io, path::Path};

use heed::MdbError;

use crate::limits;

/// Why the store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process, or another `Store` of this one, has the folder open.
    #[error("{path} is in use by another process; stop it, or choose another data folder")]
    Locked {
        /// The folder.
        path: String,
    },
    /// The path, or a part of it, names something else than a folder.
    #[error("{path} is not a folder; give the path of a folder (it is created when missing)")]
    NotAFolder {
        /// The path.
        path: String,
    },
    /// Nothing can be written there.
    #[error("{path} cannot be written ({message})")]
    ReadOnly {
        /// The path.
        path: String,
        /// What the system said.
        message: String,
    },
    /// The folder holds data this version cannot read.
    #[error("{path} holds {found}; this program reads store format {supported}")]
    Format {
        /// The folder.
        path: String,
        /// What was found.
        found: String,
        /// The supported format number.
        supported: u32,
    },
    /// An option is out of range.
    #[error("store option {option} is {found}; accepted: {accepted}")]
    Options {
        /// Its name.
        option: &'static str,
        /// The value.
        found: u64,
        /// What would be accepted.
        accepted: String,
    },
    /// The disk (or the file size limit or quota) is full. Nothing of the commit was kept; reads go on.
    #[error("the disk is full ({message}); nothing of this commit was kept")]
    DiskFull {
        /// What the system said.
        message: String,
    },
    /// The map reached its configured ceiling.
    #[error("the store reached its configured size of {limit} bytes; nothing of this commit was kept")]
    MapFull {
        /// The ceiling in bytes.
        limit: usize,
    },
    /// The map had to grow, but a read transaction stayed open too long.
    #[error("the store could not grow because a read stayed open for {waited_ms} ms; nothing of this commit was kept")]
    MapBusy {
        /// How long growth waited.
        waited_ms: u64,
    },
    /// Too many read transactions at once.
    #[error("more than {limit} reads are open at once")]
    ReadersFull {
        /// The configured number.
        limit: u32,
    },
    /// A value is too large.
    #[error("a value for {table} has {found} bytes; at most {limit} are accepted")]
    ValueTooLarge {
        /// Table.
        table: &'static str,
        /// Bytes.
        found: usize,
        /// Limit.
        limit: usize,
    },
    /// One transaction writes too much.
    #[error("one transaction writes more than {limit} bytes")]
    TransactionTooLarge {
        /// Limit.
        limit: usize,
    },
    /// A plugin-data namespace holds its most records.
    #[error("namespace {namespace:?} of plugin {plugin} holds {limit} records, the most a namespace may hold")]
    NamespaceFull {
        /// Plugin.
        plugin: String,
        /// Namespace.
        namespace: String,
        /// Limit.
        limit: u64,
    },
    /// The journal does not reach that far.
    #[error("the journal of session {session} reaches from {first} to {next}; {found} is outside")]
    JournalPruned {
        /// Session.
        session: String,
        /// The number asked for.
        found: u64,
        /// The earliest entry kept.
        first: u64,
        /// The number the next entry will get, which stands for the present.
        next: u64,
    },
    /// A session that should be new is there already.
    #[error("session {session} exists already")]
    SessionExists {
        /// Session.
        session: String,
    },
    /// A session is not there.
    #[error("session {session} does not exist at that point")]
    SessionMissing {
        /// Session.
        session: String,
    },
    /// Savepoints nest too deep.
    #[error("savepoints nest deeper than {limit}")]
    SavepointDepth {
        /// Limit.
        limit: usize,
    },
    /// Too many transactions wait for the writer.
    #[error("more than {limit} transactions wait to be committed; try again later")]
    Busy {
        /// Limit.
        limit: usize,
    },
    /// A transaction asked for another one and would have waited for itself.
    #[error("a transaction cannot run another transaction; use a savepoint")]
    Reentrant,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A record cannot be read back.
    #[error("a record of {table} is damaged: {message}")]
    Corrupt {
        /// Table.
        table: &'static str,
        /// What is wrong.
        message: String,
    },
    /// LMDB cannot go on in this process. What was acknowledged is safe on disk.
    #[error("the store stopped after an unrecoverable fault ({message}); restart the program")]
    Broken {
        /// What happened.
        message: String,
    },
    /// Any other system error.
    #[error("{during}: {message}")]
    Io {
        /// What was being done.
        during: &'static str,
        /// What the system said.
        message: String,
    },
}

impl StoreError {
    /// A stable code for documents, HTTP and exit tables.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "store-locked",
            Self::NotAFolder { .. } => "store-not-a-folder",
            Self::ReadOnly { .. } => "store-read-only",
            Self::Format { .. } => "store-format",
            Self::Options { .. } => "store-options",
            Self::DiskFull { .. } => "store-disk-full",
            Self::MapFull { .. } => "store-full",
            Self::MapBusy { .. } => "store-map-busy",
            Self::ReadersFull { .. } => "store-readers-full",
            Self::ValueTooLarge { .. } => "store-value-too-large",
            Self::TransactionTooLarge { .. } => "store-transaction-too-large",
            Self::NamespaceFull { .. } => "store-namespace-full",
            Self::JournalPruned { .. } => "store-journal-pruned",
            Self::SessionExists { .. } => "store-session-exists",
            Self::SessionMissing { .. } => "store-session-missing",
            Self::SavepointDepth { .. } => "store-savepoint-depth",
            Self::Busy { .. } => "store-busy",
            Self::Reentrant => "store-reentrant",
            Self::Closed => "store-closed",
            Self::Corrupt { .. } => "store-corrupt",
            Self::Broken { .. } => "store-broken",
            Self::Io { .. } => "store-io",
        }
    }

    /// Would the same call have a chance later, with nothing changed by the caller?
    pub fn retriable(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::MapBusy { .. } | Self::ReadersFull { .. } | Self::DiskFull { .. })
    }

    pub(crate) fn from_io(during: &'static str, path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let message = error.to_string();
        match error.kind() {
            Kind::NotADirectory | Kind::AlreadyExists => Self::NotAFolder { path: path.display().to_string() },
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
                Self::ReadOnly { path: path.display().to_string(), message }
            }
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::DiskFull { message },
            _ => Self::Io { during, message },
        }
    }

    pub(crate) fn from_heed(during: &'static str, path: &Path, error: heed::Error) -> Self {
        match error {
            heed::Error::Io(error) => Self::from_io(during, path, &error),
            heed::Error::EnvAlreadyOpened => Self::Locked { path: path.display().to_string() },
            heed::Error::Mdb(MdbError::Panic) => Self::Broken { message: MdbError::Panic.to_string() },
            heed::Error::Mdb(error @ (MdbError::Corrupted | MdbError::PageNotFound)) => {
                Self::Corrupt { table: "the file", message: error.to_string() }
            }
            heed::Error::Mdb(MdbError::TxnFull) => Self::TransactionTooLarge { limit: limits::MAX_TRANSACTION_BYTES },
            other => Self::Io { during, message: other.to_string() },
        }
    }
}

/// Why a transaction did not commit. In each case nothing of it was kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactError<E> {
    /// The closure returned this error.
    #[error(transparent)]
    Refused(E),
    /// The closure panicked with this message.
    #[error("the transaction panicked: {0}")]
    Panicked(String),
    /// The store could not commit.
    #[error(transparent)]
    Store(StoreError),
}

impl<E> TransactError<E> {
    /// Folds all cases into one error type; a panic becomes [`StoreError::Io`].
    pub fn flatten(self) -> E
    where
        E: From<StoreError>,
    {
        match self {
            Self::Refused(error) => error,
            Self::Panicked(message) => StoreError::Io { during: "a transaction panicked", message }.into(),
            Self::Store(error) => error.into(),
        }
    }
}

impl<E> From<StoreError> for TransactError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
