//! The host of code that looks on: services, extension handlers, hooks, actions. It shows one package's own data, the
//! world, settings, messages and random numbers through somebody else's view, and writes nothing; a write service's
//! writes are gathered here until it has succeeded.
//!
//! Whose view: a runtime's ([`Source::Runtime`]; what is read is recorded as that runtime's read), or an execution's
//! without a reader ([`Source::Plain`]; nothing is recorded, and with an empty overlay only committed data is seen).
//! CTX-1..5, RDD-5

use std::sync::Arc;

use covel_abi::{CallHost, DataRow, HostError, HostRequest, LogLevel};
use covel_graph::Json;
use covel_model::SharedGateway;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    active::LoadedPackage,
    call_host::{RuntimeCall, Shared, check_data, log_line, readable, store_failed, world_part_in},
    limits::{MAX_LOG_LINES_PER_CALL, MAX_REQUESTS_PER_CALL, MAX_WRITE_BYTES_PER_RUNTIME, MAX_WRITES_PER_RUNTIME},
    overlay::{DataKey, DataOp, DataWrite, Overlay, overlay_rows},
    random, requests,
    services::Client,
};

/// Whose view reads go through.
#[derive(Clone)]
pub(crate) enum Source {
    /// A runtime's, as it is when it is read; recorded in its read set.
    Runtime(Arc<RuntimeCall>),
    /// An execution's writes so far, or none; nothing is recorded.
    Plain(Overlay),
}

/// What sets one use of a [`ViewHost`] apart.
pub(crate) struct ViewOptions {
    /// Stream of `ctx.random`: `service:<name>` for services.
    pub(crate) stream: String,
    /// Names the call on the execution's tape and keys its random numbers; unique in the execution and the same in
    /// every run of it.
    pub(crate) call_id: String,
    /// Who a log line is of.
    pub(crate) subject: String,
    /// May it read the package's `_hidden.*`?
    pub(crate) hidden: bool,
    /// Answers `ctx.services`; without it there are none.
    pub(crate) services: Option<Client>,
    /// Model access lent by the caller.
    pub(crate) gateway: Option<SharedGateway>,
    /// May it write? Only with [`Source::Runtime`].
    pub(crate) writable: bool,
    /// Cancelled when nobody waits any more.
    pub(crate) cancel: CancellationToken,
}

/// What a write service has written so far.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Writes in order.
    pub(crate) writes: Vec<DataWrite>,
    /// The records as they leave them.
    own: Overlay,
    /// Bytes of values and operation lists.
    pub(crate) bytes: usize,
}

impl Gathered {
    /// Records written, as they are now, in the order of their last writes.
    pub(crate) fn entries(&self, plugin: u32) -> Vec<(DataKey, Option<Json>)> {
        let mut seen = std::collections::BTreeSet::new();
        let mut entries: Vec<_> = self
            .writes
            .iter()
            .filter(|write| seen.insert((&*write.namespace, &*write.key)))
            .filter_map(|write| {
                let (namespace, key) = (Arc::clone(&write.namespace), Arc::clone(&write.key));
                let key = DataKey { plugin, namespace, key };
                let entry = self.own.get(&key)?;
                Some((entry.sequence, key, entry.value.clone()))
            })
            .collect();
        entries.sort_by_key(|(sequence, ..)| *sequence);
        entries.into_iter().map(|(_, key, value)| (key, value)).collect()
    }
}

#[derive(Default)]
struct State {
    closed: bool,
    draws: u64,
    unit_draws: u64,
    log_lines: usize,
    requested: usize,
    /// The caller's view when `ctx.world` was taken.
    world: Option<Overlay>,
    gathered: Gathered,
}

/// See the module.
pub(crate) struct ViewHost {
    shared: Arc<Shared>,
    source: Source,
    plugin: u32,
    options: ViewOptions,
    state: Mutex<State>,
}

impl ViewHost {
    /// A host for one call into a package's code.
    pub(crate) fn new(shared: Arc<Shared>, source: Source, plugin: u32, options: ViewOptions) -> Self {
        Self { shared, source, plugin, options, state: Mutex::default() }
    }

    /// Ends the context: later use is refused. Gives what a write service wrote.
    pub(crate) fn close(&self) -> Gathered {
        let mut state = self.state.lock();
        state.closed = true;
        std::mem::take(&mut state.gathered)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn plugin(&self) -> u32 {
        self.plugin
    }

    pub(crate) fn services(&self) -> Option<&Client> {
        self.options.services.as_ref()
    }

    fn package(&self) -> &LoadedPackage {
        &self.shared.plan.packages[self.plugin as usize]
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, HostError> {
        let state = self.state.lock();
        if state.closed {
            return Err(HostError::new("closed", "this call has ended; its context cannot be used any more"));
        }
        Ok(state)
    }

    fn is_hidden(&self, namespace: &str) -> bool {
        !self.options.hidden && namespace.starts_with("_hidden.")
    }

    fn below(&self, namespace: &str, key: &str, tracked: bool) -> Result<Option<Json>, HostError> {
        match &self.source {
            Source::Runtime(call) if tracked => call.provider_get(self.plugin, namespace, key),
            Source::Runtime(call) => call.provider_peek(self.plugin, namespace, key),
            Source::Plain(view) => {
                if let Some(entry) = view.get(&self.key(namespace, key)) {
                    return Ok(entry.value.clone());
                }
                let (session, plugin) = (&self.shared.session_id, &self.package().plugin_id);
                let read = |reader: &covel_store::Reader<'_>| reader.get_data(session, plugin, namespace, key);
                let found = self.shared.store.read(read).map_err(store_failed)?;
                found.map(|record| readable(record.value, namespace, key)).transpose()
            }
        }
    }

    fn rows_below(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        match &self.source {
            Source::Runtime(call) => call.provider_list(self.plugin, namespace),
            Source::Plain(view) => {
                let (session, plugin) = (&self.shared.session_id, &self.package().plugin_id);
                let read = |reader: &covel_store::Reader<'_>| reader.list_data(session, plugin, namespace);
                let mut rows = Vec::new();
                for record in self.shared.store.read(read).map_err(store_failed)? {
                    let value = readable(record.value, namespace, &record.key)?;
                    rows.push(DataRow {
                        key: record.key,
                        value,
                        created_at: record.created_at,
                        updated_at: record.updated_at,
                    });
                }
                Ok(self.over(rows, view, namespace))
            }
        }
    }

    /// Rows with uncommitted ones laid over them. CTX-3
    fn over(&self, rows: Vec<DataRow>, view: &Overlay, namespace: &str) -> Vec<DataRow> {
        let named = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        let now = &self.shared.session.updated_at;
        let namespace: Arc<str> = namespace.into();
        let rows =
            overlay_rows(named, view.namespace(self.plugin, &namespace), |key, value, before: Option<&DataRow>| {
                DataRow {
                    key: key.to_owned(),
                    value: value.clone(),
                    created_at: before.map_or_else(|| now.clone(), |row| row.created_at.clone()),
                    updated_at: now.clone(),
                }
            });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn key(&self, namespace: &str, key: &str) -> DataKey {
        DataKey { plugin: self.plugin, namespace: namespace.into(), key: key.into() }
    }

    fn write(&self, namespace: &str, key: &str, op: DataOp) -> Result<(), HostError> {
        let Source::Runtime(call) = &self.source else { return Err(read_only()) };
        if !self.options.writable {
            return Err(read_only());
        }
        // WSV-3: no reserved namespace, its own `_hidden.*` neither.
        crate::call_host::check_names(namespace, key, false)?;
        let mut state = self.open()?;
        let gathered = &mut state.gathered;
        if gathered.writes.len() >= MAX_WRITES_PER_RUNTIME {
            let message = format!("one call may write at most {MAX_WRITES_PER_RUNTIME} records");
            return Err(HostError::new("too-many-writes", message));
        }
        let name = self.key(namespace, key);
        let current = match (&op, gathered.own.get(&name)) {
            (DataOp::Update(_), Some(entry)) => entry.value.clone(),
            (DataOp::Update(_), None) => self.below(namespace, key, false)?,
            _ => None,
        };
        let (value, bytes) = check_data(self.package(), namespace, key, &op, current.as_ref())?;
        if bytes > MAX_WRITE_BYTES_PER_RUNTIME - gathered.bytes {
            let message = format!("one call may write at most {MAX_WRITE_BYTES_PER_RUNTIME} bytes");
            return Err(HostError::new("too-many-writes", message));
        }
        gathered.bytes += bytes;
        gathered.own.put(name, value, call.runtime());
        gathered.writes.push(DataWrite { namespace: namespace.into(), key: key.into(), op });
        Ok(())
    }

    fn draw(&self, stream: &str, index: u64, min: i64, max: i64) -> Result<i64, HostError> {
        // The call is part of the key: two callers get numbers of their own, whichever is served first.
        let seed = format!("{}#{}", self.shared.seed, self.options.call_id);
        random::draw(&seed, self.package().id(), stream, index, min, max).map_err(|message| HostError {
            name: "RangeError",
            code: "invalid-input".into(),
            message,
        })
    }
}

fn read_only() -> HostError {
    HostError::new("read-only", "ctx.pluginData is read-only here")
}

impl CallHost for ViewHost {
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        let state = self.open()?;
        if self.is_hidden(namespace) {
            return Ok(None);
        }
        if let Some(entry) = state.gathered.own.get(&self.key(namespace, key)) {
            return Ok(entry.value.clone());
        }
        self.below(namespace, key, true)
    }

    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        let state = self.open()?;
        if self.is_hidden(namespace) {
            return Ok(Vec::new());
        }
        let rows = self.rows_below(namespace)?;
        if state.gathered.own.is_empty() {
            return Ok(rows);
        }
        Ok(self.over(rows, &state.gathered.own, namespace))
    }

    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Set(value))
    }

    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Delete)
    }

    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.write(namespace, key, DataOp::Update(ops))
    }

    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        let mut state = self.open()?;
        let drawn = self.draw(&self.options.stream, state.draws, min, max)?;
        state.draws += 1;
        Ok(drawn)
    }

    fn now_millis(&self) -> Option<u64> {
        Some(self.shared.recorder.time(&self.options.call_id))
    }

    fn monotonic_micros(&self) -> Option<u64> {
        Some(self.shared.recorder.ticks(&self.options.call_id))
    }

    fn random_unit(&self) -> Option<f64> {
        let mut state = self.state.lock();
        let range = i64::try_from(random::MAX_RANGE).ok()?;
        let stream = format!("{}#Math.random", self.options.stream);
        let drawn = self.draw(&stream, state.unit_draws, 0, range).ok()?;
        state.unit_draws += 1;
        #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
        Some(drawn as f64 / random::MAX_RANGE as f64)
    }

    fn random_bytes(&self, bytes: &mut [u8]) -> bool {
        self.shared.recorder.bytes(&self.options.call_id, bytes);
        true
    }

    fn world(&self, part: &str) -> Result<Json, HostError> {
        self.world_taken();
        let copy = self.open()?.world.clone();
        match (&self.source, copy) {
            (Source::Runtime(call), copy) => call.world_part_of(copy.as_ref(), part),
            (Source::Plain(view), copy) => world_part_in(&self.shared, copy.as_ref().unwrap_or(view), part),
        }
    }

    fn world_taken(&self) {
        let Ok(mut state) = self.open() else { return };
        if state.world.is_none() {
            state.world = match &self.source {
                Source::Runtime(call) => call.view_now().ok(),
                Source::Plain(view) => Some(view.clone()),
            };
        }
    }

    fn store(&self, method: &str, _argument: &Json) -> Result<Json, HostError> {
        Err(HostError::new("unavailable", format!("ctx.store.{method} is not offered here")))
    }

    fn discover(&self, contract: &str) -> Result<Json, HostError> {
        drop(self.open()?);
        self.options.services.as_ref().ok_or_else(no_services)?.discover(contract)
    }

    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>) {
        {
            let mut state = self.state.lock();
            if state.log_lines >= MAX_LOG_LINES_PER_CALL {
                return;
            }
            state.log_lines += 1;
        }
        log_line(&self.options.subject, level, message, meta);
    }

    fn request(&self, request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        let counted = self.open().and_then(|mut state| {
            state.requested += 1;
            if state.requested > MAX_REQUESTS_PER_CALL {
                let message = format!("one call may ask services and models at most {MAX_REQUESTS_PER_CALL} times");
                return Err(HostError::new("too-many-requests", message));
            }
            Ok(())
        });
        if let Err(error) = counted {
            return Box::pin(async move { Err(error) });
        }
        let (options, object) = match request {
            HostRequest::ServiceCall { request, timeout_ms, settlement } => {
                return match &self.options.services {
                    Some(client) => client.call(&request, timeout_ms, settlement),
                    None => Box::pin(async { Err(no_services()) }),
                };
            }
            HostRequest::GenerateText { options } => (options, false),
            HostRequest::GenerateObject { options } => (options, true),
            _ => return Box::pin(async { Err(HostError::new("unavailable", "this is not offered here")) }),
        };
        match (&self.options.gateway, &self.source) {
            (Some(gateway), Source::Runtime(call)) => {
                let (call, gateway, cancel) = (Arc::clone(call), Arc::clone(gateway), self.options.cancel.clone());
                Box::pin(async move { requests::generate(&call, &gateway, &options, object, cancel).await })
            }
            _ => Box::pin(async { Err(HostError::new("unavailable", "models are not offered to this call")) }),
        }
    }
}

fn no_services() -> HostError {
    crate::services::error("unavailable", "services are not offered here")
}

/// The fields every context of this kind has: session, language, the package's own messages and settings. CTX-1
pub(crate) fn view_fields(shared: &Shared, plugin: u32) -> Vec<(&'static str, Json)> {
    let text = |value: &str| Json::from_value(Value::String(value.to_owned()));
    let mut fields = vec![
        ("sessionId", text(&shared.session.id)),
        ("locale", text(&shared.session.locale)),
        ("userSettings", shared.settings[plugin as usize].clone()),
    ];
    fields
        .extend(messages(&shared.plan.packages[plugin as usize], &shared.session.locale).map(|all| ("messages", all)));
    fields
}

/// A package's message catalogue in a language: English to its text, and every text in all languages.
pub(crate) fn messages(package: &LoadedPackage, locale: &str) -> Option<Json> {
    let all = &package.fragment().messages;
    if all.is_empty() {
        return None;
    }
    let (mut translations, mut labels) = (Map::new(), Map::new());
    for (language, pairs) in all {
        for (english, text) in pairs {
            let label = labels.entry(english.clone()).or_insert_with(|| json!({"en": english}));
            label[language.as_str()] = text.as_str().into();
        }
    }
    // The language itself, else the one it is a variant of (`zh-CN` reads `zh`).
    let base = locale.split(['-', '_']).next().unwrap_or(locale);
    let found = all
        .iter()
        .find(|(language, _)| language == locale)
        .or_else(|| all.iter().find(|(language, _)| language == base));
    for (english, text) in found.into_iter().flat_map(|(_, pairs)| pairs) {
        translations.insert(english.clone(), text.as_str().into());
    }
    Some(Json::from_value(json!({"translations": translations, "labels": labels})))
}
