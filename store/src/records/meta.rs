//! Named values that belong to no session.

use covel_graph::Json;

use crate::{
    codec::{RecordReader, RecordWriter},
    error::StoreError,
    keys::{Key, Part, Parts},
    read::Reader,
    tables::Table,
    tx::Tx,
};

fn key(name: &str) -> Key {
    Key::of("user").text(name)
}

impl Reader<'_> {
    /// A named value.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_meta(&self, name: &str) -> Result<Option<Json>, StoreError> {
        let bytes = self.get_raw(Table::Meta, key(name).as_bytes())?;
        bytes.map(|bytes| RecordReader::new(Table::Meta, bytes)?.json()).transpose()
    }

    /// The names that values are kept under, in text order. Names too long for a key are left out.
    ///
    /// # Errors
    /// `store-io`.
    pub fn list_meta(&self) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for row in self.prefix_raw(Table::Meta, &Key::of("user"))? {
            let mut parts = Parts::of(row?.0);
            if let (Some(_), Some(Part::Exact(name))) = (parts.text(), parts.text()) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

impl Tx<'_> {
    /// Sets a named value.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-transaction-too-large`.
    pub fn put_meta(&mut self, name: &str, value: &Json) -> Result<(), StoreError> {
        let text = value.text().as_bytes();
        self.put_raw(Table::Meta, key(name), RecordWriter::new(text.len()).tail(text))
    }

    /// Deletes a named value; answers whether it was there.
    ///
    /// # Errors
    /// `store-io`.
    pub fn delete_meta(&mut self, name: &str) -> Result<bool, StoreError> {
        self.delete_raw(Table::Meta, key(name).as_bytes())
    }
}
