//! The turn core and the commit's cascade under every order of completions, with cancels and failures at every step,
//! compared with a slow reference.
//!
//! `COVEL_SIMULATOR_SCHEDULES` sets how many schedules are driven, `COVEL_SIMULATOR_SEED` replays one world.
#![allow(clippy::unwrap_used)]

#[path = "simulator/plans.rs"]
mod plans;
#[path = "simulator/reference.rs"]
mod reference;

use std::{collections::HashMap, sync::Arc};

use covel_exec::{
    cascade::{Cascade, Verdict, hangs},
    core::{Action, Ended, Phase, PhaseKind, Status, TurnCore},
    select::Selection,
};
use covel_graph::{RuntimeIx, archive::PlanHandle, layer::LayerCache, plan::NONE};
use fixedbitset::FixedBitSet;
use plans::{Fate, Kind, Random, World, id, topic};
use reference::{Event, Kept, Stands, Step, Turn};

/// Schedules driven when nobody says how many.
const SCHEDULES: usize = 100_000;
/// Runtimes of a small world, whose orders are all tried.
const SMALL: usize = 5;
/// Runtimes of a large one.
const LARGE: usize = 12;

/// A world, its plan, and which row is which runtime.
struct Setting {
    world: World,
    plan: PlanHandle,
    layers: Arc<LayerCache>,
    row_of: Vec<RuntimeIx>,
    node_of: HashMap<RuntimeIx, usize>,
    topic_of: Vec<u32>,
}

/// What one schedule showed.
struct Run {
    core: TurnCore,
    steps: Vec<Step>,
    cancelled: bool,
}

impl Setting {
    fn new(world: World) -> Self {
        let plan = world.plan();
        let row_of: Vec<RuntimeIx> = (0..world.nodes.len()).map(|at| plan.runtime_by_id(&id(at)).unwrap()).collect();
        let node_of = row_of.iter().enumerate().map(|(at, row)| (*row, at)).collect();
        let named = |number| plan.topics.iter().position(|known| known.as_str() == topic(number));
        let topic_of = (0..world.topics).map(|number| named(number).map_or(NONE, |ix| ix as u32)).collect();
        Self { world, plan, layers: Arc::new(LayerCache::default()), row_of, node_of, topic_of }
    }

    fn bits(&self, wanted: impl Fn(usize) -> bool) -> FixedBitSet {
        let mut bits = FixedBitSet::with_capacity(self.row_of.len());
        bits.extend((0..self.row_of.len()).filter(|at| wanted(*at)).map(|at| self.row_of[at].index()));
        bits
    }

    fn core(&self) -> TurnCore {
        let nodes = &self.world.nodes;
        let phases = match self.world.kind {
            Kind::Manual(target) => {
                vec![Phase { kind: PhaseKind::Manual, members: self.bits(|at| at == target) }]
            }
            Kind::Turn | Kind::Setup => self
                .world
                .stages()
                .iter()
                .map(|stage| Phase {
                    kind: PhaseKind::Stage(*stage),
                    members: self.bits(|at| nodes[at].stage == Some(*stage) && nodes[at].triggered),
                })
                .collect(),
        };
        let selection = Selection {
            phases,
            session_done: self.bits(|at| nodes[at].session_done),
            eligible: self.bits(|at| nodes[at].eligible && nodes[at].topic.is_some()),
            ignore_upstreams: false,
            seeds: Vec::new(),
        };
        TurnCore::new(self.plan.clone(), Arc::clone(&self.layers), selection)
    }

    /// Drives the core. `pick` says which of the running ones ends next (of so many); `cancel_at` after how many ends
    /// the turn is cancelled.
    fn drive(&self, fates: &[Fate], mut pick: impl FnMut(usize) -> usize, cancel_at: Option<usize>) -> Run {
        let mut core = self.core();
        let mut actions = Vec::new();
        let mut running: Vec<RuntimeIx> = Vec::new();
        let mut steps = Vec::new();
        let mut ended = 0;
        let mut cancelled = false;
        core.start(&mut actions);
        loop {
            for action in actions.drain(..) {
                assert!(!cancelled, "a cancelled core went on with {action:?}");
                match action {
                    Action::Start { runtime, event } => {
                        let at = self.node_of[&runtime];
                        let known = |step: &Step| matches!(step, Step::Start(other, _) if *other == at);
                        assert!(!steps.iter().any(known), "{} was started twice", id(at));
                        steps.push(Step::Start(at, (event != NONE).then_some(event as usize)));
                        running.push(runtime);
                    }
                    Action::Skip { runtime, reason } => steps.push(Step::Skip(self.node_of[&runtime], reason)),
                }
            }
            if cancel_at == Some(ended) && !cancelled && !core.is_done() {
                core.cancel();
                cancelled = true;
            }
            assert_eq!(core.is_done(), running.is_empty(), "done is when nothing runs");
            if running.is_empty() {
                return Run { core, steps, cancelled };
            }
            let runtime = running.remove(pick(running.len()));
            let fate = &fates[self.node_of[&runtime]];
            let topics = fate.emits.iter().map(|topic| topic.map_or(NONE, |topic| self.topic_of[topic])).collect();
            core.finished(runtime, fate.ended, topics, &mut actions);
            ended += 1;
            // A late or repeated answer changes nothing.
            if ended % 3 == 0 {
                let before = actions.len();
                core.finished(runtime, Ended::Failed, vec![0], &mut actions);
                assert_eq!(actions.len(), before);
            }
        }
    }

    fn check(&self, run: &Run, turn: &Turn, fates: &[Fate]) -> Result<(), String> {
        let told = |what: &str, engine: &dyn std::fmt::Debug, model: &dyn std::fmt::Debug| {
            format!("{what}\n engine {engine:?}\n  model {model:?}")
        };
        if run.cancelled {
            // What was decided before the cancel is what would have been decided without it.
            let so_far = &turn.steps[..run.steps.len().min(turn.steps.len())];
            return if run.steps == so_far { Ok(()) } else { Err(told("cancelled", &run.steps, &turn.steps)) };
        }
        if run.steps != turn.steps {
            return Err(told("steps", &run.steps, &turn.steps));
        }
        for (at, stands) in turn.stands.iter().enumerate() {
            let expected = match stands {
                Stands::Out => Status::Idle,
                Stands::Held(_) | Stands::Ran(Ended::Skipped) => Status::Skipped,
                Stands::Ran(Ended::Success) => Status::Success,
                Stands::Ran(Ended::GuardSkip) => Status::GuardSkip,
                Stands::Ran(Ended::Failed) => Status::Failed,
                Stands::Ran(Ended::Suspended) => Status::Suspended,
            };
            if run.core.status(self.row_of[at]) != expected {
                return Err(told(&id(at), &run.core.status(self.row_of[at]), stands));
            }
        }
        let events: Vec<Event> = run
            .core
            .events()
            .iter()
            .map(|event| Event {
                topic: self.topic_of.iter().position(|ix| *ix == event.topic && event.topic != NONE),
                emitter: self.node_of[&event.emitter],
                local: event.local as usize,
                depth: event.depth as usize,
                late: event.dropped,
            })
            .collect();
        // A topic that no runtime waits for is unknown to the plan, so it cannot be told late.
        let known = |event: &Event| match event.topic {
            Some(topic) if self.topic_of[topic] == NONE => Event { topic: None, late: false, ..event.clone() },
            _ => event.clone(),
        };
        let expected: Vec<Event> = turn.events.iter().map(known).collect();
        if events != expected {
            return Err(told("events", &events, &expected));
        }
        let deferred: Vec<usize> = run.core.deferred().iter().map(|one| self.node_of[&one.runtime]).collect();
        if deferred != turn.deferred {
            return Err(told("deferred", &deferred, &turn.deferred));
        }
        let (engine, model) = (self.commit(run, turn, fates), turn.commit(&self.world, fates));
        if engine != model {
            return Err(told("commit", &engine, &model));
        }
        Ok(())
    }

    /// The commit's decisions, as the transaction takes them.
    fn commit(&self, run: &Run, turn: &Turn, fates: &[Fate]) -> Kept {
        let units: Vec<usize> = run
            .steps
            .iter()
            .filter_map(|step| if let Step::Start(at, _) = step { Some(*at) } else { None })
            .filter(|at| run.core.status(self.row_of[*at]).is_ok())
            .collect();
        let told = |at: &usize| self.world.nodes[*at].story && run.core.status(self.row_of[*at]) == Status::Success;
        let mut cascade = Cascade::new(units.iter().any(told));
        let mut gone = Vec::new();
        for at in units {
            let data = self.bits(|other| turn.read_from(at, fates).contains(&other));
            let mut producers = data.clone();
            producers.union_with(&self.bits(|other| turn.bound(&self.world, at).contains(&other)));
            let trigger = run.core.trigger_of(self.row_of[at]);
            if trigger != NONE {
                producers.insert(run.core.events()[trigger as usize].emitter.index());
            }
            let hangs = hangs(&run.core, self.row_of[at], &producers, Some(&data));
            let story = self.world.nodes[at].story;
            if cascade.falls_with(&hangs, story, |_| ()).is_none() && !fates[at].refused {
                continue;
            }
            let place = run.core.place(self.row_of[at]);
            let setup = run.core.phase_kind(place) == Some(PhaseKind::Stage(covel_graph::Stage::Setup));
            match cascade.refuse(self.row_of[at], story, setup) {
                Verdict::Isolated => gone.push(at),
                Verdict::Whole => return Kept::Nothing(at),
            }
        }
        Kept::AllBut(gone)
    }
}

/// Counts through all sequences of choices: the first run takes every first choice, the last every last one.
struct Odometer(Vec<(usize, usize)>);

impl Odometer {
    /// Drives one run with the next sequence; `false` when there is none left.
    fn run(&mut self, mut run: impl FnMut(&mut dyn FnMut(usize) -> usize)) -> bool {
        let mut at = 0;
        let wheels = &mut self.0;
        run(&mut |choices| {
            if at == wheels.len() {
                wheels.push((0, choices));
            }
            at += 1;
            wheels[at - 1].0
        });
        wheels.truncate(at);
        while let Some((wheel, choices)) = wheels.pop() {
            if wheel + 1 < choices {
                wheels.push((wheel + 1, choices));
                return true;
            }
        }
        false
    }
}

struct Tally {
    worlds: usize,
    schedules: usize,
    cancelled: usize,
    dropped: usize,
    refused: usize,
    stuck: usize,
    followers: usize,
}

fn simulate(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random(seed);
    let small = random.chance(40);
    let setting = Setting::new(World::random(&mut random, if small { SMALL } else { LARGE }));
    tally.worlds += 1;
    let scripts = if small { 2 } else { 5 };
    for script in 0..scripts {
        let mut fates: Vec<Fate> =
            setting.world.nodes.iter().map(|_| Fate::random(&mut random, setting.world.topics)).collect();
        if script == 0 {
            // Everything well once, then a failure at every place.
            fates.iter_mut().for_each(|fate| fate.ended = Ended::Success);
            for at in 0..fates.len() {
                let mut broken = fates.clone();
                broken[at].ended = Ended::Failed;
                let turn = Turn::play(&setting.world, &broken);
                let run = setting.drive(&broken, |choices| random.below(choices), None);
                tally.schedules += 1;
                setting.check(&run, &turn, &broken).map_err(|error| describe(&setting, &broken, &error))?;
            }
        }
        let turn = Turn::play(&setting.world, &fates);
        let mut check = |run: &Run| {
            tally.schedules += 1;
            tally.cancelled += usize::from(run.cancelled);
            setting.check(run, &turn, &fates).map_err(|error| describe(&setting, &fates, &error))
        };
        let started = turn.steps.iter().filter(|step| matches!(step, Step::Start(..))).count();
        if small {
            // Every order.
            let mut odometer = Odometer(Vec::new());
            let mut found = Ok(());
            while odometer.run(|pick| {
                let run = setting.drive(&fates, pick, None);
                if found.is_ok() {
                    found = check(&run);
                }
            }) {}
            found?;
        } else {
            for _ in 0..12 {
                check(&setting.drive(&fates, |choices| random.below(choices), None))?;
            }
        }
        // A cancel after every end.
        for at in 0..=started {
            check(&setting.drive(&fates, |choices| random.below(choices), Some(at)))?;
        }
        match turn.commit(&setting.world, &fates) {
            Kept::AllBut(gone) => tally.dropped += gone.len(),
            Kept::Nothing(_) => tally.refused += 1,
        }
        let cyclic = |step: &&Step| matches!(step, Step::Skip(_, covel_exec::core::SkipReason::DependencyCycle));
        tally.stuck += turn.steps.iter().filter(cyclic).count();
        tally.followers += turn.steps.iter().filter(|step| matches!(step, Step::Start(_, Some(_)))).count();
    }
    Ok(())
}

fn describe(setting: &Setting, fates: &[Fate], error: &str) -> String {
    let nodes: Vec<String> = setting
        .world
        .nodes
        .iter()
        .zip(fates)
        .enumerate()
        .map(|(at, (node, fate))| format!("  {} {node:?}\n      {fate:?}", id(at)))
        .collect();
    format!("{error}\n{:?}\n{}", setting.world.kind, nodes.join("\n"))
}

/// Covers: COM-3, EVT-1, EVT-2, EVT-4, EVT-5, RDD-2
#[test]
fn the_core_and_the_cascade_agree_with_the_reference_under_every_order() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let mut tally = Tally { worlds: 0, schedules: 0, cancelled: 0, dropped: 0, refused: 0, stuck: 0, followers: 0 };
    if let Some(seed) = number("COVEL_SIMULATOR_SEED") {
        simulate(seed, &mut tally).unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let wanted = number("COVEL_SIMULATOR_SCHEDULES").map_or(SCHEDULES, |wanted| wanted as usize);
    let mut seed = 1;
    while tally.schedules < wanted {
        if let Err(error) = simulate(seed, &mut tally) {
            panic!("COVEL_SIMULATOR_SEED={seed}\n{error}");
        }
        seed += 1;
    }
    println!(
        "{} schedules of {} worlds ({} cancelled); {} units dropped, {} commits refused whole, {} runtimes in cycles, {} followers",
        tally.schedules, tally.worlds, tally.cancelled, tally.dropped, tally.refused, tally.stuck, tally.followers
    );
    // A simulator that never gets to the hard parts proves nothing.
    assert!(tally.dropped > 100 && tally.refused > 100 && tally.stuck > 100 && tally.followers > 100);
}
