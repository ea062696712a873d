//! One QuickJS runtime with one context: the private world of one generation.
//!
//! Everything here runs on one worker thread. There is no async machinery: an event enters the isolate, the job queue is
//! emptied, and the worker goes on. That is what makes each turn chargeable to one call.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use covel_graph::Json;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime, context::intrinsic};
use tokio::{runtime::Handle, task::AbortHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    bindings,
    call::{CallContext, CallError},
    document::Document,
    engine::{
        bytecode,
        heap::{Gauge, Limited},
    },
    fence::{Fence, Trip},
    generation::{Blueprint, Registrations},
    host::{CallHost, Settlement},
    limits::{DRAIN_AFTER_INTERRUPT, FIRST_COLLECTION_BYTES},
    modules::{PackageLoader, PackageResolver},
    queue::{Pulse, Queue},
};

/// Limits of an isolate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) heap: usize,
    pub(crate) stack: usize,
    pub(crate) entry: Duration,
    pub(crate) cleanup: Duration,
}

/// What a running call is.
pub(crate) struct Running {
    /// `None` for the entry and for disposing.
    pub(crate) host: Option<Arc<dyn CallHost>>,
    pub(crate) context: CallContext,
    pub(crate) max_output_bytes: usize,
    pub(crate) deadline: Instant,
    pub(crate) limit: Duration,
    pub(crate) cancel: CancellationToken,
    /// The handler answered or threw; what is left of it may not use the context any more. SVC-7
    pub(crate) over: bool,
    pub(crate) load_failed: Option<String>,
    pub(crate) log_lines: u32,
    pub(crate) tasks: Vec<AbortHandle>,
    pub(crate) pending_requests: usize,
    pub(crate) watched: bool,
    /// Large documents the call has begun to read.
    pub(crate) documents: Vec<Rc<Document>>,
}

pub(crate) struct Operation {
    pub(crate) call: u32,
    pub(crate) resolve: Persistent<Function<'static>>,
    pub(crate) reject: Persistent<Function<'static>>,
    pub(crate) settlement: Settlement,
    pub(crate) task: AbortHandle,
}

pub(crate) struct Timer {
    pub(crate) call: u32,
    pub(crate) every: Option<Duration>,
}

/// What host functions share with the worker.
pub(crate) struct State {
    pub(crate) key: u64,
    pub(crate) epoch: u64,
    pub(crate) blueprint: Blueprint,
    pub(crate) queue: Arc<Queue>,
    pub(crate) handle: Handle,
    pub(crate) heap: Rc<Gauge>,
    pub(crate) calls: RefCell<HashMap<u32, Running>>,
    /// The call the present turn is charged to; 0 when none.
    pub(crate) current: Cell<u32>,
    pub(crate) finished: RefCell<Vec<(u32, Result<Json, CallError>)>>,
    pub(crate) operations: RefCell<HashMap<u32, Operation>>,
    pub(crate) next_operation: Cell<u32>,
    pub(crate) timers: RefCell<HashMap<u32, Timer>>,
    pub(crate) next_timer: Cell<u32>,
    /// Timers set in this turn: id and due time. The worker takes them into its clock.
    pub(crate) new_timers: RefCell<Vec<(u32, Instant)>>,
    /// The kernel's function that defines a member to be converted when it is read.
    pub(crate) lazy_member: RefCell<Option<Persistent<Function<'static>>>>,
    pub(crate) registrations: RefCell<Registrations>,
    pub(crate) registration_error: RefCell<Option<String>>,
    /// The heap is full or code cannot be stopped: the isolate must be replaced.
    pub(crate) poisoned: Cell<bool>,
    /// Rejected promises nobody handles yet in this turn, by identity.
    /// The promise is kept, so that no other gets its identity meanwhile.
    pub(crate) rejections: RefCell<Vec<(u64, String, Persistent<rquickjs::Value<'static>>)>>,
    /// Interrupted turns since the last call that ended by itself.
    pub(crate) strikes: Cell<u32>,
    pub(crate) fence: Fence,
}

struct Api {
    start: Persistent<Function<'static>>,
    fire: Persistent<Function<'static>>,
    abort: Persistent<Function<'static>>,
}

pub(crate) struct Isolate {
    pub(crate) state: Rc<State>,
    api: Option<Api>,
    context: Option<Context>,
    runtime: Option<Runtime>,
}

/// Everything but `Eval`: plugin code cannot turn strings into code.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
    intrinsic::DOMException,
);

pub(crate) struct IsolateParts {
    pub(crate) blueprint: Blueprint,
    pub(crate) epoch: u64,
    pub(crate) queue: Arc<Queue>,
    pub(crate) handle: Handle,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) sizes: Sizes,
}

impl Isolate {
    pub(crate) fn new(parts: IsolateParts) -> Result<Self, String> {
        let heap = parts.blueprint.spec.heap_limit_bytes.unwrap_or(parts.sizes.heap);
        let state = Rc::new(State {
            key: parts.blueprint.key,
            epoch: parts.epoch,
            blueprint: parts.blueprint,
            queue: parts.queue,
            handle: parts.handle,
            heap: Gauge::new(heap),
            calls: RefCell::default(),
            current: Cell::new(0),
            finished: RefCell::default(),
            operations: RefCell::default(),
            next_operation: Cell::new(1),
            timers: RefCell::default(),
            next_timer: Cell::new(1),
            new_timers: RefCell::default(),
            lazy_member: RefCell::default(),
            registrations: RefCell::default(),
            registration_error: RefCell::default(),
            poisoned: Cell::new(false),
            rejections: RefCell::default(),
            strikes: Cell::new(0),
            fence: Fence::new(parts.pulse),
        });
        let internal = |error: rquickjs::Error| format!("an isolate cannot be made: {error}");
        let runtime = Runtime::new_with_alloc(Limited(Rc::clone(&state.heap))).map_err(internal)?;
        runtime.set_max_stack_size(parts.sizes.stack);
        runtime.set_gc_threshold(FIRST_COLLECTION_BYTES.min(heap / 4));
        let watched = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.fence.check())));
        let rejected = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            bindings::track_rejection(&ctx, &rejected, promise, &reason, handled);
        })));
        runtime.set_loader(PackageResolver(state.blueprint.clone()), PackageLoader(state.blueprint.clone()));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(internal)?;
        let api = context.with(|ctx| {
            boot(&ctx, &state).map_err(|error| format!("the kernel does not start: {}", explain(&ctx, &error)))
        });
        // Made before a failure is passed on, so that its parts are dropped in the right order.
        let mut isolate = Self { state, api: None, context: Some(context), runtime: Some(runtime) };
        isolate.api = Some(api?);
        Ok(isolate)
    }

    /// Bytes of the engine's heap in use.
    pub(crate) fn heap_used(&self) -> u64 {
        u64::try_from(self.state.heap.used()).unwrap_or(u64::MAX)
    }

    /// One turn: `enter` runs, then every job it made. Afterwards `finished` and `new_timers` hold what happened.
    fn turn(
        &self,
        call: u32,
        deadline: Instant,
        cancel: Option<CancellationToken>,
        enter: impl for<'js> FnOnce(&Ctx<'js>, &Api) -> rquickjs::Result<()>,
    ) -> Option<Trip> {
        let (Some(context), Some(api)) = (&self.context, &self.api) else {
            return None;
        };
        let state = &self.state;
        state.current.set(call);
        state.heap.forget_refusal();
        state.fence.enter(deadline, cancel);
        context.with(|ctx| {
            if enter(&ctx, api).is_err() {
                self.note_exception(&ctx);
            }
            let mut stop_at: Option<Instant> = None;
            let mut jobs = 0_u32;
            while ctx.execute_pending_job() {
                jobs = jobs.wrapping_add(1);
                // A chain of short jobs may never be asked by the interrupt handler.
                if jobs.is_multiple_of(64) {
                    state.fence.check();
                }
                if state.fence.tripped().is_some() {
                    let now = Instant::now();
                    if now > *stop_at.get_or_insert(now + DRAIN_AFTER_INTERRUPT) {
                        state.poisoned.set(true);
                        break;
                    }
                }
            }
        });
        bindings::report_rejections(state, call);
        state.current.set(0);
        state.fence.leave()
    }

    fn note_exception(&self, ctx: &Ctx<'_>) {
        let thrown = ctx.catch();
        if thrown.is_uncatchable_error() {
            return;
        }
        // The kernel's own functions catch what plugin code throws, so this is the heap limit or a bug of ours.
        if self.state.heap.refused() {
            self.state.poisoned.set(true);
        } else {
            tracing::error!(plugin = %self.state.blueprint.spec.plugin_id, error = ?thrown, "the kernel threw");
        }
    }

    /// Starts a call that is already in `calls`.
    pub(crate) fn start(&self, call: u32, kind: &str, name: &str) -> Option<Trip> {
        let (deadline, cancel, names, inputs, flags) = {
            let calls = self.state.calls.borrow();
            let running = calls.get(&call)?;
            let context = &running.context;
            let names: Vec<&'static str> = context.fields.iter().map(|(name, _)| *name).collect();
            let inputs: Vec<String> = context.inputs.iter().map(|(name, _)| name.clone()).collect();
            let flags = u32::from(context.writable)
                | (u32::from(context.effects) << 1)
                | (u32::from(context.services) << 2)
                | (u32::from(context.view) << 3)
                | (u32::from(context.gateway) << 4);
            (running.deadline, running.cancel.clone(), names, inputs, flags)
        };
        self.turn(call, deadline, Some(cancel), |ctx, api| {
            let start = api.start.clone().restore(ctx)?;
            start.call::<_, rquickjs::Value<'_>>((call, kind, name, names, inputs, flags)).map(drop)
        })
    }

    /// Settles a host operation's promise.
    pub(crate) fn settle_operation(
        &self,
        operation: u32,
        result: Result<Json, crate::HostError>,
    ) -> Option<(u32, Option<Trip>)> {
        let Operation { call, resolve, reject, .. } = self.state.operations.borrow_mut().remove(&operation)?;
        let (deadline, cancel) = {
            let mut calls = self.state.calls.borrow_mut();
            let running = calls.get_mut(&call)?;
            running.pending_requests = running.pending_requests.saturating_sub(1);
            (running.deadline, running.cancel.clone())
        };
        let trip = self.turn(call, deadline, Some(cancel), |ctx, _| match result {
            Ok(json) => {
                let value = crate::to_js::to_js(ctx, &json)?;
                resolve.restore(ctx)?.call::<_, rquickjs::Value<'_>>((value,)).map(drop)
            }
            Err(error) => {
                let error = bindings::host_error(ctx, &error)?;
                reject.restore(ctx)?.call::<_, rquickjs::Value<'_>>((error,)).map(drop)
            }
        });
        Some((call, trip))
    }

    /// Runs a timer's callback. `background` bounds timers that belong to no running call.
    pub(crate) fn fire(&self, timer: u32, background: Duration) -> Option<(u32, Option<Trip>)> {
        let call = {
            let mut timers = self.state.timers.borrow_mut();
            let found = timers.get(&timer)?;
            let (call, every) = (found.call, found.every);
            match every {
                Some(every) => self.state.new_timers.borrow_mut().push((timer, Instant::now() + every)),
                None => {
                    timers.remove(&timer);
                }
            }
            call
        };
        let (deadline, cancel) = match self.state.calls.borrow().get(&call) {
            Some(running) => (running.deadline, Some(running.cancel.clone())),
            None => (Instant::now() + background, None),
        };
        let trip = self.turn(call, deadline, cancel, |ctx, api| {
            api.fire.clone().restore(ctx)?.call::<_, rquickjs::Value<'_>>((timer,)).map(drop)
        });
        if call == 0 && trip.is_some() {
            self.state.timers.borrow_mut().remove(&timer);
        }
        Some((call, trip))
    }

    /// Aborts the call's signal, when plugin code has taken it.
    pub(crate) fn abort(&self, call: u32, name: &str, message: &str, limit: Duration) -> Option<Trip> {
        self.turn(call, Instant::now() + limit, None, |ctx, api| {
            api.abort.clone().restore(ctx)?.call::<_, rquickjs::Value<'_>>((call, name, message)).map(drop)
        })
    }

    /// Forgets what belongs to a call that is over.
    pub(crate) fn forget(&self, call: u32) -> Option<Running> {
        let running = self.state.calls.borrow_mut().remove(&call)?;
        for task in &running.tasks {
            task.abort();
        }
        let mut timers = self.state.timers.borrow_mut();
        if running.host.is_some() {
            timers.retain(|_, timer| timer.call != call);
        } else {
            // What an entry starts goes on until its generation is closed.
            timers.values_mut().filter(|timer| timer.call == call).for_each(|timer| timer.call = 0);
        }
        drop(timers);
        let mut operations = self.state.operations.borrow_mut();
        operations.retain(|_, operation| operation.call != call);
        Some(running)
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        // The engine aborts the process when a value outlives its runtime: values first, then the context, then the runtime.
        for (_, running) in self.state.calls.borrow_mut().drain() {
            for task in running.tasks {
                task.abort();
            }
        }
        self.state.operations.borrow_mut().clear();
        self.state.lazy_member.take();
        self.state.rejections.take();
        self.api = None;
        self.context = None;
        self.runtime = None;
    }
}

fn boot<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> rquickjs::Result<Api> {
    let image = bytecode::host_module("covel:kernel").map_err(|error| crate::modules::refuse(ctx, &error.0))?;
    let (module, evaluated) = bytecode::declare(ctx, &image)?.eval()?;
    evaluated.finish::<()>()?;
    let boot: Function<'js> = module.get("default")?;
    let host = bindings::install(ctx, state)?;
    let api: Object<'js> = boot.call((host, state.blueprint.spec.plugin_id.as_str()))?;
    let save = |name: &str| -> rquickjs::Result<Persistent<Function<'static>>> {
        Ok(Persistent::save(ctx, api.get::<_, Function<'js>>(name)?))
    };
    state.lazy_member.replace(Some(save("lazyMember")?));
    Ok(Api { start: save("start")?, fire: save("fire")?, abort: save("abort")? })
}

fn explain(ctx: &Ctx<'_>, error: &rquickjs::Error) -> String {
    if error.is_exception() {
        let thrown = ctx.catch();
        if let Some(exception) = thrown.as_exception() {
            return format!("{} {}", exception.message().unwrap_or_default(), exception.stack().unwrap_or_default());
        }
        return format!("{thrown:?}");
    }
    error.to_string()
}
