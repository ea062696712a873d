//! Who may call services: handlers, guards, tools, natives. WSV-11, TOL-3..5

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use covel_abi::{CallHost, DataRow, HostError, HostRequest, JsHost, LogLevel};
use covel_graph::{Json, RuntimeIx};
use covel_model::SharedGateway;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Root, Writes};
use crate::{
    call_host::{RuntimeCall, Shared},
    overlay::Overlay,
    view_host::Source,
};

/// May this runtime's code call write services in this execution? Not where it would settle a thing twice (jobs,
/// resumptions, sourced retries), nor an agent that may suspend. WSV-11
fn writes(shared: &Shared, runtime: RuntimeIx) -> Writes {
    let twice = shared.job.is_some() || shared.given.resume.is_some() || shared.given.turn.is_some();
    let agent = shared.plan.decl(runtime).agent.as_ref();
    let suspends = agent.is_some_and(|agent| agent.builtin_tools.iter().any(|tool| tool == "suspend"));
    if twice || suspends { Writes::Refused } else { Writes::Allowed }
}

fn root(call: &Arc<RuntimeCall>, js: Option<JsHost>, cancel: CancellationToken) -> Root {
    let shared = call.shared();
    Root {
        shared: Arc::clone(shared),
        js,
        source: Source::Runtime(Arc::clone(call)),
        subject: shared.plan.runtime_id(call.runtime()).to_owned(),
        gateway: None,
        writes: writes(shared, call.runtime()),
        cancel,
        scope: 0,
        tool_call_id: None,
    }
}

impl Client {
    /// `ctx.services` of a function runtime's handler.
    pub(crate) fn of_handler(
        call: &Arc<RuntimeCall>,
        js: JsHost,
        gateway: SharedGateway,
        cancel: CancellationToken,
    ) -> Self {
        let plugin = call.shared().plan.plugin_ix(call.runtime());
        Self::new(Root { gateway: Some(gateway), ..root(call, Some(js), cancel) }, plugin)
    }

    /// Services as a runtime written in Rust calls them.
    pub(crate) fn of_native(call: &Arc<RuntimeCall>) -> Self {
        let plugin = call.shared().plan.plugin_ix(call.runtime());
        Self::new(root(call, None, call.shared().cancel.clone()), plugin)
    }

    /// Read services for code that no runtime answers for: hooks, extension handlers, actions. `subject` names the call
    /// and is unique in the execution; providers read through `view`, and nothing is recorded. RDD-5, WSV-11
    #[allow(dead_code, reason = "for hooks, extension points and actions")]
    pub(crate) fn read_only(
        shared: &Arc<Shared>,
        js: JsHost,
        view: Overlay,
        plugin: u32,
        subject: String,
        cancel: CancellationToken,
    ) -> Self {
        let root = Root {
            shared: Arc::clone(shared),
            js: Some(js),
            source: Source::Plain(view),
            subject,
            gateway: None,
            writes: Writes::Refused,
            cancel,
            scope: 0,
            tool_call_id: None,
        };
        Self::new(root, plugin)
    }
}

/// Lets an agent's guard call read services.
pub(crate) fn serve_guard(call: &Arc<RuntimeCall>, js: &JsHost, gateway: &SharedGateway) {
    let ended = call.shared().cancel.child_token();
    let guard = Root {
        writes: Writes::Refused,
        gateway: Some(Arc::clone(gateway)),
        // Its own names in traces and random numbers: the agent's tools number their calls from 1.
        scope: 0,
        ..root(call, Some(js.clone()), ended.clone())
    };
    let client = Client::new(guard, call.shared().plan.plugin_ix(call.runtime()));
    let discovering = client.clone();
    call.serve_requests(
        Arc::new(move |request| match request {
            HostRequest::ServiceCall { request, timeout_ms, settlement } => {
                client.call(&request, timeout_ms, settlement)
            }
            _ => Box::pin(async { Err(HostError::new("unavailable", "tools and models are not offered to a guard")) }),
        }),
        ended,
    );
    call.offer_services(discovering);
}

/// The host of one tool call: the runtime's own, but services are called in the tool's name, end with it, and count only
/// if it succeeds. TOL-3, WSV-7
pub(crate) struct ToolHost {
    call: Arc<RuntimeCall>,
    client: Client,
    scope: u32,
    over: AtomicBool,
}

impl ToolHost {
    pub(crate) fn new(
        call: &Arc<RuntimeCall>,
        js: &JsHost,
        cancel: &CancellationToken,
        tool_call_id: Option<String>,
    ) -> Arc<Self> {
        let scope = call.begin_scope();
        let mut root = Root { scope, tool_call_id, ..root(call, Some(js.clone()), cancel.child_token()) };
        if call.shared().given.resume_of(call.runtime()).is_some() {
            // RDD-6
            root.source = Source::Plain(Overlay::default());
        }
        let client = Client::new(root, call.shared().plan.plugin_ix(call.runtime()));
        Arc::new(Self { call: Arc::clone(call), client, scope, over: AtomicBool::new(false) })
    }

    /// The tool ended. What it staged is kept if it succeeded; calls still under way are cancelled.
    pub(crate) fn end(&self, succeeded: bool) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.call.end_scope(self.scope, succeeded);
            self.client.root().cancel.cancel();
        }
    }
}

impl Drop for ToolHost {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl CallHost for ToolHost {
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        self.call.data_get(namespace, key)
    }
    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        self.call.data_list(namespace)
    }
    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.call.data_set(namespace, key, value)
    }
    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.call.data_delete(namespace, key)
    }
    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.call.data_update(namespace, key, ops)
    }
    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        self.call.random_int(min, max)
    }
    fn now_millis(&self) -> Option<u64> {
        self.call.now_millis()
    }
    fn monotonic_micros(&self) -> Option<u64> {
        self.call.monotonic_micros()
    }
    fn random_unit(&self) -> Option<f64> {
        self.call.random_unit()
    }
    fn random_bytes(&self, bytes: &mut [u8]) -> bool {
        self.call.random_bytes(bytes)
    }
    fn progress(&self, effect: &Json) -> Result<(), HostError> {
        self.call.progress(effect)
    }
    fn world(&self, part: &str) -> Result<Json, HostError> {
        self.call.world(part)
    }
    fn store(&self, method: &str, argument: &Json) -> Result<Json, HostError> {
        self.call.store(method, argument)
    }
    fn discover(&self, contract: &str) -> Result<Json, HostError> {
        self.client.discover(contract)
    }
    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>) {
        self.call.log(level, message, meta);
    }
    fn request(&self, request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        match request {
            HostRequest::ServiceCall { request, timeout_ms, settlement } => {
                self.client.call(&request, timeout_ms, settlement)
            }
            other => self.call.request(other),
        }
    }
}
