//! All characters of a session as one sees them, with their names: where rules that span characters are checked.

use std::{collections::HashMap, sync::Arc};

use covel_graph::Json;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    WorldFault,
    character::{CharacterUpsert, next_record},
    schema::{CharacterSchema, PLAYER},
};
use crate::limits::MAX_CHARACTERS;

/// Characters, schema, and who is called what.
#[derive(Clone, Default)]
pub struct Cast {
    schema: Option<Arc<CharacterSchema>>,
    schema_record: Option<Json>,
    characters: IndexMap<String, Json>,
    /// Folded names and aliases: whose they are.
    names: HashMap<String, Vec<Named>>,
}

#[derive(Clone, PartialEq)]
struct Named {
    id: String,
    alias: bool,
}

impl Cast {
    /// A cast of stored records.
    pub fn new(schema_record: Option<Json>, characters: impl IntoIterator<Item = (String, Json)>) -> Self {
        let mut cast = Self { schema: schema_of(schema_record.as_ref()), schema_record, ..Self::default() };
        for (id, record) in characters {
            cast.name(&id, record.value());
            cast.characters.insert(id, record);
        }
        cast
    }

    /// Records in creation order.
    pub fn characters(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.characters.iter().map(|(id, record)| (id.as_str(), record))
    }

    /// Ids of player characters, in creation order.
    pub fn players(&self) -> Vec<String> {
        let is_player = |record: &Json| record.value().get("type").and_then(Value::as_str) == Some(PLAYER);
        self.characters.iter().filter(|(_, record)| is_player(record)).map(|(id, _)| id.clone()).collect()
    }

    /// Creates, replaces or patches a character; answers the record as it now is. A patch goes onto whatever is there
    /// now, so writers of different fields both survive.
    ///
    /// # Errors
    /// `character-not-found`, `character-invalid`, `character-alias-conflict`, `character-name-conflict`,
    /// `too-many-characters`.
    pub fn upsert(&mut self, upsert: &CharacterUpsert, now: &str) -> Result<Json, WorldFault> {
        let live = self.characters.get(&upsert.id);
        if live.is_none() && self.characters.len() >= MAX_CHARACTERS {
            let message = format!("a session has at most {MAX_CHARACTERS} characters");
            return Err(WorldFault::new("too-many-characters", message));
        }
        let fallback = CharacterSchema::default();
        let schema = self.schema.as_deref().unwrap_or(&fallback);
        let record = next_record(live.map(Json::value), upsert, schema, now)?;
        check_record(schema, &upsert.id, &record)?;
        self.check_names(&upsert.id, &record, live.map(Json::value))?;
        let record = Json::from_value(record);
        if record.byte_len() > covel_graph::limits::MAX_DATA_VALUE_BYTES {
            return Err(WorldFault::new(
                "value-too-large",
                format!(
                    "character {:?} would have {} bytes; at most {}",
                    upsert.id,
                    record.byte_len(),
                    covel_graph::limits::MAX_DATA_VALUE_BYTES
                ),
            ));
        }
        self.unname(&upsert.id);
        self.name(&upsert.id, record.value());
        self.characters.insert(upsert.id.clone(), record.clone());
        Ok(record)
    }

    /// Replaces the schema; answers its record. Its version counts on.
    ///
    /// # Errors
    /// `character-schema-conflict` when a character there is does not fit the new schema.
    pub fn set_schema(&mut self, schema: &CharacterSchema, now: &str) -> Result<Json, WorldFault> {
        for (id, record) in &self.characters {
            check_record(schema, id, record.value())
                .map_err(|fault| WorldFault::new("character-schema-conflict", fault.message))?;
        }
        let record = next_schema(self.schema_record.as_ref().map(Json::value), schema, now);
        self.schema = Some(Arc::new(schema.clone()));
        self.schema_record = Some(record.clone());
        Ok(record)
    }

    fn name(&mut self, id: &str, record: &Value) {
        for (name, alias) in names_of(record) {
            self.names.entry(name_key(name)).or_default().push(Named { id: id.to_owned(), alias });
        }
    }

    fn unname(&mut self, id: &str) {
        let Some(record) = self.characters.get(id) else { return };
        for (name, _) in names_of(record.value()) {
            if let Some(owners) = self.names.get_mut(&name_key(name)) {
                owners.retain(|named| named.id != id);
            }
        }
    }

    /// No alias may be what another character is called; no new name another's alias; no new player another's name.
    fn check_names(&self, id: &str, record: &Value, live: Option<&Value>) -> Result<(), WorldFault> {
        let before: Vec<&str> = live.map(|live| names_of(live).map(|(name, _)| name).collect()).unwrap_or_default();
        let is_player = record.get("type").and_then(Value::as_str) == Some(PLAYER);
        for (name, alias) in names_of(record) {
            // What it was called already is not asked again: two of the same name may be told apart by their type.
            if before.contains(&name) {
                continue;
            }
            let owners = self.names.get(&name_key(name)).map(Vec::as_slice).unwrap_or_default();
            let Some(owner) = owners.iter().find(|owner| owner.id != id && (alias || owner.alias || is_player)) else {
                continue;
            };
            let code = if alias || owner.alias { "character-alias-conflict" } else { "character-name-conflict" };
            let what = if owner.alias { "an alias" } else { "the name" };
            return Err(WorldFault::new(code, format!("{name:?} is {what} of character {:?} already", owner.id)));
        }
        Ok(())
    }
}

/// The schema of a stored record.
pub fn schema_of(record: Option<&Json>) -> Option<Arc<CharacterSchema>> {
    let object = record?.value().as_object()?;
    CharacterSchema::read(object).ok().map(Arc::new)
}

/// The record of a schema set over what was there.
pub fn next_schema(live: Option<&Value>, schema: &CharacterSchema, now: &str) -> Json {
    let version = live.and_then(|live| live.get("version")?.as_u64()).unwrap_or(0) + 1;
    let created = live.and_then(|live| live.get("createdAt")?.as_str()).unwrap_or(now);
    let json = schema.to_json();
    Json::from_value(json!({
        "version": version, "types": json.value()["types"], "attributes": json.value()["attributes"],
        "createdAt": created, "updatedAt": now,
    }))
}

fn check_record(schema: &CharacterSchema, id: &str, record: &Value) -> Result<(), WorldFault> {
    let invalid = |message: String| WorldFault::new("character-invalid", format!("character {id:?}: {message}"));
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    if !schema.has_type(kind) {
        return Err(invalid(format!("type {kind:?} is none of player {}", schema.types.join(" "))));
    }
    let empty = Map::new();
    schema.check(record.get("fields").and_then(Value::as_object).unwrap_or(&empty)).map_err(invalid)
}

/// Name (false) and aliases (true) of a record.
fn names_of(record: &Value) -> impl Iterator<Item = (&str, bool)> {
    let name = record.get("name").and_then(Value::as_str).map(|name| (name, false));
    let aliases = record.get("aliases").and_then(Value::as_array).into_iter().flatten();
    name.into_iter().chain(aliases.filter_map(|alias| Some((alias.as_str()?, true))))
}

/// The key under which names are the same: width, case, quotes, dots, spaces and a leading "the" do not count.
pub fn name_key(name: &str) -> String {
    use unicode_normalization::UnicodeNormalization as _;
    const QUOTES: &[char] = &['"', '\'', '“', '”', '‘', '’', '「', '」', '『', '』', '《', '》'];
    let folded = name.nfkc().collect::<String>().to_lowercase();
    let bare = folded.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
    let rest = match bare.strip_prefix("the") {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest,
        _ => bare,
    };
    rest.chars().filter(|c| !c.is_whitespace() && !matches!(c, '.' | '·' | '•' | '・' | '\'' | '’')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_whatever_their_dress() {
        for (a, b) in
            [("The  Old Gate", "old gate"), ("“Mirren”", "mirren"), ("Ｌｕｎａ", "luna"), ("J. R. Oake", "j r oake")]
        {
            assert_eq!(name_key(a), name_key(b), "{a} {b}");
        }
        assert_ne!(name_key("Theodora"), name_key("odora"));
    }
}
