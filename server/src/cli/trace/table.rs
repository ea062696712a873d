//! A trace as a table.

use std::fmt::Write as _;

use covel_exec::{
    RuntimeStatus, TraceRead,
    trace::{TraceDocument, TraceRuntime},
};

/// Widest runtime column.
const MAX_NAME: usize = 40;

/// The whole trace. Writing to a string does not fail.
pub(super) fn of(trace: &TraceDocument) -> String {
    let mut text = String::new();
    head(&mut text, trace);
    runtimes(&mut text, trace);
    if !trace.idle.is_empty() {
        let _ = writeln!(text, "\ntook no part");
        for row in &trace.idle {
            let _ = writeln!(text, "  {}  {}", row.runtime_id, row.reason);
        }
    }
    if !trace.events.is_empty() {
        let _ = writeln!(text, "\nevents");
        for event in &trace.events {
            let followers = match (event.dropped, event.followers.is_empty()) {
                (true, _) => "dropped: another of its topic came first".to_owned(),
                (false, true) => "nobody follows".to_owned(),
                (false, false) => format!("-> {}", event.followers.join(", ")),
            };
            let _ = writeln!(text, "  {} from {}, depth {}  {followers}", event.topic, event.runtime_id, event.depth);
        }
    }
    if !trace.models.is_empty() {
        let _ = writeln!(text, "\nmodel calls");
        for call in &trace.models {
            let _ = writeln!(
                text,
                "  {}  slot {}  {}  {}  {} bytes, {} + {} tokens",
                call.runtime_id,
                call.slot,
                call.model.as_deref().unwrap_or("-"),
                call.finish,
                call.bytes,
                call.input_tokens,
                call.output_tokens
            );
        }
    }
    let dropped: Vec<_> = trace.commit.iter().filter(|unit| !unit.kept).collect();
    let _ = writeln!(text, "\ncommit: {} kept, {} dropped", trace.commit.len() - dropped.len(), dropped.len());
    for unit in dropped {
        let why = unit.error.as_ref().map_or(String::new(), |error| format!("  [{}] {}", error.code, error.message));
        let _ = writeln!(text, "  dropped {}{why}", unit.runtime_id);
    }
    if trace.truncated {
        text.push_str("\nparts of this trace were left out to keep it small\n");
    }
    text
}

fn head(text: &mut String, trace: &TraceDocument) {
    let verdict = if trace.committed { "committed" } else { "not committed" };
    let _ = writeln!(
        text,
        "{} {} of session {}: {verdict} in {} ms",
        trace.origin,
        trace.turn_id,
        trace.session_id,
        millis(trace.duration_micros)
    );
    if let Some(error) = &trace.error {
        let _ = writeln!(text, "  error [{}] {}", error.code, error.message);
    }
    let _ = writeln!(text, "  logical turn {}, journal entry {}", trace.logical_turn, trace.journal_seq);
    let _ = writeln!(text, "  {} to {}", trace.started_at, trace.ended_at);
    let packages: Vec<String> =
        trace.packages.iter().map(|package| format!("{} {}", package.id, package.version)).collect();
    let _ = writeln!(text, "  plan {} of {}", short(&trace.plan), packages.join(", "));
    if let Some(world) = &trace.world {
        let _ = writeln!(text, "  world {} ({})", world.id, short(&world.digest));
    }
    let _ = writeln!(text, "  {}", if trace.replayable { "can be replayed" } else { "cannot be replayed" });
}

fn runtimes(text: &mut String, trace: &TraceDocument) {
    let width = trace.runtimes.iter().map(|row| row.runtime_id.chars().count()).max().unwrap_or(0).clamp(7, MAX_NAME);
    let _ = writeln!(
        text,
        "\n  {:<10} {:>5}  {:<width$}  {:<9} {:>10} {:>10}  why, whom it waited for, what it read",
        "stage", "layer", "runtime", "status", "start ms", "took ms"
    );
    for row in &trace.runtimes {
        let stage = row.depth.map_or_else(|| row.stage.clone(), |depth| format!("event {depth}"));
        let line = format!(
            "  {stage:<10} {:>5}  {:<width$}  {:<9} {:>10} {:>10}  {}",
            row.layer,
            row.runtime_id,
            status(row.status),
            millis(row.started_micros),
            millis(row.ended_micros.saturating_sub(row.started_micros)),
            remarks(row)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn remarks(row: &TraceRuntime) -> String {
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend(row.reason.clone());
    remarks.extend(row.error.as_ref().map(|error| format!("[{}] {}", error.code, error.message)));
    remarks.extend(row.triggered_by.as_ref().map(|(topic, emitter)| format!("on {topic} of {emitter}")));
    if !row.waited_for.is_empty() {
        remarks.push(format!("after {}", row.waited_for.join(", ")));
    }
    if !row.reads_from.is_empty() {
        remarks.push(format!("from {}", row.reads_from.join(", ")));
    }
    remarks.extend(row.reads.iter().map(read));
    if row.more_reads {
        remarks.push("and more".to_owned());
    }
    if row.repeats > 0 {
        remarks.push(format!("made again {} times", row.repeats));
    }
    remarks.join("; ")
}

/// `namespace/key v3`, `namespace/key by runtime`, `namespace/* (7)`.
pub(super) fn read(read: &TraceRead) -> String {
    let namespace = &read.namespace;
    match (&read.key, read.version, &read.producer) {
        (None, _, _) => format!("{namespace}/* ({})", read.records.unwrap_or(0)),
        (Some(key), _, Some(producer)) => format!("{namespace}/{key} by {producer}"),
        (Some(key), Some(version), None) => format!("{namespace}/{key} v{version}"),
        (Some(key), None, None) => format!("{namespace}/{key} (none)"),
    }
}

/// The word of a status.
pub(super) fn status(status: RuntimeStatus) -> &'static str {
    match status {
        RuntimeStatus::Success => "ok",
        RuntimeStatus::Skipped => "skipped",
        RuntimeStatus::Failed => "failed",
        RuntimeStatus::Suspended => "suspended",
    }
}

/// Milliseconds with three decimals.
pub(super) fn millis(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// The beginning of a digest.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}
