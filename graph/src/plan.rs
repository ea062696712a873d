//! A linked plan: the active fragments of a session as arrays.
//!
//! Built once at activation with petgraph, archived with rkyv and named by its digest; a turn only walks it.
//! Rows are sorted by (stage, name), so a runtime's index is its place in every table.

use rkyv::{Archive, Deserialize as RkyvDeserialize, Serialize as RkyvSerialize};
use serde::{Deserialize, Serialize};

use crate::compat::Compatibility;

/// Dense index of a runtime inside one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeIx(pub u32);

impl RuntimeIx {
    /// As an array index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stage. Stages are strict barriers, in this order.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Archive,
    RkyvSerialize,
    RkyvDeserialize,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Stage {
    /// Once per session and package version, before play.
    Setup = 0,
    /// Before the story.
    PreTurn = 1,
    /// The story.
    Narrative = 2,
    /// After the story.
    PostTurn = 3,
    /// Last.
    Audit = 4,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 5] = [Stage::Setup, Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit];

    /// The manifest word.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Setup => "setup",
            Stage::PreTurn => "pre-turn",
            Stage::Narrative => "narrative",
            Stage::PostTurn => "post-turn",
            Stage::Audit => "audit",
        }
    }

    /// Reads the manifest word.
    pub fn parse(text: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == text)
    }
}

/// "No index" in a table.
pub const NONE: u32 = u32::MAX;
/// Row of [`Plan::stage_starts`] for runtimes without a stage (event and manual ones).
pub const UNSTAGED: usize = 5;
/// Version of the archive layout; another version is rebuilt, never read.
pub const PLAN_FORMAT: u32 = 3;
/// Item of [`Plan::slots`] for an input that has nothing to compare.
pub const SLOT_UNCHECKED: u32 = 3;

/// An active package version.
#[derive(Clone, Debug, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct PlanPlugin {
    /// Package id.
    pub id: String,
    /// Package version.
    pub version: String,
    /// Digest of its fragment.
    pub fragment: String,
    /// What it may do beyond computing, as `kind subject` lines, sorted: `http GET https://a.example`,
    /// `service-write a.b@1`, `service-read a.b@1`, `hook PreToolUse`, `extension point@1`, `wire name`,
    /// `action name`, `command name`, `tool name`, `imports service@1`, `server-code`.
    pub capabilities: Vec<String>,
}

/// One runtime row.
#[derive(Clone, Debug, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct RuntimeRow {
    /// Full id.
    pub id: String,
    /// Index into [`Plan::plugins`].
    pub plugin: u32,
    /// Index into the fragment's `runtimes`.
    pub local: u32,
    /// `Stage as u8`, or 5 without a stage.
    pub stage: u8,
    /// 0 function, 1 agent.
    pub kind: u8,
    /// 0 auto, 1 scheduled, 2 manual, 3 event.
    pub trigger: u8,
    /// 0 story, 1 plugin, 2 system.
    pub visibility: u8,
    /// Index into [`Plan::topics`], or [`NONE`].
    pub topic: u32,
    /// Index into [`Plan::contracts`] of the output contract, or [`NONE`].
    pub contract: u32,
    /// Interval in logical turns, 0 = none.
    pub interval: u32,
    /// First logical turn, 0 = none.
    pub start_turn: u32,
    /// Turns between runs.
    pub cooldown_turns: u32,
    /// Most runs, 0 = no limit.
    pub max_trigger_count: u32,
    /// Event or manual activation runs as a durable job.
    pub background: bool,
    /// Only reachable by delegation.
    pub subagent_only: bool,
}

/// What an edge means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Archive, RkyvSerialize, RkyvDeserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum EdgeKind {
    /// Order and success gate.
    Need = 0,
    /// Order only.
    After = 1,
    /// Turn-scoped input from one provider: order, gate when required.
    InputOne = 2,
    /// Turn-scoped input from all providers.
    InputAll = 3,
}

/// One declared dependency of a runtime: on a runtime or on a contract's providers.
#[derive(Clone, Debug, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct EdgeRow {
    /// Kind.
    pub kind: EdgeKind,
    /// The runtime waited for, or [`NONE`] when the dependency is on a contract or names an absent runtime.
    pub runtime: u32,
    /// The contract waited for, or [`NONE`].
    pub contract: u32,
    /// Every provider, not any one.
    pub all: bool,
    /// Gates: a need, or a required input.
    pub required: bool,
    /// Index into the fragment runtime's `inputs` for input edges, else [`NONE`].
    pub input: u32,
    /// Satisfied by the session's setup record instead of this turn.
    pub session_scope: bool,
    /// File of the line that caused the edge: index into [`Plan::files`].
    pub file: u32,
    /// Its line.
    pub line: u32,
    /// Its column.
    pub column: u32,
}

/// Rows grouped by an index: group `i` is `items[starts[i]..starts[i + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct Csr {
    /// One more than there are groups.
    pub starts: Vec<u32>,
    /// All groups, one after another.
    pub items: Vec<u32>,
}

/// A linked plan.
#[derive(Clone, Debug, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct Plan {
    /// [`PLAN_FORMAT`].
    pub format: u32,
    /// Active packages, by id.
    pub plugins: Vec<PlanPlugin>,
    /// Runtimes by (stage, id); unstaged last.
    pub runtimes: Vec<RuntimeRow>,
    /// Stage `s` has the rows `stage_starts[s]..stage_starts[s + 1]`; five stages, then unstaged.
    pub stage_starts: [u32; 7],
    /// Runtime `i` waits for `edges[edge_starts[i]..edge_starts[i + 1]]`.
    pub edge_starts: Vec<u32>,
    /// All edges by waiting runtime.
    pub edges: Vec<EdgeRow>,
    /// Package-relative manifest files that edges come from, sorted.
    pub files: Vec<String>,
    /// Contract ids named anywhere, sorted.
    pub contracts: Vec<String>,
    /// Contract -> runtimes whose output it is.
    pub providers: Csr,
    /// Topics declared or subscribed to, sorted.
    pub topics: Vec<String>,
    /// Topic -> runtimes with an event trigger on it.
    pub subscribers: Csr,
    /// The same edges, as the turn's layering reads them.
    pub order: Order,
    /// Runtime -> for each of its inputs, in manifest order, a [`crate::Compatibility`] as a number, or
    /// [`SLOT_UNCHECKED`].
    pub slots: Csr,
}

/// The edges of a plan turned round (from what is waited for to who waits), so that layering is two passes
/// over flat arrays. Derived from [`Plan::edges`] and [`Plan::providers`] once, at link time.
#[derive(Clone, Debug, Default, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct Order {
    /// Runtime -> runtimes that wait for it whatever else happens (`after`, direct and `all` needs, inputs).
    pub hard: Csr,
    /// The waiting runtime of each choice: a need on one provider of a contract. EVT-4
    pub choice_waiter: Vec<u32>,
    /// Choice -> the providers any of which releases it.
    pub choice_providers: Csr,
    /// Runtime -> choices it releases.
    pub releases: Csr,
    /// Runtimes by id alone.
    pub by_id: Vec<u32>,
    /// Place of each runtime in [`Order::by_id`].
    pub id_rank: Vec<u32>,
}

impl Csr {
    /// Groups `pairs` of (group, item); items keep their order inside a group.
    pub fn group(groups: usize, pairs: &[(u32, u32)]) -> Csr {
        let mut starts = vec![0u32; groups + 1];
        for (group, _) in pairs {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut items = vec![0; pairs.len()];
        for (group, item) in pairs {
            let slot = &mut next[*group as usize];
            items[*slot as usize] = *item;
            *slot += 1;
        }
        Csr { starts, items }
    }

    /// The items of a group; empty when there is no such group.
    pub fn row(&self, group: u32) -> &[u32] {
        let group = group as usize;
        match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(start), Some(end)) => &self.items[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

impl ArchivedCsr {
    /// The items of a group; empty when there is no such group.
    pub fn row(&self, group: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        let group = group as usize;
        let items = match (self.starts.get(group), self.starts.get(group + 1)) {
            (Some(start), Some(end)) => &self.items[start.to_native() as usize..end.to_native() as usize],
            _ => &[],
        };
        items.iter().map(|item| item.to_native())
    }
}

impl ArchivedPlan {
    /// Number of runtimes.
    pub fn runtime_count(&self) -> usize {
        self.runtimes.len()
    }

    /// The runtime with this id.
    pub fn runtime_by_id(&self, id: &str) -> Option<RuntimeIx> {
        let by_id = &self.order.by_id;
        let place = by_id.binary_search_by(|ix| self.runtimes[ix.to_native() as usize].id.as_str().cmp(id)).ok()?;
        Some(RuntimeIx(by_id[place].to_native()))
    }

    /// The row of a runtime.
    ///
    /// # Panics
    /// When the index comes from another plan.
    pub fn runtime(&self, ix: RuntimeIx) -> &ArchivedRuntimeRow {
        &self.runtimes[ix.index()]
    }

    /// The runtimes of a stage, as a range of indexes.
    pub fn stage_runtimes(&self, stage: Stage) -> std::ops::Range<u32> {
        self.stage_starts[stage as usize].to_native()..self.stage_starts[stage as usize + 1].to_native()
    }

    /// What a runtime waits for, in manifest order.
    ///
    /// # Panics
    /// When the index comes from another plan.
    pub fn edges_of(&self, ix: RuntimeIx) -> &[ArchivedEdgeRow] {
        let start = self.edge_starts[ix.index()].to_native() as usize;
        let end = self.edge_starts[ix.index() + 1].to_native() as usize;
        &self.edges[start..end]
    }

    /// The manifest file an edge comes from, relative to the package of the runtime that waits.
    ///
    /// # Panics
    /// When the edge comes from another plan.
    pub fn file_of(&self, edge: &ArchivedEdgeRow) -> &str {
        &self.files[edge.file.to_native() as usize]
    }

    /// How the schema an input accepts compares with what its source publishes; `None` when there is nothing to
    /// compare. An incompatible one never binds. COM-1
    pub fn input_compatibility(&self, ix: RuntimeIx, input: usize) -> Option<Compatibility> {
        match self.slots.row(ix.0).nth(input)? {
            0 => Some(Compatibility::Compatible),
            1 => Some(Compatibility::Indeterminate),
            2 => Some(Compatibility::Incompatible),
            _ => None,
        }
    }

    /// Index of a contract id.
    pub fn contract_by_id(&self, id: &str) -> Option<u32> {
        self.contracts.binary_search_by(|contract| contract.as_str().cmp(id)).ok().map(|ix| ix as u32)
    }

    /// The runtimes whose output a contract is, in index order.
    pub fn providers_of(&self, contract: u32) -> impl ExactSizeIterator<Item = RuntimeIx> + Clone + '_ {
        self.providers.row(contract).map(RuntimeIx)
    }

    /// Index of a topic.
    pub fn topic_by_id(&self, id: &str) -> Option<u32> {
        self.topics.binary_search_by(|topic| topic.as_str().cmp(id)).ok().map(|ix| ix as u32)
    }

    /// The runtimes with an event trigger on a topic, in index order.
    pub fn subscribers_of(&self, topic: u32) -> impl ExactSizeIterator<Item = RuntimeIx> + Clone + '_ {
        self.subscribers.row(topic).map(RuntimeIx)
    }
}
