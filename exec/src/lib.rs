//! What happens in a turn.
//!
//! Here live the engine an embedder opens, the sans-IO turn core, the driver that walks a plan, agents, tools,
//! overlays and the commit. Not here: HTTP, model protocols, the layout of the store, JavaScript itself.

mod activations;
pub mod active;
mod agent;
pub mod ambient;
mod call_host;
pub mod cascade;
mod command;
mod commit;
pub mod core;
pub mod document;
mod engine;
mod error;
mod event;
mod execution;
mod flow;
mod given;
mod inputs;
mod jobs;
pub mod limits;
mod native;
pub mod ops;
pub mod overlay;
mod packages;
pub mod probe;
mod prompt;
mod query;
pub mod random;
mod reads;
mod recovery;
mod replay;
mod requests;
pub mod results;
mod retry;
mod script;
pub mod select;
pub mod services;
mod session;
mod sessions;
mod setup;
mod shelf;
mod snapshot;
mod suspend;
mod tape;
mod tools;
pub mod trace;
mod turn;
mod view_host;
mod walked;
pub mod world;
pub mod write;

pub use ambient::{Ambient, FixedAmbient, SystemAmbient, iso_time};
pub use command::{CommandInfo, CommandOutcome};
pub use document::{
    ChangeDocument, DataChange, ErrorInfo, EventDocument, IsolatedDocument, RuntimeDocument, RuntimeStatus,
    SuspensionDocument, TurnDocument,
};
pub use engine::{Engine, EngineOptions};
pub use error::ExecError;
pub use event::{EventSink, TurnEvent};
pub use jobs::{
    BackgroundRequest, JOB_ITEM_KINDS, JOB_NAMESPACE, JobActivation, JobDocument, JobEvent, JobOrigin, JobProgress,
    JobResult, JobState, JobStatus, UiEvent,
};
pub use native::{NativeContext, NativeOutput, NativePackage, NativeRuntime};
pub use packages::{PackageInfo, PackageState};
pub use query::{DataFilter, DataRecord};
pub use reads::TraceRead;
pub use recovery::ExecutionInfo;
pub use replay::{ReplayDifference, ReplayReport};
pub use script::{ScriptedGateway, ScriptedReply};
pub use services::{
    native::{NativeService, ServiceContext},
    operation::{NotApplied, OperationDocument, OperationStatus, OperationWrite},
    trace::ServiceCall,
};
pub use session::{
    Interrupted, MessageRecord, OpenSuspension, Phase, SessionRecord, SessionStatus, SetupState, TriggerRecord,
};
pub use sessions::NewSession;
pub use shelf::{COMPILED_NAMES, PackageShelf};
pub use snapshot::{ForkFrom, Forked, SnapshotKind, SnapshotRecord};
pub use suspend::SuspensionRecord;
pub use turn::{ExecutionKind, ExecutionOptions, ExecutionRequest};
