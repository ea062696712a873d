//! Jobs as stored: a small row that changes, and the frozen input that does not.

use covel_graph::{Json, SessionId};
use covel_store::{Reader, StoreError, Tx};
use serde::{Deserialize, Serialize};

use super::state::{JobEvent, JobState, JobStatus};
use crate::{
    ambient::iso_time,
    document::{ErrorInfo, RuntimeStatus},
    limits::MAX_TERMINAL_JOBS_PER_RUNTIME,
};

/// Item kind of job rows.
const ROW: &str = "job";
/// Item kind of frozen inputs.
const FROZEN: &str = "job-frozen";
/// Item kind of the lists of ended jobs, by runtime.
const ENDED: &str = "job-ended";

/// Item kind of the number of open jobs; its only id is [`COUNT_ID`].
const COUNT: &str = "job-count";
const COUNT_ID: &str = "open";

/// The item kinds jobs are stored under. Snapshots and forks leave them out.
pub const JOB_ITEM_KINDS: [&str; 4] = [ROW, FROZEN, ENDED, COUNT];

/// The namespace jobs are shown under.
pub const JOB_NAMESPACE: &str = "_runtime_jobs";

/// What a job was made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobActivation {
    /// A stage runtime with `completion.mode: detached`.
    Stage,
    /// A call by name.
    Manual,
    /// An event: a background follower, or an event of a UI. EVT-3
    Event,
}

impl JobActivation {
    /// The word in contexts and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Manual => "manual",
            Self::Event => "event",
        }
    }
}

/// Where a job comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOrigin {
    /// What made it.
    pub activation: JobActivation,
    /// Turn in whose commit it was enqueued; none for manual jobs and UI events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_turn_id: Option<String>,
    /// Execution in whose commit it was enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_execution_id: Option<String>,
    /// Runtime that emitted the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_runtime_id: Option<String>,
    /// Topic, for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The job this one is another attempt of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
}

/// Who works on a job and until when it may be silent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lease {
    /// The engine that has it: new at every opening.
    pub owner: String,
    /// Milliseconds since 1970.
    pub expires_at: u64,
}

/// What became of a job's runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// How the runtime ended.
    pub status: RuntimeStatus,
    /// Its output; absent for concealed runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The newest report of a running job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobProgress {
    /// 0 to 1, or whatever the runtime counts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

/// One job as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobRow {
    /// Shape of this row.
    pub format: u32,
    /// Id.
    pub job_id: String,
    /// Session.
    pub session_id: String,
    /// Package.
    pub plugin_id: String,
    /// Its version when the job was made.
    pub plugin_version: String,
    /// Runtime.
    pub runtime_id: String,
    /// Incarnation of the session.
    pub incarnation: String,
    /// Where it comes from.
    pub origin: JobOrigin,
    /// Where it stands.
    pub status: JobStatus,
    /// Why it ended so: `pre-execution-rejected`, `commit-barrier-rejected`...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What became of its runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// Milliseconds since 1970.
    pub enqueued_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
    /// 1, and one more for each retry.
    pub attempt: u32,
    /// Jobs before this one in its chain of events.
    pub chain: u32,
    /// Longest wait, milliseconds.
    pub max_queue_ms: u64,
    /// Longest run, milliseconds.
    pub max_execution_ms: u64,
    /// The next execution waits for it this long, milliseconds; 0 = it does not.
    pub settle_ms: u64,
    /// Its status changes so far, from 1: the sequence of `job-status.updated`.
    pub sequence: u64,
    /// Who works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

/// Shape of [`JobRow`]; raised when it changes incompatibly.
pub(crate) const JOB_FORMAT: u32 = 1;

/// What a job runs on, as it was when the job was made. It never leaves the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frozen {
    /// Player message of the source turn.
    pub message: String,
    /// Logical turn of the source.
    pub logical_turn: u32,
    /// Key of the random streams.
    pub seed: String,
    /// Payload of a manual call.
    pub payload: Json,
    /// Topic and payload of the event that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<(String, Json)>,
    /// Bound inputs of a stage runtime, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<(String, Json)>>,
    /// `turn-digest@1` of the source turn. SEA-3
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Json>,
    /// Story text of the source turn so far, for agents of a stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prose: Vec<String>,
    /// Last message it may see, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_until: Option<u64>,
}

impl Frozen {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            message: String::new(),
            logical_turn: 1,
            seed: String::new(),
            payload: Json::null(),
            trigger: None,
            inputs: None,
            digest: None,
            prose: Vec::new(),
            history_until: None,
        }
    }
}

/// A job as callers see it. The frozen input is not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDocument {
    /// Id.
    pub job_id: String,
    /// Session.
    pub session_id: String,
    /// Package.
    pub plugin_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Where it comes from.
    pub origin: JobOrigin,
    /// Where it stands.
    pub status: JobStatus,
    /// The same in public words.
    pub state: JobState,
    /// Why it ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What became of its runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// The newest report of the running runtime; not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// ISO time.
    pub enqueued_at: String,
    /// ISO time.
    pub updated_at: String,
    /// 1, and one more for each retry.
    pub attempt: u32,
    /// Longest wait, milliseconds.
    pub max_queue_ms: u64,
    /// Longest run, milliseconds.
    pub max_execution_ms: u64,
    /// Its status changes so far.
    pub sequence: u64,
}

impl JobRow {
    /// What callers see.
    pub fn document(&self) -> JobDocument {
        JobDocument {
            job_id: self.job_id.clone(),
            session_id: self.session_id.clone(),
            plugin_id: self.plugin_id.clone(),
            runtime_id: self.runtime_id.clone(),
            origin: self.origin.clone(),
            status: self.status,
            state: self.status.state(),
            reason: self.reason.clone(),
            error: self.error.clone(),
            result: self.result.clone(),
            progress: None,
            enqueued_at: iso_time(self.enqueued_at),
            updated_at: iso_time(self.updated_at),
            attempt: self.attempt,
            max_queue_ms: self.max_queue_ms,
            max_execution_ms: self.max_execution_ms,
            sequence: self.sequence,
        }
    }

    /// Takes the job one step on; `false` when that cannot happen where it stands.
    pub fn step(&mut self, event: JobEvent, now: u64) -> bool {
        let Some(next) = self.status.next(event) else { return false };
        self.status = next;
        self.updated_at = now;
        self.sequence += 1;
        if next.is_terminal() {
            self.lease = None;
        }
        true
    }

    /// Has it waited too long?
    pub fn queue_expired(&self, now: u64) -> bool {
        self.status == JobStatus::Queued && now > self.enqueued_at.saturating_add(self.max_queue_ms)
    }

    /// Does this engine work on it?
    pub fn is_held_by(&self, owner: &str) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.owner == owner)
    }
}

/// The name under which an open job is found when a data folder is opened. It has a fixed length: long names are not
/// listed.
fn open_name(session: &SessionId, id: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(session.as_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(id.as_bytes());
    format!("{OPEN}{}", &hasher.finalize().to_hex()[..40])
}

const OPEN: &str = "open-job:";

fn encode<T: Serialize>(value: &T) -> Result<Json, StoreError> {
    Json::of(value).map_err(|error| StoreError::Broken { message: format!("a job cannot be written: {error}") })
}

fn decode<T: serde::de::DeserializeOwned>(json: &Json) -> Option<T> {
    serde_json::from_str(json.text())
        .map_err(|error| tracing::error!("a stored job cannot be read and is left out: {error}"))
        .ok()
}

/// One job.
pub(crate) fn get(reader: &Reader<'_>, session: &SessionId, id: &str) -> Result<Option<JobRow>, StoreError> {
    Ok(reader.get_item(session, ROW, id)?.and_then(|json| decode(&json)))
}

/// All jobs of a session, oldest first.
pub(crate) fn list(reader: &Reader<'_>, session: &SessionId) -> Result<Vec<JobRow>, StoreError> {
    Ok(reader.list_items(session, ROW)?.iter().filter_map(|row| decode(&row.record)).collect())
}

/// What a job runs on.
pub(crate) fn frozen(reader: &Reader<'_>, session: &SessionId, id: &str) -> Result<Option<Frozen>, StoreError> {
    Ok(reader.get_item(session, FROZEN, id)?.and_then(|json| decode(&json)))
}

/// Every job that has not ended, whatever its session, oldest first.
pub(crate) fn open(reader: &Reader<'_>) -> Result<Vec<JobRow>, StoreError> {
    let mut rows = Vec::new();
    for name in reader.list_meta()?.iter().filter(|name| name.starts_with(OPEN)) {
        let Some(at) = reader.get_meta(name)? else { continue };
        let field = |name: &str| at.value().get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        rows.extend(get(reader, &SessionId::from(field("session")), &field("job"))?);
    }
    rows.sort_by(|a, b| (a.enqueued_at, &a.session_id, &a.job_id).cmp(&(b.enqueued_at, &b.session_id, &b.job_id)));
    Ok(rows)
}

/// Adds a job. An id that is taken gets a suffix.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    session: &SessionId,
    row: &mut JobRow,
    frozen: &Frozen,
) -> Result<(), StoreError> {
    let wished = row.job_id.clone();
    let mut next = 2u32;
    while tx.read().get_item(session, ROW, &row.job_id)?.is_some() {
        row.job_id = format!("{wished}-{next}");
        next += 1;
    }
    tx.put_item(session, FROZEN, &row.job_id, &encode(frozen)?)?;
    let at = Json::from_value(serde_json::json!({"session": session.as_str(), "job": row.job_id}));
    tx.put_meta(&open_name(session, &row.job_id), &at)?;
    let count = open_count(&tx.read(), session)?;
    tx.put_item(session, COUNT, COUNT_ID, &encode(&(count + 1))?)?;
    put(tx, session, row)
}

/// How many jobs of a session have not ended.
pub(crate) fn open_count(reader: &Reader<'_>, session: &SessionId) -> Result<usize, StoreError> {
    Ok(reader.get_item(session, COUNT, COUNT_ID)?.and_then(|json| decode(&json)).unwrap_or(0))
}

/// Rewrites a job's row. An end keeps it among the newest [`MAX_TERMINAL_JOBS_PER_RUNTIME`] of its runtime.
pub(crate) fn put(tx: &mut Tx<'_>, session: &SessionId, row: &JobRow) -> Result<(), StoreError> {
    tx.put_item(session, ROW, &row.job_id, &encode(row)?)?;
    if !row.status.is_terminal() {
        return Ok(());
    }
    if tx.delete_meta(&open_name(session, &row.job_id))? {
        let count = open_count(&tx.read(), session)?;
        tx.put_item(session, COUNT, COUNT_ID, &encode(&count.saturating_sub(1))?)?;
    }
    if row.status == JobStatus::Succeeded {
        // Nobody can ask for it again.
        tx.delete_item(session, FROZEN, &row.job_id)?;
    }
    let mut ended: Vec<String> =
        tx.read().get_item(session, ENDED, &row.runtime_id)?.and_then(|json| decode(&json)).unwrap_or_default();
    ended.push(row.job_id.clone());
    while ended.len() > MAX_TERMINAL_JOBS_PER_RUNTIME {
        let oldest = ended.remove(0);
        tx.delete_item(session, ROW, &oldest)?;
        tx.delete_item(session, FROZEN, &oldest)?;
    }
    tx.put_item(session, ENDED, &row.runtime_id, &encode(&ended)?)
}

/// Forgets that a session's jobs are open. Part of deleting the session.
pub(crate) fn forget(tx: &mut Tx<'_>, session: &SessionId) -> Result<(), StoreError> {
    for row in list(&tx.read(), session)?.iter().filter(|row| !row.status.is_terminal()) {
        tx.delete_meta(&open_name(session, &row.job_id))?;
    }
    Ok(())
}
