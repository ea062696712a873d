//! From a walked execution to one transaction: whole or absent.
//!
//! Each runtime is a unit. With a successful story in the execution a refused auxiliary unit is dropped alone, and
//! with it what hangs on it (declared edges and recorded reads); otherwise one refusal refuses everything. RDD-2

use std::{collections::BTreeMap, sync::Arc};

use covel_graph::{
    Json, PluginId, RuntimeIx, SessionId, Stage, TurnId, fragment::Visibility, limits::MAX_DATA_VALUE_BYTES,
};
use covel_store::{Store, StoreError, TransactError, Tx, failpoint};
use fixedbitset::FixedBitSet;
use serde_json::json;

use crate::{
    active::{ActivePlan, LoadedPackage, check},
    ambient::{Ambient, iso_time},
    cascade::{Cascade, Hang, Verdict, hangs},
    core::{PhaseKind, Status},
    document::{ChangeDocument, DataChange, ErrorInfo, IsolatedDocument, RuntimeStatus, TurnDocument},
    flow::CommitExtras,
    inputs::EXPORT_OWNER,
    jobs::{JobCommit, JobRow, PendingJob, document_entry, pending},
    limits::MAX_NOT_APPLIED,
    ops,
    overlay::{DataOp, DataWrite},
    services::operation::{NotApplied, Operation, OperationStatus},
    session::{MessageRecord, Phase, SessionRecord, SetupState},
    snapshot::{self, SnapshotRecord},
    suspend::{self, Continuation, SuspensionRecord},
    trace::draft::Draft,
    walked::{Walked, conceal},
    world::{
        commit::{Author, WorldCommit, WorldState},
        seat,
    },
    write::Write,
};

struct Unit {
    runtime: RuntimeIx,
    id: String,
    plugin: PluginId,
    story: bool,
    setup: bool,
    writes: Vec<Write>,
    /// What write services staged on it, with its row in the document.
    operations: Vec<(usize, Operation)>,
    staged_reads: Option<Box<FixedBitSet>>,
    export: Option<(String, Json)>,
    package: Arc<LoadedPackage>,
    hangs: Vec<Hang>,
    narrative: Option<String>,
    counts: bool,
    concealed: bool,
    /// It waits: nothing of it commits but this.
    suspension: Option<SuspensionRecord>,
}

/// What one unit wrote.
#[derive(Default)]
struct UnitChanges {
    data: Vec<DataChange>,
    changes: Vec<ChangeDocument>,
    /// What became of its operations.
    operations: Vec<(usize, Result<(), ErrorInfo>)>,
    /// Its export could not be stored.
    note: Option<ErrorInfo>,
}

/// Everything the transaction does, owned, so that it can run on the store's writer thread.
pub struct CommitPlan {
    session_id: SessionId,
    incarnation: String,
    turn_id: String,
    units: Vec<Unit>,
    plan: Arc<ActivePlan>,
    has_story: bool,
    player_message: Option<String>,
    document: TurnDocument,
    session: SessionRecord,
    setup: Vec<(String, SetupState)>,
    all_setup: Vec<(String, String)>,
    counts_turn: bool,
    manual: bool,
    now: String,
    trace: Draft,
    world: WorldCommit,
    /// Jobs it makes.
    jobs: Vec<PendingJob>,
    /// The job it is the end of.
    ends: Option<JobCommit>,
    extras: CommitExtras,
    /// Runtimes that were kept though operations of theirs came to nothing. WSV-10
    lost_operations: FixedBitSet,
    /// The operation that made its unit fail.
    broke: Option<(usize, ErrorInfo)>,
}

/// What a commit did.
#[derive(Debug)]
pub struct Committed {
    /// The document as stored.
    pub document: TurnDocument,
    /// The session as stored.
    pub session: SessionRecord,
    /// Changed records.
    pub changes: Vec<DataChange>,
    /// Stored story messages.
    pub messages: Vec<MessageRecord>,
    /// Jobs enqueued.
    pub(crate) jobs: Vec<JobRow>,
    /// The job that ended with it.
    pub(crate) ended_job: Option<JobRow>,
    /// The automatic snapshot taken.
    pub snapshot: Option<SnapshotRecord>,
}

/// Why nothing was kept.
#[derive(Debug)]
pub enum Refused {
    /// A rule of the commit.
    Rule(ErrorInfo),
    /// The store.
    Store(StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Refused {
    pub(crate) fn internal(message: String) -> Self {
        rule("internal", message)
    }

    /// As documents show it.
    pub fn to_error(&self) -> ErrorInfo {
        match self {
            Self::Rule(error) => error.clone(),
            Self::Store(error) => ErrorInfo::new(error.code(), error.to_string()),
        }
    }
}

/// Is this runtime the story?
fn is_story(plan: &ActivePlan, runtime: RuntimeIx) -> bool {
    plan.decl(runtime).visibility == Visibility::Story
}

/// The first reason why the whole execution cannot commit, before any write.
pub fn precondition(walked: &Walked) -> Option<ErrorInfo> {
    if walked.core.is_cancelled() || walked.shared.cancel.is_cancelled() {
        return Some(ErrorInfo::new("cancelled", "the turn was cancelled"));
    }
    for runtime in &walked.order {
        let failed = walked.core.status(*runtime) == Status::Failed;
        if failed && walked.shared.given.resume_of(*runtime).is_some() {
            // It stays suspended and can be resumed again.
            let error = walked.slots[runtime.index()].result().and_then(|result| result.error.clone());
            return Some(error.unwrap_or_else(|| ErrorInfo::new("resume-failed", "the resumed runtime failed")));
        }
        if failed && is_story(&walked.shared.plan, *runtime) {
            let id = walked.shared.plan.runtime_id(*runtime);
            let error = walked.slots[runtime.index()].result().and_then(|result| result.error.clone());
            let (code, message) =
                error.map_or_else(|| ("story-failed".to_owned(), String::new()), |error| (error.code, error.message));
            return Some(ErrorInfo::new(code, format!("the story runtime {id} failed: {message}")));
        }
    }
    // A narrative may not stand on a world its keeper could not show. SWC-2
    let plan = &walked.shared.plan;
    let owns = |runtime: &&RuntimeIx| plan.dimension_owner.as_ref() == Some(&plan.package(**runtime).plugin_id);
    let publishes = |runtime: &&RuntimeIx| {
        plan.decl(**runtime).output.contract.as_deref() == Some(crate::world::DIMENSIONS_CONTRACT)
    };
    if plan.dimension_owner.is_some()
        && walked.order.iter().any(|runtime| is_story(plan, *runtime))
        && let Some(lost) = walked
            .order
            .iter()
            .filter(owns)
            .filter(publishes)
            .find(|runtime| walked.core.status(**runtime) == Status::Failed)
    {
        return Some(ErrorInfo::new(
            "dimension-snapshot-unavailable",
            format!("{} could not publish the dimensions of this turn", plan.runtime_id(*lost)),
        ));
    }
    None
}

impl CommitPlan {
    /// Gathers units, messages and the clock of a walked execution.
    pub fn new(walked: &Walked, mut document: TurnDocument, counts_turn: bool, trace: Draft) -> Self {
        let shared = &walked.shared;
        let plan = &shared.plan;
        let mut units = Vec::new();
        let mut setup = Vec::new();
        let mut rows = 0..;
        for runtime in &walked.order {
            let staged = walked.slots[runtime.index()].operations.iter();
            // The list ends each zip, so no row is lost.
            let operations = staged.cloned().zip(rows.by_ref());
            let operations: Vec<(usize, Operation)> =
                operations.filter(|(one, _)| !one.discarded).map(|(one, row)| (row, one)).collect();
            let Some(result) = walked.slots[runtime.index()].result() else { continue };
            let is_setup =
                matches!(walked.core.phase_kind(walked.core.place(*runtime)), Some(PhaseKind::Stage(Stage::Setup)));
            if is_setup {
                setup.push(setup_state(walked, *runtime));
            } else if plan.decl(*runtime).stage == Some(Stage::Setup)
                && let state @ (_, SetupState::Done { .. }) = setup_state(walked, *runtime)
            {
                // Run by name, or resumed: what it got done counts, what it did not is no attempt.
                setup.push(state);
            }
            let suspension = suspension(walked, *runtime, &*shared.ambient);
            if !result.is_ok() && suspension.is_none() {
                continue;
            }
            let decl = plan.decl(*runtime);
            let export = match (&decl.output.record_as, &result.value) {
                (Some(key), Some(value)) => Some((
                    key.clone(),
                    Json::from_value(json!({
                        "value": value,
                        "resultId": format!("{}:{}", shared.turn_id, plan.runtime_id(*runtime)),
                    })),
                )),
                _ => None,
            };
            units.push(Unit {
                runtime: *runtime,
                id: plan.runtime_id(*runtime).to_owned(),
                plugin: plan.package(*runtime).plugin_id.clone(),
                story: is_story(plan, *runtime),
                setup: is_setup,
                writes: result.writes.clone(),
                operations,
                staged_reads: walked.slots[runtime.index()].staged_reads.clone(),
                export,
                package: Arc::clone(plan.package(*runtime)),
                hangs: hangs(
                    &walked.core,
                    *runtime,
                    &walked.slots[runtime.index()].producers,
                    walked.slots[runtime.index()].data_reads.as_deref(),
                ),
                narrative: result.narrative.clone(),
                counts: result.status == RuntimeStatus::Success,
                concealed: decl.concealed,
                suspension,
            });
        }
        // A story whose guard skipped it told nothing: it isolates nobody.
        let has_story = units.iter().any(|unit| unit.story && unit.counts);
        let millis = shared.ambient.now_millis();
        let now = iso_time(millis);
        document.committed = true;
        let all_setup = plan
            .plan
            .runtimes
            .iter()
            .filter(|row| row.stage == Stage::Setup as u8)
            .map(|row| {
                let version = plan.plan.plugins[row.plugin.to_native() as usize].version.as_str();
                (row.id.as_str().to_owned(), version.to_owned())
            })
            .collect();
        Self {
            session_id: shared.session_id.clone(),
            incarnation: shared.session.incarnation.clone(),
            turn_id: shared.turn_id.clone(),
            plan: Arc::clone(plan),
            units,
            has_story,
            player_message: (counts_turn && !shared.message.is_empty()).then(|| shared.message.clone()),
            document,
            session: shared.session.clone(),
            setup,
            all_setup,
            counts_turn,
            manual: walked
                .order
                .iter()
                .any(|runtime| walked.core.phase_kind(walked.core.place(*runtime)) == Some(PhaseKind::Manual)),
            world: WorldCommit {
                session_id: shared.session_id.clone(),
                turn_id: shared.turn_id.clone(),
                logical_turn: shared.logical_turn,
                locale: shared.session.locale.clone(),
                now: now.clone(),
                dimension_owner: plan.dimension_owner.clone(),
                state: WorldState::default(),
            },
            now,
            jobs: pending(walked, millis, &*shared.ambient),
            ends: None,
            extras: CommitExtras::default(),
            lost_operations: FixedBitSet::new(),
            broke: None,
            trace,
        }
    }

    /// Makes it the commit of a background job: it ends the job, and leaves the session's clock alone.
    pub(crate) fn for_job(mut self, end: JobCommit) -> Self {
        // A job has nobody to go on with it: what it wanted to wait for is not kept.
        self.units.retain(|unit| unit.suspension.is_none());
        self.ends = Some(end);
        self
    }

    /// What else this transaction settles.
    #[must_use]
    pub(crate) fn with(mut self, extras: CommitExtras) -> Self {
        self.manual |= extras.retry_of.is_some();
        self.extras = extras;
        self
    }

    /// Runs the transaction and answers once it is durable.
    ///
    /// # Errors
    /// [`Refused`]; nothing was kept then.
    pub async fn run(mut self, store: &Store) -> Result<Committed, Refused> {
        self.trace.seal(&self.now);
        failpoint::pass("execution-walked");
        let applied = move |tx: &mut Tx<'_>| {
            let committed = self.apply(tx);
            failpoint::pass("commit-applied");
            committed
        };
        store.transact(applied).await.map_err(|error| match error {
            TransactError::Refused(refused) => refused,
            TransactError::Store(error) => Refused::Store(error),
            TransactError::Panicked(message) => Refused::Rule(ErrorInfo::new("internal", message)),
        })
    }

    fn apply(mut self, tx: &mut Tx<'_>) -> Result<Committed, Refused> {
        tx.set_cause("turn", &self.turn_id, &self.now);
        let stored = tx.read().get_session(&self.session_id)?;
        let stored: SessionRecord = stored
            .and_then(|record| serde_json::from_value(record.value().clone()).ok())
            .filter(|record: &SessionRecord| record.incarnation == self.incarnation)
            .ok_or_else(|| rule("session-gone", "the session was deleted or recreated while the turn ran"))?;
        // The session is locked while an execution runs, unless its caller let go of it half-way.
        if let Some(end) = &self.ends {
            end.check(tx, &self.session_id)?.map_err(Refused::Rule)?;
        } else if stored.turn_count != self.session.turn_count {
            return Err(rule("session-changed", "another execution of the session committed meanwhile"));
        }
        self.session.status = stored.status;
        self.session.seats = stored.seats;
        self.extras.check(tx, &self.session_id, &self.session, self.player_message.as_deref())?;

        let mut changes = BTreeMap::new();
        let mut cascade = Cascade::new(self.has_story);
        let mut isolated = Vec::new();
        let units = std::mem::take(&mut self.units);
        let mut kept = Vec::with_capacity(units.len());
        for unit in units {
            let hanging = self.falls_with(&unit, &cascade);
            let outcome = match hanging {
                Some(error) => Err(error),
                None => match self.try_unit(tx, &unit) {
                    Ok(written) => Ok(written),
                    Err(Refused::Rule(error)) => Err(error),
                    // Limits of one record or namespace are this unit's fault, anything else is the store's.
                    Err(Refused::Store(
                        error @ (StoreError::ValueTooLarge { .. } | StoreError::NamespaceFull { .. }),
                    )) => Err(ErrorInfo::new(error.code(), error.to_string())),
                    Err(refused) => return Err(refused),
                },
            };
            match outcome {
                Ok(written) => {
                    self.document.notes.extend(written.note);
                    self.document.changes.extend(written.changes);
                    self.settle_operations(&unit, written.operations);
                    for change in written.data {
                        let at = (change.plugin_id.clone(), change.namespace.clone(), change.key.clone());
                        changes.insert(at, change);
                    }
                    kept.push(unit);
                }
                Err(error) => {
                    if let Some((row, error)) = self.broke.take() {
                        self.document.operations[row].fail(&error, unit.concealed);
                    }
                    let error = if unit.concealed { conceal(error) } else { error };
                    match cascade.refuse(unit.runtime, unit.story, unit.setup) {
                        Verdict::Isolated => isolated.push(IsolatedDocument { runtime_id: unit.id, error }),
                        Verdict::Whole => {
                            return Err(rule(error.code, format!("{}: {}", unit.id, error.message)));
                        }
                    }
                }
            }
        }
        self.mark_dropped(&isolated);
        let jobs = self.enqueue(tx, cascade.dropped())?;
        let messages = self.journal(tx, &kept)?;
        let suspended: Vec<&SuspensionRecord> = kept.iter().filter_map(|unit| unit.suspension.as_ref()).collect();
        let waits = self.extras.settle(
            tx,
            &self.session_id,
            &mut self.session,
            &mut self.document,
            &suspended,
            self.counts_turn,
            &self.now,
        )?;
        if waits {
            // Counted when nothing of it waits any more.
            self.counts_turn = false;
        }
        if let Some(players) = self.world.players() {
            seat::reconcile(&mut self.session.seats, &players);
        }
        self.document.isolated = isolated;
        self.tell_not_applied(&kept);
        if self.extras.main_loop {
            self.note_not_applied();
        }
        if self.ends.is_none() {
            self.clock(&kept, &jobs);
            self.session.turn_count += 1;
            self.session.updated_at.clone_from(&self.now);
            let session = to_json(&self.session)?;
            tx.put_session(&self.session_id, &session)?;
        }
        let ended_job = match self.ends.take() {
            Some(end) => end.finish(tx, &self.session_id)?,
            None => None,
        };
        let document = to_json(&self.document)?;
        tx.put_turn(&self.session_id, &TurnId::from(self.turn_id.as_str()), &document)?;
        let snapshot = if snapshot::is_due(self.session.completed_player_turns) {
            Some(snapshot::take_auto(tx, &self.session_id, &self.session, &self.turn_id, &self.now)?)
        } else {
            None
        };
        self.trace.write(tx, &self.session_id, &self.turn_id)?;
        Ok(Committed {
            document: self.document,
            session: self.session,
            changes: changes.into_values().collect(),
            messages,
            jobs,
            ended_job,
            snapshot,
        })
    }

    /// Lands the jobs of what was kept.
    fn enqueue(&mut self, tx: &mut Tx<'_>, dropped: &[RuntimeIx]) -> Result<Vec<JobRow>, Refused> {
        let mut rows = Vec::with_capacity(self.jobs.len());
        for job in std::mem::take(&mut self.jobs) {
            match job.land(tx, &self.session_id, &self.plan, dropped)? {
                Ok(row) => {
                    self.document.jobs.push(document_entry(&row));
                    rows.push(row);
                }
                Err(note) => self.document.notes.extend(note),
            }
        }
        Ok(rows)
    }

    /// Does the unit hang on something dropped? A story that only read from it is kept, with a note. RDD-2
    fn falls_with(&mut self, unit: &Unit, cascade: &Cascade) -> Option<ErrorInfo> {
        if let Some(lost) =
            unit.staged_reads.as_ref().and_then(|reads| reads.intersection(&self.lost_operations).next())
            && !unit.story
        {
            let lost = RuntimeIx(u32::try_from(lost).unwrap_or(u32::MAX));
            let message = format!("an operation of upstream {} did not commit", self.plan.runtime_id(lost));
            return Some(ErrorInfo::new("upstream-not-committed", message));
        }
        let (plan, notes) = (&self.plan, &mut self.document.notes);
        let lost = |runtime: RuntimeIx| {
            notes.push(ErrorInfo::new(
                "story-read-uncommitted",
                format!("{} read from {}, which did not commit", unit.id, plan.runtime_id(runtime)),
            ));
        };
        let runtime = cascade.falls_with(&unit.hangs, unit.story, lost)?;
        let message = format!("upstream {} did not commit", plan.runtime_id(runtime));
        Some(ErrorInfo::new("upstream-not-committed", message))
    }

    /// Applies a unit in a savepoint; a refused one leaves nothing.
    fn try_unit(&mut self, tx: &mut Tx<'_>, unit: &Unit) -> Result<UnitChanges, Refused> {
        let before = self.world.state.clone();
        let outcome = tx.savepoint(|tx| self.apply_unit(tx, unit));
        if outcome.is_err() {
            self.world.state = before;
        }
        outcome
    }

    fn apply_unit(&mut self, tx: &mut Tx<'_>, unit: &Unit) -> Result<UnitChanges, Refused> {
        if let Some(record) = &unit.suspension {
            let counts = self.extras.counts_of(self.counts_turn, &self.turn_id);
            suspend::open(tx, &self.session_id, &self.session, record, counts)?;
            return Ok(UnitChanges::default());
        }
        let mut made = UnitChanges { data: Vec::with_capacity(unit.writes.len()), ..UnitChanges::default() };
        for (at, write) in unit.writes.iter().enumerate() {
            match write {
                Write::Data(write) => made.data.push(self.apply_data(tx, &unit.package, write)?),
                Write::Proposal(proposal) => {
                    let author = Author { plugin: &unit.plugin, runtime: &unit.id, at };
                    made.changes.extend(self.world.apply(tx, author, proposal)?);
                }
            }
        }
        self.apply_operations(tx, unit, &mut made)?;
        if unit.story && unit.narrative.is_some() && !self.manual {
            let author = Author { plugin: &unit.plugin, runtime: &unit.id, at: unit.writes.len() };
            made.changes.extend(self.world.narrated(tx, author)?);
        }
        let Some((key, value)) = &unit.export else { return Ok(made) };
        // An export that cannot be kept is the readers' loss, not the unit's.
        let stored = tx.savepoint(|tx| {
            tx.put_data(&self.session_id, &EXPORT_OWNER.into(), &unit.id, key, value, &self.now).map(drop)
        });
        made.note = match stored {
            Ok(()) => None,
            Err(error @ (StoreError::ValueTooLarge { .. } | StoreError::NamespaceFull { .. })) => {
                Some(ErrorInfo::new("export-not-stored", format!("{}: export {key:?}: {error}", unit.id)))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(made)
    }

    /// Applies what write services staged on a unit, each operation whole or not at all. One that does not hold costs a
    /// story nothing but itself, any other unit everything. WSV-5, WSV-10
    fn apply_operations(&mut self, tx: &mut Tx<'_>, unit: &Unit, made: &mut UnitChanges) -> Result<(), Refused> {
        for (row, operation) in &unit.operations {
            let package = Arc::clone(&self.plan.packages[operation.provider as usize]);
            let applied = tx.savepoint(|tx| {
                operation.writes.iter().map(|write| self.apply_data(tx, &package, write)).collect::<Result<Vec<_>, _>>()
            });
            let error = match applied {
                Ok(changes) => {
                    made.data.extend(changes);
                    made.operations.push((*row, Ok(())));
                    continue;
                }
                Err(Refused::Rule(error)) => error,
                Err(Refused::Store(error @ (StoreError::ValueTooLarge { .. } | StoreError::NamespaceFull { .. }))) => {
                    ErrorInfo::new(error.code(), error.to_string())
                }
                Err(refused) => return Err(refused),
            };
            if unit.story {
                made.operations.push((*row, Err(error)));
                continue;
            }
            let message = format!("{} {}: {}", package.id(), operation.source(), error.message);
            let error = ErrorInfo::new(error.code, message);
            self.broke = Some((*row, error.clone()));
            return Err(Refused::Rule(error));
        }
        Ok(())
    }

    /// A unit is kept: what became of its operations.
    fn settle_operations(&mut self, unit: &Unit, operations: Vec<(usize, Result<(), ErrorInfo>)>) {
        for (row, outcome) in operations {
            let document = &mut self.document.operations[row];
            match outcome {
                Ok(()) => document.status = OperationStatus::Committed,
                Err(error) => {
                    document.fail(&error, unit.concealed);
                    self.lost_operations.grow_and_insert(unit.runtime.index());
                }
            }
        }
    }

    /// The player's notice of what a story's operations did not come to. WSV-10
    fn tell_not_applied(&mut self, kept: &[Unit]) {
        let Some(story) = kept.iter().find(|unit| self.lost_operations.contains(unit.runtime.index())) else { return };
        let failed = self.document.operations.iter().filter(|row| row.status == OperationStatus::Failed).count();
        let (title, message) = match (self.session.locale.starts_with("zh"), failed) {
            (true, _) => ("未生效的改动".to_owned(), format!("有 {failed} 项对其他插件数据的改动没有生效。")),
            (false, 1) => {
                ("Not applied".to_owned(), "1 change to another plugin's data did not take effect.".to_owned())
            }
            (false, _) => {
                ("Not applied".to_owned(), format!("{failed} changes to other plugins' data did not take effect."))
            }
        };
        let content = json!({"level": "warning", "title": title, "message": message, "count": failed});
        let part =
            json!({"id": "operations-not-applied", "type": "notification", "status": "success", "content": content});
        self.document.changes.push(ChangeDocument {
            kind: "ui.rendered".to_owned(),
            plugin_id: story.plugin.as_str().to_owned(),
            runtime_id: story.id.clone(),
            payload: Json::from_value(json!({
                "proposalId": format!("{}:operations-not-applied", self.turn_id),
                "source": {"pluginId": story.plugin.as_str(), "runtimeId": story.id},
                "render": {"parts": [part]},
            })),
        });
    }

    /// What agents are told of in the next execution of the main loop. WSV-10
    fn note_not_applied(&mut self) {
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all = Vec::new();
        for row in self.document.operations.iter().filter(|row| row.status == OperationStatus::Failed) {
            let count = told.entry(&row.caller_runtime_id).or_default();
            *count += 1;
            if *count <= MAX_NOT_APPLIED {
                all.push(NotApplied {
                    runtime_id: row.caller_runtime_id.clone(),
                    provider_plugin_id: row.provider_plugin_id.clone(),
                    contract: row.contract.clone(),
                    code: row.code.clone().unwrap_or_default(),
                });
            }
        }
        self.session.not_applied = all;
    }

    fn apply_data(&self, tx: &mut Tx<'_>, package: &LoadedPackage, write: &DataWrite) -> Result<DataChange, Refused> {
        let plugin = &package.plugin_id;
        let value = match &write.op {
            DataOp::Set(value) => Some(value.clone()),
            DataOp::Delete => None,
            DataOp::Update(list) => {
                // DAT-1: applied to the newest value, so writers of different fields both survive.
                let current = tx.read().get_data(&self.session_id, plugin, &write.namespace, &write.key)?;
                let current = current.as_ref().map(|record| record.value.checked()).transpose().map_err(|error| {
                    let at = format!("{}/{}", write.namespace, write.key);
                    rule("stored-value-damaged", format!("{at} cannot be read back: {error}"))
                })?;
                let next = ops::apply(current, list.value())
                    .map_err(|error| rule("conflict", format!("{}/{}: {error}", write.namespace, write.key)))?;
                Some(Json::from_value(next))
            }
        };
        match &value {
            Some(value) => {
                if value.byte_len() > MAX_DATA_VALUE_BYTES {
                    return Err(rule(
                        "value-too-large",
                        format!(
                            "{}/{} has {} bytes; at most {MAX_DATA_VALUE_BYTES}",
                            write.namespace,
                            write.key,
                            value.byte_len()
                        ),
                    ));
                }
                if let Some(validator) = package.data_schemas.get(&*write.namespace) {
                    check(validator, value.value()).map_err(|message| {
                        rule("data-schema-invalid", format!("{}/{}: {message}", write.namespace, write.key))
                    })?;
                }
                tx.put_data(&self.session_id, plugin, &write.namespace, &write.key, value, &self.now)?;
            }
            None => {
                tx.delete_data(&self.session_id, plugin, &write.namespace, &write.key)?;
            }
        }
        Ok(DataChange {
            plugin_id: plugin.as_str().to_owned(),
            namespace: write.namespace.to_string(),
            key: write.key.to_string(),
            value,
        })
    }

    fn mark_dropped(&mut self, isolated: &[IsolatedDocument]) {
        for drop in isolated {
            for row in &mut self.document.runtimes {
                if row.runtime_id == drop.runtime_id {
                    row.status = RuntimeStatus::Failed;
                    row.error = Some(drop.error.clone());
                }
            }
            // Whom its events reached was decided; but what did not commit did not happen.
            self.document.events.retain(|event| event.runtime_id != drop.runtime_id);
        }
    }

    fn journal(&self, tx: &mut Tx<'_>, kept: &[Unit]) -> Result<Vec<MessageRecord>, Refused> {
        let mut messages = Vec::new();
        let message = |number: usize, role: &str, content: &str, source: &str, unit: Option<&Unit>| MessageRecord {
            id: format!("{}-{number}", self.turn_id),
            turn_id: self.turn_id.clone(),
            role: role.to_owned(),
            content: content.to_owned(),
            source_type: source.to_owned(),
            source_plugin_id: unit.map(|unit| unit.plugin.as_str().to_owned()),
            source_runtime_id: unit.map(|unit| unit.id.clone()),
            created_at: self.now.clone(),
        };
        if let Some(text) = &self.player_message {
            let mut said = message(0, "user", text, "player", None);
            if let Some(id) = &self.extras.input_message_id {
                said.id.clone_from(id);
            }
            messages.push(said);
        }
        for text in &self.extras.steers {
            messages.push(message(messages.len(), "user", text, "player", None));
        }
        // A manual run adds nothing to the dialogue.
        for unit in kept.iter().filter(|_| !self.manual) {
            if let Some(narrative) = &unit.narrative {
                messages.push(message(messages.len() + 1, "assistant", narrative, "runtime", Some(unit)));
            }
        }
        for message in &messages {
            tx.append_message(&self.session_id, &to_json(message)?)?;
        }
        Ok(messages)
    }

    /// The session clock: counted turns, trigger ledger, setup states, phase.
    fn clock(&mut self, kept: &[Unit], jobs: &[JobRow]) {
        // A job counts when it is made: whether the next turn may make another must not depend on when it runs.
        let made = jobs.iter().filter_map(|job| self.plan.runtime_ix(&job.runtime_id));
        // Only runtimes with a budget or a cooldown: the record is rewritten by every commit and must not hold a row for
        // each of a thousand runtimes nobody asks about.
        let limited = |runtime: &RuntimeIx| {
            let decl = self.plan.decl(*runtime);
            decl.max_trigger_count > 0 || decl.cooldown_turns > 0
        };
        let ran = kept.iter().filter(|unit| unit.counts).map(|unit| unit.runtime);
        for runtime in ran.chain(made).filter(limited) {
            let id = self.plan.runtime_id(runtime).to_owned();
            let record = self.session.triggers.entry(id).or_default();
            record.count = record.count.saturating_add(1);
            record.last_turn = self.document.logical_turn;
        }
        for (id, state) in std::mem::take(&mut self.setup) {
            self.session.setup_runtimes.insert(id, state);
        }
        if self.counts_turn {
            self.session.completed_player_turns += 1;
        }
        let settled = |id: &str, version: &str| match self.session.setup_runtimes.get(id) {
            Some(SetupState::Done { plugin_version, .. } | SetupState::Blocked { plugin_version, .. }) => {
                plugin_version == version
            }
            _ => false,
        };
        if self.session.phase == Phase::Setup && self.all_setup.iter().all(|(id, version)| settled(id, version)) {
            self.session.phase = Phase::Playing;
        }
    }
}

fn rule(code: impl Into<String>, message: impl Into<String>) -> Refused {
    Refused::Rule(ErrorInfo::new(code, message))
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Json, Refused> {
    Json::of(value).map_err(|error| rule("internal", error.to_string()))
}

/// The suspension a runtime's result asks for.
fn suspension(walked: &Walked, runtime: RuntimeIx, ambient: &dyn Ambient) -> Option<SuspensionRecord> {
    let result = walked.slots[runtime.index()].result()?;
    let suspending = result.suspending.as_ref().filter(|_| result.status == RuntimeStatus::Suspended)?;
    let continuation = suspending.continuation.clone()?;
    let shared = &walked.shared;
    let millis = ambient.now_millis();
    Some(SuspensionRecord {
        id: format!("sus-{:032x}", ambient.fresh_bits()),
        session_id: shared.session.id.clone(),
        turn_id: shared.turn_id.clone(),
        runtime_id: shared.plan.runtime_id(runtime).to_owned(),
        plugin_id: shared.plan.plugin_id(runtime).to_owned(),
        reason: result.reason.clone().unwrap_or_default(),
        resume_schema: suspending.resume_schema.clone(),
        created_at: iso_time(millis),
        created_millis: millis,
        resolved: None,
        continuation: Some(Continuation { agent: suspending.agent.clone(), ..continuation }),
    })
}

/// Where a setup runtime stands after this execution.
pub fn setup_state(walked: &Walked, runtime: RuntimeIx) -> (String, SetupState) {
    attempt(walked, runtime, None)
}

/// Where a setup runtime stands after an execution that was rolled back: the attempt counts all the same.
pub fn refused_setup_state(walked: &Walked, runtime: RuntimeIx, error: &ErrorInfo) -> (String, SetupState) {
    attempt(walked, runtime, Some(error))
}

fn attempt(walked: &Walked, runtime: RuntimeIx, refused: Option<&ErrorInfo>) -> (String, SetupState) {
    let shared = &walked.shared;
    let plan = &shared.plan;
    let id = plan.runtime_id(runtime).to_owned();
    let plugin_version = plan.plan.plugins[plan.plugin_ix(runtime) as usize].version.as_str().to_owned();
    let attempts = match shared.session.setup_runtimes.get(&id) {
        Some(SetupState::Pending { attempts, plugin_version: before, .. }) if *before == plugin_version => *attempts,
        _ => 0,
    };
    let slot = &walked.slots[runtime.index()];
    let result = slot.result();
    // Waiting for one that failed is no attempt of its own.
    let waited = slot.held_back && result.and_then(|result| result.reason.as_deref()) == Some("upstream-failed");
    let attempts = attempts + u32::from(!waited);
    let done = refused.is_none()
        && result.is_some_and(|result| {
            result.guard_skip || (result.status == RuntimeStatus::Success && result.completion_done)
        });
    if done {
        return (id, SetupState::Done { plugin_version, waived: false });
    }
    let last_error = result
        .and_then(|result| result.error.as_ref().map(|error| error.message.clone()).or_else(|| result.reason.clone()));
    let last_error = last_error.or_else(|| refused.map(|error| error.message.clone()));
    let budget = plan.decl(runtime).max_trigger_count;
    // Whoever it waits for is not its own failure.
    let waits = result.is_some_and(|result| result.status == RuntimeStatus::Suspended);
    let state = if budget > 0 && attempts >= budget && !waited && !waits {
        let reason = last_error.unwrap_or_else(|| "did not report `completion: done`".to_owned());
        SetupState::Blocked { reason, plugin_version }
    } else {
        SetupState::Pending { attempts, last_error, plugin_version }
    };
    (id, state)
}
