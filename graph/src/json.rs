//! Immutable, shared JSON: bytes first, parsed at most once.
//!
//! A value crosses threads and layers as one pointer. Code that only forwards it never parses it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// One immutable JSON document.
#[derive(Clone)]
pub struct Json(Arc<Inner>);

struct Inner {
    text: OnceLock<Box<str>>,
    value: OnceLock<Value>,
}

impl Json {
    /// Checks and wraps JSON text.
    ///
    /// # Errors
    /// When the text is not one JSON document.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_str(text)?;
        let json = Self::trusted(text);
        let _ = json.0.value.set(value);
        Ok(json)
    }

    /// Wraps text that this process serialised itself (a store record, an archive).
    pub fn trusted(text: impl Into<Box<str>>) -> Self {
        let lock = OnceLock::new();
        let _ = lock.set(text.into());
        Self(Arc::new(Inner { text: lock, value: OnceLock::new() }))
    }

    /// Wraps a value; the text is made when first asked for.
    pub fn from_value(value: Value) -> Self {
        let lock = OnceLock::new();
        let _ = lock.set(value);
        Self(Arc::new(Inner { text: OnceLock::new(), value: lock }))
    }

    /// Serialises any value.
    ///
    /// # Errors
    /// When the value has no JSON form (non-string map keys).
    pub fn of<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::from_value(serde_json::to_value(value)?))
    }

    /// JSON `null`.
    pub fn null() -> Self {
        Self::from_value(Value::Null)
    }

    /// The document as compact text (exactly as given, when made from text).
    pub fn text(&self) -> &str {
        self.0.text.get_or_init(|| match self.0.value.get() {
            Some(value) => value.to_string().into(),
            None => "null".into(),
        })
    }

    /// The document as a tree, or why its text is not JSON. Only text taken on trust can fail: a damaged record.
    ///
    /// # Errors
    /// What the parser says.
    pub fn checked(&self) -> Result<&Value, serde_json::Error> {
        if let (None, Some(text)) = (self.0.value.get(), self.0.text.get()) {
            let value = serde_json::from_str(text)?;
            let _ = self.0.value.set(value);
        }
        Ok(self.value())
    }

    /// The document as a tree; parsed on first use. Text that is not JSON reads as `null`: where a record comes from
    /// outside this process, ask [`Json::checked`] first.
    pub fn value(&self) -> &Value {
        self.0
            .value
            .get_or_init(|| self.0.text.get().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null))
    }

    /// The tree, if it is already there; never parses.
    pub fn parsed(&self) -> Option<&Value> {
        self.0.value.get()
    }

    /// The part an RFC 6901 pointer names (array indexes without leading zeros), if present.
    pub fn pointer(&self, pointer: &str) -> Option<Json> {
        if pointer.is_empty() {
            return Some(self.clone());
        }
        // serde_json already refuses `/01` and `/+1`.
        self.value().pointer(pointer).cloned().map(Self::from_value)
    }

    /// Length of the text form in bytes.
    pub fn byte_len(&self) -> usize {
        self.text().len()
    }

    /// Is the document `null`?
    pub fn is_null(&self) -> bool {
        match self.0.value.get() {
            Some(value) => value.is_null(),
            None => self.text().trim() == "null",
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.value() == other.value()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from_value(value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value).map_err(D::Error::custom)
    }
}
