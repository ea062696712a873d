//! Upper and lower case by the rules of a language.

use icu_casemap::CaseMapper;

use crate::{
    error::{IntlError, bounded},
    limits::MAX_TEXT_BYTES,
    locale::parse,
};

/// `text` in upper case.
pub fn upper(locale: &str, text: &str) -> Result<String, IntlError> {
    bounded("text", text.len(), MAX_TEXT_BYTES)?;
    Ok(CaseMapper::new().uppercase_to_string(text, &parse(locale)?.id).into_owned())
}

/// `text` in lower case.
pub fn lower(locale: &str, text: &str) -> Result<String, IntlError> {
    bounded("text", text.len(), MAX_TEXT_BYTES)?;
    Ok(CaseMapper::new().lowercase_to_string(text, &parse(locale)?.id).into_owned())
}
