//! Dimensions: values of the world that one package keeps (`world.dimensions@1`), each with a schema and a version.
//!
//! Everyone sees the values as they were when the execution began. A batch of updates applies whole or not at all, and
//! only to the versions it names: it is never laid over newer ones. SWC-3

use covel_graph::{Json, schema::Validator};
use serde_json::{Map, Value, json};

use super::{
    WorldFault,
    dimension_schema::{check_subset, in_language, pick},
};
use crate::{
    active::check,
    limits::{MAX_DATA_NAME_BYTES, MAX_DIMENSION_UPDATES, MAX_DIMENSIONS, MAX_UPDATE_RULE_CHARS},
    write::{Fault, filled, optional, within_limit},
};

/// Definitions of a `dimension.initialize`, by id, in the author's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Definitions(pub Vec<(String, Definition)>);

/// One definition: `{name, description?, schema, initialValue, updateRule?}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    raw: Map<String, Value>,
}

/// A `dimension.update`.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionUpdate {
    /// What changes.
    pub updates: Vec<OneUpdate>,
    /// The narrative this settles.
    pub source: Option<Source>,
    /// Versions that must still be the newest.
    pub read_versions: Vec<(String, u64)>,
    /// How it settles, when not by its updates.
    pub settlement: Option<Settlement>,
}

/// One value of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct OneUpdate {
    /// Dimension.
    pub id: String,
    /// The version it replaces.
    pub expected_version: u64,
    /// New value.
    pub value: Json,
}

/// Which narrative an update follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its result id.
    pub result_id: String,
    /// Its logical turn.
    pub turn_number: u64,
}

/// How a receipt is resolved otherwise than by updates of a tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Looked at, nothing to change.
    NoChange,
    /// Settled by hand.
    Manual,
    /// Left as it is, by hand.
    Skipped,
}

impl Settlement {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoChange => "no-change",
            Self::Manual => "manual",
            Self::Skipped => "skipped",
        }
    }
}

impl Definitions {
    /// Reads a payload `{definitions}`.
    ///
    /// # Errors
    /// A [`Fault`] naming the dimension and what is wrong.
    pub fn read(payload: &Map<String, Value>) -> Result<Self, Fault> {
        let map = payload.get("definitions").and_then(Value::as_object).ok_or("has an object `definitions`")?;
        if map.len() > MAX_DIMENSIONS {
            return Err(Fault::Rule(format!("has {} dimensions; at most {MAX_DIMENSIONS}", map.len())));
        }
        let mut all = Vec::with_capacity(map.len());
        for (id, definition) in map {
            let place = |fault: Fault| Fault::Rule(fault.at(&format!("definitions.{id}")));
            check_id(id).map_err(place)?;
            let object = definition.as_object().ok_or_else(|| Fault::NotAnObject(format!(".definitions.{id}")))?;
            all.push((id.clone(), Definition::read(object).map_err(place)?));
        }
        Ok(Self(all))
    }

    /// The payload that [`Definitions::read`] reads back.
    pub fn payload(&self) -> Value {
        let all = self.0.iter().map(|(id, definition)| (id.clone(), Value::Object(definition.raw.clone())));
        json!({"definitions": all.collect::<Map<_, _>>()})
    }

    /// Bytes of all definitions.
    pub fn bytes(&self) -> usize {
        let size = |definition: &Definition| Json::from_value(Value::Object(definition.raw.clone())).byte_len();
        self.0.iter().map(|(_, definition)| size(definition)).sum()
    }
}

fn check_id(id: &str) -> Result<(), Fault> {
    if id.is_empty() || id.len() > MAX_DATA_NAME_BYTES {
        return Err(Fault::Rule(format!("a dimension id has 1 to {MAX_DATA_NAME_BYTES} bytes")));
    }
    Ok(())
}

impl Definition {
    /// Reads one definition; `initial` is taken for `initialValue` too.
    ///
    /// # Errors
    /// A [`Fault`].
    pub fn read(object: &Map<String, Value>) -> Result<Self, Fault> {
        if !object.contains_key("name") {
            return Err("has no `name`".into());
        }
        let schema = object.get("schema").ok_or("has no `schema`")?;
        check_subset(schema)?;
        let mut raw = Map::new();
        for key in ["name", "description", "schema"] {
            if let Some(value) = object.get(key).filter(|value| !value.is_null()) {
                raw.insert(key.into(), value.clone());
            }
        }
        let initial = object.get("initialValue").or_else(|| object.get("initial")).ok_or("has no `initialValue`")?;
        raw.insert("initialValue".into(), initial.clone());
        match object.get("updateRule") {
            None | Some(Value::Null) => {}
            Some(rule @ (Value::String(_) | Value::Object(_))) => {
                raw.insert("updateRule".into(), rule.clone());
            }
            Some(_) => return Err("`updateRule` is a text, or a map of language to text".into()),
        }
        within_limit("the definition", Json::from_value(Value::Object(raw.clone())))?;
        Ok(Self { raw })
    }

    /// The stored definition in one language, and its first value.
    ///
    /// # Errors
    /// `dimension-value-invalid` when the initial value breaks the schema.
    pub fn in_language(&self, id: &str, locale: &str) -> Result<(Value, Json), WorldFault> {
        let mut raw = self.raw.clone();
        let schema = raw.get("schema").cloned().unwrap_or(Value::Null);
        if let Some(initial) = raw.get_mut("initialValue") {
            in_language(&schema, initial, locale);
        }
        if let Some(rule) = raw.get_mut("updateRule") {
            if let Some(text) = rule.as_object().and_then(|texts| pick(texts, locale)) {
                *rule = Value::String(text);
            }
            if rule.as_str().is_none_or(|rule| rule.chars().count() > MAX_UPDATE_RULE_CHARS) {
                let message =
                    format!("the update rule of {id:?} is a text of at most {MAX_UPDATE_RULE_CHARS} characters");
                return Err(WorldFault::new("dimension-definition-invalid", message));
            }
        }
        let initial = raw.get("initialValue").cloned().unwrap_or(Value::Null);
        check_value(id, &schema, &initial)?;
        Ok((Value::Object(raw), Json::from_value(initial)))
    }
}

/// Checks a value against the schema of its dimension.
///
/// # Errors
/// `dimension-value-invalid`, `value-too-large`.
pub fn check_value(id: &str, schema: &Value, value: &Value) -> Result<(), WorldFault> {
    let validator = Validator::new(schema)
        .map_err(|message| WorldFault::new("dimension-definition-invalid", format!("schema of {id:?}: {message}")))?;
    check(&validator, value)
        .map_err(|message| WorldFault::new("dimension-value-invalid", format!("dimension {id:?}: {message}")))
}

impl DimensionUpdate {
    /// Reads a payload.
    ///
    /// # Errors
    /// A [`Fault`].
    pub fn read(payload: &Map<String, Value>) -> Result<Self, Fault> {
        let items = payload.get("updates").and_then(Value::as_array).ok_or("has a list `updates`")?;
        if items.len() > MAX_DIMENSION_UPDATES {
            return Err(Fault::Rule(format!("has {} updates; at most {MAX_DIMENSION_UPDATES}", items.len())));
        }
        let mut updates: Vec<OneUpdate> = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let object = item.as_object().ok_or_else(|| Fault::NotAnObject(format!(".updates[{at}]")))?;
            let update = one_update(object).map_err(|fault| Fault::Rule(fault.at(&format!("updates[{at}]"))))?;
            if updates.iter().any(|known| known.id == update.id) {
                return Err(Fault::Rule(format!("dimension {:?} is named twice", update.id)));
            }
            updates.push(update);
        }
        let source = match payload.get("source") {
            None | Some(Value::Null) => None,
            Some(source) => {
                let object = source.as_object().ok_or_else(|| Fault::NotAnObject(".source".into()))?;
                let turn_number = object.get("turnNumber").and_then(Value::as_u64);
                Some(Source {
                    result_id: filled(object, "resultId")?.to_owned(),
                    turn_number: turn_number.ok_or("`source.turnNumber` is a whole number")?,
                })
            }
        };
        let read_versions = match payload.get("readVersions") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(id, version)| Ok((id.clone(), version.as_u64().ok_or("`readVersions` maps ids to versions")?)))
                .collect::<Result<Vec<_>, Fault>>()?,
            Some(_) => return Err("`readVersions` is an object".into()),
        };
        let settlement = match optional(payload, "settlement")? {
            None => None,
            Some("no-change") => Some(Settlement::NoChange),
            Some("manual") => Some(Settlement::Manual),
            Some("skipped") => Some(Settlement::Skipped),
            Some(other) => {
                return Err(Fault::Rule(format!("`settlement` is no-change, manual or skipped, not {other:?}")));
            }
        };
        match settlement {
            Some(_) if source.is_none() => return Err("`settlement` needs the `source` it settles".into()),
            Some(Settlement::NoChange | Settlement::Skipped) if !updates.is_empty() => {
                return Err("a settlement without change has no updates".into());
            }
            Some(Settlement::NoChange) if read_versions.is_empty() => {
                return Err("`no-change` names the versions it looked at in `readVersions`".into());
            }
            None if updates.is_empty() => {
                return Err("an update without updates says how it settles: `settlement: no-change`".into());
            }
            _ => {}
        }
        Ok(Self { updates, source, read_versions, settlement })
    }

    /// The payload that [`DimensionUpdate::read`] reads back.
    pub fn payload(&self) -> Value {
        let updates = self
            .updates
            .iter()
            .map(|update| json!({"id": update.id, "expectedVersion": update.expected_version, "value": update.value}));
        let mut payload = json!({"updates": updates.collect::<Vec<_>>()});
        if let Some(source) = &self.source {
            payload["source"] = json!({"resultId": source.result_id, "turnNumber": source.turn_number});
        }
        if !self.read_versions.is_empty() {
            let versions = self.read_versions.iter().map(|(id, version)| (id.clone(), Value::from(*version)));
            payload["readVersions"] = Value::Object(versions.collect());
        }
        if let Some(settlement) = self.settlement {
            payload["settlement"] = settlement.as_str().into();
        }
        payload
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> usize {
        self.updates.iter().map(|update| update.value.byte_len()).sum()
    }
}

fn one_update(object: &Map<String, Value>) -> Result<OneUpdate, Fault> {
    let id = object.get("id").and_then(Value::as_str).ok_or("has no string `id`")?;
    check_id(id)?;
    let expected = object.get("expectedVersion").and_then(Value::as_u64).filter(|version| *version > 0);
    let value = Json::from_value(object.get("value").cloned().ok_or("has no `value`")?);
    optional(object, "reason")?;
    Ok(OneUpdate {
        id: id.to_owned(),
        expected_version: expected.ok_or("`expectedVersion` is a positive whole number")?,
        value: within_limit(&format!("dimension {id:?}"), value)?,
    })
}

/// What everyone sees of a stored dimension: no initial value, rule or source.
pub fn public(stored: &Value) -> Value {
    let definition = &stored["definition"];
    let mut entry = json!({"name": definition["name"]});
    if let Some(description) = definition.get("description") {
        entry["description"] = description.clone();
    }
    entry["schema"] = definition["schema"].clone();
    entry["value"] = stored["value"].clone();
    entry["version"] = stored["version"].clone();
    entry
}
