//! The HTTP surface, asked in-process: every route with good and bad input, and the two event streams.

#![allow(clippy::unwrap_used)]

mod actions;
mod bad_input;
mod flow;
mod jobs;
mod page;
mod routes;
mod streams;
mod support;
