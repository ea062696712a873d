//! A linked plan: the active fragments of a session as arrays.
//!
//! Built once at activation with petgraph, archived with rkyv and named by its digest; a turn only walks it.
//! Rows are sorted by (stage, name), so a runtime's index is its place in every table.

use rkyv::{Archive, Deserialize as RkyvDeserialize, Serialize as RkyvSerialize};
use serde::{Deserialize, Serialize};

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
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
    Archive, RkyvSerialize, RkyvDeserialize, Serialize, Deserialize,
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
    pub const ALL: [Stage; 5] =
        [Stage::Setup, Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit];

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
pub const PLAN_FORMAT: u32 = 1;

/// An active package version.
#[derive(Clone, Debug, PartialEq, Archive, RkyvSerialize, RkyvDeserialize)]
pub struct PlanPlugin {
    /// Package id.
    pub id: String,
    /// Package version.
    pub version: String,
    /// Digest of its fragment.
    pub fragment: String,
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
    /// File of the line that caused the edge, package-relative.
    pub file: String,
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
    /// Contract ids named anywhere, sorted.
    pub contracts: Vec<String>,
    /// Contract -> runtimes whose output it is.
    pub providers: Csr,
    /// Topics declared or subscribed to, sorted.
    pub topics: Vec<String>,
    /// Topic -> runtimes with an event trigger on it.
    pub subscribers: Csr,
}
