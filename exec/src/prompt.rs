//! What an agent is told.
//!
//! The system prompt holds only what stays the same from turn to turn; everything of this turn goes into one
//! message just before the player's words, so that providers can cache the prefix.

use std::fmt::Write as _;

use covel_graph::{
    Json,
    fragment::{PromptPosition, RuntimeDecl, SelfDataFormat, Visibility},
};
use covel_model::{Message, Role};
use serde_json::Value;

use crate::{
    call_host::RuntimeCall, limits::DEFAULT_HISTORY_MESSAGES, session::MessageRecord, world::seat, world::sheet,
};

/// Everything an agent prompt is made of.
pub struct PromptParts<'a> {
    /// The runtime's host: settings, own data, session.
    pub call: &'a RuntimeCall,
    /// Its declaration.
    pub decl: &'a RuntimeDecl,
    /// Bound inputs.
    pub inputs: &'a [(String, Json)],
    /// Triggering event.
    pub trigger: Option<&'a (String, Json)>,
    /// Story prose of earlier stages of this execution.
    pub prose: &'a [String],
    /// Events that may be emitted: topic, description, schema.
    pub topics: &'a [(String, String, String)],
}

/// Is this language served by the Chinese instructions?
pub fn speaks_chinese(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase().replace('_', "-");
    locale == "zh" || locale == "zh-cn" || locale == "zh-hans" || locale.starts_with("zh-hans-")
}

/// The system prompt.
pub fn system_prompt(parts: &PromptParts<'_>) -> String {
    let shared = parts.call.shared();
    let zh = speaks_chinese(&shared.session.locale);
    let package = &shared.plan.packages[shared.plan.plugin_ix(parts.call.runtime()) as usize];
    let mut sections = vec![preamble(parts, zh)];
    let body = if zh { parts.decl.prompt_zh.as_ref().unwrap_or(&parts.decl.prompt) } else { &parts.decl.prompt };
    sections.push(interpolate(body.trim(), &variables(parts, body)));
    for prompt in &package.fragment().prompts {
        if prompt.position == PromptPosition::System
            || (prompt.position == PromptPosition::PreHistory && prompt.role == "system")
        {
            sections.push(localised(prompt, zh).trim().to_owned());
        }
    }
    if !parts.topics.is_empty() {
        let mut block = String::from("<available-events>\n");
        for (topic, description, schema) in parts.topics {
            let _ = writeln!(block, "- {topic}: {} | {}", escape(description), escape(schema));
        }
        block.push_str("</available-events>");
        sections.push(block);
    }
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

fn localised(prompt: &covel_graph::fragment::PromptDecl, zh: bool) -> &str {
    if zh { prompt.content_zh.as_deref().unwrap_or(&prompt.content) } else { &prompt.content }
}

fn preamble(parts: &PromptParts<'_>, zh: bool) -> String {
    let shared = parts.call.shared();
    let id = shared.plan.runtime_id(parts.call.runtime());
    let locale = &shared.session.locale;
    let story = parts.decl.visibility == Visibility::Story;
    let completion = match (story, parts.decl.output.schema.is_some(), zh) {
        (true, _, false) => "Answer with the story prose itself; no headings, no notes.",
        (true, _, true) => "直接用故事正文作答，不要标题和说明。",
        (false, true, false) => "Answer with one JSON value that fits the output schema, or call a finishing tool.",
        (false, true, true) => "用一个符合输出 schema 的 JSON 值作答，或调用结束用的工具。",
        (false, false, false) => "Call the tools you need, then call runtime-done.",
        (false, false, true) => "调用需要的工具，完成后调用 runtime-done。",
    };
    if zh {
        format!("[RUNTIME] {id}\n[LANGUAGE] 输出语言：{locale}\n[COMPLETION] {completion}")
    } else {
        format!("[RUNTIME] {id}\n[LANGUAGE] Write in: {locale}\n[COMPLETION] {completion}")
    }
}

/// Messages after the system prompt.
pub fn messages(parts: &PromptParts<'_>) -> Vec<Message> {
    let shared = parts.call.shared();
    let mut messages = Vec::new();
    let zh = speaks_chinese(&shared.session.locale);
    let package = &shared.plan.packages[shared.plan.plugin_ix(parts.call.runtime()) as usize];
    for prompt in &package.fragment().prompts {
        if prompt.position == PromptPosition::PreHistory && prompt.role != "system" {
            messages.push(Message::new(role(&prompt.role), localised(prompt, zh)));
        }
    }
    let history_starts = messages.len();
    let window = parts.decl.agent.as_ref().and_then(|agent| agent.history_max_turns);
    for message in history(shared.history(), window) {
        messages.push(Message::new(role(&message.role), message.content.clone()));
    }
    let context = turn_context(parts);
    if !context.is_empty() {
        messages.push(Message::new(Role::System, context));
    }
    if !shared.message.is_empty() {
        messages.push(Message::new(Role::User, shared.message.clone()));
    }
    for prose in parts.prose {
        messages.push(Message::new(Role::Assistant, prose.clone()));
        messages.push(Message::new(
            Role::User,
            if zh {
                "（以上是本回合刚写好的故事。）"
            } else {
                "(The text above was written this turn.)"
            },
        ));
    }
    for prompt in &package.fragment().prompts {
        let message = || Message::new(role(&prompt.role), localised(prompt, zh));
        match prompt.position {
            PromptPosition::PostHistory => messages.push(message()),
            PromptPosition::Depth => {
                let depth = usize::try_from(prompt.depth).unwrap_or(usize::MAX);
                let at = messages.len().saturating_sub(depth).max(history_starts);
                messages.insert(at, message());
            }
            PromptPosition::System | PromptPosition::PreHistory => {}
        }
    }
    messages
}

fn role(word: &str) -> Role {
    match word {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::System,
    }
}

/// The stored messages an agent sees: whole turns, newest last.
fn history(all: &[MessageRecord], max_turns: Option<u32>) -> &[MessageRecord] {
    let Some(max_turns) = max_turns else {
        return &all[all.len().saturating_sub(DEFAULT_HISTORY_MESSAGES)..];
    };
    let (mut turns, mut last) = (0u32, None);
    let mut start = all.len();
    for (at, message) in all.iter().enumerate().rev() {
        if last != Some(&message.turn_id) {
            turns += 1;
            last = Some(&message.turn_id);
            if turns > max_turns {
                break;
            }
        }
        start = at;
    }
    &all[start..]
}

/// Data of this turn: own records, inputs, what started the runtime.
fn turn_context(parts: &PromptParts<'_>) -> String {
    let mut out = String::new();
    for own in &parts.decl.self_data {
        let Ok(rows) = parts.call.list(&own.namespace) else { continue };
        let tag = own.tag.trim_matches(|c| c == '<' || c == '>');
        let _ = writeln!(out, "<{tag}>");
        for row in shown(&rows, own.max_entries as usize) {
            let _ = match own.format {
                SelfDataFormat::IdsOnly => writeln!(out, "- {}", escape(&row.key)),
                SelfDataFormat::Full => writeln!(out, "- {} | {}", escape(&row.key), escape(row.value.text())),
                SelfDataFormat::Summary => {
                    let short: String = row.value.text().chars().take(200).collect();
                    writeln!(out, "- {} | {}", escape(&row.key), escape(&short))
                }
            };
        }
        let _ = writeln!(out, "</{tag}>");
    }
    if !parts.inputs.is_empty() {
        out.push_str("<runtime-inputs>\n");
        for (name, slot) in parts.inputs {
            let value = slot.value();
            let shown = match value.get("value") {
                Some(value) => value.clone(),
                None => Value::Array(
                    value["items"].as_array().into_iter().flatten().map(|item| item["value"].clone()).collect(),
                ),
            };
            let text = if parts.prose.iter().any(|prose| shown.as_str() == Some(prose)) {
                "(the story text of this turn, below)".to_owned()
            } else {
                shown.to_string()
            };
            let _ = writeln!(out, "<{name}>{}</{name}>", escape(&text));
        }
        out.push_str("</runtime-inputs>\n");
    }
    let shared = parts.call.shared();
    let id = shared.plan.runtime_id(parts.call.runtime());
    let mut lost = shared.given.not_applied.iter().filter(|one| one.runtime_id == id).peekable();
    if lost.peek().is_some() {
        // What it asked other packages to change in the turn before, and did not come about. WSV-10
        out.push_str("<operations-not-applied>\n");
        for one in lost {
            let _ = writeln!(out, "- {} ({}): {}", one.contract, one.provider_plugin_id, escape(&one.code));
        }
        out.push_str("</operations-not-applied>\n");
    }
    if let Some((topic, data)) = parts.trigger {
        let _ = writeln!(out, "<runtime-activation topic=\"{topic}\">{}</runtime-activation>", escape(data.text()));
    }
    out.trim_end().to_owned()
}

/// Above the limit, the oldest half and the newest half.
fn shown(rows: &[covel_abi::DataRow], max: usize) -> impl Iterator<Item = &covel_abi::DataRow> {
    let (head, tail) = if rows.len() <= max { (rows.len(), 0) } else { (max.div_ceil(2), max / 2) };
    rows[..head].iter().chain(rows[rows.len() - tail..].iter())
}

/// Text inside a data block can neither close it nor open another.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Template variables of a runtime body.
fn variables(parts: &PromptParts<'_>, body: &str) -> Value {
    let shared = parts.call.shared();
    let settings = shared.settings[shared.plan.plugin_ix(parts.call.runtime()) as usize].value().clone();
    let mut variables = serde_json::json!({
        "session": {"id": shared.session.id, "turnNumber": shared.logical_turn},
        "world": shared.world_record(),
        "userSettings": settings,
        "player": {"message": shared.message},
    });
    // What a body does not name is not read: reading characters depends on whoever wrote them. RDD-4
    if body.contains("characters.") || body.contains("player.character") {
        let found = parts.call.world_part("characters").unwrap_or_else(|_| Json::null());
        let characters = found.value().as_array().map(Vec::as_slice).unwrap_or_default();
        variables["characters"] = serde_json::json!({ "npcs": sheet::others(characters) });
        let acting = seat::primary(&shared.session.seats).and_then(|seat| seat.current_character_id.as_deref());
        let own = characters.iter().find(|one| acting.is_some() && one["id"].as_str() == acting);
        variables["player"]["character"] = own.map_or_else(String::new, sheet::line).into();
    }
    for (name, part) in [("dimensions", "dimensions"), ("schema", "characterSchema")] {
        if body.contains(&format!("world.{name}")) {
            // Without a world the record is null; its place is taken by what the session has.
            if variables["world"].is_null() {
                variables["world"] = Value::Object(serde_json::Map::new());
            }
            let read = parts.call.world_part(part);
            variables["world"][name] = read.map_or(Value::Null, |part| part.value().clone());
        }
    }
    variables
}

/// Replaces `{{ path }}` once, by own properties only; unknown paths stay as they are.
pub fn interpolate(body: &str, variables: &Value) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        out.push_str(&rest[..start]);
        let path = rest[start + 2..start + length].trim();
        let found = path.split('.').try_fold(variables, |value, name| match value {
            Value::Object(map) => map.get(name),
            _ => None,
        });
        match found {
            Some(Value::String(text)) => out.push_str(text),
            Some(Value::Null) => {}
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&rest[start..start + length + 2]),
        }
        rest = &rest[start + length + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interpolation_is_done_once_and_by_own_names() {
        let variables = json!({"a": {"b": "{{ a.c }}", "n": 3}, "z": null});
        for (body, expected) in [
            ("x {{ a.b }} y", "x {{ a.c }} y"),
            ("{{a.n}}{{z}}.", "3."),
            ("{{ a.toString }} {{ constructor }}", "{{ a.toString }} {{ constructor }}"),
            ("open {{ a.b", "open {{ a.b"),
        ] {
            assert_eq!(interpolate(body, &variables), expected);
        }
    }

    #[test]
    fn a_history_window_keeps_whole_turns() {
        let message = |turn: &str| MessageRecord {
            id: String::new(),
            turn_id: turn.into(),
            role: "user".into(),
            content: turn.into(),
            source_type: "player".into(),
            source_plugin_id: None,
            source_runtime_id: None,
            created_at: String::new(),
        };
        let all = [message("1"), message("1"), message("2"), message("3"), message("3")];
        assert_eq!(history(&all, Some(2)).len(), 3);
        assert_eq!(history(&all, Some(0)).len(), 0);
        assert_eq!(history(&all, Some(9)).len(), 5);
        assert_eq!(history(&all, None).len(), 5);
    }
}
