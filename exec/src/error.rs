//! Errors of this crate: what an embedder or a request can be refused with.

/// A refused or failed engine call. A turn that ran but did not commit is not an error: see
/// [`crate::TurnDocument::error`].
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The data folder cannot be used.
    #[error("{0}")]
    Store(#[from] covel_store::StoreError),
    /// No such session.
    #[error("there is no session {0:?}")]
    SessionNotFound(String),
    /// The id is taken.
    #[error("a session {0:?} exists already")]
    SessionExists(String),
    /// A turn of this session is running.
    #[error("a turn of session {0:?} is running")]
    SessionBusy(String),
    /// Paused or ended.
    #[error("session {id:?} is {status}")]
    SessionNotActive {
        /// Session.
        id: String,
        /// `paused` or `ended`.
        status: String,
    },
    /// No such world.
    #[error("there is no world {0:?}")]
    WorldNotFound(String),
    /// No such package.
    #[error("there is no package {0:?}")]
    PluginNotFound(String),
    /// The requested packages cannot be activated together.
    #[error("{message}")]
    Activation {
        /// `world-requirement-unmet`, `no-active-plugins`...
        code: String,
        /// One sentence.
        message: String,
    },
    /// No such runtime is active here.
    #[error("runtime {0:?} is not active in this session")]
    RuntimeNotActive(String),
    /// No such command is active here.
    #[error("command {0:?} is not active in this session")]
    CommandNotActive(String),
    /// A command's words do not fit its declaration, or the handler refused.
    #[error("{message}")]
    Command {
        /// `command-invalid`, `command-failed`.
        code: String,
        /// One sentence.
        message: String,
    },
    /// The session has no such seat.
    #[error("there is no seat {0:?} in this session")]
    SeatNotFound(String),
    /// A rule of the session's world refuses the change.
    #[error("{message}")]
    Refused {
        /// The rule's code: `character-invalid`, `character-alias-conflict`...
        code: String,
        /// One sentence.
        message: String,
    },
    /// A request field is out of range.
    #[error("{field}: {message}")]
    Invalid {
        /// Field.
        field: String,
        /// What would be accepted.
        message: String,
    },
    /// The session's present state does not allow it.
    #[error("{message}")]
    Conflict {
        /// `setup-not-blocked`, `retry-source-not-current`, `suspension-resolved`, `replay-package-changed`...
        code: &'static str,
        /// One sentence.
        message: String,
    },
    /// Nothing has that id.
    #[error("{message}")]
    NotFound {
        /// `suspension-not-found`, `snapshot-not-found`, `retry-turn-not-found`, `trace-not-found`.
        code: &'static str,
        /// One sentence.
        message: String,
    },
    /// Too often.
    #[error("{message}")]
    RateLimited {
        /// One sentence.
        message: String,
        /// Whole seconds until it may be tried again.
        retry_after_seconds: u64,
    },
    /// A package's code could not be activated.
    #[error("package {plugin:?}: {message}")]
    Package {
        /// Package.
        plugin: String,
        /// What and where.
        message: String,
    },
    /// The package is not active in this session.
    #[error("package {0:?} is not active in this session")]
    PluginNotActive(String),
    /// No such job, or it ended long ago.
    #[error("there is no job {0:?}")]
    JobNotFound(String),
    /// It commits or has ended.
    #[error("job {id:?} is {status}; it cannot be cancelled any more")]
    JobNotCancellable {
        /// Job.
        id: String,
        /// Where it stands.
        status: String,
    },
    /// It is open, or it succeeded.
    #[error("job {id:?} is {status}; only one that ended without success is tried again")]
    JobNotRetryable {
        /// Job.
        id: String,
        /// Where it stands.
        status: String,
    },
    /// Too many open jobs.
    #[error("session {id:?} has too many open jobs; at most {limit}")]
    BackgroundQueueFull {
        /// Session.
        id: String,
        /// Most open jobs.
        limit: usize,
    },
    /// An event of a page that may not be.
    #[error("{message}")]
    UiEvent {
        /// `event-not-declared`, `event-payload-invalid`.
        code: String,
        /// One sentence.
        message: String,
    },
    /// The engine is closing.
    #[error("the engine is closing")]
    Closing,
    /// A fault of the engine itself.
    #[error("internal: {0}")]
    Internal(String),
}

impl ExecError {
    /// Stable code (snake_case on the HTTP surface is the server's own mapping).
    pub fn code(&self) -> &str {
        match self {
            Self::Store(error) => error.code(),
            Self::SessionNotFound(_) => "session-not-found",
            Self::SessionExists(_) => "session-already-exists",
            Self::SessionBusy(_) => "session-busy",
            Self::SessionNotActive { .. } => "session-not-active",
            Self::WorldNotFound(_) => "world-not-found",
            Self::PluginNotFound(_) => "plugin-not-found",
            Self::Activation { code, .. }
            | Self::Command { code, .. }
            | Self::Refused { code, .. }
            | Self::UiEvent { code, .. } => code,
            Self::PluginNotActive(_) => "plugin-not-active",
            Self::JobNotFound(_) => "runtime-job-not-found",
            Self::JobNotCancellable { .. } => "runtime-job-not-cancellable",
            Self::JobNotRetryable { .. } => "runtime-job-not-retryable",
            Self::BackgroundQueueFull { .. } => "background-queue-full",
            Self::Conflict { code, .. } | Self::NotFound { code, .. } => code,
            Self::RateLimited { .. } => "rate-limit-exceeded",
            Self::RuntimeNotActive(_) => "runtime-not-active",
            Self::CommandNotActive(_) => "command-not-active",
            Self::SeatNotFound(_) => "seat-not-found",
            Self::Invalid { .. } => "invalid-request",
            Self::Package { .. } => "package-failed",
            Self::Closing => "closing",
            Self::Internal(_) => "internal",
        }
    }
}
