//! What callers ask of jobs.

use std::sync::{Arc, atomic::Ordering};

use covel_graph::{Json, RuntimeIx, SessionId, fragment::TriggerKind};
use covel_store::{StoreError, TransactError};

use super::{
    Frozen, JobActivation, JobDocument, JobRow, JobStatus,
    enqueue::{last_message, new_row},
    pump, record,
    state::JobEvent,
};
use crate::{
    active::ActivePlan,
    document::ErrorInfo,
    engine::{Engine, Inner},
    error::ExecError,
    event::EventSink,
    limits::{MAX_EVENT_BYTES, MAX_MESSAGE_CHARS, MAX_OPEN_JOBS_PER_SESSION, MAX_OUTPUT_BYTES},
    session::{SessionRecord, SessionStatus},
};

/// A runtime to run as a job.
#[derive(Clone, Debug)]
pub struct BackgroundRequest {
    /// Session.
    pub session_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Activation payload.
    pub payload: Json,
    /// Player message it sees.
    pub message: String,
}

/// What a UI event led to.
#[derive(Clone, Debug, PartialEq)]
pub struct UiEvent {
    /// Id of the event.
    pub event_id: String,
    /// Topic.
    pub topic: String,
    /// One job for each subscriber, in runtime order. EVT-3
    pub jobs: Vec<JobDocument>,
}

impl Engine {
    /// Jobs of a session, oldest first: open ones, and the newest ended ones of each runtime.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn jobs(&self, session_id: &str) -> Result<Vec<JobDocument>, ExecError> {
        self.0.session(session_id)?;
        let rows = self.0.store.read(|reader| record::list(reader, &SessionId::from(session_id)))?;
        Ok(rows.iter().map(|row| self.0.job_document(row)).collect())
    }

    /// One job.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::JobNotFound`].
    pub fn job(&self, session_id: &str, job_id: &str) -> Result<JobDocument, ExecError> {
        Ok(self.0.job_document(&self.0.job_row(session_id, job_id)?))
    }

    /// Calls a job off: one that waits never starts, one that runs is stopped and leaves nothing.
    ///
    /// # Errors
    /// [`ExecError::JobNotCancellable`] once it commits or has ended.
    pub async fn cancel_job(&self, session_id: &str, job_id: &str) -> Result<JobDocument, ExecError> {
        let inner = &self.0;
        let row = inner.job_row(session_id, job_id)?;
        let reason = |row: &mut JobRow| row.reason = Some("cancelled".into());
        let stepped = inner.step_job(session_id, job_id, &[JobEvent::Cancel], reason).await?;
        let Some(row) = stepped else {
            let status = inner.job_row(session_id, job_id).map_or(row.status, |row| row.status);
            return Err(ExecError::JobNotCancellable { id: job_id.to_owned(), status: status.as_str().into() });
        };
        let key = (session_id.to_owned(), job_id.to_owned());
        let running = inner.jobs.running.lock().get(&key).cloned();
        if let Some(running) = running {
            running.cancel();
        }
        inner.jobs.queue.lock().withdraw(session_id, job_id);
        inner.jobs.changed.notify_waiters();
        Ok(inner.job_document(&row))
    }

    /// Tries an ended job again, as a new job on the same frozen input, for the session's present incarnation and the
    /// package's present version.
    ///
    /// # Errors
    /// [`ExecError::JobNotRetryable`] unless it failed, timed out, was cancelled, went stale or was orphaned.
    pub async fn retry_job(&self, session_id: &str, job_id: &str) -> Result<JobDocument, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let before = inner.job_row(session_id, job_id)?;
        let refuse = || ExecError::JobNotRetryable { id: job_id.to_owned(), status: before.status.as_str().into() };
        if !before.status.is_retryable() {
            return Err(refuse());
        }
        let (session, plan) = inner.session_and_plan(session_id).await?;
        let runtime = plan.runtime_ix(&before.runtime_id);
        let runtime = runtime.ok_or_else(|| ExecError::RuntimeNotActive(before.runtime_id.clone()))?;
        let key = SessionId::from(session_id);
        let frozen = inner.store.read(|reader| record::frozen(reader, &key, job_id))?.ok_or_else(refuse)?;
        let mut row = inner.new_job(&plan, runtime, &session);
        row.origin.clone_from(&before.origin);
        row.origin.retry_of = Some(before.job_id.clone());
        row.attempt = before.attempt + 1;
        row.chain = before.chain;
        let mut rows = inner.enqueue(&session, vec![(row, frozen)]).await?;
        pump(inner);
        rows.pop().ok_or_else(|| ExecError::Internal("a job was not enqueued".into()))
    }

    /// Runs a runtime as a durable job of its own. All trigger gates are bypassed.
    ///
    /// # Errors
    /// [`ExecError::RuntimeNotActive`], [`ExecError::BackgroundQueueFull`], and the session's own refusals.
    pub async fn enqueue_runtime(&self, request: BackgroundRequest) -> Result<JobDocument, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        if request.message.chars().count() > MAX_MESSAGE_CHARS {
            let message = format!("a message has at most {MAX_MESSAGE_CHARS} characters");
            return Err(ExecError::Invalid { field: "message".into(), message });
        }
        if request.payload.byte_len() > MAX_OUTPUT_BYTES {
            let message = format!("a payload has at most {MAX_OUTPUT_BYTES} bytes");
            return Err(ExecError::Invalid { field: "payload".into(), message });
        }
        let (session, plan) = inner.session_and_plan(&request.session_id).await?;
        let runtime = plan.runtime_ix(&request.runtime_id);
        let runtime = runtime.ok_or_else(|| ExecError::RuntimeNotActive(request.runtime_id.clone()))?;
        let row = inner.new_job(&plan, runtime, &session);
        let frozen = Frozen {
            message: request.message,
            payload: request.payload,
            logical_turn: session.completed_player_turns + 1,
            seed: format!("{}#job:{}", session.seed, row.job_id),
            ..Frozen::new()
        };
        let mut rows = inner.enqueue(&session, vec![(row, frozen)]).await?;
        pump(inner);
        rows.pop().ok_or_else(|| ExecError::Internal("a job was not enqueued".into()))
    }

    /// An event of a package's page: every runtime that follows the topic becomes a job, whatever its start turn,
    /// cooldown and limits say. COM-8, EVT-3
    ///
    /// # Errors
    /// [`ExecError::UiEvent`] for a topic the package does not declare (`event-not-declared`) or a payload that breaks
    /// its schema (`event-payload-invalid`), [`ExecError::PluginNotActive`], [`ExecError::BackgroundQueueFull`].
    pub async fn emit_ui_event(
        &self,
        session_id: &str,
        plugin_id: &str,
        topic: &str,
        data: Json,
    ) -> Result<UiEvent, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let (session, plan) = inner.session_and_plan(session_id).await?;
        let package = plan.packages.iter().find(|package| package.id() == plugin_id);
        let package = package.ok_or_else(|| ExecError::PluginNotActive(plugin_id.to_owned()))?;
        let refuse = |code: &str, message: String| ExecError::UiEvent { code: code.to_owned(), message };
        if !package.fragment().events.iter().any(|event| event.topic == topic) {
            let message = format!("package {plugin_id:?} does not declare the topic {topic:?}");
            return Err(refuse("event-not-declared", message));
        }
        if !data.value().is_object() {
            return Err(refuse("event-payload-invalid", "the payload of an event is an object".into()));
        }
        if data.byte_len() > MAX_EVENT_BYTES {
            let message = format!("the payload has {} bytes; at most {MAX_EVENT_BYTES}", data.byte_len());
            return Err(refuse("event-payload-invalid", message));
        }
        plan.check_event(topic, &data).map_err(|ErrorInfo { code, message }| refuse(&code, message))?;
        let event_id = format!("event-{}", inner.fresh_id(16));
        let jobs = subscribers(&plan, topic)
            .map(|runtime| {
                let mut row = inner.new_job(&plan, runtime, &session);
                row.origin.activation = JobActivation::Event;
                row.origin.topic = Some(topic.to_owned());
                let frozen = Frozen {
                    trigger: Some((topic.to_owned(), data.clone())),
                    logical_turn: session.completed_player_turns + 1,
                    seed: format!("{}#job:{}", session.seed, row.job_id),
                    ..Frozen::new()
                };
                (row, frozen)
            })
            .collect();
        let jobs = inner.enqueue(&session, jobs).await?;
        pump(inner);
        Ok(UiEvent { event_id, topic: topic.to_owned(), jobs })
    }

    /// Runs jobs until none of this session (or of any) can run any more. Jobs whose package is not published stay.
    pub async fn drain_jobs(&self, session_id: Option<&str>) {
        loop {
            pump(&self.0);
            let changed = self.0.jobs.changed.notified();
            {
                let of_this = |session: &str| session_id.is_none_or(|wanted| wanted == session);
                let queue = self.0.jobs.queue.lock();
                let active = queue.active().any(|entry| of_this(&entry.session_id));
                let works = self.0.jobs.workers > 0 && !self.0.closing.load(Ordering::SeqCst);
                // Others may hold all workers while one of this session waits.
                let waits = works && queue.waiting().any(|entry| of_this(&entry.session_id) && self.0.job_ready(entry));
                if !active && !waits {
                    return;
                }
            }
            changed.await;
        }
    }

    /// One maintenance scan, as the engine does it every half minute while jobs are open: jobs that waited too long
    /// time out, jobs whose worker is gone are orphaned.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn maintain_jobs(&self) -> Result<(), ExecError> {
        self.0.scan_jobs().await?;
        pump(&self.0);
        Ok(())
    }

    /// Does anyone listen to jobs?
    pub fn hears_jobs(&self) -> bool {
        self.0.jobs.listener.lock().is_some()
    }

    /// Where `job-status.updated` and the events of job executions go, from now on.
    pub fn listen_to_jobs(&self, events: EventSink) {
        *self.0.jobs.listener.lock() = Some(events);
    }
}

/// Runtimes that follow a topic, in plan order.
fn subscribers(plan: &ActivePlan, topic: &str) -> impl Iterator<Item = RuntimeIx> {
    let range = plan.topic_ix(topic).map_or(0..0, |at| {
        let starts = &plan.plan.subscribers.starts;
        starts[at as usize].to_native() as usize..starts[at as usize + 1].to_native() as usize
    });
    range
        .map(|slot| RuntimeIx(plan.plan.subscribers.items[slot].to_native()))
        .filter(|runtime| plan.decl(*runtime).trigger == TriggerKind::Event)
        .collect::<Vec<_>>()
        .into_iter()
}

impl Inner {
    fn job_document(&self, row: &JobRow) -> JobDocument {
        JobDocument { progress: self.jobs.progress_of(row), ..row.document() }
    }

    fn job_row(&self, session_id: &str, job_id: &str) -> Result<JobRow, ExecError> {
        self.session(session_id)?;
        let found = self.store.read(|reader| record::get(reader, &SessionId::from(session_id), job_id))?;
        found.ok_or_else(|| ExecError::JobNotFound(job_id.to_owned()))
    }

    /// An active session with what is active in it now.
    async fn session_and_plan(&self, id: &str) -> Result<(SessionRecord, Arc<ActivePlan>), ExecError> {
        let mut session = self.session(id)?;
        if session.status != SessionStatus::Active {
            return Err(ExecError::SessionNotActive { status: session.status.as_str().into(), id: session.id });
        }
        let activation = self.activate(&session)?;
        session.active_plugins = activation.active.iter().map(|plugin| plugin.as_str().to_owned()).collect();
        let plan = self.active_plan(&session.active_plugins).await?;
        Ok((session, plan))
    }

    fn new_job(&self, plan: &ActivePlan, runtime: RuntimeIx, session: &SessionRecord) -> JobRow {
        let id = format!("job-{}-{}", session.turn_count, self.fresh_id(12));
        new_row(plan, runtime, (&session.id, &session.incarnation), id, self.ambient.now_millis())
    }

    /// Stores jobs, all or none, and puts them in line.
    async fn enqueue(
        &self,
        session: &SessionRecord,
        jobs: Vec<(JobRow, Frozen)>,
    ) -> Result<Vec<JobDocument>, ExecError> {
        let (key, id, incarnation) =
            (SessionId::from(session.id.as_str()), session.id.clone(), session.incarnation.clone());
        let rows = self.store.transact(move |tx| {
            let stored = tx.read().get_session(&key)?;
            let stored = stored.and_then(|json| Some(json.value().get("incarnation")?.as_str()? == incarnation));
            if stored != Some(true) {
                return Err(ExecError::SessionNotFound(id));
            }
            if record::open_count(&tx.read(), &key)? + jobs.len() > MAX_OPEN_JOBS_PER_SESSION {
                return Err(ExecError::BackgroundQueueFull { id, limit: MAX_OPEN_JOBS_PER_SESSION });
            }
            let until = last_message(tx, &key)?;
            let mut rows = Vec::with_capacity(jobs.len());
            for (mut row, mut frozen) in jobs {
                frozen.history_until.get_or_insert(until);
                record::insert(tx, &key, &mut row, &frozen)?;
                rows.push(row);
            }
            Ok(rows)
        });
        let rows = rows.await.map_err(TransactError::flatten)?;
        self.jobs_enqueued(&rows);
        Ok(rows.iter().map(JobRow::document).collect())
    }

    /// See [`Engine::maintain_jobs`].
    pub(crate) async fn scan_jobs(&self) -> Result<(), StoreError> {
        let rows = self.store.read(record::open)?;
        let now = self.ambient.now_millis();
        for row in rows {
            let active = self.jobs.queue.lock().is_active(&row.session_id, &row.job_id);
            if active {
                continue;
            }
            if row.queue_expired(now) {
                let reason = |row: &mut JobRow| row.reason = Some("queue-timeout".into());
                self.step_job(&row.session_id, &row.job_id, &[JobEvent::QueueExpire], reason).await?;
                self.jobs.queue.lock().withdraw(&row.session_id, &row.job_id);
                self.jobs.changed.notify_waiters();
            } else if row.lease.as_ref().is_some_and(|lease| now > lease.expires_at) {
                let reason = |row: &mut JobRow| row.reason = Some("lease-lapsed".into());
                self.step_job(&row.session_id, &row.job_id, &[JobEvent::LeaseLapse], reason).await?;
            } else if row.status == JobStatus::Queued {
                let mut queue = self.jobs.queue.lock();
                let known =
                    queue.waiting().any(|entry| entry.job_id == row.job_id && entry.session_id == row.session_id);
                let active = queue.is_active(&row.session_id, &row.job_id);
                if !known && !active {
                    queue.push(super::entry_of(&row));
                }
            }
        }
        Ok(())
    }

    /// Ends the open jobs of a session that is about to go: what waits is forgotten, what runs is stopped.
    pub(crate) fn drop_jobs_of(&self, session: &str) {
        self.jobs.queue.lock().withdraw_all(session);
        for ((of, _), running) in self.jobs.running.lock().iter() {
            if of == session {
                running.cancel();
            }
        }
        self.jobs.changed.notify_waiters();
    }
}
