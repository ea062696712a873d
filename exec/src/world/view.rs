//! Reading the committed world of a session.

use covel_graph::{Json, PluginId, SessionId};
use covel_store::{Reader, StoreError};
use serde_json::{Map, Value};

use super::{CHARACTERS, DIMENSIONS, SCHEMA, WORLD_OWNER, cast::Cast, dimension};

/// Committed characters in creation order.
pub(crate) fn characters(reader: &Reader<'_>, session: &SessionId) -> Result<Vec<(String, Json)>, StoreError> {
    let rows = reader.list_data(session, &WORLD_OWNER.into(), CHARACTERS)?;
    Ok(rows.into_iter().map(|row| (row.key, row.value)).collect())
}

/// One committed character.
pub(crate) fn character(reader: &Reader<'_>, session: &SessionId, id: &str) -> Result<Option<Json>, StoreError> {
    Ok(reader.get_data(session, &WORLD_OWNER.into(), CHARACTERS, id)?.map(|row| row.value))
}

/// The committed character schema.
pub(crate) fn schema(reader: &Reader<'_>, session: &SessionId) -> Result<Option<Json>, StoreError> {
    Ok(reader.get_data(session, &WORLD_OWNER.into(), SCHEMA, SCHEMA)?.map(|row| row.value))
}

/// Everyone, committed.
pub(crate) fn cast(reader: &Reader<'_>, session: &SessionId) -> Result<Cast, StoreError> {
    Ok(Cast::new(schema(reader, session)?, characters(reader, session)?))
}

/// Public snapshot of committed dimensions, by id in creation order; without an owner there is none.
pub(crate) fn dimensions(
    reader: &Reader<'_>,
    session: &SessionId,
    owner: Option<&PluginId>,
) -> Result<Json, StoreError> {
    let mut all = Map::new();
    if let Some(owner) = owner {
        for row in reader.list_data(session, owner, DIMENSIONS)? {
            all.insert(row.key, dimension::public(row.value.value()));
        }
    }
    Ok(Json::from_value(Value::Object(all)))
}

/// A record as `ctx.world` and clients show it: with the session it belongs to.
pub(crate) fn shown(record: &Json, session: &str) -> Value {
    let mut value = record.value().clone();
    if let Value::Object(map) = &mut value {
        map.insert("sessionId".into(), session.into());
    }
    value
}
