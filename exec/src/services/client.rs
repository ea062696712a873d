//! `ctx.services`: discovery, and what is checked before a call begins. SVC-4..11, WSV-8, WSV-11, WSV-13

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use covel_abi::{HostError, JsHost, Settlement};
use covel_graph::Json;
use covel_model::SharedGateway;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::{
    error,
    run::{Begun, run, run_now},
    table::ServiceRow,
    trace::{Running, ServiceCall, UNAVAILABLE, cut},
};
use crate::{
    call_host::Shared,
    limits::{MAX_SERVICE_BYTES, MAX_SERVICE_DEPTH, MAX_SERVICE_TIMEOUT_MS, SERVICE_EXECUTION_MS},
    view_host::Source,
};

/// May write services be called from here?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Yes: what they stage hangs on the calling runtime's result.
    Allowed,
    /// No. WSV-11
    Refused,
}

/// Where a chain of calls begins.
pub(crate) struct Root {
    /// The execution.
    pub(crate) shared: Arc<Shared>,
    /// Isolates; a caller written in Rust has none at hand and reaches services written in Rust only.
    pub(crate) js: Option<JsHost>,
    /// Whose view providers read through.
    pub(crate) source: Source,
    /// Names the caller in call ids: a runtime's id, or another name that is unique in the execution.
    pub(crate) subject: String,
    /// Model access that providers may borrow. Tools and imports lend none. TOL-5
    pub(crate) gateway: Option<SharedGateway>,
    /// May write services be called?
    pub(crate) writes: Writes,
    /// Cancelled when the caller ends.
    pub(crate) cancel: CancellationToken,
    /// The piece of code that calls: 0 for a handler, else a tool call. WSV-7
    pub(crate) scope: u32,
    /// The tool call, for traces. MFS-6
    pub(crate) tool_call_id: Option<String>,
}

/// Service calls of one piece of code: a handler, a tool, a provider that calls on. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    root: Arc<Root>,
    /// Index of the calling package.
    plugin: u32,
    /// Services being called, outermost first.
    chain: Vec<Arc<ServiceRow>>,
    /// Number of the piece of code, then of the call at each level.
    path: Vec<u32>,
    next: AtomicU32,
    parent: Option<String>,
}

/// A place in the queue of calls to one provider.
pub(super) type Place = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send + Sync>>;

impl Client {
    /// A client for the code of a package.
    pub(crate) fn new(root: Root, plugin: u32) -> Self {
        let path = vec![root.scope];
        let inner =
            Inner { root: Arc::new(root), plugin, chain: Vec::new(), path, next: AtomicU32::new(0), parent: None };
        Self(Arc::new(inner))
    }

    pub(super) fn root(&self) -> &Arc<Root> {
        &self.0.root
    }

    /// Index of the calling package.
    pub(super) fn plugin(&self) -> u32 {
        self.0.plugin
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.root.shared
    }

    /// The client of a provider that was called through this one.
    pub(super) fn within(&self, row: &Arc<ServiceRow>, path: Vec<u32>, call_id: String) -> Self {
        let mut chain = self.0.chain.clone();
        chain.push(Arc::clone(row));
        Self(Arc::new(Inner {
            root: Arc::clone(&self.0.root),
            plugin: row.plugin,
            chain,
            path,
            next: AtomicU32::new(0),
            parent: Some(call_id),
        }))
    }

    /// Is this the client of a provider?
    pub(super) fn is_nested(&self) -> bool {
        !self.0.chain.is_empty()
    }

    fn may_run(&self, plugin: u32) -> bool {
        let shared = self.shared();
        shared.grants.allow(&shared.plan.packages[plugin as usize])
    }

    /// Services of a contract that this session may call now. Activates nothing. SVC-4, SVC-8
    pub(crate) fn discover(&self, contract: &str) -> Result<Json, HostError> {
        if !covel_graph::ids::is_contract_id(contract) {
            return Err(error("invalid-input", format!("{:?} is no contract (`<name>@<major>`)", cut(contract))));
        }
        let found: Vec<Value> = self
            .shared()
            .plan
            .services
            .of_contract(contract)
            .filter(|row| self.may_run(row.plugin))
            .map(|row| {
                let mut one = json!({"pluginId": row.plugin_id, "name": &*row.name, "contract": row.contract});
                if let Some(description) = &row.description {
                    one["description"] = description.as_str().into();
                }
                one
            })
            .collect();
        Ok(Json::from_value(Value::Array(found)))
    }

    /// Calls a service. What has an order (numbers, queues) is decided here, at once; the future does the rest, and
    /// dropping it cancels the call. SVC-5
    pub(crate) fn call(
        &self,
        request: &Json,
        timeout_ms: Option<f64>,
        settlement: Settlement,
    ) -> BoxFuture<'static, Result<Json, HostError>> {
        match self.begin(request, timeout_ms, settlement) {
            Ok(begun) => Box::pin(run(begun)),
            Err(refused) => Box::pin(async move { Err(refused) }),
        }
    }

    /// Calls a service written in Rust, at once.
    pub(crate) fn call_now(&self, request: &Json) -> Result<Json, HostError> {
        run_now(self.begin(request, None, Settlement::default())?)
    }

    fn begin(&self, request: &Json, timeout_ms: Option<f64>, settlement: Settlement) -> Result<Begun, HostError> {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let mut path = self.0.path.clone();
        path.push(number);
        let numbers: Vec<String> = path.iter().map(u32::to_string).collect();
        let id = format!("{}#{}", self.0.root.subject, numbers.join("."));
        let wanted = Wanted::read(request.value());
        let found = wanted.as_ref().map_err(Clone::clone).and_then(|wanted| self.find(wanted));
        let running = self.running(&path, &id, wanted.as_ref().ok(), found.as_ref().ok());
        let checked = found.and_then(|row| {
            self.check(&row)?;
            let limit = limit(timeout_ms)?;
            let input = request.pointer("/input").unwrap_or_else(Json::null);
            if input.byte_len() > MAX_SERVICE_BYTES {
                let message = format!("the input has {} bytes; at most {MAX_SERVICE_BYTES}", input.byte_len());
                return Err(error("invalid-input", message));
            }
            Ok((row, limit, input))
        });
        let (row, limit, input) = match checked {
            Ok(checked) => checked,
            Err(refused) => {
                running.end("error", Some(&refused.code));
                return Err(refused);
            }
        };
        let (place, sequence) = match (&self.0.root.source, row.write) {
            (Source::Runtime(call), true) => {
                (Some(place_in(call.queue_of(row.plugin).lock_owned())), call.next_operation())
            }
            _ => (None, 0),
        };
        let client = self.within(&row, path, id.clone());
        Ok(Begun {
            caller: self.clone(),
            client,
            row,
            input,
            limit,
            timed: timeout_ms.is_some(),
            place,
            sequence,
            id,
            running,
            settlement,
        })
    }

    /// The row of the trace, begun. DIA-3, TRC-2
    fn running(&self, path: &[u32], id: &str, wanted: Option<&Wanted<'_>>, row: Option<&Arc<ServiceRow>>) -> Running {
        let shared = self.shared();
        let root = &self.0.root;
        let call = ServiceCall {
            call_id: id.to_owned(),
            parent_call_id: self.0.parent.clone(),
            tool_call_id: root.tool_call_id.clone(),
            runtime_id: match &root.source {
                Source::Runtime(call) => Some(shared.plan.runtime_id(call.runtime()).to_owned()),
                Source::Plain(_) => shared.plan.runtime_ix(&root.subject).map(|_| root.subject.clone()),
            },
            caller_plugin_id: shared.plan.packages[self.0.plugin as usize].id().to_owned(),
            provider_plugin_id: row.map_or_else(|| UNAVAILABLE.to_owned(), |row| row.plugin_id.clone()),
            name: row.map_or_else(|| UNAVAILABLE.to_owned(), |row| row.name.to_string()),
            contract: wanted.map_or_else(|| UNAVAILABLE.to_owned(), |wanted| cut(wanted.contract)),
            duration_micros: 0,
            outcome: String::new(),
            error_code: None,
        };
        Running::new(Arc::clone(shared), path.to_vec(), call)
    }

    fn find(&self, wanted: &Wanted<'_>) -> Result<Arc<ServiceRow>, HostError> {
        let table = &self.shared().plan.services;
        let mut candidates = table.of_contract(wanted.contract).filter(|row| self.may_run(row.plugin));
        if let Some((plugin, name)) = wanted.place {
            let found = candidates.find(|row| row.plugin_id == plugin && *row.name == *name);
            return found.cloned().ok_or_else(|| {
                let message =
                    format!("no service {} {} of {} can be called here", cut(plugin), cut(name), wanted.contract);
                error("unavailable", message)
            });
        }
        let found: Vec<&Arc<ServiceRow>> = candidates.collect();
        match &*found {
            [only] => Ok(Arc::clone(only)),
            [] => Err(error("unavailable", format!("no service of {} can be called here", wanted.contract))),
            several => {
                // Nobody is guessed. SVC-11
                let names: Vec<String> = several.iter().map(|row| format!("{} {}", row.plugin_id, row.name)).collect();
                let message =
                    format!("{} has several services, name one of them: {}", wanted.contract, names.join(", "));
                Err(error("unavailable", message))
            }
        }
    }

    fn check(&self, row: &Arc<ServiceRow>) -> Result<(), HostError> {
        if !self.may_run(self.0.plugin) {
            return Err(error("unavailable", "the calling package may not run its code in this session any more"));
        }
        let chain = &self.0.chain;
        if chain.iter().any(|called| called.plugin == row.plugin && called.name == row.name) {
            let names: Vec<String> = chain.iter().map(|one| format!("{} {}", one.plugin_id, one.name)).collect();
            let message = format!("{} {} is being called already: {}", row.plugin_id, row.name, names.join(" -> "));
            return Err(error("cycle", message));
        }
        if chain.len() >= MAX_SERVICE_DEPTH {
            return Err(error("depth", format!("services call each other at most {MAX_SERVICE_DEPTH} levels deep")));
        }
        if !row.write {
            return Ok(());
        }
        if self.is_nested() {
            return Err(error("unavailable", "A service cannot call a write service."));
        }
        if self.0.root.writes == Writes::Refused || !matches!(self.0.root.source, Source::Runtime(_)) {
            return Err(error("unavailable", "Write services cannot be called here."));
        }
        if row.plugin == self.0.plugin {
            return Err(error("refused", "a package writes its own data directly, not through its own write service"));
        }
        Ok(())
    }
}

/// Takes the place now, whenever it is waited for.
fn place_in(place: impl Future<Output = OwnedMutexGuard<()>> + Send + Sync + 'static) -> Place {
    let mut place: Place = Box::pin(place);
    match place.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(guard) => Box::pin(std::future::ready(guard)),
        Poll::Pending => place,
    }
}

fn limit(timeout_ms: Option<f64>) -> Result<Duration, HostError> {
    let Some(ms) = timeout_ms else { return Ok(Duration::from_millis(SERVICE_EXECUTION_MS)) };
    if !(ms > 0.0 && ms <= MAX_SERVICE_TIMEOUT_MS) {
        let message = format!("timeoutMs is a number above 0 and at most {MAX_SERVICE_TIMEOUT_MS}");
        return Err(error("invalid-input", message));
    }
    Ok(Duration::from_secs_f64(ms / 1_000.0))
}

/// What a request asks for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    contract: &'a str,
    /// Package and name, when one service is meant.
    place: Option<(&'a str, &'a str)>,
}

impl<'a> Wanted<'a> {
    /// SVC-11
    fn read(request: &'a Value) -> Result<Self, HostError> {
        let invalid = |message: &str| Err(error("invalid-input", message));
        let Some(object) = request.as_object() else {
            return invalid("a request is {pluginId, name, contract, input} or {contract, input}");
        };
        let text = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(error("invalid-input", format!("{name} is a string"))),
        };
        let Some(contract) = text("contract")? else { return invalid("a request names a `contract`") };
        if !covel_graph::ids::is_contract_id(contract) {
            return Err(error("invalid-input", format!("{:?} is no contract (`<name>@<major>`)", cut(contract))));
        }
        let place = match (text("pluginId")?, text("name")?) {
            (Some(plugin), Some(name)) => Some((plugin, name)),
            (None, None) => None,
            _ => return invalid("a request has both `pluginId` and `name`, or neither"),
        };
        Ok(Self { contract, place })
    }
}
