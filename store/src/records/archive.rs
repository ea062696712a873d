//! Bytes named by their digest: fragments, plans, blobs. What a digest is, its owner decides.
//!
//! The same digest always names the same bytes, so putting a digest that is there writes nothing.

use covel_graph::PlanDigest;

use crate::{
    error::StoreError,
    keys::{Key, Part, Parts},
    read::Reader,
    tables::Table,
    tx::Tx,
};

macro_rules! archive {
    ($table:expr, $what:literal, $digest:ty, $text:expr, $get:ident, $put:ident, $delete:ident) => {
        impl<'a> Reader<'a> {
            #[doc = concat!("The bytes of a ", $what, ", borrowed from the map. They have no useful alignment.")]
            ///
            /// # Errors
            /// `store-io`.
            pub fn $get(&self, digest: &$digest) -> Result<Option<&'a [u8]>, StoreError> {
                self.get_raw($table, Key::of($text(digest)).as_bytes())
            }
        }

        impl Tx<'_> {
            #[doc = concat!("Keeps a ", $what, "; answers whether it was new. Free when the digest is there already.")]
            ///
            /// # Errors
            /// `store-value-too-large`, `store-transaction-too-large`.
            pub fn $put(&mut self, digest: &$digest, bytes: &[u8]) -> Result<bool, StoreError> {
                self.put_archive($table, Key::of($text(digest)), bytes)
            }

            #[doc = concat!("Forgets a ", $what, "; answers whether it was there.")]
            ///
            /// # Errors
            /// `store-io`.
            pub fn $delete(&mut self, digest: &$digest) -> Result<bool, StoreError> {
                self.delete_raw($table, Key::of($text(digest)).as_bytes())
            }
        }
    };
}

archive!(Table::Fragments, "fragment", str, std::convert::identity, get_fragment, put_fragment, delete_fragment);
archive!(Table::Plans, "plan", PlanDigest, PlanDigest::as_str, get_plan, put_plan, delete_plan);
archive!(Table::Blobs, "blob", str, std::convert::identity, get_blob, put_blob, delete_blob);

impl Reader<'_> {
    /// The digests of all plans kept, in text order. Digests too long for a key are left out.
    ///
    /// # Errors
    /// `store-io`.
    pub fn list_plans(&self) -> Result<Vec<PlanDigest>, StoreError> {
        self.digests(Table::Plans).map(|digests| digests.into_iter().map(PlanDigest::from).collect())
    }

    /// The digests of all fragments kept, in text order. Digests too long for a key are left out.
    ///
    /// # Errors
    /// `store-io`.
    pub fn list_fragments(&self) -> Result<Vec<String>, StoreError> {
        self.digests(Table::Fragments)
    }

    /// The digests of all blobs kept, in text order. Digests too long for a key are left out.
    ///
    /// # Errors
    /// `store-io`.
    pub fn list_blobs(&self) -> Result<Vec<String>, StoreError> {
        self.digests(Table::Blobs)
    }

    fn digests(&self, table: Table) -> Result<Vec<String>, StoreError> {
        let mut digests = Vec::new();
        for row in self.range_raw(table, &[0], &[0xFF])? {
            if let Some(Part::Exact(digest)) = Parts::of(row?.0).text() {
                digests.push(digest);
            }
        }
        Ok(digests)
    }
}

impl Tx<'_> {
    fn put_archive(&mut self, table: Table, key: Key, bytes: &[u8]) -> Result<bool, StoreError> {
        if self.read().get_raw(table, key.as_bytes())?.is_some() {
            return Ok(false);
        }
        self.put_raw(table, key, bytes.to_vec())?;
        Ok(true)
    }
}
