//! Writes beyond plugin data, and the parts of `ctx.world`, as one runtime sees them.

use std::sync::Arc;

use covel_abi::HostError;
use covel_graph::{Json, RuntimeIx};
use covel_store::DataVersion;
use serde_json::Value;

use super::{Buffer, RuntimeCall, Shared, readable, store_failed};
use crate::{
    limits::{MAX_DATA_NAME_BYTES, MAX_WRITE_BYTES_PER_RUNTIME, MAX_WRITES_PER_RUNTIME},
    overlay::{DataKey, Overlay, overlay_rows},
    reads::Seen,
    world::{
        CHARACTERS, DIMENSIONS, SCHEMA, WORLD, WORLD_OWNER, WorldFault,
        cast::Cast,
        commit::check_owner,
        dimension::{DimensionUpdate, check_value},
        view,
    },
    write::{Proposal, Write},
};

/// How a trace names reads of characters, beside namespaces of plugin data.
const TRACED_CHARACTERS: &str = "ctx.world.characters";
/// And of their schema.
const TRACED_SCHEMA: &str = "ctx.world.characterSchema";

impl From<WorldFault> for HostError {
    fn from(fault: WorldFault) -> Self {
        Self::new(fault.code, fault.message)
    }
}

/// The overlay's name of a character, or of the schema.
pub(crate) fn world_key(namespace: &str, key: &str) -> DataKey {
    DataKey { plugin: WORLD, namespace: namespace.into(), key: key.into() }
}

/// Everyone as a view shows them, in creation order. Not tracked.
pub(crate) fn characters_in(shared: &Shared, view: &Overlay) -> Result<Vec<(String, Json)>, HostError> {
    let committed = shared.store.read(|reader| view::characters(reader, &shared.session_id)).map_err(store_failed)?;
    let namespace = CHARACTERS.into();
    Ok(overlay_rows(committed, view.namespace(WORLD, &namespace), |_, value, _| value.clone()))
}

/// A part of `ctx.world` as a view shows it, for calls that no runtime answers for. Not tracked. RDD-5
pub(crate) fn world_part_in(shared: &Shared, view: &Overlay, part: &str) -> Result<Json, HostError> {
    let session = shared.session.id.as_str();
    match part {
        "characters" => {
            let rows = characters_in(shared, view)?;
            Ok(Json::from_value(Value::Array(rows.iter().map(|(_, record)| view::shown(record, session)).collect())))
        }
        "characterSchema" => {
            let schema = match view.get(&world_key(SCHEMA, SCHEMA)) {
                Some(entry) => entry.value.clone(),
                None => shared.store.read(|reader| view::schema(reader, &shared.session_id)).map_err(store_failed)?,
            };
            Ok(schema.map_or_else(Json::null, |schema| Json::from_value(view::shown(&schema, session))))
        }
        other => shared.frozen_world(other).map_err(store_failed),
    }
}

impl RuntimeCall {
    /// Checks a proposal against what the runtime sees and buffers it.
    ///
    /// # Errors
    /// The coded refusal; nothing was buffered.
    pub fn propose(&self, proposal: Proposal) -> Result<(), HostError> {
        let mut buffer = self.open()?;
        self.propose_to(&mut buffer, &proposal)
    }

    pub(super) fn propose_to(&self, buffer: &mut Buffer, proposal: &Proposal) -> Result<(), HostError> {
        if buffer.writes.len() >= MAX_WRITES_PER_RUNTIME {
            let message = format!("one runtime may write at most {MAX_WRITES_PER_RUNTIME} records");
            return Err(HostError::new("too-many-writes", message));
        }
        let bytes = proposal.bytes();
        if bytes > MAX_WRITE_BYTES_PER_RUNTIME - buffer.written {
            let message = format!("one runtime may write at most {MAX_WRITE_BYTES_PER_RUNTIME} bytes");
            return Err(HostError::new("too-many-writes", message));
        }
        let now = &self.shared.session.updated_at;
        match proposal {
            Proposal::Character(upsert) => {
                let record = self.cast(buffer)?.upsert(upsert, now)?;
                buffer.view.put(world_key(CHARACTERS, &upsert.id), Some(record), self.runtime);
            }
            Proposal::Schema(schema) => {
                let record = self.cast(buffer)?.set_schema(schema, now)?;
                buffer.view.put(world_key(SCHEMA, SCHEMA), Some(record), self.runtime);
            }
            Proposal::DimensionInitialize(definitions) => {
                self.check_owner()?;
                for (id, definition) in &definitions.0 {
                    definition.in_language(id, &self.shared.session.locale)?;
                }
            }
            Proposal::DimensionUpdate(update) => self.check_update(update)?,
            Proposal::StatePatch { table, field, .. } if table.len().max(field.len()) > MAX_DATA_NAME_BYTES => {
                let message = format!("a table and a field have at most {MAX_DATA_NAME_BYTES} bytes each");
                return Err(HostError::new("invalid-input", message));
            }
            _ => {}
        }
        buffer.written += bytes;
        buffer.writes.push(Write::Proposal(Box::new(proposal.clone())));
        Ok(())
    }

    fn check_owner(&self) -> Result<(), HostError> {
        Ok(check_owner(self.shared.plan.dimension_owner.as_ref(), self.plugin_id())?)
    }

    /// Owner and values; versions are compared at commit, where they count.
    fn check_update(&self, update: &DimensionUpdate) -> Result<(), HostError> {
        self.check_owner()?;
        for one in &update.updates {
            if let Some(record) = self.learned(self.plugin, DIMENSIONS, &one.id)? {
                let stored = readable(record.value, DIMENSIONS, &one.id)?;
                check_value(&one.id, &stored.value()["definition"]["schema"], one.value.value())?;
            }
        }
        Ok(())
    }

    /// Everyone as this runtime sees them, made once and kept while it writes. Checking a write is no read.
    fn cast<'a>(&self, buffer: &'a mut Buffer) -> Result<&'a mut Cast, HostError> {
        if buffer.cast.is_none() {
            let rows = self.rows(buffer)?;
            let schema = match buffer.view.get(&world_key(SCHEMA, SCHEMA)) {
                Some(entry) => entry.value.clone(),
                None => self.read_store(view::schema)?,
            };
            buffer.cast = Some(Box::new(Cast::new(schema, rows)));
        }
        Ok(buffer.cast.get_or_insert_default())
    }

    fn rows(&self, buffer: &Buffer) -> Result<Vec<(String, Json)>, HostError> {
        characters_in(&self.shared, &buffer.view)
    }

    fn read_store<T>(
        &self,
        body: impl FnOnce(&covel_store::Reader<'_>, &covel_graph::SessionId) -> Result<T, covel_store::StoreError>,
    ) -> Result<T, HostError> {
        self.shared.store.read(|reader| body(reader, &self.shared.session_id)).map_err(store_failed)
    }

    /// A background job hangs on the committed characters or schema it is about to read. Noted before the read: what
    /// changes in between makes the job stale, not wrong.
    fn note_world(&self, namespace: &str) -> Result<(), HostError> {
        let Some(reads) = self.shared.job_reads() else { return Ok(()) };
        let rows = self.read_store(|reader, session| reader.list_data(session, &WORLD_OWNER.into(), namespace))?;
        let versions = rows
            .iter()
            .map(|row| (row.key.as_str(), DataVersion { version: row.version, created_seq: row.created_seq }));
        reads.namespace(WORLD_OWNER, namespace, versions);
        Ok(())
    }

    /// A part of `ctx.world`. Reading characters or the schema depends on whoever wrote them in this execution; the
    /// other parts are frozen with it and depend on nobody. RDD-4
    ///
    /// # Errors
    /// When the call has ended or the store cannot be read.
    pub fn world_part(&self, part: &str) -> Result<Json, HostError> {
        self.world_part_of(None, part)
    }

    /// As [`Self::world_part`], of a copy of this runtime's view taken earlier. CTX-1
    pub(crate) fn world_part_of(&self, copy: Option<&Overlay>, part: &str) -> Result<Json, HostError> {
        let mut buffer = self.open()?;
        let view = copy.unwrap_or(&buffer.view).clone();
        let session = self.shared.session.id.as_str();
        Ok(match part {
            "characters" => {
                self.note_world(CHARACTERS)?;
                let rows = characters_in(&self.shared, &view)?;
                let namespace = CHARACTERS.into();
                let mut written: Vec<(Arc<str>, RuntimeIx)> = view
                    .namespace(WORLD, &namespace)
                    .map(|(key, entry)| (Arc::clone(&key.key), entry.producer))
                    .collect();
                written.retain(|(_, producer)| *producer != self.runtime);
                buffer.read_set.get_or_insert_default().list(TRACED_CHARACTERS, rows.len());
                for (id, producer) in written {
                    buffer.note_data(producer);
                    let seen = Seen::Uncommitted(producer);
                    buffer.read_set.get_or_insert_default().record(TRACED_CHARACTERS, &id, seen);
                }
                Json::from_value(Value::Array(rows.iter().map(|(_, record)| view::shown(record, session)).collect()))
            }
            "characterSchema" => {
                self.note_world(SCHEMA)?;
                let found = view.get(&world_key(SCHEMA, SCHEMA)).cloned();
                let schema = match found {
                    Some(entry) => {
                        if entry.producer != self.runtime {
                            buffer.note_data(entry.producer);
                            let seen = Seen::Uncommitted(entry.producer);
                            buffer.read_set.get_or_insert_default().record(TRACED_SCHEMA, SCHEMA, seen);
                        }
                        entry.value
                    }
                    None => {
                        let row = self.read_store(|reader, session| {
                            reader.get_data(session, &WORLD_OWNER.into(), SCHEMA, SCHEMA)
                        })?;
                        let version =
                            row.as_ref().map(|row| DataVersion { version: row.version, created_seq: row.created_seq });
                        let seen = Seen::Committed(version);
                        buffer.read_set.get_or_insert_default().record(TRACED_SCHEMA, SCHEMA, seen);
                        row.map(|row| row.value)
                    }
                };
                schema.map_or_else(Json::null, |schema| Json::from_value(view::shown(&schema, session)))
            }
            other => {
                drop(buffer);
                self.shared.frozen_world(other).map_err(store_failed)?
            }
        })
    }
}
