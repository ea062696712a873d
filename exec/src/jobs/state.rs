//! Where a job stands and what may happen to it: a pure state machine. Its table is `tests/cases/jobs.yaml`.

use serde::{Deserialize, Serialize};

/// Where a job stands, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waits for a worker.
    Queued,
    /// A worker has it.
    Claimed,
    /// Its code runs.
    Running,
    /// Its writes are being committed.
    Committing,
    /// Its writes and this word landed in one transaction.
    Succeeded,
    /// Its execution or its commit failed.
    Failed,
    /// It waited or ran too long.
    TimedOut,
    /// Someone called it off.
    Cancelled,
    /// What it builds on changed.
    Stale,
    /// Its worker is gone. It is not run again by itself: nobody knows how far it came.
    Orphaned,
}

/// What clients are told of a [`JobStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Waits.
    Queued,
    /// Runs.
    Running,
    /// Commits.
    Progress,
    /// Done.
    Succeeded,
    /// Not done, for whatever reason.
    Failed,
    /// Called off.
    Cancelled,
}

/// What happens to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobEvent {
    /// A worker takes it.
    Claim,
    /// Checked; its code starts.
    Start,
    /// The session, the package or the runtime it was made for is not there any more.
    Reject,
    /// It ended well and holds the session.
    BeginCommit,
    /// The commit lands.
    Commit,
    /// The commit lands, and the runtime itself said that its work failed.
    CommitReportedFailure,
    /// Execution or commit failed.
    Fail,
    /// What it read changed, or the session or package did.
    BarrierReject,
    /// It waited longer than allowed.
    QueueExpire,
    /// It ran longer than allowed.
    ExecutionExpire,
    /// Someone calls it off.
    Cancel,
    /// The lease lapsed without a sign of its worker.
    LeaseLapse,
    /// The process that had it is gone.
    Recover,
}

impl JobStatus {
    /// Every status.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Claimed,
        Self::Running,
        Self::Committing,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Stale,
        Self::Orphaned,
    ];

    /// Where `event` leads, or `None` when it cannot happen here. Ends are final.
    pub fn next(self, event: JobEvent) -> Option<Self> {
        use JobEvent as E;
        Some(match (self, event) {
            (Self::Queued, E::Claim) => Self::Claimed,
            (Self::Queued, E::QueueExpire) => Self::TimedOut,
            // Nobody had begun it: the next process goes on with it.
            (Self::Queued, E::Recover) => Self::Queued,
            (Self::Claimed, E::Start) => Self::Running,
            (Self::Queued | Self::Claimed, E::Reject) => Self::Stale,
            (Self::Queued | Self::Claimed | Self::Running, E::Cancel) => Self::Cancelled,
            (Self::Running, E::BeginCommit) => Self::Committing,
            (Self::Running, E::ExecutionExpire) => Self::TimedOut,
            (Self::Running | Self::Committing, E::Fail) => Self::Failed,
            (Self::Running | Self::Committing, E::BarrierReject) => Self::Stale,
            (Self::Committing, E::Commit) => Self::Succeeded,
            (Self::Committing, E::CommitReportedFailure) => Self::Failed,
            // A commit that landed would have left an end in the same transaction, so this one did not.
            (Self::Claimed | Self::Running | Self::Committing, E::LeaseLapse | E::Recover) => Self::Orphaned,
            _ => return None,
        })
    }

    /// Has it ended?
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Claimed | Self::Running | Self::Committing)
    }

    /// May it be called off?
    pub fn is_cancellable(self) -> bool {
        self.next(JobEvent::Cancel).is_some()
    }

    /// May it be tried again, as a new job?
    pub fn is_retryable(self) -> bool {
        self.is_terminal() && self != Self::Succeeded
    }

    /// What clients are told.
    pub fn state(self) -> JobState {
        match self {
            Self::Queued => JobState::Queued,
            Self::Claimed | Self::Running => JobState::Running,
            Self::Committing => JobState::Progress,
            Self::Succeeded => JobState::Succeeded,
            Self::Cancelled => JobState::Cancelled,
            Self::Failed | Self::TimedOut | Self::Stale | Self::Orphaned => JobState::Failed,
        }
    }

    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Committing => "committing",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Stale => "stale",
            Self::Orphaned => "orphaned",
        }
    }
}

impl JobEvent {
    /// Every event.
    pub const ALL: [Self; 13] = [
        Self::Claim,
        Self::Start,
        Self::Reject,
        Self::BeginCommit,
        Self::Commit,
        Self::CommitReportedFailure,
        Self::Fail,
        Self::BarrierReject,
        Self::QueueExpire,
        Self::ExecutionExpire,
        Self::Cancel,
        Self::LeaseLapse,
        Self::Recover,
    ];
}
