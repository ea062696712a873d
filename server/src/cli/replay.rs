//! `covel replay`: a recorded execution run again and compared.

use std::fmt::Write as _;

use covel_exec::{Engine, EngineOptions, ReplayReport};

use super::{DONE, REFUSED, Streams, args::ReplayArgs, plan, runtime, trace::turn_id};
use crate::{error::ServerError, load::Loaded, models, snapshots::require_store};

/// Characters of a differing value that are printed.
const SHOWN_CHARS: usize = 400;

pub(super) fn run(arguments: &ReplayArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    // Opening would make a store; reading must not.
    require_store(&arguments.data)?;
    let loaded = plan::load_for(&arguments.packages)?.strict()?;
    let report = runtime()?.block_on(replay(arguments, loaded))?;
    if arguments.json {
        streams.document(&report)?;
    } else {
        streams.print(&text(&report));
    }
    Ok(if report.equal { DONE } else { REFUSED })
}

async fn replay(arguments: &ReplayArgs, mut loaded: Loaded) -> Result<ReplayReport, ServerError> {
    // No model is asked: replies come from the record.
    let gateway = models::offline(&mut loaded);
    let engine = Engine::open(EngineOptions::new(&arguments.data, gateway))?;
    for state in engine.publish(loaded.packages()).await {
        if let Some(error) = &state.error {
            tracing::warn!(plugin = %state.plugin_id, "the code of this package was not activated: {error}");
        }
    }
    for world in &loaded.worlds {
        engine.add_world(world.as_ref().clone());
    }
    let report = async {
        let turn = turn_id(&engine, &arguments.session, &arguments.turn)?;
        engine.replay(&arguments.session, &turn).await
    };
    let report = report.await;
    engine.close().await;
    Ok(report?)
}

// Writing to a string does not fail.
fn text(report: &ReplayReport) -> String {
    let mut text = String::new();
    let kind = if report.committed { "commit" } else { "failure" };
    let verdict = if report.equal { "the same" } else { "not the same" };
    let _ = writeln!(
        text,
        "{} of session {}: {verdict} {kind} ({} rows, {} bytes compared; durations are not)",
        report.turn_id, report.session_id, report.rows, report.bytes
    );
    if let Some(difference) = &report.difference {
        let shown = |value: &Option<covel_graph::Json>| {
            let text = value.as_ref().map_or("nothing", covel_graph::Json::text);
            match text.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text.to_owned(),
            }
        };
        let _ = writeln!(text, "  first difference at {}", difference.pointer);
        let _ = writeln!(text, "  recorded  {}", shown(&difference.recorded));
        let _ = writeln!(text, "  replayed  {}", shown(&difference.replayed));
    }
    for note in &report.notes {
        let _ = writeln!(text, "  [{}] {}", note.code, note.message);
    }
    text
}
