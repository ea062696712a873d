//! The turn core under every order of completions.
#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::BTreeMap, sync::Arc};

use covel_exec::{
    core::{Action, Ended, Phase, PhaseKind, Status, TurnCore},
    select::Selection,
};
use covel_graph::{RuntimeIx, Stage, archive::PlanHandle, layer::LayerCache, link::link};
use fixedbitset::FixedBitSet;
use proptest::{prelude::*, test_runner::RngSeed};

/// Outcome and topics of every runtime, whenever it is asked.
type Script = BTreeMap<String, (Ended, Vec<String>)>;

/// A package with `count` runtimes over three stages and event followers, wired by `edges` (earlier -> later).
fn plan(count: usize, edges: &[(usize, usize, bool)]) -> PlanHandle {
    let mut files = vec![(
        "PLUGIN.md".to_owned(),
        "---\nid: p\nkind: plugin\ndescription: d\ncontributes:\n  events:\n    - { topic: t.zero, schema: ./any.json, description: d }\n    - { topic: t.one, schema: ./any.json, description: d }\n---\n".to_owned(),
    )];
    files.push(("any.json".into(), "{}".into()));
    files.push(("h.js".into(), "export default () => ({ outcome: 'success' });".into()));
    for at in 0..count {
        let links = |hard: bool| {
            let list: Vec<String> = edges
                .iter()
                .filter(|(_, to, need)| *to == at && *need == hard)
                .map(|(from, ..)| format!("p/r{from:02}"))
                .collect();
            list.join(", ")
        };
        let when = match at % 5 {
            0 | 1 => "stage: pre-turn".to_owned(),
            2 => "stage: post-turn".to_owned(),
            3 => "trigger: { type: event, topic: t.zero }".to_owned(),
            _ => "trigger: { type: event, topic: t.one }".to_owned(),
        };
        files.push((
            format!("runtimes/r{at:02}/RUNTIME.md"),
            format!(
                "---\ntype: function\nschedule: {{ {when}, needs: [{}], after: [{}] }}\nfunction: {{ handler: ../../h.js }}\n---\n",
                links(true),
                links(false)
            ),
        ));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    link(&[support::package(&files)]).unwrap().handle().unwrap()
}

fn selection(plan: &PlanHandle) -> Selection {
    let count = plan.runtimes.len();
    let phases = [Stage::PreTurn, Stage::PostTurn]
        .into_iter()
        .map(|stage| {
            let mut members = FixedBitSet::with_capacity(count);
            for (ix, row) in plan.runtimes.iter().enumerate() {
                if row.stage == stage as u8 {
                    members.insert(ix);
                }
            }
            Phase { kind: PhaseKind::Stage(stage), members }
        })
        .collect();
    let mut eligible = FixedBitSet::with_capacity(count);
    eligible.insert_range(..);
    Selection {
        phases,
        session_done: FixedBitSet::with_capacity(count),
        eligible,
        ignore_upstreams: false,
        seeds: Vec::new(),
    }
}

/// Drives a core; `pick` chooses which of the running ones ends next.
fn drive(plan: &PlanHandle, script: &Script, mut pick: impl FnMut(usize) -> usize) -> (Vec<Status>, Vec<String>) {
    let mut core = TurnCore::new(plan.clone(), Arc::new(LayerCache::default()), selection(plan));
    let mut actions = Vec::new();
    let mut running: Vec<RuntimeIx> = Vec::new();
    core.start(&mut actions);
    loop {
        for action in actions.drain(..) {
            if let Action::Start { runtime, .. } = action {
                assert!(!running.contains(&runtime));
                running.push(runtime);
            }
        }
        if running.is_empty() {
            break;
        }
        let runtime = running.remove(pick(running.len()) % running.len());
        let (ended, topics) = &script[plan.runtimes[runtime.index()].id.as_str()];
        let topics = topics
            .iter()
            .map(|topic| plan.topics.iter().position(|known| known.as_str() == topic).unwrap() as u32)
            .collect();
        core.finished(runtime, *ended, topics, &mut actions);
    }
    assert!(core.is_done());
    let statuses = (0..plan.runtimes.len()).map(|ix| core.status(RuntimeIx(ix as u32))).collect();
    let events = core.events().iter().map(|event| format!("{event:?}")).collect();
    (statuses, events)
}

fn ended() -> impl Strategy<Value = Ended> {
    prop_oneof![
        5 => Just(Ended::Success),
        1 => Just(Ended::GuardSkip),
        1 => Just(Ended::Skipped),
        2 => Just(Ended::Failed),
        1 => Just(Ended::Suspended),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, rng_seed: RngSeed::Fixed(20_261_130), failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: EVT-1, EVT-2
    #[test]
    fn the_outcome_does_not_depend_on_the_order_of_completions(
        edges in prop::collection::vec((0usize..12, 0usize..12, any::<bool>()), 0..14),
        outcomes in prop::collection::vec((ended(), prop::collection::vec(0usize..2, 0..3)), 12),
        orders in prop::collection::vec(prop::collection::vec(any::<usize>(), 40), 6),
    ) {
        // Edges go from lower to higher numbers, so that no package cycle refuses the whole package.
        let edges: Vec<_> = edges.into_iter().filter(|(from, to, _)| from < to).collect();
        let plan = plan(12, &edges);
        let script: Script = outcomes
            .into_iter()
            .enumerate()
            .map(|(at, (ended, topics))| {
                let topics = topics.into_iter().map(|t| ["t.zero", "t.one"][t].to_owned()).collect();
                (format!("p/r{at:02}"), (ended, topics))
            })
            .collect();
        let first = drive(&plan, &script, |_| 0);
        for order in orders {
            let mut picks = order.into_iter().cycle();
            let other = drive(&plan, &script, |_| picks.next().unwrap());
            prop_assert_eq!(&first, &other);
        }
        // Nothing hangs in the air, and a hard need is never run without a good provider.
        for (ix, status) in first.0.iter().enumerate() {
            prop_assert!(!matches!(status, Status::Running | Status::Waiting));
            let id = plan.runtimes[ix].id.as_str();
            let at: usize = id["p/r".len()..].parse().unwrap();
            // A runtime that was never triggered is idle; one that ran and skipped itself looks like one that was skipped.
            let ran = !matches!(status, Status::Idle | Status::Skipped);
            let needs = edges.iter().filter(|(_, to, hard)| *hard && *to == at);
            for (from, ..) in needs {
                let name = format!("p/r{from:02}");
                let provider = plan.runtimes.iter().position(|row| row.id.as_str() == name).unwrap();
                let good = matches!(first.0[provider], Status::Success | Status::GuardSkip);
                prop_assert!(good || !ran, "{} ran without {}", id, name);
            }
        }
    }
}

#[test]
fn a_cancelled_core_starts_nothing_more_and_late_answers_change_nothing() {
    let plan = plan(3, &[(0, 1, true)]);
    let mut core = TurnCore::new(plan.clone(), Arc::new(LayerCache::default()), selection(&plan));
    let mut actions = Vec::new();
    core.start(&mut actions);
    let Action::Start { runtime, .. } = actions[0] else { panic!("{actions:?}") };
    core.cancel();
    assert!(!core.is_done());
    actions.clear();
    core.finished(runtime, Ended::Success, Vec::new(), &mut actions);
    assert!(core.is_done() && actions.is_empty());
    core.finished(runtime, Ended::Failed, Vec::new(), &mut actions);
    assert_eq!(core.status(runtime), Status::Success);
}
