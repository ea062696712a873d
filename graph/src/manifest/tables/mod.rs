//! The tables of both manifest kinds: what `shape.rs` checks with and `editor.rs` describes.

mod contributes;
mod plugin;
mod runtime;

use super::{
    grammar::{self, Grammar},
    shape::{Field, Fields, ListShape, MapShape, Moved, Shape},
};

pub(crate) use plugin::PLUGIN;
pub(crate) use runtime::RUNTIME;

/// Longest list where the format states no limit.
pub(super) const MANY: usize = 1_000;
/// Largest count or time, so that every value fits 32 bits.
pub(super) const BIG: i64 = i32::MAX as i64;
/// Longest label.
pub(super) const LABEL: usize = 4_000;

pub(super) const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, required: true, shape, doc }
}
pub(super) const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, required: false, shape, doc }
}
pub(super) const fn object(name: &'static str, fields: &'static [Field]) -> Fields {
    Fields { name, fields, open: false, moved: &[] }
}
pub(super) const fn list(of: Shape, max: usize) -> ListShape {
    ListShape { of, min: 0, max, unique: false }
}
pub(super) const fn set(of: Shape, max: usize) -> ListShape {
    ListShape { of, min: 0, max, unique: true }
}
pub(super) const fn map(key: &'static Grammar, of: Shape, max: usize) -> MapShape {
    MapShape { key, of, min: 0, max }
}
pub(super) const fn v1(name: &'static str, advice: &'static str) -> Moved {
    Moved { name, code: "v1-field", advice }
}
pub(super) const fn package_field(name: &'static str) -> Moved {
    Moved { name, code: "package-field-in-runtime", advice: "package fields stand in the root PLUGIN.md only" }
}
pub(super) const fn misplaced(name: &'static str, advice: &'static str) -> Moved {
    Moved { name, code: "misplaced-field", advice }
}

pub(super) const COUNT: Shape = Shape::Int(1, BIG);
pub(super) const CONTRACT: Shape = Shape::Text(&grammar::CONTRACT);
