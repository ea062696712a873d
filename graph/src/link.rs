//! Linking: active packages to one frozen plan.
//!
//! Names become indexes, contracts become provider lists, declared dependencies become edges. The same edges are
//! put into a petgraph graph, which answers whether they can run and, when not, along which lines they close.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fixedbitset::FixedBitSet;
use rkyv::{rancor, util::AlignedVec};

use crate::{
    archive::{self, PlanHandle},
    compat, consistency,
    cycle::{self, Cycle},
    diagnostic::{Diagnostic, Severity},
    fragment::{Cardinality, Fragment, ManualExecution, NeedDecl, Origin, RuntimeDecl, Scope},
    hazard::{self, Hazard},
    ids::PlanDigest,
    layer,
    limits::MAX_HAZARDS_LISTED,
    package::Package,
    plan::{
        ArchivedPlan, Csr, EdgeKind, EdgeRow, NONE, Order, PLAN_FORMAT, Plan, PlanPlugin, RuntimeRow, Stage, UNSTAGED,
    },
};

/// A linked plan with its archive.
#[derive(Debug)]
pub struct Linked {
    /// The plan.
    pub plan: Plan,
    /// Its archive, header included, as [`PlanHandle::open`] reads it.
    pub bytes: AlignedVec,
    /// The digest that names it.
    pub digest: PlanDigest,
    /// What is doubtful about these packages together.
    pub diagnostics: Vec<Diagnostic>,
    /// Runtimes that touch the same thing and would run at once if everything were due; each is a warning among
    /// the diagnostics too.
    pub hazards: Vec<Hazard>,
}

impl Linked {
    /// A handle on the archive.
    pub fn handle(&self) -> Result<PlanHandle, archive::ArchiveError> {
        PlanHandle::open(Arc::from(self.bytes.as_slice()), &self.digest)
    }
}

/// Links active packages. Their order does not matter; of two with one id the first counts.
///
/// # Errors
/// When the plan cannot be archived (tables beyond 2 GiB).
pub fn link(packages: &[Arc<Package>]) -> Result<Linked, archive::ArchiveError> {
    let mut members: Vec<(&Fragment, &str)> =
        packages.iter().map(|package| (&*package.fragment, package.digest.as_str())).collect();
    // Findings are told in this order; of two with one id the first stays first.
    members.sort_by(|a, b| a.0.plugin_id.cmp(&b.0.plugin_id));
    let (mut plan, mut diagnostics) = build(&members);
    compat::check(&members, &mut plan, &mut diagnostics);
    let (bytes, digest) = archive::encode_plan(&plan)?;
    let archived = rkyv::access::<ArchivedPlan, rancor::Error>(&bytes[archive::HEADER..])
        .map_err(|error| archive::ArchiveError::Malformed { kind: "plan", message: error.to_string() })?;
    check_cycles(&plan, archived, &mut diagnostics);
    consistency::check(&members, &plan, &mut diagnostics);
    let hazards = check_hazards(&members, archived, &mut diagnostics);
    Ok(Linked { plan, bytes, digest, diagnostics, hazards })
}

/// Hazards of every layer in which everything is due, each pair once.
fn check_hazards(
    packages: &[(&Fragment, &str)],
    plan: &ArchivedPlan,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Hazard> {
    let fragments = packages.iter().map(|(fragment, _)| *fragment);
    let effects = hazard::EffectTable::of(plan, fragments.clone());
    let mut found: Vec<Hazard> = Vec::new();
    let mut said: BTreeSet<(String, String)> = BTreeSet::new();
    for layer in hazard::full_layers(plan) {
        for hazard in hazard::hazards(plan, &effects, &layer) {
            if found.len() < MAX_HAZARDS_LISTED && said.insert((hazard.first.clone(), hazard.second.clone())) {
                found.push(hazard);
            }
        }
    }
    for hazard in &found {
        let runtime = fragments.clone().find_map(|fragment| {
            let runtime = fragment.runtimes.iter().find(|runtime| runtime.id == hazard.second)?;
            Some((fragment, runtime))
        });
        let Some((fragment, runtime)) = runtime else {
            continue;
        };
        diagnostics.push(Diagnostic {
            severity: Severity::Warning,
            code: "effects-hazard".into(),
            message: format!(
                "`{}` touches `{}` while `{}`, which may run at the same time, touches `{}`",
                hazard.second, hazard.second_key, hazard.first, hazard.first_key
            ),
            help: Some("order them with `after` or `needs`, or mark both `effects.parallelSafe` if their writes do not disturb each other".into()),
            plugin_id: Some(fragment.plugin_id.clone()),
            file: runtime.origin.file.clone(),
            line: runtime.origin.line,
            column: runtime.origin.column,
            path: None,
        });
    }
    found
}

/// Packages to tables, without archive or cycle check.
pub(crate) fn build(packages: &[(&Fragment, &str)]) -> (Plan, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut by_id: BTreeMap<&str, (&Fragment, &str)> = BTreeMap::new();
    for (fragment, digest) in packages {
        if by_id.contains_key(fragment.plugin_id.as_str()) {
            diagnostics.push(Diagnostic {
                severity: Severity::Error,
                code: "duplicate-plugin".into(),
                message: format!("two active packages have the id `{}`; the first counts", fragment.plugin_id),
                help: None,
                plugin_id: Some(fragment.plugin_id.clone()),
                file: "PLUGIN.md".into(),
                line: 0,
                column: 0,
                path: Some("id".into()),
            });
        } else {
            by_id.insert(&fragment.plugin_id, (fragment, digest));
        }
    }
    let fragments: Vec<&Fragment> = by_id.values().map(|(fragment, _)| *fragment).collect();
    let plugins = by_id
        .values()
        .map(|(fragment, digest)| PlanPlugin {
            id: fragment.plugin_id.clone(),
            version: fragment.version.clone(),
            fragment: (*digest).to_owned(),
            capabilities: capabilities(fragment),
        })
        .collect();

    let contracts: Vec<String> = contract_names(&fragments).into_iter().map(str::to_owned).collect();
    let topics: Vec<String> = topic_names(&fragments).into_iter().map(str::to_owned).collect();
    let find = |table: &[String], name: &str| {
        table.binary_search_by(|entry| entry.as_str().cmp(name)).map_or(NONE, |ix| ix as u32)
    };

    // Rows by (stage, id): a runtime's index is its place in every table.
    let mut rows: Vec<(usize, &RuntimeDecl, u32, u32)> = Vec::new();
    for (plugin, fragment) in fragments.iter().enumerate() {
        for (local, runtime) in fragment.runtimes.iter().enumerate() {
            let stage = match runtime.stage {
                Some(stage) if !runtime.subagent_only => stage as usize,
                _ => UNSTAGED,
            };
            rows.push((stage, runtime, plugin as u32, local as u32));
        }
    }
    rows.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
    let mut stage_starts = [0u32; 7];
    for (stage, ..) in &rows {
        stage_starts[stage + 1] += 1;
    }
    for stage in 0..6 {
        stage_starts[stage + 1] += stage_starts[stage];
    }
    let index: BTreeMap<&str, u32> = rows.iter().enumerate().map(|(ix, row)| (row.1.id.as_str(), ix as u32)).collect();

    let runtimes: Vec<RuntimeRow> = rows
        .iter()
        .map(|(stage, runtime, plugin, local)| RuntimeRow {
            id: runtime.id.clone(),
            plugin: *plugin,
            local: *local,
            stage: *stage as u8,
            kind: runtime.kind as u8,
            trigger: runtime.trigger as u8,
            visibility: runtime.visibility as u8,
            topic: runtime.topic.as_deref().map_or(NONE, |topic| find(&topics, topic)),
            contract: runtime.output.contract.as_deref().map_or(NONE, |contract| find(&contracts, contract)),
            interval: runtime.interval,
            start_turn: runtime.start_turn,
            cooldown_turns: runtime.cooldown_turns,
            max_trigger_count: runtime.max_trigger_count,
            background: runtime.manual == ManualExecution::Background,
            subagent_only: runtime.subagent_only,
        })
        .collect();

    let files: Vec<String> = edge_files(&fragments).into_iter().map(str::to_owned).collect();
    let mut edges = Vec::new();
    let mut edge_starts = vec![0u32];
    let names = Names { index: &index, contracts: &contracts, files: &files };
    for (_, runtime, ..) in &rows {
        declared_edges(runtime, &names, &mut edges);
        edge_starts.push(edges.len() as u32);
    }

    let provided: Vec<(u32, u32)> = pairs(&runtimes, |row| row.contract);
    let subscribed: Vec<(u32, u32)> = pairs(&runtimes, |row| row.topic);
    let providers = Csr::group(contracts.len(), &provided);
    let subscribers = Csr::group(topics.len(), &subscribed);
    let order = order(&runtimes, &edge_starts, &edges, &providers);
    let plan = Plan {
        format: PLAN_FORMAT,
        plugins,
        runtimes,
        stage_starts,
        edge_starts,
        edges,
        files,
        contracts,
        providers,
        topics,
        subscribers,
        order,
        slots: Csr::default(),
    };
    (plan, diagnostics)
}

fn pairs(runtimes: &[RuntimeRow], group: impl Fn(&RuntimeRow) -> u32) -> Vec<(u32, u32)> {
    let rows = runtimes.iter().enumerate();
    rows.filter(|(_, row)| group(row) != NONE).map(|(ix, row)| (group(row), ix as u32)).collect()
}

/// What a package may do beyond computing, as [`PlanPlugin::capabilities`] lists it.
fn capabilities(fragment: &Fragment) -> Vec<String> {
    let mut found = BTreeSet::new();
    for service in &fragment.services {
        found.insert(format!("service-{} {}", service.access.as_str(), service.contract));
    }
    found.extend(fragment.hooks.iter().map(|hook| format!("hook {}", hook.event)));
    found.extend(fragment.extensions.iter().map(|extension| format!("extension {}", extension.point)));
    found.extend(fragment.wires.iter().map(|wire| format!("wire {wire}")));
    found.extend(fragment.actions.iter().map(|action| format!("action {action}")));
    found.extend(fragment.commands.iter().map(|command| format!("command {}", command.name)));
    found.extend(fragment.tools.iter().map(|tool| format!("tool {tool}")));
    for runtime in &fragment.runtimes {
        for http in &runtime.http {
            if http.methods.is_empty() {
                found.insert(format!("http * {}", http.origin));
            }
            found.extend(http.methods.iter().map(|method| format!("http {method} {}", http.origin)));
        }
        let imported = runtime.agent.iter().flat_map(|agent| &agent.services);
        found.extend(imported.map(|service| format!("imports {}", service.contract)));
        if runtime.function.is_some() || runtime.guard.is_some() {
            found.insert("server-code".into());
        }
    }
    if fragment.entry.is_some() || !fragment.projections.is_empty() {
        found.insert("server-code".into());
    }
    found.into_iter().collect()
}

fn contract_names<'a>(fragments: &[&'a Fragment]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for fragment in fragments {
        names.extend(fragment.provides.iter().map(|provide| provide.contract.as_str()));
        for list in [&fragment.requires, &fragment.optional, &fragment.conflicts] {
            names.extend(list.iter().map(|reference| reference.contract.as_str()));
        }
        names.extend(fragment.contracts.iter().map(|contract| contract.contract.as_str()));
        names.extend(fragment.services.iter().map(|service| service.contract.as_str()));
        for extension in &fragment.extensions {
            names.insert(extension.point.as_str());
            names.extend(extension.slot.as_deref());
        }
        for runtime in &fragment.runtimes {
            names.extend(runtime.output.contract.as_deref());
            names.extend(runtime.output.schema_contract.as_deref());
            for need in runtime.needs.iter().chain(&runtime.after) {
                names.extend(need.contract.as_deref());
            }
            for input in &runtime.inputs {
                names.extend(input.contract.as_deref());
                names.extend(input.accepts_contract.as_deref());
            }
        }
    }
    names
}

fn topic_names<'a>(fragments: &[&'a Fragment]) -> BTreeSet<&'a str> {
    let declared = fragments.iter().flat_map(|fragment| &fragment.events).map(|event| event.topic.as_str());
    let awaited =
        fragments.iter().flat_map(|fragment| &fragment.runtimes).filter_map(|runtime| runtime.topic.as_deref());
    declared.chain(awaited).collect()
}

/// The files whose lines cause edges.
fn edge_files<'a>(fragments: &[&'a Fragment]) -> BTreeSet<&'a str> {
    let runtimes = fragments.iter().flat_map(|fragment| &fragment.runtimes);
    let origins = runtimes.flat_map(|runtime| {
        let needs = runtime.needs.iter().chain(&runtime.after).map(|need| &need.origin);
        needs.chain(runtime.inputs.iter().map(|input| &input.origin))
    });
    origins.map(|origin| origin.file.as_str()).collect()
}

/// Tables in which names become indexes.
struct Names<'a> {
    index: &'a BTreeMap<&'a str, u32>,
    contracts: &'a [String],
    files: &'a [String],
}

fn declared_edges(runtime: &RuntimeDecl, names: &Names<'_>, edges: &mut Vec<EdgeRow>) {
    let place = |table: &[String], name: &String| table.binary_search(name).map_or(NONE, |ix| ix as u32);
    let contract_ix = |name: Option<&String>| name.map_or(NONE, |name| place(names.contracts, name));
    let runtime_ix =
        |name: Option<&String>| name.and_then(|name| names.index.get(name.as_str()).copied()).unwrap_or(NONE);
    let edge = |kind, runtime: Option<&String>, contract: Option<&String>, origin: &Origin| EdgeRow {
        kind,
        runtime: runtime_ix(runtime),
        contract: contract_ix(contract),
        all: false,
        required: false,
        input: NONE,
        session_scope: false,
        file: place(names.files, &origin.file),
        line: origin.line,
        column: origin.column,
    };
    let need_edge = |kind, need: &NeedDecl| EdgeRow {
        all: need.cardinality == Cardinality::All,
        required: kind == EdgeKind::Need,
        session_scope: need.scope == Scope::Session,
        ..edge(kind, need.runtime.as_ref(), need.contract.as_ref(), &need.origin)
    };
    edges.extend(runtime.needs.iter().map(|need| need_edge(EdgeKind::Need, need)));
    edges.extend(runtime.after.iter().map(|need| need_edge(EdgeKind::After, need)));
    for (place, input) in runtime.inputs.iter().enumerate() {
        // Committed and kernel inputs are there before the turn starts: nothing to wait for. COM-2
        if input.scope != Scope::Turn || input.kernel.is_some() {
            continue;
        }
        let all = input.cardinality == Cardinality::All;
        edges.push(EdgeRow {
            all,
            required: input.required,
            input: place as u32,
            ..edge(
                if all { EdgeKind::InputAll } else { EdgeKind::InputOne },
                input.runtime.as_ref(),
                input.contract.as_ref(),
                &input.origin,
            )
        });
    }
}

/// Is this edge released by any one of several providers?
pub(crate) fn is_choice(edge: &EdgeRow) -> bool {
    edge.kind == EdgeKind::Need && edge.contract != NONE && !edge.all
}

/// What an edge waits for, as runtime indexes.
pub(crate) fn targets<'a>(edge: &'a EdgeRow, providers: &'a Csr) -> &'a [u32] {
    if edge.contract != NONE {
        providers.row(edge.contract)
    } else if edge.runtime != NONE {
        std::slice::from_ref(&edge.runtime)
    } else {
        &[]
    }
}

fn order(runtimes: &[RuntimeRow], edge_starts: &[u32], edges: &[EdgeRow], providers: &Csr) -> Order {
    let count = runtimes.len();
    let mut hard = Vec::new();
    let mut choice_waiter = Vec::new();
    let mut choice_pairs = Vec::new();
    let mut release_pairs = Vec::new();
    for waiter in 0..count {
        let own = &edges[edge_starts[waiter] as usize..edge_starts[waiter + 1] as usize];
        let mut seen = BTreeSet::new();
        for edge in own {
            if is_choice(edge) {
                // Two choices of one contract release together: the second adds nothing.
                if !seen.insert((true, edge.contract)) {
                    continue;
                }
                let choice = choice_waiter.len() as u32;
                choice_waiter.push(waiter as u32);
                for provider in targets(edge, providers) {
                    choice_pairs.push((choice, *provider));
                    release_pairs.push((*provider, choice));
                }
            } else {
                for target in targets(edge, providers) {
                    if seen.insert((false, *target)) {
                        hard.push((*target, waiter as u32));
                    }
                }
            }
        }
    }
    let mut by_id: Vec<u32> = (0..count as u32).collect();
    by_id.sort_by(|a, b| runtimes[*a as usize].id.cmp(&runtimes[*b as usize].id));
    let mut id_rank = vec![0; count];
    for (rank, ix) in by_id.iter().enumerate() {
        id_rank[*ix as usize] = rank as u32;
    }
    Order {
        hard: Csr::group(count, &hard),
        choice_providers: Csr::group(choice_waiter.len(), &choice_pairs),
        choice_waiter,
        releases: Csr::group(count, &release_pairs),
        by_id,
        id_rank,
    }
}

/// Cycles that show when everything that can be triggered together is: each stage, and each topic's subscribers.
fn check_cycles(plan: &Plan, archived: &ArchivedPlan, diagnostics: &mut Vec<Diagnostic>) {
    let mut sets: Vec<FixedBitSet> = Vec::new();
    let count = plan.runtimes.len();
    for stage in Stage::ALL {
        let mut set = FixedBitSet::with_capacity(count);
        for ix in plan.stage_starts[stage as usize]..plan.stage_starts[stage as usize + 1] {
            set.insert(ix as usize);
        }
        sets.push(set);
    }
    for topic in 0..plan.topics.len() as u32 {
        let mut set = FixedBitSet::with_capacity(count);
        set.extend(plan.subscribers.row(topic).iter().map(|ix| *ix as usize));
        sets.push(set);
    }
    let nothing = FixedBitSet::with_capacity(count);
    let mut reported: BTreeSet<Vec<u32>> = BTreeSet::new();
    let graph = cycle::graph(plan, |_, _, _| true);
    for set in sets {
        let layering = layer::layer(archived, &set, &nothing);
        if layering.cyclic.is_empty() {
            continue;
        }
        let mut stuck = FixedBitSet::with_capacity(count);
        stuck.extend(layering.cyclic.iter().map(|ix| ix.index()));
        for found in cycle::cycles(&graph, &stuck) {
            let mut key: Vec<u32> = found.steps.iter().map(|step| step.waiter).collect();
            key.sort_unstable();
            if reported.insert(key) {
                diagnostics.push(describe(plan, &found, Severity::Warning));
            }
        }
    }
}

/// A cycle as a diagnostic: the path with the line of every edge.
pub(crate) fn describe(plan: &Plan, cycle: &Cycle, severity: Severity) -> Diagnostic {
    let id = |ix: u32| plan.runtimes[ix as usize].id.as_str();
    let place = |ix: u32| {
        let edge = &plan.edges[ix as usize];
        format!("{}:{}", plan.files[edge.file as usize], edge.line)
    };
    let mut path = String::new();
    for step in &cycle.steps {
        path += &format!("`{}` waits for `{}` ({}), ", id(step.waiter), id(step.target), place(step.edge));
    }
    let first = cycle.steps.first().map_or(0, |step| step.edge as usize);
    let edge = &plan.edges[first];
    let plugin = cycle.steps.first().map(|step| plan.runtimes[step.waiter as usize].plugin);
    Diagnostic {
        severity,
        code: if cycle.steps.len() == 1 { "self-edge" } else { "dependency-cycle" }.into(),
        message: format!("these runtimes wait for each other: {}which closes a cycle", path),
        help: Some(match severity {
            Severity::Error => "remove one of these dependencies".into(),
            Severity::Warning => {
                "when they are triggered together, they and what waits for them are skipped; remove one dependency"
                    .into()
            }
        }),
        plugin_id: plugin.map(|ix| plan.plugins[ix as usize].id.clone()),
        file: plan.files[edge.file as usize].clone(),
        line: edge.line,
        column: edge.column,
        path: None,
    }
}
