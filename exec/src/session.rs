//! What is remembered of a session.

use std::collections::BTreeMap;

use covel_graph::Json;
use serde::{Deserialize, Serialize};

use crate::{services::operation::NotApplied, world::seat::Seat};

/// `setup` until every setup runtime is done or blocked, then `playing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Only the setup stage runs.
    #[default]
    Setup,
    /// Turns run.
    Playing,
}

/// `paused` and `ended` refuse actions; `ended` is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// Plays.
    #[default]
    Active,
    /// Rests.
    Paused,
    /// Over.
    Ended,
}

impl SessionStatus {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }
}

/// Where one setup runtime stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum SetupState {
    /// Not done yet.
    #[serde(rename_all = "camelCase")]
    Pending {
        /// Attempts so far.
        attempts: u32,
        /// The last failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<String>,
        /// Package version.
        plugin_version: String,
    },
    /// Done.
    #[serde(rename_all = "camelCase")]
    Done {
        /// Package version.
        plugin_version: String,
        /// Someone declared it done; it never said so itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waived: bool,
    },
    /// Out of attempts.
    #[serde(rename_all = "camelCase")]
    Blocked {
        /// Why.
        reason: String,
        /// Package version.
        plugin_version: String,
    },
}

/// A session as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Id.
    pub id: String,
    /// World, if any.
    pub world_id: Option<String>,
    /// Language.
    pub locale: String,
    /// Status.
    pub status: SessionStatus,
    /// Phase.
    pub phase: Phase,
    /// Committed player turns.
    pub completed_player_turns: u32,
    /// Setup runtimes by id.
    pub setup_runtimes: BTreeMap<String, SetupState>,
    /// What the player asked for.
    pub requested_plugins: Vec<String>,
    /// What the player excluded.
    pub excluded_plugins: Vec<String>,
    /// What is active.
    pub active_plugins: Vec<String>,
    /// Digest of the plan it last used: the one of its creation, then of each committed execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Player settings: plugin -> key -> value.
    #[serde(default)]
    pub settings: BTreeMap<String, BTreeMap<String, Json>>,
    /// Seed text of deterministic randomness.
    pub seed: String,
    /// Opaque id of this incarnation; new when an id is recreated.
    pub incarnation: String,
    /// Trigger ledger of runtimes with a budget or a cooldown: runtime -> (runs, logical turn of the last run).
    #[serde(default)]
    pub triggers: BTreeMap<String, TriggerRecord>,
    /// Events of this session so far: the number of turns stored, which names the next one.
    pub turn_count: u64,
    /// Who plays. SEA-1
    #[serde(default)]
    pub seats: Vec<Seat>,
    /// Operations of that execution's runtimes that came to nothing, for whoever started them. WSV-10
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<NotApplied>,
    /// The newest committed execution of the main loop: what a sourced retry may start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story_turn: Option<String>,
    /// Open suspensions by runtime, at most one each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub suspended: BTreeMap<String, OpenSuspension>,
    /// The execution that was running when the process before this one ended without warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// ISO time.
    pub created_at: String,
    /// ISO time.
    pub updated_at: String,
}

/// A runtime that waits for someone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSuspension {
    /// Its suspension.
    pub id: String,
    /// The logical turn it belongs to, by the turn that began it, when that turn is counted only once nothing of it
    /// waits any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
}

/// An execution that ended with its process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    /// Its turn.
    pub turn_id: String,
    /// The caller's id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What was asked: `{type, payload}`.
    pub action: Json,
    /// ISO time.
    pub started_at: String,
}

/// How often and when a runtime last ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRecord {
    /// Runs that committed.
    pub count: u32,
    /// Logical turn of the last one.
    pub last_turn: u32,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    /// Id.
    pub id: String,
    /// Turn.
    pub turn_id: String,
    /// `user assistant system`.
    pub role: String,
    /// Text.
    pub content: String,
    /// `player system runtime`.
    pub source_type: String,
    /// Package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_plugin_id: Option<String>,
    /// Runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_runtime_id: Option<String>,
    /// ISO time.
    pub created_at: String,
}
