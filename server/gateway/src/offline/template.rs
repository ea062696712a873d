//! Prose templates: literal text with `{slot}` places, filled in one pass so that filled text is never read again.

use super::book::BookError;

/// One part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Slot(String),
}

/// A parsed prose template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

/// Characters that change their form when text is escaped for a prompt block; an anchor holds none of them.
const ESCAPED: &[char] = &['&', '<', '>', '"', '\'', '\\', '\n'];

impl Template {
    /// Reads a template; white space, line breaks included, becomes single spaces.
    pub(super) fn parse(text: &str, place: &str) -> Result<Self, BookError> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some(open) = rest.find('{') {
            let Some(length) = rest[open..].find('}') else {
                return Err(BookError::Template { place: place.into(), message: "`{` is never closed".into() });
            };
            let name = &rest[open + 1..open + length];
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
                let message = format!("`{{{name}}}` is not a slot name");
                return Err(BookError::Template { place: place.into(), message });
            }
            if open > 0 {
                parts.push(Part::Text(rest[..open].into()));
            }
            parts.push(Part::Slot(name.into()));
            rest = &rest[open + length + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self { parts })
    }

    /// The slots named, in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Slot(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The longest literal run that survives escaping: by it the filled text is recognised later.
    pub(super) fn anchor(&self) -> &str {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.split(ESCAPED)),
                Part::Slot(_) => None,
            })
            .flatten()
            .map(str::trim)
            // The first of equally long runs, so that the choice is stable.
            .fold("", |best, run| if run.chars().count() > best.chars().count() { run } else { best })
    }

    /// Does the literal text contain a run?
    pub(super) fn has(&self, run: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains(run)))
    }

    /// Bytes of literal text.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum()
    }

    /// The text with every slot filled.
    pub(super) fn fill(&self, mut slot: impl FnMut(&str) -> String) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Slot(name) => {
                    let value = slot(name);
                    let starts_sentence =
                        text.is_empty() || text.ends_with(". ") || text.ends_with("! ") || text.ends_with("? ");
                    match value.chars().next() {
                        Some(first) if starts_sentence => {
                            text.extend(first.to_uppercase());
                            text.push_str(&value[first.len_utf8()..]);
                        }
                        _ => text.push_str(&value),
                    }
                }
            }
        }
        text
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_once_and_capitalised_at_a_sentence_start() {
        let template = Template::parse("{weather} comes. {weather}\n  stays, {said}.", "t").unwrap();
        assert_eq!(template.slots().collect::<Vec<_>>(), ["weather", "weather", "said"]);
        let text = template.fill(|slot| if slot == "said" { "{weather}".into() } else { "a fog".into() });
        assert_eq!(text, "A fog comes. A fog stays, {weather}.");
    }

    #[test]
    fn broken_templates_say_where() {
        for text in ["a {b", "a {}", "a {b c}", "{{x}}"] {
            let error = Template::parse(text, "scene quay").unwrap_err();
            assert!(error.to_string().contains("scene quay"), "{error}");
        }
    }

    #[test]
    fn an_anchor_survives_escaping() {
        let template = Template::parse("It's {x} and the long run of plain words, \"said\" she.", "t").unwrap();
        assert_eq!(template.anchor(), "and the long run of plain words,");
    }
}
