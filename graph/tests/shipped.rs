//! The packages of this repository are good examples: no finding at all, alone and together.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use covel_graph::{Discovery, compile_all, find_packages, link};

#[test]
fn shipped_packages_compile_and_link_without_findings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let dirs = find_packages(&folder).unwrap();
    assert!(dirs.len() >= 5, "{dirs:?}");
    let all = compile_all(&dirs, Discovery::Builtin);
    let found: Vec<String> = all.iter().flat_map(|one| &one.diagnostics).map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    let packages: Vec<_> = all.into_iter().map(|one| one.package.unwrap()).collect();
    let linked = link(&packages).unwrap();
    let found: Vec<String> = linked.diagnostics.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(linked.plan.plugins.len(), packages.len());
}
