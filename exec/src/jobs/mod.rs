//! Durable background jobs: what a turn sets aside is enqueued in its commit, run by a few workers without the
//! session's lock, and committed in one transaction of its own. EVT-3
//!
//! `state` says what may happen to a job, `record` how it is stored, `queue` which is next, `enqueue` how an execution
//! makes jobs, `reads` what makes one stale, `run` what a worker does, `api` what callers ask. Nothing here knows a
//! clock of its own or waits by polling.
//!
//! A job costs two transactions: one takes it (queued, claimed, running), one ends it (committing, then its end, with
//! its writes). The states between are passed inside them, so a crash finds a job queued, running or ended, and an
//! effect only with its end.

mod api;
mod detached;
mod enqueue;
pub(crate) mod progress;
mod queue;
mod reads;
mod record;
mod run;
mod state;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use covel_graph::{Json, SessionId};
use covel_store::StoreError;
use parking_lot::Mutex;
use serde_json::json;
use tokio::{runtime::Handle, sync::Notify};
use tokio_util::sync::CancellationToken;

pub use api::{BackgroundRequest, UiEvent};
pub(crate) use detached::detached_runtimes;
pub(crate) use enqueue::{JobCommit, PendingJob, entry as document_entry, pending};
pub(crate) use reads::Reads;
pub(crate) use record::{Frozen, JobRow, forget};
pub use record::{JOB_ITEM_KINDS, JOB_NAMESPACE, JobActivation, JobDocument, JobOrigin, JobProgress, JobResult};
pub(crate) use run::activation;
pub use state::{JobEvent, JobState, JobStatus};

use crate::{
    ambient::iso_time,
    document::ErrorInfo,
    engine::Inner,
    event::{EventSink, TurnEvent},
    limits::{JOB_SCAN_INTERVAL, JOB_SCAN_RETRY, MAX_PROGRESS_REPORTS},
};
use progress::Reported;
use queue::{Entry, Queue};

/// What an execution that is a job has beside its plan and session.
pub(crate) struct JobSeed {
    /// The job.
    pub job_id: String,
    /// Its runtime; followers of its events are ordinary members of the execution.
    pub runtime: covel_graph::RuntimeIx,
    /// What made it.
    pub activation: JobActivation,
    /// Jobs before it in its chain of events.
    pub chain: u32,
    /// What it runs on.
    pub frozen: Frozen,
    /// What it read of the committed state.
    pub reads: Reads,
    /// Takes its reports.
    pub report: Box<dyn Fn(progress::Report) + Send + Sync>,
}

/// The engine's jobs.
pub(crate) struct Jobs {
    /// Names this opening of the engine in leases.
    owner: String,
    /// Jobs run at the same time; 0 = this engine runs none.
    workers: usize,
    queue: Mutex<Queue>,
    /// Told when a job is enqueued, starts or ends.
    changed: Arc<Notify>,
    /// How to end running jobs.
    running: Mutex<BTreeMap<(String, String), CancellationToken>>,
    /// The newest report of each running job.
    reported: Mutex<BTreeMap<(String, String), Reported>>,
    /// Notes for the next document of a session.
    notes: Mutex<BTreeMap<String, Vec<ErrorInfo>>>,
    listener: Mutex<Option<EventSink>>,
    scanning: AtomicBool,
}

impl Jobs {
    pub(crate) fn new(owner: String, workers: usize) -> Self {
        Self {
            owner,
            workers,
            queue: Mutex::default(),
            changed: Arc::default(),
            running: Mutex::default(),
            reported: Mutex::default(),
            notes: Mutex::default(),
            listener: Mutex::default(),
            scanning: AtomicBool::new(false),
        }
    }

    /// Notes that came up before an execution of this session and belong in its document.
    pub(crate) fn take_notes(&self, session: &str) -> Vec<ErrorInfo> {
        self.notes.lock().remove(session).unwrap_or_default()
    }

    fn push(&self, row: &JobRow) {
        self.queue.lock().push(entry_of(row));
        self.changed.notify_waiters();
    }

    /// Tells whoever listens where a job stands.
    fn tell(&self, row: &JobRow) {
        let Some(listener) = self.listener.lock().clone() else { return };
        // Nobody listening changes nothing.
        let _ = listener.send(status_event(row, row.status.state(), row.sequence, None));
    }

    /// The newest report of a job that runs.
    fn progress_of(&self, row: &JobRow) -> Option<JobProgress> {
        let key = (row.session_id.clone(), row.job_id.clone());
        self.reported.lock().get(&key).map(|reported| reported.progress.clone())
    }

    /// What a running job said of its failure, if that was its last word.
    fn reported_failure(&self, row: &JobRow) -> Option<String> {
        let key = (row.session_id.clone(), row.job_id.clone());
        self.reported.lock().get(&key).and_then(|reported| reported.failure.clone())
    }

    /// The sequence that what is told next of a job must have at least.
    fn next_sequence(&self, session: &str, job: &str) -> u64 {
        let key = (session.to_owned(), job.to_owned());
        self.reported.lock().get(&key).map_or(0, |reported| reported.sequence + 1)
    }

    /// Takes a report of a running job. One that repeats or comes late is dropped.
    fn report(&self, row: &JobRow, report: progress::Report) {
        let sequence = {
            let mut all = self.reported.lock();
            let reported = all
                .entry((row.session_id.clone(), row.job_id.clone()))
                .or_insert_with(|| Reported { sequence: row.sequence, ..Reported::default() });
            let old = report.sequence.is_some_and(|own| reported.own.is_some_and(|last| own <= last));
            if old || reported.count >= MAX_PROGRESS_REPORTS {
                return;
            }
            reported.own = report.sequence.or(reported.own);
            reported.count += 1;
            reported.sequence += 1;
            reported.failure = report.failure();
            reported.progress = report.progress.clone();
            reported.sequence
        };
        if let Some(listener) = self.listener() {
            let state = report.state.unwrap_or(JobState::Progress);
            let _ = listener.send(status_event(row, state, sequence, Some(report)));
        }
    }

    fn listener(&self) -> Option<EventSink> {
        self.listener.lock().clone()
    }
}

fn entry_of(row: &JobRow) -> Entry {
    Entry {
        job_id: row.job_id.clone(),
        session_id: row.session_id.clone(),
        plugin_id: row.plugin_id.clone(),
        runtime_id: row.runtime_id.clone(),
        incarnation: row.incarnation.clone(),
        packages: Vec::new(),
        settle_ms: row.settle_ms,
    }
}

/// `job-status.updated`.
fn status_event(row: &JobRow, state: JobState, sequence: u64, report: Option<progress::Report>) -> TurnEvent {
    let mut payload = json!({
        "sessionId": row.session_id, "progressScopeId": row.job_id, "pluginId": row.plugin_id,
        "runtimeId": row.runtime_id, "jobId": row.job_id, "sequence": sequence,
        "state": state, "createdAt": iso_time(row.updated_at),
        "data": {
            "originTurnId": row.origin.source_turn_id, "durableStatus": row.status, "reason": row.reason,
            "error": row.error,
        },
    });
    let mut message = row.error.as_ref().map(|error| error.message.clone());
    if let Some(report) = report {
        if let Some(value) = report.progress.progress {
            payload["progress"] = json!(value);
        }
        if let Some(data) = report.progress.data {
            payload["data"]["report"] = data.value().clone();
        }
        if report.word.as_deref() == Some("waiting-input") {
            payload["state"] = "waiting-input".into();
        }
        message = report.progress.message.or(message);
    }
    if let Some(message) = message {
        payload["message"] = message.into();
    }
    TurnEvent {
        kind: "job-status.updated",
        session_id: row.session_id.clone(),
        turn_id: row.origin.source_turn_id.clone().unwrap_or_default(),
        payload: Json::from_value(payload),
    }
}

impl Inner {
    /// Jobs landed with a commit.
    pub(crate) fn jobs_enqueued(&self, rows: &[JobRow]) {
        for row in rows {
            self.jobs.push(row);
            self.jobs.tell(row);
        }
    }

    /// Takes a job through `events` in one transaction, or leaves it when one of them cannot happen.
    pub(crate) async fn step_job(
        &self,
        session: &str,
        job: &str,
        events: &'static [JobEvent],
        change: impl FnOnce(&mut JobRow) + Send + 'static,
    ) -> Result<Option<JobRow>, StoreError> {
        let (key, id, now) = (SessionId::from(session), job.to_owned(), self.ambient.now_millis());
        let sequence = self.jobs.next_sequence(session, job);
        let stepped = self.store.transact(move |tx| {
            let Some(mut row) = record::get(&tx.read(), &key, &id)? else { return Ok(None) };
            if !events.iter().all(|event| row.step(*event, now)) {
                return Ok(None);
            }
            row.sequence = row.sequence.max(sequence);
            change(&mut row);
            record::put(tx, &key, &row)?;
            Ok(Some(row))
        });
        let row = stepped.await.map_err(covel_store::TransactError::flatten)?;
        if let Some(row) = &row {
            self.jobs.tell(row);
        }
        Ok(row)
    }

    /// Puts the jobs of earlier processes where they belong: what nobody had begun waits again, what somebody had is
    /// orphaned. A commit under way at a crash landed with its job's end or not at all, so nothing happens twice.
    pub(crate) fn recover_jobs(&self) -> Result<(), StoreError> {
        let rows = self.store.read(record::open)?;
        if rows.is_empty() {
            return Ok(());
        }
        let now = self.ambient.now_millis();
        let lost: Vec<JobRow> = rows.iter().filter(|row| row.status != JobStatus::Queued).cloned().collect();
        if !lost.is_empty() {
            self.store
                .transact_blocking(move |tx| {
                    for mut row in lost {
                        let session = SessionId::from(row.session_id.as_str());
                        if row.step(JobEvent::Recover, now) {
                            row.reason = Some("process-ended".into());
                            record::put(tx, &session, &row)?;
                        }
                    }
                    Ok::<_, StoreError>(())
                })
                .map_err(covel_store::TransactError::flatten)?;
        }
        for row in rows.iter().filter(|row| row.status == JobStatus::Queued) {
            // Packages are published one after another; with half of them a session is not what the job was made for.
            let packages = self.session(&row.session_id).map(|session| session.active_plugins).unwrap_or_default();
            self.jobs.queue.lock().push(Entry { packages, ..entry_of(row) });
        }
        Ok(())
    }

    /// May this job start? Its package may not be published yet, or its code not be approved yet.
    fn job_ready(&self, entry: &Entry) -> bool {
        let packages = self.packages.read();
        let Some(package) = packages.get(&entry.plugin_id) else { return false };
        if !entry.packages.iter().all(|package| packages.contains_key(package)) {
            return false;
        }
        package.package.discovery == covel_graph::package::Discovery::Builtin
            || self.approvals.lock().get(&entry.incarnation).is_some_and(|approved| approved.contains(&entry.plugin_id))
    }
}

/// Starts what may start. Outside a runtime nothing can be spawned; the next call from inside one does it.
pub(crate) fn pump(inner: &Arc<Inner>) {
    if inner.closing.load(Ordering::SeqCst) {
        return;
    }
    let Ok(handle) = Handle::try_current() else { return };
    loop {
        let entry = {
            let mut queue = inner.jobs.queue.lock();
            if queue.active_count() >= inner.jobs.workers {
                break;
            }
            queue.start(|entry| inner.job_ready(entry))
        };
        let Some(entry) = entry else { break };
        let cancel = CancellationToken::new();
        let key = (entry.session_id.clone(), entry.job_id.clone());
        inner.jobs.running.lock().insert(key, cancel.clone());
        handle.spawn(Worker { inner: Some(Arc::clone(inner)), entry, ended: false }.run(cancel));
    }
    scan_from_time_to_time(inner, &handle);
}

/// A started job: gives its place back, whatever ends it.
struct Worker {
    inner: Option<Arc<Inner>>,
    entry: Entry,
    ended: bool,
}

impl Worker {
    async fn run(mut self, cancel: CancellationToken) {
        if let Some(inner) = &self.inner {
            run::run(inner, &self.entry, cancel).await;
        }
        self.ended = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        let key = (self.entry.session_id.clone(), self.entry.job_id.clone());
        inner.jobs.running.lock().remove(&key);
        inner.jobs.reported.lock().remove(&key);
        inner.jobs.queue.lock().end(&key.0, &key.1);
        let changed = Arc::clone(&inner.jobs.changed);
        // A task that was dropped half-way means that its runtime goes down; the scan of whoever is next finds the job.
        if self.ended {
            pump(&inner);
        }
        // Let go of the engine first: whoever waited for the last job may open the folder again at once.
        drop(inner);
        changed.notify_waiters();
    }
}

/// Keeps the maintenance scan going while there are open jobs.
fn scan_from_time_to_time(inner: &Arc<Inner>, handle: &Handle) {
    let open = {
        let queue = inner.jobs.queue.lock();
        queue.active_count() > 0 || queue.waiting().next().is_some()
    };
    if !open || inner.jobs.workers == 0 || inner.jobs.scanning.swap(true, Ordering::SeqCst) {
        return;
    }
    let weak = Arc::downgrade(inner);
    handle.spawn(async move {
        let mut pause = JOB_SCAN_INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let Some(inner) = weak.upgrade() else { return };
            if inner.closing.load(Ordering::SeqCst) {
                return;
            }
            pause = match inner.scan_jobs().await {
                Ok(()) => JOB_SCAN_INTERVAL,
                Err(error) => {
                    tracing::warn!("the scan of jobs failed and is tried again: {error}");
                    JOB_SCAN_RETRY
                }
            };
            pump(&inner);
            let queue = inner.jobs.queue.lock();
            if queue.active_count() == 0 && queue.waiting().next().is_none() {
                inner.jobs.scanning.store(false, Ordering::SeqCst);
                return;
            }
        }
    });
}

/// Waits until no open job of the session asks its next execution to wait, at most as long as the jobs ask.
/// Answers whether the wait was given up.
pub(crate) async fn settle(inner: &Arc<Inner>, session: &str, deadline: &mut Option<tokio::time::Instant>) -> bool {
    loop {
        let changed = inner.jobs.changed.notified();
        let Some(wait) = inner.jobs.queue.lock().settle_ms(session) else { return false };
        if inner.jobs.workers == 0 {
            return true;
        }
        pump(inner);
        let until = *deadline.get_or_insert_with(|| tokio::time::Instant::now() + Duration::from_millis(wait));
        if tokio::time::timeout_at(until, changed).await.is_err() {
            return true;
        }
    }
}

impl Jobs {
    /// The next document of the session says that its execution did not wait to the end.
    pub(crate) fn note_settle_timeout(&self, session: &str) {
        let note = ErrorInfo::new(
            "execution.settle-timeout",
            "the execution went on while jobs it should have waited for were still open",
        );
        self.notes.lock().entry(session.to_owned()).or_default().push(note);
    }

    /// Does any open job ask the session's next execution to wait?
    pub(crate) fn is_settled(&self, session: &str) -> bool {
        self.queue.lock().settle_ms(session).is_none()
    }

    /// Waits until no job runs. For closing: nothing new starts then.
    pub(crate) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.queue.lock().active_count() == 0 {
                return;
            }
            changed.await;
        }
    }
}
