//! The HTTP surface, asked in-process: every route with good and bad input, and the two event streams.

mod actions;
mod bad_input;
mod page;
mod routes;
mod streams;
mod support;
