//! `tests/cases/schema_compat.yaml`, the same through whole packages, and a check against validating values.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use covel_graph::{
    Compatibility, Discovery, Linked, Package, Severity, Validator,
    compat::{Schema, compatibility},
    compile_in_memory, link,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    says: String,
    is: Compatibility,
    gives: Value,
    accepts: Value,
    select: Option<String>,
    #[serde(default)]
    all: bool,
    at: Option<String>,
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("../../tests/cases/schema_compat.yaml")).unwrap()
}

/// Covers: COM-1
#[test]
fn every_pair_comes_out_as_stated() {
    let cases = cases();
    assert!(cases.len() >= 33);
    let mut failed = Vec::new();
    for case in &cases {
        let (gives, accepts) = (Schema::document(&case.gives), Schema::document(&case.accepts));
        let found = compatibility(gives, case.select.as_deref(), case.all, accepts);
        if found.compatibility != case.is || case.at.as_ref().is_some_and(|at| *at != found.at) {
            failed.push(format!("{}: {found:?}", case.says));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn package(files: &[(&str, String)]) -> Arc<Package> {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let compiled = compile_in_memory(&files, Discovery::Builtin);
    compiled.package.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// A package that publishes `thing@1` and one that reads it.
fn pair(gives: &Value, input: &Value) -> Linked {
    let handler = "export default () => ({ outcome: 'success', value: null });".to_owned();
    let (mut input, accepts) = (input.clone(), input["accepts"].to_string());
    if accepts != "null" {
        input["accepts"] = json!("./accepts.json");
    }
    let provider = json!({"id": "giver", "kind": "plugin", "description": "Gives.", "provides": ["thing@1"],
        "contracts": {"thing@1": {"schema": "./thing.json"}},
        "runtime": {"type": "function", "schedule": {"stage": "pre-turn"}, "io": {"output": {"contract": "thing@1"}},
            "function": {"handler": "./handler.js"}}});
    let consumer = json!({"id": "taker", "kind": "plugin", "description": "Takes.", "optional": ["thing@1"],
        "runtime": {"type": "function", "schedule": {"stage": "pre-turn"},
            "io": {"inputs": {"it": input}}, "function": {"handler": "./handler.js"}}});
    let text = |manifest: &Value| format!("---\n{manifest}\n---\n");
    link(&[
        package(&[("PLUGIN.md", text(&provider)), ("thing.json", gives.to_string()), ("handler.js", handler.clone())]),
        package(&[("PLUGIN.md", text(&consumer)), ("accepts.json", accepts), ("handler.js", handler)]),
    ])
    .unwrap()
}

fn found<'a>(linked: &'a Linked, code: &str) -> Option<&'a covel_graph::Diagnostic> {
    linked.diagnostics.iter().find(|one| one.code == code)
}

fn slot(linked: &Linked) -> Option<Compatibility> {
    let plan = linked.handle().unwrap();
    plan.input_compatibility(plan.runtime_by_id("taker").unwrap(), 0)
}

/// Covers: COM-1
#[test]
fn an_input_that_can_never_fit_is_an_error_of_the_link() {
    for required in [true, false] {
        let input = json!({"from": {"contract": "thing@1"}, "select": "/n", "required": required, "accepts": {"type": "string"}});
        let linked = pair(&json!({"type": "object", "properties": {"n": {"type": "number"}}}), &input);
        let error = found(&linked, "input-schema-incompatible").unwrap();
        assert_eq!(error.severity, Severity::Error);
        assert_eq!(error.plugin_id.as_deref(), Some("taker"));
        assert!(error.line > 0 && error.message.contains("number is given, string is accepted"), "{error}");
        let help = error.help.as_deref().unwrap();
        assert!(help.contains(if required { "skipped" } else { "left out" }), "{help}");
        // It loads all the same: the plan opens and says which input to withhold.
        assert_eq!(slot(&linked), Some(Compatibility::Incompatible));
    }
}

#[test]
fn what_fits_and_what_the_value_decides_is_no_finding() {
    let input = json!({"from": {"contract": "thing@1"}, "accepts": {"type": "object"}});
    let linked = pair(&json!({"type": "object"}), &input);
    assert_eq!(slot(&linked), Some(Compatibility::Compatible));
    assert!(linked.diagnostics.is_empty(), "{:?}", linked.diagnostics);

    let linked = pair(&json!({}), &input);
    assert_eq!(slot(&linked), Some(Compatibility::Indeterminate));
    assert!(linked.diagnostics.is_empty(), "{:?}", linked.diagnostics);

    let input = json!({"from": {"contract": "thing@1"}});
    assert_eq!(slot(&pair(&json!({"type": "object"}), &input)), None);
}

#[test]
fn only_what_cannot_be_decided_is_a_warning() {
    let input = json!({"from": {"contract": "thing@1"}, "accepts": {"type": "string", "pattern": "^[a-m]+$"}});
    let linked = pair(&json!({"type": "string", "pattern": "^[a-z]+$"}), &input);
    let warning = found(&linked, "slot-compatibility-indeterminate").unwrap();
    assert_eq!(warning.severity, Severity::Warning);
    assert_eq!(slot(&linked), Some(Compatibility::Indeterminate));
}

/// A schema of thousands of nested alternatives is given up, not worked through.
#[test]
fn work_is_bounded() {
    let mut gives = json!({"type": "string", "maxLength": 3});
    let mut accepts = json!({"type": "string", "maxLength": 3});
    for depth in 0..20 {
        gives = json!({"anyOf": [{"type": "object", "properties": {"a": gives.clone()}}, {"type": "object", "properties": {"b": gives}}]});
        accepts = json!({"anyOf": [{"type": "object", "properties": {"a": accepts}}, {"type": "object", "maxProperties": depth}]});
        if gives.to_string().len() > 20_000 {
            break;
        }
    }
    let started = std::time::Instant::now();
    compatibility(Schema::document(&gives), None, false, Schema::document(&accepts));
    assert!(started.elapsed().as_secs() < 20);
}

/// Schemas of a few constants; `lively` ones permit something in each of their parts.
fn small_schema(lively: bool) -> impl Strategy<Value = Value> {
    let bound = -2i64..3;
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        (bound.clone(), bound.clone()).prop_map(move |(low, high)| json!({"type": "integer", "minimum": low, "maximum": if lively { high.max(low) } else { high }})),
        bound.clone().prop_map(|low| json!({"type": "number", "exclusiveMinimum": low})),
        bound.prop_map(|high| json!({"maximum": high})),
        (0u64..3, 0u64..3).prop_map(move |(low, high)| json!({"type": "string", "minLength": low, "maxLength": if lively { high.max(low) } else { high }})),
        prop_oneof![Just("^a"), Just("^ab"), Just("^b"), Just("b$")].prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        prop::sample::subsequence(vec![json!("a"), json!(1), json!(null), json!(true)], 1..4).prop_map(|values| json!({"enum": values})),
    ];
    leaf.prop_recursive(2, 12, 3, move |inner| {
        prop_oneof![
            (inner.clone(), prop::bool::ANY, prop::bool::ANY).prop_map(|(a, required, closed)| {
                let mut schema = json!({"type": "object", "properties": {"a": a}});
                if required {
                    schema["required"] = json!(["a"]);
                }
                if closed {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            }),
            (inner.clone(), inner.clone())
                .prop_map(|(a, rest)| json!({"type": "object", "properties": {"a": a}, "additionalProperties": rest})),
            (inner.clone(), 0u64..3)
                .prop_map(|(items, least)| json!({"type": "array", "items": items, "minItems": least})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| json!({"anyOf": parts})),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(move |parts| json!({(if lively { "anyOf" } else { "oneOf" }): parts})),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(move |parts| json!({(if lively { "anyOf" } else { "allOf" }): parts})),
            inner.prop_map(move |part| if lively { part } else { json!({"not": part}) }),
        ]
    })
}

/// Enough values to tell small schemas apart.
fn universe() -> Vec<Value> {
    let mut values = vec![json!(null), json!(true), json!(false)];
    values.extend((-4..5).map(|n| json!(n)));
    values.extend([0.5, -1.5, 2.5, 1e6].map(|n| json!(n)));
    values.extend(["", "a", "b", "ab", "aa", "ba", "abc", "bbbbb"].map(|text| json!(text)));
    // Two levels of nesting, as deep as the schemas go.
    let simple = values.clone();
    let nest = |value: &Value| {
        [
            json!({"a": value}),
            json!({"z": value}),
            json!({"a": value, "z": value}),
            json!([value]),
            json!([value, value]),
        ]
    };
    let once: Vec<Value> = [json!({}), json!([])].into_iter().chain(simple.iter().flat_map(nest)).collect();
    values.extend(once.iter().flat_map(nest));
    values.extend(once);
    values
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is called compatible never lets a refused value through.
    #[test]
    fn compatible_holds_for_every_value(gives in small_schema(false), accepts in small_schema(false)) {
        let verdict = compatibility(Schema::document(&gives), None, false, Schema::document(&accepts));
        let (from, to) = (Validator::new(&gives).unwrap(), Validator::new(&accepts).unwrap());
        let refused = universe().into_iter().find(|value| from.is_valid(value) && !to.is_valid(value));
        if verdict.compatibility == Compatibility::Compatible {
            prop_assert_eq!(refused, None);
        }
    }

    /// What is called incompatible has a value that is given and refused, unless nothing can be given at all.
    #[test]
    fn incompatible_names_a_value(gives in small_schema(true), accepts in small_schema(false)) {
        let verdict = compatibility(Schema::document(&gives), None, false, Schema::document(&accepts));
        let (from, to) = (Validator::new(&gives).unwrap(), Validator::new(&accepts).unwrap());
        let given: Vec<Value> = universe().into_iter().filter(|value| from.is_valid(value)).collect();
        if verdict.compatibility == Compatibility::Incompatible && !given.is_empty() {
            prop_assert!(given.iter().any(|value| !to.is_valid(value)), "{:?}", verdict);
        }
    }
}
