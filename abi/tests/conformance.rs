//! The same expressions here and under Node.js: plugin code finds what its author tried out.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use covel_abi::{CallLimits, JsOptions};
use serde::Deserialize;
use serde_json::Value;
use support::{handler, host_with, load, request, run};

/// Locale data release the recorded differences were seen with; another Node.js is not held to them.
const RECORDED_CLDR: &str = "48";

#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Same(String),
    Gives { code: String, gives: Value },
    Differs { code: String, here: Value, node: Value, because: String },
}

impl Row {
    fn code(&self) -> &str {
        let (Self::Same(code) | Self::Gives { code, .. } | Self::Differs { code, .. }) = self;
        code
    }
}

/// Turns what an expression gives or throws into text that JSON can compare.
const PRELUDE: &str = r#"
function encode(value, depth = 0) {
  if (value === undefined) return { undefined: true };
  if (typeof value === "bigint") return { bigint: value.toString() };
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) return { number: Object.is(value, -0) ? "-0" : String(value) };
  if (typeof value === "symbol" || typeof value === "function") return { kind: typeof value };
  if (value === null || typeof value !== "object") return value;
  if (depth > 8) return "…";
  if (Array.isArray(value)) return Array.from(value, (v) => encode(v, depth + 1));
  if (value instanceof Date) return { date: value.getTime() };
  if (value instanceof Map) return { map: encode([...value], depth + 1) };
  if (value instanceof Set) return { set: encode([...value], depth + 1) };
  if (value instanceof RegExp) return { regexp: String(value) };
  if (value instanceof Error) return { error: value.name, message: value.message };
  if (ArrayBuffer.isView(value)) return { view: Object.prototype.toString.call(value), values: Array.from(value, (v) => encode(v, depth + 1)) };
  if (value instanceof ArrayBuffer) return { buffer: [...new Uint8Array(value)] };
  const out = {};
  for (const key of Object.keys(value)) out[key] = encode(value[key], depth + 1);
  return out;
}
async function all(rows) {
  const out = [];
  for (const row of rows) {
    try {
      out.push(JSON.stringify(encode(await row())));
    } catch (error) {
      out.push(JSON.stringify({ throws: error?.name ?? String(error) }));
    }
  }
  return out;
}
"#;

const IMPORTS: &str = r#"import * as assert from "node:assert"; import { Buffer as NodeBuffer } from "node:buffer"; import * as crypto_ from "node:crypto";
import * as path from "node:path"; import * as timers from "node:timers"; import * as url from "node:url"; import * as util from "node:util";
"#;

const SDK_IMPORTS: &str = r#"import * as sdk from "@covel/plugin-handlers-utils"; import * as points from "@covel/plugin-handlers-utils/extension-points";
import * as api from "@covel/plugin-handlers-utils/plugin-api"; import * as dimensions from "@covel/plugin-handlers-utils/dimensions";
import * as prompts from "@covel/plugin-handlers-utils/prompts"; import { z } from "zod";
const dice = (n) => ({ int: (min, max) => Math.min(max - 1, min + n) });
const ctx = { pluginId: "p", runtimeId: "p/r", turnId: "t", sessionId: "s" };
const data = (namespace, key, value) => sdk.makeProposal(ctx, "2026-01-01T00:00:00Z", "plugin.data", { namespace, key, value });
const thrown = async (run) => { try { return await run(); } catch (error) { return { name: error.name, code: error.code, message: error.message, details: error.details ?? error.issues }; } };
"#;

/// Prompt templates that `createPromptLoader` finds here and under Node.js.
const PROMPTS: [(&str, &str); 3] =
    [("prompts/story.md", "Tell."), ("prompts/story.zh.md", "讲。"), ("prompts/only.md", "English.")];

fn script(rows: &[Row], imports: &str) -> String {
    let mut out = format!("{imports}{PRELUDE}\nconst rows = [\n");
    for row in rows {
        let code = row.code();
        // A row is an expression, or a body that returns.
        if code.contains("return ") && !code.trim_start().starts_with('(') {
            out.push_str(&format!("async () => {{ {code} }},\n"));
        } else {
            out.push_str(&format!("async () => ({code}),\n"));
        }
    }
    out.push_str("];\n");
    out
}

fn under_node(script: &str, folder: &Path) -> (String, Vec<Value>) {
    let mut child = Command::new("node")
        .current_dir(folder)
        .args(["--input-type=module", "-"])
        .env("TZ", "UTC")
        .env("LANG", "en_US.UTF-8")
        .env("LC_ALL", "en_US.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node.js must be on the PATH: building this crate needs it too");
    let mut stdin = child.stdin.take().unwrap();
    write!(stdin, "{script}\nprocess.stdout.write(\"\\n\" + JSON.stringify([process.versions.cldr, await all(rows)]), () => process.exit(0));").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the rows do not run under Node.js");
    // Rows may print; the results are the last line.
    let last = output.stdout.rsplit(|byte| *byte == b'\n').next().unwrap();
    let (cldr, texts): (String, Vec<String>) = serde_json::from_slice(last).unwrap();
    (cldr, texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect())
}

async fn here(script: &str) -> Vec<Value> {
    let host = host_with(JsOptions { workers: 1, ..JsOptions::default() });
    let code = format!("{script}\nexport default async () => all(rows);");
    let generation = load(&host, "p", &[&PROMPTS[..], &[("h.js", &code)]].concat()).await;
    let mut call = request(&generation, handler("h.js"));
    call.limits = CallLimits { timeout: Duration::from_secs(60), max_output_bytes: 4_000_000 };
    let texts: Vec<String> = serde_json::from_value(run(&host, call).await.unwrap()).unwrap();
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn rows_of(file: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(file);
    let text = fs::read_to_string(path).unwrap();
    let areas: BTreeMap<String, Vec<Row>> = serde_saphyr::from_str(&text).unwrap();
    areas.into_values().flatten().collect()
}

async fn compare(file: &str) {
    compare_with(file, IMPORTS, Path::new(env!("CARGO_MANIFEST_DIR"))).await;
}

async fn compare_with(file: &str, imports: &str, folder: &Path) {
    let rows = rows_of(file);
    let script = script(&rows, imports);
    let (cldr, node) = under_node(&script, folder);
    let ours = here(&script).await;
    assert_eq!((node.len(), ours.len()), (rows.len(), rows.len()));
    let mut wrong = Vec::new();
    for ((row, node), ours) in rows.iter().zip(&node).zip(&ours) {
        match row {
            Row::Same(code) if node != ours => wrong.push(format!("{code}\n    node: {node}\n    here: {ours}")),
            Row::Gives { code, gives } if node != gives || ours != gives => {
                wrong.push(format!("{code}\n    wanted: {gives}\n    node: {node}\n    here: {ours}"));
            }
            Row::Differs { code, here, node: recorded, because } => {
                assert!(because.len() > 10, "{code}: say why it differs");
                assert_ne!(here, recorded, "{code}: this is no difference");
                if here != ours || (cldr.starts_with(RECORDED_CLDR) && recorded != node) {
                    wrong.push(format!("{code} (a recorded difference)\n    node: {node}\n    here: {ours}"));
                }
            }
            Row::Same(_) | Row::Gives { .. } => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows differ in {file}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Covers: SDK-1
#[tokio::test]
async fn text_and_locales_as_node() {
    compare("intl.yaml").await;
}

/// Covers: SDK-1
#[tokio::test]
async fn web_globals_as_node() {
    compare("web.yaml").await;
}

/// Covers: SDK-1
#[tokio::test]
async fn language_and_node_modules_as_node() {
    compare("language.yaml").await;
}

/// What authors get beside their package, laid out for Node.js.
fn author_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let modules = covel_abi::author::NODE_MODULES.iter().map(|(path, text)| (format!("node_modules/{path}"), *text));
    for (path, text) in modules.chain(PROMPTS.map(|(path, text)| (path.to_owned(), text))) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Covers: SDK-1, SDK-2, SDK-3, SDK-5, SEA-2, SEA-4, TPC-2
#[tokio::test]
async fn the_sdk_here_and_as_a_package_of_node() {
    compare_with("sdk.yaml", SDK_IMPORTS, author_folder().path()).await;
}

/// Covers: SDK-2
#[tokio::test]
async fn every_export_of_the_sdk_is_declared_and_has_a_row() {
    let folder = author_folder();
    let list = "Object.entries({ sdk, points, api, dimensions, prompts }).flatMap(([name, module]) => Object.keys(module).map((key) => `${name}.${key}`)).sort()";
    let script = script(&[Row::Same(list.into())], SDK_IMPORTS);
    let ours = here(&script).await.remove(0);
    assert_eq!(under_node(&script, folder.path()).1.remove(0), ours);
    let exports: Vec<String> = serde_json::from_value(ours).unwrap();
    let rows: String = rows_of("sdk.yaml").iter().map(Row::code).collect();
    let without: Vec<_> = exports.iter().filter(|name| !rows.contains(name.as_str())).collect();
    assert!(without.is_empty(), "no row of sdk.yaml uses {without:?}");

    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/src");
    let declared = |entry: &str| -> Vec<String> {
        let mut names = Vec::new();
        let mut files = vec![entry.to_owned()];
        while let Some(file) = files.pop() {
            for line in fs::read_to_string(sources.join(format!("{file}.d.ts"))).unwrap().lines() {
                if let Some(from) = line.strip_prefix("export * from \"./") {
                    files.push(from.trim_end_matches(".js\";").to_owned());
                }
                for kind in ["function", "const", "class"] {
                    if let Some(rest) = line.strip_prefix(&format!("export {kind} ")) {
                        names.push(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned());
                    }
                }
            }
        }
        names.sort();
        names.dedup();
        names
    };
    for (module, entry) in [
        ("sdk", "index"),
        ("points", "extension-points"),
        ("api", "plugin-api"),
        ("dimensions", "dimensions"),
        ("prompts", "prompts"),
    ] {
        let mut found: Vec<&str> = exports.iter().filter_map(|name| name.strip_prefix(&format!("{module}."))).collect();
        found.sort_unstable();
        assert_eq!(declared(entry), found, "{entry}.d.ts and {entry}.js");
    }
}

/// Covers: SDK-3
#[test]
fn prompt_templates_are_not_for_browsers() {
    let folder = author_folder();
    let import = |conditions: &[&str], module: &str| {
        let code = format!("await import('@covel/plugin-handlers-utils{module}')");
        let mut node = Command::new("node");
        node.args(conditions).args(["--input-type=module", "-e", &code]).current_dir(folder.path());
        let output = node.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(import(&[], "/prompts"), (true, String::new()));
    assert_eq!(import(&["--conditions=browser"], ""), (true, String::new()));
    let (ok, error) = import(&["--conditions=browser"], "/prompts");
    assert!(!ok && error.contains("ERR_PACKAGE_PATH_NOT_EXPORTED"), "{error}");
}

/// Covers: SDK-5
#[tokio::test]
async fn names_of_tools_and_points_are_those_of_the_host() {
    let list = "[[...sdk.FRAMEWORK_TOOL_NAMES].sort(), Object.keys(points.EXTENSION_POINTS).sort()]";
    let ours = here(&script(&[Row::Same(list.into())], SDK_IMPORTS)).await.remove(0);
    assert_eq!(ours, serde_json::json!([covel_graph::FRAMEWORK_TOOLS, covel_graph::KERNEL_POINTS]));
}

/// Covers: SDK-1
#[test]
fn isolates_live_in_utc_wherever_the_machine_is() {
    // The same tables again, in a process that lives elsewhere; Node.js is told to live in UTC.
    for zone in ["EST5EDT,M3.2.0,M11.1.0", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["text_and_locales_as_node", "language_and_node_modules_as_node"])
            .env("TZ", zone)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("2 passed"), "{zone}:\n{text}");
    }
}
