//! The turn core: a deterministic state machine, no IO.
//!
//! In: a runtime finished (with the topics it emitted), cancel. Out: start this runtime, skip that one because.
//! There is no clock, no random source, no await and no payload in here; the driver holds those. Given the same
//! plan, the same selection and the same outcomes it takes the same decisions whatever the order of completions.
//!
//! A turn is a list of phases (stages, or one manual phase) followed by event depths. Each phase's members are
//! layered by the plan; a layer starts when everything in the layer before has ended; nothing of a layer sees
//! another member of it. Followers of emitted topics form the next depth. EVT-1

use std::sync::Arc;

use covel_graph::{
    RuntimeIx, Stage,
    archive::PlanHandle,
    layer::{LayerCache, Layering},
    plan::{ArchivedEdgeKind, NONE},
};
use fixedbitset::FixedBitSet;

use crate::{
    limits::{MAX_EVENT_DEPTH, MAX_EVENTS_PER_TURN},
    select::Selection,
};

/// Where a runtime stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not part of this execution.
    #[default]
    Idle,
    /// In a phase that has begun, not started.
    Waiting,
    /// Started.
    Running,
    /// Succeeded.
    Success,
    /// Its guard said skip and gave an output: counts as a success for those who need it.
    GuardSkip,
    /// Did not run.
    Skipped,
    /// Failed.
    Failed,
    /// Waits for someone.
    Suspended,
}

impl Status {
    /// Does its result exist for others?
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Success | Self::GuardSkip)
    }
}

/// Why a runtime is skipped by the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is in a cycle, or hangs on one.
    DependencyCycle,
    /// Nothing that could satisfy it is part of this execution.
    MissingProvider,
    /// What it needs failed, was skipped, or is suspended.
    UpstreamFailed,
    /// It wants one provider and there are several.
    CardinalityConflict,
}

impl SkipReason {
    /// The word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DependencyCycle => "dependency-cycle",
            Self::MissingProvider => "missing-provider",
            Self::UpstreamFailed => "upstream-failed",
            Self::CardinalityConflict => "cardinality-conflict",
        }
    }
}

/// A phase before the event chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// A stage.
    Stage(Stage),
    /// Runtimes asked for by name.
    Manual,
    /// Followers of events of an earlier execution, run again.
    Followers,
}

/// A phase and who is triggered in it.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Kind.
    pub kind: PhaseKind,
    /// Members.
    pub members: FixedBitSet,
}

/// Where a runtime ran, for documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index into the phases, or the number of phases for event followers.
    pub phase: u32,
    /// Layer inside the phase or depth.
    pub layer: u32,
    /// Event depth, 0 outside the chain.
    pub depth: u32,
}

/// What the driver must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this runtime; `event` is the index of the event that triggered it.
    Start {
        /// Runtime.
        runtime: RuntimeIx,
        /// Index into [`TurnCore::events`], or [`NONE`].
        event: u32,
    },
    /// It will not run.
    Skip {
        /// Runtime.
        runtime: RuntimeIx,
        /// Why.
        reason: SkipReason,
    },
}

/// How a started runtime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Succeeded.
    Success,
    /// Guard said skip with an output.
    GuardSkip,
    /// Skipped after all (an input did not fit, a handler said so).
    Skipped,
    /// Failed.
    Failed,
    /// Suspended.
    Suspended,
}

/// An event in the order in which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreEvent {
    /// Topic index, or [`NONE`] for a topic the plan does not know.
    pub topic: u32,
    /// Emitter.
    pub emitter: RuntimeIx,
    /// Index in the emitter's own list.
    pub local: u32,
    /// Depth at which followers run, from 1.
    pub depth: u32,
    /// Another payload of this topic came first at this depth.
    pub dropped: bool,
}

/// A background follower that an event reached: no part of this execution, a durable job after it. EVT-3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// Runtime.
    pub runtime: RuntimeIx,
    /// Index into [`TurnCore::events`] of the event that reached it first.
    pub event: u32,
    /// The topic came up again at a later depth; it is deferred once all the same.
    pub repeated: bool,
}

/// Why the core gave up on the event chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainLimit {
    /// Deeper than [`MAX_EVENT_DEPTH`].
    Depth,
    /// More than [`MAX_EVENTS_PER_TURN`] events.
    Count,
}

/// The state machine of one execution.
pub struct TurnCore {
    plan: PlanHandle,
    cache: Arc<LayerCache>,
    phases: Vec<Phase>,
    status: Vec<Status>,
    place: Vec<Place>,
    /// Runtimes that ended well, for layering and gates.
    satisfied: FixedBitSet,
    /// Setup runtimes done in earlier executions.
    session_done: FixedBitSet,
    /// Event runtimes whose start turn, budget and cooldown allow them to follow.
    eligible: FixedBitSet,
    /// Manual targets start without what they need.
    ignore_upstreams: bool,
    /// Topics each runtime of the current layer emitted, in its own order.
    emitted: Vec<(RuntimeIx, Vec<u32>)>,
    events: Vec<CoreEvent>,
    /// First event not yet offered to followers.
    next_event: usize,
    deferred: Vec<Deferred>,
    phase: usize,
    depth: u32,
    layering: Arc<Layering>,
    layer: usize,
    /// Winning event per follower of the current depth.
    trigger: Vec<u32>,
    outstanding: u32,
    chain_limit: Option<ChainLimit>,
    cancelled: bool,
    done: bool,
}

impl TurnCore {
    /// A core for one execution.
    pub fn new(plan: PlanHandle, cache: Arc<LayerCache>, selection: Selection) -> Self {
        let count = plan.runtimes.len();
        let Selection { phases, session_done, eligible, ignore_upstreams, seeds } = selection;
        let mut status = vec![Status::Idle; count];
        let mut satisfied = FixedBitSet::with_capacity(count);
        for (runtime, seed) in seeds {
            status[runtime.index()] = seed;
            satisfied.set(runtime.index(), seed.is_ok());
        }
        Self {
            plan,
            cache,
            phases,
            status,
            place: vec![Place::default(); count],
            satisfied,
            session_done,
            eligible,
            ignore_upstreams,
            emitted: Vec::new(),
            events: Vec::new(),
            next_event: 0,
            deferred: Vec::new(),
            phase: 0,
            depth: 0,
            layering: Arc::new(Layering { layers: Vec::new(), cyclic: Vec::new() }),
            layer: 0,
            trigger: Vec::new(),
            outstanding: 0,
            chain_limit: None,
            cancelled: false,
            done: false,
        }
    }

    /// Begins the first phase.
    pub fn start(&mut self, out: &mut Vec<Action>) {
        self.begin_phase(out);
        self.advance(out);
    }

    /// A started runtime ended. Its events count only if it succeeded or its guard gave an output: if its writes do. COM-3
    pub fn finished(&mut self, runtime: RuntimeIx, ended: Ended, topics: Vec<u32>, out: &mut Vec<Action>) {
        let ix = runtime.index();
        if self.status[ix] != Status::Running {
            return; // A late or repeated answer changes nothing.
        }
        self.status[ix] = match ended {
            Ended::Success => Status::Success,
            Ended::GuardSkip => Status::GuardSkip,
            Ended::Skipped => Status::Skipped,
            Ended::Failed => Status::Failed,
            Ended::Suspended => Status::Suspended,
        };
        if self.status[ix].is_ok() {
            self.satisfied.insert(ix);
        }
        if self.status[ix].is_ok() && !topics.is_empty() {
            self.emitted.push((runtime, topics));
        }
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.end_layer();
            self.advance(out);
        }
    }

    /// A setup runtime is done for the session: what needs it by session may start. To be told before it ends.
    pub fn setup_done(&mut self, runtime: RuntimeIx) {
        self.session_done.insert(runtime.index());
    }

    /// Starts nothing more; the turn is over once what runs has ended.
    pub fn cancel(&mut self) {
        self.cancelled = true;
        if self.outstanding == 0 {
            self.done = true;
        }
    }

    /// Has everything ended?
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Was it cancelled?
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Did the event chain hit a limit?
    pub fn chain_limit(&self) -> Option<ChainLimit> {
        self.chain_limit
    }

    /// Where a runtime stands.
    pub fn status(&self, runtime: RuntimeIx) -> Status {
        self.status[runtime.index()]
    }

    /// Where a runtime ran.
    pub fn place(&self, runtime: RuntimeIx) -> Place {
        self.place[runtime.index()]
    }

    /// Did `earlier` end before `later` could start: in an earlier phase, depth or layer?
    pub fn ran_before(&self, earlier: RuntimeIx, later: RuntimeIx) -> bool {
        let at = |runtime: RuntimeIx| {
            let place = self.place(runtime);
            (place.phase, place.depth, place.layer)
        };
        at(earlier) < at(later)
    }

    /// Index of the event a runtime was started by, or [`NONE`].
    pub fn trigger_of(&self, runtime: RuntimeIx) -> u32 {
        if self.place(runtime).depth > 0 { self.trigger[runtime.index()] } else { NONE }
    }

    /// The phase kind of a place; `None` for event followers.
    pub fn phase_kind(&self, place: Place) -> Option<PhaseKind> {
        self.phases.get(place.phase as usize).map(|phase| phase.kind)
    }

    /// Does this runtime start without what it needs? (A manual target whose caller said so.)
    pub fn ignores_upstreams(&self, runtime: RuntimeIx) -> bool {
        self.ignore_upstreams && self.place(runtime).depth == 0
    }

    /// Was this runtime asked for by name? Its inputs from a live turn are then left out, whatever they say.
    pub fn is_manual_target(&self, runtime: RuntimeIx) -> bool {
        self.place(runtime).depth == 0
            && self
                .phases
                .get(self.place(runtime).phase as usize)
                .is_some_and(|phase| phase.kind == PhaseKind::Manual && phase.members.contains(runtime.index()))
    }

    /// Events in the order in which they count.
    pub fn events(&self) -> &[CoreEvent] {
        &self.events
    }

    /// Background followers that events reached, in the order in which they were. They stay [`Status::Idle`].
    pub fn deferred(&self) -> &[Deferred] {
        &self.deferred
    }

    /// The plan walked.
    pub fn plan(&self) -> &PlanHandle {
        &self.plan
    }

    fn begin_phase(&mut self, out: &mut Vec<Action>) {
        let members = &self.phases[self.phase].members;
        let layering = self.cache.layer(&self.plan, members, &self.satisfied);
        self.begin_layering(layering, out);
    }

    fn begin_layering(&mut self, layering: Arc<Layering>, out: &mut Vec<Action>) {
        let phase = u32::try_from(self.phase).unwrap_or(u32::MAX);
        for (number, layer) in layering.layers.iter().enumerate() {
            for runtime in layer {
                self.status[runtime.index()] = Status::Waiting;
                self.place[runtime.index()] =
                    Place { phase, layer: u32::try_from(number).unwrap_or(u32::MAX), depth: self.depth };
            }
        }
        for &runtime in &layering.cyclic {
            self.status[runtime.index()] = Status::Skipped;
            self.place[runtime.index()] = Place { phase, layer: 0, depth: self.depth };
            out.push(Action::Skip { runtime, reason: SkipReason::DependencyCycle });
        }
        self.layering = layering;
        self.layer = 0;
    }

    /// Goes on to the next layer, phase or depth until something runs or all is done.
    fn advance(&mut self, out: &mut Vec<Action>) {
        loop {
            if self.cancelled {
                self.done = true;
                return;
            }
            if self.layer < self.layering.layers.len() {
                self.begin_layer(out);
                if self.outstanding > 0 {
                    return;
                }
                self.end_layer();
                continue;
            }
            if self.phase + 1 < self.phases.len() {
                self.phase += 1;
                self.begin_phase(out);
                continue;
            }
            self.phase = self.phases.len();
            if !self.begin_depth(out) {
                self.done = true;
                return;
            }
        }
    }

    fn begin_layer(&mut self, out: &mut Vec<Action>) {
        let layering = Arc::clone(&self.layering);
        for &runtime in &layering.layers[self.layer] {
            match self.gate(runtime) {
                Ok(()) => {
                    self.status[runtime.index()] = Status::Running;
                    self.outstanding += 1;
                    let event = if self.depth > 0 { self.trigger[runtime.index()] } else { NONE };
                    out.push(Action::Start { runtime, event });
                }
                Err(reason) => {
                    self.status[runtime.index()] = Status::Skipped;
                    out.push(Action::Skip { runtime, reason });
                }
            }
        }
    }

    /// Settles a layer: its events count now, in layer order, so that completion order never shows.
    fn end_layer(&mut self) {
        self.layer += 1;
        if self.emitted.is_empty() {
            return;
        }
        let mut emitted = std::mem::take(&mut self.emitted);
        emitted.sort_by_key(|(runtime, _)| *runtime);
        let depth = self.depth + 1;
        for (emitter, topics) in emitted {
            for (local, topic) in topics.into_iter().enumerate() {
                if self.events.len() >= MAX_EVENTS_PER_TURN {
                    self.chain_limit = Some(ChainLimit::Count);
                    return;
                }
                let dropped = topic != NONE
                    && self.events.iter().rev().take_while(|event| event.depth == depth).any(|e| e.topic == topic);
                self.events.push(CoreEvent {
                    topic,
                    emitter,
                    local: u32::try_from(local).unwrap_or(u32::MAX),
                    depth,
                    dropped,
                });
            }
        }
    }

    /// Followers of the events that came up since the last depth. A runtime that ran is not run again.
    fn begin_depth(&mut self, out: &mut Vec<Action>) -> bool {
        if self.next_event >= self.events.len() {
            return false;
        }
        let first = self.next_event;
        self.next_event = self.events.len();
        self.depth += 1;
        if self.depth > MAX_EVENT_DEPTH {
            self.chain_limit = Some(ChainLimit::Depth);
            return false;
        }
        self.trigger.resize(self.status.len(), NONE);
        let mut members = FixedBitSet::with_capacity(self.status.len());
        for index in first..self.events.len() {
            let event = self.events[index];
            if event.dropped || event.topic == NONE {
                continue;
            }
            let topic = event.topic as usize;
            let range = self.plan.subscribers.starts[topic].to_native() as usize
                ..self.plan.subscribers.starts[topic + 1].to_native() as usize;
            for slot in range {
                let follower = self.plan.subscribers.items[slot].to_native() as usize;
                if self.status[follower] != Status::Idle
                    || members.contains(follower)
                    || !self.eligible.contains(follower)
                {
                    continue;
                }
                if self.plan.runtimes[follower].background {
                    self.defer(follower, index);
                    continue;
                }
                members.insert(follower);
                self.trigger[follower] = u32::try_from(index).unwrap_or(NONE);
            }
        }
        let layering = self.cache.layer(&self.plan, &members, &self.satisfied);
        self.begin_layering(layering, out);
        true
    }

    fn defer(&mut self, follower: usize, event: usize) {
        let runtime = RuntimeIx(u32::try_from(follower).unwrap_or(NONE));
        match self.deferred.iter_mut().find(|deferred| deferred.runtime == runtime) {
            Some(deferred) => deferred.repeated = true,
            None => {
                let event = u32::try_from(event).unwrap_or(NONE);
                self.deferred.push(Deferred { runtime, event, repeated: false });
            }
        }
    }

    /// May this runtime start? Everything it could wait for has ended.
    fn gate(&self, runtime: RuntimeIx) -> Result<(), SkipReason> {
        if self.ignores_upstreams(runtime) {
            return Ok(());
        }
        let plan = &*self.plan;
        let range = plan.edge_starts[runtime.index()].to_native() as usize
            ..plan.edge_starts[runtime.index() + 1].to_native() as usize;
        for slot in range {
            let edge = &plan.edges[slot];
            if !edge.required || matches!(edge.kind, ArchivedEdgeKind::After) {
                continue;
            }
            let is_input = matches!(edge.kind, ArchivedEdgeKind::InputOne | ArchivedEdgeKind::InputAll);
            if is_input && self.is_manual_target(runtime) {
                continue;
            }
            let target = edge.runtime.to_native();
            let contract = edge.contract.to_native();
            if contract == NONE {
                self.gate_runtime(target, edge.session_scope)?;
            } else {
                let one_input = matches!(edge.kind, ArchivedEdgeKind::InputOne);
                self.gate_contract(contract, edge.all, one_input, edge.session_scope)?;
            }
        }
        Ok(())
    }

    fn gate_runtime(&self, target: u32, session: bool) -> Result<(), SkipReason> {
        if target == NONE {
            return Err(SkipReason::MissingProvider);
        }
        let ix = target as usize;
        if session {
            // A success that leaves the setup pending does not count.
            return if self.session_done.contains(ix) { Ok(()) } else { Err(SkipReason::UpstreamFailed) };
        }
        if self.satisfied.contains(ix) {
            return Ok(());
        }
        Err(match self.status[ix] {
            Status::Idle | Status::Waiting => SkipReason::MissingProvider,
            _ => SkipReason::UpstreamFailed,
        })
    }

    fn gate_contract(&self, contract: u32, all: bool, one_input: bool, session: bool) -> Result<(), SkipReason> {
        let providers = &self.plan.providers;
        let range = providers.starts[contract as usize].to_native() as usize
            ..providers.starts[contract as usize + 1].to_native() as usize;
        let (mut present, mut good) = (0u32, 0u32);
        for slot in range {
            let ix = providers.items[slot].to_native() as usize;
            if session {
                if self.plan.runtimes[ix].stage == Stage::Setup as u8 {
                    present += 1;
                    good += u32::from(self.session_done.contains(ix));
                }
            } else if self.satisfied.contains(ix) {
                present += 1;
                good += 1;
            } else if !matches!(self.status[ix], Status::Idle | Status::Waiting) {
                present += 1;
            }
        }
        if present == 0 {
            Err(SkipReason::MissingProvider)
        } else if one_input && present > 1 {
            Err(SkipReason::CardinalityConflict)
        } else if good == 0 || (all && good < present) {
            Err(SkipReason::UpstreamFailed)
        } else {
            Ok(())
        }
    }
}
