//! Log lines and rejections nobody handles.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use covel_graph::Json;
use rquickjs::{Ctx, Persistent, Result, Value as JsValue};

use super::clip;
use crate::{
    host::LogLevel,
    isolate::State,
    limits::{MAX_ERROR_TEXT_BYTES, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_REJECTIONS},
};

pub(super) fn log(state: &State, call: u32, level: u32, message: String, meta: Option<Json>) -> Result<()> {
    let level = match level {
        0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Warn,
        _ => LogLevel::Error,
    };
    write_log(state, call, level, &clip(message, MAX_LOG_BYTES), meta.as_ref());
    Ok(())
}

fn write_log(state: &State, call: u32, level: LogLevel, message: &str, meta: Option<&Json>) {
    let host = match state.calls.borrow_mut().get_mut(&call) {
        Some(running) => {
            running.log_lines += 1;
            if running.log_lines > MAX_LOG_LINES {
                return;
            }
            running.host.clone()
        }
        None => None,
    };
    match host {
        Some(host) => host.log(level, message, meta),
        None => tracing::info!(plugin = %state.blueprint.spec.plugin_id, ?level, "{message}"),
    }
}

/// Remembers a rejected promise without a handler; forgets it when a handler comes.
pub(crate) fn track_rejection<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    promise: JsValue<'js>,
    reason: &JsValue<'js>,
    handled: bool,
) {
    let mut hasher = DefaultHasher::new();
    promise.hash(&mut hasher);
    let identity = hasher.finish();
    let Ok(mut rejections) = state.rejections.try_borrow_mut() else {
        return;
    };
    if handled {
        rejections.retain(|(other, ..)| *other != identity);
    } else if rejections.len() < MAX_REJECTIONS {
        let text = reason.as_string().and_then(|t| t.to_string().ok());
        // Reading an error's message may run plugin code, which may reject again: that is refused by the borrow above.
        let text = text.or_else(|| reason.as_exception().and_then(rquickjs::Exception::message)).unwrap_or_default();
        rejections.push((identity, clip(text, MAX_ERROR_TEXT_BYTES), Persistent::save(ctx, promise)));
    }
}

/// Logs rejections the turn left without a handler.
pub(crate) fn report_rejections(state: &State, call: u32) {
    let left: Vec<_> = state.rejections.borrow_mut().drain(..).collect();
    for (_, text, _) in left {
        write_log(
            state,
            call,
            LogLevel::Warn,
            &clip(format!("a promise was rejected and nobody handles it: {text}"), MAX_LOG_BYTES),
            None,
        );
    }
}
