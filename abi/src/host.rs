//! What plugin code can ask of its host during one call. `covel-exec` implements it.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use covel_graph::Json;
use futures_util::future::BoxFuture;

/// A refused or failed host operation; becomes a JS error with `name`, `code` and `message`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// JS error name (`Error`, `TimeoutError`, `ToolError`, `RangeError`...).
    pub name: &'static str,
    /// Stable code (`invalid-input`, `unavailable`, `closed`...).
    pub code: String,
    /// One sentence.
    pub message: String,
}

impl HostError {
    /// An error named `Error`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: "Error", code: code.into(), message: message.into() }
    }
}

/// One plugin-data record as plugin code lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRow {
    /// Key.
    pub key: String,
    /// Value.
    pub value: Json,
    /// ISO time.
    pub created_at: String,
    /// ISO time.
    pub updated_at: String,
}

/// Log level of `ctx.logger` and `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Debug.
    Debug,
    /// Info.
    Info,
    /// Warn.
    Warn,
    /// Error.
    Error,
}

/// A host operation that takes time.
#[derive(Clone, Debug)]
pub enum HostRequest {
    /// `ctx.tools.call(name, args)`.
    ToolCall {
        /// Tool.
        name: String,
        /// Arguments.
        arguments: Json,
    },
    /// `ctx.gateway.generateText({...})`; the options object as given.
    GenerateText {
        /// Options.
        options: Json,
    },
    /// `ctx.gateway.generateObject({...})`.
    GenerateObject {
        /// Options.
        options: Json,
    },
    /// `ctx.services.call({pluginId?, name?, contract, input}, {timeoutMs?, signal?})`. SVC-5
    ServiceCall {
        /// The request object as given.
        request: Json,
        /// `timeoutMs`, when given.
        timeout_ms: Option<f64>,
        /// Decides between the answer and the caller's own signal.
        settlement: Settlement,
    },
}

/// Whether an operation's answer still counts: either it is kept, or whoever waits has given it up; never both.
#[derive(Clone, Debug, Default)]
pub struct Settlement(Arc<AtomicU8>);

const OPEN: u8 = 0;
const KEPT: u8 = 1;
const ABANDONED: u8 = 2;

impl Settlement {
    /// The answer is to count. `false`: it was given up before.
    pub fn keep(&self) -> bool {
        self.settle(KEPT)
    }

    /// Nobody waits any more. `false`: the answer counts already and will come.
    pub fn abandon(&self) -> bool {
        self.settle(ABANDONED)
    }

    fn settle(&self, to: u8) -> bool {
        self.0
            .compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|before| before == to, |_| true)
    }
}

/// The host side of one call. Sync methods answer from memory or LMDB in microseconds and may be called from a
/// JS worker thread; none may block on I/O or enter a thread pool. Nothing here panics on hostile input.
pub trait CallHost: Send + Sync + 'static {
    /// `ctx.pluginData.get`: the value or nothing.
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError>;
    /// `ctx.pluginData.list`, in creation order.
    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError>;
    /// `ctx.pluginData.set`.
    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError>;
    /// `ctx.pluginData.delete`.
    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError>;
    /// `ctx.pluginData.update` with a list of ops. DAT-1
    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError>;
    /// `ctx.random.int(min, max)`: `min <= n < max`.
    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError>;
    /// Wall-clock time for `Date`, in milliseconds since 1970. `None`: the system's.
    fn now_millis(&self) -> Option<u64> {
        None
    }
    /// A monotonic reading for `performance.now()`, in microseconds. `None`: the system's.
    fn monotonic_micros(&self) -> Option<u64> {
        None
    }
    /// `Math.random()`: `0 <= n < 1`. `None`: drawn from the system's random source.
    fn random_unit(&self) -> Option<f64> {
        None
    }
    /// Fills random bytes for `crypto`; `false`: the system's random source is to do it.
    fn random_bytes(&self, bytes: &mut [u8]) -> bool {
        let _ = bytes;
        false
    }
    /// `ctx.progress.report(effect)`: how far the work is; live only. Nobody listening changes nothing.
    fn progress(&self, _effect: &Json) -> Result<(), HostError> {
        Ok(())
    }
    /// A part of `ctx.world` (`characters`, `characterSchema`, `dimensions`, `seats`, `worldRecord`).
    fn world(&self, part: &str) -> Result<Json, HostError>;
    /// A part of `ctx.store` (`getSession`, `listPlayerInputs`, `listTurnMessages`...) with its argument.
    fn store(&self, method: &str, argument: &Json) -> Result<Json, HostError>;
    /// `ctx.services.discover(contract)`: the services this call could make use of. SVC-4
    fn discover(&self, contract: &str) -> Result<Json, HostError> {
        let _ = contract;
        Err(HostError {
            name: "ServiceError",
            code: "unavailable".into(),
            message: "services are not offered here".into(),
        })
    }
    /// `ctx.world` was taken for the first time: what it shows is copied now. CTX-1
    fn world_taken(&self) {}
    /// `ctx.logger.*` and `console.*`.
    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>);
    /// An operation that takes time. Dropping the future cancels it.
    fn request(&self, request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>>;
}
