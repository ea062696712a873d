//! Which runtimes an execution triggers: a pure function of plan, session record and request.

use covel_graph::{RuntimeIx, Stage, archive::PlanHandle, plan::ArchivedRuntimeRow};
use fixedbitset::FixedBitSet;

use crate::{
    core::{Phase, PhaseKind, Status},
    session::{SessionRecord, SetupState},
};

/// Trigger codes of a plan row.
const AUTO: u8 = 0;
const SCHEDULED: u8 = 1;
const EVENT: u8 = 3;

/// Who runs, and who may follow.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Setup runtimes done in earlier executions.
    pub session_done: FixedBitSet,
    /// Event runtimes that may follow.
    pub eligible: FixedBitSet,
    /// Start manual targets even where what they need is not there.
    pub ignore_upstreams: bool,
    /// Runtimes that ended in an earlier execution, and how.
    pub seeds: Vec<(RuntimeIx, Status)>,
}

impl Selection {
    /// Does nobody run?
    pub fn is_empty(&self) -> bool {
        self.phases.iter().all(|phase| phase.members.is_clear())
    }
}

/// Start turn, budget and cooldown: the gates every automatic trigger passes. Setup has its own.
fn passes_gates(row: &ArchivedRuntimeRow, logical_turn: u32, session: &SessionRecord) -> bool {
    let max = row.max_trigger_count.to_native();
    let cooldown = row.cooldown_turns.to_native();
    if logical_turn < row.start_turn.to_native() {
        return false;
    }
    if max == 0 && cooldown == 0 {
        return true; // Most rows: no look-up.
    }
    let ledger = session.triggers.get(row.id.as_str()).copied().unwrap_or_default();
    (max == 0 || ledger.count < max)
        && (ledger.count == 0 || logical_turn > ledger.last_turn.saturating_add(cooldown) || cooldown == 0)
}

/// Why a runtime takes no part in a turn, for its trace. Gates first, as selection looks at them.
pub(crate) fn idle_reason(plan: &PlanHandle, session: &SessionRecord, logical_turn: u32, ix: usize) -> &'static str {
    let row = &plan.runtimes[ix];
    if row.subagent_only {
        return "subagent-only";
    }
    if row.stage == Stage::Setup as u8 {
        return "setup";
    }
    if !matches!(row.trigger, AUTO | SCHEDULED | EVENT) {
        return "manual";
    }
    if logical_turn < row.start_turn.to_native() {
        return "start-turn";
    }
    if !passes_gates(row, logical_turn, session) {
        let max = row.max_trigger_count.to_native();
        let count = session.triggers.get(row.id.as_str()).map_or(0, |ledger| ledger.count);
        return if max > 0 && count >= max { "max-trigger-count" } else { "cooldown" };
    }
    match row.trigger {
        SCHEDULED => "interval",
        EVENT if row.background => "background",
        EVENT => "no-event",
        // Selected, but the turn ended before its phase came.
        _ => "not-reached",
    }
}

fn event_followers(plan: &PlanHandle, session: &SessionRecord, logical_turn: u32) -> FixedBitSet {
    let mut eligible = FixedBitSet::with_capacity(plan.runtimes.len());
    for (ix, row) in plan.runtimes.iter().enumerate() {
        if row.trigger == EVENT && !row.subagent_only && passes_gates(row, logical_turn, session) {
            eligible.insert(ix);
        }
    }
    eligible
}

pub(crate) fn setup_done(plan: &PlanHandle, session: &SessionRecord) -> FixedBitSet {
    let mut done = FixedBitSet::with_capacity(plan.runtimes.len());
    for ix in stage_rows(plan, Stage::Setup) {
        let row = &plan.runtimes[ix];
        let version = &plan.plugins[row.plugin.to_native() as usize].version;
        // What an earlier version did is done again before anything builds on it.
        if let Some(SetupState::Done { plugin_version, .. }) = session.setup_runtimes.get(row.id.as_str())
            && plugin_version.as_str() == version.as_str()
        {
            done.insert(ix);
        }
    }
    done
}

fn stage_rows(plan: &PlanHandle, stage: Stage) -> std::ops::Range<usize> {
    let at = stage as usize;
    plan.stage_starts[at].to_native() as usize..plan.stage_starts[at + 1].to_native() as usize
}

/// Setup runtimes of the plan that are not settled for their package's current version.
pub fn pending_setup(plan: &PlanHandle, session: &SessionRecord) -> Vec<RuntimeIx> {
    stage_rows(plan, Stage::Setup)
        .filter(|&ix| {
            let row = &plan.runtimes[ix];
            let version = &plan.plugins[row.plugin.to_native() as usize].version;
            match session.setup_runtimes.get(row.id.as_str()) {
                None => true,
                Some(SetupState::Pending { .. }) => true,
                Some(SetupState::Done { plugin_version, .. } | SetupState::Blocked { plugin_version, .. }) => {
                    plugin_version.as_str() != version.as_str()
                }
            }
        })
        .map(|ix| RuntimeIx(u32::try_from(ix).unwrap_or(u32::MAX)))
        .collect()
}

/// A setup execution: the pending setup runtimes that wait for nobody, nothing else.
pub fn select_setup(plan: &PlanHandle, session: &SessionRecord) -> Selection {
    let mut members = FixedBitSet::with_capacity(plan.runtimes.len());
    for runtime in pending_setup(plan, session) {
        if session.suspended.contains_key(plan.runtimes[runtime.index()].id.as_str()) {
            continue;
        }
        members.insert(runtime.index());
    }
    Selection {
        phases: vec![Phase { kind: PhaseKind::Stage(Stage::Setup), members }],
        session_done: setup_done(plan, session),
        eligible: event_followers(plan, session, 1),
        ignore_upstreams: false,
        seeds: Vec::new(),
    }
}

/// A player turn: auto and scheduled runtimes of the four play stages.
pub fn select_turn(plan: &PlanHandle, session: &SessionRecord, logical_turn: u32) -> Selection {
    let phases = [Stage::PreTurn, Stage::Narrative, Stage::PostTurn, Stage::Audit]
        .into_iter()
        .map(|stage| {
            let mut members = FixedBitSet::with_capacity(plan.runtimes.len());
            for ix in stage_rows(plan, stage) {
                let row = &plan.runtimes[ix];
                let due = match row.trigger {
                    AUTO => true,
                    SCHEDULED => {
                        let interval = row.interval.to_native();
                        interval > 0 && logical_turn.is_multiple_of(interval)
                    }
                    _ => false,
                };
                if due && !row.subagent_only && passes_gates(row, logical_turn, session) {
                    members.insert(ix);
                }
            }
            Phase { kind: PhaseKind::Stage(stage), members }
        })
        .collect();
    Selection {
        phases,
        session_done: setup_done(plan, session),
        eligible: event_followers(plan, session, logical_turn),
        ignore_upstreams: false,
        seeds: Vec::new(),
    }
}

/// A manual execution of one runtime. All gates are bypassed; its events still find followers. UIW-2
pub fn select_manual(plan: &PlanHandle, session: &SessionRecord, logical_turn: u32, target: RuntimeIx) -> Selection {
    let mut members = FixedBitSet::with_capacity(plan.runtimes.len());
    members.insert(target.index());
    Selection {
        phases: vec![Phase { kind: PhaseKind::Manual, members }],
        session_done: setup_done(plan, session),
        eligible: event_followers(plan, session, logical_turn),
        ignore_upstreams: false,
        seeds: Vec::new(),
    }
}
