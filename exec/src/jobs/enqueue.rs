//! How an execution makes jobs, and how a job's own commit ends it: both inside the commit's transaction.

use covel_graph::{Json, RuntimeIx, SessionId};
use covel_store::{StoreError, Tx};
use serde_json::json;

use super::{
    Frozen, JobActivation, JobOrigin, JobResult, JobRow, JobStatus,
    reads::ReadSet,
    record::{self, JOB_FORMAT},
    state::JobEvent,
};
use crate::{
    active::ActivePlan,
    ambient::Ambient,
    cascade::{Hang, hangs},
    document::ErrorInfo,
    limits::{MAX_JOB_CHAIN, MAX_OPEN_JOBS_PER_SESSION},
    walked::Walked,
};

/// A job that an execution makes if it commits.
pub(crate) struct PendingJob {
    row: JobRow,
    frozen: Frozen,
    hangs: Vec<Hang>,
    /// Payloads of the event that made it, with their emitters, in the order in which they count.
    emitted: Vec<(RuntimeIx, String, Json)>,
}

/// Does something fall that hangs like this, when these runtimes were dropped?
pub(crate) fn falls(hangs: &[Hang], dropped: &[RuntimeIx]) -> bool {
    hangs.iter().any(|hang| match hang {
        Hang::On(runtime) | Hang::Read(runtime) => dropped.contains(runtime),
        Hang::OnAny(list) => !list.is_empty() && list.iter().all(|runtime| dropped.contains(runtime)),
    })
}

/// A row of a job of this runtime, as of now.
pub(crate) fn new_row(plan: &ActivePlan, runtime: RuntimeIx, session: (&str, &str), id: String, now: u64) -> JobRow {
    let decl = plan.decl(runtime);
    let completion = &decl.completion;
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    JobRow {
        format: JOB_FORMAT,
        job_id: id,
        session_id: session.0.to_owned(),
        plugin_id: plan.plugin_id(runtime).to_owned(),
        plugin_version: plan.package(runtime).fragment().version.clone(),
        runtime_id: decl.id.clone(),
        incarnation: session.1.to_owned(),
        origin: JobOrigin {
            activation: JobActivation::Manual,
            source_turn_id: None,
            source_execution_id: None,
            source_runtime_id: None,
            topic: None,
            retry_of: None,
        },
        status: JobStatus::Queued,
        reason: None,
        error: None,
        result: None,
        enqueued_at: now,
        updated_at: now,
        attempt: 1,
        chain: 0,
        max_queue_ms: or(completion.max_queue_ms, crate::limits::DEFAULT_JOB_QUEUE_MS),
        max_execution_ms: or(completion.max_execution_ms, crate::limits::DEFAULT_JOB_EXECUTION_MS),
        settle_ms: if completion.settle { completion.max_settle_wait_ms } else { 0 },
        sequence: 1,
        lease: None,
    }
}

/// The jobs a walked execution makes: background followers its events reached, detached runtimes of its stages.
pub(crate) fn pending(walked: &Walked, now: u64, ambient: &dyn Ambient) -> Vec<PendingJob> {
    if walked.core.deferred().is_empty() && walked.staged.is_empty() {
        return Vec::new();
    }
    let shared = &walked.shared;
    let plan = &shared.plan;
    let chain = shared.job.as_ref().map_or(0, |job| job.chain + 1);
    let session = (shared.session.id.as_str(), shared.session.incarnation.as_str());
    let make = |runtime: RuntimeIx, activation: JobActivation| {
        let id = format!("job-{}-{:012x}", shared.session.turn_count + 1, ambient.fresh_bits() & 0xffff_ffff_ffff);
        let mut row = new_row(plan, runtime, session, id, now);
        row.chain = chain;
        row.origin.activation = activation;
        row.origin.source_turn_id = Some(shared.turn_id.clone());
        row.origin.source_execution_id = Some(shared.turn_id.clone());
        let frozen = Frozen {
            message: shared.message.clone(),
            logical_turn: shared.logical_turn,
            // One job a runtime and execution, so the name is unique, and the same in a repetition of the turn.
            seed: format!("{}:{}", shared.seed, plan.runtime_id(runtime)),
            ..Frozen::new()
        };
        (row, frozen)
    };
    let mut jobs = Vec::new();
    for staged in &walked.staged {
        let (row, mut frozen) = make(staged.runtime, JobActivation::Stage);
        frozen.inputs = Some(staged.inputs.clone());
        frozen.prose = walked.prose_before(staged.runtime);
        let hangs = {
            let slot = &walked.slots[staged.runtime.index()];
            hangs(&walked.core, staged.runtime, &slot.producers, slot.data_reads.as_deref())
        };
        jobs.push(PendingJob { row, frozen, hangs, emitted: Vec::new() });
    }
    for deferred in walked.core.deferred() {
        let events = walked.core.events();
        let Some(first) = events.get(deferred.event as usize) else { continue };
        let emitted: Vec<(RuntimeIx, String, Json)> = events
            .iter()
            .filter(|event| event.topic == first.topic && event.depth == first.depth)
            .filter_map(|event| {
                let result = walked.slots[event.emitter.index()].result()?;
                let emitted = result.events.get(event.local as usize)?;
                Some((event.emitter, emitted.topic.clone(), emitted.data.clone()))
            })
            .collect();
        let (row, mut frozen) = make(deferred.runtime, JobActivation::Event);
        frozen.digest =
            plan.decl(deferred.runtime).inputs.iter().any(|input| input.kernel.is_some()).then(|| walked.digest());
        let hangs = vec![Hang::OnAny(emitted.iter().map(|(emitter, ..)| *emitter).collect())];
        jobs.push(PendingJob { row, frozen, hangs, emitted });
    }
    jobs
}

impl PendingJob {
    /// Lands it, unless what it hangs on was dropped. A note says why a job that should be is not.
    pub fn land(
        mut self,
        tx: &mut Tx<'_>,
        session: &SessionId,
        plan: &ActivePlan,
        dropped: &[RuntimeIx],
    ) -> Result<Result<JobRow, Option<ErrorInfo>>, StoreError> {
        if falls(&self.hangs, dropped) {
            return Ok(Err(None));
        }
        if self.row.chain > MAX_JOB_CHAIN {
            let message = format!("{}: a chain of jobs ends after {MAX_JOB_CHAIN}", self.row.runtime_id);
            return Ok(Err(Some(ErrorInfo::new("job-chain-exceeded", message))));
        }
        if record::open_count(&tx.read(), session)? >= MAX_OPEN_JOBS_PER_SESSION {
            let message = format!(
                "{}: the session has {MAX_OPEN_JOBS_PER_SESSION} open jobs already; this one was not enqueued",
                self.row.runtime_id
            );
            return Ok(Err(Some(ErrorInfo::new("background-queue-full", message))));
        }
        // The payload of an emitter that commits: data of a dropped one must not live on in a job.
        let first = self.emitted.iter().find(|(emitter, ..)| !dropped.contains(emitter));
        if let Some((emitter, topic, data)) = first {
            self.row.origin.source_runtime_id = Some(plan.runtime_id(*emitter).to_owned());
            self.row.origin.topic = Some(topic.clone());
            self.frozen.trigger = Some((topic.clone(), data.clone()));
        }
        self.frozen.history_until = Some(last_message(tx, session)?);
        record::insert(tx, session, &mut self.row, &self.frozen)?;
        Ok(Ok(self.row))
    }
}

/// Number of the newest message, 0 without one.
pub(crate) fn last_message(tx: &Tx<'_>, session: &SessionId) -> Result<u64, StoreError> {
    Ok(tx.read().last_messages(session, .., 1)?.first().map_or(0, |row| row.order))
}

/// A job's entry in the document of the execution that made it.
pub(crate) fn entry(row: &JobRow) -> Json {
    Json::from_value(json!({
        "jobId": row.job_id, "runtimeId": row.runtime_id, "pluginId": row.plugin_id,
        "activation": row.origin.activation, "topic": row.origin.topic, "status": row.status,
    }))
}

/// The end of a job as part of its own commit.
pub(crate) struct JobCommit {
    /// Job.
    pub job_id: String,
    /// Engine that works on it.
    pub owner: String,
    /// What it read.
    pub reads: ReadSet,
    /// What became of its runtime.
    pub result: JobResult,
    /// The runtime said that its work failed; its writes land all the same.
    pub reported_failure: Option<String>,
    /// Least sequence of what is told of its end.
    pub sequence: u64,
    /// Now, milliseconds since 1970.
    pub now: u64,
}

/// Codes by which a refused commit tells its worker why.
pub(crate) const NOT_HELD: &str = "job-not-held";
pub(crate) const STALE: &str = "job-stale";

impl JobCommit {
    /// Is the job still this engine's, and is what it read still so?
    ///
    /// # Errors
    /// The outer one is the store's; the inner one the refusal.
    pub fn check(&self, tx: &Tx<'_>, session: &SessionId) -> Result<Result<(), ErrorInfo>, StoreError> {
        let row = record::get(&tx.read(), session, &self.job_id)?;
        if !row.is_some_and(|row| row.status == JobStatus::Running && row.is_held_by(&self.owner)) {
            return Ok(Err(ErrorInfo::new(NOT_HELD, "the job was ended meanwhile")));
        }
        Ok(match self.reads.changed(&tx.read(), session)? {
            Some(what) => Err(ErrorInfo::new(STALE, format!("{what} changed after the job had read it"))),
            None => Ok(()),
        })
    }

    /// Writes the job's end beside its writes.
    pub fn finish(self, tx: &mut Tx<'_>, session: &SessionId) -> Result<Option<JobRow>, StoreError> {
        let Some(mut row) = record::get(&tx.read(), session, &self.job_id)? else { return Ok(None) };
        let end = if self.reported_failure.is_some() { JobEvent::CommitReportedFailure } else { JobEvent::Commit };
        row.step(JobEvent::BeginCommit, self.now);
        row.step(end, self.now);
        row.sequence = row.sequence.max(self.sequence);
        row.result = Some(self.result);
        if let Some(message) = self.reported_failure {
            row.reason = Some("runtime-reported-failure".into());
            row.error = Some(ErrorInfo::new("runtime-reported-failure", message));
        }
        record::put(tx, session, &row)?;
        Ok(Some(row))
    }
}
