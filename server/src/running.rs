//! The turns this process is running: who asked, since when, and how to stop them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One running action.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningAction {
    /// The client's id of it.
    pub request_id: String,
    /// `send_message`, `start_session`, `execute_command`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The turn, once it has begun.
    pub turn_id: Option<String>,
    /// ISO time.
    pub started_at: String,
    #[serde(skip)]
    cancel: CancellationToken,
}

/// All running actions, at most one a session.
#[derive(Default)]
pub struct Running {
    actions: Mutex<BTreeMap<String, RunningAction>>,
    count: watch::Sender<usize>,
}

impl Running {
    /// Claims a session for an action, or nothing when one is running.
    pub fn begin(
        self: &Arc<Self>,
        session: &str,
        request_id: &str,
        kind: &str,
        started_at: String,
    ) -> Option<RunningGuard> {
        let cancel = CancellationToken::new();
        let action = RunningAction {
            request_id: request_id.to_owned(),
            kind: kind.to_owned(),
            turn_id: None,
            started_at,
            cancel: cancel.clone(),
        };
        let mut actions = self.actions.lock();
        if actions.contains_key(session) {
            return None;
        }
        actions.insert(session.to_owned(), action);
        self.count.send_replace(actions.len());
        Some(RunningGuard { running: Arc::clone(self), session: session.to_owned(), cancel })
    }

    /// The running action of a session.
    pub fn get(&self, session: &str) -> Option<RunningAction> {
        self.actions.lock().get(session).cloned()
    }

    /// Cancels the running action of a session; `false` when there is none.
    pub fn cancel(&self, session: &str) -> bool {
        let actions = self.actions.lock();
        let Some(action) = actions.get(session) else {
            return false;
        };
        action.cancel.cancel();
        true
    }

    /// Cancels everything.
    pub fn cancel_all(&self) {
        for action in self.actions.lock().values() {
            action.cancel.cancel();
        }
    }

    /// Waits until nothing runs; `false` when `limit` passed first.
    pub async fn idle_within(&self, limit: Duration) -> bool {
        let mut count = self.count.subscribe();
        let idle = count.wait_for(|count| *count == 0);
        tokio::time::timeout(limit, idle).await.is_ok()
    }
}

/// A claimed session; dropping it frees the session.
pub struct RunningGuard {
    running: Arc<Running>,
    session: String,
    cancel: CancellationToken,
}

impl RunningGuard {
    /// Cancelled when someone stops the action.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Records the turn the action is in.
    pub fn set_turn(&self, turn_id: &str) {
        if let Some(action) = self.running.actions.lock().get_mut(&self.session) {
            action.turn_id = Some(turn_id.to_owned());
        }
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        let mut actions = self.running.actions.lock();
        actions.remove(&self.session);
        self.running.count.send_replace(actions.len());
    }
}
