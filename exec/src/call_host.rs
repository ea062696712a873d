//! The host side of one runtime: reads through the layer's view with tracking, buffered writes, random draws, logs.

mod provider;
mod world;

use std::{
    collections::HashMap,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use covel_abi::{CallHost, DataRow, HostError, HostRequest, LogLevel};
use covel_graph::{Json, RuntimeIx, SessionId, limits::MAX_DATA_VALUE_BYTES, world::World};
use covel_store::{DataVersion, Store};
use fixedbitset::FixedBitSet;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    active::{ActivePlan, LoadedPackage, check},
    ambient::Ambient,
    given::Given,
    jobs::{JobSeed, Reads, progress},
    limits::{
        HISTORY_READ, MAX_DATA_DEPTH, MAX_DATA_NAME_BYTES, MAX_EVENTS_PER_TURN, MAX_LOG_LINES_PER_CALL,
        MAX_LOG_META_CHARS, MAX_REQUESTS_PER_CALL, MAX_WRITE_BYTES_PER_RUNTIME, MAX_WRITES_PER_RUNTIME,
    },
    ops,
    overlay::{DataKey, DataOp, DataWrite, Overlay, overlay_rows},
    random,
    reads::{ReadSet, Seen},
    results::EmittedEvent,
    services::{Grants, operation::Operation, trace::ServiceLog},
    session::{MessageRecord, SessionRecord},
    tape::Recorder,
    world::{self as world_model, cast::Cast, seat},
    write::Write,
};
pub(crate) use world::{world_key, world_part_in};

/// What all runtimes of one execution share. Frozen at its start.
pub struct Shared {
    /// The pinned plan.
    pub plan: Arc<ActivePlan>,
    /// The session as it was.
    pub session: SessionRecord,
    /// Its id.
    pub session_id: SessionId,
    /// Turn.
    pub turn_id: String,
    /// Logical turn.
    pub logical_turn: u32,
    /// What the player wrote.
    pub message: String,
    /// Committed messages, read when first asked for; see [`Shared::history`].
    pub history: OnceLock<Vec<MessageRecord>>,
    /// Resolved settings per plan plugin.
    pub settings: Vec<Json>,
    /// The world, as it was published when the execution began.
    pub world: Option<Arc<World>>,
    /// Its record for `ctx.world` and prompts, made when first asked for.
    pub world_record: OnceLock<Json>,
    /// `ctx.playerActions`, made when first asked for; see [`Shared::player_actions`].
    pub actions: OnceLock<Json>,
    /// Public snapshot of the dimensions, frozen when first asked for. SWC-3
    pub dimensions: OnceLock<Json>,
    /// Committed data.
    pub store: Store,
    /// Time and ids; what they give is on the execution's tape.
    pub ambient: Arc<dyn Ambient>,
    /// The tape of this execution.
    pub(crate) recorder: Arc<Recorder>,
    /// Key of the random streams of this execution.
    pub seed: String,
    /// Cancelled with the turn.
    pub cancel: CancellationToken,
    /// The newest message it may see, by number; none = all.
    pub history_until: Option<u64>,
    /// Of a background job, what it runs on.
    pub(crate) job: Option<Box<JobSeed>>,
    /// What else it starts with.
    pub given: Given,
    /// Which packages' code this session lets run, as of now.
    pub(crate) grants: Grants,
    /// The service calls it made. TRC-2
    pub(crate) service_log: ServiceLog,
}

impl Shared {
    /// What a background job notes its reads in.
    pub(crate) fn job_reads(&self) -> Option<&Reads> {
        self.job.as_ref().map(|job| &job.reads)
    }

    /// What the player entered last (a form, a choice), or null. Read when asked for.
    pub fn last_player_input(&self) -> Value {
        let found = self.store.read(|reader| {
            reader.get_item(&self.session_id, crate::flow::PLAYER_INPUT_LATEST, crate::flow::PLAYER_INPUT_LATEST)
        });
        match found {
            Ok(found) => found.map_or(Value::Null, |input: Json| input.value().clone()),
            Err(error) => {
                let error: covel_store::StoreError = error;
                tracing::error!("the last input of {} cannot be read: {error}", self.session.id);
                Value::Null
            }
        }
    }

    /// The newest committed messages, oldest first. Many turns never ask. The session is locked while an execution
    /// runs, so the answer does not depend on when it is asked for; a store that cannot be read gives none.
    pub fn history(&self) -> &[MessageRecord] {
        self.history.get_or_init(|| {
            let last = self.history_until.map_or(Bound::Unbounded, Bound::Included);
            let range = (Bound::Unbounded, last);
            let rows = self.store.read(|reader| reader.last_messages(&self.session_id, range, HISTORY_READ));
            let rows = rows.unwrap_or_else(|error| {
                tracing::error!("the history of {} cannot be read: {error}", self.session.id);
                Vec::new()
            });
            rows.iter().filter_map(|row| serde_json::from_value(row.message.value().clone()).ok()).collect()
        })
    }
}

impl Shared {
    /// What a world says of itself, in the session's language.
    pub fn world_record(&self) -> &Json {
        self.world_record.get_or_init(|| world_model::record::of(self.world.as_deref(), &self.session.locale))
    }

    /// What the player did this turn: the message, and the character it is said by. It keeps that character when the
    /// seat plays another later. A background job has no actions of its own: its source turn's are in its digest. SEA-3
    pub fn player_actions(&self) -> &Json {
        self.actions.get_or_init(|| {
            let mut actions = Vec::new();
            if !self.message.is_empty() && self.job.is_none() {
                let mut action = json!({"type": "message", "content": self.message});
                if let Some(seat) = seat::primary(&self.session.seats) {
                    action["seatId"] = seat.id.as_str().into();
                    if let Some(character) = &seat.current_character_id {
                        action["characterId"] = character.as_str().into();
                    }
                }
                actions.push(action);
            }
            Json::from_value(Value::Array(actions))
        })
    }

    /// A part of `ctx.world` that stays as it was when the execution began: the session is locked meanwhile, so it
    /// does not matter when it is read.
    pub fn frozen_world(&self, part: &str) -> Result<Json, covel_store::StoreError> {
        Ok(match part {
            "worldRecord" => self.world_record().clone(),
            "dimensions" => match self.dimensions.get() {
                Some(dimensions) => dimensions.clone(),
                None => {
                    let owner = self.plan.dimension_owner.as_ref();
                    let read = |reader: &covel_store::Reader<'_>| {
                        world_model::view::dimensions(reader, &self.session_id, owner)
                    };
                    let dimensions = self.store.read(read)?;
                    self.dimensions.get_or_init(|| dimensions).clone()
                }
            },
            "seats" => Json::of(&self.session.seats).unwrap_or_else(|_| Json::null()),
            "dimensionProviderPluginId" => match &self.plan.dimension_owner {
                Some(owner) => Json::from_value(owner.as_str().into()),
                None => Json::null(),
            },
            _ => Json::null(),
        })
    }
}

/// Where a runtime stands between its calls.
struct Buffer {
    view: Overlay,
    writes: Vec<Write>,
    /// Everyone as this runtime sees them; made when it first writes about them.
    cast: Option<Box<Cast>>,
    written: usize,
    producers: FixedBitSet,
    data_reads: Option<Box<FixedBitSet>>,
    staged_reads: Option<Box<FixedBitSet>>,
    read_set: Option<Box<ReadSet>>,
    draws: HashMap<String, u64>,
    log_lines: usize,
    closed: bool,
    requests: Option<(Requests, CancellationToken)>,
    requested: usize,
    events: Vec<EmittedEvent>,
    failed_tool: Option<String>,
    desk: Option<Box<provider::Desk>>,
}

/// Serves operations that take time.
pub type Requests = Arc<dyn Fn(HostRequest) -> BoxFuture<'static, Result<Json, HostError>> + Send + Sync>;

/// One runtime's host.
pub struct RuntimeCall {
    shared: Arc<Shared>,
    runtime: RuntimeIx,
    plugin: u32,
    buffer: Mutex<Buffer>,
    /// Its inputs, in case it suspends.
    inputs: OnceLock<Vec<(String, Json)>>,
}

/// What is left of a runtime's host when it ended.
pub struct Buffered {
    /// Writes in order.
    pub writes: Vec<Write>,
    /// Runtimes whose results or uncommitted writes it read. RDD-1
    pub producers: FixedBitSet,
    /// Of these, whose uncommitted writes it read.
    pub data_reads: Option<Box<FixedBitSet>>,
    /// Of these, whose staged operations it read.
    pub(crate) staged_reads: Option<Box<FixedBitSet>>,
    /// The records it read, with versions.
    pub(crate) read_set: Option<Box<ReadSet>>,
    /// Events of tools called through `ctx.tools.call`.
    pub events: Vec<EmittedEvent>,
    /// The first tool call through `ctx.tools.call` that failed; the runtime then fails too.
    pub failed_tool: Option<String>,
    /// What write services staged, in the order in which they were called. WSV-5
    pub(crate) operations: Vec<Operation>,
}

/// May plugin code write this namespace? `_` names are reserved, except a package's own `_hidden.*`.
pub fn check_names(namespace: &str, key: &str, own_code: bool) -> Result<(), HostError> {
    let refuse = |message: String| Err(HostError::new("invalid-input", message));
    if namespace.starts_with('_') && !(own_code && namespace.strip_prefix("_hidden.").is_some_and(|n| !n.is_empty())) {
        return refuse(format!("namespace {namespace:?} is reserved; names starting with `_` are not writable"));
    }
    for (what, name) in [("namespace", namespace), ("key", key)] {
        if name.len() > MAX_DATA_NAME_BYTES {
            return refuse(format!("the {what} has {} bytes; at most {MAX_DATA_NAME_BYTES}", name.len()));
        }
    }
    Ok(())
}

/// Checks a value's size and depth on any write path.
pub fn check_value(plugin: &str, namespace: &str, key: &str, value: &Json) -> Result<(), HostError> {
    if value.byte_len() > MAX_DATA_VALUE_BYTES {
        return Err(HostError::new(
            "value-too-large",
            format!(
                "{plugin}: the value of {namespace}/{key} has {} bytes; at most {MAX_DATA_VALUE_BYTES}",
                value.byte_len()
            ),
        ));
    }
    if ops::is_too_deep(value.value()) {
        return Err(HostError::new(
            "value-too-deep",
            format!("{plugin}: the value of {namespace}/{key} is nested deeper than {MAX_DATA_DEPTH} levels"),
        ));
    }
    Ok(())
}

/// What a write makes of a record of this package, and how many bytes that takes: the view keeps the value, the list of
/// writes keeps the operations. `current` is what an update applies to.
///
/// # Errors
/// The rule it breaks: `invalid-input`, `conflict`, `value-too-large`, `value-too-deep`, `data-schema-invalid`.
pub(crate) fn check_data(
    package: &LoadedPackage,
    namespace: &str,
    key: &str,
    op: &DataOp,
    current: Option<&Json>,
) -> Result<(Option<Json>, usize), HostError> {
    let (value, listed) = match op {
        DataOp::Set(value) => (value.clone(), 0),
        DataOp::Delete => return Ok((None, 0)),
        DataOp::Update(list) => {
            let next = ops::apply(current.map(Json::value), list.value()).map_err(|error| match error {
                ops::OpsError::Invalid(message) => HostError::new("invalid-input", message),
                ops::OpsError::Conflict(message) => HostError { name: "ToolError", code: "conflict".into(), message },
            })?;
            (Json::from_value(next), list.byte_len())
        }
    };
    check_value(package.id(), namespace, key, &value)?;
    if let Some(validator) = package.data_schemas.get(namespace) {
        check(validator, value.value()).map_err(|message| {
            HostError::new("data-schema-invalid", format!("{namespace}/{key} breaks its schema: {message}"))
        })?;
    }
    let bytes = value.byte_len() + listed;
    Ok((Some(value), bytes))
}

impl Buffer {
    /// Uncommitted data of another runtime was read.
    fn note_entry(&mut self, producer: RuntimeIx, staged: bool) {
        self.note_data(producer);
        if staged {
            self.staged_reads.get_or_insert_default().grow_and_insert(producer.index());
        }
    }

    fn note_data(&mut self, producer: RuntimeIx) {
        self.producers.grow_and_insert(producer.index());
        self.data_reads.get_or_insert_default().grow_and_insert(producer.index());
    }
}

impl RuntimeCall {
    /// A host for one runtime over its layer's view.
    pub fn new(shared: Arc<Shared>, runtime: RuntimeIx, view: Overlay) -> Self {
        let plugin = shared.plan.plugin_ix(runtime);
        Self {
            shared,
            runtime,
            plugin,
            inputs: OnceLock::new(),
            buffer: Mutex::new(Buffer {
                view,
                writes: Vec::new(),
                cast: None,
                written: 0,
                producers: FixedBitSet::new(),
                data_reads: None,
                staged_reads: None,
                read_set: None,
                draws: HashMap::new(),
                log_lines: 0,
                closed: false,
                requests: None,
                requested: 0,
                events: Vec::new(),
                failed_tool: None,
                desk: None,
            }),
        }
    }

    /// The execution.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The runtime.
    pub fn runtime(&self) -> RuntimeIx {
        self.runtime
    }

    /// Keeps the inputs of a call that may suspend.
    pub fn keep_inputs(&self, inputs: &[(String, Json)]) {
        if !inputs.is_empty() {
            let _ = self.inputs.set(inputs.to_vec());
        }
    }

    /// The inputs kept.
    pub fn kept_inputs(&self) -> Vec<(String, Json)> {
        self.inputs.get().cloned().unwrap_or_default()
    }

    /// Records that a result of another runtime was read.
    pub fn note_read(&self, producer: RuntimeIx) {
        self.buffer.lock().producers.grow_and_insert(producer.index());
    }

    /// Ends the context: later use is refused. Gives what was buffered.
    pub fn close(&self) -> Buffered {
        let mut buffer = self.buffer.lock();
        buffer.closed = true;
        // What serves requests holds this host; letting go of it here breaks the circle. What still runs is ended:
        // nobody waits for it.
        if let Some((_, ended)) = buffer.requests.take() {
            ended.cancel();
        }
        Buffered {
            writes: std::mem::take(&mut buffer.writes),
            producers: std::mem::take(&mut buffer.producers),
            data_reads: buffer.data_reads.take(),
            staged_reads: buffer.staged_reads.take(),
            read_set: buffer.read_set.take(),
            events: std::mem::take(&mut buffer.events),
            failed_tool: buffer.failed_tool.take(),
            operations: buffer.desk.take().map(|desk| desk.into_operations()).unwrap_or_default(),
        }
    }

    /// Has the call asked for something outside the engine (a model, a tool)?
    pub fn has_asked(&self) -> bool {
        self.buffer.lock().requested > 0
    }

    /// Lets the call make requests; `ended` is cancelled when the call ends.
    pub fn serve_requests(&self, requests: Requests, ended: CancellationToken) {
        self.buffer.lock().requests = Some((requests, ended));
    }

    /// Records what a tool called by this runtime's own code gave or how it failed.
    pub fn note_tool(&self, outcome: Result<Vec<EmittedEvent>, String>) {
        let mut buffer = self.buffer.lock();
        match outcome {
            Ok(events) if buffer.events.len() + events.len() > MAX_EVENTS_PER_TURN => {
                let message = format!("one runtime emits at most {MAX_EVENTS_PER_TURN} events");
                buffer.failed_tool.get_or_insert(message);
            }
            Ok(events) => buffer.events.extend(events),
            Err(message) => {
                buffer.failed_tool.get_or_insert(message);
            }
        }
    }

    /// Buffers writes that a tool or a result brought, in order, all or none.
    ///
    /// # Errors
    /// The first refusal; nothing was buffered then.
    pub fn apply_writes(&self, writes: &[Write], own_code: bool) -> Result<(), HostError> {
        // One lock for all: what the runtime's own code writes meanwhile must not be rolled back with them.
        let mut buffer = self.open()?;
        let (view, count, written) = (buffer.view.clone(), buffer.writes.len(), buffer.written);
        for write in writes {
            let applied = match write {
                Write::Data(write) => {
                    self.write_to(&mut buffer, &write.namespace, &write.key, write.op.clone(), own_code)
                }
                Write::Proposal(proposal) => self.propose_to(&mut buffer, proposal),
            };
            if let Err(error) = applied {
                buffer.view = view;
                buffer.cast = None;
                buffer.writes.truncate(count);
                buffer.written = written;
                return Err(error);
            }
        }
        Ok(())
    }

    fn key(&self, namespace: &str, key: &str) -> DataKey {
        DataKey { plugin: self.plugin, namespace: namespace.into(), key: key.into() }
    }

    fn plugin_id(&self) -> &str {
        self.shared.plan.packages[self.plugin as usize].id()
    }

    fn open(&self) -> Result<parking_lot::MutexGuard<'_, Buffer>, HostError> {
        let buffer = self.buffer.lock();
        if buffer.closed {
            return Err(HostError::new("closed", "this call has ended; its context cannot be used any more"));
        }
        Ok(buffer)
    }

    fn stored(&self, plugin: u32, namespace: &str, key: &str) -> Result<Option<covel_store::DataRecord>, HostError> {
        let plugin = &self.shared.plan.packages[plugin as usize].plugin_id;
        let read = |reader: &covel_store::Reader<'_>| reader.get_data(&self.shared.session_id, plugin, namespace, key);
        self.shared.store.read(read).map_err(store_failed)
    }

    /// As [`Self::stored`], for a caller that learns it: a job hangs on what it learned.
    fn learned(&self, plugin: u32, namespace: &str, key: &str) -> Result<Option<covel_store::DataRecord>, HostError> {
        let found = self.stored(plugin, namespace, key)?;
        if let Some(reads) = self.shared.job_reads() {
            let version = found.as_ref().map(covel_store::DataRecord::version);
            reads.record(self.shared.plan.packages[plugin as usize].id(), namespace, key, version);
        }
        Ok(found)
    }

    fn seen(&self, buffer: &mut Buffer, namespace: &str, key: &str, tracked: bool) -> Result<Option<Json>, HostError> {
        self.seen_of(buffer, self.plugin, namespace, key, tracked)
    }

    /// As [`Self::seen`], of any package: a service reads its own through whoever called it. CTX-3
    fn seen_of(
        &self,
        buffer: &mut Buffer,
        plugin: u32,
        namespace: &str,
        key: &str,
        tracked: bool,
    ) -> Result<Option<Json>, HostError> {
        let name = DataKey { plugin, namespace: namespace.into(), key: key.into() };
        let found = buffer.view.get(&name).map(|entry| (entry.value.clone(), entry.producer, entry.staged));
        match found {
            Some((value, producer, staged)) => {
                if producer != self.runtime {
                    buffer.note_entry(producer, staged);
                    let (namespace, seen) = (self.traced(plugin, namespace), Seen::Uncommitted(producer));
                    buffer.read_set.get_or_insert_default().record(&namespace, key, seen);
                }
                Ok(value)
            }
            None => {
                let found =
                    if tracked { self.learned(plugin, namespace, key)? } else { self.stored(plugin, namespace, key)? };
                if tracked {
                    let version = found.as_ref().map(covel_store::DataRecord::version);
                    let (traced, seen) = (self.traced(plugin, namespace), Seen::Committed(version));
                    buffer.read_set.get_or_insert_default().record(&traced, key, seen);
                }
                found.map(|record| readable(record.value, namespace, key)).transpose()
            }
        }
    }

    fn write(&self, namespace: &str, key: &str, op: DataOp, own_code: bool) -> Result<(), HostError> {
        let mut buffer = self.open()?;
        self.write_to(&mut buffer, namespace, key, op, own_code)
    }

    fn write_to(
        &self,
        buffer: &mut Buffer,
        namespace: &str,
        key: &str,
        op: DataOp,
        own_code: bool,
    ) -> Result<(), HostError> {
        check_names(namespace, key, own_code)?;
        if buffer.writes.len() >= MAX_WRITES_PER_RUNTIME {
            return Err(HostError::new(
                "too-many-writes",
                format!("one runtime may write at most {MAX_WRITES_PER_RUNTIME} records"),
            ));
        }
        // Applied to the newest value at commit, so nothing hangs on the one seen now. DAT-1
        let current = match &op {
            DataOp::Update(_) => self.seen(buffer, namespace, key, false)?,
            _ => None,
        };
        let package = &self.shared.plan.packages[self.plugin as usize];
        let (value, bytes) = check_data(package, namespace, key, &op, current.as_ref())?;
        if bytes > MAX_WRITE_BYTES_PER_RUNTIME - buffer.written {
            return Err(HostError::new(
                "too-many-writes",
                format!("one runtime may write at most {MAX_WRITE_BYTES_PER_RUNTIME} bytes"),
            ));
        }
        buffer.written += bytes;
        buffer.view.put(self.key(namespace, key), value, self.runtime);
        buffer.writes.push(Write::Data(DataWrite { namespace: namespace.into(), key: key.into(), op }));
        Ok(())
    }

    /// Lists a namespace through the view, in creation order; tracked as a read of everything listed.
    pub fn list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        self.list_of(self.plugin, namespace)
    }

    fn list_of(&self, owner: u32, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        let mut buffer = self.open()?;
        let plugin = &self.shared.plan.packages[owner as usize].plugin_id;
        let committed = self
            .shared
            .store
            .read(|reader| reader.list_data(&self.shared.session_id, plugin, namespace))
            .map_err(store_failed)?;
        if let Some(reads) = self.shared.job_reads() {
            let rows = committed
                .iter()
                .map(|row| (row.key.as_str(), DataVersion { version: row.version, created_seq: row.created_seq }));
            reads.namespace(plugin.as_str(), namespace, rows);
        }
        let committed: Vec<(String, DataRow)> = committed
            .into_iter()
            .map(|record| {
                let key = record.key.clone();
                let row = DataRow {
                    value: readable(record.value, namespace, &record.key)?,
                    key: record.key,
                    created_at: record.created_at,
                    updated_at: record.updated_at,
                };
                Ok((key, row))
            })
            .collect::<Result<_, HostError>>()?;
        let shared_namespace: Arc<str> = namespace.into();
        let mut producers = Vec::new();
        let rows = {
            let now = self.shared.session.updated_at.clone();
            let overlaid = buffer.view.namespace(owner, &shared_namespace).inspect(|(_, entry)| {
                if entry.producer != self.runtime {
                    producers.push((entry.producer, entry.staged));
                }
            });
            overlay_rows(committed, overlaid, |key, value, before| DataRow {
                key: key.to_owned(),
                value: value.clone(),
                created_at: before.map_or_else(|| now.clone(), |row| row.created_at.clone()),
                updated_at: now.clone(),
            })
        };
        for (producer, staged) in producers {
            buffer.note_entry(producer, staged);
        }
        buffer.read_set.get_or_insert_default().list(&self.traced(owner, namespace), rows.len());
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Reads one record through the view; tracked.
    pub fn get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        let mut buffer = self.open()?;
        self.seen(&mut buffer, namespace, key, true)
    }
}

impl CallHost for RuntimeCall {
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        self.get(namespace, key)
    }

    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        self.list(namespace)
    }

    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Set(value), true)
    }

    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Delete, true)
    }

    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Update(ops), true)
    }

    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        let mut buffer = self.open()?;
        let stream = self.shared.plan.runtime_id(self.runtime);
        let index = buffer.draws.entry(stream.to_owned()).or_default();
        let drawn = random::draw(&self.shared.seed, self.plugin_id(), stream, *index, min, max)
            .map_err(|message| HostError { name: "RangeError", code: "invalid-input".into(), message })?;
        *index += 1;
        Ok(drawn)
    }

    fn now_millis(&self) -> Option<u64> {
        Some(self.shared.recorder.time(self.shared.plan.runtime_id(self.runtime)))
    }

    fn monotonic_micros(&self) -> Option<u64> {
        Some(self.shared.recorder.ticks(self.shared.plan.runtime_id(self.runtime)))
    }

    fn random_unit(&self) -> Option<f64> {
        // Not a secret: it follows from the session's seed, as `random.int` does, in a stream of its own.
        let stream = format!("{}#Math.random", self.shared.plan.runtime_id(self.runtime));
        let mut buffer = self.buffer.lock();
        let index = buffer.draws.entry(stream.clone()).or_default();
        let range = i64::try_from(random::MAX_RANGE).ok()?;
        let drawn = random::draw(&self.shared.seed, self.plugin_id(), &stream, *index, 0, range).ok()?;
        *index += 1;
        #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
        Some(drawn as f64 / random::MAX_RANGE as f64)
    }

    fn random_bytes(&self, bytes: &mut [u8]) -> bool {
        self.shared.recorder.bytes(self.shared.plan.runtime_id(self.runtime), bytes);
        true
    }

    fn progress(&self, effect: &Json) -> Result<(), HostError> {
        drop(self.open()?);
        let report = progress::Report::read(effect)?;
        // A runtime of a turn has nobody who follows it from outside; its rows are told anyway.
        match self.shared.job.as_deref().filter(|job| job.runtime == self.runtime) {
            Some(job) => {
                (job.report)(report);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn world(&self, part: &str) -> Result<Json, HostError> {
        self.world_part(part)
    }

    fn store(&self, method: &str, argument: &Json) -> Result<Json, HostError> {
        match method {
            "getPluginData" => {
                let (namespace, key) = two_texts(argument)?;
                let found = self.get(&namespace, &key)?;
                Ok(found.map_or_else(Json::null, |value| Json::from_value(json!({"key": key, "value": value}))))
            }
            "listPluginData" => {
                let namespace = argument.value().get(0).and_then(Value::as_str).unwrap_or_default();
                let rows = self.list(namespace)?;
                let rows: Vec<Value> = rows.iter().map(|row| json!({"key": row.key, "value": row.value})).collect();
                Ok(Json::from_value(Value::Array(rows)))
            }
            "getSession" => {
                let session = &self.shared.session;
                Ok(Json::from_value(json!({
                    "id": session.id, "worldId": session.world_id, "locale": session.locale,
                    "phase": session.phase, "status": session.status,
                })))
            }
            "listTurnMessages" => {
                let limit = argument.value().get(0).and_then(Value::as_u64).unwrap_or(100).min(500);
                let history = self.shared.history();
                let skip = history.len().saturating_sub(usize::try_from(limit).unwrap_or(500));
                Json::of(&history[skip..].to_vec()).map_err(|e| HostError::new("internal", e.to_string()))
            }
            "listPlayerInputs" => Ok(Json::from_value(json!([]))),
            other => Err(HostError::new(
                "unavailable",
                format!(
                    "ctx.store.{other} is not offered by this host; offered: getPluginData listPluginData getSession listTurnMessages listPlayerInputs"
                ),
            )),
        }
    }

    fn discover(&self, contract: &str) -> Result<Json, HostError> {
        match self.service_client()? {
            Some(client) => client.discover(contract),
            None => Err(crate::services::error("unavailable", "services are not offered here")),
        }
    }

    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>) {
        {
            let mut buffer = self.buffer.lock();
            if buffer.log_lines >= MAX_LOG_LINES_PER_CALL {
                return;
            }
            buffer.log_lines += 1;
        }
        log_line(self.shared.plan.runtime_id(self.runtime), level, message, meta);
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        let served = self.open().map(|mut buffer| {
            buffer.requested += 1;
            (buffer.requests.as_ref().map(|(requests, _)| Arc::clone(requests)), buffer.requested)
        });
        match served {
            Ok((Some(_), count)) if count > MAX_REQUESTS_PER_CALL => {
                let message =
                    format!("one call may ask tools, services and models at most {MAX_REQUESTS_PER_CALL} times");
                let error = HostError::new("too-many-requests", message);
                Box::pin(async move { Err(error) })
            }
            Ok((Some(requests), _)) => requests(request),
            Ok((None, _)) => {
                let error = HostError::new("unavailable", "tools and models are not offered to this call");
                Box::pin(async move { Err(error) })
            }
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }
}

/// A `[plugin-log]` line. MOD-6
pub fn log_line(subject: &str, level: LogLevel, message: &str, meta: Option<&Json>) {
    let meta = meta.map(|meta| meta.text().chars().take(MAX_LOG_META_CHARS).collect::<String>()).unwrap_or_default();
    match level {
        LogLevel::Error => tracing::error!(target: "covel::plugin", "[plugin-log] {subject}: {message} {meta}"),
        LogLevel::Warn => tracing::warn!(target: "covel::plugin", "[plugin-log] {subject}: {message} {meta}"),
        LogLevel::Info => tracing::info!(target: "covel::plugin", "[plugin-log] {subject}: {message} {meta}"),
        LogLevel::Debug => tracing::debug!(target: "covel::plugin", "[plugin-log] {subject}: {message} {meta}"),
    }
}

fn two_texts(argument: &Json) -> Result<(String, String), HostError> {
    let at = |index: usize| argument.value().get(index).and_then(Value::as_str).map(str::to_owned);
    match (at(0), at(1)) {
        (Some(namespace), Some(key)) => Ok((namespace, key)),
        _ => Err(HostError::new("invalid-input", "getPluginData takes a namespace and a key")),
    }
}

/// A stored value that can be parsed; a damaged one is refused, never taken for `null`.
pub(crate) fn readable(value: Json, namespace: &str, key: &str) -> Result<Json, HostError> {
    match value.checked() {
        Ok(_) => Ok(value),
        Err(error) => {
            Err(HostError::new("stored-value-damaged", format!("{namespace}/{key} cannot be read back: {error}")))
        }
    }
}

pub(crate) fn store_failed(error: covel_store::StoreError) -> HostError {
    HostError::new("store-failed", error.to_string())
}
