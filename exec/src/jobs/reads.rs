//! What a job read of the committed state, and whether it is still so.
//!
//! A job runs without its session's lock, so turns may commit meanwhile. It is stale only when something it read has
//! another version at its commit; what it did not look at may change as it likes.

use std::collections::BTreeMap;

use covel_graph::{PluginId, SessionId};
use covel_store::{DataVersion, Reader, StoreError};
use parking_lot::Mutex;

/// A record, by owner, namespace and key.
type Name = (String, String, String);

/// The first version seen of everything read.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    records: BTreeMap<Name, Option<DataVersion>>,
    /// Digest of (key, version) of all records, by owner and namespace: sees additions and removals too.
    namespaces: BTreeMap<(String, String), [u8; 32]>,
}

/// A read set that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<ReadSet>);

fn digest<'a>(rows: impl Iterator<Item = (&'a str, DataVersion)>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for (key, version) in rows {
        hasher.update(&u64::try_from(key.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(key.as_bytes());
        hasher.update(&version.version.to_le_bytes());
        hasher.update(&version.created_seq.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

impl Reads {
    /// A record was read; the first version counts.
    pub fn record(&self, owner: &str, namespace: &str, key: &str, version: Option<DataVersion>) {
        let name = (owner.to_owned(), namespace.to_owned(), key.to_owned());
        self.0.lock().records.entry(name).or_insert(version);
    }

    /// A whole namespace was read.
    pub fn namespace<'a>(&self, owner: &str, namespace: &str, rows: impl Iterator<Item = (&'a str, DataVersion)>) {
        let name = (owner.to_owned(), namespace.to_owned());
        let seen = digest(rows);
        self.0.lock().namespaces.entry(name).or_insert(seen);
    }

    /// What was read.
    pub fn take(&self) -> ReadSet {
        std::mem::take(&mut self.0.lock())
    }
}

impl ReadSet {
    /// The first thing read that is not as it was, in words.
    pub fn changed(&self, reader: &Reader<'_>, session: &SessionId) -> Result<Option<String>, StoreError> {
        for ((owner, namespace, key), seen) in &self.records {
            let owner_id = PluginId::from(owner.as_str());
            if reader.data_version(session, &owner_id, namespace, key)? != *seen {
                return Ok(Some(format!("{owner}:{namespace}/{key}")));
            }
        }
        for ((owner, namespace), seen) in &self.namespaces {
            let rows = reader.list_data(session, &PluginId::from(owner.as_str()), namespace)?;
            let now = digest(
                rows.iter()
                    .map(|row| (row.key.as_str(), DataVersion { version: row.version, created_seq: row.created_seq })),
            );
            if now != *seen {
                return Ok(Some(format!("{owner}:{namespace}/*")));
            }
        }
        Ok(None)
    }
}
