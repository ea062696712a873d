//! An engine inside another program: one Rust runtime beside JavaScript packages, one turn.
//!
//! `cargo run -p covel-exec --example embed -- plugins/weather`

use std::{path::PathBuf, sync::Arc};

use covel_exec::{Engine, EngineOptions, ExecutionRequest, NativeOutput, NativePackage, NewSession, ScriptedGateway};
use covel_graph::{
    Stage,
    package::{Discovery, compile_all},
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let gateway = Arc::new(ScriptedGateway::new(Vec::new()));
    let engine = Engine::open(EngineOptions::new(folder.path(), gateway))?;

    // JavaScript packages from folders.
    let folders: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let compiled = compile_all(&folders, Discovery::Builtin);
    for diagnostic in compiled.iter().flat_map(|package| &package.diagnostics) {
        eprintln!("{diagnostic}");
    }
    engine.publish(compiled.into_iter().filter_map(|package| package.package).collect()).await;

    // A runtime in Rust: it counts the words of each message and remembers the total.
    let words =
        NativePackage::new("word-count").runtime("count", Stage::PreTurn, |ctx: &covel_exec::NativeContext<'_>| {
            let count = ctx.player_message().split_whitespace().count();
            let ops = json!([{"op": "inc", "path": "/words", "by": count}]);
            ctx.update("totals", "all", ops.into()).map_err(|error| error.message)?;
            Ok(NativeOutput::value(json!({ "words": count })))
        });
    engine.publish_native(words).await?;

    let session = engine.create_session(NewSession::default()).await?;
    let turn = engine.execute(ExecutionRequest::player(&session.id, "Look at the harbour"), None).await?;
    println!("{}", serde_json::to_string_pretty(&turn)?);
    engine.close().await;
    Ok(())
}
