//! What is remembered: the LMDB environment, key codecs, commits.
//!
//! One folder holds one store. [`Store::read`] gives a consistent view, [`Store::transact`] one durable, atomic
//! change; all changes waiting at the same time share one LMDB transaction and one sync.
//! Not here: what a turn, a proposal or a plugin means. Records of sessions, turns and messages are JSON their
//! owner understands; this crate knows their keys, their order and their lifetimes.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;

mod codec;
mod env;
mod error;
#[doc(hidden)]
pub mod failpoint;
mod gate;
mod image;
mod journal;
mod keys;
pub mod limits;
mod overlay;
mod past;
mod read;
mod records;
mod ring;
mod store;
mod tables;
mod tx;
mod writer;

pub use error::{StoreError, TransactError};
pub use image::{ImageRow, SessionImage};
pub use journal::{Cause, JournalBounds, JournalChange, JournalEntry};
pub use past::{Leave, Past};
pub use read::{Reader, Snapshot};
pub use records::{
    data::{DataRecord, DataRow, DataVersion},
    item::ItemRow,
    message::MessageRow,
    session::SessionRow,
    trace::TraceRow,
    turn::TurnRow,
};
pub use store::{Durability, Store, StoreOptions, StoreStats};
pub use tx::Tx;
