//! Reading what is committed.

use covel_graph::{Json, PluginId, SessionId};

use crate::{document::TurnDocument, engine::Engine, error::ExecError, session::MessageRecord};

/// Which records to list.
#[derive(Clone, Debug, Default)]
pub struct DataFilter {
    /// One package.
    pub plugin: Option<String>,
    /// One namespace.
    pub namespace: Option<String>,
    /// One key.
    pub key: Option<String>,
    /// `_hidden.*` too. Kernel-owned records are never listed.
    pub hidden: bool,
}

/// One committed record.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataRecord {
    /// Owner.
    pub plugin_id: String,
    /// Namespace.
    pub namespace: String,
    /// Key.
    pub key: String,
    /// Value.
    pub value: Json,
    /// Counts the writes of this record, from 1.
    pub version: u64,
    /// ISO time.
    pub created_at: String,
    /// ISO time.
    pub updated_at: String,
}

impl Engine {
    /// The newest messages, oldest first.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn messages(&self, session_id: &str, limit: usize) -> Result<Vec<MessageRecord>, ExecError> {
        self.0.session(session_id)?;
        let rows = self.0.store.read(|reader| reader.last_messages(&SessionId::from(session_id), .., limit))?;
        rows.iter().map(|row| decode(&row.message)).collect()
    }

    /// The newest committed turns, oldest first.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn turns(&self, session_id: &str, limit: usize) -> Result<Vec<TurnDocument>, ExecError> {
        self.0.session(session_id)?;
        let rows = self.0.store.read(|reader| reader.last_turns(&SessionId::from(session_id), .., limit))?;
        rows.iter()
            .map(|row| {
                // A fork has its parent's turns as they were.
                let mut document: TurnDocument = decode(&row.document)?;
                session_id.clone_into(&mut document.session_id);
                Ok(document)
            })
            .collect()
    }

    /// Committed plugin data in creation order.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn data(&self, session_id: &str, filter: DataFilter) -> Result<Vec<DataRecord>, ExecError> {
        self.0.session(session_id)?;
        let plugin = filter.plugin.as_deref().map(PluginId::from);
        let rows = self.0.store.read(|reader| {
            reader.list_session_data(&SessionId::from(session_id), plugin.as_ref(), filter.namespace.as_deref())
        })?;
        Ok(rows
            .into_iter()
            .filter(|row| !row.plugin.as_str().starts_with("__kernel:"))
            .filter(|row| filter.hidden || !row.namespace.starts_with("_hidden."))
            .filter(|row| filter.key.as_ref().is_none_or(|key| *key == row.record.key))
            .map(|row| DataRecord {
                plugin_id: row.plugin.as_str().to_owned(),
                namespace: row.namespace,
                key: row.record.key,
                value: row.record.value,
                version: row.record.version,
                created_at: row.record.created_at,
                updated_at: row.record.updated_at,
            })
            .collect())
    }
}

fn decode<T: serde::de::DeserializeOwned>(json: &Json) -> Result<T, ExecError> {
    serde_json::from_value(json.value().clone())
        .map_err(|error| ExecError::Internal(format!("a stored record cannot be read: {error}")))
}
