//! Lists in running text.

use icu_list::{
    ListFormatter, ListFormatterPreferences,
    options::{ListFormatterOptions, ListLength},
};
use serde::Deserialize;

use crate::{
    error::{IntlError, bounded},
    limits::{MAX_LIST_MEMBERS, MAX_TEXT_BYTES},
    locale::parse,
    parts::{PartText, cut},
};

/// Options of [`Lists`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListOptions {
    /// Language, script, region.
    pub locale: String,
    /// `conjunction`, `disjunction` or `unit`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `long`, `short` or `narrow`.
    pub style: Option<String>,
}

/// Joins members of a list.
pub struct Lists(ListFormatter);

impl Lists {
    /// Fails on values that do not exist.
    pub fn new(options: &ListOptions) -> Result<Self, IntlError> {
        let length = match options.style.as_deref() {
            None | Some("long") => ListLength::Wide,
            Some("short") => ListLength::Short,
            Some("narrow") => ListLength::Narrow,
            Some(other) => return Err(IntlError::option("style", other, "long, short or narrow")),
        };
        let prefs = ListFormatterPreferences::from(&parse(&options.locale)?);
        let length = ListFormatterOptions::default().with_length(length);
        let made = match options.kind.as_deref() {
            None | Some("conjunction") => ListFormatter::try_new_and(prefs, length),
            Some("disjunction") => ListFormatter::try_new_or(prefs, length),
            Some("unit") => ListFormatter::try_new_unit(prefs, length),
            Some(other) => return Err(IntlError::option("type", other, "conjunction, disjunction or unit")),
        };
        made.map(Self).map_err(IntlError::data)
    }

    /// The members joined; parts are `element` and `literal`.
    pub fn format(&self, members: &[String]) -> Result<Vec<PartText>, IntlError> {
        if members.len() > MAX_LIST_MEMBERS {
            return Err(IntlError::TooLarge { what: "the list", limit: format!("{MAX_LIST_MEMBERS} members") });
        }
        bounded("the list", members.iter().map(String::len).sum(), MAX_TEXT_BYTES)?;
        Ok(cut(&self.0.format(members.iter()), |part| (part.value == "element").then_some("element")))
    }
}
