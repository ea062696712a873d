//! What a request is answered with: tool calls the scene asks for, prose, a document, or an end.

use std::collections::BTreeSet;

use covel_model::{Message, ModelRequest, Role, ToolCall, ToolChoice, ToolSpec};
use serde_json::Value;

use super::{
    book::{Instruction, SceneBook},
    schema,
    story::Teller,
    words,
};

/// The framework tool that ends an agent's loop.
const DONE: &str = "runtime-done";
/// Longest excerpt used to fill a string an agent owes, in characters.
const MAX_EXCERPT_CHARS: usize = 120;

/// A decided reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
}

impl Reply {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }
}

/// Answers a request out of a book.
pub(super) fn answer(book: &SceneBook, request: &ModelRequest) -> Reply {
    let loop_ = Loop::read(request);
    if request.story.story { loop_.story(book) } else { loop_.agent(book) }
}

/// A request seen as one step of a tool loop.
struct Loop<'a> {
    request: &'a ModelRequest,
    /// Calls made in earlier steps.
    made: Vec<&'a ToolCall>,
}

impl<'a> Loop<'a> {
    fn read(request: &'a ModelRequest) -> Self {
        let made = request.messages.iter().flat_map(|message| &message.tool_calls).collect();
        Self { request, made }
    }

    fn story(&self, book: &SceneBook) -> Reply {
        let teller = Teller::new(book, &self.request.story);
        let history: Vec<&str> = self.prose().map(|message| message.content.as_str()).collect();
        let turn = teller.decide(&history);
        let edition = book.edition(&self.request.story.locale);
        let instructions = &edition.scenes[turn.scene].beats[turn.beat].tools;
        let title = &edition.scenes[turn.scene].title;
        let calls = self.calls(instructions, title);
        if calls.is_empty() { Reply::text(teller.compose(&turn)) } else { Reply { text: String::new(), calls } }
    }

    fn agent(&self, book: &SceneBook) -> Reply {
        let edition = book.edition(&self.request.story.locale);
        let told = self.latest_beat(book);
        let instructions = told.map(|(scene, beat)| edition.scenes[scene].beats[beat].tools.as_slice());
        let excerpt = self.excerpt();
        let calls = self.calls(instructions.unwrap_or_default(), &excerpt);
        if !calls.is_empty() {
            return Reply { text: String::new(), calls };
        }
        if let Some(schema) = &self.request.response_schema {
            let instance = schema::minimal(schema, &excerpt).unwrap_or(Value::Object(serde_json::Map::new()));
            return Reply::text(instance.to_string());
        }
        if let Some(done) = self.offered(DONE).and_then(|tool| self.filled(tool, 0, &excerpt)) {
            return Reply { text: String::new(), calls: vec![done] };
        }
        let chinese = self.request.story.locale.to_ascii_lowercase().starts_with("zh");
        Reply::text(if chinese {
            "本回合没有需要记录的内容。"
        } else {
            "Nothing further to note this turn."
        })
    }

    /// The calls of this step: what the scene asks for and is offered, once; else what the caller insists on.
    fn calls(&self, instructions: &[Instruction], text: &str) -> Vec<ToolCall> {
        let mut names = BTreeSet::new();
        let wanted: Vec<_> = instructions
            .iter()
            .filter(|instruction| self.made.iter().all(|call| call.name != instruction.tool))
            // One call of a tool in a turn: what more there is waits for another beat.
            .filter(|instruction| names.insert(instruction.tool.as_str()))
            .filter(|instruction| {
                self.offered(&instruction.tool).is_some_and(|tool| schema::fits(&tool.parameters, &instruction.args))
            })
            .filter(|instruction| match &self.request.tool_choice {
                ToolChoice::Named(name) => *name == instruction.tool,
                ToolChoice::Auto | ToolChoice::Required => true,
            })
            .enumerate()
            .map(|(n, instruction)| self.call(n, &instruction.tool, &instruction.args))
            .collect();
        if !wanted.is_empty() {
            return wanted;
        }
        match &self.request.tool_choice {
            ToolChoice::Auto => Vec::new(),
            ToolChoice::Named(name) => {
                self.offered(name).and_then(|tool| self.filled(tool, 0, text)).into_iter().collect()
            }
            ToolChoice::Required => {
                // Ending the loop is the smallest obedient act, unless it was tried and refused.
                let refused = self.made.iter().any(|call| call.name == DONE);
                let fresh = |tool: &&ToolSpec| self.made.iter().all(|call| call.name != tool.name);
                let (done, business): (Vec<_>, Vec<_>) = self.request.tools.iter().partition(|tool| tool.name == DONE);
                let order: Vec<_> = if refused {
                    business.iter().filter(|tool| fresh(tool)).chain(&business).chain(&done).collect()
                } else {
                    done.iter().chain(business.iter().filter(|tool| fresh(tool))).chain(&business).collect()
                };
                order.into_iter().find_map(|tool| self.filled(tool, 0, text)).into_iter().collect()
            }
        }
    }

    fn offered(&self, name: &str) -> Option<&ToolSpec> {
        self.request.tools.iter().find(|tool| tool.name == name)
    }

    /// A call with the smallest arguments that fit.
    fn filled(&self, tool: &ToolSpec, n: usize, text: &str) -> Option<ToolCall> {
        let arguments = schema::minimal(&tool.parameters, text)?;
        let arguments = if arguments.is_null() { Value::Object(serde_json::Map::new()) } else { arguments };
        Some(self.call(n, &tool.name, &arguments))
    }

    fn call(&self, n: usize, name: &str, arguments: &Value) -> ToolCall {
        ToolCall {
            id: format!("offline-{}", self.made.len() + n + 1),
            name: name.into(),
            arguments: arguments.to_string(),
        }
    }

    /// Messages of story prose.
    fn prose(&self) -> impl Iterator<Item = &'a Message> {
        self.request.messages.iter().filter(|message| message.role == Role::Assistant && message.tool_calls.is_empty())
    }

    /// The beat this turn told: the last one recognised anywhere in the prompt, inputs and prose alike.
    fn latest_beat(&self, book: &SceneBook) -> Option<(usize, usize)> {
        let last = |text: &str| book.beats_in(text).last().copied();
        // Prose wins over data blocks, which may show older turns after newer ones.
        self.prose()
            .filter_map(|message| last(&message.content))
            .last()
            .or_else(|| self.request.messages.iter().rev().find_map(|message| last(&message.content)))
            .or_else(|| last(&self.request.system))
    }

    /// A sentence of this turn's story, for texts an agent must give.
    fn excerpt(&self) -> String {
        let prose = self.prose().last().map_or("", |message| message.content.as_str());
        let line = prose.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("**"));
        let line = line.filter(|line| !line.is_empty()).unwrap_or(&self.request.story.player_message);
        let sentence = line.split_inclusive(['.', '!', '?', '。', '！', '？']).next().unwrap_or(line);
        let short: String = words::quote(sentence).chars().take(MAX_EXCERPT_CHARS).collect();
        if short.is_empty() { "The story goes on.".into() } else { short }
    }
}
