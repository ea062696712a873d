//! `tests/cases/effects_hazards.yaml`, and what linking says of hazards.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use covel_graph::{
    Discovery, EffectTable, Package, RuntimeIx, Stage, compile_in_memory, hazards, link, serialize_layer,
};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    says: String,
    runtimes: IndexMap<String, Runtime>,
    #[serde(default)]
    data: Vec<String>,
    #[serde(default)]
    events: Vec<String>,
    hazards: Vec<(String, String)>,
    serial: Vec<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Runtime {
    reads: Vec<String>,
    writes: Vec<String>,
    tools: Vec<String>,
    safe: bool,
    story: bool,
}

fn full(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("p/{name}") }
}

fn short(name: &str) -> String {
    name.strip_prefix("p/").unwrap_or(name).to_owned()
}

impl Case {
    fn packages(&self) -> Vec<Arc<Package>> {
        let mut by_package: BTreeMap<String, Vec<(String, &Runtime)>> = BTreeMap::new();
        for (name, runtime) in &self.runtimes {
            let (plugin, rid) = full(name).split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            by_package.entry(plugin).or_default().push((rid, runtime));
        }
        by_package.iter().map(|(plugin, runtimes)| self.package(plugin, runtimes)).collect()
    }

    fn package(&self, plugin: &str, runtimes: &[(String, &Runtime)]) -> Arc<Package> {
        let data: serde_json::Map<String, Value> =
            self.data.iter().map(|name| (name.clone(), json!({"version": 1, "schema": "any.json"}))).collect();
        let events: Vec<Value> = self
            .events
            .iter()
            .map(|topic| json!({"topic": topic, "schema": "any.json", "description": "It happened."}))
            .collect();
        let root = json!({"id": plugin, "kind": "plugin", "description": self.says,
            "contributes": {"data": data, "events": if plugin == "p" { events } else { Vec::new() }}});
        let mut files =
            vec![("PLUGIN.md".to_owned(), format!("---\n{root}\n---\n")), ("any.json".to_owned(), "{}".to_owned())];
        for (rid, runtime) in runtimes {
            let manifest = json!({"type": "agent", "schedule": {"stage": "pre-turn"},
                "io": {"visibility": if runtime.story { "story" } else { "plugin" }},
                "agent": {"tools": {"builtin": runtime.tools}},
                "effects": {"reads": runtime.reads, "writes": runtime.writes, "parallelSafe": runtime.safe}});
            files.push((format!("runtimes/{rid}/RUNTIME.md"), format!("---\n{manifest}\n---\nDo it.\n")));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let compiled = compile_in_memory(&files, Discovery::Builtin);
        compiled.package.unwrap_or_else(|| panic!("{}: {:#?}", self.says, compiled.diagnostics))
    }

    fn run(&self) -> Result<(), String> {
        let packages = self.packages();
        let linked = link(&packages).map_err(|error| error.to_string())?;
        let plan = linked.handle().map_err(|error| error.to_string())?;
        let effects = EffectTable::of(&plan, packages.iter().map(|package| &*package.fragment));
        let mut layer: Vec<RuntimeIx> = plan.stage_runtimes(Stage::PreTurn).map(RuntimeIx).collect();
        let pairs = |found: &[covel_graph::Hazard]| -> Vec<(String, String)> {
            found.iter().map(|one| (short(&one.first), short(&one.second))).collect()
        };
        let expected = self.hazards.clone();
        // The order in which a layer is given says nothing.
        for _ in 0..2 {
            layer.reverse();
            let found = pairs(&hazards(&plan, &effects, &layer));
            if found != expected {
                return Err(format!("hazards {found:?}"));
            }
            let serial: Vec<Vec<String>> = serialize_layer(&plan, &effects, &layer)
                .iter()
                .map(|level| level.iter().map(|ix| short(&plan.runtime(*ix).id)).collect())
                .collect();
            if serial != self.serial {
                return Err(format!("serial {serial:?}"));
            }
        }
        let warned = linked.diagnostics.iter().filter(|one| one.code == "effects-hazard" && !one.is_error()).count();
        if pairs(&linked.hazards) != expected || warned != expected.len() {
            return Err(format!("linking says {:?}", linked.diagnostics));
        }
        Ok(())
    }
}

#[test]
fn every_case_comes_out_as_stated() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../../tests/cases/effects_hazards.yaml")).unwrap();
    assert!(cases.len() >= 19);
    let failed: Vec<String> =
        cases.iter().filter_map(|case| case.run().err().map(|message| format!("{} -- {message}", case.says))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Runtimes that one orders after the other are in different layers, so they are no pair.
#[test]
fn what_is_ordered_is_no_hazard() {
    let manifest = |after: &str| {
        format!(
            "---\ntype: agent\nschedule: {{ stage: pre-turn, after: [{after}] }}\neffects: {{ writes: [\"ui:*\"] }}\n---\nDo it.\n"
        )
    };
    let (first, second, free) = (manifest(""), manifest("p/a"), manifest(""));
    for (text, hazards) in [(&second, 0), (&free, 1)] {
        let files = [
            ("PLUGIN.md", "---\nid: p\nkind: plugin\ndescription: A package.\n---\n"),
            ("runtimes/a/RUNTIME.md", first.as_str()),
            ("runtimes/b/RUNTIME.md", text.as_str()),
        ];
        let linked = link(&[compile_in_memory(&files, Discovery::Builtin).package.unwrap()]).unwrap();
        assert_eq!(linked.hazards.len(), hazards);
    }
}

/// Thousands of runtimes that all touch the unknown make a bounded list.
#[test]
fn hazards_are_bounded() {
    let files: Vec<(String, String)> = (0..500)
        .map(|at| {
            (
                format!("runtimes/r{at:03}/RUNTIME.md"),
                "---\ntype: agent\nschedule: { stage: pre-turn }\neffects: { writes: [\"unknown:*\"] }\n---\nDo it.\n"
                    .to_owned(),
            )
        })
        .collect();
    let mut all = vec![("PLUGIN.md", "---\nid: p\nkind: plugin\ndescription: A package.\n---\n")];
    all.extend(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let linked = link(&[compile_in_memory(&all, Discovery::Builtin).package.unwrap()]).unwrap();
    assert_eq!(linked.hazards.len(), covel_graph::limits::MAX_HAZARDS_LISTED);
}
