//! Scene books: the scene material of one world, checked and ready to be told from.
//!
//! The format is described for authors in `plugins/worlds/README.md`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{document, template::Template, words};

/// Most scenes in one book.
pub const MAX_SCENES: usize = 1_000;
/// Most beats in one book.
pub const MAX_BEATS: usize = 2_000;
/// Most variants of all beats together, in all languages; it bounds the search for beats in a history.
pub const MAX_VARIANTS: usize = 4_000;
/// Most languages besides the canonical one.
pub const MAX_LOCALES: usize = 32;
/// Most bytes of beat prose, in all languages together.
pub const MAX_BOOK_BYTES: usize = 1024 * 1024;
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
    /// Scene, beat or list it speaks of, as the material names it: `scene quay, beat bell`, after a language and a
    /// comma when it is a translation.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::Shape { .. } => None,
            Self::Template { place, .. }
            | Self::UnknownSlot { place, .. }
            | Self::UnknownName { place, .. }
            | Self::Duplicate { place }
            | Self::Anchor { place, .. }
            | Self::Missing { place, .. }
            | Self::TooMuch { place, .. } => Some(place),
        }
    }

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
    /// Preferred when the story goes to another place.
    pub(super) moves: bool,
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
        let (opening, default, locales) = document::read(material)?;
        let mut book = Self { world_id: world_id.into(), opening, default, locales, anchors: Vec::new() };
        book.anchors = book.find_anchors()?;
        Ok(book)
    }

    /// The world.
    pub fn world_id(&self) -> &str {
        &self.world_id
    }

    /// Number of scenes and of beats.
    pub fn size(&self) -> (usize, usize) {
        (self.default.scenes.len(), self.default.scenes.iter().map(|scene| scene.beats.len()).sum())
    }

    /// The edition for a session language: the exact locale, then the same language and script, then the default.
    pub(super) fn edition(&self, locale: &str) -> &Edition {
        let wanted = locale.to_ascii_lowercase().replace('_', "-");
        // Traditional Chinese readers get the canonical text rather than simplified characters.
        let traditional = ["zh-hant", "zh-tw", "zh-hk", "zh-mo"].iter().any(|tag| wanted.starts_with(tag));
        let language = wanted.split('-').next().unwrap_or_default().to_owned();
        let same = |tag: &str| !traditional && tag.to_ascii_lowercase().split('-').next() == Some(language.as_str());
        self.locales
            .iter()
            .find(|(tag, _)| tag.eq_ignore_ascii_case(&wanted))
            .or_else(|| self.locales.iter().find(|(tag, _)| same(tag)))
            .map_or(&self.default, |(_, edition)| edition)
    }

    /// The beats told in a text, by place of appearance.
    pub(super) fn beats_in(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<_> =
            self.anchors.iter().filter_map(|(anchor, beat)| text.rfind(anchor).map(|at| (at, *beat))).collect();
        found.sort();
        found.into_iter().map(|(_, beat)| beat).collect()
    }

    /// The anchors of all variants. No anchor may appear in another beat, or the past could not be read back.
    fn find_anchors(&self) -> Result<Vec<Anchor>, BookError> {
        let mut variants: BTreeMap<(usize, usize), Vec<&Template>> = BTreeMap::new();
        for edition in std::iter::once(&self.default).chain(self.locales.values()) {
            for (s, scene) in edition.scenes.iter().enumerate() {
                for (b, beat) in scene.beats.iter().enumerate() {
                    let known = variants.entry((s, b)).or_default();
                    // A beat without a translation is the same in every edition.
                    known.extend(beat.prose.iter().filter(|template| !known.contains(template)).collect::<Vec<_>>());
                }
            }
        }
        let all: Vec<_> = variants.iter().flat_map(|(beat, list)| list.iter().map(move |one| (*beat, *one))).collect();
        limit("beats", all.len(), MAX_VARIANTS, "variants")?;
        limit("beats", all.iter().map(|(_, template)| template.len()).sum(), MAX_BOOK_BYTES, "bytes of prose")?;
        let mut anchors = Vec::new();
        for (beat, template) in &all {
            let anchor = template.anchor();
            let weight: usize = anchor.chars().map(|c| if words::is_wide(c) { 3 } else { 1 }).sum();
            if weight < MIN_ANCHOR_CHARS {
                let message = format!("no run of {MIN_ANCHOR_CHARS} plain characters between slots and quotes");
                return Err(BookError::Anchor { place: self.name_of(*beat), message });
            }
            if let Some((other, _)) = all.iter().find(|(other, text)| other != beat && text.has(anchor)) {
                let message = format!("its words also appear in {}", self.name_of(*other));
                return Err(BookError::Anchor { place: self.name_of(*beat), message });
            }
            anchors.push((anchor.to_owned(), *beat));
        }
        Ok(anchors)
    }

    fn name_of(&self, (scene, beat): (usize, usize)) -> String {
        let scene = &self.default.scenes[scene];
        beat_place(&scene.id, &scene.beats[beat].id)
    }
}

/// How a beat is named in an error.
pub(super) fn beat_place(scene: &str, beat: &str) -> String {
    format!("beat {scene}/{beat}")
}

/// Refuses more than a limit.
pub(super) fn limit(place: &str, found: usize, limit: usize, what: &'static str) -> Result<(), BookError> {
    if found > limit { Err(BookError::TooMuch { place: place.into(), limit, what }) } else { Ok(()) }
}
