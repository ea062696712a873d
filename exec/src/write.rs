//! What a runtime may write: an ordered list of typed writes, each checked for its shape when it is made.
//!
//! Plugin data is the common case and stays unboxed; everything else is a [`Proposal`]. Rules that need to see what
//! is there (character schema, dimension versions) are checked twice: when the write is buffered, against the
//! runtime's view, and at commit, against the head state. COM-6

use covel_graph::{Json, limits::MAX_DATA_VALUE_BYTES};
use serde_json::{Map, Value, json};

use crate::{
    limits::MAX_DATA_DEPTH,
    overlay::DataWrite,
    results::kind_of,
    world::{
        character::CharacterUpsert,
        dimension::{Definitions, DimensionUpdate},
        lorebook::LoreEntry,
        schema::CharacterSchema,
    },
};

/// Types of proposals that a tool or handler envelope may carry.
pub const PROPOSAL_TYPES: [&str; 14] = [
    "plugin.data",
    "plugin.data.batch",
    "plugin.data.delete",
    "plugin.data.update",
    "event.emit",
    "state.patch",
    "interaction.request",
    "ui.render",
    "asset.generate",
    "character.upsert",
    "character.schema.set",
    "lorebook.upsert",
    "dimension.initialize",
    "dimension.update",
];

/// Part states of a `ui.render`.
const UI_STATES: [&str; 5] = ["pending", "streaming", "success", "error", "paused"];

/// One domain write of a runtime, in its own order.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Own plugin data.
    Data(DataWrite),
    /// Anything else.
    Proposal(Box<Proposal>),
}

impl From<Proposal> for Write {
    fn from(proposal: Proposal) -> Self {
        Self::Proposal(Box::new(proposal))
    }
}

/// A write beyond plugin data.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// `state.patch`: one field of a table all packages of a session share.
    StatePatch {
        /// Table.
        table: String,
        /// Field.
        field: String,
        /// Value.
        value: Json,
        /// For people.
        reason: Option<String>,
    },
    /// `interaction.request`: a question to the player; the block as given.
    Interaction(Json),
    /// `ui.render`: `{parts, layout?, status?}`.
    Ui(Json),
    /// `asset.generate`: `{ref, modality, meta?}`.
    Asset(Json),
    /// `character.upsert`.
    Character(CharacterUpsert),
    /// `character.schema.set`.
    Schema(CharacterSchema),
    /// `lorebook.upsert`; the owner is the source package.
    Lorebook(Vec<LoreEntry>),
    /// `dimension.initialize`.
    DimensionInitialize(Definitions),
    /// `dimension.update`.
    DimensionUpdate(DimensionUpdate),
}

/// Why a value is no write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something inside is not an object; where, relative to the value.
    NotAnObject(String),
    /// A sentence.
    Rule(String),
}

impl Fault {
    /// The message, with the path of the value.
    pub fn at(self, path: &str) -> String {
        match self {
            Self::NotAnObject(inner) => format!("{path}{inner} is not an object"),
            Self::Rule(message) => format!("{path}: {message}"),
        }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Rule(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Rule(message.to_owned())
    }
}

impl Proposal {
    /// Reads the payload of a proposal other than plugin data and events.
    ///
    /// # Errors
    /// A [`Fault`]; an unknown type is told with the list of known ones.
    pub fn read(kind: &str, payload: &Map<String, Value>) -> Result<Self, Fault> {
        check_depth(payload)?;
        let proposal = match kind {
            "state.patch" => state_patch(payload)?,
            "interaction.request" => interaction(payload)?,
            "ui.render" => ui(payload)?,
            "asset.generate" => asset(payload)?,
            "character.upsert" => Self::Character(CharacterUpsert::read(payload)?),
            "character.schema.set" => Self::Schema(CharacterSchema::read(payload)?),
            "lorebook.upsert" => {
                let entries = payload.get("entries").and_then(Value::as_array).ok_or("has a list `entries`")?;
                Self::Lorebook(lorebook_entries(entries)?)
            }
            "dimension.initialize" => Self::DimensionInitialize(Definitions::read(payload)?),
            "dimension.update" => Self::DimensionUpdate(DimensionUpdate::read(payload)?),
            other => {
                return Err(Fault::Rule(format!(
                    "unknown proposal type {other:?}; known: {}",
                    PROPOSAL_TYPES.join(" ")
                )));
            }
        };
        Ok(proposal)
    }

    /// Its type, as protocol and messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::StatePatch { .. } => "state.patch",
            Self::Interaction(_) => "interaction.request",
            Self::Ui(_) => "ui.render",
            Self::Asset(_) => "asset.generate",
            Self::Character(_) => "character.upsert",
            Self::Schema(_) => "character.schema.set",
            Self::Lorebook(_) => "lorebook.upsert",
            Self::DimensionInitialize(_) => "dimension.initialize",
            Self::DimensionUpdate(_) => "dimension.update",
        }
    }

    /// The payload that [`Proposal::read`] reads back.
    pub fn payload(&self) -> Value {
        match self {
            Self::StatePatch { table, field, value, reason } => {
                json!({"table": table, "field": field, "value": value, "reason": reason})
            }
            Self::Interaction(json) | Self::Ui(json) | Self::Asset(json) => json.value().clone(),
            Self::Character(upsert) => upsert.payload(),
            Self::Schema(schema) => schema.to_json().value().clone(),
            Self::Lorebook(entries) => {
                json!({"entries": entries.iter().map(|entry| entry.record.value()).collect::<Vec<_>>()})
            }
            Self::DimensionInitialize(definitions) => definitions.payload(),
            Self::DimensionUpdate(update) => update.payload(),
        }
    }

    /// About how many bytes of JSON it holds.
    pub fn bytes(&self) -> usize {
        match self {
            Self::StatePatch { value, .. } => value.byte_len(),
            Self::Interaction(json) | Self::Ui(json) | Self::Asset(json) => json.byte_len(),
            Self::Character(upsert) => upsert.bytes(),
            Self::Schema(schema) => schema.to_json().byte_len(),
            Self::Lorebook(entries) => entries.iter().map(|entry| entry.record.byte_len()).sum(),
            Self::DimensionInitialize(definitions) => definitions.bytes(),
            Self::DimensionUpdate(update) => update.bytes(),
        }
    }
}

/// Reads one item of an effect channel. `None`: not a channel of writes.
pub fn read_effect(channel: &str, item: &Map<String, Value>) -> Option<Result<Proposal, Fault>> {
    if let Err(fault) = check_depth(item) {
        return Some(Err(fault));
    }
    Some(match channel {
        "statePatches" => state_patch(item),
        "interactions" => interaction(item),
        "ui" => ui(item),
        "assetGenerations" => asset(item),
        "notifications" => notification(item),
        "characters" => CharacterUpsert::read(item).map(Proposal::Character),
        "lorebook" => LoreEntry::read(item).map(|entry| Proposal::Lorebook(vec![entry])),
        _ => return None,
    })
}

/// Refuses what would be nested too deep to be read back, in a record or in the document of its turn.
fn check_depth(payload: &Map<String, Value>) -> Result<(), Fault> {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(map) => left > 0 && map.values().all(|member| fits(member, left - 1)),
            _ => true,
        }
    }
    if payload.values().all(|value| fits(value, MAX_DATA_DEPTH)) {
        return Ok(());
    }
    Err(Fault::Rule(format!("is nested deeper than {MAX_DATA_DEPTH} levels")))
}

/// Refuses a JSON value over the limit of stored values.
///
/// # Errors
/// A [`Fault`] that names what, how large and the limit.
pub fn within_limit(what: &str, json: Json) -> Result<Json, Fault> {
    if json.byte_len() > MAX_DATA_VALUE_BYTES {
        return Err(Fault::Rule(format!("{what} has {} bytes; at most {MAX_DATA_VALUE_BYTES}", json.byte_len())));
    }
    Ok(json)
}

/// A string that must be there and not be empty.
///
/// # Errors
/// A [`Fault`] that names the field.
pub fn filled<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, Fault> {
    match object.get(name).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(Fault::Rule(format!("has no non-empty string `{name}`"))),
    }
}

/// A string that may be absent or null.
///
/// # Errors
/// A [`Fault`] when it is something else.
pub fn optional<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Fault::Rule(format!("`{name}` is a string, not {}", kind_of(other)))),
    }
}

fn state_patch(payload: &Map<String, Value>) -> Result<Proposal, Fault> {
    let (table, field) = (filled(payload, "table")?, filled(payload, "field")?);
    let value = Json::from_value(payload.get("value").cloned().ok_or("has no `value`")?);
    Ok(Proposal::StatePatch {
        value: within_limit(&format!("{table}.{field}"), value)?,
        table: table.to_owned(),
        field: field.to_owned(),
        reason: optional(payload, "reason")?.map(str::to_owned),
    })
}

fn interaction(payload: &Map<String, Value>) -> Result<Proposal, Fault> {
    let id = filled(payload, "interactionId")?;
    let kind = filled(payload, "type")?;
    if !["form", "choice", "confirmation"].contains(&kind) {
        return Err(Fault::Rule(format!("`type` is form, choice or confirmation, not {kind:?}")));
    }
    optional(payload, "narrativeTemplate")?;
    for (list, wanted) in [("fields", "form"), ("choices", "choice")] {
        match payload.get(list) {
            None => {}
            Some(Value::Array(items)) => {
                if let Some(at) = items.iter().position(|item| !item.is_object()) {
                    return Err(Fault::NotAnObject(format!(".{list}[{at}]")));
                }
            }
            Some(other) if kind == wanted => {
                return Err(Fault::Rule(format!("`{list}` is a list, not {}", kind_of(other))));
            }
            Some(_) => {}
        }
    }
    let block = Json::from_value(Value::Object(payload.clone()));
    Ok(Proposal::Interaction(within_limit(&format!("interaction {id:?}"), block)?))
}

fn ui(payload: &Map<String, Value>) -> Result<Proposal, Fault> {
    let parts = match payload.get("parts") {
        Some(Value::Array(parts)) => parts
            .iter()
            .enumerate()
            .map(|(at, part)| {
                let part = part.as_object().ok_or_else(|| Fault::NotAnObject(format!(".parts[{at}]")))?;
                ui_part(part, at).map_err(|fault| match fault {
                    Fault::Rule(message) => Fault::Rule(format!("parts[{at}] {message}")),
                    other => other,
                })
            })
            .collect::<Result<Vec<Value>, Fault>>()?,
        Some(other) => return Err(Fault::Rule(format!("`parts` is a list, not {}", kind_of(other)))),
        // One block in the older form: `{type, ...}`.
        None if payload.contains_key("type") => {
            let kind = filled(payload, "type")?;
            let mut content = payload.clone();
            content.shift_remove("type");
            vec![json!({"id": "part-1", "type": kind, "status": "success", "content": content})]
        }
        None => return Err("has a list `parts`, or a `type`".into()),
    };
    let mut render = json!({ "parts": parts });
    if let Some(layout) = optional(payload, "layout")? {
        if !["stream", "split", "overlay"].contains(&layout) {
            return Err(Fault::Rule(format!("`layout` is stream, split or overlay, not {layout:?}")));
        }
        render["layout"] = layout.into();
    }
    if let Some(status) = optional(payload, "status")? {
        render["status"] = ui_state(status)?.into();
    }
    Ok(Proposal::Ui(within_limit("a ui block", Json::from_value(render))?))
}

fn ui_state(status: &str) -> Result<&str, Fault> {
    if UI_STATES.contains(&status) {
        return Ok(status);
    }
    Err(Fault::Rule(format!("`status` is one of {}, not {status:?}", UI_STATES.join(" "))))
}

fn ui_part(part: &Map<String, Value>, at: usize) -> Result<Value, Fault> {
    let mut made = part.clone();
    let kind = filled(part, "type")?.to_owned();
    let status = ui_state(optional(part, "status")?.unwrap_or("success"))?.to_owned();
    if optional(part, "id")?.is_none() {
        made.insert("id".into(), format!("part-{}", at + 1).into());
    }
    made.insert("type".into(), kind.into());
    made.insert("status".into(), status.into());
    Ok(Value::Object(made))
}

fn notification(payload: &Map<String, Value>) -> Result<Proposal, Fault> {
    let level = optional(payload, "level")?.unwrap_or("info");
    if !["info", "success", "warning", "error"].contains(&level) {
        return Err(Fault::Rule(format!("`level` is info, success, warning or error, not {level:?}")));
    }
    let mut content = payload.clone();
    content.insert("level".into(), level.into());
    let part = json!({"id": "part-1", "type": "notification", "status": "success", "content": content});
    Ok(Proposal::Ui(within_limit("a notification", Json::from_value(json!({ "parts": [part] })))?))
}

fn asset(payload: &Map<String, Value>) -> Result<Proposal, Fault> {
    let reference = payload.get("ref").and_then(Value::as_object).ok_or_else(|| Fault::NotAnObject(".ref".into()))?;
    filled(reference, "id")?;
    filled(reference, "mime")?;
    if reference.get("size").is_some_and(|size| size.as_u64().is_none()) {
        return Err("`ref.size` is a number of bytes".into());
    }
    filled(payload, "modality")?;
    let asset = Json::from_value(Value::Object(payload.clone()));
    Ok(Proposal::Asset(within_limit("an asset", asset)?))
}

fn lorebook_entries(entries: &[Value]) -> Result<Vec<LoreEntry>, Fault> {
    entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let entry = entry.as_object().ok_or_else(|| Fault::NotAnObject(format!(".entries[{at}]")))?;
            LoreEntry::read(entry).map_err(|fault| Fault::Rule(fault.at(&format!("entries[{at}]"))))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_are_told_with_the_known_ones() {
        let fault = Proposal::read("world.destroy", &Map::new()).unwrap_err().at("p");
        assert!(fault.starts_with("p: unknown proposal type \"world.destroy\"; known: plugin.data "), "{fault}");
    }

    #[test]
    fn every_known_type_reaches_a_reader() {
        for kind in PROPOSAL_TYPES.iter().filter(|kind| !kind.starts_with("plugin.data") && **kind != "event.emit") {
            let fault = Proposal::read(kind, &Map::new()).map(|proposal| proposal.kind());
            match fault {
                Err(fault) => assert!(!fault.clone().at("").contains("unknown proposal"), "{kind}: {fault:?}"),
                Ok(found) => assert_eq!(found, *kind),
            }
        }
    }

    /// What a suspension keeps is what is proposed when it goes on.
    #[test]
    fn a_proposal_read_from_its_own_payload_is_the_same() {
        let definition =
            json!({"name": {"en": "T"}, "schema": {"type": "integer"}, "initialValue": 1, "updateRule": {"en": "x"}});
        for (kind, payload) in [
            ("state.patch", json!({"table": "__proto__", "field": "f", "value": null, "reason": "r"})),
            ("interaction.request", json!({"interactionId": "i", "type": "form", "fields": [{}], "extra": 1})),
            ("ui.render", json!({"type": "card", "title": "x"})),
            ("ui.render", json!({"parts": [{"type": "card"}], "layout": "split", "status": "paused"})),
            ("asset.generate", json!({"ref": {"id": "a", "mime": "image/png", "size": 1}, "modality": "image"})),
            ("character.upsert", json!({"id": "a", "name": "A", "aliases": ["x"], "description": "", "fields": null})),
            (
                "character.upsert",
                json!({"id": "a", "expectedVersion": 2, "type": "npc", "removeAliases": ["x"], "fields": {"a": null, "__proto__": 1}}),
            ),
            (
                "character.schema.set",
                json!({"types": ["g"], "attributes": [{"id": "a", "name": "A", "type": "string", "category": "bio"}]}),
            ),
            (
                "lorebook.upsert",
                json!({"entries": [{"id": "e", "content": "c", "strategy": "constant", "insertionOrder": -1, "extra": {"scanDepth": 3}}]}),
            ),
            ("dimension.initialize", json!({"definitions": {"__proto__": definition}})),
            (
                "dimension.update",
                json!({"updates": [{"id": "a", "expectedVersion": 1, "value": null}], "source": {"resultId": "r", "turnNumber": 1}, "readVersions": {"b": 2}, "settlement": "manual"}),
            ),
        ] {
            let first = Proposal::read(kind, payload.as_object().unwrap()).unwrap();
            let again = Proposal::read(kind, first.payload().as_object().unwrap()).unwrap();
            assert_eq!(first.payload().to_string(), again.payload().to_string(), "{kind}");
            assert_eq!(
                format!("{first:?}").replace(|c: char| c.is_ascii_digit(), ""),
                format!("{again:?}").replace(|c: char| c.is_ascii_digit(), "")
            );
        }
    }

    #[test]
    fn a_block_in_the_older_form_becomes_one_part() {
        let payload = json!({"type": "card", "title": "x"});
        let Proposal::Ui(render) = Proposal::read("ui.render", payload.as_object().unwrap()).unwrap() else { panic!() };
        assert_eq!(
            *render.value(),
            json!({"parts": [{"id": "part-1", "type": "card", "status": "success", "content": {"title": "x"}}]})
        );
    }
}
