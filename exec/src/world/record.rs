//! `ctx.world.worldRecord`: what a world's author wrote, in one language.

use covel_graph::{
    Json,
    fragment::Text,
    world::{World, text_for},
};
use serde_json::json;

/// The record of a world; null without one. Its dimensions are the author's definitions, not current values.
pub(crate) fn of(world: Option<&World>, locale: &str) -> Json {
    let Some(world) = world else { return Json::null() };
    let text = |text: &Text| text_for(text, locale).to_owned();
    let mut record = json!({
        "id": world.id, "name": text(&world.name), "description": text(&world.description),
        "lore": text(&world.lore), "tags": world.tags, "locale": world.default_locale,
    });
    if let Some(dimensions) = &world.content_for(locale).dimensions {
        record["dimensions"] = dimensions.value().clone();
    }
    Json::from_value(record)
}
