//! The `covel plan` forms, and the JSON Schemas for editors.
#![allow(clippy::unwrap_used)]

use covel_graph::{
    Discovery, ManifestKind, PlanDocument, Validator, WhyDocument, compile_in_memory, link, manifest_schema,
};
use serde_json::{Value, json};

const HANDLER: &str = "function: { handler: ../../handler.js }\n";

fn document() -> (PlanDocument, covel_graph::PlanHandle) {
    let story = "---\nid: story\nkind: plugin\ndescription: The story.\nprovides: [story.text@1]\noptional: [world.clock@1]\n---\n";
    let narrator = "---\ntype: agent\nschedule:\n  stage: narrative\n  after:\n    - story/prepare\nio:\n  inputs:\n    clock: { from: { contract: world.clock@1 } }\n  output: { contract: story.text@1 }\n---\nTell.\n";
    let prepare = format!("---\ntype: function\nschedule: {{ stage: narrative }}\n{HANDLER}---\n");
    let clock = "---\nid: clock\nkind: plugin\ndescription: The clock.\nprovides: [world.clock@1]\ncontracts: { world.clock@1: { schema: any.json } }\ncontributes: { events: [{ topic: bell.rung, schema: any.json, description: A bell rang. }] }\n---\n";
    let tick = format!(
        "---\ntype: function\nschedule: {{ stage: narrative, trigger: {{ type: scheduled, interval: 3, startTurn: 2 }} }}\nio: {{ output: {{ contract: world.clock@1 }} }}\n{HANDLER}---\n"
    );
    let echo =
        format!("---\ntype: function\nschedule: {{ trigger: {{ type: event, topic: bell.rung }} }}\n{HANDLER}---\n");
    let packages = [
        compile_in_memory(
            &[
                ("PLUGIN.md", story),
                ("handler.js", ""),
                ("runtimes/narrator/RUNTIME.md", narrator),
                ("runtimes/prepare/RUNTIME.md", &prepare),
            ],
            Discovery::Builtin,
        ),
        compile_in_memory(
            &[
                ("PLUGIN.md", clock),
                ("handler.js", ""),
                ("any.json", "{}"),
                ("runtimes/tick/RUNTIME.md", &tick),
                ("runtimes/echo/RUNTIME.md", &echo),
            ],
            Discovery::Builtin,
        ),
    ]
    .map(|compiled| compiled.package.unwrap());
    let linked = link(&packages).unwrap();
    let handle = linked.handle().unwrap();
    (PlanDocument::of(&handle, &linked.diagnostics), handle)
}

#[test]
fn the_document_has_the_stated_shape() {
    let (document, _) = document();
    let mut value = serde_json::to_value(&document).unwrap();
    assert_eq!(value["digest"].as_str().unwrap().len(), 64);
    value["digest"] = json!("");
    assert_eq!(
        value,
        json!({
            "digest": "",
            "stages": [
                {"stage": "setup", "layers": []},
                {"stage": "pre-turn", "layers": []},
                {"stage": "narrative", "layers": [["clock/tick", "story/prepare"], ["story/narrator"]]},
                {"stage": "post-turn", "layers": []},
                {"stage": "audit", "layers": []},
            ],
            "edges": [
                {"from": "story/prepare", "to": "story/narrator", "kind": "after", "file": "runtimes/narrator/RUNTIME.md", "line": 6},
                {"from": "clock/tick", "to": "story/narrator", "kind": "input-one", "contract": "world.clock@1",
                 "file": "runtimes/narrator/RUNTIME.md", "line": 9},
            ],
            "subscriptions": [{"topic": "bell.rung", "runtimeId": "clock/echo"}],
            "diagnostics": [],
        })
    );
}

#[test]
fn text_mermaid_and_dot_name_every_edge() {
    let (document, _) = document();
    let text = document.to_text();
    assert!(text.contains("narrative\n  layer 0: clock/tick, story/prepare\n  layer 1: story/narrator\n"), "{text}");
    assert!(
        text.contains("clock/tick -> story/narrator  input-one over world.clock@1  runtimes/narrator/RUNTIME.md:9"),
        "{text}"
    );
    let mermaid = document.to_mermaid();
    assert!(mermaid.starts_with("flowchart LR\n  subgraph narrative[\"narrative\"]\n"), "{mermaid}");
    assert_eq!(mermaid.lines().filter(|line| line.contains("-->") || line.contains("-.->")).count(), 2, "{mermaid}");
    assert!(mermaid.contains("t0 ==> r0"), "{mermaid}");
    let dot = document.to_dot();
    assert!(
        dot.contains(
            "\"story/prepare\" -> \"story/narrator\" [label=\"after runtimes/narrator/RUNTIME.md:6\", style=dotted];"
        ),
        "{dot}"
    );
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}

#[test]
fn names_cannot_break_out_of_a_drawing() {
    let (mut document, _) = document();
    document.edges[0].file = "a\"]; end\n\\\"b".into();
    assert!(!document.to_mermaid().contains("a\"]"));
    assert!(document.to_dot().contains("a\\\"]; end \\\\\\\"b"));
}

#[test]
fn one_runtime_is_explained() {
    let (_, handle) = document();
    let why = WhyDocument::of(&handle, "story/narrator").unwrap();
    assert_eq!(why.starts, "every turn");
    assert_eq!(
        why.waits_for,
        [
            "after: story/prepare (runtimes/narrator/RUNTIME.md:6)",
            "input-one: a provider of world.clock@1 (clock/tick) (runtimes/narrator/RUNTIME.md:9)"
        ]
    );
    let tick = WhyDocument::of(&handle, "clock/tick").unwrap();
    assert_eq!(tick.starts, "every turn whose number 3 divides, from turn 2");
    assert_eq!(tick.awaited_by.len(), 1);
    assert_eq!(WhyDocument::of(&handle, "clock/echo").unwrap().starts, "the event `bell.rung`");
    assert!(WhyDocument::of(&handle, "nobody").is_none());
}

fn front_matter(text: &str) -> Option<Value> {
    let yaml = text.strip_prefix("---\n")?.split("\n---\n").next()?;
    serde_saphyr::from_str(yaml).ok()
}

/// The editor schemas accept what the compiler accepts, and refuse what its tables refuse.
#[test]
fn editor_schemas_agree_with_the_compiler() {
    let plugin = Validator::new(&manifest_schema(ManifestKind::Plugin)).unwrap();
    let runtime = Validator::new(&manifest_schema(ManifestKind::Runtime)).unwrap();
    #[derive(serde::Deserialize)]
    struct Case {
        case: String,
        fields: Option<String>,
        runtime: Option<String>,
        agent: Option<String>,
        function: Option<String>,
        finds: Vec<String>,
    }
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases/bad_packages.yaml")).unwrap();
    // What is a matter of shape alone; the rest needs the files, other fields or other packages.
    const SHAPE: &[&str] = &[
        "unknown-field",
        "wrong-type",
        "missing-field",
        "unknown-word",
        "out-of-range",
        "bad-contract-id",
        "bad-topic",
        "bad-tag",
        "bad-link",
        "bad-origin",
        "bad-pointer",
        "list-too-long",
        "map-too-short",
        "v1-field",
        "misplaced-field",
        "package-field-in-runtime",
        "bad-path",
        "bad-key",
        "too-long",
        "reserved-namespace",
        "bad-effect",
        "empty-text",
    ];
    let mut compared = 0;
    for case in &cases {
        let wrong = |file: &str| {
            case.finds.iter().any(|find| {
                let (code, place) = find.split_once(' ').unwrap();
                SHAPE.contains(&code)
                    && place.contains(':') == (file != "PLUGIN.md")
                    && (file == "PLUGIN.md" || place.starts_with(file))
            })
        };
        if let Some(fields) = &case.fields {
            let text = format!("---\nid: p\nkind: plugin\ndescription: A package.\n{fields}\n---\n");
            let Some(value) = front_matter(&text) else {
                continue;
            };
            // Which lists are sets differs; a repeated item is compared nowhere.
            if !case.finds.iter().any(|find| find.starts_with("duplicate-item")) {
                assert_eq!(plugin.is_valid(&value), !wrong("PLUGIN.md"), "{}", case.case);
                compared += 1;
            }
        }
        let text = match (&case.function, &case.agent, &case.runtime) {
            (Some(text), ..) => {
                format!("type: function\nfunction: {{ handler: ../../handler.js }}\n{text}")
            }
            (_, Some(text), _) => format!("type: agent\n{text}"),
            (_, _, Some(text)) => text.clone(),
            _ => continue,
        };
        let Some(value) = front_matter(&format!("---\n{text}\n---\n")) else {
            continue;
        };
        assert_eq!(runtime.is_valid(&value), !wrong("runtimes/r/RUNTIME.md"), "{}", case.case);
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}
