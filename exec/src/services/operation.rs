//! What write services stage: operations, and the records a turn keeps of them. WSV-5, WSV-9

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    document::ErrorInfo,
    overlay::{DataKey, DataOp, DataWrite},
};

/// One successful call of a write service: all its writes, or none.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// Index of the providing package.
    pub(crate) provider: u32,
    /// Name of the service.
    pub(crate) service: Arc<str>,
    /// Its contract.
    pub(crate) contract: String,
    /// What it wrote, in order.
    pub(crate) writes: Vec<DataWrite>,
    /// The code that made the call: 0 for a handler, else a tool call.
    pub(crate) scope: u32,
    /// Place among the write calls of its caller.
    pub(crate) sequence: u64,
    /// Withdrawn: the code that made the call failed. WSV-7
    pub(crate) discarded: bool,
}

impl Operation {
    /// The record a write is about.
    pub(crate) fn key(&self, write: &DataWrite) -> DataKey {
        DataKey { plugin: self.provider, namespace: Arc::clone(&write.namespace), key: Arc::clone(&write.key) }
    }

    /// The runtime id its writes carry. WSV-5
    pub(crate) fn source(&self) -> String {
        format!("service:{}", self.service)
    }

    /// Its record, not yet settled.
    pub(crate) fn document(&self, provider: &str, caller: &str, concealed: bool) -> OperationDocument {
        let writes = self.writes.iter().filter(|_| !concealed).map(|write| OperationWrite {
            kind: match write.op {
                DataOp::Set(_) => "set",
                DataOp::Delete => "delete",
                DataOp::Update(_) => "update",
            }
            .to_owned(),
            namespace: write.namespace.to_string(),
            key: write.key.to_string(),
        });
        OperationDocument {
            provider_plugin_id: provider.to_owned(),
            service: self.service.to_string(),
            contract: self.contract.clone(),
            caller_runtime_id: caller.to_owned(),
            status: OperationStatus::Discarded,
            code: None,
            message: None,
            writes: writes.collect(),
        }
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationStatus {
    /// It is stored.
    Committed,
    /// It did not hold when the turn was committed.
    Failed,
    /// Whoever made the call failed or was not kept.
    Discarded,
}

/// One operation, as turn documents list it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationDocument {
    /// The package whose data it changes.
    pub provider_plugin_id: String,
    /// Service.
    pub service: String,
    /// Its contract.
    pub contract: String,
    /// The runtime whose result it hangs on.
    pub caller_runtime_id: String,
    /// What became of it.
    pub status: OperationStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What it writes; empty when its caller is concealed.
    pub writes: Vec<OperationWrite>,
}

impl OperationDocument {
    /// It did not hold at commit.
    pub(crate) fn fail(&mut self, error: &ErrorInfo, concealed: bool) {
        self.status = OperationStatus::Failed;
        self.code = Some(error.code.clone());
        self.message = (!concealed).then(|| error.message.clone());
    }
}

/// One write of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationWrite {
    /// `set`, `delete` or `update`.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Key.
    pub key: String,
}

/// An operation of the last committed turn of the main loop that came to nothing, kept for whoever started it. WSV-10
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotApplied {
    /// The runtime that started it.
    pub runtime_id: String,
    /// The package whose data it would have changed.
    pub provider_plugin_id: String,
    /// Contract of the service.
    pub contract: String,
    /// Why it failed.
    pub code: String,
}
