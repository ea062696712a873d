//! Digests for `node:crypto`.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Digest;

/// The algorithms there are, for messages.
pub(crate) const NAMES: &str = "sha256, sha512, sha384, sha1 or md5";

/// The digest of `data`, or its HMAC when there is a key; `None` for an unknown algorithm.
pub(crate) fn digest(algorithm: &str, data: &[u8], key: Option<&[u8]>) -> Option<Vec<u8>> {
    macro_rules! with {
        ($hash:ty) => {
            match key {
                None => <$hash>::digest(data).to_vec(),
                Some(key) => {
                    let mut mac = Hmac::<$hash>::new_from_slice(key).ok()?;
                    mac.update(data);
                    mac.finalize().into_bytes().to_vec()
                }
            }
        };
    }
    Some(match algorithm {
        "sha256" => with!(sha2::Sha256),
        "sha384" => with!(sha2::Sha384),
        "sha512" => with!(sha2::Sha512),
        "sha1" => with!(sha1::Sha1),
        "md5" => with!(md5::Md5),
        _ => return None,
    })
}
