//! Translation of UI specs. Specs hold English; where a package's catalogue has a text in other languages, the text
//! becomes a map from locale to string, and the page picks.

use serde_json::{Map, Value};

use crate::limits;

type Messages = [(String, Vec<(String, String)>)];

const PROPERTIES: &[&str] = &[
    "label",
    "title",
    "content",
    "message",
    "text",
    "description",
    "placeholder",
    "footer",
    "tooltip",
    "hint",
    "help",
    "summary",
    "subtitle",
];
const ENDINGS: &[&str] = &["Label", "Title", "Message", "Text", "Placeholder", "Description", "Hint", "Tooltip"];
/// What is below these is data, not text.
const DATA: &[&str] = &["on", "watch", "dataSource"];

/// The spec with its texts as locale maps.
pub(super) fn translated(mut spec: Value, messages: &Messages) -> Value {
    if !messages.is_empty() {
        walk(&mut spec, messages, 0);
    }
    spec
}

fn walk(value: &mut Value, messages: &Messages, depth: usize) {
    if depth > limits::MAX_SPEC_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, messages, depth + 1)),
        Value::Object(object) => {
            for (name, part) in object.iter_mut() {
                if DATA.contains(&name.as_str()) || name.ends_with("PropMap") {
                    continue;
                }
                match part {
                    Value::String(text) if is_text(name) => {
                        if let Some(map) = lookup(name, text, messages) {
                            *part = Value::Object(map);
                        }
                    }
                    _ => walk(part, messages, depth + 1),
                }
            }
        }
        _ => {}
    }
}

fn is_text(name: &str) -> bool {
    PROPERTIES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A translation for this property (`prop|English`) goes before one for the text anywhere.
fn lookup(name: &str, text: &str, messages: &Messages) -> Option<Map<String, Value>> {
    let special = format!("{name}|{text}");
    let mut map = Map::new();
    for (locale, pairs) in messages {
        let find = |english: &str| pairs.iter().find(|(key, _)| key == english).map(|(_, translation)| translation);
        if let Some(translation) = find(&special).or_else(|| find(text)) {
            map.insert(locale.clone(), Value::String(translation.clone()));
        }
    }
    if map.is_empty() {
        return None;
    }
    map.entry("en").or_insert_with(|| Value::String(text.to_owned()));
    Some(map)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_become_locale_maps_and_data_stays() {
        let pair = |english: &str, other: &str| (english.to_owned(), other.to_owned());
        let messages = vec![(
            "zh-CN".to_owned(),
            vec![pair("Quests", "任务"), pair("Open", "打开"), pair("label|Open", "进行中")],
        )];
        let spec = json!({
            "id": "Quests",
            "label": "Quests",
            "view": {
                "component": "Badge",
                "props": { "label": "Open", "title": "Open", "content": "Unknown", "itemPropMap": { "label": "Open" } },
                "on": { "click": { "action": "x", "params": { "label": "Open" } } }
            }
        });
        assert_eq!(
            translated(spec, &messages),
            json!({
                "id": "Quests",
                "label": { "zh-CN": "任务", "en": "Quests" },
                "view": {
                    "component": "Badge",
                    "props": {
                        "label": { "zh-CN": "进行中", "en": "Open" },
                        "title": { "zh-CN": "打开", "en": "Open" },
                        "content": "Unknown",
                        "itemPropMap": { "label": "Open" }
                    },
                    "on": { "click": { "action": "x", "params": { "label": "Open" } } }
                }
            })
        );
    }

    #[test]
    fn a_very_deep_spec_is_left_alone_below_the_limit() {
        let mut spec = json!({ "label": "Quests" });
        for _ in 0..200 {
            spec = json!({ "children": [spec] });
        }
        let messages = vec![("zh".to_owned(), vec![("Quests".to_owned(), "任务".to_owned())])];
        assert!(!translated(spec, &messages).to_string().contains("任务"));
    }
}
