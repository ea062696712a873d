//! Characters as one line each, for prompts.

use serde_json::Value;

/// Characters of a description, and of the fields, that are shown.
const PART_CHARS: usize = 400;
/// Characters of all lines together; whoever comes later is only named.
const TOTAL_CHARS: usize = 8_000;

/// `name (aka a, b) [type] | description | fields`, on one line.
pub(crate) fn line(character: &Value) -> String {
    let text = |name: &str| character.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut line = text("name").to_owned();
    let aliases: Vec<&str> =
        character.get("aliases").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !aliases.is_empty() {
        line.push_str(&format!(" (aka {})", aliases.join(", ")));
    }
    line.push_str(&format!(" [{}]", text("type")));
    let fields = character.get("fields").filter(|fields| fields.as_object().is_some_and(|map| !map.is_empty()));
    for part in [Some(text("description").to_owned()), fields.map(Value::to_string)].into_iter().flatten() {
        if !part.is_empty() {
            line.push_str(" | ");
            line.push_str(&cut(&part));
        }
    }
    line.replace(['\n', '\r'], " ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(PART_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Everyone but players, a line each.
pub(crate) fn others(characters: &[Value]) -> String {
    let mut lines = Vec::new();
    let mut left = TOTAL_CHARS;
    for character in characters.iter().filter(|one| one.get("type").and_then(Value::as_str) != Some("player")) {
        let whole = format!("- {}", line(character));
        let length = whole.chars().count();
        if length <= left {
            left -= length;
            lines.push(whole);
        } else {
            left = 0;
            lines.push(format!("- {}", character.get("name").and_then(Value::as_str).unwrap_or_default()));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_cut_and_the_rest_is_only_named() {
        let long = "x".repeat(500);
        let characters: Vec<Value> = (0..40)
            .map(|at| json!({"name": format!("N{at}"), "type": "npc", "description": long, "fields": {}}))
            .chain([json!({"name": "Me", "type": "player"})])
            .collect();
        let text = others(&characters);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 40);
        assert!(lines[0].ends_with('…') && lines[0].chars().count() < 430, "{}", lines[0]);
        assert_eq!(lines[39], "- N39");
        let full = json!({"name": "Ana", "type": "npc", "aliases": ["A", "B"], "description": "Tall.\nThin.", "fields": {"hp": 1}});
        assert_eq!(line(&full), "Ana (aka A, B) [npc] | Tall. Thin. | {\"hp\":1}");
    }
}
