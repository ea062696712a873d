//! A runtime: schedule, inputs, output, guard, effects, permissions. The agent and function parts are in `work.rs`.

use super::{
    io,
    shape::clip,
    source::{Context, Document, count, flag, int, label, millis, text, texts},
    work,
};
use crate::{
    fragment::{
        Cardinality, CompletionDecl, CompletionMode, EffectsDecl, Fragment, HttpPermission, ManualExecution, NeedDecl,
        RuntimeDecl, RuntimeKind, Scope, TriggerKind, Visibility,
    },
    plan::Stage,
    report::nearest,
    yaml::Node,
};

/// Attempts of a setup runtime that states none.
const SETUP_ATTEMPTS: u32 = 3;
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
    schedule(context, &place, &mut decl);
    io::read(context, &place, &mut decl, fragment);
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

fn schedule(context: &mut Context<'_>, place: &Place<'_>, decl: &mut RuntimeDecl) {
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
                let message =
                    "the runtime names neither a stage nor a trigger, so nothing but a call by name starts it";
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
                context.error(
                    "interval-missing",
                    trigger.at,
                    &path("interval"),
                    "a `scheduled` trigger needs an `interval`",
                );
            }
            _ => {}
        }
        for (field, wanted) in [("topic", TriggerKind::Event), ("interval", TriggerKind::Scheduled)] {
            if let Some(entry) = trigger.entry(field)
                && decl.trigger != wanted
            {
                let message = format!("`{field}` has no effect with the trigger `{}`", decl.trigger.as_str());
                context.warning("trigger-field-unused", entry.key_at, &path(field), message);
            }
        }
        if decl.trigger != TriggerKind::Event {
            decl.topic = None;
        }
    }
    if decl.stage == Some(Stage::Setup) && decl.max_trigger_count == 0 {
        decl.max_trigger_count = SETUP_ATTEMPTS;
    }

    decl.needs = needs(context, place, node, "needs", decl);
    decl.after = needs(context, place, node, "after", decl);
    decl.manual =
        node.get("manual").and_then(|manual| ManualExecution::parse(&text(manual, "execution")?)).unwrap_or_default();
    decl.completion = completion(context, place, node, decl);
}

fn completion(context: &mut Context<'_>, place: &Place<'_>, schedule: &Node, decl: &RuntimeDecl) -> CompletionDecl {
    let Some(node) = schedule.get("completion") else {
        return CompletionDecl::default();
    };
    let path = |field: &str| place.path(&format!("schedule.completion{field}"));
    let mode = text(node, "mode").and_then(|word| CompletionMode::parse(&word)).unwrap_or_default();
    if mode == CompletionMode::Detached && !matches!(decl.stage, Some(Stage::PostTurn | Stage::Audit)) {
        let message = "only runtimes of the stages post-turn and audit may be detached";
        context.error("detached-stage", node.at, &path(".mode"), message);
    }
    let settle = text(node, "settle").is_some();
    if let (Some(entry), false) = (node.entry("maxSettleWaitMs"), settle) {
        let help = "write `settle: before-next-execution`";
        context.error_help(
            "settle-missing",
            entry.key_at,
            &path(".maxSettleWaitMs"),
            "`maxSettleWaitMs` needs `settle`",
            help,
        );
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
    context: &mut Context<'_>,
    place: &Place<'_>,
    schedule: &Node,
    key: &str,
    decl: &RuntimeDecl,
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
        let Some((runtime, contract)) = target(context, item, &path, runtime, contract) else {
            continue;
        };
        if let (Some(contract), "needs") = (&contract, key) {
            listed(context, item, &path, contract);
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
pub(super) fn target(
    context: &mut Context<'_>,
    item: &Node,
    path: &str,
    runtime: Option<String>,
    contract: Option<String>,
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
            if matches!(item.value, crate::yaml::Yaml::Map(_))
                && item.get("runtime").is_none()
                && item.get("contract").is_none()
            {
                context.error("missing-reference", item.at, path, "name a `runtime` or a `contract`");
            }
            None
        }
    }
}

/// A contract used in needs and inputs stands in root `requires` or `optional`.
pub(super) fn listed(context: &mut Context<'_>, item: &Node, path: &str, contract: &str) {
    if context.consumable.contains(contract) {
        return;
    }
    let message = format!("the contract `{}` is not listed in the root's `requires` or `optional`", clip(contract));
    let help = match nearest(contract, context.consumable.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add `optional: [{contract}]`, or `requires` when the package cannot do without"),
    };
    context.error_help("contract-undeclared", item.at, path, message, help);
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
            context.error_help(
                "subagent-contract",
                at,
                &place.path("io.output.contract"),
                message,
                "add `io.output.contract`",
            );
        }
    }
    // An event job runs outside the turn, so there is no turn whose results it could bind.
    if decl.trigger == TriggerKind::Event && decl.manual == ManualExecution::Background {
        for input in &decl.inputs {
            if input.scope == Scope::Turn && input.kernel.is_none() {
                let message = format!(
                    "`{}` binds a result of the turn, but the runtime runs as a job outside it",
                    clip(&input.name)
                );
                let path = place.path(&format!("io.inputs.{}", input.name));
                let at = crate::Position { line: input.origin.line, column: input.origin.column };
                context.error("background-input", at, &path, message);
            }
        }
    }
    let budget =
        place.node.get("schedule").and_then(|node| node.get("trigger")).and_then(|node| int(node, "startTurn"));
    if decl.stage == Some(Stage::Setup) && budget.is_some_and(|turn| turn > 1) {
        let message = "setup is turn 1; a later `startTurn` would never come";
        context.warning("setup-start-turn", at, &place.path("schedule.trigger.startTurn"), message);
    }
}
