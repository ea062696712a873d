//! The functions the kernel is given. Each names the call it works for; the host refuses a call that has ended.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use covel_graph::Json;
use rquickjs::{
    Ctx, Exception, FromJs, Function, Module, Object, Persistent, Result, Value as JsValue,
    prelude::Opt,
};
use serde_json::{Value, json};

use crate::{
    call::CallError,
    digest,
    engine::bytes,
    from_js::{FromJsError, from_js},
    host::{CallHost, HostError, HostRequest, LogLevel},
    isolate::{Operation, Running, State, Timer},
    limits::{
        MAX_ERROR_DETAILS_BYTES, MAX_ERROR_TEXT_BYTES, MAX_HOST_ARGUMENT_BYTES, MAX_LOG_BYTES,
        MAX_LOG_LINES, MAX_MODULE_BYTES, MAX_PENDING_REQUESTS, MAX_TIMERS,
    },
    queue::Message,
    register,
    to_js::{node_to_js, to_js, to_js_lazy},
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
    HostError::new(
        "closed",
        "this context is closed: the call it belongs to has ended",
    )
}

fn with_call<T>(
    ctx: &Ctx<'_>,
    state: &State,
    call: u32,
    use_it: impl FnOnce(&mut Running) -> T,
) -> Result<T> {
    match state.calls.borrow_mut().get_mut(&call) {
        Some(running) if !running.over => Ok(use_it(running)),
        _ => Err(throw(ctx, &closed())),
    }
}

fn host_of(ctx: &Ctx<'_>, state: &State, call: u32) -> Result<Arc<dyn CallHost>> {
    let host = with_call(ctx, state, call, |running| running.host.clone())?;
    host.ok_or_else(|| {
        throw(
            ctx,
            &HostError::new("unavailable", "this is not available while the entry runs"),
        )
    })
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
            &HostError {
                name: "TypeError",
                code: "invalid-input".into(),
                message: format!("{what} must be a string"),
            },
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
        let function = Function::new($ctx.clone(), move |$c: Ctx<'js> $(, $arg: $ty)*| {
            let $s = &*$s;
            fenced(&$c, || $body)
        })?;
        $host.set($name, function)?;
    }};
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    context_functions(ctx, &host, state)?;
    outcome_functions(ctx, &host, state)?;
    machine_functions(ctx, &host, state)?;
    register::install(ctx, &host, state)?;
    Ok(host)
}

fn context_functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(
        ctx,
        host,
        state,
        "field",
        |c, s, call: u32, index: usize| {
            let json = with_call(&c, s, call, |r| {
                r.context.fields.get(index).map(|(_, json)| json.clone())
            })?;
            json.map_or_else(
                || Ok(JsValue::new_undefined(c.clone())),
                |json| to_js_lazy(&c, s, call, &json),
            )
        }
    );
    function!(
        ctx,
        host,
        state,
        "input",
        |c, s, call: u32, index: usize| {
            let json = with_call(&c, s, call, |r| {
                r.context.inputs.get(index).map(|(_, json)| json.clone())
            })?;
            json.map_or_else(
                || Ok(JsValue::new_undefined(c.clone())),
                |json| to_js_lazy(&c, s, call, &json),
            )
        }
    );
    function!(ctx, host, state, "argument", |c, s, call: u32| {
        let json = with_call(&c, s, call, |r| r.context.argument.clone())?;
        json.map_or_else(
            || Ok(JsValue::new_undefined(c.clone())),
            |json| to_js(&c, &json),
        )
    });
    function!(
        ctx,
        host,
        state,
        "node",
        |c, s, call: u32, kept: usize, at: usize| {
            match with_call(&c, s, call, |r| r.documents.get(kept).cloned())? {
                Some(document) => node_to_js(
                    &c,
                    s,
                    call,
                    &document,
                    u32::try_from(kept).unwrap_or(u32::MAX),
                    at,
                ),
                None => Ok(JsValue::new_undefined(c.clone())),
            }
        }
    );
    function!(
        ctx,
        host,
        state,
        "dataGet",
        |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>| {
            let host = host_of(&c, s, call)?;
            let found = host.data_get(
                &text(&c, &namespace, "the namespace")?,
                &text(&c, &key, "the key")?,
            );
            match found.map_err(|error| throw(&c, &error))? {
                Some(json) => to_js(&c, &json),
                None => Ok(JsValue::new_null(c.clone())),
            }
        }
    );
    function!(
        ctx,
        host,
        state,
        "dataList",
        |c, s, call: u32, namespace: JsValue<'js>| {
            let host = host_of(&c, s, call)?;
            let rows = host
                .data_list(&text(&c, &namespace, "the namespace")?)
                .map_err(|error| throw(&c, &error))?;
            let array = rquickjs::Array::new(c.clone())?;
            for (index, row) in rows.iter().enumerate() {
                let object = Object::new(c.clone())?;
                object.set("key", row.key.as_str())?;
                object.set("value", to_js(&c, &row.value)?)?;
                object.set("createdAt", row.created_at.as_str())?;
                object.set("updatedAt", row.updated_at.as_str())?;
                array.set(index, object)?;
            }
            Ok(array.into_value())
        }
    );
    function!(
        ctx,
        host,
        state,
        "dataSet",
        |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>, value: JsValue<'js>| {
            let (namespace, key) = (
                text(&c, &namespace, "the namespace")?,
                text(&c, &key, "the key")?,
            );
            let value = argument(&c, value, "the value")?;
            writable(&c, s, call)?
                .data_set(&namespace, &key, value)
                .map_err(|error| throw(&c, &error))
        }
    );
    function!(
        ctx,
        host,
        state,
        "dataDelete",
        |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>| {
            let (namespace, key) = (
                text(&c, &namespace, "the namespace")?,
                text(&c, &key, "the key")?,
            );
            writable(&c, s, call)?
                .data_delete(&namespace, &key)
                .map_err(|error| throw(&c, &error))
        }
    );
    function!(
        ctx,
        host,
        state,
        "dataUpdate",
        |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>, ops: JsValue<'js>| {
            let (namespace, key) = (
                text(&c, &namespace, "the namespace")?,
                text(&c, &key, "the key")?,
            );
            let ops = argument(&c, ops, "the list of operations")?;
            writable(&c, s, call)?
                .data_update(&namespace, &key, ops)
                .map_err(|error| throw(&c, &error))
        }
    );
    function!(
        ctx,
        host,
        state,
        "randomInt",
        |c, s, call: u32, min: JsValue<'js>, max: JsValue<'js>| {
            let (min, max) = (
                safe_integer(&c, &min, "min")?,
                safe_integer(&c, &max, "max")?,
            );
            let number = host_of(&c, s, call)?
                .random_int(min, max)
                .map_err(|error| throw(&c, &error))?;
            #[allow(clippy::cast_precision_loss, reason = "between two safe integers")]
            Ok(JsValue::new_number(c.clone(), number as f64))
        }
    );
    function!(
        ctx,
        host,
        state,
        "world",
        |c, s, call: u32, part: String| {
            let json = host_of(&c, s, call)?
                .world(&part)
                .map_err(|error| throw(&c, &error))?;
            to_js_lazy(&c, s, call, &json)
        }
    );
    function!(
        ctx,
        host,
        state,
        "store",
        |c, s, call: u32, method: String, arguments: JsValue<'js>| {
            let arguments = argument(&c, arguments, "the argument")?;
            let json = host_of(&c, s, call)?
                .store(&method, &arguments)
                .map_err(|error| throw(&c, &error))?;
            to_js(&c, &json)
        }
    );
    function!(ctx, host, state, "settings", |c, s, call: u32| {
        let json = with_call(&c, s, call, |r| {
            r.context
                .fields
                .iter()
                .find(|(name, _)| *name == "userSettings")
                .map(|(_, json)| json.clone())
        })?;
        to_js_lazy(
            &c,
            s,
            call,
            &json.unwrap_or_else(|| Json::from_value(json!({}))),
        )
    });
    function!(ctx, host, state, "watch", |c, s, call: u32| {
        with_call(&c, s, call, |r| {
            r.watched = true;
            r.cancel.is_cancelled()
        })
    });
    function!(
        ctx,
        host,
        state,
        "request",
        |c, s, call: u32, kind: String, name: String, payload: JsValue<'js>| {
            let payload = argument(&c, payload, "the argument")?;
            let request = match kind.as_str() {
                "toolCall" => HostRequest::ToolCall {
                    name,
                    arguments: payload,
                },
                "generateText" => HostRequest::GenerateText { options: payload },
                "generateObject" => HostRequest::GenerateObject { options: payload },
                _ => return Err(Exception::throw_internal(&c, "unknown host request")),
            };
            begin(&c, s, call, request)
        }
    );
    Ok(())
}

/// Starts an operation that takes time; its promise is settled by a later message.
fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    call: u32,
    request: HostRequest,
) -> Result<JsValue<'js>> {
    let host = host_of(ctx, state, call)?;
    if !with_call(ctx, state, call, |r| r.context.effects)? {
        return Err(throw(
            ctx,
            &HostError::new("unavailable", "this call may not use tools or models"),
        ));
    }
    if with_call(ctx, state, call, |r| r.pending_requests)? >= MAX_PENDING_REQUESTS {
        return Err(throw(
            ctx,
            &HostError {
                name: "RangeError",
                code: "too-many-requests".into(),
                message: format!("at most {MAX_PENDING_REQUESTS} host calls may be in flight"),
            },
        ));
    }
    let (promise, resolve, reject) = ctx.promise()?;
    let operation = state.next_operation.get();
    state.next_operation.set(operation.wrapping_add(1));
    let future = host.request(request);
    let (queue, key, epoch) = (Arc::clone(&state.queue), state.key, state.epoch);
    let task = state.handle.spawn(async move {
        let result = future.await;
        queue.push(Message::HostDone {
            key,
            epoch,
            operation,
            result,
        });
    });
    with_call(ctx, state, call, |r| {
        r.pending_requests += 1;
        r.tasks.push(task.abort_handle());
    })?;
    state.operations.borrow_mut().insert(
        operation,
        Operation {
            call,
            resolve: Persistent::save(ctx, resolve),
            reject: Persistent::save(ctx, reject),
        },
    );
    Ok(promise.into_value())
}

fn writable(ctx: &Ctx<'_>, state: &State, call: u32) -> Result<Arc<dyn CallHost>> {
    let host = host_of(ctx, state, call)?;
    if with_call(ctx, state, call, |r| r.context.writable)? {
        return Ok(host);
    }
    Err(throw(
        ctx,
        &HostError::new("read-only", "ctx.pluginData is read-only here"),
    ))
}

fn safe_integer(ctx: &Ctx<'_>, value: &JsValue<'_>, what: &str) -> Result<i64> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match value.as_number() {
        #[allow(clippy::cast_possible_truncation, reason = "a safe integer")]
        Some(n) if n.fract() == 0.0 && n.abs() <= SAFE => Ok(n as i64),
        _ => Err(throw(
            ctx,
            &HostError {
                name: "RangeError",
                code: "invalid-input".into(),
                message: format!("{what} must be a safe integer"),
            },
        )),
    }
}

fn outcome_functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(
        ctx,
        host,
        state,
        "done",
        |c, s, call: u32, value: JsValue<'js>| {
            let Some(limit) = s
                .calls
                .borrow()
                .get(&call)
                .filter(|r| !r.over)
                .map(|r| r.max_output_bytes)
            else {
                return Ok(());
            };
            let result = match from_js(&c, value, limit) {
                Ok(json) => Ok(json),
                Err(FromJsError::NotJson { path, message }) => {
                    Err(CallError::NotJson { path, message })
                }
                Err(FromJsError::TooLarge) => Err(CallError::OutputTooLarge { limit_bytes: limit }),
                // The turn ends with the reason of the interrupt.
                Err(FromJsError::Exception) => return Err(rquickjs::Error::Exception),
            };
            finish(s, call, result);
            Ok(())
        }
    );
    function!(
        ctx,
        host,
        state,
        "fail",
        |c,
         s,
         call: u32,
         name: JsValue<'js>,
         code: JsValue<'js>,
         message: JsValue<'js>,
         stack: JsValue<'js>,
         details: JsValue<'js>| {
            let read = |value: &JsValue<'js>| {
                value
                    .as_string()
                    .and_then(|t| t.to_string().ok())
                    .map(|t| clip(t, MAX_ERROR_TEXT_BYTES))
            };
            let (name, code, message, stack) =
                (read(&name), read(&code), read(&message), read(&stack));
            let (name, message) = (
                name.unwrap_or_else(|| "Error".to_owned()),
                message.unwrap_or_default(),
            );
            // The engine throws `null` when it has no memory left for an error object.
            let full = s.heap.refused() && (message == "out of memory" || name == "null");
            let error = if full {
                s.poisoned.set(true);
                CallError::HeapLimit {
                    limit_bytes: s.heap.limit(),
                }
            } else if name == "RangeError" && message == "Maximum call stack size exceeded" {
                CallError::StackOverflow
            } else {
                let details = if details.is_undefined() {
                    None
                } else {
                    from_js(&c, details, MAX_ERROR_DETAILS_BYTES).ok()
                };
                CallError::Thrown {
                    name,
                    code,
                    message,
                    stack: stack.map(|stack| tidy_stack(&stack)),
                    details,
                }
            };
            finish(s, call, Err(error));
            Ok(())
        }
    );
    function!(ctx, host, state, "loadFailed", |_c,
                                               s,
                                               message: String,
                                               stack: Opt<
        JsValue<'js>,
    >| {
        let place = stack
            .0
            .as_ref()
            .and_then(JsValue::as_string)
            .and_then(|t| t.to_string().ok())
            .map(|t| tidy_stack(&t));
        let message = match place.as_deref().and_then(|stack| stack.lines().next()) {
            Some(line)
                if !message.contains(':') || !line.is_empty() && !message.starts_with(line) =>
            {
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

fn machine_functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "importNow", |c, _s, name: String| {
        // Host modules have no top-level await: they are evaluated when this returns.
        Module::import(&c, name).map(drop)
    });
    function!(
        ctx,
        host,
        state,
        "setTimer",
        |c, s, ms: f64, repeat: bool| {
            if s.timers.borrow().len() >= MAX_TIMERS {
                return Err(Exception::throw_range(
                    &c,
                    &format!("at most {MAX_TIMERS} timers may be alive"),
                ));
            }
            let delay = Duration::from_micros(if ms.is_finite() && ms >= 1.0 {
                (ms.min(2_147_483_647.0) * 1000.0) as u64
            } else {
                1000
            });
            let id = s.next_timer.get();
            s.next_timer.set(id.wrapping_add(1).max(1));
            s.timers.borrow_mut().insert(
                id,
                Timer {
                    call: s.current.get(),
                    every: repeat.then_some(delay),
                },
            );
            s.new_timers.borrow_mut().push((id, Instant::now() + delay));
            Ok(id)
        }
    );
    function!(ctx, host, state, "clearTimer", |_c, s, id: JsValue<'js>| {
        if let Some(id) = id.as_number() {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an unknown id clears nothing"
            )]
            s.timers.borrow_mut().remove(&(id as u32));
        }
        Ok(())
    });
    function!(
        ctx,
        host,
        state,
        "log",
        |c, s, level: u32, message: String, _meta: Opt<JsValue<'js>>| {
            log(&c, s, s.current.get(), level, message, None)
        }
    );
    function!(
        ctx,
        host,
        state,
        "logFor",
        |c, s, call: u32, level: u32, message: String, meta: JsValue<'js>| {
            let meta = if meta.is_undefined() {
                None
            } else {
                Some(argument(&c, meta, "meta")?)
            };
            log(&c, s, call, level, message, meta)
        }
    );
    function!(ctx, host, state, "randomBytes", |c, _s, length: usize| {
        if length > 65_536 {
            return Err(Exception::throw_range(
                &c,
                "at most 65536 random bytes at once",
            ));
        }
        let mut bytes = vec![0_u8; length];
        getrandom::fill(&mut bytes)
            .map_err(|_| Exception::throw_internal(&c, "no random bytes are available"))?;
        rquickjs::TypedArray::new(c.clone(), bytes).map(rquickjs::TypedArray::into_value)
    });
    function!(
        ctx,
        host,
        state,
        "digest",
        |c, _s, algorithm: String, data: rquickjs::TypedArray<'js, u8>, key: JsValue<'js>| {
            let key = if key.is_undefined() {
                None
            } else {
                Some(rquickjs::TypedArray::<u8>::from_js(&c, key)?)
            };
            let found = digest::digest(
                &algorithm,
                &bytes::copy(&data),
                key.as_ref().map(bytes::copy).as_deref(),
            );
            match found {
                Some(bytes) => rquickjs::TypedArray::new(c.clone(), bytes)
                    .map(rquickjs::TypedArray::into_value),
                None => Err(throw(
                    &c,
                    &HostError::new(
                        "invalid-input",
                        format!("unknown digest {algorithm}; use {}", digest::NAMES),
                    ),
                )),
            }
        }
    );
    function!(ctx, host, state, "readText", |c, s, path: String| {
        let Some(path) = crate::modules::join("", &path) else { return Ok(JsValue::new_undefined(c.clone())) };
        match s.blueprint.spec.files.read(&path) {
            Some(bytes) if bytes.len() <= MAX_MODULE_BYTES => match std::str::from_utf8(&bytes) {
                Ok(text) => Ok(rquickjs::String::from_str(c.clone(), text)?.into_value()),
                Err(_) => Err(throw(&c, &HostError::new("invalid-input", format!("{path} is not UTF-8 text")))),
            },
            Some(_) => Err(throw(&c, &HostError::new("invalid-input", format!("{path} is larger than {MAX_MODULE_BYTES} bytes")))),
            None => Ok(JsValue::new_undefined(c.clone())),
        }
    });
    function!(ctx, host, state, "randomUuid", |c, _s| {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|_| Exception::throw_internal(&c, "no random bytes are available"))?;
        Ok(uuid_text(bytes))
    });
    Ok(())
}

fn log(
    _ctx: &Ctx<'_>,
    state: &State,
    call: u32,
    level: u32,
    message: String,
    meta: Option<Json>,
) -> Result<()> {
    let message = clip(message, MAX_LOG_BYTES);
    let level = match level {
        0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Warn,
        _ => LogLevel::Error,
    };
    let host = match state.calls.borrow_mut().get_mut(&call) {
        Some(running) => {
            running.log_lines += 1;
            if running.log_lines > MAX_LOG_LINES {
                return Ok(());
            }
            running.host.clone()
        }
        None => None,
    };
    match host {
        Some(host) => host.log(level, &message, meta.as_ref()),
        None => tracing::info!(plugin = %state.blueprint.spec.plugin_id, ?level, "{message}"),
    }
    Ok(())
}

/// The text form of a random (version 4) UUID.
fn uuid_text(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut out = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        for digit in [byte >> 4, byte & 0x0f] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    out
}

/// A member of an object as text, for registrations.
pub(crate) fn member(details: &Value, name: &str) -> Option<String> {
    details.get(name).and_then(Value::as_str).map(str::to_owned)
}
