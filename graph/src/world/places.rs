//! Where things stand in a world's files, for findings that are made after reading.

use std::fs;

use super::World;
use crate::{
    Position,
    limits::MAX_TEXT_FILE_BYTES,
    yaml::{self, Node},
};

impl World {
    /// Where a record of the scene material stands: `[("scenes", "quay"), ("beats", "bell")]` is the beat `bell` of
    /// the scene `quay`. With a locale, in the files of that language. The file is relative to the world's folder.
    /// When only the first records of the path are there, the last of those.
    pub fn scene_place(&self, locale: Option<&str>, path: &[(&str, &str)]) -> Option<(String, Position)> {
        let mut best: Option<(usize, String, Position)> = None;
        for file in self.scene_files.iter().filter(|file| language(self, file) == locale) {
            let full = self.root.join(file);
            if fs::metadata(&full).ok()?.len() > MAX_TEXT_FILE_BYTES {
                continue;
            }
            let Some(document) = fs::read_to_string(full).ok().and_then(|text| yaml::parse(&text, 1).ok()) else {
                continue;
            };
            let (mut node, mut found) = (&document, None);
            for (depth, (list, id)) in path.iter().enumerate() {
                let Some((place, record)) = node.get(list).and_then(|list| record(list, id)) else { break };
                (node, found) = (record, Some((depth + 1, place)));
            }
            if let Some((depth, place)) = found
                && best.as_ref().is_none_or(|(known, ..)| *known < depth)
            {
                best = Some((depth, file.clone(), place));
            }
        }
        best.map(|(_, file, place)| (file, place))
    }
}

/// The language of a scene file, by its name; `None` for a canonical one.
fn language<'a>(world: &'a World, file: &str) -> Option<&'a str> {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let locales = world.locales.iter().skip(1).map(String::as_str);
    locales.into_iter().find(|locale| stem.strip_suffix(locale).is_some_and(|rest| rest.ends_with('.')))
}

/// A record of a list by its `id`, or of a map by its key.
fn record<'a>(list: &'a Node, id: &str) -> Option<(Position, &'a Node)> {
    if let Some(entry) = list.entry(id) {
        return Some((entry.key_at, &entry.node));
    }
    let item = list.items().iter().find(|item| item.get("id").and_then(Node::text) == Some(id))?;
    Some((item.at, item))
}
