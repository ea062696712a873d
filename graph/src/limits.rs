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
