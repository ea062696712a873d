//! Contracts whose schemas the framework owns and whose behaviour packages bring: a policy of turns, and an actor for
//! a character. A story runs without either. TPC-1, TPC-9

use super::source::Context;
use crate::{
    Position,
    fragment::{Fragment, Origin, RuntimeKind, ServiceAccess, Visibility},
};

/// A read service that says whose turn it is.
pub(crate) const TURN_POLICY: &str = "turn-policy@1";
/// An agent that plays one character when a caller delegates to it.
pub(crate) const CHARACTER_ACTOR: &str = "character-actor@1";

const MISUSED: &str = "framework-contract-misused";

pub(super) fn check(context: &mut Context<'_>, fragment: &Fragment) {
    for service in &fragment.services {
        let message = match service.contract.as_str() {
            TURN_POLICY if service.access == ServiceAccess::Write => "a turn policy only reads",
            CHARACTER_ACTOR => "a character actor is an agent runtime, no service",
            _ => continue,
        };
        at(context, &service.origin, "contributes.services", MISUSED, format!("`{}`: {message}", service.contract));
    }
    for extension in &fragment.extensions {
        if extension.point == TURN_POLICY || extension.point == CHARACTER_ACTOR {
            let message = format!("`{}` is no extension point", extension.point);
            at(context, &extension.origin, "contributes.extensions", MISUSED, message);
        }
    }
    for runtime in &fragment.runtimes {
        let Some(contract) = runtime.output.contract.as_deref() else { continue };
        let message = match contract {
            TURN_POLICY => "a turn policy is a read service, no output of a runtime",
            CHARACTER_ACTOR if !(runtime.kind == RuntimeKind::Agent && runtime.subagent_only) => {
                "a character actor is an agent that only delegation reaches (`schedule.subagentOnly: true`)"
            }
            _ => continue,
        };
        at(context, &runtime.origin, "io.output.contract", MISUSED, format!("`{contract}`: {message}"));
    }
    if fragment.runtimes.iter().any(|runtime| runtime.visibility == Visibility::Story) {
        stories(context, fragment);
    }
}

/// A package that tells a story may use either, and may not depend on one.
fn stories(context: &mut Context<'_>, fragment: &Fragment) {
    let required = fragment.requires.iter().map(|one| ("requires", Some(one.contract.as_str()), &one.origin));
    let needs = fragment.runtimes.iter().flat_map(|runtime| {
        let needs = runtime.needs.iter().map(|need| ("schedule.needs", need.contract.as_deref(), &need.origin));
        let inputs = runtime.inputs.iter().filter(|input| input.required);
        needs.chain(inputs.map(|input| ("io.inputs", input.contract.as_deref(), &input.origin)))
    });
    for (path, contract, origin) in required.chain(needs) {
        if let Some(contract @ (TURN_POLICY | CHARACTER_ACTOR)) = contract {
            let message = format!("a story runs without `{contract}`, so it may not depend on it");
            at(context, origin, path, "story-dependency-refused", message);
        }
    }
}

fn at(context: &mut Context<'_>, origin: &Origin, path: &str, code: &'static str, message: String) {
    context.file.clone_from(&origin.file);
    let help = "list it under `optional` and go on without it";
    let place = Position { line: origin.line, column: origin.column };
    if code == MISUSED {
        context.error(code, place, path, message);
    } else {
        context.error_help(code, place, path, message, help);
    }
}
