//! The manifest language where it is generous: short forms, defaults, translations, and what is resolved for later.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use covel_graph::{
    Discovery, Package, Stage, compile_in_memory,
    fragment::{Cardinality, CompletionMode, Enforce, ManualExecution, PromptPosition, ServiceAccess, TriggerKind},
    link,
};
use proptest::prelude::*;

const FUNCTION: &str = "type: function\nfunction: { handler: ../../server/index.ts }\n";

fn compile(fields: &str, more: &[(&str, &str)]) -> Result<Arc<Package>, Vec<String>> {
    let root = format!("---\nid: p\nkind: plugin\ndescription: A package.\n{fields}\n---\nRoot body.\n");
    let mut files =
        vec![("PLUGIN.md", root.as_str()), ("server/index.ts", "export default () => {}"), ("any.json", "{}")];
    files.extend_from_slice(more);
    let compiled = compile_in_memory(&files, Discovery::Builtin);
    match compiled.package {
        Some(package) if compiled.diagnostics.is_empty() => Ok(package),
        _ => Err(compiled.diagnostics.iter().map(|one| format!("{} {}", one.code, one.message)).collect()),
    }
}

fn runtime(text: &str) -> String {
    format!("---\n{text}\n---\nBody.\n")
}

#[test]
fn defaults_are_filled_in() {
    let setup = runtime(&format!("{FUNCTION}schedule: {{ stage: setup }}"));
    let plain = runtime(&format!("{FUNCTION}schedule: {{ stage: audit }}\nagent:\nguard:\n"));
    let job = runtime(&format!(
        "{FUNCTION}schedule: {{ stage: audit, completion: {{ mode: detached }}, manual: {{ execution: background }} }}"
    ));
    let package = compile(
        "",
        &[("runtimes/a/RUNTIME.md", &setup), ("runtimes/b/RUNTIME.md", &plain), ("runtimes/c/RUNTIME.md", &job)],
    )
    .unwrap();
    let fragment = &package.fragment;
    assert_eq!((fragment.version.as_str(), fragment.display_name[0].1.as_str()), ("0.0.0", "p"));
    let [a, b, c] = &fragment.runtimes[..] else { panic!() };
    assert_eq!((a.trigger, a.max_trigger_count), (TriggerKind::Auto, 3));
    assert_eq!((b.trigger, b.max_trigger_count), (TriggerKind::Auto, 0));
    assert_eq!(b.function.as_ref().unwrap().timeout_ms, 30_000);
    assert_eq!(b.prompt, "Body.");
    assert_eq!(c.completion.mode, CompletionMode::Detached);
    assert_eq!(c.manual, ManualExecution::Background);
}

/// The static side of COM-5.
#[test]
fn a_subagent_is_in_no_stage_and_found_by_contract() {
    let text = runtime("type: agent\nschedule: { subagentOnly: true }\nio: { output: { contract: actor@1 } }");
    let package = compile("provides: [actor@1]", &[("runtimes/actor/RUNTIME.md", &text)]).unwrap();
    let linked = link(&[package]).unwrap();
    let plan = linked.handle().unwrap();
    let ix = plan.runtime_by_id("p/actor").unwrap();
    assert!(plan.runtime(ix).subagent_only);
    assert!(Stage::ALL.iter().all(|stage| plan.stage_runtimes(*stage).is_empty()));
    assert_eq!(plan.providers_of(plan.contract_by_id("actor@1").unwrap()).next(), Some(ix));
}

#[test]
fn short_and_long_forms_say_the_same() {
    let text = runtime(&format!(
        "{FUNCTION}schedule:\n  stage: audit\n  needs: [p/first, {{ runtime: p/second }}, {{ contract: a@1, cardinality: all }}]\n  after: [{{ contract: unlisted@1 }}]"
    ));
    let other = runtime(&format!("{FUNCTION}schedule: {{ stage: audit }}"));
    let package = compile(
        "requires: [{ contract: a@1, because: it tells the hour }]\noptional: [b@2]\nprovides: [{ contract: c@1, default: true }]",
        &[
            ("runtimes/r/RUNTIME.md", &text),
            ("runtimes/first/RUNTIME.md", &other),
            ("runtimes/second/RUNTIME.md", &other),
        ],
    )
    .unwrap();
    let fragment = &package.fragment;
    assert_eq!((fragment.requires[0].contract.as_str(), fragment.optional[0].contract.as_str()), ("a@1", "b@2"));
    assert!(fragment.provides[0].default);
    let needs = &fragment.runtimes.iter().find(|one| one.id == "p/r").unwrap().needs;
    assert_eq!(needs[0].runtime.as_deref(), Some("p/first"));
    assert_eq!(needs[1].runtime.as_deref(), Some("p/second"));
    assert_eq!((needs[2].contract.as_deref(), needs[2].cardinality), (Some("a@1"), Cardinality::All));
    assert_eq!(needs[0].origin.line, 6);
}

/// The static side of SVC-3, WSV-1, MFS-2.
#[test]
fn services_and_imports_are_declared() {
    let agent = runtime(
        "type: agent\nschedule: { stage: narrative }\nagent:\n  tools: { services: [inventory.items@1, { contract: inventory.change@1, as: change }] }",
    );
    let package = compile(
        "entry: server/index.ts\ncontributes:\n  services: [a@1, a@1, { contract: inventory.change@1, access: write, modelFacing: true }]",
        &[("runtimes/r/RUNTIME.md", &agent)],
    )
    .unwrap();
    let services = &package.fragment.services;
    assert_eq!(services.iter().filter(|one| one.contract == "a@1").count(), 2);
    assert_eq!((services[2].access, services[2].model_facing), (ServiceAccess::Write, true));
    let imports = &package.fragment.runtimes[0].agent.as_ref().unwrap().services;
    assert_eq!((imports[0].tool_name.as_str(), imports[1].tool_name.as_str()), ("inventory-items", "change"));
}

/// The static side of HKS-1.
#[test]
fn hooks_default_to_the_middle_group() {
    let package = compile(
        "entry: server/index.ts\ncontributes: { hooks: [{ event: TurnStop }, { event: TurnStop, enforce: pre }] }",
        &[],
    )
    .unwrap();
    let groups: Vec<Enforce> = package.fragment.hooks.iter().map(|hook| hook.enforce).collect();
    assert_eq!(groups, [Enforce::Normal, Enforce::Pre]);
}

#[test]
fn own_tools_go_to_an_inline_agent_and_to_nobody_else_unasked() {
    let tools = |fields: &str, more: &[(&str, &str)]| {
        let package = compile(&format!("entry: server/index.ts\ncontributes: {{ tools: [a, b] }}\n{fields}"), more);
        package.unwrap().fragment.runtimes[0].agent.as_ref().unwrap().plugin_tools.clone()
    };
    assert_eq!(tools("runtime: { type: agent, schedule: { stage: audit } }", &[]), ["a", "b"]);
    assert!(
        tools("runtime: { type: agent, schedule: { stage: audit }, agent: { tools: { plugin: [] } } }", &[]).is_empty()
    );
    assert!(tools("", &[("runtimes/r/RUNTIME.md", &runtime("type: agent\nschedule: { stage: audit }"))]).is_empty());
    let listed = runtime(
        "type: agent\nschedule: { stage: audit }\nagent: { tools: { plugin: [b], builtin: [delegate, emit-event] } }",
    );
    assert_eq!(tools("", &[("runtimes/r/RUNTIME.md", &listed)]), ["b"]);
}

#[test]
fn translations_are_compiled_in() {
    let text = runtime("type: agent\ndescription: Works.\nschedule: { stage: audit }");
    let package = compile(
        "author: { name: A, about: Someone., links: [{ label: Home, url: https://a.example }] }\n\
         contributes:\n  events:\n    - { topic: a.b, schema: any.json, description: First. }\n    - { topic: a.c, schema: any.json, description: { en: Second., ja: 二番. } }\n\
         \x20 settings: [{ key: size, type: select, label: Size, options: [{ value: s, label: Small }] }]\n\
         \x20 prompt: [{ id: tone, content: Be kind., position: { depth: 3 } }]",
        &[
            ("runtimes/r/RUNTIME.md", &text),
            ("runtimes/r/RUNTIME.zh.md", "---\n---\n正文。\n"),
            ("PLUGIN.zh-Hans.md", "---\ncontributes:\n  prompt: [{ id: tone, content: 友善。 }]\n---\n"),
            (
                "locales/zh_CN.yaml",
                "PLUGIN.md:\n  author: { about: 某人。, links: [{ label: 主页 }] }\n  contributes:\n    events: [{ description: 第一。 }, { description: 第二。 }]\n    settings: [{ key: size, options: [{ label: 小 }] }]\nruntimes/r/RUNTIME.md: { description: 工作。 }\nmessages: { Save: 保存 }\n",
            ),
            ("locales/lock.json", "not read"),
        ],
    )
    .unwrap();
    let fragment = &package.fragment;
    let texts = |label: &covel_graph::fragment::Text| -> Vec<String> {
        label.iter().map(|(locale, text)| format!("{locale}={text}")).collect()
    };
    let author = fragment.author.as_ref().unwrap();
    assert_eq!(texts(&author.about), ["en=Someone.", "zh-CN=某人。"]);
    assert_eq!(texts(&author.links[0].label), ["en=Home", "zh-CN=主页"]);
    assert_eq!(texts(&fragment.events[0].description), ["en=First.", "zh-CN=第一。"]);
    assert_eq!(texts(&fragment.events[1].description), ["en=Second.", "ja=二番.", "zh-CN=第二。"]);
    assert_eq!(texts(&fragment.settings[0].options[0].label), ["en=Small", "zh-CN=小"]);
    assert_eq!(texts(&fragment.runtimes[0].description), ["en=Works.", "zh-CN=工作。"]);
    assert_eq!(fragment.runtimes[0].prompt_zh.as_deref(), Some("正文。"));
    let prompt = &fragment.prompts[0];
    assert_eq!(
        (prompt.position, prompt.depth, prompt.content_zh.as_deref()),
        (PromptPosition::Depth, 3, Some("友善。"))
    );
    assert_eq!(fragment.messages, [("zh-CN".to_owned(), vec![("Save".to_owned(), "保存".to_owned())])]);
}

/// The static side of UIP-1, UIP-5.
#[test]
fn panels_are_read_and_webviews_inlined() {
    let package = compile(
        "contributes: { ui: { right: [ui/view.json, ./ui/web.json] } }",
        &[
            ("ui/view.json", "{\"id\":\"a\",\"view\":{\"type\":\"Text\"}}"),
            ("ui/web.json", "{\"webview\":{\"entry\":\"../web/page.html\",\"height\":200}}"),
            ("web/page.html", "<p>hello</p>"),
        ],
    )
    .unwrap();
    let web: serde_json::Value = serde_json::from_str(&package.fragment.ui[1].spec).unwrap();
    assert_eq!(web, serde_json::json!({"webview": {"height": 200, "html": "<p>hello</p>"}}));
    assert_eq!(package.fragment.ui[0].path, "ui/view.json");
}

#[test]
fn data_may_be_authored_by_worlds() {
    let package = compile(
        "contributes:\n  data:\n    cast:\n      schema: any.json\n      version: 2\n      accepts: [cast@1]\n      search: { text: name }\n      authoring: { title: Cast, example: example.json, generate: offer, source: { kind: yaml, path: cast.yaml, key: id } }\n  worldProjections:\n    names: { from: 'contract:cast@1', handler: server/index.ts, outputs: { all: { namespace: cast, key: all } } }",
        &[("example.json", "[{\"id\":\"a\"}]")],
    )
    .unwrap();
    let data = &package.fragment.data[0];
    assert_eq!((data.version, data.search_text.as_deref()), (2, Some("name")));
    let authoring = data.authoring.as_ref().unwrap();
    assert_eq!(authoring.example_path.as_deref(), Some("example.json"));
    assert_eq!(authoring.source.as_ref().unwrap().key.as_deref(), Some("id"));
    assert_eq!(package.fragment.projections[0].outputs[0].namespace, "cast");
}

/// Covers: PKG-1
#[test]
fn a_package_without_runtimes_is_legal() {
    let package = compile("entry: server/index.ts\ncontributes: { hooks: [{ event: TurnStop }] }", &[]).unwrap();
    assert!(package.fragment.runtimes.is_empty());
    assert!(link(&[package]).unwrap().plan.runtimes.is_empty());
}

#[test]
fn linking_says_what_packages_take_for_granted() {
    let provider = compile_in_memory(
        &[
            ("PLUGIN.md", "---\nid: q\nkind: plugin\ndescription: Q.\nprovides: [a@1, b@1]\n---\n"),
            (
                "runtimes/r/RUNTIME.md",
                "---\ntype: agent\nschedule: { stage: audit }\nio: { output: { contract: b@1 } }\n---\n",
            ),
        ],
        Discovery::Builtin,
    );
    let text = runtime(&format!(
        "{FUNCTION}schedule: {{ trigger: {{ type: event, topic: no.body }} }}\nio:\n  inputs:\n    a: {{ from: {{ contract: a@1 }}, accepts: 'contract:d@1' }}\n    b: {{ from: {{ contract: b@1 }}, accepts: 'contract:d@1', required: true }}"
    ));
    let consumer = compile("optional: [a@1, b@1]", &[("runtimes/r/RUNTIME.md", &text)]).unwrap();
    let linked = link(&[consumer, provider.package.unwrap()]).unwrap();
    let mut found: Vec<String> =
        linked.diagnostics.iter().map(|one| format!("{} {} {}", one.severity_word(), one.code, one.line)).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "error accepts-contract-unresolved 8",
            "warning accepts-contract-unresolved 7",
            "warning contract-without-schema 7",
            "warning contract-without-schema 8",
            "warning provider-declared-only 7",
            "warning topic-undeclared 2",
        ]
    );
}

const WHOLE: &str = include_str!("../../plugins/dice-check/PLUGIN.md");

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done to a manifest, compiling it ends with a report, never a panic.
    #[test]
    fn damaged_manifests_are_reported(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[-\\[\\]{}:,&*!?|>'\"#% \n\t~0a@./\u{e9}\u{0}]{0,3}"), 1..6)
    ) {
        let mut text: Vec<char> = WHOLE.chars().collect();
        for (at, with) in cuts {
            let at = at.index(text.len());
            text.splice(at..at + 1, with.chars());
        }
        let text: String = text.into_iter().collect();
        let compiled = compile_in_memory(&[("PLUGIN.md", &text), ("runtimes/a/RUNTIME.md", &text)], Discovery::Community);
        prop_assert!(compiled.has_errors());
        for one in &compiled.diagnostics {
            prop_assert!(one.line as usize <= text.lines().count() + 1);
            let _ = one.render(&text);
        }
    }

    /// Bytes from anywhere are never taken for an archive.
    #[test]
    fn foreign_bytes_are_no_archive(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(covel_graph::decode_fragment(&bytes).is_err());
        let mut sealed = b"COVLPLAN\x01\0\0\0\0\0\0\0".to_vec();
        sealed.extend_from_slice(&bytes);
        let digest = covel_graph::PlanDigest::from("0");
        prop_assert!(covel_graph::PlanHandle::open(sealed.into(), &digest).is_err());
    }
}

/// Namespaces exist once they are written; only what a world fills or a schema guards is declared.
#[test]
fn own_namespaces_need_no_declaration() {
    let agent = runtime("type: agent\nschedule: { stage: audit }\nio: { selfData: [{ namespace: notes, as: own }] }");
    let fields = "entry: server/index.ts\ncontributes:\n  extensions:\n    - { point: ui.slot@1, id: a, slot: stage.dialogue@1, watch: [said] }\n    - { point: ui.slot@1, id: b, slot: character.visual@1, watch: [looks] }";
    let package = compile(fields, &[("runtimes/a/RUNTIME.md", &agent)]).unwrap();
    assert_eq!(package.fragment.extensions[0].watch, ["said"]);
    assert_eq!(package.fragment.runtimes[0].self_data[0].namespace, "notes");
}

#[test]
fn prompt_parts_of_a_variant_match_by_id_or_by_place() {
    let fields = "contributes:\n  prompt:\n    - { id: a, content: One., position: system }\n    - { id: b, content: Two., position: system }";
    let translated = |variant: &str| {
        let package = compile(fields, &[("PLUGIN.zh.md", variant)]).unwrap();
        package.fragment.prompts.iter().map(|part| part.content_zh.clone()).collect::<Vec<_>>()
    };
    let (one, two) = (Some("一。".to_owned()), Some("二。".to_owned()));
    let by_place = "---\ncontributes:\n  prompt:\n    - content: 一。\n    - content: 二。\n---\n";
    assert_eq!(translated(by_place), [one, two.clone()]);
    assert_eq!(translated("---\ncontributes:\n  prompt:\n    - { id: b, content: 二。 }\n---\n"), [None, two]);
}

/// Two packages with a finding each, linked in both orders.
#[test]
fn findings_of_linking_do_not_depend_on_package_order() {
    let package = |id: &str| {
        let text = format!(
            "---\nid: {id}\nkind: plugin\ndescription: A package.\nruntime:\n  type: agent\n  schedule: {{ trigger: {{ type: event, topic: nobody.says }} }}\n---\n"
        );
        compile_in_memory(&[("PLUGIN.md", &text)], Discovery::Builtin).package.unwrap()
    };
    let (one, two) = (package("one"), package("two"));
    let findings = link(&[two.clone(), one.clone()]).unwrap().diagnostics;
    assert_eq!(findings.len(), 2);
    assert_eq!(findings, link(&[one, two]).unwrap().diagnostics);
}

#[test]
fn places_in_json_count_characters() {
    let root = "---\nid: p\nkind: plugin\ndescription: A package.\ncontracts: { a@1: { schema: a.json } }\n---\n";
    let found =
        compile_in_memory(&[("PLUGIN.md", root), ("a.json", "{\n\"标题\": 无}")], Discovery::Builtin).diagnostics;
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.code.as_str(), one.line, one.column), ("json-syntax", 2, 7));
    assert!(!one.message.contains("line"), "{}", one.message);
}
