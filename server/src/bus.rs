//! Session events, kept for a while and handed to any number of readers.
//!
//! A reader is a cursor into the session's ring, not a queue of its own: a slow reader costs nothing, and one that
//! falls out of the ring is told so and continues at the end. Ids are `epoch:seq`; an epoch is one life of a ring.
//! No HTTP here.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::limits;

/// One kept event.
#[derive(Debug)]
pub struct BusEvent {
    /// Place in its epoch, from 1.
    pub seq: u64,
    /// Event name.
    pub kind: &'static str,
    /// `epoch:seq`.
    pub id: String,
    /// The event as one line of JSON.
    pub data: String,
}

/// Bounds of a bus.
#[derive(Clone, Copy, Debug)]
pub struct BusLimits {
    /// Events kept a session.
    pub events: usize,
    /// Bytes kept a session.
    pub bytes: usize,
    /// Sessions kept without readers.
    pub sessions: usize,
    /// Readers a session.
    pub streams_per_session: usize,
    /// Readers altogether.
    pub streams: usize,
}

impl Default for BusLimits {
    fn default() -> Self {
        Self {
            events: limits::REPLAY_EVENTS,
            bytes: limits::REPLAY_BYTES,
            sessions: limits::REPLAY_SESSIONS,
            streams_per_session: limits::MAX_STREAMS_PER_SESSION,
            streams: limits::MAX_STREAMS,
        }
    }
}

/// Too many readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyStreams;

struct Ring {
    epoch: String,
    next: u64,
    events: VecDeque<Arc<BusEvent>>,
    bytes: usize,
    readers: usize,
    /// Tells readers the newest sequence number.
    newest: watch::Sender<u64>,
    touched: u64,
}

struct Inner {
    rings: HashMap<String, Ring>,
    readers: usize,
    clock: u64,
    epochs: u64,
}

/// All sessions' events.
pub struct Bus {
    inner: Mutex<Inner>,
    boot: String,
    limits: BusLimits,
}

impl Bus {
    /// An empty bus; `boot` makes its epochs distinct from those of earlier processes.
    pub fn new(boot: impl Into<String>, limits: BusLimits) -> Arc<Self> {
        let inner = Inner { rings: HashMap::new(), readers: 0, clock: 0, epochs: 0 };
        Arc::new(Self { inner: Mutex::new(inner), boot: boot.into(), limits })
    }

    /// Keeps an event and wakes the session's readers. `render` makes its line from its id.
    pub fn publish(&self, session: &str, kind: &'static str, render: impl FnOnce(&str, u64) -> String) {
        let mut inner = self.inner.lock();
        let ring = inner.ring(session, &self.boot);
        let seq = ring.next;
        let id = format!("{}:{seq}", ring.epoch);
        let data = render(&id, seq);
        ring.next += 1;
        ring.bytes += data.len();
        ring.events.push_back(Arc::new(BusEvent { seq, kind, id, data }));
        while ring.events.len() > self.limits.events || (ring.bytes > self.limits.bytes && ring.events.len() > 1) {
            if let Some(old) = ring.events.pop_front() {
                ring.bytes -= old.data.len();
            }
        }
        ring.newest.send_replace(seq);
        inner.evict(self.limits.sessions);
    }

    /// Forgets a session; its readers end.
    pub fn remove(&self, session: &str) {
        let mut inner = self.inner.lock();
        if let Some(ring) = inner.rings.remove(session) {
            inner.readers -= ring.readers;
        }
    }

    /// Starts reading after `last`, an id seen earlier, or at the end.
    ///
    /// # Errors
    /// When this session or the process has as many readers as it may.
    pub fn subscribe(self: &Arc<Self>, session: &str, last: Option<&str>) -> Result<Subscription, TooManyStreams> {
        let mut inner = self.inner.lock();
        if inner.readers >= self.limits.streams {
            return Err(TooManyStreams);
        }
        let most = self.limits.streams_per_session;
        let ring = inner.ring(session, &self.boot);
        if ring.readers >= most {
            return Err(TooManyStreams);
        }
        ring.readers += 1;
        let newest = ring.next - 1;
        let (cursor, reset) = match last {
            None => (newest, None),
            Some(id) => match place(id, &ring.epoch) {
                None => (newest, Some("epoch-change")),
                Some(seq) if seq > newest || seq + 1 < ring.oldest() => (newest, Some("gap")),
                Some(seq) => (seq, None),
            },
        };
        let subscription = Subscription {
            bus: Arc::clone(self),
            session: session.to_owned(),
            epoch: ring.epoch.clone(),
            cursor,
            reset,
            newest: ring.newest.subscribe(),
        };
        inner.readers += 1;
        Ok(subscription)
    }
}

fn place(id: &str, epoch: &str) -> Option<u64> {
    let (theirs, seq) = id.rsplit_once(':')?;
    if theirs != epoch {
        return None;
    }
    seq.parse().ok()
}

impl Ring {
    /// Sequence number of the oldest kept event, or of the next one when none is kept.
    fn oldest(&self) -> u64 {
        self.events.front().map_or(self.next, |event| event.seq)
    }
}

impl Inner {
    fn ring(&mut self, session: &str, boot: &str) -> &mut Ring {
        self.clock += 1;
        let clock = self.clock;
        let epochs = &mut self.epochs;
        let ring = self.rings.entry(session.to_owned()).or_insert_with(|| {
            *epochs += 1;
            Ring {
                epoch: format!("{boot}-{epochs}"),
                next: 1,
                events: VecDeque::new(),
                bytes: 0,
                readers: 0,
                newest: watch::Sender::new(0),
                touched: clock,
            }
        });
        ring.touched = clock;
        ring
    }

    /// Drops the rings longest untouched, those with readers excepted.
    fn evict(&mut self, most: usize) {
        while self.rings.len() > most {
            let idle = self.rings.iter().filter(|(_, ring)| ring.readers == 0);
            let Some(oldest) = idle.min_by_key(|(_, ring)| ring.touched).map(|(session, _)| session.clone()) else {
                return;
            };
            self.rings.remove(&oldest);
        }
    }
}

/// What a reader gets next.
#[derive(Debug)]
pub enum Batch {
    /// Events in order.
    Events(Vec<Arc<BusEvent>>),
    /// Events were missed: read the state again and go on from `cursor`.
    Reset {
        /// `gap` or `epoch-change`.
        reason: &'static str,
        /// The epoch now.
        epoch: String,
        /// Oldest event kept.
        oldest: u64,
        /// Newest event.
        latest: u64,
        /// `epoch:seq` to continue from.
        cursor: String,
    },
}

/// A reader's place.
pub struct Subscription {
    bus: Arc<Bus>,
    session: String,
    epoch: String,
    cursor: u64,
    reset: Option<&'static str>,
    newest: watch::Receiver<u64>,
}

impl Subscription {
    /// `epoch:seq` of the last event handed out.
    pub fn cursor(&self) -> String {
        format!("{}:{}", self.epoch, self.cursor)
    }

    /// Waits for what comes next; `None` when the session is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            match self.take() {
                Taken::Batch(batch) => return Some(batch),
                Taken::Gone => return None,
                Taken::Nothing => self.newest.changed().await.ok()?,
            }
        }
    }

    fn take(&mut self) -> Taken {
        let inner = self.bus.inner.lock();
        let Some(ring) = inner.rings.get(&self.session).filter(|ring| ring.epoch == self.epoch) else {
            return Taken::Gone;
        };
        // Seen before looking, so that an event published afterwards wakes the reader again.
        self.newest.mark_unchanged();
        let oldest = ring.oldest();
        let latest = ring.next - 1;
        if let Some(reason) = self.reset.take().or((self.cursor + 1 < oldest).then_some("gap")) {
            self.cursor = latest;
            let cursor = format!("{}:{latest}", ring.epoch);
            return Taken::Batch(Batch::Reset { reason, epoch: ring.epoch.clone(), oldest, latest, cursor });
        }
        let skip = usize::try_from(self.cursor + 1 - oldest).unwrap_or(usize::MAX);
        let events: Vec<_> = ring.events.iter().skip(skip).take(limits::STREAM_BATCH).cloned().collect();
        match events.last() {
            Some(last) => {
                self.cursor = last.seq;
                Taken::Batch(Batch::Events(events))
            }
            None => Taken::Nothing,
        }
    }
}

enum Taken {
    Batch(Batch),
    Nothing,
    Gone,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut inner = self.bus.inner.lock();
        if let Some(ring) = inner.rings.get_mut(&self.session).filter(|ring| ring.epoch == self.epoch) {
            ring.readers -= 1;
            inner.readers -= 1;
        }
    }
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
