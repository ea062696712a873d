//! What was measured: all samples of one thing, and the figures made of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Figures of one measured thing, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// Profile.
    pub(super) profile: String,
    /// What was done.
    pub(super) name: String,
    /// Which part of it.
    pub(super) part: String,
    /// How often.
    pub(super) samples: usize,
    /// Half of them took no longer.
    pub(super) p50: f64,
    /// Of twenty, nineteen.
    pub(super) p95: f64,
    /// Of a hundred, ninety-nine.
    pub(super) p99: f64,
    /// The longest.
    pub(super) max: f64,
    /// How many a second, where several ran at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) per_second: Option<f64>,
    /// The median of the run before, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before_p50: Option<f64>,
}

/// Samples in the order they were taken.
#[derive(Default)]
pub(super) struct Samples(Vec<Duration>);

impl Samples {
    pub(super) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The figures; nothing without samples.
    pub(super) fn row(mut self, profile: &str, name: impl Into<String>, part: &str) -> Option<Row> {
        self.0.sort_unstable();
        let at = |hundredths: usize| -> Option<f64> {
            // Nearest rank: the smallest sample that so many of a hundred do not exceed.
            let rank = (self.0.len() * hundredths).div_ceil(100).max(1);
            self.0.get(rank - 1).map(|took| took.as_secs_f64() * 1e6)
        };
        Some(Row {
            profile: profile.to_owned(),
            name: name.into(),
            part: part.to_owned(),
            samples: self.0.len(),
            p50: at(50)?,
            p95: at(95)?,
            p99: at(99)?,
            max: at(100)?,
            per_second: None,
            before_p50: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(millis: impl IntoIterator<Item = u64>) -> Option<Row> {
        let mut samples = Samples::default();
        millis.into_iter().for_each(|took| samples.push(Duration::from_millis(took)));
        samples.row("p", "n", "total")
    }

    #[test]
    fn figures_are_samples_that_were_taken() {
        let hundred = row((1..=100).rev()).unwrap();
        assert_eq!((hundred.p50, hundred.p95, hundred.p99, hundred.max), (50e3, 95e3, 99e3, 100e3));
        let three = row([3, 1, 2]).unwrap();
        assert_eq!((three.samples, three.p50, three.p95, three.max), (3, 2e3, 3e3, 3e3));
        let one = row([7]).unwrap();
        assert_eq!((one.p50, one.p99), (7e3, 7e3));
        assert_eq!(row([]), None);
    }
}
