//! Who waits for what a worker does, and what each is answered.

use std::time::Duration;

use covel_graph::Json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    call::{CallError, CallOutput},
    error::LoadError,
    generation::CloseReport,
};

/// Who waits for a call. It lives outside the thread, so that the watchdog can answer for a thread that is stuck.
pub(crate) enum Waiting {
    Call {
        tag: u32,
        reply: mpsc::UnboundedSender<(u32, Result<CallOutput, CallError>)>,
        limit: Duration,
    },
    Load(oneshot::Sender<Result<(), LoadError>>),
    Close(Option<oneshot::Sender<CloseReport>>),
    /// The entry of an isolate that replaces another.
    Nobody,
}

/// Answers whoever waits.
pub(crate) fn answer(waiting: Waiting, result: Result<Json, CallError>) {
    match waiting {
        Waiting::Call { tag, reply, .. } => {
            let _ = reply.send((tag, result.map(|value| CallOutput { value })));
        }
        Waiting::Load(reply) => {
            let _ = reply.send(result.map(drop).map_err(load_error));
        }
        Waiting::Close(Some(reply)) => {
            let _ = reply.send(close_report(result));
        }
        Waiting::Close(None) | Waiting::Nobody => {}
    }
}

fn close_report(result: Result<Json, CallError>) -> CloseReport {
    match result {
        Ok(json) => CloseReport {
            failures: json
                .value()
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect(),
            timed_out: false,
        },
        Err(CallError::Timeout { .. }) => CloseReport { failures: Vec::new(), timed_out: true },
        Err(error) => CloseReport { failures: vec![error.to_string()], timed_out: false },
    }
}

pub(super) fn load_error(error: CallError) -> LoadError {
    match error {
        CallError::Load { message } => LoadError::Module { message },
        CallError::Thrown { code: Some(code), message, .. } if code == "plugin_registration_invalid" => {
            LoadError::Registration { message }
        }
        CallError::Thrown { name, message, stack, .. } => LoadError::Threw { name, message, stack },
        CallError::Timeout { limit_ms } => LoadError::Timeout { limit_ms },
        CallError::Cancelled => LoadError::Closed,
        error @ (CallError::HeapLimit { .. } | CallError::StackOverflow) => {
            LoadError::Exhausted { message: error.to_string() }
        }
        error => LoadError::Internal { message: error.to_string() },
    }
}
