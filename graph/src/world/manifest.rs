//! The documents of a world as written.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) id: Spanned<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) summary: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) default_locale: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) supported_locales: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default)]
    pub(super) plugin_policy: Policy,
    #[serde(default)]
    pub(super) plugin_settings: IndexMap<String, IndexMap<Spanned<String>, Value>>,
    #[serde(default)]
    pub(super) character_schema: Option<CharacterSchema>,
    #[serde(default)]
    pub(super) characters: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) lorebook: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) world_data: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) dimensions: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) dimension_sources: IndexMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) scenes: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policy {
    #[serde(default)]
    pub(super) requested: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) recommended: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) requires: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) packs: Vec<Pack>,
    #[serde(default)]
    pub(super) preset_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Pack {
    pub(super) id: String,
    #[serde(default)]
    pub(super) requested: Vec<Spanned<String>>,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CharacterSchema {
    #[serde(default)]
    pub(super) types: Vec<String>,
    #[serde(default)]
    pub(super) attributes: Vec<Value>,
}

/// A language variant of the manifest: text only, everything else stays as it is in the canonical file.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variant {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) summary: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) character_schema: Option<Value>,
    #[serde(default)]
    pub(super) dimensions: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) sources: IndexMap<String, Source>,
}

#[derive(Deserialize)]
pub(super) struct Source {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) to: Value,
}
