//! Runtimes written in Rust by an embedder, beside JavaScript ones.

use std::{cell::OnceCell, collections::BTreeMap, sync::Arc};

use covel_abi::{CallHost, HostError};
use covel_graph::{
    Json, RuntimeIx, Stage,
    fragment::{EventDecl, Fragment, FunctionDecl, InputDecl, RuntimeDecl, ServiceAccess, ServiceDecl, TriggerKind},
};
use serde_json::Value;

use crate::{
    call_host::{RuntimeCall, Shared},
    overlay::Overlay,
    results::{EmittedEvent, RuntimeResult, project_output},
    services::{
        Client,
        native::{NativeService, NativeServiceEntry},
    },
    write::Proposal,
};

/// What a native runtime can ask during its call. Reads are tracked and writes buffered exactly as for plugin code.
pub struct NativeContext<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) runtime: RuntimeIx,
    pub(crate) view: &'a Overlay,
    /// Made on first use: a runtime that touches no data costs no host.
    pub(crate) host: OnceCell<Arc<RuntimeCall>>,
    pub(crate) inputs: &'a [(String, Json)],
    pub(crate) trigger: Option<&'a (String, Json)>,
    /// Made with the first service call.
    pub(crate) services: OnceCell<Client>,
}

impl NativeContext<'_> {
    fn host(&self) -> &Arc<RuntimeCall> {
        self.host.get_or_init(|| Arc::new(RuntimeCall::new(Arc::clone(self.shared), self.runtime, self.view.clone())))
    }
    /// Calls a service written in Rust: `{pluginId, name, contract, input}` or `{contract, input}`. What a write service
    /// writes is staged on this runtime's result. SVC-5, WSV-5
    ///
    /// # Errors
    /// `invalid-input invalid-output unavailable refused conflict cycle depth provider-error`.
    pub fn call_service(&self, request: &Json) -> Result<Json, HostError> {
        self.services.get_or_init(|| Client::of_native(self.host())).call_now(request)
    }
    /// Services of a contract: `{pluginId, name, contract, description?}[]`. SVC-4
    ///
    /// # Errors
    /// `invalid-input` for what is no contract.
    pub fn discover_services(&self, contract: &str) -> Result<Json, HostError> {
        self.services.get_or_init(|| Client::of_native(self.host())).discover(contract)
    }
    /// What the player wrote.
    pub fn player_message(&self) -> &str {
        &self.shared.message
    }
    /// Logical turn, from 1.
    pub fn logical_turn(&self) -> u32 {
        self.shared.logical_turn
    }
    /// The slot of a bound input: `{cardinality, value, source}` or `{cardinality, items}`.
    pub fn input(&self, name: &str) -> Option<&Json> {
        self.inputs.iter().find(|(found, _)| found == name).map(|(_, slot)| slot)
    }
    /// The event that started this runtime: topic and payload.
    pub fn trigger_event(&self) -> Option<(&str, &Json)> {
        self.trigger.map(|(topic, data)| (topic.as_str(), data))
    }
    /// Reads own data.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        self.host().data_get(namespace, key)
    }
    /// Writes own data, as part of this turn's commit.
    ///
    /// # Errors
    /// When a rule of data namespaces is broken.
    pub fn set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.host().data_set(namespace, key, value)
    }
    /// Applies operations to the newest value at commit. DAT-1
    ///
    /// # Errors
    /// When they do not hold on the value seen.
    pub fn update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.host().data_update(namespace, key, ops)
    }
    /// A part of the world (`characters`, `characterSchema`, `dimensions`, `seats`, `worldRecord`); tracked as plugin
    /// code's reads are. RDD-4
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn world(&self, part: &str) -> Result<Json, HostError> {
        self.host().world(part)
    }
    /// Makes a proposal by type and payload (`character.upsert`, `lorebook.upsert`, `dimension.update`...).
    ///
    /// # Errors
    /// `output-schema-invalid` for a malformed or unknown one, else the code of the rule it breaks.
    pub fn propose(&self, kind: &str, payload: &Value) -> Result<(), HostError> {
        let invalid = |message: String| HostError::new("output-schema-invalid", message);
        let object = payload.as_object().ok_or_else(|| invalid(format!("{kind} is not an object")))?;
        let proposal = Proposal::read(kind, object).map_err(|fault| invalid(fault.at(kind)))?;
        self.host().propose(proposal)
    }
    /// Wall-clock time, milliseconds since 1970; on the execution's tape, so that a replay sees the same.
    pub fn now_millis(&self) -> u64 {
        let host = self.host();
        host.shared().recorder.time(host.shared().plan.runtime_id(host.runtime()))
    }
    /// A deterministic draw, `min <= n < max`.
    ///
    /// # Errors
    /// When the bounds are out of range.
    pub fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        self.host().random_int(min, max)
    }
}

/// What a native runtime gives back.
#[derive(Debug, Default)]
pub struct NativeOutput {
    /// Business value; none = no export.
    pub value: Option<Json>,
    /// Events.
    pub events: Vec<(String, Json)>,
    /// Setup is done with it.
    pub done: bool,
}

impl NativeOutput {
    /// Is there no value, no event and no signal?
    pub(crate) fn is_nothing(&self) -> bool {
        self.value.is_none() && self.events.is_empty() && !self.done
    }

    /// A value without events.
    pub fn value(value: Value) -> Self {
        Self { value: Some(Json::from_value(value)), ..Self::default() }
    }
}

/// A runtime in Rust.
pub trait NativeRuntime: Send + Sync + 'static {
    /// Runs it.
    ///
    /// # Errors
    /// A sentence; the runtime then failed and nothing of it commits.
    fn run(&self, context: &NativeContext<'_>) -> Result<NativeOutput, String>;

    /// Is one run worth a thread of its own (more than about 20 microseconds)? Heavy runtimes of a layer run in
    /// parallel on the rayon pool; light ones run where the turn is driven.
    fn is_heavy(&self) -> bool {
        false
    }
}

impl<F> NativeRuntime for F
where
    F: Fn(&NativeContext<'_>) -> Result<NativeOutput, String> + Send + Sync + 'static,
{
    fn run(&self, context: &NativeContext<'_>) -> Result<NativeOutput, String> {
        self(context)
    }
}

/// A package whose runtimes are Rust values.
pub struct NativePackage {
    pub(crate) fragment: Fragment,
    pub(crate) handlers: BTreeMap<String, Arc<dyn NativeRuntime>>,
    pub(crate) services: Vec<NativeServiceEntry>,
}

impl NativePackage {
    /// An empty package.
    pub fn new(id: &str) -> Self {
        let fragment = Fragment {
            plugin_id: id.to_owned(),
            version: "0.0.0".to_owned(),
            display_name: vec![("en".to_owned(), id.to_owned())],
            ..Fragment::default()
        };
        Self { fragment, handlers: BTreeMap::new(), services: Vec::new() }
    }

    /// Adds a runtime that runs every turn in a stage.
    #[must_use]
    pub fn runtime(self, name: &str, stage: Stage, handler: impl NativeRuntime) -> Self {
        self.add(name, RuntimeDecl { stage: Some(stage), ..RuntimeDecl::default() }, handler)
    }

    /// Adds a runtime that follows a topic.
    #[must_use]
    pub fn follower(self, name: &str, topic: &str, handler: impl NativeRuntime) -> Self {
        let decl = RuntimeDecl { trigger: TriggerKind::Event, topic: Some(topic.to_owned()), ..RuntimeDecl::default() };
        self.add(name, decl, handler)
    }

    /// Adds a read service of a contract.
    #[must_use]
    pub fn service(self, name: &str, contract: &str, handler: impl NativeService) -> Self {
        self.add_service(name, contract, false, handler)
    }

    /// Adds a write service of a contract: what it writes is staged on its caller's result. WSV-1
    #[must_use]
    pub fn write_service(self, name: &str, contract: &str, handler: impl NativeService) -> Self {
        self.add_service(name, contract, true, handler)
    }

    fn add_service(mut self, name: &str, contract: &str, write: bool, handler: impl NativeService) -> Self {
        self.fragment.services.push(ServiceDecl {
            contract: contract.to_owned(),
            access: if write { ServiceAccess::Write } else { ServiceAccess::Read },
            ..ServiceDecl::default()
        });
        self.services.push(NativeServiceEntry {
            name: name.to_owned(),
            contract: contract.to_owned(),
            description: None,
            write,
            handler: Arc::new(handler),
        });
        self
    }

    /// Describes the service added last.
    #[must_use]
    pub fn described(mut self, text: &str) -> Self {
        if let Some(last) = self.services.last_mut() {
            last.description = Some(text.to_owned());
        }
        self
    }

    /// Declares a topic with the JSON Schema of its payload.
    #[must_use]
    pub fn event(mut self, topic: &str, schema: &Value) -> Self {
        self.fragment.events.push(EventDecl {
            topic: topic.to_owned(),
            schema: schema.to_string(),
            advertise: true,
            ..EventDecl::default()
        });
        self
    }

    /// Binds an input of the runtime added last.
    #[must_use]
    pub fn input(mut self, input: InputDecl) -> Self {
        if let Some(contract) = &input.contract {
            let listed = covel_graph::fragment::ContractRef { contract: contract.clone(), ..Default::default() };
            self.fragment.optional.push(listed);
        }
        if let Some(last) = self.fragment.runtimes.last_mut() {
            last.inputs.push(input);
        }
        self
    }

    /// Gives the runtime added last a public contract, which the package then provides.
    #[must_use]
    pub fn provides(mut self, contract: &str) -> Self {
        self.fragment
            .provides
            .push(covel_graph::fragment::Provide { contract: contract.to_owned(), ..Default::default() });
        if let Some(last) = self.fragment.runtimes.last_mut() {
            last.output.contract = Some(contract.to_owned());
        }
        self
    }

    /// Adds a runtime by its declaration; `decl.id` and the function part are filled in.
    #[must_use]
    pub fn add(mut self, name: &str, mut decl: RuntimeDecl, handler: impl NativeRuntime) -> Self {
        decl.id = format!("{}/{name}", self.fragment.plugin_id);
        decl.function = Some(FunctionDecl { handler: format!("native:{name}"), ..FunctionDecl::default() });
        self.handlers.insert(decl.id.clone(), Arc::new(handler));
        self.fragment.runtimes.push(decl);
        self
    }
}

/// Normalises what a native runtime gave.
pub(crate) fn native_result(output: NativeOutput) -> RuntimeResult {
    RuntimeResult {
        output: output.value.is_some().then(|| project_output(output.value.as_ref())),
        value: output.value,
        events: output.events.into_iter().map(|(topic, data)| EmittedEvent { topic, data }).collect(),
        completion_done: output.done,
        ..RuntimeResult::default()
    }
}
