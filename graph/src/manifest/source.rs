//! What reading a manifest works on: the document, the files it names, and where findings go.

use std::collections::{BTreeSet, HashMap};

use crate::{
    diagnostic::{Diagnostic, Position},
    files::{PathProblem, Reader, resolve},
    fragment::{Origin, Text},
    frontmatter,
    report::{self, Report},
    schema::Validator,
    yaml::{self, Node, Yaml},
};

/// A manifest file taken apart.
pub(crate) struct Document {
    pub(crate) file: String,
    pub(crate) node: Node,
    pub(crate) body: String,
    /// Chinese body, from a variant file.
    pub(crate) body_zh: Option<String>,
    /// Chinese prompt parts by id, from a variant's front matter.
    pub(crate) prompts_zh: Vec<(String, String)>,
}

impl Document {
    /// Loads a manifest. A file that cannot be parsed is reported and gives `None`.
    pub(crate) fn load(context: &mut Context<'_>, file: &str) -> Option<Document> {
        let text = context.reader.text(file, context.report)?;
        let parts = match frontmatter::split(&text) {
            Ok(parts) => parts,
            Err(error) => {
                let found = Diagnostic::error(error.code, file, error.at, error.message).with_help(error.help);
                context.report.add(found);
                return None;
            }
        };
        let node = match yaml::parse(parts.yaml, parts.first_line) {
            Ok(node) => node,
            Err(error) => {
                context.report.add(Diagnostic::error(error.code, file, error.at, error.message));
                return None;
            }
        };
        let body = parts.body.to_owned();
        Some(Document { file: file.to_owned(), node, body, body_zh: None, prompts_zh: Vec::new() })
    }

    /// Folder of the file, without a slash at the end.
    pub(crate) fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Reading state of one package.
pub(crate) struct Context<'a> {
    pub(crate) reader: &'a mut Reader,
    pub(crate) report: &'a mut Report,
    /// Manifest being read.
    pub(crate) file: String,
    /// Contracts that needs and inputs may name: those of root `requires` and `optional`.
    pub(crate) consumable: BTreeSet<String>,
    /// Schemas that were checked already, and whether they hold.
    schemas: HashMap<String, bool>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(reader: &'a mut Reader, report: &'a mut Report) -> Self {
        Self { reader, report, file: super::ROOT.to_owned(), consumable: BTreeSet::new(), schemas: HashMap::new() }
    }

    pub(crate) fn origin(&self, at: Position) -> Origin {
        Origin { file: self.file.clone(), line: at.line, column: at.column }
    }

    pub(crate) fn error(&mut self, code: &str, at: Position, path: &str, message: impl Into<String>) {
        self.report.add(Diagnostic::error(code, &self.file, at, message).with_path(path));
    }

    pub(crate) fn error_help(
        &mut self,
        code: &str,
        at: Position,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report.add(Diagnostic::error(code, &self.file, at, message).with_path(path).with_help(help));
    }

    pub(crate) fn warning(&mut self, code: &str, at: Position, path: &str, message: impl Into<String>) {
        self.report.add(Diagnostic::warning(code, &self.file, at, message).with_path(path));
    }

    pub(crate) fn warning_help(
        &mut self,
        code: &str,
        at: Position,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report.add(Diagnostic::warning(code, &self.file, at, message).with_path(path).with_help(help));
    }

    /// A path written at `node`, from `base`; reported when it is refused or names no file.
    pub(crate) fn file_at(&mut self, base: &str, node: &Node, path: &str) -> Option<String> {
        let text = node.text()?;
        // One finding for one path: what is no path of its kind is not looked for.
        if self.report.has_error_at(&self.file, node.at) {
            return None;
        }
        let resolved = match resolve(base, text) {
            Ok(resolved) => resolved,
            Err(problem) => {
                let (code, message) = match problem {
                    PathProblem::Empty => ("bad-path", "the path names no file"),
                    PathProblem::Absolute => ("path-absolute", "an absolute path or address is not accepted"),
                    PathProblem::Leaves => ("path-leaves-package", "the path leaves the package"),
                    PathProblem::Characters => ("bad-path", "the path holds a character that is not accepted"),
                };
                self.error_help(
                    code,
                    node.at,
                    path,
                    message,
                    "write a path relative to the manifest's folder, with `/`",
                );
                return None;
            }
        };
        if self.reader.get(&resolved, self.report).is_none() {
            let already = self.report.has_error_for(&resolved);
            if !already {
                self.error("missing-file", node.at, path, format!("there is no file `{resolved}` in the package"));
            }
            return None;
        }
        Some(resolved)
    }

    /// A JSON file named at `node`, as (package-relative path, text, value).
    pub(crate) fn json_at(
        &mut self,
        base: &str,
        node: &Node,
        path: &str,
    ) -> Option<(String, String, serde_json::Value)> {
        let file = self.file_at(base, node, path)?;
        let text = self.reader.text(&file, self.report)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some((file, text, value)),
            Err(error) => {
                self.report.add(report::not_json(&file, &text, &error));
                None
            }
        }
    }

    /// A JSON Schema file named at `node`, as text.
    pub(crate) fn schema_at(&mut self, base: &str, node: &Node, path: &str) -> Option<String> {
        let (file, text, value) = self.json_at(base, node, path)?;
        let holds = match self.schemas.get(&file) {
            Some(holds) => *holds,
            None => {
                let outcome = Validator::new(&value);
                if let Err(message) = &outcome {
                    let at = Position { line: 1, column: 1 };
                    let found = Diagnostic::error(
                        "schema-invalid",
                        &file,
                        at,
                        format!("this JSON Schema does not hold: {message}"),
                    );
                    self.report.add(found.with_path(path));
                }
                self.schemas.insert(file, outcome.is_ok());
                outcome.is_ok()
            }
        };
        holds.then_some(text)
    }
}

// ---- taking values: what does not fit was reported by the shape check and counts as absent ----

/// The text of a field.
pub(crate) fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::text).map(str::to_owned)
}

/// The texts of a list field.
pub(crate) fn texts(node: &Node, key: &str) -> Vec<String> {
    node.get(key).map(Node::items).unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect()
}

/// The boolean of a field.
pub(crate) fn flag(node: &Node, key: &str, default: bool) -> bool {
    match node.get(key).map(|node| &node.value) {
        Some(Yaml::Bool(value)) => *value,
        _ => default,
    }
}

/// The whole number of a field.
pub(crate) fn int(node: &Node, key: &str) -> Option<i64> {
    match node.get(key).map(|node| &node.value) {
        Some(Yaml::Int(value)) => Some(*value),
        _ => None,
    }
}

/// The whole number of a field as a count.
pub(crate) fn count(node: &Node, key: &str, default: u32) -> u32 {
    int(node, key).and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
}

/// The whole number of a field as milliseconds.
pub(crate) fn millis(node: &Node, key: &str, default: u64) -> u64 {
    int(node, key).and_then(|value| u64::try_from(value).ok()).unwrap_or(default)
}

/// The number of a field.
pub(crate) fn number(node: &Node, key: &str) -> Option<f64> {
    match node.get(key).map(|node| &node.value) {
        Some(Yaml::Int(value)) => Some(*value as f64),
        Some(Yaml::Float(value)) => Some(*value),
        _ => None,
    }
}

/// The text for people of a field: a plain string counts as English.
pub(crate) fn label(node: &Node, key: &str) -> Text {
    match node.get(key).map(|node| &node.value) {
        Some(Yaml::Text(text)) => vec![("en".to_owned(), text.clone())],
        Some(Yaml::Map(entries)) => {
            entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.node.text()?.to_owned()))).collect()
        }
        _ => Vec::new(),
    }
}
