//! `covel snapshot`: the plans a data folder keeps.

use std::fmt::Write;

use covel_graph::explain::PlanDocument;
use serde_json::json;

use super::{
    DONE, Streams,
    args::{PlanFormat, SnapshotAction, SnapshotArgs, SnapshotGcArgs, SnapshotListArgs, SnapshotShowArgs},
    plan,
};
use crate::{
    error::ServerError,
    snapshots::{self, SnapshotRow, Waste},
};

/// Digits of a digest shown to people; enough to name it to `show`.
const SHOWN_DIGITS: usize = 16;

pub(super) fn run(arguments: &SnapshotArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    match &arguments.action {
        SnapshotAction::Ls(arguments) => ls(arguments, streams),
        SnapshotAction::Show(arguments) => show(arguments, streams),
        SnapshotAction::Gc(arguments) => gc(arguments, streams),
    }
}

fn ls(arguments: &SnapshotListArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let rows = snapshots::list(&snapshots::open(&arguments.data)?)?;
    if arguments.json {
        streams.document(&json!({ "plans": rows }))?;
    } else {
        let mut text = String::new();
        for row in &rows {
            describe(&mut text, row);
        }
        let _ = writeln!(text, "{}", count(rows.len(), "plan"));
        streams.print(&text);
    }
    Ok(DONE)
}

fn show(arguments: &SnapshotShowArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let handle = snapshots::find(&snapshots::open(&arguments.data)?, &arguments.digest)?;
    let format = if arguments.json { PlanFormat::Json } else { arguments.format.unwrap_or(PlanFormat::Text) };
    plan::print(&PlanDocument::of(&handle, &[]), format, streams)?;
    Ok(DONE)
}

fn gc(arguments: &SnapshotGcArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let store = snapshots::open(&arguments.data)?;
    let waste = snapshots::waste(&store)?;
    if arguments.yes {
        snapshots::remove(&store, &waste)?;
    }
    store.close();
    if arguments.json {
        streams.document(&json!({ "removed": arguments.yes, "waste": waste }))?;
    } else {
        streams.print(&report(&waste, arguments.yes));
    }
    Ok(DONE)
}

// Writing to a string does not fail.
fn describe(text: &mut String, row: &SnapshotRow) {
    let users = if row.sessions.is_empty() { "no session".to_owned() } else { row.sessions.join(", ") };
    let _ = writeln!(
        text,
        "{}  {}, {}, used by {users}",
        short(&row.digest),
        count(row.runtimes, "runtime"),
        size(row.bytes)
    );
    if let Some(damaged) = &row.damaged {
        let _ = writeln!(text, "  damaged: {damaged}");
    }
    for package in &row.packages {
        let _ = writeln!(text, "  {} {}", package.id, package.version);
    }
}

fn report(waste: &Waste, removed: bool) -> String {
    let mut text = String::new();
    let done = if removed { "removed" } else { "would remove" };
    for plan in &waste.plans {
        let why = if plan.damaged.is_some() { "damaged" } else { "no session uses it" };
        let _ = writeln!(text, "{done} plan {}, {} ({why})", short(&plan.digest), size(plan.bytes));
    }
    for fragment in &waste.fragments {
        let name = match (&fragment.plugin_id, &fragment.version) {
            (Some(id), Some(version)) => format!("{id} {version}"),
            _ => "damaged".to_owned(),
        };
        let _ = writeln!(text, "{done} package version {} ({name}), {}", short(&fragment.digest), size(fragment.bytes));
    }
    let blobs: u64 = waste.blobs.iter().map(|blob| blob.bytes).sum();
    if !waste.blobs.is_empty() {
        let files = count(waste.blobs.len(), "file");
        let _ = writeln!(text, "{done} {files} of packages, {}", size(blobs));
    }
    let _ = writeln!(
        text,
        "{}{}; kept {}, {}, {}",
        if removed { "freed " } else { "would free " },
        size(waste.bytes),
        count(waste.kept.plans, "plan"),
        count(waste.kept.fragments, "package version"),
        count(waste.kept.blobs, "file")
    );
    if !removed && waste.bytes > 0 {
        text.push_str("nothing was changed; add --yes to remove\n");
    }
    if removed && waste.bytes > 0 {
        text.push_str("the data file keeps its length; later commits use the space\n");
    }
    text
}

fn short(digest: &str) -> &str {
    digest.get(..SHOWN_DIGITS).unwrap_or(digest)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[allow(clippy::cast_precision_loss)] // shown with one decimal
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
