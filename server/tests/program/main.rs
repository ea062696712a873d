//! The `covel` program from outside: documents, exit statuses, help, serving, stopping, being killed.

#![allow(clippy::unwrap_used)]

mod archives;
mod bench;
mod cases;
mod documents;
mod help;
mod interrupts;
mod jobs;
mod new;
mod serving;
mod support;
mod traces;
