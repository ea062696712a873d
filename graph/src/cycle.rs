//! Cycles as paths: where the dependencies of a plan close, edge by edge.

use std::collections::VecDeque;

use fixedbitset::FixedBitSet;
use petgraph::{
    algo::tarjan_scc,
    graph::{DiGraph, NodeIndex},
    visit::{EdgeRef, NodeFiltered},
};

use crate::{
    link::targets,
    plan::{EdgeRow, Plan},
};

/// Runtimes as nodes (node index = runtime index), from the waiter to what it waits for; an edge carries its index
/// in [`Plan::edges`].
pub(crate) type EdgeGraph = DiGraph<(), u32>;

/// A closed path of waiting.
#[derive(Debug, PartialEq)]
pub(crate) struct Cycle {
    pub(crate) steps: Vec<Step>,
}

/// One edge of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) waiter: u32,
    pub(crate) target: u32,
    /// Index in [`Plan::edges`].
    pub(crate) edge: u32,
}

/// The edges of a plan that `keep` accepts (waiter, target, row), as a graph.
pub(crate) fn graph(plan: &Plan, keep: impl Fn(u32, u32, &EdgeRow) -> bool) -> EdgeGraph {
    let mut graph = EdgeGraph::with_capacity(plan.runtimes.len(), plan.edges.len());
    for _ in &plan.runtimes {
        graph.add_node(());
    }
    for waiter in 0..plan.runtimes.len() {
        for edge in plan.edge_starts[waiter]..plan.edge_starts[waiter + 1] {
            let row = &plan.edges[edge as usize];
            for target in targets(row, &plan.providers) {
                if keep(waiter as u32, *target, row) {
                    graph.add_edge(NodeIndex::new(waiter), NodeIndex::new(*target as usize), edge);
                }
            }
        }
    }
    graph
}

/// The runtimes among `members` that wait for themselves, and one shortest cycle for each strongly connected part,
/// in index order.
pub(crate) fn cycles(graph: &EdgeGraph, members: &FixedBitSet) -> Vec<Cycle> {
    let among = NodeFiltered::from_fn(graph, |node: NodeIndex| members.contains(node.index()));
    let mut found = Vec::new();
    for component in tarjan_scc(&among) {
        let mut inside = FixedBitSet::with_capacity(graph.node_count());
        inside.extend(component.iter().map(|node| node.index()));
        for node in &component {
            if let Some(edge) = graph.edges_connecting(*node, *node).map(|edge| *edge.weight()).min() {
                let at = node.index() as u32;
                found.push(Cycle { steps: vec![Step { waiter: at, target: at, edge }] });
            }
        }
        let Some(start) = inside.minimum().filter(|_| component.len() > 1) else {
            continue;
        };
        if let Some(cycle) = shortest(graph, &inside, start) {
            found.push(cycle);
        }
    }
    found.sort_by_key(|cycle| cycle.steps.first().map(|step| (step.waiter, cycle.steps.len())));
    found
}

/// Breadth-first from `start` back to itself, staying inside the component.
fn shortest(graph: &EdgeGraph, inside: &FixedBitSet, start: usize) -> Option<Cycle> {
    let mut came_from: Vec<Option<(usize, u32)>> = vec![None; graph.node_count()];
    let mut queue = VecDeque::from([start]);
    while let Some(waiter) = queue.pop_front() {
        let mut next: Vec<(usize, u32)> = graph
            .edges(NodeIndex::new(waiter))
            .map(|edge| (edge.target().index(), *edge.weight()))
            .filter(|(target, _)| inside.contains(*target) && *target != waiter)
            .collect();
        next.sort_unstable();
        for (target, edge) in next {
            if target == start {
                let mut steps = vec![Step { waiter: waiter as u32, target: start as u32, edge }];
                let mut at = waiter;
                while at != start {
                    let (waiter, edge) = came_from[at]?;
                    steps.push(Step { waiter: waiter as u32, target: at as u32, edge });
                    at = waiter;
                }
                steps.reverse();
                return Some(Cycle { steps });
            }
            if came_from[target].is_none() {
                came_from[target] = Some((waiter, edge));
                queue.push_back(target);
            }
        }
    }
    None
}
