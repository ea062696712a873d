//! Lets the map move only while no read transaction is open.
//!
//! Growth must not starve and must not deadlock with a thread that opens a second read while it holds one, so it
//! closes the gate for short rounds and lets held-back readers pass between them.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::{error::StoreError, limits};

#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: usize,
    growing: bool,
    broken: Option<String>,
}

impl Gate {
    /// Enters for one read transaction. The caller calls [`Gate::leave`] after that transaction is gone.
    pub(crate) fn enter(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        while state.growing {
            self.changed.wait(&mut state);
        }
        if let Some(message) = &state.broken {
            return Err(StoreError::Broken { message: message.clone() });
        }
        state.open += 1;
        Ok(())
    }

    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.open -= 1;
        if state.open == 0 {
            self.changed.notify_all();
        }
    }

    /// Runs `action` while no reader is inside and none can enter, or gives up after about `patience`.
    pub(crate) fn alone<R>(&self, patience: Duration, action: impl FnOnce() -> R) -> Result<R, StoreError> {
        let mut state = self.state.lock();
        let mut waited = Duration::ZERO;
        loop {
            state.growing = true;
            self.changed.wait_while_for(&mut state, |state| state.open > 0, limits::GROWTH_ROUND.min(patience));
            state.growing = false;
            if state.open == 0 {
                // The lock is held: nobody enters before the action is done.
                let result = action();
                self.changed.notify_all();
                return Ok(result);
            }
            self.changed.notify_all();
            waited += limits::GROWTH_ROUND + limits::GROWTH_PAUSE;
            if waited >= patience {
                return Err(StoreError::MapBusy { waited_ms: patience.as_millis() as u64 });
            }
            self.changed.wait_while_for(&mut state, |state| state.open > 0, limits::GROWTH_PAUSE);
        }
    }

    /// Refuses every later read.
    pub(crate) fn break_down(&self, message: String) {
        self.state.lock().broken.get_or_insert(message);
    }
}
