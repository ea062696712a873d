//! The table of what may happen to a background job.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use covel_exec::{JobEvent, JobState, JobStatus};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    steps: Vec<Step>,
    shown: BTreeMap<String, Shown>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    from: JobStatus,
    event: JobEvent,
    to: JobStatus,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    state: JobState,
    ended: bool,
    retry: bool,
}

fn table() -> Table {
    serde_saphyr::from_str(include_str!("../cases/jobs.yaml")).unwrap()
}

#[test]
fn a_job_takes_the_listed_steps_and_no_others() {
    let table = table();
    for from in JobStatus::ALL {
        for event in JobEvent::ALL {
            let listed: Vec<_> = table.steps.iter().filter(|step| step.from == from && step.event == event).collect();
            assert!(listed.len() <= 1, "{from:?} {event:?} is listed twice");
            assert_eq!(from.next(event), listed.first().map(|step| step.to), "{from:?} {event:?}");
        }
    }
}

#[test]
fn every_status_has_a_public_word_and_only_unsuccessful_ends_are_tried_again() {
    let table = table();
    assert_eq!(table.shown.len(), JobStatus::ALL.len());
    for status in JobStatus::ALL {
        let shown = &table.shown[status.as_str()];
        assert_eq!(status.state(), shown.state, "{status:?}");
        assert_eq!(status.is_terminal(), shown.ended, "{status:?}");
        assert_eq!(status.is_retryable(), shown.retry, "{status:?}");
        assert!(!status.is_terminal() || JobEvent::ALL.iter().all(|event| status.next(*event).is_none()));
    }
}
