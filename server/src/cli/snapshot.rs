//! `covel snapshot`: the plans a data folder keeps, and its sessions at one moment.

use std::{fmt::Write, path::Path, sync::Arc};

use covel_exec::{Engine, EngineOptions, ExecError, ForkFrom};
use covel_gateway::offline::OfflineGateway;
use covel_graph::explain::PlanDocument;
use serde_json::json;

use super::{
    DONE, Streams,
    args::{
        PlanFormat, SnapshotAction, SnapshotArgs, SnapshotCreateArgs, SnapshotForkArgs, SnapshotGcArgs,
        SnapshotListArgs, SnapshotShowArgs,
    },
    plan, runtime,
};
use crate::{
    error::ServerError,
    snapshots::{self, SnapshotRow, Waste, require_store},
};

/// Digits of a digest shown to people; enough to name it to `show`.
const SHOWN_DIGITS: usize = 16;

pub(super) fn run(arguments: &SnapshotArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    match &arguments.action {
        SnapshotAction::Ls(arguments) => ls(arguments, streams),
        SnapshotAction::Show(arguments) => show(arguments, streams),
        SnapshotAction::Gc(arguments) => gc(arguments, streams),
        SnapshotAction::Create(arguments) => create(arguments, streams),
        SnapshotAction::Fork(arguments) => fork(arguments, streams),
    }
}

/// Asks the engine over a data folder that has one; no package is loaded.
fn with_engine<T>(data: &Path, ask: impl AsyncFnOnce(&Engine) -> Result<T, ExecError>) -> Result<T, ServerError> {
    require_store(data)?;
    let asked = runtime()?.block_on(async {
        let engine = Engine::open(EngineOptions::new(data, Arc::new(OfflineGateway::new(Vec::new()))))?;
        let asked = ask(&engine).await;
        engine.close().await;
        asked
    });
    Ok(asked?)
}

fn create(arguments: &SnapshotCreateArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let made = with_engine(&arguments.data, async |engine| engine.create_snapshot(&arguments.session).await)?;
    if arguments.json {
        streams.document(&made)?;
    } else {
        streams.print(&format!("{}  {} after {}\n", made.id, made.session_id, turns(made.completed_player_turns)));
    }
    Ok(DONE)
}

fn fork(arguments: &SnapshotForkArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let from = match (&arguments.from, &arguments.turn) {
        (Some(snapshot), _) => ForkFrom::Snapshot(snapshot.clone()),
        (None, Some(turn)) => ForkFrom::Turn(turn.clone()),
        (None, None) => ForkFrom::Now,
    };
    let made = with_engine(&arguments.data, async |engine| {
        engine.fork_session(&arguments.session, from, arguments.id.clone(), None).await
    })?;
    if arguments.json {
        streams.document(&json!({
            "sessionId": made.session.id, "parentSessionId": arguments.session,
            "fromSnapshotId": made.from_snapshot_id, "forkSnapshotId": made.fork_snapshot_id,
            "completedPlayerTurns": made.session.completed_player_turns,
        }))?;
    } else {
        streams.print(&format!("{}  {}\n", made.session.id, turns(made.session.completed_player_turns)));
    }
    Ok(DONE)
}

fn turns(count: u32) -> String {
    format!("{count} player turn{}", if count == 1 { "" } else { "s" })
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
