//! Values of an isolate become JSON documents. Nothing is trusted: getters run plugin code, proxies lie, arrays claim any
//! length, objects contain themselves.

use covel_graph::Json;
use rquickjs::{Ctx, Object, String as JsString, Value as JsValue, object::Filter};
use serde_json::{Map, Number, Value};

use crate::limits::MAX_JSON_DEPTH;

/// Why a value is not a JSON document.
#[derive(Debug)]
pub(crate) enum FromJsError {
    /// Something that JSON cannot hold.
    NotJson {
        path: String,
        message: String,
    },
    TooLarge,
    /// The engine raised an exception (a getter threw, or the call was interrupted).
    Exception,
}

/// Converts a value, counting its size in bytes of JSON against `limit`. Getters and proxies may run plugin code.
pub(crate) fn from_js<'js>(ctx: &Ctx<'js>, value: JsValue<'js>, limit: usize) -> Result<Json, FromJsError> {
    let mut walk = Walk { ctx, left: limit, path: Vec::new(), open: Vec::new() };
    Ok(Json::from_value(walk.value(value)?.unwrap_or(Value::Null)))
}

enum Step {
    Key(String),
    Index(usize),
}

struct Walk<'a, 'js> {
    ctx: &'a Ctx<'js>,
    left: usize,
    path: Vec<Step>,
    /// Objects on the way from the root, to find cycles.
    open: Vec<Object<'js>>,
}

impl<'js> Walk<'_, 'js> {
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T, FromJsError> {
        let mut path = String::from("$");
        for step in &self.path {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) if is_plain_name(key) => {
                    path.push('.');
                    path.push_str(key);
                }
                Step::Key(key) => path.push_str(&format!("[{key:?}]")),
            }
        }
        Err(FromJsError::NotJson { path, message: message.into() })
    }

    fn spend(&mut self, bytes: usize) -> Result<(), FromJsError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(FromJsError::TooLarge),
        }
    }

    fn engine<T>(&self, result: rquickjs::Result<T>) -> Result<T, FromJsError> {
        match result {
            Ok(value) => Ok(value),
            Err(rquickjs::Error::Exception) => {
                let thrown = self.ctx.catch();
                if thrown.is_uncatchable_error() {
                    self.ctx.throw(thrown);
                    return Err(FromJsError::Exception);
                }
                let text = thrown
                    .as_exception()
                    .and_then(|e| e.message())
                    .map_or_else(|| "reading it threw".to_owned(), |m| format!("reading it threw: {m}"));
                self.refuse(text)
            }
            Err(error) => self.refuse(format!("it cannot be read: {error}")),
        }
    }

    fn string(&mut self, text: &JsString<'js>) -> Result<String, FromJsError> {
        match text.to_string() {
            Ok(text) => Ok(text),
            Err(rquickjs::Error::Utf8(_)) => {
                self.refuse("a string with an unpaired surrogate, which JSON text cannot hold")
            }
            Err(error) => self.engine(Err(error)),
        }
    }

    /// `None` is `undefined`.
    fn value(&mut self, value: JsValue<'js>) -> Result<Option<Value>, FromJsError> {
        use rquickjs::Type;
        match value.type_of() {
            Type::Undefined | Type::Uninitialized => Ok(None),
            Type::Null => {
                self.spend(4)?;
                Ok(Some(Value::Null))
            }
            Type::Bool => {
                self.spend(5)?;
                Ok(value.as_bool().map(Value::Bool))
            }
            Type::Int => {
                self.spend(2)?;
                Ok(value.as_int().map(Value::from))
            }
            Type::Float => {
                let number = value.as_float().unwrap_or(f64::NAN);
                if !number.is_finite() {
                    return self.refuse(format!("{} is not a JSON number", js_number(number)));
                }
                self.spend(8)?;
                Ok(Some(Value::Number(normal_number(number))))
            }
            Type::String => {
                let Some(text) = value.as_string() else {
                    return Ok(None);
                };
                let text = self.string(text)?;
                self.spend(text.len() + 2)?;
                Ok(Some(Value::String(text)))
            }
            Type::Function | Type::Constructor => self.refuse("a function is not JSON"),
            Type::Symbol => self.refuse("a symbol is not JSON"),
            Type::BigInt => self.refuse("a BigInt is not JSON; use a number or a string"),
            Type::Promise => self.refuse("a promise is not JSON; await it first"),
            Type::Exception => self.refuse("an Error is not JSON; return its message"),
            _ => self.composite(value),
        }
    }

    fn composite(&mut self, value: JsValue<'js>) -> Result<Option<Value>, FromJsError> {
        let Some(object) = value.into_object() else {
            return self.refuse("not a JSON value");
        };
        if self.open.len() >= MAX_JSON_DEPTH {
            return self.refuse(format!("nested deeper than {MAX_JSON_DEPTH} levels"));
        }
        if self.open.iter().any(|outer| outer == &object) {
            return self.refuse("a cycle: the object contains itself");
        }
        self.spend(2)?;
        self.open.push(object.clone());
        let result = if object.is_array() { self.array(object) } else { self.object(object) };
        self.open.pop();
        result.map(Some)
    }

    fn array(&mut self, object: Object<'js>) -> Result<Value, FromJsError> {
        let length: f64 = self.engine(object.get("length"))?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an array length is an integer below 2^32"
        )]
        let length = length as usize;
        // Each element takes at least two bytes, so a sparse array of length 4e9 is refused before it is walked.
        if length.saturating_mul(2) > self.left.saturating_add(1) {
            return Err(FromJsError::TooLarge);
        }
        let mut items = Vec::with_capacity(length.min(1024));
        for index in 0..length {
            #[allow(clippy::cast_possible_truncation, reason = "checked above")]
            let item: JsValue<'js> = self.engine(object.get(index as u32))?;
            self.path.push(Step::Index(index));
            self.spend(1)?;
            items.push(self.value(item)?.unwrap_or(Value::Null));
            self.path.pop();
        }
        Ok(Value::Array(items))
    }

    fn object(&mut self, object: Object<'js>) -> Result<Value, FromJsError> {
        self.check_class(&object)?;
        let mut members = Map::new();
        for key in object.own_keys::<JsString<'js>>(Filter::default()) {
            let key = self.engine(key)?;
            let name = self.string(&key)?;
            self.path.push(Step::Key(name));
            let member: JsValue<'js> = self.engine(object.get(key))?;
            let value = self.value(member)?;
            if let Some(Step::Key(name)) = self.path.pop()
                && let Some(value) = value
            {
                self.spend(name.len() + 4)?;
                members.insert(name, value);
            }
        }
        Ok(Value::Object(members))
    }

    /// Only plain data passes: an object that would print as something else (`Date`, `Map`, a `toJSON` method) is refused
    /// instead of being quietly emptied.
    fn check_class(&self, object: &Object<'js>) -> Result<(), FromJsError> {
        // A proxy's traps answer what they like, or throw; only reads that may fail are made of one.
        let plain = !object.is_proxy()
            && object
                .get_prototype()
                .is_none_or(|prototype| !prototype.is_proxy() && prototype.get_prototype().is_none());
        if plain {
            return Ok(());
        }
        let to_json: JsValue<'js> = self.engine(object.get("toJSON"))?;
        let constructor: Option<Object<'js>> = self.engine(object.get("constructor"))?;
        let name: Option<String> = match constructor {
            Some(constructor) => {
                self.engine(constructor.get::<_, JsValue<'js>>("name"))?.as_string().and_then(|n| n.to_string().ok())
            }
            None => None,
        };
        let name = name.unwrap_or_else(|| "a class".to_owned());
        if to_json.is_function() {
            return self.refuse(format!("an instance of {name} is not plain data; convert it first"));
        }
        const NOT_DATA: &[&str] = &[
            "Map",
            "Set",
            "WeakMap",
            "WeakSet",
            "WeakRef",
            "RegExp",
            "ArrayBuffer",
            "SharedArrayBuffer",
            "DataView",
            "Number",
            "String",
            "Boolean",
            "Symbol",
            "BigInt",
            "Int8Array",
            "Uint8Array",
            "Uint8ClampedArray",
            "Int16Array",
            "Uint16Array",
            "Int32Array",
            "Uint32Array",
            "BigInt64Array",
            "BigUint64Array",
            "Float16Array",
            "Float32Array",
            "Float64Array",
        ];
        if NOT_DATA.contains(&name.as_str()) {
            return self.refuse(format!("an instance of {name} is not JSON; convert it first"));
        }
        Ok(())
    }
}

fn is_plain_name(key: &str) -> bool {
    !key.is_empty()
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

fn js_number(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Integral doubles become integers, so that `17` does not come back as `17.0`.
fn normal_number(number: f64) -> Number {
    const SAFE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= SAFE {
        #[allow(clippy::cast_possible_truncation, reason = "integral and within 2^53")]
        return Number::from(number as i64);
    }
    Number::from_f64(number).unwrap_or_else(|| Number::from(0))
}
