//! Locale tags: their canonical form, and which of several requested ones is used.

use icu_locale::{Locale, LocaleCanonicalizer, extensions::unicode::Key};

use crate::{
    error::{IntlError, clip},
    limits::{MAX_LOCALES, MAX_TAG_BYTES},
};

/// What is used when nothing that was asked for is supported: the same everywhere, so that results do not depend on the
/// machine.
pub const DEFAULT_LOCALE: &str = "en-US";

/// Languages with full data. Sorted.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "es", "et", "eu",
    "fa", "fi", "fil", "fr", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "hu", "hy", "id", "ig", "is", "it", "ja",
    "ka", "kk", "km", "kn", "ko", "kok", "ky", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "my", "nb", "ne", "nl",
    "nn", "no", "or", "pa", "pcm", "pl", "ps", "pt", "ro", "ru", "sd", "si", "sk", "sl", "so", "sq", "sr", "sv", "sw",
    "ta", "te", "th", "tk", "tr", "uk", "ur", "uz", "vi", "yo", "yue", "zh", "zu",
];

/// The locale a service uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Language, script and region, without extensions.
    pub locale: String,
    /// `-u-` keywords of the tag that the service knows, as (key, value); an empty value means `true`.
    pub keywords: Vec<(String, String)>,
}

pub(crate) fn parse(tag: &str) -> Result<Locale, IntlError> {
    let refused = || IntlError::InvalidLocale { tag: clip(tag) };
    // The parser takes underscores, the standard does not.
    if tag.is_empty() || tag.len() > MAX_TAG_BYTES || tag.contains('_') {
        return Err(refused());
    }
    Locale::try_from_str(tag).map_err(|_| refused())
}

/// The canonical form of a tag, or why it is none.
pub fn canonical(tag: &str) -> Result<String, IntlError> {
    let mut locale = parse(tag)?;
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    Ok(locale.to_string())
}

/// Canonical forms, each once, in order.
pub fn canonical_list(tags: &[String]) -> Result<Vec<String>, IntlError> {
    if tags.len() > MAX_LOCALES {
        return Err(IntlError::TooLarge { what: "the list of locales", limit: format!("{MAX_LOCALES} tags") });
    }
    let mut out: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        let tag = canonical(tag)?;
        if !out.contains(&tag) {
            out.push(tag);
        }
    }
    Ok(out)
}

/// Is there data for the language of this tag?
pub fn supported(tag: &str) -> bool {
    parse(tag).is_ok_and(|locale| LANGUAGES.binary_search(&locale.id.language.as_str()).is_ok())
}

/// Chooses the first tag there is data for. `keys` are the `-u-` keywords the service knows.
pub fn resolve(canonical_tags: &[String], keys: &[&str]) -> Resolved {
    let chosen = canonical_tags.iter().find(|tag| supported(tag)).and_then(|tag| parse(tag).ok());
    let Some(locale) = chosen else {
        return Resolved { locale: DEFAULT_LOCALE.to_owned(), keywords: Vec::new() };
    };
    let keywords = keys.iter().filter_map(|key| {
        let value = locale.extensions.unicode.keywords.get(&Key::try_from_str(key).ok()?)?;
        Some(((*key).to_owned(), value.to_string()))
    });
    let keywords = keywords.collect();
    let mut id = locale.id;
    id.variants = icu_locale::subtags::Variants::new();
    Resolved { locale: id.to_string(), keywords }
}
