//! A worker thread: it owns isolates, runs their turns, keeps their clock.

mod lifecycle;
mod waiting;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use covel_graph::Json;
use parking_lot::Mutex;
use tokio::runtime::Handle;

pub(crate) use waiting::{Waiting, answer};

use crate::{
    call::{Call, CallError, CallTarget},
    fence::Trip,
    isolate::{Isolate, Running, Sizes},
    limits::{BACKGROUND_TURN_LIMIT, MAX_STRIKES},
    queue::{Message, Popped, Pulse, Queue},
};

/// What a worker thread and its watchdog share.
pub(crate) struct Shared {
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) waiting: Mutex<HashMap<u32, Waiting>>,
    /// The call whose turn runs; 0 when none.
    pub(crate) running: AtomicU64,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { pulse: Pulse::new(), waiting: Mutex::default(), running: AtomicU64::new(0) })
    }
}

enum Phase {
    Ready,
    /// The entry runs; calls wait.
    Starting(Vec<Call>),
    Closing,
}

struct Slot {
    isolate: Isolate,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    Timer(u32),
    Deadline(u32),
}

pub(crate) struct Worker {
    pub(crate) queue: Arc<Queue>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
    pub(crate) sizes: Sizes,
    isolates: HashMap<u64, Slot>,
    alarms: BinaryHeap<Reverse<(Instant, u64, u64, Alarm)>>,
    next_call: u32,
    next_epoch: u64,
}

impl Worker {
    pub(crate) fn new(queue: Arc<Queue>, shared: Arc<Shared>, handle: Handle, sizes: Sizes) -> Self {
        Self {
            queue,
            shared,
            handle,
            sizes,
            isolates: HashMap::new(),
            alarms: BinaryHeap::new(),
            next_call: 1,
            next_epoch: 1,
        }
    }

    pub(crate) fn run(mut self) {
        loop {
            let until = self.alarms.peek().map(|Reverse((at, ..))| *at);
            let message = match self.queue.pop(until, &self.shared.pulse) {
                Popped::Stop => break,
                Popped::Due => None,
                Popped::Message(message) => Some(message),
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                if let Some(message) = message {
                    self.handle(message);
                }
                self.ring();
            }));
            if outcome.is_err() {
                self.start_over();
            }
        }
        for (_, waiting) in self.shared.waiting.lock().drain() {
            answer(waiting, Err(CallError::Cancelled));
        }
    }

    /// After a panic nothing of the isolates is trusted, not even to be dropped: an engine that finds its books wrong
    /// aborts the process. They are left behind; whoever calls next gets new ones.
    fn start_over(&mut self) {
        tracing::error!("a worker panicked; its isolates are replaced");
        std::mem::forget(std::mem::take(&mut self.isolates));
        self.alarms.clear();
        self.shared.running.store(0, Ordering::Relaxed);
        self.shared.pulse.leave();
        let waiting: Vec<_> = self.shared.waiting.lock().drain().collect();
        for (_, waiting) in waiting {
            answer(waiting, Err(CallError::WorkerLost));
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Load { blueprint, reply } => self.load(blueprint, Waiting::Load(reply), Vec::new()),
            Message::Call(call) => self.call(*call),
            Message::HostDone { key, epoch, operation, result } => {
                let Some(slot) = self.live(key, epoch) else {
                    return;
                };
                if let Some((call, trip)) = slot.isolate.settle_operation(operation, result) {
                    self.after(key, call, trip);
                }
            }
            Message::Cancel { key, epoch, call } => {
                if self.live(key, epoch).is_some_and(|slot| slot.isolate.state.calls.borrow().contains_key(&call)) {
                    self.interrupt(key, call, Trip::Cancelled);
                }
            }
            Message::Close { key, reply } => self.close(key, reply),
            Message::Memory { key, reply } => {
                let _ = reply.send(self.isolates.get(&key).map(|slot| slot.isolate.heap_used()));
            }
        }
    }

    fn live(&mut self, key: u64, epoch: u64) -> Option<&mut Slot> {
        self.isolates.get_mut(&key).filter(|slot| slot.isolate.state.epoch == epoch)
    }

    fn call_id(&mut self) -> u32 {
        let id = self.next_call;
        self.next_call = self.next_call.checked_add(1).unwrap_or(1);
        id
    }

    fn call(&mut self, call: Call) {
        let key = call.generation.0.key;
        if call.cancel.is_cancelled() {
            let _ = call.reply.send((call.tag, Err(CallError::Cancelled)));
            return;
        }
        match self.isolates.get_mut(&key) {
            None if call.generation.0.closed.load(Ordering::SeqCst) => {
                // Closed between its being sent and now: nobody would close an isolate made for it.
                let _ =
                    call.reply.send((call.tag, Err(CallError::Load { message: "the generation is closed".into() })));
            }
            None => {
                // The isolate was replaced, or its worker was, or the generation settled on another worker.
                let blueprint = call.generation.0.blueprint();
                if blueprint.spec.entry.is_some() {
                    self.load(blueprint, Waiting::Nobody, vec![call]);
                    return;
                }
                self.load(blueprint, Waiting::Nobody, Vec::new());
                if self.isolates.contains_key(&key) {
                    self.start_call(key, call);
                } else {
                    let _ = call
                        .reply
                        .send((call.tag, Err(CallError::Load { message: "the isolate cannot be made".into() })));
                }
            }
            Some(Slot { phase: Phase::Starting(calls), .. }) => calls.push(call),
            Some(Slot { phase: Phase::Closing, .. }) => {
                let _ =
                    call.reply.send((call.tag, Err(CallError::Load { message: "the generation is closed".into() })));
            }
            Some(Slot { phase: Phase::Ready, .. }) => self.start_call(key, call),
        }
    }

    fn start_call(&mut self, key: u64, call: Call) {
        let id = self.call_id();
        let Call { generation, target, context, host, limits, cancel, tag, reply } = call;
        let running = Running {
            host: Some(host),
            context,
            max_output_bytes: limits.max_output_bytes,
            deadline: Instant::now() + limits.timeout,
            limit: limits.timeout,
            cancel,
            over: false,
            load_failed: None,
            log_lines: 0,
            tasks: Vec::new(),
            pending_requests: 0,
            watched: false,
            documents: Vec::new(),
        };
        let (kind, name) = match &target {
            CallTarget::Handler { module } => ("handler", module),
            CallTarget::Guard { module } => ("guard", module),
            CallTarget::Tool { name } => ("tool", name),
            CallTarget::Rpc { action } => ("rpc", action),
            CallTarget::Service { name } => ("service", name),
            CallTarget::Hook { index } => ("hook", &index.to_string()),
            CallTarget::Extension { point, id } => ("extension", &format!("{point}\0{id}")),
            CallTarget::Form { name } => ("form", name),
        };
        self.launch(key, id, kind, name, running, Waiting::Call { tag, reply, limit: limits.timeout });
        drop(generation);
    }

    fn launch(&mut self, key: u64, id: u32, kind: &str, name: &str, running: Running, waiting: Waiting) {
        self.shared.waiting.lock().insert(id, waiting);
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        slot.isolate.state.calls.borrow_mut().insert(id, running);
        self.shared.running.store(u64::from(id), Ordering::Relaxed);
        let trip = slot.isolate.start(id, kind, name);
        self.after(key, id, trip);
        self.park(key, id);
    }

    /// A call that has not ended waits for the host or a timer: its deadline and its cancellation must end the wait.
    fn park(&mut self, key: u64, call: u32) {
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        let state = &slot.isolate.state;
        let mut calls = state.calls.borrow_mut();
        let Some(running) = calls.get_mut(&call) else {
            return;
        };
        self.alarms.push(Reverse((running.deadline, key, state.epoch, Alarm::Deadline(call))));
        let (cancel, queue, epoch) = (running.cancel.clone(), Arc::clone(&self.queue), state.epoch);
        let task = self.handle.spawn(async move {
            cancel.cancelled().await;
            queue.push(Message::Cancel { key, epoch, call });
        });
        running.tasks.push(task.abort_handle());
    }

    /// Fires what is due.
    fn ring(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, key, epoch, alarm))) = self.alarms.peek().copied() {
            if at > now || self.queue.stopped() {
                return;
            }
            self.alarms.pop();
            let Some(slot) = self.live(key, epoch) else {
                continue;
            };
            match alarm {
                Alarm::Timer(timer) => {
                    if let Some((call, trip)) = slot.isolate.fire(timer, BACKGROUND_TURN_LIMIT) {
                        self.after(key, call, trip);
                    }
                }
                Alarm::Deadline(call) => {
                    if slot.isolate.state.calls.borrow().contains_key(&call) {
                        self.interrupt(key, call, Trip::Timeout);
                    }
                }
            }
        }
    }

    /// Ends a call that has not answered.
    fn interrupt(&mut self, key: u64, call: u32, trip: Trip) {
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        let Some(limit) = slot.isolate.state.calls.borrow().get(&call).map(|r| r.limit) else {
            return;
        };
        let error = match trip {
            Trip::Timeout | Trip::Abandoned => CallError::Timeout { limit_ms: millis(limit) },
            Trip::Cancelled => CallError::Cancelled,
        };
        self.end(key, call, Err(error));
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        let (name, message) = match trip {
            Trip::Timeout | Trip::Abandoned => ("TimeoutError", "the call took too long"),
            Trip::Cancelled => ("AbortError", "the call was cancelled"),
        };
        let trip = slot.isolate.abort(call, name, message, BACKGROUND_TURN_LIMIT);
        self.after(key, 0, trip);
    }

    /// After every turn: answers what ended, keeps new timers, replaces an isolate that cannot go on.
    fn after(&mut self, key: u64, call: u32, trip: Option<Trip>) {
        self.shared.running.store(0, Ordering::Relaxed);
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        let state = Rc::clone(&slot.isolate.state);
        let epoch = state.epoch;
        for (timer, at) in state.new_timers.borrow_mut().drain(..) {
            self.alarms.push(Reverse((at, key, epoch, Alarm::Timer(timer))));
        }
        let finished: Vec<_> = state.finished.borrow_mut().drain(..).collect();
        if !finished.is_empty() && trip.is_none() {
            state.strikes.set(0);
        }
        for (id, result) in finished {
            self.end(key, id, result);
        }
        if let Some(trip) = trip
            && state.calls.borrow().contains_key(&call)
        {
            if trip == Trip::Timeout {
                state.strikes.set(state.strikes.get() + 1);
            }
            self.interrupt(key, call, trip);
        } else if trip == Some(Trip::Timeout) {
            state.strikes.set(state.strikes.get() + 1);
        }
        if state.poisoned.get() || state.strikes.get() >= MAX_STRIKES {
            self.replace(key, epoch, call);
        }
    }

    /// A call has its result.
    fn end(&mut self, key: u64, id: u32, result: Result<Json, CallError>) {
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        if slot.isolate.forget(id).is_none() {
            return;
        }
        let Some(waiting) = self.shared.waiting.lock().remove(&id) else {
            return;
        };
        match waiting {
            Waiting::Call { .. } => answer(waiting, result),
            Waiting::Close(_) => {
                answer(waiting, result);
                self.isolates.remove(&key);
            }
            Waiting::Load(_) | Waiting::Nobody => self.entered(key, waiting, result),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
