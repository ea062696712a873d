//! Every limit of this crate, in one place.

/// Most locale tags one request may name.
pub const MAX_LOCALES: usize = 64;
/// Longest locale tag, in bytes.
pub const MAX_TAG_BYTES: usize = 128;
/// Longest option set of one formatter, in bytes of JSON.
pub const MAX_OPTIONS_BYTES: usize = 2048;
/// Longest text that is compared, segmented or changed in case, in bytes.
pub const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Longest text that is cut into words: the dictionaries are slow.
pub const MAX_WORD_TEXT_BYTES: usize = 256 * 1024;
/// Most digits a number may have before or after the decimal point.
pub const MAX_NUMBER_DIGITS: usize = 1000;
/// Most members of a list that is formatted.
pub const MAX_LIST_MEMBERS: usize = 10_000;
/// Most formatters kept by one [`Formatters`](crate::Formatters); the one unused for longest goes first.
pub const MAX_FORMATTERS: usize = 64;
