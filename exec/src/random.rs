//! Deterministic random draws.
//!
//! A draw is a function of the seed text, the plugin, the stream and the index of the draw: HMAC-SHA256 keyed with
//! the seed over the compact JSON `[pluginId, stream, index]`; the first six bytes, big-endian, modulo the range.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Largest range of one draw.
pub const MAX_RANGE: u64 = 1 << 48;
/// Largest integer JavaScript holds exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Draw number `index` of a stream: `min <= n < max`.
///
/// # Errors
/// A message, when the bounds are not safe integers, are empty, or span more than 2^48.
pub fn draw(seed: &str, plugin: &str, stream: &str, index: u64, min: i64, max: i64) -> Result<i64, String> {
    if min.unsigned_abs() > MAX_SAFE || max.unsigned_abs() > MAX_SAFE || min >= max {
        return Err(format!("random.int needs safe integers with min < max, not {min} and {max}"));
    }
    let range = max.abs_diff(min);
    if range > MAX_RANGE {
        return Err(format!("random.int covers at most 2^48 values, not {range}"));
    }
    let text = serde_json::json!([plugin, stream, index]).to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(seed.as_bytes()).map_err(|error| error.to_string())?;
    mac.update(text.as_bytes());
    let digest = mac.finalize().into_bytes();
    let number = digest[..6].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    // `number % range` is below 2^48, so it fits.
    Ok(min + i64::try_from(number % range).unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::draw;

    #[test]
    fn a_draw_depends_on_seed_plugin_stream_and_index_only() {
        let base = draw("s", "p", "p/r", 0, 0, 1_000_000).unwrap();
        assert_eq!(base, draw("s", "p", "p/r", 0, 0, 1_000_000).unwrap());
        for other in [
            draw("t", "p", "p/r", 0, 0, 1_000_000),
            draw("s", "q", "p/r", 0, 0, 1_000_000),
            draw("s", "p", "p/x", 0, 0, 1_000_000),
            draw("s", "p", "p/r", 1, 0, 1_000_000),
        ] {
            assert_ne!(base, other.unwrap());
        }
    }

    #[test]
    fn bounds_are_checked() {
        assert!(draw("s", "p", "r", 0, 1, 1).is_err());
        assert!(draw("s", "p", "r", 0, 2, 1).is_err());
        assert!(draw("s", "p", "r", 0, 0, (1 << 48) + 1).is_err());
        assert!(draw("s", "p", "r", 0, i64::MIN, 1).is_err());
        assert_eq!(draw("s", "p", "r", 0, 5, 6), Ok(5));
        assert!((-3..3).contains(&draw("s", "p", "r", 9, -3, 3).unwrap()));
        assert!(draw("s", "p", "r", 0, 0, 1 << 48).is_ok());
    }
}
