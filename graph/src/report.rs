//! Findings of one package, collected while it is compiled.

use crate::{
    diagnostic::{Diagnostic, Position, Severity},
    limits::MAX_DIAGNOSTICS,
};

/// Collects diagnostics up to a bound, so that a hostile package cannot make a large report.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
    oversized: bool,
}

impl Report {
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        self.oversized |= matches!(
            diagnostic.code.as_str(),
            "list-too-long" | "map-too-long" | "too-many-files" | "too-many-runtimes"
        );
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.found.len() < MAX_DIAGNOSTICS {
            self.found.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Is there more of something than a package may have? Then its parts are not looked at one by one: rules that
    /// compare them are made for few.
    pub(crate) fn is_oversized(&self) -> bool {
        self.oversized
    }

    /// Is there nothing to say?
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.dropped == 0
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Are further findings only counted? Then there is no use in working out advice.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_DIAGNOSTICS
    }

    /// Is there an error at this very place?
    pub(crate) fn has_error_at(&self, file: &str, at: Position) -> bool {
        let here = |found: &&Diagnostic| found.line == at.line && found.column == at.column && found.file == file;
        self.found.iter().filter(here).any(|found| found.severity == Severity::Error)
    }

    /// Is there an error that speaks of this file?
    pub(crate) fn has_error_for(&self, file: &str) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error && found.file == file)
    }

    /// All findings by place, each once, carrying the package id.
    pub(crate) fn finish(mut self, plugin_id: Option<&str>) -> Vec<Diagnostic> {
        self.found.sort_by(|a, b| {
            (a.file != "PLUGIN.md", &a.file, a.line, a.column, &a.code, &a.message).cmp(&(
                b.file != "PLUGIN.md",
                &b.file,
                b.line,
                b.column,
                &b.code,
                &b.message,
            ))
        });
        self.found.dedup();
        if self.dropped > 0 {
            let message = format!("{} more findings are not listed", self.dropped);
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warning };
            let mut last = Diagnostic::error("too-many-diagnostics", "PLUGIN.md", Position::default(), message);
            last.severity = severity;
            self.found.push(last);
        }
        for diagnostic in &mut self.found {
            diagnostic.plugin_id = plugin_id.map(str::to_owned);
        }
        self.found
    }
}

/// What a JSON parser found, at a place counted as everywhere: it counts columns in bytes, findings in characters.
pub(crate) fn not_json(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or("");
    let before = error.column().saturating_sub(1).min(line.len());
    let characters = line.char_indices().take_while(|(at, _)| *at < before).count();
    let at = Position {
        line: u32::try_from(error.line()).unwrap_or(u32::MAX),
        column: u32::try_from(characters).unwrap_or(u32::MAX - 1) + 1,
    };
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or("");
    Diagnostic::error("json-syntax", file, at, format!("this is not valid JSON: {what}"))
}

/// The candidate nearest to a word, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 64 && *candidate != word)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance, letter case ignored, a swap of neighbours counting once.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_named_and_far_ones_are_not() {
        let words = ["schedule", "io", "agent", "function", "effects"];
        assert_eq!(nearest("shedule", words), Some("schedule"));
        assert_eq!(nearest("fucntion", words), Some("function"));
        assert_eq!(nearest("Agent", words), Some("agent"));
        assert_eq!(nearest("provides", words), None);
    }

    #[test]
    fn a_report_is_bounded_and_ordered() {
        let mut report = Report::default();
        for line in (0..300u32).rev() {
            report.add(Diagnostic::warning("x", "b.md", Position { line, column: 1 }, "m"));
        }
        report.add(Diagnostic::error("y", "a.md", Position::default(), "m"));
        assert!(report.has_errors());
        let found = report.finish(Some("p"));
        assert_eq!(found.len(), MAX_DIAGNOSTICS + 1);
        assert!(found.last().unwrap().is_error());
        assert!(found.iter().all(|one| one.plugin_id.as_deref() == Some("p")));
    }
}
