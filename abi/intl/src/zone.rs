//! Time zones by their IANA names, from data bundled into the program: the machine's own is never read.

use icu_calendar::Iso;
use icu_time::{
    TimeZone as ZoneId, TimeZoneInfo, ZonedDateTime,
    zone::{IanaParser, UtcOffset, ZoneNameTimestamp, models::AtTime},
};
use jiff::{Timestamp, tz};

use crate::error::IntlError;

/// Largest instant of the standard, in milliseconds before and after 1970.
pub const MAX_TIME_MS: f64 = 8.64e15;

/// A time zone.
#[derive(Clone)]
pub struct Zone {
    rules: tz::TimeZone,
    id: ZoneId,
    name: String,
}

impl Zone {
    /// `UTC`, an IANA name in any case, or an offset such as `+05:30`.
    pub fn find(name: &str) -> Result<Self, IntlError> {
        let refused = || IntlError::option("timeZone", name, "UTC, an IANA name such as Europe/Berlin, or ±hh:mm");
        if ["utc", "gmt", "etc/utc", "etc/gmt", "etc/uct", "etc/zulu", "etc/greenwich"]
            .contains(&name.to_ascii_lowercase().as_str())
        {
            return Ok(Self { rules: tz::TimeZone::UTC, id: IanaParser::new().parse("Etc/UTC"), name: "UTC".into() });
        }
        if let Some(minutes) = offset_minutes(name) {
            let offset = tz::Offset::from_seconds(minutes * 60).map_err(|_| refused())?;
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
            let name = format!("{sign}{hours:02}:{rest:02}");
            return Ok(Self { rules: tz::TimeZone::fixed(offset), id: ZoneId::UNKNOWN, name });
        }
        if name.len() > 64 || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(refused());
        }
        let rules = tz::TimeZoneDatabase::bundled().get(name).map_err(|_| refused())?;
        let name = rules.iana_name().ok_or_else(refused)?.to_owned();
        Ok(Self { id: IanaParser::new().parse(&name), rules, name })
    }

    /// The name in its usual case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offset from UTC at an instant, in seconds.
    pub fn offset_seconds(&self, time_ms: f64) -> i32 {
        // Beyond the years the rules cover the last rule goes on.
        #[allow(clippy::cast_possible_truncation, reason = "clamped to the range of the standard")]
        let ms = (time_ms.clamp(-MAX_TIME_MS, MAX_TIME_MS) as i64)
            .clamp(Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
        let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
        self.rules.to_offset(at).seconds()
    }

    pub(crate) fn civil(&self, time_ms: f64) -> Result<ZonedDateTime<Iso, TimeZoneInfo<AtTime>>, IntlError> {
        if !time_ms.is_finite() || time_ms.abs() > MAX_TIME_MS {
            return Err(IntlError::InvalidValue { message: "Invalid time value".into() });
        }
        #[allow(clippy::cast_possible_truncation, reason = "checked above")]
        let ms = time_ms.floor() as i64;
        // The checked constructor stops at 18 hours, the standard at 24.
        let offset = UtcOffset::from_seconds_unchecked(self.offset_seconds(time_ms));
        let there = ZonedDateTime::from_epoch_milliseconds_and_utc_offset(ms, offset);
        let zone = self.id.with_offset(Some(offset));
        let zone = zone.with_zone_name_timestamp(ZoneNameTimestamp::from_epoch_seconds(ms.div_euclid(1000)));
        Ok(ZonedDateTime { date: there.date, time: there.time, zone })
    }
}

/// `+05:30`, `-0800`, `+01` in minutes.
fn offset_minutes(text: &str) -> Option<i32> {
    let (sign, rest) = if let Some(rest) = text.strip_prefix('+') { (1, rest) } else { (-1, text.strip_prefix('-')?) };
    let digits = match rest.len() {
        2 | 4 => rest.to_owned(),
        5 if rest.as_bytes()[2] == b':' => format!("{}{}", &rest[..2], &rest[3..]),
        _ => return None,
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let hours: i32 = digits[..2].parse().ok()?;
    let minutes: i32 = digits.get(2..).filter(|m| !m.is_empty()).map_or(Some(0), |m| m.parse().ok())?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}
