//! Lorebook entries: what a world, a player or a package tells models when it fits. Identity is session, owner, id.

use covel_graph::Json;
use serde_json::{Map, Value};

use crate::{
    limits::{MAX_DATA_NAME_BYTES, MAX_LORE_KEYS, MAX_LORE_SCAN_DEPTH},
    results::kind_of,
    write::{Fault, filled, optional, within_limit},
};

/// One entry, checked; its owner is whoever writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoreEntry {
    /// Id, unique for its owner.
    pub id: String,
    /// `{id, keys, content, strategy, position?, insertionOrder?, enabled, extra?}`.
    pub record: Json,
}

impl LoreEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// A [`Fault`] naming the field.
    pub fn read(entry: &Map<String, Value>) -> Result<Self, Fault> {
        let id = filled(entry, "id")?.to_owned();
        if id.len() > MAX_DATA_NAME_BYTES {
            return Err(Fault::Rule(format!("`id` has at most {MAX_DATA_NAME_BYTES} bytes")));
        }
        let content = entry.get("content").and_then(Value::as_str).ok_or("has no string `content`")?;
        let strategy = filled(entry, "strategy")?;
        if !["constant", "selective"].contains(&strategy) {
            return Err(Fault::Rule(format!("`strategy` is constant or selective, not {strategy:?}")));
        }
        let keys = match entry.get("keys") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(keys)) => keys.clone(),
            Some(other) => return Err(Fault::Rule(format!("`keys` is a list, not {}", kind_of(other)))),
        };
        if keys.len() > MAX_LORE_KEYS || !keys.iter().all(Value::is_string) {
            return Err(Fault::Rule(format!("`keys` is a list of at most {MAX_LORE_KEYS} strings")));
        }
        let mut record = Map::new();
        record.insert("id".into(), id.clone().into());
        record.insert("keys".into(), Value::Array(keys));
        record.insert("content".into(), content.into());
        record.insert("strategy".into(), strategy.into());
        if let Some(position) = entry.get("position").filter(|position| !position.is_null()) {
            if !position.is_string() && !position.is_object() {
                return Err("`position` is a word or an object".into());
            }
            record.insert("position".into(), position.clone());
        }
        if let Some(order) = entry.get("insertionOrder").filter(|order| !order.is_null()) {
            let order = order.as_i64().ok_or("`insertionOrder` is a whole number")?;
            record.insert("insertionOrder".into(), order.into());
        }
        let enabled = match entry.get("enabled") {
            None | Some(Value::Null) => true,
            Some(Value::Bool(enabled)) => *enabled,
            Some(_) => return Err("`enabled` is true or false".into()),
        };
        record.insert("enabled".into(), enabled.into());
        match entry.get("extra") {
            None | Some(Value::Null) => {}
            Some(Value::Object(extra)) => {
                let depth = extra.get("scanDepth");
                if depth.is_some_and(|depth| depth.as_u64().is_none_or(|depth| depth > MAX_LORE_SCAN_DEPTH)) {
                    return Err(Fault::Rule(format!("`extra.scanDepth` is 0 to {MAX_LORE_SCAN_DEPTH}")));
                }
                record.insert("extra".into(), Value::Object(extra.clone()));
            }
            Some(other) => return Err(Fault::Rule(format!("`extra` is an object, not {}", kind_of(other)))),
        }
        optional(entry, "comment")?;
        let record = within_limit(&format!("entry {id:?}"), Json::from_value(Value::Object(record)))?;
        Ok(Self { id, record })
    }
}
