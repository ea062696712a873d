//! Every limit of this crate, in one place.

/// Largest manifest or any other text file of a package, in bytes.
pub const MAX_TEXT_FILE_BYTES: u64 = 1024 * 1024;
/// Most files in one package.
pub const MAX_PACKAGE_FILES: usize = 2_000;
/// Most bytes in all files of one package.
pub const MAX_PACKAGE_BYTES: u64 = 200 * 1024 * 1024;
/// Most runtimes in one package.
pub const MAX_RUNTIMES_PER_PACKAGE: usize = 10_000;
/// Deepest nesting of a YAML or JSON document from outside.
pub const MAX_DOCUMENT_DEPTH: usize = 64;
/// Most nodes (scalars, lists, maps) in a YAML document; also bounds alias expansion.
pub const MAX_DOCUMENT_NODES: usize = 200_000;
/// Largest stored plugin-data value, in bytes of UTF-8 JSON.
pub const MAX_DATA_VALUE_BYTES: usize = 256 * 1024;
/// Most bytes of text in a YAML document, aliases unfolded.
pub const MAX_DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Most diagnostics kept for one package; the rest are counted, not kept.
pub const MAX_DIAGNOSTICS: usize = 200;
/// Deepest folder inside a package.
pub const MAX_FOLDER_DEPTH: usize = 32;
/// Largest HTML file of a `webview`, in bytes. UIP-5
pub const MAX_WEBVIEW_BYTES: u64 = 512 * 1024;
/// Most problems a schema validation lists.
pub const MAX_SCHEMA_ISSUES: usize = 32;
/// Most steps back a schema pattern may take on one text; beyond, the text does not match.
pub const MAX_PATTERN_BACKTRACKS: usize = 100_000;
/// Largest compiled schema pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// Most steps in comparing two schemas; beyond, the value decides at the turn.
pub const MAX_COMPATIBILITY_STEPS: usize = 4_000;
/// Largest schema compared with another, in bytes of JSON.
pub const MAX_COMPATIBILITY_BYTES: usize = 64 * 1024;
/// Deepest nesting followed in comparing two schemas.
pub const MAX_COMPATIBILITY_DEPTH: usize = 48;
/// Most listed values tried one by one in comparing two schemas.
pub const MAX_COMPATIBILITY_VALUES: usize = 1_000;
/// Most effects hazards listed, for one layer and for one link.
pub const MAX_HAZARDS_LISTED: usize = 100;
