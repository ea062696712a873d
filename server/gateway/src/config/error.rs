//! What can be wrong with `llm.toml`.

use std::path::PathBuf;

/// The slot and the line of the file (from 1) an error is about. Line 0 is the built-in configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Slot name.
    pub slot: String,
    /// Line, from 1.
    pub line: u32,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "slot `{}` (built in)", self.slot),
            line => write!(f, "llm.toml line {line}, slot `{}`", self.slot),
        }
    }
}

/// A wrong configuration. Messages never repeat a value that could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Unreadable {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file is over the size limit.
    #[error("llm.toml is larger than {limit} bytes")]
    TooLarge {
        /// Limit, bytes.
        limit: usize,
    },
    /// The file is not UTF-8.
    #[error("llm.toml line {line}: not UTF-8 text")]
    NotUtf8 {
        /// Line, from 1.
        line: u32,
    },
    /// Not TOML.
    #[error("llm.toml line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// What the parser says.
        reason: String,
    },
    /// Something outside `[covel.<slot>]`.
    #[error("llm.toml line {line}: unknown table or key `{name}`; a slot is a table `[covel.<name>]`")]
    UnknownTable {
        /// Line, from 1.
        line: u32,
        /// Name found.
        name: String,
    },
    /// No slot in the file.
    #[error("llm.toml holds no slot; a slot is a table `[covel.<name>]`")]
    NoSlots,
    /// More slots than allowed.
    #[error("llm.toml line {line}: more than {limit} slots")]
    TooManySlots {
        /// Line, from 1.
        line: u32,
        /// Limit.
        limit: usize,
    },
    /// A slot name that is empty, too long or not printable.
    #[error("llm.toml line {line}: a slot name is 1 to {limit} printable characters without spaces")]
    BadSlotName {
        /// Line, from 1.
        line: u32,
        /// Limit, characters.
        limit: usize,
    },
    /// A field no slot has.
    #[error("{at}: unknown field `{field}`; {accepted}")]
    UnknownField {
        /// Where.
        at: At,
        /// Field.
        field: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A key written into the file.
    #[error(
        "{at}: `{field}` is no field of llm.toml, keys do not belong in it; set the environment variable {variable}"
    )]
    SecretInFile {
        /// Where.
        at: At,
        /// Field.
        field: String,
        /// Variable to set instead.
        variable: String,
    },
    /// A required field is missing.
    #[error("{at}: `{field}` is missing")]
    MissingField {
        /// Where.
        at: At,
        /// Field.
        field: &'static str,
    },
    /// A value of another type or outside what is accepted.
    #[error("{at}: `{field}` must be {expected}")]
    BadValue {
        /// Where.
        at: At,
        /// Field.
        field: String,
        /// What is accepted.
        expected: String,
    },
    /// A provider that is not built in, without its address.
    #[error("{at}: provider `{provider}` is not built in, so `baseUrl` is needed; built in are {known}")]
    UnknownProvider {
        /// Where.
        at: At,
        /// Provider.
        provider: String,
        /// Built-in providers.
        known: String,
    },
    /// A protocol that is neither built in nor named like a plugin's.
    #[error("{at}: protocol `{protocol}` is neither built in ({known}) nor of the form `<pluginId>/<wireId>`")]
    UnknownProtocol {
        /// Where.
        at: At,
        /// Protocol.
        protocol: String,
        /// Built-in protocols.
        known: String,
    },
    /// A base URL that is no plain web address.
    #[error("{at}: `baseUrl` {problem}")]
    BadUrl {
        /// Where.
        at: At,
        /// What is wrong.
        problem: &'static str,
    },
    /// `http:` to another machine.
    #[error("{at}: `baseUrl` must start with https:// unless it names this machine (localhost, 127.0.0.1, [::1])")]
    InsecureUrl {
        /// Where.
        at: At,
    },
    /// `http:` to this machine where the deployment forbids it.
    #[error("{at}: `baseUrl` names this machine, which this deployment does not allow")]
    LoopbackForbidden {
        /// Where.
        at: At,
    },
    /// `${NAME}` of a variable that is not set.
    #[error("{at}: the environment variable {variable} in `{field}` is not set")]
    MissingVariable {
        /// Where.
        at: At,
        /// Field.
        field: String,
        /// Variable.
        variable: String,
    },
    /// `${` without a name and `}`.
    #[error("{at}: `{field}` holds `${{` that is not closed or names no variable; write ${{NAME}}")]
    BadInterpolation {
        /// Where.
        at: At,
        /// Field.
        field: String,
    },
    /// `${..._API_KEY}`: it would put a key where it is shown.
    #[error("{at}: `{field}` must not hold the key {variable}; keys are read by the gateway itself")]
    SecretInterpolation {
        /// Where.
        at: At,
        /// Field.
        field: String,
        /// Variable.
        variable: String,
    },
    /// `fallback` names no slot.
    #[error("{at}: `fallback` names `{target}`, which is no slot of this file")]
    UnknownFallback {
        /// Where.
        at: At,
        /// Name found.
        target: String,
    },
    /// `fallback` names a slot of another kind.
    #[error("{at}: `fallback` names `{target}`, whose tag is `{found}`; a fallback has the slot's own tag `{wanted}`")]
    FallbackTag {
        /// Where.
        at: At,
        /// Slot named.
        target: String,
        /// Its tag.
        found: &'static str,
        /// This slot's tag.
        wanted: &'static str,
    },
    /// The key of a remote provider is not set.
    #[error("{at}: no key for provider `{provider}`; set the environment variable {variable}")]
    MissingKey {
        /// Where.
        at: At,
        /// Provider.
        provider: String,
        /// Variable to set.
        variable: String,
    },
    /// The key cannot be sent in an HTTP header.
    #[error("{at}: the environment variable {variable} holds no usable key (visible ASCII, at most {limit} bytes)")]
    BadKey {
        /// Where.
        at: At,
        /// Variable.
        variable: String,
        /// Limit, bytes.
        limit: usize,
    },
    /// A protocol this program does not speak.
    #[error("{at}: this program does not speak the protocol `{protocol}`; it speaks {spoken}")]
    UnsupportedProtocol {
        /// Where.
        at: At,
        /// Protocol.
        protocol: String,
        /// Protocols spoken.
        spoken: String,
    },
    /// A call for one kind of output names a slot of another.
    #[error("{at}: its tag is `{found}`, and this call needs a slot tagged `{wanted}`")]
    WrongTag {
        /// Where.
        at: At,
        /// The slot's tag.
        found: &'static str,
        /// The call's tag.
        wanted: &'static str,
    },
    /// No slot fits a call.
    #[error("llm.toml has no slot `{name}` and none tagged `{tag}` to stand in")]
    NoSlotFor {
        /// Name asked for.
        name: String,
        /// Tag needed.
        tag: &'static str,
    },
}

impl ConfigError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "llm-config-unreadable",
            Self::TooLarge { .. } => "llm-config-too-large",
            Self::NotUtf8 { .. } => "llm-config-not-utf8",
            Self::Syntax { .. } => "llm-config-syntax",
            Self::UnknownTable { .. } => "llm-config-unknown-table",
            Self::NoSlots => "llm-config-no-slots",
            Self::TooManySlots { .. } => "llm-config-too-many-slots",
            Self::BadSlotName { .. } => "llm-config-bad-slot-name",
            Self::UnknownField { .. } => "llm-config-unknown-field",
            Self::SecretInFile { .. } => "llm-config-secret-in-file",
            Self::MissingField { .. } => "llm-config-missing-field",
            Self::BadValue { .. } => "llm-config-bad-value",
            Self::UnknownProvider { .. } => "llm-config-unknown-provider",
            Self::UnknownProtocol { .. } => "llm-config-unknown-protocol",
            Self::BadUrl { .. } => "llm-config-bad-url",
            Self::InsecureUrl { .. } => "llm-config-insecure-url",
            Self::LoopbackForbidden { .. } => "llm-config-loopback-forbidden",
            Self::MissingVariable { .. } => "llm-config-missing-variable",
            Self::BadInterpolation { .. } => "llm-config-bad-interpolation",
            Self::SecretInterpolation { .. } => "llm-config-secret-interpolation",
            Self::UnknownFallback { .. } => "llm-config-unknown-fallback",
            Self::FallbackTag { .. } => "llm-config-fallback-tag",
            Self::MissingKey { .. } => "llm-config-missing-key",
            Self::BadKey { .. } => "llm-config-bad-key",
            Self::UnsupportedProtocol { .. } => "llm-config-unsupported-protocol",
            Self::WrongTag { .. } => "llm-config-wrong-tag",
            Self::NoSlotFor { .. } => "llm-config-no-slot",
        }
    }

    /// The line of the file, when the error has one.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::Unreadable { .. } | Self::TooLarge { .. } | Self::NoSlots | Self::NoSlotFor { .. } => None,
            Self::NotUtf8 { line }
            | Self::Syntax { line, .. }
            | Self::UnknownTable { line, .. }
            | Self::TooManySlots { line, .. }
            | Self::BadSlotName { line, .. } => Some(*line),
            Self::UnknownField { at, .. }
            | Self::SecretInFile { at, .. }
            | Self::MissingField { at, .. }
            | Self::BadValue { at, .. }
            | Self::UnknownProvider { at, .. }
            | Self::UnknownProtocol { at, .. }
            | Self::BadUrl { at, .. }
            | Self::InsecureUrl { at }
            | Self::LoopbackForbidden { at }
            | Self::MissingVariable { at, .. }
            | Self::BadInterpolation { at, .. }
            | Self::SecretInterpolation { at, .. }
            | Self::UnknownFallback { at, .. }
            | Self::FallbackTag { at, .. }
            | Self::MissingKey { at, .. }
            | Self::BadKey { at, .. }
            | Self::UnsupportedProtocol { at, .. }
            | Self::WrongTag { at, .. } => Some(at.line),
        }
    }
}
