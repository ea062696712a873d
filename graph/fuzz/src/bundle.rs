//! A whole package as one text: what stands before the first header is `PLUGIN.md`, a line `%% path` starts a file.

use std::fmt::Write;

const HEADER: &str = "%% ";
/// Most files read from one input; more teach nothing.
const MAX_FILES: usize = 32;

/// Splits a text into files. Later files of one path win, as they would on a disk.
pub fn parse(text: &str) -> Vec<(&str, &str)> {
    let mut files = Vec::new();
    let (mut path, mut start, mut offset) = ("PLUGIN.md", 0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(next) = line.strip_prefix(HEADER)
            && files.len() + 1 < MAX_FILES
        {
            files.push((path, &text[start..offset]));
            path = next.trim();
            start = offset + line.len();
        }
        offset += line.len();
    }
    files.push((path, &text[start..]));
    files
}

/// The text of these files; [`parse`] gives them back. `PLUGIN.md` comes first when it is there.
pub fn format<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut root = String::new();
    let mut rest = String::new();
    for (path, text) in files {
        if path == "PLUGIN.md" {
            root.push_str(text);
        } else {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            let _ = write!(rest, "{HEADER}{path}\n{text}{end}");
        }
    }
    if !root.is_empty() && !root.ends_with('\n') && !rest.is_empty() {
        root.push('\n');
    }
    root + &rest
}
