//! Outcomes of activation, kept by what went in. A session asks before every execution; the answer changes only when a
//! publication, a grant, the player's choice or the world's needs do. REL-6

use std::{collections::HashMap, sync::Arc};

use covel_graph::{activation::Activation, world::World};
use parking_lot::Mutex;

use crate::limits::MAX_ACTIVATIONS;

/// Names one set of inputs besides the published packages.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ActivationKey([u8; 32]);

impl ActivationKey {
    /// Of lists (in order) and what the world needs.
    pub(crate) fn new(lists: [&[String]; 3], world: Option<&World>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut text = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        for list in lists {
            list.iter().for_each(|id| text(id));
            text(""); // No id is empty.
        }
        for contract in world.into_iter().flat_map(|world| &world.required_contracts) {
            text(contract.as_str());
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// Each outcome with the version of the registry it belongs to.
#[derive(Default)]
pub(crate) struct ActivationCache(Mutex<HashMap<ActivationKey, (u64, Arc<Activation>)>>);

impl ActivationCache {
    /// The outcome for this version of the registry, if it is known.
    pub(crate) fn get(&self, key: ActivationKey, version: u64) -> Option<Arc<Activation>> {
        self.0.lock().get(&key).filter(|(found, _)| *found == version).map(|(_, outcome)| Arc::clone(outcome))
    }

    /// Keeps an outcome.
    pub(crate) fn put(&self, key: ActivationKey, version: u64, outcome: Arc<Activation>) {
        let mut kept = self.0.lock();
        if kept.len() >= MAX_ACTIVATIONS {
            kept.clear();
        }
        kept.insert(key, (version, outcome));
    }
}
