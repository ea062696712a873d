//! Turn documents for reading.

use std::fmt::Write;

use covel_exec::{RuntimeStatus, TurnDocument};
use covel_graph::WhyDocument;

/// A turn as text: what ran, then the story.
pub(super) fn turn(document: &TurnDocument) -> String {
    let mut text = String::new();
    if let Some(setup) = &document.setup {
        describe(&mut text, "setup", setup);
    }
    describe(&mut text, "turn", document);
    if !document.narrative.is_empty() {
        let _ = write!(text, "\n{}\n", document.narrative.trim_end());
    }
    text
}

// Writing to a string does not fail.
fn describe(text: &mut String, name: &str, document: &TurnDocument) {
    let verdict = if document.committed { "committed" } else { "not committed" };
    let _ = writeln!(
        text,
        "{name} {} of session {}: {verdict} in {:.1} ms",
        document.turn_id,
        document.session_id,
        millis(document.duration_micros)
    );
    if let Some(error) = &document.error {
        let _ = writeln!(text, "  error [{}] {}", error.code, error.message);
    }
    for runtime in &document.runtimes {
        let status = match runtime.status {
            RuntimeStatus::Success => "ok",
            RuntimeStatus::Skipped => "skipped",
            RuntimeStatus::Failed => "failed",
            RuntimeStatus::Suspended => "suspended",
        };
        let _ = write!(
            text,
            "  {:<10} layer {} {:<32} {status:<9} {:>8.1} ms",
            runtime.stage,
            runtime.layer,
            runtime.runtime_id,
            millis(runtime.duration_micros)
        );
        if let Some(reason) = &runtime.reason {
            let _ = write!(text, "  {reason}");
        }
        if let Some(error) = &runtime.error {
            let _ = write!(text, "  [{}] {}", error.code, error.message);
        }
        text.push('\n');
    }
    for event in &document.events {
        let _ = writeln!(text, "  event {} from {} (depth {})", event.topic, event.plugin_id, event.depth);
    }
    for change in &document.changes {
        let _ = writeln!(text, "  {} by {}", change.kind, change.runtime_id);
    }
    for job in &document.jobs {
        let field = |name: &str| job.value().get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let _ = write!(text, "  job {} {} {}", field("jobId"), field("runtimeId"), field("status"));
        if !field("reason").is_empty() {
            let _ = write!(text, "  {}", field("reason"));
        }
        text.push('\n');
    }
    for isolated in &document.isolated {
        let _ =
            writeln!(text, "  isolated {}: [{}] {}", isolated.runtime_id, isolated.error.code, isolated.error.message);
    }
}

/// Why a runtime runs when it does, as text.
pub(super) fn why(document: &WhyDocument) -> String {
    let stage = document.stage.as_deref().unwrap_or("no stage");
    let mut text = format!("{} ({stage})\n", document.runtime_id);
    let _ = writeln!(text, "\nstarts with {}", document.starts);
    let _ = writeln!(text, "\nwaits for");
    for sentence in &document.waits_for {
        let _ = writeln!(text, "  {sentence}");
    }
    if document.waits_for.is_empty() {
        let _ = writeln!(text, "  nothing");
    }
    let _ = writeln!(text, "\nawaited by");
    for edge in &document.awaited_by {
        let over = edge.contract.as_ref().map_or_else(String::new, |contract| format!(" over {contract}"));
        let _ = writeln!(text, "  {}  {}{over}  {}:{}", edge.to, edge.kind, edge.file, edge.line);
    }
    if document.awaited_by.is_empty() {
        let _ = writeln!(text, "  nothing");
    }
    text
}

#[allow(clippy::cast_precision_loss)] // shown with one decimal
fn millis(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}
