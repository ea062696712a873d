//! The comparison itself: combinators, references, finite sets of values; the keywords of each type are in `kinds.rs`.

use serde_json::{Map, Value, json};

use super::{
    Compatibility, Verdict,
    kinds::{self, KEYED},
};
use crate::{
    limits::{MAX_COMPATIBILITY_DEPTH, MAX_COMPATIBILITY_STEPS, MAX_COMPATIBILITY_VALUES},
    schema::Validator,
};

/// Most references followed one after another.
pub(super) const MAX_HOPS: usize = 32;

/// How the values of one schema lie in those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// All of them fit.
    Fits,
    /// Some do not, and the schema names them.
    Refused(Place),
    /// None fits.
    Disjoint(Place),
    /// The provider's schema does not speak of what is asked.
    Silent,
    /// A construct beyond what can be proved.
    Opaque(Place),
}

/// Where and why two schemas part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: String,
    pub(super) because: String,
}

impl Relation {
    pub(super) fn refused(because: impl Into<String>) -> Self {
        Relation::Refused(Place { at: String::new(), because: because.into() })
    }
    pub(super) fn disjoint(because: impl Into<String>) -> Self {
        Relation::Disjoint(Place { at: String::new(), because: because.into() })
    }
    pub(super) fn opaque(because: impl Into<String>) -> Self {
        Relation::Opaque(Place { at: String::new(), because: because.into() })
    }
    pub(super) fn silent() -> Self {
        Relation::Silent
    }

    /// The same, one step further out.
    pub(super) fn below(self, token: &str) -> Self {
        let step = |mut place: Place| {
            place.at = format!("/{}{}", token.replace('~', "~0").replace('/', "~1"), place.at);
            place
        };
        match self {
            Relation::Refused(place) => Relation::Refused(step(place)),
            Relation::Disjoint(place) => Relation::Disjoint(step(place)),
            Relation::Opaque(place) => Relation::Opaque(step(place)),
            other => other,
        }
    }

    /// All of several demands on one value: the worst counts.
    pub(super) fn and(self, other: Relation) -> Relation {
        fn rank(relation: &Relation) -> u8 {
            match relation {
                Relation::Fits => 0,
                Relation::Silent => 1,
                Relation::Opaque(_) => 2,
                Relation::Refused(_) => 3,
                Relation::Disjoint(_) => 4,
            }
        }
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// What is left when the provider's schema is narrower than what was compared: named values may be excluded.
    pub(super) fn narrowed(self) -> Relation {
        match self {
            Relation::Refused(place) => Relation::Opaque(place),
            other => other,
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        let (compatibility, undecidable, place) = match self {
            Relation::Fits => (Compatibility::Compatible, false, Place::default()),
            Relation::Silent => (Compatibility::Indeterminate, false, Place::default()),
            Relation::Opaque(place) => (Compatibility::Indeterminate, true, place),
            Relation::Refused(place) | Relation::Disjoint(place) => (Compatibility::Incompatible, false, place),
        };
        Verdict { compatibility, undecidable, at: place.at, because: place.because }
    }
}

/// Keywords that constrain values of any type, or by what another keyword leaves.
const GENERAL: &[&str] = &[
    "type",
    "const",
    "enum",
    "unevaluatedItems",
    "minContains",
    "maxContains",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
];

/// Does the keyword constrain a value? Anything else is an annotation.
fn is_assertion(key: &str) -> bool {
    GENERAL.contains(&key) || KEYED.contains(&key)
}

/// Keywords of a provider that exclude values in ways not looked into.
const NARROWING: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependencies",
    "dependentSchemas",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "$dynamicRef",
    "$recursiveRef",
    "multipleOf",
    "patternProperties",
    "prefixItems",
    "additionalItems",
    "uniqueItems",
    "maxProperties",
];
/// Keywords of a consumer that ask for what is not looked into. The keywords of a type are judged with the type.
const ASKING: &[&str] =
    &["if", "then", "else", "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"];

/// The target of a local reference, when it may be followed: nothing beside it constrains, no inner base moves it.
pub(super) fn resolve<'a>(root: &'a Value, schema: &Value, reference: &Value) -> Option<&'a Value> {
    let alone = schema.as_object()?.keys().all(|key| key == "$ref" || !is_assertion(key));
    let pointer = reference.as_str()?.strip_prefix('#')?;
    if !alone || pointer.contains('%') || has_inner_id(root, true) {
        return None;
    }
    if pointer.is_empty() || pointer.starts_with('/') { root.pointer(pointer) } else { None }
}

fn has_inner_id(value: &Value, outermost: bool) -> bool {
    match value {
        Value::Object(map) => {
            (!outermost && map.get("$id").is_some_and(Value::is_string))
                || map.values().any(|item| has_inner_id(item, false))
        }
        Value::Array(items) => items.iter().any(|item| has_inner_id(item, false)),
        _ => false,
    }
}

pub(super) fn constrains(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match key.as_str() {
            // These say nothing in these forms.
            "additionalProperties" => constrains(value),
            "items" => value.is_array() || constrains(value),
            "required" => value.as_array().is_none_or(|names| !names.is_empty()),
            key => is_assertion(key),
        }),
        Value::Bool(true) => false,
        _ => true,
    }
}

/// One comparison, with its budget.
pub(super) struct Comparison<'a> {
    provider: &'a Value,
    accepts: &'a Value,
    steps: usize,
    depth: usize,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(provider: &'a Value, accepts: &'a Value) -> Self {
        Self { provider, accepts, steps: 0, depth: 0 }
    }

    pub(super) fn relate(&mut self, p: &Value, a: &Value) -> Relation {
        self.steps += 1;
        if self.steps > MAX_COMPATIBILITY_STEPS || self.depth > MAX_COMPATIBILITY_DEPTH {
            return Relation::opaque("the schemas are too large to compare");
        }
        self.depth += 1;
        let relation = self.step(p, a);
        self.depth -= 1;
        relation
    }

    fn step(&mut self, p: &Value, a: &Value) -> Relation {
        if !constrains(a) || p == &Value::Bool(false) {
            return Relation::Fits;
        }
        if a == &Value::Bool(false) {
            return Relation::disjoint("nothing is accepted here");
        }
        let (Value::Object(ask), true) = (a, matches!(p, Value::Object(_) | Value::Bool(_))) else {
            return Relation::opaque("this is not a schema");
        };
        if let Some(reference) = p.get("$ref") {
            return match resolve(self.provider, p, reference) {
                Some(target) => self.relate(target, a),
                None => Relation::opaque("the provider's reference is not followed"),
            };
        }
        if let Some(reference) = ask.get("$ref") {
            return match resolve(self.accepts, a, reference) {
                Some(target) => self.relate(p, target),
                None => Relation::opaque("the accepted reference is not followed"),
            };
        }
        let nothing = Map::new();
        let give = p.as_object().unwrap_or(&nothing);
        if let Some(values) = finite(give) {
            return self.finite(p, &values, a);
        }
        if let Some(relation) = self.provider_combinators(give, a) {
            return relation;
        }
        let mut relation = self.accepted_combinators(p, ask);
        if ask.contains_key("const") || ask.contains_key("enum") {
            relation = relation.and(self.literals(p, ask));
        }
        relation = relation.and(kinds::relate(self, give, ask));
        for key in ASKING {
            if ask.contains_key(*key) {
                relation = relation.and(Relation::opaque(format!("`{key}` is not compared")));
            }
        }
        if NARROWING.iter().any(|key| give.contains_key(*key)) {
            relation = relation.narrowed();
        }
        relation
    }

    /// A provider that names its values: each is tried.
    fn finite(&mut self, p: &Value, values: &[Value], a: &Value) -> Relation {
        if values.len() > MAX_COMPATIBILITY_VALUES {
            return Relation::opaque("too many values are listed");
        }
        self.steps += values.len();
        let (Some(gives), Some(takes)) = (validator(p, self.provider), validator(a, self.accepts)) else {
            return Relation::opaque("a part of the schema cannot be checked alone");
        };
        let given: Vec<&Value> = values.iter().filter(|value| gives.is_valid(value)).collect();
        let refused: Vec<&&Value> = given.iter().filter(|value| !takes.is_valid(value)).collect();
        match refused.first() {
            None => Relation::Fits,
            Some(value) if refused.len() == given.len() => Relation::disjoint(format!("{} is refused", shown(value))),
            Some(value) => Relation::refused(format!("{} is refused", shown(value))),
        }
    }

    /// The provider's alternatives and conjunctions; `None` when it has none.
    fn provider_combinators(&mut self, give: &Map<String, Value>, a: &Value) -> Option<Relation> {
        if let Some(Value::Array(types)) = give.get("type") {
            let branches: Vec<Value> = types.iter().map(|one| json!({"type": one})).collect();
            return Some(self.alternatives(give, "type", &branches, true, a));
        }
        for (key, exact) in [("anyOf", true), ("oneOf", false)] {
            if let Some(Value::Array(branches)) = give.get(key) {
                return Some(self.alternatives(give, key, branches, exact, a));
            }
        }
        let Some(Value::Array(branches)) = give.get("allOf") else {
            return None;
        };
        let base = without(give, "allOf");
        let mut merged = Some(base.clone());
        for branch in branches {
            merged = merged.and_then(|whole| merge(&whole, branch.as_object()?));
        }
        if let Some(merged) = merged {
            return Some(self.relate(&Value::Object(merged), a));
        }
        // Not mergeable: any one part that settles the matter settles it for the whole.
        let mut whole = self.relate(&Value::Object(base), a).narrowed();
        for branch in branches {
            let part = self.relate(branch, a).narrowed();
            whole = match (whole, part) {
                (Relation::Fits, _) | (_, Relation::Fits) => Relation::Fits,
                (Relation::Disjoint(place), _) | (_, Relation::Disjoint(place)) => Relation::Disjoint(place),
                (Relation::Opaque(place), _) | (_, Relation::Opaque(place)) => Relation::Opaque(place),
                _ => Relation::Silent,
            };
        }
        Some(whole)
    }

    fn alternatives(
        &mut self,
        give: &Map<String, Value>,
        key: &str,
        branches: &[Value],
        exact: bool,
        a: &Value,
    ) -> Relation {
        let base = without(give, key);
        let whole = self.relate(&Value::Object(base.clone()), a);
        if matches!(whole, Relation::Fits | Relation::Disjoint(_)) {
            return whole;
        }
        let mut all: Option<Relation> = None;
        let (mut fits, mut never) = (0, 0);
        for branch in branches {
            let part = match branch.as_object().and_then(|branch| merge(&base, branch)) {
                Some(merged) => self.relate(&Value::Object(merged), a),
                None => self.relate(branch, a).narrowed(),
            };
            fits += usize::from(part == Relation::Fits);
            never += usize::from(matches!(part, Relation::Disjoint(_)));
            all = Some(match all {
                Some(before) => before.and(part),
                None => part,
            });
        }
        match all {
            None => Relation::opaque("the provider has no alternative"),
            Some(_) if fits == branches.len() => Relation::Fits,
            Some(relation) if never == branches.len() => relation,
            // A branch nothing of which fits is refused as a whole, other branches aside.
            Some(Relation::Refused(place) | Relation::Disjoint(place)) if exact => Relation::Refused(place),
            // A value of one branch of `oneOf` may be excluded by another.
            Some(Relation::Refused(place) | Relation::Disjoint(place)) => Relation::Opaque(place),
            Some(relation) => relation,
        }
    }

    /// The consumer's alternatives, conjunctions and negation.
    fn accepted_combinators(&mut self, p: &Value, ask: &Map<String, Value>) -> Relation {
        let mut relation = Relation::Fits;
        if let Some(Value::Array(parts)) = ask.get("allOf") {
            for part in parts {
                relation = relation.and(self.relate(p, part));
            }
        }
        for (key, one) in [("anyOf", false), ("oneOf", true)] {
            let Some(Value::Array(branches)) = ask.get(key) else {
                continue;
            };
            let parts: Vec<Relation> = branches.iter().map(|branch| self.relate(p, branch)).collect();
            let never = parts.iter().filter(|part| matches!(part, Relation::Disjoint(_))).count();
            relation = relation.and(if never == parts.len() {
                Relation::disjoint(format!("no alternative of `{key}` can fit"))
            } else if parts.contains(&Relation::Fits) && !one {
                Relation::Fits
            } else {
                Relation::opaque(format!("which alternative of `{key}` fits depends on the value"))
            });
        }
        if let Some(denied) = ask.get("not") {
            relation = relation.and(match self.relate(p, denied) {
                Relation::Disjoint(_) => Relation::Fits,
                Relation::Fits => Relation::disjoint("`not` denies every value"),
                _ => Relation::opaque("whether `not` denies it depends on the value"),
            });
        }
        relation
    }

    /// Accepted literals against a provider with infinitely many values.
    fn literals(&mut self, p: &Value, ask: &Map<String, Value>) -> Relation {
        let values: Vec<&Value> = match (ask.get("const"), ask.get("enum")) {
            (Some(value), _) => vec![value],
            (None, Some(Value::Array(values))) if values.len() <= MAX_COMPATIBILITY_VALUES => values.iter().collect(),
            _ => return Relation::opaque("too many values are listed"),
        };
        self.steps += values.len();
        match validator(p, self.provider) {
            Some(gives) if !values.iter().any(|value| gives.is_valid(value)) => {
                Relation::disjoint("none of the accepted values is given")
            }
            Some(_) => Relation::Silent,
            None => Relation::opaque("a part of the schema cannot be checked alone"),
        }
    }
}

/// The values of a schema that lists them.
fn finite(give: &Map<String, Value>) -> Option<Vec<Value>> {
    if let Some(value) = give.get("const") {
        return Some(vec![value.clone()]);
    }
    if let Some(Value::Array(values)) = give.get("enum") {
        return Some(values.clone());
    }
    match give.get("type").and_then(Value::as_str) {
        Some("boolean") => Some(vec![json!(true), json!(false)]),
        Some("null") => Some(vec![Value::Null]),
        _ => None,
    }
}

/// Compiles a part of a document with the definitions it may point to.
pub(super) fn validator(part: &Value, root: &Value) -> Option<Validator> {
    let Value::Object(map) = part else {
        return Validator::new(part).ok();
    };
    let mut whole = map.clone();
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(value) = root.get(key) {
            whole.entry(key).or_insert_with(|| value.clone());
        }
    }
    Validator::new(&Value::Object(whole)).ok()
}

fn without(map: &Map<String, Value>, key: &str) -> Map<String, Value> {
    map.iter().filter(|(name, _)| *name != key).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Two schemas of one value as one, when their keywords do not interfere.
fn merge(base: &Map<String, Value>, branch: &Map<String, Value>) -> Option<Map<String, Value>> {
    // What these mean depends on their neighbours.
    const CONTEXTUAL: &[&str] = &[
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "$ref",
        "if",
        "then",
        "else",
    ];
    let contextual = |map: &Map<String, Value>| CONTEXTUAL.iter().any(|key| map.contains_key(*key));
    let (mut whole, small) = (base.clone(), branch);
    let lean = |map: &Map<String, Value>| map.keys().all(|key| key == "type" || !is_assertion(key));
    if (contextual(base) && !lean(branch)) || (contextual(branch) && !lean(base)) {
        return None;
    }
    for (key, value) in small {
        match (whole.get_mut(key), value) {
            (None, _) => {
                whole.insert(key.clone(), value.clone());
            }
            (Some(before), _) if before == value || !is_assertion(key) => {}
            (Some(Value::Object(before)), Value::Object(more)) if key == "properties" => {
                for (name, schema) in more {
                    match before.get(name) {
                        Some(known) if known != schema => return None,
                        _ => before.insert(name.clone(), schema.clone()),
                    };
                }
            }
            (Some(Value::Array(before)), Value::Array(more)) if key == "required" => {
                before.extend(more.iter().cloned());
            }
            _ => return None,
        }
    }
    Some(whole)
}

/// A value for a message, shortened.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 { text } else { text.chars().take(40).collect::<String>() + "..." }
}
