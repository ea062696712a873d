//! The shape language: manifests are described as static tables, and one walker checks a document against them.
//!
//! The tables (in `tables.rs`) are the single source for field names, types, grammars, ranges, the fields of the
//! older format, and the JSON Schema that editors use. The walker reports every problem it meets and goes on;
//! reading values afterwards can therefore take what fits and pass over the rest.

use super::grammar::Grammar;
use crate::{
    diagnostic::{Diagnostic, Position},
    report::{Report, nearest},
    yaml::{Node, Yaml},
};

/// What a value may be.
pub(crate) enum Shape {
    /// Anything.
    Any,
    /// `true` or `false`.
    Bool,
    /// A string of a grammar.
    Text(&'static Grammar),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number in a range.
    Int(i64, i64),
    /// Any finite number.
    Number,
    /// A string or a locale map, not empty, each text at most so many characters.
    Label(usize),
    /// A list.
    List(&'static ListShape),
    /// A map with free keys.
    Map(&'static MapShape),
    /// A map with known keys.
    Object(&'static Fields),
    /// The first alternative of the value's own kind.
    Either(&'static [Shape]),
}

/// A list.
pub(crate) struct ListShape {
    pub(crate) of: Shape,
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// No value twice.
    pub(crate) unique: bool,
}

/// A map with free keys.
pub(crate) struct MapShape {
    pub(crate) key: &'static Grammar,
    pub(crate) of: Shape,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// A map with known keys.
pub(crate) struct Fields {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Keys that are not known are let through.
    pub(crate) open: bool,
    /// Keys that used to be here or belong elsewhere, and what to write now.
    pub(crate) moved: &'static [Moved],
}

/// A known key.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
    /// One line for editors.
    pub(crate) doc: &'static str,
}

/// A key that is refused with advice.
pub(crate) struct Moved {
    pub(crate) name: &'static str,
    pub(crate) code: &'static str,
    pub(crate) advice: &'static str,
}

/// Checks a document.
pub(crate) fn check(file: &str, node: &Node, fields: &'static Fields, report: &mut Report) {
    Checker { file, report, path: String::new() }.object(node, fields);
}

struct Checker<'a> {
    file: &'a str,
    report: &'a mut Report,
    path: String,
}

impl Checker<'_> {
    fn error(&mut self, code: &str, at: Position, message: String, help: Option<String>) {
        let mut diagnostic = Diagnostic::error(code, self.file, at, message);
        diagnostic.help = help;
        if !self.path.is_empty() {
            diagnostic.path = Some(self.path.clone());
        }
        self.report.add(diagnostic);
    }

    /// Runs with a longer field path.
    fn within(&mut self, key: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if !self.path.is_empty() && !key.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(key);
        then(self);
        self.path.truncate(length);
    }

    fn wrong_type(&mut self, node: &Node, expected: &str) {
        let quoted = matches!(node.value, Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_)) && expected.contains("string");
        let help = if quoted { "put the value in quotes".to_owned() } else { format!("write {expected}") };
        self.error("wrong-type", node.at, format!("expected {expected}, found {}", node.kind()), Some(help));
    }

    fn shape(&mut self, node: &Node, shape: &'static Shape) {
        match shape {
            Shape::Any => {}
            Shape::Bool => {
                if !matches!(node.value, Yaml::Bool(_)) {
                    self.wrong_type(node, "`true` or `false`");
                }
            }
            Shape::Text(grammar) => match node.text() {
                Some(text) => self.grammar(text, node.at, grammar),
                None => self.wrong_type(node, "a string"),
            },
            Shape::Word(words) => match node.text() {
                Some(text) if words.contains(&text) => {}
                Some(text) => {
                    let help = match nearest(text, words.iter().copied()) {
                        Some(near) => {
                            format!("did you mean `{near}`? accepted: {}", words.join(", "))
                        }
                        None => format!("accepted: {}", words.join(", ")),
                    };
                    self.error("unknown-word", node.at, format!("`{}` is not accepted here", clip(text)), Some(help));
                }
                None => self.wrong_type(node, "a string"),
            },
            Shape::Int(min, max) => match node.value {
                Yaml::Int(value) if (*min..=*max).contains(&value) => {}
                Yaml::Int(value) => {
                    let help = match (*min, *max) {
                        (min, i64::MAX) => format!("write a whole number of at least {min}"),
                        (min, max) => format!("write a whole number from {min} to {max}"),
                    };
                    self.error("out-of-range", node.at, format!("{value} is out of range"), Some(help));
                }
                _ => self.wrong_type(node, "a whole number"),
            },
            Shape::Number => match node.value {
                Yaml::Int(_) => {}
                Yaml::Float(value) if value.is_finite() => {}
                Yaml::Float(_) => self.error("out-of-range", node.at, "the number is not finite".into(), None),
                _ => self.wrong_type(node, "a number"),
            },
            Shape::Label(max) => self.label(node, *max),
            Shape::List(list) => self.list(node, list),
            Shape::Map(map) => self.map(node, map),
            Shape::Object(fields) => self.object(node, fields),
            Shape::Either(shapes) => match shapes.iter().find(|shape| same_kind(node, shape)) {
                Some(shape) => self.shape(node, shape),
                None => {
                    let expected: Vec<&str> = shapes.iter().map(kind_name).collect();
                    self.wrong_type(node, &expected.join(" or "));
                }
            },
        }
    }

    fn grammar(&mut self, text: &str, at: Position, grammar: &'static Grammar) {
        if !(grammar.check)(text) {
            self.error(
                grammar.code,
                at,
                format!("`{}` is not {}", clip(text), grammar.name),
                Some(grammar.help.to_owned()),
            );
        } else if text.chars().count() > grammar.max {
            let message = format!("this is longer than {} characters", grammar.max);
            self.error("too-long", at, message, None);
        }
    }

    fn label(&mut self, node: &Node, max: usize) {
        match &node.value {
            Yaml::Text(text) => self.label_text(text, node.at, max),
            Yaml::Map(entries) if entries.is_empty() => {
                self.error("empty-text", node.at, "the text is empty".into(), Some("give at least one locale".into()));
            }
            Yaml::Map(entries) => {
                for entry in entries {
                    if !super::grammar::is_locale(&entry.key) {
                        let message = format!("`{}` is not a locale", clip(&entry.key));
                        let help = "write a language tag such as `en`, `zh` or `pt-BR`".to_owned();
                        self.error("bad-locale", entry.key_at, message, Some(help));
                    }
                    self.within(&entry.key, |this| match entry.node.text() {
                        Some(text) => this.label_text(text, entry.node.at, max),
                        None => this.wrong_type(&entry.node, "a string"),
                    });
                }
            }
            _ => self.wrong_type(node, "a string or a map from locale to string"),
        }
    }

    fn label_text(&mut self, text: &str, at: Position, max: usize) {
        if text.trim().is_empty() {
            self.error("empty-text", at, "the text is empty".into(), None);
        } else if text.chars().count() > max {
            self.error("too-long", at, format!("this is longer than {max} characters"), None);
        }
    }

    fn list(&mut self, node: &Node, list: &'static ListShape) {
        let Yaml::List(items) = &node.value else {
            self.wrong_type(node, "a list");
            return;
        };
        if items.len() < list.min {
            let message = format!("the list needs at least {} item(s)", list.min);
            self.error("list-too-short", node.at, message, None);
        }
        if items.len() > list.max {
            let message = format!("the list has {} items; at most {} are accepted", items.len(), list.max);
            self.error("list-too-long", node.at, message, None);
            return;
        }
        let mut seen = std::collections::HashSet::new();
        for (place, item) in items.iter().enumerate() {
            self.within(&format!("[{place}]"), |this| {
                this.shape(item, &list.of);
                if let (true, Some(text)) = (list.unique, item.text())
                    && !seen.insert(text)
                {
                    this.error("duplicate-item", item.at, format!("`{}` is listed twice", clip(text)), None);
                }
            });
        }
    }

    fn map(&mut self, node: &Node, map: &'static MapShape) {
        let Yaml::Map(entries) = &node.value else {
            self.wrong_type(node, "a map");
            return;
        };
        if entries.len() < map.min {
            self.error("map-too-short", node.at, format!("at least {} entry is needed", map.min), None);
        }
        if entries.len() > map.max {
            let message = format!("there are {} entries; at most {} are accepted", entries.len(), map.max);
            self.error("map-too-long", node.at, message, None);
            return;
        }
        for entry in entries {
            self.within(&entry.key, |this| {
                this.grammar(&entry.key, entry.key_at, map.key);
                this.shape(&entry.node, &map.of);
            });
        }
    }

    fn object(&mut self, node: &Node, fields: &'static Fields) {
        let Yaml::Map(entries) = &node.value else {
            self.wrong_type(node, "a map");
            return;
        };
        for entry in entries {
            match fields.fields.iter().find(|field| field.name == entry.key) {
                Some(field) => self.within(&entry.key, |this| {
                    // An empty value is an absent optional field: `agent:` with nothing after it.
                    if entry.node.value == Yaml::Null && !field.required && !matches!(field.shape, Shape::Any) {
                        return;
                    }
                    this.shape(&entry.node, &field.shape);
                }),
                None => self.unknown(entry, fields),
            }
        }
        for field in fields.fields.iter().filter(|field| field.required) {
            if node.get(field.name).is_none() {
                let message = format!("{} needs the field `{}`", fields.name, field.name);
                self.error("missing-field", node.at, message, Some(field.doc.to_owned()));
            }
        }
    }

    fn unknown(&mut self, entry: &crate::yaml::Entry, fields: &'static Fields) {
        let key = entry.key.as_str();
        if let Some(moved) = fields.moved.iter().find(|moved| moved.name == key) {
            self.within(key, |this| {
                let message = match moved.code {
                    "v1-field" => format!("`{key}` belongs to the older flat manifest format, which is not read"),
                    _ => format!("`{key}` is not accepted in {}", fields.name),
                };
                this.error(moved.code, entry.key_at, message, Some(moved.advice.to_owned()));
            });
            return;
        }
        if fields.open {
            return;
        }
        if self.report.is_full() {
            self.error("unknown-field", entry.key_at, String::new(), None);
            return;
        }
        let known = fields.fields.iter().map(|field| field.name);
        let help = match nearest(key, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("accepted: {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.within(&clip(key), |this| {
            let message = format!("{} has no field `{}`", fields.name, clip(key));
            this.error("unknown-field", entry.key_at, message, Some(help));
        });
    }
}

fn same_kind(node: &Node, shape: &Shape) -> bool {
    match (&node.value, shape) {
        (_, Shape::Any)
        | (Yaml::Bool(_), Shape::Bool)
        | (Yaml::Text(_), Shape::Text(_) | Shape::Word(_) | Shape::Label(_))
        | (Yaml::Int(_), Shape::Int(..) | Shape::Number)
        | (Yaml::Float(_), Shape::Number)
        | (Yaml::List(_), Shape::List(_))
        | (Yaml::Map(_), Shape::Map(_) | Shape::Object(_) | Shape::Label(_)) => true,
        (_, Shape::Either(shapes)) => shapes.iter().any(|shape| same_kind(node, shape)),
        _ => false,
    }
}

fn kind_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "anything",
        Shape::Bool => "`true` or `false`",
        Shape::Text(_) | Shape::Word(_) => "a string",
        Shape::Int(..) => "a whole number",
        Shape::Number => "a number",
        Shape::Label(_) => "a string or a map from locale to string",
        Shape::List(_) => "a list",
        Shape::Map(_) | Shape::Object(_) => "a map",
        Shape::Either(_) => "one of several kinds",
    }
}

/// The start of a text, for messages.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        text.escape_debug().to_string()
    } else {
        let start: String = text.chars().take(SHOWN).collect();
        format!("{}...", start.escape_debug())
    }
}
