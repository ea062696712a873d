//! The Mermaid and DOT forms of a plan, drawn by the real renderers: Mermaid in Chromium, and Graphviz.
//!
//! Needs Node, Chromium and Graphviz. Without one of them these tests fail and say what to do;
//! `COVEL_SKIP_BROWSER=1` leaves them out.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use covel_graph::explain::{EdgeView, PlanDocument, StageView, Subscription};
use serde_json::Value;

#[path = "browser/support.rs"]
mod support;

use support::{chromium, found, installed, left_out};

/// A plan as `covel plan` prints it.
fn plan(plugins: &Path) -> PlanDocument {
    let run =
        Command::new(env!("CARGO_BIN_EXE_covel")).args(["plan", "--json", "--plugins"]).arg(plugins).output().unwrap();
    assert!(run.status.success());
    serde_json::from_slice(&run.stdout).unwrap()
}

/// Names that mean something to a renderer. No package can have most of them; a file in a package can.
const HOSTILE: [&str; 12] = [
    "end",
    "graph",
    "a/b",
    "say \"hi\"",
    "back\\slash",
    "<b>bold</b><img src=x onerror=alert(1)>",
    "#35; &amp; #quot;",
    "a] --> b[c",
    "%% no comment",
    "`code` **strong** _less_",
    "钟声 · été",
    "{ label=\"x\" }",
];

fn hostile() -> PlanDocument {
    let ids: Vec<String> = HOSTILE.iter().map(ToString::to_string).collect();
    let edges = ids.windows(2).map(|pair| EdgeView {
        from: pair[0].clone(),
        to: pair[1].clone(),
        kind: "after".to_owned(),
        contract: None,
        file: pair[0].clone(),
        line: 7,
    });
    PlanDocument {
        digest: "0".repeat(64),
        effects: Default::default(),
        edges: edges.collect(),
        subscriptions: ids.iter().map(|id| Subscription { topic: id.clone(), runtime_id: id.clone() }).collect(),
        stages: vec![StageView { stage: "post-turn".to_owned(), layers: vec![ids], cyclic: Vec::new() }],
        diagnostics: Vec::new(),
    }
}

fn documents() -> [PlanDocument; 3] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    [plan(&here.join("tests/fixtures/plugins")), plan(&here.join("../plugins")), hostile()]
}

/// Runtimes and topics, as nodes are named.
fn names(document: &PlanDocument) -> Vec<String> {
    let mut runtimes: Vec<String> = document
        .stages
        .iter()
        .flat_map(|stage| stage.layers.iter().flatten().chain(&stage.cyclic).cloned())
        .chain(document.edges.iter().flat_map(|edge| [edge.from.clone(), edge.to.clone()]))
        .chain(document.subscriptions.iter().map(|one| one.runtime_id.clone()))
        .collect();
    let mut topics: Vec<String> = document.subscriptions.iter().map(|one| one.topic.clone()).collect();
    for all in [&mut runtimes, &mut topics] {
        all.sort();
        all.dedup();
    }
    runtimes.extend(topics);
    runtimes.sort();
    runtimes
}

fn edge_labels(document: &PlanDocument) -> Vec<String> {
    let label = |edge: &EdgeView| format!("{} {}:{}", edge.kind, edge.file, edge.line);
    let mut labels: Vec<String> = document.edges.iter().map(label).collect();
    labels.sort();
    labels
}

#[test]
fn mermaid_draws_every_runtime_and_edge() {
    if left_out() {
        return;
    }
    let work = installed();
    let folder = tempfile::tempdir().unwrap();
    let documents = documents();
    let mut command = Command::new("node");
    command.current_dir(&work).arg("render.mjs").arg(chromium());
    for (place, document) in documents.iter().enumerate() {
        let chart = folder.path().join(format!("{place}.mmd"));
        fs::write(&chart, document.to_mermaid()).unwrap();
        command.arg(chart);
    }
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let drawn: Value = serde_json::from_slice(&run.stdout).unwrap();
    for (document, drawn) in documents.iter().zip(drawn.as_array().unwrap()) {
        let sorted = |name: &str| {
            let list = drawn[name].as_array().unwrap();
            let mut list: Vec<String> = list.iter().map(|text| text.as_str().unwrap().to_owned()).collect();
            list.sort();
            list.retain(|text| !text.is_empty());
            list
        };
        assert_eq!(sorted("nodes"), names(document));
        assert_eq!(sorted("edges"), edge_labels(document));
        let lines = document.edges.len() + document.subscriptions.len();
        assert_eq!(drawn["paths"], lines, "a line for each edge and subscription");
        assert_eq!(drawn["scripts"], 0);
        assert!(sorted("clusters").contains(&"post-turn".to_owned()));
    }
}

#[test]
fn graphviz_draws_every_runtime_and_edge() {
    if left_out() {
        return;
    }
    let dot = found("COVEL_DOT", &["dot"]).unwrap_or_else(|| {
        panic!(
            "this test needs Graphviz. Install it (Debian: apt-get install graphviz), name its `dot` in COVEL_DOT, \
             or leave this test out with COVEL_SKIP_BROWSER=1."
        )
    });
    for document in &documents() {
        let mut child = Command::new(&dot)
            .arg("-Tsvg")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = document.to_dot();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let run = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let svg = String::from_utf8(run.stdout).unwrap();
        let count = |class: &str| svg.matches(&format!("class=\"{class}\"")).count();
        assert_eq!(count("node"), names(document).len());
        assert_eq!(count("edge"), document.edges.len() + document.subscriptions.len());
        let seen = texts(&svg);
        for name in names(document).iter().chain(&edge_labels(document)) {
            assert!(seen.contains(name), "{name:?} is not seen in {seen:?}");
        }
    }
}

/// What a reader sees of a picture.
fn texts(svg: &str) -> Vec<String> {
    let parts = svg.split("<text ").skip(1);
    let inner = parts.filter_map(|part| part.split_once('>')?.1.split_once("</text>"));
    inner
        .map(|(text, _)| {
            text.replace("&#45;", "-")
                .replace("&#160;", " ")
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&")
        })
        .collect()
}
