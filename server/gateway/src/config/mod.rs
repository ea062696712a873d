//! `llm.toml`: which model answers for which slot.
//!
//! The file has one table `[covel.<slot>]` a slot. Reading is pure: the text and a lookup for environment variables go
//! in, [`LlmConfig`] comes out, or a [`ConfigError`] with the line. A slot without its key or of a protocol this
//! program does not speak is read all the same and reported by [`LlmConfig::problems`]; only using it fails.
//! Not here: sending anything, choosing between sessions' own settings.

mod endpoint;
mod error;
mod options;
mod providers;
mod read;
mod value;

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

pub use endpoint::{Endpoint, EndpointProblem};
pub use error::{At, ConfigError};
pub use options::{CacheKey, ProviderOptions, ReasoningEffort};
pub use providers::{DEFAULT_PROTOCOL, PROTOCOLS, PROVIDERS, Provider, key_variable};

use crate::limits::{DEFAULT_CONTEXT_WINDOW, DEFAULT_OUTPUT_TOKENS, MAX_CONFIG_BYTES};
use crate::secret::Secret;

/// What reading the file may use of its surroundings.
pub struct Surroundings<'a> {
    /// Looks an environment variable up.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// May base URLs name this machine? Only where the operator is the user.
    pub loopback_allowed: bool,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("loopback_allowed", &self.loopback_allowed).finish_non_exhaustive()
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$inner])* $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word used in `llm.toml`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value of a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What a slot is for. Calls never cross tags.
    Tag {
        /// Text and objects.
        Text = "text",
        /// Pictures.
        Image = "image",
        /// Vectors.
        Embedding = "embedding",
        /// Text to speech.
        Speech = "speech",
        /// Speech to text.
        Transcription = "transcription",
        /// Music.
        Music = "music",
        /// Judged questions.
        Evaluation = "evaluation",
    }
}

words! {
    /// What a model takes in or gives out.
    Modality {
        /// Text.
        Text = "text",
        /// Pictures.
        Image = "image",
        /// Sound.
        Audio = "audio",
        /// Film.
        Video = "video",
        /// Files (input only).
        File = "file",
        /// Vectors (output only).
        Embedding = "embedding",
        /// Judged questions (output only).
        Evaluation = "evaluation",
    }
}

words! {
    /// What a model can do.
    Feature {
        /// Calls tools.
        FunctionCalling = "function_calling",
        /// Has a JSON mode.
        StructuredOutput = "structured_output",
        /// Streams.
        Streaming = "streaming",
        /// Reasons.
        Reasoning = "reasoning",
        /// Sees.
        Vision = "vision",
        /// Caches prompts.
        PromptCaching = "prompt_caching",
        /// Searches the web.
        WebSearch = "web_search",
        /// Uses a computer.
        ComputerUse = "computer_use",
    }
}

words! {
    /// How an embedding request is written.
    EmbeddingFormat {
        /// The usual one.
        OpenAi = "openai",
        /// With pictures.
        NemotronMultimodal = "nemotron-multimodal",
    }
}

/// Prices, for showing costs only: US dollars a million tokens, or a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Pricing {
    pub input_per_m_token: Option<f64>,
    pub output_per_m_token: Option<f64>,
    pub image_input_per_m_token: Option<f64>,
    pub audio_input_per_m_token: Option<f64>,
    pub audio_output_per_m_token: Option<f64>,
    pub per_image: Option<f64>,
    pub cache_read_per_m_token: Option<f64>,
    pub cache_write_per_m_token: Option<f64>,
}

/// The key of a slot.
#[derive(Clone, Debug)]
pub enum Key {
    /// None needed: the endpoint is this machine.
    None,
    /// Needed, and this variable is not set.
    Missing {
        /// Variable.
        variable: String,
    },
    /// There.
    Set(Secret),
}

/// A model behind a slot name.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Where the table stands; also holds the slot's name.
    pub at: At,
    /// Provider id.
    pub provider: String,
    /// Model id, sent unchanged.
    pub model: String,
    /// Address.
    pub endpoint: Endpoint,
    /// Protocol id.
    pub protocol: String,
    /// What it is for.
    pub tag: Tag,
    /// The slot asked when this one fails.
    pub fallback: Option<String>,
    /// What the model takes in, if said.
    pub input: Option<Vec<Modality>>,
    /// What it gives out, if said.
    pub output: Option<Vec<Modality>>,
    /// What it can do, if said.
    pub features: Option<Vec<Feature>>,
    /// Context window, tokens, if said.
    pub context_window: Option<u32>,
    /// Output budget, tokens, if said.
    pub max_output_tokens: Option<u32>,
    /// Prices, if said.
    pub pricing: Option<Pricing>,
    /// Reasoning level, if said.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Embedding request format.
    pub embedding_format: EmbeddingFormat,
    /// `providerRequestMetadata`, merged into request bodies.
    pub request_metadata: Map<String, Value>,
    /// `providerOptions` of this slot's protocol, then of its provider, merged.
    pub options: ProviderOptions,
    /// Key.
    pub key: Key,
}

/// Token limits as really used (MOD-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimits {
    /// Context window.
    pub context_window: u32,
    /// Output budget.
    pub max_output_tokens: u32,
}

impl Slot {
    /// Name.
    pub fn name(&self) -> &str {
        &self.at.slot
    }

    /// Does the model declare this feature, or declare nothing at all?
    pub fn may(&self, feature: Feature) -> bool {
        self.features.as_ref().is_none_or(|features| features.contains(&feature))
    }

    /// Limits with the defaults filled in: an undeclared window counts as 262,144; the automatic output budget is
    /// 16,384 but at most half the window; a budget set by the operator is used as it is. A call's own number can
    /// only lower the budget (MOD-4).
    pub fn token_limits(&self, call: Option<u32>) -> TokenLimits {
        let context_window = self.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW);
        let slot = self.max_output_tokens.unwrap_or_else(|| DEFAULT_OUTPUT_TOKENS.min(context_window / 2));
        let max_output_tokens = call.map_or(slot, |call| call.min(slot)).max(1);
        TokenLimits { context_window, max_output_tokens }
    }
}

/// The configured slots, in file order.
#[derive(Clone, Debug)]
pub struct LlmConfig {
    pub(crate) slots: Vec<Slot>,
}

impl LlmConfig {
    /// Reads the text of `llm.toml`.
    ///
    /// # Errors
    /// The first thing wrong, in reading order.
    pub fn parse(text: &[u8], surroundings: &Surroundings<'_>) -> Result<Self, ConfigError> {
        read::read(text, surroundings)
    }

    /// Reads a file, at most [`MAX_CONFIG_BYTES`] of it.
    ///
    /// # Errors
    /// As [`Self::parse`], and [`ConfigError::Unreadable`].
    pub fn load(path: &Path, surroundings: &Surroundings<'_>) -> Result<Self, ConfigError> {
        let unreadable =
            |error: std::io::Error| ConfigError::Unreadable { path: path.into(), reason: error.to_string() };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = Vec::new();
        file.take(MAX_CONFIG_BYTES as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
        Self::parse(&text, surroundings)
    }

    /// What is used when there is no file: DeepSeek for `story`.
    ///
    /// # Errors
    /// A key that cannot be sent.
    pub fn built_in(surroundings: &Surroundings<'_>) -> Result<Self, ConfigError> {
        let text = "[covel.story]\nprovider = \"deepseek\"\nmodel = \"deepseek-v4-flash\"\n";
        let mut config = Self::parse(text.as_bytes(), surroundings)?;
        for slot in &mut config.slots {
            slot.at.line = 0;
        }
        Ok(config)
    }

    /// The slots in file order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot that answers for a name: the one of that name, otherwise the first of the same tag. An empty name
    /// asks for the first.
    ///
    /// # Errors
    /// [`ConfigError::WrongTag`], [`ConfigError::NoSlotFor`].
    pub fn resolve(&self, name: &str, tag: Tag) -> Result<&Slot, ConfigError> {
        match self.slots.iter().find(|slot| slot.name() == name) {
            Some(slot) if slot.tag == tag => Ok(slot),
            Some(slot) => {
                Err(ConfigError::WrongTag { at: slot.at.clone(), found: slot.tag.word(), wanted: tag.word() })
            }
            None => self
                .slots
                .iter()
                .find(|slot| slot.tag == tag)
                .ok_or_else(|| ConfigError::NoSlotFor { name: name.chars().take(64).collect(), tag: tag.word() }),
        }
    }

    /// `first` and the slots its `fallback` leads to, each once.
    pub fn chain<'a>(&'a self, first: &'a Slot) -> Vec<&'a Slot> {
        let mut chain = vec![first];
        let mut next = first.fallback.as_deref();
        while let Some(slot) = next.and_then(|name| self.slots.iter().find(|slot| slot.name() == name)) {
            if chain.iter().any(|seen| seen.name() == slot.name()) {
                break;
            }
            chain.push(slot);
            next = slot.fallback.as_deref();
        }
        chain
    }

    /// Why slots cannot be used although the file is right: keys not set, protocols not spoken.
    pub fn problems(&self) -> Vec<ConfigError> {
        self.slots.iter().filter_map(|slot| slot.ready().err()).collect()
    }

    /// Every key, for redaction.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.slots.iter().filter_map(|slot| match &slot.key {
            Key::Set(secret) => Some(secret),
            Key::None | Key::Missing { .. } => None,
        })
    }
}

impl Slot {
    /// Can requests be sent for this slot?
    ///
    /// # Errors
    /// [`ConfigError::MissingKey`], [`ConfigError::UnsupportedProtocol`].
    pub fn ready(&self) -> Result<(), ConfigError> {
        if crate::protocol::by_id(&self.protocol).is_none() {
            return Err(ConfigError::UnsupportedProtocol {
                at: self.at.clone(),
                protocol: self.protocol.clone(),
                spoken: crate::protocol::spoken(),
            });
        }
        match &self.key {
            Key::Missing { variable } => Err(ConfigError::MissingKey {
                at: self.at.clone(),
                provider: self.provider.clone(),
                variable: variable.clone(),
            }),
            Key::None | Key::Set(_) => Ok(()),
        }
    }
}
