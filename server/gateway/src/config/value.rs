//! TOML values with their lines, and `${NAME}` in them.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{At, ConfigError, Surroundings};
use crate::limits::{MAX_NAME_CHARS, MAX_VALUE_BYTES};

/// Finds lines for byte offsets.
pub(super) struct Lines {
    ends: Vec<usize>,
}

impl Lines {
    pub(super) fn new(text: &[u8]) -> Self {
        Self { ends: memchr::memchr_iter(b'\n', text).collect() }
    }

    /// The line of an offset, from 1.
    pub(super) fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.ends.partition_point(|end| *end < offset) + 1).unwrap_or(u32::MAX)
    }

    /// Where the line of an offset starts.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.ends.partition_point(|end| *end < offset).checked_sub(1).map_or(0, |at| self.ends[at] + 1)
    }
}

/// A table's entries in file order: the map itself is ordered by name.
pub(super) fn in_file_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// One value of a slot: what it is called and where it stands.
pub(super) struct Field<'a> {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) value: &'a DeValue<'a>,
    pub(super) surroundings: &'a Surroundings<'a>,
}

impl Field<'_> {
    pub(super) fn bad(&self, expected: impl Into<String>) -> ConfigError {
        ConfigError::BadValue { at: self.at.clone(), field: self.name.clone(), expected: expected.into() }
    }

    /// Text that is not empty, with `${NAME}` replaced.
    pub(super) fn text(&self) -> Result<String, ConfigError> {
        let DeValue::String(text) = self.value else {
            return Err(self.bad("text"));
        };
        let text = self.interpolate(text)?;
        if text.trim().is_empty() { Err(self.bad("text that is not empty")) } else { Ok(text) }
    }

    pub(super) fn word<T: Copy>(&self, all: &[T], word: fn(T) -> &'static str) -> Result<T, ConfigError> {
        let text = self.text()?;
        let found = all.iter().copied().find(|value| word(*value) == text);
        found.ok_or_else(|| self.bad(format!("one of {}", list(all.iter().map(|value| word(*value))))))
    }

    pub(super) fn words<T: Copy>(&self, all: &[T], word: fn(T) -> &'static str) -> Result<Vec<T>, ConfigError> {
        let expected = || self.bad(format!("a list of {}", list(all.iter().map(|value| word(*value)))));
        let DeValue::Array(items) = self.value else {
            return Err(expected());
        };
        let mut found = Vec::new();
        for item in items.iter() {
            let DeValue::String(text) = item.get_ref() else {
                return Err(expected());
            };
            found.push(all.iter().copied().find(|value| word(*value) == text.as_ref()).ok_or_else(expected)?);
        }
        Ok(found)
    }

    /// A whole number of tokens, from 1.
    pub(super) fn tokens(&self) -> Result<u32, ConfigError> {
        let number = match self.value {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.filter(|number| *number > 0).ok_or_else(|| self.bad(format!("a whole number from 1 to {}", u32::MAX)))
    }

    /// A price, from 0.
    pub(super) fn price(&self) -> Result<f64, ConfigError> {
        let number = match self.json()? {
            Value::Number(number) => number.as_f64(),
            _ => None,
        };
        number.filter(|price| price.is_finite() && *price >= 0.0).ok_or_else(|| self.bad("a number from 0"))
    }

    /// The value as JSON, with `${NAME}` replaced in every text.
    pub(super) fn json(&self) -> Result<Value, ConfigError> {
        self.to_json(self.value)
    }

    /// A table as JSON.
    pub(super) fn object(&self) -> Result<Map<String, Value>, ConfigError> {
        match self.json()? {
            Value::Object(map) => Ok(map),
            _ => Err(self.bad("a table")),
        }
    }

    fn to_json(&self, value: &DeValue<'_>) -> Result<Value, ConfigError> {
        Ok(match value {
            DeValue::String(text) => Value::String(self.interpolate(text)?),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(|number| Value::Number(number.into()))
                .map_err(|_| self.bad("numbers that fit 64 bits"))?,
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| self.bad("finite numbers"))?,
            DeValue::Datetime(_) => {
                return Err(self.bad("text, numbers, true, false, lists or tables (no dates)"));
            }
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| self.to_json(item.get_ref())).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => {
                let mut map = Map::new();
                for (key, value) in in_file_order(table) {
                    map.insert(key.get_ref().to_string(), self.to_json(value.get_ref())?);
                }
                Value::Object(map)
            }
        })
    }

    /// Replaces each `${NAME}`. What a variable holds is not searched again.
    fn interpolate(&self, text: &str) -> Result<String, ConfigError> {
        let bad = || ConfigError::BadInterpolation { at: self.at.clone(), field: self.name.clone() };
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, after) = (&rest[..start], &rest[start + 2..]);
            let end = after.find('}').ok_or_else(bad)?;
            let name = &after[..end];
            if !is_variable(name) {
                return Err(bad());
            }
            if name.to_ascii_uppercase().ends_with("API_KEY") {
                return Err(ConfigError::SecretInterpolation {
                    at: self.at.clone(),
                    field: self.name.clone(),
                    variable: name.to_owned(),
                });
            }
            let value = (self.surroundings.variable)(name).ok_or_else(|| ConfigError::MissingVariable {
                at: self.at.clone(),
                field: self.name.clone(),
                variable: name.to_owned(),
            })?;
            out.push_str(before);
            out.push_str(&value);
            rest = &after[end + 1..];
        }
        out.push_str(rest);
        if out.len() > MAX_VALUE_BYTES {
            Err(self.bad(format!("at most {MAX_VALUE_BYTES} bytes long")))
        } else {
            Ok(out)
        }
    }
}

fn is_variable(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `a, b, c`.
pub(super) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
