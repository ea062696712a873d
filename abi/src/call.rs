//! One call into plugin code.

use std::{sync::Arc, time::Duration};

use covel_graph::Json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{generation::Generation, host::CallHost};

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallTarget {
    /// The default export of a handler module: `(ctx) => result`.
    Handler {
        /// Package-relative module.
        module: String,
    },
    /// The default export of a guard module: `(ctx) => {skip, ...}`.
    Guard {
        /// Package-relative module.
        module: String,
    },
    /// A registered tool: `execute(args, toolContext)`.
    Tool {
        /// Name inside the plugin.
        name: String,
    },
    /// A registered service: input parsed, handler, output parsed. The argument is the input. SVC-9
    Service {
        /// Name inside the plugin.
        name: String,
    },
    /// A registered hook handler: `(ctx, payload)`; `null` when its `match` is not true. The argument is the payload.
    Hook {
        /// [`HookInfo::index`](crate::HookInfo::index).
        index: u32,
    },
    /// A registered extension handler: `(input, ctx)`. The argument is the input.
    Extension {
        /// Point.
        point: String,
        /// Id inside the plugin.
        id: String,
    },
    /// A registered form validator: `(values, data, {locale, messages})`. The argument is `{values, data}`.
    Form {
        /// Name inside the plugin.
        name: String,
    },
    /// A registered RPC action: `(payload, ctx)`.
    Rpc {
        /// Action.
        action: String,
    },
}

/// The data half of a context; the rest is asked of the host lazily.
/// Each part becomes an own, frozen, lazily converted property of `ctx`; absent parts are absent properties.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// `sessionId`, `turnId`, `pluginId`, `runtimeId`, `locale`, `playerMessage`, `logicalTurn`, `userSettings`,
    /// `triggerEvent`, `manualPayload`, `activation`, `session`, `playerActions`...: name and value.
    pub fields: Vec<(&'static str, Json)>,
    /// `ctx.inputs`: one slot object per bound input.
    pub inputs: Vec<(String, Json)>,
    /// Tool arguments or RPC payload; `None` for handlers and guards.
    pub argument: Option<Json>,
    /// Does the call get `pluginData.set/delete/update`? DAT-2
    pub writable: bool,
    /// Does the call get `ctx.tools` and `ctx.gateway`?
    pub effects: bool,
    /// Does the call get `ctx.gateway` alone? A service borrows its caller's.
    pub gateway: bool,
    /// May the call use `ctx.services`?
    pub services: bool,
    /// Does the call look on only (services, extension handlers)? It then has no `ctx.inputs`, `ctx.store`,
    /// `ctx.progress`.
    pub view: bool,
}

/// How long a call may take and how much it may give back.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// Wall-clock limit, host waits included.
    pub timeout: Duration,
    /// Largest result, in bytes of JSON.
    pub max_output_bytes: usize,
}

/// What plugin code returned.
#[derive(Clone, Debug)]
pub struct CallOutput {
    /// The returned value as JSON (`undefined` = `null`).
    pub value: Json,
}

/// Why a call gave no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The code threw.
    #[error("{message}")]
    Thrown {
        /// Error name.
        name: String,
        /// `error.code`, when a string.
        code: Option<String>,
        /// Message.
        message: String,
        /// Stack with the author's files and lines.
        stack: Option<String>,
        /// `error.details`, when JSON.
        details: Option<Json>,
    },
    /// The deadline passed; the code was interrupted.
    #[error("took longer than {limit_ms} ms")]
    Timeout {
        /// The limit.
        limit_ms: u64,
    },
    /// The isolate ran out of its heap; it was replaced.
    #[error("used more than {limit_bytes} bytes of memory")]
    HeapLimit {
        /// The limit.
        limit_bytes: usize,
    },
    /// Too deep recursion.
    #[error("recursed too deeply")]
    StackOverflow,
    /// The result is not JSON (a function, symbol, BigInt, cycle, non-finite number, getter that throws).
    #[error("the result is not JSON at {path}: {message}")]
    NotJson {
        /// Where in the result.
        path: String,
        /// What is there.
        message: String,
    },
    /// The result is too large.
    #[error("the result is larger than {limit_bytes} bytes")]
    OutputTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The module is missing, does not parse, or has no default function.
    #[error("{message}")]
    Load {
        /// What and where (file:line:column when known).
        message: String,
    },
    /// Another call made the plugin's isolate unusable; it was replaced. The same call may be made again.
    #[error("the plugin's isolate was replaced while the call was running")]
    IsolateLost,
    /// The worker thread was stuck in a native builtin and was replaced.
    #[error("the plugin's worker was stuck and was replaced")]
    WorkerLost,
}

impl CallError {
    /// Stable code for documents and events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Thrown { .. } => "handler-threw",
            Self::Timeout { .. } => "handler-timeout",
            Self::HeapLimit { .. } => "handler-out-of-memory",
            Self::StackOverflow => "handler-stack-overflow",
            Self::NotJson { .. } => "output-not-json",
            Self::OutputTooLarge { .. } => "output-too-large",
            Self::Cancelled => "cancelled",
            Self::Load { .. } => "handler-load-failed",
            Self::IsolateLost => "isolate-lost",
            Self::WorkerLost => "worker-lost",
        }
    }
}

/// One call to make. See [`JsHost::submit`](crate::JsHost::submit).
pub struct Call {
    /// Whose code.
    pub generation: Generation,
    /// Which code.
    pub target: CallTarget,
    /// Its context.
    pub context: CallContext,
    /// What answers its questions.
    pub host: Arc<dyn CallHost>,
    /// Limits.
    pub limits: CallLimits,
    /// Cancels the call, also while it waits for the host.
    pub cancel: CancellationToken,
    /// Comes back with the answer.
    pub tag: u32,
    /// Gets exactly one answer for the call.
    pub reply: mpsc::UnboundedSender<(u32, Result<CallOutput, CallError>)>,
}
