//! Far too much of everything: refused with a limit, in bounded time.
#![allow(clippy::unwrap_used)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use covel_graph::{
    Discovery, Fragment, Package, PackageFiles, Stage, compile_in_memory, fragment::RuntimeDecl, layer, link,
};
use fixedbitset::FixedBitSet;

/// Generous: a debug build on a busy machine. What is not bounded takes far longer.
const PATIENCE: Duration = Duration::from_secs(60);
const MANY: usize = 100_000;

fn codes(fields: &str, more: &[(&str, &str)]) -> Vec<String> {
    let manifest = format!("---\nid: p\nkind: plugin\ndescription: A package.\n{fields}---\n");
    let mut files = vec![("PLUGIN.md", manifest.as_str()), ("any.json", "{}"), ("server/index.js", "export default 1")];
    files.extend(more);
    let started = Instant::now();
    let compiled = compile_in_memory(&files, Discovery::Builtin);
    assert!(started.elapsed() < PATIENCE, "{:?} for {}", started.elapsed(), &fields[..fields.len().min(80)]);
    assert!(compiled.diagnostics.len() <= 201, "{} findings", compiled.diagnostics.len());
    compiled.diagnostics.iter().filter(|one| one.is_error()).map(|one| one.code.clone()).collect()
}

#[test]
fn lists_of_a_hundred_thousand_entries_are_refused() {
    let list = |item: &dyn Fn(usize) -> String| (0..MANY).map(item).collect::<Vec<_>>().join(",");
    let contracts = list(&|at| format!("a{at}@1"));
    for fields in [
        format!("tags: [{}]\n", list(&|at| format!("t{at}"))),
        format!("provides: [{contracts}]\n"),
        format!("requires: [{contracts}]\n"),
        format!("entry: server/index.js\ncontributes: {{ services: [{contracts}] }}\n"),
        format!("entry: server/index.js\ncontributes: {{ tools: [{}] }}\n", list(&|at| format!("t{at}"))),
        format!("contributes: {{ settings: [{}] }}\n", list(&|_| "{}".to_owned())),
    ] {
        let found = codes(&fields, &[]);
        let limit = |code: &String| {
            code.ends_with("-too-long")
                || code.ends_with("-limit")
                || code.ends_with("too-many-diagnostics")
                || code.ends_with("-too-large")
        };
        assert!(found.iter().any(limit), "{:?} for {}", &found[..found.len().min(5)], &fields[..60]);
    }
}

#[test]
fn ten_thousand_runtimes_in_one_package_are_too_many_files() {
    let files: Vec<(String, String)> = (0..10_000)
        .map(|at| (format!("runtimes/r{at}/RUNTIME.md"), "---\ntype: agent\nschedule: { stage: audit }\n---\n".into()))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(codes("", &files).contains(&"too-many-files".to_owned()));
}

/// Ten thousand runtimes of a thousand packages, each waiting for the one before, link and layer.
#[test]
fn ten_thousand_runtimes_of_many_packages_are_linked() {
    let packages: Vec<Arc<Package>> = (0..1_000)
        .map(|at| {
            let plugin = format!("p{at:04}");
            let runtimes = (0..10)
                .map(|own| {
                    let mut decl = RuntimeDecl { id: format!("{plugin}/r{own}"), ..RuntimeDecl::default() };
                    decl.stage = Some(Stage::PreTurn);
                    decl
                })
                .collect();
            let fragment = Fragment { plugin_id: plugin.clone(), runtimes, ..Fragment::default() };
            Arc::new(Package {
                fragment: Arc::new(fragment),
                digest: plugin,
                files: PackageFiles::default(),
                root: std::path::PathBuf::new(),
                discovery: Discovery::Builtin,
            })
        })
        .collect();
    let started = Instant::now();
    let linked = link(&packages).unwrap();
    let plan = linked.handle().unwrap();
    let mut members = FixedBitSet::with_capacity(10_000);
    members.insert_range(..);
    let layering = layer(&plan, &members, &FixedBitSet::new());
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert_eq!((plan.runtime_count(), layering.layers.len(), layering.layers[0].len()), (10_000, 1, 10_000));
}
