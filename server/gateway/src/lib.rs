//! Language models for Covel: the offline storyteller and HTTP protocols.
//!
//! - [`offline`]: the storyteller that needs no key and no network.
//! - `config`: `llm.toml`, which model answers for which slot (feature `http`).
//! - `http`: the gateway over HTTP; `protocol` inside it knows how providers' requests and replies look (feature `http`).
//! - `testing`: a local server that plays scripts back (feature `testing`).
//!
//! Not here: prompts, tools, budgets of a turn (`covel-exec`), and anything that reads the environment by itself.

pub mod offline;

#[cfg(feature = "http")]
pub mod config;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
pub mod limits;
#[cfg(feature = "http")]
mod protocol;
#[cfg(feature = "http")]
pub mod secret;
#[cfg(feature = "http")]
pub mod sse;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "http")]
pub use config::{ConfigError, LlmConfig, Surroundings};
#[cfg(feature = "http")]
pub use http::{HttpGateway, HttpOptions};
