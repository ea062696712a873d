//! The keywords of each JSON type.
//!
//! The provider here has one type at most (alternatives were split before), so a keyword of another type is idle.

use serde_json::{Map, Value};

use super::relate::{Comparison, Relation, constrains, validator};

type Keys = Map<String, Value>;

/// Compares types and the keywords of the provider's type.
pub(super) fn relate(comparison: &mut Comparison<'_>, give: &Keys, ask: &Keys) -> Relation {
    let asked = types(ask);
    let Some(kind) = give.get("type").and_then(Value::as_str) else {
        // Without a type the provider may give anything; its other keywords promise nothing about that.
        return match asked {
            Some(_) => Relation::silent(),
            None if KEYED.iter().any(|key| ask.contains_key(*key)) => untyped(comparison, give, ask),
            None => Relation::Fits,
        };
    };
    if let Some(asked) = asked {
        let whole = asked.contains(&"integer");
        let accepted = asked.contains(&kind) || (kind == "integer" && asked.contains(&"number"));
        if !accepted && kind == "number" && whole {
            // Some numbers are whole; the provider does not say which it gives.
            return of_type(comparison, kind, give, ask).and(Relation::silent());
        }
        if !accepted {
            return Relation::disjoint(format!("{kind} is given, {} is accepted", asked.join(" or ")));
        }
    }
    of_type(comparison, kind, give, ask)
}

/// Keywords that constrain values of one type only.
pub(super) const KEYED: &[&str] = &[
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "items",
    "prefixItems",
    "additionalItems",
    "maxItems",
    "minItems",
    "uniqueItems",
    "contains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "dependencies",
    "dependentSchemas",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
];

/// Neither side has a type: each type must fit by itself.
fn untyped(comparison: &mut Comparison<'_>, give: &Keys, ask: &Keys) -> Relation {
    let mut relation = Relation::Fits;
    for kind in ["number", "string", "array", "object"] {
        relation = relation.and(match of_type(comparison, kind, give, ask) {
            // Other types may still fit.
            Relation::Disjoint(place) => Relation::Refused(place),
            other => other,
        });
    }
    relation
}

fn of_type(comparison: &mut Comparison<'_>, kind: &str, give: &Keys, ask: &Keys) -> Relation {
    match kind {
        "number" | "integer" => number(kind, give, ask),
        "string" => string(give, ask),
        "array" => array(comparison, give, ask),
        "object" => object(comparison, give, ask),
        _ => Relation::opaque("an unknown type"),
    }
}

fn types(keys: &Keys) -> Option<Vec<&str>> {
    match keys.get("type")? {
        Value::String(one) => Some(vec![one]),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => Some(Vec::new()),
    }
}

/// A bound; `open` leaves the value itself out.
#[derive(Clone, Copy, PartialEq)]
struct Bound {
    value: f64,
    open: bool,
}

/// Lower bounds are compared turned round, so that one rule serves both: the greater is the tighter.
fn bound(keys: &Keys, names: (&str, &str), sign: f64, whole: bool) -> Result<Option<Bound>, Relation> {
    let mut found: Option<Bound> = None;
    for (name, open) in [(names.0, false), (names.1, true)] {
        let Some(value) = keys.get(name) else {
            continue;
        };
        let Some(mut value) = value.as_f64().filter(|value| value.abs() < 9e15) else {
            return Err(Relation::opaque(format!("`{name}` is not a number that can be compared")));
        };
        value *= sign;
        let mut open = open;
        if whole {
            value = if open { value.floor() + 1.0 } else { value.ceil() };
            open = false;
        }
        let tighter = found.is_none_or(|before| value > before.value || (value == before.value && open));
        if tighter {
            found = Some(Bound { value, open });
        }
    }
    Ok(found)
}

/// Compares one bound: `low` is the provider's on this side, `high` its one on the other side.
fn compare(name: &str, ask: Option<Bound>, low: Option<Bound>, high: Option<Bound>) -> Relation {
    let Some(asked) = ask else {
        return Relation::Fits;
    };
    let enough =
        |given: Bound| given.value > asked.value || (given.value == asked.value && (given.open || !asked.open));
    if low.is_some_and(enough) {
        return Relation::Fits;
    }
    // The far bound, seen from this side, is at its negative.
    let far = high.map(|high| Bound { value: -high.value, open: high.open });
    if far.is_some_and(|far| far.value < asked.value || (far.value == asked.value && (far.open || asked.open))) {
        return Relation::disjoint(format!("every value is beyond `{name}`"));
    }
    match low {
        Some(given)
            if far.is_none_or(|far| {
                far.value > given.value || (far.value == given.value && !far.open && !given.open)
            }) =>
        {
            Relation::refused(format!("values beyond `{name}` are given"))
        }
        Some(_) => Relation::opaque("the provider's bounds leave nothing"),
        None => Relation::silent(),
    }
}

fn range(give: &Keys, ask: &Keys, low: (&str, &str), high: (&str, &str), whole: bool, floor: Option<f64>) -> Relation {
    let read = |keys: &Keys| Ok::<_, Relation>((bound(keys, low, 1.0, whole)?, bound(keys, high, -1.0, whole)?));
    match (read(give), read(ask)) {
        (Ok((given_low, given_high)), Ok((asked_low, asked_high))) => {
            let natural = floor.map(|value| Bound { value, open: false });
            // A count is never below nothing; that is known, not stated, so it proves a fit but names no value.
            let lower = if asked_low.is_none_or(|asked| natural.is_some_and(|floor| floor.value >= asked.value)) {
                Relation::Fits
            } else {
                compare(low.0, asked_low, given_low, given_high)
            };
            lower.and(compare(high.0, asked_high, given_high, given_low.or(natural)))
        }
        (Err(relation), _) | (_, Err(relation)) => relation,
    }
}

fn number(kind: &str, give: &Keys, ask: &Keys) -> Relation {
    let whole = kind == "integer";
    let (low, high) = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"));
    let mut relation = range(give, ask, low, high, whole, None);
    if let Some(asked) = ask.get("multipleOf") {
        let step = |value: &Value| value.as_u64().filter(|step| *step > 0);
        let given = give.get("multipleOf");
        relation = relation.and(match (given, step(asked)) {
            (Some(given), _) if given == asked => Relation::Fits,
            (_, Some(1)) if whole => Relation::Fits,
            (Some(given), Some(asked)) if step(given).is_some_and(|given| given % asked == 0) => Relation::Fits,
            (None, _) => Relation::silent(),
            _ => Relation::opaque("the two `multipleOf` are not compared"),
        });
    }
    relation
}

fn string(give: &Keys, ask: &Keys) -> Relation {
    let mut relation = range(give, ask, ("minLength", ""), ("maxLength", ""), true, Some(0.0));
    if give.contains_key("pattern") {
        // The pattern may rule out the lengths the bounds leave.
        relation = relation.narrowed();
    }
    let Some(asked) = ask.get("pattern").and_then(Value::as_str) else {
        return relation;
    };
    let given = give.get("pattern").and_then(Value::as_str);
    relation = relation.and(match given {
        None => Relation::silent(),
        Some(given) if given == asked => Relation::Fits,
        Some(given) => match (prefix(given), prefix(asked)) {
            (Some(given), Some(asked)) if given.starts_with(&asked) => Relation::Fits,
            (Some(given), Some(asked)) if !asked.starts_with(&given) => {
                Relation::disjoint(format!("texts begin with `{given}`, accepted ones with `{asked}`"))
            }
            // The shorter prefix alone is a text it permits, unless its length is bounded too.
            (Some(given), Some(asked)) if !give.contains_key("minLength") && !give.contains_key("maxLength") => {
                Relation::refused(format!("texts begin with `{given}`, accepted ones with `{asked}`"))
            }
            _ => Relation::opaque("only patterns that are an anchored literal prefix are compared"),
        },
    });
    relation
}

/// The literal of a pattern `^literal`, when it is nothing else.
fn prefix(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.strip_prefix('^')?.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => match chars.next()? {
                escaped if escaped.is_ascii_punctuation() => out.push(escaped),
                _ => return None,
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            plain => out.push(plain),
        }
    }
    Some(out)
}

fn array(comparison: &mut Comparison<'_>, give: &Keys, ask: &Keys) -> Relation {
    let mut relation = range(give, ask, ("minItems", ""), ("maxItems", ""), true, Some(0.0));
    let at_most = give.get("maxItems").and_then(Value::as_u64);
    let tuple = |keys: &Keys| keys.contains_key("prefixItems") || keys.get("items").is_some_and(Value::is_array);
    if at_most == Some(0) {
        // No item, nothing to ask of items.
    } else if tuple(ask) || ask.contains_key("additionalItems") {
        let same = ["prefixItems", "items", "additionalItems"].iter().all(|key| give.get(*key) == ask.get(*key));
        if !same || refers(ask) {
            relation = relation.and(Relation::opaque("lists with places of their own are not compared"));
        }
    } else if let Some(asked) = ask.get("items").filter(|asked| constrains(asked)) {
        relation = relation.and(match give.get("items") {
            _ if tuple(give) => Relation::opaque("lists with places of their own are not compared"),
            None => Relation::silent(),
            Some(given) => match comparison.relate(given, asked).below("*") {
                // An empty list has no item that could be refused.
                Relation::Disjoint(place) if give.get("minItems").and_then(Value::as_u64).unwrap_or(0) == 0 => {
                    Relation::Refused(place)
                }
                other => other,
            },
        });
    }
    if ask.get("uniqueItems") == Some(&Value::Bool(true))
        && give.get("uniqueItems") != Some(&Value::Bool(true))
        && at_most.is_none_or(|most| most > 1)
    {
        relation = relation.and(Relation::silent());
    }
    same_or_opaque(relation, give, ask, &["contains", "minContains", "maxContains"])
}

/// Keywords that are only compared as a whole: equal on both sides, or undecidable.
fn same_or_opaque(relation: Relation, give: &Keys, ask: &Keys, keys: &[&str]) -> Relation {
    let asked = keys.iter().find(|key| ask.contains_key(**key));
    let same = keys.iter().all(|key| give.get(*key) == ask.get(*key))
        && !keys.iter().filter_map(|key| ask.get(*key)).any(|value| value.as_object().is_some_and(refers));
    match asked {
        Some(key) if !same => relation.and(Relation::opaque(format!("`{key}` is not compared"))),
        _ => relation,
    }
}

/// Does a part point elsewhere? Then equal text need not mean the same.
fn refers(keys: &Keys) -> bool {
    fn inside(value: &Value) -> bool {
        match value {
            Value::Object(map) => refers(map),
            Value::Array(items) => items.iter().any(inside),
            _ => false,
        }
    }
    ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| keys.contains_key(*key)) || keys.values().any(inside)
}

fn object(comparison: &mut Comparison<'_>, give: &Keys, ask: &Keys) -> Relation {
    let nothing = Keys::new();
    let fields = |keys: &'_ Keys| keys.get("properties").and_then(Value::as_object).cloned();
    let (given, asked) = (fields(give).unwrap_or_default(), fields(ask).unwrap_or_default());
    let names = |keys: &Keys| -> Vec<String> {
        let listed = keys.get("required").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let always = names(give);
    let patterned = give.get("patternProperties").and_then(Value::as_object).unwrap_or(&nothing);
    let rest = give.get("additionalProperties");
    let closed = rest == Some(&Value::Bool(false)) && patterned.is_empty();
    let never = |name: &str| match given.get(name) {
        Some(schema) => schema == &Value::Bool(false),
        None => closed,
    };
    let mut relation = Relation::Fits;
    for name in names(ask) {
        if never(&name) {
            return Relation::disjoint("a required field is never given").below(&name);
        }
        if !always.contains(&name) {
            relation = relation.and(Relation::silent());
        }
    }
    // What is refused in a field that is always there is refused as a whole.
    let field = |relation: Relation, name: &str| match relation.below(name) {
        Relation::Disjoint(place) if !always.iter().any(|one| one == name) => Relation::Refused(place),
        other => other,
    };
    for (name, schema) in &asked {
        if !constrains(schema) || never(name) {
            continue;
        }
        let part = match (given.get(name), rest) {
            (Some(known), _) => comparison.relate(known, schema),
            (None, _) if !patterned.is_empty() => Relation::opaque("`patternProperties` is not compared"),
            (None, Some(Value::Bool(_)) | None) => Relation::silent(),
            (None, Some(other)) => comparison.relate(other, schema),
        };
        relation = relation.and(field(part, name));
    }
    if let Some(other) = ask.get("additionalProperties").filter(|other| constrains(other)) {
        let by_pattern: Vec<&String> =
            ask.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Keys::keys).collect();
        for (name, schema) in given.iter().filter(|(name, _)| !asked.contains_key(*name) && !never(name)) {
            let part = if by_pattern.is_empty() {
                comparison.relate(schema, other)
            } else {
                Relation::opaque("`patternProperties` is not compared")
            };
            relation = relation.and(field(part, name));
        }
        if !closed {
            relation = relation.and(match rest {
                _ if !patterned.is_empty() => Relation::opaque("`patternProperties` is not compared"),
                Some(more @ Value::Object(_)) => match comparison.relate(more, other).below("*") {
                    Relation::Disjoint(place) => Relation::Refused(place),
                    fits => fits,
                },
                _ => Relation::silent(),
            });
        }
    }
    let most = if closed { Some(given.len() as u64) } else { None };
    let mut sized = give.clone();
    let stated = |name: &str| give.get(name).and_then(Value::as_u64);
    let least = stated("minProperties").unwrap_or(0).max(always.len() as u64);
    if least > 0 {
        sized.insert("minProperties".into(), least.into());
    }
    if let Some(most) = most.map(|most| most.min(stated("maxProperties").unwrap_or(u64::MAX))) {
        sized.insert("maxProperties".into(), most.into());
    }
    let counted = range(&sized, ask, ("minProperties", ""), ("maxProperties", ""), true, Some(0.0));
    relation = relation.and(match counted {
        // Derived counts prove a fit; they name no refused value unless the provider stated them.
        Relation::Refused(_) => Relation::silent(),
        other => other,
    });
    let whole = ["patternProperties", "propertyNames", "dependentRequired", "dependencies", "dependentSchemas"];
    if closed && given.keys().all(|name| names_fit(ask, name)) {
        return same_or_opaque(relation, give, ask, &whole[2..]);
    }
    whole.iter().fold(relation, |relation, key| same_or_opaque(relation, give, ask, &[key]))
}

/// Is a field outside `patternProperties` and inside `propertyNames`?
fn names_fit(ask: &Keys, name: &str) -> bool {
    let name = Value::from(name);
    let patterns = ask.get("patternProperties").and_then(Value::as_object);
    let untouched = patterns.into_iter().flat_map(Keys::keys).all(|pattern| {
        let schema = serde_json::json!({"pattern": pattern});
        validator(&schema, &Value::Null).is_some_and(|found| !found.is_valid(&name))
    });
    let named = ask.get("propertyNames").is_none_or(|schema| {
        schema.as_object().is_some_and(|keys| !refers(keys))
            && validator(schema, &Value::Null).is_some_and(|found| found.is_valid(&name))
    });
    untouched && named
}
