//! Replay: running a recorded execution again, against the state before it and with what it took from outside, and
//! comparing what it would commit byte by byte.
//!
//! It runs in an engine of its own: a temporary store with the state before, the packages that are loaded here, and
//! a tape instead of clock, ids and models. Nothing of it touches the session. What one cannot replay is said with a
//! code, never guessed. Durations are measurements and are not compared; code that keeps state in its module between
//! turns may differ, for that state is no part of the record.

use std::sync::Arc;

use covel_graph::{Json, SessionId};
use covel_store::{ImageRow, SessionImage, Store, StoreError};
use serde::Serialize;
use serde_json::Value;

use crate::{
    active::ActivePlan,
    document::{ErrorInfo, TurnDocument},
    engine::{Engine, EngineOptions, Inner},
    error::ExecError,
    recovery::Live,
    session::SessionRecord,
    tape::Playback,
    trace::{draft::Asked, view::Parts},
    turn::{Job, main_job, manual_job, setup_job},
};

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// Session.
    pub session_id: String,
    /// Turn.
    pub turn_id: String,
    /// Did it commit when it was recorded? What did not is compared by its document.
    pub committed: bool,
    /// Is everything the same, byte for byte?
    pub equal: bool,
    /// Rows of the session compared.
    pub rows: usize,
    /// Bytes compared.
    pub bytes: usize,
    /// The first difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<ReplayDifference>,
    /// Where the replayed execution asked for something else than the recorded one did.
    pub notes: Vec<ErrorInfo>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayDifference {
    /// JSON pointer: table, key, then the path inside the record.
    pub pointer: String,
    /// What was recorded; absent where there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Json>,
    /// What the replay gave; absent where it gave nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Json>,
}

fn refuse<T>(code: &'static str, message: impl Into<String>) -> Result<T, ExecError> {
    Err(ExecError::Conflict { code, message: message.into() })
}

/// A folder for the temporary store, removed in the end.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} is left behind: {error}", self.0.display());
        }
    }
}

impl Engine {
    /// Runs a recorded execution again and compares. The session is only read.
    ///
    /// # Errors
    /// `trace-not-found`, `replay-package-changed`, `replay-world-changed`, `replay-pruned` (the journal no longer
    /// reaches the state before), `replay-incomplete` (more was taken from outside than is kept),
    /// `replay-unsupported` (a job, or a turn that the player added to while it ran).
    pub async fn replay(&self, session_id: &str, turn_id: &str) -> Result<ReplayReport, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let parts = inner.trace_parts(session_id, turn_id)?;
        let Some(tape) = parts.tape.clone().filter(|tape| !tape.incomplete) else {
            return refuse("replay-incomplete", "more was taken from outside than is kept; it cannot be replayed");
        };
        check_kind(&parts.stored.asked)?;
        let active = check_packages(inner, &parts)?;
        let session = SessionId::from(session_id);
        let (before, after) = images(&inner.store, &session, &parts)?;

        // The permit keeps the isolates alive: closing waits for it.
        let _permit = inner.in_flight.acquire().await.map_err(|_| ExecError::Closing)?;
        inner.check_open()?;
        let folder = Folder(inner.store.path().join(format!("replay-{:032x}", inner.ambient.fresh_bits())));
        let playback = Playback::new(tape);
        let player = inner.player(&folder, &playback)?;
        let mut record = before_record(&before)?;
        let image = before.clone();
        let seq = parts.stored.journal_seq;
        let put = player.store.transact(move |tx| tx.put_image(&image, seq));
        put.await.map_err(|error| ExecError::Store(error.flatten()))?;
        record.active_plugins = active;
        let plan = player.active_plan(&record.active_plugins).await?;
        record.plan = Some(plan.digest.clone());
        if plan.digest != parts.document.plan {
            return refuse("replay-package-changed", "the packages link to another plan than they did");
        }
        let asked = &parts.stored.asked;
        let live = Live::replayed(asked.request_id.clone());
        let job = player.job_of(asked, &record, &plan, &live)?;
        let (document, _) = player.execute_one(record, &plan, job, &live, &None).await?;
        let replayed = player.store.read(|reader| reader.session_image(&session))?;
        let notes = playback.strays();
        player.store.close();

        let mut difference = first_difference(&after, &replayed)?;
        if difference.is_none() && !parts.document.committed {
            difference = compare("/document", Some(document_json(&parts.document)?), Some(document_json(&document)?));
        }
        Ok(ReplayReport {
            session_id: session_id.to_owned(),
            turn_id: turn_id.to_owned(),
            committed: parts.document.committed,
            equal: difference.is_none() && notes.is_empty(),
            rows: after.rows().len(),
            bytes: after.bytes(),
            difference,
            notes,
        })
    }
}

impl Inner {
    /// An engine that plays a tape over a store of its own, with the packages and worlds that are here. It is not to
    /// be closed as an engine: that would end the packages.
    fn player(&self, folder: &Folder, playback: &Arc<Playback>) -> Result<Arc<Inner>, ExecError> {
        let options = EngineOptions {
            ambient: Arc::clone(&self.ambient),
            durable: false,
            // Jobs it would make are compared, not run.
            job_workers: 0,
            ..EngineOptions::new(&folder.0, Arc::clone(&self.gateway))
        };
        let Engine(player) = Engine::open_with(options, self.js.clone(), Some(Arc::clone(playback)))?;
        player.packages.write().clone_from(&self.packages.read());
        player.worlds.write().clone_from(&self.worlds.read());
        Ok(player)
    }
}

/// Is this a kind of execution whose record holds all it went on with?
fn check_kind(asked: &Asked) -> Result<(), ExecError> {
    let known = match asked.origin.as_str() {
        "setup" | "player" | "continuation" => true,
        "manual" => asked.target.is_some() || asked.retries.is_some(),
        "resume" => asked.resumes.is_some(),
        _ => false,
    };
    if known && !asked.seeded {
        return Ok(());
    }
    refuse(
        "replay-unsupported",
        format!("this execution ({}) took what its record does not hold; it cannot be replayed", asked.origin),
    )
}

impl Inner {
    /// The execution that was asked for, over the state in this engine's store.
    fn job_of(
        &self,
        asked: &Asked,
        session: &SessionRecord,
        plan: &ActivePlan,
        live: &Live,
    ) -> Result<Job<'static>, ExecError> {
        if let Some((suspension, data)) = &asked.resumes {
            return self.resume_job(session, plan, suspension, data.clone());
        }
        if let Some((turn, runtimes)) = &asked.retries {
            return self.retry_job(session, plan, turn.clone(), runtimes.clone());
        }
        let (message, payload) = (asked.message.clone(), asked.payload.clone());
        if let Some(target) = &asked.target {
            return Ok(manual_job(target.clone(), payload, message, asked.ignore_upstreams));
        }
        Ok(match asked.origin.as_str() {
            "setup" => setup_job(),
            "continuation" => main_job("continuation", message, live, None),
            _ => main_job("player", message, live, asked.input_message_id.clone()),
        })
    }
}

/// The packages of the recorded plan, if they are the ones loaded here.
fn check_packages(inner: &Inner, parts: &Parts) -> Result<Vec<String>, ExecError> {
    let Some(plan) = &parts.plan else {
        return refuse("replay-package-changed", "the plan of this execution is not kept any more");
    };
    let mut active = Vec::new();
    for plugin in plan.plugins.iter() {
        let id = plugin.id.as_str();
        let loaded = inner.packages.read().get(id).map(|loaded| loaded.package.digest.clone());
        match loaded {
            Some(digest) if digest == plugin.fragment.as_str() => active.push(id.to_owned()),
            Some(digest) => {
                let message = format!(
                    "package {id:?} was {} when this was recorded and is {} now; publish that version again",
                    short(plugin.fragment.as_str()),
                    short(&digest)
                );
                return refuse("replay-package-changed", message);
            }
            None => return refuse("replay-package-changed", format!("package {id:?} is not published here any more")),
        }
    }
    if let Some((id, digest)) = &parts.stored.world {
        let now = inner.world(id).ok().map(|world| world.digest.clone());
        if now.as_deref() != Some(digest) {
            return refuse("replay-world-changed", format!("world {id:?} is not the one of then"));
        }
    }
    Ok(active)
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// The session before the execution and after it.
fn images(store: &Store, session: &SessionId, parts: &Parts) -> Result<(SessionImage, SessionImage), ExecError> {
    let seq = parts.stored.journal_seq;
    let end = if parts.document.committed { seq + 1 } else { seq };
    let read = store.read(|reader| {
        let before = reader.state_before(session, seq)?.read().session_image(session)?;
        let after = reader.state_before(session, end)?.read().session_image(session)?;
        Ok::<_, StoreError>((before, after))
    });
    match read {
        Err(StoreError::JournalPruned { first, .. }) => refuse(
            "replay-pruned",
            format!("the state before is journal entry {seq}; the journal reaches back to entry {first}"),
        ),
        other => Ok(other?),
    }
}

fn before_record(before: &SessionImage) -> Result<SessionRecord, ExecError> {
    let row = before.rows().iter().find(|row| row.table() == "sessions");
    let row = row.ok_or_else(|| ExecError::Internal("the session was not there before".into()))?;
    serde_json::from_value(row.to_json()?.value().clone()).map_err(|error| ExecError::Internal(error.to_string()))
}

/// The first row in which the recorded state after and the replayed one differ.
fn first_difference(after: &SessionImage, replayed: &SessionImage) -> Result<Option<ReplayDifference>, ExecError> {
    for (recorded, replayed) in after.differences(replayed) {
        let place = |row: &ImageRow| {
            let parts = row.key().into_iter().map(|part| format!("/{}", escape(&part))).collect::<String>();
            format!("/{}{parts}", row.table())
        };
        let pointer = recorded.or(replayed).map(place).unwrap_or_default();
        let json = |row: Option<&ImageRow>| row.map(row_json).transpose();
        let found = compare(&pointer, json(recorded)?, json(replayed)?);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn row_json(row: &ImageRow) -> Result<Value, ExecError> {
    let json = row.to_json()?;
    let mut value = json.value().clone();
    if row.table() == "turns" {
        drop_durations(&mut value);
    }
    Ok(value)
}

fn document_json(document: &TurnDocument) -> Result<Value, ExecError> {
    let mut value = serde_json::to_value(document).map_err(|error| ExecError::Internal(error.to_string()))?;
    drop_durations(&mut value);
    Ok(value)
}

/// Durations are measurements: they never come out the same.
fn drop_durations(document: &mut Value) {
    let runtimes = document.get_mut("runtimes").and_then(Value::as_array_mut);
    for row in runtimes.into_iter().flatten().filter_map(Value::as_object_mut) {
        row.shift_remove("startedMicros");
        row.shift_remove("durationMicros");
    }
    if let Some(document) = document.as_object_mut() {
        document.shift_remove("durationMicros");
    }
}

fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// The first place, depth first, in which two values differ. Members count in any order, as their texts were written
/// by the same code.
fn compare(pointer: &str, recorded: Option<Value>, replayed: Option<Value>) -> Option<ReplayDifference> {
    match (recorded, replayed) {
        (Some(Value::Object(recorded)), Some(Value::Object(mut replayed))) => {
            for (key, value) in recorded {
                let inner = format!("{pointer}/{}", escape(&key));
                let found = compare(&inner, Some(value), replayed.shift_remove(&key));
                if found.is_some() {
                    return found;
                }
            }
            replayed.into_iter().next().map(|(key, value)| ReplayDifference {
                pointer: format!("{pointer}/{}", escape(&key)),
                recorded: None,
                replayed: Some(Json::from_value(value)),
            })
        }
        (Some(Value::Array(recorded)), Some(Value::Array(replayed))) => {
            let length = recorded.len().max(replayed.len());
            let (mut recorded, mut replayed) = (recorded.into_iter(), replayed.into_iter());
            (0..length).find_map(|at| compare(&format!("{pointer}/{at}"), recorded.next(), replayed.next()))
        }
        (recorded, replayed) if recorded == replayed => None,
        (recorded, replayed) => Some(ReplayDifference {
            pointer: pointer.to_owned(),
            recorded: recorded.map(Json::from_value),
            replayed: replayed.map(Json::from_value),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::compare;

    #[test]
    fn the_first_difference_is_named_by_its_pointer() {
        let at = |a, b| compare("/t", Some(a), Some(b)).map(|found| found.pointer);
        assert_eq!(at(json!({"a": [1, {"b/c": 2}]}), json!({"a": [1, {"b/c": 2}]})), None);
        assert_eq!(at(json!({"a": [1, {"b/c": 2}]}), json!({"a": [1, {"b/c": 3}]})).as_deref(), Some("/t/a/1/b~1c"));
        assert_eq!(at(json!({"a": 1}), json!({"a": 1, "z": 1})).as_deref(), Some("/t/z"));
        assert_eq!(at(json!([1]), json!([1, 2])).as_deref(), Some("/t/1"));
        assert_eq!(at(json!([1]), json!({})).as_deref(), Some("/t"));
        assert_eq!(compare("/t", None, Some(json!(1))).and_then(|found| found.recorded), None);
    }
}
