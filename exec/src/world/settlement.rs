//! Receipts: each committed narrative of a world with update rules must be settled before the next one. SWC-3

use covel_graph::{Json, PluginId, SessionId};
use covel_store::{Reader, StoreError, Tx};
use serde_json::{Value, json};

use super::{
    DIMENSIONS, SETTLEMENTS, WorldFault,
    dimension::{Settlement, Source},
};
use crate::limits::MAX_RESOLVED_SETTLEMENTS;

/// The state of a receipt that waits.
pub(crate) const PENDING: &str = "pending-settlement";

/// Receipts that wait, oldest first.
pub(crate) fn pending(reader: &Reader<'_>, session: &SessionId, owner: &PluginId) -> Result<Vec<Json>, StoreError> {
    let rows = reader.list_data(session, owner, SETTLEMENTS)?;
    Ok(rows.into_iter().map(|row| row.value).filter(is_pending).collect())
}

fn is_pending(receipt: &Json) -> bool {
    receipt.value().get("status").and_then(Value::as_str) == Some(PENDING)
}

/// Opens a receipt for a narrative, when any dimension has an update rule.
pub(crate) fn open(
    tx: &mut Tx<'_>,
    session: &SessionId,
    owner: &PluginId,
    source: &Source,
    turn_id: &str,
    now: &str,
) -> Result<Option<Json>, StoreError> {
    let rows = tx.read().list_data(session, owner, DIMENSIONS)?;
    let ruled =
        |value: &Value| value.get("definition").is_some_and(|definition| definition.get("updateRule").is_some());
    if !rows.iter().any(|row| ruled(row.value.value())) {
        return Ok(None);
    }
    let receipt = Json::from_value(json!({
        "source": {"resultId": source.result_id, "turnNumber": source.turn_number},
        "sourceTurnId": turn_id, "version": 1, "status": PENDING, "createdAt": now, "updatedAt": now,
    }));
    tx.put_data(session, owner, SETTLEMENTS, &source.result_id, &receipt, now)?;
    Ok(Some(receipt))
}

/// Resolves the receipt of a narrative. None: that narrative needs none.
pub(crate) fn resolve(
    tx: &mut Tx<'_>,
    session: &SessionId,
    owner: &PluginId,
    source: &Source,
    settlement: Option<Settlement>,
    now: &str,
) -> Result<Result<Option<Json>, WorldFault>, StoreError> {
    let Some(row) = tx.read().get_data(session, owner, SETTLEMENTS, &source.result_id)? else { return Ok(Ok(None)) };
    if !is_pending(&row.value) {
        let status = row.value.value().get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = format!("{} is settled already: {status}", source.result_id);
        return Ok(Err(WorldFault::new("dimension-already-settled", message)));
    }
    let mut receipt = row.value.value().clone();
    receipt["status"] = settlement.map_or("settled", Settlement::as_str).into();
    receipt["version"] = (receipt["version"].as_u64().unwrap_or(1) + 1).into();
    receipt["updatedAt"] = now.into();
    let receipt = Json::from_value(receipt);
    tx.put_data(session, owner, SETTLEMENTS, &source.result_id, &receipt, now)?;
    prune(tx, session, owner)?;
    Ok(Ok(Some(receipt)))
}

/// Forgets the oldest resolved receipts.
fn prune(tx: &mut Tx<'_>, session: &SessionId, owner: &PluginId) -> Result<(), StoreError> {
    let rows = tx.read().list_data(session, owner, SETTLEMENTS)?;
    let resolved: Vec<String> = rows.into_iter().filter(|row| !is_pending(&row.value)).map(|row| row.key).collect();
    for key in &resolved[..resolved.len().saturating_sub(MAX_RESOLVED_SETTLEMENTS)] {
        tx.delete_data(session, owner, SETTLEMENTS, key)?;
    }
    Ok(())
}
