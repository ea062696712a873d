//! From the text of `llm.toml` to slots.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::value::{Field, Lines, in_file_order, list};
use super::{
    At, ConfigError, EmbeddingFormat, Endpoint, EndpointProblem, Feature, Key, LlmConfig, Modality, Pricing,
    ProviderOptions, ReasoningEffort, Slot, Surroundings, Tag, providers,
};
use crate::limits::{MAX_CONFIG_BYTES, MAX_KEY_BYTES, MAX_NAME_CHARS, MAX_SLOTS};
use crate::secret::Secret;

const SLOT_FIELDS: [&str; 16] = [
    "provider",
    "model",
    "baseUrl",
    "protocol",
    "tag",
    "fallback",
    "input",
    "output",
    "features",
    "contextWindow",
    "maxOutputTokens",
    "pricing",
    "reasoningEffort",
    "embeddingFormat",
    "providerRequestMetadata",
    "providerOptions",
];

pub(super) fn read(text: &[u8], surroundings: &Surroundings<'_>) -> Result<LlmConfig, ConfigError> {
    if text.len() > MAX_CONFIG_BYTES {
        return Err(ConfigError::TooLarge { limit: MAX_CONFIG_BYTES });
    }
    let lines = Lines::new(text);
    let text =
        std::str::from_utf8(text).map_err(|error| ConfigError::NotUtf8 { line: lines.line(error.valid_up_to()) })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text.as_bytes());
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        let column = text.get(lines.line_start(offset)..offset).map_or(0, |before| before.chars().count());
        // The parser's own display quotes the line, which may hold a secret; its message does not.
        ConfigError::Syntax {
            line: lines.line(offset),
            column: u32::try_from(column + 1).unwrap_or(u32::MAX),
            reason: error.message().to_owned(),
        }
    })?;

    let mut slots: Vec<Slot> = Vec::new();
    for (key, value) in in_file_order(document.get_ref()) {
        let line = lines.line(key.span().start);
        let table = match value.get_ref() {
            DeValue::Table(table) if key.get_ref() == "covel" => table,
            _ => {
                return Err(ConfigError::UnknownTable { line, name: shorten(key.get_ref()) });
            }
        };
        for (name, value) in in_file_order(table) {
            let line = lines.line(name.span().start);
            let DeValue::Table(fields) = value.get_ref() else {
                return Err(ConfigError::UnknownTable { line, name: shorten(&format!("covel.{}", name.get_ref())) });
            };
            if !is_name(name.get_ref()) {
                return Err(ConfigError::BadSlotName { line, limit: MAX_NAME_CHARS });
            }
            if slots.len() == MAX_SLOTS {
                return Err(ConfigError::TooManySlots { line, limit: MAX_SLOTS });
            }
            let at = At { slot: name.get_ref().to_string(), line };
            slots.push(SlotReader { at, lines: &lines, surroundings, fields }.read()?);
        }
    }
    if slots.is_empty() {
        return Err(ConfigError::NoSlots);
    }
    let config = LlmConfig { slots };
    check_fallbacks(&config)?;
    Ok(config)
}

fn check_fallbacks(config: &LlmConfig) -> Result<(), ConfigError> {
    for slot in &config.slots {
        let Some(name) = &slot.fallback else { continue };
        let target = config.slots.iter().find(|other| other.name() == name);
        let target =
            target.ok_or_else(|| ConfigError::UnknownFallback { at: slot.at.clone(), target: shorten(name) })?;
        if target.tag != slot.tag {
            return Err(ConfigError::FallbackTag {
                at: slot.at.clone(),
                target: shorten(name),
                found: target.tag.word(),
                wanted: slot.tag.word(),
            });
        }
    }
    Ok(())
}

struct SlotReader<'a> {
    at: At,
    lines: &'a Lines,
    surroundings: &'a Surroundings<'a>,
    fields: &'a DeTable<'a>,
}

impl<'a> SlotReader<'a> {
    fn read(self) -> Result<Slot, ConfigError> {
        let mut fields = BTreeMap::new();
        for (key, value) in in_file_order(self.fields) {
            let name: &str = key.get_ref();
            let field = self.field(name, key.span().start, value.get_ref());
            if !SLOT_FIELDS.contains(&name) {
                return Err(self.unknown(&field));
            }
            fields.insert(name, field);
        }
        let take = |name: &str| fields.get(name);
        let need = |name: &'static str| {
            fields.get(name).ok_or_else(|| ConfigError::MissingField { at: self.at.clone(), field: name })
        };

        let provider_field = need("provider")?;
        let provider = provider_field.text()?;
        if !is_name(&provider) || !provider.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(provider_field.bad(format!("1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` or `.`")));
        }
        let known = providers::provider(&provider);
        let model = need("model")?.text()?;

        let (url, url_at) = match (take("baseUrl"), known) {
            (Some(field), _) => (field.text()?, &field.at),
            (None, Some(known)) => (known.base_url.to_owned(), &provider_field.at),
            (None, None) => {
                return Err(ConfigError::UnknownProvider {
                    at: provider_field.at.clone(),
                    provider,
                    known: list(providers::PROVIDERS.iter().map(|provider| provider.id)),
                });
            }
        };
        let endpoint = Endpoint::parse(&url).map_err(|problem| match problem {
            EndpointProblem::Malformed(problem) => ConfigError::BadUrl { at: url_at.clone(), problem },
            EndpointProblem::Insecure => ConfigError::InsecureUrl { at: url_at.clone() },
        })?;
        if endpoint.is_loopback() && !self.surroundings.loopback_allowed {
            return Err(ConfigError::LoopbackForbidden { at: url_at.clone() });
        }

        let protocol = match take("protocol") {
            Some(field) => {
                let protocol = field.text()?;
                if !providers::PROTOCOLS.contains(&protocol.as_str()) && !is_wire(&protocol) {
                    return Err(ConfigError::UnknownProtocol {
                        at: field.at.clone(),
                        protocol: shorten(&protocol),
                        known: list(providers::PROTOCOLS),
                    });
                }
                protocol
            }
            None => known.map_or(providers::DEFAULT_PROTOCOL, |known| known.protocol).to_owned(),
        };

        let input = take("input").map(|field| field.words(Modality::ALL, Modality::word)).transpose()?;
        let output = take("output").map(|field| field.words(Modality::ALL, Modality::word)).transpose()?;
        let tag = match take("tag") {
            Some(field) => field.word(Tag::ALL, Tag::word)?,
            None => infer_tag(output.as_deref()),
        };
        let context_window = take("contextWindow").map(Field::tokens).transpose()?;
        let max_output_tokens = take("maxOutputTokens").map(Field::tokens).transpose()?;
        if let (Some(field), Some(window), Some(output)) = (take("maxOutputTokens"), context_window, max_output_tokens)
            && output >= window
        {
            return Err(field.bad(format!("less than the context window of {window} tokens")));
        }
        let options = match take("providerOptions") {
            Some(field) => ProviderOptions::read(field, &protocol, &provider)?,
            None => ProviderOptions::default(),
        };
        let key = self.key(&provider, &endpoint, &provider_field.at)?;

        Ok(Slot {
            model,
            endpoint,
            protocol,
            tag,
            fallback: take("fallback").map(Field::text).transpose()?,
            input,
            output,
            features: take("features").map(|field| field.words(Feature::ALL, Feature::word)).transpose()?,
            context_window,
            max_output_tokens,
            pricing: take("pricing").map(|field| self.pricing(field)).transpose()?,
            reasoning_effort: take("reasoningEffort")
                .map(|field| field.word(ReasoningEffort::ALL, ReasoningEffort::word))
                .transpose()?,
            embedding_format: take("embeddingFormat")
                .map(|field| field.word(EmbeddingFormat::ALL, EmbeddingFormat::word))
                .transpose()?
                .unwrap_or(EmbeddingFormat::OpenAi),
            request_metadata: take("providerRequestMetadata").map(Field::object).transpose()?.unwrap_or_default(),
            options,
            key,
            at: self.at,
            provider,
        })
    }

    fn field(&self, name: &str, offset: usize, value: &'a DeValue<'a>) -> Field<'a> {
        let at = At { slot: self.at.slot.clone(), line: self.lines.line(offset) };
        Field { name: shorten(name), at, value, surroundings: self.surroundings }
    }

    fn unknown(&self, field: &Field<'_>) -> ConfigError {
        let plain = field.name.to_ascii_lowercase().replace(['-', '_'], "");
        if ["key", "secret", "token", "password", "authorization"].iter().any(|word| plain.ends_with(word)) {
            let provider = self.fields.get("provider").and_then(|value| value.get_ref().as_str());
            return ConfigError::SecretInFile {
                at: field.at.clone(),
                field: field.name.clone(),
                variable: providers::key_variable(&shorten(provider.unwrap_or("provider"))),
            };
        }
        let accepted = match plain.as_str() {
            "thinking" | "reasoningeffort" => "the reasoning level is `reasoningEffort`".to_owned(),
            "imageapi" => "use `providerRequestMetadata.imageWire`".to_owned(),
            _ => match SLOT_FIELDS.iter().find(|known| known.to_ascii_lowercase() == plain) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("a slot has {}", list(SLOT_FIELDS)),
            },
        };
        ConfigError::UnknownField { at: field.at.clone(), field: field.name.clone(), accepted }
    }

    fn pricing(&self, field: &Field<'a>) -> Result<Pricing, ConfigError> {
        let DeValue::Table(table) = field.value else {
            return Err(field.bad("a table of prices"));
        };
        let mut pricing = Pricing::default();
        for (key, value) in in_file_order(table) {
            let name = format!("pricing.{}", key.get_ref());
            let price = self.field(&name, key.span().start, value.get_ref());
            let place = match key.get_ref().as_ref() {
                "inputPerMToken" => &mut pricing.input_per_m_token,
                "outputPerMToken" => &mut pricing.output_per_m_token,
                "imageInputPerMToken" => &mut pricing.image_input_per_m_token,
                "audioInputPerMToken" => &mut pricing.audio_input_per_m_token,
                "audioOutputPerMToken" => &mut pricing.audio_output_per_m_token,
                "perImage" => &mut pricing.per_image,
                "cacheReadPerMToken" => &mut pricing.cache_read_per_m_token,
                "cacheWritePerMToken" => &mut pricing.cache_write_per_m_token,
                _ => {
                    return Err(ConfigError::UnknownField {
                        at: price.at,
                        field: price.name,
                        accepted: "prices are inputPerMToken, outputPerMToken, imageInputPerMToken, \
                                   audioInputPerMToken, audioOutputPerMToken, perImage, cacheReadPerMToken, \
                                   cacheWritePerMToken"
                            .to_owned(),
                    });
                }
            };
            *place = Some(price.price()?);
        }
        Ok(pricing)
    }

    /// The key is looked up once, here, and stays with this slot's endpoint: nothing can send it elsewhere.
    fn key(&self, provider: &str, endpoint: &Endpoint, at: &At) -> Result<Key, ConfigError> {
        let variable = providers::key_variable(provider);
        match (self.surroundings.variable)(&variable).filter(|value| !value.trim().is_empty()) {
            Some(value) => Secret::new(&value).map(Key::Set).ok_or(ConfigError::BadKey {
                at: at.clone(),
                variable,
                limit: MAX_KEY_BYTES,
            }),
            None if endpoint.is_loopback() => Ok(Key::None),
            None => Ok(Key::Missing { variable }),
        }
    }
}

/// Speech follows from audio, music never from anything: it is always written.
fn infer_tag(output: Option<&[Modality]>) -> Tag {
    let Some(output) = output else {
        return Tag::Text;
    };
    if output.contains(&Modality::Text) {
        return Tag::Text;
    }
    let tag = output.iter().find_map(|modality| match modality {
        Modality::Image => Some(Tag::Image),
        Modality::Embedding => Some(Tag::Embedding),
        Modality::Audio => Some(Tag::Speech),
        Modality::Evaluation => Some(Tag::Evaluation),
        Modality::Text | Modality::Video | Modality::File => None,
    });
    tag.unwrap_or(Tag::Text)
}

fn is_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=MAX_NAME_CHARS).contains(&length)
        && !name.chars().any(|character| character.is_control() || character.is_whitespace())
}

fn is_wire(protocol: &str) -> bool {
    protocol.split_once('/').is_some_and(|(plugin, wire)| is_name(plugin) && is_name(wire) && !wire.contains('/'))
}

fn shorten(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_NAME_CHARS).collect()
}
