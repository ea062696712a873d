//! The tape of an execution: everything it took from outside, so that it can be run again to the same bytes.
//!
//! Live, a [`Recorder`] asks the ambient and the models and writes down what they said. Played, it gives what was
//! written down. Draws of `random.int` and `Math.random` need no tape: they follow from the session's seed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use covel_model::{
    FinishReason, Gateway, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, SharedGateway, ToolCall,
    Usage,
};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{ambient::Ambient, document::ErrorInfo, limits::MAX_TAPE_BYTES};

/// What was taken from outside, in the order in which it was taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tape {
    /// Name of the gateway.
    pub(crate) gateway: String,
    /// Clock readings of the host, milliseconds.
    times: Vec<u64>,
    /// Fresh bits of the host, hexadecimal.
    bits: Vec<String>,
    /// Notes that came up before the execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<ErrorInfo>,
    /// What single runtimes took.
    pub(crate) runtimes: BTreeMap<String, RuntimeTape>,
    /// More was taken than a tape holds.
    pub(crate) incomplete: bool,
}

/// What one runtime took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RuntimeTape {
    /// Readings of `Date`, milliseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    times: Vec<u64>,
    /// Readings of `performance.now()`, microseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ticks: Vec<u64>,
    /// Random bytes, hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    bytes: String,
    /// Model replies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) replies: Vec<Reply>,
}

/// One model reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Slot asked.
    pub(crate) slot: String,
    /// Digest of the request.
    pub(crate) request: String,
    /// What came.
    pieces: Vec<Piece>,
    /// How it ended; nothing when it was cut off by whoever waited.
    pub(crate) end: Option<End>,
}

impl Reply {
    /// Bytes of text that came.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(Piece::bytes).sum()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Piece {
    Text(String),
    Reasoning(String),
    Call(ToolCall),
}

impl Piece {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        }
    }
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum End {
    /// It was finished.
    Done { finish: FinishReason, usage: Usage, model: Option<String> },
    /// It failed.
    Failed { kind: ModelErrorKind, message: String, retriable: bool, provider_code: Option<String> },
}

/// How far a tape has been played, and where the execution left it.
#[derive(Default)]
struct Played {
    times: usize,
    bits: usize,
    runtimes: BTreeMap<String, Taken>,
    strays: Vec<ErrorInfo>,
}

#[derive(Default)]
struct Taken {
    times: usize,
    ticks: usize,
    bytes: usize,
    replies: usize,
}

/// A tape being played.
pub(crate) struct Playback {
    tape: Tape,
    played: Mutex<Played>,
}

impl Playback {
    /// A tape at its beginning.
    pub(crate) fn new(tape: Tape) -> Arc<Self> {
        Arc::new(Self { tape, played: Mutex::default() })
    }

    /// Where the execution asked for something else than it did when it was recorded.
    pub(crate) fn strays(&self) -> Vec<ErrorInfo> {
        self.played.lock().strays.clone()
    }
}

enum Mode {
    Live(Mutex<(Tape, usize)>),
    Played(Arc<Playback>),
}

/// Most notes about where a played execution left its tape.
const MAX_STRAYS: usize = 20;

/// Records an execution, or plays it.
pub(crate) struct Recorder {
    ambient: Arc<dyn Ambient>,
    mode: Mode,
}

impl Recorder {
    /// Asks the ambient and writes it down, or plays a tape.
    pub(crate) fn new(ambient: Arc<dyn Ambient>, played: Option<Arc<Playback>>) -> Arc<Self> {
        let mode = match played {
            Some(playback) => Mode::Played(playback),
            None => Mode::Live(Mutex::default()),
        };
        Arc::new(Self { ambient, mode })
    }

    /// The tape so far.
    pub(crate) fn tape(&self) -> Tape {
        match &self.mode {
            Mode::Live(state) => state.lock().0.clone(),
            Mode::Played(playback) => playback.tape.clone(),
        }
    }

    /// Forgets what a runtime took: its call is made again from the beginning.
    pub(crate) fn restart(&self, runtime: &str) {
        match &self.mode {
            Mode::Live(state) => drop(state.lock().0.runtimes.remove(runtime)),
            Mode::Played(playback) => drop(playback.played.lock().runtimes.remove(runtime)),
        }
    }

    /// A reading of `Date` by plugin code.
    pub(crate) fn time(&self, runtime: &str) -> u64 {
        self.number(
            runtime,
            || self.ambient.now_millis(),
            |tape| &mut tape.times,
            |tape| &tape.times,
            |taken| &mut taken.times,
        )
    }

    /// A reading of `performance.now()` by plugin code, microseconds.
    pub(crate) fn ticks(&self, runtime: &str) -> u64 {
        let fresh = || u64::try_from(self.ambient.monotonic().as_micros()).unwrap_or(u64::MAX);
        self.number(runtime, fresh, |tape| &mut tape.ticks, |tape| &tape.ticks, |taken| &mut taken.ticks)
    }

    fn number(
        &self,
        runtime: &str,
        fresh: impl Fn() -> u64,
        live: impl Fn(&mut RuntimeTape) -> &mut Vec<u64>,
        stored: impl Fn(&RuntimeTape) -> &Vec<u64>,
        position: impl Fn(&mut Taken) -> &mut usize,
    ) -> u64 {
        match &self.mode {
            Mode::Live(state) => {
                let number = fresh();
                let mut state = state.lock();
                if fits(&mut state, 8) {
                    live(of(&mut state.0.runtimes, runtime)).push(number);
                }
                number
            }
            Mode::Played(playback) => {
                let (tape, mut played) = (&playback.tape, playback.played.lock());
                let at = post_increment(position(of(&mut played.runtimes, runtime)));
                let found = tape.runtimes.get(runtime).and_then(|tape| stored(tape).get(at).copied());
                found.unwrap_or_else(|| {
                    played.stray("replay-time-differs", format!("{runtime} read the clock more often"));
                    fresh()
                })
            }
        }
    }

    /// Random bytes for plugin code.
    pub(crate) fn bytes(&self, runtime: &str, bytes: &mut [u8]) {
        let fresh = |bytes: &mut [u8]| {
            for chunk in bytes.chunks_mut(16) {
                let bits = self.ambient.fresh_bits().to_le_bytes();
                chunk.copy_from_slice(&bits[..chunk.len()]);
            }
        };
        match &self.mode {
            Mode::Live(state) => {
                fresh(bytes);
                let mut state = state.lock();
                if fits(&mut state, bytes.len() * 2) {
                    of(&mut state.0.runtimes, runtime).bytes.push_str(&hex(bytes));
                }
            }
            Mode::Played(playback) => {
                let (tape, mut played) = (&playback.tape, playback.played.lock());
                let taken = of(&mut played.runtimes, runtime);
                let range = taken.bytes..taken.bytes + bytes.len() * 2;
                taken.bytes = range.end;
                let found = tape.runtimes.get(runtime).and_then(|tape| tape.bytes.get(range));
                if !found.is_some_and(|text| unhex(text, bytes)) {
                    played.stray("replay-bytes-differ", format!("{runtime} asked for more random bytes"));
                    fresh(bytes);
                }
            }
        }
    }

    /// Notes that came up before the execution and belong in its document.
    pub(crate) fn notes(&self, fresh: impl FnOnce() -> Vec<ErrorInfo>) -> Vec<ErrorInfo> {
        match &self.mode {
            Mode::Live(state) => {
                let notes = fresh();
                state.lock().0.notes.clone_from(&notes);
                notes
            }
            Mode::Played(playback) => playback.tape.notes.clone(),
        }
    }

    /// A gateway that records what a gateway answers, or plays it.
    pub(crate) fn gateway(self: &Arc<Self>, inner: &SharedGateway) -> SharedGateway {
        let name = match &self.mode {
            Mode::Live(state) => {
                inner.name().clone_into(&mut state.lock().0.gateway);
                inner.name().to_owned()
            }
            Mode::Played(playback) => playback.tape.gateway.clone(),
        };
        Arc::new(TapedGateway { recorder: Arc::clone(self), inner: Arc::clone(inner), name })
    }

    /// The next reply of a runtime, when a tape is played.
    fn next_reply(&self, runtime: &str, request: &str) -> Option<ModelStream> {
        let Mode::Played(playback) = &self.mode else { return None };
        let (tape, mut played) = (&playback.tape, playback.played.lock());
        let at = post_increment(&mut of(&mut played.runtimes, runtime).replies);
        let reply = tape.runtimes.get(runtime).and_then(|tape| tape.replies.get(at));
        let Some(reply) = reply else {
            let message = format!("{runtime} asked a model more often than it did");
            played.stray("replay-model-differs", message.clone());
            let error = ModelError::new(ModelErrorKind::Config, message);
            return Some(stream::iter([Err(error)]).boxed());
        };
        if reply.request != request {
            played.stray("replay-model-differs", format!("{runtime}: model request {at} is not the one recorded"));
        }
        Some(play(reply))
    }

    fn begin_reply(&self, runtime: &str, slot: String, request: String) -> Option<usize> {
        let Mode::Live(state) = &self.mode else { return None };
        let mut state = state.lock();
        if !fits(&mut state, slot.len() + request.len()) {
            return None;
        }
        let replies = &mut of(&mut state.0.runtimes, runtime).replies;
        replies.push(Reply { slot, request, pieces: Vec::new(), end: None });
        Some(replies.len() - 1)
    }

    fn heard(&self, runtime: &str, at: usize, event: &Result<ModelEvent, ModelError>) {
        let Mode::Live(state) = &self.mode else { return };
        let mut state = state.lock();
        let bytes = match event {
            Ok(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => text.len(),
            Ok(ModelEvent::ToolCall(call)) => call.name.len() + call.arguments.len() + call.id.len(),
            Ok(ModelEvent::Done { .. }) => 0,
            Err(error) => error.message.len(),
        };
        if !fits(&mut state, bytes) {
            return;
        }
        let Some(reply) = state.0.runtimes.get_mut(runtime).and_then(|tape| tape.replies.get_mut(at)) else { return };
        match event {
            // Where a stream was cut into pieces changes nothing that is kept.
            Ok(ModelEvent::Text(text)) => match reply.pieces.last_mut() {
                Some(Piece::Text(whole)) => whole.push_str(text),
                _ => reply.pieces.push(Piece::Text(text.clone())),
            },
            Ok(ModelEvent::Reasoning(text)) => match reply.pieces.last_mut() {
                Some(Piece::Reasoning(whole)) => whole.push_str(text),
                _ => reply.pieces.push(Piece::Reasoning(text.clone())),
            },
            Ok(ModelEvent::ToolCall(call)) => reply.pieces.push(Piece::Call(call.clone())),
            Ok(ModelEvent::Done { finish, usage, model }) => {
                reply.end = Some(End::Done { finish: *finish, usage: *usage, model: model.clone() });
            }
            Err(error) => {
                reply.end = Some(End::Failed {
                    kind: error.kind,
                    message: error.message.clone(),
                    retriable: error.retriable,
                    provider_code: error.provider_code.clone(),
                });
            }
        }
    }
}

/// The readings of the host itself.
impl Ambient for Recorder {
    fn now_millis(&self) -> u64 {
        match &self.mode {
            Mode::Live(state) => {
                let now = self.ambient.now_millis();
                let mut state = state.lock();
                if fits(&mut state, 8) {
                    state.0.times.push(now);
                }
                now
            }
            Mode::Played(playback) => {
                let (tape, mut played) = (&playback.tape, playback.played.lock());
                let at = post_increment(&mut played.times);
                tape.times.get(at).copied().unwrap_or_else(|| {
                    played.stray("replay-time-differs", "the host read the clock more often".to_owned());
                    self.ambient.now_millis()
                })
            }
        }
    }

    fn monotonic(&self) -> Duration {
        self.ambient.monotonic()
    }

    fn fresh_bits(&self) -> u128 {
        match &self.mode {
            Mode::Live(state) => {
                let bits = self.ambient.fresh_bits();
                let mut state = state.lock();
                if fits(&mut state, 32) {
                    state.0.bits.push(format!("{bits:x}"));
                }
                bits
            }
            Mode::Played(playback) => {
                let (tape, mut played) = (&playback.tape, playback.played.lock());
                let at = post_increment(&mut played.bits);
                tape.bits.get(at).and_then(|bits| u128::from_str_radix(bits, 16).ok()).unwrap_or_else(|| {
                    played.stray("replay-ids-differ", "the host made more ids".to_owned());
                    self.ambient.fresh_bits()
                })
            }
        }
    }
}

impl Played {
    fn stray(&mut self, code: &str, message: String) {
        if self.strays.len() < MAX_STRAYS && !self.strays.iter().any(|stray| stray.message == message) {
            self.strays.push(ErrorInfo::new(code, message));
        }
    }
}

fn of<'a, T: Default>(map: &'a mut BTreeMap<String, T>, runtime: &str) -> &'a mut T {
    // Looking twice is cheaper than a new key each time.
    if !map.contains_key(runtime) {
        map.insert(runtime.to_owned(), T::default());
    }
    map.get_mut(runtime).unwrap_or_else(|| unreachable!("it was put there above"))
}

/// Is there room for so many bytes more? Once there is not, the tape stays incomplete.
fn fits(state: &mut (Tape, usize), bytes: usize) -> bool {
    state.1 = state.1.saturating_add(bytes);
    state.0.incomplete |= state.1 > MAX_TAPE_BYTES;
    !state.0.incomplete
}

fn post_increment(number: &mut usize) -> usize {
    let before = *number;
    *number += 1;
    before
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str, bytes: &mut [u8]) -> bool {
    bytes.iter_mut().enumerate().all(|(at, byte)| {
        let found = text.get(at * 2..at * 2 + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        found.map(|found| *byte = found).is_some()
    })
}

struct TapedGateway {
    recorder: Arc<Recorder>,
    inner: SharedGateway,
    name: String,
}

impl Gateway for TapedGateway {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let runtime = request.story.runtime_id.clone();
        let digest = request_digest(&request);
        if let Some(played) = self.recorder.next_reply(&runtime, &digest) {
            return played;
        }
        let at = self.recorder.begin_reply(&runtime, request.slot.clone(), digest);
        let stream = self.inner.stream(request, cancel);
        let Some(at) = at else { return stream };
        let recorder = Arc::clone(&self.recorder);
        stream.inspect(move |event| recorder.heard(&runtime, at, event)).boxed()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn request_digest(request: &ModelRequest) -> String {
    let said = json!([
        request.slot,
        request.system,
        request.messages,
        request.tools,
        request.response_schema,
        request.max_output_tokens,
        request.reasoning_disabled,
    ]);
    blake3::hash(said.to_string().as_bytes()).to_hex()[..32].to_owned()
}

fn play(reply: &Reply) -> ModelStream {
    let mut events: Vec<Result<ModelEvent, ModelError>> = reply
        .pieces
        .iter()
        .map(|piece| {
            Ok(match piece.clone() {
                Piece::Text(text) => ModelEvent::Text(text),
                Piece::Reasoning(text) => ModelEvent::Reasoning(text),
                Piece::Call(call) => ModelEvent::ToolCall(call),
            })
        })
        .collect();
    match reply.end.clone() {
        Some(End::Done { finish, usage, model }) => events.push(Ok(ModelEvent::Done { finish, usage, model })),
        Some(End::Failed { kind, message, retriable, provider_code }) => {
            events.push(Err(ModelError { kind, message, retriable, provider_code }));
        }
        // Whoever waited gave up; it does so again.
        None => return stream::iter(events).chain(stream::pending()).boxed(),
    }
    stream::iter(events).boxed()
}
