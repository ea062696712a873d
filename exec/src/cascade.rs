//! What a unit of a commit hangs on, and what falls when one is refused: pure rules over a walked turn core and the
//! reads that were recorded. No values, no store. RDD-2

use covel_graph::{
    RuntimeIx,
    plan::{ArchivedEdgeKind, NONE},
};
use fixedbitset::FixedBitSet;

use crate::core::TurnCore;

/// One reason why a unit may not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It needs this runtime.
    On(RuntimeIx),
    /// It needs at least one of these.
    OnAny(Vec<RuntimeIx>),
    /// It read something of this runtime; a story is kept all the same. RDD-2
    Read(RuntimeIx),
}

/// What a refusal of a unit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The unit is dropped alone; what hangs on it follows.
    Isolated,
    /// Nothing of the execution is kept.
    Whole,
}

/// Who was dropped so far, in execution order.
#[derive(Clone, Debug)]
pub struct Cascade {
    has_story: bool,
    dropped: FixedBitSet,
    order: Vec<RuntimeIx>,
}

impl Cascade {
    /// `has_story`: the execution has a story that succeeded. Without one a single refusal refuses everything.
    pub fn new(has_story: bool) -> Self {
        Self { has_story, dropped: FixedBitSet::new(), order: Vec::new() }
    }

    /// Dropped runtimes, in execution order.
    pub fn dropped(&self) -> &[RuntimeIx] {
        &self.order
    }

    /// Was this unit dropped?
    pub fn is_dropped(&self, runtime: RuntimeIx) -> bool {
        !self.order.is_empty() && self.dropped.contains(runtime.index())
    }

    /// The dropped runtime a unit falls with, if any. What a story only read is given to `lost` instead.
    pub fn falls_with(&self, hangs: &[Hang], story: bool, mut lost: impl FnMut(RuntimeIx)) -> Option<RuntimeIx> {
        if self.order.is_empty() {
            return None;
        }
        for hang in hangs {
            match hang {
                Hang::On(runtime) if self.is_dropped(*runtime) => return Some(*runtime),
                Hang::OnAny(list) if list.iter().all(|runtime| self.is_dropped(*runtime)) => {
                    if let Some(first) = list.first() {
                        return Some(*first);
                    }
                }
                Hang::Read(runtime) if self.is_dropped(*runtime) => {
                    if !story {
                        return Some(*runtime);
                    }
                    lost(*runtime);
                }
                _ => {}
            }
        }
        None
    }

    /// A unit was refused, or falls with another.
    pub fn refuse(&mut self, runtime: RuntimeIx, story: bool, setup: bool) -> Verdict {
        if !self.has_story || story || setup {
            return Verdict::Whole;
        }
        self.order.push(runtime);
        self.dropped.grow_and_insert(runtime.index());
        Verdict::Isolated
    }
}

/// What a runtime's place in the plan and its recorded reads make it hang on. `producers` are the runtimes whose
/// results or uncommitted data it read, `data_reads` those of them whose uncommitted data it read.
pub fn hangs(
    core: &TurnCore,
    runtime: RuntimeIx,
    producers: &FixedBitSet,
    data_reads: Option<&FixedBitSet>,
) -> Vec<Hang> {
    let plan = &**core.plan();
    let mut hangs = Vec::new();
    let range = plan.edge_starts[runtime.index()].to_native() as usize
        ..plan.edge_starts[runtime.index() + 1].to_native() as usize;
    let mut declared = Vec::new();
    for slot in range {
        let edge = &plan.edges[slot];
        if matches!(edge.kind, ArchivedEdgeKind::After) || edge.session_scope {
            continue;
        }
        let (target, contract) = (edge.runtime.to_native(), edge.contract.to_native());
        let targets: Vec<RuntimeIx> = if contract == NONE {
            (target != NONE).then_some(RuntimeIx(target)).into_iter().collect()
        } else {
            let providers = &plan.providers;
            let items = providers.starts[contract as usize].to_native() as usize
                ..providers.starts[contract as usize + 1].to_native() as usize;
            items
                .map(|slot| RuntimeIx(providers.items[slot].to_native()))
                // A provider that ended well only later did not let this one start.
                .filter(|ix| core.status(*ix).is_ok() && core.ran_before(*ix, runtime))
                .collect()
        };
        declared.extend(targets.iter().copied());
        if !edge.required {
            continue;
        }
        if contract == NONE || edge.all {
            hangs.extend(targets.into_iter().map(Hang::On));
        } else {
            hangs.push(Hang::OnAny(targets));
        }
    }
    let place = core.place(runtime);
    if place.depth > 0 {
        let topic = plan.runtimes[runtime.index()].topic.to_native();
        let emitters: Vec<RuntimeIx> = core
            .events()
            .iter()
            .filter(|event| event.topic == topic && event.depth == place.depth)
            .map(|event| event.emitter)
            .collect();
        declared.extend(emitters.iter().copied());
        hangs.push(Hang::OnAny(emitters));
    }
    // Reads beyond declared edges, and uncommitted data whoever wrote it. What an optional input bound is not one.
    for producer in producers.ones() {
        let data = data_reads.is_some_and(|reads| reads.contains(producer));
        let Ok(producer) = u32::try_from(producer) else { continue };
        if data || !declared.contains(&RuntimeIx(producer)) {
            hangs.push(Hang::Read(RuntimeIx(producer)));
        }
    }
    hangs
}
