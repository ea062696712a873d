//! World packages: `world.yaml`, `WORLD.md` lore, locale variants, characters, dimensions, scene material.
//!
//! A world says where a story takes place and which plugins suit it. It holds no code. Reading follows the same
//! containment rules and limits as packages: nothing outside the folder, no symbolic links, text of bounded size.
//! The meaning of scene material is the storyteller's business; here it is only gathered into one document.

mod files;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::{
    ContractId, Diagnostic, Json, PluginId, WorldId,
    fragment::Text,
    ids::{is_contract_id, is_package_id},
};
use files::Folder;

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
    /// Characters, schema and dimensions in the default language.
    pub content: WorldContent,
    /// The same with a language's overlay applied.
    pub localised: BTreeMap<String, WorldContent>,
    /// Scene material: `{"default": BOOK, "locales": {LOCALE: BOOK}}`, a book being the joined files of one language.
    pub scenes: Option<Json>,
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
            .or_else(|| {
                self.localised
                    .iter()
                    .find(|(key, _)| same_language(key, locale))
                    .map(|(_, content)| content)
            })
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
    let language = |tag: &str| {
        tag.split(['-', '_'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    language(left) == language(right)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    id: Spanned<String>,
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    default_locale: Option<Spanned<String>>,
    #[serde(default)]
    supported_locales: Vec<Spanned<String>>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    plugin_policy: Policy,
    #[serde(default)]
    plugin_settings: IndexMap<String, IndexMap<String, Value>>,
    #[serde(default)]
    character_schema: Option<CharacterSchema>,
    #[serde(default)]
    characters: Option<Spanned<String>>,
    #[serde(default)]
    world_data: Option<Spanned<String>>,
    #[serde(default)]
    dimensions: Option<Map<String, Value>>,
    #[serde(default)]
    dimension_sources: IndexMap<String, Spanned<String>>,
    #[serde(default)]
    scenes: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    #[serde(default)]
    requested: Vec<Spanned<String>>,
    #[serde(default)]
    recommended: Vec<Spanned<String>>,
    #[serde(default)]
    requires: Vec<Spanned<String>>,
    #[serde(default)]
    packs: Vec<Pack>,
    #[serde(default)]
    preset_id: Option<String>,
}

#[derive(Deserialize)]
struct Pack {
    id: String,
    #[serde(default)]
    requested: Vec<Spanned<String>>,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct CharacterSchema {
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    attributes: Vec<Value>,
}

/// A language variant of the manifest: text only, everything else stays as it is in the canonical file.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Variant {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    character_schema: Option<Value>,
    #[serde(default)]
    dimensions: Option<Value>,
}

#[derive(Deserialize)]
struct Descriptor {
    #[serde(default)]
    sources: IndexMap<String, Source>,
}

#[derive(Deserialize)]
struct Source {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    to: Value,
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
        Some(world) if folder.errors.is_empty() => Ok(World {
            warnings: folder.warnings,
            ..world
        }),
        _ => Err(folder.errors),
    }
}

fn read(folder: &mut Folder) -> Option<World> {
    let manifest: Manifest = folder.yaml(WORLD_MANIFEST)?;
    warn_unknown_fields(folder);
    let id = &manifest.id;
    let valid_id = !id.value.is_empty()
        && id.value.len() <= MAX_WORLD_ID
        && id
            .value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !valid_id {
        folder
            .error_at(
                "world-id-invalid",
                id,
                "id",
                format!("`{}` is not a world id", id.value),
            )
            .help = Some("1 to 64 letters, digits, `_` or `-`".into());
    }
    let default_locale = manifest
        .default_locale
        .as_ref()
        .map_or("en", |locale| locale.value.as_str())
        .to_owned();
    let mut locales = vec![default_locale.clone()];
    for locale in manifest
        .default_locale
        .iter()
        .chain(&manifest.supported_locales)
    {
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
        character_schema: manifest
            .character_schema
            .as_ref()
            .and_then(|schema| Json::of(schema).ok()),
        ..WorldContent::default()
    };
    let mut name = vec![(default_locale.clone(), manifest.name.clone())];
    let summary = manifest
        .summary
        .clone()
        .or_else(|| manifest.description.clone())
        .unwrap_or_default();
    let mut description = vec![(default_locale.clone(), summary)];
    let mut lore = Vec::new();
    if let Some(body) = folder.optional_text("WORLD.md") {
        lore.push((default_locale.clone(), body));
    }

    let sources = content_sources(folder, &manifest);
    let mut dimensions = manifest.dimensions.clone().map(Value::Object);
    read_content(
        folder,
        &sources,
        None,
        &mut content.characters,
        &mut dimensions,
    );
    content.dimensions = dimensions.clone().map(Json::from_value);

    let mut localised = BTreeMap::new();
    for locale in locales.iter().skip(1) {
        let variant: Variant = folder
            .optional_yaml(&files::variant_path(WORLD_MANIFEST, locale))
            .unwrap_or_default();
        name.extend(variant.name.map(|text| (locale.clone(), text)));
        description.extend(
            variant
                .summary
                .or(variant.description)
                .map(|text| (locale.clone(), text)),
        );
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
        read_content(
            folder,
            &sources,
            Some(locale),
            &mut translated.characters,
            &mut dimensions,
        );
        translated.dimensions = dimensions.map(Json::from_value);
        localised.insert(locale.clone(), translated);
    }

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
                let values = values
                    .into_iter()
                    .map(|(key, value)| (key, Json::from_value(value)))
                    .collect();
                (PluginId::from(plugin), values)
            })
            .collect(),
        content,
        localised,
        scenes,
        root: folder.root.clone(),
        digest: folder.digest(),
        warnings: Vec::new(),
    })
}

fn warn_unknown_fields(folder: &mut Folder) {
    let Some(keys) =
        folder.yaml_quiet::<IndexMap<Spanned<String>, serde::de::IgnoredAny>>(WORLD_MANIFEST)
    else {
        return;
    };
    for key in keys
        .keys()
        .filter(|key| !ROOT_FIELDS.contains(&key.value.as_str()))
    {
        let mut finding = folder.finding_at(
            "unknown-field",
            key,
            &key.value,
            format!("`{}` has no meaning here", key.value),
        );
        finding.severity = crate::Severity::Warning;
        finding.help = Some(format!("known fields: {}", ROOT_FIELDS.join(", ")));
        folder.warnings.push(finding);
    }
}

fn default_plugins(folder: &mut Folder, policy: &Policy) -> Vec<PluginId> {
    let mut plugins: Vec<PluginId> = Vec::new();
    let preset = policy
        .packs
        .iter()
        .filter(|pack| Some(&pack.id) == policy.preset_id.as_ref());
    let preset: Vec<_> = preset.flat_map(|pack| &pack.requested).collect();
    for id in policy
        .requested
        .iter()
        .chain(&policy.recommended)
        .chain(preset)
    {
        if !is_package_id(&id.value) {
            folder.error_at(
                "plugin-id-invalid",
                id,
                "pluginPolicy",
                format!("`{}` is not a package id", id.value),
            );
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

/// Where characters and dimensions come from.
#[derive(Default)]
struct ContentSources {
    characters: Vec<String>,
    /// Files that hold a whole map of dimensions.
    dimension_maps: Vec<String>,
    /// One file for each dimension.
    dimensions: Vec<(String, String)>,
}

fn content_sources(folder: &mut Folder, manifest: &Manifest) -> ContentSources {
    let mut sources = ContentSources::default();
    sources
        .characters
        .extend(manifest.characters.iter().map(|path| path.value.clone()));
    sources.dimensions.extend(
        manifest
            .dimension_sources
            .iter()
            .map(|(id, path)| (id.clone(), path.value.clone())),
    );
    let descriptor: Option<Descriptor> = manifest
        .world_data
        .as_ref()
        .and_then(|path| folder.yaml(&path.value));
    for source in descriptor
        .into_iter()
        .flat_map(|descriptor| descriptor.sources.into_values())
    {
        if source.kind != "yaml" && source.kind != "json" {
            continue;
        }
        match source.to.as_str() {
            Some("characters") => sources.characters.push(source.path),
            Some("world:metadata.dimensions") => sources.dimension_maps.push(source.path),
            // Sources aimed at a contract are imported when a session has an active namespace for it.
            _ => {}
        }
    }
    sources
}

/// Reads the canonical content (`locale` none), or lays a language's variants over it.
fn read_content(
    folder: &mut Folder,
    sources: &ContentSources,
    locale: Option<&str>,
    characters: &mut Vec<Json>,
    dimensions: &mut Option<Value>,
) {
    fn document(folder: &mut Folder, path: &str, locale: Option<&str>) -> Option<Value> {
        match locale {
            None => folder.yaml(path),
            Some(locale) => folder.optional_yaml(&files::variant_path(path, locale)),
        }
    }
    for path in &sources.characters {
        let Some(document) = document(folder, path, locale) else {
            continue;
        };
        if locale.is_some() {
            let mut all = Value::Array(
                characters
                    .iter()
                    .map(|character| character.value().clone())
                    .collect(),
            );
            files::overlay(&mut all, &document);
            if let Value::Array(all) = all {
                *characters = all.into_iter().map(Json::from_value).collect();
            }
        } else if let Value::Array(list) = document {
            characters.extend(list.into_iter().map(Json::from_value));
        } else {
            folder.error(
                "characters-invalid",
                path,
                "a characters file holds a list of characters",
            );
        }
    }
    for path in &sources.dimension_maps {
        match (document(folder, path, locale), &mut *dimensions) {
            (None, _) => {}
            (Some(map), Some(base)) if locale.is_some() => files::overlay(base, &map),
            (Some(map @ Value::Object(_)), slot) => *slot = Some(map),
            (Some(_), _) => folder.error(
                "dimensions-invalid",
                path,
                "a dimensions file holds a map of id to definition",
            ),
        }
    }
    for (id, path) in &sources.dimensions {
        let Some(definition) = document(folder, path, locale) else {
            continue;
        };
        let base = dimensions.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(map) = base {
            match map.get_mut(id) {
                Some(known) if locale.is_some() => files::overlay(known, &definition),
                _ => drop(map.insert(id.clone(), definition)),
            }
        }
    }
}

/// Joins the scene files of each language: lists are appended, maps are merged key by key.
fn read_scenes(
    folder: &mut Folder,
    path: Option<&Spanned<String>>,
    locales: &[String],
) -> Option<Json> {
    let base = path.map_or(SCENES_FOLDER, |path| path.value.as_str());
    let names = folder.list_yaml(base);
    if names.is_empty() {
        if let Some(path) = path {
            folder.error_at(
                "scenes-missing",
                path,
                "scenes",
                format!("`{}` holds no YAML file", path.value),
            );
        }
        return None;
    }
    let language_of = |name: &str| {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        locales
            .iter()
            .skip(1)
            .find(|locale| stem.ends_with(&format!(".{locale}")))
            .cloned()
    };
    let mut default = Map::new();
    let mut translated: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for name in names {
        let language = language_of(&name);
        let Some(document) = folder.yaml::<Map<String, Value>>(&name) else {
            continue;
        };
        let book = match language {
            Some(locale) => translated.entry(locale).or_default(),
            None => &mut default,
        };
        for (key, value) in document {
            match (book.get_mut(&key), value) {
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
                (None, value) => drop(book.insert(key, value)),
                (Some(_), _) => folder.error(
                    "scenes-conflict",
                    &name,
                    &format!("`{key}` is given in two files"),
                ),
            }
        }
    }
    let locales: Map<String, Value> = translated
        .into_iter()
        .map(|(locale, book)| (locale, Value::Object(book)))
        .collect();
    Some(Json::from_value(
        serde_json::json!({ "default": default, "locales": locales }),
    ))
}
