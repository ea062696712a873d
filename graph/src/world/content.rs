//! Characters, dimensions and scene material: gathering files and laying languages over them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::{
    SCENES_FOLDER, WORLD_MANIFEST, WorldContent,
    files::{self, Folder},
    manifest::{Descriptor, Manifest},
};
use crate::{Json, Position};

/// A file of the world that another file names.
#[derive(Clone)]
struct Named {
    path: String,
    /// The file that names it, and where.
    by: String,
    at: Position,
}

impl Named {
    fn new(path: &Spanned<String>, by: &str) -> Self {
        let number = |value: u64| u32::try_from(value).unwrap_or(0);
        let at = Position { line: number(path.referenced.line()), column: number(path.referenced.column()) };
        Self { path: path.value.clone(), by: by.to_owned(), at }
    }

    /// Reads it. That there is no such file, or that it is none of the world's, is a mistake of who names it.
    fn read<T: serde::de::DeserializeOwned>(&self, folder: &mut Folder) -> Option<T> {
        let known = folder.errors.len();
        let document = folder.yaml(&self.path);
        for error in &mut folder.errors[known..] {
            if matches!(error.code.as_str(), "file-missing" | "path-outside-world") {
                error.file.clone_from(&self.by);
                (error.line, error.column) = (self.at.line, self.at.column);
            }
        }
        document
    }
}

/// Where characters and dimensions come from.
#[derive(Default)]
pub(super) struct ContentSources {
    characters: Vec<Named>,
    lorebook: Vec<Named>,
    /// Files that hold a whole map of dimensions.
    dimension_maps: Vec<Named>,
    /// One file for each dimension.
    dimensions: Vec<(String, Named)>,
}

pub(super) fn content_sources(folder: &mut Folder, manifest: &Manifest) -> ContentSources {
    let mut sources = ContentSources::default();
    let named = |path: &Spanned<String>| Named::new(path, WORLD_MANIFEST);
    sources.characters.extend(manifest.characters.iter().map(named));
    sources.lorebook.extend(manifest.lorebook.iter().map(named));
    sources.dimensions.extend(manifest.dimension_sources.iter().map(|(id, path)| (id.clone(), named(path))));
    let by = manifest.world_data.as_ref().map_or("", |path| path.value.as_str());
    let descriptor: Option<Descriptor> = manifest.world_data.as_ref().and_then(|path| named(path).read(folder));
    for source in descriptor.into_iter().flat_map(|descriptor| descriptor.sources.into_values()) {
        if source.kind != "yaml" && source.kind != "json" {
            continue;
        }
        let list = match source.to.as_str() {
            Some("characters") => &mut sources.characters,
            Some("lorebook") => &mut sources.lorebook,
            Some("world:metadata.dimensions") => &mut sources.dimension_maps,
            // Sources aimed at a contract are imported when a session has an active namespace for it.
            _ => continue,
        };
        match &source.path {
            Some(path) => list.push(Named::new(path, by)),
            None => folder.error("source-without-path", by, "a source of kind `yaml` or `json` names a `path`"),
        }
    }
    sources
}

/// Reads the canonical content (`locale` none), or lays a language's variants over it.
pub(super) fn read_content(
    folder: &mut Folder,
    sources: &ContentSources,
    locale: Option<&str>,
    content: &mut WorldContent,
    dimensions: &mut Option<Value>,
) {
    fn document(folder: &mut Folder, named: &Named, locale: Option<&str>) -> Option<Value> {
        match locale {
            None => named.read(folder),
            Some(locale) => folder.optional_yaml(&files::variant_path(&named.path, locale)),
        }
    }
    let lists = [
        (
            &sources.characters,
            &mut content.characters,
            "characters-invalid",
            "a characters file holds a list of characters",
        ),
        (&sources.lorebook, &mut content.lorebook, "lorebook-invalid", "a lorebook file holds a list of entries"),
    ];
    for (paths, records, code, message) in lists {
        for path in paths {
            let Some(document) = document(folder, path, locale) else {
                continue;
            };
            if locale.is_some() {
                let mut all = Value::Array(records.iter().map(|record| record.value().clone()).collect());
                files::overlay(&mut all, &document);
                if let Value::Array(all) = all {
                    *records = all.into_iter().map(Json::from_value).collect();
                }
            } else if let Value::Array(list) = document {
                records.extend(list.into_iter().map(Json::from_value));
            } else {
                folder.error(code, &path.path, message);
            }
        }
    }
    for path in &sources.dimension_maps {
        match (document(folder, path, locale), &mut *dimensions) {
            (None, _) => {}
            (Some(map), Some(base)) if locale.is_some() => files::overlay(base, &map),
            (Some(map @ Value::Object(_)), slot) => *slot = Some(map),
            (Some(_), _) => {
                folder.error("dimensions-invalid", &path.path, "a dimensions file holds a map of id to definition")
            }
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

/// The files of scene material.
pub(super) fn scene_files(folder: &Folder, path: Option<&Spanned<String>>) -> Vec<String> {
    folder.list_yaml(path.map_or(SCENES_FOLDER, |path| path.value.as_str()))
}

/// Joins the scene files of each language: lists are appended, maps are merged key by key.
pub(super) fn read_scenes(folder: &mut Folder, path: Option<&Spanned<String>>, locales: &[String]) -> Option<Json> {
    let base = path.map_or(SCENES_FOLDER, |path| path.value.as_str());
    let names = folder.list_yaml(base);
    if names.is_empty() {
        if let Some(path) = path {
            folder.error_at("scenes-missing", path, "scenes", format!("`{}` holds no YAML file", path.value));
        }
        return None;
    }
    let language_of = |name: &str| {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        locales.iter().skip(1).find(|locale| stem.ends_with(&format!(".{locale}"))).cloned()
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
                (Some(_), _) => folder.error("scenes-conflict", &name, &format!("`{key}` is given in two files")),
            }
        }
    }
    let locales: Map<String, Value> =
        translated.into_iter().map(|(locale, book)| (locale, Value::Object(book))).collect();
    Some(Json::from_value(serde_json::json!({ "default": default, "locales": locales })))
}
