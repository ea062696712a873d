//! Which job starts next: sessions in turn, one job of a runtime at a time, each runtime's jobs in the order in which
//! they were enqueued. Pure: no clock, no store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A job as the queue knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Id.
    pub job_id: String,
    /// Session.
    pub session_id: String,
    /// Package.
    pub plugin_id: String,
    /// Runtime.
    pub runtime_id: String,
    /// Incarnation of the session.
    pub incarnation: String,
    /// Packages that must be published before it starts, beside its own: those that were active in its session when
    /// the data folder was opened.
    pub packages: Vec<String>,
    /// The next execution waits for it this long, milliseconds; 0 = it does not.
    pub settle_ms: u64,
}

/// Waiting and started jobs.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Waiting jobs by session, oldest first.
    waiting: BTreeMap<String, VecDeque<Entry>>,
    /// Sessions with waiting jobs, whose turn it is first.
    turn: VecDeque<String>,
    /// Started jobs by (session, job).
    active: BTreeMap<(String, String), Entry>,
    /// (session, runtime) of started jobs.
    busy: BTreeSet<(String, String)>,
}

impl Queue {
    /// Adds a job at the end of its session's line.
    pub fn push(&mut self, entry: Entry) {
        let line = self.waiting.entry(entry.session_id.clone()).or_default();
        if line.is_empty() {
            self.turn.push_back(entry.session_id.clone());
        }
        line.push_back(entry);
    }

    /// Starts the next job that may start, of those that are `ready`. Its session then waits behind all others.
    pub fn start(&mut self, ready: impl Fn(&Entry) -> bool) -> Option<Entry> {
        for place in 0..self.turn.len() {
            let session = self.turn[place].clone();
            let Some(line) = self.waiting.get_mut(&session) else { continue };
            let mut passed = BTreeSet::new();
            // The oldest of each runtime only: a later one never overtakes it.
            let at = line.iter().position(|entry| {
                passed.insert(entry.runtime_id.as_str())
                    && !self.busy.contains(&(session.clone(), entry.runtime_id.clone()))
                    && ready(entry)
            });
            let Some(entry) = at.and_then(|at| line.remove(at)) else { continue };
            self.turn.remove(place);
            if line.is_empty() {
                self.waiting.remove(&session);
            } else {
                self.turn.push_back(session.clone());
            }
            self.busy.insert((session.clone(), entry.runtime_id.clone()));
            self.active.insert((session, entry.job_id.clone()), entry.clone());
            return Some(entry);
        }
        None
    }

    /// A started job is over.
    pub fn end(&mut self, session: &str, job: &str) {
        if let Some(entry) = self.active.remove(&(session.to_owned(), job.to_owned())) {
            self.busy.remove(&(entry.session_id, entry.runtime_id));
        }
    }

    /// Takes a waiting job out of the line; answers whether it was there.
    pub fn withdraw(&mut self, session: &str, job: &str) -> bool {
        let Some(line) = self.waiting.get_mut(session) else { return false };
        let before = line.len();
        line.retain(|entry| entry.job_id != job);
        let found = line.len() < before;
        if line.is_empty() {
            self.waiting.remove(session);
            self.turn.retain(|other| other != session);
        }
        found
    }

    /// Takes all waiting jobs of a session out of the line.
    pub fn withdraw_all(&mut self, session: &str) -> Vec<Entry> {
        self.turn.retain(|other| other != session);
        self.waiting.remove(session).map(Vec::from).unwrap_or_default()
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.values().flatten()
    }

    /// Jobs that run.
    pub fn active(&self) -> impl Iterator<Item = &Entry> {
        self.active.values()
    }

    /// Has a worker this job?
    pub fn is_active(&self, session: &str, job: &str) -> bool {
        self.active.contains_key(&(session.to_owned(), job.to_owned()))
    }

    /// How many jobs run.
    pub fn active_count(&self) -> usize {
        self.active.len()
    }

    /// The longest wait that open jobs of a session ask of its next execution, milliseconds; `None` = no wait.
    pub fn settle_ms(&self, session: &str) -> Option<u64> {
        let waiting = self.waiting.get(session).into_iter().flatten();
        let active = self.active().filter(|entry| entry.session_id == session);
        waiting.chain(active).map(|entry| entry.settle_ms).filter(|wait| *wait > 0).max()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry(session: &str, job: &str, runtime: &str) -> Entry {
        Entry {
            job_id: job.into(),
            session_id: session.into(),
            plugin_id: "p".into(),
            runtime_id: runtime.into(),
            incarnation: String::new(),
            packages: Vec::new(),
            settle_ms: 0,
        }
    }

    fn started(queue: &mut Queue) -> String {
        queue.start(|_| true).map_or_else(|| "-".to_owned(), |entry| entry.job_id)
    }

    #[test]
    fn sessions_take_turns_however_many_jobs_one_has() {
        let mut queue = Queue::default();
        for n in 0..4 {
            queue.push(entry("a", &format!("a{n}"), &format!("r{n}")));
        }
        queue.push(entry("b", "b0", "r"));
        queue.push(entry("c", "c0", "r"));
        let order: Vec<String> = (0..7).map(|_| started(&mut queue)).collect();
        assert_eq!(order, ["a0", "b0", "c0", "a1", "a2", "a3", "-"]);
    }

    #[test]
    fn one_job_of_a_runtime_at_a_time_in_the_order_of_the_line() {
        let mut queue = Queue::default();
        for (job, runtime) in [("1", "x"), ("2", "x"), ("3", "y"), ("4", "x")] {
            queue.push(entry("s", job, runtime));
        }
        assert_eq!([started(&mut queue), started(&mut queue), started(&mut queue)], ["1", "3", "-"]);
        queue.end("s", "1");
        assert_eq!([started(&mut queue), started(&mut queue)], ["2", "-"]);
        queue.end("s", "2");
        assert_eq!(started(&mut queue), "4");
    }

    #[test]
    fn a_job_that_is_not_ready_holds_back_its_own_runtime_only() {
        let mut queue = Queue::default();
        for (job, runtime) in [("1", "x"), ("2", "x"), ("3", "y")] {
            queue.push(entry("s", job, runtime));
        }
        assert_eq!(queue.start(|entry| entry.job_id != "1").unwrap().job_id, "3");
        assert!(queue.start(|entry| entry.job_id != "1").is_none());
        assert!(queue.withdraw("s", "1") && !queue.withdraw("s", "1"));
        assert_eq!(started(&mut queue), "2");
        assert_eq!((queue.waiting().count(), queue.active_count()), (0, 2));
    }
}
