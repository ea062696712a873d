//! `covel trace`: what an execution did, as a table, as JSON, or as a picture.

mod html;
mod table;

use std::{path::Path, sync::Arc};

use covel_exec::{Engine, EngineOptions, ExecError, trace::TraceDocument};
use covel_gateway::offline::OfflineGateway;

use super::{DONE, Streams, args::TraceArgs, runtime};
use crate::{error::ServerError, snapshots::require_store};

pub(super) fn run(arguments: &TraceArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    // Opening would make a store; reading must not.
    require_store(&arguments.data)?;
    let trace = runtime()?.block_on(async {
        let options = EngineOptions::new(&arguments.data, Arc::new(OfflineGateway::new(Vec::new())));
        let engine = Engine::open(options)?;
        let trace = find(&engine, &arguments.session, &arguments.turn);
        engine.close().await;
        trace
    })?;
    if let Some(path) = &arguments.html {
        write(path, &html::page(&trace))?;
        streams.complain(&format!("covel: wrote {}", path.display()));
    }
    if arguments.json {
        streams.document(&trace)?;
    } else if arguments.html.is_none() {
        streams.print(&table::of(&trace));
    }
    Ok(DONE)
}

fn find(engine: &Engine, session: &str, turn: &str) -> Result<TraceDocument, ExecError> {
    engine.trace(session, &turn_id(engine, session, turn)?)
}

/// Newest turns looked through for one with a given logical number.
const LOOKED_THROUGH: usize = 10_000;

/// The id of a turn named by its id, by `last`, or by its logical number.
pub(super) fn turn_id(engine: &Engine, session: &str, turn: &str) -> Result<String, ExecError> {
    let named = if turn == "last" {
        engine.turns(session, 1)?.pop()
    } else if let Ok(number) = turn.parse::<u32>() {
        let turns = engine.turns(session, LOOKED_THROUGH)?;
        turns.into_iter().find(|found| found.logical_turn == number && found.origin == "player")
    } else {
        return Ok(turn.to_owned());
    };
    named.map(|turn| turn.turn_id).ok_or_else(|| ExecError::NotFound {
        code: "trace-not-found",
        message: format!("session {session:?} has no turn {turn:?}; name it by its id, its number, or `last`"),
    })
}

fn write(path: &Path, text: &str) -> Result<(), ServerError> {
    std::fs::write(path, text)
        .map_err(|error| ServerError::Unwritable { path: path.to_owned(), message: error.to_string() })
}
