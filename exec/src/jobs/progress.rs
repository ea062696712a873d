//! `ctx.progress.report` of a running job: live, in order, never stored. What counts is how the job ends.

use covel_abi::HostError;
use covel_graph::Json;
use serde_json::Value;

use super::{JobProgress, JobState};
use crate::limits::MAX_PROGRESS_BYTES;

/// One report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    /// The state it claims.
    pub state: Option<JobState>,
    /// It waits for someone, or said that its work failed or was called off.
    pub word: Option<String>,
    /// Its own numbering: one that is not above the last is a repetition.
    pub sequence: Option<u64>,
    /// What to show.
    pub progress: JobProgress,
}

/// The newest report of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// What to show.
    pub progress: JobProgress,
    /// The host's numbering: shared with status changes, so that all that is told of a job is in one order.
    pub sequence: u64,
    /// Reports so far.
    pub count: u64,
    /// The runtime's own numbering.
    pub own: Option<u64>,
    /// The runtime said that its work failed.
    pub failure: Option<String>,
}

const STATES: [&str; 7] = ["queued", "running", "progress", "waiting-input", "succeeded", "failed", "cancelled"];

impl Report {
    /// Reads what plugin code gave: `{state?, progress?, message?, data?, sequence?}`.
    ///
    /// # Errors
    /// `invalid-input` for anything of another shape.
    pub fn read(effect: &Json) -> Result<Self, HostError> {
        let invalid = |message: String| HostError::new("invalid-input", message);
        if effect.byte_len() > MAX_PROGRESS_BYTES {
            return Err(invalid(format!("a report has {} bytes; at most {MAX_PROGRESS_BYTES}", effect.byte_len())));
        }
        let object = effect.value().as_object().ok_or_else(|| invalid("a report is an object".into()))?;
        let present = |name: &str| object.get(name).filter(|value| !value.is_null());
        let state = present("state")
            .map(|state| {
                let word = state.as_str().filter(|word| STATES.contains(word));
                word.ok_or_else(|| invalid(format!("`state` is one of {}", STATES.join(", "))))
            })
            .transpose()?;
        let progress = present("progress")
            .map(|value| value.as_f64().ok_or_else(|| invalid("`progress` is a number".into())))
            .transpose()?;
        let message = present("message")
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| invalid("`message` is a text".into())))
            .transpose()?;
        let sequence = present("sequence")
            .map(|value| value.as_u64().ok_or_else(|| invalid("`sequence` is a whole number from 0".into())))
            .transpose()?;
        let shown = match state {
            // It has succeeded when its writes have landed, and the host says so then.
            Some("succeeded" | "progress" | "waiting-input") | None => JobState::Progress,
            Some("failed") => JobState::Failed,
            Some("cancelled") => JobState::Cancelled,
            Some(_) => JobState::Running,
        };
        Ok(Self {
            state: Some(shown),
            word: state.map(str::to_owned),
            sequence,
            progress: JobProgress { progress, message, data: present("data").cloned().map(Json::from_value) },
        })
    }

    /// The message, when it says that the work failed.
    pub fn failure(&self) -> Option<String> {
        matches!(self.word.as_deref(), Some("failed" | "cancelled"))
            .then(|| self.progress.message.clone().unwrap_or_else(|| "the runtime reported a failure".to_owned()))
    }
}

/// The last state a runtime gave in `effects.jobStatus`, when it is a failure: its message.
pub(crate) fn failure_of(statuses: &[Value]) -> Option<String> {
    Report::read(&Json::from_value(statuses.last()?.clone())).ok()?.failure()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_have_one_shape() {
        let read = |value: Value| Report::read(&Json::from_value(value));
        for value in [
            json!(null),
            json!([]),
            json!("half"),
            json!({"state": "done"}),
            json!({"state": 3}),
            json!({"progress": "half"}),
            json!({"message": 1}),
            json!({"sequence": -1}),
            json!({"data": "x".repeat(MAX_PROGRESS_BYTES)}),
        ] {
            assert_eq!(read(value.clone()).unwrap_err().code, "invalid-input", "{value}");
        }
        let report = read(json!({"progress": 0.5, "message": "half", "data": {"n": 1}, "sequence": 4})).unwrap();
        assert_eq!((report.state, report.sequence), (Some(JobState::Progress), Some(4)));
        assert_eq!(read(json!({"state": "succeeded"})).unwrap().state, Some(JobState::Progress));
        assert_eq!(read(json!({"state": "failed", "message": "no ink"})).unwrap().failure().as_deref(), Some("no ink"));
        assert_eq!(failure_of(&[json!({"state": "failed"}), json!({"state": "running"})]), None);
    }
}
