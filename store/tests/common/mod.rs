//! What the tests share.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, missing_docs)]

use covel_graph::{Json, PluginId, SessionId};
use covel_store::{Store, StoreOptions};
use tempfile::TempDir;

/// A store on a temporary folder, which must outlive it.
pub fn store() -> (Store, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Store::open(dir.path(), StoreOptions::no_sync()).unwrap(), dir)
}

/// A map so small that a few hundred kilobytes fill it.
pub fn tiny() -> StoreOptions {
    StoreOptions { map_size: covel_store::limits::MIN_MAP_BYTES, ..StoreOptions::no_sync() }
}

pub fn session(id: &str) -> SessionId {
    SessionId::from(id)
}

pub fn plugin(id: &str) -> PluginId {
    PluginId::from(id)
}

pub fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub fn at(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}.000Z")
}
