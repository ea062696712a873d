//! Drives one execution: carries out what the turn core asks for and feeds back what happened.
//!
//! Plugin calls of a layer go to the isolates as one batch, native runtimes run inline (heavy ones on the rayon
//! pool), agents run as futures. Writes of a layer become visible when the core has moved on to the next one, in
//! plan order, whatever finished first (invariant 3).

use std::{cell::OnceCell, sync::Arc, time::Duration};

use covel_abi::{Call, CallContext, CallError, CallHost, CallLimits, CallOutput, CallRequest, CallTarget, JsHost};
use covel_graph::{
    Json, RuntimeIx, Stage,
    fragment::{RuntimeKind, Visibility},
    plan::NONE,
};
use covel_model::SharedGateway;
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    active::{LoadedPackage, check},
    agent::{self, AgentRun},
    call_host::{Buffered, RuntimeCall, Shared, world_key},
    core::{Action, ChainLimit, Ended, PhaseKind, TurnCore},
    document::{ErrorInfo, RuntimeStatus},
    event::Emitter,
    given::{AgentResume, Resume},
    inputs::{self, Binding},
    jobs::JobSeed,
    limits::{MAX_CALL_REPEATS, MAX_DATA_DEPTH, MAX_EVENT_DEPTH, MAX_EVENTS_PER_TURN, MAX_OUTPUT_BYTES},
    native::{NativeContext, NativeOutput, NativeRuntime, native_result},
    ops,
    overlay::{DataKey, DataOp, DataWrite, Overlay},
    requests,
    results::{EmittedEvent, RuntimeResult, from_guard, from_handler, from_proposals, to_proposal},
    services::serve_guard,
    suspend::{Continuation, keep_events, kept_events},
    tools::base_fields,
    walked::{Slot, Staged, Walked},
    world,
    write::{Proposal, Write},
};

/// Wall-clock limit of a handler or guard whose manifest sets none, milliseconds.
const DEFAULT_FUNCTION_TIMEOUT_MS: u64 = 30_000;

/// Light native runtimes timed together.
const LIGHT_GROUP: usize = 8;

/// What the driver needs besides the frozen state.
pub struct Services {
    /// Isolates.
    pub js: JsHost,
    /// Models.
    pub gateway: SharedGateway,
    /// Where events go.
    pub emitter: Emitter,
}

/// A runtime ready to start.
struct Prepared {
    runtime: RuntimeIx,
    call: Arc<RuntimeCall>,
    inputs: Vec<(String, Json)>,
    trigger: Option<(String, Json)>,
}

struct Driver<'a> {
    services: &'a Services,
    walked: Walked,
    overlay: Overlay,
    /// Ended runtimes of the current layer, not yet in the overlay.
    unmerged: Vec<RuntimeIx>,
    /// Hosts of started runtimes the driver waits for.
    pending: Vec<Option<Arc<RuntimeCall>>>,
    payload: Json,
    start: Duration,
    agents: FuturesUnordered<BoxFuture<'static, (RuntimeIx, RuntimeResult)>>,
    /// Made when the first plugin call leaves.
    answers: Option<Answers>,
    new_receiver: Option<mpsc::UnboundedReceiver<Answer>>,
}

/// An answer of an isolate.
type Answer = (u32, Result<CallOutput, CallError>);
/// Where isolates answer.
type Answers = mpsc::UnboundedSender<Answer>;

/// Walks a turn to its end. `payload` is the activation payload of a manual execution.
pub async fn walk(shared: Arc<Shared>, core: TurnCore, services: &Services, payload: Json) -> Walked {
    let count = shared.plan.plan.runtimes.len();
    let start = shared.ambient.monotonic();
    let mut driver = Driver {
        services,
        walked: Walked {
            core,
            slots: (0..count).map(|_| Slot::default()).collect(),
            order: Vec::with_capacity(count),
            notes: Vec::new(),
            staged: Vec::new(),
            shared: Arc::clone(&shared),
        },
        overlay: Overlay::default(),
        unmerged: Vec::new(),
        pending: (0..count).map(|_| None).collect(),
        payload,
        start,
        agents: FuturesUnordered::new(),
        answers: None,
        new_receiver: None,
    };
    for (runtime, result) in &shared.given.seeds {
        driver.walked.slots[runtime.index()].set(result.clone());
    }
    // Dropping this future half-way ends what it started; plugin code must not run on for a turn nobody drives.
    let abandoned = shared.cancel.clone().drop_guard();
    let mut receiver: Option<mpsc::UnboundedReceiver<Answer>> = None;
    let mut actions = Vec::new();
    if shared.cancel.is_cancelled() {
        driver.walked.core.cancel();
    } else {
        driver.walked.core.start(&mut actions);
    }
    driver.perform(actions);
    while !driver.walked.core.is_done() {
        let mut actions = Vec::new();
        if let Some(made) = driver.new_receiver.take() {
            receiver = Some(made);
        }
        tokio::select! {
            biased;
            Some((tag, answer)) = next_answer(&mut receiver) => driver.answered(RuntimeIx(tag), answer, &mut actions),
            Some((runtime, result)) = driver.agents.next(), if !driver.agents.is_empty() => {
                driver.finish(runtime, result, &mut actions);
            }
            () = shared.cancel.cancelled(), if !driver.walked.core.is_cancelled() => driver.walked.core.cancel(),
        }
        driver.perform(actions);
    }
    abandoned.disarm();
    driver.finish_walk()
}

/// The next answer; waits for ever when no plugin call has left.
async fn next_answer(receiver: &mut Option<mpsc::UnboundedReceiver<Answer>>) -> Option<Answer> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

impl Driver<'_> {
    fn answers(&mut self) -> Answers {
        let new_receiver = &mut self.new_receiver;
        self.answers
            .get_or_insert_with(|| {
                let (sender, receiver) = mpsc::unbounded_channel();
                *new_receiver = Some(receiver);
                sender
            })
            .clone()
    }

    fn finish_walk(mut self) -> Walked {
        match self.walked.core.chain_limit() {
            Some(ChainLimit::Depth) => self.walked.notes.push(ErrorInfo::new(
                "event-depth-exceeded",
                format!("the event chain was stopped at depth {MAX_EVENT_DEPTH}"),
            )),
            Some(ChainLimit::Count) => self.walked.notes.push(ErrorInfo::new(
                "event-count-exceeded",
                format!("the event chain was stopped after {MAX_EVENTS_PER_TURN} events"),
            )),
            None => {}
        }
        self.walked
    }

    /// Carries out actions until everything asked for is running or done.
    fn perform(&mut self, first: Vec<Action>) {
        let mut wave = first;
        while !wave.is_empty() {
            if self.walked.shared.cancel.is_cancelled() {
                wave = self.call_off(wave);
                continue;
            }
            self.merge();
            let mut prepared = Vec::with_capacity(wave.len());
            let mut next = Vec::new();
            let mut unstartable = Vec::new();
            let mut light = Vec::new();
            let of_job = self.walked.shared.job.is_some();
            for action in wave.drain(..) {
                match action {
                    Action::Skip { runtime, reason } => self.skip(runtime, reason.as_str()),
                    Action::Start { runtime, event } => {
                        self.walked.order.push(runtime);
                        if self.walked.shared.plan.light[runtime.index()].is_some() && !of_job {
                            light.push((runtime, event));
                            continue;
                        }
                        match self.prepare(runtime, event) {
                            Ok(ready) if self.is_detached(runtime) => {
                                unstartable.push((runtime, Box::new(self.set_aside(ready))));
                            }
                            Ok(ready) => prepared.push(ready),
                            Err(result) => unstartable.push((runtime, result)),
                        }
                    }
                }
            }
            let mut batch = Vec::new();
            let mut inline = Vec::new();
            for ready in prepared {
                self.launch(ready, &mut batch, &mut inline);
            }
            if !batch.is_empty() {
                self.services.js.submit(batch);
            }
            // Everything of the layer is prepared on its own view; only now may something of it end.
            for (runtime, result) in unstartable {
                self.walked.slots[runtime.index()].held_back = true;
                self.finish(runtime, *result, &mut next);
            }
            for (ready, handler) in inline {
                let result = run_native(&ready, &*handler);
                self.ended(&ready.call, ready.runtime, result, &mut next);
            }
            self.run_light(&light, &mut next);
            wave = next;
        }
    }

    /// Does this stage runtime run as a job after the turn?
    fn is_detached(&self, runtime: RuntimeIx) -> bool {
        self.walked.shared.plan.detached.contains(runtime.index())
            && matches!(self.walked.core.phase_kind(self.walked.core.place(runtime)), Some(PhaseKind::Stage(_)))
    }

    /// Keeps what a detached runtime was bound to; nothing of it runs in this execution.
    fn set_aside(&mut self, ready: Prepared) -> RuntimeResult {
        let Buffered { producers, data_reads, .. } = ready.call.close();
        let slot = &mut self.walked.slots[ready.runtime.index()];
        slot.producers = producers;
        slot.data_reads = data_reads;
        self.walked.staged.push(Staged { runtime: ready.runtime, inputs: ready.inputs });
        RuntimeResult::skipped("deferred")
    }

    /// The job that this runtime is the purpose of.
    fn job_of(&self, runtime: RuntimeIx) -> Option<&JobSeed> {
        self.walked.shared.job.as_deref().filter(|job| job.runtime == runtime)
    }

    /// The turn was cancelled between two layers: what was to start fails without having run.
    fn call_off(&mut self, wave: Vec<Action>) -> Vec<Action> {
        self.walked.core.cancel();
        let mut next = Vec::new();
        for action in wave {
            match action {
                Action::Skip { runtime, reason } => self.skip(runtime, reason.as_str()),
                Action::Start { runtime, .. } => {
                    self.walked.order.push(runtime);
                    self.finish(runtime, RuntimeResult::failed("cancelled", "the turn was cancelled"), &mut next);
                }
            }
        }
        next
    }

    /// Runs light native runtimes one after another. They are timed in groups: reading a clock costs more than most
    /// of them do.
    fn run_light(&mut self, light: &[(RuntimeIx, u32)], next: &mut Vec<Action>) {
        if light.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.walked.shared);
        let view = self.overlay.clone();
        let live = self.services.emitter.is_live();
        let mut started = self.now();
        for group in light.chunks(LIGHT_GROUP) {
            for &(runtime, event) in group {
                if live {
                    let (stage, layer, depth) = self.walked.place(runtime);
                    self.services.emitter.started(runtime, stage, layer, depth);
                }
                self.walked.slots[runtime.index()].started = started;
                self.run_one_light(&shared, &view, runtime, event, next);
            }
            let now = self.now();
            let each = now.saturating_sub(started) / u32::try_from(group.len()).unwrap_or(1);
            for (runtime, _) in group {
                self.walked.slots[runtime.index()].took = each;
            }
            started = now;
        }
    }

    fn run_one_light(
        &mut self,
        shared: &Arc<Shared>,
        view: &Overlay,
        runtime: RuntimeIx,
        event: u32,
        next: &mut Vec<Action>,
    ) {
        let Some(handler) = &shared.plan.light[runtime.index()] else { return };
        let trigger = self.trigger(event);
        let context = NativeContext {
            shared,
            runtime,
            view,
            host: OnceCell::new(),
            inputs: &[],
            trigger: trigger.as_ref().map(|(trigger, _)| trigger),
            services: OnceCell::new(),
        };
        let outcome = guarded(&**handler, &context);
        let NativeContext { host, services, .. } = context;
        // It holds the host.
        drop(services);
        let host = host.into_inner();
        if let (Ok(output), None, None, false) = (&outcome, &host, &trigger, self.services.emitter.is_live())
            && output.is_nothing()
        {
            self.walked.slots[runtime.index()].set_nothing();
            self.walked.core.finished(runtime, Ended::Success, Vec::new(), next);
            return;
        }
        let call = host.unwrap_or_else(|| Arc::new(RuntimeCall::new(Arc::clone(shared), runtime, view.clone())));
        if let Some((_, emitter)) = trigger {
            call.note_read(emitter);
        }
        self.ended(&call, runtime, native_outcome(outcome), next);
    }

    /// The event that triggered a follower, and who emitted it.
    fn trigger(&self, event: u32) -> Option<((String, Json), RuntimeIx)> {
        if event == NONE {
            return None;
        }
        let event = self.walked.core.events()[event as usize];
        let result = self.walked.slots[event.emitter.index()].result()?;
        let emitted = result.events.get(event.local as usize)?;
        Some(((emitted.topic.clone(), emitted.data.clone()), event.emitter))
    }

    fn now(&self) -> Duration {
        self.walked.shared.ambient.monotonic().saturating_sub(self.start)
    }

    fn skip(&mut self, runtime: RuntimeIx, reason: &str) {
        let now = self.now();
        let slot = &mut self.walked.slots[runtime.index()];
        slot.started = now;
        slot.held_back = true;
        slot.set(RuntimeResult::skipped(reason));
        self.walked.order.push(runtime);
        self.tell_end(runtime);
    }

    fn tell_end(&self, runtime: RuntimeIx) {
        if self.services.emitter.is_live() {
            self.services.emitter.ended(runtime, &self.walked.document(runtime));
        }
    }

    /// Binds inputs and builds the runtime's host over the current view.
    fn prepare(&mut self, runtime: RuntimeIx, event: u32) -> Result<Prepared, Box<RuntimeResult>> {
        let now = self.now();
        self.walked.slots[runtime.index()].started = now;
        if self.services.emitter.is_live() {
            let (stage, layer, depth) = self.walked.place(runtime);
            self.services.emitter.started(runtime, stage, layer, depth);
        }
        self.bind(runtime, event)
    }

    fn bind(&mut self, runtime: RuntimeIx, event: u32) -> Result<Prepared, Box<RuntimeResult>> {
        let shared = &self.walked.shared;
        let call = Arc::new(RuntimeCall::new(Arc::clone(shared), runtime, self.overlay.clone()));
        if let Some(resume) = shared.given.resume_of(runtime) {
            return resumed(resume, call);
        }
        let trigger = self.trigger(event).map(|(trigger, emitter)| {
            call.note_read(emitter);
            trigger
        });
        let trigger = trigger.or_else(|| shared.given.triggers.get(&runtime).cloned());
        let job = self.job_of(runtime);
        let trigger = trigger.or_else(|| job?.frozen.trigger.clone());
        if let Some(inputs) = job.and_then(|job| job.frozen.inputs.clone()) {
            return Ok(Prepared { runtime, call, inputs, trigger });
        }
        let decl = shared.plan.decl(runtime);
        let mut inputs = Vec::new();
        if !decl.inputs.is_empty() {
            let slots = &self.walked.slots;
            let result = |ix: RuntimeIx| slots[ix.index()].result();
            let digest = || match job.and_then(|job| job.frozen.digest.clone()) {
                Some(digest) => digest,
                None => self.walked.digest(),
            };
            let binding = Binding {
                plan: &shared.plan,
                store: &shared.store,
                session_id: &shared.session_id,
                turn_id: &shared.turn_id,
                result: &result,
                earlier: shared.given.turn.as_deref().map(|turn| (turn, &*shared.given.seeds)),
                lenient: self.walked.core.ignores_upstreams(runtime),
                manual: self.walked.core.is_manual_target(runtime),
                digest: &digest,
                reads: shared.job_reads(),
            };
            match inputs::bind(&binding, runtime) {
                Ok(bound) => {
                    for producer in bound.producers {
                        call.note_read(producer);
                    }
                    let id = shared.plan.runtime_id(runtime);
                    self.walked.notes.extend(
                        bound
                            .notes
                            .into_iter()
                            .map(|note| ErrorInfo::new(note.code, format!("{id}: {}", note.message))),
                    );
                    inputs = bound.slots;
                }
                Err(unbound) => {
                    let mut result = RuntimeResult::skipped(unbound.reason);
                    result.notes.push(ErrorInfo::new(unbound.reason, unbound.message));
                    return Err(Box::new(result));
                }
            }
        }
        Ok(Prepared { runtime, call, inputs, trigger })
    }

    fn launch(&mut self, ready: Prepared, batch: &mut Vec<Call>, inline: &mut Vec<(Prepared, Arc<dyn NativeRuntime>)>) {
        let shared = Arc::clone(&self.walked.shared);
        let package = Arc::clone(shared.plan.package(ready.runtime));
        let decl = shared.plan.decl(ready.runtime);
        if let Some(native) = &package.native
            && let Some(handler) = native.handlers.get(decl.id.as_str())
        {
            let handler = Arc::clone(handler);
            if handler.is_heavy() {
                self.wait_for(&ready);
                let (sender, receiver) = oneshot::channel();
                let runtime = ready.runtime;
                rayon::spawn(move || {
                    // A closed channel means the turn was dropped.
                    let _ = sender.send(run_native(&ready, &*handler));
                });
                let cancel = shared.cancel.clone();
                self.agents.push(Box::pin(async move {
                    let result = tokio::select! {
                        result = receiver => result
                            .unwrap_or_else(|_| RuntimeResult::failed("internal", "the native handler was lost")),
                        // The thread cannot be stopped; the wait can. Its host is closed, so nothing of it counts.
                        () = cancel.cancelled() => RuntimeResult::failed("cancelled", "cancelled"),
                    };
                    (runtime, result)
                }));
            } else {
                inline.push((ready, handler));
            }
            return;
        }
        match (decl.kind, &decl.function) {
            (RuntimeKind::Function, Some(function)) => {
                let module = function.handler.clone();
                self.launch_js(&ready, &package, module, batch);
            }
            _ => self.launch_agent(ready),
        }
    }

    fn wait_for(&mut self, ready: &Prepared) {
        self.pending[ready.runtime.index()] = Some(Arc::clone(&ready.call));
    }

    fn launch_js(&mut self, ready: &Prepared, package: &LoadedPackage, module: String, batch: &mut Vec<Call>) {
        self.wait_for(ready);
        ready.call.keep_inputs(&ready.inputs);
        let runtime = ready.runtime;
        let Some(generation) = package.generation.clone() else {
            let message = package.error.clone().unwrap_or_else(|| "its code is not active".to_owned());
            let error = CallError::Load { message: format!("package {:?}: {message}", package.id()) };
            // The receiver lives as long as the driver.
            let _ = self.answers().send((runtime.0, Err(error)));
            return;
        };
        let reply = self.answers();
        let shared = &self.walked.shared;
        let function = shared.plan.decl(runtime).function.as_ref();
        let timeout = function.map_or(DEFAULT_FUNCTION_TIMEOUT_MS, |function| function.timeout_ms.max(1));
        if let Some(function) = function {
            requests::serve(&ready.call, &self.services.js, &self.services.gateway, function);
        }
        batch.push(Call {
            generation,
            target: CallTarget::Handler { module },
            context: self.context(ready, true),
            host: Arc::clone(&ready.call) as Arc<dyn CallHost>,
            limits: CallLimits { timeout: Duration::from_millis(timeout), max_output_bytes: MAX_OUTPUT_BYTES },
            cancel: shared.cancel.child_token(),
            tag: runtime.0,
            reply,
        });
    }

    /// The context of a handler or guard.
    fn context(&self, ready: &Prepared, handler: bool) -> CallContext {
        let shared = &self.walked.shared;
        let runtime = ready.runtime;
        let mut fields = base_fields(&ready.call);
        let manual = self.walked.core.phase_kind(self.walked.core.place(runtime)) == Some(PhaseKind::Manual);
        fields.push(("playerActions", shared.player_actions().clone()));
        fields.push(("playerMessage", Json::from_value(shared.message.clone().into())));
        fields.push(("userSettings", shared.settings[shared.plan.plugin_ix(runtime) as usize].clone()));
        let activation = match self.job_of(runtime) {
            Some(job) => Json::from_value(crate::jobs::activation(job)),
            None => self.activation(runtime, ready.trigger.as_ref()),
        };
        if let Some(resume) = shared.given.resume_of(runtime) {
            fields.push(("resumeData", resume.data.clone()));
            fields.push(("resumedFromSuspensionId", Json::from_value(resume.suspension_id.clone().into())));
            if activation.pointer("/source").is_some_and(|source| source.value() == "manual") {
                fields.push(("manualPayload", activation.pointer("/payload").unwrap_or_else(Json::null)));
            }
        }
        let manual = manual && shared.given.resume.is_none();
        fields.push(("activation", activation));
        if let Some((topic, data)) = &ready.trigger {
            fields.push(("triggerEvent", Json::from_value(json!({"topic": topic, "data": data}))));
        } else if manual {
            fields.push(("manualPayload", self.payload.clone()));
        }
        let inputs = ready.inputs.clone();
        CallContext { fields, inputs, writable: handler, effects: handler, services: true, ..CallContext::default() }
    }

    /// `ctx.activation`: what started a runtime, and with what.
    fn activation(&self, runtime: RuntimeIx, trigger: Option<&(String, Json)>) -> Json {
        if let Some(resume) = self.walked.shared.given.resume_of(runtime) {
            return resume.continuation.activation.clone();
        }
        let manual = self.walked.core.phase_kind(self.walked.core.place(runtime)) == Some(PhaseKind::Manual);
        let (source, payload) = match trigger {
            Some((_, data)) => ("event", data.clone()),
            None if manual => ("manual", self.payload.clone()),
            None => ("stage", Json::null()),
        };
        Json::from_value(json!({"source": source, "detached": false, "payload": payload}))
    }

    /// What a suspended runtime goes on with, besides an agent's conversation.
    fn continuation(&self, call: &RuntimeCall, writes: &[Write], events: &[EmittedEvent]) -> Continuation {
        let shared = &self.walked.shared;
        let runtime = call.runtime();
        if let Some(resume) = shared.given.resume_of(runtime) {
            let before = resume.continuation.clone();
            let proposals = writes.iter().map(to_proposal).collect();
            return Continuation { proposals, events: keep_events(events), agent: None, ..before };
        }
        let trigger = self.trigger(self.walked.core.trigger_of(runtime)).map(|(trigger, _)| trigger);
        let trigger = trigger.or_else(|| shared.given.triggers.get(&runtime).cloned());
        Continuation {
            package_digest: shared.plan.package(runtime).package.digest.clone(),
            plan: shared.plan.digest.clone(),
            logical_turn: shared.logical_turn,
            message: shared.message.clone(),
            counts: None,
            inputs: call.kept_inputs(),
            activation: self.activation(runtime, trigger.as_ref()),
            trigger,
            proposals: writes.iter().map(to_proposal).collect(),
            events: keep_events(events),
            agent: None,
        }
    }

    fn launch_agent(&mut self, ready: Prepared) {
        let shared = Arc::clone(&self.walked.shared);
        let runtime = ready.runtime;
        self.wait_for(&ready);
        ready.call.keep_inputs(&ready.inputs);
        let resume = shared.given.resume_of(runtime).and_then(|resume| {
            let state = resume.continuation.agent.clone()?;
            Some(AgentResume { state, data: resume.data.clone() })
        });
        let guard = shared.plan.decl(runtime).guard.clone().filter(|_| resume.is_none()).map(|module| {
            let limits = CallLimits {
                timeout: Duration::from_millis(DEFAULT_FUNCTION_TIMEOUT_MS),
                max_output_bytes: MAX_OUTPUT_BYTES,
            };
            (CallTarget::Guard { module }, self.context(&ready, false), limits)
        });
        let generation = shared.plan.package(runtime).generation.clone();
        let js = self.services.js.clone();
        let run = AgentRun {
            call: Arc::clone(&ready.call),
            gateway: Arc::clone(&self.services.gateway),
            js: js.clone(),
            inputs: ready.inputs,
            trigger: ready.trigger,
            prose: match self.job_of(runtime) {
                Some(job) => job.frozen.prose.clone(),
                None => self.walked.prose_before(runtime),
            },
            emitter: self.services.emitter.clone(),
            cancel: shared.cancel.child_token(),
            resume,
        };
        if guard.is_some() {
            serve_guard(&run.call, &js, &run.gateway);
        }
        self.agents.push(Box::pin(async move {
            if let Some((target, context, limits)) = guard {
                let host = Arc::clone(&run.call) as Arc<dyn CallHost>;
                let Some(generation) = generation else {
                    return (
                        runtime,
                        RuntimeResult::failed("handler-load-failed", "the code of its guard is not active"),
                    );
                };
                let cancel = run.cancel.clone();
                match js.call(CallRequest { generation, target, context, host, limits, cancel }).await {
                    Err(error) => return (runtime, RuntimeResult::failed(error.code(), error.to_string())),
                    Ok(output) => match from_guard(&output.value) {
                        Ok(None) => {}
                        Ok(Some(result)) | Err(result) => return (runtime, result),
                    },
                }
            }
            (runtime, agent::run(run).await)
        }));
    }

    /// Makes a call again that went down with code it has nothing to do with: nothing of it counts yet, and its view
    /// is still that of its layer. Not one that has asked the outside world for something.
    fn repeat(&mut self, runtime: RuntimeIx) -> bool {
        let slot = &mut self.walked.slots[runtime.index()];
        let Some(call) = &self.pending[runtime.index()] else { return false };
        if slot.repeats >= MAX_CALL_REPEATS || call.has_asked() || self.walked.shared.cancel.is_cancelled() {
            return false;
        }
        slot.repeats += 1;
        call.close();
        self.walked.shared.recorder.restart(self.walked.shared.plan.runtime_id(runtime));
        let event = self.walked.core.trigger_of(runtime);
        let Ok(ready) = self.bind(runtime, event) else { return false };
        tracing::warn!(runtime = self.walked.shared.plan.runtime_id(runtime), "a lost call is made again");
        let (mut batch, mut inline) = (Vec::new(), Vec::new());
        self.launch(ready, &mut batch, &mut inline);
        self.services.js.submit(batch);
        true
    }

    fn answered(&mut self, runtime: RuntimeIx, answer: Result<CallOutput, CallError>, actions: &mut Vec<Action>) {
        if let Err(CallError::IsolateLost | CallError::WorkerLost) = &answer
            && self.repeat(runtime)
        {
            return;
        }
        let result = match answer {
            Ok(output) => from_handler(&output.value),
            Err(error) => js_failure(&error),
        };
        self.finish(runtime, result, actions);
    }

    /// A started runtime ended with this result.
    fn finish(&mut self, runtime: RuntimeIx, result: RuntimeResult, actions: &mut Vec<Action>) {
        match self.pending[runtime.index()].take() {
            Some(call) => self.ended(&call, runtime, result, actions),
            // It never got as far as a host (an input did not bind).
            None => self.settle(runtime, result, actions),
        }
    }

    fn ended(&mut self, call: &RuntimeCall, runtime: RuntimeIx, mut result: RuntimeResult, actions: &mut Vec<Action>) {
        // Writes that came with the result follow those made during the call.
        if result.is_ok()
            && !result.writes.is_empty()
            && let Err(error) = call.apply_writes(&result.writes, true)
        {
            result = RuntimeResult::failed(error.code, error.message);
        }
        let Buffered { writes, producers, data_reads, staged_reads, read_set, events, failed_tool, mut operations } =
            call.close();
        if let (Some(message), true) = (failed_tool, result.is_ok() || result.suspending.is_some()) {
            result = RuntimeResult::failed("tool-call-failed", message);
        }
        if result.suspending.is_some() && operations.iter().any(|operation| !operation.discarded) {
            let id = self.walked.shared.plan.runtime_id(runtime);
            let message = format!("{id} cannot suspend after changing another plugin's data through a write service");
            result = RuntimeResult::failed("suspended-with-operations", message);
        }
        if !result.is_ok() {
            // WSV-7
            operations.iter_mut().for_each(|operation| operation.discarded = true);
        }
        self.walked.slots[runtime.index()].producers = producers;
        self.walked.slots[runtime.index()].data_reads = data_reads;
        self.walked.slots[runtime.index()].read_set = read_set;
        self.walked.slots[runtime.index()].staged_reads = staged_reads;
        self.walked.slots[runtime.index()].operations = operations;
        let mut events = events;
        if let Some(resume) = self.walked.shared.given.resume_of(runtime)
            && resume.continuation.agent.is_none()
        {
            events.splice(0..0, kept_events(&resume.continuation.events));
        }
        if result.is_ok() {
            result.events.splice(0..0, events);
            result.writes = writes;
        } else {
            if let Some(suspending) = &mut result.suspending {
                let gathered: Vec<_> = events.into_iter().chain(std::mem::take(&mut result.events)).collect();
                suspending.continuation = Some(self.continuation(call, &writes, &gathered));
            }
            // Invariant 4: a runtime that did not succeed leaves no write and no event.
            result.writes.clear();
            result.events.clear();
        }
        self.settle(runtime, result, actions);
    }

    /// Checks a result, records it, tells the core.
    fn settle(&mut self, runtime: RuntimeIx, mut result: RuntimeResult, actions: &mut Vec<Action>) {
        let shared = Arc::clone(&self.walked.shared);
        let decl = shared.plan.decl(runtime);
        if decl.visibility == Visibility::Story && decl.kind == RuntimeKind::Function {
            // A story function says its text in `narrativeOutput`.
            let text = result.value.as_ref().and_then(|value| value.value().get("narrativeOutput")?.as_str());
            result.narrative = text.map(str::to_owned);
        }
        if result.is_ok()
            && let Err(error) = self.check_result(runtime, &result)
        {
            result = RuntimeResult { notes: result.notes, ..RuntimeResult::failed(error.code, error.message) };
            self.walked.slots[runtime.index()].operations.iter_mut().for_each(|operation| operation.discarded = true);
        }
        if result.status == RuntimeStatus::Suspended
            && shared.session.suspended.contains_key(shared.plan.runtime_id(runtime))
            && shared.given.resume_of(runtime).is_none()
        {
            result = RuntimeResult::failed(
                "suspension-open",
                "it is suspended already; that one must be resumed or given up first",
            );
        }
        if shared.cancel.is_cancelled() && !result.is_ok() && result.status == RuntimeStatus::Failed {
            result.error = Some(ErrorInfo::new("cancelled", "the turn was cancelled"));
        }
        let ended = match (result.status, result.guard_skip) {
            (RuntimeStatus::Success, _) => Ended::Success,
            (RuntimeStatus::Skipped, true) => Ended::GuardSkip,
            (RuntimeStatus::Skipped, false) => Ended::Skipped,
            (RuntimeStatus::Failed, _) => Ended::Failed,
            (RuntimeStatus::Suspended, _) => Ended::Suspended,
        };
        if decl.stage == Some(Stage::Setup) && (result.guard_skip || (result.is_ok() && result.completion_done)) {
            self.walked.core.setup_done(runtime);
        }
        let topics = result.events.iter().map(|event| shared.plan.topic_ix(&event.topic).unwrap_or(NONE)).collect();
        let now = self.now();
        let slot = &mut self.walked.slots[runtime.index()];
        slot.took = now.saturating_sub(slot.started);
        let has_writes = !result.writes.is_empty() || slot.operations.iter().any(|operation| !operation.discarded);
        slot.set(result);
        if has_writes {
            self.unmerged.push(runtime);
        }
        self.tell_end(runtime);
        if shared.cancel.is_cancelled() {
            // What ended because of the cancel must not start what comes after it.
            self.walked.core.cancel();
        }
        self.walked.core.finished(runtime, ended, topics, actions);
    }

    fn check_result(&self, runtime: RuntimeIx, result: &RuntimeResult) -> Result<(), ErrorInfo> {
        let plan = &self.walked.shared.plan;
        let decl = plan.decl(runtime);
        let invalid = |message: String| ErrorInfo::new("output-schema-invalid", message);
        // What is kept must be read back, and a turn's document holds all of these.
        if result
            .value
            .iter()
            .chain(result.events.iter().map(|event| &event.data))
            .any(|kept| ops::is_too_deep(kept.value()))
        {
            return Err(invalid(format!("a value or event is nested deeper than {MAX_DATA_DEPTH} levels")));
        }
        if let Some(value) = &result.value {
            // Story agents answer in prose; other agents were checked in their loop, guards by contract only.
            if decl.kind == RuntimeKind::Function
                && let Some(validator) = &plan.package(runtime).output_schemas[plan.local(runtime)]
            {
                check(validator, value.value())
                    .map_err(|message| invalid(format!("the value does not fit io.output.schema: {message}")))?;
            }
            if let Some(contract) = &decl.output.contract {
                plan.check_contract(contract, value.value())
                    .map_err(|message| invalid(format!("the value breaks {contract}: {message}")))?;
            }
        }
        if decl.visibility == Visibility::Story
            && !result.guard_skip
            && result.narrative.as_deref().is_none_or(|text| text.trim().is_empty())
        {
            return Err(ErrorInfo::new("story-empty", "the story runtime gave no text"));
        }
        for event in &result.events {
            plan.check_event(&event.topic, &event.data)?;
        }
        Ok(())
    }

    /// Makes the writes of ended runtimes visible to what starts next, in plan order.
    fn merge(&mut self) {
        if self.unmerged.is_empty() {
            return;
        }
        self.unmerged.sort_unstable();
        for runtime in std::mem::take(&mut self.unmerged) {
            let plugin = self.walked.shared.plan.plugin_ix(runtime);
            let writes =
                self.walked.slots[runtime.index()].result().map(|result| result.writes.clone()).unwrap_or_default();
            for write in &writes {
                match write {
                    Write::Data(write) => self.merge_write(runtime, plugin, write, false),
                    Write::Proposal(proposal) => self.merge_proposal(runtime, proposal),
                }
            }
            // What it staged through write services is seen by later layers as writes of the providers. CTX-3
            let operations = std::mem::take(&mut self.walked.slots[runtime.index()].operations);
            for operation in operations.iter().filter(|operation| !operation.discarded) {
                for write in &operation.writes {
                    self.merge_write(runtime, operation.provider, write, true);
                }
            }
            self.walked.slots[runtime.index()].operations = operations;
        }
    }

    /// Characters and their schema are seen by later layers; siblings' patches of one character both count.
    fn merge_proposal(&mut self, runtime: RuntimeIx, proposal: &Proposal) {
        if !matches!(proposal, Proposal::Character(_) | Proposal::Schema(_)) {
            return;
        }
        let shared = Arc::clone(&self.walked.shared);
        let now = &shared.session.updated_at;
        let schema_key = world_key(world::SCHEMA, world::SCHEMA);
        // A store that cannot be read fails the commit anyway.
        let read = |body: &dyn Fn(&covel_store::Reader<'_>) -> Result<Option<Json>, covel_store::StoreError>| {
            shared.store.read(|reader| body(reader)).ok().flatten()
        };
        let schema = match self.overlay.get(&schema_key) {
            Some(entry) => entry.value.clone(),
            None => read(&|reader| world::view::schema(reader, &shared.session_id)),
        };
        match proposal {
            Proposal::Character(upsert) => {
                let key = world_key(world::CHARACTERS, &upsert.id);
                let live = match self.overlay.get(&key) {
                    Some(entry) => entry.value.clone(),
                    None => read(&|reader| world::view::character(reader, &shared.session_id, &upsert.id)),
                };
                let schema = world::cast::schema_of(schema.as_ref()).unwrap_or_default();
                let next = world::character::next_record(live.as_ref().map(Json::value), upsert, &schema, now);
                if let Ok(record) = next {
                    self.overlay.put(key, Some(Json::from_value(record)), runtime);
                }
            }
            Proposal::Schema(set) => {
                let record = world::cast::next_schema(schema.as_ref().map(Json::value), set, now);
                self.overlay.put(schema_key, Some(record), runtime);
            }
            _ => {}
        }
    }

    fn merge_write(&mut self, runtime: RuntimeIx, plugin: u32, write: &DataWrite, staged: bool) {
        let key = DataKey { plugin, namespace: Arc::clone(&write.namespace), key: Arc::clone(&write.key) };
        let value = match &write.op {
            DataOp::Set(value) => Some(value.clone()),
            DataOp::Delete => None,
            DataOp::Update(list) => {
                // Two updates of one record in one layer both count, as they will at commit. DAT-1
                let current = match self.overlay.get(&key) {
                    Some(entry) => entry.value.clone(),
                    None => self.committed(plugin, &write.namespace, &write.key),
                };
                match ops::apply(current.as_ref().map(Json::value), list.value()) {
                    Ok(value) => Some(Json::from_value(value)),
                    // It will be refused at commit; readers of this execution see what is there now.
                    Err(_) => return,
                }
            }
        };
        if staged {
            self.overlay.put_staged(key, value, runtime);
        } else {
            self.overlay.put(key, value, runtime);
        }
    }

    fn committed(&self, plugin: u32, namespace: &str, key: &str) -> Option<Json> {
        let shared = &self.walked.shared;
        let plugin = &shared.plan.packages[plugin as usize].plugin_id;
        shared
            .store
            .read(|reader| reader.get_data(&shared.session_id, plugin, namespace, key))
            .ok()
            .flatten()
            .map(|record| record.value)
    }
}

/// The kept half of a suspended runtime: what it had buffered is in its buffer again.
fn resumed(resume: &Resume, call: Arc<RuntimeCall>) -> Result<Prepared, Box<RuntimeResult>> {
    let kept = &resume.continuation;
    let writes =
        from_proposals(&kept.proposals).map_err(|message| Box::new(RuntimeResult::failed("internal", message)))?;
    call.apply_writes(&writes, true).map_err(|error| Box::new(RuntimeResult::failed(error.code, error.message)))?;
    Ok(Prepared { runtime: resume.runtime, call, inputs: kept.inputs.clone(), trigger: kept.trigger.clone() })
}

fn run_native(ready: &Prepared, handler: &dyn NativeRuntime) -> RuntimeResult {
    let nothing = Overlay::default();
    let context = NativeContext {
        shared: ready.call.shared(),
        runtime: ready.runtime,
        view: &nothing,
        host: OnceCell::from(Arc::clone(&ready.call)),
        inputs: &ready.inputs,
        trigger: ready.trigger.as_ref(),
        services: OnceCell::new(),
    };
    native_outcome(guarded(handler, &context))
}

/// Runs a native handler. A panicking one fails its own runtime only.
fn guarded(handler: &dyn NativeRuntime, context: &NativeContext<'_>) -> Result<NativeOutput, NativeFailure> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| handler.run(context))) {
        Ok(outcome) => outcome.map_err(NativeFailure::Said),
        Err(_) => Err(NativeFailure::Panicked),
    }
}

enum NativeFailure {
    Said(String),
    Panicked,
}

fn native_outcome(outcome: Result<NativeOutput, NativeFailure>) -> RuntimeResult {
    match outcome {
        Ok(output) => native_result(output),
        Err(NativeFailure::Said(message)) => RuntimeResult::failed("handler-failed", message),
        Err(NativeFailure::Panicked) => RuntimeResult::failed("handler-panicked", "the native handler panicked"),
    }
}

fn js_failure(error: &CallError) -> RuntimeResult {
    let message = match error {
        CallError::Thrown { name, message, stack, .. } => {
            // The first stack line with a file tells the author where.
            let place = stack.as_deref().and_then(|stack| {
                stack.lines().map(str::trim).find(|line| {
                    line.contains(".js:") || line.contains(".ts:") || line.contains(".mjs:") || line.contains(".mts:")
                })
            });
            match place {
                Some(place) => format!("{name}: {message} ({place})"),
                None => format!("{name}: {message}"),
            }
        }
        other => other.to_string(),
    };
    RuntimeResult::failed(error.code(), message)
}
