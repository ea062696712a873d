//! Scene books: the scene material of one world, checked and ready to be told from.
//!
//! The format is described for authors in `plugins/worlds/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{template::Template, words};

/// Most scenes in one book.
pub const MAX_SCENES: usize = 1_000;
/// Most beats in one book.
pub const MAX_BEATS: usize = 10_000;
/// Longest piece of prose, in bytes.
pub const MAX_PROSE_BYTES: usize = 8 * 1024;
/// Most strings in one list (variants, keywords, pool values).
pub const MAX_LIST: usize = 256;
/// Shortest literal run by which a beat is recognised again, in characters (wide characters count three).
pub const MIN_ANCHOR_CHARS: usize = 18;
/// Slots every template may use besides the book's own.
pub const OWN_SLOTS: &[&str] = &["said", "title", "from"];

/// Why scene material cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// The document does not have the shape of scene material.
    #[error("scene material: {message}")]
    Shape {
        /// What is wrong.
        message: String,
    },
    /// A template cannot be read.
    #[error("{place}: {message}")]
    Template {
        /// Scene, beat or list.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A slot no pool fills.
    #[error("{place}: no pool fills `{{{slot}}}`")]
    UnknownSlot {
        /// Scene, beat or list.
        place: String,
        /// Slot.
        slot: String,
    },
    /// A name that leads nowhere.
    #[error("{place}: there is no `{name}`")]
    UnknownName {
        /// Where it is used.
        place: String,
        /// The name.
        name: String,
    },
    /// Two of a kind with one id.
    #[error("{place} is defined twice")]
    Duplicate {
        /// Scene or beat.
        place: String,
    },
    /// A beat that could not be told from another one, or is too short to be recognised.
    #[error("{place}: {message}")]
    Anchor {
        /// Beat.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// Something required is absent.
    #[error("{place}: {what} is missing")]
    Missing {
        /// Scene or beat.
        place: String,
        /// What.
        what: &'static str,
    },
    /// A limit is exceeded.
    #[error("{place}: more than {limit} {what}")]
    TooMuch {
        /// Scene, beat or list.
        place: String,
        /// Limit.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
}

impl BookError {
    /// Stable code for documents and diagnostics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "scenes-shape-invalid",
            Self::Template { .. } => "scenes-template-invalid",
            Self::UnknownSlot { .. } => "scenes-slot-unknown",
            Self::UnknownName { .. } => "scenes-name-unknown",
            Self::Duplicate { .. } => "scenes-duplicate",
            Self::Anchor { .. } => "scenes-beat-ambiguous",
            Self::Missing { .. } => "scenes-incomplete",
            Self::TooMuch { .. } => "scenes-limit-exceeded",
        }
    }
}

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

/// A tool call a beat asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Instruction {
    pub(super) tool: String,
    pub(super) args: Value,
}

/// A pool of slot values.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) hold: u32,
    pub(super) values: Vec<String>,
}

/// How to speak of what the player did.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) id: String,
    pub(super) keywords: Vec<String>,
    pub(super) prose: Vec<Template>,
}

#[derive(Clone, Debug)]
pub(super) struct Beat {
    pub(super) id: String,
    pub(super) keywords: Vec<String>,
    /// Beats (scene, beat) that must have been told before.
    pub(super) after: Vec<(usize, usize)>,
    pub(super) prose: Vec<Template>,
    pub(super) tools: Vec<Instruction>,
}

#[derive(Clone, Debug)]
pub(super) struct Exit {
    pub(super) to: usize,
    pub(super) keywords: Vec<String>,
    pub(super) prose: Vec<Template>,
}

#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) keywords: Vec<String>,
    pub(super) opening: Vec<Template>,
    pub(super) returning: Vec<Template>,
    pub(super) ambience: Vec<Template>,
    pub(super) beats: Vec<Beat>,
    pub(super) exits: Vec<Exit>,
}

/// The book in one language. Structure is the same in all.
#[derive(Clone, Debug)]
pub(super) struct Edition {
    pub(super) slots: BTreeMap<String, Pool>,
    pub(super) responses: Vec<Response>,
    pub(super) scenes: Vec<Scene>,
}

/// The words by which a beat (scene, beat) is recognised.
type Anchor = (String, (usize, usize));

/// The scene material of one world.
#[derive(Clone, Debug)]
pub struct SceneBook {
    world_id: String,
    pub(super) opening: usize,
    default: Edition,
    locales: BTreeMap<String, Edition>,
    /// Anchor text to (scene, beat), over all editions.
    anchors: Vec<Anchor>,
}

impl SceneBook {
    /// Checks scene material in the form `covel-graph` gathers it: `{"default": BOOK, "locales": {LOCALE: BOOK}}`.
    ///
    /// # Errors
    /// The first thing found wrong, with the scene or beat it concerns.
    pub fn from_json(world_id: impl Into<String>, material: &Value) -> Result<Self, BookError> {
        let editions = Editions::deserialize(material).map_err(|error| BookError::Shape {
            message: error.to_string(),
        })?;
        let default = build(&editions.default)?;
        let opening = match &editions.default.opening {
            None => 0,
            Some(id) => default
                .scenes
                .iter()
                .position(|scene| scene.id == *id)
                .ok_or_else(|| BookError::UnknownName {
                    place: "opening".into(),
                    name: id.clone(),
                })?,
        };
        let mut locales = BTreeMap::new();
        for (locale, doc) in &editions.locales {
            locales.insert(locale.clone(), translate(&default, doc, locale)?);
        }
        let mut book = Self {
            world_id: world_id.into(),
            opening,
            default,
            locales,
            anchors: Vec::new(),
        };
        book.anchors = book.find_anchors()?;
        Ok(book)
    }

    /// The world.
    pub fn world_id(&self) -> &str {
        &self.world_id
    }

    /// Number of scenes and of beats.
    pub fn size(&self) -> (usize, usize) {
        (
            self.default.scenes.len(),
            self.default
                .scenes
                .iter()
                .map(|scene| scene.beats.len())
                .sum(),
        )
    }

    /// The edition for a session language: the exact locale, then the same language and script, then the default.
    pub(super) fn edition(&self, locale: &str) -> &Edition {
        let wanted = locale.to_ascii_lowercase().replace('_', "-");
        // Traditional Chinese readers get the canonical text rather than simplified characters.
        let traditional = ["zh-hant", "zh-tw", "zh-hk", "zh-mo"]
            .iter()
            .any(|tag| wanted.starts_with(tag));
        let language = wanted.split('-').next().unwrap_or_default().to_owned();
        let same = |tag: &str| {
            !traditional && tag.to_ascii_lowercase().split('-').next() == Some(language.as_str())
        };
        self.locales
            .iter()
            .find(|(tag, _)| tag.eq_ignore_ascii_case(&wanted))
            .or_else(|| self.locales.iter().find(|(tag, _)| same(tag)))
            .map_or(&self.default, |(_, edition)| edition)
    }

    /// The beats told in a text, by place of appearance.
    pub(super) fn beats_in(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<_> = self
            .anchors
            .iter()
            .filter_map(|(anchor, beat)| text.rfind(anchor).map(|at| (at, *beat)))
            .collect();
        found.sort();
        found.into_iter().map(|(_, beat)| beat).collect()
    }

    fn find_anchors(&self) -> Result<Vec<Anchor>, BookError> {
        let mut anchors: Vec<Anchor> = Vec::new();
        for edition in std::iter::once(&self.default).chain(self.locales.values()) {
            for (s, scene) in edition.scenes.iter().enumerate() {
                for (b, beat) in scene.beats.iter().enumerate() {
                    for template in &beat.prose {
                        let anchor = template.anchor();
                        let weight: usize = anchor
                            .chars()
                            .map(|c| if words::is_wide(c) { 3 } else { 1 })
                            .sum();
                        if weight < MIN_ANCHOR_CHARS {
                            let message = format!(
                                "no run of {MIN_ANCHOR_CHARS} plain characters between slots and quotes"
                            );
                            return Err(BookError::Anchor {
                                place: beat_place(&scene.id, &beat.id),
                                message,
                            });
                        }
                        if !anchors
                            .iter()
                            .any(|(known, at)| known == anchor && *at == (s, b))
                        {
                            anchors.push((anchor.into(), (s, b)));
                        }
                    }
                }
            }
        }
        anchors.sort();
        for (text, beat) in &anchors {
            if let Some((_, other)) = anchors
                .iter()
                .find(|(other, at)| at != beat && other.contains(text.as_str()))
            {
                let name = |(s, b): (usize, usize)| {
                    let scene = &self.default.scenes[s];
                    beat_place(&scene.id, &scene.beats[b].id)
                };
                let message = format!("its words also appear in {}", name(*other));
                return Err(BookError::Anchor {
                    place: name(*beat),
                    message,
                });
            }
        }
        Ok(anchors)
    }
}

fn beat_place(scene: &str, beat: &str) -> String {
    format!("beat {scene}/{beat}")
}

/// Builds the canonical edition; everything it names must exist in it.
fn build(doc: &BookDoc) -> Result<Edition, BookError> {
    limit("scenes", doc.scenes.len(), MAX_SCENES, "scenes")?;
    limit(
        "scenes",
        doc.scenes.iter().map(|scene| scene.beats.len()).sum(),
        MAX_BEATS,
        "beats",
    )?;
    let mut names = BTreeMap::new();
    let mut beats = BTreeMap::new();
    for (s, scene) in doc.scenes.iter().enumerate() {
        if scene.id.is_empty() {
            return Err(BookError::Missing {
                place: format!("scene {s}"),
                what: "id",
            });
        }
        if names.insert(scene.id.as_str(), s).is_some() {
            return Err(BookError::Duplicate {
                place: format!("scene {}", scene.id),
            });
        }
        for (b, beat) in scene.beats.iter().enumerate() {
            if beat.id.is_empty() {
                return Err(BookError::Missing {
                    place: format!("scene {}, beat {b}", scene.id),
                    what: "id",
                });
            }
            if beats
                .insert(format!("{}/{}", scene.id, beat.id), (s, b))
                .is_some()
            {
                return Err(BookError::Duplicate {
                    place: beat_place(&scene.id, &beat.id),
                });
            }
        }
    }
    if doc.scenes.is_empty() {
        return Err(BookError::Missing {
            place: "scenes".into(),
            what: "a scene",
        });
    }
    let slots = pools(&doc.slots)?;
    let mut scenes = Vec::new();
    for scene in &doc.scenes {
        let place = format!("scene {}", scene.id);
        let title = scene.title.clone().ok_or(BookError::Missing {
            place: place.clone(),
            what: "title",
        })?;
        if scene.opening.is_empty() {
            return Err(BookError::Missing {
                place,
                what: "opening",
            });
        }
        if scene.beats.is_empty() {
            return Err(BookError::Missing {
                place,
                what: "a beat",
            });
        }
        let mut told = Vec::new();
        for beat in &scene.beats {
            let place = beat_place(&scene.id, &beat.id);
            if beat.prose.is_empty() {
                return Err(BookError::Missing {
                    place,
                    what: "prose",
                });
            }
            let after = beat.after.iter().map(|name| {
                let full = if name.contains('/') {
                    name.clone()
                } else {
                    format!("{}/{name}", scene.id)
                };
                beats
                    .get(&full)
                    .copied()
                    .ok_or_else(|| BookError::UnknownName {
                        place: place.clone(),
                        name: full,
                    })
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
            let to = to.ok_or_else(|| BookError::UnknownName {
                place: place.clone(),
                name: exit.to.clone(),
            })?;
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
    let responses = doc
        .responses
        .iter()
        .map(|response| response_of(response, &slots))
        .collect::<Result<_, _>>()?;
    Ok(Edition {
        slots,
        responses,
        scenes,
    })
}

/// Lays a language over the canonical edition. Texts are replaced, keywords are added, structure cannot change.
fn translate(default: &Edition, doc: &BookDoc, locale: &str) -> Result<Edition, BookError> {
    let mut edition = default.clone();
    edition.slots.extend(pools(&doc.slots)?);
    let slots = edition.slots.clone();
    for response in &doc.responses {
        let translated = response_of(response, &slots)?;
        let known = edition
            .responses
            .iter_mut()
            .find(|known| known.id == translated.id);
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
    BookError::UnknownName {
        place: format!("{locale}, {place}"),
        name: name.into(),
    }
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

fn response_of(
    response: &ResponseDoc,
    slots: &BTreeMap<String, Pool>,
) -> Result<Response, BookError> {
    let place = format!("response {}", response.id);
    if response.prose.is_empty() {
        return Err(BookError::Missing {
            place,
            what: "prose",
        });
    }
    Ok(Response {
        id: response.id.clone(),
        keywords: list(&response.keywords, &place)?,
        prose: templates(&response.prose, slots, &place)?,
    })
}

fn instructions(tools: &[ToolDoc]) -> Vec<Instruction> {
    let object = |value: &Value| {
        if value.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            value.clone()
        }
    };
    tools
        .iter()
        .map(|tool| match tool {
            ToolDoc::Call(call) => Instruction {
                tool: call.tool.clone(),
                args: object(&call.args),
            },
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
            return Err(BookError::Missing {
                place,
                what: "a value",
            });
        }
        pools.insert(
            name.clone(),
            Pool {
                hold,
                values: list(values, &place)?,
            },
        );
    }
    Ok(pools)
}

fn templates(
    texts: &[String],
    slots: &BTreeMap<String, Pool>,
    place: &str,
) -> Result<Vec<Template>, BookError> {
    let mut templates = Vec::new();
    for text in list(texts, place)? {
        let template = Template::parse(&text, place)?;
        if let Some(slot) = template
            .slots()
            .find(|slot| !OWN_SLOTS.contains(slot) && !slots.contains_key(*slot))
        {
            return Err(BookError::UnknownSlot {
                place: place.into(),
                slot: slot.into(),
            });
        }
        templates.push(template);
    }
    Ok(templates)
}

fn list(texts: &[String], place: &str) -> Result<Vec<String>, BookError> {
    limit(place, texts.len(), MAX_LIST, "entries in a list")?;
    limit(
        place,
        texts.iter().map(String::len).max().unwrap_or(0),
        MAX_PROSE_BYTES,
        "bytes in one text",
    )?;
    Ok(texts.to_vec())
}

fn limit(place: &str, found: usize, limit: usize, what: &'static str) -> Result<(), BookError> {
    if found > limit {
        Err(BookError::TooMuch {
            place: place.into(),
            limit,
            what,
        })
    } else {
        Ok(())
    }
}
