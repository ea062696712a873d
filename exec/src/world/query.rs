//! What an embedder asks of a session's world, and the one thing it may change: who a seat plays. SEA-4

use covel_graph::{Json, PluginId, SessionId, fragment::Visibility};
use serde_json::{Map, Value, json};

use super::{LORE_OWNER, STATE_OWNER, seat::Seat, settlement, view};
use crate::{
    active::ActivePlan,
    document::ErrorInfo,
    engine::{Engine, Inner, SessionLock},
    error::ExecError,
    event::{EventSink, TurnEvent},
    session::{SessionRecord, SessionStatus},
};

/// One committed character: `{id, sessionId, name, aliases?, type, description?, fields, version, createdAt, updatedAt}`.
pub type CharacterRecord = Json;

/// One committed lorebook entry: the entry with `sessionId` and `owner`.
pub type LorebookRecord = Json;

impl Engine {
    /// Committed characters, in creation order.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn characters(&self, session_id: &str) -> Result<Vec<CharacterRecord>, ExecError> {
        self.0.session(session_id)?;
        let rows = self.0.store.read(|reader| view::characters(reader, &SessionId::from(session_id)))?;
        Ok(rows.iter().map(|(_, record)| Json::from_value(view::shown(record, session_id))).collect())
    }

    /// The committed character schema, if the session has one.
    ///
    /// # Errors
    /// As [`Engine::characters`].
    pub fn character_schema(&self, session_id: &str) -> Result<Option<Json>, ExecError> {
        self.0.session(session_id)?;
        let schema = self.0.store.read(|reader| view::schema(reader, &SessionId::from(session_id)))?;
        Ok(schema.map(|schema| Json::from_value(view::shown(&schema, session_id))))
    }

    /// Committed lorebook entries: the world's, the player's, then each package's.
    ///
    /// # Errors
    /// As [`Engine::characters`].
    pub fn lorebook(&self, session_id: &str) -> Result<Vec<LorebookRecord>, ExecError> {
        self.0.session(session_id)?;
        let rows = self
            .0
            .store
            .read(|reader| reader.list_session_data(&SessionId::from(session_id), Some(&LORE_OWNER.into()), None))?;
        let mut entries: Vec<(u8, Json)> = rows
            .into_iter()
            .map(|row| {
                let rank = match row.namespace.as_str() {
                    "world" => 0,
                    "player" => 1,
                    _ => 2,
                };
                let mut entry = view::shown(&row.record.value, session_id);
                entry["owner"] = row.namespace.into();
                (rank, Json::from_value(entry))
            })
            .collect();
        entries.sort_by_key(|(rank, _)| *rank);
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Public snapshot of dimensions, receipts that wait, and the package that owns them.
    ///
    /// # Errors
    /// As [`Engine::characters`].
    pub fn dimensions(&self, session_id: &str) -> Result<Json, ExecError> {
        let session = self.0.session(session_id)?;
        let owner = self.0.dimension_owner(&session);
        let id = SessionId::from(session_id);
        let (dimensions, pending) = self.0.store.read(|reader| {
            let pending = match &owner {
                Some(owner) => settlement::pending(reader, &id, owner)?,
                None => Vec::new(),
            };
            Ok::<_, covel_store::StoreError>((view::dimensions(reader, &id, owner.as_ref())?, pending))
        })?;
        Ok(Json::from_value(json!({
            "dimensionProviderPluginId": owner, "dimensions": dimensions, "dimensionSettlements": pending,
        })))
    }

    /// Shared state: table, then field.
    ///
    /// # Errors
    /// As [`Engine::characters`].
    pub fn state_tables(&self, session_id: &str) -> Result<Json, ExecError> {
        self.0.session(session_id)?;
        let rows = self
            .0
            .store
            .read(|reader| reader.list_session_data(&SessionId::from(session_id), Some(&STATE_OWNER.into()), None))?;
        let mut tables = Map::new();
        for row in rows {
            let table = tables.entry(row.namespace).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(table) = table {
                table.insert(row.record.key, row.record.value.value().clone());
            }
        }
        Ok(Json::from_value(Value::Object(tables)))
    }

    /// Seats of a session.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`].
    pub fn seats(&self, session_id: &str) -> Result<Vec<Seat>, ExecError> {
        Ok(self.0.session(session_id)?.seats)
    }

    /// Lets a seat play another of its characters. Packages cannot do this. SEA-4
    ///
    /// # Errors
    /// [`ExecError::SeatNotFound`], [`ExecError::Invalid`] for a character that is not bound to the seat, and the
    /// session's own refusals.
    pub async fn switch_seat_character(
        &self,
        session_id: &str,
        seat_id: &str,
        character_id: &str,
        events: Option<EventSink>,
    ) -> Result<Seat, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let _lock = SessionLock::take(inner, session_id).await?;
        let mut session = inner.session(session_id)?;
        if session.status == SessionStatus::Ended {
            return Err(ExecError::SessionNotActive { status: session.status.as_str().into(), id: session.id });
        }
        let seat = session.seats.iter_mut().find(|seat| seat.id == seat_id);
        let seat = seat.ok_or_else(|| ExecError::SeatNotFound(seat_id.to_owned()))?;
        if !seat.character_ids.iter().any(|bound| bound == character_id) {
            return Err(ExecError::Invalid {
                field: "characterId".into(),
                message: format!(
                    "character {character_id:?} is not bound to seat {seat_id:?}; bound: {}",
                    seat.character_ids.join(" ")
                ),
            });
        }
        seat.current_character_id = Some(character_id.to_owned());
        let seat = seat.clone();
        session.updated_at = inner.now();
        inner.put_session(&session).await?;
        if let Some(events) = events {
            // Nobody listening changes nothing.
            let _ = events.send(TurnEvent {
                kind: "seats.changed",
                session_id: session.id,
                turn_id: String::new(),
                payload: Json::from_value(json!({ "seats": session.seats })),
            });
        }
        Ok(seat)
    }
}

impl Inner {
    /// Why no narrative may begin: an earlier one is not settled. SWC-3
    pub(crate) fn awaits_settlement(
        &self,
        session: &SessionRecord,
        plan: &ActivePlan,
    ) -> Result<Option<ErrorInfo>, ExecError> {
        let Some(owner) = &plan.dimension_owner else { return Ok(None) };
        let tells = plan.packages.iter().flat_map(|package| &package.fragment().runtimes);
        if !tells.into_iter().any(|runtime| runtime.visibility == Visibility::Story) {
            return Ok(None);
        }
        let id = SessionId::from(session.id.as_str());
        let pending = self.store.read(|reader| settlement::pending(reader, &id, owner))?;
        let Some(receipt) = pending.first() else { return Ok(None) };
        let source = &receipt.value()["source"];
        Ok(Some(ErrorInfo::new(
            "dimension-settlement-pending",
            format!(
                "the dimensions after {} (turn {}) are not settled; run the tracker of {owner} again, or settle it by hand",
                source["resultId"].as_str().unwrap_or_default(),
                source["turnNumber"]
            ),
        )))
    }

    /// A part of `ctx.world` for code that runs outside an execution.
    pub(crate) fn committed_world(&self, session: &SessionRecord, part: &str) -> Result<Json, ExecError> {
        let id = SessionId::from(session.id.as_str());
        Ok(match part {
            "characters" => {
                let rows = self.store.read(|reader| view::characters(reader, &id))?;
                Json::from_value(rows.iter().map(|(_, record)| view::shown(record, &session.id)).collect())
            }
            "characterSchema" => {
                let schema = self.store.read(|reader| view::schema(reader, &id))?;
                schema.map_or_else(Json::null, |schema| Json::from_value(view::shown(&schema, &session.id)))
            }
            "dimensions" => {
                let owner = self.dimension_owner(session);
                self.store.read(|reader| view::dimensions(reader, &id, owner.as_ref()))?
            }
            "seats" => Json::of(&session.seats).map_err(|error| ExecError::Internal(error.to_string()))?,
            "worldRecord" => {
                let world = session.world_id.as_deref().and_then(|world| self.world(world).ok());
                super::record::of(world.as_deref(), &session.locale)
            }
            "dimensionProviderPluginId" => match self.dimension_owner(session) {
                Some(owner) => Json::from_value(owner.as_str().into()),
                None => Json::null(),
            },
            _ => Json::null(),
        })
    }

    /// The one active package that provides `world.dimensions@1`.
    pub(crate) fn dimension_owner(&self, session: &SessionRecord) -> Option<PluginId> {
        let packages = self.packages.read();
        let active = session.active_plugins.iter().filter_map(|id| packages.get(id));
        crate::active::dimension_owner(active.map(|package| &**package))
    }
}
