//! Plural forms.

use icu_plurals::{
    PluralCategory, PluralOperands, PluralRuleType, PluralRules, PluralRulesOptions, PluralRulesPreferences,
};
use serde::Deserialize;

use crate::{
    digits::{Digits, decimal},
    error::IntlError,
    locale::parse,
};

/// Options of [`Plurals`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluralOptions {
    /// Language, script, region.
    pub locale: String,
    /// `cardinal` or `ordinal`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How the number is rounded first.
    #[serde(flatten)]
    pub digits: Digits,
}

/// Chooses plural forms.
pub struct Plurals {
    rules: PluralRules,
    digits: Digits,
}

impl Plurals {
    /// Fails on values that do not exist.
    pub fn new(options: &PluralOptions) -> Result<Self, IntlError> {
        let kind = match options.kind.as_deref() {
            None | Some("cardinal") => PluralRuleType::Cardinal,
            Some("ordinal") => PluralRuleType::Ordinal,
            Some(other) => return Err(IntlError::option("type", other, "cardinal or ordinal")),
        };
        let prefs = PluralRulesPreferences::from(&parse(&options.locale)?);
        let rules =
            PluralRules::try_new(prefs, PluralRulesOptions::default().with_type(kind)).map_err(IntlError::data)?;
        Ok(Self { rules, digits: options.digits.checked()? })
    }

    /// The form of a number given as JavaScript writes it.
    pub fn select(&self, number: &str) -> Result<&'static str, IntlError> {
        let Some(mut value) = decimal(number)? else { return Ok("other") };
        self.digits.apply(&mut value);
        Ok(name(self.rules.category_for(PluralOperands::from(&value))))
    }

    /// The forms of the language, in the standard's order.
    pub fn categories(&self) -> Vec<&'static str> {
        let mut found: Vec<&'static str> = self.rules.categories().map(name).collect();
        found.sort_by_key(|name| ["few", "many", "one", "two", "zero", "other"].iter().position(|n| n == name));
        found
    }
}

fn name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}
