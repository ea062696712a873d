//! Writes the player makes outside a turn: a character, own lorebook entries. They take effect at once.

use covel_graph::{Json, PluginId, SessionId};
use covel_store::TransactError;
use serde_json::Value;

use super::{
    LORE_OWNER,
    commit::{Author, WorldCommit, WorldState},
    lorebook::LoreEntry,
    seat, view,
};
use crate::{
    commit::Refused,
    document::ChangeDocument,
    engine::{Engine, SessionLock},
    error::ExecError,
    event::{EventSink, TurnEvent, of_change},
    session::{SessionRecord, SessionStatus},
    write::Proposal,
};

/// Who writes for the player, in changes and events.
const PLAYER_SOURCE: &str = "player";

fn refused(error: TransactError<Refused>) -> ExecError {
    match error {
        TransactError::Refused(Refused::Rule(error)) => ExecError::Refused { code: error.code, message: error.message },
        TransactError::Refused(Refused::Store(error)) | TransactError::Store(error) => ExecError::Store(error),
        TransactError::Panicked(message) => ExecError::Internal(message),
    }
}

impl Engine {
    fn open_session(&self, session_id: &str) -> Result<SessionRecord, ExecError> {
        self.0.check_open()?;
        let session = self.0.session(session_id)?;
        if session.status == SessionStatus::Ended {
            return Err(ExecError::SessionNotActive { status: session.status.as_str().into(), id: session.id });
        }
        Ok(session)
    }

    /// Creates, replaces or patches a character as `character.upsert` does.
    ///
    /// # Errors
    /// [`ExecError::Invalid`] for a malformed payload, [`ExecError::Refused`] with the code of the rule it breaks, and
    /// the session's own refusals.
    pub async fn put_character(
        &self,
        session_id: &str,
        payload: &Value,
        events: Option<EventSink>,
    ) -> Result<Json, ExecError> {
        let invalid = |message: String| ExecError::Invalid { field: "character".into(), message };
        let object = payload.as_object().ok_or_else(|| invalid("a character is an object".into()))?;
        let proposal =
            Proposal::read("character.upsert", object).map_err(|fault| invalid(fault.at("the character")))?;
        let _lock = SessionLock::take(&self.0, session_id).await?;
        let mut session = self.open_session(session_id)?;
        let (id, now) = (SessionId::from(session_id), self.0.now());
        let mut world = WorldCommit {
            session_id: id.clone(),
            turn_id: String::new(),
            logical_turn: session.completed_player_turns + 1,
            locale: session.locale.clone(),
            now: now.clone(),
            dimension_owner: None,
            state: WorldState::default(),
        };
        let made: Vec<ChangeDocument> = self
            .0
            .store
            .transact(move |tx| {
                let plugin = PluginId::from(PLAYER_SOURCE);
                let author = Author { plugin: &plugin, runtime: PLAYER_SOURCE, at: 0 };
                let changes = world.apply(tx, author, &proposal)?;
                if let Some(players) = world.players() {
                    seat::reconcile(&mut session.seats, &players);
                }
                session.updated_at = now;
                let record = Json::of(&session).map_err(|error| Refused::internal(error.to_string()))?;
                tx.put_session(&id, &record)?;
                Ok(changes)
            })
            .await
            .map_err(refused)?;
        let mut character = Json::null();
        for change in &made {
            let record = Json::from_value(change.payload.value()["character"].clone());
            character = Json::from_value(view::shown(&record, session_id));
            if let (Some(events), Some((kind, payload))) = (&events, of_change(change)) {
                // Nobody listening changes nothing.
                let _ = events.send(TurnEvent {
                    kind,
                    session_id: session_id.to_owned(),
                    turn_id: String::new(),
                    payload: Json::from_value(payload),
                });
            }
        }
        Ok(character)
    }

    /// Puts an entry of the player's own lorebook.
    ///
    /// # Errors
    /// [`ExecError::Invalid`] for a malformed entry, and the session's own refusals.
    pub async fn put_lore_entry(&self, session_id: &str, entry: &Value) -> Result<Json, ExecError> {
        let invalid = |message: String| ExecError::Invalid { field: "entry".into(), message };
        let object = entry.as_object().ok_or_else(|| invalid("an entry is an object".into()))?;
        let entry = LoreEntry::read(object).map_err(|fault| invalid(fault.at("the entry")))?;
        let _lock = SessionLock::take(&self.0, session_id).await?;
        self.open_session(session_id)?;
        let (id, now, stored) = (SessionId::from(session_id), self.0.now(), entry.clone());
        self.0
            .store
            .transact(move |tx| {
                let put = tx.put_data(&id, &LORE_OWNER.into(), PLAYER_SOURCE, &stored.id, &stored.record, &now);
                put.map(drop).map_err(Refused::from)
            })
            .await
            .map_err(refused)?;
        let mut shown = view::shown(&entry.record, session_id);
        shown["owner"] = PLAYER_SOURCE.into();
        Ok(Json::from_value(shown))
    }

    /// Deletes an entry of the player's own lorebook; answers whether it was there. Entries of worlds and packages
    /// are not the player's to delete.
    ///
    /// # Errors
    /// The session's own refusals.
    pub async fn delete_lore_entry(&self, session_id: &str, entry_id: &str) -> Result<bool, ExecError> {
        let _lock = SessionLock::take(&self.0, session_id).await?;
        self.open_session(session_id)?;
        let (id, entry) = (SessionId::from(session_id), entry_id.to_owned());
        let deleted = self
            .0
            .store
            .transact(move |tx| tx.delete_data(&id, &LORE_OWNER.into(), PLAYER_SOURCE, &entry).map_err(Refused::from));
        deleted.await.map_err(refused)
    }
}
