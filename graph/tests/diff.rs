//! What `covel plan --diff` says of two plans.
#![allow(clippy::unwrap_used)]

use covel_graph::{DiffDocument, Discovery, PlanHandle, compile_in_memory, link};

const HANDLER: (&str, &str) = ("handler.js", "export default () => ({ outcome: 'success', value: {} });");

fn plan(manifests: &[&str]) -> PlanHandle {
    let packages: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            let text = format!("---\n{manifest}\n---\n");
            let files =
                [("PLUGIN.md", text.as_str()), HANDLER, ("any.json", "{}"), ("entry.js", "export default () => {};")];
            let compiled = compile_in_memory(&files, Discovery::Builtin);
            compiled.package.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
        })
        .collect();
    link(&packages).unwrap().handle().unwrap()
}

const GIVER: &str = "id: giver\nkind: plugin\nversion: 1.0.0\ndescription: Gives.\nprovides: [thing@1]\ncontracts: { thing@1: { schema: ./any.json } }\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { output: { contract: thing@1 } }\n  function: { handler: ./handler.js }";
const TAKER: &str = "id: taker\nkind: plugin\ndescription: Takes.\noptional: [thing@1]\nruntime:\n  type: function\n  schedule: { stage: pre-turn }\n  io: { inputs: { it: { from: { contract: thing@1 } } } }\n  function: { handler: ./handler.js }";
const TAKER_LATER: &str = "id: taker\nkind: plugin\nversion: 2.0.0\ndescription: Takes.\noptional: [thing@1]\nentry: ./entry.js\ncontributes:\n  services: [{ contract: keep.thing@1, access: write }]\n  events: [{ topic: thing.kept, schema: ./any.json, description: It was kept. }]\nruntime:\n  type: function\n  schedule: { stage: post-turn }\n  permissions: { http: [{ origin: \"https://a.example\", methods: [GET] }] }\n  function: { handler: ./handler.js }";

#[test]
fn a_plan_does_not_differ_from_itself() {
    let diff = DiffDocument::of(&plan(&[GIVER, TAKER]), &plan(&[TAKER, GIVER]));
    assert!(diff.is_empty());
    assert!(diff.to_text().contains("no difference"));
}

#[test]
fn every_kind_of_difference_is_named() {
    let (before, after) = (plan(&[GIVER, TAKER]), plan(&[GIVER, TAKER_LATER]));
    let diff = DiffDocument::of(&before, &after);
    assert_eq!(diff.plugins.changed.len(), 1);
    assert_eq!(diff.plugins.changed[0].what[0], "version: 0.0.0 -> 2.0.0");
    assert_eq!(diff.runtimes.changed[0].name, "taker");
    assert_eq!(diff.runtimes.changed[0].what, ["stage: pre-turn -> post-turn"]);
    assert_eq!(diff.edges.removed, ["giver -> taker (input-one over thing@1)"]);
    assert_eq!(diff.topics.added, ["thing.kept"]);
    assert_eq!(diff.contracts.added, ["keep.thing@1"]);
    assert_eq!(diff.capabilities.added, ["taker: http GET https://a.example", "taker: service-write keep.thing@1"]);
    assert!(diff.capabilities.removed.is_empty());

    let back = DiffDocument::of(&after, &before);
    assert_eq!(back.capabilities.removed, diff.capabilities.added);
    assert_eq!(back.edges.added, diff.edges.removed);
    let text = diff.to_text();
    for line in
        ["  ~ taker\n      stage: pre-turn -> post-turn", "  + taker: service-write keep.thing@1", "  - giver -> taker"]
    {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn the_document_is_read_back_from_its_json() {
    let diff = DiffDocument::of(&plan(&[GIVER]), &plan(&[GIVER, TAKER]));
    assert_eq!(diff.runtimes.added, ["taker"]);
    assert!(diff.contracts.is_empty(), "the contract was there before: {:?}", diff.contracts);
    let json = serde_json::to_string(&diff).unwrap();
    assert_eq!(serde_json::from_str::<DiffDocument>(&json).unwrap(), diff);
}
