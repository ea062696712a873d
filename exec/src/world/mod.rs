//! The world of a session beyond plugin data: characters and their schema, lorebook, dimensions, seats, shared state.
//!
//! Committed records live in the data table under owners no package can reach (`__kernel:*`), dimensions under their
//! owner package in namespaces it may read but not write. What an execution has written so far is in its overlay
//! under [`WORLD`], so that layers, read tracking and the cascade treat it as they treat plugin data. RDD-4
//!
//! Not here: how a runtime gets at it (`call_host`), when it is committed (`commit`).

pub mod cast;
pub mod character;
pub(crate) mod commit;
pub mod dimension;
pub(crate) mod dimension_schema;
mod host;
pub mod lorebook;
mod query;
pub(crate) mod record;
pub mod schema;
pub mod seat;
mod settlement;
pub(crate) mod sheet;
pub(crate) mod start;
pub(crate) mod view;

pub use query::{CharacterRecord, LorebookRecord};

/// The overlay's owner of characters and their schema: no plan has a package with this index.
pub(crate) const WORLD: u32 = u32::MAX;
/// Owner of characters and schema.
pub(crate) const WORLD_OWNER: &str = "__kernel:world";
/// Owner of the shared state tables; the namespace is the table.
pub(crate) const STATE_OWNER: &str = "__kernel:state";
/// Owner of lorebook entries; the namespace is `world`, `player` or `plugin:<id>`.
pub(crate) const LORE_OWNER: &str = "__kernel:lorebook";
/// Namespace of characters, by id.
pub(crate) const CHARACTERS: &str = "characters";
/// Namespace and key of the character schema.
pub(crate) const SCHEMA: &str = "character-schema";
/// The owner package's namespace of dimensions, by id.
pub(crate) const DIMENSIONS: &str = "_dimensions";
/// The owner package's namespace of settlement receipts, by the narrative's result id.
pub(crate) const SETTLEMENTS: &str = "_dimension-settlements";
/// The contract whose one active provider owns the dimensions.
pub const DIMENSIONS_CONTRACT: &str = "world.dimensions@1";

/// Why a world write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFault {
    /// Stable code.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}

impl WorldFault {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
