//! What a worker does with a job: take it, run it on what was frozen, commit it or say why not.

use std::{sync::Arc, time::Duration};

use covel_graph::{Json, RuntimeIx, SessionId};
use covel_store::{StoreError, TransactError};
use fixedbitset::FixedBitSet;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    JobActivation, JobCommit, JobResult, JobRow, JobSeed, JobStatus, Reads,
    enqueue::{NOT_HELD, STALE},
    progress,
    queue::Entry,
    record::{self, Lease},
    state::JobEvent,
};
use crate::{
    active::ActivePlan,
    call_host::Shared,
    commit::{CommitPlan, Refused},
    core::TurnCore,
    document::{ErrorInfo, RuntimeStatus, TurnDocument},
    engine::{Inner, SessionLock},
    event::Emitter,
    execution::{Services, walk},
    limits::JOB_LEASE_MARGIN_MS,
    results::RuntimeResult,
    select::select_manual,
    session::{SessionRecord, SessionStatus},
    trace::draft::{Asked, Draft},
    turn::{blank, fan_out},
    walked::{Walked, conceal, micros},
    write::{Proposal, Write},
};

/// What a job needs to start.
struct Ready {
    session: SessionRecord,
    plan: Arc<ActivePlan>,
    runtime: RuntimeIx,
}

/// How a taken job goes on.
enum Taken {
    /// It runs now.
    Run(Box<JobRow>),
    /// It ended instead.
    Ended(Box<JobRow>),
    /// It is not there, or someone else ended it.
    Nothing,
}

/// Runs one job to its end. Every end is stored; when the store cannot, the maintenance scan ends it later.
pub(super) async fn run(inner: &Arc<Inner>, entry: &Entry, cancel: CancellationToken) {
    if let Err(error) = attempt(inner, entry, cancel).await {
        tracing::error!(job = entry.job_id, "a job could not be ended as it should: {error}");
    }
}

async fn attempt(inner: &Arc<Inner>, entry: &Entry, cancel: CancellationToken) -> Result<(), StoreError> {
    let key = SessionId::from(entry.session_id.as_str());
    let Some(row) = inner.store.read(|reader| record::get(reader, &key, &entry.job_id))? else { return Ok(()) };
    let ready = ready(inner, &row).await;
    let obstacle = ready.as_ref().err().cloned();
    let row = match take(inner, &key, &entry.job_id, obstacle).await? {
        Taken::Run(row) => row,
        Taken::Ended(row) => {
            inner.jobs.tell(&row);
            return Ok(());
        }
        Taken::Nothing => return Ok(()),
    };
    inner.jobs.tell(&row);
    let Ok(ready) = ready else { return Ok(()) };
    let Some(frozen) = inner.store.read(|reader| record::frozen(reader, &key, &entry.job_id))? else {
        let error = ErrorInfo::new("internal", "what the job runs on is gone");
        return fail(inner, &row, "execution-failed", error).await;
    };
    let seed = JobSeed {
        job_id: row.job_id.clone(),
        runtime: ready.runtime,
        activation: row.origin.activation,
        chain: row.chain,
        frozen,
        reads: Reads::default(),
        report: {
            let (inner, row) = (Arc::clone(inner), (*row).clone());
            Box::new(move |report| inner.jobs.report(&row, report))
        },
    };
    let shared = match inner.freeze_job(ready.session, &ready.plan, seed, &cancel) {
        Ok(shared) => shared,
        Err(error) => {
            return fail(inner, &row, "execution-failed", ErrorInfo::new(error.code(), error.to_string())).await;
        }
    };
    execute(inner, &row, &ready.plan, ready.runtime, shared, cancel).await
}

/// What the job was made for, or why it is not there any more.
async fn ready(inner: &Arc<Inner>, row: &JobRow) -> Result<Ready, String> {
    let (session, plan) = current(inner, row).await?;
    let runtime =
        plan.runtime_ix(&row.runtime_id).ok_or_else(|| format!("{} is not active any more", row.runtime_id))?;
    Ok(Ready { session, plan, runtime })
}

/// The session and its plan, when both are still what the job was made for.
async fn current(inner: &Arc<Inner>, row: &JobRow) -> Result<(SessionRecord, Arc<ActivePlan>), String> {
    let mut session = inner.session(&row.session_id).map_err(|error| error.to_string())?;
    if session.status != SessionStatus::Active {
        return Err(format!("the session is {}", session.status.as_str()));
    }
    if session.incarnation != row.incarnation {
        return Err("the session was recreated".into());
    }
    let activation = inner.activate(&session).map_err(|error| error.to_string())?;
    session.active_plugins = activation.active.iter().map(|plugin| plugin.as_str().to_owned()).collect();
    let plan = inner.active_plan(&session.active_plugins).await.map_err(|error| error.to_string())?;
    let package = plan.packages.iter().find(|package| package.id() == row.plugin_id);
    let package = package.ok_or_else(|| format!("package {} is not active any more", row.plugin_id))?;
    if package.fragment().version != row.plugin_version {
        return Err(format!(
            "package {} has version {} now; the job was made for {}",
            row.plugin_id,
            package.fragment().version,
            row.plugin_version
        ));
    }
    Ok((session, plan))
}

/// Queued, claimed, running in one transaction: durable before any code runs, so nothing runs twice.
async fn take(
    inner: &Arc<Inner>,
    session: &SessionId,
    job: &str,
    obstacle: Option<String>,
) -> Result<Taken, StoreError> {
    let (key, id, owner, now) = (session.clone(), job.to_owned(), inner.jobs.owner.clone(), inner.ambient.now_millis());
    inner
        .store
        .transact(move |tx| {
            let Some(mut row) = record::get(&tx.read(), &key, &id)? else { return Ok(Taken::Nothing) };
            let expired = row.queue_expired(now);
            let taken = if expired {
                row.step(JobEvent::QueueExpire, now)
            } else if let Some(message) = obstacle {
                row.reason = Some("pre-execution-rejected".into());
                row.error = Some(ErrorInfo::new("pre-execution-rejected", message));
                row.step(JobEvent::Reject, now)
            } else {
                let expires_at = now.saturating_add(row.max_execution_ms).saturating_add(JOB_LEASE_MARGIN_MS);
                row.lease = Some(Lease { owner, expires_at });
                row.step(JobEvent::Claim, now) && row.step(JobEvent::Start, now)
            };
            if !taken {
                return Ok(Taken::Nothing);
            }
            record::put(tx, &key, &row)?;
            let row = Box::new(row);
            Ok(if row.status == JobStatus::Running { Taken::Run(row) } else { Taken::Ended(row) })
        })
        .await
        .map_err(TransactError::flatten)
}

async fn fail(inner: &Arc<Inner>, row: &JobRow, reason: &'static str, error: ErrorInfo) -> Result<(), StoreError> {
    end(inner, row, &[JobEvent::Fail], reason, Some(error), None).await
}

/// Ends a running job without any write of its own.
async fn end(
    inner: &Arc<Inner>,
    row: &JobRow,
    events: &'static [JobEvent],
    reason: &'static str,
    error: Option<ErrorInfo>,
    result: Option<JobResult>,
) -> Result<(), StoreError> {
    let change = move |row: &mut JobRow| {
        row.reason = Some(reason.to_owned());
        row.error = error;
        row.result = result;
    };
    // Cancelled meanwhile: that end stands.
    inner.step_job(&row.session_id, &row.job_id, events, change).await.map(drop)
}

impl Inner {
    /// The frozen state of a job's execution.
    fn freeze_job(
        &self,
        session: SessionRecord,
        plan: &Arc<ActivePlan>,
        seed: JobSeed,
        cancel: &CancellationToken,
    ) -> Result<Arc<Shared>, crate::error::ExecError> {
        let message = seed.frozen.message.clone();
        let mut shared = self.frozen(session, plan, &message, seed.frozen.logical_turn, cancel)?;
        shared.turn_id.clone_from(&seed.job_id);
        shared.seed.clone_from(&seed.frozen.seed);
        shared.history_until = seed.frozen.history_until;
        shared.job = Some(Box::new(seed));
        Ok(Arc::new(shared))
    }
}

async fn execute(
    inner: &Arc<Inner>,
    row: &JobRow,
    plan: &Arc<ActivePlan>,
    runtime: RuntimeIx,
    shared: Arc<Shared>,
    cancel: CancellationToken,
) -> Result<(), StoreError> {
    let start = inner.ambient.monotonic();
    let mut selection = select_manual(&plan.plan, &shared.session, shared.logical_turn, runtime);
    // What it needed was judged when it was made; nothing of that turn is walked here.
    selection.ignore_upstreams = true;
    if row.origin.activation == JobActivation::Stage {
        selection.eligible = FixedBitSet::new();
    }
    let emitter = Emitter::new(inner.jobs.listener(), Arc::clone(plan), &row.session_id, &row.job_id);
    let mut document = blank(&shared.session, plan, &inner.now());
    document.turn_id.clone_from(&row.job_id);
    document.origin = "background".into();
    document.message.clone_from(&shared.message);
    document.logical_turn = shared.logical_turn;
    let gateway = shared.recorder.gateway(&inner.gateway);
    let services = Services { js: inner.js.clone(), gateway, emitter: emitter.clone() };
    let core = TurnCore::new(plan.plan.clone(), Arc::clone(&plan.layers), selection);
    let payload = shared.job.as_ref().map_or_else(Json::null, |job| job.frozen.payload.clone());
    let walking = walk(Arc::clone(&shared), core, &services, payload);
    tokio::pin!(walking);
    let mut expired = false;
    let mut walked = tokio::select! {
        walked = &mut walking => walked,
        () = tokio::time::sleep(Duration::from_millis(row.max_execution_ms)) => {
            expired = true;
            shared.cancel.cancel();
            // Running until it returned: its code gets no chance to outlive the word about it.
            walking.await
        }
    };
    walked.fill(&mut document);
    document.duration_micros = micros(inner.ambient.monotonic().saturating_sub(start));
    if expired {
        let error = ErrorInfo::new("timeout", format!("it ran longer than {} ms", row.max_execution_ms));
        return end(inner, row, &[JobEvent::ExecutionExpire], "execution-timeout", Some(error), None).await;
    }
    if cancel.is_cancelled() {
        return Ok(()); // Whoever called it off has stored that.
    }
    let Some(result) = walked.slots[runtime.index()].result() else { return Ok(()) };
    let summary = summary(&walked, runtime, result);
    if let Some((reason, error)) = refusal(&walked, runtime, result, row.origin.activation) {
        return end(inner, row, &[JobEvent::Fail], reason, Some(error), Some(summary)).await;
    }
    commit(inner, row, walked, document, summary, &emitter, cancel).await
}

fn summary(walked: &Walked, runtime: RuntimeIx, result: &RuntimeResult) -> JobResult {
    let concealed = walked.shared.plan.decl(runtime).concealed;
    JobResult {
        status: result.status,
        output: result.output.clone().filter(|_| !concealed),
        reason: result.reason.clone().filter(|_| !concealed),
    }
}

/// Why an ended runtime may not commit.
fn refusal(
    walked: &Walked,
    runtime: RuntimeIx,
    result: &RuntimeResult,
    activation: JobActivation,
) -> Option<(&'static str, ErrorInfo)> {
    let concealed = walked.shared.plan.decl(runtime).concealed;
    match result.status {
        RuntimeStatus::Failed => {
            let error = result.error.clone().unwrap_or_else(|| ErrorInfo::new("failed", "the runtime failed"));
            Some(("execution-failed", if concealed { conceal(error) } else { error }))
        }
        RuntimeStatus::Suspended => Some((
            "execution-failed",
            ErrorInfo::new("suspension-unavailable", "a job has nobody to wait for; it cannot be suspended"),
        )),
        RuntimeStatus::Success | RuntimeStatus::Skipped
            if activation == JobActivation::Stage && !result.events.is_empty() =>
        {
            let message = "a detached runtime writes its own data only; it cannot emit events";
            Some(("execution-failed", ErrorInfo::new("effect-not-isolated", message)))
        }
        RuntimeStatus::Success | RuntimeStatus::Skipped => not_isolated(walked).map(|error| ("effect-guard", error)),
    }
}

/// A write that only a turn may make. A job writes own data, UI and media.
fn not_isolated(walked: &Walked) -> Option<ErrorInfo> {
    walked.order.iter().find_map(|runtime| {
        let writes = &walked.slots[runtime.index()].result()?.writes;
        let isolated = |write: &Write| match write {
            Write::Data(_) => true,
            Write::Proposal(proposal) => matches!(**proposal, Proposal::Ui(_) | Proposal::Asset(_)),
        };
        writes.iter().any(|write| !isolated(write)).then(|| {
            let id = walked.shared.plan.runtime_id(*runtime);
            let message = format!("{id}: a job writes own plugin data, UI and media only");
            ErrorInfo::new("effect-not-isolated", message)
        })
    })
}

async fn commit(
    inner: &Arc<Inner>,
    row: &JobRow,
    walked: Walked,
    document: TurnDocument,
    result: JobResult,
    emitter: &Emitter,
    cancel: CancellationToken,
) -> Result<(), StoreError> {
    // The wait for a running turn does not count as running.
    let lock = tokio::select! {
        lock = SessionLock::take_for_job(inner, &row.session_id) => lock,
        () = cancel.cancelled() => return Ok(()),
    };
    if let Err(message) = current(inner, row).await {
        let error = ErrorInfo::new("commit-barrier-rejected", message);
        return end(inner, row, &[JobEvent::BarrierReject], "commit-barrier-rejected", Some(error), Some(result)).await;
    }
    let reads = walked.shared.job.as_ref().map(|job| job.reads.take()).unwrap_or_default();
    let reported_failure = walked
        .shared
        .job
        .as_ref()
        .and_then(|job| walked.slots[job.runtime.index()].result())
        .and_then(|result| progress::failure_of(&result.job_status));
    let reported_failure = reported_failure.or_else(|| inner.jobs.reported_failure(row));
    let end_of_job = JobCommit {
        job_id: row.job_id.clone(),
        owner: inner.jobs.owner.clone(),
        reads,
        result: result.clone(),
        reported_failure,
        sequence: inner.jobs.next_sequence(&row.session_id, &row.job_id),
        now: inner.ambient.now_millis(),
    };
    let trace = Draft::new(&walked, Asked::background(&document.message));
    let outcome = CommitPlan::new(&walked, document, false, trace).for_job(end_of_job).run(&inner.store).await;
    drop(lock);
    match outcome {
        Ok(committed) => {
            fan_out(emitter, &committed);
            if let Some(ended) = &committed.ended_job {
                inner.jobs.tell(ended);
            }
            inner.jobs_enqueued(&committed.jobs);
            Ok(())
        }
        Err(Refused::Rule(error)) if error.code == NOT_HELD => Ok(()),
        Err(Refused::Rule(error)) if error.code == STALE => {
            end(inner, row, &[JobEvent::BarrierReject], "commit-barrier-rejected", Some(error), Some(result)).await
        }
        Err(refused) => {
            end(inner, row, &[JobEvent::Fail], "commit-failed", Some(refused.to_error()), Some(result)).await
        }
    }
}

/// The `activation` of a job's context.
pub(crate) fn activation(seed: &JobSeed) -> Value {
    let payload = match &seed.frozen.trigger {
        Some((_, data)) => data.value().clone(),
        None => seed.frozen.payload.value().clone(),
    };
    json!({"source": seed.activation.as_str(), "detached": true, "payload": payload})
}
