//! What one logical call may use: requests, retries, time. Pure: the clock is passed in.

use std::time::Duration;

use covel_model::{ModelErrorKind, ModelRequest};
use tokio::time::Instant;

use crate::limits::CallLimits;
use crate::protocol::Fault;

/// One budget spans retries, fallbacks, queueing and waits.
#[derive(Debug)]
pub(super) struct Budget {
    limits: CallLimits,
    first_token: Duration,
    idle: Duration,
    requests: u32,
    retries: u32,
    silence: Duration,
    deadline: Instant,
    ceiling: Instant,
}

/// When a wait ends, and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) meaning: Late,
}

/// Why it is too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// No first piece.
    FirstToken(Duration),
    /// No next piece.
    Idle(Duration),
    /// The budget is used up.
    Budget,
}

impl Late {
    pub(super) fn fault(self) -> Fault {
        let timeout = |text| Fault::new(ModelErrorKind::Timeout, text);
        match self {
            Self::FirstToken(wait) => timeout(format!("no answer began within {} ms", wait.as_millis())),
            Self::Idle(wait) => timeout(format!("the answer stopped for {} ms", wait.as_millis())),
            Self::Budget => Fault::new(ModelErrorKind::Budget, "the time for this model call is used up"),
        }
    }
}

impl Budget {
    /// The budget of a request. Waits it names longer than the usual silence stretch the budget to hold them.
    pub(super) fn new(limits: CallLimits, request: &ModelRequest, now: Instant) -> Self {
        let named = |milliseconds: u64, usual: Duration| match milliseconds {
            0 => usual,
            milliseconds => Duration::from_millis(milliseconds).min(limits.ceiling),
        };
        let first_token = named(request.first_token_timeout_ms, limits.first_token);
        let idle = named(request.idle_timeout_ms, limits.idle);
        let ceiling = now + limits.ceiling;
        Self {
            first_token,
            idle,
            requests: limits.requests,
            retries: limits.transport_retries,
            silence: limits.silence.max(idle),
            deadline: (now + limits.silence.max(first_token)).min(ceiling),
            ceiling,
            limits,
        }
    }

    /// Takes one HTTP request.
    pub(super) fn take_request(&mut self, now: Instant) -> Result<(), Fault> {
        if now >= self.deadline {
            return Err(Late::Budget.fault());
        }
        match self.requests.checked_sub(1) {
            Some(left) => self.requests = left,
            None => {
                let text = format!("the {} HTTP requests of this model call are used up", self.limits.requests);
                return Err(Fault::new(ModelErrorKind::Budget, text));
            }
        }
        Ok(())
    }

    /// Takes one retry that starts after `wait`; its number from 0, or `None` when there is none left, or no time.
    pub(super) fn take_retry(&mut self, wait: impl FnOnce(u32) -> Duration, now: Instant) -> Option<Duration> {
        let number = self.limits.transport_retries - self.retries;
        let wait = wait(number);
        if self.retries == 0 || self.requests == 0 || now + wait >= self.deadline {
            return None;
        }
        self.retries -= 1;
        Some(wait)
    }

    /// Is there so much time?
    pub(super) fn has(&self, wait: Duration, now: Instant) -> bool {
        now + wait < self.deadline
    }

    /// A piece came: the deadline moves on, never beyond the ceiling.
    pub(super) fn progress(&mut self, now: Instant) {
        self.deadline = self.deadline.max(now + self.silence).min(self.ceiling);
    }

    /// Until when a request sent now may stay without a first piece.
    pub(super) fn first_piece(&self, now: Instant) -> Deadline {
        self.sooner(now + self.first_token, Late::FirstToken(self.first_token))
    }

    /// Until when the next piece has to come.
    pub(super) fn next_piece(&self, now: Instant) -> Deadline {
        self.sooner(now + self.idle, Late::Idle(self.idle))
    }

    /// The end of the budget.
    pub(super) fn end(&self) -> Deadline {
        Deadline { at: self.deadline, meaning: Late::Budget }
    }

    fn sooner(&self, at: Instant, meaning: Late) -> Deadline {
        if at <= self.deadline { Deadline { at, meaning } } else { self.end() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(first: u64, idle: u64, now: Instant) -> Budget {
        let request = ModelRequest { first_token_timeout_ms: first, idle_timeout_ms: idle, ..ModelRequest::default() };
        Budget::new(CallLimits::default(), &request, now)
    }

    #[test]
    fn requests_and_retries_run_out() {
        let now = Instant::now();
        let mut budget = budget(0, 0, now);
        let retries = std::iter::from_fn(|| budget.take_retry(|_| Duration::ZERO, now)).count();
        assert_eq!(retries, 3);
        for _ in 0..8 {
            budget.take_request(now).expect("within the budget");
        }
        assert_eq!(budget.take_request(now).map_err(|fault| fault.kind), Err(ModelErrorKind::Budget));
    }

    #[test]
    fn progress_moves_the_end_up_to_the_ceiling() {
        let start = Instant::now();
        let mut budget = budget(0, 0, start);
        assert_eq!(budget.end().at, start + Duration::from_secs(120));
        budget.progress(start + Duration::from_secs(100));
        assert_eq!(budget.end().at, start + Duration::from_secs(220));
        budget.progress(start + Duration::from_secs(1790));
        assert_eq!(budget.end().at, start + Duration::from_secs(1800));
        assert!(budget.take_request(start + Duration::from_secs(1800)).is_err());
    }

    #[test]
    fn named_waits_are_kept_and_stretch_the_budget() {
        let start = Instant::now();
        let budget = budget(300_000, 5, start);
        assert_eq!(budget.first_piece(start).meaning, Late::FirstToken(Duration::from_secs(300)));
        assert_eq!(budget.next_piece(start).at, start + Duration::from_millis(5));
        let late = start + Duration::from_secs(200);
        assert_eq!(budget.first_piece(late), budget.end());
        let endless = super::tests::budget(u64::MAX, u64::MAX, start);
        assert_eq!(endless.end().at, start + Duration::from_secs(1800));
    }

    #[test]
    fn a_retry_that_would_come_too_late_is_not_made() {
        let start = Instant::now();
        let mut budget = budget(0, 0, start);
        let late = start + Duration::from_secs(119);
        assert_eq!(budget.take_retry(|_| Duration::from_secs(1), late), None);
        assert_eq!(budget.take_retry(|_| Duration::from_millis(900), late), Some(Duration::from_millis(900)));
    }
}
