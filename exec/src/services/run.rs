//! One service call that was let in: wait for its turn, run the provider's code, settle what it gave.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use covel_abi::{CallContext, CallError, CallHost, CallLimits, CallRequest, CallTarget, HostError, Settlement};
use covel_graph::Json;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    client::{Client, Place},
    error,
    native::{NativeService, ServiceContext},
    operation::Operation,
    table::ServiceRow,
    trace::Running,
};
use crate::{
    limits::{MAX_SERVICE_BYTES, SERVICE_GRACE},
    ops,
    view_host::{Source, ViewHost, ViewOptions, view_fields},
};

/// A call that may begin.
pub(super) struct Begun {
    /// Who calls.
    pub(super) caller: Client,
    /// What the provider calls on with.
    pub(super) client: Client,
    pub(super) row: Arc<ServiceRow>,
    pub(super) input: Json,
    pub(super) limit: Duration,
    /// Was the limit given by the caller?
    pub(super) timed: bool,
    /// Its place in the queue, for a write service.
    pub(super) place: Option<Place>,
    pub(super) sequence: u64,
    pub(super) id: String,
    pub(super) running: Running,
    pub(super) settlement: Settlement,
}

/// Runs a call to its end.
pub(super) async fn run(mut begun: Begun) -> Result<Json, HostError> {
    let deadline = Instant::now() + begun.limit;
    let place = begun.place.take();
    let timed = begun.timed;
    let work = async {
        // Waiting for its turn counts as well. SVC-5
        let _turn = match place {
            Some(place) => match tokio::time::timeout_at(deadline, place).await {
                Ok(turn) => Some(turn),
                Err(_) => return Err(timed_out(begun.limit)),
            },
            None => None,
        };
        provide(&begun, deadline).await
    };
    // The worker ends code at its deadline and tells it why; should it be kept from that, the wait ends all the same.
    let outcome = if timed {
        let end = deadline + SERVICE_GRACE;
        tokio::time::timeout_at(end, work).await.unwrap_or_else(|_| Err(timed_out(begun.limit)))
    } else {
        work.await
    };
    end(begun.running, outcome)
}

/// Runs a call of a service written in Rust where it is made.
pub(super) fn run_now(mut begun: Begun) -> Result<Json, HostError> {
    // Whoever calls so runs nothing else meanwhile: the place is free.
    let place = begun.place.take();
    let outcome = match &begun.row.native {
        Some(native) => {
            let host = Arc::new(host(&begun));
            let answer = native_answer(&**native, &begun, &host);
            settle(&begun, &host, answer)
        }
        None => Err(error("unavailable", "a caller written in Rust reaches services written in Rust only")),
    };
    drop(place);
    end(begun.running, outcome)
}

fn end(running: Running, outcome: Result<Json, HostError>) -> Result<Json, HostError> {
    match &outcome {
        Ok(_) => running.end("success", None),
        Err(fault) if fault.name == "TimeoutError" => running.end("timeout", None),
        Err(fault) if fault.name == "AbortError" => running.end("cancelled", None),
        Err(fault) => running.end("error", Some(&fault.code)),
    }
    outcome
}

fn timed_out(limit: Duration) -> HostError {
    let message = format!("the service call took longer than {} ms", limit.as_millis());
    HostError { name: "TimeoutError", code: "timeout".into(), message }
}

/// What the provider's code is given.
fn host(begun: &Begun) -> ViewHost {
    let (root, row) = (begun.caller.root(), &begun.row);
    let options = ViewOptions {
        stream: format!("service:{}", row.name),
        call_id: begun.id.clone(),
        subject: format!("{} service:{}", row.plugin_id, row.name),
        hidden: false,
        services: Some(begun.client.clone()),
        gateway: root.gateway.clone().filter(|_| !row.write),
        writable: row.write,
        cancel: root.cancel.clone(),
    };
    ViewHost::new(Arc::clone(&root.shared), root.source.clone(), row.plugin, options)
}

async fn provide(begun: &Begun, deadline: Instant) -> Result<Json, HostError> {
    let (root, row) = (begun.caller.root(), &begun.row);
    let host = Arc::new(host(begun));
    let answer = match (&row.native, &root.js) {
        (Some(native), _) => native_answer(&**native, begun, &host),
        (None, None) => return Err(error("unavailable", "code in isolates cannot be called here")),
        (None, Some(js)) => {
            let package = &root.shared.plan.packages[row.plugin as usize];
            let Some(generation) = package.generation.clone() else {
                return Err(error("unavailable", "the provider's code is not active"));
            };
            let mut fields = view_fields(&root.shared, row.plugin);
            let text = |value: &str| Json::from_value(Value::String(value.to_owned()));
            let caller = root.shared.plan.packages[begun.caller.plugin() as usize].id();
            fields.push(("callerPluginId", text(caller)));
            if row.write {
                fields.push(("turnId", text(&root.shared.turn_id)));
            }
            let context = CallContext {
                fields,
                argument: Some(begun.input.clone()),
                writable: row.write,
                gateway: root.gateway.is_some() && !row.write,
                services: true,
                view: true,
                ..CallContext::default()
            };
            let request = CallRequest {
                generation,
                target: CallTarget::Service { name: row.name.to_string() },
                context,
                host: Arc::clone(&host) as Arc<dyn CallHost>,
                limits: CallLimits {
                    timeout: deadline.saturating_duration_since(Instant::now()),
                    max_output_bytes: MAX_SERVICE_BYTES,
                },
                cancel: root.cancel.clone(),
            };
            match js.call(request).await {
                Ok(output) => Ok(output.value),
                Err(fault) => Err(explain(row, fault, begun.limit)),
            }
        }
    };
    settle(begun, &host, answer)
}

fn native_answer(native: &dyn NativeService, begun: &Begun, host: &ViewHost) -> Result<Json, HostError> {
    let context =
        ServiceContext::new(host, begun.caller.root().shared.plan.packages[begun.caller.plugin() as usize].id());
    match catch_unwind(AssertUnwindSafe(|| native.call(&begun.input, &context))) {
        Ok(Ok(value)) if value.byte_len() > MAX_SERVICE_BYTES => {
            Err(error("invalid-output", format!("the answer has more than {MAX_SERVICE_BYTES} bytes")))
        }
        Ok(Ok(value)) if ops::is_too_deep(value.value()) => {
            Err(error("invalid-output", "the answer is nested too deeply"))
        }
        Ok(Ok(value)) => Ok(value),
        Ok(Err(fault)) => Err(match fault.code.as_str() {
            "conflict" if fault.name == "ToolError" => fault,
            "invalid-input" | "invalid-output" if fault.name == "ServiceError" => fault,
            _ => error("provider-error", fault.message),
        }),
        Err(_) => Err(error("provider-error", format!("{} {} panicked", begun.row.plugin_id, begun.row.name))),
    }
}

/// The context is over; a success stages what was written, all of it or nothing. SVC-7, WSV-5, WSV-6
fn settle(begun: &Begun, host: &ViewHost, answer: Result<Json, HostError>) -> Result<Json, HostError> {
    let gathered = host.close();
    let answer = answer?;
    let (root, row) = (begun.caller.root(), &begun.row);
    // A grant taken back meanwhile takes the answer with it. SVC-8
    for plugin in [row.plugin, begun.caller.plugin()] {
        let package = &root.shared.plan.packages[plugin as usize];
        if !root.shared.grants.allow(package) {
            let message = format!("{} may not run its code in this session any more", package.id());
            return Err(error("unavailable", message));
        }
    }
    if gathered.writes.is_empty() {
        return Ok(answer);
    }
    let Source::Runtime(call) = &root.source else {
        return Err(error("unavailable", "Write services cannot be called here."));
    };
    let entries = gathered.entries(row.plugin);
    let operation = Operation {
        provider: row.plugin,
        service: Arc::clone(&row.name),
        contract: row.contract.clone(),
        writes: gathered.writes,
        scope: root.scope,
        sequence: begun.sequence,
        discarded: false,
    };
    call.stage(operation, entries, gathered.bytes, &begun.settlement)?;
    Ok(answer)
}

/// How a failed call of code looks to whoever called the service.
fn explain(row: &ServiceRow, fault: CallError, limit: Duration) -> HostError {
    let place = |message: &str| format!("{} {}: {message}", row.plugin_id, row.name);
    match fault {
        CallError::Thrown { name, code, message, .. } => match (name.as_str(), code.as_deref()) {
            ("ServiceError", Some(code @ ("invalid-input" | "invalid-output"))) => error(code, message),
            // What does not hold on the provider's data reaches the caller as it is. WSV-3
            ("ToolError", Some("conflict")) => HostError { name: "ToolError", code: "conflict".into(), message },
            ("ServiceError", _) => error("provider-error", place(&message)),
            _ => error("provider-error", place(&format!("{name}: {message}"))),
        },
        CallError::Timeout { .. } => timed_out(limit),
        CallError::Cancelled => {
            HostError { name: "AbortError", code: "cancelled".into(), message: "the service call was cancelled".into() }
        }
        CallError::NotJson { .. } | CallError::OutputTooLarge { .. } => {
            error("invalid-output", place(&fault.to_string()))
        }
        CallError::Load { .. } | CallError::IsolateLost | CallError::WorkerLost => {
            error("unavailable", place(&fault.to_string()))
        }
        CallError::HeapLimit { .. } | CallError::StackOverflow => error("provider-error", place(&fault.to_string())),
    }
}
