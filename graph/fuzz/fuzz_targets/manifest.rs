//! Whole packages: compile, archive, link, explain, layer; the same input gives the same outcome.
#![no_main]

use covel_graph::Discovery;
use covel_graph_fuzz::{bundle, rules};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let files = bundle::parse(&text);
    let compiled = rules::compile(&files, Discovery::Community);
    let mut turned = files.clone();
    // Later files of one path win, so only inputs without repeated paths may be turned round.
    turned.sort();
    turned.dedup_by_key(|(path, _)| *path);
    if turned.len() == files.len() {
        let again = rules::compile(&turned, Discovery::Community);
        assert_eq!(compiled.diagnostics, again.diagnostics, "the order of files changed the findings");
        let digest = |compiled: &covel_graph::Compiled| compiled.package.as_ref().map(|package| package.digest.clone());
        assert_eq!(digest(&compiled), digest(&again), "the order of files changed the digest");
    }
    if let Some(package) = compiled.package {
        rules::package(&package);
    }
});
