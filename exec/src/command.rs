//! Player commands: `/name arguments`, run by an RPC action of the declaring package. UIW-1, UIW-3
//!
//! Writes of a command take effect one by one; a refused one leaves its record as it was, earlier ones stay.

use std::{collections::HashMap, sync::Arc, time::Duration};

use covel_abi::{
    CallContext, CallHost, CallLimits, CallRequest, CallTarget, DataRow, HostError, HostRequest, LogLevel,
};
use covel_graph::{
    Json, SessionId,
    fragment::{CommandArgument, CommandDecl},
};
use covel_store::{StoreError, TransactError};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    active::{LoadedPackage, check},
    call_host::{check_names, check_value, log_line},
    document::DataChange,
    engine::{Engine, Inner},
    error::ExecError,
    event::{EventSink, TurnEvent},
    limits::{MAX_OUTPUT_BYTES, MAX_WRITES_PER_RUNTIME},
    ops,
    packages::resolve_settings,
    random,
    session::{SessionRecord, SessionStatus},
};

/// Wall-clock limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest command line, in characters.
const MAX_LINE_CHARS: usize = 4_000;

/// A command a session offers.
#[derive(Clone, Debug)]
pub struct CommandInfo {
    /// `<pluginId>:<name>`.
    pub command_id: String,
    /// Package.
    pub plugin_id: String,
    /// Declaration.
    pub declaration: CommandDecl,
}

/// What a command answered.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    /// Which command.
    pub command_id: String,
    /// Did it work?
    pub ok: bool,
    /// For the player.
    pub message: Option<String>,
    /// For the page.
    pub data: Option<Json>,
    /// Records it wrote.
    pub changes: Vec<DataChange>,
}

impl Engine {
    /// Commands of a session's active packages, by name.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`].
    pub fn commands(&self, session_id: &str) -> Result<Vec<CommandInfo>, ExecError> {
        let session = self.0.session(session_id)?;
        let packages = self.0.packages.read();
        let mut commands: Vec<CommandInfo> = session
            .active_plugins
            .iter()
            .filter_map(|id| packages.get(id))
            .flat_map(|package| {
                package.fragment().commands.iter().map(|declaration| CommandInfo {
                    command_id: format!("{}:{}", package.id(), declaration.name),
                    plugin_id: package.id().to_owned(),
                    declaration: declaration.clone(),
                })
            })
            .collect();
        commands.sort_by(|a, b| (&a.declaration.name, &a.plugin_id).cmp(&(&b.declaration.name, &b.plugin_id)));
        Ok(commands)
    }

    /// Runs a command line such as `/roll 6`.
    ///
    /// # Errors
    /// [`ExecError::CommandNotActive`], [`ExecError::Command`] for words that do not fit or a handler that failed,
    /// and the session's own refusals.
    pub async fn command(
        &self,
        session_id: &str,
        line: &str,
        events: Option<EventSink>,
    ) -> Result<CommandOutcome, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let (_lock, _) = inner.take_settled(session_id).await?;
        let session = inner.session(session_id)?;
        if session.status != SessionStatus::Active {
            return Err(ExecError::SessionNotActive { status: session.status.as_str().into(), id: session.id });
        }
        let _permit = inner.in_flight.acquire().await.map_err(|_| ExecError::Closing)?;
        inner.check_open()?;
        let words = split(line)?;
        let name = words.first().and_then(|word| word.strip_prefix('/')).unwrap_or_default().to_owned();
        // What is active is asked of the live grants, not of what the session last ran with.
        let activation = inner.activate(&session)?;
        let active = |plugin: &str| activation.active.iter().any(|found| found.as_str() == plugin);
        let mut offered = self.commands(session_id)?;
        offered.retain(|command| active(&command.plugin_id));
        // A name before any alias, so that no package can take another's name.
        let found = offered
            .iter()
            .find(|command| command.declaration.name == name || command.command_id == name)
            .or_else(|| offered.iter().find(|command| command.declaration.aliases.contains(&name)));
        let command = found.cloned().ok_or_else(|| ExecError::CommandNotActive(name.clone()))?;
        let arguments = parse_arguments(&command.declaration, &words[1..])?;
        let package = inner.packages.read().get(&command.plugin_id).cloned();
        let package = package.ok_or_else(|| ExecError::CommandNotActive(name.clone()))?;
        let generation = package.generation.clone().ok_or_else(|| ExecError::Package {
            plugin: command.plugin_id.clone(),
            message: package.error.clone().unwrap_or_else(|| "its code is not active".into()),
        })?;
        let host = Arc::new(CommandHost {
            inner: Arc::clone(inner),
            session: session.clone(),
            package: Arc::clone(&package),
            action: command.declaration.action.clone(),
            state: Mutex::default(),
        });
        let world = session.world_id.as_deref().and_then(|id| inner.world(id).ok());
        let settings = resolve_settings(&package, world.as_deref(), session.settings.get(package.id()));
        let text = |value: &str| Json::from_value(Value::String(value.to_owned()));
        let context = CallContext {
            fields: vec![
                ("sessionId", text(&session.id)),
                ("pluginId", text(package.id())),
                ("action", text(&command.declaration.action)),
                ("locale", text(&session.locale)),
                ("userSettings", settings),
                (
                    "command",
                    Json::from_value(json!({
                        "command": command.declaration.name, "canonical": format!("/{}", command.declaration.name),
                        "raw": line, "argv": words[1..], "args": arguments, "commandId": command.command_id,
                        "source": "composer",
                    })),
                ),
            ],
            argument: Some(Json::from_value(json!({"args": arguments}))),
            writable: true,
            ..CallContext::default()
        };
        let request = CallRequest {
            generation,
            target: CallTarget::Rpc { action: command.declaration.action.clone() },
            context,
            host: Arc::clone(&host) as Arc<dyn CallHost>,
            limits: CallLimits { timeout: COMMAND_TIMEOUT, max_output_bytes: MAX_OUTPUT_BYTES },
            cancel: CancellationToken::new(),
        };
        let answer = inner.js.call(request).await;
        let changes = host.close();
        if let Some(events) = events.filter(|_| !changes.is_empty()) {
            let shown: Vec<Value> =
                changes.iter().filter(|change| !change.namespace.starts_with('_')).map(DataChange::to_event).collect();
            let payload = Json::from_value(json!({"pluginId": command.plugin_id, "changes": shown}));
            // Nobody listening changes nothing.
            let _ = events.send(TurnEvent {
                kind: "plugin-data.changed",
                session_id: session.id.clone(),
                turn_id: String::new(),
                payload,
            });
        }
        let answer = answer.map_err(|error| ExecError::Command {
            code: "command-failed".into(),
            message: format!("/{}: {error}", command.declaration.name),
        })?;
        let value = answer.value.value();
        Ok(CommandOutcome {
            command_id: command.command_id,
            ok: value.get("ok").and_then(Value::as_bool).unwrap_or(true),
            message: value.get("message").and_then(Value::as_str).map(str::to_owned),
            data: value.get("data").cloned().map(Json::from_value),
            changes,
        })
    }
}

fn invalid(message: impl Into<String>) -> ExecError {
    ExecError::Command { code: "command-invalid".into(), message: message.into() }
}

/// Words of a command line; double quotes keep spaces.
fn split(line: &str) -> Result<Vec<String>, ExecError> {
    if line.chars().count() > MAX_LINE_CHARS {
        return Err(invalid(format!("a command has at most {MAX_LINE_CHARS} characters")));
    }
    let (mut words, mut word, mut quoted, mut started) = (Vec::new(), String::new(), false, false);
    for c in line.trim().chars() {
        match c {
            '"' => {
                quoted = !quoted;
                started = true;
            }
            c if c.is_whitespace() && !quoted => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            c => {
                word.push(c);
                started = true;
            }
        }
    }
    if quoted {
        return Err(invalid("a quote is not closed"));
    }
    if started {
        words.push(word);
    }
    if !words.first().is_some_and(|word| word.starts_with('/')) {
        return Err(invalid("a command starts with `/`"));
    }
    Ok(words)
}

fn parse_arguments(command: &CommandDecl, words: &[String]) -> Result<Map<String, Value>, ExecError> {
    let mut parsed = Map::new();
    let mut words = words.iter();
    for argument in &command.arguments {
        if argument.variadic {
            let rest: Vec<Value> = words.by_ref().map(|word| typed(argument, word)).collect::<Result<_, _>>()?;
            if argument.required && rest.is_empty() {
                return Err(invalid(format!("/{} needs `{}`", command.name, argument.name)));
            }
            parsed.insert(argument.name.clone(), Value::Array(rest));
            continue;
        }
        match words.next() {
            Some(word) => {
                parsed.insert(argument.name.clone(), typed(argument, word)?);
            }
            None if argument.required => return Err(invalid(format!("/{} needs `{}`", command.name, argument.name))),
            None => {}
        }
    }
    match words.next() {
        Some(extra) => Err(invalid(format!("/{} does not take {extra:?}", command.name))),
        None => Ok(parsed),
    }
}

fn typed(argument: &CommandArgument, word: &str) -> Result<Value, ExecError> {
    let wrong = |what: &str| invalid(format!("`{}` is {what}, not {word:?}", argument.name));
    if !argument.choices.is_empty() && !argument.choices.iter().any(|choice| choice == word) {
        return Err(wrong(&format!("one of {}", argument.choices.join(", "))));
    }
    Ok(match argument.kind.as_str() {
        "integer" => word.parse::<i64>().map_err(|_| wrong("an integer"))?.into(),
        "number" => word
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| wrong("a number"))?,
        "boolean" => word.parse::<bool>().map_err(|_| wrong("true or false"))?.into(),
        _ => word.into(),
    })
}

#[derive(Default)]
struct CommandState {
    changes: Vec<DataChange>,
    draws: HashMap<String, u64>,
    closed: bool,
}

/// Host of an RPC action: reads committed data, writes at once.
struct CommandHost {
    inner: Arc<Inner>,
    session: SessionRecord,
    package: Arc<LoadedPackage>,
    action: String,
    state: Mutex<CommandState>,
}

impl CommandHost {
    fn close(&self) -> Vec<DataChange> {
        let mut state = self.state.lock();
        state.closed = true;
        std::mem::take(&mut state.changes)
    }

    fn check_open(&self) -> Result<(), HostError> {
        if self.state.lock().closed {
            return Err(HostError::new("closed", "this call has ended; its context cannot be used any more"));
        }
        Ok(())
    }

    /// One write, at once and durable. DAT-4
    fn write(&self, namespace: &str, key: &str, change: Change) -> Result<(), HostError> {
        self.check_open()?;
        check_names(namespace, key, true)?;
        if self.state.lock().changes.len() >= MAX_WRITES_PER_RUNTIME {
            let message = format!("one command may write at most {MAX_WRITES_PER_RUNTIME} records");
            return Err(HostError::new("too-many-writes", message));
        }
        let session = SessionId::from(self.session.id.as_str());
        let package = Arc::clone(&self.package);
        let (space, name, now) = (namespace.to_owned(), key.to_owned(), self.inner.now());
        let written = self
            .inner
            .store
            .transact_blocking(move |tx| {
                tx.set_cause("rpc", package.plugin_id.as_str(), &now);
                let value = match change {
                    Change::Set(value) => Some(value),
                    Change::Delete => None,
                    Change::Update(list) => {
                        let current = tx.read().get_data(&session, &package.plugin_id, &space, &name)?;
                        let current = current.as_ref().map(|record| record.value.value());
                        let next = ops::apply(current, list.value())
                            .map_err(|error| WriteError::Host(HostError::new("conflict", error.to_string())))?;
                        Some(Json::from_value(next))
                    }
                };
                if let Some(value) = &value {
                    check_value(package.id(), &space, &name, value).map_err(WriteError::Host)?;
                    if let Some(validator) = package.data_schemas.get(&space) {
                        check(validator, value.value()).map_err(|message| {
                            let message = format!("{space}/{name} breaks its schema: {message}");
                            WriteError::Host(HostError::new("data-schema-invalid", message))
                        })?;
                    }
                    tx.put_data(&session, &package.plugin_id, &space, &name, value, &now)?;
                } else {
                    tx.delete_data(&session, &package.plugin_id, &space, &name)?;
                }
                Ok(value)
            })
            .map_err(|error| match error {
                TransactError::Refused(WriteError::Host(error)) => error,
                TransactError::Refused(WriteError::Store(error)) | TransactError::Store(error) => {
                    HostError::new(error.code(), error.to_string())
                }
                TransactError::Panicked(message) => HostError::new("internal", message),
            })?;
        self.state.lock().changes.push(DataChange {
            plugin_id: self.package.id().to_owned(),
            namespace: namespace.to_owned(),
            key: key.to_owned(),
            value: written,
        });
        Ok(())
    }

    fn read<T>(&self, body: impl FnOnce(&covel_store::Reader<'_>) -> Result<T, StoreError>) -> Result<T, HostError> {
        self.check_open()?;
        self.inner.store.read(body).map_err(|error| HostError::new(error.code(), error.to_string()))
    }
}

enum Change {
    Set(Json),
    Delete,
    Update(Json),
}

enum WriteError {
    Host(HostError),
    Store(StoreError),
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl CallHost for CommandHost {
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        let session = SessionId::from(self.session.id.as_str());
        self.read(|reader| reader.get_data(&session, &self.package.plugin_id, namespace, key))
            .map(|record| record.map(|record| record.value))
    }

    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        let session = SessionId::from(self.session.id.as_str());
        let rows = self.read(|reader| reader.list_data(&session, &self.package.plugin_id, namespace))?;
        Ok(rows
            .into_iter()
            .map(|record| DataRow {
                key: record.key,
                value: record.value,
                created_at: record.created_at,
                updated_at: record.updated_at,
            })
            .collect())
    }

    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.write(namespace, key, Change::Set(value))
    }

    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.write(namespace, key, Change::Delete)
    }

    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.write(namespace, key, Change::Update(ops))
    }

    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        self.check_open()?;
        // Commands draw from a stream of their own; the session's last change keeps two equal commands apart.
        let mut state = self.state.lock();
        let index = state.draws.entry(self.action.clone()).or_default();
        let seed = format!("{}#command:{}", self.session.seed, self.inner.fresh_id(16));
        let drawn = random::draw(&seed, self.package.id(), &self.action, *index, min, max)
            .map_err(|message| HostError { name: "RangeError", code: "invalid-input".into(), message })?;
        *index += 1;
        Ok(drawn)
    }

    fn world(&self, part: &str) -> Result<Json, HostError> {
        self.check_open()?;
        self.inner.committed_world(&self.session, part).map_err(|error| HostError::new(error.code(), error.to_string()))
    }

    fn store(&self, method: &str, argument: &Json) -> Result<Json, HostError> {
        // What is not there is not taken for an empty name: `set(namespace, key, value)` would write to no one's record.
        let invalid = |what: &str| HostError::new("invalid-input", format!("ctx.store.{method} takes {what}"));
        let text = |at: usize| argument.value().get(at).and_then(Value::as_str).map(str::to_owned);
        match method {
            "getPluginData" => {
                let (namespace, key) = text(0).zip(text(1)).ok_or_else(|| invalid("a namespace and a key"))?;
                let found = self.data_get(&namespace, &key)?;
                Ok(found.map_or_else(Json::null, |value| Json::from_value(json!({"key": key, "value": value}))))
            }
            "listPluginData" => {
                let rows = self.data_list(&text(0).ok_or_else(|| invalid("a namespace"))?)?;
                Ok(Json::from_value(rows.iter().map(|row| json!({"key": row.key, "value": row.value})).collect()))
            }
            "setPluginData" => {
                let record = argument.value().get(0).and_then(Value::as_object);
                let field = |name: &str| record.and_then(|record| record.get(name));
                let (Some(namespace), Some(key), Some(value)) =
                    (field("namespace").and_then(Value::as_str), field("key").and_then(Value::as_str), field("value"))
                else {
                    return Err(invalid("an object with namespace, key and value"));
                };
                self.write(namespace, key, Change::Set(Json::from_value(value.clone())))?;
                Ok(Json::null())
            }
            "getSession" => Ok(Json::from_value(json!({
                "id": self.session.id, "worldId": self.session.world_id, "locale": self.session.locale,
                "phase": self.session.phase, "status": self.session.status,
            }))),
            other => Err(HostError::new("unavailable", format!("ctx.store.{other} is not offered to actions"))),
        }
    }

    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>) {
        log_line(self.package.id(), level, message, meta);
    }

    fn request(&self, _request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        let error = HostError::new("unavailable", "tools and models are not offered to actions");
        Box::pin(async move { Err(error) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_split_into_typed_arguments() {
        let decl = CommandDecl {
            name: "roll".into(),
            arguments: vec![
                CommandArgument { name: "sides".into(), kind: "integer".into(), required: true, ..Default::default() },
                CommandArgument { name: "why".into(), kind: "string".into(), variadic: true, ..Default::default() },
            ],
            ..CommandDecl::default()
        };
        let parse = |line: &str| split(line).and_then(|words| parse_arguments(&decl, &words[1..]));
        assert_eq!(
            Value::Object(parse("/roll 6 \"for luck\" now").unwrap()),
            json!({"sides": 6, "why": ["for luck", "now"]})
        );
        for bad in ["roll 6", "/roll", "/roll six", "/roll 6 \"open", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
