//! What packages say.
//!
//! Here live ids, immutable JSON, diagnostics, the package reader, typed manifests with source positions,
//! compiled fragments, session activation, and linked plans with their archives.
//! Not here: any IO besides reading package folders handed in, JavaScript, stored data, turns.

pub mod diagnostic;
pub mod fragment;
pub mod ids;
pub mod json;
pub mod limits;
pub mod plan;

pub use diagnostic::{Diagnostic, Position, Severity};
pub use fragment::Fragment;
pub use ids::{
    ContractId, ExecutionId, PlanDigest, PluginId, RuntimeId, SessionId, Topic, TurnId, WorldId,
};
pub use json::Json;
pub use plan::{Plan, RuntimeIx, Stage};
