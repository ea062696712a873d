//! Newtype ids. Each has its own text form; none is interchangeable with another.
//!
//! Construction from a string does not check a grammar (ids come back from archives and the store);
//! the manifest reader checks grammars with the functions at the end.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a text form.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            /// The text form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &*self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id!(/// A package: lowercase letter, then lowercase letters, digits, `-`.
    PluginId);
text_id!(/// A runtime: `<pluginId>` when inline, else `<pluginId>/<rid>`.
    RuntimeId);
text_id!(/// A versioned contract: `<name>@<major>`.
    ContractId);
text_id!(/// An event topic: at least two dot-separated segments.
    Topic);
text_id!(/// A session.
    SessionId);
text_id!(/// A turn.
    TurnId);
text_id!(/// One execution inside a turn.
    ExecutionId);
text_id!(/// A world package.
    WorldId);
text_id!(/// The digest that names a linked plan: 64 hex digits.
    PlanDigest);

/// Is this a package id (also command names, aliases, arguments, actions)?
pub fn is_package_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Is this a contract id (also extension points, slots, services)? SVC-2
pub fn is_contract_id(text: &str) -> bool {
    let Some((name, major)) = text.split_once('@') else {
        return false;
    };
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-')
        && !major.is_empty()
        && !major.starts_with('0')
        && major.bytes().all(|b| b.is_ascii_digit())
}

/// Is this an event topic?
pub fn is_topic(text: &str) -> bool {
    let mut segments = 0;
    for segment in text.split('.') {
        segments += 1;
        if segment.is_empty() || !segment.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return false;
        }
    }
    segments >= 2
}
