//! What a world gives a new session: character schema, characters, lorebook entries, seats.

use covel_graph::{Json, SessionId, world::WorldContent};
use covel_store::{StoreError, Tx};
use serde_json::Value;

use super::{
    CHARACTERS, LORE_OWNER, SCHEMA, WORLD_OWNER,
    cast::Cast,
    character::CharacterUpsert,
    lorebook::LoreEntry,
    schema::CharacterSchema,
    seat::{self, Seat},
};
use crate::write::Fault;

/// Records to write with a new session.
#[derive(Default)]
pub(crate) struct WorldStart {
    schema: Option<Json>,
    characters: Vec<(String, Json)>,
    lorebook: Vec<LoreEntry>,
    pub(crate) seats: Vec<Seat>,
}

impl WorldStart {
    /// Checks a world's content as proposals are checked.
    ///
    /// # Errors
    /// A sentence naming what is wrong, for the world's author.
    pub(crate) fn of(content: Option<&WorldContent>, now: &str) -> Result<Self, String> {
        let mut start = Self::default();
        let mut cast = Cast::default();
        if let Some(content) = content {
            if let Some(schema) = &content.character_schema {
                let object = schema.value().as_object().ok_or("characterSchema is not an object")?;
                let schema = CharacterSchema::read(object).map_err(|fault| fault.at("characterSchema"))?;
                start.schema = Some(cast.set_schema(&schema, now).map_err(|fault| fault.message)?);
            }
            for (at, character) in content.characters.iter().enumerate() {
                let place = format!("characters[{at}]");
                let upsert = object(character).and_then(CharacterUpsert::read).map_err(|fault| fault.at(&place))?;
                let taken = start.characters.iter().any(|(id, _)| *id == upsert.id);
                if taken {
                    return Err(format!("{place}: there is a character {:?} already", upsert.id));
                }
                let record = cast.upsert(&upsert, now).map_err(|fault| format!("{place}: {}", fault.message))?;
                start.characters.push((upsert.id, record));
            }
            for (at, entry) in content.lorebook.iter().enumerate() {
                let entry = object(entry).and_then(LoreEntry::read);
                start.lorebook.push(entry.map_err(|fault| fault.at(&format!("lorebook[{at}]")))?);
            }
        }
        start.seats = seat::first(&cast.players());
        Ok(start)
    }

    /// Writes the records.
    pub(crate) fn write(&self, tx: &mut Tx<'_>, session: &SessionId, now: &str) -> Result<(), StoreError> {
        if let Some(schema) = &self.schema {
            tx.put_data(session, &WORLD_OWNER.into(), SCHEMA, SCHEMA, schema, now)?;
        }
        for (id, record) in &self.characters {
            tx.put_data(session, &WORLD_OWNER.into(), CHARACTERS, id, record, now)?;
        }
        for entry in &self.lorebook {
            tx.put_data(session, &LORE_OWNER.into(), "world", &entry.id, &entry.record, now)?;
        }
        Ok(())
    }
}

fn object(json: &Json) -> Result<&serde_json::Map<String, Value>, Fault> {
    json.value().as_object().ok_or_else(|| Fault::NotAnObject(String::new()))
}
