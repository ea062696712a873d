//! `PLUGIN.md` but for `contributes` and `runtime`.

use super::{
    CONTRACT, LABEL, MANY, contributes::CONTRIBUTES, list, map, misplaced, object, optional, required,
    runtime::RUNTIME, v1,
};
use crate::manifest::{
    grammar,
    shape::{Fields, ListShape, MapShape, Shape},
};

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
        optional(
            "version",
            Shape::Text(&grammar::NONEMPTY),
            "Version; a change runs setup runtimes again. Default 0.0.0.",
        ),
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
