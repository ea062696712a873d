//! The rules of the fuzz targets, on the shipped packages and on what fuzzing has found.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use covel_graph::{Discovery, compile_all, find_packages};

#[path = "../fuzz/src/bundle.rs"]
mod bundle;
#[path = "../fuzz/src/rules.rs"]
mod rules;

/// Each broke a rule once: places beside the line they name.
const FOUND: &[&str] = &[
    "---\rid: p\nkind: plugin\ndescription: `\n---\n",
    "---\nid: p\nkind: plugin\ndescription: \r page.\ncontributes:\n  settings: [{ key: 1a, type: text, label: A }]\n---\n",
    "---\nid: p\nkind: plugin\nd: a,t needs: [{ r: p/s, s: x }] }\n---\n",
    "---\nid: p\nkind: plugin\ndescription: P.\n---\n%% package.json\n{\"名称名称名称名称\": 无}\n",
    "---\nid: p\nkind: plugin\ndescription: P.\n---\n%% locales/zh-CN.yaml\nPLUGIN.md:\r  displayName: p\nx: @y\n",
];

#[test]
fn what_fuzzing_found_stays_right() {
    for text in FOUND {
        rules::compile(&bundle::parse(text), Discovery::Community);
    }
}

#[test]
fn shipped_packages_keep_the_rules() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let found = compile_all(&find_packages(&plugins).unwrap(), Discovery::Builtin);
    assert!(found.len() >= 5);
    for compiled in found {
        rules::package(&compiled.package.unwrap());
    }
}

#[test]
fn a_bundle_gives_its_files_back() {
    let files = [("PLUGIN.md", "---\nid: p\n---\n"), ("a/b.json", "{}\n"), ("c.md", "%\n%%x\n")];
    assert_eq!(bundle::parse(&bundle::format(files)), files);
    assert_eq!(bundle::parse("x"), [("PLUGIN.md", "x")]);
}
