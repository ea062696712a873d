//! Characters, dimensions and scene material: gathering files and laying languages over them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::{
    SCENES_FOLDER, WorldContent,
    files::{self, Folder},
    manifest::{Descriptor, Manifest},
};
use crate::Json;

/// Where characters and dimensions come from.
#[derive(Default)]
pub(super) struct ContentSources {
    characters: Vec<String>,
    lorebook: Vec<String>,
    /// Files that hold a whole map of dimensions.
    dimension_maps: Vec<String>,
    /// One file for each dimension.
    dimensions: Vec<(String, String)>,
}

pub(super) fn content_sources(folder: &mut Folder, manifest: &Manifest) -> ContentSources {
    let mut sources = ContentSources::default();
    sources.characters.extend(manifest.characters.iter().map(|path| path.value.clone()));
    sources.lorebook.extend(manifest.lorebook.iter().map(|path| path.value.clone()));
    sources.dimensions.extend(manifest.dimension_sources.iter().map(|(id, path)| (id.clone(), path.value.clone())));
    let descriptor: Option<Descriptor> = manifest.world_data.as_ref().and_then(|path| folder.yaml(&path.value));
    for source in descriptor.into_iter().flat_map(|descriptor| descriptor.sources.into_values()) {
        if source.kind != "yaml" && source.kind != "json" {
            continue;
        }
        match source.to.as_str() {
            Some("characters") => sources.characters.push(source.path),
            Some("lorebook") => sources.lorebook.push(source.path),
            Some("world:metadata.dimensions") => sources.dimension_maps.push(source.path),
            // Sources aimed at a contract are imported when a session has an active namespace for it.
            _ => {}
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
    fn document(folder: &mut Folder, path: &str, locale: Option<&str>) -> Option<Value> {
        match locale {
            None => folder.yaml(path),
            Some(locale) => folder.optional_yaml(&files::variant_path(path, locale)),
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
                folder.error(code, path, message);
            }
        }
    }
    for path in &sources.dimension_maps {
        match (document(folder, path, locale), &mut *dimensions) {
            (None, _) => {}
            (Some(map), Some(base)) if locale.is_some() => files::overlay(base, &map),
            (Some(map @ Value::Object(_)), slot) => *slot = Some(map),
            (Some(_), _) => {
                folder.error("dimensions-invalid", path, "a dimensions file holds a map of id to definition")
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
