//! What globals and host modules are made of: timers, random bytes, digests, files of the package.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rquickjs::{Ctx, Exception, FromJs, Module, Object, Result, Value as JsValue, prelude::Opt};

use super::{argument, fenced, function, report::log, throw};
use crate::{
    digest,
    engine::bytes,
    host::{CallHost, HostError},
    isolate::{State, Timer},
    limits::{MAX_MODULE_BYTES, MAX_TIMERS},
};

pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    function!(ctx, host, state, "importNow", |c, _s, name: String| {
        // Host modules have no top-level await: they are evaluated when this returns.
        Module::import(&c, name).map(drop)
    });
    function!(ctx, host, state, "setTimer", |c, s, ms: f64, repeat: bool| {
        if s.timers.borrow().len() >= MAX_TIMERS {
            return Err(Exception::throw_range(&c, &format!("at most {MAX_TIMERS} timers may be alive")));
        }
        let delay = Duration::from_micros(if ms.is_finite() && ms >= 1.0 {
            (ms.min(2_147_483_647.0) * 1000.0) as u64
        } else {
            1000
        });
        let id = s.next_timer.get();
        s.next_timer.set(id.wrapping_add(1).max(1));
        s.timers.borrow_mut().insert(id, Timer { call: s.current.get(), every: repeat.then_some(delay) });
        s.new_timers.borrow_mut().push((id, Instant::now() + delay));
        Ok(id)
    });
    function!(ctx, host, state, "clearTimer", |_c, s, id: JsValue<'js>| {
        if let Some(id) = id.as_number() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an unknown id clears nothing")]
            s.timers.borrow_mut().remove(&(id as u32));
        }
        Ok(())
    });
    function!(ctx, host, state, "log", |c, s, level: u32, message: String, _meta: Opt<JsValue<'js>>| {
        log(s, s.current.get(), level, message, None)
    });
    function!(ctx, host, state, "logFor", |c, s, call: u32, level: u32, message: String, meta: JsValue<'js>| {
        let meta = if meta.is_undefined() { None } else { Some(argument(&c, meta, "meta")?) };
        log(s, call, level, message, meta)
    });
    function!(ctx, host, state, "randomBytes", |c, s, length: usize| {
        if length > 65_536 {
            return Err(Exception::throw_range(&c, "at most 65536 random bytes at once"));
        }
        let mut bytes = vec![0_u8; length];
        fill(&c, s, &mut bytes)?;
        rquickjs::TypedArray::new(c.clone(), bytes).map(rquickjs::TypedArray::into_value)
    });
    function!(ctx, host, state, "digest", |c,
                                           _s,
                                           algorithm: String,
                                           data: rquickjs::TypedArray<'js, u8>,
                                           key: JsValue<'js>| {
        let key = if key.is_undefined() { None } else { Some(rquickjs::TypedArray::<u8>::from_js(&c, key)?) };
        let found = digest::digest(&algorithm, &bytes::copy(&data), key.as_ref().map(bytes::copy).as_deref());
        match found {
            Some(bytes) => rquickjs::TypedArray::new(c.clone(), bytes).map(rquickjs::TypedArray::into_value),
            None => Err(throw(
                &c,
                &HostError::new("invalid-input", format!("unknown digest {algorithm}; use {}", digest::NAMES)),
            )),
        }
    });
    function!(ctx, host, state, "readText", |c, s, path: String| {
        let Some(path) = crate::modules::join("", &path) else {
            return Ok(JsValue::new_undefined(c.clone()));
        };
        match s.blueprint.spec.files.read(&path) {
            Some(bytes) if bytes.len() <= MAX_MODULE_BYTES => match std::str::from_utf8(&bytes) {
                Ok(text) => Ok(rquickjs::String::from_str(c.clone(), text)?.into_value()),
                Err(_) => Err(throw(&c, &HostError::new("invalid-input", format!("{path} is not UTF-8 text")))),
            },
            Some(_) => Err(throw(
                &c,
                &HostError::new("invalid-input", format!("{path} is larger than {MAX_MODULE_BYTES} bytes")),
            )),
            None => Ok(JsValue::new_undefined(c.clone())),
        }
    });
    function!(ctx, host, state, "randomUuid", |c, s| {
        let mut bytes = [0_u8; 16];
        fill(&c, s, &mut bytes)?;
        Ok(uuid_text(bytes))
    });
    function!(ctx, host, state, "now", |_c, s| {
        let given = running(s).and_then(|host| host.now_millis());
        Ok(number(given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
        })))
    });
    let born = Instant::now();
    function!(ctx, host, state, "ticks", |_c, s| {
        let given = running(s).and_then(|host| host.monotonic_micros());
        let micros = given.unwrap_or_else(|| u64::try_from(born.elapsed().as_micros()).unwrap_or(u64::MAX));
        Ok(number(micros) / 1000.0)
    });
    function!(ctx, host, state, "randomUnit", |c, s| {
        if let Some(unit) = running(s).and_then(|host| host.random_unit()) {
            return Ok(unit);
        }
        let mut bytes = [0_u8; 8];
        fill(&c, s, &mut bytes)?;
        Ok(number(u64::from_le_bytes(bytes) >> 11) / number(1 << 53))
    });
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "times and draws are below 2^53")]
fn number(number: u64) -> f64 {
    number as f64
}

/// The host of the call whose code runs now.
fn running(state: &State) -> Option<Arc<dyn CallHost>> {
    let calls = state.calls.borrow();
    calls.get(&state.current.get()).filter(|running| !running.over).and_then(|running| running.host.clone())
}

fn fill(ctx: &Ctx<'_>, state: &State, bytes: &mut [u8]) -> Result<()> {
    if running(state).is_some_and(|host| host.random_bytes(bytes)) {
        return Ok(());
    }
    getrandom::fill(bytes).map_err(|_| Exception::throw_internal(ctx, "no random bytes are available"))
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
