//! How a call ends: a value, an error, a module that does not load.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use covel_graph::Json;
use rquickjs::{Ctx, Object, Result, Value as JsValue, prelude::Opt};

use super::{clip, fenced, function};
use crate::{
    call::CallError,
    from_js::{FromJsError, from_js},
    isolate::State,
    limits::{MAX_ERROR_DETAILS_BYTES, MAX_ERROR_TEXT_BYTES},
};

pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "done", |c, s, call: u32, value: JsValue<'js>| {
        let Some(limit) = s.calls.borrow().get(&call).filter(|r| !r.over).map(|r| r.max_output_bytes) else {
            return Ok(());
        };
        let read = catch_unwind(AssertUnwindSafe(|| from_js(&c, value, limit)));
        let result = match read.unwrap_or_else(|_| Err(unreadable())) {
            Ok(json) => Ok(json),
            Err(FromJsError::NotJson { path, message }) => Err(CallError::NotJson { path, message }),
            Err(FromJsError::TooLarge) => Err(CallError::OutputTooLarge { limit_bytes: limit }),
            // The turn ends with the reason of the interrupt.
            Err(FromJsError::Exception) => return Err(rquickjs::Error::Exception),
        };
        finish(s, call, result);
        Ok(())
    });
    function!(ctx, host, state, "fail", |c,
                                         s,
                                         call: u32,
                                         name: JsValue<'js>,
                                         code: JsValue<'js>,
                                         message: JsValue<'js>,
                                         stack: JsValue<'js>,
                                         details: JsValue<'js>| {
        let read = |value: &JsValue<'js>| {
            value.as_string().and_then(|t| t.to_string().ok()).map(|t| clip(t, MAX_ERROR_TEXT_BYTES))
        };
        let (name, code, message, stack) = (read(&name), read(&code), read(&message), read(&stack));
        let (name, message) = (name.unwrap_or_else(|| "Error".to_owned()), message.unwrap_or_default());
        // The engine throws `null` when it has no memory left for an error object.
        let full = s.heap.refused() && (message == "out of memory" || name == "null");
        let error = if full {
            s.poisoned.set(true);
            CallError::HeapLimit { limit_bytes: s.heap.limit() }
        } else if name == "RangeError" && message == "Maximum call stack size exceeded" {
            CallError::StackOverflow
        } else {
            let details =
                if details.is_undefined() { None } else { from_js(&c, details, MAX_ERROR_DETAILS_BYTES).ok() };
            CallError::Thrown { name, code, message, stack: stack.map(|stack| tidy_stack(&stack)), details }
        };
        finish(s, call, Err(error));
        Ok(())
    });
    function!(ctx, host, state, "loadFailed", |_c, s, message: String, stack: Opt<JsValue<'js>>| {
        let place =
            stack.0.as_ref().and_then(JsValue::as_string).and_then(|t| t.to_string().ok()).map(|t| tidy_stack(&t));
        let message = match place.as_deref().and_then(|stack| stack.lines().next()) {
            Some(line) if !message.contains(':') || !line.is_empty() && !message.starts_with(line) => {
                format!("{message} ({})", line.trim())
            }
            _ => message,
        };
        if let Some(running) = s.calls.borrow_mut().get_mut(&s.current.get()) {
            running.load_failed = Some(clip(message, MAX_ERROR_TEXT_BYTES));
        }
        Ok(())
    });
    Ok(())
}

/// The engine's binding gave up on a value. The call ends all the same.
fn unreadable() -> FromJsError {
    FromJsError::NotJson { path: "$".to_owned(), message: "it cannot be read".to_owned() }
}

fn finish(state: &State, call: u32, mut result: std::result::Result<Json, CallError>) {
    // Code may swallow an interrupt (a promise executor does); what it then answers is late.
    if call == state.current.get() && state.fence.tripped().is_some() {
        return;
    }
    if let Some(running) = state.calls.borrow_mut().get_mut(&call) {
        running.over = true;
        if let Some(message) = running.load_failed.take() {
            result = Err(CallError::Load { message });
        }
    }
    state.finished.borrow_mut().push((call, result));
}

/// Drops the kernel's own lines: plugin authors see their files.
fn tidy_stack(stack: &str) -> String {
    stack
        .lines()
        .filter(|line| !line.contains("covel:") && !line.contains("(native)"))
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}
