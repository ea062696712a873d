//! Packages, activations and archives from mutated bytes: nothing panics, nothing doubtful is accepted.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, sync::Arc};

use covel_graph::{
    ActivationRequest, Discovery, PlanDigest, PlanHandle, PluginId, activate, compile_in_memory, decode_fragment,
    encode_fragment, link,
};
use proptest::prelude::*;

const ROOT: &str = "---\nid: p\nkind: plugin\ndescription: A package.\nprovides: [a@1, { contract: b@2, default: true }]\nrequires: [c@1]\noptional: [d@1]\ncontracts: { a@1: { schema: ./a.json } }\ncontributes:\n  settings:\n    - { key: k, type: slider, label: { en: K, zh: K }, default: 1, min: 0, max: 3 }\n  events: [{ topic: a.b, schema: ./a.json, description: &x It happened. }]\n  data: { notes: { version: 1, schema: ./a.json } }\n---\nBody.\n";
const RUNTIME: &str = "---\ntype: agent\nschedule: { stage: pre-turn, trigger: { type: scheduled, interval: 2 }, needs: [{ contract: c@1 }], after: [p/r] }\nio:\n  inputs: { i: { from: { contract: d@1, cardinality: all }, select: /a/0, accepts: ../../a.json } }\n  output: { contract: a@1 }\nagent: { tools: { builtin: [emit-event] }, loop: { maxSteps: 3 } }\neffects: { reads: [\"ui:*\"], parallelSafe: true }\n---\nSay it.\n";
const SCHEMA: &str =
    r##"{"type":"object","$defs":{"t":{"$ref":"#"}},"properties":{"a":{"items":{"$ref":"#/$defs/t"}}}}"##;

/// A place, and what to do there: 0 replace, 1 insert, 2 cut, 3 repeat what follows.
type Mutation = (prop::sample::Index, u8, u8, u8);

fn mutated(bytes: &[u8], mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, what, value, length) in mutations {
        let at = at.index(bytes.len().max(1)).min(bytes.len());
        let end = (at + *length as usize % 24).min(bytes.len());
        match what % 4 {
            0 if at < bytes.len() => bytes[at] = *value,
            1 => bytes.insert(at, *value),
            2 => drop(bytes.drain(at..end)),
            _ => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

fn text(bytes: &[u8], mutations: &[Mutation]) -> String {
    // Signs that mean something to YAML are likelier to reach deep than any byte.
    let signs = b"{}[]:,-&*!|>'\"#%@`~\n \t?0a";
    let chosen: Vec<Mutation> = mutations
        .iter()
        .map(|(at, what, value, length)| (*at, *what, signs[*value as usize % signs.len()], *length))
        .collect();
    String::from_utf8_lossy(&mutated(bytes, &chosen)).into_owned()
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    prop::collection::vec(any::<Mutation>(), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Front matter, manifests, schemas, activation and linking.
    #[test]
    fn mutated_packages_compile_or_say_why(root in mutations(), runtime in mutations(), schema in mutations(), which in 0u8..8) {
        let pick = |bit: u8, original: &str, mutations: &[Mutation]| {
            if which & bit != 0 || which == 0 { text(original.as_bytes(), mutations) } else { original.to_owned() }
        };
        let (root, runtime, schema) = (pick(1, ROOT, &root), pick(2, RUNTIME, &runtime), pick(4, SCHEMA, &schema));
        let files = [("PLUGIN.md", root.as_str()), ("runtimes/r/RUNTIME.md", runtime.as_str()), ("a.json", schema.as_str())];
        let compiled = compile_in_memory(&files, Discovery::Community);
        prop_assert!(compiled.package.is_some() != compiled.has_errors());
        for finding in &compiled.diagnostics {
            prop_assert!(!finding.code.is_empty() && finding.message.len() < 4_000, "{}", finding);
        }
        if let Some(package) = compiled.package {
            let packages = [package];
            let id = PluginId::from(packages[0].id());
            let outcome = activate(&ActivationRequest {
                packages: &packages,
                requested: vec![id.clone(), id],
                excluded: BTreeSet::new(),
                approved: BTreeSet::new(),
                required_contracts: BTreeSet::new(),
            });
            prop_assert!(outcome.active.len() <= 1);
            prop_assert!(link(&packages).unwrap().handle().is_ok());
        }
    }

    /// Archives: a changed one is refused, whatever was changed.
    #[test]
    fn mutated_archives_are_refused(changes in mutations()) {
        let files = [("PLUGIN.md", ROOT), ("runtimes/r/RUNTIME.md", &RUNTIME.replace(", after: [p/r]", "")), ("a.json", SCHEMA)];
        let compiled = compile_in_memory(&files, Discovery::Builtin);
        let package = compiled.package.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
        let fragment = encode_fragment(&package.fragment).unwrap();
        let other = mutated(&fragment, &changes);
        prop_assert!(other == fragment || decode_fragment(&other).is_err());
        let linked = link(&[package]).unwrap();
        let other = mutated(&linked.bytes, &changes);
        let digest = PlanDigest::from(linked.digest.as_str());
        prop_assert!(other == linked.bytes.as_slice() || PlanHandle::open(Arc::from(other), &digest).is_err());
    }
}
