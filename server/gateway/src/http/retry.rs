//! When a rejected request is sent again, and how long to wait. Pure: the clock is passed in.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use crate::limits::CallLimits;

/// What a rejection asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// No retry would help.
    Never,
    /// Soon; the provider named no time.
    Backoff,
    /// After the wait it demands.
    After(Duration),
    /// After a wait longer than anyone waits.
    TooLong,
}

/// Reads a rejection's status and headers: 408, 409, 429 and 5xx are retried, `x-should-retry` overrides that, redirects
/// never are. `retry-after-ms` goes before `Retry-After` in seconds or as a date; a past date means now, a value that
/// makes no sense means the usual backoff.
pub(super) fn wanted(status: StatusCode, headers: &HeaderMap, now: SystemTime, longest: Duration) -> Retry {
    if status.is_redirection() {
        return Retry::Never;
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let retried = match text("x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status.as_u16(), 408 | 409 | 429 | 500..=599),
    };
    if !retried {
        return Retry::Never;
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let seconds = text("retry-after-ms").and_then(number).map(|milliseconds| milliseconds / 1000.0);
    let seconds = seconds.or_else(|| {
        let text = text(header::RETRY_AFTER.as_str())?;
        number(text).or_else(|| {
            let date = httpdate::parse_http_date(text).ok()?;
            Some(date.duration_since(now).unwrap_or_default().as_secs_f64())
        })
    });
    match seconds {
        None => Retry::Backoff,
        Some(seconds) if seconds > longest.as_secs_f64() => Retry::TooLong,
        Some(seconds) => Retry::After(Duration::from_secs_f64(seconds)),
    }
}

/// Spreads the waits of calls that failed together, without a random source: each next value lies where there is most
/// room between the earlier ones (multiples of the golden ratio).
#[derive(Debug, Default)]
pub(super) struct Spread(AtomicU32);

impl Spread {
    /// The wait before retry `number` (from 0): base times two to that power, at most the cap, then 75 % to 125 % of it.
    pub(super) fn backoff(&self, number: u32, limits: &CallLimits) -> Duration {
        const GOLDEN: u32 = 2_654_435_769;
        let place = f64::from(self.0.fetch_add(GOLDEN, Ordering::Relaxed)) / f64::from(u32::MAX);
        let full = limits.backoff_base.saturating_mul(2u32.saturating_pow(number)).min(limits.backoff_cap);
        full.mul_f64(0.75 + place / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn ask(status: u16, headers: &[(&'static str, &'static str)]) -> Retry {
        let map =
            headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        wanted(StatusCode::from_u16(status).expect("status"), &map.collect(), now, Duration::from_secs(60))
    }

    #[test]
    fn the_retry_table() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert_eq!(ask(status, &[]), Retry::Backoff, "{status}");
        }
        for status in [301, 307, 400, 401, 402, 403, 404, 405, 413, 422] {
            assert_eq!(ask(status, &[]), Retry::Never, "{status}");
        }
        assert_eq!(ask(400, &[("x-should-retry", "true")]), Retry::Backoff);
        assert_eq!(ask(500, &[("x-should-retry", "false"), ("retry-after", "1")]), Retry::Never);
        assert_eq!(ask(307, &[("x-should-retry", "true")]), Retry::Never);
        assert_eq!(ask(429, &[("x-should-retry", "perhaps")]), Retry::Backoff);
    }

    #[test]
    fn demanded_waits() {
        let after = |text| ask(429, &[("retry-after", text)]);
        assert_eq!(after("0"), Retry::After(Duration::ZERO));
        assert_eq!(after("1.5"), Retry::After(Duration::from_millis(1500)));
        assert_eq!(after("60"), Retry::After(Duration::from_secs(60)));
        assert_eq!(after("60.1"), Retry::TooLong);
        assert_eq!(after("99999999999999999999"), Retry::TooLong);
        assert_eq!(after("Sun, 06 Nov 1994 08:49:42 GMT"), Retry::After(Duration::from_secs(5)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:30 GMT"), Retry::After(Duration::ZERO));
        assert_eq!(after("Sun, 06 Nov 1994 08:59:37 GMT"), Retry::TooLong);
        for nonsense in ["-1", "soon", "", "NaN", "inf", "1e999"] {
            assert_eq!(after(nonsense), Retry::Backoff, "{nonsense}");
        }
        let both = [("retry-after-ms", "250"), ("retry-after", "9")];
        assert_eq!(ask(503, &both), Retry::After(Duration::from_millis(250)));
        let bad_first = [("retry-after-ms", "x"), ("retry-after", "9")];
        assert_eq!(ask(503, &bad_first), Retry::After(Duration::from_secs(9)));
    }

    #[test]
    fn backoff_doubles_up_to_its_cap_and_spreads() {
        let (spread, limits) = (Spread::default(), CallLimits::default());
        for (number, full) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (40, 8000)] {
            let wait = spread.backoff(number, &limits).as_millis();
            assert!((full * 3 / 4..=full * 5 / 4).contains(&wait), "{number}: {wait}");
        }
        let waits: std::collections::BTreeSet<_> = (0..50).map(|_| spread.backoff(1, &limits)).collect();
        assert_eq!(waits.len(), 50);
    }
}
