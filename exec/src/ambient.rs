//! Time, ids and randomness, injected: nothing in this crate asks the system for them directly.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Where the engine gets time and ids from.
pub trait Ambient: Send + Sync + 'static {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_millis(&self) -> u64;
    /// A monotonic reading.
    fn monotonic(&self) -> Duration;
    /// 128 fresh bits for ids.
    fn fresh_bits(&self) -> u128;
}

/// The system's clock and random source.
pub struct SystemAmbient {
    start: Instant,
}

impl Default for SystemAmbient {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Ambient for SystemAmbient {
    fn now_millis(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
    fn fresh_bits(&self) -> u128 {
        let mut bytes = [0u8; 16];
        // The operating system's source; falling back to the clock keeps ids distinct, not secret.
        if getrandom::fill(&mut bytes).is_err() {
            return u128::from(self.now_millis()) << 64 | self.start.elapsed().as_nanos();
        }
        u128::from_le_bytes(bytes)
    }
}

/// A clock that moves one millisecond per reading and counts ids: the same run gives the same bytes.
#[derive(Default)]
pub struct FixedAmbient {
    ticks: AtomicU64,
    ids: AtomicU64,
}

impl Ambient for FixedAmbient {
    fn now_millis(&self) -> u64 {
        1_767_225_600_000 + self.ticks.fetch_add(1, Ordering::Relaxed)
    }
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.ticks.load(Ordering::Relaxed))
    }
    fn fresh_bits(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// A fresh lowercase hex id of `digits` digits.
pub(crate) fn fresh_id(ambient: &dyn Ambient, digits: usize) -> String {
    let text = format!("{:032x}", ambient.fresh_bits());
    text[text.len() - digits.min(text.len())..].to_owned()
}

/// ISO 8601 text of milliseconds since 1970 (UTC, millisecond precision).
pub fn iso_time(millis: u64) -> String {
    let days = i64::try_from(millis / 86_400_000).unwrap_or(0);
    let rest = millis % 86_400_000;
    // Days to civil date (Howard Hinnant's algorithm).
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1_000 % 60,
        rest % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::iso_time;

    #[test]
    fn iso_time_matches_known_instants() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_time(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso_time(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
    }
}
