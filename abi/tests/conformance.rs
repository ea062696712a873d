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
    Differs { code: String, here: Value, node: Value, because: String },
}

impl Row {
    fn code(&self) -> &str {
        let (Self::Same(code) | Self::Differs { code, .. }) = self;
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

fn script(rows: &[Row]) -> String {
    let mut out = format!("{IMPORTS}{PRELUDE}\nconst rows = [\n");
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

fn under_node(script: &str) -> (String, Vec<Value>) {
    let mut child = Command::new("node")
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
    let generation = load(&host, "p", &[("h.js", &code)]).await;
    let mut call = request(&generation, handler("h.js"));
    call.limits = CallLimits { timeout: Duration::from_secs(60), max_output_bytes: 4_000_000 };
    let texts: Vec<String> = serde_json::from_value(run(&host, call).await.unwrap()).unwrap();
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

async fn compare(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(file);
    let text = fs::read_to_string(path).unwrap();
    let areas: BTreeMap<String, Vec<Row>> = serde_saphyr::from_str(&text).unwrap();
    let rows: Vec<Row> = areas.into_values().flatten().collect();
    let script = script(&rows);
    let (cldr, node) = under_node(&script);
    let ours = here(&script).await;
    assert_eq!((node.len(), ours.len()), (rows.len(), rows.len()));
    let mut wrong = Vec::new();
    for ((row, node), ours) in rows.iter().zip(&node).zip(&ours) {
        match row {
            Row::Same(code) if node != ours => wrong.push(format!("{code}\n    node: {node}\n    here: {ours}")),
            Row::Differs { code, here, node: recorded, because } => {
                assert!(because.len() > 10, "{code}: say why it differs");
                assert_ne!(here, recorded, "{code}: this is no difference");
                if here != ours || (cldr.starts_with(RECORDED_CLDR) && recorded != node) {
                    wrong.push(format!("{code} (a recorded difference)\n    node: {node}\n    here: {ours}"));
                }
            }
            Row::Same(_) => {}
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
