//! What contexts are made of: data, world, store, random numbers, tools and models.

use std::{rc::Rc, sync::Arc};

use covel_graph::Json;
use rquickjs::{Ctx, Exception, Object, Persistent, Result, Value as JsValue};
use serde_json::json;

use super::{argument, fenced, function, host_of, text, throw, with_call};
use crate::{
    host::{CallHost, HostError, HostRequest, Settlement},
    isolate::{Operation, State},
    limits::MAX_PENDING_REQUESTS,
    queue::Message,
    to_js::{node_to_js, to_js, to_js_lazy},
};

pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "field", |c, s, call: u32, index: usize| {
        let json = with_call(&c, s, call, |r| r.context.fields.get(index).map(|(_, json)| json.clone()))?;
        json.map_or_else(|| Ok(JsValue::new_undefined(c.clone())), |json| to_js_lazy(&c, s, call, &json))
    });
    function!(ctx, host, state, "input", |c, s, call: u32, index: usize| {
        let json = with_call(&c, s, call, |r| r.context.inputs.get(index).map(|(_, json)| json.clone()))?;
        json.map_or_else(|| Ok(JsValue::new_undefined(c.clone())), |json| to_js_lazy(&c, s, call, &json))
    });
    function!(ctx, host, state, "argument", |c, s, call: u32| {
        let json = with_call(&c, s, call, |r| r.context.argument.clone())?;
        json.map_or_else(|| Ok(JsValue::new_undefined(c.clone())), |json| to_js(&c, &json))
    });
    function!(ctx, host, state, "node", |c, s, call: u32, kept: usize, at: usize| {
        match with_call(&c, s, call, |r| r.documents.get(kept).cloned())? {
            Some(document) => node_to_js(&c, s, call, &document, u32::try_from(kept).unwrap_or(u32::MAX), at),
            None => Ok(JsValue::new_undefined(c.clone())),
        }
    });
    function!(ctx, host, state, "dataGet", |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>| {
        let host = host_of(&c, s, call)?;
        let found = host.data_get(&text(&c, &namespace, "the namespace")?, &text(&c, &key, "the key")?);
        match found.map_err(|error| throw(&c, &error))? {
            Some(json) => to_js(&c, &json),
            None => Ok(JsValue::new_null(c.clone())),
        }
    });
    function!(ctx, host, state, "dataList", |c, s, call: u32, namespace: JsValue<'js>| {
        let host = host_of(&c, s, call)?;
        let rows = host.data_list(&text(&c, &namespace, "the namespace")?).map_err(|error| throw(&c, &error))?;
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
    });
    function!(ctx, host, state, "dataSet", |c,
                                            s,
                                            call: u32,
                                            namespace: JsValue<'js>,
                                            key: JsValue<'js>,
                                            value: JsValue<'js>| {
        let (namespace, key) = (text(&c, &namespace, "the namespace")?, text(&c, &key, "the key")?);
        let value = argument(&c, value, "the value")?;
        writable(&c, s, call)?.data_set(&namespace, &key, value).map_err(|error| throw(&c, &error))
    });
    function!(ctx, host, state, "dataDelete", |c, s, call: u32, namespace: JsValue<'js>, key: JsValue<'js>| {
        let (namespace, key) = (text(&c, &namespace, "the namespace")?, text(&c, &key, "the key")?);
        writable(&c, s, call)?.data_delete(&namespace, &key).map_err(|error| throw(&c, &error))
    });
    function!(ctx, host, state, "dataUpdate", |c,
                                               s,
                                               call: u32,
                                               namespace: JsValue<'js>,
                                               key: JsValue<'js>,
                                               ops: JsValue<'js>| {
        let (namespace, key) = (text(&c, &namespace, "the namespace")?, text(&c, &key, "the key")?);
        let ops = argument(&c, ops, "the list of operations")?;
        writable(&c, s, call)?.data_update(&namespace, &key, ops).map_err(|error| throw(&c, &error))
    });
    function!(ctx, host, state, "randomInt", |c, s, call: u32, min: JsValue<'js>, max: JsValue<'js>| {
        let (min, max) = (safe_integer(&c, &min, "min")?, safe_integer(&c, &max, "max")?);
        let number = host_of(&c, s, call)?.random_int(min, max).map_err(|error| throw(&c, &error))?;
        #[allow(clippy::cast_precision_loss, reason = "between two safe integers")]
        Ok(JsValue::new_number(c.clone(), number as f64))
    });
    function!(ctx, host, state, "progress", |c, s, call: u32, effect: JsValue<'js>| {
        let effect = argument(&c, effect, "the report")?;
        host_of(&c, s, call)?.progress(&effect).map_err(|error| throw(&c, &error))
    });
    function!(ctx, host, state, "world", |c, s, call: u32, part: String| {
        let json = host_of(&c, s, call)?.world(&part).map_err(|error| throw(&c, &error))?;
        to_js_lazy(&c, s, call, &json)
    });
    function!(ctx, host, state, "store", |c, s, call: u32, method: String, arguments: JsValue<'js>| {
        let arguments = argument(&c, arguments, "the argument")?;
        let json = host_of(&c, s, call)?.store(&method, &arguments).map_err(|error| throw(&c, &error))?;
        to_js(&c, &json)
    });
    function!(ctx, host, state, "settings", |c, s, call: u32| {
        let json = with_call(&c, s, call, |r| {
            r.context.fields.iter().find(|(name, _)| *name == "userSettings").map(|(_, json)| json.clone())
        })?;
        to_js_lazy(&c, s, call, &json.unwrap_or_else(|| Json::from_value(json!({}))))
    });
    function!(ctx, host, state, "watch", |c, s, call: u32| {
        with_call(&c, s, call, |r| {
            r.watched = true;
            r.cancel.is_cancelled()
        })
    });
    function!(ctx, host, state, "request", |c, s, call: u32, kind: String, name: String, payload: JsValue<'js>| {
        let payload = argument(&c, payload, "the argument")?;
        let request = match kind.as_str() {
            "toolCall" => HostRequest::ToolCall { name, arguments: payload },
            "generateText" => HostRequest::GenerateText { options: payload },
            "generateObject" => HostRequest::GenerateObject { options: payload },
            _ => return Err(Exception::throw_internal(&c, "unknown host request")),
        };
        begin(&c, s, call, request, Settlement::default()).map(|(promise, _)| promise)
    });
    function!(ctx, host, state, "service", |c, s, call: u32, request: JsValue<'js>, timeout_ms: f64| {
        let request = argument(&c, request, "the request")?;
        let settlement = Settlement::default();
        let timeout_ms = (timeout_ms > 0.0).then_some(timeout_ms);
        let request = HostRequest::ServiceCall { request, timeout_ms, settlement: settlement.clone() };
        let (promise, operation) = begin(&c, s, call, request, settlement)?;
        let pair = rquickjs::Array::new(c.clone())?;
        pair.set(0, promise)?;
        pair.set(1, operation)?;
        Ok(pair.into_value())
    });
    function!(ctx, host, state, "abandon", |_c, s, call: u32, operation: u32| { Ok(abandon(s, call, operation)) });
    function!(ctx, host, state, "discover", |c, s, call: u32, contract: JsValue<'js>| {
        if !with_call(&c, s, call, |r| r.context.services)? {
            return Err(throw(&c, &no_services()));
        }
        let contract = text(&c, &contract, "a contract")?;
        let json = host_of(&c, s, call)?.discover(&contract).map_err(|error| throw(&c, &error))?;
        to_js(&c, &json)
    });
    function!(ctx, host, state, "worldTaken", |c, s, call: u32| {
        host_of(&c, s, call)?.world_taken();
        Ok(())
    });
    Ok(())
}

fn no_services() -> HostError {
    HostError { name: "ServiceError", code: "unavailable".into(), message: "services are not offered here".into() }
}

/// Whoever waits for this operation does not any more: it is cancelled. `false` when it is too late for that.
fn abandon(state: &State, call: u32, operation: u32) -> bool {
    let mut operations = state.operations.borrow_mut();
    let waits = operations.get(&operation).is_some_and(|found| found.call == call && found.settlement.abandon());
    if !waits {
        return false;
    }
    let Some(given_up) = operations.remove(&operation) else {
        return false;
    };
    given_up.task.abort();
    if let Some(running) = state.calls.borrow_mut().get_mut(&call) {
        running.pending_requests = running.pending_requests.saturating_sub(1);
    }
    true
}

/// Starts an operation that takes time; its promise is settled by a later message.
fn begin<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    call: u32,
    request: HostRequest,
    settlement: Settlement,
) -> Result<(JsValue<'js>, u32)> {
    let host = host_of(ctx, state, call)?;
    let (effects, gateway, services) =
        with_call(ctx, state, call, |r| (r.context.effects, r.context.gateway, r.context.services))?;
    let refused = match &request {
        HostRequest::ServiceCall { .. } => (!services).then(no_services),
        HostRequest::GenerateText { .. } | HostRequest::GenerateObject { .. } if gateway => None,
        _ => (!effects).then(|| HostError::new("unavailable", "this call may not use tools or models")),
    };
    if let Some(refused) = refused {
        return Err(throw(ctx, &refused));
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
    let kept = settlement.clone();
    let task = state.handle.spawn(async move {
        let result = future.await;
        if kept.keep() {
            queue.push(Message::HostDone { key, epoch, operation, result });
        }
    });
    with_call(ctx, state, call, |r| {
        r.pending_requests += 1;
        r.tasks.push(task.abort_handle());
    })?;
    let operations = &mut *state.operations.borrow_mut();
    let (resolve, reject) = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
    operations.insert(operation, Operation { call, resolve, reject, settlement, task: task.abort_handle() });
    Ok((promise.into_value(), operation))
}

fn writable(ctx: &Ctx<'_>, state: &State, call: u32) -> Result<Arc<dyn CallHost>> {
    let host = host_of(ctx, state, call)?;
    if with_call(ctx, state, call, |r| r.context.writable)? {
        return Ok(host);
    }
    Err(throw(ctx, &HostError::new("read-only", "ctx.pluginData is read-only here")))
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
