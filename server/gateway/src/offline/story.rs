//! What happens next: the scene, the beat and the prose of one turn, as a function of the request alone.
//!
//! Nothing is remembered between requests. Where the story stands is read back from the prose in the history.

use std::collections::BTreeSet;

use covel_model::StoryContext;

use super::{
    book::{Beat, Edition, Response, SceneBook},
    template::Template,
    words::{Said, draw, index, is_wide, quote},
};

/// One decided turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) scene: usize,
    pub(super) beat: usize,
    /// The scene left for this one; none when the story stays, or begins.
    pub(super) from: Option<usize>,
    /// The scene is new in this turn.
    pub(super) arrives: bool,
    /// The scene was seen before.
    pub(super) returns: bool,
}

/// Where the story stands before a turn.
#[derive(Debug, Default)]
struct Standing {
    told: BTreeSet<(usize, usize)>,
    /// Most recent last.
    order: Vec<(usize, usize)>,
}

impl Standing {
    fn read(book: &SceneBook, history: &[&str]) -> Self {
        let mut standing = Self::default();
        for beat in history.iter().flat_map(|text| book.beats_in(text)) {
            standing.told.insert(beat);
            standing.order.push(beat);
        }
        standing
    }
}

/// Everything a turn's draws depend on.
pub(super) struct Teller<'a> {
    book: &'a SceneBook,
    edition: &'a Edition,
    story: &'a StoryContext,
    turn: String,
    said: Said,
}

impl<'a> Teller<'a> {
    pub(super) fn new(book: &'a SceneBook, story: &'a StoryContext) -> Self {
        Self {
            book,
            edition: book.edition(&story.locale),
            story,
            turn: story.logical_turn.to_string(),
            said: Said::new(&story.player_message),
        }
    }

    /// The seed of the story; without one, the session's own name.
    fn seed(&self) -> &str {
        if self.story.seed.is_empty() { &self.story.session_id } else { &self.story.seed }
    }

    fn draw(&self, parts: &[&str]) -> u64 {
        let mut all = vec![self.seed()];
        all.extend_from_slice(parts);
        draw(&all)
    }

    /// Decides the turn. `history` is the story so far, oldest first.
    pub(super) fn decide(&self, history: &[&str]) -> Turn {
        let standing = Standing::read(self.book, history);
        let Some(&(here, _)) = standing.order.last() else {
            return self.begin(&standing);
        };
        let seen = |scene: usize| standing.order.iter().any(|(s, _)| *s == scene);
        let scene = self.wanted(here).or_else(|| self.drift(here, &standing)).unwrap_or(here);
        let moved = scene != here;
        Turn {
            scene,
            beat: self.choose_beat(scene, &standing),
            from: moved.then_some(here),
            arrives: moved,
            returns: moved && seen(scene),
        }
    }

    /// A story with no known past: the opening, or, when the past was cut off, a place that fits the turn number.
    fn begin(&self, standing: &Standing) -> Turn {
        let scenes = &self.edition.scenes;
        if self.story.logical_turn <= 1 || self.story.player_message.is_empty() {
            let scene = self.book.opening;
            return Turn { scene, beat: self.choose_beat(scene, standing), from: None, arrives: true, returns: false };
        }
        // A fixed shuffle of all beats, walked by turn: no repeat until all are told.
        let mut all: Vec<_> =
            scenes.iter().enumerate().flat_map(|(s, scene)| (0..scene.beats.len()).map(move |b| (s, b))).collect();
        all.sort_by_key(|(s, b)| (self.draw(&["shuffle", &scenes[*s].id, &scenes[*s].beats[*b].id]), *s, *b));
        let (scene, beat) = all[index(u64::from(self.story.logical_turn - 1), all.len())];
        Turn { scene, beat, from: None, arrives: true, returns: true }
    }

    /// The scene the player asked for, one step at a time along the exits.
    fn wanted(&self, here: usize) -> Option<usize> {
        if !self.said.moves() {
            return None;
        }
        let scene = &self.edition.scenes[here];
        let named = |scene: usize, keywords: &[String]| {
            let target = &self.edition.scenes[scene];
            self.said.score(keywords) + self.said.score(&target.keywords) + usize::from(self.said.names(&target.title))
        };
        // The first of the best-named exits.
        let best =
            scene.exits.iter().map(|exit| (named(exit.to, &exit.keywords), exit.to)).rev().max_by_key(|(n, _)| *n);
        if let Some((1.., to)) = best {
            return Some(to);
        }
        let far = (0..self.edition.scenes.len()).filter(|to| *to != here).map(|to| (named(to, &[]), to)).rev();
        let (score, far) = far.max_by_key(|(n, _)| *n)?;
        if score == 0 { None } else { self.way(here, |scene| scene == far).map(|(step, _)| step) }
    }

    /// When a scene has nothing new to tell, the story moves by itself to the nearest one that has, without a stop
    /// at the told ones between.
    fn drift(&self, here: usize, standing: &Standing) -> Option<usize> {
        if self.has_news(here, standing) {
            return None;
        }
        self.way(here, |scene| self.has_news(scene, standing)).map(|(_, goal)| goal)
    }

    fn has_news(&self, scene: usize, standing: &Standing) -> bool {
        self.edition.scenes[scene].beats.iter().enumerate().any(|(b, beat)| available(scene, b, beat, standing))
    }

    /// Breadth first along the exits: the first step of the shortest way to a goal, and the goal. Where no way leads
    /// to any, the first step is the goal itself.
    fn way(&self, here: usize, goal: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let scenes = &self.edition.scenes;
        let mut first = vec![None; scenes.len()];
        let mut frontier = vec![here];
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for scene in frontier {
                for exit in &scenes[scene].exits {
                    if exit.to == here || first[exit.to].is_some() {
                        continue;
                    }
                    first[exit.to] = if scene == here { Some(exit.to) } else { first[scene] };
                    if goal(exit.to) {
                        return first[exit.to].map(|step| (step, exit.to));
                    }
                    next.push(exit.to);
                }
            }
            frontier = next;
        }
        (0..scenes.len()).find(|scene| *scene != here && goal(*scene)).map(|scene| (scene, scene))
    }

    /// The untold beat that fits the player's words best; when all are told, the one told longest ago.
    fn choose_beat(&self, scene: usize, standing: &Standing) -> usize {
        let place = &self.edition.scenes[scene];
        let untold = place.beats.iter().enumerate().filter(|(b, beat)| available(scene, *b, beat, standing));
        let fit =
            |beat: &Beat| (self.said.score(&beat.keywords), self.draw(&["beat", &self.turn, &place.id, &beat.id]));
        if let Some((b, _)) = untold.max_by_key(|(_, beat)| fit(beat)) {
            return b;
        }
        let last_told = |b: usize| standing.order.iter().rposition(|told| *told == (scene, b));
        (0..place.beats.len()).min_by_key(|b| last_told(*b)).unwrap_or(0)
    }

    /// The prose of a decided turn.
    pub(super) fn compose(&self, turn: &Turn) -> String {
        let scene = &self.edition.scenes[turn.scene];
        let mut paragraphs = Vec::new();
        let mut reaction = Vec::new();
        if !quote(&self.story.player_message).is_empty() {
            reaction.extend(self.response(turn).map(|template| self.fill(template, turn)));
        }
        let exit = turn.from.and_then(|from| self.edition.scenes[from].exits.iter().find(|exit| exit.to == turn.scene));
        reaction
            .extend(exit.and_then(|exit| self.rotate("exit", &exit.prose)).map(|template| self.fill(template, turn)));
        if !reaction.is_empty() {
            paragraphs.push(join(&reaction));
        }
        if turn.arrives {
            let arrival = if turn.returns && !scene.returning.is_empty() { &scene.returning } else { &scene.opening };
            let arrival = self.rotate("arrival", arrival).map(|template| self.fill(template, turn)).unwrap_or_default();
            paragraphs.push(format!("**{}**\n\n{arrival}", scene.title));
        }
        let beat = &scene.beats[turn.beat];
        let mut telling: Vec<String> =
            self.rotate(&beat.id, &beat.prose).map(|template| self.fill(template, turn)).into_iter().collect();
        if let Some(ambience) = self.rotate("ambience", &scene.ambience).map(|template| self.fill(template, turn)) {
            if turn.arrives {
                telling.push(ambience);
            } else {
                paragraphs.push(join(&telling));
                telling = vec![ambience];
            }
        }
        paragraphs.push(join(&telling));
        paragraphs.join("\n\n")
    }

    /// The best-fitting way to speak of what the player did: going somewhere when the story does, else by keyword;
    /// the ones without keywords fit anything.
    fn response(&self, turn: &Turn) -> Option<&Template> {
        let all = &self.edition.responses;
        let mut fitting: Vec<_> = all.iter().filter(|response| response.moves && turn.from.is_some()).collect();
        if fitting.is_empty() {
            let score = |response: &Response| self.said.score(&response.keywords);
            let best = all.iter().map(score).max()?;
            fitting.extend(
                all.iter().filter(|response| score(response) == best && (best > 0 || response.keywords.is_empty())),
            );
        }
        let response = fitting.get(index(self.draw(&["response", &self.turn]), fitting.len()))?;
        self.rotate(&response.id, &response.prose)
    }

    /// One of the variants: a seeded start, then the next one each turn, so that neighbours differ.
    fn rotate<'t>(&self, name: &str, variants: &'t [Template]) -> Option<&'t Template> {
        let start = self.draw(&["variant", name]);
        variants.get(index(start.wrapping_add(u64::from(self.story.logical_turn)), variants.len()))
    }

    fn fill(&self, template: &Template, turn: &Turn) -> String {
        template.fill(|slot| match slot {
            "said" => quote(&self.story.player_message),
            "title" => self.edition.scenes[turn.scene].title.clone(),
            "from" => self.edition.scenes[turn.from.unwrap_or(turn.scene)].title.clone(),
            _ => self.edition.slots.get(slot).map_or_else(String::new, |pool| {
                let period = self.story.logical_turn / pool.hold;
                pool.values[index(self.draw(&["slot", slot, &period.to_string()]), pool.values.len())].clone()
            }),
        })
    }
}

fn available(scene: usize, b: usize, beat: &Beat, standing: &Standing) -> bool {
    !standing.told.contains(&(scene, b)) && beat.after.iter().all(|before| standing.told.contains(before))
}

/// Sentences of a spaced script need a space between them; Chinese does not.
fn join(sentences: &[String]) -> String {
    sentences.iter().fold(String::new(), |mut text, sentence| {
        let spaced = |c: Option<char>| c.is_some_and(|c| !is_wide(c));
        if spaced(text.chars().last()) && spaced(sentence.chars().next()) {
            text.push(' ');
        }
        text.push_str(sentence);
        text
    })
}
