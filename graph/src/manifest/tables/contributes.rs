//! `contributes`.

use super::{BIG, CONTRACT, COUNT, LABEL, MANY, list, map, misplaced, object, optional, required, set, v1};
use crate::manifest::{
    grammar,
    shape::{Fields, ListShape, MapShape, Shape},
};

static HOOK_EVENTS: &[&str] = &[
    "SessionStart",
    "TurnStart",
    "PreCompaction",
    "PostCompaction",
    "PreSchedule",
    "PreRuntime",
    "PostContextAssembly",
    "PreLLMCall",
    "PostLLMResponse",
    "PostRuntime",
    "PreToolUse",
    "PostToolUse",
    "PreStateCommit",
    "PostStateCommit",
    "TurnStop",
    "SessionEnd",
];

static NAMES: ListShape = set(Shape::Text(&grammar::NONEMPTY), MANY);
pub(super) static PLAIN_NAMES: ListShape = list(Shape::Text(&grammar::NONEMPTY), MANY);
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
static SETTING_TYPES: &[&str] = &["text", "textarea", "number", "integer", "toggle", "select", "slider", "slot"];
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
static SEARCH: Fields =
    object("`search`", &[required("text", Shape::Text(&grammar::NONEMPTY), "Field searched by `memory-search`.")]);
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

pub(super) static CONTRIBUTES: Fields = Fields {
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
