//! Comparing text as readers of a language expect.

use std::cmp::Ordering;

use icu_collator::{
    CollatorBorrowed, CollatorPreferences,
    options::{AlternateHandling, CaseLevel, CollatorOptions, Strength},
    preferences::{CollationCaseFirst, CollationNumericOrdering, CollationType},
};
use icu_locale::extensions::unicode::Value;
use serde::Deserialize;

use crate::{
    error::{IntlError, bounded},
    limits::MAX_TEXT_BYTES,
    locale::parse,
};

/// Options of a [`Collator`], each as the standard names its values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CollateOptions {
    /// Language, script, region.
    pub locale: String,
    /// `sort` or `search`.
    pub usage: Option<String>,
    /// `base`, `accent`, `case` or `variant`.
    pub sensitivity: Option<String>,
    /// Leave punctuation and spaces out.
    pub ignore_punctuation: Option<bool>,
    /// Compare runs of digits by value.
    pub numeric: Option<bool>,
    /// `upper`, `lower` or `false`.
    pub case_first: Option<String>,
    /// Such as `phonebk`, `pinyin`, `stroke`.
    pub collation: Option<String>,
}

/// Compares text.
pub struct Collator(CollatorBorrowed<'static>);

impl Collator {
    /// Fails on values that do not exist.
    pub fn new(options: &CollateOptions) -> Result<Self, IntlError> {
        let mut prefs = CollatorPreferences::from(&parse(&options.locale)?);
        if let Some(name) = &options.collation {
            let value = Value::try_from_str(name);
            prefs.collation_type = value.ok().and_then(|value| CollationType::try_from(&value).ok());
        } else if options.usage.as_deref() == Some("search") {
            prefs.collation_type = Some(CollationType::Search);
        }
        prefs.numeric_ordering = options
            .numeric
            .map(|numeric| if numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False });
        prefs.case_first = match options.case_first.as_deref() {
            None => None,
            Some("upper") => Some(CollationCaseFirst::Upper),
            Some("lower") => Some(CollationCaseFirst::Lower),
            Some("false") => Some(CollationCaseFirst::False),
            Some(other) => return Err(IntlError::option("caseFirst", other, "upper, lower or false")),
        };
        let mut fine = CollatorOptions::default();
        (fine.strength, fine.case_level) = match options.sensitivity.as_deref() {
            None | Some("variant") => (Some(Strength::Tertiary), None),
            Some("base") => (Some(Strength::Primary), None),
            Some("accent") => (Some(Strength::Secondary), None),
            Some("case") => (Some(Strength::Primary), Some(CaseLevel::On)),
            Some(other) => return Err(IntlError::option("sensitivity", other, "base, accent, case or variant")),
        };
        fine.alternate_handling = options
            .ignore_punctuation
            .map(|ignore| if ignore { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable });
        let made = CollatorBorrowed::try_new(prefs, fine);
        // A collation the language does not have is left out, as the standard says.
        let made = made.or_else(|_| {
            prefs.collation_type = None;
            CollatorBorrowed::try_new(prefs, fine)
        });
        made.map(Self).map_err(IntlError::data)
    }

    /// Where `left` stands in relation to `right`.
    pub fn compare(&self, left: &str, right: &str) -> Result<Ordering, IntlError> {
        bounded("text to compare", left.len().max(right.len()), MAX_TEXT_BYTES)?;
        Ok(self.0.compare(left, right))
    }

    /// Does upper or lower case come first by itself: `upper`, `lower` or `false`.
    pub fn case_first(&self) -> &'static str {
        match self.0.resolved_options().case_first {
            CollationCaseFirst::Upper => "upper",
            CollationCaseFirst::Lower => "lower",
            _ => "false",
        }
    }

    /// Is punctuation left out?
    pub fn ignores_punctuation(&self) -> bool {
        self.0.resolved_options().alternate_handling == AlternateHandling::Shifted
    }
}
