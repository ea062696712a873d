//! Compatibility of every input of the linked packages.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Compatibility, Schema, Verdict, compatibility, relate::constrains};
use crate::{
    diagnostic::{Diagnostic, Severity},
    fragment::{Cardinality, Fragment, InputDecl, RuntimeDecl, Visibility},
    limits::MAX_COMPATIBILITY_BYTES,
    plan::{Csr, Plan, SLOT_UNCHECKED},
};

/// The public schemas of the linked packages, parsed once; of two for one contract the first counts.
struct DeclaredSchemas<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> DeclaredSchemas<'a> {
    fn of(packages: &[(&'a Fragment, &str)]) -> Self {
        let mut found = BTreeMap::new();
        for (fragment, _) in packages {
            for contract in &fragment.contracts {
                found.entry(contract.contract.as_str()).or_insert(contract.schema.as_str());
            }
        }
        Self(found)
    }
}

/// What is given, what is taken, the selected place, and whether all providers are read.
type Pair<'a> = (&'a str, &'a str, Option<&'a str>, bool);

/// Parsed documents and outcomes by schema text: many inputs share few schemas.
#[derive(Default)]
struct Memo<'a> {
    documents: BTreeMap<&'a str, Option<Value>>,
    verdicts: BTreeMap<Pair<'a>, Option<(Verdict, bool)>>,
}

impl<'a> Memo<'a> {
    /// The verdict, and whether both schemas constrain anything; `None` when one cannot be read.
    fn judge(&mut self, gives: &'a str, select: Option<&'a str>, all: bool, takes: &'a str) -> Option<(Verdict, bool)> {
        let key = (gives, takes, select, all);
        if let Some(known) = self.verdicts.get(&key) {
            return known.clone();
        }
        for text in [gives, takes] {
            self.documents.entry(text).or_insert_with(|| {
                (text.len() <= MAX_COMPATIBILITY_BYTES).then(|| serde_json::from_str(text).ok()).flatten()
            });
        }
        let document = |text: &str| self.documents.get(text).and_then(Option::as_ref);
        let outcome = document(gives).zip(document(takes)).map(|(gives, takes)| {
            let verdict = compatibility(Schema::document(gives), select, all, Schema::document(takes));
            (verdict, constrains(gives) && constrains(takes))
        });
        self.verdicts.insert(key, outcome.clone());
        outcome
    }
}

/// Compares every input's `accepts` with what its source publishes, fills [`Plan::slots`] and says what cannot fit.
/// COM-1
pub(crate) fn check(packages: &[(&Fragment, &str)], plan: &mut Plan, diagnostics: &mut Vec<Diagnostic>) {
    let schemas = DeclaredSchemas::of(packages);
    let by_id: BTreeMap<&str, &Fragment> = {
        let mut first = BTreeMap::new();
        for (fragment, _) in packages {
            first.entry(fragment.plugin_id.as_str()).or_insert(*fragment);
        }
        first
    };
    let mut memo = Memo::default();
    let mut slots: Vec<(u32, u32)> = Vec::new();
    for (ix, row) in plan.runtimes.iter().enumerate() {
        let Some(fragment) = by_id.get(plan.plugins[row.plugin as usize].id.as_str()) else {
            continue;
        };
        let Some(runtime) = fragment.runtimes.get(row.local as usize) else {
            continue;
        };
        for input in &runtime.inputs {
            let outcome = input_verdict(&schemas, &mut memo, fragment, input);
            slots.push((
                ix as u32,
                outcome.as_ref().map_or(SLOT_UNCHECKED, |(verdict, _)| verdict.compatibility as u32),
            ));
            if let Some((verdict, both)) = outcome
                && let Some(finding) = finding(fragment, runtime, input, &verdict, both)
            {
                diagnostics.push(finding);
            }
        }
    }
    plan.slots = Csr::group(plan.runtimes.len(), &slots);
}

fn input_verdict<'a>(
    schemas: &DeclaredSchemas<'a>,
    memo: &mut Memo<'a>,
    fragment: &'a Fragment,
    input: &'a InputDecl,
) -> Option<(Verdict, bool)> {
    let public = |contract: &Option<String>| -> Option<&'a str> { schemas.0.get(contract.as_deref()?).copied() };
    let takes: Vec<&'a str> =
        [input.accepts.as_deref(), public(&input.accepts_contract)].into_iter().flatten().collect();
    let gives: Vec<&'a str> = match (&input.contract, &input.runtime) {
        (Some(_), _) => public(&input.contract).into_iter().collect(),
        (None, Some(id)) => {
            let source = fragment.runtimes.iter().find(|runtime| runtime.id == *id)?;
            // The story agent's private schema is not a gate.
            let gated = source.visibility != Visibility::Story;
            let private = source.output.schema.as_deref().filter(|_| gated);
            let named = public(&source.output.schema_contract).filter(|_| gated);
            [public(&source.output.contract), private, named].into_iter().flatten().collect()
        }
        (None, None) => return None,
    };
    let all = input.cardinality == Cardinality::All;
    let select = input.select.as_deref();
    let mut worst: Option<(Verdict, bool)> = None;
    for takes in takes {
        // Several schemas bind one result: one that settles the matter does so for all, else the first speaks.
        let mut verdicts: Vec<(Verdict, bool)> =
            gives.iter().filter_map(|gives| memo.judge(gives, select, all, takes)).collect();
        let several = verdicts.len() > 1;
        let settled = verdicts.iter().position(|(verdict, _)| verdict.compatibility == Compatibility::Compatible);
        let mut found = match settled {
            Some(at) => verdicts.swap_remove(at),
            None if verdicts.is_empty() => continue,
            None => verdicts.swap_remove(0),
        };
        if several && found.0.compatibility == Compatibility::Incompatible {
            found.0.compatibility = Compatibility::Indeterminate;
        }
        if worst.as_ref().is_none_or(|(before, _)| found.0.compatibility as u8 > before.compatibility as u8) {
            worst = Some(found);
        }
    }
    worst
}

fn finding(
    fragment: &Fragment,
    runtime: &RuntimeDecl,
    input: &InputDecl,
    verdict: &Verdict,
    both: bool,
) -> Option<Diagnostic> {
    let source = input.contract.as_deref().or(input.runtime.as_deref()).unwrap_or_default();
    let place = if verdict.at.is_empty() { String::new() } else { format!(" at `{}`", verdict.at) };
    let (severity, code, message, help) = match verdict.compatibility {
        Compatibility::Incompatible => (
            Severity::Error,
            "input-schema-incompatible",
            format!(
                "the input `{}` of `{}` does not accept what `{source}` publishes{place}: {}",
                input.name, runtime.id, verdict.because
            ),
            if input.required {
                "change `accepts`; with this schema the runtime is skipped in every turn"
            } else {
                "change `accepts`; with this schema the input is left out in every turn"
            },
        ),
        Compatibility::Indeterminate if verdict.undecidable && both => (
            Severity::Warning,
            "slot-compatibility-indeterminate",
            format!(
                "whether the input `{}` of `{}` accepts what `{source}` publishes depends on the value{place}: {}",
                input.name, runtime.id, verdict.because
            ),
            "the value is checked in each turn",
        ),
        _ => return None,
    };
    Some(Diagnostic {
        severity,
        code: code.into(),
        message,
        help: Some(help.into()),
        plugin_id: Some(fragment.plugin_id.clone()),
        file: input.origin.file.clone(),
        line: input.origin.line,
        column: input.origin.column,
        path: None,
    })
}
