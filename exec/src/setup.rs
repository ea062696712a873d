//! The setup of a session beyond one execution: members no order can satisfy, and the host's way out of a block.

use covel_graph::{
    RuntimeIx, Stage,
    archive::PlanHandle,
    plan::{ArchivedEdgeKind, NONE},
};
use fixedbitset::FixedBitSet;

use crate::{
    engine::{Engine, SessionLock},
    error::ExecError,
    select::pending_setup,
    session::{Phase, SessionRecord, SetupState},
};

/// Reason of a setup runtime that waits for itself through needs of session scope.
pub const SESSION_CYCLE: &str = "setup-session-cycle";

/// What decides whether one setup runtime can ever start.
struct Members<'a> {
    plan: &'a PlanHandle,
    pending: FixedBitSet,
    blocked: FixedBitSet,
    done: FixedBitSet,
}

impl Members<'_> {
    fn satisfied(&self, runtime: usize, can_finish: &FixedBitSet, session_edges: bool) -> bool {
        let range = self.plan.edge_starts[runtime].to_native() as usize
            ..self.plan.edge_starts[runtime + 1].to_native() as usize;
        range.into_iter().all(|slot| {
            let edge = &self.plan.edges[slot];
            if !edge.required || !matches!(edge.kind, ArchivedEdgeKind::Need) || (edge.session_scope && !session_edges)
            {
                return true;
            }
            let (target, contract) = (edge.runtime.to_native(), edge.contract.to_native());
            if contract == NONE {
                // What is absent, done or blocked makes no cycle.
                return target == NONE
                    || !self.pending.contains(target as usize)
                    || can_finish.contains(target as usize);
            }
            let providers = &self.plan.providers;
            let range = providers.starts[contract as usize].to_native() as usize
                ..providers.starts[contract as usize + 1].to_native() as usize;
            let mut setup =
                range.map(|slot| providers.items[slot].to_native() as usize).filter(|ix| self.is_setup(*ix)).peekable();
            if setup.peek().is_none() {
                return true;
            }
            if edge.all {
                setup.all(|ix| !self.pending.contains(ix) || can_finish.contains(ix))
            } else {
                setup.any(|ix| self.done.contains(ix) || self.blocked.contains(ix) || can_finish.contains(ix))
            }
        })
    }

    fn is_setup(&self, runtime: usize) -> bool {
        self.plan.runtimes[runtime].stage == Stage::Setup as u8
    }

    /// Pending members that can finish in some order.
    fn can_finish(&self, session_edges: bool) -> FixedBitSet {
        let mut found = FixedBitSet::with_capacity(self.plan.runtimes.len());
        loop {
            let before = found.count_ones(..);
            for runtime in self.pending.ones() {
                if !found.contains(runtime) && self.satisfied(runtime, &found, session_edges) {
                    found.insert(runtime);
                }
            }
            if found.count_ones(..) == before {
                return found;
            }
        }
    }
}

/// Pending setup runtimes that no order can satisfy because of needs of session scope. Cycles of one turn's needs are
/// the walk's business: those are skipped with `dependency-cycle`.
pub fn session_cycles(plan: &PlanHandle, session: &SessionRecord) -> Vec<RuntimeIx> {
    let count = plan.runtimes.len();
    let mut members = Members {
        plan,
        pending: FixedBitSet::with_capacity(count),
        blocked: FixedBitSet::with_capacity(count),
        done: FixedBitSet::with_capacity(count),
    };
    for runtime in pending_setup(plan, session) {
        members.pending.insert(runtime.index());
    }
    for (ix, row) in plan.runtimes.iter().enumerate() {
        if members.pending.contains(ix) {
            continue;
        }
        match session.setup_runtimes.get(row.id.as_str()) {
            Some(SetupState::Blocked { .. }) => members.blocked.insert(ix),
            Some(SetupState::Done { .. }) => members.done.insert(ix),
            _ => {}
        }
    }
    let (both, turn) = (members.can_finish(true), members.can_finish(false));
    members
        .pending
        .ones()
        .filter(|ix| turn.contains(*ix) && !both.contains(*ix))
        .map(|ix| RuntimeIx(u32::try_from(ix).unwrap_or(NONE)))
        .collect()
}

/// Blocks those members; answers whether there were any.
pub(crate) fn block_cycles(plan: &PlanHandle, session: &mut SessionRecord) -> bool {
    let cyclic = session_cycles(plan, session);
    for runtime in &cyclic {
        let row = &plan.runtimes[runtime.index()];
        let plugin_version = plan.plugins[row.plugin.to_native() as usize].version.as_str().to_owned();
        let state = SetupState::Blocked { reason: SESSION_CYCLE.to_owned(), plugin_version };
        session.setup_runtimes.insert(row.id.as_str().to_owned(), state);
    }
    if !cyclic.is_empty() && session.phase == Phase::Setup && pending_setup(plan, session).is_empty() {
        session.phase = Phase::Playing;
    }
    !cyclic.is_empty()
}

impl Engine {
    /// Gives a blocked setup runtime a fresh budget; it runs at the next action of the session.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionBusy`], `setup-not-blocked`.
    pub async fn retry_setup(&self, session: &str, runtime: &str) -> Result<SessionRecord, ExecError> {
        self.unblock(session, runtime, |plugin_version| SetupState::Pending {
            attempts: 0,
            last_error: None,
            plugin_version,
        })
        .await
    }

    /// Declares a blocked setup runtime done, for its package's present version.
    ///
    /// # Errors
    /// As [`Engine::retry_setup`].
    pub async fn waive_setup(&self, session: &str, runtime: &str) -> Result<SessionRecord, ExecError> {
        self.unblock(session, runtime, |plugin_version| SetupState::Done { plugin_version, waived: true }).await
    }

    async fn unblock(
        &self,
        session: &str,
        runtime: &str,
        state: impl FnOnce(String) -> SetupState,
    ) -> Result<SessionRecord, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let _lock = SessionLock::take(inner, session).await?;
        let mut record = inner.session(session)?;
        let Some(SetupState::Blocked { plugin_version, .. }) = record.setup_runtimes.get(runtime) else {
            return Err(ExecError::Conflict {
                code: "setup-not-blocked",
                message: format!("setup of {runtime:?} is not blocked in session {session:?}"),
            });
        };
        let state = state(plugin_version.clone());
        record.setup_runtimes.insert(runtime.to_owned(), state);
        record.updated_at = inner.now();
        inner.put_session(&record).await?;
        Ok(record)
    }
}
