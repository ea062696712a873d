//! Operation lists of `ctx.pluginData.update`: RFC 6902 plus `inc` and `merge`. DAT-3
//!
//! A list applies whole or not at all, to the newest value at commit.

use serde_json::{Map, Number, Value};

use covel_graph::limits::MAX_DATA_VALUE_BYTES;

use crate::limits::{MAX_DATA_DEPTH, MAX_UPDATE_OPS};

/// Why a list does not apply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OpsError {
    /// The list itself is malformed.
    #[error("{0}")]
    Invalid(String),
    /// The list does not hold on the value it met.
    #[error("{0}")]
    Conflict(String),
}

fn invalid(at: usize, message: impl std::fmt::Display) -> OpsError {
    OpsError::Invalid(format!("op {at}: {message}"))
}

/// Applies a list to a value (`None`: the record does not exist; ops see `null`... except that an `add` at the root,
/// an `inc` or a `merge` may create it).
///
/// # Errors
/// [`OpsError::Invalid`] for a malformed list, [`OpsError::Conflict`] when an op does not hold.
pub fn apply(current: Option<&Value>, ops: &Value) -> Result<Value, OpsError> {
    let list = ops.as_array().ok_or_else(|| OpsError::Invalid("update takes a list of operations".into()))?;
    if list.is_empty() || list.len() > MAX_UPDATE_OPS {
        return Err(OpsError::Invalid(format!("update takes 1 to {MAX_UPDATE_OPS} operations, not {}", list.len())));
    }
    let mut document = current.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    for (at, op) in list.iter().enumerate() {
        apply_one(&mut document, op, at)?;
        // A list of copies doubles a value with every operation, so each must fit, not only the last.
        if op.get("op").and_then(Value::as_str) == Some("copy") {
            check_extent(&document, at)?;
        }
    }
    check_extent(&document, list.len() - 1)?;
    Ok(document)
}

/// Is the value small and shallow enough to be kept and read back?
fn check_extent(value: &Value, at: usize) -> Result<(), OpsError> {
    let mut left = MAX_DATA_VALUE_BYTES;
    match fits(value, MAX_DATA_DEPTH, &mut left) {
        Ok(()) => Ok(()),
        Err(TooMuch::Bytes) => Err(invalid(at, format!("the value would have more than {MAX_DATA_VALUE_BYTES} bytes"))),
        Err(TooMuch::Depth) => {
            Err(invalid(at, format!("the value would be nested deeper than {MAX_DATA_DEPTH} levels")))
        }
    }
}

/// Is this value nested deeper than what is kept may be? Deeper JSON is not read back.
pub fn is_too_deep(value: &Value) -> bool {
    fn within(value: &Value, depth: usize) -> bool {
        match value {
            Value::Array(items) => depth > 0 && items.iter().all(|item| within(item, depth - 1)),
            Value::Object(map) => depth > 0 && map.values().all(|item| within(item, depth - 1)),
            _ => true,
        }
    }
    !within(value, MAX_DATA_DEPTH)
}

enum TooMuch {
    Bytes,
    Depth,
}

/// Counts a lower bound of the bytes of the text form; stops at the first excess.
fn fits(value: &Value, depth: usize, left: &mut usize) -> Result<(), TooMuch> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes).ok_or(TooMuch::Bytes)?;
        Ok(())
    };
    match value {
        Value::String(text) => take(text.len() + 2),
        Value::Array(items) => {
            take(2)?;
            let depth = depth.checked_sub(1).ok_or(TooMuch::Depth)?;
            items.iter().try_for_each(|item| fits(item, depth, left))
        }
        Value::Object(map) => {
            take(2)?;
            let depth = depth.checked_sub(1).ok_or(TooMuch::Depth)?;
            for (key, value) in map {
                *left = left.checked_sub(key.len() + 3).ok_or(TooMuch::Bytes)?;
                fits(value, depth, left)?;
            }
            Ok(())
        }
        _ => take(1),
    }
}

fn apply_one(document: &mut Value, op: &Value, at: usize) -> Result<(), OpsError> {
    let object = op.as_object().ok_or_else(|| invalid(at, "is not an object"))?;
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let kind = text("op").ok_or_else(|| invalid(at, "has no `op`"))?;
    let path = text("path").ok_or_else(|| invalid(at, "has no `path`"))?;
    let tokens = pointer(path).ok_or_else(|| invalid(at, format!("{path:?} is not a JSON pointer")))?;
    let value = || object.get("value").cloned().ok_or_else(|| invalid(at, "has no `value`"));
    let conflict = |message: String| OpsError::Conflict(format!("op {at} ({kind} {path:?}): {message}"));
    let from = || {
        let from = text("from").ok_or_else(|| invalid(at, "has no `from`"))?;
        pointer(from).ok_or_else(|| invalid(at, format!("{from:?} is not a JSON pointer"))).map(|t| (from, t))
    };
    match kind {
        "add" => add(document, &tokens, value()?).map_err(conflict),
        "remove" => remove(document, &tokens).map(drop).map_err(conflict),
        "replace" => {
            let value = value()?;
            *find(document, &tokens).ok_or_else(|| conflict("there is nothing there".into()))? = value;
            Ok(())
        }
        "test" => {
            let value = value()?;
            match find(document, &tokens) {
                Some(found) if same(found, &value) => Ok(()),
                Some(_) => Err(conflict("the value differs".into())),
                None => Err(conflict("there is nothing there".into())),
            }
        }
        "move" => {
            let (from_text, from) = from()?;
            if tokens.len() > from.len() && tokens[..from.len()] == from[..] {
                return Err(invalid(at, format!("{from_text:?} cannot move into itself")));
            }
            let moved = remove(document, &from).map_err(&conflict)?;
            add(document, &tokens, moved).map_err(conflict)
        }
        "copy" => {
            let (_, from) = from()?;
            let copied = find(document, &from).cloned().ok_or_else(|| conflict("`from` names nothing".into()))?;
            add(document, &tokens, copied).map_err(conflict)
        }
        "inc" => {
            let number = |name: &str| match object.get(name) {
                None => Ok(None),
                Some(Value::Number(number)) => Ok(Some(number.clone())),
                Some(_) => Err(invalid(at, format!("`{name}` is not a number"))),
            };
            let by = number("by")?.ok_or_else(|| invalid(at, "has no `by`"))?;
            let (min, max) = (number("min")?, number("max")?);
            inc(document, &tokens, &by, min.as_ref(), max.as_ref()).map_err(conflict)
        }
        "merge" => {
            let value = value()?;
            if let Some(target) = find(document, &tokens) {
                merge(target, &value);
                return Ok(());
            }
            let mut target = Value::Null;
            merge(&mut target, &value);
            add(document, &tokens, target).map_err(conflict)
        }
        other => {
            Err(invalid(at, format!("unknown operation {other:?}; known: add remove replace move copy test inc merge")))
        }
    }
}

/// RFC 6901 tokens; `None` when malformed.
fn pointer(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.strip_prefix('/')?
        .split('/')
        .map(|token| {
            let mut out = String::with_capacity(token.len());
            let mut chars = token.chars();
            while let Some(c) = chars.next() {
                match c {
                    '~' => match chars.next() {
                        Some('0') => out.push('~'),
                        Some('1') => out.push('/'),
                        _ => return None,
                    },
                    c => out.push(c),
                }
            }
            Some(out)
        })
        .collect()
}

/// An array index: decimal without leading zeros.
fn index(token: &str) -> Option<usize> {
    if token.is_empty() || (token.len() > 1 && token.starts_with('0')) || !token.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    token.parse().ok()
}

fn child<'a>(value: &'a mut Value, token: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(map) => map.get_mut(token),
        Value::Array(items) => items.get_mut(index(token)?),
        _ => None,
    }
}

fn find<'a>(document: &'a mut Value, tokens: &[String]) -> Option<&'a mut Value> {
    tokens.iter().try_fold(document, |value, token| child(value, token))
}

fn parent<'a>(document: &'a mut Value, tokens: &'a [String]) -> Result<(&'a mut Value, &'a str), String> {
    let (last, path) = tokens.split_last().ok_or("the whole value has no parent")?;
    Ok((find(document, path).ok_or("its parent does not exist")?, last))
}

fn add(document: &mut Value, tokens: &[String], value: Value) -> Result<(), String> {
    if tokens.is_empty() {
        *document = value;
        return Ok(());
    }
    match parent(document, tokens)? {
        (Value::Object(map), key) => {
            map.insert(key.to_owned(), value);
            Ok(())
        }
        (Value::Array(items), "-") => {
            items.push(value);
            Ok(())
        }
        (Value::Array(items), key) => {
            let at = index(key).filter(|at| *at <= items.len()).ok_or("the index is out of range")?;
            items.insert(at, value);
            Ok(())
        }
        _ => Err("its parent is neither an object nor a list".into()),
    }
}

fn remove(document: &mut Value, tokens: &[String]) -> Result<Value, String> {
    if tokens.is_empty() {
        return Ok(std::mem::replace(document, Value::Null));
    }
    match parent(document, tokens)? {
        (Value::Object(map), key) => map.shift_remove(key).ok_or_else(|| "there is nothing there".into()),
        (Value::Array(items), key) => {
            let at = index(key).filter(|at| *at < items.len()).ok_or("the index is out of range")?;
            Ok(items.remove(at))
        }
        _ => Err("its parent is neither an object nor a list".into()),
    }
}

fn inc(
    document: &mut Value,
    tokens: &[String],
    by: &Number,
    min: Option<&Number>,
    max: Option<&Number>,
) -> Result<(), String> {
    let current = match find(document, tokens) {
        None => Number::from(0),
        Some(Value::Number(number)) => number.clone(),
        Some(_) => return Err("the value is not a number".into()),
    };
    let sum = sum(&current, by).ok_or("the sum is out of range")?;
    let below = |limit: &Number| sum.as_f64() < limit.as_f64();
    let above = |limit: &Number| sum.as_f64() > limit.as_f64();
    if let Some(limit) = min.filter(|limit| below(limit)) {
        return Err(format!("{sum} is below the minimum {limit}"));
    }
    if let Some(limit) = max.filter(|limit| above(limit)) {
        return Err(format!("{sum} is above the maximum {limit}"));
    }
    if let Some(target) = find(document, tokens) {
        *target = Value::Number(sum);
        return Ok(());
    }
    add(document, tokens, Value::Number(sum))
}

fn sum(a: &Number, b: &Number) -> Option<Number> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.checked_add(b).map(Number::from);
    }
    Number::from_f64(a.as_f64()? + b.as_f64()?)
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(map) = target {
        for (key, value) in patch {
            if value.is_null() {
                map.shift_remove(key);
            } else {
                merge(map.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

/// Equality as RFC 6902 `test` wants it: numbers by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Covers: DAT-3
    #[test]
    fn operations_apply_as_their_rows_say() {
        let rows = [
            (json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), Ok(json!({"a": 1, "b": 2}))),
            (json!([1, 3]), json!([{"op": "add", "path": "/1", "value": 2}]), Ok(json!([1, 2, 3]))),
            (json!([1]), json!([{"op": "add", "path": "/-", "value": 2}]), Ok(json!([1, 2]))),
            (json!([1]), json!([{"op": "add", "path": "/01", "value": 2}]), Err(true)),
            (json!([1]), json!([{"op": "add", "path": "/2", "value": 2}]), Err(true)),
            (json!({"a": 1}), json!([{"op": "remove", "path": "/a"}]), Ok(json!({}))),
            (json!({}), json!([{"op": "remove", "path": "/a"}]), Err(true)),
            (json!({"a": 1}), json!([{"op": "replace", "path": "/a", "value": null}]), Ok(json!({"a": null}))),
            (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), Err(true)),
            (json!({"a": [1]}), json!([{"op": "move", "from": "/a/0", "path": "/b"}]), Ok(json!({"a": [], "b": 1}))),
            (json!({"a": {}}), json!([{"op": "move", "from": "/a", "path": "/a/b"}]), Err(false)),
            (json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), Ok(json!({"a": 1, "b": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1.0}]), Ok(json!({"a": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": "1"}]), Err(true)),
            (json!({"n": 5}), json!([{"op": "inc", "path": "/n", "by": -5, "min": 0}]), Ok(json!({"n": 0}))),
            (json!({"n": 5}), json!([{"op": "inc", "path": "/n", "by": -6, "min": 0}]), Err(true)),
            (json!({"n": 5}), json!([{"op": "inc", "path": "/n", "by": 6, "max": 10}]), Err(true)),
            (json!({}), json!([{"op": "inc", "path": "/n", "by": 2}]), Ok(json!({"n": 2}))),
            (json!({"n": "x"}), json!([{"op": "inc", "path": "/n", "by": 2}]), Err(true)),
            (json!({"n": i64::MAX}), json!([{"op": "inc", "path": "/n", "by": 1}]), Err(true)),
            (json!({"n": 0.5}), json!([{"op": "inc", "path": "/n", "by": 1}]), Ok(json!({"n": 1.5}))),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!([{"op": "merge", "path": "/a", "value": {"b": null, "d": {"e": null, "f": 1}}}]),
                Ok(json!({"a": {"c": 2, "d": {"f": 1}}})),
            ),
            (json!({"a~b": {"c/d": 1}}), json!([{"op": "remove", "path": "/a~0b/c~1d"}]), Ok(json!({"a~b": {}}))),
            (json!({}), json!([{"op": "add", "path": "/__proto__", "value": 1}]), Ok(json!({"__proto__": 1}))),
            (json!({}), json!([{"op": "add", "path": "a", "value": 1}]), Err(false)),
            (json!({}), json!([{"op": "frob", "path": "/a"}]), Err(false)),
            (json!({}), json!([]), Err(false)),
            (json!({}), json!({}), Err(false)),
            (json!({}), json!([7]), Err(false)),
            // Whole or not at all: the first op would hold.
            (
                json!({"a": 1}),
                json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/a", "value": 1}]),
                Err(true),
            ),
        ];
        for (value, ops, expected) in rows {
            let found = apply(Some(&value), &ops).map_err(|error| matches!(error, OpsError::Conflict(_)));
            assert_eq!(found, expected, "{value} with {ops}");
        }
    }
}
