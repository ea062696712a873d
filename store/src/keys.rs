//! Key codec: tuples of texts, then at most one number.
//!
//! A text part is its UTF-8 bytes with `00` written as `00 FF`, closed by `00 01`. So no part is a prefix of
//! another, any Unicode text (empty, NUL, `__proto__`) is an ordinary key, and byte order is text order.
//! A part longer than [`limits::MAX_KEY_PART_BYTES`] keeps its first bytes and ends in `00 02` and its BLAKE3
//! hash; its full text is then kept in the record. Such parts are ordered by their first bytes only.
//! Numbers are big-endian `u64`.

use crate::limits;

const END: [u8; 2] = [0x00, 0x01];
const HASHED: [u8; 2] = [0x00, 0x02];
const ESCAPED_NUL: [u8; 2] = [0x00, 0xFF];
const HASH_BYTES: usize = 32;

/// A key, or the prefix of keys, under construction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    exact: bool,
}

impl Key {
    /// A key that starts with this text.
    pub(crate) fn of(part: &str) -> Self {
        Self { bytes: Vec::with_capacity(64), exact: true }.text(part)
    }

    /// A key, or the prefix of one, read from the store.
    pub(crate) fn stored(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), exact: false }
    }

    /// Appends a text part.
    pub(crate) fn text(mut self, part: &str) -> Self {
        let start = self.bytes.len();
        for &byte in part.as_bytes() {
            match byte {
                0 => self.bytes.extend(ESCAPED_NUL),
                other => self.bytes.push(other),
            }
            if self.bytes.len() - start > limits::MAX_KEY_PART_BYTES - END.len() {
                return self.hashed(start, part);
            }
        }
        self.bytes.extend(END);
        self
    }

    fn hashed(mut self, start: usize, part: &str) -> Self {
        let mut cut = start + limits::HASHED_PART_HEAD_BYTES;
        // Never cut an escaped NUL in two.
        if self.bytes[cut - 1] == 0 {
            cut -= 1;
        }
        self.bytes.truncate(cut);
        self.bytes.extend(HASHED);
        self.bytes.extend(blake3::hash(part.as_bytes()).as_bytes());
        self.exact = false;
        self
    }

    /// Appends a number; nothing may follow it.
    pub(crate) fn number(mut self, number: u64) -> Self {
        self.bytes.extend(number.to_be_bytes());
        self
    }

    /// Can every part be read back from the key itself?
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The first byte string after every key with this prefix.
    pub(crate) fn after_prefix(&self) -> Vec<u8> {
        after_prefix(&self.bytes)
    }
}

/// The first byte string after every key with this prefix. A prefix made here never is all `FF`: a part starts
/// with a UTF-8 byte or `00`.
pub(crate) fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            break;
        }
    }
    end
}

/// The first part of a key as its bytes: the session, in a table of sessions.
pub(crate) fn first_part(key: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        let zero = at + key.get(at..)?.iter().position(|&byte| byte == 0)?;
        let mark = [0, *key.get(zero + 1)?];
        match mark {
            ESCAPED_NUL => at = zero + 2,
            END => return key.get(..zero + 2),
            HASHED => return key.get(..zero + 2 + HASH_BYTES),
            _ => return None,
        }
    }
}

/// One part read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The text.
    Exact(String),
    /// A long text, whose full form is in the record.
    Hashed,
}

/// Reads a key from its front. `None` means the bytes are no key of the expected shape.
pub(crate) struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    pub(crate) fn of(key: &'a [u8]) -> Self {
        Self(key)
    }

    pub(crate) fn text(&mut self) -> Option<Part> {
        let mut text = Vec::new();
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            if byte != 0 {
                text.push(byte);
                continue;
            }
            let (&mark, rest) = self.0.split_first()?;
            self.0 = rest;
            match [byte, mark] {
                ESCAPED_NUL => text.push(0),
                END => return String::from_utf8(text).ok().map(Part::Exact),
                HASHED => {
                    self.0 = self.0.get(HASH_BYTES..)?;
                    return Some(Part::Hashed);
                }
                _ => return None,
            }
        }
    }

    /// The number at the end of the key.
    pub(crate) fn number(self) -> Option<u64> {
        self.0.try_into().ok().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests;
