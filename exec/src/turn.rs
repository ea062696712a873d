//! One request, one or two executions: setup when it is due, then the turn.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use covel_graph::{Json, SessionId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    active::ActivePlan,
    ambient::{Ambient, fresh_id, iso_time},
    call_host::Shared,
    commit::{CommitPlan, Committed, precondition, refused_setup_state},
    core::{PhaseKind, TurnCore},
    document::{ErrorInfo, TurnDocument},
    engine::{Engine, Inner, SessionLock},
    error::ExecError,
    event::{Emitter, EventSink},
    execution::{Services, walk},
    flow::{CommitExtras, Resolves},
    given::{Given, Resume},
    limits::{MAX_MESSAGE_CHARS, MAX_MESSAGE_ID_BYTES},
    packages::resolve_settings,
    recovery::{ABORTED, ExecutionInfo, Live, check_recovery},
    retry::{Retry, hidden_results},
    select::{Selection, pending_setup, select_manual, select_setup, select_turn},
    services::trace::ServiceLog,
    session::{Phase, SessionRecord, SessionStatus},
    setup,
    tape::Recorder,
    trace::draft::{Asked, Draft},
    walked::{Walked, micros},
};

/// What to execute.
#[derive(Clone, Debug)]
pub enum ExecutionKind {
    /// A player turn. In a session still in setup, setup runs first.
    Player {
        /// What the player wrote.
        message: String,
    },
    /// Setup, then an uncounted opening turn.
    Start,
    /// One runtime by name, with all trigger gates bypassed. UIW-2
    Manual {
        /// Runtime.
        runtime_id: String,
        /// Activation payload.
        payload: Json,
        /// Player message it sees.
        message: String,
        /// Run it even where what it needs is not there.
        ignore_upstreams: bool,
    },
    /// A new player turn without a message.
    RetryTurn,
    /// Failed runtimes of the newest story turn run again, over what it committed. Not counted.
    RetryFailed {
        /// That turn.
        retry_from_turn_id: String,
        /// 1 to 20 of its runtimes; those that did not fail are left alone.
        runtime_ids: Vec<String>,
    },
    /// A suspended runtime goes on.
    Resume {
        /// Its suspension.
        suspension_id: String,
        /// What it was waiting for.
        data: Json,
    },
}

impl ExecutionKind {
    /// As an action: `{type, payload}`.
    pub fn action(&self) -> Json {
        let (kind, payload) = match self {
            Self::Player { message } => ("send_message", json!({"content": message})),
            Self::Start => ("start_session", json!({})),
            Self::Manual { runtime_id, .. } => ("retry_runtime", json!({"runtimeId": runtime_id})),
            Self::RetryTurn => ("retry_turn", json!({})),
            Self::RetryFailed { retry_from_turn_id, runtime_ids } => {
                ("retry_failed_runtimes", json!({"retryFromTurnId": retry_from_turn_id, "runtimeIds": runtime_ids}))
            }
            Self::Resume { suspension_id, data } => ("resume", json!({"suspensionId": suspension_id, "data": data})),
        };
        Json::from_value(json!({"type": kind, "payload": payload}))
    }
}

/// Conditions and names a caller may add to a request.
#[derive(Clone, Debug, Default)]
pub struct ExecutionOptions {
    /// The interrupted turn that this request repeats; anything else is refused.
    pub recover_from_turn_id: Option<String>,
    /// The id the player's message gets. A committed turn's id is refused.
    pub input_message_id: Option<String>,
    /// The incarnation the caller means.
    pub incarnation: Option<String>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct ExecutionRequest {
    /// Session.
    pub session_id: String,
    /// What.
    pub kind: ExecutionKind,
    /// Cancels it; nothing is kept then.
    pub cancel: CancellationToken,
    /// The caller's id of this request, for traces.
    pub request_id: Option<String>,
}

impl ExecutionRequest {
    /// A player turn.
    pub fn player(session_id: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            kind: ExecutionKind::Player { message: message.into() },
            cancel: CancellationToken::new(),
            request_id: None,
        }
    }
}

/// One execution about to run.
pub(crate) struct Job<'a> {
    origin: &'static str,
    message: String,
    payload: Json,
    counts: bool,
    selection: Select<'a>,
    flow: Flow,
}

impl Job<'_> {
    /// For the trace.
    fn asked(&self, request_id: Option<String>) -> Asked {
        Asked {
            origin: self.origin.to_owned(),
            message: self.message.clone(),
            payload: self.payload.clone(),
            input_message_id: self.flow.extras.input_message_id.clone(),
            request_id,
            ..self.flow.about.clone()
        }
    }
}

/// What sets a request apart from an ordinary turn.
#[derive(Default)]
pub(crate) struct Flow {
    given: Given,
    /// Of an earlier execution.
    logical_turn: Option<u32>,
    extras: CommitExtras,
    /// More of `execution.started`.
    started: serde_json::Map<String, serde_json::Value>,
    /// What else a replay must ask for.
    about: Asked,
}

/// Who runs, decided once plan and logical turn are known.
type Select<'a> = Box<dyn FnOnce(&ActivePlan, &SessionRecord, u32) -> Result<Selection, ExecError> + Send + 'a>;

impl Engine {
    /// Runs a request to its end. What did not commit is told in the document; an error means nothing ran.
    ///
    /// # Errors
    /// [`ExecError`]: unknown, paused or busy session, bad fields, an activation that cannot be.
    pub async fn execute(
        &self,
        request: ExecutionRequest,
        events: Option<EventSink>,
    ) -> Result<TurnDocument, ExecError> {
        self.execute_with(request, ExecutionOptions::default(), events).await
    }

    /// As [`Engine::execute`], on conditions.
    ///
    /// # Errors
    /// Also `session-incarnation-changed`, `recovery-mismatch`, and those of retries and resumptions.
    pub async fn execute_with(
        &self,
        request: ExecutionRequest,
        options: ExecutionOptions,
        events: Option<EventSink>,
    ) -> Result<TurnDocument, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let message = match &request.kind {
            ExecutionKind::Player { message } | ExecutionKind::Manual { message, .. } => message.as_str(),
            _ => "",
        };
        check_message_id(options.input_message_id.as_deref())?;
        if message.chars().count() > MAX_MESSAGE_CHARS {
            return Err(ExecError::Invalid {
                field: "message".into(),
                message: format!("a message has at most {MAX_MESSAGE_CHARS} characters"),
            });
        }
        let session = inner.session(&request.session_id)?;
        if session.status != SessionStatus::Active {
            return Err(ExecError::SessionNotActive { status: session.status.as_str().into(), id: session.id });
        }
        let (_lock, gave_up) = tokio::select! {
            taken = inner.take_settled(&session.id) => taken?,
            // Called off while it waited: it need not wait to be told so.
            () = request.cancel.cancelled() => (SessionLock::take(inner, &session.id).await?, false),
        };
        if gave_up {
            inner.jobs.note_settle_timeout(&session.id);
        }
        let _permit = inner.in_flight.acquire().await.map_err(|_| ExecError::Closing)?;
        inner.check_open()?;
        // Read again under the lock: a turn may have ended in between.
        let mut session = inner.session(&request.session_id)?;
        if options.incarnation.as_ref().is_some_and(|incarnation| *incarnation != session.incarnation) {
            return Err(ExecError::Conflict {
                code: "session-incarnation-changed",
                message: format!("session {:?} was deleted and created again", session.id),
            });
        }
        let action = request.kind.action();
        if let Some(turn) = &options.recover_from_turn_id {
            check_recovery(&session, turn, &action)?;
        }
        let activation = inner.activate(&session)?;
        session.active_plugins = activation.active.iter().map(|plugin| plugin.as_str().to_owned()).collect();
        let plan = inner.active_plan(&session.active_plugins).await?;
        session.plan = Some(plan.digest.clone());
        let live = Arc::new(Live {
            turn_id: parking_lot::Mutex::new(None),
            request_id: request.request_id.clone(),
            action,
            started_at: inner.now(),
            cancel: request.cancel.child_token(),
            aborted: AtomicBool::new(false),
            steering: Arc::default(),
            story: AtomicBool::new(false),
        });
        let registered = inner.executions.register(&session.id, &live);
        let id = session.id.clone();
        let outcome = self.run_request(request, options, session, Arc::clone(&plan), &live, events.clone()).await;
        crate::jobs::pump(inner);
        drop(registered);
        let failed = outcome.as_ref().map_or(true, |document| !document.committed);
        let info = if failed {
            inner.failed_info(&live)
        } else {
            ExecutionInfo { status: "completed", retry: None, abort_reason: None, ..inner.failed_info(&live) }
        };
        inner.executions.ended(&id, info);
        let mut document = outcome?;
        if failed && live.aborted.load(Ordering::Acquire) {
            document.abort_reason = Some(ABORTED.to_owned());
        }
        Emitter::new(events, plan, &document.session_id, &document.turn_id).send(
            "execution.completed",
            json!({
                "runtimeCount": document.runtimes.len(),
                "resultCount": document.runtimes.len(),
                "durationMs": document.duration_micros / 1_000,
                "committed": document.committed,
                "error": document.error,
                "abortReason": document.abort_reason,
            }),
        );
        Ok(document)
    }

    async fn run_request(
        &self,
        request: ExecutionRequest,
        options: ExecutionOptions,
        session: SessionRecord,
        plan: Arc<ActivePlan>,
        live: &Live,
        events: Option<EventSink>,
    ) -> Result<TurnDocument, ExecError> {
        let inner = &self.0;
        let fresh = session.turn_count == 0;
        let mut session = session;
        let mut setup = None;
        if setup::block_cycles(&plan.plan, &mut session) {
            inner.put_session(&session).await?;
        }
        let main_loop =
            matches!(request.kind, ExecutionKind::Player { .. } | ExecutionKind::Start | ExecutionKind::RetryTurn);
        let due = main_loop && !pending_setup(&plan.plan, &session).is_empty();
        if due && session.phase == Phase::Setup && select_setup(&plan.plan, &session).is_empty() {
            let mut refused = blank(&session, &plan, &inner.now());
            refused.error = Some(ErrorInfo::new("setup-incomplete", "setup waits for an answer to its suspension"));
            return Ok(refused);
        }
        if due && !select_setup(&plan.plan, &session).is_empty() {
            let job = setup_job();
            let (document, after) = inner.execute_one(session, &plan, job, live, &events).await?;
            let (ready, committed) = (after.phase == Phase::Playing, document.committed);
            session = after;
            if !ready || !committed {
                let error = document.error.clone().unwrap_or_else(|| {
                    ErrorInfo::new("setup-incomplete", "setup is not finished; its runtimes are listed under `setup`")
                });
                let mut refused = blank(&session, &plan, &inner.now());
                refused.error = Some(error);
                refused.setup = Some(Box::new(document));
                return Ok(refused);
            }
            setup = Some(Box::new(document));
        }
        let job = match request.kind {
            ExecutionKind::Player { message } => main_job("player", message, live, options.input_message_id),
            ExecutionKind::RetryTurn => main_job("player", String::new(), live, None),
            ExecutionKind::RetryFailed { retry_from_turn_id, runtime_ids } => {
                inner.retry_job(&session, &plan, retry_from_turn_id, runtime_ids)?
            }
            ExecutionKind::Resume { suspension_id, data } => inner.resume_job(&session, &plan, &suspension_id, data)?,
            ExecutionKind::Start => {
                // Setup alone is no start: an opening that failed may be tried again.
                if !fresh && setup.is_none() && inner.has_opened(&session)? {
                    return Err(ExecError::Invalid {
                        field: "type".into(),
                        message: "this session has started already".into(),
                    });
                }
                main_job("continuation", String::new(), live, None)
            }
            ExecutionKind::Manual { runtime_id, payload, message, ignore_upstreams } => {
                manual_job(runtime_id, payload, message, ignore_upstreams)
            }
        };
        if (job.counts || job.origin == "continuation")
            && let Some(error) = inner.awaits_settlement(&session, &plan)?
        {
            let mut refused = blank(&session, &plan, &inner.now());
            refused.error = Some(error);
            refused.setup = setup;
            return Ok(refused);
        }
        let (mut document, _) = inner.execute_one(session, &plan, job, live, &events).await?;
        document.setup = setup;
        Ok(document)
    }
}

pub(crate) fn blank(session: &SessionRecord, plan: &ActivePlan, now: &str) -> TurnDocument {
    TurnDocument {
        session_id: session.id.clone(),
        turn_id: String::new(),
        origin: "player".into(),
        committed: false,
        error: None,
        narrative: String::new(),
        runtimes: Vec::new(),
        events: Vec::new(),
        changes: Vec::new(),
        isolated: Vec::new(),
        operations: Vec::new(),
        jobs: Vec::new(),
        notes: Vec::new(),
        setup: None,
        suspensions: Vec::new(),
        resumed: None,
        retry_of: None,
        abort_reason: None,
        steers: Vec::new(),
        message: String::new(),
        logical_turn: session.completed_player_turns + 1,
        created_at: now.to_owned(),
        duration_micros: 0,
        plan: plan.digest.clone(),
    }
}

impl Inner {
    /// The session, once the jobs that ask for it have ended or waited for long enough. Waits without the lock and
    /// looks again inside it. The flag says that the wait was given up.
    pub(crate) async fn take_settled(self: &Arc<Self>, id: &str) -> Result<(SessionLock, bool), ExecError> {
        let mut deadline = None;
        loop {
            let gave_up = crate::jobs::settle(self, id, &mut deadline).await;
            let lock = SessionLock::take(self, id).await?;
            if gave_up || self.jobs.is_settled(id) {
                return Ok((lock, gave_up));
            }
        }
    }

    pub(crate) async fn execute_one(
        &self,
        session: SessionRecord,
        plan: &Arc<ActivePlan>,
        job: Job<'_>,
        live: &Live,
        events: &Option<EventSink>,
    ) -> Result<(TurnDocument, SessionRecord), ExecError> {
        let start = self.ambient.monotonic();
        let mut asked = job.asked(live.request_id.clone());
        let Flow { given, logical_turn, mut extras, started, about: _ } = job.flow;
        let logical_turn = logical_turn.unwrap_or(session.completed_player_turns + 1);
        let selection = (job.selection)(plan, &session, logical_turn)?;
        let mut shared = self.freeze(session, plan, &job.message, logical_turn, &live.cancel)?;
        if let Some(shared) = Arc::get_mut(&mut shared) {
            shared.given = given;
            if extras.main_loop {
                shared.given.not_applied.clone_from(&shared.session.not_applied);
            }
        }
        let _noted = self.executions.note(&shared.session, &shared.turn_id, live);
        live.story.store(extras.main_loop, Ordering::Release);
        let mut document = blank(&shared.session, plan, &iso_time(shared.ambient.now_millis()));
        document.turn_id.clone_from(&shared.turn_id);
        document.origin = job.origin.to_owned();
        document.message = job.message;

        let emitter = Emitter::new(events.clone(), Arc::clone(plan), &shared.session.id, &shared.turn_id);
        let members: usize = selection.phases.iter().map(|phase| phase.members.count_ones(..)).sum();
        let mut payload = json!({"runtimeCount": members, "origin": job.origin});
        if let Some(object) = payload.as_object_mut() {
            object.extend(started);
        }
        emitter.send("execution.started", payload);
        let gateway = shared.recorder.gateway(&self.gateway);
        let services = Services { js: self.js.clone(), gateway, emitter: emitter.clone() };
        let core = TurnCore::new(plan.plan.clone(), Arc::clone(&plan.layers), selection);
        let mut walked = walk(Arc::clone(&shared), core, &services, job.payload).await;

        walked.fill(&mut document);
        document.notes.extend(shared.recorder.notes(|| self.jobs.take_notes(&document.session_id)));
        document.duration_micros = micros(self.ambient.monotonic().saturating_sub(start));

        let outcome = match precondition(&walked) {
            Some(error) => Err(error),
            None => {
                live.story.store(false, Ordering::Release);
                if extras.main_loop {
                    extras.steers = shared.given.steering.close();
                    extras.hidden = hidden_results(&walked);
                }
                // When the story heard what the player added is on no tape.
                asked.seeded = !extras.steers.is_empty();
                CommitPlan::new(&walked, document.clone(), job.counts, Draft::new(&walked, asked.clone()))
                    .with(extras)
                    .run(&self.store)
                    .await
                    .map_err(|refused| refused.to_error())
            }
        };
        match outcome {
            Ok(committed) => {
                fan_out(&emitter, &committed);
                self.jobs_enqueued(&committed.jobs);
                let Committed { mut document, session, .. } = committed;
                document.duration_micros = micros(self.ambient.monotonic().saturating_sub(start));
                Ok((document, session))
            }
            Err(error) => {
                document.committed = false;
                document.narrative.clear();
                emitter.send("error.occurred", json!({"message": error.message, "code": error.code}));
                let session = self.keep_attempts(&walked, job.origin, &error).await?;
                document.error = Some(error);
                let ended_at = iso_time(shared.ambient.now_millis());
                Draft::new(&walked, asked).write_failed(&self.store, &document, &ended_at).await;
                Ok((document, session))
            }
        }
    }

    /// A rolled-back setup attempt still uses up budget; nothing else of it is kept.
    async fn keep_attempts(
        &self,
        walked: &Walked,
        origin: &str,
        error: &ErrorInfo,
    ) -> Result<SessionRecord, ExecError> {
        let mut session = self.session(&walked.shared.session.id)?;
        if origin == "setup" {
            for runtime in &walked.order {
                let (id, state) = refused_setup_state(walked, *runtime, error);
                if walked.core.place(*runtime).depth == 0 {
                    session.setup_runtimes.insert(id, state);
                }
            }
            self.put_session(&session).await?;
        }
        Ok(session)
    }

    /// Has anything but setup been committed? Setup runs seldom, so the newest few turns tell.
    fn has_opened(&self, session: &SessionRecord) -> Result<bool, ExecError> {
        let id = SessionId::from(session.id.as_str());
        let rows = self.store.read(|reader| reader.last_turns(&id, .., 8))?;
        Ok(rows.len() >= 8
            || rows.iter().any(|row| row.document.value().get("origin").and_then(|o| o.as_str()) != Some("setup")))
    }

    /// Everything an execution must not see change.
    pub(crate) fn freeze(
        &self,
        session: SessionRecord,
        plan: &Arc<ActivePlan>,
        message: &str,
        logical_turn: u32,
        cancel: &CancellationToken,
    ) -> Result<Arc<Shared>, ExecError> {
        self.frozen(session, plan, message, logical_turn, cancel).map(Arc::new)
    }

    /// See [`Inner::freeze`].
    pub(crate) fn frozen(
        &self,
        session: SessionRecord,
        plan: &Arc<ActivePlan>,
        message: &str,
        logical_turn: u32,
        cancel: &CancellationToken,
    ) -> Result<Shared, ExecError> {
        let session_id = SessionId::from(session.id.as_str());
        let world = session.world_id.as_deref().and_then(|id| self.world(id).ok());
        let settings = plan
            .packages
            .iter()
            .map(|package| resolve_settings(package, world.as_deref(), session.settings.get(package.id())))
            .collect();
        let recorder = Recorder::new(Arc::clone(&self.ambient), self.played.clone());
        Ok(Shared {
            plan: Arc::clone(plan),
            turn_id: format!("t{}-{}", session.turn_count + 1, fresh_id(&*recorder, 8)),
            session_id,
            logical_turn,
            message: message.to_owned(),
            history: OnceLock::new(),
            settings,
            world,
            world_record: OnceLock::new(),
            dimensions: OnceLock::new(),
            actions: OnceLock::new(),
            store: self.store.clone(),
            ambient: Arc::clone(&recorder) as Arc<dyn Ambient>,
            recorder,
            seed: format!("{}#{}", session.seed, session.turn_count),
            cancel: cancel.child_token(),
            history_until: None,
            job: None,
            given: Given::default(),
            grants: self.grants(&session),
            service_log: ServiceLog::default(),
            session,
        })
    }
}

impl Flow {
    fn main_loop(live: &Live, input_message_id: Option<String>) -> Self {
        Self {
            given: Given { steering: Arc::clone(&live.steering), ..Given::default() },
            extras: CommitExtras { main_loop: true, input_message_id, ..CommitExtras::default() },
            ..Self::default()
        }
    }
}

/// Setup runtimes not settled yet.
pub(crate) fn setup_job<'a>() -> Job<'a> {
    Job {
        origin: "setup",
        message: String::new(),
        payload: Json::null(),
        counts: false,
        selection: Box::new(|plan, session, _| Ok(select_setup(&plan.plan, session))),
        flow: Flow::default(),
    }
}

/// An execution of the main loop: a turn of the `player`, or the uncounted one (`continuation`) that opens a story.
pub(crate) fn main_job<'a>(
    origin: &'static str,
    message: String,
    live: &Live,
    input_message_id: Option<String>,
) -> Job<'a> {
    Job {
        origin,
        message,
        payload: Json::null(),
        counts: origin == "player",
        selection: Box::new(|plan, session, turn| Ok(select_turn(&plan.plan, session, turn))),
        flow: Flow::main_loop(live, input_message_id),
    }
}

/// One runtime by name. UIW-2
pub(crate) fn manual_job<'a>(runtime_id: String, payload: Json, message: String, ignore_upstreams: bool) -> Job<'a> {
    let about = Asked { target: Some(runtime_id.clone()), ignore_upstreams, ..Asked::default() };
    Job {
        origin: "manual",
        message,
        payload,
        counts: false,
        selection: Box::new(move |plan, session, turn| {
            let target = plan.runtime_ix(&runtime_id).ok_or_else(|| ExecError::RuntimeNotActive(runtime_id.clone()))?;
            let mut selection = select_manual(&plan.plan, session, turn, target);
            selection.ignore_upstreams = ignore_upstreams;
            Ok(selection)
        }),
        flow: Flow { about, ..Flow::default() },
    }
}

fn sourced_job<'a>(retry: Retry, about: Asked) -> Job<'a> {
    let Retry { source, targets, failed, earlier, selection, given } = retry;
    let started = json!({
        "sourceTurnId": source.turn_id, "runtimeIds": targets,
        "sourceCommitted": true, "sourceFailedRuntimeIds": failed,
    });
    Job {
        origin: "manual",
        message: source.message,
        payload: Json::null(),
        counts: false,
        selection: Box::new(|_, _, _| Ok(selection)),
        flow: Flow {
            given,
            logical_turn: Some(source.logical_turn),
            extras: CommitExtras {
                retry_of: Some(source.turn_id),
                earlier_retries: earlier,
                ..CommitExtras::default()
            },
            started: started.as_object().cloned().unwrap_or_default(),
            about,
        },
    }
}

impl Inner {
    /// Failed runtimes of a committed turn again, over what it committed.
    pub(crate) fn retry_job<'a>(
        &self,
        session: &SessionRecord,
        plan: &ActivePlan,
        turn: String,
        runtimes: Vec<String>,
    ) -> Result<Job<'a>, ExecError> {
        let retry = self.prepare_retry(session, plan, &turn, &runtimes)?;
        Ok(sourced_job(retry, Asked { retries: Some((turn, runtimes)), ..Asked::default() }))
    }

    /// One execution of a suspended runtime alone, over committed data. RDD-6
    pub(crate) fn resume_job<'a>(
        &self,
        session: &SessionRecord,
        plan: &ActivePlan,
        id: &str,
        data: Json,
    ) -> Result<Job<'a>, ExecError> {
        let (record, continuation) = self.open_suspension(session, id, &data)?;
        let runtime = plan
            .runtime_ix(&record.runtime_id)
            .ok_or_else(|| ExecError::RuntimeNotActive(record.runtime_id.clone()))?;
        if plan.package(runtime).package.digest != continuation.package_digest {
            return Err(ExecError::Conflict {
                code: "suspension-package-changed",
                message: format!(
                    "package {:?} was published again since {:?} was suspended; give the suspension up instead",
                    record.plugin_id, record.runtime_id
                ),
            });
        }
        let started = json!({"sourceTurnId": record.turn_id, "suspensionId": record.id});
        Ok(Job {
            origin: "resume",
            message: continuation.message.clone(),
            payload: Json::null(),
            counts: false,
            selection: Box::new(move |plan, session, turn| {
                let mut selection = select_manual(&plan.plan, session, turn, runtime);
                selection.ignore_upstreams = true;
                if let Some(phase) = selection.phases.first_mut() {
                    phase.kind = plan.decl(runtime).stage.map_or(PhaseKind::Followers, PhaseKind::Stage);
                }
                Ok(selection)
            }),
            flow: Flow {
                about: Asked { resumes: Some((record.id.clone(), data.clone())), ..Asked::default() },
                logical_turn: Some(continuation.logical_turn),
                extras: CommitExtras {
                    resolves: Some(Resolves {
                        suspension_id: record.id.clone(),
                        runtime_id: record.runtime_id,
                        counts: continuation.counts.clone(),
                    }),
                    ..CommitExtras::default()
                },
                given: Given {
                    resume: Some(Resume { runtime, suspension_id: record.id, data, continuation }),
                    ..Given::default()
                },
                started: started.as_object().cloned().unwrap_or_default(),
            },
        })
    }
}

/// An id a client may give: not one of those the host gives.
fn check_message_id(id: Option<&str>) -> Result<(), ExecError> {
    let Some(id) = id else { return Ok(()) };
    let fits = !id.is_empty()
        && id.len() <= MAX_MESSAGE_ID_BYTES
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let ours = id.strip_prefix('t').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if fits && !ours {
        return Ok(());
    }
    Err(ExecError::Invalid {
        field: "inputMessageId".into(),
        message: format!(
            "has 1 to {MAX_MESSAGE_ID_BYTES} letters, digits, `_`, `-`, and does not begin with `t` and a digit"
        ),
    })
}

pub(crate) fn fan_out(emitter: &Emitter, committed: &Committed) {
    if !emitter.is_live() {
        return;
    }
    let document = &committed.document;
    for suspension in &document.suspensions {
        emitter.send(
            "turn.suspended",
            json!({
                "sessionId": document.session_id, "turnId": document.turn_id,
                "suspensionId": suspension.suspension_id, "runtimeId": suspension.runtime_id,
                "reason": suspension.reason, "resumeSchema": suspension.resume_schema,
            }),
        );
    }
    if let Some(suspension) = &document.resumed {
        emitter.send(
            "turn.resumed",
            json!({"sessionId": document.session_id, "turnId": document.turn_id, "suspensionId": suspension}),
        );
    }
    for isolated in &committed.document.isolated {
        emitter.send("proposal.failed", json!({"runtimeId": isolated.runtime_id, "error": isolated.error}));
    }
    for message in committed.messages.iter().filter(|message| message.role == "assistant") {
        emitter.send(
            "narrative.completed",
            json!({
                "content": message.content, "kind": "story", "messageId": message.id,
                "runtimeId": message.source_runtime_id, "pluginId": message.source_plugin_id,
            }),
        );
    }
    for job in &committed.jobs {
        emitter.send(
            "runtime.deferred",
            json!({
                "runtimeId": job.runtime_id, "pluginId": job.plugin_id, "jobId": job.job_id,
                "sourceTurnId": job.origin.source_turn_id,
            }),
        );
    }
    for event in &committed.document.events {
        emitter.send(
            "event.emitted",
            json!({"topic": event.topic, "data": event.data, "pluginId": event.plugin_id, "depth": event.depth}),
        );
    }
    for change in &committed.document.changes {
        if let Some((kind, payload)) = crate::event::of_change(change) {
            emitter.send(kind, payload);
        }
    }
    let mut by_plugin: std::collections::BTreeMap<&str, Vec<serde_json::Value>> = std::collections::BTreeMap::new();
    for change in committed.changes.iter().filter(|change| !change.namespace.starts_with("_hidden.")) {
        by_plugin.entry(&change.plugin_id).or_default().push(change.to_event());
    }
    for (plugin, changes) in by_plugin {
        emitter.send("plugin-data.changed", json!({"pluginId": plugin, "changes": changes}));
    }
    if let Some(snapshot) = &committed.snapshot {
        emitter.send(
            "state.snapshot.created",
            json!({"turnId": document.turn_id, "snapshotId": snapshot.id, "kind": snapshot.kind}),
        );
    }
}
