//! The world's way in: the HTTP server, the embedded page, the `covel` program.
//!
//! Here live requests and answers, event streams, command-line flags, loading of folders, model choice.
//! Not here: what a turn does (`covel-exec`), what a package says (`covel-graph`), how a model is spoken to
//! (`covel-gateway`). Only this crate knows HTTP; only `main.rs` touches the process's own streams.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod assets;
pub mod bus;
pub mod cli;
pub mod config;
pub mod error;
mod findings;
pub mod http;
pub mod limits;
pub mod load;
pub mod models;
pub mod running;
pub mod serve;
pub mod snapshots;

pub use error::ServerError;
