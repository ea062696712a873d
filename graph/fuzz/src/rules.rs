//! What must hold of every outcome.

use std::collections::BTreeSet;

use covel_graph::{
    Compiled, Diagnostic, DiffDocument, Discovery, Package, PlanDocument, PlanHandle, RuntimeIx, Stage, WhyDocument,
    compile_in_memory, decode_fragment, encode_fragment, layer, limits::MAX_DIAGNOSTICS, link,
};
use fixedbitset::FixedBitSet;

/// Compiles, and checks the outcome.
pub fn compile(files: &[(&str, &str)], discovery: Discovery) -> Compiled {
    let compiled = compile_in_memory(files, discovery);
    assert_eq!(compiled.package.is_some(), !compiled.has_errors(), "a package exactly when there is no error");
    assert!(compiled.diagnostics.len() <= MAX_DIAGNOSTICS + 1, "{} findings", compiled.diagnostics.len());
    for finding in &compiled.diagnostics {
        let text = files.iter().rev().find(|(path, _)| *path == finding.file).map_or("", |(_, text)| *text);
        finding_is_usable(finding, text);
    }
    compiled
}

/// A finding has a code, a readable message, and a place that exists.
fn finding_is_usable(finding: &Diagnostic, text: &str) {
    let kebab = finding.code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    assert!(kebab && !finding.code.is_empty(), "code {:?}", finding.code);
    assert!(!finding.message.is_empty() && finding.message.len() < 4_000, "{}: {}", finding.code, finding.message);
    assert!(finding.help.as_ref().is_none_or(|help| help.len() < 8_000), "{}: long help", finding.code);
    let shown = finding.render(text);
    assert!(shown.len() < 16_000, "{}: {} bytes shown", finding.code, shown.len());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.is_empty() && finding.line > 0 {
        // One past the last line is where something that is missing would stand.
        let lines = text.split('\n').count() as u32;
        assert!(finding.line <= lines, "{}: line {} of {lines}: {finding}", finding.code, finding.line);
        let line = text.split('\n').nth(finding.line as usize - 1).unwrap_or("");
        let columns = line.chars().count() as u32 + 1;
        assert!(finding.column <= columns, "{}: column {} of {columns}: {finding}", finding.code, finding.column);
    }
    let back: Diagnostic = serde_json::to_value(finding).and_then(serde_json::from_value).expect("findings are JSON");
    assert_eq!(&back, finding);
}

/// A package archives, links, and can be explained.
pub fn package(package: &std::sync::Arc<Package>) {
    let bytes = encode_fragment(&package.fragment).expect("a fragment archives");
    let back = decode_fragment(&bytes).expect("a fresh archive opens");
    // NaN is not equal to itself; the bytes are what counts.
    assert!(encode_fragment(&back).expect("a fragment archives") == bytes, "a fragment changed in its archive");
    let linked = link(std::slice::from_ref(package)).expect("a package links alone");
    plan(&linked.handle().expect("a fresh plan opens"));
}

/// A plan that was linked here can be walked, and its runtimes are found by their ids.
pub fn plan(plan: &PlanHandle) {
    plan_is_walkable(plan);
    for ix in (0..plan.runtime_count() as u32).map(RuntimeIx) {
        let id = &plan.runtime(ix).id;
        assert_eq!(plan.runtime_by_id(id), Some(ix), "{id} is not found");
        assert!(WhyDocument::of(plan, id).is_some(), "{id} cannot be explained");
    }
    assert!(DiffDocument::of(plan, plan).is_empty(), "a plan differs from itself");
}

/// A plan that was opened can be walked to its last corner, whatever it says.
pub fn plan_is_walkable(plan: &PlanHandle) {
    let count = plan.runtime_count();
    let document = PlanDocument::of(plan, &[]);
    assert!(!document.to_mermaid().is_empty() && !document.to_dot().is_empty());
    document.to_text();
    for ix in (0..count as u32).map(RuntimeIx) {
        let row = plan.runtime(ix);
        plan.runtime_by_id(&row.id);
        WhyDocument::of(plan, &row.id);
        for edge in plan.edges_of(ix) {
            covel_graph::explain::edge_targets(plan, edge);
        }
        for input in 0..3 {
            plan.input_compatibility(ix, input);
        }
    }
    let everything: FixedBitSet = (0..count).collect();
    layering(plan, &everything, count);
    for stage in Stage::ALL {
        let due: FixedBitSet = plan.stage_runtimes(stage).map(|ix| ix as usize).collect();
        layering(plan, &due, count);
    }
    for contract in plan.contracts.iter() {
        plan.contract_by_id(contract);
    }
    for contract in 0..plan.contracts.len() as u32 {
        plan.providers_of(contract).for_each(drop);
    }
    for topic in 0..plan.topics.len() as u32 {
        plan.subscribers_of(topic).for_each(drop);
    }
    DiffDocument::of(plan, plan);
}

/// Every member is in one layer or cannot run, and never twice.
fn layering(plan: &PlanHandle, members: &FixedBitSet, count: usize) {
    let nothing = FixedBitSet::with_capacity(count);
    let layering = layer(plan, members, &nothing);
    let all: Vec<usize> = layering.layers.iter().flatten().chain(&layering.cyclic).map(|ix| ix.index()).collect();
    let distinct: BTreeSet<usize> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "a runtime is layered twice");
    assert!(distinct.iter().copied().eq(members.ones()), "a runtime is lost in layering");
    // A runtime that is already done releases what waits for it, never more.
    let done = layer(plan, members, members);
    assert!(done.cyclic.len() <= layering.cyclic.len());
}
