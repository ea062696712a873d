//! The subset of JSON Schema a dimension may use, and texts by language inside its values.

use serde_json::{Map, Value};

use crate::{
    limits::{MAX_DIMENSION_DEPTH, MAX_DIMENSION_NODES},
    results::kind_of,
};

const KEYWORDS: [&str; 20] = [
    "type",
    "title",
    "description",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "additionalProperties",
    "x-i18n",
    "x-enumLabels",
    "x-derive",
];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const DERIVE: [&str; 6] = ["source", "start", "perUnit", "min", "max", "ranges"];

/// Checks that a schema keeps to the subset.
///
/// # Errors
/// A sentence naming where (`schema.properties.hour`) and what.
pub fn check_subset(schema: &Value) -> Result<(), String> {
    let mut left = MAX_DIMENSION_NODES;
    node(schema, "schema", 0, &mut left)
}

fn node(schema: &Value, at: &str, depth: usize, left: &mut usize) -> Result<(), String> {
    let object = schema.as_object().ok_or_else(|| format!("{at} is {}, not an object", kind_of(schema)))?;
    if depth > MAX_DIMENSION_DEPTH {
        return Err(format!("{at} is nested deeper than {MAX_DIMENSION_DEPTH}"));
    }
    *left = left.checked_sub(1).ok_or_else(|| format!("the schema has more than {MAX_DIMENSION_NODES} nodes"))?;
    for (key, value) in object {
        let here = || format!("{at}.{key}");
        match key.as_str() {
            "type" => {
                let known = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
                let fits = match value {
                    Value::Array(list) => !list.is_empty() && list.iter().all(known),
                    one => known(one),
                };
                if !fits {
                    return Err(format!("{} is one of {}, or a list of them", here(), TYPES.join(" ")));
                }
            }
            "items" => node(value, &here(), depth + 1, left)?,
            "properties" => {
                let members = value.as_object().ok_or_else(|| format!("{} is not an object", here()))?;
                for (name, member) in members {
                    node(member, &format!("{}.{name}", here()), depth + 1, left)?;
                }
            }
            "additionalProperties" if !value.is_boolean() => node(value, &here(), depth + 1, left)?,
            "x-i18n" if !value.is_boolean() => return Err(format!("{} is true or false", here())),
            "x-enumLabels" if !value.is_object() => return Err(format!("{} is not an object", here())),
            "x-derive" => {
                let derive = value.as_object().ok_or_else(|| format!("{} is not an object", here()))?;
                if let Some(other) = derive.keys().find(|key| !DERIVE.contains(&key.as_str())) {
                    return Err(format!("{} has no `{other}`; known: {}", here(), DERIVE.join(" ")));
                }
                if derive.get("source").and_then(Value::as_str) != Some("clock.elapsedSinceStart") {
                    return Err(format!("{}.source is `clock.elapsedSinceStart`", here()));
                }
            }
            known if KEYWORDS.contains(&known) => {}
            other => {
                return Err(format!("{at} uses `{other}`; a dimension's schema knows {}", KEYWORDS.join(" ")));
            }
        }
    }
    Ok(())
}

/// Replaces maps of language to text by the text of one language, wherever the schema says `x-i18n`.
pub fn in_language(schema: &Value, value: &mut Value, locale: &str) {
    let flagged = schema.get("x-i18n").and_then(Value::as_bool) == Some(true);
    if let (true, Value::Object(texts)) = (flagged, &*value)
        && let Some(text) = pick(texts, locale)
    {
        *value = Value::String(text);
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                let inner = schema.get("properties").and_then(|all| all.get(name));
                if let Some(inner) = inner.or_else(|| schema.get("additionalProperties")) {
                    in_language(inner, member, locale);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.get("items") {
                items.iter_mut().for_each(|item| in_language(inner, item, locale));
            }
        }
        _ => {}
    }
}

/// The text of a language: exact, then same language, then English, then the first. None when it is no map of texts.
pub fn pick(texts: &Map<String, Value>, locale: &str) -> Option<String> {
    if texts.is_empty() || !texts.values().all(Value::is_string) {
        return None;
    }
    let language = |tag: &str| tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let of = |wanted: &str| texts.iter().find(|(tag, _)| language(tag) == language(wanted)).map(|(_, text)| text);
    let found = texts.get(locale).or_else(|| of(locale)).or_else(|| of("en")).or_else(|| texts.values().next());
    found.and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_by_language_are_resolved_where_the_schema_says_so() {
        let schema = json!({"type": "object", "properties": {
            "mood": {"type": "string", "x-i18n": true},
            "raw": {"type": "object"},
            "list": {"type": "array", "items": {"type": "string", "x-i18n": true}},
        }});
        let mut value =
            json!({"mood": {"en": "calm", "zh-CN": "平静"}, "raw": {"en": "x"}, "list": [{"en": "a", "zh": "甲"}]});
        in_language(&schema, &mut value, "zh-CN");
        assert_eq!(value, json!({"mood": "平静", "raw": {"en": "x"}, "list": ["甲"]}));
    }
}
