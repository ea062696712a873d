//! Locale-aware text, numbers and dates: what isolates offer as `Intl`.
//!
//! Here live option structs and pure functions over them, with data built into the program. Not here: any JavaScript
//! engine, clock, or setting of the machine; nothing is read from the system, so results are the same everywhere.

pub mod case;
pub mod collate;
pub mod date;
mod digits;
pub mod error;
mod formatters;
pub mod limits;
pub mod list;
pub mod locale;
pub mod number;
mod parts;
pub mod plural;
pub mod segment;
pub mod zone;

pub use digits::Digits;
pub use error::IntlError;
pub use formatters::{Formatter, Formatters};
pub use parts::{PartText, joined};
