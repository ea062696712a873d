//! A runtime.

use super::{
    BIG, CONTRACT, COUNT, LABEL, MANY, contributes::PLAIN_NAMES, list, map, misplaced, object, optional, package_field,
    required, set, v1,
};
use crate::manifest::{
    grammar,
    shape::{Fields, ListShape, MapShape, Shape},
};

static STAGES: &[&str] = &["setup", "pre-turn", "narrative", "post-turn", "audit"];

static TRIGGER: Fields = object(
    "`trigger`",
    &[
        required(
            "type",
            Shape::Word(&["auto", "scheduled", "manual", "event"]),
            "`auto`, `scheduled`, `manual` or `event`.",
        ),
        optional("interval", COUNT, "Logical turns between runs, for `scheduled`."),
        optional("topic", Shape::Text(&grammar::TOPIC), "Topic, for `event`."),
        optional("maxTriggerCount", COUNT, "Most runs; for setup runtimes the attempts."),
        optional("cooldownTurns", Shape::Int(0, BIG), "Turns to wait after a run."),
        optional("startTurn", COUNT, "First logical turn."),
    ],
);
static CARDINALITY: &[&str] = &["one", "all"];
static NEED: Fields = object(
    "a need",
    &[
        optional("runtime", Shape::Text(&grammar::RUNTIME_ID), "Runtime of the same package."),
        optional("contract", CONTRACT, "Contract."),
        optional("cardinality", Shape::Word(CARDINALITY), "`one` (default) or `all` providers."),
        optional("scope", Shape::Word(&["turn", "session"]), "`turn` (default), or `session` on setup runtimes."),
    ],
);
static NEEDS: ListShape = list(Shape::Either(&[Shape::Text(&grammar::RUNTIME_ID), Shape::Object(&NEED)]), MANY);
static AFTER: Fields = object(
    "an `after` entry",
    &[
        optional("runtime", Shape::Text(&grammar::RUNTIME_ID), "Runtime of the same package."),
        optional("contract", CONTRACT, "Contract."),
        optional("cardinality", Shape::Word(CARDINALITY), "`one` (default) or `all` providers."),
    ],
);
static AFTERS: ListShape = list(Shape::Either(&[Shape::Text(&grammar::RUNTIME_ID), Shape::Object(&AFTER)]), MANY);
static COMPLETION: Fields = object(
    "`completion`",
    &[
        optional("mode", Shape::Word(&["await", "detached"]), "Default `await`."),
        optional("settle", Shape::Word(&["before-next-execution"]), "The next execution waits for it."),
        optional("maxSettleWaitMs", Shape::Int(1, 120_000), "Longest such wait, 1 to 120000 ms."),
        optional("maxQueueMs", COUNT, "Longest time in the queue, ms."),
        optional("maxExecutionMs", COUNT, "Longest execution, ms."),
        optional("overlap", Shape::Word(&["serial"]), "Runs of one runtime follow each other."),
        optional("stalePolicy", Shape::Word(&["reject"]), "A stale result is refused."),
    ],
);
static MANUAL: Fields = object(
    "`manual`",
    &[optional("execution", Shape::Word(&["sync", "background"]), "Default `sync`; `background` is a durable job.")],
);
static SCHEDULE: Fields = Fields {
    name: "`schedule`",
    fields: &[
        optional("stage", Shape::Word(STAGES), "Stage; needed by `auto` and `scheduled` runtimes."),
        optional("trigger", Shape::Object(&TRIGGER), "What starts it; default `auto`."),
        optional("needs", Shape::List(&NEEDS), "Runs after these, and only if they succeeded."),
        optional("after", Shape::List(&AFTERS), "Runs after these, whatever came of them."),
        optional("completion", Shape::Object(&COMPLETION), "Whether the turn waits."),
        optional("manual", Shape::Object(&MANUAL), "How manual and event activations run."),
        optional("subagentOnly", Shape::Bool, "Only reachable by delegation."),
    ],
    open: false,
    moved: &[
        v1("detached", "write `completion: { mode: detached }`"),
        v1("background", "write `manual: { execution: background }`"),
        v1("concurrency", "there is no such setting; a layer runs in parallel"),
        v1("priority", "order comes from `needs`, `after` and `io.inputs`"),
        misplaced("interval", "it belongs under `schedule.trigger`"),
        misplaced("topic", "it belongs under `schedule.trigger`"),
        misplaced("startTurn", "it belongs under `schedule.trigger`"),
        misplaced("cooldownTurns", "it belongs under `schedule.trigger`"),
        misplaced("maxTriggerCount", "it belongs under `schedule.trigger`"),
    ],
};
static FROM: Fields = object(
    "`from`",
    &[
        optional("runtime", Shape::Text(&grammar::RUNTIME_ID), "Runtime of the same package."),
        optional("contract", CONTRACT, "Contract."),
        optional("cardinality", Shape::Word(CARDINALITY), "`one` (default) or `all` providers."),
        optional("kernel", Shape::Word(&["turn-digest@1"]), "`turn-digest@1`."),
    ],
);
static INPUT: Fields = object(
    "an input",
    &[
        required("from", Shape::Object(&FROM), "`{runtime}`, `{contract, cardinality?}` or `{kernel: turn-digest@1}`."),
        optional("scope", Shape::Word(&["turn", "committed"]), "`turn` (default) or `committed`."),
        optional("select", Shape::Text(&grammar::POINTER), "JSON pointer into the value."),
        optional("required", Shape::Bool, "Without the value the runtime does not run; default false."),
        optional("accepts", Shape::Text(&grammar::SCHEMA_REFERENCE), "Schema the value must fit."),
        optional("recordAs", Shape::Text(&grammar::NONEMPTY), "Export key, for `committed`."),
    ],
);
static INPUTS: MapShape = map(&grammar::ANY_KEY, Shape::Object(&INPUT), MANY);
static SELF_DATA: Fields = object(
    "a `selfData` entry",
    &[
        required("namespace", Shape::Text(&grammar::NAMESPACE), "Own data namespace."),
        required("as", Shape::Text(&grammar::NONEMPTY), "Tag around the data in the prompt."),
        optional("format", Shape::Word(&["summary", "full", "ids-only"]), "Default `summary`."),
        optional("maxEntries", Shape::Int(1, 500), "Most entries, 1 to 500; default 50."),
    ],
);
static SELF_DATAS: ListShape = list(Shape::Object(&SELF_DATA), 64);
static OUTPUT: Fields = Fields {
    name: "`output`",
    fields: &[
        optional("contract", CONTRACT, "Contract it publishes, one of `provides`."),
        optional("schema", Shape::Text(&grammar::SCHEMA_REFERENCE), "Private schema."),
        optional("recordAs", Shape::Text(&grammar::NONEMPTY), "Export key; needs `schema`."),
    ],
    open: false,
    moved: &[v1("kind", "write `io.visibility`")],
};
static IO: Fields = Fields {
    name: "`io`",
    fields: &[
        optional("inputs", Shape::Map(&INPUTS), "Inputs by name."),
        optional("selfData", Shape::List(&SELF_DATAS), "Own data in the prompt."),
        optional("payloadSchema", Shape::Text(&grammar::JSON_PATH), "JSON Schema of the activation payload."),
        optional("output", Shape::Object(&OUTPUT), "What it gives."),
        optional("visibility", Shape::Word(&["story", "plugin", "system"]), "Who sees its text; default `plugin`."),
        optional("concealed", Shape::Bool, "Hidden from traces and people."),
    ],
    open: false,
    moved: &[v1("inject", "write `io.inputs` and `io.selfData`"), v1("outputKind", "write `io.visibility`")],
};
static TOOL_CHOICE: Fields = object("`toolChoice`", &[required("name", Shape::Text(&grammar::NONEMPTY), "Tool name.")]);
static LLM: Fields = object(
    "`llm`",
    &[
        optional("reasoningEffort", Shape::Word(&["disabled"]), "`disabled`."),
        optional(
            "toolChoice",
            Shape::Either(&[Shape::Word(&["required"]), Shape::Object(&TOOL_CHOICE)]),
            "`required` or `{name}`.",
        ),
    ],
);
static HISTORY: Fields = object(
    "`history`",
    &[
        required("maxTurns", Shape::Int(0, 1000), "Turns of history, 0 to 1000."),
        optional("includeSummaries", Shape::Bool, "Summaries too; default false."),
    ],
);
static IMPORT: Fields = object(
    "a service import",
    &[
        required("contract", CONTRACT, "Contract id."),
        optional(
            "as",
            Shape::Text(&grammar::TOOL_NAME),
            "Tool name; default the contract without version, `.` as `-`.",
        ),
    ],
);
static IMPORTS: ListShape = list(Shape::Either(&[CONTRACT, Shape::Object(&IMPORT)]), 64);
static AGENT_TOOLS: Fields = object(
    "`agent.tools`",
    &[
        optional("builtin", Shape::List(&PLAIN_NAMES), "Framework tools."),
        optional("plugin", Shape::List(&PLAIN_NAMES), "Own tools; an inline agent gets all when it is left out."),
        optional("services", Shape::List(&IMPORTS), "Services imported as tools."),
        optional(
            "defer",
            Shape::Either(&[Shape::Bool, Shape::List(&PLAIN_NAMES)]),
            "`true`, or tools found by search only.",
        ),
    ],
);
static FUNCTION_TOOLS: Fields = Fields {
    name: "`function.tools`",
    fields: &[
        optional("builtin", Shape::List(&PLAIN_NAMES), "Framework tools."),
        optional("plugin", Shape::List(&PLAIN_NAMES), "Own tools."),
        optional("defer", Shape::Either(&[Shape::Bool, Shape::List(&PLAIN_NAMES)]), "Has no effect here."),
    ],
    open: false,
    moved: &[misplaced("services", "function runtimes call services through `ctx.services`")],
};
static LOOP_COMPLETION: Fields = object(
    "`loop.completion`",
    &[
        optional("require", Shape::Word(&["explicit", "tool-use"]), "What counts as finished."),
        optional("afterTools", Shape::List(&PLAIN_NAMES), "Tools that end the runtime."),
    ],
);
static LOOP: Fields = object(
    "`loop`",
    &[
        optional("maxSteps", COUNT, "Most tool steps, default 20."),
        optional("timeoutMs", COUNT, "Whole runtime, ms, default 600000."),
        optional("callTimeoutMs", COUNT, "One unstreamed call, ms, default 60000."),
        optional("firstTokenTimeoutMs", COUNT, "First token of a stream, ms, default 120000."),
        optional("idleTimeoutMs", COUNT, "Silence in a stream, ms, default 120000."),
        optional("maxRetries", Shape::Int(0, 5), "Retries, 0 to 5, default 1."),
        optional("loopDetection", Shape::Int(0, 20), "Repeated calls that stop the loop, 0 to 20, default 3, 0 = off."),
        optional("maxRecursionDepth", Shape::Int(0, 50), "Nested calls, 0 to 50, default 10."),
        optional("completion", Shape::Object(&LOOP_COMPLETION), "What counts as finished."),
    ],
);
static AGENT: Fields = object(
    "`agent`",
    &[
        optional("model", Shape::Text(&grammar::NONEMPTY), "Model slot."),
        optional("llm", Shape::Object(&LLM), "Model options."),
        optional("history", Shape::Object(&HISTORY), "A window of its own instead of the shared history."),
        optional("tools", Shape::Object(&AGENT_TOOLS), "Tools."),
        optional("advertiseEvents", Shape::Bool, "List event topics in the prompt."),
        optional("loop", Shape::Object(&LOOP), "Limits of the tool loop."),
    ],
);
static FUNCTION: Fields = object(
    "`function`",
    &[
        required("handler", Shape::Text(&grammar::JS_PATH), "Handler module, default export a function."),
        optional("model", Shape::Text(&grammar::NONEMPTY), "Model slot judged for a detached job."),
        optional("timeoutMs", COUNT, "Milliseconds, default 30000."),
        optional("tools", Shape::Object(&FUNCTION_TOOLS), "Tools for `ctx.tools.call`."),
    ],
);
static EFFECT_LIST: ListShape = set(Shape::Text(&grammar::EFFECT), MANY);
static EFFECTS: Fields = object(
    "`effects`",
    &[
        optional("reads", Shape::List(&EFFECT_LIST), "What it reads."),
        optional("writes", Shape::List(&EFFECT_LIST), "What it writes."),
        optional("parallelSafe", Shape::Bool, "Its writes disturb no other write."),
    ],
);
static METHODS: ListShape =
    ListShape { of: Shape::Word(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]), min: 1, max: 6, unique: true };
static HTTP: Fields = object(
    "an http permission",
    &[
        required("origin", Shape::Text(&grammar::ORIGIN), "https origin."),
        optional("methods", Shape::List(&METHODS), "Methods; default all."),
    ],
);
static HTTPS: ListShape = list(Shape::Object(&HTTP), 100);
static PERMISSIONS: Fields = Fields {
    name: "`permissions`",
    fields: &[optional("http", Shape::List(&HTTPS), "Origins it may reach.")],
    open: false,
    moved: &[
        v1("runtime", "approval is the player's; nothing is declared for it"),
        v1("server-code", "approval is the player's; nothing is declared for it"),
    ],
};

/// A runtime: `runtime` of `PLUGIN.md`, or a whole `RUNTIME.md`.
pub(crate) static RUNTIME: Fields = Fields {
    name: "a runtime",
    fields: &[
        required("type", Shape::Word(&["agent", "function"]), "`agent` or `function`."),
        optional("description", Shape::Label(LABEL), "What it does."),
        optional("schedule", Shape::Object(&SCHEDULE), "When it runs."),
        optional("io", Shape::Object(&IO), "What it takes and gives."),
        optional("agent", Shape::Object(&AGENT), "Agent part."),
        optional("function", Shape::Object(&FUNCTION), "Function part."),
        optional("guard", Shape::Text(&grammar::JS_PATH), "Module that decides whether it runs."),
        optional("effects", Shape::Object(&EFFECTS), "What it reads and writes."),
        optional("permissions", Shape::Object(&PERMISSIONS), "HTTP origins."),
    ],
    open: false,
    moved: &[
        package_field("id"),
        package_field("kind"),
        package_field("version"),
        package_field("covel"),
        package_field("displayName"),
        package_field("tags"),
        package_field("author"),
        package_field("license"),
        package_field("homepage"),
        package_field("provides"),
        package_field("requires"),
        package_field("optional"),
        package_field("conflicts"),
        package_field("contracts"),
        package_field("entry"),
        package_field("contributes"),
        package_field("name"),
        v1("runtimeType", "write `type`"),
        v1("stage", "write `schedule.stage`"),
        v1("trigger", "write `schedule.trigger`"),
        v1("priority", "order comes from `schedule.needs`, `schedule.after` and `io.inputs`"),
        v1("input", "write `io.inputs` and `io.selfData`"),
        v1("output", "write `io.output`"),
        v1("outputKind", "write `io.visibility`"),
        v1("handler", "write `function.handler`"),
        v1("execution", "write `agent.loop` or `function.timeoutMs`"),
        v1("model", "write `agent.model`"),
        v1("tools", "write `agent.tools`"),
        v1("concurrency", "there is no such setting; a layer runs in parallel"),
        misplaced("needs", "it belongs under `schedule`"),
        misplaced("after", "it belongs under `schedule`"),
        misplaced("inputs", "it belongs under `io`"),
        misplaced("runtime", "in a RUNTIME.md the fields stand at the top"),
    ],
};
