//! Applying proposals at commit: against the head state, inside the transaction, in order.

use std::{collections::BTreeSet, sync::Arc};

use covel_graph::{Json, PluginId, SessionId};
use covel_store::{StoreError, Tx};
use serde_json::{Map, Value, json};

use super::{
    CHARACTERS, DIMENSIONS, DIMENSIONS_CONTRACT, LORE_OWNER, SCHEMA, STATE_OWNER, WORLD_OWNER, WorldFault,
    cast::Cast,
    dimension::{Definitions, DimensionUpdate, Source, check_value, public},
    settlement, view,
};
use crate::{
    commit::Refused,
    document::{ChangeDocument, ErrorInfo},
    limits::MAX_DIMENSIONS,
    write::Proposal,
};

impl From<WorldFault> for Refused {
    fn from(fault: WorldFault) -> Self {
        Self::Rule(ErrorInfo::new(fault.code, fault.message))
    }
}

/// What all units of a commit share.
pub(crate) struct WorldCommit {
    pub(crate) session_id: SessionId,
    pub(crate) turn_id: String,
    pub(crate) logical_turn: u32,
    pub(crate) locale: String,
    pub(crate) now: String,
    /// The only package that may write dimensions.
    pub(crate) dimension_owner: Option<PluginId>,
    pub(crate) state: WorldState,
}

/// What earlier units of the commit did; cheap to copy, so that a refused unit can be taken back.
#[derive(Clone, Default)]
pub(crate) struct WorldState {
    cast: Option<Arc<Cast>>,
    interactions: BTreeSet<String>,
}

/// Whose proposal it is.
#[derive(Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) plugin: &'a PluginId,
    pub(crate) runtime: &'a str,
    /// Place among the writes of its runtime, from 0.
    pub(crate) at: usize,
}

impl Author<'_> {
    fn change(&self, kind: &str, payload: Value) -> ChangeDocument {
        ChangeDocument {
            kind: kind.to_owned(),
            plugin_id: self.plugin.as_str().to_owned(),
            runtime_id: self.runtime.to_owned(),
            payload: Json::from_value(payload),
        }
    }
}

impl WorldCommit {
    /// Player characters as the commit leaves them, when any unit touched characters.
    pub(crate) fn players(&self) -> Option<Vec<String>> {
        self.state.cast.as_ref().map(|cast| cast.players())
    }

    /// Applies one proposal.
    pub(crate) fn apply(
        &mut self,
        tx: &mut Tx<'_>,
        author: Author<'_>,
        proposal: &Proposal,
    ) -> Result<Vec<ChangeDocument>, Refused> {
        let proposal_id = format!("{}:{}:{}", self.turn_id, author.runtime, author.at + 1);
        let now = self.now.clone();
        Ok(match proposal {
            Proposal::StatePatch { table, field, value, reason } => {
                tx.put_data(&self.session_id, &STATE_OWNER.into(), table, field, value, &now)?;
                let mut payload = json!({"table": table, "field": field, "value": value});
                if let Some(reason) = reason {
                    payload["reason"] = reason.as_str().into();
                }
                vec![author.change("state.changed", payload)]
            }
            Proposal::Interaction(block) => {
                let id = block.value()["interactionId"].as_str().unwrap_or_default();
                if !self.state.interactions.insert(id.to_owned()) {
                    let message = format!("this turn asks the player {id:?} already");
                    return Err(WorldFault::new("interaction-already-requested", message).into());
                }
                let block = json!({"id": id, "type": block.value()["type"], "data": block, "meta": {}});
                vec![author.change("interaction.requested", json!({ "block": block }))]
            }
            Proposal::Ui(render) => {
                let source = json!({"pluginId": author.plugin, "runtimeId": author.runtime});
                let payload = json!({"proposalId": proposal_id, "source": source, "render": render});
                vec![author.change("ui.rendered", payload)]
            }
            Proposal::Asset(asset) => {
                vec![author.change("asset.generated", json!({"proposalId": proposal_id, "asset": asset}))]
            }
            Proposal::Character(upsert) => {
                let record = self.cast(tx)?.upsert(upsert, &now)?;
                tx.put_data(&self.session_id, &WORLD_OWNER.into(), CHARACTERS, &upsert.id, &record, &now)?;
                vec![author.change("character.upserted", json!({ "character": record }))]
            }
            Proposal::Schema(schema) => {
                let record = self.cast(tx)?.set_schema(schema, &now)?;
                tx.put_data(&self.session_id, &WORLD_OWNER.into(), SCHEMA, SCHEMA, &record, &now)?;
                vec![author.change("character-schema.changed", json!({ "schema": record }))]
            }
            Proposal::Lorebook(entries) => {
                let owner = format!("plugin:{}", author.plugin);
                for entry in entries {
                    tx.put_data(&self.session_id, &LORE_OWNER.into(), &owner, &entry.id, &entry.record, &now)?;
                }
                let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
                vec![author.change("lorebook.upserted", json!({"owner": owner, "ids": ids}))]
            }
            Proposal::DimensionInitialize(definitions) => self.initialize(tx, author, definitions)?,
            Proposal::DimensionUpdate(update) => self.update(tx, author, update)?,
        })
    }

    /// A narrative is kept: its dimensions must be settled before the next one.
    pub(crate) fn narrated(
        &mut self,
        tx: &mut Tx<'_>,
        author: Author<'_>,
    ) -> Result<Option<ChangeDocument>, StoreError> {
        let Some(owner) = self.dimension_owner.clone() else { return Ok(None) };
        let source = Source {
            result_id: format!("{}:{}", self.turn_id, author.runtime),
            turn_number: u64::from(self.logical_turn),
        };
        let receipt = settlement::open(tx, &self.session_id, &owner, &source, &self.turn_id, &self.now)?;
        Ok(receipt.map(|receipt| author.change("dimensions.settlement.changed", told(&owner, &receipt))))
    }

    fn cast(&mut self, tx: &Tx<'_>) -> Result<&mut Cast, StoreError> {
        if self.state.cast.is_none() {
            self.state.cast = Some(Arc::new(view::cast(&tx.read(), &self.session_id)?));
        }
        Ok(Arc::make_mut(self.state.cast.get_or_insert_default()))
    }

    fn owner(&self, author: Author<'_>) -> Result<PluginId, Refused> {
        check_owner(self.dimension_owner.as_ref(), author.plugin.as_str())?;
        Ok(author.plugin.clone())
    }

    fn initialize(
        &mut self,
        tx: &mut Tx<'_>,
        author: Author<'_>,
        definitions: &Definitions,
    ) -> Result<Vec<ChangeDocument>, Refused> {
        let owner = self.owner(author)?;
        let mut made = Map::new();
        for (id, definition) in &definitions.0 {
            let (definition, value) = definition.in_language(id, &self.locale)?;
            if let Some(row) = tx.read().get_data(&self.session_id, &owner, DIMENSIONS, id)? {
                if row.value.value()["definition"] == definition {
                    continue;
                }
                let message = format!("dimension {id:?} is there with another definition");
                return Err(WorldFault::new("dimension-definition-conflict", message).into());
            }
            if tx.read().count_data(&self.session_id, &owner, DIMENSIONS)? >= MAX_DIMENSIONS as u64 {
                let message = format!("a session has at most {MAX_DIMENSIONS} dimensions");
                return Err(WorldFault::new("too-many-dimensions", message).into());
            }
            let record = Json::from_value(json!({"definition": definition, "value": value, "version": 1}));
            tx.put_data(&self.session_id, &owner, DIMENSIONS, id, &record, &self.now)?;
            made.insert(id.clone(), public(record.value()));
        }
        if made.is_empty() {
            return Ok(Vec::new());
        }
        let payload = json!({"providerPluginId": owner, "dimensions": made});
        Ok(vec![author.change("dimensions.changed", payload)])
    }

    fn update(
        &mut self,
        tx: &mut Tx<'_>,
        author: Author<'_>,
        update: &DimensionUpdate,
    ) -> Result<Vec<ChangeDocument>, Refused> {
        let owner = self.owner(author)?;
        let stored = |tx: &Tx<'_>, id: &str| tx.read().get_data(&self.session_id, &owner, DIMENSIONS, id);
        // Every version first: a batch applies whole or not at all.
        let named = update.updates.iter().map(|one| (one.id.as_str(), one.expected_version));
        let read = update.read_versions.iter().map(|(id, version)| (id.as_str(), *version));
        for (id, expected) in named.chain(read) {
            let row = stored(tx, id)?;
            let row =
                row.ok_or_else(|| WorldFault::new("dimension-not-found", format!("there is no dimension {id:?}")))?;
            let found = row.value.value()["version"].as_u64().unwrap_or(0);
            if found != expected {
                let message = format!("dimension {id:?} is at version {found}, not {expected}");
                return Err(WorldFault::new("dimension-version-conflict", message).into());
            }
        }
        let mut changed = Map::new();
        for one in &update.updates {
            let Some(row) = stored(tx, &one.id)? else { continue };
            let mut record = row.value.value().clone();
            check_value(&one.id, &record["definition"]["schema"], one.value.value())?;
            record["value"] = one.value.value().clone();
            record["version"] = (one.expected_version + 1).into();
            if let (Some(source), None) = (&update.source, update.settlement) {
                record["lastTrackedSource"] = json!({"resultId": source.result_id, "turnNumber": source.turn_number});
            }
            let record = Json::from_value(record);
            tx.put_data(&self.session_id, &owner, DIMENSIONS, &one.id, &record, &self.now)?;
            changed.insert(one.id.clone(), public(record.value()));
        }
        let mut changes = Vec::new();
        let receipt = match &update.source {
            Some(source) => settlement::resolve(tx, &self.session_id, &owner, source, update.settlement, &self.now)??,
            None => None,
        };
        if !changed.is_empty() {
            let mut payload = json!({"providerPluginId": owner, "dimensions": changed});
            if let Some(receipt) = &receipt {
                payload["settlement"] = receipt.value().clone();
            }
            changes.push(author.change("dimensions.changed", payload));
        }
        if let Some(receipt) = receipt {
            changes.push(author.change("dimensions.settlement.changed", told(&owner, &receipt)));
        }
        Ok(changes)
    }
}

/// Only the active provider of [`DIMENSIONS_CONTRACT`] writes dimensions.
pub(crate) fn check_owner(owner: Option<&PluginId>, plugin: &str) -> Result<(), WorldFault> {
    match owner {
        Some(owner) if owner.as_str() == plugin => Ok(()),
        Some(owner) => Err(WorldFault::new(
            "dimension-owner-required",
            format!(
                "dimensions belong to {owner:?}, the provider of {DIMENSIONS_CONTRACT}; {plugin:?} may not write them"
            ),
        )),
        None => Err(WorldFault::new(
            "dimension-owner-required",
            format!("no single active package provides {DIMENSIONS_CONTRACT}; nobody may write dimensions"),
        )),
    }
}

fn told(owner: &PluginId, receipt: &Json) -> Value {
    let mut payload = receipt.value().clone();
    payload["providerPluginId"] = owner.as_str().into();
    payload
}
