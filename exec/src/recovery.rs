//! What is running, what ran last, and what was running when the process before this one ended.
//!
//! Before an execution starts, a few hundred bytes about it are written to the file `running` of the data folder,
//! without waiting for the disk: that survives the end of the process (not of the system), costs a few microseconds,
//! and adds no transaction. When the execution has ended its entry is cleared. An engine that finds entries when it
//! opens compares them with the store: a session that has committed since is fine; another one was interrupted, and
//! keeps that in its record until something commits in it.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use covel_graph::{Json, SessionId};
use covel_store::{Store, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Engine, Inner},
    error::ExecError,
    given::Steering,
    limits::{MAX_MESSAGE_CHARS, MAX_REMEMBERED_EXECUTIONS},
    session::{Interrupted, SessionRecord},
};

/// Name of the file.
const FILE: &str = "running";
/// Bytes of one entry; a longer one is kept without its payload's text.
const SLOT: usize = 8 * 1024;
/// Length and checksum before the text.
const HEAD: usize = 4 + 8;
/// Executions noted at the same time: more than an engine runs.
const SLOTS: usize = 128;

/// An entry of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    session: String,
    incarnation: String,
    /// Turns the session had when it began.
    turns: u64,
    interrupted: Interrupted,
}

/// The file: a fixed number of slots, each free or holding one running execution.
pub(crate) struct RunningFile {
    file: Option<Mutex<File>>,
    free: Mutex<Vec<usize>>,
}

/// An entry's place; cleared when dropped.
pub(crate) struct RunningSlot<'a> {
    file: &'a RunningFile,
    slot: Option<usize>,
}

impl Drop for RunningSlot<'_> {
    fn drop(&mut self) {
        if let (Some(slot), Some(file)) = (self.slot, &self.file.file) {
            // Best effort, like the entry itself: a left-over one is compared with the store.
            let _ = write_at(file, slot, &[0; HEAD]);
            self.file.free.lock().push(slot);
        }
    }
}

fn checksum(text: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&blake3::hash(text).as_bytes()[..8]);
    sum
}

impl RunningFile {
    /// Opens the file, and answers what it holds. A folder where that does not work has no recovery, nothing else.
    fn open(folder: &Path) -> (Self, Vec<Entry>) {
        let path = folder.join(FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match opened {
            Ok(file) => Some(Mutex::new(file)),
            Err(error) => {
                tracing::warn!("{}: {error}; interrupted turns will not be noticed", path.display());
                None
            }
        };
        let entries = file.as_ref().map(read_entries).unwrap_or_default();
        (Self { file, free: Mutex::new((0..SLOTS).rev().collect()) }, entries)
    }

    /// Empties the file.
    fn clear(&self) {
        if let Some(file) = &self.file
            && let Err(error) = file.lock().set_len(0)
        {
            tracing::warn!("the file of running turns cannot be cleared: {error}");
        }
    }

    fn begin(&self, entry: &Entry) -> RunningSlot<'_> {
        RunningSlot { file: self, slot: self.write(entry) }
    }

    fn write(&self, entry: &Entry) -> Option<usize> {
        let file = self.file.as_ref()?;
        let slot = self.free.lock().pop()?;
        let mut text = serde_json::to_vec(entry).ok()?;
        if text.len() > SLOT - HEAD {
            // Too long to keep: that it was interrupted is known all the same, what it was must be asked again.
            let action = Json::from_value(serde_json::json!({"type": entry.interrupted.action.value()["type"]}));
            let short = Entry { interrupted: Interrupted { action, ..entry.interrupted.clone() }, ..entry.clone() };
            text = serde_json::to_vec(&short).ok().filter(|text| text.len() <= SLOT - HEAD)?;
        }
        let mut bytes = Vec::with_capacity(HEAD + text.len());
        bytes.extend(u32::try_from(text.len()).ok()?.to_be_bytes());
        bytes.extend(checksum(&text));
        bytes.extend(&text);
        if let Err(error) = write_at(file, slot, &bytes) {
            tracing::warn!("a running turn cannot be noted: {error}");
        }
        Some(slot)
    }
}

fn write_at(file: &Mutex<File>, slot: usize, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = file.lock();
    file.seek(SeekFrom::Start((slot * SLOT) as u64))?;
    file.write_all(bytes)
}

fn read_entries(file: &Mutex<File>) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut file = file.lock();
    if let Err(error) = (&mut *file).take((SLOTS * SLOT) as u64).read_to_end(&mut all) {
        tracing::warn!("the file of running turns cannot be read: {error}");
    }
    let mut found = Vec::new();
    for bytes in all.chunks(SLOT) {
        let Some((head, rest)) = bytes.split_at_checked(HEAD) else { continue };
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        // A torn or foreign entry says nothing.
        let Some(text) = rest.get(..length).filter(|text| !text.is_empty() && checksum(text) == head[4..]) else {
            continue;
        };
        found.extend(serde_json::from_slice::<Entry>(text).ok());
    }
    found
}

/// One running execution, as others in the process can reach it.
pub(crate) struct Live {
    pub turn_id: Mutex<Option<String>>,
    pub request_id: Option<String>,
    pub action: Json,
    pub started_at: String,
    pub cancel: CancellationToken,
    pub aborted: AtomicBool,
    pub steering: Arc<Steering>,
    /// It has a story that can be steered.
    pub story: AtomicBool,
}

impl Live {
    /// Of a replay: nobody steers or ends it.
    pub(crate) fn replayed(request_id: Option<String>) -> Self {
        Self {
            turn_id: Mutex::new(None),
            request_id,
            action: Json::null(),
            started_at: String::new(),
            cancel: CancellationToken::new(),
            aborted: AtomicBool::new(false),
            steering: Arc::default(),
            story: AtomicBool::new(false),
        }
    }
}

/// What the engine knows of executions of this process and the one before.
pub(crate) struct Executions {
    file: RunningFile,
    live: Mutex<HashMap<String, Arc<Live>>>,
    last: Mutex<HashMap<String, ExecutionInfo>>,
}

/// How a session's newest execution stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionInfo {
    /// `idle running completed failed interrupted`.
    pub status: &'static str,
    /// Turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The caller's id of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// ISO time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// `aborted-by-player`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<&'static str>,
    /// What to ask again: `{type, payload}`; for one that failed or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Json>,
}

impl ExecutionInfo {
    fn idle() -> Self {
        Self { status: "idle", turn_id: None, request_id: None, started_at: None, abort_reason: None, retry: None }
    }
}

/// Why an execution was stopped.
pub(crate) const ABORTED: &str = "aborted-by-player";

impl Executions {
    /// Opens what the process before left, and records interrupted executions in their sessions.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn open(folder: &Path, store: &Store) -> Result<Self, ExecError> {
        let (file, entries) = RunningFile::open(folder);
        if !entries.is_empty() {
            let marked = store.transact_blocking(move |tx| {
                for entry in entries {
                    let key = SessionId::from(entry.session.as_str());
                    let Some(stored) = tx.read().get_session(&key)? else { continue };
                    let Ok(mut record) = serde_json::from_value::<SessionRecord>(stored.value().clone()) else {
                        continue;
                    };
                    if record.incarnation != entry.incarnation || record.turn_count != entry.turns {
                        continue; // It committed before the process ended.
                    }
                    record.interrupted = Some(entry.interrupted);
                    if let Ok(json) = Json::of(&record) {
                        tx.put_session(&key, &json)?;
                    }
                }
                Ok::<_, StoreError>(())
            });
            marked.map_err(|error| ExecError::Store(error.flatten()))?;
        }
        file.clear();
        Ok(Self { file, live: Mutex::default(), last: Mutex::default() })
    }

    /// Makes a request of a session known to others until the answer is dropped.
    pub(crate) fn register(&self, session: &str, live: &Arc<Live>) -> Registered<'_> {
        self.live.lock().insert(session.to_owned(), Arc::clone(live));
        Registered { executions: self, session: session.to_owned() }
    }

    /// Notes for the next process that an execution begins; until the answer is dropped.
    pub(crate) fn note(&self, session: &SessionRecord, turn_id: &str, live: &Live) -> RunningSlot<'_> {
        *live.turn_id.lock() = Some(turn_id.to_owned());
        let entry = Entry {
            session: session.id.clone(),
            incarnation: session.incarnation.clone(),
            turns: session.turn_count,
            interrupted: Interrupted {
                turn_id: turn_id.to_owned(),
                request_id: live.request_id.clone(),
                action: live.action.clone(),
                started_at: live.started_at.clone(),
            },
        };
        self.file.begin(&entry)
    }

    /// Notes how an execution ended.
    pub(crate) fn ended(&self, session: &str, info: ExecutionInfo) {
        let mut last = self.last.lock();
        if last.len() >= MAX_REMEMBERED_EXECUTIONS && !last.contains_key(session) {
            last.clear();
        }
        last.insert(session.to_owned(), info);
    }

    fn live(&self, session: &str) -> Option<Arc<Live>> {
        self.live.lock().get(session).cloned()
    }

    /// Forgets a session.
    pub(crate) fn forget(&self, session: &str) {
        self.last.lock().remove(session);
    }
}

/// A request others in the process can reach.
pub(crate) struct Registered<'a> {
    executions: &'a Executions,
    session: String,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.executions.live.lock().remove(&self.session);
    }
}

/// Does a stored action equal the one asked for now?
pub(crate) fn check_recovery(record: &SessionRecord, turn: &str, action: &Json) -> Result<(), ExecError> {
    let refused = |message: String| ExecError::Conflict { code: "recovery-mismatch", message };
    let Some(interrupted) = &record.interrupted else {
        return Err(refused(format!("nothing was interrupted in session {:?}", record.id)));
    };
    if interrupted.turn_id != turn {
        return Err(refused(format!("turn {:?} was interrupted, not {turn:?}", interrupted.turn_id)));
    }
    let (stored, asked) = (interrupted.action.value(), action.value());
    let same = stored["type"] == asked["type"] && (stored.get("payload").is_none() || stored == asked);
    if same { Ok(()) } else { Err(refused("the interrupted action was another one".to_owned())) }
}

impl Inner {
    pub(crate) fn failed_info(&self, live: &Live) -> ExecutionInfo {
        ExecutionInfo {
            status: "failed",
            turn_id: live.turn_id.lock().clone(),
            request_id: live.request_id.clone(),
            started_at: Some(live.started_at.clone()),
            abort_reason: live.aborted.load(Ordering::Acquire).then_some(ABORTED),
            retry: Some(live.action.clone()),
        }
    }
}

impl Engine {
    /// How the newest execution of a session stands. Does not wait for one that runs.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn execution(&self, session: &str) -> Result<ExecutionInfo, ExecError> {
        let record = self.0.session(session)?;
        if let Some(live) = self.0.executions.live(session) {
            return Ok(ExecutionInfo {
                status: "running",
                turn_id: live.turn_id.lock().clone(),
                request_id: live.request_id.clone(),
                started_at: Some(live.started_at.clone()),
                abort_reason: live.aborted.load(Ordering::Acquire).then_some(ABORTED),
                retry: None,
            });
        }
        if let Some(interrupted) = record.interrupted {
            return Ok(ExecutionInfo {
                status: "interrupted",
                turn_id: Some(interrupted.turn_id),
                request_id: interrupted.request_id,
                started_at: Some(interrupted.started_at),
                abort_reason: None,
                retry: Some(interrupted.action),
            });
        }
        Ok(self.0.executions.last.lock().get(session).cloned().unwrap_or_else(ExecutionInfo::idle))
    }

    /// Stops the running execution of a session; all of it is dropped, unless it is being committed already.
    /// `false` when none runs.
    pub fn abort(&self, session: &str) -> bool {
        let Some(live) = self.0.executions.live(session) else { return false };
        live.aborted.store(true, Ordering::Release);
        live.cancel.cancel();
        true
    }

    /// Adds a message of the player to the running turn: the story sees it before it next asks its model, and it is
    /// stored with the turn.
    ///
    /// # Errors
    /// `nothing-running` when no turn with a story runs, or it takes no more messages; a message that is empty or too
    /// long.
    pub fn steer(&self, session: &str, message: &str) -> Result<(), ExecError> {
        self.0.session(session)?;
        if message.trim().is_empty() || message.chars().count() > MAX_MESSAGE_CHARS {
            return Err(ExecError::Invalid {
                field: "message".into(),
                message: format!("has 1 to {MAX_MESSAGE_CHARS} characters"),
            });
        }
        let taken = self
            .0
            .executions
            .live(session)
            .is_some_and(|live| live.story.load(Ordering::Acquire) && live.steering.push(message.to_owned()));
        if taken {
            return Ok(());
        }
        Err(ExecError::Conflict {
            code: "nothing-running",
            message: format!("no turn of session {session:?} takes a message now"),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(session: &str, text: &str) -> Entry {
        Entry {
            session: session.into(),
            incarnation: "i".into(),
            turns: 3,
            interrupted: Interrupted {
                turn_id: "t4".into(),
                request_id: Some("r".into()),
                action: Json::from_value(json!({"type": "send_message", "payload": {"content": text}})),
                started_at: "now".into(),
            },
        }
    }

    #[test]
    fn entries_outlive_the_process_and_are_gone_once_they_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (file, found) = RunningFile::open(folder.path());
        assert!(found.is_empty());
        let (kept, ended) = (file.begin(&entry("a", "x")), file.begin(&entry("b", "y")));
        drop(ended);
        let (_, found) = RunningFile::open(folder.path());
        assert_eq!(found, [entry("a", "x")]);
        drop(kept);
        assert!(RunningFile::open(folder.path()).1.is_empty());
    }

    #[test]
    fn a_long_action_keeps_its_type_and_a_torn_entry_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = RunningFile::open(folder.path());
        let _long = file.begin(&entry("a", &"x".repeat(SLOT)));
        let _next = file.begin(&entry("b", "y"));
        let found = RunningFile::open(folder.path()).1;
        assert_eq!(*found[0].interrupted.action.value(), json!({"type": "send_message"}));
        write_at(file.file.as_ref().unwrap(), 0, &[9; HEAD + 3]).unwrap();
        assert_eq!(RunningFile::open(folder.path()).1, [entry("b", "y")]);
    }

    #[test]
    fn more_executions_than_slots_are_simply_not_noted() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = RunningFile::open(folder.path());
        let all: Vec<_> = (0..SLOTS + 2).map(|n| file.begin(&entry(&format!("s{n}"), "x"))).collect();
        assert_eq!(RunningFile::open(folder.path()).1.len(), SLOTS);
        drop(all);
        assert!(RunningFile::open(folder.path()).1.is_empty());
    }
}
