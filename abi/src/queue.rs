//! The queue of one worker slot. It belongs to the slot, not to the thread, so a thread that replaces a stuck one goes on
//! with what was waiting.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use covel_graph::Json;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::{
    call::Call,
    error::LoadError,
    generation::{Blueprint, CloseReport},
    host::HostError,
};

/// What a worker is told.
pub(crate) enum Message {
    Load { blueprint: Blueprint, reply: oneshot::Sender<Result<(), LoadError>> },
    Call(Box<Call>),
    HostDone { key: u64, epoch: u64, operation: u32, result: Result<Json, HostError> },
    Cancel { key: u64, epoch: u64, call: u32 },
    Close { key: u64, reply: Option<oneshot::Sender<CloseReport>> },
    Memory { key: u64, reply: oneshot::Sender<Option<u64>> },
}

/// The queue of a slot.
#[derive(Default)]
pub(crate) struct Queue {
    messages: Mutex<VecDeque<Message>>,
    ready: Condvar,
    stop: AtomicBool,
}

pub(crate) enum Popped {
    Message(Message),
    /// The time given to `pop` has come.
    Due,
    /// The host is shut down, or this thread was replaced.
    Stop,
}

impl Queue {
    pub(crate) fn push(&self, message: Message) {
        self.messages.lock().push_back(message);
        self.ready.notify_one();
    }

    /// One lock and one wake-up for a whole layer.
    pub(crate) fn extend(&self, messages: impl Iterator<Item = Message>) {
        self.messages.lock().extend(messages);
        self.ready.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // The lock orders the store before a waiter's next check.
        drop(self.messages.lock());
        self.ready.notify_all();
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn pop(&self, until: Option<Instant>, pulse: &Pulse) -> Popped {
        let mut messages = self.messages.lock();
        loop {
            if pulse.abandoned() || self.stopped() {
                return Popped::Stop;
            }
            if let Some(message) = messages.pop_front() {
                return Popped::Message(message);
            }
            match until {
                None => self.ready.wait(&mut messages),
                Some(until) => {
                    if self.ready.wait_until(&mut messages, until).timed_out() && messages.is_empty() {
                        return if pulse.abandoned() || self.stopped() { Popped::Stop } else { Popped::Due };
                    }
                }
            }
        }
    }

    /// What nobody will handle any more.
    pub(crate) fn drain(&self) -> Vec<Message> {
        self.messages.lock().drain(..).collect()
    }
}

/// What one worker thread shows its watchdog.
pub(crate) struct Pulse {
    started: Instant,
    /// Nanoseconds after `started` at which the present turn must be over; 0 when no plugin code runs.
    due: AtomicU64,
    abandoned: AtomicBool,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), due: AtomicU64::new(0), abandoned: AtomicBool::new(false) })
    }

    pub(crate) fn enter(&self, deadline: Instant) {
        let nanos = deadline.saturating_duration_since(self.started).as_nanos();
        self.due.store(u64::try_from(nanos).unwrap_or(u64::MAX).max(1), Ordering::Release);
    }

    pub(crate) fn leave(&self) {
        self.due.store(0, Ordering::Release);
    }

    /// Has the thread not come back `grace` after its deadline?
    pub(crate) fn stuck(&self, now: Instant, grace: Duration) -> bool {
        let due = self.due.load(Ordering::Acquire);
        due != 0 && now.saturating_duration_since(self.started) > Duration::from_nanos(due) + grace
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    pub(crate) fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}
