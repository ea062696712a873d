//! `contributes`: what a package adds to the host.

use std::collections::HashSet;

use super::{
    ROOT, names,
    shape::clip,
    source::{Context, Document, count, flag, int, label, number, text, texts},
    ui,
};
use crate::{
    fragment::{
        AuthoringDecl, CommandArgument, CommandDecl, DataDecl, Enforce, EventDecl, ExtensionDecl, Fragment, HookDecl,
        ProjectionDecl, ProjectionOutput, PromptDecl, PromptPosition, ServiceAccess, ServiceDecl, SettingDecl,
        SettingOption, SourceDecl,
    },
    report::nearest,
    yaml::{Node, Yaml},
};

/// Reads `contributes` into the fragment.
pub(super) fn read(context: &mut Context<'_>, root: &Document, fragment: &mut Fragment) {
    context.file = ROOT.to_owned();
    let Some(node) = root.node.get("contributes") else {
        return;
    };
    fragment.tools = texts(node, "tools");
    for (place, tool) in list(node, "tools").iter().enumerate() {
        if tool.text().is_some_and(|name| names::FRAMEWORK_TOOLS.contains(&name)) {
            let message =
                format!("`{}` is a framework tool; no package may register the name", tool.text().unwrap_or(""));
            context.error("framework-tool-name", tool.at, &format!("contributes.tools[{place}]"), message);
        }
    }
    fragment.actions = texts(node, "actions");
    fragment.wires = texts(node, "wires");
    fragment.forms = texts(node, "forms");
    commands(context, node, fragment);
    services(context, node, fragment);
    data(context, node, fragment);
    extensions(context, node, fragment);
    hooks(context, node, fragment);
    events(context, node, fragment);
    settings(context, node, fragment);
    projections(context, node, fragment);
    prompts(context, root, node, fragment);
    ui::read(context, node, fragment);
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
}

fn commands(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    let mut taken = HashSet::new();
    for (place, item) in list(node, "commands").iter().enumerate() {
        let path = format!("contributes.commands[{place}]");
        let Some(name) = text(item, "name") else {
            continue;
        };
        let aliases = texts(item, "aliases");
        for one in std::iter::once(&name).chain(&aliases) {
            if !taken.insert(one.clone()) {
                context.error(
                    "duplicate-command",
                    item.at,
                    &path,
                    format!("the command name `{}` is used twice", clip(one)),
                );
            }
        }
        let action = text(item, "action").unwrap_or_default();
        if let Some(at) = item.get("action").filter(|_| !fragment.actions.contains(&action)) {
            let message = format!("`{}` is not one of `contributes.actions`", clip(&action));
            let help = match nearest(&action, fragment.actions.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "list it there and register it in `entry`".to_owned(),
            };
            context.error_help("unknown-action", at.at, &format!("{path}.action"), message, help);
        }
        let mut arguments: Vec<CommandArgument> = Vec::new();
        let items = list(item, "arguments");
        for (index, argument) in items.iter().enumerate() {
            let path = format!("{path}.arguments[{index}]");
            let Some(name) = text(argument, "name") else {
                continue;
            };
            if arguments.iter().any(|one| one.name == name) {
                context.error(
                    "duplicate-argument",
                    argument.at,
                    &path,
                    format!("the argument `{}` is used twice", clip(&name)),
                );
            }
            let variadic = flag(argument, "variadic", false);
            if variadic && index + 1 < items.len() {
                context.error("variadic-not-last", argument.at, &path, "only the last argument may be variadic");
            }
            arguments.push(CommandArgument {
                name,
                kind: text(argument, "type").unwrap_or_else(|| "string".to_owned()),
                description: label(argument, "description"),
                required: flag(argument, "required", false),
                variadic,
                choices: texts(argument, "choices"),
            });
        }
        fragment.commands.push(CommandDecl {
            name,
            aliases,
            description: label(item, "description"),
            arguments,
            action,
            context: texts(item, "context"),
            origin: context.origin(item.at),
        });
    }
}

fn services(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for item in list(node, "services") {
        let Some(contract) = item.text().map(str::to_owned).or_else(|| text(item, "contract")) else {
            continue;
        };
        fragment.services.push(ServiceDecl {
            contract,
            access: text(item, "access").and_then(|word| ServiceAccess::parse(&word)).unwrap_or_default(),
            model_facing: flag(item, "modelFacing", false),
            origin: context.origin(item.at),
        });
    }
}

fn extensions(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for (place, item) in list(node, "extensions").iter().enumerate() {
        let path = format!("contributes.extensions[{place}]");
        let (Some(point), Some(id)) = (text(item, "point"), text(item, "id")) else {
            continue;
        };
        if let Some(at) = item.get("point").filter(|_| !names::KERNEL_POINTS.contains(&point.as_str())) {
            let name = point.split('@').next().unwrap_or("");
            let same = names::KERNEL_POINTS.iter().find(|known| known.split('@').next() == Some(name));
            let help = match same {
                Some(current) => format!("the current version is `{current}`"),
                None => format!("extension points: {}", names::KERNEL_POINTS.join(", ")),
            };
            let message = format!("`{}` is not an extension point of this host", clip(&point));
            context.error_help("unknown-extension-point", at.at, &format!("{path}.point"), message, help);
        }
        let slot = text(item, "slot");
        match (&slot, item.get("slot"), point.as_str()) {
            (None, None, "ui.slot@1") => {
                context.error("slot-missing", item.at, &path, "an extension of `ui.slot@1` names its `slot`");
            }
            (Some(slot), Some(at), "ui.slot@1") if !names::KERNEL_SLOTS.contains(&slot.as_str()) => {
                let message = format!("`{}` is not a slot this host shows", clip(slot));
                let help = format!("slots: {}", names::KERNEL_SLOTS.join(", "));
                context.warning_help("unknown-slot", at.at, &format!("{path}.slot"), message, help);
            }
            (Some(_), Some(at), other) if other != "ui.slot@1" => {
                context.error("slot-misplaced", at.at, &format!("{path}.slot"), "only `ui.slot@1` has slots");
            }
            _ => {}
        }
        if fragment.extensions.iter().any(|one| one.point == point && one.id == id) {
            let message = format!("the extension `{}` of `{}` is declared twice", clip(&id), clip(&point));
            context.error("duplicate-extension", item.at, &path, message);
        }
        let watch = texts(item, "watch");
        fragment.extensions.push(ExtensionDecl {
            point,
            id,
            order: int(item, "order").unwrap_or(0),
            slot,
            watch,
            preview: texts(item, "preview"),
            origin: context.origin(item.at),
        });
    }
}

fn hooks(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for (place, item) in list(node, "hooks").iter().enumerate() {
        let Some(event) = text(item, "event") else {
            continue;
        };
        let enforce = text(item, "enforce").and_then(|word| Enforce::parse(&word)).unwrap_or_default();
        if fragment.hooks.iter().any(|one| one.event == event && one.enforce == enforce) {
            let message = format!(
                "`{}` with `enforce: {}` is declared twice; once is enough for any number of handlers",
                clip(&event),
                enforce.as_str()
            );
            context.warning("duplicate-hook", item.at, &format!("contributes.hooks[{place}]"), message);
            continue;
        }
        fragment.hooks.push(HookDecl { event, enforce, origin: context.origin(item.at) });
    }
}

fn events(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for (place, item) in list(node, "events").iter().enumerate() {
        let path = format!("contributes.events[{place}]");
        let Some(topic) = text(item, "topic") else {
            continue;
        };
        if fragment.events.iter().any(|one| one.topic == topic) {
            context.error("duplicate-topic", item.at, &path, format!("the topic `{}` is declared twice", clip(&topic)));
        }
        let schema = item.get("schema").and_then(|at| context.schema_at("", at, &format!("{path}.schema")));
        fragment.events.push(EventDecl {
            topic,
            schema: schema.unwrap_or_default(),
            description: label(item, "description"),
            advertise: flag(item, "advertise", true),
            origin: context.origin(item.at),
        });
    }
}

fn settings(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for (place, item) in list(node, "settings").iter().enumerate() {
        let path = format!("contributes.settings[{place}]");
        let (Some(key), Some(kind)) = (text(item, "key"), text(item, "type")) else {
            continue;
        };
        if fragment.settings.iter().any(|one| one.key == key) {
            context.error(
                "duplicate-setting",
                item.at,
                &path,
                format!("the setting `{}` is declared twice", clip(&key)),
            );
        }
        let options: Vec<SettingOption> = list(item, "options")
            .iter()
            .map(|option| SettingOption {
                value: text(option, "value").unwrap_or_default(),
                label: label(option, "label"),
            })
            .collect();
        if kind == "select" && options.is_empty() {
            context.error("options-missing", item.at, &path, "a `select` needs at least one option");
        }
        let (min, max) = (number(item, "min"), number(item, "max"));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            context.error("bad-range", item.at, &path, format!("`min` {min} is above `max` {max}"));
        }
        if let Some(default) = item.get("default") {
            let fits = match kind.as_str() {
                "toggle" => matches!(default.value, Yaml::Bool(_)),
                "integer" => matches!(default.value, Yaml::Int(_)),
                "number" | "slider" => matches!(default.value, Yaml::Int(_) | Yaml::Float(_)),
                "select" => default.text().is_some_and(|value| options.iter().any(|option| option.value == value)),
                "text" | "textarea" => default.text().is_some(),
                _ => true,
            };
            if !fits && default.value != Yaml::Null {
                let message = format!("the default does not fit a setting of type `{}`", clip(&kind));
                context.warning("default-mismatch", default.at, &format!("{path}.default"), message);
            }
        }
        fragment.settings.push(SettingDecl {
            key,
            kind,
            label: label(item, "label"),
            description: label(item, "description"),
            default: item.get("default").map(|node| node.to_json().to_string()).unwrap_or_default(),
            min,
            max,
            step: number(item, "step"),
            options,
        });
    }
}

fn data(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for entry in node.get("data").map(Node::entries).unwrap_or_default() {
        let path = format!("contributes.data.{}", entry.key);
        let item = &entry.node;
        let schema = item.get("schema").and_then(|at| context.schema_at("", at, &format!("{path}.schema")));
        let accepts = texts(item, "accepts");
        let authoring = item.get("authoring").filter(|node| !node.entries().is_empty());
        let authoring = authoring.map(|node| authoring_of(context, node, &path, &accepts, schema.as_deref()));
        fragment.data.push(DataDecl {
            namespace: entry.key.clone(),
            schema: schema.unwrap_or_default(),
            version: count(item, "version", 1),
            accepts,
            search_text: item.get("search").and_then(|search| text(search, "text")),
            // A plain text, but a locale file may have made a label of it; English stands first.
            description: label(item, "description").into_iter().next().map(|(_, text)| text).unwrap_or_default(),
            authoring,
            origin: context.origin(entry.key_at),
        });
    }
}

fn authoring_of(
    context: &mut Context<'_>,
    node: &Node,
    path: &str,
    accepts: &[String],
    schema: Option<&str>,
) -> AuthoringDecl {
    let path = format!("{path}.authoring");
    if accepts.is_empty() {
        context.error("authoring-without-accepts", node.at, &path, "`authoring` needs `accepts`");
    }
    let example = node.get("example").and_then(|at| {
        let path = format!("{path}.example");
        let (file, text, value) = context.json_at("", at, &path)?;
        let schema: Option<serde_json::Value> = schema.and_then(|schema| serde_json::from_str(schema).ok());
        if let Some(Ok(validator)) = schema.as_ref().map(crate::schema::Validator::new) {
            // An example is one value, or a list of values of a keyed source.
            let one_by_one = value.as_array().is_some_and(|items| items.iter().all(|item| validator.is_valid(item)));
            if let (Err(issues), false) = (validator.validate(&value), one_by_one) {
                let issue =
                    issues.first().map(|issue| format!("{}: {}", issue.path, issue.message)).unwrap_or_default();
                context.error(
                    "example-invalid",
                    at.at,
                    &path,
                    format!("the example does not fit the namespace's schema: {issue}"),
                );
            }
        }
        Some((file, text))
    });
    let source = node.get("source").filter(|node| !node.entries().is_empty());
    let source = source.map(|source| SourceDecl {
        kind: text(source, "kind").unwrap_or_default(),
        path: text(source, "path").unwrap_or_default(),
        key: text(source, "key"),
        locale_array_keys: texts(source, "localeArrayKeys"),
        hidden: text(source, "visibility").as_deref() == Some("hidden"),
        lorebook: source.get("lorebook").map(|node| node.to_json().to_string()).unwrap_or_default(),
    });
    let generate = text(node, "generate").unwrap_or_default();
    if !generate.is_empty() {
        let keyed = source
            .as_ref()
            .is_some_and(|source| !source.hidden && source.kind != "media" && source.key.as_deref() == Some("id"));
        // An example that is named but cannot be read is told by itself.
        if node.get("example").is_none() || !keyed {
            let message = "`generate` needs an `example` and a public, non-media `source` with `key: id`";
            context.error("generate-incomplete", node.at, &path, message);
        }
    }
    let (example_path, example) = example.unzip();
    AuthoringDecl {
        title: label(node, "title"),
        summary: label(node, "summary"),
        hint: text(node, "hint").unwrap_or_default(),
        example_path,
        example,
        source,
        generate,
    }
}

fn projections(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    for entry in node.get("worldProjections").map(Node::entries).unwrap_or_default() {
        let path = format!("contributes.worldProjections.{}", entry.key);
        let item = &entry.node;
        let handler = item.get("handler").and_then(|at| context.file_at("", at, &format!("{path}.handler")));
        let mut outputs = Vec::new();
        for output in item.get("outputs").map(Node::entries).unwrap_or_default() {
            let namespace = text(&output.node, "namespace").unwrap_or_default();
            if !fragment.data.iter().any(|data| data.namespace == namespace) {
                let message = format!("`{}` is not a namespace of `contributes.data`", clip(&namespace));
                context.error("unknown-namespace", output.node.at, &format!("{path}.outputs.{}", output.key), message);
            }
            let key = text(&output.node, "key").unwrap_or_default();
            outputs.push(ProjectionOutput { id: output.key.clone(), namespace, key });
        }
        fragment.projections.push(ProjectionDecl {
            id: entry.key.clone(),
            from: text(item, "from").unwrap_or_default(),
            handler: handler.unwrap_or_default(),
            outputs,
            origin: context.origin(entry.key_at),
        });
    }
}

fn prompts(context: &mut Context<'_>, root: &Document, node: &Node, fragment: &mut Fragment) {
    for (place, item) in list(node, "prompt").iter().enumerate() {
        let path = format!("contributes.prompt[{place}]");
        let (Some(id), Some(content)) = (text(item, "id"), text(item, "content")) else {
            continue;
        };
        if fragment.prompts.iter().any(|one| one.id == id) {
            context.error(
                "duplicate-prompt",
                item.at,
                &path,
                format!("the prompt part `{}` is declared twice", clip(&id)),
            );
        }
        let position = item.get("position");
        let depth = position.map_or(0, |node| count(node, "depth", 0));
        let position = match position.and_then(Node::text) {
            Some(word) => PromptPosition::parse(word).unwrap_or_default(),
            None if position.is_some_and(|node| node.get("depth").is_some()) => PromptPosition::Depth,
            None => PromptPosition::System,
        };
        fragment.prompts.push(PromptDecl {
            content_zh: root.prompts_zh.iter().find(|(of, _)| *of == id).map(|(_, text)| text.clone()),
            id,
            content,
            position,
            depth,
            role: text(item, "role").unwrap_or_else(|| "system".to_owned()),
        });
    }
}
