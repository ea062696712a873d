//! Front matter: the YAML between two lines `---` at the top of a manifest.

use crate::diagnostic::Position;

/// A manifest file taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct FrontMatter<'a> {
    /// The YAML text.
    pub(crate) yaml: &'a str,
    /// The line of the file on which the YAML starts.
    pub(crate) first_line: u32,
    /// Everything after the closing line, outer blank space removed.
    pub(crate) body: &'a str,
}

/// Why there is no front matter.
#[derive(Debug, PartialEq)]
pub(crate) struct FrontMatterError {
    pub(crate) code: &'static str,
    pub(crate) at: Position,
    pub(crate) message: &'static str,
    pub(crate) help: &'static str,
}

/// Splits a manifest. A byte-order mark and Windows line ends are accepted.
pub(crate) fn split(text: &str) -> Result<FrontMatter<'_>, FrontMatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or("");
    if first.trim_end() != "---" {
        let engine = first.strip_prefix("---").is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
        return Err(if engine {
            FrontMatterError {
                code: "frontmatter-engine",
                at: Position { line: 1, column: 4 },
                message: "front matter is plain YAML; an engine after `---` is refused",
                help: "write a first line that is exactly `---`",
            }
        } else {
            FrontMatterError {
                code: "frontmatter-missing",
                at: Position { line: 1, column: 1 },
                message: "the file does not start with front matter",
                help: "start with a line `---`, the YAML fields, and another line `---`",
            }
        });
    }
    let start = text.find('\n').map_or(text.len(), |end| end + 1);
    let mut offset = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok(FrontMatter {
                yaml: &text[start..offset],
                first_line: 2,
                body: text[offset + line.len()..].trim(),
            });
        }
        offset += line.len();
    }
    Err(FrontMatterError {
        code: "frontmatter-unclosed",
        at: Position { line: 1, column: 1 },
        message: "the front matter has no closing line `---`",
        help: "end the YAML fields with a line that is exactly `---`",
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn splits_fields_from_body() {
        let parts = split("\u{feff}---\r\nid: a\r\n---\r\n\r\nText\r\n").unwrap();
        assert_eq!((parts.yaml, parts.first_line, parts.body), ("id: a\r\n", 2, "Text"));
        assert_eq!(split("---\n---\nbody").unwrap().yaml, "");
    }

    #[test]
    fn says_what_is_missing() {
        assert_eq!(split("id: a\n").unwrap_err().code, "frontmatter-missing");
        assert_eq!(split("---js\n{}\n---\n").unwrap_err().code, "frontmatter-engine");
        assert_eq!(split("---\nid: a\n").unwrap_err().code, "frontmatter-unclosed");
        assert_eq!(split("").unwrap_err().code, "frontmatter-missing");
    }
}
