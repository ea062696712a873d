//! Findings about worlds that need more than the world's own folder: scene material as the storyteller reads it,
//! setting values as the packages declare them.

use covel_gateway::offline::BookError;
use covel_graph::{Diagnostic, Position, Severity, check_setting, package::Package, world::World};

const SCENES_HELP: &str =
    "without it the offline storyteller tells general scenes; the format is in plugins/worlds/README.md";
const SETTING_HELP: &str = "without a value that fits, the package's own default counts";

/// Lists of scene material, by the word its errors use.
const LISTS: &[(&str, &str)] = &[("scene", "scenes"), ("response", "responses"), ("slot", "slots")];

/// What is wrong with a world's scene material, at the line of the scene, beat or list it speaks of.
pub(crate) fn scenes(world: &World, error: &BookError, severity: Severity) -> Diagnostic {
    let place = error.place().and_then(|place| locate(world, place));
    let (file, at) = place.unwrap_or_else(|| match world.scene_files.as_slice() {
        [only] => (only.clone(), Position::default()),
        _ => ("world.yaml".to_owned(), Position::default()),
    });
    finding(world, severity, error.code(), format!("world {}: {error}", world.id), &file, at, "scenes", SCENES_HELP)
}

/// Values a world gives to settings of these packages that are not there or do not fit. PKG-3
pub(crate) fn settings<'a>(world: &World, packages: impl Iterator<Item = &'a Package>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for package in packages {
        let Some(values) = world.plugin_settings.get(package.id()) else { continue };
        for (key, value) in values {
            let Err(message) = check_setting(&package.fragment, key, value.value()) else { continue };
            let places = world.plugin_setting_places.get(package.id());
            let at = places.and_then(|places| places.get(key)).copied().unwrap_or_default();
            let path = format!("pluginSettings.{}.{key}", package.id());
            let message = format!("world {}: {path}: {message}", world.id);
            let code = "world-setting-invalid";
            found.push(finding(world, Severity::Error, code, message, "world.yaml", at, &path, SETTING_HELP));
        }
    }
    found
}

#[allow(clippy::too_many_arguments)] // The fields of a finding.
fn finding(
    world: &World,
    severity: Severity,
    code: &str,
    message: String,
    file: &str,
    at: Position,
    path: &str,
    help: &str,
) -> Diagnostic {
    Diagnostic {
        severity,
        code: code.to_owned(),
        message,
        help: Some(help.to_owned()),
        plugin_id: None,
        file: world.root.join(file).display().to_string(),
        line: at.line,
        column: at.column,
        path: Some(path.to_owned()),
    }
}

/// `scene quay`, `beat quay/bell`, `scene quay, beat 2`, `slot sky`; after a language and a comma in a translation.
fn locate(world: &World, place: &str) -> Option<(String, Position)> {
    let (locale, place) = match place.split_once(", ") {
        Some((locale, rest)) if world.locales.iter().any(|known| known == locale) => (Some(locale), rest),
        _ => (None, place),
    };
    if let Some((scene, beat)) = place.strip_prefix("beat ").and_then(|beat| beat.split_once('/')) {
        return world.scene_place(locale, &[("scenes", scene), ("beats", beat)]);
    }
    let place = place.split_once(", beat ").map_or(place, |(scene, _)| scene);
    let (word, id) = place.split_once(' ')?;
    let (_, list) = LISTS.iter().find(|(known, _)| *known == word)?;
    world.scene_place(locale, &[(list, id)])
}
