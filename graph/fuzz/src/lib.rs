//! What the fuzz targets share: the text form of a package, and what must hold of anything that came out.
//!
//! A target panics when a rule does not hold; libFuzzer keeps the input. Nothing here touches a disk.

pub mod bundle;
pub mod rules;
