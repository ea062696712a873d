//! `plugin.service.completed`: who called whom, for how long, with what outcome. No inputs, no outputs, no errors'
//! words. TRC-2

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{limits::MAX_SERVICE_CALLS_TRACED, walked::micros};

/// One service call, as traces keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCall {
    /// The call.
    pub call_id: String,
    /// The service call it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<String>,
    /// The tool call it was made from. MFS-6
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The runtime at the root of the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// Who called.
    pub caller_plugin_id: String,
    /// Who was called; `<unavailable>` when nobody was found.
    pub provider_plugin_id: String,
    /// Name of the service; `<unavailable>` when none was found.
    pub name: String,
    /// Contract asked for.
    pub contract: String,
    /// Microseconds it took, waiting included.
    pub duration_micros: u64,
    /// `success`, `error`, `timeout` or `cancelled`.
    pub outcome: String,
    /// Class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// What stands for a service nobody found. DIA-3
pub(crate) const UNAVAILABLE: &str = "<unavailable>";
/// Longest text of a row, UTF-16 units. DIA-3
const MAX_UNITS: usize = 256;

/// Cuts a text for diagnostics.
pub(crate) fn cut(text: &str) -> String {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        if units > MAX_UNITS {
            return format!("{}...[truncated]", &text[..at]);
        }
    }
    text.to_owned()
}

/// The calls of one execution so far.
#[derive(Default)]
pub(crate) struct ServiceLog {
    calls: Mutex<Vec<(Vec<u32>, ServiceCall)>>,
    left_out: AtomicUsize,
}

impl ServiceLog {
    /// All calls, in the order in which they were made: callers by id, their calls in program order.
    pub(crate) fn sorted(&self) -> (Vec<ServiceCall>, bool) {
        let mut calls = self.calls.lock().clone();
        calls.sort_by(|(a, x), (b, y)| (&x.runtime_id, &x.caller_root(), a).cmp(&(&y.runtime_id, &y.caller_root(), b)));
        (calls.into_iter().map(|(_, call)| call).collect(), self.left_out.load(Ordering::Relaxed) > 0)
    }

    /// Is there nothing?
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.lock().is_empty()
    }

    fn push(&self, path: Vec<u32>, call: ServiceCall) {
        let mut calls = self.calls.lock();
        if calls.len() < MAX_SERVICE_CALLS_TRACED {
            calls.push((path, call));
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ServiceCall {
    fn caller_root(&self) -> &str {
        self.call_id.split_once('#').map_or("", |(root, _)| root)
    }
}

/// A call that runs. Dropped half-way, it was cancelled.
pub(crate) struct Running {
    log: std::sync::Arc<crate::call_host::Shared>,
    started: Duration,
    path: Vec<u32>,
    call: Option<ServiceCall>,
}

impl Running {
    pub(crate) fn new(log: std::sync::Arc<crate::call_host::Shared>, path: Vec<u32>, call: ServiceCall) -> Self {
        let started = log.ambient.monotonic();
        Self { log, started, path, call: Some(call) }
    }

    /// It ended so.
    pub(crate) fn end(mut self, outcome: &str, code: Option<&str>) {
        self.note(outcome, code);
    }

    fn note(&mut self, outcome: &str, code: Option<&str>) {
        let Some(mut call) = self.call.take() else { return };
        call.duration_micros = micros(self.log.ambient.monotonic().saturating_sub(self.started));
        outcome.clone_into(&mut call.outcome);
        call.error_code = code.map(str::to_owned);
        self.log.service_log.push(std::mem::take(&mut self.path), call);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.note("cancelled", None);
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    /// Covers: DIA-3
    #[test]
    fn texts_are_cut_at_256_utf16_units() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"a".repeat(256)), "a".repeat(256));
        assert_eq!(cut(&"a".repeat(257)), format!("{}...[truncated]", "a".repeat(256)));
        // A character beyond the basic plane is two units and is never split.
        assert_eq!(cut(&format!("{}😀", "a".repeat(255))), format!("{}...[truncated]", "a".repeat(255)));
    }
}
