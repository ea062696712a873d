//! API keys, and keeping them out of everything people read.
//!
//! Not here: where a key comes from (`config`) and which header carries it (`protocol`).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::limits::MAX_KEY_BYTES;

/// An API key. `Debug` and `Display` never show it, and it has no serialised form.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A key from text; surrounding white space is dropped. `None` when it is empty, longer than
    /// [`MAX_KEY_BYTES`] or holds anything but visible ASCII, which no HTTP header could carry.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.len() <= MAX_KEY_BYTES;
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.into()))
    }

    /// The key itself, for the request header only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Length of the pieces of a key that are searched for. Shorter leftovers say nothing useful about a key.
const WINDOW: usize = 8;
const MASK: &str = "[redacted]";

/// Removes known keys, whole or in part, and what looks like a key, from text.
#[derive(Clone, Default)]
pub struct Redactor {
    windows: HashSet<Vec<u8>>,
    sizes: Vec<usize>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// A redactor for these keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut redactor = Self::default();
        for key in keys {
            let key = key.expose().to_ascii_lowercase().into_bytes();
            let size = key.len().min(WINDOW);
            redactor.windows.extend(key.windows(size).map(<[u8]>::to_vec));
            if !redactor.sizes.contains(&size) {
                redactor.sizes.push(size);
            }
        }
        redactor
    }

    /// `text` with every piece of a known key of eight characters or more replaced (providers quote keys cut or
    /// half masked), and with it every token after `Bearer` and every long `sk-` token, whoever's it is.
    pub fn redact(&self, text: &str) -> String {
        let lower = text.to_ascii_lowercase().into_bytes();
        let mut marks = vec![false; lower.len()];
        for &size in &self.sizes {
            for (start, window) in lower.windows(size).enumerate() {
                if self.windows.contains(window) {
                    marks[start..start + size].fill(true);
                }
            }
        }
        mark_tokens(&lower, b"bearer ", 1, &mut marks);
        mark_tokens(&lower, b"sk-", 12, &mut marks);

        let mut out = String::with_capacity(text.len());
        let mut masked = false;
        for (at, character) in text.char_indices() {
            if marks[at] {
                if !masked {
                    out.push_str(MASK);
                }
                masked = true;
            } else {
                out.push(character);
                masked = false;
            }
        }
        out
    }
}

/// Marks the token behind each `prefix` when it has at least `least` characters.
fn mark_tokens(text: &[u8], prefix: &[u8], least: usize, marks: &mut [bool]) {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~+/=*".contains(byte);
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.windows(prefix.len()).position(|w| w == prefix)) {
        let start = at + found + prefix.len();
        let length = text[start..].iter().take_while(|byte| is_token(byte)).count();
        if length >= least {
            marks[start..start + length].fill(true);
        }
        at = start + length;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::new(" sk-abcdef0123456789 ").expect("a key");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[secret] [secret] Some([secret])");
        assert_eq!(secret.expose(), "sk-abcdef0123456789");
        for bad in ["", "  ", "two words", "line\nbreak", "clé", &"x".repeat(MAX_KEY_BYTES + 1)] {
            assert!(Secret::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn cut_and_foreign_keys_are_removed() {
        let redactor = Redactor::new(&[Secret::new("KEY-0123456789-secret").expect("a key")]);
        assert_eq!(redactor.redact("you sent key-01234567*** to me"), "you sent [redacted]*** to me");
        assert_eq!(redactor.redact("Authorization: Bearer abc.def+x=, no"), "Authorization: Bearer [redacted], no");
        assert_eq!(redactor.redact("key sk-proj-aaaabbbbcccc is off"), "key sk-[redacted] is off");
        assert_eq!(redactor.redact("ask-me, sk-1, bearer"), "ask-me, sk-1, bearer");
        let short = Redactor::new(&[Secret::new("k3y").expect("a key")]);
        assert_eq!(short.redact("a k3y here"), "a [redacted] here");
    }

    proptest! {
        #[test]
        fn no_eight_characters_of_a_key_survive(key in "[!-~]{8,40}", before in "\\PC{0,20}", after in "\\PC{0,20}", cut in 0usize..8) {
            let secret = Secret::new(&key).expect("visible ASCII");
            let quoted = &key[..key.len() - cut.min(key.len() - 8)];
            let clean = Redactor::new(&[secret]).redact(&format!("{before}{quoted}{after}"));
            // The mask itself may hold letters of the key; look at what is left around it.
            for part in clean.split(MASK) {
                for window in key.as_bytes().windows(8) {
                    let window = std::str::from_utf8(window).expect("ASCII");
                    prop_assert!(!part.contains(window), "{window} in {clean}");
                }
            }
        }
    }
}
