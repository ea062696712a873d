//! The deadline of the code that is running. The engine asks now and then whether to go on.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Instant,
};

use tokio_util::sync::CancellationToken;

use crate::queue::Pulse;

/// Why running code was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trip {
    Timeout,
    Cancelled,
    Abandoned,
}

/// One turn is one uninterrupted run of an isolate: from an event (a call starts, a host answer, a timer) until its job
/// queue is empty. Everything in a turn is charged to the call the event belongs to. Code of another call that the turn
/// wakes through a promise both share is charged to it as well.
pub(crate) struct Fence {
    deadline: Cell<Option<Instant>>,
    cancel: RefCell<Option<CancellationToken>>,
    tripped: Cell<Option<Trip>>,
    pulse: Arc<Pulse>,
}

impl Fence {
    pub(crate) fn new(pulse: Arc<Pulse>) -> Self {
        Self { deadline: Cell::new(None), cancel: RefCell::new(None), tripped: Cell::new(None), pulse }
    }

    pub(crate) fn enter(&self, deadline: Instant, cancel: Option<CancellationToken>) {
        self.tripped.set(None);
        self.deadline.set(Some(deadline));
        self.cancel.replace(cancel);
        self.pulse.enter(deadline);
    }

    pub(crate) fn leave(&self) -> Option<Trip> {
        self.pulse.leave();
        self.deadline.set(None);
        self.cancel.replace(None);
        self.tripped.get()
    }

    pub(crate) fn tripped(&self) -> Option<Trip> {
        self.tripped.get()
    }

    /// Must the running code stop? Once true, true until the turn ends: code that catches or continues is stopped again.
    pub(crate) fn check(&self) -> bool {
        if self.tripped.get().is_some() {
            return true;
        }
        let Some(deadline) = self.deadline.get() else {
            return false;
        };
        let trip = if self.pulse.abandoned() {
            Trip::Abandoned
        } else if Instant::now() >= deadline {
            Trip::Timeout
        } else if self.cancel.borrow().as_ref().is_some_and(CancellationToken::is_cancelled) {
            Trip::Cancelled
        } else {
            return false;
        };
        self.tripped.set(Some(trip));
        true
    }
}
