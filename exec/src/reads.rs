//! What one runtime read of plugin data, with versions: for the trace.

use std::collections::BTreeMap;

use covel_graph::RuntimeIx;
use covel_store::DataVersion;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_READS_TRACED;

/// The state of a record a runtime saw first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Committed, with its version; `None`: there was none.
    Committed(Option<DataVersion>),
    /// Written in this execution by this runtime.
    Uncommitted(RuntimeIx),
}

/// The records and namespaces read, each once.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    records: BTreeMap<(String, String), Seen>,
    lists: BTreeMap<String, usize>,
    more: bool,
}

/// One read as kept in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceRead {
    /// Namespace.
    pub namespace: String,
    /// Key; absent when the namespace was listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Version of the committed record read; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The runtime of this execution that had written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// How many records a list gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<usize>,
}

impl ReadSet {
    /// A record was read; the first reading counts, as later ones give the same or the reader's own write.
    pub(crate) fn record(&mut self, namespace: &str, key: &str, seen: Seen) {
        if self.records.len() >= MAX_READS_TRACED {
            self.more = true;
            return;
        }
        self.records.entry((namespace.to_owned(), key.to_owned())).or_insert(seen);
    }

    /// A namespace was listed.
    pub(crate) fn list(&mut self, namespace: &str, records: usize) {
        if self.lists.len() >= MAX_READS_TRACED {
            self.more = true;
            return;
        }
        self.lists.entry(namespace.to_owned()).or_insert(records);
    }

    /// Was more read than is kept?
    pub(crate) fn is_cut(&self) -> bool {
        self.more
    }

    /// As kept in a trace.
    pub(crate) fn to_trace(&self, id: impl Fn(RuntimeIx) -> String) -> Vec<TraceRead> {
        let lists = self.lists.iter().map(|(namespace, records)| TraceRead {
            namespace: namespace.clone(),
            key: None,
            version: None,
            producer: None,
            records: Some(*records),
        });
        let records = self.records.iter().map(|((namespace, key), seen)| TraceRead {
            namespace: namespace.clone(),
            key: Some(key.clone()),
            version: match seen {
                Seen::Committed(version) => version.map(|version| version.version),
                Seen::Uncommitted(_) => None,
            },
            producer: match seen {
                Seen::Committed(_) => None,
                Seen::Uncommitted(producer) => Some(id(*producer)),
            },
            records: None,
        });
        lists.chain(records).collect()
    }
}
