//! The smallest sensible instance of a JSON Schema, for replies that must fit one.

use serde_json::{Map, Number, Value};

/// Deepest nesting followed.
const MAX_DEPTH: usize = 32;
/// Most values made for one instance.
const MAX_VALUES: usize = 2_000;
/// Texts tried for a string with a pattern.
const PATTERN_TRIES: &[&str] = &["a", "item", "item-1", "a1", "1", "A", "a@1", "2000-01-01", "#000000", "00:00"];

/// Does the instance fit? A schema that is itself broken fits nothing.
pub(super) fn fits(schema: &Value, instance: &Value) -> bool {
    jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(instance))
}

/// A minimal instance: constants, enums, defaults and examples as given, only required properties, strings from
/// `text`. Nothing when none of the instances tried fits.
pub(super) fn minimal(schema: &Value, text: &str) -> Option<Value> {
    let mut maker = Maker { root: schema, text, left: MAX_VALUES };
    let instance = maker.make(schema, 0)?;
    fits(schema, &instance).then_some(instance)
}

struct Maker<'a> {
    root: &'a Value,
    text: &'a str,
    left: usize,
}

impl Maker<'_> {
    fn make(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let Value::Object(schema) = schema else {
            return (*schema == Value::Bool(true)).then_some(Value::Null);
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            return self.make(root.pointer(reference.strip_prefix('#')?)?, depth + 1);
        }
        if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
            return Some(value.clone());
        }
        let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|values| values.first());
        if let Some(value) = first("enum").or_else(|| first("examples")) {
            return Some(value.clone());
        }
        for key in ["anyOf", "oneOf"] {
            for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                let joined = join(schema, &[branch], key);
                if let Some(value) = self.make(&joined, depth + 1)
                    && fits(&self.rooted(&joined), &value)
                {
                    return Some(value);
                }
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let parts: Vec<&Value> = parts.iter().collect();
            return self.make(&join(schema, &parts, "allOf"), depth + 1);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => self.string(schema),
            "integer" | "number" => number(schema),
            "boolean" => Some(Value::Bool(false)),
            _ => Some(Value::Null),
        }
    }

    /// A part of the schema with the definitions its references need.
    fn rooted(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        if let (Value::Object(part), Value::Object(root)) = (&mut schema, self.root) {
            for key in ["$defs", "definitions", "$schema"] {
                if let Some(value) = root.get(key) {
                    part.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        schema
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let mut object = Map::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            let property =
                properties.get(name).or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()));
            let value = match property {
                Some(property) => self.make(property, depth + 1)?,
                None => Value::Null,
            };
            object.insert(name.into(), value);
        }
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        for (name, property) in properties {
            if (object.len() as u64) < least && !object.contains_key(name) {
                object.insert(name.clone(), self.make(property, depth + 1)?);
            }
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut items = Vec::new();
        for position in 0..usize::try_from(least).ok()?.min(MAX_VALUES) {
            let item = prefix.get(position).or_else(|| schema.get("items"));
            items.push(match item {
                Some(item) => self.make(item, depth + 1)?,
                None => Value::from(position),
            });
        }
        Some(Value::Array(items))
    }

    fn string(&self, schema: &Map<String, Value>) -> Option<Value> {
        if schema.contains_key("pattern") || schema.contains_key("format") {
            let whole = Value::Object(schema.clone());
            let tries = PATTERN_TRIES.iter().chain(&["2000-01-01T00:00:00Z", "https://example.invalid/"]);
            return tries.map(|text| Value::from(*text)).find(|value| fits(&whole, value));
        }
        let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let mut text: String = self.text.chars().take(usize::try_from(most).unwrap_or(usize::MAX)).collect();
        for _ in text.chars().count() as u64..least.min(MAX_VALUES as u64) {
            text.push('.');
        }
        Some(text.into())
    }
}

/// The schema without one combining keyword, with parts laid over it.
fn join(schema: &Map<String, Value>, parts: &[&Value], without: &str) -> Value {
    let mut joined = schema.clone();
    joined.remove(without);
    for part in parts.iter().filter_map(|part| part.as_object()) {
        for (key, value) in part {
            match (joined.get_mut(key), value) {
                (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => known.extend(more.clone()),
                (Some(Value::Array(known)), Value::Array(more)) if key == "required" => known.extend(more.clone()),
                _ => drop(joined.insert(key.clone(), value.clone())),
            }
        }
    }
    Value::Object(joined)
}

/// The type to make: the one named first, else what the keywords suggest.
fn kind(schema: &Map<String, Value>) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        _ => None,
    };
    let any = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
    named.unwrap_or_else(|| {
        if any(&["properties", "required", "additionalProperties"]) {
            "object"
        } else if any(&["items", "prefixItems", "minItems"]) {
            "array"
        } else if any(&["minLength", "maxLength", "pattern", "format"]) {
            "string"
        } else if any(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
            "number"
        } else {
            "null"
        }
    })
}

/// The number nearest to zero that fits the bounds.
fn number(schema: &Map<String, Value>) -> Option<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let integer = kind(schema) == "integer";
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let margin = step.unwrap_or(if integer { 1.0 } else { 0.5 });
    let low = [bound("minimum"), bound("exclusiveMinimum").map(|low| low + margin)].into_iter().flatten();
    let low = low.fold(f64::NEG_INFINITY, f64::max);
    let high = [bound("maximum"), bound("exclusiveMaximum").map(|high| high - margin)].into_iter().flatten();
    let high = high.fold(f64::INFINITY, f64::min);
    let mut value = 0.0_f64.max(low).min(high);
    if let Some(step) = step {
        value = if low > 0.0 { (value / step).ceil() } else { (value / step).floor() } * step;
    } else if integer {
        value = if low > 0.0 { value.ceil() } else { value.floor() };
    }
    // Whole numbers are written without a fraction.
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        #[allow(clippy::cast_possible_truncation)]
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instances_fit_their_schemas() {
        let schemas = [
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "minLength": 3},
                "b": {"enum": ["x", "y"]}, "c": {"type": "string"}}, "additionalProperties": false}),
            json!({"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 4, "multipleOf": 3}}),
            json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
            json!({"type": "number", "maximum": -2.5}),
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"const": {"deep": [1]}}}}),
            json!({"anyOf": [{"type": "object", "required": ["x"], "properties": {"x": false}}, {"type": "boolean"}]}),
            json!({"oneOf": [{"$ref": "#/$defs/s"}, {"type": "null"}], "$defs": {"s": {"type": "string", "maxLength": 4}}}),
            json!({"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}]}),
            json!({"type": "string", "pattern": "^[a-z]+-[0-9]$"}),
            json!({"type": ["integer", "null"], "minimum": 7}),
            json!({"properties": {"p": {"default": 5}}, "required": ["p"]}),
            json!({"type": "object", "minProperties": 1, "properties": {"q": {"type": "boolean"}}}),
            json!(true),
            json!({}),
        ];
        for schema in schemas {
            assert!(minimal(&schema, "some text of the story").is_some(), "{schema}");
        }
    }

    #[test]
    fn impossible_and_endless_schemas_give_nothing() {
        for schema in [
            json!(false),
            json!({"type": "string", "pattern": "^zzzz$"}),
            json!({"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}}),
            json!({"type": "array", "minItems": 2, "items": {"$ref": "#"}}),
            json!({"type": 3}),
            json!({"$ref": "https://example.invalid/x.json"}),
        ] {
            assert_eq!(minimal(&schema, "t"), None, "{schema}");
        }
    }
}
