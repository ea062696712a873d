//! The resolver, row by row of the rules it follows.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, sync::Arc};

use covel_graph::{
    Activation, ActivationRequest, Discovery, Package, PackageFiles, PluginId, activate,
    fragment::{
        ContractRef, EventDecl, ExtensionDecl, Fragment, Origin, PromptDecl, Provide, RuntimeDecl, ServiceDecl,
    },
};
use proptest::prelude::*;

/// A package in one line: `id provides:a@1,b@1! requires:c@1 conflicts:d@1 topic:x.y community ...`
/// (`!` marks a default provider).
fn package(line: &str) -> Arc<Package> {
    let mut words = line.split_whitespace();
    let mut fragment = Fragment { plugin_id: words.next().unwrap().into(), ..Fragment::default() };
    let mut discovery = Discovery::Builtin;
    for word in words {
        let (key, list) = word.split_once(':').unwrap_or((word, ""));
        let names = || list.split(',').filter(|name| !name.is_empty());
        let refs = || names().map(|name| ContractRef { contract: name.into(), origin: Origin::default() }).collect();
        match key {
            "provides" => {
                fragment.provides = names()
                    .map(|name| Provide {
                        contract: name.trim_end_matches('!').into(),
                        default: name.ends_with('!'),
                        origin: Origin::default(),
                    })
                    .collect();
            }
            "requires" => fragment.requires = refs(),
            "optional" => fragment.optional = refs(),
            "conflicts" => fragment.conflicts = refs(),
            "serves" => {
                fragment.services =
                    names().map(|name| ServiceDecl { contract: name.into(), ..ServiceDecl::default() }).collect()
            }
            "topic" => {
                fragment.events = names().map(|name| EventDecl { topic: name.into(), ..EventDecl::default() }).collect()
            }
            "point" => {
                fragment.extensions =
                    names().map(|name| ExtensionDecl { point: name.into(), ..ExtensionDecl::default() }).collect()
            }
            "slot" => {
                fragment.extensions = names()
                    .map(|name| ExtensionDecl {
                        point: "ui.slot@1".into(),
                        slot: Some(name.into()),
                        ..ExtensionDecl::default()
                    })
                    .collect();
            }
            "prompt" => fragment.prompts = vec![PromptDecl { content: list.into(), ..PromptDecl::default() }],
            "community" => {
                discovery = Discovery::Community;
                fragment.runtimes = vec![RuntimeDecl::default()];
            }
            "harmless" => discovery = Discovery::Community,
            other => panic!("{other}"),
        }
    }
    Arc::new(Package {
        fragment: Arc::new(fragment),
        digest: String::new(),
        files: PackageFiles::default(),
        root: Default::default(),
        discovery,
    })
}

struct Row {
    name: &'static str,
    packages: &'static [&'static str],
    requested: &'static [&'static str],
    excluded: &'static [&'static str],
    approved: &'static [&'static str],
    world: &'static [&'static str],
    active: &'static [&'static str],
    added: &'static [&'static str],
    /// `plugin:code`.
    rejected: &'static [&'static str],
    /// `contract:code`.
    unmet: &'static [&'static str],
}

const BASE: Row = Row {
    name: "",
    packages: &[],
    requested: &[],
    excluded: &[],
    approved: &[],
    world: &[],
    active: &[],
    added: &[],
    rejected: &[],
    unmet: &[],
};

const ROWS: &[Row] = &[
    Row { name: "a request is active", packages: &["a"], requested: &["a", "a"], active: &["a"], ..BASE },
    Row { name: "an unknown request is said", requested: &["ghost"], rejected: &["ghost:unknown-plugin"], ..BASE },
    Row {
        name: "exclusion beats a request, of a core package too",
        packages: &["a"],
        requested: &["a"],
        excluded: &["a"],
        rejected: &["a:excluded"],
        ..BASE
    },
    Row {
        name: "a requirement adds its only provider",
        packages: &["a requires:c@1", "b provides:c@1"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "requirements reach on",
        packages: &["a requires:c@1", "b provides:c@1 requires:d@1", "e provides:d@1"],
        requested: &["a"],
        active: &["a", "b", "e"],
        added: &["b", "e"],
        ..BASE
    },
    Row {
        name: "a requirement nobody meets takes its plugin with it",
        packages: &["a requires:c@1"],
        requested: &["a"],
        rejected: &["a:missing-provider"],
        ..BASE
    },
    Row {
        name: "and the plugins behind it, and what was added for them",
        packages: &["a requires:c@1", "b provides:c@1 requires:x@1,d@1", "d provides:d@1"],
        requested: &["a"],
        rejected: &["a:provider-rejected", "b:missing-provider"],
        ..BASE
    },
    Row {
        name: "of several providers none is chosen",
        packages: &["a requires:c@1", "b provides:c@1", "d provides:c@1"],
        requested: &["a"],
        rejected: &["a:ambiguous-provider"],
        ..BASE
    },
    Row {
        name: "an active provider settles it",
        packages: &["a requires:c@1", "b provides:c@1", "d provides:c@1"],
        requested: &["a", "d"],
        active: &["a", "d"],
        ..BASE
    },
    Row {
        name: "an excluded provider is not brought back",
        packages: &["a requires:c@1", "b provides:c@1"],
        requested: &["a"],
        excluded: &["b"],
        rejected: &["a:provider-excluded"],
        ..BASE
    },
    Row {
        name: "exclusion can leave exactly one provider",
        packages: &["a requires:c@1", "b provides:c@1", "d provides:c@1"],
        requested: &["a"],
        excluded: &["b"],
        active: &["a", "d"],
        added: &["d"],
        ..BASE
    },
    Row {
        name: "an unapproved provider is not added",
        packages: &["a requires:c@1", "b provides:c@1 community"],
        requested: &["a"],
        rejected: &["a:provider-approval-required"],
        ..BASE
    },
    Row {
        name: "an approved one is",
        packages: &["a requires:c@1", "b provides:c@1 community"],
        requested: &["a"],
        approved: &["b"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "an unapproved request never runs",
        packages: &["a community"],
        requested: &["a"],
        rejected: &["a:approval-required"],
        ..BASE
    },
    Row {
        name: "a community package that only describes needs no approval",
        packages: &["a harmless"],
        requested: &["a"],
        active: &["a"],
        ..BASE
    },
    Row {
        name: "optional activates nothing",
        packages: &["a optional:c@1", "b provides:c@1"],
        requested: &["a"],
        active: &["a"],
        ..BASE
    },
    Row {
        name: "a default provider steps aside",
        packages: &["a provides:c@1! conflicts:c@1", "b provides:c@1"],
        requested: &["a", "b"],
        active: &["b"],
        rejected: &["a:superseded"],
        ..BASE
    },
    Row {
        name: "and stays when alone",
        packages: &["a provides:c@1! conflicts:c@1"],
        requested: &["a"],
        active: &["a"],
        ..BASE
    },
    Row {
        name: "and comes back when the other cannot be active",
        packages: &["a provides:c@1!", "b provides:c@1 requires:x@1"],
        requested: &["a", "b"],
        active: &["a"],
        rejected: &["b:missing-provider"],
        ..BASE
    },
    Row {
        name: "two defaults bear each other",
        packages: &["a provides:c@1!", "b provides:c@1!"],
        requested: &["a", "b"],
        active: &["a", "b"],
        ..BASE
    },
    Row {
        name: "of two in conflict the later one goes",
        packages: &["a conflicts:c@1", "b provides:c@1"],
        requested: &["b", "a"],
        active: &["b"],
        rejected: &["a:conflict"],
        ..BASE
    },
    Row {
        name: "whichever of them says so",
        packages: &["a conflicts:c@1", "b provides:c@1"],
        requested: &["a", "b"],
        active: &["a"],
        rejected: &["b:conflict"],
        ..BASE
    },
    Row {
        name: "a provider in conflict is not added, and its dependant goes",
        packages: &["a requires:c@1", "b provides:c@1 conflicts:d@1", "e provides:d@1"],
        requested: &["a", "e"],
        active: &["e"],
        rejected: &["a:provider-rejected", "b:conflict"],
        ..BASE
    },
    Row {
        name: "a kernel contract in conflicts is invalid",
        packages: &["a conflicts:ui.slot@1"],
        requested: &["a"],
        rejected: &["a:invalid-conflict"],
        ..BASE
    },
    Row {
        name: "a slot too",
        packages: &["a conflicts:stage.cast@1"],
        requested: &["a"],
        rejected: &["a:invalid-conflict"],
        ..BASE
    },
    Row {
        name: "one topic is declared once; the later one goes",
        packages: &["a topic:x.y", "b topic:x.y"],
        requested: &["b", "a"],
        active: &["b"],
        rejected: &["a:event-topic-conflict"],
        ..BASE
    },
    Row {
        name: "explicit requests come before added ones",
        packages: &["a requires:c@1", "b provides:c@1 topic:x.y", "z topic:x.y"],
        requested: &["a", "z"],
        active: &["z"],
        rejected: &["a:provider-rejected", "b:event-topic-conflict"],
        ..BASE
    },
    Row {
        name: "what was rejected for a plugin that is gone comes back",
        packages: &["a topic:x.y requires:none@1", "b topic:x.y"],
        requested: &["a", "b"],
        active: &["b"],
        rejected: &["a:missing-provider"],
        ..BASE
    },
    Row {
        name: "an extension provides its point",
        packages: &["a requires:prompt.segment@1", "b point:prompt.segment@1"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "a slot provider provides its slot",
        packages: &["a requires:stage.cast@1", "b slot:stage.cast@1"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "a prompt part counts as a segment, an empty one does not",
        packages: &["a requires:prompt.segment@1", "b prompt:hello", "c prompt:"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "a bare `provides` of a kernel contract satisfies nobody",
        packages: &["a requires:prompt.segment@1", "b provides:prompt.segment@1"],
        requested: &["a"],
        rejected: &["a:missing-provider"],
        ..BASE
    },
    Row {
        name: "a service provides its contract",
        packages: &["a requires:s@1", "b serves:s@1"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "packages that require each other settle together",
        packages: &["a provides:a@1 requires:b@1", "b provides:b@1 requires:a@1"],
        requested: &["a"],
        active: &["a", "b"],
        added: &["b"],
        ..BASE
    },
    Row {
        name: "and are not active for each other alone",
        packages: &["a provides:a@1 requires:b@1", "b provides:b@1 requires:a@1"],
        ..BASE
    },
    Row {
        name: "the world's need adds a provider",
        packages: &["a provides:c@1"],
        world: &["c@1"],
        active: &["a"],
        added: &["a"],
        ..BASE
    },
    Row { name: "or says that nobody provides it", world: &["c@1"], unmet: &["c@1:missing-provider"], ..BASE },
    Row {
        name: "or that several do",
        packages: &["a provides:c@1", "b provides:c@1"],
        world: &["c@1"],
        unmet: &["c@1:ambiguous-provider"],
        ..BASE
    },
    Row {
        name: "or that the one that does is not approved",
        packages: &["a provides:c@1 community"],
        world: &["c@1"],
        unmet: &["c@1:approval-required"],
        ..BASE
    },
    Row {
        name: "or is turned off",
        packages: &["a provides:c@1"],
        world: &["c@1"],
        excluded: &["a"],
        unmet: &["c@1:excluded"],
        ..BASE
    },
    Row {
        name: "a provider that cannot stand leaves the world's need unmet",
        packages: &["a provides:c@1 requires:x@1"],
        world: &["c@1"],
        rejected: &["a:missing-provider"],
        unmet: &["c@1:missing-provider"],
        ..BASE
    },
];

fn ids(list: &[&str]) -> BTreeSet<PluginId> {
    list.iter().map(|id| PluginId::from(*id)).collect()
}

fn run(row: &Row, packages: &[Arc<Package>]) -> Activation {
    activate(&ActivationRequest {
        packages,
        requested: row.requested.iter().map(|id| PluginId::from(*id)).collect(),
        excluded: ids(row.excluded),
        approved: ids(row.approved),
        required_contracts: row.world.iter().map(|contract| (*contract).to_owned()).collect(),
    })
}

/// Covers: EXP-4
#[test]
fn every_row_holds_in_any_package_order() {
    for row in ROWS {
        let mut packages: Vec<Arc<Package>> = row.packages.iter().map(|line| package(line)).collect();
        let outcome = run(row, &packages);
        let active: Vec<&str> = outcome.active.iter().map(PluginId::as_str).collect();
        let added: Vec<&str> = outcome.auto_added.iter().map(|one| one.plugin.as_str()).collect();
        let rejected: Vec<String> = outcome.rejected.iter().map(|one| format!("{}:{}", one.plugin, one.code)).collect();
        let unmet: Vec<String> = outcome.unmet.iter().map(|one| format!("{}:{}", one.contract, one.code)).collect();
        assert_eq!(active, row.active, "{}: {outcome:#?}", row.name);
        assert_eq!(added, row.added, "{}", row.name);
        assert_eq!(rejected, row.rejected, "{}: {outcome:#?}", row.name);
        assert_eq!(unmet, row.unmet, "{}: {outcome:#?}", row.name);
        let reasons =
            outcome.rejected.iter().map(|one| &one.message).chain(outcome.unmet.iter().map(|one| &one.message));
        for reason in reasons.chain(outcome.auto_added.iter().map(|one| &one.reason)) {
            assert!(reason.contains('`') && reason.len() > 10, "{}: {reason}", row.name);
        }
        packages.reverse();
        assert_eq!(run(row, &packages), outcome, "{}", row.name);
    }
}

#[test]
fn only_two_reasons_block_a_session() {
    let blocks = |row: &str| {
        let row = ROWS.iter().find(|one| one.name == row).unwrap();
        let packages: Vec<Arc<Package>> = row.packages.iter().map(|line| package(line)).collect();
        run(row, &packages).unmet[0].blocks()
    };
    assert!(blocks("or says that nobody provides it") && blocks("or that several do"));
    assert!(!blocks("or that the one that does is not approved") && !blocks("or is turned off"));
}

/// Random worlds of up to ten packages over five contracts and three topics.
fn world() -> impl Strategy<Value = (Vec<String>, Vec<String>, Vec<String>)> {
    let contracts = || prop::collection::btree_set(0..5u8, 0..3);
    let line = (contracts(), contracts(), contracts(), prop::option::weighted(0.3, 0..3u8), any::<bool>());
    (prop::collection::vec(line, 1..10), prop::collection::vec(0..10usize, 0..6), contracts()).prop_map(
        |(lines, requested, needed)| {
            let list = |set: &BTreeSet<u8>, end: &str| {
                set.iter().map(|ix| format!("c{ix}@1{end}")).collect::<Vec<_>>().join(",")
            };
            let lines: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(ix, (provides, requires, conflicts, topic, default))| {
                    let end = if *default { "!" } else { "" };
                    let conflicts: BTreeSet<u8> = conflicts.iter().copied().take(1).filter(|_| ix % 3 == 0).collect();
                    let topic = topic.map(|topic| format!("topic:t.{topic}")).unwrap_or_default();
                    format!(
                        "p{ix} provides:{} requires:{} conflicts:{} {topic}",
                        list(provides, end),
                        list(requires, ""),
                        list(&conflicts, "")
                    )
                })
                .collect();
            let requested = requested.iter().map(|ix| format!("p{}", ix % lines.len())).collect();
            (lines, requested, needed.iter().map(|ix| format!("c{ix}@1")).collect())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The outcome does not depend on package order, and what is active has what it requires, does not conflict,
    /// declares each topic once and, when nobody asked for it, is needed.
    #[test]
    fn outcomes_are_stable_and_consistent((lines, requested, needed) in world()) {
        let packages: Vec<Arc<Package>> = lines.iter().map(|line| package(line)).collect();
        let request = |packages: &[Arc<Package>]| activate(&ActivationRequest {
            packages,
            requested: requested.iter().map(|id| PluginId::from(id.as_str())).collect(),
            required_contracts: needed.iter().cloned().collect(),
            ..ActivationRequest { packages, requested: vec![], excluded: BTreeSet::new(), approved: BTreeSet::new(), required_contracts: BTreeSet::new() }
        });
        let outcome = request(&packages);
        let mut turned = packages.clone();
        turned.rotate_left(lines.len() / 2);
        turned.reverse();
        prop_assert_eq!(&request(&turned), &outcome);

        let active: Vec<&Arc<Package>> =
            packages.iter().filter(|package| outcome.active.iter().any(|id| id.as_str() == package.id())).collect();
        let gives = |package: &Package, contract: &str| package.fragment.provides.iter().any(|one| one.contract == contract);
        let mut topics = BTreeSet::new();
        for package in &active {
            for reference in &package.fragment.requires {
                prop_assert!(active.iter().any(|other| gives(other, &reference.contract)), "{} lacks {}", package.id(), reference.contract);
            }
            for conflict in &package.fragment.conflicts {
                prop_assert!(!active.iter().any(|other| other.id() != package.id() && gives(other, &conflict.contract)));
            }
            for event in &package.fragment.events {
                prop_assert!(topics.insert(event.topic.clone()), "{} twice", event.topic);
            }
        }
        for added in &outcome.auto_added {
            prop_assert!(!requested.contains(&added.plugin.as_str().to_owned()));
            prop_assert!(active.iter().any(|package| gives(package, &added.contract) && package.id() == added.plugin.as_str()));
        }
        for id in &requested {
            let here = outcome.active.iter().any(|one| one.as_str() == id);
            let said = outcome.rejected.iter().any(|one| one.plugin.as_str() == id);
            prop_assert!(here != said, "{} must be active or rejected", id);
        }
    }
}
