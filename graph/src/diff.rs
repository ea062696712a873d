//! What changed between two plans, for people and tools: `covel plan --diff`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::{Deserialize, Serialize};

use crate::{
    archive::PlanHandle,
    explain::{EdgeView, PlanDocument},
    plan::{ArchivedRuntimeRow, NONE, Stage},
};

/// The differences of two plans. Every list is sorted; a plan compared with itself gives empty ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffDocument {
    /// Digest of the first plan.
    pub from: String,
    /// Digest of the second.
    pub to: String,
    /// Packages by id; a changed one has another version or content.
    pub plugins: Changes,
    /// Runtimes by id.
    pub runtimes: Changes,
    /// Edges between runtimes; one that only moved to another line is not listed.
    pub edges: Changes,
    /// Contracts named anywhere; a changed one has other publishers.
    pub contracts: Changes,
    /// Event topics; a changed one has other subscribers.
    pub topics: Changes,
    /// What packages may do beyond computing (`PLUGIN: CAPABILITY`), such as write services and HTTP origins.
    pub capabilities: Changes,
}

/// Names on one side only, and names on both with something else behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Only in the second.
    pub added: Vec<String>,
    /// Only in the first.
    pub removed: Vec<String>,
    /// In both, with the differences.
    pub changed: Vec<Change>,
}

/// One name with what changed behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The name.
    pub name: String,
    /// Differences as `what: before -> after`.
    pub what: Vec<String>,
}

impl Changes {
    /// Is nothing different?
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// A side: names, each with its facts in a fixed order.
type Side = BTreeMap<String, Vec<(&'static str, String)>>;

fn compare(before: &Side, after: &Side) -> Changes {
    let mut changes = Changes::default();
    for (name, facts) in before {
        let Some(now) = after.get(name) else {
            changes.removed.push(name.clone());
            continue;
        };
        let what: Vec<String> = facts
            .iter()
            .zip(now)
            .filter(|((_, old), (_, new))| old != new)
            .map(|((fact, old), (_, new))| format!("{fact}: {old} -> {new}"))
            .collect();
        if !what.is_empty() {
            changes.changed.push(Change { name: name.clone(), what });
        }
    }
    changes.added.extend(after.keys().filter(|name| !before.contains_key(*name)).cloned());
    changes
}

impl DiffDocument {
    /// The differences from one plan to another.
    pub fn of(from: &PlanHandle, to: &PlanHandle) -> DiffDocument {
        let both = |side: fn(&PlanHandle) -> Side| compare(&side(from), &side(to));
        DiffDocument {
            from: from.digest().as_str().to_owned(),
            to: to.digest().as_str().to_owned(),
            plugins: both(plugins),
            runtimes: both(runtimes),
            edges: both(edges),
            contracts: both(contracts),
            topics: both(topics),
            capabilities: both(capabilities),
        }
    }

    /// Is nothing different?
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(|(_, changes)| changes.is_empty())
    }

    fn parts(&self) -> [(&'static str, &Changes); 6] {
        [
            ("packages", &self.plugins),
            ("runtimes", &self.runtimes),
            ("edges", &self.edges),
            ("contracts", &self.contracts),
            ("topics", &self.topics),
            ("capabilities", &self.capabilities),
        ]
    }

    /// Plain text: `+` added, `-` removed, `~` changed.
    pub fn to_text(&self) -> String {
        let mut out = format!("plan {}\n  -> {}\n", self.from, self.to);
        if self.is_empty() {
            out.push_str("\nno difference\n");
        }
        for (part, changes) in self.parts() {
            if changes.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{part}");
            for name in &changes.added {
                let _ = writeln!(out, "  + {name}");
            }
            for name in &changes.removed {
                let _ = writeln!(out, "  - {name}");
            }
            for change in &changes.changed {
                let _ = writeln!(out, "  ~ {}", change.name);
                for what in &change.what {
                    let _ = writeln!(out, "      {what}");
                }
            }
        }
        out
    }
}

fn plugins(plan: &PlanHandle) -> Side {
    let facts = |plugin: &crate::plan::ArchivedPlanPlugin| {
        vec![("version", plugin.version.as_str().to_owned()), ("content", short(plugin.fragment.as_str()))]
    };
    plan.plugins.iter().map(|plugin| (plugin.id.as_str().to_owned(), facts(plugin))).collect()
}

/// Enough of a digest to tell two apart.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn runtimes(plan: &PlanHandle) -> Side {
    plan.runtimes.iter().map(|row| (row.id.as_str().to_owned(), facts(plan, row))).collect()
}

fn facts(plan: &PlanHandle, row: &ArchivedRuntimeRow) -> Vec<(&'static str, String)> {
    let named = |table: &rkyv::vec::ArchivedVec<rkyv::string::ArchivedString>, ix: u32| match ix {
        NONE => "none".to_owned(),
        ix => table[ix as usize].as_str().to_owned(),
    };
    let word = |words: &[&str], at: u8| (*words.get(at as usize).unwrap_or(&"unknown")).to_owned();
    let stage = Stage::ALL.into_iter().find(|stage| *stage as u8 == row.stage);
    let number = |value: &rkyv::primitive::ArchivedU32| value.to_native().to_string();
    vec![
        ("kind", word(&["function", "agent"], row.kind)),
        ("stage", stage.map_or("none", Stage::as_str).to_owned()),
        ("trigger", word(&["auto", "scheduled", "manual", "event"], row.trigger)),
        ("topic", named(&plan.topics, row.topic.to_native())),
        ("contract", named(&plan.contracts, row.contract.to_native())),
        ("visibility", word(&["story", "plugin", "system"], row.visibility)),
        ("interval", number(&row.interval)),
        ("start turn", number(&row.start_turn)),
        ("cooldown turns", number(&row.cooldown_turns)),
        ("most runs", number(&row.max_trigger_count)),
        ("background", row.background.to_string()),
        ("subagent only", row.subagent_only.to_string()),
    ]
}

fn edges(plan: &PlanHandle) -> Side {
    let name = |edge: &EdgeView| {
        let over = edge.contract.as_ref().map(|contract| format!(" over {contract}")).unwrap_or_default();
        format!("{} -> {} ({}{over})", edge.from, edge.to, edge.kind)
    };
    PlanDocument::of(plan, &[]).edges.iter().map(|edge| (name(edge), Vec::new())).collect()
}

fn contracts(plan: &PlanHandle) -> Side {
    groups(
        plan.contracts.len(),
        |ix| {
            (
                plan.contracts[ix as usize].as_str().to_owned(),
                plan.providers_of(ix).map(|one| plan.runtime(one).id.as_str()).collect(),
            )
        },
        "publishers",
    )
}

fn topics(plan: &PlanHandle) -> Side {
    groups(
        plan.topics.len(),
        |ix| {
            (
                plan.topics[ix as usize].as_str().to_owned(),
                plan.subscribers_of(ix).map(|one| plan.runtime(one).id.as_str()).collect(),
            )
        },
        "subscribers",
    )
}

fn groups<'a>(count: usize, group: impl Fn(u32) -> (String, BTreeSet<&'a str>), fact: &'static str) -> Side {
    (0..count as u32)
        .map(|ix| {
            let (name, members) = group(ix);
            let listed: Vec<&str> = members.into_iter().collect();
            let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
            (name, vec![(fact, listed)])
        })
        .collect()
}

fn capabilities(plan: &PlanHandle) -> Side {
    let plugins = plan.plugins.iter();
    plugins
        .flat_map(|plugin| plugin.capabilities.iter().map(|one| (format!("{}: {}", plugin.id, one), Vec::new())))
        .collect()
}
