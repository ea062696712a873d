//! The `covel` program from outside: documents, exit statuses, help, serving, stopping, being killed.

#![allow(clippy::unwrap_used)]

mod cases;
mod documents;
mod help;
mod serving;
mod support;
