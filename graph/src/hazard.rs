//! Effects hazards: runtimes that may run at once and touch the same thing.
//!
//! What a runtime touches is what its manifest says, and what follows from its tools and visibility; the second adds
//! to the first and never takes away. Policy `warn` lists the pairs; policy `strict` splits a layer so that no pair
//! runs at once. What a handler writes without a tool is not known here and is not guessed.

use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;
use serde::{Deserialize, Serialize};

use crate::{
    fragment::{Fragment, RuntimeDecl, Visibility},
    limits::MAX_HAZARDS_LISTED,
    plan::{ArchivedPlan, RuntimeIx},
};

/// Touches everything, as far as anyone knows.
const UNKNOWN: &str = "unknown:*";

/// What is done about runtimes of one layer that touch the same thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectsPolicy {
    /// They run at once; linking warns of each pair.
    #[default]
    Warn,
    /// They run one after another, by id.
    Strict,
}

impl EffectsPolicy {
    /// Is it the policy that only warns?
    pub fn is_warn(&self) -> bool {
        *self == EffectsPolicy::Warn
    }
}

/// What one runtime touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// Keys read. Own data appears as `plugin-data:<plugin>:<namespace>`.
    pub reads: BTreeSet<String>,
    /// Keys written.
    pub writes: BTreeSet<String>,
    /// Its writes do not disturb those of another that says the same.
    pub parallel_safe: bool,
}

impl Effects {
    /// Declared and derived effects of a runtime.
    pub fn of(fragment: &Fragment, runtime: &RuntimeDecl) -> Effects {
        let own = |key: &str| match key.strip_prefix("plugin-data:self:") {
            Some(namespace) => format!("plugin-data:{}:{namespace}", fragment.plugin_id),
            None => key.to_owned(),
        };
        let mut effects = Effects {
            reads: runtime.effects.reads.iter().map(|key| own(key)).collect(),
            writes: runtime.effects.writes.iter().map(|key| own(key)).collect(),
            parallel_safe: runtime.effects.parallel_safe,
        };
        let agent = runtime.agent.iter().flat_map(|agent| &agent.builtin_tools);
        let function = runtime.function.iter().flat_map(|function| &function.builtin_tools);
        for tool in agent.chain(function) {
            effects.add_tool(fragment, tool);
        }
        if runtime.visibility == Visibility::Story {
            effects.writes.insert("narrative:*".into());
        }
        effects
    }

    fn add_tool(&mut self, fragment: &Fragment, tool: &str) {
        let data = || -> Vec<String> {
            let namespaces = fragment.data.iter().map(|data| data.namespace.as_str());
            let keys: Vec<String> =
                namespaces.map(|namespace| format!("plugin-data:{}:{namespace}", fragment.plugin_id)).collect();
            if keys.is_empty() { vec![UNKNOWN.into()] } else { keys }
        };
        match tool {
            "create-character" | "update-character" => {
                self.writes.insert("characters:*".into());
            }
            "get-character" | "list-characters" => {
                self.reads.insert("characters:*".into());
            }
            "sync-characters" => {
                self.reads.insert("characters:*".into());
                self.writes.insert("characters:*".into());
            }
            "render-ui" | "create-notification" => {
                self.writes.insert("ui:*".into());
            }
            "create-form" | "create-choices" => {
                self.writes.insert("interaction:*".into());
            }
            "plugin-data-set" | "plugin-data-set-batch" => self.writes.extend(data()),
            "plugin-data-get" | "plugin-data-list" => self.reads.extend(data()),
            "emit-event" => {
                self.writes.extend(fragment.events.iter().map(|event| format!("event:{}", event.topic)));
                if fragment.events.is_empty() {
                    self.writes.insert("event:*".into());
                }
            }
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// The first keys by which two runtimes disturb each other, as (key of this, key of the other).
    fn clash<'a>(&'a self, other: &'a Effects) -> Option<(&'a str, &'a str)> {
        let excused = |a: &str, b: &str| self.parallel_safe && other.parallel_safe && a != UNKNOWN && b != UNKNOWN;
        let both = self.writes.iter().flat_map(|a| other.writes.iter().map(move |b| (a, b)));
        let first = both.filter(|(a, b)| !excused(a, b));
        let second = self.writes.iter().flat_map(|a| other.reads.iter().map(move |b| (a, b)));
        let third = self.reads.iter().flat_map(|a| other.writes.iter().map(move |b| (a, b)));
        first.chain(second).chain(third).map(|(a, b)| (a.as_str(), b.as_str())).find(|(a, b)| meet(a, b))
    }
}

/// Do two keys speak of one thing? Symmetric.
fn meet(a: &str, b: &str) -> bool {
    let covers = |wide: &str, key: &str| {
        wide.strip_suffix('*').is_some_and(|start| start.ends_with(':') && key.starts_with(start))
    };
    a == b || a == UNKNOWN || b == UNKNOWN || covers(a, b) || covers(b, a)
}

/// Two runtimes of one layer that touch the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hazard {
    /// The first by id.
    pub first: String,
    /// The second by id.
    pub second: String,
    /// What the first touches.
    pub first_key: String,
    /// What the second touches.
    pub second_key: String,
}

/// The effects of every runtime of a plan, by index.
#[derive(Clone, Debug, Default)]
pub struct EffectTable {
    rows: Vec<Effects>,
}

impl EffectTable {
    /// Reads the effects of a plan's runtimes from its fragments, found by package id; a runtime whose fragment is
    /// not given touches nothing.
    pub fn of<'a>(plan: &ArchivedPlan, fragments: impl IntoIterator<Item = &'a Fragment>) -> EffectTable {
        let mut by_plugin: Vec<Option<&Fragment>> = vec![None; plan.plugins.len()];
        for fragment in fragments {
            let place = plan.plugins.binary_search_by(|plugin| plugin.id.as_str().cmp(&fragment.plugin_id));
            if let Ok(place) = place {
                by_plugin[place].get_or_insert(fragment);
            }
        }
        let rows = plan
            .runtimes
            .iter()
            .map(|row| {
                let fragment = by_plugin.get(row.plugin.to_native() as usize).copied().flatten();
                let runtime = fragment.and_then(|fragment| fragment.runtimes.get(row.local.to_native() as usize));
                fragment.zip(runtime).map(|(fragment, runtime)| Effects::of(fragment, runtime)).unwrap_or_default()
            })
            .collect();
        EffectTable { rows }
    }

    /// The effects of a runtime.
    pub fn get(&self, ix: RuntimeIx) -> Option<&Effects> {
        self.rows.get(ix.index())
    }

    fn clash(&self, a: RuntimeIx, b: RuntimeIx) -> Option<(&str, &str)> {
        self.get(a)?.clash(self.get(b)?)
    }

    /// Members of a layer that touch anything, by id.
    fn touching(&self, plan: &ArchivedPlan, layer: &[RuntimeIx]) -> Vec<RuntimeIx> {
        let touches = |ix: &RuntimeIx| self.get(*ix).is_some_and(|effects| !effects.is_empty());
        let mut members: Vec<RuntimeIx> = layer.iter().copied().filter(touches).collect();
        members.sort_unstable_by_key(|ix| plan.order.id_rank[ix.index()].to_native());
        members.dedup();
        members
    }
}

/// The hazards of one layer, by ids, at most [`MAX_HAZARDS_LISTED`]. Policy `warn`.
pub fn hazards(plan: &ArchivedPlan, effects: &EffectTable, layer: &[RuntimeIx]) -> Vec<Hazard> {
    let members = effects.touching(plan, layer);
    let mut found = Vec::new();
    for (place, a) in members.iter().enumerate() {
        for b in &members[place + 1..] {
            if let Some((first_key, second_key)) = effects.clash(*a, *b) {
                found.push(Hazard {
                    first: plan.runtime(*a).id.as_str().to_owned(),
                    second: plan.runtime(*b).id.as_str().to_owned(),
                    first_key: first_key.to_owned(),
                    second_key: second_key.to_owned(),
                });
                if found.len() >= MAX_HAZARDS_LISTED {
                    return found;
                }
            }
        }
    }
    found
}

/// Splits a layer into sub-layers, to be run one after another, of which none holds a hazard. Of two that clash the
/// first by id runs first; what clashes with nothing runs at once. Policy `strict`.
pub fn serialize_layer(plan: &ArchivedPlan, effects: &EffectTable, layer: &[RuntimeIx]) -> Vec<Vec<RuntimeIx>> {
    let mut members: Vec<RuntimeIx> = layer.to_vec();
    members.sort_unstable_by_key(|ix| plan.order.id_rank[ix.index()].to_native());
    members.dedup();
    let mut levels: Vec<Vec<RuntimeIx>> = Vec::new();
    for member in members {
        let after = levels.iter().rposition(|level| level.iter().any(|other| effects.clash(*other, member).is_some()));
        let place = after.map_or(0, |place| place + 1);
        if place == levels.len() {
            levels.push(Vec::new());
        }
        levels[place].push(member);
    }
    levels
}

/// Every layer of a plan in which everything is due: each stage's, then each topic's subscribers'.
pub(crate) fn full_layers(plan: &ArchivedPlan) -> Vec<Vec<RuntimeIx>> {
    let count = plan.runtime_count();
    let nothing = FixedBitSet::with_capacity(count);
    let mut sets: Vec<FixedBitSet> = Vec::new();
    for stage in crate::plan::Stage::ALL {
        let mut due = FixedBitSet::with_capacity(count);
        // Auto and scheduled: manual runtimes run when called, event runtimes with their topic.
        due.extend(plan.stage_runtimes(stage).map(|ix| ix as usize).filter(|ix| plan.runtimes[*ix].trigger <= 1));
        sets.push(due);
    }
    for topic in 0..plan.topics.len() as u32 {
        let mut due = FixedBitSet::with_capacity(count);
        due.extend(plan.subscribers_of(topic).map(RuntimeIx::index));
        sets.push(due);
    }
    let alone = |set: &FixedBitSet| set.count_ones(..) > 1;
    sets.iter().filter(|set| alone(set)).flat_map(|set| crate::layer::layer(plan, set, &nothing).layers).collect()
}
