//! Input bindings: what a runtime gets from others, with where it came from. COM-1, COM-2

use covel_graph::{
    Json, RuntimeIx, SessionId,
    compat::Compatibility,
    fragment::{Cardinality, InputDecl, Scope},
};
use covel_store::Store;
use serde_json::{Value, json};

use crate::{
    active::{ActivePlan, check},
    document::ErrorInfo,
    results::RuntimeResult,
};

/// Owner under which exports are stored: no package can have this id.
pub const EXPORT_OWNER: &str = "__kernel:exports";

/// Why a runtime cannot start: a skip reason and what was wrong.
#[derive(Debug, PartialEq)]
pub struct Unbound {
    /// `missing-provider`, `upstream-failed`, `input-missing`...
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Bound inputs of one runtime.
#[derive(Debug, Default)]
pub struct Bound {
    /// Slot objects by name.
    pub slots: Vec<(String, Json)>,
    /// Runtimes of this execution whose results are bound.
    pub producers: Vec<RuntimeIx>,
    /// Values withheld from optional inputs.
    pub notes: Vec<ErrorInfo>,
}

/// What binding needs to know of the execution.
pub struct Binding<'a> {
    /// Plan.
    pub plan: &'a ActivePlan,
    /// Store, for committed exports.
    pub store: &'a Store,
    /// Session.
    pub session_id: &'a SessionId,
    /// Turn, part of result ids.
    pub turn_id: &'a str,
    /// Results so far.
    pub result: &'a dyn Fn(RuntimeIx) -> Option<&'a RuntimeResult>,
    /// An earlier turn and its results, which are bound as such.
    pub earlier: Option<(&'a str, &'a [(RuntimeIx, RuntimeResult)])>,
    /// Leave out required inputs that are not there, instead of refusing.
    pub lenient: bool,
    /// The runtime was asked for by name: there is no live turn whose results it could bind.
    pub manual: bool,
    /// `turn-digest@1`.
    pub digest: &'a dyn Fn() -> Json,
    /// Where a background job notes the exports it read.
    pub(crate) reads: Option<&'a crate::jobs::Reads>,
}

impl Binding<'_> {
    /// The turn a result is from.
    fn turn_of(&self, runtime: RuntimeIx) -> &str {
        match self.earlier {
            Some((turn, seeds)) if seeds.iter().any(|(seed, _)| *seed == runtime) => turn,
            _ => self.turn_id,
        }
    }
}

/// One source of a slot.
struct Item {
    runtime: Option<RuntimeIx>,
    id: String,
    plugin: String,
    result_id: String,
    value: Json,
}

/// Binds all inputs of a runtime.
///
/// # Errors
/// [`Unbound`] for the first required input that cannot be bound.
pub fn bind(binding: &Binding<'_>, runtime: RuntimeIx) -> Result<Bound, Unbound> {
    let decl = binding.plan.decl(runtime);
    let mut bound = Bound::default();
    for (at, input) in decl.inputs.iter().enumerate() {
        if binding.manual && input.kernel.is_none() && input.scope == Scope::Turn {
            continue;
        }
        match bind_one(binding, runtime, at, input) {
            Ok((slot, producers)) => {
                bound.slots.push((input.name.clone(), slot));
                bound.producers.extend(producers);
            }
            Err(unbound) if input.required && !binding.lenient => return Err(unbound),
            Err(unbound) => {
                // Absence is ordinary for an optional input; a value that does not fit is worth a note.
                if !matches!(unbound.reason, "missing-provider" | "upstream-failed" | "input-missing") {
                    bound.notes.push(ErrorInfo::new(unbound.reason, unbound.message));
                }
            }
        }
    }
    Ok(bound)
}

fn unbound<T>(reason: &'static str, message: impl Into<String>) -> Result<T, Unbound> {
    Err(Unbound { reason, message: message.into() })
}

fn bind_one(
    binding: &Binding<'_>,
    runtime: RuntimeIx,
    at: usize,
    input: &InputDecl,
) -> Result<(Json, Vec<RuntimeIx>), Unbound> {
    let name = &input.name;
    if let Some(kernel) = &input.kernel {
        let slot = json!({
            "cardinality": "one",
            "value": (binding.digest)(),
            "source": {"pluginId": "kernel", "runtimeId": kernel, "resultId": binding.turn_id},
        });
        return Ok((Json::from_value(slot), Vec::new()));
    }
    if binding.plan.plan.input_compatibility(runtime, at) == Some(Compatibility::Incompatible) {
        // Known since the plan was linked: no value of the source can fit.
        return unbound(
            "input-schema-incompatible",
            format!("input {name:?}: its source's schema contradicts what it accepts"),
        );
    }
    if let Some(contract) = input.accepts_contract.as_deref().filter(|name| !binding.plan.publishes_contract(name)) {
        // Nothing is handed over unchecked.
        return unbound(
            "accepts-contract-unresolved",
            format!("input {name:?} accepts {contract}, which no active package publishes"),
        );
    }
    let all = input.cardinality == Cardinality::All;
    let mut items = if input.scope == Scope::Committed {
        committed_items(binding, input)?
    } else {
        turn_items(binding, input, all)?
    };
    if items.is_empty() {
        return unbound("missing-provider", format!("input {name:?}: nothing provides it in this execution"));
    }
    if !all && items.len() > 1 {
        return unbound(
            "cardinality-conflict",
            format!("input {name:?} wants one provider and there are {}", items.len()),
        );
    }
    for item in &mut items {
        if let Some(contract) = &input.contract {
            binding.plan.check_contract(contract, item.value.value()).or_else(|message| {
                unbound("contract-output-invalid", format!("input {name:?}: {} breaks {contract}: {message}", item.id))
            })?;
        }
        if let Some(pointer) = &input.select {
            item.value = item.value.pointer(pointer).ok_or_else(|| Unbound {
                reason: "input-missing",
                message: format!("input {name:?}: {} has nothing at {pointer:?}", item.id),
            })?;
        }
    }
    items.sort_by(|a, b| a.id.cmp(&b.id));
    let whole = if all {
        Value::Array(items.iter().map(|item| item.value.value().clone()).collect())
    } else {
        items[0].value.value().clone()
    };
    let package = binding.plan.package(runtime);
    if let Some(validator) = &package.input_schemas[binding.plan.local(runtime)][at] {
        check(validator, &whole)
            .or_else(|message| unbound("input-schema-invalid", format!("input {name:?} does not fit: {message}")))?;
    }
    if let Some(contract) = &input.accepts_contract {
        binding.plan.check_contract(contract, &whole).or_else(|message| {
            unbound("input-schema-invalid", format!("input {name:?} breaks {contract}: {message}"))
        })?;
    }
    let producers = items.iter().filter_map(|item| item.runtime).collect();
    Ok((slot(all, &items), producers))
}

fn slot(all: bool, items: &[Item]) -> Json {
    let one = |item: &Item| {
        let source = json!({"pluginId": item.plugin, "runtimeId": item.id, "resultId": item.result_id});
        (item.value.value().clone(), source)
    };
    Json::from_value(if all {
        let items: Vec<Value> = items
            .iter()
            .map(|item| {
                let (value, source) = one(item);
                json!({"value": value, "source": source})
            })
            .collect();
        json!({"cardinality": "all", "items": items})
    } else {
        let (value, source) = one(&items[0]);
        json!({"cardinality": "one", "value": value, "source": source})
    })
}

/// Runtimes an input may come from.
fn candidates(binding: &Binding<'_>, input: &InputDecl) -> Vec<RuntimeIx> {
    if let Some(id) = &input.runtime {
        return binding.plan.runtime_ix(id).into_iter().collect();
    }
    let Some(contract) = &input.contract else { return Vec::new() };
    let plan = &binding.plan.plan;
    let Ok(at) = plan.contracts.binary_search_by(|found| found.as_str().cmp(contract.as_str())) else {
        return Vec::new();
    };
    let range = plan.providers.starts[at].to_native() as usize..plan.providers.starts[at + 1].to_native() as usize;
    range.map(|slot| RuntimeIx(plan.providers.items[slot].to_native())).collect()
}

fn turn_items(binding: &Binding<'_>, input: &InputDecl, all: bool) -> Result<Vec<Item>, Unbound> {
    let mut items = Vec::new();
    for runtime in candidates(binding, input) {
        let Some(result) = (binding.result)(runtime) else { continue };
        let id = binding.plan.runtime_id(runtime);
        // With several providers of a `one` input the conflict is reported first, below.
        if !result.is_ok() && (all || input.runtime.is_some()) {
            return unbound("upstream-failed", format!("input {:?}: {id} did not succeed", input.name));
        }
        items.push(Item {
            runtime: Some(runtime),
            id: id.to_owned(),
            plugin: binding.plan.plugin_id(runtime).to_owned(),
            result_id: format!("{}:{id}", binding.turn_of(runtime)),
            value: result
                .value
                .clone()
                .or_else(|| result.output.clone())
                .unwrap_or_else(|| Json::from_value(json!({}))),
        });
    }
    if let [only] = &items[..]
        && let Some(runtime) = only.runtime
        && !(binding.result)(runtime).is_some_and(RuntimeResult::is_ok)
    {
        return unbound("upstream-failed", format!("input {:?}: {} did not succeed", input.name, only.id));
    }
    Ok(items)
}

fn committed_items(binding: &Binding<'_>, input: &InputDecl) -> Result<Vec<Item>, Unbound> {
    let Some(key) = &input.record_as else { return Ok(Vec::new()) };
    let mut items = Vec::new();
    for runtime in candidates(binding, input) {
        let id = binding.plan.runtime_id(runtime);
        let record =
            binding.store.read(|reader| reader.get_data(binding.session_id, &EXPORT_OWNER.into(), id, key)).or_else(
                |error: covel_store::StoreError| unbound("upstream-failed", format!("input {:?}: {error}", input.name)),
            )?;
        if let Some(reads) = binding.reads {
            let version = record
                .as_ref()
                .map(|record| covel_store::DataVersion { version: record.version, created_seq: record.created_seq });
            reads.record(EXPORT_OWNER, id, key, version);
        }
        let Some(record) = record else { continue };
        items.push(Item {
            runtime: None,
            id: id.to_owned(),
            plugin: binding.plan.plugin_id(runtime).to_owned(),
            result_id: record.value.value().get("resultId").and_then(Value::as_str).unwrap_or_default().to_owned(),
            value: record.value.pointer("/value").unwrap_or_else(Json::null),
        });
    }
    Ok(items)
}
