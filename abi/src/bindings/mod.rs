//! The functions the kernel is given. Each names the call it works for; the host refuses a call that has ended.

mod context;
mod intl;
mod machine;
mod outcome;
mod report;
mod url;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
};

use covel_graph::Json;
use rquickjs::{Ctx, Exception, Object, Result, Value as JsValue};
use serde_json::Value;

pub(crate) use report::{report_rejections, track_rejection};

use crate::{
    from_js::{FromJsError, from_js},
    host::{CallHost, HostError},
    isolate::{Running, State},
    limits::MAX_HOST_ARGUMENT_BYTES,
    register,
};

/// A panic that crossed the engine would surface in another plugin's call, so none does.
pub(crate) fn fenced<'js, T>(ctx: &Ctx<'js>, run: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(_) => Err(Exception::throw_internal(ctx, "a host function failed")),
    }
}

/// An `Error` object with name, code and message.
pub(crate) fn host_error<'js>(ctx: &Ctx<'js>, error: &HostError) -> Result<JsValue<'js>> {
    let exception = Exception::from_message(ctx.clone(), &error.message)?;
    let object = exception.into_object();
    object.set("name", error.name)?;
    object.set("code", error.code.as_str())?;
    Ok(object.into_value())
}

pub(crate) fn throw(ctx: &Ctx<'_>, error: &HostError) -> rquickjs::Error {
    match host_error(ctx, error) {
        Ok(value) => ctx.throw(value),
        Err(error) => error,
    }
}

fn closed() -> HostError {
    HostError::new("closed", "this context is closed: the call it belongs to has ended")
}

fn with_call<T>(ctx: &Ctx<'_>, state: &State, call: u32, use_it: impl FnOnce(&mut Running) -> T) -> Result<T> {
    match state.calls.borrow_mut().get_mut(&call) {
        Some(running) if !running.over => Ok(use_it(running)),
        _ => Err(throw(ctx, &closed())),
    }
}

fn host_of(ctx: &Ctx<'_>, state: &State, call: u32) -> Result<Arc<dyn CallHost>> {
    let host = with_call(ctx, state, call, |running| running.host.clone())?;
    host.ok_or_else(|| throw(ctx, &HostError::new("unavailable", "this is not available while the entry runs")))
}

fn argument<'js>(ctx: &Ctx<'js>, value: JsValue<'js>, what: &str) -> Result<Json> {
    from_js(ctx, value, MAX_HOST_ARGUMENT_BYTES).map_err(|error| match error {
        FromJsError::NotJson { path, message } => throw(
            ctx,
            &HostError {
                name: "TypeError",
                code: "invalid-input".into(),
                message: format!("{what} is not JSON at {path}: {message}"),
            },
        ),
        FromJsError::TooLarge => throw(
            ctx,
            &HostError {
                name: "RangeError",
                code: "invalid-input".into(),
                message: format!("{what} is larger than {MAX_HOST_ARGUMENT_BYTES} bytes"),
            },
        ),
        FromJsError::Exception => rquickjs::Error::Exception,
    })
}

fn text<'js>(ctx: &Ctx<'js>, value: &JsValue<'js>, what: &str) -> Result<String> {
    match value.as_string().map(rquickjs::String::to_string) {
        Some(Ok(text)) => Ok(text),
        _ => Err(throw(
            ctx,
            &HostError { name: "TypeError", code: "invalid-input".into(), message: format!("{what} must be a string") },
        )),
    }
}

fn clip(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let mut end = limit;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Adds `host.$name = function`, fenced against panics.
macro_rules! function {
    ($ctx:ident, $host:ident, $state:ident, $name:literal, |$c:ident, $s:ident $(, $arg:ident : $ty:ty)*| $body:block) => {{
        let $s = Rc::clone($state);
        let function = rquickjs::Function::new($ctx.clone(), move |$c: Ctx<'js> $(, $arg: $ty)*| {
            let $s = &*$s;
            fenced(&$c, || $body)
        })?;
        $host.set($name, function)?;
    }};
}

use function;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    context::install(ctx, &host, state)?;
    outcome::install(ctx, &host, state)?;
    machine::install(ctx, &host, state)?;
    url::install(ctx, &host, state)?;
    intl::install(ctx, &host, state)?;
    register::install(ctx, &host, state)?;
    Ok(host)
}

/// A member of an object as text, for registrations.
pub(crate) fn member(details: &Value, name: &str) -> Option<String> {
    details.get(name).and_then(Value::as_str).map(str::to_owned)
}
