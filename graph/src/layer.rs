//! Which runtimes of a triggered set may run together.
//!
//! A pure function of the plan and two bit sets: level-by-level Kahn over the flat arrays of [`crate::plan::Order`],
//! linear in the members and their edges. A need on one provider of a contract is a *choice*: the first provider
//! to finish releases it, and one that already succeeded (an earlier stage, an earlier event layer) means there is
//! nothing to wait for. Everything else is a hard edge. EVT-4, EVT-5

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use fixedbitset::FixedBitSet;

use crate::{
    hazard::{EffectTable, serialize_layer},
    plan::{ArchivedPlan, RuntimeIx},
};

/// The layers of one triggered set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layering {
    /// Runtimes that run together, layer by layer; inside a layer by id.
    pub layers: Vec<Vec<RuntimeIx>>,
    /// Members of cycles and everything that waits for them, by id. They cannot run.
    pub cyclic: Vec<RuntimeIx>,
}

impl Layering {
    /// The same with every layer split so that no two runtimes that touch the same thing run at once. Policy `strict`.
    #[must_use]
    pub fn serialized(self, plan: &ArchivedPlan, effects: &EffectTable) -> Layering {
        let layers = self.layers.iter().flat_map(|layer| serialize_layer(plan, effects, layer)).collect();
        Layering { layers, cyclic: self.cyclic }
    }
}

/// Layers `members` (triggered together: one stage, or one event layer).
///
/// `satisfied` are runtimes that already succeeded, or were skipped by their guard, earlier in the execution. Edges
/// to runtimes outside `members` do not order anything; whether they gate is decided when the waiter's turn comes.
/// Bits beyond the plan's runtimes are ignored.
pub fn layer(plan: &ArchivedPlan, members: &FixedBitSet, satisfied: &FixedBitSet) -> Layering {
    const FREE: u8 = 0;
    const WAITED: u8 = 1;
    let order = &plan.order;
    let count = plan.runtimes.len();
    let (hard_starts, hard) = (&order.hard.starts[..], &order.hard.items[..]);
    let (release_starts, releases) = (&order.releases.starts[..], &order.releases.items[..]);
    let choice_waiter = &order.choice_waiter[..];
    let row = |starts: &[rkyv::primitive::ArchivedU32], ix: usize| {
        starts[ix].to_native() as usize..starts[ix + 1].to_native() as usize
    };

    let mut waits = vec![0u32; count];
    let mut choices = vec![FREE; choice_waiter.len()];
    let mut total = 0;
    for provider in in_plan(members, count) {
        total += 1;
        for waiter in &hard[row(hard_starts, provider)] {
            // Non-members are counted too and never looked at.
            waits[waiter.to_native() as usize] += 1;
        }
        for choice in &releases[row(release_starts, provider)] {
            let choice = choice.to_native();
            let state = &mut choices[choice as usize];
            if *state == FREE && !order.choice_providers.row(choice).any(|ix| satisfied.contains(ix as usize)) {
                *state = WAITED;
                waits[choice_waiter[choice as usize].to_native() as usize] += 1;
            }
        }
    }

    let mut sorter = ById::new(plan, members);
    let mut layers = Vec::new();
    let mut placed = 0;
    let mut current = Vec::with_capacity(total);
    current.extend(in_plan(members, count).filter(|ix| waits[*ix] == 0).map(|ix| RuntimeIx(ix as u32)));
    while !current.is_empty() {
        sorter.sort(&mut current);
        placed += current.len();
        let mut next = Vec::new();
        let mut release = |waiter: u32| {
            let left = &mut waits[waiter as usize];
            *left -= 1;
            if *left == 0 && members.contains(waiter as usize) {
                next.push(RuntimeIx(waiter));
            }
        };
        for done in &current {
            for waiter in &hard[row(hard_starts, done.index())] {
                release(waiter.to_native());
            }
            for choice in &releases[row(release_starts, done.index())] {
                let choice = choice.to_native() as usize;
                if choices[choice] == WAITED {
                    choices[choice] = FREE;
                    release(choice_waiter[choice].to_native());
                }
            }
        }
        layers.push(std::mem::replace(&mut current, next));
    }

    let mut cyclic = Vec::new();
    if placed < total {
        cyclic.extend(in_plan(members, count).filter(|ix| waits[*ix] > 0).map(|ix| RuntimeIx(ix as u32)));
        sorter.sort(&mut cyclic);
    }
    Layering { layers, cyclic }
}

/// Members that are runtimes of the plan.
fn in_plan(members: &FixedBitSet, count: usize) -> impl Iterator<Item = usize> + '_ {
    members.ones().take_while(move |ix| *ix < count)
}

/// Brings runtimes into the order of their ids.
struct ById<'a> {
    plan: &'a ArchivedPlan,
    /// Inside a stage rows are sorted by id, so the index is the rank.
    one_stage: bool,
    /// Ranks of the runtimes at hand; empty between uses.
    ranks: FixedBitSet,
}

impl<'a> ById<'a> {
    fn new(plan: &'a ArchivedPlan, members: &FixedBitSet) -> Self {
        let last = members.maximum().map(|last| last.min(plan.runtimes.len().saturating_sub(1)));
        let one_stage = match (members.minimum(), last) {
            (Some(first), Some(last)) if first < last => plan.runtimes[first].stage == plan.runtimes[last].stage,
            _ => true,
        };
        Self { plan, one_stage, ranks: FixedBitSet::new() }
    }

    fn sort(&mut self, layer: &mut [RuntimeIx]) {
        // The ranks of a plan are a few words: with more than a few runtimes, setting and reading bits is faster
        // than comparing.
        let count = self.plan.runtimes.len();
        if self.one_stage {
            layer.sort_unstable();
        } else if layer.len() * 16 < count / 64 || layer.len() < 8 {
            layer.sort_unstable_by_key(|ix| self.plan.order.id_rank[ix.index()].to_native());
        } else {
            self.ranks.grow(count);
            for ix in layer.iter() {
                self.ranks.insert(self.plan.order.id_rank[ix.index()].to_native() as usize);
            }
            for (slot, rank) in layer.iter_mut().zip(self.ranks.ones()) {
                *slot = RuntimeIx(self.plan.order.by_id[rank].to_native());
            }
            self.ranks.clear();
        }
    }
}

/// Most layerings kept by a [`LayerCache`] by default.
pub const DEFAULT_LAYER_CACHE: usize = 256;

/// Layerings of one plan, kept by the bits that made them. Bounded; the oldest goes first.
#[derive(Debug)]
pub struct LayerCache {
    capacity: usize,
    /// Given under policy `strict`: layers are split by these.
    effects: Option<EffectTable>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    layerings: HashMap<Arc<Bits>, Arc<Layering>>,
    order: VecDeque<Arc<Bits>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bits {
    members: FixedBitSet,
    satisfied: FixedBitSet,
}

impl Default for LayerCache {
    fn default() -> Self {
        Self::new(DEFAULT_LAYER_CACHE)
    }
}

impl LayerCache {
    /// A cache of at most `capacity` layerings (at least one).
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), effects: None, kept: Mutex::default() }
    }

    /// A cache whose layers hold no two runtimes that touch the same thing. Policy `strict`.
    pub fn strict(effects: EffectTable) -> Self {
        Self { effects: Some(effects), ..Self::default() }
    }

    /// As [`layer`], split under policy `strict`, and remembered. The plan must be the same at every call.
    pub fn layer(&self, plan: &ArchivedPlan, members: &FixedBitSet, satisfied: &FixedBitSet) -> Arc<Layering> {
        let bits = Arc::new(Bits { members: members.clone(), satisfied: satisfied.clone() });
        if let Some(found) = self.lock().layerings.get(&bits) {
            return found.clone();
        }
        // Computed outside the lock: two threads may do the same work once, none waits for another's.
        let mut layering = layer(plan, members, satisfied);
        if let Some(effects) = &self.effects {
            layering = layering.serialized(plan, effects);
        }
        let layering = Arc::new(layering);
        let mut kept = self.lock();
        if !kept.layerings.contains_key(&bits) {
            if kept.order.len() >= self.capacity
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.layerings.remove(&oldest);
            }
            kept.order.push_back(bits.clone());
            kept.layerings.insert(bits, layering.clone());
        }
        layering
    }

    /// How many layerings are kept.
    pub fn len(&self) -> usize {
        self.lock().order.len()
    }

    /// Is nothing kept?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        // A panic elsewhere cannot leave the two tables half-changed in a way that matters here.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
