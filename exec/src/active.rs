//! Loaded packages and the active set of a session: what an execution pins.
//!
//! An execution holds one `Arc<ActivePlan>`: one plan and one generation of every package, whatever is published
//! meanwhile (invariant 2).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use covel_abi::{Generation, ToolInfo};
use covel_graph::{
    EffectTable, EffectsPolicy, PluginId, RuntimeIx,
    archive::PlanHandle,
    fragment::{Fragment, RuntimeDecl, Visibility},
    layer::LayerCache,
    package::Package,
    schema::Validator,
};

use fixedbitset::FixedBitSet;

use crate::{
    document::ErrorInfo,
    native::{NativePackage, NativeRuntime},
    services::table::ServiceTable,
    world::DIMENSIONS_CONTRACT,
};

/// A published package version: its fragment, its code, its compiled schemas.
pub struct LoadedPackage {
    /// Package id.
    pub plugin_id: PluginId,
    /// Tells this publication from every other one of this process.
    pub epoch: u64,
    /// Fragment and files.
    pub package: Arc<Package>,
    /// Its isolate; `None` for native packages, packages without code, and code not (yet) activated.
    pub generation: Option<Generation>,
    /// Why its code is not there.
    pub error: Option<String>,
    /// Native handlers.
    pub native: Option<Arc<NativePackage>>,
    /// Registered tools by name.
    pub tools: BTreeMap<String, ToolInfo>,
    /// Defaults of its settings, parsed once.
    pub setting_defaults: serde_json::Map<String, serde_json::Value>,
    /// Schemas of plugin-data namespaces.
    pub data_schemas: BTreeMap<String, Arc<Validator>>,
    /// Per runtime (fragment order): private output schema and activation payload schema.
    pub output_schemas: Vec<Option<Arc<Validator>>>,
    /// Per runtime, per input: `accepts` schema.
    pub input_schemas: Vec<Vec<Option<Arc<Validator>>>>,
    /// Event payload schemas, success and failure cached per version. REL-7
    pub event_schemas: BTreeMap<String, Result<Arc<Validator>, String>>,
    /// Public contract schemas.
    pub contract_schemas: BTreeMap<String, Result<Arc<Validator>, String>>,
}

impl LoadedPackage {
    /// Compiles the schemas of a package; code is attached by the engine.
    pub fn new(package: Arc<Package>, epoch: u64) -> Self {
        let fragment = &package.fragment;
        let compile = compile_schema;
        let optional = |text: &Option<String>| text.as_deref().and_then(|text| compile(text).ok());
        Self {
            epoch,
            plugin_id: PluginId::from(fragment.plugin_id.as_str()),
            setting_defaults: fragment
                .settings
                .iter()
                .filter_map(|setting| Some((setting.key.clone(), serde_json::from_str(&setting.default).ok()?)))
                .collect(),
            data_schemas: fragment
                .data
                .iter()
                .filter_map(|data| Some((data.namespace.clone(), compile(&data.schema).ok()?)))
                .collect(),
            output_schemas: fragment.runtimes.iter().map(|runtime| optional(&runtime.output.schema)).collect(),
            input_schemas: fragment
                .runtimes
                .iter()
                .map(|runtime| runtime.inputs.iter().map(|input| optional(&input.accepts)).collect())
                .collect(),
            event_schemas: fragment.events.iter().map(|event| (event.topic.clone(), compile(&event.schema))).collect(),
            contract_schemas: fragment
                .contracts
                .iter()
                .map(|contract| (contract.contract.clone(), compile(&contract.schema)))
                .collect(),
            generation: None,
            error: None,
            native: None,
            tools: BTreeMap::new(),
            package,
        }
    }

    /// The fragment.
    pub fn fragment(&self) -> &Fragment {
        &self.package.fragment
    }

    /// Package id.
    pub fn id(&self) -> &str {
        &self.package.fragment.plugin_id
    }
}

/// A plan with everything its rows point to.
pub struct ActivePlan {
    /// The frozen plan.
    pub plan: PlanHandle,
    /// Digest in text form.
    pub digest: String,
    /// Loaded packages in plan order.
    pub packages: Vec<Arc<LoadedPackage>>,
    /// Layerings already computed.
    pub layers: Arc<LayerCache>,
    /// Native runtimes that run where the turn is driven and bind no inputs, by index.
    pub light: Vec<Option<Arc<dyn NativeRuntime>>>,
    /// The one package that provides `world.dimensions@1`.
    pub dimension_owner: Option<PluginId>,
    /// Stage runtimes that run as jobs after the turn.
    pub detached: FixedBitSet,
    /// Stage runtimes that are declared detached but run in the turn, and why.
    pub kept_in_turn: Vec<(RuntimeIx, String)>,
    /// Services of its packages.
    pub(crate) services: ServiceTable,
    /// Topic -> who declares its schema.
    topic_owner: HashMap<String, usize>,
    /// Contract -> who declares its schema.
    contract_owner: HashMap<String, usize>,
    /// Runtime id -> index.
    by_id: HashMap<String, RuntimeIx>,
}

impl ActivePlan {
    /// Joins a plan and its packages (in plan order).
    pub fn new(plan: PlanHandle, digest: String, packages: Vec<Arc<LoadedPackage>>) -> Self {
        let mut topic_owner = HashMap::new();
        let mut contract_owner = HashMap::new();
        for (at, package) in packages.iter().enumerate() {
            for topic in package.event_schemas.keys() {
                topic_owner.entry(topic.clone()).or_insert(at);
            }
            for contract in package.contract_schemas.keys() {
                contract_owner.entry(contract.clone()).or_insert(at);
            }
        }
        let by_id = plan
            .runtimes
            .iter()
            .enumerate()
            .map(|(ix, row)| (row.id.as_str().to_owned(), RuntimeIx(u32::try_from(ix).unwrap_or(u32::MAX))))
            .collect();
        let (detached, kept_in_turn) = crate::jobs::detached_runtimes(&plan, &packages);
        let light = light_runtimes(&plan, &packages, &detached);
        Self {
            light,
            dimension_owner: dimension_owner(packages.iter().map(|package| &**package)),
            detached,
            kept_in_turn,
            plan,
            digest,
            services: ServiceTable::new(&packages),
            packages,
            layers: Arc::new(LayerCache::default()),
            topic_owner,
            contract_owner,
            by_id,
        }
    }

    /// Splits every layer so that no two runtimes that touch the same thing run at once. To be called before the
    /// plan is used.
    #[must_use]
    pub(crate) fn under(mut self, policy: EffectsPolicy) -> Self {
        if policy == EffectsPolicy::Strict {
            let effects = EffectTable::of(&self.plan, self.packages.iter().map(|package| package.fragment()));
            self.layers = Arc::new(LayerCache::strict(effects));
        }
        self
    }

    /// Index of a runtime by id.
    pub fn runtime_ix(&self, id: &str) -> Option<RuntimeIx> {
        self.by_id.get(id).copied()
    }

    /// Index of the runtime's package.
    pub fn plugin_ix(&self, runtime: RuntimeIx) -> u32 {
        self.plan.runtimes[runtime.index()].plugin.to_native()
    }

    /// The runtime's package.
    pub fn package(&self, runtime: RuntimeIx) -> &Arc<LoadedPackage> {
        &self.packages[self.plugin_ix(runtime) as usize]
    }

    /// Index of the runtime in its fragment.
    pub fn local(&self, runtime: RuntimeIx) -> usize {
        self.plan.runtimes[runtime.index()].local.to_native() as usize
    }

    /// The runtime's declaration.
    pub fn decl(&self, runtime: RuntimeIx) -> &RuntimeDecl {
        &self.package(runtime).package.fragment.runtimes[self.local(runtime)]
    }

    /// The runtime's id.
    pub fn runtime_id(&self, runtime: RuntimeIx) -> &str {
        self.plan.runtimes[runtime.index()].id.as_str()
    }

    /// The runtime's package id.
    pub fn plugin_id(&self, runtime: RuntimeIx) -> &str {
        self.package(runtime).id()
    }

    /// Index of a topic in the plan.
    pub fn topic_ix(&self, topic: &str) -> Option<u32> {
        self.plan.topics.binary_search_by(|found| found.as_str().cmp(topic)).ok().and_then(|at| u32::try_from(at).ok())
    }

    /// Does anybody publish a schema for this contract?
    pub fn publishes_contract(&self, contract: &str) -> bool {
        self.contract_owner.contains_key(contract)
    }

    /// Checks an event payload against the schema of whoever declares the topic. EVT-1, REL-7
    ///
    /// # Errors
    /// A coded error when the payload or the schema itself is bad.
    pub fn check_event(&self, topic: &str, data: &covel_graph::Json) -> Result<(), ErrorInfo> {
        let Some(&owner) = self.topic_owner.get(topic) else { return Ok(()) };
        match &self.packages[owner].event_schemas[topic] {
            Ok(validator) => check(validator, data.value())
                .map_err(|message| ErrorInfo::new("event-payload-invalid", format!("payload of {topic:?}: {message}"))),
            Err(message) => Err(ErrorInfo::new(
                "event-schema-invalid",
                format!("the schema of {topic:?} does not compile: {message}"),
            )),
        }
    }

    /// Topics an agent may hear of: (topic, description, schema text).
    pub fn advertised_topics(&self, own: &str) -> Vec<(&str, &covel_graph::fragment::EventDecl)> {
        let mut topics: Vec<_> = self
            .packages
            .iter()
            .flat_map(|package| {
                let own = package.id() == own;
                package.fragment().events.iter().filter(move |event| event.advertise || own)
            })
            .map(|event| (event.topic.as_str(), event))
            .collect();
        topics.sort_by_key(|(topic, _)| *topic);
        topics
    }

    /// Checks a whole output against a public contract. COM-1
    ///
    /// # Errors
    /// A sentence.
    pub fn check_contract(&self, contract: &str, value: &serde_json::Value) -> Result<(), String> {
        let Some(&owner) = self.contract_owner.get(contract) else { return Ok(()) };
        match &self.packages[owner].contract_schemas[contract] {
            Ok(validator) => check(validator, value),
            Err(message) => Err(format!("the schema of {contract:?} does not compile: {message}")),
        }
    }
}

/// The package among these that owns the dimensions: the only one that provides [`DIMENSIONS_CONTRACT`].
pub(crate) fn dimension_owner<'a>(packages: impl Iterator<Item = &'a LoadedPackage>) -> Option<PluginId> {
    let provides =
        |package: &&LoadedPackage| package.fragment().provides.iter().any(|one| one.contract == DIMENSIONS_CONTRACT);
    let mut owners = packages.filter(provides);
    match (owners.next(), owners.next()) {
        (Some(owner), None) => Some(owner.plugin_id.clone()),
        _ => None,
    }
}

fn light_runtimes(
    plan: &PlanHandle,
    packages: &[Arc<LoadedPackage>],
    detached: &FixedBitSet,
) -> Vec<Option<Arc<dyn NativeRuntime>>> {
    plan.runtimes
        .iter()
        .enumerate()
        .map(|(ix, row)| {
            let package = &packages[row.plugin.to_native() as usize];
            let decl = &package.fragment().runtimes[row.local.to_native() as usize];
            let handler = package.native.as_ref()?.handlers.get(&decl.id)?;
            let light = decl.inputs.is_empty() && decl.visibility != Visibility::Story && !handler.is_heavy();
            let light = light && !detached.contains(ix);
            light.then(|| Arc::clone(handler))
        })
        .collect()
}

/// Compiles JSON Schema text.
///
/// # Errors
/// A sentence.
pub fn compile_schema(text: &str) -> Result<Arc<Validator>, String> {
    let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Validator::new(&schema).map(Arc::new)
}

/// Validates and words the first few issues.
///
/// # Errors
/// A sentence naming where and what.
pub fn check(validator: &Validator, value: &serde_json::Value) -> Result<(), String> {
    validator.validate(value).map_err(|issues| {
        issues
            .iter()
            .take(3)
            .map(|issue| {
                if issue.path.is_empty() {
                    issue.message.clone()
                } else {
                    format!("at {}: {}", issue.path, issue.message)
                }
            })
            .collect::<Vec<_>>()
            .join("; ")
    })
}
