//! Every limit of this crate, in one place.

/// Deepest event chain in one execution.
pub const MAX_EVENT_DEPTH: u32 = 16;
/// Most events in one execution.
pub const MAX_EVENTS_PER_TURN: usize = 1_000;
/// Largest event payload, bytes of JSON.
pub const MAX_EVENT_BYTES: usize = 64 * 1024;
/// Largest business output of a runtime, bytes of JSON.
pub const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// Most writes one runtime may buffer.
pub const MAX_WRITES_PER_RUNTIME: usize = 10_000;
/// Most bytes (values and operation lists) one runtime or command may write.
pub const MAX_WRITE_BYTES_PER_RUNTIME: usize = 32 * 1024 * 1024;
/// Deepest nesting of a record, a business value or an event payload; deeper JSON is not read back from a document.
pub const MAX_DATA_DEPTH: usize = 100;
/// Longest language tag of a session, bytes.
pub const MAX_LOCALE_BYTES: usize = 35;
/// Most bytes of text, and of one tool call's arguments, accepted in one model reply.
pub const MAX_REPLY_BYTES: usize = 1024 * 1024;
/// Most tool and model calls that one call of plugin code may make.
pub const MAX_REQUESTS_PER_CALL: usize = 256;
/// How often a call of plugin code is made again that was lost with another package's worker or another call's isolate.
pub const MAX_CALL_REPEATS: u8 = 2;
/// Deepest chain of services that call services. SVC-10
pub const MAX_SERVICE_DEPTH: usize = 8;
/// Largest input, and largest output, of one service call, bytes of JSON.
pub const MAX_SERVICE_BYTES: usize = 1024 * 1024;
/// Largest `timeoutMs` of a service call. SVC-5
pub const MAX_SERVICE_TIMEOUT_MS: f64 = 2_147_483_647.0;
/// Longest run of a service call without `timeoutMs`, milliseconds; its caller's own limit ends it earlier.
pub const SERVICE_EXECUTION_MS: u64 = 600_000;
/// How long after its deadline a call's wait ends even if its worker is kept from ending it.
pub const SERVICE_GRACE: std::time::Duration = std::time::Duration::from_millis(100);
/// Most operations that write services may stage on one runtime's result.
pub const MAX_OPERATIONS_PER_RUNTIME: usize = 1_000;
/// Most operations not applied that an agent is told of. WSV-10
pub const MAX_NOT_APPLIED: usize = 10;
/// Most service calls of one execution that its trace keeps.
pub const MAX_SERVICE_CALLS_TRACED: usize = 1_000;
/// Most operations in one `update`.
pub const MAX_UPDATE_OPS: usize = 256;
/// Longest player message, characters.
pub const MAX_MESSAGE_CHARS: usize = 100_000;
/// Outcomes of activation kept in memory.
pub const MAX_ACTIVATIONS: usize = 1_024;
/// Longest session id, bytes.
pub const MAX_SESSION_ID_BYTES: usize = 128;
/// Most turns executing at the same time in one engine; more wait.
pub const MAX_TURNS_IN_FLIGHT: usize = 64;
/// Messages of history offered to an agent when its manifest sets no window.
pub const DEFAULT_HISTORY_MESSAGES: usize = 40;
/// Stored messages read for one execution; an agent with a larger window sees no more than these.
pub const HISTORY_READ: usize = 200;
/// Longest namespace and key of a plugin-data record, bytes.
pub const MAX_DATA_NAME_BYTES: usize = 1_024;
/// Most log lines kept per runtime call.
pub const MAX_LOG_LINES_PER_CALL: usize = 200;
/// Characters of a log line's metadata that are kept. MOD-6
pub const MAX_LOG_META_CHARS: usize = 2_000;
/// Characters of one tool result shown to a model.
pub const MAX_TOOL_RESULT_CHARS: usize = 32_000;
/// Most tool calls accepted from one model reply.
pub const MAX_TOOL_CALLS_PER_REPLY: usize = 64;
/// Most characters in one session.
pub const MAX_CHARACTERS: usize = 1_024;
/// Most aliases of one character.
pub const MAX_ALIASES: usize = 64;
/// Most types a character schema names, `player` not counted.
pub const MAX_CHARACTER_TYPES: usize = 64;
/// Most attributes of a character schema.
pub const MAX_ATTRIBUTES: usize = 256;
/// Deepest nesting of an attribute's own members.
pub const MAX_ATTRIBUTE_DEPTH: usize = 4;
/// Most keys of a lorebook entry.
pub const MAX_LORE_KEYS: usize = 256;
/// Most committed messages a lorebook entry looks for its keys in.
pub const MAX_LORE_SCAN_DEPTH: u64 = 20;
/// Most dimensions of one session.
pub const MAX_DIMENSIONS: usize = 256;
/// Most entries of one `dimension.update`.
pub const MAX_DIMENSION_UPDATES: usize = 64;
/// Deepest nesting of a dimension's schema.
pub const MAX_DIMENSION_DEPTH: usize = 16;
/// Most nodes of a dimension's schema.
pub const MAX_DIMENSION_NODES: usize = 2_000;
/// Longest update rule of a dimension, characters.
pub const MAX_UPDATE_RULE_CHARS: usize = 8_000;
/// Resolved settlement receipts that are kept.
pub const MAX_RESOLVED_SETTLEMENTS: usize = 20;
/// Most characters bound to one seat.
pub const MAX_SEAT_CHARACTERS: usize = 1_024;

/// Jobs run at the same time by one engine, by default.
pub const DEFAULT_JOB_WORKERS: usize = 4;
/// Most jobs of one session that have not ended; more are not enqueued.
pub const MAX_OPEN_JOBS_PER_SESSION: usize = 1_000;
/// Ended jobs kept per session and runtime.
pub const MAX_TERMINAL_JOBS_PER_RUNTIME: usize = 20;
/// Longest chain of jobs that make jobs through their events.
pub const MAX_JOB_CHAIN: u32 = 16;
/// Longest wait of a job whose manifest sets none, milliseconds.
pub const DEFAULT_JOB_QUEUE_MS: u64 = 600_000;
/// Longest run of a job whose manifest sets none, milliseconds.
pub const DEFAULT_JOB_EXECUTION_MS: u64 = 600_000;
/// How long after its longest run a job's lease lapses, milliseconds.
pub const JOB_LEASE_MARGIN_MS: u64 = 60_000;
/// Between two maintenance scans of the jobs.
pub const JOB_SCAN_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);
/// After a scan that failed.
pub const JOB_SCAN_RETRY: std::time::Duration = std::time::Duration::from_secs(1);
/// Most messages a player may add to one running turn.
pub const MAX_STEERS_PER_TURN: usize = 16;
/// Longest reason of a suspension, characters.
pub const MAX_REASON_CHARS: usize = 2_000;
/// Largest schema of what a suspended runtime waits for, bytes of JSON.
pub const MAX_RESUME_SCHEMA_BYTES: usize = 64 * 1024;
/// Largest answer to a suspension, bytes of JSON.
pub const MAX_RESUME_DATA_BYTES: usize = 256 * 1024;
/// Largest stored suspension, bytes of JSON: conversation, inputs and buffered writes.
pub const MAX_SUSPENSION_BYTES: usize = 8 * 1024 * 1024;
/// Most open suspensions of a session.
pub const MAX_OPEN_SUSPENSIONS: usize = 256;
/// Resolved suspensions a session keeps, without what they went on with.
pub const MAX_RESOLVED_SUSPENSIONS: usize = 50;
/// How long a suspension can be resumed, milliseconds: seven days.
pub const MAX_SUSPENSION_AGE_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Most runtimes named by one retry.
pub const MAX_RETRY_TARGETS: usize = 20;
/// Most committed retries of one turn.
pub const MAX_RETRY_ATTEMPTS: usize = 100;
/// Longest id a client may give to a player's message, bytes.
pub const MAX_MESSAGE_ID_BYTES: usize = 128;
/// Sessions whose last execution is remembered in memory.
pub const MAX_REMEMBERED_EXECUTIONS: usize = 4_096;
/// After the first player turn, every so many get an automatic snapshot.
pub const AUTO_SNAPSHOT_TURNS: u32 = 5;
/// Automatic snapshots a session keeps, besides those something was forked from.
pub const MAX_AUTO_SNAPSHOTS: usize = 20;
/// Most snapshots of a session taken by hand.
pub const MAX_MANUAL_SNAPSHOTS: usize = 200;
/// Forks of one session that one client makes within [`FORK_WINDOW_MS`].
pub const MAX_FORKS_PER_WINDOW: usize = 10;
/// Milliseconds in which forks are counted.
pub const FORK_WINDOW_MS: u64 = 60_000;
/// Pairs of session and client whose forks are counted at the same time.
pub const MAX_FORK_CLIENTS: usize = 10_000;
/// Most records, and most namespaces, whose reading by one runtime a trace keeps.
pub const MAX_READS_TRACED: usize = 1_000;
/// Largest stored trace, bytes of JSON, its tape aside; beyond, parts are left out and it says so.
pub const MAX_TRACE_BYTES: usize = 1024 * 1024;
/// Most bytes of what one execution took from outside (model replies above all) that are kept for a replay.
pub const MAX_TAPE_BYTES: usize = 8 * 1024 * 1024;
/// Largest report of a job's progress, bytes of JSON.
pub const MAX_PROGRESS_BYTES: usize = 16 * 1024;
/// Most reports of one job; more are not passed on.
pub const MAX_PROGRESS_REPORTS: u64 = 10_000;
