//! What the commit of an execution settles besides its units: suspensions opened and resolved, the count of a logical
//! turn, retries of an earlier turn, ids given to the player's message.

use covel_graph::{Json, SessionId};
use covel_store::Tx;
use serde_json::json;

use crate::{
    commit::Refused,
    document::{ErrorInfo, RuntimeStatus, SuspensionDocument, TurnDocument},
    session::{OpenSuspension, SessionRecord},
    suspend::{Resolution, SuspensionRecord, resolve, still_waits},
};

/// Kind and id of the newest thing a player entered.
pub(crate) const PLAYER_INPUT_LATEST: &str = "player-input-latest";
/// Kind of the ids that clients gave to messages.
const INPUT_MESSAGE: &str = "input-message";
/// Kind and id of the retries of the current story turn.
pub(crate) const RETRIES: &str = "retries";
/// Kind and id of results of the current story turn that its document must not show.
pub(crate) const HIDDEN_RESULTS: &str = "hidden-results";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CommitExtras {
    /// It is an execution of the main loop: the one a later retry may start from.
    pub main_loop: bool,
    /// The turn whose runtimes it ran again.
    pub retry_of: Option<String>,
    /// Committed retries of that turn before this one.
    pub earlier_retries: Vec<String>,
    /// The suspension it went on with.
    pub resolves: Option<Resolves>,
    /// Id of the player's message.
    pub input_message_id: Option<String>,
    /// What the player added while it ran.
    pub steers: Vec<String>,
    /// Outputs of concealed runtimes, kept while one of the turn's runtimes can be run again.
    pub hidden: Option<Json>,
}

/// A suspension that ends with this commit.
#[derive(Debug)]
pub(crate) struct Resolves {
    /// Suspension.
    pub suspension_id: String,
    /// Its runtime.
    pub runtime_id: String,
    /// The logical turn that waits for it.
    pub counts: Option<String>,
}

fn rule(code: &'static str, message: String) -> Refused {
    Refused::Rule(ErrorInfo::new(code, message))
}

impl CommitExtras {
    /// What must still hold when the transaction begins.
    pub(crate) fn check(
        &self,
        tx: &mut Tx<'_>,
        session_id: &SessionId,
        session: &SessionRecord,
        message: Option<&str>,
    ) -> Result<(), Refused> {
        if let Some(resolves) = &self.resolves {
            let open = session.suspended.get(&resolves.runtime_id);
            if open.is_none_or(|open| open.id != resolves.suspension_id) {
                return Err(rule(
                    "suspension-resolved",
                    format!("suspension {:?} is resolved already", resolves.suspension_id),
                ));
            }
        }
        if let Some(id) = &self.input_message_id
            && message.is_some()
            && tx.read().get_item(session_id, INPUT_MESSAGE, id)?.is_some()
        {
            return Err(rule("input-message-conflict", format!("message {id:?} belongs to a committed turn")));
        }
        Ok(())
    }

    /// The logical turn a new suspension holds up.
    pub(crate) fn counts_of(&self, counts_turn: bool, turn_id: &str) -> Option<String> {
        match &self.resolves {
            Some(resolves) => resolves.counts.clone(),
            None => counts_turn.then(|| turn_id.to_owned()),
        }
    }

    /// Settles all that; answers whether the turn's count must wait.
    #[allow(clippy::too_many_arguments)] // one caller, each a different part of the commit
    pub(crate) fn settle(
        &self,
        tx: &mut Tx<'_>,
        session_id: &SessionId,
        session: &mut SessionRecord,
        document: &mut TurnDocument,
        suspended: &[&SuspensionRecord],
        counts_turn: bool,
        now: &str,
    ) -> Result<bool, Refused> {
        session.interrupted = None;
        if let Some(resolves) = &self.resolves {
            session.suspended.remove(&resolves.runtime_id);
            let resolution = Resolution { turn_id: Some(document.turn_id.clone()), at: now.to_owned() };
            resolve(tx, session_id, &resolves.suspension_id, resolution)?;
            document.resumed = Some(resolves.suspension_id.clone());
        }
        let counts = self.counts_of(counts_turn, &document.turn_id);
        for record in suspended {
            let open = OpenSuspension { id: record.id.clone(), counts: counts.clone() };
            session.suspended.insert(record.runtime_id.clone(), open);
            document.suspensions.push(SuspensionDocument {
                suspension_id: record.id.clone(),
                runtime_id: record.runtime_id.clone(),
                reason: record.reason.clone(),
                resume_schema: record.resume_schema.clone(),
            });
        }
        if let Some(turn) = self.resolves.as_ref().and_then(|resolves| resolves.counts.as_deref())
            && !still_waits(&session.suspended, turn)
        {
            session.completed_player_turns += 1;
        }
        if self.main_loop {
            session.story_turn = Some(document.turn_id.clone());
            let failed = document.runtimes.iter().any(|row| row.status == RuntimeStatus::Failed);
            if let Some(hidden) = self.hidden.as_ref().filter(|_| failed) {
                tx.put_item(session_id, HIDDEN_RESULTS, HIDDEN_RESULTS, hidden)?;
            }
        }
        if let Some(source) = &self.retry_of {
            document.retry_of = Some(source.clone());
            let mut turns = self.earlier_retries.clone();
            turns.push(document.turn_id.clone());
            let record = Json::from_value(json!({"source": source, "turns": turns}));
            tx.put_item(session_id, RETRIES, RETRIES, &record)?;
        }
        if let (Some(id), false) = (&self.input_message_id, document.message.is_empty()) {
            let record = Json::from_value(json!({"turnId": document.turn_id}));
            tx.put_item(session_id, INPUT_MESSAGE, id, &record)?;
        }
        document.steers.clone_from(&self.steers);
        Ok(counts_turn && !suspended.is_empty())
    }
}
