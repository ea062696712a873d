//! Translations: `PLUGIN.zh.md` and `RUNTIME.zh.md` give Chinese instructions, `locales/<locale>.yaml` labels in any
//! language and the messages of UI and code. All of it is compiled in; nothing is looked up later.

use super::{
    ROOT, grammar,
    shape::clip,
    source::{Context, Document},
};
use crate::{
    diagnostic::{Diagnostic, Position},
    frontmatter,
    yaml::{self, Entry, Node, Yaml},
};

/// Fields a locale file may translate.
const LABELS: &[&str] = &["displayName", "description", "label", "title", "summary", "about"];
/// Fields by which list items are matched to their translation.
const KEYS: &[&str] = &["id", "name", "key"];
/// Spellings of the one instruction variant.
const CHINESE: &[&str] = &["zh", "zh-CN", "zh-Hans"];

/// What locale files give besides labels.
#[derive(Default)]
pub(super) struct Overlays {
    /// Locale to (English, translation) pairs.
    pub(super) messages: Vec<(String, Vec<(String, String)>)>,
}

/// Merges translations into the manifests.
pub(super) fn read(context: &mut Context<'_>, root: &mut Document, subs: &mut [(String, Document)]) -> Overlays {
    variants(context, root);
    for (_, document) in subs.iter_mut() {
        variants(context, document);
    }
    let mut overlays = Overlays::default();
    let files: Vec<String> = context
        .reader
        .paths()
        .filter(|path| path.strip_prefix("locales/").is_some_and(|name| !name.contains('/') && name.ends_with(".yaml")))
        .map(str::to_owned)
        .collect();
    for file in files {
        let locale = file.trim_start_matches("locales/").trim_end_matches(".yaml").replace('_', "-");
        if !grammar::is_locale(&locale) {
            let message = format!("`{}` is not a locale; the file is not read", clip(&locale));
            context.report.add(Diagnostic::warning("bad-locale", &file, Position::default(), message));
            continue;
        }
        let Some(text) = context.reader.text(&file, context.report) else {
            continue;
        };
        let node = match yaml::parse(&text, 1) {
            Ok(node) => node,
            Err(error) => {
                context.report.add(Diagnostic::error(error.code, &file, error.at, error.message));
                continue;
            }
        };
        if !matches!(node.value, Yaml::Map(_)) {
            let message = "a locale file is a map with one section for each manifest, and `messages`";
            context.report.add(Diagnostic::error("wrong-type", &file, node.at, message));
            continue;
        }
        for section in node.entries() {
            let mut overlay = Overlay { context: &mut *context, file: &file, locale: &locale };
            if section.key == "messages" {
                let pairs = overlay.messages(&section.node);
                overlays.messages.push((locale.clone(), pairs));
            } else if section.key == ROOT {
                overlay.merge(&mut root.node, &section.node);
            } else if let Some((_, document)) = subs.iter_mut().find(|(_, document)| document.file == section.key) {
                overlay.merge(&mut document.node, &section.node);
            } else {
                let message = format!("`{}` is no manifest of this package", clip(&section.key));
                overlay.ignored(section.key_at, message);
            }
        }
    }
    overlays
}

struct Overlay<'a, 'b> {
    context: &'a mut Context<'b>,
    file: &'a str,
    locale: &'a str,
}

impl Overlay<'_, '_> {
    fn ignored(&mut self, at: Position, message: String) {
        let found = Diagnostic::warning("overlay-ignored", self.file, at, message)
            .with_help(format!("a locale file translates only {}", LABELS.join(", ")));
        self.context.report.add(found);
    }

    fn merge(&mut self, base: &mut Node, overlay: &Node) {
        match (&mut base.value, &overlay.value) {
            (Yaml::Map(entries), Yaml::Map(translations)) => {
                for translation in translations {
                    self.merge_entry(entries, translation);
                }
            }
            (Yaml::List(items), Yaml::List(translations)) => {
                for (place, translation) in translations.iter().enumerate() {
                    let key = KEYS.iter().find_map(|key| Some((*key, translation.get(key)?.text()?)));
                    let found = match key {
                        Some((key, value)) => {
                            items.iter_mut().find(|item| item.get(key).and_then(Node::text) == Some(value))
                        }
                        None => items.get_mut(place),
                    };
                    match found {
                        Some(item) => self.merge(item, translation),
                        None => self.ignored(translation.at, "the manifest has no such list item".to_owned()),
                    }
                }
            }
            (_, Yaml::Null) => {}
            _ => self.ignored(overlay.at, "this has another form than in the manifest".to_owned()),
        }
    }

    fn merge_entry(&mut self, entries: &mut [Entry], translation: &Entry) {
        let key = translation.key.as_str();
        let Some(entry) = entries.iter_mut().find(|entry| entry.key == key) else {
            self.ignored(translation.key_at, format!("the manifest has no `{}` here", clip(key)));
            return;
        };
        if LABELS.contains(&key) && matches!(translation.node.value, Yaml::Text(_)) {
            self.translate(&mut entry.node, &translation.node);
        } else if matches!(translation.node.value, Yaml::Map(_) | Yaml::List(_)) {
            self.merge(&mut entry.node, &translation.node);
        } else if !KEYS.contains(&key) {
            self.ignored(translation.key_at, format!("`{}` is not a text that is translated", clip(key)));
        }
    }

    /// Adds a locale to a label.
    fn translate(&mut self, base: &mut Node, translation: &Node) {
        let entry = Entry { key: self.locale.to_owned(), key_at: translation.at, node: translation.clone() };
        match &mut base.value {
            Yaml::Text(english) => {
                let english = Node::new(base.at, Yaml::Text(std::mem::take(english)));
                base.value = Yaml::Map(vec![Entry { key: "en".to_owned(), key_at: base.at, node: english }, entry]);
            }
            Yaml::Map(locales) => match locales.iter_mut().find(|one| one.key.eq_ignore_ascii_case(self.locale)) {
                Some(one) => *one = entry,
                None => locales.push(entry),
            },
            _ => {}
        }
    }

    fn messages(&mut self, node: &Node) -> Vec<(String, String)> {
        if !matches!(node.value, Yaml::Map(_) | Yaml::Null) {
            let found =
                Diagnostic::error("wrong-type", self.file, node.at, "`messages` is a map from English to translation");
            self.context.report.add(found);
        }
        let mut pairs = Vec::new();
        for entry in node.entries() {
            match entry.node.text() {
                Some(text) => pairs.push((entry.key.clone(), text.to_owned())),
                None => {
                    let found = Diagnostic::error("wrong-type", self.file, entry.node.at, "a translation is a string");
                    self.context.report.add(found);
                }
            }
        }
        pairs
    }
}

/// Reads the Chinese variant of a manifest; other variant languages are not read.
fn variants(context: &mut Context<'_>, document: &mut Document) {
    let Some(stem) = document.file.strip_suffix(".md").map(str::to_owned) else {
        return;
    };
    let mut found: Option<String> = None;
    let paths: Vec<String> = context.reader.paths().filter(|path| path.starts_with(&stem)).map(str::to_owned).collect();
    for path in paths {
        let Some(language) = path[stem.len()..].strip_prefix('.').and_then(|rest| rest.strip_suffix(".md")) else {
            continue;
        };
        if CHINESE.contains(&language) {
            if let Some(first) = &found {
                let message = format!("`{first}` is read already; this variant is not");
                context.report.add(Diagnostic::warning("variant-duplicate", &path, Position::default(), message));
            } else {
                found = Some(path);
            }
        } else {
            let message = format!("instructions have a Chinese variant only; `{}` is not read", clip(language));
            let found = Diagnostic::warning("variant-language", &path, Position::default(), message)
                .with_help("put translated labels into `locales/<locale>.yaml`");
            context.report.add(found);
        }
    }
    if let Some(path) = found {
        variant(context, document, &path);
    }
}

fn variant(context: &mut Context<'_>, document: &mut Document, path: &str) {
    let Some(text) = context.reader.text(path, context.report) else {
        return;
    };
    let parts = match frontmatter::split(&text) {
        Ok(parts) => parts,
        Err(error) => {
            context.report.add(Diagnostic::error(error.code, path, error.at, error.message).with_help(error.help));
            return;
        }
    };
    let node = match yaml::parse(parts.yaml, parts.first_line) {
        Ok(node) => node,
        Err(error) => {
            context.report.add(Diagnostic::error(error.code, path, error.at, error.message));
            return;
        }
    };
    if !parts.body.is_empty() {
        document.body_zh = Some(parts.body.to_owned());
    }
    for entry in node.entries() {
        if entry.key == "contributes" {
            for section in entry.node.entries() {
                if section.key == "prompt" {
                    prompt_parts(context, document, path, &section.node);
                } else {
                    drift(context, path, section.key_at, &format!("contributes.{}", section.key));
                }
            }
        } else if document.node.get(&entry.key).map(Node::to_json) != Some(entry.node.to_json()) {
            drift(context, path, entry.key_at, &entry.key);
        }
    }
}

fn prompt_parts(context: &mut Context<'_>, document: &mut Document, path: &str, node: &Node) {
    let canonical = document.node.get("contributes").and_then(|node| node.get("prompt"));
    let ids: Vec<Option<String>> = canonical
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .map(|item| item.get("id")?.text().map(str::to_owned))
        .collect();
    for (place, item) in node.items().iter().enumerate() {
        // As in locale files: a part without an id stands for the one in the same place.
        let id = match item.get("id") {
            Some(id) => ids.iter().flatten().find(|known| id.text() == Some(known)),
            None => ids.get(place).and_then(Option::as_ref),
        };
        match (id, item.get("content").and_then(Node::text)) {
            (Some(id), Some(content)) => document.prompts_zh.push((id.clone(), content.to_owned())),
            _ => drift(context, path, item.at, &format!("contributes.prompt[{place}]")),
        }
    }
}

fn drift(context: &mut Context<'_>, path: &str, at: Position, what: &str) {
    let message = format!("`{what}` differs from the English manifest, whose value is kept");
    let found = Diagnostic::warning("variant-drift", path, at, message)
        .with_help("a variant gives only the body and the `content` of prompt parts");
    context.report.add(found);
}
