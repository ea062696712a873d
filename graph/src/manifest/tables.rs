//! The tables of both manifest kinds.

use super::{
    grammar::{self, Grammar},
    shape::{Field, Fields, ListShape, MapShape, Moved, Shape},
};

/// Longest list where the format states no limit.
const MANY: usize = 1_000;
/// Largest count or time, so that every value fits 32 bits.
const BIG: i64 = i32::MAX as i64;
/// Longest label.
const LABEL: usize = 4_000;

const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, required: true, shape, doc }
}
const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, required: false, shape, doc }
}
const fn object(name: &'static str, fields: &'static [Field]) -> Fields {
    Fields { name, fields, open: false, moved: &[] }
}
const fn list(of: Shape, max: usize) -> ListShape {
    ListShape { of, min: 0, max, unique: false }
}
const fn set(of: Shape, max: usize) -> ListShape {
    ListShape { of, min: 0, max, unique: true }
}
const fn map(key: &'static Grammar, of: Shape, max: usize) -> MapShape {
    MapShape { key, of, min: 0, max }
}
const fn v1(name: &'static str, advice: &'static str) -> Moved {
    Moved { name, code: "v1-field", advice }
}
const fn package_field(name: &'static str) -> Moved {
    Moved { name, code: "package-field-in-runtime", advice: "package fields stand in the root PLUGIN.md only" }
}
const fn misplaced(name: &'static str, advice: &'static str) -> Moved {
    Moved { name, code: "misplaced-field", advice }
}

const COUNT: Shape = Shape::Int(1, BIG);
const CONTRACT: Shape = Shape::Text(&grammar::CONTRACT);

pub(crate) static STAGES: &[&str] = &["setup", "pre-turn", "narrative", "post-turn", "audit"];
pub(crate) static HOOK_EVENTS: &[&str] = &[
    "SessionStart", "TurnStart", "PreCompaction", "PostCompaction", "PreSchedule", "PreRuntime", "PostContextAssembly",
    "PreLLMCall", "PostLLMResponse", "PostRuntime", "PreToolUse", "PostToolUse", "PreStateCommit", "PostStateCommit",
    "TurnStop", "SessionEnd",
];

// ---- root manifest ----

static LINK: Fields = object(
    "a link",
    &[
        required("label", Shape::Label(40), "Text of the link, 1 to 40 characters."),
        required("url", Shape::Text(&grammar::HTTPS), "https address."),
    ],
);
static LINKS: ListShape = list(Shape::Object(&LINK), 6);
static AUTHOR: Fields = object(
    "`author`",
    &[
        required("name", Shape::Text(&grammar::AUTHOR_NAME), "Name, 1 to 80 characters."),
        optional("url", Shape::Text(&grammar::HTTPS), "https address."),
        optional("about", Shape::Label(500), "A few words, 1 to 500 characters."),
        optional("links", Shape::List(&LINKS), "At most six links."),
    ],
);
static PROVIDE: Fields = object(
    "a provided contract",
    &[
        required("contract", CONTRACT, "Contract id."),
        optional("default", Shape::Bool, "Steps aside for a provider that is not a default."),
    ],
);
static PROVIDES: ListShape = list(Shape::Either(&[CONTRACT, Shape::Object(&PROVIDE)]), MANY);
static CONTRACT_REF: Fields = Fields {
    name: "a contract reference",
    fields: &[required("contract", CONTRACT, "Contract id.")],
    open: true,
    moved: &[],
};
static CONTRACT_REFS: ListShape = list(Shape::Either(&[CONTRACT, Shape::Object(&CONTRACT_REF)]), MANY);
static CONTRACT_DECL: Fields =
    object("a contract", &[required("schema", Shape::Text(&grammar::JSON_PATH), "JSON Schema of the whole output.")]);
static CONTRACTS: MapShape = map(&grammar::CONTRACT, Shape::Object(&CONTRACT_DECL), MANY);
static TAGS: ListShape = list(Shape::Text(&grammar::TAG), 64);

/// The root manifest, `PLUGIN.md`.
pub(crate) static PLUGIN: Fields = Fields {
    name: "a package manifest",
    fields: &[
        required("id", Shape::Text(&grammar::PACKAGE_ID), "Package id, equal to the folder name."),
        required("kind", Shape::Word(&["core", "plugin"]), "Role of the package: `core` or `plugin`."),
        optional("version", Shape::Text(&grammar::NONEMPTY), "Version; a change runs setup runtimes again. Default 0.0.0."),
        optional("covel", Shape::Text(&grammar::HOST_RANGE), "Host versions the author has in mind."),
        optional("displayName", Shape::Label(200), "Name for people; default the id."),
        required("description", Shape::Label(LABEL), "What the package does."),
        optional("tags", Shape::List(&TAGS), "Catalogue labels."),
        optional("author", Shape::Object(&AUTHOR), "Who wrote it."),
        optional("license", Shape::Text(&grammar::LICENSE), "Licence, 1 to 64 characters."),
        optional("homepage", Shape::Text(&grammar::HTTPS), "https address."),
        optional("provides", Shape::List(&PROVIDES), "Contracts this package's runtimes publish."),
        optional("requires", Shape::List(&CONTRACT_REFS), "Contracts that must have a provider."),
        optional("optional", Shape::List(&CONTRACT_REFS), "Contracts used when there is a provider."),
        optional("conflicts", Shape::List(&CONTRACT_REFS), "Contracts no other active package may provide."),
        optional("contracts", Shape::Map(&CONTRACTS), "Public schemas by contract id."),
        optional("entry", Shape::Text(&grammar::JS_PATH), "Module that registers tools, hooks, services and so on."),
        optional("contributes", Shape::Object(&CONTRIBUTES), "What the package adds to the host."),
        optional("runtime", Shape::Object(&RUNTIME), "The one inline runtime."),
    ],
    open: false,
    moved: &[
        v1("name", "write `id`, equal to the folder name"),
        v1("pluginType", "write `kind: core` or `kind: plugin`"),
        v1("runtimeType", "write `runtime.type`"),
        v1("capabilities", "write `provides` with versioned contracts, or `contributes.tools`"),
        v1("relations", "write `requires`, `optional` and `conflicts` with contract ids"),
        v1("outputKind", "write `runtime.io.visibility`"),
        v1("stage", "write `runtime.schedule.stage`"),
        v1("trigger", "write `runtime.schedule.trigger`"),
        v1("priority", "order comes from `runtime.schedule.needs`, `after` and `runtime.io.inputs`"),
        v1("input", "write `runtime.io.inputs` and `runtime.io.selfData`"),
        v1("output", "write `runtime.io.output`"),
        v1("userSettings", "write `contributes.settings`"),
        v1("dataSchemas", "write `contributes.data`"),
        v1("rpc", "write `contributes.actions` and register them in `entry`"),
        v1("ui", "write `contributes.ui`"),
        v1("handler", "write `runtime.function.handler`"),
        v1("execution", "write `runtime.agent.loop` or `runtime.function.timeoutMs`"),
        v1("memoryBlocks", "write `contributes.prompt`"),
        v1("formValidators", "write `contributes.forms` and register them in `entry`"),
        v1("concurrency", "there is no such setting; a layer runs in parallel"),
        v1("model", "write `runtime.agent.model`"),
        v1("tools", "write `contributes.tools` and `runtime.agent.tools`"),
        v1("hooks", "write `contributes.hooks`"),
        v1("events", "write `contributes.events`"),
        v1("commands", "write `contributes.commands`"),
        v1("i18n", "put translations into `locales/<locale>.yaml`"),
        misplaced("type", "it belongs under `runtime`"),
        misplaced("schedule", "it belongs under `runtime`"),
        misplaced("io", "it belongs under `runtime`"),
        misplaced("agent", "it belongs under `runtime`"),
        misplaced("function", "it belongs under `runtime`"),
        misplaced("guard", "it belongs under `runtime`"),
        misplaced("effects", "it belongs under `runtime`"),
        misplaced("permissions", "it belongs under `runtime`; the only permission is `runtime.permissions.http`"),
        misplaced("settings", "it belongs under `contributes`"),
        misplaced("services", "it belongs under `contributes`"),
        misplaced("extensions", "it belongs under `contributes`"),
        misplaced("data", "it belongs under `contributes`"),
        misplaced("prompt", "it belongs under `contributes`"),
    ],
};

// ---- contributes ----

static NAMES: ListShape = set(Shape::Text(&grammar::NONEMPTY), MANY);
static PLAIN_NAMES: ListShape = list(Shape::Text(&grammar::NONEMPTY), MANY);
static COMMAND_NAMES: ListShape = set(Shape::Text(&grammar::COMMAND_NAME), 16);
static CHOICES: ListShape = ListShape { of: Shape::Text(&grammar::NONEMPTY), min: 1, max: 64, unique: true };
static COMMAND_CONTEXT: ListShape = set(Shape::Word(&["session", "active-runtimes", "models"]), 3);
static ARGUMENT: Fields = object(
    "a command argument",
    &[
        required("name", Shape::Text(&grammar::COMMAND_NAME), "Name."),
        optional("type", Shape::Word(&["string", "integer", "number", "boolean"]), "Type, default `string`."),
        optional("description", Shape::Label(LABEL), "What it is."),
        optional("required", Shape::Bool, "Must be given."),
        optional("variadic", Shape::Bool, "Takes the rest; last argument only."),
        optional("choices", Shape::List(&CHOICES), "Accepted values, 1 to 64."),
    ],
);
static ARGUMENTS: ListShape = list(Shape::Object(&ARGUMENT), 16);
static COMMAND: Fields = object(
    "a command",
    &[
        required("name", Shape::Text(&grammar::COMMAND_NAME), "Name without the slash."),
        optional("aliases", Shape::List(&COMMAND_NAMES), "Other names, at most 16."),
        required("description", Shape::Label(LABEL), "What it does."),
        optional("arguments", Shape::List(&ARGUMENTS), "Arguments, at most 16."),
        required("action", Shape::Text(&grammar::COMMAND_NAME), "The action it runs, one of `contributes.actions`."),
        optional("context", Shape::List(&COMMAND_CONTEXT), "Extra context it asks for."),
    ],
);
static COMMANDS: ListShape = list(Shape::Object(&COMMAND), 32);
static SERVICE: Fields = object(
    "a service",
    &[
        required("contract", CONTRACT, "Contract id."),
        optional("access", Shape::Word(&["read", "write"]), "Whether it stages writes; default `read`."),
        optional("modelFacing", Shape::Bool, "Agents may import it as a tool."),
    ],
);
// Several services of one contract need as many declarations, so the list is no set. SVC-3
static SERVICES: ListShape = list(Shape::Either(&[CONTRACT, Shape::Object(&SERVICE)]), MANY);
static EXTENSION: Fields = object(
    "an extension",
    &[
        required("point", CONTRACT, "Extension point, such as `prompt.segment@1`."),
        required("id", Shape::Text(&grammar::EXTENSION_ID), "Id inside the package."),
        optional("order", Shape::Int(-BIG, BIG), "Ascending, default 0."),
        optional("slot", CONTRACT, "UI slot, for `ui.slot@1`."),
        optional("watch", Shape::List(&PLAIN_NAMES), "Own data namespaces that make it run again."),
        optional("preview", Shape::List(&TOPIC_LIST), "Topics shown before they commit."),
    ],
);
static TOPIC_LIST: ListShape = list(Shape::Text(&grammar::TOPIC), MANY);
static EXTENSIONS: ListShape = list(Shape::Object(&EXTENSION), MANY);
static HOOK: Fields = object(
    "a hook",
    &[
        required("event", Shape::Word(HOOK_EVENTS), "Event."),
        optional("enforce", Shape::Word(&["pre", "normal", "post"]), "Group, default `normal`."),
    ],
);
static HOOKS: ListShape = list(Shape::Object(&HOOK), MANY);
static EVENT: Fields = object(
    "an event",
    &[
        required("topic", Shape::Text(&grammar::TOPIC), "Topic."),
        required("schema", Shape::Text(&grammar::JSON_PATH), "JSON Schema of the payload."),
        required("description", Shape::Label(LABEL), "When it is emitted."),
        optional("advertise", Shape::Bool, "Models may emit it, default true."),
    ],
);
static EVENTS: ListShape = list(Shape::Object(&EVENT), MANY);
static SETTING_OPTION: Fields = Fields {
    name: "a setting option",
    fields: &[
        required("value", Shape::Text(&grammar::TEXT), "Stored value."),
        required("label", Shape::Label(LABEL), "Label."),
    ],
    open: true,
    moved: &[],
};
static SETTING_OPTIONS: ListShape = list(Shape::Object(&SETTING_OPTION), MANY);
pub(crate) static SETTING_TYPES: &[&str] =
    &["text", "textarea", "number", "integer", "toggle", "select", "slider", "slot"];
static SETTING: Fields = object(
    "a setting",
    &[
        required("key", Shape::Text(&grammar::SETTING_KEY), "Key."),
        required("type", Shape::Word(SETTING_TYPES), "Control."),
        required("label", Shape::Label(LABEL), "Label."),
        optional("description", Shape::Label(LABEL), "Description."),
        optional("default", Shape::Any, "Value when neither player nor world sets one."),
        optional("min", Shape::Number, "Lower bound."),
        optional("max", Shape::Number, "Upper bound."),
        optional("step", Shape::Number, "Step."),
        optional("options", Shape::List(&SETTING_OPTIONS), "Choices of a `select`."),
    ],
);
static SETTINGS: ListShape = list(Shape::Object(&SETTING), MANY);
static LOCALE_ARRAY_KEYS: ListShape = ListShape { of: Shape::Text(&grammar::NONEMPTY), min: 1, max: 64, unique: true };
static SOURCE: Fields = object(
    "`authoring.source`",
    &[
        required("kind", Shape::Word(&["yaml", "json", "media"]), "File kind."),
        required("path", Shape::Text(&grammar::FILE_PATH), "Path inside the world."),
        optional("key", Shape::Text(&grammar::NONEMPTY), "Field that identifies an item (`filename` for media)."),
        optional("localeArrayKeys", Shape::List(&LOCALE_ARRAY_KEYS), "List fields translated item by item."),
        optional("visibility", Shape::Word(&["public", "hidden"]), "Default `public`."),
        optional("lorebook", Shape::Any, "How items become lorebook entries."),
    ],
);
static AUTHORING: Fields = object(
    "`authoring`",
    &[
        required("title", Shape::Label(LABEL), "Title."),
        optional("summary", Shape::Label(LABEL), "Summary."),
        optional("hint", Shape::Text(&grammar::TEXT), "Hint for a generator."),
        optional("example", Shape::Text(&grammar::JSON_PATH), "JSON file with one example."),
        optional("source", Shape::Object(&SOURCE), "World file it is kept in."),
        optional("generate", Shape::Word(&["offer", "default"]), "Whether world generation writes it."),
    ],
);
static SEARCH: Fields = object("`search`", &[required("text", Shape::Text(&grammar::NONEMPTY), "Field searched by `memory-search`.")]);
static CONTRACT_LIST: ListShape = set(CONTRACT, MANY);
static DATA: Fields = object(
    "a data namespace",
    &[
        required("schema", Shape::Text(&grammar::JSON_PATH), "JSON Schema of one value."),
        required("version", COUNT, "Version of the data, from 1."),
        optional("description", Shape::Text(&grammar::TEXT), "What it holds."),
        optional("accepts", Shape::List(&CONTRACT_LIST), "Contracts whose world sources it takes."),
        optional("authoring", Shape::Object(&AUTHORING), "How world authors fill it."),
        optional("search", Shape::Object(&SEARCH), "What `memory-search` reads."),
    ],
);
static DATA_MAP: MapShape = map(&grammar::DATA_NAMESPACE, Shape::Object(&DATA), MANY);
static UI_FILES: ListShape = list(Shape::Text(&grammar::JSON_PATH), MANY);
static UI: Fields = object(
    "`contributes.ui`",
    &[
        optional("right", Shape::List(&UI_FILES), "Panels."),
        optional("message", Shape::List(&UI_FILES), "Blocks in the conversation."),
        optional("left", Shape::List(&UI_FILES), "Left side."),
    ],
);
static PROJECTION_OUTPUT: Fields = object(
    "a projection output",
    &[
        required("namespace", Shape::Text(&grammar::PROJECTION_KEY), "Own namespace."),
        required("key", Shape::Text(&grammar::PROJECTION_KEY), "Key."),
    ],
);
static PROJECTION_OUTPUTS: MapShape =
    MapShape { key: &grammar::NAMESPACE, of: Shape::Object(&PROJECTION_OUTPUT), min: 1, max: 64 };
static PROJECTION: Fields = object(
    "a world projection",
    &[
        required("from", Shape::Text(&grammar::NONEMPTY), "Source schema, such as `contract:<id>`."),
        required("handler", Shape::Text(&grammar::JS_PATH), "Handler module."),
        required("outputs", Shape::Map(&PROJECTION_OUTPUTS), "Where its values go."),
    ],
);
static PROJECTIONS: MapShape = map(&grammar::NAMESPACE, Shape::Object(&PROJECTION), MANY);
static DEPTH: Fields = object("`position`", &[required("depth", Shape::Int(0, BIG), "Messages from the end.")]);
static PROMPT: Fields = object(
    "a prompt part",
    &[
        required("id", Shape::Text(&grammar::NONEMPTY), "Id."),
        required("content", Shape::Text(&grammar::NONEMPTY_TEXT), "Text."),
        required(
            "position",
            Shape::Either(&[Shape::Word(&["system", "pre-history", "post-history"]), Shape::Object(&DEPTH)]),
            "`system`, `pre-history`, `post-history` or `{depth: <messages from the end>}`.",
        ),
        optional("role", Shape::Word(&["system", "user", "assistant"]), "Default `system`."),
    ],
);
static PROMPTS: ListShape = list(Shape::Object(&PROMPT), MANY);

static CONTRIBUTES: Fields = Fields {
    name: "`contributes`",
    fields: &[
        optional("tools", Shape::List(&NAMES), "Tools registered in `entry`."),
        optional("actions", Shape::List(&NAMES), "RPC actions registered in `entry`."),
        optional("commands", Shape::List(&COMMANDS), "Player commands, at most 32."),
        optional("services", Shape::List(&SERVICES), "Services registered in `entry`."),
        optional("extensions", Shape::List(&EXTENSIONS), "Extension providers registered in `entry`."),
        optional("hooks", Shape::List(&HOOKS), "Hooks registered in `entry`."),
        optional("wires", Shape::List(&NAMES), "Model protocols registered in `entry`."),
        optional("forms", Shape::List(&NAMES), "Form validators registered in `entry`."),
        optional("events", Shape::List(&EVENTS), "Event topics."),
        optional("settings", Shape::List(&SETTINGS), "Settings."),
        optional("data", Shape::Map(&DATA_MAP), "Data namespaces."),
        optional("ui", Shape::Object(&UI), "UI specs."),
        optional("worldProjections", Shape::Map(&PROJECTIONS), "Projections of world sources."),
        optional("prompt", Shape::List(&PROMPTS), "Static prompt parts."),
    ],
    open: false,
    moved: &[
        v1("rpc", "write `contributes.actions`"),
        v1("formValidators", "write `contributes.forms`"),
        v1("userSettings", "write `contributes.settings`"),
        v1("dataSchemas", "write `contributes.data`"),
        misplaced("contracts", "it belongs at the root"),
        misplaced("provides", "it belongs at the root"),
    ],
};

// ---- runtime manifest ----

static TRIGGER: Fields = object(
    "`trigger`",
    &[
        required("type", Shape::Word(&["auto", "scheduled", "manual", "event"]), "`auto`, `scheduled`, `manual` or `event`."),
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
static MANUAL: Fields =
    object("`manual`", &[optional("execution", Shape::Word(&["sync", "background"]), "Default `sync`; `background` is a durable job.")]);
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
        optional("toolChoice", Shape::Either(&[Shape::Word(&["required"]), Shape::Object(&TOOL_CHOICE)]), "`required` or `{name}`."),
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
        optional("as", Shape::Text(&grammar::TOOL_NAME), "Tool name; default the contract without version, `.` as `-`."),
    ],
);
static IMPORTS: ListShape = list(Shape::Either(&[CONTRACT, Shape::Object(&IMPORT)]), 64);
static AGENT_TOOLS: Fields = object(
    "`agent.tools`",
    &[
        optional("builtin", Shape::List(&PLAIN_NAMES), "Framework tools."),
        optional("plugin", Shape::List(&PLAIN_NAMES), "Own tools; an inline agent gets all when it is left out."),
        optional("services", Shape::List(&IMPORTS), "Services imported as tools."),
        optional("defer", Shape::Either(&[Shape::Bool, Shape::List(&PLAIN_NAMES)]), "`true`, or tools found by search only."),
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
static METHODS: ListShape = ListShape {
    of: Shape::Word(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
    min: 1,
    max: 6,
    unique: true,
};
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
