//! Random plans, outcomes and reads, all from one number.

use std::sync::Arc;

use covel_exec::core::Ended;
use covel_graph::{
    Discovery, Package, PackageFiles, Stage,
    archive::PlanHandle,
    fragment::{
        Cardinality, Fragment, InputDecl, ManualExecution, NeedDecl, OutputDecl, RuntimeDecl, Scope, TriggerKind,
    },
    link::link,
};

/// Splitmix64: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
    /// True in `percent` of cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a runtime waits for.
#[derive(Clone, Debug)]
pub enum Source {
    /// A runtime by number; one beyond the last names nobody.
    Runtime(usize),
    /// A contract.
    Contract(usize),
}

#[derive(Clone, Debug)]
pub struct Need {
    pub source: Source,
    pub all: bool,
    /// Satisfied by what an earlier execution of the session did.
    pub session: bool,
}

#[derive(Clone, Debug)]
pub struct Input {
    pub source: Source,
    pub all: bool,
    pub required: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    pub stage: Option<Stage>,
    pub topic: Option<usize>,
    pub background: bool,
    pub story: bool,
    pub gives: Option<usize>,
    pub needs: Vec<Need>,
    pub after: Vec<Source>,
    pub inputs: Vec<Input>,
    /// Done in an earlier execution.
    pub session_done: bool,
    /// May follow events.
    pub eligible: bool,
    /// Triggered, when it has a stage.
    pub triggered: bool,
}

/// The stages an execution walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Turn,
    Setup,
    /// One runtime by name.
    Manual(usize),
}

#[derive(Clone, Debug)]
pub struct World {
    pub kind: Kind,
    pub nodes: Vec<Node>,
    pub topics: usize,
}

pub fn id(node: usize) -> String {
    format!("p/r{node:02}")
}

pub fn topic(number: usize) -> String {
    format!("t.n{number}")
}

fn contract(number: usize) -> String {
    format!("c.n{number}@1")
}

impl World {
    /// A world of at most `most` runtimes.
    pub fn random(random: &mut Random, most: usize) -> Self {
        let count = 2 + random.below(most - 1);
        let (contracts, topics) = (1 + random.below(3), 1 + random.below(3));
        let kind = match random.below(10) {
            0 => Kind::Setup,
            1 => Kind::Manual(random.below(count)),
            _ => Kind::Turn,
        };
        let mut nodes: Vec<Node> = (0..count).map(|at| node(random, at, count, contracts, topics, kind)).collect();
        if kind == Kind::Turn && random.chance(75) {
            // A story, mostly one that nothing holds back.
            let story = &mut nodes[random.below(count)];
            (story.stage, story.topic, story.background, story.story) = (Some(Stage::Narrative), None, false, true);
            if random.chance(60) {
                (story.needs, story.after, story.inputs) = Default::default();
            }
        }
        Self { kind, nodes, topics }
    }

    /// The stages walked, in order; empty for a manual execution.
    pub fn stages(&self) -> &'static [Stage] {
        match self.kind {
            Kind::Turn => &[Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit],
            Kind::Setup => &[Stage::Setup],
            Kind::Manual(_) => &[],
        }
    }

    /// Linked and opened as published packages are.
    pub fn plan(&self) -> PlanHandle {
        let runtimes = self.nodes.iter().enumerate().map(|(at, node)| node.declared(at)).collect();
        let fragment = Fragment { plugin_id: "p".into(), version: "1.0.0".into(), runtimes, ..Fragment::default() };
        let package = Package {
            fragment: Arc::new(fragment),
            digest: "p".into(),
            files: PackageFiles::default(),
            root: Default::default(),
            discovery: Discovery::Builtin,
        };
        link(&[Arc::new(package)]).unwrap().handle().unwrap()
    }
}

fn node(random: &mut Random, at: usize, count: usize, contracts: usize, topics: usize, kind: Kind) -> Node {
    let stages = [Stage::PreTurn, Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit];
    let follows = random.chance(35);
    let stage = match (follows, kind) {
        (true, _) => None,
        (false, Kind::Setup) => Some(Stage::Setup),
        (false, _) => Some(stages[random.below(stages.len())]),
    };
    let source = |random: &mut Random| match random.below(10) {
        0..4 => Source::Contract(random.below(contracts)),
        // Mostly backwards, so that not everything is a cycle.
        4..9 if at > 0 => Source::Runtime(random.below(at)),
        _ => Source::Runtime(random.below(count + 1)),
    };
    let mut node = Node {
        stage,
        topic: follows.then(|| random.below(topics)),
        background: follows && random.chance(12),
        gives: random.chance(45).then(|| random.below(contracts)),
        session_done: random.chance(15),
        eligible: random.chance(88),
        triggered: random.chance(92),
        ..Node::default()
    };
    for _ in 0..random.below(3) {
        if random.chance(60) {
            let source = source(random);
            node.needs.push(Need { source, all: random.chance(30), session: random.chance(15) });
        }
    }
    if random.chance(25) {
        node.after.push(source(random));
    }
    if random.chance(35) {
        let source = source(random);
        node.inputs.push(Input { source, all: random.chance(40), required: random.chance(60) });
    }
    node
}

impl Node {
    fn declared(&self, at: usize) -> RuntimeDecl {
        let runtime = |source: &Source| match source {
            Source::Runtime(number) => Some(id(*number)),
            Source::Contract(_) => None,
        };
        let named = |source: &Source| match source {
            Source::Contract(number) => Some(contract(*number)),
            Source::Runtime(_) => None,
        };
        let cardinality = |all: bool| if all { Cardinality::All } else { Cardinality::One };
        RuntimeDecl {
            id: id(at),
            stage: self.stage,
            trigger: if self.topic.is_some() { TriggerKind::Event } else { TriggerKind::Auto },
            topic: self.topic.map(topic),
            manual: if self.background { ManualExecution::Background } else { ManualExecution::Sync },
            needs: self
                .needs
                .iter()
                .map(|need| NeedDecl {
                    runtime: runtime(&need.source),
                    contract: named(&need.source),
                    cardinality: cardinality(need.all),
                    scope: if need.session { Scope::Session } else { Scope::Turn },
                    ..NeedDecl::default()
                })
                .collect(),
            after: self
                .after
                .iter()
                .map(|source| NeedDecl { runtime: runtime(source), contract: named(source), ..NeedDecl::default() })
                .collect(),
            inputs: self
                .inputs
                .iter()
                .enumerate()
                .map(|(number, input)| InputDecl {
                    name: format!("i{number}"),
                    runtime: runtime(&input.source),
                    contract: named(&input.source),
                    cardinality: cardinality(input.all),
                    required: input.required,
                    ..InputDecl::default()
                })
                .collect(),
            output: OutputDecl { contract: self.gives.map(contract), ..OutputDecl::default() },
            ..RuntimeDecl::default()
        }
    }
}

/// How a runtime ends whenever it is started, what it emits, what it reads and whether its writes are refused.
#[derive(Clone, Debug)]
pub struct Fate {
    pub ended: Ended,
    /// `None` is a topic nobody knows.
    pub emits: Vec<Option<usize>>,
    /// Of the runtimes that ended well before it, these (by chance) wrote data it reads.
    pub reads: u64,
    pub refused: bool,
}

impl Fate {
    pub fn random(random: &mut Random, topics: usize) -> Self {
        let ended = match random.below(12) {
            0 => Ended::Failed,
            1 => Ended::Skipped,
            2 => Ended::Suspended,
            3 => Ended::GuardSkip,
            _ => Ended::Success,
        };
        let mut emits = Vec::new();
        for _ in 0..random.below(4) {
            if random.chance(55) {
                emits.push(random.chance(93).then(|| random.below(topics)));
            }
        }
        let reads = random.next() & random.next() & random.next();
        Self { ended, emits, reads, refused: random.chance(12) }
    }
}
