//! Which stage runtimes may run as jobs after their turn: decided once a plan is put together.

use std::sync::Arc;

use covel_graph::{
    RuntimeIx, Stage,
    archive::PlanHandle,
    fragment::{CompletionMode, RuntimeDecl, RuntimeKind},
    hazard::Effects,
    plan::NONE,
};
use fixedbitset::FixedBitSet;

use crate::active::LoadedPackage;

/// The detached runtimes, and those that asked for it and may not, with the reason.
pub(crate) fn detached_runtimes(
    plan: &PlanHandle,
    packages: &[Arc<LoadedPackage>],
) -> (FixedBitSet, Vec<(RuntimeIx, String)>) {
    let mut detached = FixedBitSet::with_capacity(plan.runtimes.len());
    let mut kept = Vec::new();
    for (ix, row) in plan.runtimes.iter().enumerate() {
        let package = &packages[row.plugin.to_native() as usize];
        let decl = &package.fragment().runtimes[row.local.to_native() as usize];
        if decl.completion.mode != CompletionMode::Detached {
            continue;
        }
        match obstacle(plan, ix, decl, package) {
            None => detached.insert(ix),
            Some(why) => kept.push((RuntimeIx(u32::try_from(ix).unwrap_or(NONE)), why)),
        }
    }
    (detached, kept)
}

/// Why a runtime that asks to be detached runs in the turn. Only a leaf whose effects nobody else can wait for may go.
fn obstacle(plan: &PlanHandle, ix: usize, decl: &RuntimeDecl, package: &LoadedPackage) -> Option<String> {
    if !matches!(decl.stage, Some(Stage::PostTurn | Stage::Audit)) {
        return Some("only the stages post-turn and audit have detached runtimes".into());
    }
    if decl.kind != RuntimeKind::Function {
        return Some("only functions may be detached".into());
    }
    if decl.output.record_as.is_some() {
        return Some("its output is recorded (`io.output.recordAs`)".into());
    }
    if decl.effects.writes.is_empty() && decl.effects.reads.is_empty() {
        return Some("it declares no effects".into());
    }
    let effects = Effects::of(package.fragment(), decl);
    let own = format!("plugin-data:{}:", package.id());
    let isolated =
        |key: &String| key.starts_with(&own) || ["ui:", "media:", "http:"].iter().any(|prefix| key.starts_with(prefix));
    if let Some(key) = effects.writes.iter().find(|key| !isolated(key)) {
        return Some(format!("it writes {key:?}, which is more than its own data, UI, media and HTTP"));
    }
    let consumer = consumer_of(plan, ix)?;
    Some(format!("{} waits for it", plan.runtimes[consumer].id.as_str()))
}

/// The first other runtime with an edge to this one, by name or by contract. Order alone counts too: who runs after
/// it may build on its writes.
fn consumer_of(plan: &PlanHandle, ix: usize) -> Option<usize> {
    let contract = plan.runtimes[ix].contract.to_native();
    (0..plan.runtimes.len()).filter(|other| *other != ix).find(|other| {
        let range = plan.edge_starts[*other].to_native() as usize..plan.edge_starts[*other + 1].to_native() as usize;
        plan.edges[range].iter().any(|edge| {
            let target = edge.runtime.to_native();
            target as usize == ix || (target == NONE && contract != NONE && edge.contract.to_native() == contract)
        })
    })
}
