//! What an author reads when something in a package is wrong.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in a source file. Lines and columns count from 1; 0 means the whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The package cannot be published.
    Error,
    /// The package works, perhaps not as meant.
    Warning,
}

/// One finding: which rule, where, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Stable kebab-case code.
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What would be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The package, when its id is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_id: Option<String>,
    /// File, relative to the package root when inside one.
    pub file: String,
    /// Line, from 1 (0: the whole file).
    pub line: u32,
    /// Column, from 1 (0: the whole line).
    pub column: u32,
    /// Field path such as `runtime.schedule.stage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &str, file: &str, at: Position, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, file, at, message.into())
    }

    /// A warning at a place.
    pub fn warning(code: &str, file: &str, at: Position, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, file, at, message.into())
    }

    fn new(severity: Severity, code: &str, file: &str, at: Position, message: String) -> Self {
        Self {
            severity,
            code: code.to_owned(),
            message,
            help: None,
            plugin_id: None,
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            path: None,
        }
    }

    /// Says what would be accepted.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the field.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Names the package.
    #[must_use]
    pub fn with_plugin(mut self, plugin: impl Into<String>) -> Self {
        self.plugin_id = Some(plugin.into());
        self
    }

    /// As [`fmt::Display`], with the line of `source` (the text of [`Diagnostic::file`]) and a mark under the place.
    pub fn render(&self, source: &str) -> String {
        const WIDTH: usize = 120;
        let text = self.to_string();
        let line = (self.line as usize).checked_sub(1).and_then(|line| source.lines().nth(line));
        let Some(line) = line else { return text };
        let column = (self.column as usize).saturating_sub(1);
        // Far right in a long line, the start of the line says little: show what is around the place.
        let start = if column > WIDTH * 2 / 3 { column - WIDTH / 3 } else { 0 };
        let shown: String =
            line.chars().skip(start).take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let word =
            shown.chars().skip(column - start).take_while(|c| !c.is_whitespace() && !",:]}".contains(*c)).count();
        let (head, help) = text.split_once('\n').unwrap_or((&text, ""));
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let mark = format!("{}{}", " ".repeat(column - start), "^".repeat(word.max(1)));
        let mut out = format!("{head}\n {margin} |\n {number} | {shown}\n {margin} | {mark}");
        if !help.is_empty() {
            out.push('\n');
            out.push_str(help);
        }
        out
    }

    /// `error` or `warning`.
    pub fn severity_word(&self) -> &'static str {
        match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }

    /// Is it an error?
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity_word();
        write!(f, "{severity}[{}] {}:{}:{}: {}", self.code, self.file, self.line, self.column, self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_underlined() {
        let source = "---\nid: p\nrequries: [a@1]\n---\n";
        let found = Diagnostic::error("unknown-field", "PLUGIN.md", Position { line: 3, column: 1 }, "no such field")
            .with_help("did you mean `requires`?");
        let expected = "error[unknown-field] PLUGIN.md:3:1: no such field\n   |\n 3 | requries: [a@1]\n   | ^^^^^^^^\n  help: did you mean `requires`?";
        assert_eq!(found.render(source), expected);
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        for (line, column) in [(0, 0), (1, 0), (1, 900), (9, 9), (u32::MAX, u32::MAX)] {
            let found = Diagnostic::warning("x", "a", Position { line, column }, "m");
            assert!(found.render("one line").starts_with("warning[x]"));
        }
        let found = Diagnostic::warning("x", "a", Position { line: 1, column: 5_000 }, "m");
        assert!(found.render(&"y".repeat(10_000)).len() < 500);
    }
}
