//! Cutting text into what readers see as characters, words and sentences.

use icu_segmenter::{
    GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter,
    options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions},
};

use crate::{
    error::{IntlError, bounded},
    limits::{MAX_TEXT_BYTES, MAX_WORD_TEXT_BYTES},
};

/// Ends of the segments in UTF-16 units; for words also whether each is a word rather than space or punctuation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// End of each segment, ascending.
    pub ends: Vec<u32>,
    /// For words: one for each segment.
    pub word_like: Vec<bool>,
}

/// Cuts `text` by `granularity`: `grapheme`, `word` or `sentence`.
pub fn segment(granularity: &str, text: &str) -> Result<Segments, IntlError> {
    let limit = if granularity == "word" { MAX_WORD_TEXT_BYTES } else { MAX_TEXT_BYTES };
    bounded("text to segment", text.len(), limit)?;
    let units = Utf16::new(text);
    Ok(match granularity {
        "grapheme" => units.plain(GraphemeClusterSegmenter::new().segment_str(text)),
        "sentence" => units.plain(SentenceSegmenter::new(SentenceBreakInvariantOptions::default()).segment_str(text)),
        "word" => {
            let segmenter = WordSegmenter::new_auto(WordBreakInvariantOptions::default());
            let mut units = units;
            let mut out = Segments::default();
            for (end, kind) in segmenter.segment_str(text).iter_with_word_type() {
                if end > 0 {
                    out.ends.push(units.at(end));
                    out.word_like.push(kind.is_word_like());
                }
            }
            out
        }
        other => return Err(IntlError::option("granularity", other, "grapheme, word or sentence")),
    })
}

/// Turns ascending byte positions into UTF-16 positions.
struct Utf16<'a> {
    text: &'a str,
    bytes: usize,
    units: usize,
}

impl<'a> Utf16<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, bytes: 0, units: 0 }
    }

    fn at(&mut self, byte: usize) -> u32 {
        self.units += self.text[self.bytes..byte].chars().map(char::len_utf16).sum::<usize>();
        self.bytes = byte;
        u32::try_from(self.units).unwrap_or(u32::MAX)
    }

    fn plain(mut self, ends: impl Iterator<Item = usize>) -> Segments {
        Segments { ends: ends.filter(|end| *end > 0).map(|end| self.at(end)).collect(), word_like: Vec::new() }
    }
}
