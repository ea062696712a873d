//! Every limit of this crate, in one place.

use std::time::Duration;

/// Worker threads of a [`JsHost`](crate::JsHost), when not told.
pub const DEFAULT_WORKERS: usize = 2;
/// Heap of one isolate, when not told, in bytes.
pub const DEFAULT_HEAP_BYTES: usize = 64 * 1024 * 1024;
/// Heap at which an isolate looks for garbage in cycles for the first time, in bytes: above what loading the author's library
/// and zod takes, which leaves none. A small heap is looked through at a quarter of its limit.
pub const FIRST_COLLECTION_BYTES: usize = 4 * 1024 * 1024;
/// JavaScript stack of one isolate, when not told, in bytes.
pub const DEFAULT_STACK_BYTES: usize = 512 * 1024;
/// Native stack a worker has beyond the JavaScript stack, in bytes.
pub const WORKER_STACK_HEADROOM: usize = 2 * 1024 * 1024;
/// Longest entry initialisation. LIF-4
pub const ENTRY_LIMIT: Duration = Duration::from_secs(15);
/// Longest cleanup after a failed initialisation, and longest disposing. LIF-4
pub const CLEANUP_LIMIT: Duration = Duration::from_secs(15);
/// Longest uninterrupted run of code that belongs to no call (an entry's timers, abort listeners).
pub const BACKGROUND_TURN_LIMIT: Duration = Duration::from_millis(200);
/// How long after its deadline a worker may be stuck in a native builtin before it is replaced.
pub const STUCK_GRACE: Duration = Duration::from_millis(300);
/// How often the watchdog looks at busy workers.
pub const WATCHDOG_PERIOD: Duration = Duration::from_millis(25);
/// How long an interrupted isolate may go on emptying its job queue before it is replaced.
pub const DRAIN_AFTER_INTERRUPT: Duration = Duration::from_millis(50);
/// Deepest nesting of a value that leaves or enters an isolate.
pub const MAX_JSON_DEPTH: usize = 128;
/// Largest argument plugin code may hand to one host function, in bytes of JSON.
pub const MAX_HOST_ARGUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Largest `details` of an error that are kept, in bytes of JSON.
pub const MAX_ERROR_DETAILS_BYTES: usize = 16 * 1024;
/// Largest message or stack of an error that is kept, in bytes.
pub const MAX_ERROR_TEXT_BYTES: usize = 8 * 1024;
/// Largest log message, in bytes.
pub const MAX_LOG_BYTES: usize = 16 * 1024;
/// Most timers alive in one isolate.
pub const MAX_TIMERS: usize = 10_000;
/// Most host requests one call may have in flight.
pub const MAX_PENDING_REQUESTS: usize = 64;
/// Most log lines of one call; later ones are dropped.
pub const MAX_LOG_LINES: u32 = 1_000;
/// Largest module source, in bytes.
pub const MAX_MODULE_BYTES: usize = 1024 * 1024;
/// Most registrations of one entry.
pub const MAX_REGISTRATIONS: usize = 1_000;
/// After so many interrupted turns in a row an isolate is replaced: its code may have broken its own globals.
pub const MAX_STRIKES: u32 = 2;
/// A document of so many nodes (values and keys) or more is converted piece by piece, as it is read.
pub const LAZY_DOCUMENT_NODES: usize = 128;
/// A part of such a document with so many nodes is left for when it is read; smaller ones are cheaper to convert at once.
pub const LAZY_MEMBER_NODES: usize = 24;
/// Most unhandled rejections of one turn that are logged.
pub const MAX_REJECTIONS: usize = 32;
/// Most byte code of package modules that is kept for later generations, in bytes; what was unused for longest goes first.
pub const MAX_IMAGE_CACHE_BYTES: usize = 8 * 1024 * 1024;
