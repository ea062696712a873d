//! Handles for benches and profiles: one piece of a turn at a time, without what surrounds it.

use std::sync::Arc;

use covel_graph::Json;
use tokio_util::sync::CancellationToken;

use crate::{
    active::ActivePlan,
    call_host::Shared,
    core::TurnCore,
    engine::Engine,
    error::ExecError,
    event::Emitter,
    execution::{Services, walk},
    select::select_turn,
};

/// A session's turn, ready to be walked again and again without committing.
pub struct WalkProbe {
    plan: Arc<ActivePlan>,
    shared: Arc<Shared>,
    services: Services,
}

impl WalkProbe {
    /// Freezes what one turn of this session would see.
    ///
    /// # Errors
    /// As [`Engine::execute`].
    pub async fn new(engine: &Engine, session_id: &str, message: &str) -> Result<Self, ExecError> {
        let session = engine.session(session_id)?;
        let plan = engine.0.active_plan(&session.active_plugins).await?;
        let turn = session.completed_player_turns + 1;
        let shared = engine.0.freeze(session, &plan, message, turn, &CancellationToken::new())?;
        let emitter = Emitter::new(None, Arc::clone(&plan), session_id, &shared.turn_id);
        let services = Services { js: engine.0.js.clone(), gateway: Arc::clone(&engine.0.gateway), emitter };
        Ok(Self { plan, shared, services })
    }

    /// Runtimes the turn triggers.
    pub fn runtimes(&self) -> usize {
        self.plan.plan.runtimes.len()
    }

    /// Selects and walks the turn; answers how many runtimes succeeded. Nothing is kept.
    pub async fn walk(&self) -> usize {
        let selection = select_turn(&self.plan.plan, &self.shared.session, self.shared.logical_turn);
        let core = TurnCore::new(self.plan.plan.clone(), Arc::clone(&self.plan.layers), selection);
        let walked = walk(Arc::clone(&self.shared), core, &self.services, Json::null()).await;
        walked.slots.iter().filter(|slot| slot.result().is_some_and(crate::results::RuntimeResult::is_ok)).count()
    }
}
