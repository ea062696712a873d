//! Arbitrary sets of packages: activation and linking end, are consistent, and do not depend on package order.
#![no_main]

use std::{collections::BTreeSet, sync::Arc};

use arbitrary::{Result, Unstructured};
use covel_graph::{
    Activation, ActivationRequest, Discovery, Package, PackageFiles, PluginId, Stage, activate,
    activation::satisfies,
    fragment::{
        Cardinality, ContractRef, EventDecl, ExtensionDecl, Fragment, InputDecl, NeedDecl, Origin, OutputDecl,
        PromptDecl, Provide, RuntimeDecl, Scope, ServiceDecl, TriggerKind,
    },
    link,
};
use covel_graph_fuzz::rules;
use libfuzzer_sys::fuzz_target;

const CONTRACTS: &[&str] =
    &["a@1", "a@2", "b@1", "c@1", "d@1", "__proto__@1", "prompt.segment@1", "history.compact@2", "stage.cast@1"];
const TOPICS: &[&str] = &["t.a", "t.b", "constructor.x"];
const MAX_PACKAGES: usize = 12;
const MAX_RUNTIMES: usize = 6;

fn contract(u: &mut Unstructured<'_>) -> Result<String> {
    Ok((*u.choose(CONTRACTS)?).to_owned())
}

fn some<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=most)?).map(|_| one(u)).collect()
}

fn reference(u: &mut Unstructured<'_>) -> Result<ContractRef> {
    Ok(ContractRef { contract: contract(u)?, origin: Origin::default() })
}

/// `Some` runtime of the package, or `Some` contract.
fn target(u: &mut Unstructured<'_>, plugin: &str) -> Result<(Option<String>, Option<String>)> {
    Ok(match u.arbitrary()? {
        true => (Some(format!("{plugin}/r{}", u.int_in_range(0..=MAX_RUNTIMES)?)), None),
        false => (None, Some(contract(u)?)),
    })
}

fn need(u: &mut Unstructured<'_>, plugin: &str) -> Result<NeedDecl> {
    let (runtime, contract) = target(u, plugin)?;
    Ok(NeedDecl {
        runtime,
        contract,
        cardinality: *u.choose(&[Cardinality::One, Cardinality::All])?,
        scope: *u.choose(&[Scope::Turn, Scope::Session])?,
        origin: Origin { file: "PLUGIN.md".into(), line: 1, column: 1 },
    })
}

fn input(u: &mut Unstructured<'_>, plugin: &str) -> Result<InputDecl> {
    let (runtime, from) = target(u, plugin)?;
    Ok(InputDecl {
        name: "i".into(),
        runtime,
        contract: from,
        cardinality: *u.choose(&[Cardinality::One, Cardinality::All])?,
        scope: *u.choose(&[Scope::Turn, Scope::Committed])?,
        required: u.arbitrary()?,
        accepts_contract: if u.arbitrary()? { Some(contract(u)?) } else { None },
        ..InputDecl::default()
    })
}

fn runtime(u: &mut Unstructured<'_>, plugin: &str, place: usize) -> Result<RuntimeDecl> {
    let stages = [None, Some(Stage::ALL[0]), Some(Stage::ALL[1]), Some(Stage::ALL[2])];
    Ok(RuntimeDecl {
        id: format!("{plugin}/r{place}"),
        stage: *u.choose(&stages)?,
        trigger: *u.choose(&[TriggerKind::Auto, TriggerKind::Scheduled, TriggerKind::Manual, TriggerKind::Event])?,
        topic: if u.arbitrary()? { Some((*u.choose(TOPICS)?).to_owned()) } else { None },
        needs: some(u, 2, |u| need(u, plugin))?,
        after: some(u, 2, |u| need(u, plugin))?,
        inputs: some(u, 2, |u| input(u, plugin))?,
        output: OutputDecl {
            contract: if u.arbitrary()? { Some(contract(u)?) } else { None },
            ..OutputDecl::default()
        },
        ..RuntimeDecl::default()
    })
}

fn package(u: &mut Unstructured<'_>, place: usize) -> Result<Arc<Package>> {
    let id = format!("p{place}");
    let extension = |u: &mut Unstructured<'_>| {
        let slot = if u.arbitrary()? { Some("stage.cast@1".to_owned()) } else { None };
        Ok(ExtensionDecl { point: contract(u)?, slot, ..ExtensionDecl::default() })
    };
    let event =
        |u: &mut Unstructured<'_>| Ok(EventDecl { topic: (*u.choose(TOPICS)?).to_owned(), ..EventDecl::default() });
    let runtimes = u.int_in_range(0..=MAX_RUNTIMES)?;
    let fragment = Fragment {
        plugin_id: id.clone(),
        provides: some(u, 3, |u| {
            Ok(Provide { contract: contract(u)?, default: u.arbitrary()?, origin: Origin::default() })
        })?,
        requires: some(u, 3, reference)?,
        optional: some(u, 2, reference)?,
        conflicts: some(u, 1, reference)?,
        services: some(u, 1, |u| Ok(ServiceDecl { contract: contract(u)?, ..ServiceDecl::default() }))?,
        extensions: some(u, 1, extension)?,
        events: some(u, 1, event)?,
        prompts: some(u, 1, |u| {
            let content = (*u.choose(&["", "text"])?).to_owned();
            Ok(PromptDecl { content, ..PromptDecl::default() })
        })?,
        runtimes: (0..runtimes).map(|place| runtime(u, &id, place)).collect::<Result<_>>()?,
        ..Fragment::default()
    };
    Ok(Arc::new(Package {
        fragment: Arc::new(fragment),
        digest: format!("{place:064x}"),
        files: PackageFiles::default(),
        root: Default::default(),
        discovery: *u.choose(&[Discovery::Builtin, Discovery::Community])?,
    }))
}

struct Case {
    packages: Vec<Arc<Package>>,
    turned: Vec<Arc<Package>>,
    requested: Vec<PluginId>,
    excluded: BTreeSet<PluginId>,
    approved: BTreeSet<PluginId>,
    required: BTreeSet<String>,
}

fn case(u: &mut Unstructured<'_>) -> Result<Case> {
    let count = u.int_in_range(1..=MAX_PACKAGES)?;
    let id = |u: &mut Unstructured<'_>| Ok(PluginId::from(format!("p{}", u.int_in_range(0..=count)?).as_str()));
    let requested = some(u, MAX_PACKAGES, id)?;
    let excluded = some(u, 2, id)?.into_iter().collect();
    let approved = some(u, 6, id)?.into_iter().collect();
    let required = some(u, 3, contract)?.into_iter().collect();
    let seed = u.arbitrary::<u64>()?;
    let packages = (0..count).map(|place| package(u, place)).collect::<Result<Vec<_>>>()?;
    let mut turned = packages.clone();
    let mut state = seed;
    for place in (1..turned.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        turned.swap(place, (state >> 33) as usize % (place + 1));
    }
    Ok(Case { packages, turned, requested, excluded, approved, required })
}

impl Case {
    fn resolve(&self, packages: &[Arc<Package>]) -> Activation {
        activate(&ActivationRequest {
            packages,
            requested: self.requested.clone(),
            excluded: self.excluded.clone(),
            approved: self.approved.clone(),
            required_contracts: self.required.clone(),
        })
    }

    /// What is active has what it requires, may run, excludes nobody who is there, and is asked for or needed.
    fn check(&self, outcome: &Activation, active: &[Arc<Package>]) {
        assert!(outcome.active.is_sorted_by(|a, b| a < b));
        assert_eq!(active.len(), outcome.active.len(), "an active package is not installed");
        let gives = |contract: &str| active.iter().any(|one| satisfies(&one.fragment).contains(contract));
        let mut topics = BTreeSet::new();
        for package in active {
            let id = PluginId::from(package.id());
            assert!(!self.excluded.contains(&id), "{id} is excluded and active");
            assert!(!package.needs_approval() || self.approved.contains(&id), "{id} is not approved and active");
            for one in &package.fragment.requires {
                assert!(gives(&one.contract), "{id} lacks {}", one.contract);
            }
            for one in &package.fragment.conflicts {
                let other = active.iter().find(|other| {
                    other.id() != package.id() && satisfies(&other.fragment).contains(one.contract.as_str())
                });
                assert!(other.is_none(), "{id} excludes an active package over {}", one.contract);
            }
            let own: BTreeSet<&str> = package.fragment.events.iter().map(|event| event.topic.as_str()).collect();
            for topic in own {
                assert!(topics.insert(topic), "{topic} is declared twice");
            }
            let added = outcome.auto_added.iter().filter(|one| one.plugin == id).count();
            assert_eq!(added, usize::from(!self.requested.contains(&id)), "{id} is asked for or added, once");
        }
        for added in &outcome.auto_added {
            let package = active.iter().find(|one| one.id() == added.plugin.as_str()).expect("an added one is active");
            assert!(satisfies(&package.fragment).contains(added.contract.as_str()));
            match &added.needed_by {
                None => assert!(self.required.contains(&added.contract)),
                Some(by) => {
                    let by = active.iter().find(|one| one.id() == by.as_str()).expect("who needs it is active");
                    assert!(by.fragment.requires.iter().any(|one| one.contract == added.contract));
                }
            }
        }
        for contract in &self.required {
            let unmet = outcome.unmet.iter().any(|one| one.contract == *contract);
            assert_eq!(gives(contract), !unmet, "{contract} is met or said to be unmet");
        }
        for id in &self.requested {
            let here = outcome.active.contains(id);
            let said = outcome.rejected.iter().any(|one| one.plugin == *id);
            assert!(here != said, "{id} must be active or rejected");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(case) = case(&mut Unstructured::new(bytes)) else {
        return;
    };
    let outcome = case.resolve(&case.packages);
    assert_eq!(outcome, case.resolve(&case.turned), "the order of packages changed the outcome");
    let active = |packages: &[Arc<Package>]| -> Vec<Arc<Package>> {
        packages.iter().filter(|one| outcome.active.iter().any(|id| id.as_str() == one.id())).cloned().collect()
    };
    case.check(&outcome, &active(&case.packages));
    for (packages, turned) in [(active(&case.packages), active(&case.turned)), (case.packages, case.turned)] {
        let (one, other) = (link(&packages).expect("links"), link(&turned).expect("links"));
        assert_eq!(one.digest, other.digest, "the order of packages changed the plan");
        assert_eq!(one.diagnostics, other.diagnostics, "the order of packages changed the findings");
        assert_eq!(one.hazards, other.hazards, "the order of packages changed the hazards");
        rules::plan(&one.handle().expect("a fresh plan opens"));
    }
});
