//! Every limit of this crate, in one place.

use std::time::Duration;

/// Largest request body, in bytes; more is answered 413.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Longest wait for a request body.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for the head of a request, also the first and also on a connection kept for another request.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes; more is answered 431.
pub const MAX_HEAD_BYTES: usize = 128 * 1024;
/// Longest wait for one write to a client that does not read.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most open connections; more wait in the system's queue.
pub const MAX_CONNECTIONS: usize = 2_048;
/// Event streams open for one session.
pub const MAX_STREAMS_PER_SESSION: usize = 8;
/// Event streams open altogether.
pub const MAX_STREAMS: usize = 512;
/// Events kept for replay, one session.
pub const REPLAY_EVENTS: usize = 1_024;
/// Bytes of events kept for replay, one session.
pub const REPLAY_BYTES: usize = 1024 * 1024;
/// Sessions with kept events; sessions with open streams come on top.
pub const REPLAY_SESSIONS: usize = 256;
/// Events sent to a stream in one piece.
pub const STREAM_BATCH: usize = 128;
/// Silence after which an event stream says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// Frames waiting for the client of an action.
pub const ACTION_QUEUE: usize = 256;
/// Longest wait for the client of an action to take a frame; afterwards the turn goes on without it.
pub const ACTION_SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for running turns when the server stops; afterwards they are cancelled.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait after that for cancelled turns and open connections.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest `requestId`, in bytes.
pub const MAX_REQUEST_ID_BYTES: usize = 128;
/// Longest player message, in characters.
pub const MAX_MESSAGE_CHARS: usize = covel_exec::limits::MAX_MESSAGE_CHARS;
/// Longest command line, in characters.
pub const MAX_COMMAND_CHARS: usize = 10_000;
/// Package ids in one request.
pub const MAX_PLUGIN_IDS: usize = 500;
/// Largest header with player settings, in bytes before decoding.
pub const MAX_SETTINGS_HEADER_BYTES: usize = 64 * 1024;
/// Rows of a list when the request sets no limit.
pub const DEFAULT_LIST: usize = 200;
/// Most rows of a list.
pub const MAX_LIST: usize = 500;
/// Largest configuration, script or case file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Archives removed in one transaction.
pub const GC_BATCH: usize = 4_096;
/// Shortest beginning of a digest that names a stored plan, in hex digits.
pub const MIN_DIGEST_PREFIX: usize = 4;
/// Ports tried after the wanted one is taken.
pub const PORT_TRIES: u16 = 20;
/// Cases in one case file.
pub const MAX_CASES: usize = 1_000;
/// Executions before the one a case is about.
pub const MAX_CASE_STEPS: usize = 20;
/// Log lines kept of one case.
pub const MAX_CASE_LOGS: usize = 10_000;
/// Deepest UI spec that is translated; deeper parts are handed out as they are.
pub const MAX_SPEC_DEPTH: usize = 64;
/// Longest name `covel new` takes, in characters: that of a package id.
pub const MAX_PACKAGE_NAME: usize = 100;
