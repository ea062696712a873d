//! YAML as a tree with positions, read under strict bounds.
//!
//! Depth, node count and text volume are bounded while the tree is built, aliases included, so that a small
//! document can never unfold into a large one. Plain scalars follow the YAML 1.2 core schema.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Tag};

use crate::{
    diagnostic::Position,
    limits::{MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, MAX_DOCUMENT_NODES},
};

/// A value and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Yaml,
}

/// A YAML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One key of a map, in document order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Position,
    pub(crate) node: Node,
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlError {
    pub(crate) code: &'static str,
    pub(crate) at: Position,
    pub(crate) message: String,
}

impl Node {
    pub(crate) fn new(at: Position, value: Yaml) -> Self {
        Self { at, value }
    }

    /// The value of a map key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Entries of a map; empty for anything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Yaml::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Items of a list; empty for anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Yaml::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Yaml::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What the value is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Yaml::Null => "nothing",
            Yaml::Bool(_) => "a boolean",
            Yaml::Int(_) => "an integer",
            Yaml::Float(_) => "a number",
            Yaml::Text(_) => "a string",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a map",
        }
    }

    /// The same value as JSON. Not-a-number and infinities become `null`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(*value),
            Yaml::Int(value) => Value::from(*value),
            Yaml::Float(value) => Value::from(*value),
            Yaml::Text(text) => Value::String(text.clone()),
            Yaml::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Yaml::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
            }
        }
    }
}

/// Reads one document. `first_line` is the line of the file on which `text` starts, counted from 1.
/// An empty document is an empty map.
pub(crate) fn parse(text: &str, first_line: u32) -> Result<Node, YamlError> {
    let lines = Lines::of(text);
    let mut builder = Builder { line_offset: first_line - 1, lines, ..Builder::default() };
    let mut options = Options::default();
    options.emit_comments = false;
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            // Line and column of an error may be out of step with each other; its offset is not.
            builder.lines.get_or_insert_with(|| Lines::new(text));
            let at = builder.position(error.marker());
            match error.kind() {
                ErrorKind::RecursionLimitExceeded => too_deep(at),
                _ => fail("yaml-syntax", at, &format!("this is not valid YAML: {}", error.info())),
            }
        })?;
        let at = builder.position(&span.start);
        builder.event(event, at)?;
    }
    Ok(builder.root.unwrap_or_else(|| Node::new(Position { line: first_line, column: 1 }, Yaml::Map(Vec::new()))))
}

/// Where the lines of a text start. Made for texts with lone carriage returns, at which YAML ends a line, while editors
/// that count line feeds and whoever renders a finding do not; and for the place of an error.
struct Lines {
    text: Box<str>,
    starts: Vec<usize>,
}

impl Lines {
    /// `None` for a text whose lines are the same either way.
    fn of(text: &str) -> Option<Lines> {
        let bytes = text.as_bytes();
        let lone = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        if !(0..bytes.len()).any(lone) {
            return None;
        }
        Some(Lines::new(text))
    }

    fn new(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { text: text.into(), starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column, both from 1, of a byte.
    fn position(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte);
        let before = self.text.get(self.starts[line - 1]..byte).unwrap_or("");
        (line, before.chars().count() + 1)
    }
}

#[derive(Default)]
struct Builder {
    line_offset: u32,
    lines: Option<Lines>,
    nodes: usize,
    bytes: usize,
    documents: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchor>,
    root: Option<Node>,
}

/// A finished anchored value with what a copy of it costs.
struct Anchor {
    node: Node,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A list or map whose end has not been seen.
struct Open {
    at: Position,
    anchor: usize,
    nodes_before: usize,
    bytes_before: usize,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: HashMap<String, Position>, key: Option<(String, Position)> },
}

impl Builder {
    fn position(&self, marker: &granit_parser::Marker) -> Position {
        let (line, column) = match (&self.lines, marker.byte_offset()) {
            (Some(lines), Some(byte)) => lines.position(byte),
            _ => (marker.line(), marker.col().saturating_add(1)),
        };
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX).saturating_add(self.line_offset),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    fn event(&mut self, event: Event<'_>, at: Position) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fail("yaml-documents", at, "only one YAML document is accepted"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(1, text.len(), at)?;
                let value = scalar(&text, style, tag.as_deref(), at)?;
                // A key is always its own text, so that `no:` or `1:` stay what the author wrote.
                if let Some(Open { body: Body::Map { key: key @ None, seen, .. }, .. }) = self.open.last_mut() {
                    if let Some(first) = seen.get(&*text) {
                        let message = format!("`{text}` is already given on line {}", first.line);
                        return Err(YamlError { code: "yaml-duplicate-key", at, message });
                    }
                    *key = Some((text.into_owned(), at));
                    return Ok(());
                }
                let node = Node::new(at, value);
                self.remember(anchor, &node, 1, text.len());
                self.attach(node)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_collection_tag(tag.as_deref(), "seq", at)?;
                self.begin(at, anchor, Body::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                check_collection_tag(tag.as_deref(), "map", at)?;
                self.begin(at, anchor, Body::Map { entries: Vec::new(), seen: HashMap::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Err(fail("yaml-syntax", at, "a list or map ends that never began"));
                };
                let value = match open.body {
                    Body::List(items) => Yaml::List(items),
                    Body::Map { entries, .. } => Yaml::Map(entries),
                };
                let node = Node::new(open.at, value);
                let (nodes, bytes) = (self.nodes - open.nodes_before, self.bytes - open.bytes_before);
                self.remember(open.anchor, &node, nodes, bytes);
                self.attach(node)
            }
            Event::Alias(id) => {
                let Some(anchor) = self.anchors.get(&id) else {
                    return Err(fail("yaml-alias", at, "this alias names a value that contains it"));
                };
                if self.open.len() + anchor.depth > MAX_DOCUMENT_DEPTH {
                    return Err(too_deep(at));
                }
                let (nodes, bytes) = (anchor.nodes, anchor.bytes);
                self.spend(nodes, bytes, at)?;
                let mut node = self.anchors[&id].node.clone();
                node.at = at;
                self.attach(node)
            }
            // Stream marks and metadata carry no values.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: Position, anchor: usize, body: Body) -> Result<(), YamlError> {
        if let Some(Open { body: Body::Map { key: None, .. }, .. }) = self.open.last() {
            return Err(fail("yaml-key", at, "a key must be a plain word or a string"));
        }
        if self.open.len() >= MAX_DOCUMENT_DEPTH {
            return Err(too_deep(at));
        }
        let (nodes_before, bytes_before) = (self.nodes, self.bytes);
        self.spend(1, 0, at)?;
        self.open.push(Open { at, anchor, nodes_before, bytes_before, body });
        Ok(())
    }

    fn spend(&mut self, nodes: usize, bytes: usize, at: Position) -> Result<(), YamlError> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes > MAX_DOCUMENT_NODES {
            let message = format!("the document has more than {MAX_DOCUMENT_NODES} values, aliases unfolded");
            return Err(YamlError { code: "document-too-large", at, message });
        }
        if self.bytes > MAX_DOCUMENT_BYTES {
            let message = format!("the document has more than {MAX_DOCUMENT_BYTES} bytes, aliases unfolded");
            return Err(YamlError { code: "document-too-large", at, message });
        }
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node, nodes: usize, bytes: usize) {
        if anchor > 0 {
            let depth = depth(node);
            self.anchors.insert(anchor, Anchor { node: node.clone(), nodes, bytes, depth });
        }
    }

    fn attach(&mut self, node: Node) -> Result<(), YamlError> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open { body: Body::List(items), .. }) => items.push(node),
            Some(Open { body: Body::Map { entries, seen, key }, .. }) => match key.take() {
                Some((key, key_at)) => {
                    seen.insert(key.clone(), key_at);
                    entries.push(Entry { key, key_at, node });
                }
                None => {
                    return Err(fail("yaml-key", node.at, "a key must be a plain word or a string"));
                }
            },
        }
        Ok(())
    }
}

fn depth(node: &Node) -> usize {
    match &node.value {
        Yaml::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Yaml::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.node)).max().unwrap_or(0),
        _ => 0,
    }
}

fn fail(code: &'static str, at: Position, message: &str) -> YamlError {
    YamlError { code, at, message: message.to_owned() }
}

fn too_deep(at: Position) -> YamlError {
    let message = format!("values are nested more than {MAX_DOCUMENT_DEPTH} deep");
    YamlError { code: "document-too-deep", at, message }
}

fn unknown_tag(tag: &Tag, at: Position) -> YamlError {
    YamlError { code: "yaml-tag", at, message: format!("the tag `{tag}` is not accepted") }
}

fn check_collection_tag(tag: Option<&Tag>, expected: &str, at: Position) -> Result<(), YamlError> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix() == expected) => Err(unknown_tag(tag, at)),
        _ => Ok(()),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Result<Yaml, YamlError> {
    match tag {
        None if style == ScalarStyle::Plain => Ok(plain(text)),
        None => Ok(Yaml::Text(text.to_owned())),
        Some(tag) if tag.is_yaml_core_schema() => {
            let value = plain(text);
            match (tag.suffix(), value) {
                ("str", _) => Ok(Yaml::Text(text.to_owned())),
                ("null", value @ Yaml::Null)
                | ("bool", value @ Yaml::Bool(_))
                | ("int", value @ Yaml::Int(_))
                | ("float", value @ Yaml::Float(_)) => Ok(value),
                ("float", Yaml::Int(value)) => Ok(Yaml::Float(value as f64)),
                _ => Err(unknown_tag(tag, at)),
            }
        }
        Some(tag) => Err(unknown_tag(tag, at)),
    }
}

/// A plain scalar by the YAML 1.2 core schema.
fn plain(text: &str) -> Yaml {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Yaml::Null,
        "true" | "True" | "TRUE" => return Yaml::Bool(true),
        "false" | "False" | "FALSE" => return Yaml::Bool(false),
        _ => {}
    }
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    let number = if let Some(hex) = text.strip_prefix("0x") {
        radix(hex, 16)
    } else if let Some(octal) = text.strip_prefix("0o") {
        radix(octal, 8)
    } else {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
    };
    if let Some(number) = number {
        return Yaml::Int(number);
    }
    if is_float(text)
        && let Ok(number) = text.parse::<f64>()
    {
        return Yaml::Float(number);
    }
    match text.trim_start_matches(['+', '-']) {
        ".inf" | ".Inf" | ".INF" => Yaml::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        ".nan" | ".NaN" | ".NAN" if text.starts_with('.') => Yaml::Float(f64::NAN),
        _ => Yaml::Text(text.to_owned()),
    }
}

fn is_float(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    body.bytes().any(|b| b.is_ascii_digit())
        && body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && body.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn json(text: &str) -> serde_json::Value {
        parse(text, 1).unwrap().to_json()
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let text = "a: 1\nb: no\nc: 1.5\nd: ~\ne: '1'\nf: 0x10\ng: 1.2.3\nh: true\ni: -3\nj: !!str 7\nk: 1e3\n";
        let expected = serde_json::json!({
            "a": 1, "b": "no", "c": 1.5, "d": null, "e": "1", "f": 16, "g": "1.2.3", "h": true, "i": -3, "j": "7",
            "k": 1000.0
        });
        assert_eq!(json(text), expected);
    }

    #[test]
    fn positions_count_from_the_given_line() {
        let root = parse("a: 1\nb:\n  - x\n", 2).unwrap();
        let entry = root.entry("b").unwrap();
        assert_eq!(entry.key_at, Position { line: 3, column: 1 });
        assert_eq!(entry.node.items()[0].at, Position { line: 4, column: 5 });
    }

    #[test]
    fn aliases_unfold_within_bounds() {
        assert_eq!(json("a: &x [1, 2]\nb: *x\n"), serde_json::json!({"a": [1, 2], "b": [1, 2]}));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let below = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
        }
        assert_eq!(parse(&bomb, 1).unwrap_err().code, "document-too-large");
        let long = "y".repeat(100_000);
        let wide = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 1000].join(","));
        assert_eq!(parse(&wide, 1).unwrap_err().code, "document-too-large");
    }

    #[test]
    fn nesting_is_bounded_in_both_styles() {
        assert_eq!(parse(&("[".repeat(100) + &"]".repeat(100)), 1).unwrap_err().code, "document-too-deep");
        let block: String = (0..100).map(|depth| format!("{}a:\n", "  ".repeat(depth))).collect();
        assert_eq!(parse(&block, 1).unwrap_err().code, "document-too-deep");
        let dashes = "- ".repeat(50_000);
        assert_eq!(parse(&dashes, 1).unwrap_err().code, "document-too-deep");
    }

    #[test]
    fn refusals_have_codes() {
        for (text, code, line) in [
            ("a: 1\na: 2\n", "yaml-duplicate-key", 2),
            ("a: [1\n", "yaml-syntax", 1),
            ("a: !weird 1\n", "yaml-tag", 1),
            ("? [a]\n: 1\n", "yaml-key", 1),
            ("a: 1\n---\nb: 2\n", "yaml-documents", 2),
            ("a: *nope\n", "yaml-syntax", 1),
            ("a: &a [*a]\n", "yaml-alias", 1),
        ] {
            let error = parse(text, 1).unwrap_err();
            assert_eq!((error.code, error.at.line), (code, line), "{text:?}: {error:?}");
        }
    }
}
