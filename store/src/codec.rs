//! Record codec: a layout byte, numbers big-endian, texts with a `u32` length, and one tail (JSON text or bytes).
//!
//! The tail is stored as it was given, so reading a record never parses JSON.

use covel_graph::Json;

use crate::{error::StoreError, tables::Table};

/// The layout written today. A record of another layout is refused as damaged, never guessed at.
const LAYOUT: u8 = 1;

pub(crate) struct RecordWriter(Vec<u8>);

impl RecordWriter {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + 1);
        bytes.push(LAYOUT);
        Self(bytes)
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        // A text of 4 GiB cannot get here: records are limited before they are stored.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.0.extend(length.to_be_bytes());
        self.0.extend(text.as_bytes());
        self
    }

    pub(crate) fn tail(mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.extend(bytes);
        self.0
    }
}

pub(crate) struct RecordReader<'a> {
    table: Table,
    rest: &'a [u8],
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(table: Table, bytes: &'a [u8]) -> Result<Self, StoreError> {
        match bytes.split_first() {
            Some((&LAYOUT, rest)) => Ok(Self { table, rest }),
            Some((other, _)) => Err(corrupt(table, format!("unknown layout {other}"))),
            None => Err(corrupt(table, "empty record")),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, StoreError> {
        let (head, rest) = self.rest.split_first_chunk::<8>().ok_or_else(|| corrupt(self.table, "cut short"))?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*head))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, StoreError> {
        let short = || corrupt(self.table, "cut short");
        let (head, rest) = self.rest.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_be_bytes(*head) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        self.rest = rest;
        std::str::from_utf8(text).map_err(|_| corrupt(self.table, "text is not UTF-8"))
    }

    pub(crate) fn json(self) -> Result<Json, StoreError> {
        let text = std::str::from_utf8(self.rest).map_err(|_| corrupt(self.table, "JSON is not UTF-8"))?;
        Ok(Json::trusted(text))
    }
}

pub(crate) fn corrupt(table: Table, message: impl Into<String>) -> StoreError {
    StoreError::Corrupt { table: table.name(), message: message.into() }
}

/// A bare number, as counters and indexes hold it.
pub(crate) fn number(table: Table, bytes: &[u8]) -> Result<u64, StoreError> {
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| corrupt(table, "not a number of eight bytes"))
}
