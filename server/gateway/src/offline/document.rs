//! Scene material as written: the shape of its documents, and how they become editions of a book.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{
    book::{
        Beat, BookError, Edition, Exit, Instruction, MAX_BEATS, MAX_LIST, MAX_LOCALES, MAX_PROSE_BYTES, MAX_SCENES,
        OWN_SLOTS, Pool, Response, Scene, beat_place, limit,
    },
    template::Template,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Editions {
    default: BookDoc,
    #[serde(default)]
    locales: BTreeMap<String, BookDoc>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BookDoc {
    opening: Option<String>,
    slots: BTreeMap<String, PoolDoc>,
    responses: Vec<ResponseDoc>,
    scenes: Vec<SceneDoc>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PoolDoc {
    Values(Vec<String>),
    Held {
        /// Logical turns a drawn value stays.
        hold: u32,
        values: Vec<String>,
    },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ResponseDoc {
    id: String,
    keywords: Vec<String>,
    moves: bool,
    prose: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SceneDoc {
    id: String,
    title: Option<String>,
    keywords: Vec<String>,
    opening: Vec<String>,
    returning: Vec<String>,
    ambience: Vec<String>,
    beats: Vec<BeatDoc>,
    exits: Vec<ExitDoc>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BeatDoc {
    id: String,
    keywords: Vec<String>,
    after: Vec<String>,
    prose: Vec<String>,
    tools: Option<Vec<ToolDoc>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExitDoc {
    to: String,
    keywords: Vec<String>,
    prose: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum ToolDoc {
    Call(CallDoc),
    Event(EventDoc),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallDoc {
    tool: String,
    #[serde(default)]
    args: Value,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventDoc {
    event: String,
    #[serde(default)]
    data: Value,
}

/// Reads scene material: the index of the opening scene, the canonical edition, and the others by locale.
pub(super) fn read(material: &Value) -> Result<(usize, Edition, BTreeMap<String, Edition>), BookError> {
    let editions = Editions::deserialize(material).map_err(|error| BookError::Shape { message: error.to_string() })?;
    limit("locales", editions.locales.len(), MAX_LOCALES, "languages")?;
    let default = build(&editions.default)?;
    let opening = match &editions.default.opening {
        None => 0,
        Some(id) => default
            .scenes
            .iter()
            .position(|scene| scene.id == *id)
            .ok_or_else(|| BookError::UnknownName { place: "opening".into(), name: id.clone() })?,
    };
    let mut locales = BTreeMap::new();
    for (locale, doc) in &editions.locales {
        locales.insert(locale.clone(), translate(&default, doc, locale)?);
    }
    Ok((opening, default, locales))
}

/// Builds the canonical edition; everything it names must exist in it.
fn build(doc: &BookDoc) -> Result<Edition, BookError> {
    limit("scenes", doc.scenes.len(), MAX_SCENES, "scenes")?;
    limit("scenes", doc.scenes.iter().map(|scene| scene.beats.len()).sum(), MAX_BEATS, "beats")?;
    let mut names = BTreeMap::new();
    let mut beats = BTreeMap::new();
    for (s, scene) in doc.scenes.iter().enumerate() {
        if scene.id.is_empty() {
            return Err(BookError::Missing { place: format!("scene {s}"), what: "id" });
        }
        if names.insert(scene.id.as_str(), s).is_some() {
            return Err(BookError::Duplicate { place: format!("scene {}", scene.id) });
        }
        for (b, beat) in scene.beats.iter().enumerate() {
            if beat.id.is_empty() {
                return Err(BookError::Missing { place: format!("scene {}, beat {b}", scene.id), what: "id" });
            }
            if beats.insert(format!("{}/{}", scene.id, beat.id), (s, b)).is_some() {
                return Err(BookError::Duplicate { place: beat_place(&scene.id, &beat.id) });
            }
        }
    }
    if doc.scenes.is_empty() {
        return Err(BookError::Missing { place: "scenes".into(), what: "a scene" });
    }
    let slots = pools(&doc.slots)?;
    let mut scenes = Vec::new();
    for scene in &doc.scenes {
        let place = format!("scene {}", scene.id);
        let title = scene.title.clone().ok_or(BookError::Missing { place: place.clone(), what: "title" })?;
        if scene.opening.is_empty() {
            return Err(BookError::Missing { place, what: "opening" });
        }
        if scene.beats.is_empty() {
            return Err(BookError::Missing { place, what: "a beat" });
        }
        let mut told = Vec::new();
        for beat in &scene.beats {
            let place = beat_place(&scene.id, &beat.id);
            if beat.prose.is_empty() {
                return Err(BookError::Missing { place, what: "prose" });
            }
            let after = beat.after.iter().map(|name| {
                let full = if name.contains('/') { name.clone() } else { format!("{}/{name}", scene.id) };
                beats.get(&full).copied().ok_or_else(|| BookError::UnknownName { place: place.clone(), name: full })
            });
            told.push(Beat {
                id: beat.id.clone(),
                keywords: list(&beat.keywords, &place)?,
                after: after.collect::<Result<_, _>>()?,
                prose: templates(&beat.prose, &slots, &place)?,
                tools: instructions(beat.tools.as_deref().unwrap_or_default()),
            });
        }
        let mut exits = Vec::new();
        for exit in &scene.exits {
            let to = names.get(exit.to.as_str()).copied();
            let to = to.ok_or_else(|| BookError::UnknownName { place: place.clone(), name: exit.to.clone() })?;
            exits.push(Exit {
                to,
                keywords: list(&exit.keywords, &place)?,
                prose: templates(&exit.prose, &slots, &place)?,
            });
        }
        scenes.push(Scene {
            id: scene.id.clone(),
            title,
            keywords: list(&scene.keywords, &place)?,
            opening: templates(&scene.opening, &slots, &place)?,
            returning: templates(&scene.returning, &slots, &place)?,
            ambience: templates(&scene.ambience, &slots, &place)?,
            beats: told,
            exits,
        });
    }
    let responses = doc.responses.iter().map(|response| response_of(response, &slots)).collect::<Result<_, _>>()?;
    Ok(Edition { slots, responses, scenes })
}

/// Lays a language over the canonical edition. Texts are replaced, keywords are added, structure cannot change.
fn translate(default: &Edition, doc: &BookDoc, locale: &str) -> Result<Edition, BookError> {
    let mut edition = default.clone();
    edition.slots.extend(pools(&doc.slots)?);
    let slots = edition.slots.clone();
    for response in &doc.responses {
        let translated = response_of(response, &slots)?;
        let known = edition.responses.iter_mut().find(|known| known.id == translated.id);
        let known = known.ok_or_else(|| unknown(locale, "responses", &response.id))?;
        known.keywords.extend(translated.keywords);
        known.prose = translated.prose;
    }
    let mut seen = BTreeSet::new();
    for scene in &doc.scenes {
        let place = format!("{locale}, scene {}", scene.id);
        if !seen.insert(scene.id.as_str()) {
            return Err(BookError::Duplicate { place });
        }
        let target = edition.scenes.iter_mut().find(|known| known.id == scene.id);
        let target = target.ok_or_else(|| unknown(locale, "scenes", &scene.id))?;
        if let Some(title) = &scene.title {
            target.title.clone_from(title);
        }
        target.keywords.extend(list(&scene.keywords, &place)?);
        replace(&mut target.opening, &scene.opening, &slots, &place)?;
        replace(&mut target.returning, &scene.returning, &slots, &place)?;
        replace(&mut target.ambience, &scene.ambience, &slots, &place)?;
        for beat in &scene.beats {
            let known = target.beats.iter_mut().find(|known| known.id == beat.id);
            let known = known.ok_or_else(|| unknown(locale, &scene.id, &beat.id))?;
            known.keywords.extend(list(&beat.keywords, &place)?);
            replace(&mut known.prose, &beat.prose, &slots, &place)?;
            if let Some(tools) = &beat.tools {
                known.tools = instructions(tools);
            }
        }
        for exit in &scene.exits {
            let to = default.scenes.iter().position(|known| known.id == exit.to);
            let known = target.exits.iter_mut().find(|known| Some(known.to) == to);
            let known = known.ok_or_else(|| unknown(locale, &scene.id, &exit.to))?;
            known.keywords.extend(list(&exit.keywords, &place)?);
            replace(&mut known.prose, &exit.prose, &slots, &place)?;
        }
    }
    Ok(edition)
}

fn unknown(locale: &str, place: &str, name: &str) -> BookError {
    BookError::UnknownName { place: format!("{locale}, {place}"), name: name.into() }
}

fn replace(
    target: &mut Vec<Template>,
    texts: &[String],
    slots: &BTreeMap<String, Pool>,
    place: &str,
) -> Result<(), BookError> {
    if !texts.is_empty() {
        *target = templates(texts, slots, place)?;
    }
    Ok(())
}

fn response_of(response: &ResponseDoc, slots: &BTreeMap<String, Pool>) -> Result<Response, BookError> {
    let place = format!("response {}", response.id);
    if response.prose.is_empty() {
        return Err(BookError::Missing { place, what: "prose" });
    }
    Ok(Response {
        id: response.id.clone(),
        moves: response.moves,
        keywords: list(&response.keywords, &place)?,
        prose: templates(&response.prose, slots, &place)?,
    })
}

fn instructions(tools: &[ToolDoc]) -> Vec<Instruction> {
    let object = |value: &Value| {
        if value.is_null() { Value::Object(serde_json::Map::new()) } else { value.clone() }
    };
    tools
        .iter()
        .map(|tool| match tool {
            ToolDoc::Call(call) => Instruction { tool: call.tool.clone(), args: object(&call.args) },
            ToolDoc::Event(event) => Instruction {
                tool: "emit-event".into(),
                args: serde_json::json!({ "topic": event.event, "data": object(&event.data) }),
            },
        })
        .collect()
}

fn pools(docs: &BTreeMap<String, PoolDoc>) -> Result<BTreeMap<String, Pool>, BookError> {
    let mut pools = BTreeMap::new();
    for (name, doc) in docs {
        let place = format!("slot {name}");
        let (hold, values) = match doc {
            PoolDoc::Values(values) => (1, values),
            PoolDoc::Held { hold, values } => ((*hold).max(1), values),
        };
        if values.is_empty() {
            return Err(BookError::Missing { place, what: "a value" });
        }
        pools.insert(name.clone(), Pool { hold, values: list(values, &place)? });
    }
    Ok(pools)
}

fn templates(texts: &[String], slots: &BTreeMap<String, Pool>, place: &str) -> Result<Vec<Template>, BookError> {
    let mut templates = Vec::new();
    for text in list(texts, place)? {
        let template = Template::parse(&text, place)?;
        if let Some(slot) = template.slots().find(|slot| !OWN_SLOTS.contains(slot) && !slots.contains_key(*slot)) {
            return Err(BookError::UnknownSlot { place: place.into(), slot: slot.into() });
        }
        templates.push(template);
    }
    Ok(templates)
}

fn list(texts: &[String], place: &str) -> Result<Vec<String>, BookError> {
    limit(place, texts.len(), MAX_LIST, "entries in a list")?;
    limit(place, texts.iter().map(String::len).max().unwrap_or(0), MAX_PROSE_BYTES, "bytes in one text")?;
    Ok(texts.to_vec())
}
