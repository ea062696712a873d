//! `tests/cases/static_rules.yaml`: rules that hold before anything runs, by the requirement they prove.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, sync::Arc};

use covel_graph::{Compiled, Diagnostic, Discovery, Package, compile_in_memory, link};
use indexmap::IndexMap;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    proves: Vec<String>,
    says: String,
    packages: IndexMap<String, IndexMap<String, String>>,
    #[serde(default)]
    finds: Vec<String>,
    #[serde(default)]
    links: Vec<String>,
    #[serde(default)]
    waits: IndexMap<String, Vec<String>>,
    #[serde(default)]
    may: IndexMap<String, Vec<String>>,
    #[serde(default)]
    runtimes: Option<Vec<String>>,
}

fn compile(id: &str, files: &IndexMap<String, String>) -> Compiled {
    let mut all: IndexMap<String, String> = [
        ("any.json", "{}"),
        ("number.json", r#"{"type":"number"}"#),
        ("text.json", r#"{"type":"string"}"#),
        ("handler.js", "export default () => ({ outcome: 'success' })"),
        ("server/index.js", "export default () => {}"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into();
    all.insert("PLUGIN.md".into(), format!("---\nid: {id}\nkind: plugin\ndescription: A package.\n---\n"));
    for (name, text) in files {
        let (path, text) = match name.as_str() {
            "fields" => {
                ("PLUGIN.md".to_owned(), format!("---\nid: {id}\nkind: plugin\ndescription: A package.\n{text}---\n"))
            }
            name if name.contains('.') => (name.to_owned(), text.clone()),
            runtime => (format!("runtimes/{runtime}/RUNTIME.md"), format!("---\n{text}---\nDo it.\n")),
        };
        all.insert(path, text);
    }
    let files: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compile_in_memory(&files, Discovery::Builtin)
}

fn brief(diagnostic: &Diagnostic) -> String {
    let plugin = diagnostic.plugin_id.as_deref().unwrap_or_default();
    format!("{} {plugin}/{}:{}", diagnostic.code, diagnostic.file, diagnostic.line)
}

fn same(what: &str, mut stated: Vec<String>, found: impl Iterator<Item = String>) -> Result<(), String> {
    let mut found: Vec<String> = found.collect();
    stated.sort();
    found.sort();
    if stated == found { Ok(()) } else { Err(format!("{what}: stated {stated:?}, found {found:?}")) }
}

impl Case {
    fn run(&self) -> Result<(), String> {
        let compiled: Vec<Compiled> = self.packages.iter().map(|(id, files)| compile(id, files)).collect();
        same("finds", self.finds.clone(), compiled.iter().flat_map(|one| one.diagnostics.iter().map(brief)))?;
        let packages: Vec<Arc<Package>> = compiled.into_iter().filter_map(|one| one.package).collect();
        let linked = link(&packages).map_err(|error| error.to_string())?;
        same("links", self.links.clone(), linked.diagnostics.iter().map(brief))?;
        let plan = linked.handle().map_err(|error| error.to_string())?;
        for (waiter, stated) in &self.waits {
            let ix = plan.runtime_by_id(waiter).ok_or_else(|| format!("there is no runtime {waiter}"))?;
            let edges = plan.edges_of(ix).iter();
            let targets = edges.flat_map(|edge| covel_graph::explain::edge_targets(&plan, edge));
            same(waiter, stated.clone(), targets.map(|target| plan.runtime(target).id.as_str().to_owned()))?;
        }
        for (plugin, stated) in &self.may {
            let row = linked.plan.plugins.iter().find(|row| row.id == *plugin);
            let row = row.ok_or_else(|| format!("there is no package {plugin}"))?;
            same(plugin, stated.clone(), row.capabilities.iter().cloned())?;
        }
        if let Some(stated) = &self.runtimes {
            same("runtimes", stated.clone(), linked.plan.runtimes.iter().map(|row| row.id.clone()))?;
        }
        Ok(())
    }
}

/// Covers: COM-1, COM-2, EVT-2, HKS-1, SVC-2, SVC-3, WSV-1, MFS-2, MFS-4, WIR-1, UIP-1, UIP-5, PKG-1, EXP-4, EXP-7,
/// TPC-1, TPC-9
#[test]
fn every_case_comes_out_as_stated() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../../tests/cases/static_rules.yaml")).unwrap();
    let failed: Vec<String> =
        cases.iter().filter_map(|case| case.run().err().map(|message| format!("{} -- {message}", case.says))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let proved: BTreeSet<&str> = cases.iter().flat_map(|case| &case.proves).map(String::as_str).collect();
    let stated =
        "COM-1 COM-2 EVT-2 EXP-4 EXP-7 HKS-1 MFS-2 MFS-4 PKG-1 SVC-2 SVC-3 TPC-1 TPC-9 UIP-1 UIP-5 WIR-1 WSV-1";
    assert_eq!(proved.into_iter().collect::<Vec<_>>().join(" "), stated);
}
