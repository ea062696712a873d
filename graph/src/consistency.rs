//! What packages take for granted of each other: one schema a contract, publishers, declared topics.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    diagnostic::{Diagnostic, Severity},
    fragment::{Fragment, Origin},
    plan::{NONE, Plan},
};

/// What one package takes for granted of another.
pub(crate) fn check(packages: &[(&Fragment, &str)], plan: &Plan, diagnostics: &mut Vec<Diagnostic>) {
    let mut schemas: BTreeMap<&str, (&Fragment, &str)> = BTreeMap::new();
    let mut declared: BTreeMap<&str, &Fragment> = BTreeMap::new();
    let mut topics: BTreeSet<&str> = BTreeSet::new();
    for (fragment, _) in packages {
        for contract in &fragment.contracts {
            match schemas.get(contract.contract.as_str()) {
                Some((first, schema)) if !same_json(schema, &contract.schema) => diagnostics.push(at(
                    fragment,
                    "contract-schema-differs",
                    format!(
                        "`{}` has another schema here than in `{}`; a contract has one",
                        contract.contract, first.plugin_id
                    ),
                    &contract.origin,
                )),
                Some(_) => {}
                None => {
                    schemas.insert(&contract.contract, (fragment, &contract.schema));
                }
            }
        }
        declared.extend(fragment.provides.iter().map(|provide| (provide.contract.as_str(), *fragment)));
        topics.extend(fragment.events.iter().map(|event| event.topic.as_str()));
    }
    for (fragment, _) in packages {
        for data in &fragment.data {
            for contract in &data.accepts {
                schemas.entry(contract).or_insert((fragment, &data.schema));
            }
        }
    }
    let mut said: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (fragment, _) in packages {
        for runtime in &fragment.runtimes {
            let inputs =
                runtime.inputs.iter().filter_map(|input| input.contract.as_ref().map(|name| (name, &input.origin)));
            let needs = runtime.needs.iter().filter_map(|need| need.contract.as_ref().map(|name| (name, &need.origin)));
            for (contract, origin) in inputs.clone().chain(needs) {
                let Some(provider) = declared.get(contract.as_str()) else {
                    continue;
                };
                let ix = plan.contracts.binary_search(contract).map_or(NONE, |ix| ix as u32);
                if plan.providers.row(ix).is_empty() && said.insert(("provider", contract)) {
                    let message = format!(
                        "`{contract}` is listed in `provides` of `{}`, but none of its runtimes publishes it",
                        provider.plugin_id
                    );
                    diagnostics.push(at(fragment, "provider-declared-only", message, origin));
                }
            }
            for (contract, origin) in inputs {
                let known = declared.contains_key(contract.as_str());
                if known && !schemas.contains_key(contract.as_str()) && said.insert(("schema", contract)) {
                    let message = format!("`{contract}` is read here, but no active package publishes its schema");
                    diagnostics.push(at(fragment, "contract-without-schema", message, origin));
                }
            }
            for input in &runtime.inputs {
                if let Some(contract) = &input.accepts_contract
                    && !schemas.contains_key(contract.as_str())
                {
                    let message = format!(
                        "`{contract}` is published by no active package; the input `{}` is withheld",
                        input.name
                    );
                    let mut found = at(fragment, "accepts-contract-unresolved", message, &input.origin);
                    // Withholding a required input is never running at all.
                    if input.required {
                        found.severity = Severity::Error;
                    }
                    diagnostics.push(found);
                }
            }
            if let Some(topic) = &runtime.topic
                && !topics.contains(topic.as_str())
            {
                let message = format!("`{}` waits for `{topic}`, which no active package declares", runtime.id);
                diagnostics.push(at(fragment, "topic-undeclared", message, &runtime.origin));
            }
        }
    }
}

fn same_json(a: &str, b: &str) -> bool {
    let parse = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    a == b || parse(a) == parse(b)
}

fn at(fragment: &Fragment, code: &str, message: String, origin: &Origin) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        code: code.into(),
        message,
        help: None,
        plugin_id: Some(fragment.plugin_id.clone()),
        file: origin.file.clone(),
        line: origin.line,
        column: origin.column,
        path: None,
    }
}
