//! The trace of an execution: what of it is kept beside the turn document, and how.
//!
//! The document has a row for each runtime already, and the plan has the edges; so only what neither tells is
//! stored: who asked for what, who was not selected and why, reads with versions, what commits changed, and the
//! tape. [`view`] joins them again.

pub(crate) mod draft;
pub(crate) mod view;

pub use view::{TraceCommit, TraceDocument, TraceEvent, TraceIdle, TraceModel, TracePackage, TraceRuntime};
