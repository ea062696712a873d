//! A plan for people and tools: the `covel plan` document and its text, Mermaid and DOT forms.
//!
//! Layers here are those of a turn in which every auto and scheduled runtime of a stage is due. An edge goes from
//! what is waited for to who waits, and carries the line of the waiter's manifest that caused it.

use std::fmt::Write as _;

use fixedbitset::FixedBitSet;
use serde::{Deserialize, Serialize};

use crate::{
    archive::PlanHandle,
    diagnostic::Diagnostic,
    hazard::{EffectTable, EffectsPolicy},
    layer::layer,
    plan::{ArchivedEdgeKind, ArchivedEdgeRow, NONE, RuntimeIx, Stage, UNSTAGED},
};

/// The `covel plan --format json` document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDocument {
    /// Digest that names the plan.
    pub digest: String,
    /// What is done about runtimes that touch the same thing; layers are as this policy runs them.
    #[serde(default, skip_serializing_if = "EffectsPolicy::is_warn")]
    pub effects: EffectsPolicy,
    /// The five stages in order.
    pub stages: Vec<StageView>,
    /// Every edge, by waiter and line.
    pub edges: Vec<EdgeView>,
    /// Event subscriptions, by topic and runtime.
    pub subscriptions: Vec<Subscription>,
    /// Findings of compiling and linking.
    pub diagnostics: Vec<Diagnostic>,
}

/// A stage with everything due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StageView {
    /// Stage word.
    pub stage: String,
    /// Runtime ids, layer by layer.
    pub layers: Vec<Vec<String>>,
    /// Runtimes that wait for each other, or for one that does, and so cannot run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cyclic: Vec<String>,
}

/// One edge between two runtimes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeView {
    /// What is waited for.
    pub from: String,
    /// Who waits.
    pub to: String,
    /// `need`, `after`, `input-one` or `input-all`.
    pub kind: String,
    /// The contract, when the edge goes through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Manifest file, relative to the package of `to`.
    pub file: String,
    /// Line from 1.
    pub line: u32,
}

/// A runtime that an event starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// Topic.
    pub topic: String,
    /// Runtime id.
    pub runtime_id: String,
}

/// The word for an edge kind.
pub fn edge_kind_word(kind: &ArchivedEdgeKind) -> &'static str {
    match kind {
        ArchivedEdgeKind::Need => "need",
        ArchivedEdgeKind::After => "after",
        ArchivedEdgeKind::InputOne => "input-one",
        ArchivedEdgeKind::InputAll => "input-all",
    }
}

impl PlanDocument {
    /// Describes a plan.
    pub fn of(plan: &PlanHandle, diagnostics: &[Diagnostic]) -> PlanDocument {
        Self::with(plan, diagnostics, None)
    }

    /// Describes a plan as policy `strict` runs it: no two runtimes that touch the same thing in one layer.
    pub fn strict(plan: &PlanHandle, diagnostics: &[Diagnostic], effects: &EffectTable) -> PlanDocument {
        Self::with(plan, diagnostics, Some(effects))
    }

    fn with(plan: &PlanHandle, diagnostics: &[Diagnostic], effects: Option<&EffectTable>) -> PlanDocument {
        let id = |ix: RuntimeIx| plan.runtime(ix).id.as_str().to_owned();
        let nothing = FixedBitSet::with_capacity(plan.runtime_count());
        let stages = Stage::ALL
            .into_iter()
            .map(|stage| {
                let mut due = FixedBitSet::with_capacity(plan.runtime_count());
                due.extend(plan.stage_runtimes(stage).map(|ix| ix as usize).filter(|ix| {
                    // Auto and scheduled; event and manual runtimes with a stage wait to be called.
                    plan.runtimes[*ix].trigger <= 1
                }));
                let mut layering = layer(plan, &due, &nothing);
                if let Some(effects) = effects {
                    layering = layering.serialized(plan, effects);
                }
                StageView {
                    stage: stage.as_str().to_owned(),
                    layers: layering.layers.iter().map(|layer| layer.iter().map(|ix| id(*ix)).collect()).collect(),
                    cyclic: layering.cyclic.iter().map(|ix| id(*ix)).collect(),
                }
            })
            .collect();
        let mut edges = Vec::new();
        for waiter in (0..plan.runtime_count() as u32).map(RuntimeIx) {
            for edge in plan.edges_of(waiter) {
                for target in edge_targets(plan, edge) {
                    let contract = edge.contract.to_native();
                    edges.push(EdgeView {
                        from: id(target),
                        to: id(waiter),
                        kind: edge_kind_word(&edge.kind).to_owned(),
                        contract: (contract != NONE).then(|| plan.contracts[contract as usize].as_str().to_owned()),
                        file: plan.file_of(edge).to_owned(),
                        line: edge.line.to_native(),
                    });
                }
            }
        }
        edges.sort_by(|a, b| (&a.to, a.line, &a.from, &a.kind).cmp(&(&b.to, b.line, &b.from, &b.kind)));
        let subscriptions = (0..plan.topics.len() as u32)
            .flat_map(|topic| plan.subscribers_of(topic).map(move |ix| (topic, ix)))
            .map(|(topic, ix)| Subscription {
                topic: plan.topics[topic as usize].as_str().to_owned(),
                runtime_id: id(ix),
            })
            .collect();
        PlanDocument {
            digest: plan.digest().as_str().to_owned(),
            effects: if effects.is_some() { EffectsPolicy::Strict } else { EffectsPolicy::Warn },
            stages,
            edges,
            subscriptions,
            diagnostics: diagnostics.to_vec(),
        }
    }

    /// Plain text, one fact a line.
    pub fn to_text(&self) -> String {
        let mut out = format!("plan {}\n", self.digest);
        if !self.effects.is_warn() {
            out.push_str("effects strict: runtimes that touch the same thing run one after another, by id\n");
        }
        for stage in self.stages.iter().filter(|stage| !stage.layers.is_empty() || !stage.cyclic.is_empty()) {
            let _ = writeln!(out, "\n{}", stage.stage);
            for (depth, layer) in stage.layers.iter().enumerate() {
                let _ = writeln!(out, "  layer {depth}: {}", layer.join(", "));
            }
            if !stage.cyclic.is_empty() {
                let _ = writeln!(out, "  cannot run (they wait for each other): {}", stage.cyclic.join(", "));
            }
        }
        if !self.edges.is_empty() {
            let _ = writeln!(out, "\nedges");
        }
        for edge in &self.edges {
            let over = edge.contract.as_ref().map(|contract| format!(" over {contract}")).unwrap_or_default();
            let _ = writeln!(out, "  {} -> {}  {}{over}  {}:{}", edge.from, edge.to, edge.kind, edge.file, edge.line);
        }
        if !self.subscriptions.is_empty() {
            let _ = writeln!(out, "\nevents");
        }
        for subscription in &self.subscriptions {
            let _ = writeln!(out, "  {} -> {}", subscription.topic, subscription.runtime_id);
        }
        if !self.diagnostics.is_empty() {
            let _ = writeln!(out, "\nfindings");
        }
        for diagnostic in &self.diagnostics {
            let _ = writeln!(out, "  {}", diagnostic.to_string().replace('\n', "\n  "));
        }
        out
    }

    /// A Mermaid flowchart: stages as boxes, `after` dotted, events as rounded nodes.
    pub fn to_mermaid(&self) -> String {
        let nodes = Nodes::of(self);
        // Quoted labels still give a meaning to quotes, backticks, `#`, Markdown signs and tags.
        let label = |text: &str| {
            text.chars().fold(String::new(), |mut label, sign| {
                if sign.is_alphanumeric() || " ./:-@".contains(sign) {
                    label.push(sign);
                } else if sign.is_control() {
                    label.push(' ');
                } else {
                    let _ = write!(label, "#{};", u32::from(sign));
                }
                label
            })
        };
        let mut out = String::from("flowchart LR\n");
        for (stage, members) in nodes.groups(self) {
            let _ = writeln!(out, "  subgraph {}[\"{}\"]", stage.replace('-', "_"), label(stage));
            for (node, id) in members {
                let _ = writeln!(out, "    r{node}[\"{}\"]", label(id));
            }
            out.push_str("  end\n");
        }
        for edge in &self.edges {
            if let (Some(from), Some(to)) = (nodes.find(&edge.from), nodes.find(&edge.to)) {
                let arrow = if edge.kind == "after" { "-.->" } else { "-->" };
                let _ = writeln!(out, "  r{from} {arrow}|\"{} {}:{}\"| r{to}", edge.kind, label(&edge.file), edge.line);
            }
        }
        let topics = topics(self);
        for (place, topic) in topics.iter().enumerate() {
            let _ = writeln!(out, "  t{place}([\"{}\"])", label(topic));
        }
        for subscription in &self.subscriptions {
            let place = topics.iter().position(|topic| *topic == subscription.topic);
            if let (Some(place), Some(to)) = (place, nodes.find(&subscription.runtime_id)) {
                let _ = writeln!(out, "  t{place} ==> r{to}");
            }
        }
        out
    }

    /// A Graphviz graph.
    pub fn to_dot(&self) -> String {
        let nodes = Nodes::of(self);
        let quote = |text: &str| {
            format!(
                "\"{}\"",
                // Entities are read in every string.
                text.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
            )
        };
        let mut out = String::from("digraph plan {\n  rankdir=LR;\n  node [shape=box];\n");
        for (place, (stage, members)) in nodes.groups(self).into_iter().enumerate() {
            let _ = writeln!(out, "  subgraph cluster_{place} {{\n    label={};", quote(stage));
            for (_, id) in members {
                // With a label of its own: a name that begins with `%` would be shown as a number.
                let _ = writeln!(out, "    {0} [label={0}];", quote(id));
            }
            out.push_str("  }\n");
        }
        for edge in &self.edges {
            let style = if edge.kind == "after" { ", style=dotted" } else { "" };
            let label = quote(&format!("{} {}:{}", edge.kind, edge.file, edge.line));
            let _ = writeln!(out, "  {} -> {} [label={label}{style}];", quote(&edge.from), quote(&edge.to));
        }
        for topic in topics(self) {
            let _ = writeln!(out, "  {} [shape=oval, label={}];", quote(&format!("event {topic}")), quote(topic));
        }
        for subscription in &self.subscriptions {
            let event = quote(&format!("event {}", subscription.topic));
            let _ = writeln!(out, "  {event} -> {} [style=bold];", quote(&subscription.runtime_id));
        }
        out.push_str("}\n");
        out
    }
}

/// What an edge waits for.
pub fn edge_targets(plan: &PlanHandle, edge: &ArchivedEdgeRow) -> Vec<RuntimeIx> {
    match (edge.contract.to_native(), edge.runtime.to_native()) {
        (NONE, NONE) => Vec::new(),
        (NONE, runtime) => vec![RuntimeIx(runtime)],
        (contract, _) => plan.providers_of(contract).collect(),
    }
}

fn topics(document: &PlanDocument) -> Vec<&str> {
    let mut topics: Vec<&str> = document.subscriptions.iter().map(|one| one.topic.as_str()).collect();
    topics.sort_unstable();
    topics.dedup();
    topics
}

/// Every runtime the document names, numbered by id.
struct Nodes<'a>(Vec<&'a str>);

impl<'a> Nodes<'a> {
    fn of(document: &'a PlanDocument) -> Self {
        let staged = document.stages.iter().flat_map(|stage| stage.layers.iter().flatten().chain(&stage.cyclic));
        let ends = document.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let listening = document.subscriptions.iter().map(|one| &one.runtime_id);
        let mut ids: Vec<&str> = staged.chain(ends).chain(listening).map(String::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.0.binary_search(&id).ok()
    }

    /// Stages with their runtimes, then the rest as `called`.
    fn groups(&self, document: &'a PlanDocument) -> Vec<(&'a str, Vec<(usize, &'a str)>)> {
        let mut placed = FixedBitSet::with_capacity(self.0.len());
        let mut groups = Vec::new();
        for stage in &document.stages {
            let members: Vec<(usize, &str)> = stage
                .layers
                .iter()
                .flatten()
                .chain(&stage.cyclic)
                .filter_map(|id| Some((self.find(id)?, id.as_str())))
                .collect();
            placed.extend(members.iter().map(|(node, _)| *node));
            if !members.is_empty() {
                groups.push((stage.stage.as_str(), members));
            }
        }
        let rest: Vec<(usize, &str)> = self
            .0
            .iter()
            .enumerate()
            .filter(|(node, _)| !placed.contains(*node))
            .map(|(node, id)| (node, *id))
            .collect();
        if !rest.is_empty() {
            groups.push(("called", rest));
        }
        groups
    }
}

/// One runtime explained: who it waits for, who waits for it, what starts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhyDocument {
    /// The runtime.
    pub runtime_id: String,
    /// Stage word, absent for event and manual runtimes without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What starts it, as a sentence.
    pub starts: String,
    /// Its dependencies as sentences, in manifest order.
    pub waits_for: Vec<String>,
    /// Edges from it to those that wait for it.
    pub awaited_by: Vec<EdgeView>,
}

impl WhyDocument {
    /// Explains a runtime of a plan; `None` when there is none with this id.
    pub fn of(plan: &PlanHandle, runtime_id: &str) -> Option<WhyDocument> {
        let ix = plan.runtime_by_id(runtime_id)?;
        let row = plan.runtime(ix);
        let stage =
            Stage::ALL.into_iter().find(|stage| *stage as u8 == row.stage).map(|stage| stage.as_str().to_owned());
        let mut starts = match row.trigger {
            _ if row.subagent_only => "a caller that delegates to it".to_owned(),
            0 => "every turn".to_owned(),
            1 => format!("every turn whose number {} divides", row.interval.to_native()),
            2 => "a call by name".to_owned(),
            _ => match row.topic.to_native() {
                NONE => "an event".to_owned(),
                topic => format!("the event `{}`", plan.topics[topic as usize].as_str()),
            },
        };
        for (value, text) in [
            (row.start_turn.to_native(), "from turn"),
            (row.cooldown_turns.to_native(), "with a pause of turns:"),
            (row.max_trigger_count.to_native(), "at most times:"),
        ] {
            if value > 0 {
                let _ = write!(starts, ", {text} {value}");
            }
        }
        let waits_for = plan.edges_of(ix).iter().map(|edge| sentence(plan, edge)).collect();
        let awaited_by = PlanDocument::of(plan, &[]).edges.into_iter().filter(|edge| edge.from == runtime_id).collect();
        debug_assert!(row.stage as usize <= UNSTAGED);
        Some(WhyDocument { runtime_id: runtime_id.to_owned(), stage, starts, waits_for, awaited_by })
    }
}

fn sentence(plan: &PlanHandle, edge: &ArchivedEdgeRow) -> String {
    let names: Vec<&str> = edge_targets(plan, edge).iter().map(|ix| plan.runtime(*ix).id.as_str()).collect();
    let listed = if names.is_empty() { "which no active runtime gives".to_owned() } else { names.join(", ") };
    let what = match edge.contract.to_native() {
        NONE if names.is_empty() => "a runtime that is not active".to_owned(),
        NONE => listed,
        contract => {
            let how = if edge.all { "every provider" } else { "a provider" };
            format!("{how} of {} ({listed})", plan.contracts[contract as usize].as_str())
        }
    };
    let gate = if edge.required { "; without its success this one is skipped" } else { "" };
    let scope = if edge.session_scope { " of the session's setup" } else { "" };
    let word = edge_kind_word(&edge.kind);
    format!("{word}: {what}{scope}{gate} ({}:{})", plan.file_of(edge), edge.line.to_native())
}
