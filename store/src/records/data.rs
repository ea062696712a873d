//! Plugin data, by (session, plugin, namespace, key).

use covel_graph::{Json, PluginId, SessionId, limits::MAX_DATA_VALUE_BYTES};

use crate::{
    codec::{RecordReader, RecordWriter, corrupt},
    error::StoreError,
    keys::{self, Key, Part, Parts},
    limits,
    read::Reader,
    tables::Table,
    tx::Tx,
};

/// Identifies one state of one record. Both numbers together tell a record from a later one of the same key that
/// was deleted and created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataVersion {
    /// Counts the writes of this record, from 1.
    pub version: u64,
    /// Position in the session's creation order of plugin data, from 1.
    pub created_seq: u64,
}

/// One record of plugin data.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRecord {
    /// Its key in the namespace.
    pub key: String,
    /// The value: the JSON text that was written, not parsed.
    pub value: Json,
    /// Counts the writes of this record, from 1. A record deleted and created again starts anew.
    pub version: u64,
    /// When it was created, as the writer said.
    pub created_at: String,
    /// When it was last written, as the writer said.
    pub updated_at: String,
    /// Position in the session's creation order of plugin data, from 1.
    pub created_seq: u64,
}

impl DataRecord {
    /// What identifies this state of it.
    pub fn version(&self) -> DataVersion {
        DataVersion { version: self.version, created_seq: self.created_seq }
    }
}

/// A record with where it lives.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRow {
    /// Owner.
    pub plugin: PluginId,
    /// Namespace.
    pub namespace: String,
    /// The record.
    pub record: DataRecord,
}

fn of_session(session: &SessionId) -> Key {
    Key::of(session.as_str())
}

fn of_plugin(session: &SessionId, plugin: &PluginId) -> Key {
    of_session(session).text(plugin.as_str())
}

fn of_namespace(session: &SessionId, plugin: &PluginId, namespace: &str) -> Key {
    of_plugin(session, plugin).text(namespace)
}

fn count_key(session: &SessionId, plugin: &PluginId, namespace: &str) -> Key {
    of_session(session).text("data-count").text(plugin.as_str()).text(namespace)
}

/// The fields before the value, borrowed.
struct Head<'a> {
    version: DataVersion,
    created_at: &'a str,
    updated_at: &'a str,
    /// Plugin, namespace and key, kept when the record's key cannot tell them.
    names: Option<[&'a str; 3]>,
}

fn head<'a>(bytes: &'a [u8]) -> Result<(Head<'a>, RecordReader<'a>), StoreError> {
    let mut reader = RecordReader::new(Table::Data, bytes)?;
    let version = DataVersion { version: reader.number()?, created_seq: reader.number()? };
    let created_at = reader.text()?;
    let updated_at = reader.text()?;
    let names = match reader.number()? {
        0 => None,
        _ => Some([reader.text()?, reader.text()?, reader.text()?]),
    };
    Ok((Head { version, created_at, updated_at, names }, reader))
}

fn row(key: &[u8], bytes: &[u8]) -> Result<DataRow, StoreError> {
    let (head, reader) = head(bytes)?;
    let [plugin, namespace, key] = match head.names {
        Some(names) => names.map(str::to_owned),
        None => {
            let mut parts = Parts::of(key);
            parts.text();
            let mut next = || match parts.text() {
                Some(Part::Exact(text)) => Ok(text),
                _ => Err(corrupt(Table::Data, "unreadable key")),
            };
            [next()?, next()?, next()?]
        }
    };
    let record = DataRecord {
        key,
        value: reader.json()?,
        version: head.version.version,
        created_at: head.created_at.to_owned(),
        updated_at: head.updated_at.to_owned(),
        created_seq: head.version.created_seq,
    };
    Ok(DataRow { plugin: plugin.into(), namespace, record })
}

impl Reader<'_> {
    /// One record.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_data(
        &self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
    ) -> Result<Option<DataRecord>, StoreError> {
        let full = of_namespace(session, plugin, namespace).text(key);
        let bytes = self.get_raw(Table::Data, full.as_bytes())?;
        bytes.map(|bytes| row(full.as_bytes(), bytes).map(|row| row.record)).transpose()
    }

    /// The version of a record, without its value.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn data_version(
        &self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
    ) -> Result<Option<DataVersion>, StoreError> {
        let full = of_namespace(session, plugin, namespace).text(key);
        let bytes = self.get_raw(Table::Data, full.as_bytes())?;
        bytes.map(|bytes| head(bytes).map(|(head, _)| head.version)).transpose()
    }

    /// All records of a namespace in creation order. Scans the namespace and sorts it; a namespace holds at most
    /// [`limits::MAX_RECORDS_PER_NAMESPACE`] records.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_data(
        &self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<Vec<DataRecord>, StoreError> {
        let rows = self.data_rows(&of_namespace(session, plugin, namespace))?;
        Ok(rows.into_iter().map(|row| row.record).collect())
    }

    /// Everything a session holds, or one plugin's part, or one namespace of it, in creation order.
    /// A namespace without a plugin is looked for in every plugin, which scans the session.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_session_data(
        &self,
        session: &SessionId,
        plugin: Option<&PluginId>,
        namespace: Option<&str>,
    ) -> Result<Vec<DataRow>, StoreError> {
        match (plugin, namespace) {
            (Some(plugin), Some(namespace)) => self.data_rows(&of_namespace(session, plugin, namespace)),
            (Some(plugin), None) => self.data_rows(&of_plugin(session, plugin)),
            (None, namespace) => {
                let mut rows = self.data_rows(&of_session(session))?;
                rows.retain(|row| namespace.is_none_or(|namespace| row.namespace == namespace));
                Ok(rows)
            }
        }
    }

    /// How many records a namespace holds; one look-up.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn count_data(&self, session: &SessionId, plugin: &PluginId, namespace: &str) -> Result<u64, StoreError> {
        self.counter(Table::Counters, &count_key(session, plugin, namespace))
    }

    /// The namespaces of a plugin that hold a record, in text order. One look-up each.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_namespaces(&self, session: &SessionId, plugin: &PluginId) -> Result<Vec<String>, StoreError> {
        let mut names = self.skip_scan(&of_plugin(session, plugin), |row| {
            (row.namespace.clone(), of_namespace(session, plugin, &row.namespace))
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// The plugins that hold a record in a session, in text order. One look-up each.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn list_data_plugins(&self, session: &SessionId) -> Result<Vec<PluginId>, StoreError> {
        let mut plugins =
            self.skip_scan(&of_session(session), |row| (row.plugin.clone(), of_plugin(session, &row.plugin)))?;
        plugins.sort_unstable();
        Ok(plugins)
    }

    /// Reads the first row of each group under a prefix; `group` gives a group's name and its own prefix.
    fn skip_scan<N>(&self, prefix: &Key, group: impl Fn(&DataRow) -> (N, Key)) -> Result<Vec<N>, StoreError> {
        let end = prefix.after_prefix();
        let mut from = prefix.as_bytes().to_vec();
        let mut names = Vec::new();
        while let Some((key, bytes)) = self.range_raw(Table::Data, &from, &end)?.next().transpose()? {
            let (name, own) = group(&row(key, bytes)?);
            names.push(name);
            from = keys::after_prefix(own.as_bytes());
        }
        Ok(names)
    }

    fn data_rows(&self, prefix: &Key) -> Result<Vec<DataRow>, StoreError> {
        let rows = self.prefix_raw(Table::Data, prefix)?;
        let rows = rows.map(|stored| stored.and_then(|(key, bytes)| row(key, bytes)));
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        rows.sort_by_key(|row| row.record.created_seq);
        Ok(rows)
    }
}

impl Tx<'_> {
    /// Writes a record; answers its new version. `now` is an ISO time: it becomes `updated_at`, and `created_at`
    /// of a new record.
    ///
    /// # Errors
    /// `store-value-too-large` over [`MAX_DATA_VALUE_BYTES`], `store-namespace-full` over
    /// [`limits::MAX_RECORDS_PER_NAMESPACE`], `store-transaction-too-large`, `store-corrupt`.
    pub fn put_data(
        &mut self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
        value: &Json,
        now: &str,
    ) -> Result<DataVersion, StoreError> {
        let text = value.text().as_bytes();
        if text.len() > MAX_DATA_VALUE_BYTES {
            return Err(StoreError::ValueTooLarge {
                table: Table::Data.name(),
                found: text.len(),
                limit: MAX_DATA_VALUE_BYTES,
            });
        }
        let full = of_namespace(session, plugin, namespace).text(key);
        let existing = match self.read().get_raw(Table::Data, full.as_bytes())? {
            Some(bytes) => {
                let (head, _) = head(bytes)?;
                Some((head.version, head.created_at.to_owned()))
            }
            None => None,
        };
        let (version, created_at) = match existing {
            Some((old, created_at)) => (DataVersion { version: old.version + 1, ..old }, created_at),
            None => (self.new_data_version(session, plugin, namespace)?, now.to_owned()),
        };
        let names = [plugin.as_str(), namespace, key];
        let mut record = RecordWriter::new(text.len() + 96)
            .number(version.version)
            .number(version.created_seq)
            .text(&created_at)
            .text(now);
        record = if full.is_exact() {
            record.number(0)
        } else {
            names.iter().fold(record.number(1), |record, name| record.text(name))
        };
        self.put_raw(Table::Data, full, record.tail(text))?;
        Ok(version)
    }

    fn new_data_version(
        &mut self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
    ) -> Result<DataVersion, StoreError> {
        let held = self.count_up(Table::Counters, count_key(session, plugin, namespace))?;
        if held > limits::MAX_RECORDS_PER_NAMESPACE {
            self.count_down(Table::Counters, count_key(session, plugin, namespace))?;
            return Err(StoreError::NamespaceFull {
                plugin: plugin.to_string(),
                namespace: namespace.to_owned(),
                limit: limits::MAX_RECORDS_PER_NAMESPACE,
            });
        }
        let created_seq = self.count_up(Table::Counters, of_session(session).text("data"))?;
        Ok(DataVersion { version: 1, created_seq })
    }

    /// Deletes a record; answers whether it was there.
    ///
    /// # Errors
    /// `store-io`, `store-transaction-too-large`.
    pub fn delete_data(
        &mut self,
        session: &SessionId,
        plugin: &PluginId,
        namespace: &str,
        key: &str,
    ) -> Result<bool, StoreError> {
        let full = of_namespace(session, plugin, namespace).text(key);
        let existed = self.delete_raw(Table::Data, full.as_bytes())?;
        if existed {
            self.count_down(Table::Counters, count_key(session, plugin, namespace))?;
        }
        Ok(existed)
    }
}
