//! A runtime as the caller of services: what their providers read through it, and what they stage on its result.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use covel_abi::{DataRow, HostError, Settlement};
use covel_graph::Json;
use tokio::sync::Mutex as QueueMutex;

use super::RuntimeCall;
use crate::{
    limits::{MAX_OPERATIONS_PER_RUNTIME, MAX_WRITE_BYTES_PER_RUNTIME, MAX_WRITES_PER_RUNTIME},
    ops,
    overlay::{DataKey, DataOp, Entry, Overlay},
    services::{Client, operation::Operation},
};

/// What write services have staged on a runtime's result.
#[derive(Default)]
pub(super) struct Desk {
    /// Answers `ctx.services.discover`.
    client: Option<Client>,
    operations: Vec<Operation>,
    /// What the view had before the first staged write of each record.
    under: BTreeMap<DataKey, Option<Entry>>,
    /// One queue a provider: calls of one caller to one provider run one after another. WSV-8
    queues: BTreeMap<u32, Arc<QueueMutex<()>>>,
    /// Code (a tool call) that has ended: it stages nothing any more.
    ended: BTreeSet<u32>,
    next_scope: u32,
    next_sequence: u64,
    writes: usize,
}

impl Desk {
    pub(super) fn into_operations(self) -> Vec<Operation> {
        let mut operations = self.operations;
        operations.sort_by_key(|operation| operation.sequence);
        operations
    }
}

impl RuntimeCall {
    /// How a trace names a namespace of another package.
    pub(super) fn traced<'a>(&self, plugin: u32, namespace: &'a str) -> Cow<'a, str> {
        if plugin == self.plugin {
            return Cow::Borrowed(namespace);
        }
        Cow::Owned(format!("{}:{namespace}", self.shared.plan.packages[plugin as usize].id()))
    }

    /// Reads a record of a provider as this runtime's calls see it; recorded as this runtime's read. CTX-3, RDD-1
    pub(crate) fn provider_get(&self, plugin: u32, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        let mut buffer = self.open()?;
        self.seen_of(&mut buffer, plugin, namespace, key, true)
    }

    /// As [`Self::provider_get`] for the value an `update` applies to: nothing hangs on it. DAT-1
    pub(crate) fn provider_peek(&self, plugin: u32, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        let mut buffer = self.open()?;
        self.seen_of(&mut buffer, plugin, namespace, key, false)
    }

    /// Lists a namespace of a provider as this runtime's calls see it. CTX-3
    pub(crate) fn provider_list(&self, plugin: u32, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        self.list_of(plugin, namespace)
    }

    /// What this runtime sees now. A pointer copy.
    pub(crate) fn view_now(&self) -> Result<Overlay, HostError> {
        Ok(self.open()?.view.clone())
    }

    /// Lets the call discover services.
    pub(crate) fn offer_services(&self, client: Client) {
        self.buffer.lock().desk.get_or_insert_default().client = Some(client);
    }

    /// Who answers its discoveries.
    pub(super) fn service_client(&self) -> Result<Option<Client>, HostError> {
        Ok(self.open()?.desk.as_ref().and_then(|desk| desk.client.clone()))
    }

    /// Begins a piece of code whose staged operations count only if it succeeds. WSV-7
    pub(crate) fn begin_scope(&self) -> u32 {
        let mut buffer = self.buffer.lock();
        let desk = buffer.desk.get_or_insert_default();
        desk.next_scope += 1;
        desk.next_scope
    }

    /// Ends it. What it staged is withdrawn unless it succeeded; it stages nothing any more.
    pub(crate) fn end_scope(&self, scope: u32, succeeded: bool) {
        let mut buffer = self.buffer.lock();
        let buffer = &mut *buffer;
        let Some(desk) = &mut buffer.desk else { return };
        desk.ended.insert(scope);
        if succeeded || !desk.operations.iter().any(|operation| operation.scope == scope && !operation.discarded) {
            return;
        }
        for operation in desk.operations.iter_mut().filter(|operation| operation.scope == scope) {
            operation.discarded = true;
        }
        // The view again, without them: what was there first, then what still counts.
        for (key, before) in &desk.under {
            buffer.view.restore(key.clone(), before.clone());
        }
        for operation in desk.operations.iter().filter(|operation| !operation.discarded) {
            for write in &operation.writes {
                let key = operation.key(write);
                let value = match &write.op {
                    DataOp::Set(value) => Some(value.clone()),
                    DataOp::Delete => None,
                    DataOp::Update(list) => {
                        let plugin = operation.provider;
                        let stored = match buffer.view.get(&key) {
                            Some(entry) => entry.value.clone(),
                            None => match self.stored(plugin, &write.namespace, &write.key) {
                                Ok(found) => found.map(|record| record.value),
                                // The commit will say so.
                                Err(_) => continue,
                            },
                        };
                        match ops::apply(stored.as_ref().map(Json::value), list.value()) {
                            Ok(value) => Some(Json::from_value(value)),
                            // It will be refused at commit.
                            Err(_) => continue,
                        }
                    }
                };
                buffer.view.put_staged(key, value, self.runtime);
            }
        }
    }

    /// A place in the queue of calls to a provider. To be asked for in the order in which calls are made.
    pub(crate) fn queue_of(&self, provider: u32) -> Arc<QueueMutex<()>> {
        let mut buffer = self.buffer.lock();
        let desk = buffer.desk.get_or_insert_default();
        Arc::clone(desk.queues.entry(provider).or_default())
    }

    /// The next number of a write call, in the order in which they are made.
    pub(crate) fn next_operation(&self) -> u64 {
        let mut buffer = self.buffer.lock();
        let desk = buffer.desk.get_or_insert_default();
        desk.next_sequence += 1;
        desk.next_sequence
    }

    /// Stages an operation, unless whoever called has ended or given up meanwhile. `entries` are its records as its
    /// writes leave them. WSV-5
    ///
    /// # Errors
    /// `closed`, `too-many-writes`, or `unavailable` when it was given up.
    pub(crate) fn stage(
        &self,
        operation: Operation,
        entries: Vec<(DataKey, Option<Json>)>,
        bytes: usize,
        settlement: &Settlement,
    ) -> Result<(), HostError> {
        let mut buffer = self.open()?;
        let buffer = &mut *buffer;
        let desk = buffer.desk.get_or_insert_default();
        if desk.ended.contains(&operation.scope) {
            return Err(HostError::new("closed", "the code that called the service has ended"));
        }
        let too_many = |what: String| Err(HostError::new("too-many-writes", what));
        if desk.operations.len() >= MAX_OPERATIONS_PER_RUNTIME {
            return too_many(format!("one runtime may stage at most {MAX_OPERATIONS_PER_RUNTIME} operations"));
        }
        if desk.writes + operation.writes.len() > MAX_WRITES_PER_RUNTIME {
            return too_many(format!("one runtime may stage at most {MAX_WRITES_PER_RUNTIME} writes"));
        }
        if bytes > MAX_WRITE_BYTES_PER_RUNTIME - buffer.written {
            return too_many(format!("one runtime may write at most {MAX_WRITE_BYTES_PER_RUNTIME} bytes"));
        }
        if !settlement.keep() {
            return Err(HostError::new("closed", "the call was given up"));
        }
        buffer.written += bytes;
        desk.writes += operation.writes.len();
        for (key, value) in entries {
            if !desk.under.contains_key(&key) {
                desk.under.insert(key.clone(), buffer.view.get(&key).cloned());
            }
            buffer.view.put_staged(key, value, self.runtime);
        }
        desk.operations.push(operation);
        Ok(())
    }
}
