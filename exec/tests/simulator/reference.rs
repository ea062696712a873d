//! The slow reference: a turn and its commit as the rules read, one sentence at a time. It shares no code with the
//! engine, knows no completion order, and is free to be slow.

use covel_exec::core::{Ended, SkipReason};
use covel_graph::Stage;

use super::plans::{Fate, Kind, Node, Source, World, id};

/// Where a runtime stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It took no part (yet).
    Out,
    /// It was skipped before it could start.
    Held(SkipReason),
    /// It was started and ended so.
    Ran(Ended),
}

/// What happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Started, by which event.
    Start(usize, Option<usize>),
    Skip(usize, SkipReason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub topic: Option<usize>,
    pub emitter: usize,
    pub local: usize,
    pub depth: usize,
    /// Another payload of its topic came first at its depth.
    pub late: bool,
}

#[derive(Debug)]
pub struct Turn {
    pub stands: Vec<Stands>,
    pub steps: Vec<Step>,
    pub events: Vec<Event>,
    /// Background followers, each once.
    pub deferred: Vec<usize>,
    /// When each runtime ran: the number of its layer, counted over the whole turn.
    pub when: Vec<usize>,
    /// The depth each follower ran at.
    pub depth: Vec<usize>,
    layers: usize,
}

/// What the commit keeps.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// Everything but these, in order.
    AllBut(Vec<usize>),
    /// Nothing, because of this one.
    Nothing(usize),
}

fn good(stands: Stands) -> bool {
    matches!(stands, Stands::Ran(Ended::Success | Ended::GuardSkip))
}

impl Turn {
    pub fn play(world: &World, fates: &[Fate]) -> Self {
        let count = world.nodes.len();
        let mut turn = Self {
            stands: vec![Stands::Out; count],
            steps: Vec::new(),
            events: Vec::new(),
            deferred: Vec::new(),
            when: vec![usize::MAX; count],
            depth: vec![0; count],
            layers: 0,
        };
        if let Kind::Manual(target) = world.kind {
            turn.play_set(world, fates, &[target], 0, &vec![None; count]);
        }
        for stage in world.stages() {
            let members: Vec<usize> =
                (0..count).filter(|at| world.nodes[*at].stage == Some(*stage) && world.nodes[*at].triggered).collect();
            turn.play_set(world, fates, &members, 0, &vec![None; count]);
        }
        let (mut depth, mut offered) = (0, 0);
        while offered < turn.events.len() {
            depth += 1;
            let fresh = offered..turn.events.len();
            offered = turn.events.len();
            let mut cause = vec![None; count];
            let mut members = Vec::new();
            for event in fresh {
                let Event { topic: Some(topic), late: false, .. } = turn.events[event] else { continue };
                for at in by_plan_order(world) {
                    let node = &world.nodes[at];
                    let free = turn.stands[at] == Stands::Out && node.eligible && !members.contains(&at);
                    if node.topic != Some(topic) || !free {
                        continue;
                    }
                    if node.background {
                        if !turn.deferred.contains(&at) {
                            turn.deferred.push(at);
                        }
                        continue;
                    }
                    members.push(at);
                    cause[at] = Some(event);
                }
            }
            turn.play_set(world, fates, &members, depth, &cause);
        }
        turn
    }

    /// Runtimes triggered together: layer after layer, nobody of a layer seeing another of it.
    fn play_set(&mut self, world: &World, fates: &[Fate], members: &[usize], depth: usize, cause: &[Option<usize>]) {
        let (layers, stuck) = self.layers(world, members);
        for at in stuck {
            self.stands[at] = Stands::Held(SkipReason::DependencyCycle);
            self.depth[at] = depth;
            self.steps.push(Step::Skip(at, SkipReason::DependencyCycle));
        }
        for layer in layers {
            let mut after = self.stands.clone();
            let mut emitters = Vec::new();
            for at in layer {
                self.when[at] = self.layers;
                self.depth[at] = depth;
                match self.held(world, at, depth) {
                    Some(reason) => {
                        after[at] = Stands::Held(reason);
                        self.steps.push(Step::Skip(at, reason));
                    }
                    None => {
                        after[at] = Stands::Ran(fates[at].ended);
                        self.steps.push(Step::Start(at, cause[at]));
                        if good(after[at]) {
                            emitters.push(at);
                        }
                    }
                }
            }
            self.stands = after;
            self.layers += 1;
            for at in by_plan_order(world).into_iter().filter(|at| emitters.contains(at)) {
                for (local, topic) in fates[at].emits.iter().enumerate() {
                    let here = |event: &Event| event.depth == depth + 1 && event.topic == *topic;
                    let late = topic.is_some() && self.events.iter().any(here);
                    self.events.push(Event { topic: *topic, emitter: at, local, depth: depth + 1, late });
                }
            }
        }
    }

    /// Whoever waits for nobody left goes next. Those that never get there are in a cycle, or behind one.
    fn layers(&self, world: &World, members: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut left: Vec<usize> = members.to_vec();
        left.sort_by_key(|at| id(*at));
        let mut layers = Vec::new();
        loop {
            let ready: Vec<usize> =
                left.iter().copied().filter(|at| !self.waits(world, &world.nodes[*at], members, &left)).collect();
            if ready.is_empty() {
                return (layers, left);
            }
            left.retain(|at| !ready.contains(at));
            layers.push(ready);
        }
    }

    fn waits(&self, world: &World, node: &Node, members: &[usize], left: &[usize]) -> bool {
        let any_left = |source: &Source| sources(world, source).iter().any(|at| left.contains(at));
        let hard = node.after.iter().any(any_left) || node.inputs.iter().any(|input| any_left(&input.source));
        hard || node.needs.iter().any(|need| {
            if matches!(need.source, Source::Runtime(_)) || need.all {
                return any_left(&need.source);
            }
            // One provider is enough: an earlier good one, or the first of these to end.
            let providers = sources(world, &need.source);
            let earlier = providers.iter().any(|at| good(self.stands[*at]));
            let here: Vec<&usize> = providers.iter().filter(|at| members.contains(at)).collect();
            !earlier && !here.is_empty() && here.iter().all(|at| left.contains(at))
        })
    }

    /// Why it may not start, now that everything it could wait for has ended.
    fn held(&self, world: &World, at: usize, depth: usize) -> Option<SkipReason> {
        let node = &world.nodes[at];
        for need in &node.needs {
            let verdict = self.judge(world, &need.source, need.all, need.session, false);
            if verdict.is_some() {
                return verdict;
            }
        }
        if depth == 0 && world.kind == Kind::Manual(at) {
            return None; // There is no live turn whose results it could bind.
        }
        node.inputs
            .iter()
            .filter(|input| input.required)
            .find_map(|input| self.judge(world, &input.source, input.all, false, true))
    }

    fn judge(&self, world: &World, source: &Source, all: bool, session: bool, input: bool) -> Option<SkipReason> {
        let named = matches!(source, Source::Runtime(_));
        if session {
            // The persistent record of setup decides, whatever this execution shows.
            let setup = |at: &usize| named || world.nodes[*at].stage == Some(Stage::Setup);
            let candidates: Vec<usize> = sources(world, source).into_iter().filter(setup).collect();
            let done = |at: &usize| world.nodes[*at].session_done;
            let enough = if all { candidates.iter().all(done) } else { candidates.iter().any(done) };
            let reason = if candidates.is_empty() { SkipReason::MissingProvider } else { SkipReason::UpstreamFailed };
            return (candidates.is_empty() || !enough).then_some(reason);
        }
        let fine = |at: usize| good(self.stands[at]);
        let present: Vec<usize> =
            sources(world, source).into_iter().filter(|at| self.stands[*at] != Stands::Out).collect();
        if present.is_empty() {
            return Some(SkipReason::MissingProvider);
        }
        if input && !all && !named && present.len() > 1 {
            return Some(SkipReason::CardinalityConflict);
        }
        let enough = if all { present.iter().all(|at| fine(*at)) } else { present.iter().any(|at| fine(*at)) };
        (!enough).then_some(SkipReason::UpstreamFailed)
    }

    /// Runtimes that ended well before this one could start.
    pub fn good_before(&self, at: usize) -> Vec<usize> {
        (0..self.stands.len()).filter(|other| good(self.stands[*other]) && self.when[*other] < self.when[at]).collect()
    }

    /// Whose data this runtime read.
    pub fn read_from(&self, at: usize, fates: &[Fate]) -> Vec<usize> {
        self.good_before(at).into_iter().filter(|other| fates[at].reads >> other & 1 == 1).collect()
    }

    /// Whose results are bound to its inputs.
    pub fn bound(&self, world: &World, at: usize) -> Vec<usize> {
        if self.depth[at] == 0 && world.kind == Kind::Manual(at) {
            return Vec::new();
        }
        let good = self.good_before(at);
        let inputs = world.nodes[at].inputs.iter();
        inputs.flat_map(|input| sources(world, &input.source)).filter(|other| good.contains(other)).collect()
    }

    /// The commit: units in the order in which they ran.
    pub fn commit(&self, world: &World, fates: &[Fate]) -> Kept {
        let units: Vec<usize> = self
            .steps
            .iter()
            .filter_map(|step| if let Step::Start(at, _) = step { Some(*at) } else { None })
            .filter(|at| good(self.stands[*at]))
            .collect();
        let told = |at: &usize| world.nodes[*at].story && self.stands[*at] == Stands::Ran(Ended::Success);
        let has_story = units.iter().any(told);
        let mut gone: Vec<usize> = Vec::new();
        for at in units {
            if !(self.falls(world, fates, at, &gone) || fates[at].refused) {
                continue;
            }
            let setup = world.nodes[at].stage == Some(Stage::Setup) && self.depth[at] == 0 && world.kind == Kind::Setup;
            if !has_story || world.nodes[at].story || setup {
                return Kept::Nothing(at);
            }
            gone.push(at);
        }
        Kept::AllBut(gone)
    }

    fn falls(&self, world: &World, fates: &[Fate], at: usize, gone: &[usize]) -> bool {
        let node = &world.nodes[at];
        let good = self.good_before(at);
        let of = |source: &Source| -> Vec<usize> {
            sources(world, source).into_iter().filter(|other| good.contains(other)).collect()
        };
        let lost = |list: &[usize], all: bool| {
            let mut missing = list.iter().filter(|other| gone.contains(other)).peekable();
            missing.peek().is_some() && (all || missing.count() == list.len())
        };
        let needs = node.needs.iter().filter(|need| !need.session).any(|need| lost(&of(&need.source), need.all));
        let manual = self.depth[at] == 0 && world.kind == Kind::Manual(at);
        let inputs = !manual
            && node.inputs.iter().filter(|input| input.required).any(|input| lost(&of(&input.source), input.all));
        let emitters: Vec<usize> = self
            .events
            .iter()
            .filter(|event| event.depth == self.depth[at] && event.topic == node.topic && node.topic.is_some())
            .map(|event| event.emitter)
            .collect();
        let event = self.depth[at] > 0 && emitters.iter().all(|other| gone.contains(other));
        let read = !node.story && self.read_from(at, fates).iter().any(|other| gone.contains(other));
        needs || inputs || event || read
    }
}

/// Who a source names.
fn sources(world: &World, source: &Source) -> Vec<usize> {
    match source {
        Source::Runtime(at) => (*at < world.nodes.len()).then_some(*at).into_iter().collect(),
        Source::Contract(contract) => {
            (0..world.nodes.len()).filter(|at| world.nodes[*at].gives == Some(*contract)).collect()
        }
    }
}

/// Stage by stage, by id; those without a stage last.
fn by_plan_order(world: &World) -> Vec<usize> {
    let rank = |at: &usize| world.nodes[*at].stage.map_or(usize::MAX, |stage| stage as usize);
    let mut all: Vec<usize> = (0..world.nodes.len()).collect();
    all.sort_by_key(|at| (rank(at), id(*at)));
    all
}
