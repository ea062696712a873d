//! Services written in Rust by an embedder.

use std::sync::Arc;

use covel_abi::{CallHost as _, DataRow, HostError, LogLevel};
use covel_graph::Json;

use crate::view_host::ViewHost;

/// A service in Rust. It runs where it is called, so it should be short.
pub trait NativeService: Send + Sync + 'static {
    /// Answers a call. The input is any JSON: check it, and refuse with [`ServiceContext::invalid_input`].
    ///
    /// # Errors
    /// Becomes `provider-error` for the caller, except `conflict` errors of an update and
    /// [`ServiceContext::invalid_input`], which stay what they are. A write service that fails stages nothing.
    fn call(&self, input: &Json, context: &ServiceContext<'_>) -> Result<Json, HostError>;
}

impl<F> NativeService for F
where
    F: Fn(&Json, &ServiceContext<'_>) -> Result<Json, HostError> + Send + Sync + 'static,
{
    fn call(&self, input: &Json, context: &ServiceContext<'_>) -> Result<Json, HostError> {
        self(input, context)
    }
}

/// A service of a [`NativePackage`](crate::NativePackage).
pub(crate) struct NativeServiceEntry {
    pub(crate) name: String,
    pub(crate) contract: String,
    pub(crate) description: Option<String>,
    pub(crate) write: bool,
    pub(crate) handler: Arc<dyn NativeService>,
}

/// What a native service can ask during one call; the same as a service in JavaScript. CTX-1
pub struct ServiceContext<'a> {
    host: &'a ViewHost,
    caller: &'a str,
}

impl<'a> ServiceContext<'a> {
    pub(super) fn new(host: &'a ViewHost, caller: &'a str) -> Self {
        Self { host, caller }
    }

    /// The package that called.
    pub fn caller_plugin_id(&self) -> &str {
        self.caller
    }

    /// The session.
    pub fn session_id(&self) -> &str {
        &self.host.shared().session.id
    }

    /// The turn.
    pub fn turn_id(&self) -> &str {
        &self.host.shared().turn_id
    }

    /// Own settings in this session.
    pub fn settings(&self) -> &Json {
        &self.host.shared().settings[self.host.plugin() as usize]
    }

    /// Reads own data, as the caller's view shows it. CTX-3
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        self.host.data_get(namespace, key)
    }

    /// Lists own data in store order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        self.host.data_list(namespace)
    }

    /// Writes own data; write services only.
    ///
    /// # Errors
    /// `read-only`, or the rule it breaks.
    pub fn set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.host.data_set(namespace, key, value)
    }

    /// Deletes own data; write services only.
    ///
    /// # Errors
    /// `read-only`, or the rule it breaks.
    pub fn delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.host.data_delete(namespace, key)
    }

    /// Applies operations to own data; write services only. DAT-1
    ///
    /// # Errors
    /// `conflict` when they do not hold on the value seen; `read-only`, or the rule it breaks.
    pub fn update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.host.data_update(namespace, key, ops)
    }

    /// A part of the world as the caller sees it. RDD-4
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn world(&self, part: &str) -> Result<Json, HostError> {
        self.host.world(part)
    }

    /// A deterministic draw of the stream `service:<name>`, `min <= n < max`.
    ///
    /// # Errors
    /// When the bounds are out of range.
    pub fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        self.host.random_int(min, max)
    }

    /// Calls another service written in Rust: `{pluginId, name, contract, input}` or `{contract, input}`.
    ///
    /// # Errors
    /// Those of service calls.
    pub fn call(&self, request: &Json) -> Result<Json, HostError> {
        match self.host.services() {
            Some(client) => client.call_now(request),
            None => Err(super::error("unavailable", "services are not offered here")),
        }
    }

    /// Writes a log line.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.host.log(level, message, None);
    }

    /// The error for an input that does not fit.
    pub fn invalid_input(message: impl Into<String>) -> HostError {
        super::error("invalid-input", message)
    }
}
