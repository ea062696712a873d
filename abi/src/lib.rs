//! The boundary plugin code sees.
//!
//! Here live the JavaScript isolates, the `covel` object, handler contexts, module loading and the traits through
//! which plugin code reaches its host. Not here: any store, any HTTP, any turn logic.

pub mod call;
pub mod host;

pub use call::{CallContext, CallError, CallLimits, CallOutput, CallTarget};
pub use host::{CallHost, DataRow, HostError, HostRequest, LogLevel};
