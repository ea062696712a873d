//! `providerOptions`: typed options by protocol or provider.

use serde_json::{Map, Value};

use super::value::Field;
use super::{ConfigError, words};

words! {
    /// How much a model reasons, in words that suit every provider.
    ReasoningEffort {
        /// Not at all.
        None = "none",
        /// Not at all (another word for it).
        Disabled = "disabled",
        /// The least possible.
        Minimal = "minimal",
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More.
        XHigh = "xhigh",
        /// The most.
        Max = "max",
        /// On, as the model likes.
        Automatic = "automatic",
        /// Nothing is sent.
        ProviderDefault = "provider-default",
    }
}

/// Whether and which prompt cache key is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheKey {
    /// One made of session and runtime, or none.
    Switch(bool),
    /// This one.
    Own(String),
}

/// Options read for one slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderOptions {
    /// Reasoning level.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// May several tools be called at once?
    pub parallel_tool_calls: Option<bool>,
    /// May the provider keep the exchange?
    pub store: Option<bool>,
    /// Sampling seed.
    pub seed: Option<i64>,
    /// End-user name sent along.
    pub user: Option<String>,
    /// Prompt cache key.
    pub prompt_cache_key: Option<CacheKey>,
    /// Turn system messages behind the first other message into user messages.
    pub late_system_as_user: Option<bool>,
    /// Fields merged into the body as they are.
    pub extra_body: Map<String, Value>,
    /// Names not understood, ignored.
    pub ignored: Vec<String>,
}

impl ProviderOptions {
    /// Reads the namespace of the protocol, then that of the provider over it. Other namespaces belong to other
    /// targets and are not looked at.
    pub(super) fn read(field: &Field<'_>, protocol: &str, provider: &str) -> Result<Self, ConfigError> {
        let mut namespaces = field.object()?;
        let mut options = Self::default();
        for name in [protocol, provider] {
            match namespaces.remove(name) {
                Some(Value::Object(values)) => options.merge(field, name, values)?,
                None => {}
                Some(_) => return Err(field.bad("tables of options by provider or protocol")),
            }
        }
        Ok(options)
    }

    fn merge(&mut self, field: &Field<'_>, namespace: &str, values: Map<String, Value>) -> Result<(), ConfigError> {
        for (name, value) in values {
            let bad = |expected: &str| ConfigError::BadValue {
                at: field.at.clone(),
                field: format!("providerOptions.{namespace}.{name}"),
                expected: expected.to_owned(),
            };
            let flag = || value.as_bool().ok_or_else(|| bad("true or false"));
            match name.as_str() {
                "reasoningEffort" => {
                    let level = value.as_str().and_then(ReasoningEffort::from_word);
                    self.reasoning_effort = Some(level.ok_or_else(|| bad("a reasoning level"))?);
                }
                "parallelToolCalls" => self.parallel_tool_calls = Some(flag()?),
                "store" => self.store = Some(flag()?),
                "lateSystemAsUser" => self.late_system_as_user = Some(flag()?),
                "seed" => self.seed = Some(value.as_i64().ok_or_else(|| bad("a whole number"))?),
                "user" => self.user = Some(value.as_str().ok_or_else(|| bad("text"))?.to_owned()),
                "promptCacheKey" => {
                    self.prompt_cache_key = Some(match &value {
                        Value::Bool(on) => CacheKey::Switch(*on),
                        Value::String(key) if !key.is_empty() => CacheKey::Own(key.clone()),
                        _ => return Err(bad("true, false or text")),
                    });
                }
                "extraBody" => match value {
                    Value::Object(map) => self.extra_body.extend(map),
                    _ => return Err(bad("a table")),
                },
                _ => self.ignored.push(format!("{namespace}.{name}")),
            }
        }
        Ok(())
    }
}
