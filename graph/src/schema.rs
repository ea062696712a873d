//! JSON Schema: compiled once, kept by text, never fetched from anywhere.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{MAX_DOCUMENT_DEPTH, MAX_PATTERN_BACKTRACKS, MAX_PATTERN_BYTES, MAX_SCHEMA_ISSUES};

/// One way in which a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaIssue {
    /// JSON pointer into the value.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// A compiled schema. Shared between threads.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a draft-7 or 2020-12 schema (2020-12 when it names no draft). References outside the document are
    /// refused, whatever their scheme.
    ///
    /// # Errors
    /// What is wrong with the schema, for its author.
    pub fn new(schema: &Value) -> Result<Validator, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("a schema is a JSON object".into());
        }
        if depth(schema) > MAX_DOCUMENT_DEPTH {
            return Err(format!("the schema is nested more than {MAX_DOCUMENT_DEPTH} deep"));
        }
        if let Some(reference) = outside_reference(schema) {
            return Err(format!("the reference `{reference}` leads out of this document; only `#...` is followed"));
        }
        jsonschema::options()
            .should_validate_formats(false)
            // Look-around occurs in real schemas; the limits keep a hostile pattern from running away.
            .with_pattern_options(
                jsonschema::PatternOptions::fancy_regex()
                    .backtrack_limit(MAX_PATTERN_BACKTRACKS)
                    .size_limit(MAX_PATTERN_BYTES)
                    .dfa_size_limit(MAX_PATTERN_BYTES),
            )
            .build(schema)
            .map(Validator)
            .map_err(|error| {
                let place = error.instance_path().to_string();
                if place.is_empty() { error.to_string() } else { format!("{error} (at {place})") }
            })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The ways in which it does not fit, at most [`MAX_SCHEMA_ISSUES`], in document order.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<SchemaIssue>> {
        if self.0.is_valid(value) {
            return Ok(());
        }
        Err(self
            .0
            .iter_errors(value)
            .take(MAX_SCHEMA_ISSUES)
            .map(|error| SchemaIssue { path: error.instance_path().to_string(), message: shorten(error.to_string()) })
            .collect())
    }

    /// Does the value fit?
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

/// Messages quote the value; a large value must not make a large message.
fn shorten(message: String) -> String {
    const LONGEST: usize = 300;
    if message.chars().count() <= LONGEST {
        return message;
    }
    let mut start: String = message.chars().take(LONGEST).collect();
    start.push_str("...");
    start
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The first reference that leads out of the document. A document's own `$id`s are followed by the compiler.
fn outside_reference(schema: &Value) -> Option<String> {
    let mut ids = Vec::new();
    collect_ids(schema, &mut ids);
    find_outside(schema, &ids)
}

fn collect_ids<'a>(value: &'a Value, ids: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(map) => {
            ids.extend(map.get("$id").and_then(Value::as_str));
            map.values().for_each(|item| collect_ids(item, ids));
        }
        _ => {}
    }
}

fn find_outside(value: &Value, ids: &[&str]) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| find_outside(item, ids)),
        Value::Object(map) => {
            for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
                if let Some(reference) = map.get(key).and_then(Value::as_str) {
                    let document = reference.split('#').next().unwrap_or("");
                    let own = ids
                        .iter()
                        .any(|id| id.trim_end_matches('#') == document || id.ends_with(&format!("/{document}")));
                    if !document.is_empty() && !own {
                        return Some(reference.to_owned());
                    }
                }
            }
            map.values().find_map(|item| find_outside(item, ids))
        }
        _ => None,
    }
}

/// Compiled schemas by their text, success and failure alike, bounded; the oldest goes first. REL-7
#[derive(Debug)]
pub struct SchemaSet {
    capacity: usize,
    kept: Mutex<Kept>,
}

type Outcome = Result<Arc<Validator>, String>;

#[derive(Debug, Default)]
struct Kept {
    outcomes: HashMap<blake3::Hash, Outcome>,
    order: VecDeque<blake3::Hash>,
}

impl Default for SchemaSet {
    fn default() -> Self {
        Self::new(4_096)
    }
}

impl SchemaSet {
    /// A set that keeps at most `capacity` compiled schemas (at least one).
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), kept: Mutex::default() }
    }

    /// The validator of a schema given as JSON text.
    ///
    /// # Errors
    /// What is wrong with the text, for its author.
    pub fn compile(&self, text: &str) -> Result<Arc<Validator>, String> {
        let hash = blake3::hash(text.as_bytes());
        if let Some(outcome) = self.lock().outcomes.get(&hash) {
            return outcome.clone();
        }
        let outcome = serde_json::from_str::<Value>(text)
            .map_err(|error| format!("this is not JSON: {error}"))
            .and_then(|schema| Validator::new(&schema).map(Arc::new));
        let mut kept = self.lock();
        if kept.outcomes.insert(hash, outcome.clone()).is_none() {
            kept.order.push_back(hash);
            if kept.order.len() > self.capacity
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.outcomes.remove(&oldest);
            }
        }
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_drafts_work_and_issues_carry_places() {
        let seven = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/definitions/n"}}});
        let newer = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"n": {"type": "integer"}},
            "properties": {"a": {"$ref": "#/$defs/n"}}});
        for schema in [seven, newer] {
            let validator = Validator::new(&schema).unwrap();
            assert!(validator.is_valid(&json!({"a": 1})));
            let issues = validator.validate(&json!({"a": "x"})).unwrap_err();
            assert_eq!(issues[0].path, "/a");
        }
    }

    #[test]
    fn nothing_outside_the_document_is_followed() {
        for reference in ["https://example.com/x.json", "file:///etc/passwd", "./other.json", "other.json#/a"] {
            let error = Validator::new(&json!({"properties": {"a": {"$ref": reference}}})).unwrap_err();
            assert!(error.contains(reference), "{error}");
        }
        let own = json!({"$id": "https://example.com/root.json", "$defs": {"a": {"$id": "a.json", "type": "string"}},
            "properties": {"a": {"$ref": "a.json"}}});
        assert!(!Validator::new(&own).unwrap().is_valid(&json!({"a": 1})));
    }

    #[test]
    fn bad_schemas_are_refused() {
        for schema in [json!({"type": "strin"}), json!([]), json!({"pattern": "("}), json!({"minimum": "1"})] {
            assert!(Validator::new(&schema).is_err(), "{schema}");
        }
        let set = SchemaSet::new(1);
        assert!(set.compile("{").unwrap_err().contains("not JSON"));
        assert!(set.compile("{\"type\":\"string\"}").is_ok());
        assert_eq!(set.lock().order.len(), 1);
    }

    #[test]
    fn patterns_may_look_around_but_not_run_away() {
        let ahead = Validator::new(&json!({"pattern": "^(?!role:)"})).unwrap();
        assert!(ahead.is_valid(&json!("mode:x")) && !ahead.is_valid(&json!("role:x")));
        let started = std::time::Instant::now();
        let hostile = Validator::new(&json!({"pattern": "^(?=(a+)+$)(a|aa)+b$"}));
        let _ = hostile.map(|validator| validator.is_valid(&json!("a".repeat(5_000))));
        assert!(started.elapsed().as_secs() < 20);
        assert!(Validator::new(&json!({"pattern": "((a{1000}){1000}){1000}"})).is_err());
    }

    #[test]
    fn issues_are_bounded() {
        let validator = Validator::new(&json!({"items": {"type": "string"}})).unwrap();
        let value = json!((0..1000).collect::<Vec<_>>());
        assert_eq!(validator.validate(&value).unwrap_err().len(), MAX_SCHEMA_ISSUES);
    }
}
