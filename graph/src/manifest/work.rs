//! The agent and function parts of a runtime.

use super::{
    names::FRAMEWORK_TOOLS,
    present,
    runtime::Place,
    shape::clip,
    source::{Context, count, flag, millis, text, texts},
};
use crate::{
    fragment::{AgentDecl, CompletionRequire, Fragment, FunctionDecl, RuntimeDecl, RuntimeKind, ServiceImport},
    report::nearest,
    yaml::{Node, Yaml},
};

/// Most tool-call steps when none is stated.
const MAX_STEPS: u32 = 20;
/// Whole agent runtime when none is stated, milliseconds.
const AGENT_MS: u64 = 600_000;
/// One unstreamed model call when none is stated, milliseconds.
const CALL_MS: u64 = 60_000;
/// First token, and silence in a stream, when none is stated, milliseconds.
const STREAM_MS: u64 = 120_000;
/// Retries when none is stated.
const RETRIES: u32 = 1;
/// Repeated calls that stop the loop when none is stated.
const LOOP_DETECTION: u32 = 3;
/// Nested calls when none is stated.
const RECURSION: u32 = 10;
/// A function runtime when none is stated, milliseconds.
const FUNCTION_MS: u64 = 30_000;

/// Reads `agent` and `function`.
pub(super) fn read(
    context: &mut Context<'_>,
    place: &Place<'_>,
    decl: &mut RuntimeDecl,
    fragment: &Fragment,
    kind: Option<RuntimeKind>,
) {
    let Some(kind) = kind else { return };
    let (agent, function) = (place.node.get("agent"), place.node.get("function"));
    for (key, node, wanted) in [("agent", agent, RuntimeKind::Agent), ("function", function, RuntimeKind::Function)] {
        if let (Some(node), true) = (node.filter(|node| present(Some(node))), kind != wanted) {
            let message = format!("`{key}` does not belong in a runtime of type `{}`", kind.as_str());
            context.error("wrong-part", node.at, &place.path(key), message);
        }
    }
    match kind {
        RuntimeKind::Agent => {
            let empty = Node::new(place.node.at, Yaml::Map(Vec::new()));
            decl.agent = Some(read_agent(context, place, agent.unwrap_or(&empty), fragment));
        }
        RuntimeKind::Function => match function.filter(|node| present(Some(node))) {
            Some(node) => decl.function = Some(read_function(context, place, node, fragment)),
            None => {
                let message = "a runtime of type `function` needs `function.handler`";
                context.error("handler-missing", place.node.at, &place.path("function.handler"), message);
            }
        },
    }
}

fn read_function(context: &mut Context<'_>, place: &Place<'_>, node: &Node, fragment: &Fragment) -> FunctionDecl {
    let handler = node.get("handler").and_then(|at| context.file_at(place.base, at, &place.path("function.handler")));
    let tools = Tools::read(context, place, node, "function", fragment);
    FunctionDecl {
        handler: handler.unwrap_or_default(),
        timeout_ms: millis(node, "timeoutMs", FUNCTION_MS),
        builtin_tools: tools.builtin,
        plugin_tools: tools.plugin.unwrap_or_default(),
        model: text(node, "model"),
    }
}

fn read_agent(context: &mut Context<'_>, place: &Place<'_>, node: &Node, fragment: &Fragment) -> AgentDecl {
    let empty = Node::new(node.at, Yaml::Map(Vec::new()));
    let tools = Tools::read(context, place, node, "agent", fragment);
    // An inline agent that lists no own tools gets all of them; in a package of several runtimes each lists its own.
    let plugin_tools = match tools.plugin {
        Some(list) => list,
        None if place.is_inline() => fragment.tools.clone(),
        None => Vec::new(),
    };
    let services = imports(context, place, node);
    for import in &services {
        if plugin_tools.contains(&import.tool_name) || tools.builtin.contains(&import.tool_name) {
            let message =
                format!("the imported service's tool name `{}` is taken by another tool", clip(&import.tool_name));
            context.error_help(
                "duplicate-tool",
                node.at,
                &place.path("agent.tools.services"),
                message,
                "give it another name with `as`",
            );
        }
    }
    let names: Vec<&str> = plugin_tools
        .iter()
        .chain(&tools.builtin)
        .map(String::as_str)
        .chain(services.iter().map(|import| import.tool_name.as_str()))
        .collect();

    let llm = node.get("llm").unwrap_or(&empty);
    let choice = llm.get("toolChoice");
    let tool_choice = match choice.map(|node| &node.value) {
        Some(Yaml::Text(word)) => Some(word.clone()),
        Some(Yaml::Map(_)) => choice.and_then(|node| text(node, "name")).map(|name| format!("name:{name}")),
        _ => None,
    };
    if let Some(name) = tool_choice.as_deref().and_then(|choice| choice.strip_prefix("name:"))
        && !names.contains(&name)
    {
        let at = choice.map_or(node.at, |node| node.at);
        unknown_tool(context, at, &place.path("agent.llm.toolChoice.name"), name, &names);
    }

    let looping = node.get("loop").unwrap_or(&empty);
    let completion = looping.get("completion").unwrap_or(&empty);
    let after_tools = texts(completion, "afterTools");
    for (index, item) in completion.get("afterTools").map(Node::items).unwrap_or_default().iter().enumerate() {
        let path = place.path(&format!("agent.loop.completion.afterTools[{index}]"));
        let name = item.text().unwrap_or("");
        if services.iter().any(|import| import.tool_name == name) {
            let message = format!("`{}` is an imported service, which cannot finish a runtime", clip(name));
            context.error("completion-import", item.at, &path, message);
        } else if !names.contains(&name) && name != "runtime-done" {
            unknown_tool(context, item.at, &path, name, &names);
        }
    }

    let defer = node.get("tools").and_then(|tools| tools.get("defer"));
    if let Some(Yaml::List(items)) = defer.map(|node| &node.value) {
        for (index, item) in items.iter().enumerate() {
            let name = item.text().unwrap_or("");
            if !names.contains(&name) {
                unknown_tool(context, item.at, &place.path(&format!("agent.tools.defer[{index}]")), name, &names);
            }
        }
    }
    let history = node.get("history").unwrap_or(&empty);
    let max_retries = count(looping, "maxRetries", RETRIES);
    AgentDecl {
        model: text(node, "model"),
        reasoning_disabled: text(llm, "reasoningEffort").as_deref() == Some("disabled"),
        tool_choice,
        history_max_turns: history.get("maxTurns").map(|_| count(history, "maxTurns", 0)),
        include_summaries: flag(history, "includeSummaries", false),
        builtin_tools: tools.builtin.clone(),
        plugin_tools: plugin_tools.clone(),
        defer_all: matches!(defer.map(|node| &node.value), Some(Yaml::Bool(true))),
        defer: defer.map(Node::items).unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect(),
        advertise_events: flag(node, "advertiseEvents", false),
        max_steps: count(looping, "maxSteps", MAX_STEPS),
        timeout_ms: millis(looping, "timeoutMs", AGENT_MS),
        call_timeout_ms: millis(looping, "callTimeoutMs", CALL_MS),
        first_token_timeout_ms: millis(looping, "firstTokenTimeoutMs", STREAM_MS),
        idle_timeout_ms: millis(looping, "idleTimeoutMs", STREAM_MS),
        max_retries,
        loop_detection: count(looping, "loopDetection", LOOP_DETECTION),
        max_recursion_depth: count(looping, "maxRecursionDepth", RECURSION),
        require: text(completion, "require").and_then(|word| CompletionRequire::parse(&word)).unwrap_or_default(),
        after_tools,
        services,
    }
}

fn unknown_tool(context: &mut Context<'_>, at: crate::Position, path: &str, name: &str, names: &[&str]) {
    let message = format!("`{}` is not among the tools of this runtime", clip(name));
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "list it under `tools.builtin` or `tools.plugin`".to_owned(),
    };
    context.warning_help("unknown-tool", at, path, message, help);
}

/// `tools` of a runtime.
struct Tools {
    builtin: Vec<String>,
    /// `None` when the field is left out.
    plugin: Option<Vec<String>>,
}

impl Tools {
    fn read(context: &mut Context<'_>, place: &Place<'_>, part: &Node, key: &str, fragment: &Fragment) -> Tools {
        let Some(node) = part.get("tools") else {
            return Tools { builtin: Vec::new(), plugin: None };
        };
        let mut builtin = Vec::new();
        let add = |list: &mut Vec<String>, name: &str| {
            if !list.iter().any(|one| one == name) {
                list.push(name.to_owned());
            }
        };
        for (index, item) in node.get("builtin").map(Node::items).unwrap_or_default().iter().enumerate() {
            let Some(name) = item.text() else { continue };
            if FRAMEWORK_TOOLS.contains(&name) {
                add(&mut builtin, name);
                continue;
            }
            let path = place.path(&format!("{key}.tools.builtin[{index}]"));
            let message = format!("`{}` is not a framework tool", clip(name));
            let help = if fragment.tools.iter().any(|tool| tool == name) {
                "it is the package's own; list it under `tools.plugin`".to_owned()
            } else {
                match nearest(name, FRAMEWORK_TOOLS.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("framework tools: {}", FRAMEWORK_TOOLS.join(", ")),
                }
            };
            context.error_help("unknown-builtin-tool", item.at, &path, message, help);
        }
        let mut plugin = Vec::new();
        let listed = node.get("plugin").filter(|node| matches!(node.value, Yaml::List(_)));
        for (index, item) in listed.map(Node::items).unwrap_or_default().iter().enumerate() {
            let Some(name) = item.text() else { continue };
            if fragment.tools.iter().any(|tool| tool == name) {
                add(&mut plugin, name);
                continue;
            }
            let path = place.path(&format!("{key}.tools.plugin[{index}]"));
            if FRAMEWORK_TOOLS.contains(&name) {
                let message = format!("`{}` is a framework tool and is taken as one", clip(name));
                context.warning_help(
                    "builtin-as-plugin-tool",
                    item.at,
                    &path,
                    message,
                    "list it under `tools.builtin`",
                );
                add(&mut builtin, name);
                continue;
            }
            let message = format!("the tool `{}` is not one of `contributes.tools`", clip(name));
            let help = match nearest(name, fragment.tools.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "list it there and register it in `entry`".to_owned(),
            };
            context.error_help("undeclared-tool", item.at, &path, message, help);
        }
        Tools { builtin, plugin: listed.map(|_| plugin) }
    }
}

/// `agent.tools.services`. MFS-2
fn imports(context: &mut Context<'_>, place: &Place<'_>, agent: &Node) -> Vec<ServiceImport> {
    let mut list: Vec<ServiceImport> = Vec::new();
    let items = agent.get("tools").and_then(|tools| tools.get("services")).map(Node::items).unwrap_or_default();
    for (index, item) in items.iter().enumerate() {
        let Some(contract) = item.text().map(str::to_owned).or_else(|| text(item, "contract")) else {
            continue;
        };
        let default = || contract.split('@').next().unwrap_or("").replace('.', "-");
        let tool_name = text(item, "as").unwrap_or_else(default);
        let path = place.path(&format!("agent.tools.services[{index}]"));
        if FRAMEWORK_TOOLS.contains(&tool_name.as_str()) {
            let message = format!("the tool name `{}` is a framework tool's", clip(&tool_name));
            context.error_help("framework-tool-name", item.at, &path, message, "give it another name with `as`");
        }
        if list.iter().any(|one| one.tool_name == tool_name) {
            let message = format!("two imports have the tool name `{}`", clip(&tool_name));
            context.error_help("duplicate-tool", item.at, &path, message, "give one of them another name with `as`");
        }
        list.push(ServiceImport { contract, tool_name });
    }
    list
}
