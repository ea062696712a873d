//! The audited module: the only one of this crate with `unsafe` code. It loads byte code this process compiled, copies bytes, and gives
//! each isolate memory up to its limit.
#![allow(unsafe_code)]

pub(crate) mod bytecode;
pub(crate) mod bytes;
pub(crate) mod heap;
