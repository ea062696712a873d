//! Can what a provider publishes ever break what a consumer accepts? Answered from the two schemas alone.
//!
//! *Compatible* is proved: every value the provider's schema permits is accepted. *Incompatible* is proved too: the
//! provider's schema names (by a type, a bound, a literal, a pattern prefix) values that are refused, or none of its
//! values could be accepted. Everything else is *indeterminate*, and the value decides at the turn. What a schema is
//! silent about counts as indeterminate, never as a promise: a number without a lower bound may well never be negative.

mod kinds;
mod link;
mod relate;

use serde_json::Value;

pub(crate) use link::check;
use relate::{Comparison, Relation};

/// Outcome of comparing a provider's schema with what a consumer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Compatibility {
    /// Every value fits.
    Compatible = 0,
    /// The value decides.
    Indeterminate = 1,
    /// The schemas contradict each other.
    Incompatible = 2,
}

impl Compatibility {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Compatibility::Compatible => "compatible",
            Compatibility::Indeterminate => "indeterminate",
            Compatibility::Incompatible => "incompatible",
        }
    }
}

/// A compatibility with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The outcome.
    pub compatibility: Compatibility,
    /// Indeterminate although both schemas speak of the matter: a construct beyond what can be proved.
    pub undecidable: bool,
    /// JSON pointer into the value where the schemas part, when they do.
    pub at: String,
    /// What parts them, in a few words; empty when compatible.
    pub because: String,
}

/// One side of a comparison: a schema inside the document its references point into.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    /// The whole document.
    pub root: &'a Value,
    /// The schema itself, usually the root.
    pub schema: &'a Value,
}

impl<'a> Schema<'a> {
    /// A whole document.
    pub fn document(root: &'a Value) -> Self {
        Self { root, schema: root }
    }
}

/// Compares a provider's schema, narrowed to `select` (an RFC 6901 pointer) when given, with an accepted one.
///
/// `all` compares the list of what every provider gives, as an input of cardinality `all` receives it.
/// Work is bounded by [`crate::limits::MAX_COMPATIBILITY_STEPS`]; beyond, the outcome is indeterminate. COM-1
pub fn compatibility(provider: Schema<'_>, select: Option<&str>, all: bool, accepts: Schema<'_>) -> Verdict {
    let selected = match select {
        None => Selected::Schema(provider.schema, false),
        Some(pointer) => select_schema(provider, pointer),
    };
    let relation = match selected {
        Selected::Schema(schema, narrowed) => {
            let listed;
            let schema = if all {
                listed = serde_json::json!({"type": "array", "items": schema, "minItems": 1});
                &listed
            } else {
                schema
            };
            if schema == accepts.schema && provider.root == accepts.root {
                Relation::Fits
            } else {
                let relation = Comparison::new(provider.root, accepts.root).relate(schema, accepts.schema);
                if narrowed { relation.narrowed() } else { relation }
            }
        }
        Selected::Never => Relation::disjoint("the provider's schema has nothing at the selected place"),
        Selected::Silent => Relation::silent(),
        Selected::Unclear => Relation::opaque("the selected place cannot be found in the provider's schema"),
    };
    relation.verdict()
}

/// What a pointer leads to in a schema.
enum Selected<'a> {
    /// A schema, and whether something beside it may exclude values it permits.
    Schema(&'a Value, bool),
    /// A closed schema without this place.
    Never,
    /// The schema says nothing of this place.
    Silent,
    /// A construct that is not looked through.
    Unclear,
}

/// Keywords that say something of a place from outside `properties` and `items`.
const MIXED: &[&str] = &[
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "const",
    "enum",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "contains",
    "$dynamicRef",
    "$recursiveRef",
];

fn select_schema<'a>(provider: Schema<'a>, pointer: &str) -> Selected<'a> {
    let mut at = provider.schema;
    if pointer.is_empty() {
        return Selected::Schema(at, false);
    }
    let mut narrowed = false;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let mut hops = 0;
        while let Some(reference) = at.get("$ref") {
            hops += 1;
            match relate::resolve(provider.root, at, reference) {
                Some(target) if hops <= relate::MAX_HOPS => at = target,
                _ => return Selected::Unclear,
            }
        }
        let Some(map) = at.as_object() else {
            return if at == &Value::Bool(false) { Selected::Never } else { Selected::Silent };
        };
        let mixed = MIXED.iter().any(|key| map.contains_key(*key));
        narrowed |= mixed;
        let kind = map.get("type").and_then(Value::as_str);
        let index = is_index(&token).then(|| token.parse::<usize>().ok()).flatten();
        let found = match (kind, index) {
            (Some("array"), None) => return Selected::Never,
            (Some("array"), Some(index)) => {
                let first = map.get("prefixItems").or_else(|| map.get("items").filter(|items| items.is_array()));
                match first.map(|items| items.get(index)) {
                    Some(Some(schema)) => Some(schema),
                    Some(None) => return Selected::Unclear,
                    None => map.get("items"),
                }
            }
            // Without a type the value may be a list, where a number means a place in it.
            (None, Some(_)) if !map.is_empty() => return Selected::Unclear,
            (None | Some("object"), _) => match map.get("properties").and_then(|known| known.get(&token)) {
                Some(schema) => Some(schema),
                None if map.contains_key("patternProperties") => return Selected::Unclear,
                None => map.get("additionalProperties"),
            },
            (Some(_), _) => return Selected::Never,
        };
        at = match found {
            Some(Value::Bool(false)) if kind.is_some() => return Selected::Never,
            Some(schema) => schema,
            None if mixed || map.get("type").is_some_and(Value::is_array) => {
                return Selected::Unclear;
            }
            None => return Selected::Silent,
        };
    }
    Selected::Schema(at, narrowed)
}

/// An array index of RFC 6901: no sign, no leading zero.
fn is_index(token: &str) -> bool {
    token == "0" || (!token.starts_with('0') && !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit()))
}
