//! Why a generation did not load.

/// A package version whose code could not be activated. Nothing of it is published.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The entry registered what the manifest does not declare, or the other way round. LIF, HKS-2, SVC-3
    #[error("{message}")]
    Registration {
        /// What and where.
        message: String,
    },
    /// A module is missing, does not parse, or threw while it was evaluated.
    #[error("{message}")]
    Module {
        /// What and where (file:line:column when known).
        message: String,
    },
    /// The factory threw.
    #[error("the entry threw {name}: {message}")]
    Threw {
        /// Error name.
        name: String,
        /// Message.
        message: String,
        /// Stack with the author's files and lines.
        stack: Option<String>,
    },
    /// The factory took too long. LIF-4
    #[error("the entry took longer than {limit_ms} ms")]
    Timeout {
        /// The limit.
        limit_ms: u64,
    },
    /// The factory used too much memory or stack.
    #[error("the entry {message}")]
    Exhausted {
        /// Which limit.
        message: String,
    },
    /// The host is shut down.
    #[error("the plugin host is shut down")]
    Closed,
    /// An engine failure that is nobody's mistake.
    #[error("internal: {message}")]
    Internal {
        /// What failed.
        message: String,
    },
}

impl LoadError {
    /// Stable code for documents and events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Registration { .. } => "plugin_registration_invalid",
            Self::Module { .. } => "plugin-module-invalid",
            Self::Threw { .. } => "plugin-entry-threw",
            Self::Timeout { .. } => "plugin-entry-timeout",
            Self::Exhausted { .. } => "plugin-entry-exhausted",
            Self::Closed => "plugin-host-closed",
            Self::Internal { .. } => "plugin-internal",
        }
    }
}
