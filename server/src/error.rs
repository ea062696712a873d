//! What the program itself refuses or fails with.

use std::path::PathBuf;

use covel_exec::ExecError;
use covel_graph::{ArchiveError, Diagnostic};

/// Why a command cannot be carried out. All of these end the program with status 2, but for an interrupt.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A file or folder cannot be read.
    #[error("{path} cannot be read: {message}")]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A file or folder cannot be written.
    #[error("{path} cannot be written: {message}")]
    Unwritable {
        /// Path.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A folder holds no package.
    #[error("{0} holds no package; a package is a folder with a PLUGIN.md")]
    NoPackages(PathBuf),
    /// A package cannot have this name.
    #[error("{name:?} is no package id: {rule}")]
    BadName {
        /// What was asked for.
        name: String,
        /// What would be accepted.
        rule: String,
    },
    /// Something is there already.
    #[error("{0} is there already; nothing was written")]
    Exists(PathBuf),
    /// Packages or worlds have errors.
    #[error("{}", first(.0))]
    Packages(Vec<Diagnostic>),
    /// The configuration file is wrong.
    #[error("{path}:{line}: {message}")]
    Config {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong and what would be accepted.
        message: String,
    },
    /// The model configuration is wrong.
    #[error("{path}: {message}")]
    Models {
        /// File.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A script of model replies is wrong.
    #[error("{path}: {message}")]
    Script {
        /// File.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A case file is wrong.
    #[error("{path}: {message}")]
    Cases {
        /// File.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// No stored plan has this digest, or several begin with it.
    #[error("{count} stored plans have a digest that begins with {wanted:?}; `covel snapshot ls` lists them")]
    NoSnapshot {
        /// What was asked for.
        wanted: String,
        /// How many there are.
        count: usize,
    },
    /// A stored plan cannot be read.
    #[error("{0}; it is rebuilt when a session needs it")]
    Archive(#[from] ArchiveError),
    /// Flags that do not fit together.
    #[error("{0}")]
    Usage(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {message}")]
    Bind {
        /// Address.
        address: String,
        /// Why.
        message: String,
    },
    /// The engine refused.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Someone interrupted the program before it had an answer.
    #[error("interrupted")]
    Interrupted,
    /// A fault of the program itself.
    #[error("internal: {0}")]
    Internal(String),
}

impl ServerError {
    /// Stable kebab-case code.
    pub fn code(&self) -> &str {
        match self {
            Self::Unreadable { .. } => "unreadable-input",
            Self::Unwritable { .. } => "unwritable-output",
            Self::NoPackages(_) => "no-packages",
            Self::BadName { .. } => "bad-name",
            Self::Exists(_) => "already-exists",
            Self::Packages(diagnostics) => errors(diagnostics).next().map_or("invalid-package", |first| &first.code),
            Self::Config { .. } => "invalid-config",
            Self::Models { .. } => "invalid-models",
            Self::Script { .. } => "invalid-script",
            Self::Cases { .. } => "invalid-cases",
            Self::NoSnapshot { .. } => "snapshot-not-found",
            Self::Archive(error) => error.code(),
            Self::Usage(_) => "usage",
            Self::Bind { .. } => "cannot-listen",
            Self::Exec(error) => error.code(),
            Self::Interrupted => "interrupted",
            Self::Internal(_) => "internal",
        }
    }
}

fn errors(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    diagnostics.iter().filter(|diagnostic| diagnostic.is_error())
}

fn first(diagnostics: &[Diagnostic]) -> String {
    let mut all = errors(diagnostics);
    let Some(first) = all.next() else {
        return "a package is not valid".to_owned();
    };
    let more = match all.count() {
        0 => String::new(),
        1 => " (and one more error)".to_owned(),
        count => format!(" (and {count} more errors)"),
    };
    format!("{}:{}:{}: {}{more}", first.file, first.line, first.column, first.message)
}
