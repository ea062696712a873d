//! Whole packages from text to plan.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use covel_graph::{
    Compiled, Discovery, Package, Stage, compile_in_memory,
    fragment::{CompletionRequire, RuntimeKind, Scope, SelfDataFormat, TriggerKind, Visibility},
    link,
};

const SCHEMA: &str = r#"{"type":"object"}"#;

fn package(files: &[(&str, &str)]) -> Arc<Package> {
    let compiled = compile_in_memory(files, Discovery::Builtin);
    clean(&compiled);
    compiled.package.unwrap()
}

fn clean(compiled: &Compiled) {
    let found: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    assert!(compiled.package.is_some(), "{found:#?}");
    assert!(found.is_empty(), "{found:#?}");
}

fn weather_diary() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            r#"---
id: weather-diary
kind: plugin
version: 0.2.0
description: Keeps a one-line weather diary.
requires: [narrative-engine@1]
entry: ./server/index.js
contributes:
  tools: [log-weather]
  hooks: [{ event: PreToolUse, enforce: post }]
  settings:
    - { key: detail, type: slider, label: Detail, default: 1, min: 1, max: 3 }
  data:
    days: { version: 1, schema: ./schemas/day.schema.json }
runtime:
  type: agent
  schedule: { stage: post-turn, trigger: { type: scheduled, interval: 2, startTurn: 2 } }
  io:
    inputs:
      scene: { from: { contract: narrative-engine@1, cardinality: one }, select: /narrativeOutput, required: true }
    selfData: [{ namespace: days, as: "<diary>", maxEntries: 10 }]
    visibility: system
  agent:
    model: plugin
    history: { maxTurns: 0 }
    loop: { timeoutMs: 90000, completion: { require: tool-use, afterTools: [log-weather] } }
---
Log the weather of this scene with log-weather; log an empty entry if none is stated.
"#,
        ),
        ("PLUGIN.zh.md", "---\n---\n记录天气。\n"),
        ("server/index.js", "export default () => {}"),
        ("schemas/day.schema.json", SCHEMA),
        (
            "locales/zh.yaml",
            "PLUGIN.md:\n  description: 天气日记\n  contributes:\n    settings:\n      - key: detail\n        label: 详细程度\nmessages:\n  Rain: 雨\n",
        ),
    ])
}

fn town_bells() -> Arc<Package> {
    package(&[
        (
            "PLUGIN.md",
            r#"---
id: town-bells
kind: plugin
description: Rings bells and tells narration the hour.
provides: [town-bells.hour@1]
optional: [world-time-context@1]
contracts: { town-bells.hour@1: { schema: ./schemas/hour.schema.json } }
contributes:
  events:
    - { topic: bells.rung, schema: ./schemas/rung.event.json, description: Emit when a bell rings. }
---
Documentation only.
"#,
        ),
        ("schemas/hour.schema.json", SCHEMA),
        ("schemas/rung.event.json", SCHEMA),
        (
            "runtimes/ring/RUNTIME.md",
            r#"---
type: function
schedule: { stage: pre-turn, trigger: { type: auto } }
io:
  inputs: { clock: { from: { contract: world-time-context@1 }, required: false } }
  output: { contract: town-bells.hour@1, schema: ../../schemas/hour.schema.json, recordAs: hour }
  visibility: system
function: { handler: ./handler.js, timeoutMs: 5000 }
effects: { reads: ["narrative:*"], parallelSafe: true }
---
"#,
        ),
        ("runtimes/ring/handler.js", "export default async () => ({ outcome: 'success' })"),
    ])
}

/// An inline agent: defaults, translations, resolved tools, and a runtime id equal to the package id.
#[test]
fn an_inline_agent_becomes_a_fragment() {
    let package = weather_diary();
    let fragment = &package.fragment;
    assert_eq!(fragment.plugin_id, "weather-diary");
    assert_eq!(fragment.version, "0.2.0");
    assert_eq!(
        fragment.description,
        [("en".to_owned(), "Keeps a one-line weather diary.".to_owned()), ("zh".to_owned(), "天气日记".to_owned())]
    );
    assert_eq!(fragment.settings[0].label.len(), 2);
    assert_eq!(fragment.messages, [("zh".to_owned(), vec![("Rain".to_owned(), "雨".to_owned())])]);
    assert_eq!(fragment.files.len(), 5);
    let [runtime] = &fragment.runtimes[..] else { panic!() };
    assert_eq!(runtime.id, "weather-diary");
    assert_eq!((runtime.kind, runtime.stage), (RuntimeKind::Agent, Some(Stage::PostTurn)));
    assert_eq!((runtime.trigger, runtime.interval, runtime.start_turn), (TriggerKind::Scheduled, 2, 2));
    assert_eq!(runtime.visibility, Visibility::System);
    assert!(runtime.prompt.starts_with("Log the weather"));
    assert_eq!(runtime.prompt_zh.as_deref(), Some("记录天气。"));
    let input = &runtime.inputs[0];
    assert_eq!((input.name.as_str(), input.scope, input.required), ("scene", Scope::Turn, true));
    assert_eq!(input.origin.line, 20);
    let own = &runtime.self_data[0];
    assert_eq!((own.tag.as_str(), own.format, own.max_entries), ("diary", SelfDataFormat::Summary, 10));
    let agent = runtime.agent.as_ref().unwrap();
    assert_eq!(agent.plugin_tools, ["log-weather"]);
    assert_eq!(agent.require, CompletionRequire::ToolUse);
    assert_eq!((agent.timeout_ms, agent.call_timeout_ms, agent.max_steps), (90_000, 60_000, 20));
    assert_eq!((agent.first_token_timeout_ms, agent.max_retries, agent.loop_detection), (120_000, 1, 3));
    assert_eq!(agent.history_max_turns, Some(0));
}

/// Runtime folders: paths from their own folder, ids with the package's in front.
#[test]
fn runtime_folders_become_runtimes() {
    let package = town_bells();
    let [runtime] = &package.fragment.runtimes[..] else { panic!() };
    assert_eq!(runtime.id, "town-bells/ring");
    let function = runtime.function.as_ref().unwrap();
    assert_eq!(function.handler, "runtimes/ring/handler.js");
    assert_eq!(function.timeout_ms, 5_000);
    assert_eq!(runtime.output.schema.as_deref(), Some(SCHEMA));
    assert!(package.fragment.events[0].advertise);
    assert_eq!(package.digest.len(), 64);
}

/// The same packages in another order give the same plan, byte for byte; other content gives another digest.
#[test]
fn plans_are_named_by_their_content() {
    let (a, b) = (weather_diary(), town_bells());
    let one = link(&[a.clone(), b.clone()]).unwrap();
    let two = link(&[b.clone(), a.clone()]).unwrap();
    assert_eq!(one.digest, two.digest);
    assert_eq!(one.bytes.as_slice(), two.bytes.as_slice());
    assert_ne!(one.digest, link(&[a]).unwrap().digest);
    let handle = one.handle().unwrap();
    let ix = handle.runtime_by_id("town-bells/ring").unwrap();
    assert_eq!(handle.runtime(ix).id.as_str(), "town-bells/ring");
    assert_eq!(handle.stage_runtimes(Stage::PostTurn).len(), 1);
    let contract = handle.contract_by_id("town-bells.hour@1").unwrap();
    assert_eq!(handle.providers_of(contract).collect::<Vec<_>>(), [ix]);
}
