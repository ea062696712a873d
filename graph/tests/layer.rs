//! Layering against the obvious way to say it.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, sync::Arc};

use covel_graph::{
    Discovery, LayerCache, Layering, Package, PackageFiles, PlanHandle, RuntimeIx, Stage,
    fragment::{Cardinality, Fragment, InputDecl, NeedDecl, RuntimeDecl},
    layer, link,
    plan::{ArchivedEdgeKind, NONE},
};
use fixedbitset::FixedBitSet;
use proptest::prelude::*;

/// A random plan: up to 24 runtimes in up to two stages, giving up to four contracts, with random dependencies.
#[derive(Clone, Debug)]
struct Sketch {
    runtimes: Vec<(bool, Option<u8>, Vec<Dependency>)>,
    members: u32,
    satisfied: u32,
}

#[derive(Clone, Debug)]
enum Dependency {
    Need(u8),
    After(u8),
    Input(u8),
    NeedContract(u8, bool),
    AfterContract(u8, bool),
    InputContract(u8, bool),
}

fn dependency() -> impl Strategy<Value = Dependency> {
    prop_oneof![
        (0..24u8).prop_map(Dependency::Need),
        (0..24u8).prop_map(Dependency::After),
        (0..24u8).prop_map(Dependency::Input),
        (0..4u8, any::<bool>()).prop_map(|(contract, all)| Dependency::NeedContract(contract, all)),
        (0..4u8).prop_map(|contract| Dependency::NeedContract(contract, false)),
        (0..4u8, any::<bool>()).prop_map(|(contract, all)| Dependency::AfterContract(contract, all)),
        (0..4u8, any::<bool>()).prop_map(|(contract, all)| Dependency::InputContract(contract, all)),
    ]
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let runtime = (any::<bool>(), prop::option::weighted(0.4, 0..4u8), prop::collection::vec(dependency(), 0..3));
    (prop::collection::vec(runtime, 1..24), any::<u32>(), any::<u32>(), any::<bool>()).prop_map(
        |(runtimes, members, satisfied, everyone)| Sketch {
            runtimes,
            members: if everyone { u32::MAX } else { members },
            satisfied: satisfied & satisfied.rotate_left(7) & !members,
        },
    )
}

impl Sketch {
    fn plan(&self) -> PlanHandle {
        let id = |ix: u8| format!("p/r{}", (usize::from(ix) * 7) % self.runtimes.len());
        let cardinality = |all: bool| {
            if all { Cardinality::All } else { Cardinality::One }
        };
        let runtimes = self.runtimes.iter().enumerate().map(|(ix, (late, gives, dependencies))| {
            let mut decl = RuntimeDecl {
                id: format!("p/r{ix}"),
                stage: Some(if *late { Stage::PostTurn } else { Stage::PreTurn }),
                ..RuntimeDecl::default()
            };
            decl.output.contract = gives.map(|contract| format!("c{contract}@1"));
            for (place, dependency) in dependencies.iter().enumerate() {
                let need = NeedDecl::default();
                let input = InputDecl { name: format!("i{place}"), ..InputDecl::default() };
                match dependency {
                    Dependency::Need(ix) => decl.needs.push(NeedDecl { runtime: Some(id(*ix)), ..need }),
                    Dependency::After(ix) => decl.after.push(NeedDecl { runtime: Some(id(*ix)), ..need }),
                    Dependency::Input(ix) => decl.inputs.push(InputDecl { runtime: Some(id(*ix)), ..input }),
                    Dependency::NeedContract(contract, all) => decl.needs.push(NeedDecl {
                        contract: Some(format!("c{contract}@1")),
                        cardinality: cardinality(*all),
                        ..need
                    }),
                    Dependency::AfterContract(contract, all) => decl.after.push(NeedDecl {
                        contract: Some(format!("c{contract}@1")),
                        cardinality: cardinality(*all),
                        ..need
                    }),
                    Dependency::InputContract(contract, all) => decl.inputs.push(InputDecl {
                        contract: Some(format!("c{contract}@1")),
                        cardinality: cardinality(*all),
                        ..input
                    }),
                }
            }
            decl
        });
        let mut fragment = Fragment { plugin_id: "p".into(), runtimes: runtimes.collect(), ..Fragment::default() };
        fragment.runtimes.sort_by(|a, b| a.id.cmp(&b.id));
        let package = Package {
            fragment: Arc::new(fragment),
            digest: String::new(),
            files: PackageFiles::default(),
            root: Default::default(),
            discovery: Discovery::Builtin,
        };
        link(&[Arc::new(package)]).unwrap().handle().unwrap()
    }

    fn bits(&self, bits: u32) -> FixedBitSet {
        (0..self.runtimes.len()).filter(|ix| bits & (1 << ix) != 0).collect()
    }
}

/// One round after another: whoever has nothing left to wait for goes next. Straight from the edge rows.
fn obvious(plan: &PlanHandle, members: &FixedBitSet, satisfied: &FixedBitSet) -> Layering {
    let mut left: BTreeSet<u32> = members.ones().map(|ix| ix as u32).collect();
    let mut done: BTreeSet<u32> = BTreeSet::new();
    let by_name = |set: Vec<u32>| {
        let mut list: Vec<RuntimeIx> = set.into_iter().map(RuntimeIx).collect();
        list.sort_by(|a, b| plan.runtime(*a).id.as_str().cmp(plan.runtime(*b).id.as_str()));
        list
    };
    let mut layers = Vec::new();
    loop {
        let ready: Vec<u32> = left
            .iter()
            .copied()
            .filter(|ix| {
                plan.edges_of(RuntimeIx(*ix)).iter().all(|edge| {
                    let targets: Vec<u32> = if edge.contract.to_native() == NONE {
                        Some(edge.runtime.to_native()).filter(|ix| *ix != NONE).into_iter().collect()
                    } else {
                        plan.providers_of(edge.contract.to_native()).map(|ix| ix.0).collect()
                    };
                    let among: Vec<u32> =
                        targets.iter().copied().filter(|target| members.contains(*target as usize)).collect();
                    let one =
                        matches!(edge.kind, ArchivedEdgeKind::Need) && edge.contract.to_native() != NONE && !edge.all;
                    if one {
                        among.is_empty()
                            || targets.iter().any(|target| satisfied.contains(*target as usize))
                            || among.iter().any(|target| done.contains(target))
                    } else {
                        among.iter().all(|target| done.contains(target))
                    }
                })
            })
            .collect();
        if ready.is_empty() {
            return Layering { layers, cyclic: by_name(left.into_iter().collect()) };
        }
        for ix in &ready {
            left.remove(ix);
            done.insert(*ix);
        }
        layers.push(by_name(ready));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: EVT-4, EVT-5
    #[test]
    fn layers_agree_with_the_obvious_version(sketch in sketch()) {
        let plan = sketch.plan();
        let (members, satisfied) = (sketch.bits(sketch.members), sketch.bits(sketch.satisfied));
        let fast = layer(&plan, &members, &satisfied);
        prop_assert_eq!(&fast, &obvious(&plan, &members, &satisfied));
        let total: usize = fast.layers.iter().map(Vec::len).sum();
        prop_assert_eq!(total + fast.cyclic.len(), members.count_ones(..));
    }
}

#[test]
fn the_cache_answers_the_same_and_stays_bounded() {
    let sketch = Sketch {
        runtimes: (0..8).map(|ix| (false, None, if ix == 0 { vec![] } else { vec![Dependency::After(ix)] })).collect(),
        members: u32::MAX,
        satisfied: 0,
    };
    let plan = sketch.plan();
    let cache = LayerCache::new(4);
    assert!(cache.is_empty());
    let nothing = FixedBitSet::with_capacity(8);
    for bits in (0..256u32).chain(0..256) {
        let members = sketch.bits(bits);
        assert_eq!(*cache.layer(&plan, &members, &nothing), layer(&plan, &members, &nothing));
        assert!(cache.len() <= 4);
    }
    let all = sketch.bits(u32::MAX);
    let first = cache.layer(&plan, &all, &nothing);
    assert!(Arc::ptr_eq(&first, &cache.layer(&plan, &all, &nothing)));
}

/// Bits of another plan must not reach outside the tables.
#[test]
fn bits_beyond_the_plan_are_ignored() {
    let sketch = Sketch { runtimes: vec![(false, None, vec![])], members: 0, satisfied: 0 };
    let plan = sketch.plan();
    let far: FixedBitSet = [0usize, 5, 900].into_iter().collect();
    let layering = layer(&plan, &far, &far);
    assert_eq!(layering.layers, [vec![RuntimeIx(0)]]);
    assert!(layering.cyclic.is_empty());
}
