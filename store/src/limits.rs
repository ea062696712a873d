//! Every limit of this crate, in one place.

use std::time::Duration;

/// Smallest memory map, in bytes. Smaller requests are raised to it.
pub const MIN_MAP_BYTES: usize = 1024 * 1024;
/// Default memory map, in bytes. The file stays sparse: only written pages take disk.
pub const DEFAULT_MAP_BYTES: usize = 1024 * 1024 * 1024;
/// Default ceiling of map growth, in bytes: a store never exceeds it.
#[cfg(target_pointer_width = "64")]
pub const DEFAULT_MAX_MAP_BYTES: usize = 1024 * 1024 * 1024 * 1024;
/// Default ceiling of map growth, in bytes: a store never exceeds it.
#[cfg(not(target_pointer_width = "64"))]
pub const DEFAULT_MAX_MAP_BYTES: usize = 1024 * 1024 * 1024;
/// Map sizes are multiples of this many bytes (a multiple of every page size in use).
pub const MAP_STEP_BYTES: usize = 64 * 1024;
/// Default number of read transactions that may be open at once.
pub const DEFAULT_MAX_READERS: u32 = 1024;
/// Most read transactions that may be configured.
pub const MAX_READERS: u32 = 65_536;

/// Most transactions waiting for the writer; the next one is refused with `store-busy`.
pub const MAX_WAITING_TRANSACTIONS: usize = 65_536;
/// Most transactions in one group commit.
pub const MAX_BATCH_TRANSACTIONS: usize = 512;
/// A group commit takes no further transaction once it holds this many bytes.
pub const MAX_BATCH_BYTES: usize = 64 * 1024 * 1024;
/// Most bytes (keys and values) one transaction may write.
pub const MAX_TRANSACTION_BYTES: usize = 512 * 1024 * 1024;
/// Deepest nesting of savepoints.
pub const MAX_SAVEPOINT_DEPTH: usize = 64;
/// Largest single record other than plugin data, in bytes.
pub const MAX_RECORD_BYTES: usize = 256 * 1024 * 1024;
/// Most records in one (session, plugin, namespace).
pub const MAX_RECORDS_PER_NAMESPACE: u64 = 100_000;
/// Most rows one page of turns or messages returns, whatever was asked for.
pub const MAX_PAGE_ROWS: usize = 10_000;

/// Most entries a session's journal keeps; older ones are dropped.
pub const MAX_JOURNAL_ENTRIES: u64 = 10_000;
/// Most bytes a session's journal keeps.
pub const MAX_JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
/// Most bytes of a journal cause's kind and of its id; longer ones are cut.
pub const MAX_CAUSE_BYTES: usize = 256;
/// Most traces a session keeps; older ones are dropped.
pub const MAX_TRACES: u64 = 10_000;
/// Most bytes a session's traces keep.
pub const MAX_TRACES_BYTES: u64 = 256 * 1024 * 1024;

/// Longest key LMDB takes, in bytes.
pub const MAX_LMDB_KEY_BYTES: usize = 511;
/// Most text parts in one key.
pub const MAX_KEY_PARTS: usize = 4;
/// Longest encoded text part, terminator included; a longer one is cut and hashed.
pub const MAX_KEY_PART_BYTES: usize = 120;
/// How many leading bytes of a hashed part stay readable (and ordered) in the key.
pub const HASHED_PART_HEAD_BYTES: usize = 80;

/// How many bytes are written to tell a full disk from a broken one.
pub const DISK_PROBE_BYTES: usize = 64 * 1024;

/// How long growth of the map holds new readers back before it lets them pass and tries again.
pub const GROWTH_ROUND: Duration = Duration::from_millis(200);
/// How long it lets them pass.
pub const GROWTH_PAUSE: Duration = Duration::from_millis(20);
/// By default, how long growth tries before the commit fails with `store-map-busy`.
pub const DEFAULT_GROWTH_PATIENCE: Duration = Duration::from_secs(10);
/// The longest patience that may be configured.
pub const MAX_GROWTH_PATIENCE: Duration = Duration::from_secs(600);

const _: () = assert!(MAX_KEY_PARTS * MAX_KEY_PART_BYTES + 8 <= MAX_LMDB_KEY_BYTES);
const _: () = assert!(HASHED_PART_HEAD_BYTES + 2 + 32 <= MAX_KEY_PART_BYTES);
