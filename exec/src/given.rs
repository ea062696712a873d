//! What an execution starts with besides plan and message: results of an earlier one, the kept half of a suspended
//! runtime, and what the player adds while it runs.

use std::{collections::BTreeMap, sync::Arc};

use covel_graph::{Json, RuntimeIx};
use parking_lot::Mutex;

use crate::{
    limits::MAX_STEERS_PER_TURN,
    results::RuntimeResult,
    services::operation::NotApplied,
    suspend::{AgentState, Continuation},
};

/// Given from outside; empty for an ordinary turn.
#[derive(Default)]
pub struct Given {
    /// Results of an earlier execution: readable, never committed again.
    pub seeds: Vec<(RuntimeIx, RuntimeResult)>,
    /// The story of that execution.
    pub prose: Vec<String>,
    /// Its turn.
    pub turn: Option<String>,
    /// Events that started followers which run again.
    pub triggers: BTreeMap<RuntimeIx, (String, Json)>,
    /// The suspended runtime that goes on.
    pub resume: Option<Resume>,
    /// What an execution of the main loop tells agents of the one before. WSV-10
    pub(crate) not_applied: Vec<NotApplied>,
    /// What the player adds.
    pub steering: Arc<Steering>,
}

/// A suspended runtime that goes on.
pub struct Resume {
    /// Runtime.
    pub runtime: RuntimeIx,
    /// Its suspension.
    pub suspension_id: String,
    /// What it was waiting for.
    pub data: Json,
    /// Where it stopped.
    pub continuation: Continuation,
}

impl Given {
    /// The resumption of this runtime.
    pub fn resume_of(&self, runtime: RuntimeIx) -> Option<&Resume> {
        self.resume.as_ref().filter(|resume| resume.runtime == runtime)
    }
}

/// How a suspended agent goes on.
pub struct AgentResume {
    /// Where it stopped.
    pub state: AgentState,
    /// What it was waiting for.
    pub data: Json,
}

/// Messages the player adds to a running turn, in order.
#[derive(Default)]
pub struct Steering(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    all: Vec<String>,
    /// So many of them the story has seen.
    seen: usize,
    closed: bool,
}

impl Steering {
    /// Adds a message; `false` when the turn takes none any more.
    pub fn push(&self, message: String) -> bool {
        let mut queue = self.0.lock();
        if queue.closed || queue.all.len() >= MAX_STEERS_PER_TURN {
            return false;
        }
        queue.all.push(message);
        true
    }

    /// Messages the story has not seen yet.
    pub fn fresh(&self) -> Vec<String> {
        let mut queue = self.0.lock();
        let fresh = queue.all[queue.seen..].to_vec();
        queue.seen = queue.all.len();
        fresh
    }

    /// All messages; none are taken after this.
    pub fn close(&self) -> Vec<String> {
        let mut queue = self.0.lock();
        queue.closed = true;
        queue.all.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_is_bounded_ordered_and_ends_with_the_turn() {
        let steering = Steering::default();
        assert!(steering.push("a".into()) && steering.push("b".into()));
        assert_eq!(steering.fresh(), ["a", "b"]);
        assert!(steering.fresh().is_empty());
        for _ in 2..MAX_STEERS_PER_TURN {
            assert!(steering.push("x".into()));
        }
        assert!(!steering.push("one too many".into()));
        assert_eq!(steering.close().len(), MAX_STEERS_PER_TURN);
        assert!(!Steering::default().close().iter().any(|_| true));
        assert!(!steering.push("late".into()));
    }
}
