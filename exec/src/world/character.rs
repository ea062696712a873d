//! One character: what an upsert says, and the record it makes of what is there.

use serde_json::{Map, Value, json};

use super::{WorldFault, cast::name_key, schema::CharacterSchema};
use crate::{
    limits::{MAX_ALIASES, MAX_DATA_NAME_BYTES},
    results::kind_of,
    write::{Fault, filled, optional},
};

/// A `character.upsert`, read and checked for its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterUpsert {
    /// Which.
    pub id: String,
    /// Given: patch what is there. Not given: replace the whole record.
    pub expected_version: Option<u64>,
    name: Option<String>,
    kind: Option<String>,
    /// `Some(None)` clears.
    description: Option<Option<String>>,
    fields: Fields,
    aliases: Option<Vec<String>>,
    remove_aliases: Vec<String>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Fields {
    Keep,
    Clear,
    /// Shallow; a null takes the field away.
    Merge(Map<String, Value>),
}

impl CharacterUpsert {
    /// Reads a payload.
    ///
    /// # Errors
    /// A [`Fault`] naming the field.
    pub fn read(payload: &Map<String, Value>) -> Result<Self, Fault> {
        let id = filled(payload, "id")?.to_owned();
        if id.len() > MAX_DATA_NAME_BYTES {
            return Err(Fault::Rule(format!("`id` has at most {MAX_DATA_NAME_BYTES} bytes")));
        }
        let expected_version = match payload.get("expectedVersion") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value.as_u64().filter(|version| *version > 0).ok_or("`expectedVersion` is a positive whole number")?,
            ),
        };
        let name = match payload.get("name") {
            None if expected_version.is_some() => None,
            _ => Some(filled(payload, "name")?.to_owned()),
        };
        let fields = match payload.get("fields") {
            None => Fields::Keep,
            Some(Value::Null) => Fields::Clear,
            Some(Value::Object(map)) => Fields::Merge(map.clone()),
            Some(other) => return Err(Fault::Rule(format!("`fields` is an object, not {}", kind_of(other)))),
        };
        let remove_aliases = texts(payload, "removeAliases")?.unwrap_or_default();
        if !remove_aliases.is_empty() && expected_version.is_none() {
            return Err("`removeAliases` needs `expectedVersion`".into());
        }
        let description = match payload.get("description") {
            None => None,
            Some(_) => {
                Some(optional(payload, "description")?.filter(|text| !text.trim().is_empty()).map(str::to_owned))
            }
        };
        Ok(Self {
            id,
            expected_version,
            name,
            kind: optional(payload, "type")?.map(str::to_owned),
            description,
            fields,
            aliases: texts(payload, "aliases")?,
            remove_aliases,
            bytes: covel_graph::Json::from_value(Value::Object(payload.clone())).byte_len(),
        })
    }

    /// The payload that [`CharacterUpsert::read`] reads back.
    pub fn payload(&self) -> Value {
        let mut payload = json!({"id": self.id});
        let mut put = |name: &str, value: Value| payload[name] = value;
        if let Some(version) = self.expected_version {
            put("expectedVersion", version.into());
        }
        if let Some(name) = &self.name {
            put("name", name.as_str().into());
        }
        if let Some(kind) = &self.kind {
            put("type", kind.as_str().into());
        }
        if let Some(description) = &self.description {
            put("description", json!(description));
        }
        match &self.fields {
            Fields::Keep => {}
            Fields::Clear => put("fields", Value::Null),
            Fields::Merge(map) => put("fields", Value::Object(map.clone())),
        }
        if let Some(aliases) = &self.aliases {
            put("aliases", json!(aliases));
        }
        if !self.remove_aliases.is_empty() {
            put("removeAliases", json!(self.remove_aliases));
        }
        payload
    }

    /// Bytes of the payload.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn texts(payload: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, Fault> {
    let items = match payload.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(Fault::Rule(format!("`{name}` is a list, not {}", kind_of(other)))),
    };
    if items.len() > MAX_ALIASES {
        return Err(Fault::Rule(format!("`{name}` has {} entries; at most {MAX_ALIASES}", items.len())));
    }
    let text = |item: &Value| item.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    items
        .iter()
        .map(text)
        .collect::<Option<Vec<_>>>()
        .map(Some)
        .ok_or_else(|| Fault::Rule(format!("`{name}` is a list of non-empty strings")))
}

/// The record after an upsert over what is there now. Declared fields are not checked here.
///
/// # Errors
/// `character-not-found` for a patch of nothing.
pub fn next_record(
    live: Option<&Value>,
    upsert: &CharacterUpsert,
    schema: &CharacterSchema,
    now: &str,
) -> Result<Value, WorldFault> {
    let patch = upsert.expected_version.is_some();
    if patch && live.is_none() {
        let message = format!("there is no character {:?} to change", upsert.id);
        return Err(WorldFault::new("character-not-found", message));
    }
    let text = |name: &str| live.and_then(|live| live.get(name)?.as_str());
    let old = |name: &str| text(name).filter(|_| patch);
    let name = upsert.name.as_deref().or(old("name")).unwrap_or_default();
    let kind = upsert.kind.as_deref().or(old("type")).unwrap_or("npc");
    let description = match &upsert.description {
        Some(given) => given.as_deref(),
        None => old("description"),
    };
    let old_fields = || live.and_then(|live| live.get("fields")?.as_object()).filter(|_| patch).cloned();
    let mut fields = match upsert.fields {
        Fields::Clear => Map::new(),
        _ => old_fields().unwrap_or_default(),
    };
    if let Fields::Merge(given) = &upsert.fields {
        for (field, value) in given {
            if value.is_null() {
                fields.shift_remove(field);
            } else {
                fields.insert(field.clone(), value.clone());
            }
        }
    }
    if live.is_none() {
        schema.fill(&mut fields);
    }
    let kept = live.and_then(|live| live.get("aliases")?.as_array()).filter(|_| patch);
    let kept = kept.into_iter().flatten().filter_map(Value::as_str);
    let removed: Vec<String> = upsert.remove_aliases.iter().map(|alias| name_key(alias)).collect();
    let mut seen = vec![name_key(name)];
    let mut aliases: Vec<&str> = Vec::new();
    let all = kept
        .filter(|alias| !removed.contains(&name_key(alias)))
        .chain(upsert.aliases.iter().flatten().map(String::as_str));
    for alias in all {
        let key = name_key(alias);
        if !key.is_empty() && !seen.contains(&key) {
            seen.push(key);
            aliases.push(alias);
        }
    }
    if aliases.len() > MAX_ALIASES {
        let message = format!("character {:?} would have {} aliases; at most {MAX_ALIASES}", upsert.id, aliases.len());
        return Err(WorldFault::new("character-invalid", message));
    }
    // A replaced record counts on, so that a version names one state of a character for ever.
    let version = live.and_then(|live| live.get("version")?.as_u64()).unwrap_or(0) + 1;
    let mut record = Map::new();
    record.insert("id".into(), upsert.id.clone().into());
    record.insert("name".into(), name.into());
    if !aliases.is_empty() {
        record.insert("aliases".into(), json!(aliases));
    }
    record.insert("type".into(), kind.into());
    if let Some(description) = description {
        record.insert("description".into(), description.into());
    }
    record.insert("fields".into(), Value::Object(fields));
    record.insert("version".into(), version.into());
    record.insert("createdAt".into(), text("createdAt").unwrap_or(now).into());
    record.insert("updatedAt".into(), now.into());
    Ok(Value::Object(record))
}
