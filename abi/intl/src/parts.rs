//! Formatted text cut into typed parts.

use std::fmt;

use writeable::{Part, PartsWrite, Writeable};

/// A piece of formatted text: its type, as the standard names it, and its text.
pub type PartText = (&'static str, String);

#[derive(Default)]
struct Collector {
    text: String,
    spans: Vec<(usize, usize, Part)>,
}

impl fmt::Write for Collector {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

impl PartsWrite for Collector {
    type SubPartsWrite = Self;
    fn with_part(&mut self, part: Part, mut write: impl FnMut(&mut Self) -> fmt::Result) -> fmt::Result {
        let start = self.text.len();
        // The place is taken before the inner parts take theirs, so that inner ones come later and win.
        let at = self.spans.len();
        self.spans.push((start, start, part));
        write(self)?;
        self.spans[at].1 = self.text.len();
        Ok(())
    }
}

/// Cuts what `writeable` writes. `name` says the type of a part, or nothing when the part is of no interest.
pub(crate) fn cut(writeable: &impl Writeable, name: impl Fn(Part) -> Option<&'static str>) -> Vec<PartText> {
    let mut collected = Collector::default();
    // Writing to memory does not fail; a formatter that lacks a name writes a replacement.
    let _ = writeable.write_to_parts(&mut collected);
    let mut label: Vec<(&'static str, usize)> = vec![("literal", usize::MAX); collected.text.len()];
    for (index, (start, end, part)) in collected.spans.iter().enumerate() {
        if let Some(name) = name(*part) {
            label[*start..*end].fill((name, index));
        }
    }
    let mut out: Vec<PartText> = Vec::new();
    let mut last = None;
    for (at, character) in collected.text.char_indices() {
        let here = label[at];
        if last != Some(here) {
            out.push((here.0, String::new()));
            last = Some(here);
        }
        if let Some((_, text)) = out.last_mut() {
            text.push(character);
        }
    }
    out
}

/// The text of parts.
pub fn joined(parts: &[PartText]) -> String {
    parts.iter().map(|(_, text)| text.as_str()).collect()
}
