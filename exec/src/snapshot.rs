//! Snapshots and forks. A snapshot is a place in the session's journal, not a copy: the journal gives the state there.
//!
//! Automatic ones are taken by the commit at the first counts of player turns and then at every fifth, one a count,
//! refreshed in place. A fork copies a session as it was at a place to a new session, in one transaction.

use std::collections::{HashMap, VecDeque};

use covel_graph::{Json, SessionId};
use covel_store::{Leave, StoreError, Tx};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    ambient::iso_time,
    engine::{Engine, SessionLock},
    error::ExecError,
    jobs::JOB_ITEM_KINDS,
    limits::{
        AUTO_SNAPSHOT_TURNS, FORK_WINDOW_MS, MAX_AUTO_SNAPSHOTS, MAX_FORK_CLIENTS, MAX_FORKS_PER_WINDOW,
        MAX_MANUAL_SNAPSHOTS,
    },
    session::{SessionRecord, SessionStatus},
    sessions::check_session_id,
};

/// Kind of stored snapshots.
const SNAPSHOT: &str = "snapshot";
/// What a fork leaves behind: jobs, and snapshots, whose places are in the parent's journal.
const LEFT_BEHIND: [&str; JOB_ITEM_KINDS.len() + 1] = {
    let mut kinds = [SNAPSHOT; JOB_ITEM_KINDS.len() + 1];
    let mut at = 0;
    while at < JOB_ITEM_KINDS.len() {
        kinds[at] = JOB_ITEM_KINDS[at];
        at += 1;
    }
    kinds
};
/// Owners whose data a fork leaves behind.
const OWNERS_LEFT_BEHIND: [&str; 1] = ["__kernel:vector"];

/// Who wanted a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotKind {
    /// The host, by the clock.
    Auto,
    /// Someone.
    Manual,
    /// The first one of a forked session.
    Fork,
}

/// A place in a session's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRecord {
    /// Id.
    pub id: String,
    /// Session.
    pub session_id: String,
    /// Kind.
    pub kind: SnapshotKind,
    /// The newest turn it includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Player turns it includes.
    pub completed_player_turns: u32,
    /// The first journal entry it does not include.
    pub seq: u64,
    /// The snapshot of the parent session it comes from, for forks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_snapshot_id: Option<String>,
    /// A session was forked from it: it is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forked: bool,
    /// ISO time.
    pub created_at: String,
}

/// Where a fork starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkFrom {
    /// The state now.
    Now,
    /// The state right after a committed turn.
    Turn(String),
    /// A snapshot.
    Snapshot(String),
}

/// A forked session.
#[derive(Clone, Debug, PartialEq)]
pub struct Forked {
    /// The new session.
    pub session: SessionRecord,
    /// The snapshot it started from, if from one.
    pub from_snapshot_id: Option<String>,
    /// Its own first snapshot.
    pub fork_snapshot_id: String,
}

fn to_json(record: &SnapshotRecord) -> Result<Json, StoreError> {
    // A record of plain fields always serialises.
    Ok(Json::of(record).unwrap_or_else(|_| Json::null()))
}

fn parse(json: &Json) -> Option<SnapshotRecord> {
    serde_json::from_value(json.value().clone()).ok()
}

/// Is an automatic snapshot due at this count of player turns?
pub(crate) fn is_due(count: u32) -> bool {
    count <= 1 || count.is_multiple_of(AUTO_SNAPSHOT_TURNS)
}

/// Takes an automatic snapshot of what this transaction leaves; the oldest beyond the limit go, unless something was
/// forked from them.
pub(crate) fn take_auto(
    tx: &mut Tx<'_>,
    key: &SessionId,
    session: &SessionRecord,
    turn_id: &str,
    now: &str,
) -> Result<SnapshotRecord, StoreError> {
    let id = format!("auto-{}", session.completed_player_turns);
    let before = tx.read().get_item(key, SNAPSHOT, &id)?.as_ref().and_then(parse);
    let fresh = before.is_none();
    // A fork's parent stays what it was forked from.
    if let Some(before) = before.filter(|before| before.forked) {
        return Ok(before);
    }
    let record = SnapshotRecord {
        id,
        session_id: session.id.clone(),
        kind: SnapshotKind::Auto,
        turn_id: Some(turn_id.to_owned()),
        completed_player_turns: session.completed_player_turns,
        // This transaction's own entry is the last one it includes.
        seq: tx.read().journal_bounds(key)?.next + 1,
        parent_snapshot_id: None,
        forked: false,
        created_at: now.to_owned(),
    };
    tx.put_item(key, SNAPSHOT, &record.id, &to_json(&record)?)?;
    if fresh {
        let rows = tx.read().list_items(key, SNAPSHOT)?;
        let old: Vec<SnapshotRecord> = rows
            .iter()
            .filter_map(|row| parse(&row.record))
            .filter(|row| row.kind == SnapshotKind::Auto && !row.forked)
            .collect();
        for old in &old[..old.len().saturating_sub(MAX_AUTO_SNAPSHOTS)] {
            tx.delete_item(key, SNAPSHOT, &old.id)?;
        }
    }
    Ok(record)
}

/// Forks lately made, by parent and client.
#[derive(Default)]
pub(crate) struct ForkLimiter(Mutex<HashMap<(String, String), VecDeque<u64>>>);

impl ForkLimiter {
    /// Counts one more fork.
    ///
    /// # Errors
    /// Whole seconds until the next one may be made.
    pub(crate) fn count(&self, parent: &str, client: &str, now: u64) -> Result<(), u64> {
        let mut recent = self.0.lock();
        // A clock that jumped back must not lock anybody out for longer than a window.
        let is_recent = |at: &u64| now.saturating_sub(*at) < FORK_WINDOW_MS && *at <= now;
        if recent.len() >= MAX_FORK_CLIENTS {
            recent.retain(|_, times| times.back().is_some_and(is_recent));
        }
        let times = recent.entry((parent.to_owned(), client.to_owned())).or_default();
        times.retain(is_recent);
        if times.len() >= MAX_FORKS_PER_WINDOW {
            let wait = times.front().map_or(0, |first| FORK_WINDOW_MS.saturating_sub(now.saturating_sub(*first)));
            return Err(wait.div_ceil(1_000).max(1));
        }
        times.push_back(now);
        Ok(())
    }
}

impl Engine {
    /// Notes the session's present state.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionBusy`], `too-many-snapshots`.
    pub async fn create_snapshot(&self, session: &str) -> Result<SnapshotRecord, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let _lock = SessionLock::take(inner, session).await?;
        let record = inner.session(session)?;
        let key = SessionId::from(session);
        let now = inner.now();
        let id = format!("snap-{}", inner.fresh_id(16));
        inner
            .store
            .transact(move |tx| {
                tx.set_cause("host", "snapshot", &now);
                let rows = tx.read().list_items(&key, SNAPSHOT)?;
                let manual = rows.iter().filter_map(|row| parse(&row.record));
                if manual.filter(|row| row.kind == SnapshotKind::Manual).count() >= MAX_MANUAL_SNAPSHOTS {
                    return Err(ExecError::Conflict {
                        code: "too-many-snapshots",
                        message: format!("a session has at most {MAX_MANUAL_SNAPSHOTS} snapshots taken by hand"),
                    });
                }
                let turn = tx.read().last_turns(&key, .., 1)?.pop().map(|row| row.id.as_str().to_owned());
                let snapshot = SnapshotRecord {
                    id,
                    session_id: record.id.clone(),
                    kind: SnapshotKind::Manual,
                    turn_id: turn,
                    completed_player_turns: record.completed_player_turns,
                    seq: tx.read().journal_bounds(&key)?.next + 1,
                    parent_snapshot_id: None,
                    forked: false,
                    created_at: now,
                };
                tx.put_item(&key, SNAPSHOT, &snapshot.id, &to_json(&snapshot)?)?;
                Ok(snapshot)
            })
            .await
            .map_err(covel_store::TransactError::flatten)
    }

    /// The snapshots of a session, oldest first.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when the store cannot be read.
    pub fn snapshots(&self, session: &str) -> Result<Vec<SnapshotRecord>, ExecError> {
        self.0.session(session)?;
        let rows = self.0.store.read(|reader| reader.list_items(&SessionId::from(session), SNAPSHOT))?;
        Ok(rows.iter().filter_map(|row| parse(&row.record)).collect())
    }

    /// Makes a new session that is what this one was: record, data, items, messages, turns. Jobs and grants of
    /// community code stay behind; an ended session's fork is paused. `client` limits how often: a fork without one
    /// is not counted.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionExists`], `snapshot-not-found`, `turn-not-found`,
    /// `snapshot-pruned` when the journal does not reach that far back, `rate-limit-exceeded`.
    pub async fn fork_session(
        &self,
        parent: &str,
        from: ForkFrom,
        child: Option<String>,
        client: Option<&str>,
    ) -> Result<Forked, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        inner.session(parent)?;
        let millis = inner.ambient.now_millis();
        if let Some(client) = client
            && let Err(wait) = inner.forks.count(parent, client, millis)
        {
            return Err(ExecError::RateLimited {
                message: format!("a session is forked at most {MAX_FORKS_PER_WINDOW} times a minute"),
                retry_after_seconds: wait,
            });
        }
        let child = child
            .unwrap_or_else(|| format!("{}-fork-{}", parent.chars().take(80).collect::<String>(), inner.fresh_id(8)));
        check_session_id(&child)?;
        let fork = Fork {
            parent: SessionId::from(parent),
            child: SessionId::from(child.as_str()),
            from,
            incarnation: inner.fresh_id(32),
            snapshot_id: format!("snap-{}", inner.fresh_id(16)),
            now: iso_time(millis),
        };
        inner.store.transact(move |tx| fork.apply(tx)).await.map_err(covel_store::TransactError::flatten)
    }
}

struct Fork {
    parent: SessionId,
    child: SessionId,
    from: ForkFrom,
    incarnation: String,
    snapshot_id: String,
    now: String,
}

impl Fork {
    fn apply(self, tx: &mut Tx<'_>) -> Result<Forked, ExecError> {
        tx.set_cause("fork", self.child.as_str(), &self.now);
        let (seq, from) = self.place(tx)?;
        let leave = Leave { item_kinds: &LEFT_BEHIND, plugins: &OWNERS_LEFT_BEHIND };
        let copied = tx.copy_session_at(&self.parent, seq, &self.child, leave).map_err(|error| match error {
            StoreError::JournalPruned { .. } | StoreError::SessionMissing { .. } => ExecError::Conflict {
                code: "snapshot-pruned",
                message: format!("session {} is not remembered that far back", self.parent),
            },
            StoreError::SessionExists { .. } => ExecError::SessionExists(self.child.to_string()),
            other => ExecError::Store(other),
        })?;
        let mut session: SessionRecord = serde_json::from_value(copied.value().clone())
            .map_err(|error| ExecError::Internal(format!("a session record cannot be read: {error}")))?;
        session.id = self.child.to_string();
        session.incarnation = self.incarnation;
        session.interrupted = None;
        session.created_at.clone_from(&self.now);
        session.updated_at.clone_from(&self.now);
        if session.status == SessionStatus::Ended {
            session.status = SessionStatus::Paused;
        }
        let json = Json::of(&session).map_err(|error| ExecError::Internal(error.to_string()))?;
        tx.put_session(&self.child, &json)?;
        let turn = tx.read().last_turns(&self.child, .., 1)?.pop().map(|row| row.id.as_str().to_owned());
        let snapshot = SnapshotRecord {
            id: self.snapshot_id,
            session_id: session.id.clone(),
            kind: SnapshotKind::Fork,
            turn_id: turn,
            completed_player_turns: session.completed_player_turns,
            // The child's journal starts with this transaction's own entry.
            seq: tx.read().journal_bounds(&self.child)?.next + 1,
            parent_snapshot_id: from.as_ref().map(|from| from.id.clone()),
            forked: false,
            created_at: self.now,
        };
        tx.put_item(&self.child, SNAPSHOT, &snapshot.id, &to_json(&snapshot)?)?;
        if let Some(mut from) = from.clone().filter(|from| !from.forked) {
            from.forked = true;
            tx.put_item(&self.parent, SNAPSHOT, &from.id, &to_json(&from)?)?;
        }
        Ok(Forked { session, from_snapshot_id: from.map(|from| from.id), fork_snapshot_id: snapshot.id })
    }

    /// The first journal entry not included, and the snapshot named.
    fn place(&self, tx: &Tx<'_>) -> Result<(u64, Option<SnapshotRecord>), ExecError> {
        let reader = tx.read();
        match &self.from {
            ForkFrom::Now => Ok((reader.journal_bounds(&self.parent)?.next, None)),
            ForkFrom::Snapshot(id) => {
                let found = reader.get_item(&self.parent, SNAPSHOT, id)?.as_ref().and_then(parse);
                let found = found.ok_or_else(|| ExecError::NotFound {
                    code: "snapshot-not-found",
                    message: format!("session {} has no snapshot {id:?}", self.parent),
                })?;
                Ok((found.seq, Some(found)))
            }
            ForkFrom::Turn(turn) => {
                if reader.turn_number(&self.parent, &turn.as_str().into())?.is_none() {
                    return Err(ExecError::NotFound {
                        code: "turn-not-found",
                        message: format!("session {} has no committed turn {turn:?}", self.parent),
                    });
                }
                let entry = reader.find_journal(&self.parent, "turn", turn)?.ok_or_else(|| ExecError::Conflict {
                    code: "snapshot-pruned",
                    message: format!("session {} is not remembered as far back as turn {turn:?}", self.parent),
                })?;
                Ok((entry + 1, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_snapshots_are_taken_early_and_then_now_and_then() {
        let due: Vec<u32> = (0..12).filter(|count| is_due(*count)).collect();
        assert_eq!(due, [0, 1, 5, 10]);
    }

    #[test]
    fn forks_are_limited_by_parent_and_client_within_a_minute() {
        let limiter = ForkLimiter::default();
        for at in 0..MAX_FORKS_PER_WINDOW as u64 {
            assert_eq!(limiter.count("p", "c", 1_000 + at), Ok(()));
        }
        assert_eq!(limiter.count("p", "c", 2_000), Err(59));
        assert_eq!(limiter.count("p", "other", 2_000), Ok(()));
        assert_eq!(limiter.count("q", "c", 2_000), Ok(()));
        assert_eq!(limiter.count("p", "c", 1_000 + FORK_WINDOW_MS), Ok(()));
        // A clock that jumped back.
        assert_eq!(limiter.count("p", "c", 5), Ok(()));
    }

    #[test]
    fn clients_that_went_away_are_forgotten() {
        let limiter = ForkLimiter::default();
        for client in 0..MAX_FORK_CLIENTS {
            assert_eq!(limiter.count("p", &client.to_string(), 0), Ok(()));
        }
        assert_eq!(limiter.count("p", "late", FORK_WINDOW_MS), Ok(()));
        assert_eq!(limiter.0.lock().len(), 1);
    }
}
