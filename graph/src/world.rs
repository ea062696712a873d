//! World packages: `world.yaml`, `WORLD.md` lore, locale variants, characters, dimensions, scene material.
//!
//! A world says where a story takes place and which plugins suit it. It holds no code. Reading follows the same
//! containment rules and limits as packages: nothing outside the folder, no symbolic links, text of bounded size.
//! The meaning of scene material is the storyteller's business; here it is only gathered into one document.

mod content;
mod files;
mod manifest;
mod places;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{
    ContractId, Diagnostic, Json, PluginId, Position, WorldId,
    fragment::Text,
    ids::{is_contract_id, is_package_id},
};
use content::{content_sources, read_content, read_scenes, scene_files};
use files::Folder;
use manifest::{Manifest, Policy, Variant};

/// The manifest every world has.
pub const WORLD_MANIFEST: &str = "world.yaml";
/// Folder of scene material when the manifest names none.
const SCENES_FOLDER: &str = "scenes";
/// Longest world id.
const MAX_WORLD_ID: usize = 64;
/// Root fields with a meaning here or in a host; any other gives a warning.
const ROOT_FIELDS: &[&str] = &[
    "schemaVersion",
    "id",
    "name",
    "version",
    "summary",
    "description",
    "defaultLocale",
    "supportedLocales",
    "tags",
    "author",
    "license",
    "homepage",
    "pluginPolicy",
    "pluginSettings",
    "characterSchema",
    "characters",
    "lorebook",
    "worldData",
    "dimensions",
    "dimensionSources",
    "scenes",
    "metadata",
];

/// The parts of a world that differ by language.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorldContent {
    /// `{types, attributes}`, when the author fixed it.
    pub character_schema: Option<Json>,
    /// Character records in author order.
    pub characters: Vec<Json>,
    /// Lorebook entries in author order.
    pub lorebook: Vec<Json>,
    /// Map of dimension id to definition.
    pub dimensions: Option<Json>,
}

/// One world, read and checked.
#[derive(Clone, Debug)]
pub struct World {
    /// Id; 1 to 64 of letters, digits, `_`, `-`.
    pub id: WorldId,
    /// Version, `0.0.0` when absent.
    pub version: String,
    /// Name by locale, default locale first.
    pub name: Text,
    /// One paragraph for a catalogue, by locale.
    pub description: Text,
    /// Catalogue labels.
    pub tags: Vec<String>,
    /// Language of the canonical files.
    pub default_locale: String,
    /// Every language there is, default included.
    pub locales: Vec<String>,
    /// Body of `WORLD.md` and its variants, by locale; empty when there is none.
    pub lore: Text,
    /// Plugins to start with: `pluginPolicy.requested`, then `recommended`, then those of the preset pack.
    pub default_plugins: Vec<PluginId>,
    /// `pluginPolicy.requires`: contracts without which the world cannot be played.
    pub required_contracts: Vec<ContractId>,
    /// World values of plugin settings: plugin, then key.
    pub plugin_settings: IndexMap<PluginId, IndexMap<String, Json>>,
    /// Where those values stand in the manifest.
    pub plugin_setting_places: IndexMap<PluginId, IndexMap<String, Position>>,
    /// Characters, schema and dimensions in the default language.
    pub content: WorldContent,
    /// The same with a language's overlay applied.
    pub localised: BTreeMap<String, WorldContent>,
    /// Scene material: `{"default": BOOK, "locales": {LOCALE: BOOK}}`, a book being the joined files of one language.
    pub scenes: Option<Json>,
    /// Files of scene material, relative to the folder.
    pub scene_files: Vec<String>,
    /// The folder.
    pub root: PathBuf,
    /// BLAKE3 over all paths and file digests, 64 hex digits.
    pub digest: String,
    /// What works, perhaps not as meant.
    pub warnings: Vec<Diagnostic>,
}

impl World {
    /// The content for a session language: exact locale, then language, then the default.
    pub fn content_for(&self, locale: &str) -> &WorldContent {
        self.localised
            .get(locale)
            .or_else(|| self.localised.iter().find(|(key, _)| same_language(key, locale)).map(|(_, content)| content))
            .unwrap_or(&self.content)
    }
}

/// The string of a text for a language: exact, then same language, then the first.
pub fn text_for<'a>(text: &'a Text, locale: &str) -> &'a str {
    text.iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(locale))
        .or_else(|| text.iter().find(|(key, _)| same_language(key, locale)))
        .or_else(|| text.first())
        .map_or("", |(_, string)| string)
}

fn same_language(left: &str, right: &str) -> bool {
    let language = |tag: &str| tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    language(left) == language(right)
}

/// Folders that hold a world: `dir` itself, or its direct subfolders, in name order.
///
/// # Errors
/// When `dir` cannot be listed.
pub fn find_worlds(dir: &Path) -> io::Result<Vec<PathBuf>> {
    if dir.join(WORLD_MANIFEST).is_file() {
        return Ok(vec![dir.to_path_buf()]);
    }
    let mut worlds = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.join(WORLD_MANIFEST).is_file() {
            worlds.push(path);
        }
    }
    worlds.sort();
    Ok(worlds)
}

/// Reads a world folder.
///
/// # Errors
/// Every finding of severity error, each with file and, where known, line and column.
pub fn read_world(dir: &Path) -> Result<World, Vec<Diagnostic>> {
    let mut folder = Folder::open(dir)?;
    let world = read(&mut folder);
    match world {
        Some(world) if folder.errors.is_empty() => Ok(World { warnings: folder.warnings, ..world }),
        _ => Err(folder.errors),
    }
}

fn read(folder: &mut Folder) -> Option<World> {
    let manifest: Manifest = folder.yaml(WORLD_MANIFEST)?;
    warn_unknown_fields(folder);
    let id = &manifest.id;
    let valid_id = !id.value.is_empty()
        && id.value.len() <= MAX_WORLD_ID
        && id.value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !valid_id {
        folder.error_at("world-id-invalid", id, "id", format!("`{}` is not a world id", id.value)).help =
            Some("1 to 64 letters, digits, `_` or `-`".into());
    }
    let default_locale = manifest.default_locale.as_ref().map_or("en", |locale| locale.value.as_str()).to_owned();
    let mut locales = vec![default_locale.clone()];
    for locale in manifest.default_locale.iter().chain(&manifest.supported_locales) {
        if !files::is_locale(&locale.value) {
            folder.error_at(
                "locale-invalid",
                locale,
                "supportedLocales",
                format!("`{}` is not a locale", locale.value),
            );
        } else if !locales.contains(&locale.value) {
            locales.push(locale.value.clone());
        }
    }

    let mut content = WorldContent {
        character_schema: manifest.character_schema.as_ref().and_then(|schema| Json::of(schema).ok()),
        ..WorldContent::default()
    };
    let mut name = vec![(default_locale.clone(), manifest.name.clone())];
    let summary = manifest.summary.clone().or_else(|| manifest.description.clone()).unwrap_or_default();
    let mut description = vec![(default_locale.clone(), summary)];
    let mut lore = Vec::new();
    if let Some(body) = folder.optional_text("WORLD.md") {
        lore.push((default_locale.clone(), body));
    }

    let sources = content_sources(folder, &manifest);
    let mut dimensions = manifest.dimensions.clone().map(Value::Object);
    read_content(folder, &sources, None, &mut content, &mut dimensions);
    content.dimensions = dimensions.clone().map(Json::from_value);

    let mut localised = BTreeMap::new();
    for locale in locales.iter().skip(1) {
        let variant: Variant = folder.optional_yaml(&files::variant_path(WORLD_MANIFEST, locale)).unwrap_or_default();
        name.extend(variant.name.map(|text| (locale.clone(), text)));
        description.extend(variant.summary.or(variant.description).map(|text| (locale.clone(), text)));
        if let Some(body) = folder.optional_text(&files::variant_path("WORLD.md", locale)) {
            lore.push((locale.clone(), body));
        }
        let mut translated = content.clone();
        if let (Some(schema), Some(over)) = (&content.character_schema, variant.character_schema) {
            let mut merged = schema.value().clone();
            files::overlay(&mut merged, &over);
            translated.character_schema = Some(Json::from_value(merged));
        }
        let mut dimensions = dimensions.clone();
        if let (Some(base), Some(over)) = (&mut dimensions, variant.dimensions) {
            files::overlay(base, &over);
        }
        read_content(folder, &sources, Some(locale), &mut translated, &mut dimensions);
        translated.dimensions = dimensions.map(Json::from_value);
        localised.insert(locale.clone(), translated);
    }

    let place = |key: &Spanned<String>| Position {
        line: u32::try_from(key.referenced.line()).unwrap_or(0),
        column: u32::try_from(key.referenced.column()).unwrap_or(0),
    };
    let plugin_setting_places = manifest
        .plugin_settings
        .iter()
        .map(|(plugin, values)| {
            let places = values.keys().map(|key| (key.value.clone(), place(key))).collect();
            (PluginId::from(plugin.as_str()), places)
        })
        .collect();
    let scenes = read_scenes(folder, manifest.scenes.as_ref(), &locales);
    Some(World {
        id: WorldId::new(manifest.id.value.as_str()),
        version: manifest.version.clone().unwrap_or_else(|| "0.0.0".into()),
        name,
        description,
        tags: manifest.tags.clone(),
        default_locale,
        locales,
        lore,
        default_plugins: default_plugins(folder, &manifest.plugin_policy),
        required_contracts: required_contracts(folder, &manifest.plugin_policy),
        plugin_settings: manifest
            .plugin_settings
            .into_iter()
            .map(|(plugin, values)| {
                let values = values.into_iter().map(|(key, value)| (key.value, Json::from_value(value))).collect();
                (PluginId::from(plugin), values)
            })
            .collect(),
        plugin_setting_places,
        content,
        localised,
        scenes,
        scene_files: scene_files(folder, manifest.scenes.as_ref()),
        root: folder.root.clone(),
        digest: folder.digest(),
        warnings: Vec::new(),
    })
}

fn warn_unknown_fields(folder: &mut Folder) {
    let Some(keys) = folder.yaml_quiet::<IndexMap<Spanned<String>, serde::de::IgnoredAny>>(WORLD_MANIFEST) else {
        return;
    };
    for key in keys.keys().filter(|key| !ROOT_FIELDS.contains(&key.value.as_str())) {
        let mut finding =
            folder.finding_at("unknown-field", key, &key.value, format!("`{}` has no meaning here", key.value));
        finding.severity = crate::Severity::Warning;
        finding.help = Some(format!("known fields: {}", ROOT_FIELDS.join(", ")));
        folder.warnings.push(finding);
    }
}

fn default_plugins(folder: &mut Folder, policy: &Policy) -> Vec<PluginId> {
    let mut plugins: Vec<PluginId> = Vec::new();
    let preset = policy.packs.iter().filter(|pack| Some(&pack.id) == policy.preset_id.as_ref());
    let preset: Vec<_> = preset.flat_map(|pack| &pack.requested).collect();
    for id in policy.requested.iter().chain(&policy.recommended).chain(preset) {
        if !is_package_id(&id.value) {
            folder.error_at("plugin-id-invalid", id, "pluginPolicy", format!("`{}` is not a package id", id.value));
        } else if plugins.iter().all(|known| known.as_str() != id.value) {
            plugins.push(PluginId::new(id.value.as_str()));
        }
    }
    plugins
}

fn required_contracts(folder: &mut Folder, policy: &Policy) -> Vec<ContractId> {
    let mut contracts = Vec::new();
    for id in &policy.requires {
        if is_contract_id(&id.value) {
            contracts.push(ContractId::new(id.value.as_str()));
        } else {
            folder
                .error_at(
                    "contract-id-invalid",
                    id,
                    "pluginPolicy.requires",
                    format!("`{}` is not a contract id", id.value),
                )
                .help = Some("a contract looks like `narrative-engine@1`".into());
        }
    }
    contracts
}
