//! What packages say.
//!
//! Here live ids, immutable JSON, diagnostics, the package reader, typed manifests with source positions,
//! compiled fragments, session activation, and linked plans with their archives.
//! Not here: any IO besides reading package folders handed in, JavaScript, stored data, turns.

pub mod activation;
pub mod archive;
pub mod cache;
pub mod compat;
mod consistency;
mod cycle;
pub mod diagnostic;
pub mod diff;
pub mod explain;
mod files;
pub mod fragment;
mod frontmatter;
pub mod hazard;
pub mod ids;
pub mod json;
pub mod layer;
pub mod limits;
pub mod link;
mod manifest;
pub mod package;
pub mod plan;
mod report;
pub mod schema;
pub mod setting;
pub mod shelf;
pub mod world;
mod yaml;

pub use activation::{Activation, ActivationRequest, AutoAdded, Rejected, Unmet, activate};
pub use archive::{ArchiveError, FRAGMENT_FORMAT, PlanHandle, decode_fragment, encode_fragment, encode_plan};
pub use cache::{CacheUse, PackageCache, Publication};
pub use compat::Compatibility;
pub use diagnostic::{Diagnostic, Position, Severity};
pub use diff::DiffDocument;
pub use explain::{PlanDocument, WhyDocument};
pub use fragment::Fragment;
pub use hazard::{EffectTable, EffectsPolicy, Hazard, hazards, serialize_layer};
pub use ids::{ContractId, ExecutionId, PlanDigest, PluginId, RuntimeId, SessionId, Topic, TurnId, WorldId};
pub use json::Json;
pub use layer::{LayerCache, Layering, layer};
pub use link::{Linked, link};
pub use manifest::{FRAMEWORK_TOOLS, KERNEL_POINTS, KERNEL_SLOTS, ManifestKind, manifest_schema};
pub use package::{
    Compiled, Discovery, Package, PackageFiles, compile_all, compile_in_memory, compile_package, find_packages,
    refuse_duplicates,
};
pub use plan::{ArchivedPlan, Plan, RuntimeIx, Stage};
pub use schema::{SchemaIssue, SchemaSet, Validator};
pub use setting::check_setting;
pub use shelf::{Remembered, Shelf, compiler_id};
