//! Rules over all runtimes of a package: references, one publisher a contract, cycles.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::{shape::clip, source::Context};
use crate::{
    cycle,
    diagnostic::Severity,
    fragment::{Fragment, TriggerKind},
    link,
    plan::{EdgeKind, Stage, UNSTAGED},
    report::nearest,
};

/// Checks what only shows when all runtimes are known.
pub(super) fn check(context: &mut Context<'_>, fragment: &Fragment) {
    references(context, fragment);
    let mut publisher: BTreeMap<&str, &str> = BTreeMap::new();
    for runtime in &fragment.runtimes {
        let Some(contract) = &runtime.output.contract else {
            continue;
        };
        if let Some(first) = publisher.insert(contract, &runtime.id) {
            context.file = runtime.origin.file.clone();
            let at = crate::Position { line: runtime.origin.line, column: runtime.origin.column };
            let message = format!("`{}` publishes `{contract}`, which `{first}` publishes already", runtime.id);
            context.error("duplicate-publisher", at, "io.output.contract", message);
        }
    }
    cycles(context, fragment);
}

fn references(context: &mut Context<'_>, fragment: &Fragment) {
    let stages: BTreeMap<&str, Option<Stage>> =
        fragment.runtimes.iter().map(|runtime| (runtime.id.as_str(), runtime.stage)).collect();
    for runtime in &fragment.runtimes {
        context.file = runtime.origin.file.clone();
        let needs = runtime.needs.iter().map(|need| ("schedule.needs", need.runtime.as_deref(), &need.origin));
        let after = runtime.after.iter().map(|need| ("schedule.after", need.runtime.as_deref(), &need.origin));
        let inputs = runtime.inputs.iter().map(|input| ("io.inputs", input.runtime.as_deref(), &input.origin));
        for (path, id, origin) in needs.chain(after).chain(inputs) {
            let Some(id) = id else { continue };
            let at = crate::Position { line: origin.line, column: origin.column };
            if let Some(stage) = stages.get(id) {
                let later = runtime.stage.zip(*stage).is_some_and(|(own, other)| other > own);
                if later && path != "schedule.after" {
                    let message =
                        format!("`{id}` runs in a later stage, so `{}` never gets its result in a turn", runtime.id);
                    context.warning("later-stage", at, path, message);
                }
                continue;
            }
            let owner = id.split('/').next().unwrap_or("");
            if owner != fragment.plugin_id {
                let message = format!("`{}` belongs to another package", clip(id));
                let help = "packages refer to each other's runtimes by contract only";
                context.error_help("foreign-runtime", at, path, message, help);
            } else {
                let message = format!("the package has no runtime `{}`", clip(id));
                let help = match nearest(id, fragment.runtimes.iter().map(|runtime| runtime.id.as_str())) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write the full id, `<package>/<runtime>`".to_owned(),
                };
                context.error_help("unknown-runtime", at, path, message, help);
            }
        }
    }
}

/// Cycles that close whenever their runtimes run at all: among runtimes of one stage that are always triggered
/// together, or of edges that all gate. What closes only in some triggered sets is a finding of linking.
fn cycles(context: &mut Context<'_>, fragment: &Fragment) {
    let (plan, _) = link::build(&[(fragment, "")]);
    let all: FixedBitSet = (0..plan.runtimes.len()).collect();
    let together = |a: u32, b: u32| {
        let (a, b) = (&plan.runtimes[a as usize], &plan.runtimes[b as usize]);
        let always = |row: &crate::plan::RuntimeRow| {
            row.trigger == TriggerKind::Auto as u8
                && row.start_turn <= 1
                && row.cooldown_turns == 0
                && (row.max_trigger_count == 0 || row.stage == Stage::Setup as u8)
        };
        a.stage == b.stage && (a.stage as usize != UNSTAGED) && always(a) && always(b)
    };
    let same_stage = |a: u32, b: u32| plan.runtimes[a as usize].stage == plan.runtimes[b as usize].stage;
    // A contract may get providers from other packages; only what is no choice waits for this package's for sure.
    let always = cycle::graph(&plan, |a, b, edge| !link::is_choice(edge) && (a == b || together(a, b)));
    let gating = cycle::graph(&plan, |a, b, edge| {
        !link::is_choice(edge) && (edge.kind == EdgeKind::Need || edge.required) && same_stage(a, b)
    });
    let mut seen = std::collections::BTreeSet::new();
    for graph in [always, gating] {
        for found in cycle::cycles(&graph, &all) {
            let mut key: Vec<u32> = found.steps.iter().map(|step| step.waiter).collect();
            key.sort_unstable();
            if seen.insert(key) {
                context.report.add(link::describe(&plan, &found, Severity::Error));
            }
        }
    }
}
