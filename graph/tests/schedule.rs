//! `tests/cases/schedule.yaml`: packages are written out, compiled, linked, opened and layered as a turn does it.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use covel_graph::{
    Discovery, Package, PackageFiles, compile_in_memory,
    fragment::{Fragment, InputDecl, NeedDecl, RuntimeDecl},
    layer, link,
};
use fixedbitset::FixedBitSet;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    says: String,
    #[serde(default = "auto")]
    trigger: String,
    runtimes: IndexMap<String, Runtime>,
    triggered: Option<Vec<String>>,
    #[serde(default)]
    satisfied: Vec<String>,
    #[serde(default)]
    layers: Option<Vec<Vec<String>>>,
    #[serde(default)]
    cyclic: Vec<String>,
    refused: Option<String>,
    #[serde(default)]
    unchecked: bool,
    warns: Option<String>,
}

fn auto() -> String {
    "auto".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    #[serde(default = "pre_turn")]
    stage: String,
    #[serde(default)]
    needs: Vec<Value>,
    #[serde(default)]
    after: Vec<Value>,
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
    gives: Option<String>,
    #[serde(rename = "selfData")]
    self_data: Option<String>,
}

fn pre_turn() -> String {
    "pre-turn".into()
}

/// `a` is `story/a`; `w/a` stays; `=a` is the bare id `a`.
fn full(name: &str) -> String {
    match name.strip_prefix('=') {
        Some(bare) => bare.to_owned(),
        None if name.is_empty() || name.contains('/') => name.to_owned(),
        None => format!("story/{name}"),
    }
}

fn short(name: &str) -> String {
    name.strip_prefix("story/").unwrap_or(name).to_owned()
}

/// Short names in a need become full ones.
fn need(value: &Value) -> Value {
    match value {
        Value::String(name) => json!(full(name)),
        other => other.clone(),
    }
}

impl Runtime {
    fn input(&self, name: &str) -> Value {
        let mut from = self.inputs[name].clone();
        let map = from.as_object_mut().unwrap();
        let mut input = serde_json::Map::new();
        for key in ["scope", "recordAs", "required"] {
            if let Some(value) = map.remove(key) {
                input.insert(key.into(), value);
            }
        }
        if let Some(Value::String(runtime)) = map.get_mut("runtime") {
            *runtime = full(runtime);
        }
        input.insert("from".into(), from);
        Value::Object(input)
    }

    fn manifest(&self, trigger: &str) -> String {
        let mut io = serde_json::Map::new();
        if !self.inputs.is_empty() {
            let inputs: serde_json::Map<String, Value> =
                self.inputs.keys().map(|name| (name.clone(), self.input(name))).collect();
            io.insert("inputs".into(), Value::Object(inputs));
        }
        if let Some(contract) = &self.gives {
            io.insert("output".into(), json!({"contract": contract}));
        }
        if let Some(namespace) = &self.self_data {
            io.insert("selfData".into(), json!([{"namespace": namespace, "as": namespace}]));
        }
        let mut schedule = json!({
            "needs": self.needs.iter().map(need).collect::<Vec<_>>(),
            "after": self.after.iter().map(need).collect::<Vec<_>>(),
        });
        if trigger == "event" {
            schedule["trigger"] = json!({"type": "event", "topic": "bell.rung"});
        } else {
            schedule["stage"] = json!(self.stage);
            schedule["trigger"] = json!({"type": trigger});
        }
        // JSON is YAML, so the whole manifest is one flow map.
        let manifest =
            json!({"type": "function", "function": {"handler": "../../handler.js"}, "schedule": schedule, "io": io});
        format!("---\n{manifest}\n---\n")
    }

    fn contracts(&self) -> Vec<String> {
        let needs = self.needs.iter().filter_map(|need| need["contract"].as_str());
        let inputs = self.inputs.values().filter_map(|input| input["contract"].as_str());
        needs.chain(inputs).map(str::to_owned).collect()
    }

    /// The declaration without the compiler's checks.
    fn unchecked(&self, id: &str) -> RuntimeDecl {
        let named = |value: &Value| NeedDecl { runtime: value.as_str().map(full), ..NeedDecl::default() };
        RuntimeDecl {
            id: id.to_owned(),
            stage: covel_graph::Stage::parse(&self.stage),
            needs: self.needs.iter().map(named).collect(),
            after: self.after.iter().map(named).collect(),
            inputs: self
                .inputs
                .iter()
                .map(|(name, from)| InputDecl {
                    name: name.clone(),
                    runtime: from["runtime"].as_str().map(full),
                    ..InputDecl::default()
                })
                .collect(),
            ..RuntimeDecl::default()
        }
    }
}

impl Case {
    fn by_package(&self) -> BTreeMap<String, Vec<(String, &Runtime)>> {
        let mut packages: BTreeMap<String, Vec<(String, &Runtime)>> = BTreeMap::new();
        for (name, runtime) in &self.runtimes {
            let id = full(name);
            let (plugin, _) = id.split_once('/').unwrap();
            packages.entry(plugin.to_owned()).or_default().push((id.clone(), runtime));
        }
        packages
    }

    fn files(&self, plugin: &str, runtimes: &[(String, &Runtime)]) -> Vec<(String, String)> {
        let gives: Vec<&String> = runtimes.iter().filter_map(|(_, runtime)| runtime.gives.as_ref()).collect();
        let mut optional: Vec<String> = runtimes.iter().flat_map(|(_, runtime)| runtime.contracts()).collect();
        optional.sort();
        optional.dedup();
        let root = json!({
            "id": plugin, "kind": "plugin", "description": self.says, "provides": gives, "optional": optional,
            "contributes": {
                "data": {"notes": {"schema": "any.json", "version": 1}},
                "events": if plugin == "story" { json!([{"topic": "bell.rung", "schema": "any.json", "description": "A bell rang."}]) } else { json!([]) },
            },
        });
        let mut files = vec![
            ("PLUGIN.md".to_owned(), format!("---\n{root}\n---\n")),
            ("handler.js".to_owned(), "export default () => ({ outcome: 'success' })".to_owned()),
            ("any.json".to_owned(), "{}".to_owned()),
        ];
        for (id, runtime) in runtimes {
            let (_, rid) = id.split_once('/').unwrap();
            files.push((format!("runtimes/{rid}/RUNTIME.md"), runtime.manifest(&self.trigger)));
        }
        files
    }

    fn packages(&self) -> Result<Vec<Arc<Package>>, Vec<String>> {
        let mut packages = Vec::new();
        for (plugin, runtimes) in self.by_package() {
            if self.unchecked {
                let fragment = Fragment {
                    plugin_id: plugin.clone(),
                    runtimes: runtimes.iter().map(|(id, runtime)| runtime.unchecked(id)).collect(),
                    ..Fragment::default()
                };
                packages.push(Arc::new(Package {
                    fragment: Arc::new(fragment),
                    digest: plugin,
                    files: PackageFiles::default(),
                    root: Default::default(),
                    discovery: Discovery::Builtin,
                }));
                continue;
            }
            let files = self.files(&plugin, &runtimes);
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let compiled = compile_in_memory(&files, Discovery::Builtin);
            match compiled.package {
                Some(package) => packages.push(package),
                None => {
                    let errors = compiled.diagnostics.iter().filter(|one| one.is_error());
                    return Err(errors.map(|one| one.code.clone()).collect());
                }
            }
        }
        Ok(packages)
    }

    fn run(&self) -> Result<(), String> {
        let packages = match (self.packages(), &self.refused) {
            (Ok(packages), None) => packages,
            (Err(codes), Some(code)) if codes.contains(code) && codes.len() == 1 => return Ok(()),
            (Err(codes), _) => return Err(format!("refused with {codes:?}")),
            (Ok(_), Some(code)) => return Err(format!("not refused with {code}")),
        };
        let linked = link(&packages).map_err(|error| error.to_string())?;
        let warned: Vec<&str> = linked.diagnostics.iter().map(|one| one.code.as_str()).collect();
        match &self.warns {
            Some(code) if !warned.contains(&code.as_str()) => {
                return Err(format!("no {code} among {warned:?}"));
            }
            None if warned.contains(&"dependency-cycle") && self.triggered.is_none() => {
                return Err(format!("unexpected {warned:?}"));
            }
            _ => {}
        }
        let plan = linked.handle().map_err(|error| error.to_string())?;
        let bits = |names: &mut dyn Iterator<Item = &String>| -> FixedBitSet {
            let mut set = FixedBitSet::with_capacity(plan.runtime_count());
            set.extend(names.map(|name| plan.runtime_by_id(&full(name)).unwrap().index()));
            set
        };
        let members = match &self.triggered {
            Some(names) => bits(&mut names.iter()),
            None => bits(&mut self.runtimes.keys()),
        };
        let layering = layer(&plan, &members, &bits(&mut self.satisfied.iter()));
        let name = |ix: &covel_graph::RuntimeIx| short(&plan.runtime(*ix).id);
        let layers: Vec<Vec<String>> = layering.layers.iter().map(|layer| layer.iter().map(name).collect()).collect();
        let cyclic: Vec<String> = layering.cyclic.iter().map(name).collect();
        if (&layers, &cyclic) != (self.layers.as_ref().ok_or("no layers stated")?, &self.cyclic) {
            return Err(format!("came out as {layers:?}, cyclic {cyclic:?}"));
        }
        Ok(())
    }
}

/// Covers: EVT-2, EVT-4, EVT-5
#[test]
fn every_case_comes_out_as_stated() {
    let text = include_str!("../../tests/cases/schedule.yaml");
    let cases: Vec<Case> = serde_saphyr::from_str(text).unwrap();
    for row in 1..=17 {
        assert!(cases.iter().any(|case| case.id.split(' ').next() == Some(&format!("D{row}"))), "no case D{row}");
    }
    let mut failed = Vec::new();
    for case in &cases {
        if let Err(message) = case.run() {
            failed.push(format!("{}: {} -- {message}", case.id, case.says));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
