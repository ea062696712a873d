//! What the cross-crate suites share: the shipped packages and world on a temporary engine.
//!
//! The suites are in `tests/`, the tables of cases in `cases/`.
#![allow(clippy::unwrap_used)] // A suite that cannot set itself up stops.

use std::{path::PathBuf, sync::Arc};

use covel_exec::{Engine, EngineOptions, FixedAmbient};
use covel_gateway::offline::{OfflineGateway, SceneBook};
use covel_graph::{
    package::{Discovery, Package, compile_all, find_packages},
    world::{World, find_worlds, read_world},
};
use tempfile::TempDir;

/// The folder of shipped packages.
pub fn plugins() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins")
}

/// The shipped packages; every one compiles without an error or a warning.
pub fn packages() -> Vec<Arc<Package>> {
    let folders = find_packages(&plugins()).unwrap();
    let compiled = compile_all(&folders, Discovery::Builtin);
    let problems: Vec<String> =
        compiled.iter().flat_map(|package| package.diagnostics.iter().map(ToString::to_string)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    compiled.into_iter().filter_map(|package| package.package).collect()
}

/// The shipped worlds.
pub fn worlds() -> Vec<World> {
    find_worlds(&plugins().join("worlds")).unwrap().iter().map(|folder| read_world(folder).unwrap()).collect()
}

/// An engine with everything shipped and the offline storyteller.
pub async fn shipped() -> (Engine, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let worlds = worlds();
    let books = worlds
        .iter()
        .filter_map(|world| {
            Some(Arc::new(SceneBook::from_json(world.id.as_str(), world.scenes.as_ref()?.value()).unwrap()))
        })
        .collect();
    let mut options = EngineOptions::new(folder.path(), Arc::new(OfflineGateway::new(books)));
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    for world in worlds {
        engine.add_world(world);
    }
    for state in engine.publish(packages()).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    (engine, folder)
}

/// The embedding guide, whose example runs as a doc test.
#[doc = include_str!("../../docs/embedding.md")]
pub mod embedding {}
