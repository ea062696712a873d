//! The boundary plugin code sees.
//!
//! Here live the JavaScript isolates, the `covel` object, handler contexts, module loading and the traits through
//! which plugin code reaches its host. Not here: any store, any HTTP, any turn logic.

pub mod author;
mod bindings;
mod builtin;
pub mod call;
mod digest;
mod document;
mod engine;
pub mod error;
mod fence;
mod from_js;
pub mod generation;
pub mod host;
mod isolate;
mod js_host;
pub mod limits;
mod modules;
mod queue;
mod register;
mod to_js;
mod worker;

pub use call::{Call, CallContext, CallError, CallLimits, CallOutput, CallTarget};
pub use error::LoadError;
pub use generation::{
    ActionInfo, CloseReport, Declared, DeclaredService, Generation, GenerationSpec, HookInfo, ModuleFiles,
    Registrations, ServiceInfo, ToolInfo,
};
pub use host::{CallHost, DataRow, HostError, HostRequest, LogLevel, Settlement};
pub use js_host::{CallRequest, JsHost, JsOptions};
