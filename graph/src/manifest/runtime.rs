//! A runtime: schedule, inputs, output, guard, effects, permissions. The agent and function parts are in `work.rs`.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use super::{
    shape::clip,
    source::{Context, Document, count, flag, int, label, millis, text, texts},
    work,
};
use crate::{
    cycle,
    diagnostic::Severity,
    fragment::{
        Cardinality, CompletionDecl, CompletionMode, EffectsDecl, Fragment, HttpPermission, InputDecl, ManualExecution,
        NeedDecl, OutputDecl, RuntimeDecl, RuntimeKind, Scope, SelfDataDecl, SelfDataFormat, TriggerKind, Visibility,
    },
    link,
    plan::{EdgeKind, Stage, UNSTAGED},
    report::nearest,
    yaml::Node,
};

/// Attempts of a setup runtime that states none.
const SETUP_ATTEMPTS: u32 = 3;
/// Entries of own data shown when none is stated.
const SELF_DATA_ENTRIES: u32 = 50;
/// Longest wait for a settling job when none is stated, milliseconds.
const SETTLE_WAIT_MS: u64 = 30_000;
/// Longest time of a job in the queue when none is stated, milliseconds.
const QUEUE_MS: u64 = 600_000;
/// Longest execution of a job when none is stated, milliseconds.
const EXECUTION_MS: u64 = 600_000;

/// Where a runtime is written.
pub(super) struct Place<'a> {
    pub(super) id: &'a str,
    pub(super) node: &'a Node,
    pub(super) document: &'a Document,
    /// Folder its paths start from.
    pub(super) base: &'a str,
    /// `runtime.` for an inline one.
    pub(super) prefix: &'static str,
}

impl<'a> Place<'a> {
    /// The `runtime` of the root manifest.
    pub(super) fn inline(id: &'a str, node: &'a Node, root: &'a Document) -> Self {
        Self { id, node, document: root, base: "", prefix: "runtime." }
    }

    /// A runtime folder.
    pub(super) fn folder(id: &'a str, _rid: &str, document: &'a Document) -> Self {
        Self { id, node: &document.node, document, base: document.folder(), prefix: "" }
    }

    pub(super) fn is_inline(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// A field path.
    pub(super) fn path(&self, field: &str) -> String {
        format!("{}{field}", self.prefix)
    }
}

/// Reads one runtime.
pub(super) fn read(context: &mut Context<'_>, place: Place<'_>, fragment: &Fragment) -> RuntimeDecl {
    context.file = place.document.file.clone();
    let node = place.node;
    let kind = text(node, "type").and_then(|word| RuntimeKind::parse(&word));
    let mut decl = RuntimeDecl {
        id: place.id.to_owned(),
        kind: kind.unwrap_or_default(),
        description: label(node, "description"),
        prompt: place.document.body.clone(),
        prompt_zh: place.document.body_zh.clone(),
        origin: context.origin(node.at),
        ..RuntimeDecl::default()
    };
    schedule(context, &place, &mut decl, fragment);
    io(context, &place, &mut decl, fragment);
    work::read(context, &place, &mut decl, fragment, kind);
    if let Some(guard) = node.get("guard") {
        decl.guard = context.file_at(place.base, guard, &place.path("guard"));
    }
    if let Some(effects) = node.get("effects") {
        decl.effects = EffectsDecl {
            reads: texts(effects, "reads"),
            writes: texts(effects, "writes"),
            parallel_safe: flag(effects, "parallelSafe", false),
        };
    }
    let http = node.get("permissions").and_then(|node| node.get("http"));
    for item in http.map(Node::items).unwrap_or_default() {
        if let Some(origin) = text(item, "origin") {
            decl.http.push(HttpPermission { origin: origin.to_ascii_lowercase(), methods: texts(item, "methods") });
        }
    }
    rules(context, &place, &decl);
    decl
}

fn schedule(context: &mut Context<'_>, place: &Place<'_>, decl: &mut RuntimeDecl, fragment: &Fragment) {
    let empty = Node::new(place.node.at, crate::yaml::Yaml::Map(Vec::new()));
    let node = place.node.get("schedule").unwrap_or(&empty);
    let trigger = node.get("trigger").filter(|node| !node.entries().is_empty());
    let kind = trigger.and_then(|trigger| TriggerKind::parse(&text(trigger, "type")?));
    decl.stage = text(node, "stage").and_then(|word| Stage::parse(&word));
    decl.subagent_only = flag(node, "subagentOnly", false);
    let at = trigger.map_or(node.at, |trigger| trigger.at);

    decl.trigger = match (kind, decl.stage, decl.subagent_only) {
        (Some(kind), ..) => kind,
        (None, _, true) => TriggerKind::Manual,
        (None, Some(_), false) => TriggerKind::Auto,
        (None, None, false) => {
            if trigger.is_none() {
                let message = "the runtime names neither a stage nor a trigger, so nothing but a call by name starts it";
                let help = "give `schedule.stage` (runs every turn) or `schedule.trigger`";
                context.warning_help("never-triggered", node.at, &place.path("schedule"), message, help);
            }
            TriggerKind::Manual
        }
    };
    if matches!(kind, Some(TriggerKind::Auto | TriggerKind::Scheduled)) && decl.stage.is_none() && !decl.subagent_only {
        let message = format!("a runtime with the trigger `{}` needs a `stage`", decl.trigger.as_str());
        let help = "one of setup, pre-turn, narrative, post-turn, audit";
        context.error_help("stage-missing", at, &place.path("schedule.stage"), message, help);
    }
    if decl.subagent_only {
        if kind.is_some_and(|kind| kind != TriggerKind::Manual) {
            let message = "a `subagentOnly` runtime is started by its callers only";
            context.error_help("subagent-trigger", at, &place.path("schedule.trigger"), message, "leave `trigger` out");
        }
        if let (Some(_), Some(stage)) = (decl.stage, node.get("stage")) {
            let message = "a `subagentOnly` runtime runs in no stage; the stage has no effect";
            context.warning("subagent-stage", stage.at, &place.path("schedule.stage"), message);
        }
        decl.stage = None;
    }
    if let Some(trigger) = trigger {
        let path = |field: &str| place.path(&format!("schedule.trigger.{field}"));
        decl.topic = text(trigger, "topic");
        decl.interval = count(trigger, "interval", 0);
        decl.start_turn = count(trigger, "startTurn", 0);
        decl.cooldown_turns = count(trigger, "cooldownTurns", 0);
        decl.max_trigger_count = count(trigger, "maxTriggerCount", 0);
        match decl.trigger {
            TriggerKind::Event if decl.topic.is_none() => {
                context.error("topic-missing", trigger.at, &path("topic"), "an `event` trigger needs a `topic`");
            }
            TriggerKind::Scheduled if decl.interval == 0 => {
                context.error("interval-missing", trigger.at, &path("interval"), "a `scheduled` trigger needs an `interval`");
            }
            _ => {}
        }
        for (field, wanted) in [("topic", TriggerKind::Event), ("interval", TriggerKind::Scheduled)] {
            if let Some(entry) = trigger.entry(field) {
                if decl.trigger != wanted {
                    let message = format!("`{field}` has no effect with the trigger `{}`", decl.trigger.as_str());
                    context.warning("trigger-field-unused", entry.key_at, &path(field), message);
                }
            }
        }
        if decl.trigger != TriggerKind::Event {
            decl.topic = None;
        }
    }
    if decl.stage == Some(Stage::Setup) && decl.max_trigger_count == 0 {
        decl.max_trigger_count = SETUP_ATTEMPTS;
    }

    decl.needs = needs(context, place, node, "needs", decl, fragment);
    decl.after = needs(context, place, node, "after", decl, fragment);
    decl.manual = node.get("manual").and_then(|manual| ManualExecution::parse(&text(manual, "execution")?)).unwrap_or_default();
    decl.completion = completion(context, place, node, decl);
}

fn completion(context: &mut Context<'_>, place: &Place<'_>, schedule: &Node, decl: &RuntimeDecl) -> CompletionDecl {
    let Some(node) = schedule.get("completion") else { return CompletionDecl::default() };
    let path = |field: &str| place.path(&format!("schedule.completion{field}"));
    let mode = text(node, "mode").and_then(|word| CompletionMode::parse(&word)).unwrap_or_default();
    if mode == CompletionMode::Detached && !matches!(decl.stage, Some(Stage::PostTurn | Stage::Audit)) {
        let message = "only runtimes of the stages post-turn and audit may be detached";
        context.error("detached-stage", node.at, &path(".mode"), message);
    }
    let settle = text(node, "settle").is_some();
    if let (Some(entry), false) = (node.entry("maxSettleWaitMs"), settle) {
        let help = "write `settle: before-next-execution`";
        context.error_help("settle-missing", entry.key_at, &path(".maxSettleWaitMs"), "`maxSettleWaitMs` needs `settle`", help);
    }
    CompletionDecl {
        mode,
        settle,
        max_settle_wait_ms: millis(node, "maxSettleWaitMs", SETTLE_WAIT_MS),
        max_queue_ms: millis(node, "maxQueueMs", QUEUE_MS),
        max_execution_ms: millis(node, "maxExecutionMs", EXECUTION_MS),
    }
}

fn needs(
    context: &mut Context<'_>, place: &Place<'_>, schedule: &Node, key: &str, decl: &RuntimeDecl, fragment: &Fragment,
) -> Vec<NeedDecl> {
    let mut list = Vec::new();
    for (index, item) in schedule.get(key).map(Node::items).unwrap_or_default().iter().enumerate() {
        let path = place.path(&format!("schedule.{key}[{index}]"));
        let runtime = item.text().map(str::to_owned).or_else(|| text(item, "runtime"));
        let contract = text(item, "contract");
        if runtime.as_deref() == Some("") {
            context.warning("empty-reference", item.at, &path, "an empty name waits for nothing and is dropped");
            continue;
        }
        let Some((runtime, contract)) = target(context, item, &path, runtime, contract) else { continue };
        if let (Some(contract), "needs") = (&contract, key) {
            listed(context, item, &path, contract, fragment);
        }
        let scope = text(item, "scope").and_then(|word| Scope::parse(&word)).unwrap_or_default();
        if scope == Scope::Session && decl.stage != Some(Stage::Setup) {
            let message = "`scope: session` is for runtimes of the stage `setup`";
            context.error("session-scope", item.at, &path, message);
        }
        list.push(NeedDecl {
            runtime,
            contract,
            cardinality: text(item, "cardinality").and_then(|word| Cardinality::parse(&word)).unwrap_or_default(),
            scope,
            origin: context.origin(item.at),
        });
    }
    list
}

/// Exactly one of runtime and contract.
fn target(
    context: &mut Context<'_>, item: &Node, path: &str, runtime: Option<String>, contract: Option<String>,
) -> Option<(Option<String>, Option<String>)> {
    match (&runtime, &contract) {
        (Some(_), None) => {
            if let Some(entry) = item.entry("cardinality") {
                let message = "`cardinality` is for contracts; a runtime is always one";
                context.warning("cardinality-unused", entry.key_at, path, message);
            }
            Some((runtime, contract))
        }
        (None, Some(_)) => Some((runtime, contract)),
        (Some(_), Some(_)) => {
            context.error("ambiguous-reference", item.at, path, "name a `runtime` or a `contract`, not both");
            None
        }
        (None, None) => {
            // A wrong type has been reported; an empty map has not.
            if matches!(item.value, crate::yaml::Yaml::Map(_)) && item.get("runtime").is_none() && item.get("contract").is_none() {
                context.error("missing-reference", item.at, path, "name a `runtime` or a `contract`");
            }
            None
        }
    }
}

/// A contract used in needs and inputs stands in root `requires` or `optional`.
fn listed(context: &mut Context<'_>, item: &Node, path: &str, contract: &str, fragment: &Fragment) {
    let known = || fragment.requires.iter().chain(&fragment.optional).map(|one| one.contract.as_str());
    if known().any(|one| one == contract) {
        return;
    }
    let message = format!("the contract `{}` is not listed in the root's `requires` or `optional`", clip(contract));
    let help = match nearest(contract, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add `optional: [{contract}]`, or `requires` when the package cannot do without"),
    };
    context.error_help("contract-undeclared", item.at, path, message, help);
}

fn io(context: &mut Context<'_>, place: &Place<'_>, decl: &mut RuntimeDecl, fragment: &Fragment) {
    let Some(node) = place.node.get("io") else { return };
    for entry in node.get("inputs").map(Node::entries).unwrap_or_default() {
        if let Some(input) = input(context, place, &entry.key, &entry.node, fragment) {
            decl.inputs.push(input);
        }
    }
    for (index, item) in node.get("selfData").map(Node::items).unwrap_or_default().iter().enumerate() {
        let (Some(namespace), Some(tag)) = (text(item, "namespace"), text(item, "as")) else { continue };
        if !fragment.data.iter().any(|data| data.namespace == namespace) {
            let message = format!("`{}` is not a namespace of `contributes.data`", clip(&namespace));
            context.warning("unknown-namespace", item.at, &place.path(&format!("io.selfData[{index}]")), message);
        }
        let tag = tag.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
        decl.self_data.push(SelfDataDecl {
            namespace,
            tag,
            format: text(item, "format").and_then(|word| SelfDataFormat::parse(&word)).unwrap_or_default(),
            max_entries: count(item, "maxEntries", SELF_DATA_ENTRIES),
        });
    }
    if let Some(schema) = node.get("payloadSchema") {
        decl.payload_schema = context.schema_at(place.base, schema, &place.path("io.payloadSchema"));
    }
    decl.visibility = text(node, "visibility").and_then(|word| Visibility::parse(&word)).unwrap_or_default();
    decl.concealed = flag(node, "concealed", false);
    if let Some(output) = node.get("output") {
        decl.output = output_of(context, place, output, fragment);
    }
}

fn input(context: &mut Context<'_>, place: &Place<'_>, name: &str, node: &Node, fragment: &Fragment) -> Option<InputDecl> {
    let base = place.path(&format!("io.inputs.{name}"));
    let path = |field: &str| format!("{base}{field}");
    let from = node.get("from")?;
    let (runtime, contract, kernel) = (text(from, "runtime"), text(from, "contract"), text(from, "kernel"));
    if runtime.as_deref() == Some("") {
        context.warning("empty-reference", from.at, &path(".from.runtime"), "an empty name binds nothing and is dropped");
        return None;
    }
    let (runtime, contract) = if kernel.is_some() {
        if runtime.is_some() || contract.is_some() {
            let message = "name a `runtime`, a `contract` or a `kernel` value, not several";
            context.error("ambiguous-reference", from.at, &path(".from"), message);
        }
        (None, None)
    } else {
        target(context, from, &path(".from"), runtime, contract)?
    };
    if let Some(contract) = &contract {
        listed(context, from, &path(".from.contract"), contract, fragment);
    }
    let scope = text(node, "scope").and_then(|word| Scope::parse(&word)).unwrap_or_default();
    let record_as = text(node, "recordAs");
    match scope {
        Scope::Committed => {
            if let Some(select) = node.entry("select") {
                context.error("committed-select", select.key_at, &path(".select"), "a committed input takes no `select`");
            }
            if kernel.is_some() {
                context.error("committed-kernel", node.at, &path(".scope"), "a kernel value is of this turn only");
            } else if record_as.is_none() {
                let message = "a committed input names the export it reads with `recordAs`";
                context.error("record-as-missing", node.at, &path(".recordAs"), message);
            }
        }
        _ => {
            if let Some(entry) = node.entry("recordAs") {
                let message = "`recordAs` on an input is for `scope: committed`; here it has no effect";
                context.warning("record-as-unused", entry.key_at, &path(".recordAs"), message);
            }
        }
    }
    let (accepts, accepts_contract) = schema_reference(context, place, node.get("accepts"), &path(".accepts"));
    Some(InputDecl {
        name: name.to_owned(),
        runtime,
        contract,
        kernel,
        cardinality: text(from, "cardinality").and_then(|word| Cardinality::parse(&word)).unwrap_or_default(),
        scope,
        select: text(node, "select"),
        required: flag(node, "required", false),
        accepts,
        accepts_contract,
        record_as,
        origin: context.origin(node.at),
    })
}

/// A schema path, or `contract:<id>`: (schema text, contract).
fn schema_reference(
    context: &mut Context<'_>, place: &Place<'_>, node: Option<&Node>, path: &str,
) -> (Option<String>, Option<String>) {
    let Some(node) = node else { return (None, None) };
    match node.text().and_then(|text| text.strip_prefix("contract:")) {
        Some(contract) => (None, crate::ids::is_contract_id(contract).then(|| contract.to_owned())),
        None => (context.schema_at(place.base, node, path), None),
    }
}

fn output_of(context: &mut Context<'_>, place: &Place<'_>, node: &Node, fragment: &Fragment) -> OutputDecl {
    let contract = text(node, "contract");
    if let (Some(contract), Some(at)) = (&contract, node.get("contract")) {
        let provided = || fragment.provides.iter().map(|one| one.contract.as_str());
        if !provided().any(|one| one == contract) {
            let message = format!("the output contract `{}` is not listed in the root's `provides`", clip(contract));
            let help = match nearest(contract, provided()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `provides: [{contract}]`"),
            };
            context.error_help("contract-not-provided", at.at, &place.path("io.output.contract"), message, help);
        }
    }
    let (schema, schema_contract) = schema_reference(context, place, node.get("schema"), &place.path("io.output.schema"));
    let record_as = text(node, "recordAs");
    if record_as.is_some() && node.get("schema").is_none() {
        let message = "`recordAs` needs a `schema`";
        context.error("record-as-schema", node.at, &place.path("io.output.recordAs"), message);
    }
    OutputDecl { contract, schema, schema_contract, record_as }
}

/// Rules over several fields of one runtime.
fn rules(context: &mut Context<'_>, place: &Place<'_>, decl: &RuntimeDecl) {
    let at = place.node.at;
    if decl.concealed && decl.visibility == Visibility::Story {
        let message = "a concealed runtime cannot be the story";
        context.error("concealed-story", at, &place.path("io.concealed"), message);
    }
    if decl.subagent_only {
        if decl.kind != RuntimeKind::Agent {
            context.error("subagent-kind", at, &place.path("type"), "a `subagentOnly` runtime is an agent");
        }
        if decl.output.contract.is_none() {
            let message = "a `subagentOnly` runtime is found by the contract it gives";
            context.error_help("subagent-contract", at, &place.path("io.output.contract"), message, "add `io.output.contract`");
        }
    }
    // An event job runs outside the turn, so there is no turn whose results it could bind.
    if decl.trigger == TriggerKind::Event && decl.manual == ManualExecution::Background {
        for input in &decl.inputs {
            if input.scope == Scope::Turn && input.kernel.is_none() {
                let message = format!("`{}` binds a result of the turn, but the runtime runs as a job outside it", clip(&input.name));
                let path = place.path(&format!("io.inputs.{}", input.name));
                let at = crate::Position { line: input.origin.line, column: input.origin.column };
                context.error("background-input", at, &path, message);
            }
        }
    }
    let budget = place.node.get("schedule").and_then(|node| node.get("trigger")).and_then(|node| int(node, "startTurn"));
    if decl.stage == Some(Stage::Setup) && budget.is_some_and(|turn| turn > 1) {
        let message = "setup is turn 1; a later `startTurn` would never come";
        context.warning("setup-start-turn", at, &place.path("schedule.trigger.startTurn"), message);
    }
}

/// Rules over all runtimes of the package: references, one publisher a contract, cycles.
pub(super) fn check_together(context: &mut Context<'_>, fragment: &Fragment) {
    references(context, fragment);
    let mut publisher: BTreeMap<&str, &str> = BTreeMap::new();
    for runtime in &fragment.runtimes {
        let Some(contract) = &runtime.output.contract else { continue };
        if let Some(first) = publisher.insert(contract, &runtime.id) {
            context.file = runtime.origin.file.clone();
            let at = crate::Position { line: runtime.origin.line, column: runtime.origin.column };
            let message = format!("`{}` publishes `{contract}`, which `{first}` publishes already", runtime.id);
            context.error("duplicate-publisher", at, "io.output.contract", message);
        }
    }
    cycles(context, fragment);
}

fn references(context: &mut Context<'_>, fragment: &Fragment) {
    let known = |id: &str| fragment.runtimes.iter().any(|runtime| runtime.id == id);
    let stage_of = |id: &str| fragment.runtimes.iter().find(|runtime| runtime.id == id).and_then(|runtime| runtime.stage);
    for runtime in &fragment.runtimes {
        context.file = runtime.origin.file.clone();
        let needs = runtime.needs.iter().map(|need| ("schedule.needs", need.runtime.as_deref(), &need.origin));
        let after = runtime.after.iter().map(|need| ("schedule.after", need.runtime.as_deref(), &need.origin));
        let inputs = runtime.inputs.iter().map(|input| ("io.inputs", input.runtime.as_deref(), &input.origin));
        for (path, id, origin) in needs.chain(after).chain(inputs) {
            let Some(id) = id else { continue };
            let at = crate::Position { line: origin.line, column: origin.column };
            if known(id) {
                let later = runtime.stage.zip(stage_of(id)).is_some_and(|(own, other)| other > own);
                if later && path != "schedule.after" {
                    let message = format!("`{id}` runs in a later stage, so `{}` never gets its result in a turn", runtime.id);
                    context.warning("later-stage", at, path, message);
                }
                continue;
            }
            let owner = id.split('/').next().unwrap_or("");
            if owner != fragment.plugin_id {
                let message = format!("`{}` belongs to another package", clip(id));
                let help = "packages refer to each other's runtimes by contract only";
                context.error_help("foreign-runtime", at, path, message, help);
            } else {
                let message = format!("the package has no runtime `{}`", clip(id));
                let help = match nearest(id, fragment.runtimes.iter().map(|runtime| runtime.id.as_str())) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write the full id, `<package>/<runtime>`".to_owned(),
                };
                context.error_help("unknown-runtime", at, path, message, help);
            }
        }
    }
}

/// Cycles that close whenever their runtimes run at all: among runtimes of one stage that are always triggered
/// together, or of edges that all gate. What closes only in some triggered sets is a finding of linking.
fn cycles(context: &mut Context<'_>, fragment: &Fragment) {
    let (plan, _) = link::build(&[(fragment, "")]);
    let all: FixedBitSet = (0..plan.runtimes.len()).collect();
    let together = |a: u32, b: u32| {
        let (a, b) = (&plan.runtimes[a as usize], &plan.runtimes[b as usize]);
        let always = |row: &crate::plan::RuntimeRow| row.trigger == TriggerKind::Auto as u8 && row.start_turn <= 1
            && row.cooldown_turns == 0 && (row.max_trigger_count == 0 || row.stage == Stage::Setup as u8);
        a.stage == b.stage && (a.stage as usize != UNSTAGED) && always(a) && always(b)
    };
    let same_stage = |a: u32, b: u32| plan.runtimes[a as usize].stage == plan.runtimes[b as usize].stage;
    // A contract may get providers from other packages; only what is no choice waits for this package's for sure.
    let always = cycle::graph(&plan, |a, b, edge| !link::is_choice(edge) && (a == b || together(a, b)));
    let gating = cycle::graph(&plan, |a, b, edge| {
        !link::is_choice(edge) && (edge.kind == EdgeKind::Need || edge.required) && same_stage(a, b)
    });
    let mut seen = std::collections::BTreeSet::new();
    for graph in [always, gating] {
        for found in cycle::cycles(&graph, &all) {
            let mut key: Vec<u32> = found.steps.iter().map(|step| step.waiter).collect();
            key.sort_unstable();
            if seen.insert(key) {
                context.report.add(link::describe(&plan, &found, Severity::Error));
            }
        }
    }
}
