//! Cross-crate suites and case tables.
