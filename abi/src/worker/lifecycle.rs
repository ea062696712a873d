//! How isolates begin and end: entries, disposers, replacement. LIF-2, LIF-3

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use covel_graph::Json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Phase, Slot, Worker,
    waiting::{Waiting, answer, load_error},
};
use crate::{
    call::{Call, CallContext, CallError},
    error::LoadError,
    fence::Trip,
    generation::{Blueprint, CloseReport},
    isolate::{Isolate, IsolateParts, Running},
    limits::MAX_HOST_ARGUMENT_BYTES,
};

impl Worker {
    /// Makes the isolate of a generation and runs its entry.
    pub(super) fn load(&mut self, blueprint: Blueprint, waiting: Waiting, calls: Vec<Call>) {
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let key = blueprint.key;
        let isolate = Isolate::new(IsolateParts {
            blueprint: blueprint.clone(),
            epoch,
            queue: Arc::clone(&self.queue),
            handle: self.handle.clone(),
            pulse: Arc::clone(&self.shared.pulse),
            sizes: self.sizes,
        });
        let isolate = match isolate {
            Ok(isolate) => isolate,
            Err(message) => {
                for call in calls {
                    let _ = call.reply.send((call.tag, Err(CallError::Load { message: message.clone() })));
                }
                if let Waiting::Load(reply) = waiting {
                    let _ = reply.send(Err(LoadError::Internal { message }));
                }
                return;
            }
        };
        let entry = blueprint.spec.entry.clone();
        let phase = if entry.is_some() { Phase::Starting(calls) } else { Phase::Ready };
        self.isolates.insert(key, Slot { isolate, phase });
        match entry {
            Some(entry) => self.begin(key, "entry", &entry, self.sizes.entry, waiting),
            None => {
                let complete =
                    blueprint.registered.get_or_init(Default::default).check_complete(&blueprint.spec.declared);
                if complete.is_err() {
                    self.isolates.remove(&key);
                }
                if let Waiting::Load(reply) = waiting {
                    let _ = reply.send(complete);
                }
            }
        }
    }

    /// Starts the entry or the disposers.
    pub(super) fn begin(&mut self, key: u64, kind: &str, name: &str, limit: Duration, waiting: Waiting) {
        let id = self.call_id();
        let running = Running {
            host: None,
            context: CallContext::default(),
            max_output_bytes: MAX_HOST_ARGUMENT_BYTES,
            deadline: Instant::now() + limit,
            limit,
            cancel: CancellationToken::new(),
            over: false,
            load_failed: None,
            log_lines: 0,
            tasks: Vec::new(),
            pending_requests: 0,
            watched: false,
            documents: Vec::new(),
        };
        self.launch(key, id, kind, name, running, waiting);
    }

    /// Drops an isolate; the next call makes a new one.
    pub(super) fn replace(&mut self, key: u64, epoch: u64, culprit: u32) {
        if self.live(key, epoch).is_none() {
            return;
        }
        let Some(slot) = self.isolates.remove(&key) else {
            return;
        };
        let state = Rc::clone(&slot.isolate.state);
        tracing::warn!(plugin = %state.blueprint.spec.plugin_id, "an isolate is replaced");
        let ids: Vec<u32> = state.calls.borrow().keys().copied().collect();
        let heap = state.heap.limit();
        drop(slot.isolate);
        for id in ids {
            let waiting = self.shared.waiting.lock().remove(&id);
            let error = if id == culprit { CallError::HeapLimit { limit_bytes: heap } } else { CallError::IsolateLost };
            if let Some(waiting) = waiting {
                answer(waiting, Err(error));
            }
        }
        if let Phase::Starting(calls) = slot.phase {
            for call in calls {
                let _ = call.reply.send((call.tag, Err(CallError::IsolateLost)));
            }
        }
    }

    /// The entry has ended, well or badly.
    pub(super) fn entered(&mut self, key: u64, waiting: Waiting, result: Result<Json, CallError>) {
        let Some(slot) = self.isolates.get_mut(&key) else {
            return;
        };
        let state = &slot.isolate.state;
        let refused = state.registration_error.borrow_mut().take();
        let outcome = match (refused, result) {
            (Some(message), _) => Err(LoadError::Registration { message }),
            (None, Err(error)) => Err(load_error(error)),
            (None, Ok(_)) => {
                let mut registered = state.registrations.take();
                registered.sort();
                let complete = registered.check_complete(&state.blueprint.spec.declared);
                if complete.is_ok() {
                    // A replacement registers the same again: the same code made it.
                    let _ = state.blueprint.registered.set(registered);
                }
                complete
            }
        };
        let calls = match std::mem::replace(&mut slot.phase, Phase::Ready) {
            Phase::Starting(calls) => calls,
            _ => Vec::new(),
        };
        match outcome {
            Ok(()) => {
                if let Waiting::Load(reply) = waiting {
                    let _ = reply.send(Ok(()));
                }
                for call in calls {
                    self.call(call);
                }
            }
            Err(error) => {
                for call in calls {
                    let _ = call.reply.send((call.tag, Err(CallError::Load { message: error.to_string() })));
                }
                if let Waiting::Load(reply) = waiting {
                    let _ = reply.send(Err(error));
                }
                // What the entry acquired is released; nobody waits for it. LIF-3, LIF-4
                self.close(key, None);
            }
        }
    }

    pub(super) fn close(&mut self, key: u64, reply: Option<oneshot::Sender<CloseReport>>) {
        let report = |reply: Option<oneshot::Sender<CloseReport>>| {
            if let Some(reply) = reply {
                let _ = reply.send(CloseReport::default());
            }
        };
        let Some(slot) = self.isolates.get_mut(&key) else {
            return report(reply);
        };
        if matches!(slot.phase, Phase::Closing) {
            return report(reply);
        }
        if let Phase::Starting(calls) = std::mem::replace(&mut slot.phase, Phase::Closing) {
            for call in calls {
                let _ = call.reply.send((call.tag, Err(CallError::Cancelled)));
            }
        }
        let running: Vec<u32> = slot.isolate.state.calls.borrow().keys().copied().collect();
        let has_entry = slot.isolate.state.blueprint.spec.entry.is_some();
        for call in running {
            self.interrupt(key, call, Trip::Cancelled);
        }
        if has_entry && self.isolates.contains_key(&key) {
            self.begin(key, "dispose", "", self.sizes.cleanup, Waiting::Close(reply));
        } else {
            self.isolates.remove(&key);
            report(reply);
        }
    }
}
