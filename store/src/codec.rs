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

    pub(crate) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(crate) fn varint(mut self, mut number: usize) -> Self {
        while number >= 0x80 {
            self.0.push((number & 0x7F) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    /// Bytes with their length.
    pub(crate) fn counted(mut self, bytes: &[u8]) -> Self {
        self = self.varint(bytes.len());
        self.0.extend(bytes);
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

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], StoreError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(|| corrupt(self.table, "cut short"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number of seven bits a byte, lowest first.
    pub(crate) fn varint(&mut self) -> Result<usize, StoreError> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.bytes(1)?[0];
            number |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(corrupt(self.table, "a number is too long"))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
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
