//! What is refused, and why.

/// A refused request. All of them are mistakes of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntlError {
    /// Not a well-formed locale tag.
    #[error("Incorrect locale information provided: {tag:?} is not a language tag")]
    InvalidLocale {
        /// What was given, clipped.
        tag: String,
    },
    /// An option has a value it cannot have.
    #[error("Value {value} out of range for {option}: use {accepted}")]
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// What was given, clipped.
        value: String,
        /// What would be taken.
        accepted: &'static str,
    },
    /// A combination that exists in the standard and not here.
    #[error("{what} is not supported here: {instead}")]
    Unsupported {
        /// What is missing.
        what: String,
        /// What to use.
        instead: &'static str,
    },
    /// Larger than a limit.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
    /// The value has no text form.
    #[error("{message}")]
    InvalidValue {
        /// What is wrong.
        message: String,
    },
    /// Locale data that should be there is not.
    #[error("internal: {message}")]
    Internal {
        /// What failed.
        message: String,
    },
}

impl IntlError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidLocale { .. } => "intl-locale-invalid",
            Self::InvalidOption { .. } => "intl-option-invalid",
            Self::Unsupported { .. } => "intl-unsupported",
            Self::TooLarge { .. } => "intl-too-large",
            Self::InvalidValue { .. } => "intl-value-invalid",
            Self::Internal { .. } => "intl-internal",
        }
    }

    pub(crate) fn option(option: &'static str, value: &str, accepted: &'static str) -> Self {
        Self::InvalidOption { option, value: clip(value), accepted }
    }

    pub(crate) fn data(error: impl std::fmt::Display) -> Self {
        Self::Internal { message: error.to_string() }
    }
}

/// At most 64 characters of what a caller gave, for a message.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(64).collect()
}

pub(crate) fn bounded(what: &'static str, length: usize, limit: usize) -> Result<(), IntlError> {
    if length <= limit { Ok(()) } else { Err(IntlError::TooLarge { what, limit: format!("{limit} bytes") }) }
}
