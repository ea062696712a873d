//! Compiled packages in the store, so that a host that starts again parses nothing that did not change.

use std::path::Path;

use covel_graph::{Json, Remembered, Shelf};
use covel_store::{Store, StoreError, StoreOptions};
use serde_json::json;

use crate::{engine::Engine, error::ExecError};

/// Names under which records of compiled packages are kept.
pub const COMPILED_NAMES: &str = "compiled:";

/// The packages an earlier run compiled, by the digests of their files.
#[derive(Clone)]
pub struct PackageShelf(Store);

impl PackageShelf {
    /// The shelf in a data folder that no engine has open; `None` when there is none or it cannot be read now.
    /// Drop it before an engine opens the folder.
    pub fn open(data_dir: &Path) -> Option<Self> {
        if !Store::exists(data_dir) {
            return None;
        }
        match Store::open(data_dir, StoreOptions::default()) {
            Ok(store) => Some(Self(store)),
            Err(error) => {
                // Whoever opens the folder next says why; packages can be compiled without it.
                tracing::debug!("packages compiled earlier are not at hand: {error}");
                None
            }
        }
    }
}

impl Shelf for PackageShelf {
    fn record(&self, key: &str) -> Option<String> {
        let found = self.0.read(|reader| reader.get_meta(&format!("{COMPILED_NAMES}{key}")));
        found.ok()??.value()["record"].as_str().map(str::to_owned)
    }

    fn fragment(&self, digest: &str) -> Option<Vec<u8>> {
        let found = self.0.read(|reader| Ok::<_, StoreError>(reader.get_fragment(digest)?.map(<[u8]>::to_vec)));
        found.ok()?
    }
}

impl Engine {
    /// The packages compiled earlier that this engine's store keeps.
    pub fn shelf(&self) -> PackageShelf {
        PackageShelf(self.store().clone())
    }

    /// Keeps the records of packages compiled now. Their fragments are kept when the packages are published; a record
    /// without its fragment is of no use and does no harm.
    ///
    /// # Errors
    /// [`ExecError::Store`].
    pub async fn remember(&self, records: Vec<Remembered>) -> Result<(), ExecError> {
        if records.is_empty() {
            return Ok(());
        }
        let stored = self.store().transact(move |tx| {
            for one in &records {
                let value = Json::from_value(json!({ "fragment": one.digest, "record": one.record }));
                tx.put_meta(&format!("{COMPILED_NAMES}{}", one.key), &value)?;
            }
            Ok::<_, StoreError>(())
        });
        stored.await.map_err(|error| ExecError::Store(error.flatten()))
    }
}
