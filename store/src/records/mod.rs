//! Typed accessors, one file per kind of record: its key, its layout, reading and writing.

pub(crate) mod archive;
pub(crate) mod data;
pub(crate) mod item;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod session;
pub(crate) mod trace;
pub(crate) mod turn;

use std::ops::{Bound, RangeBounds};

use crate::{keys::Key, limits};

/// `from..to` of numbered rows under a prefix, as keys. Numbers are at most `u64::MAX - 1`, so that an exclusive
/// end always exists.
pub(crate) fn numbered(prefix: &Key, range: impl RangeBounds<u64>) -> (Vec<u8>, Vec<u8>) {
    let from = match range.start_bound() {
        Bound::Included(&first) => Some(first),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let to = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => None,
    };
    let key = |number: Option<u64>| number.map(|number| prefix.clone().number(number).into_bytes());
    let end = prefix.after_prefix();
    (key(from).unwrap_or_else(|| end.clone()), key(to).unwrap_or(end))
}

fn page(limit: usize) -> usize {
    limit.min(limits::MAX_PAGE_ROWS)
}
