//! Compiled packages kept from one run of the program to the next.
//!
//! What is kept of a package is its fragment, by the digest of its files, and a record of how it was compiled: by
//! which compiler, with which findings, and which files outside the walked ones it asked for. A package is taken
//! from the shelf only when the same compiler would see the very same bytes under the same folder name, and when
//! record and fragment check; everything else is compiled from source.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    archive::{FRAGMENT_FORMAT, decode_fragment},
    diagnostic::Diagnostic,
    files::Reader,
    fragment::{FileEntry, Fragment},
    package::{Compiled, Package},
    report::Report,
};

/// Names the compiler of packages: equal names compile equal files to equal fragments. Archives of another compiler
/// are made anew.
pub fn compiler_id() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), "+", env!("COVEL_COMPILER"))
}

/// Where compiled packages are kept. What it gives is checked and need not be trusted.
pub trait Shelf: Sync {
    /// The record kept under a key.
    fn record(&self, key: &str) -> Option<String>;

    /// The fragment archive kept under the digest of a package's files.
    fn fragment(&self, digest: &str) -> Option<Vec<u8>>;
}

/// A record to keep, so that the package need not be compiled again. Its fragment is kept apart, by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Key, 64 hex digits.
    pub key: String,
    /// Digest of the package's files, under which its fragment is to be kept.
    pub digest: String,
    /// The record.
    pub record: String,
}

#[derive(Serialize, Deserialize)]
struct Record {
    compiler: String,
    format: u32,
    plugin_id: String,
    digest: String,
    /// Files asked for in folders the walk passes over, there or not.
    extra: BTreeSet<String>,
    /// Warnings; a package with errors is not kept.
    diagnostics: Vec<Diagnostic>,
}

/// The record of a package that compiled, `None` for one that did not.
pub(crate) fn remember(compiled: &Compiled, folder: Option<&str>, extra: &BTreeSet<String>) -> Option<Remembered> {
    let package = compiled.package.as_deref()?;
    let walked = package.fragment.files.iter().filter(|file| !extra.contains(&file.path));
    let record = Record {
        compiler: compiler_id().to_owned(),
        format: FRAGMENT_FORMAT,
        plugin_id: package.fragment.plugin_id.clone(),
        digest: package.digest.clone(),
        extra: extra.clone(),
        diagnostics: compiled.diagnostics.clone(),
    };
    let text = serde_json::to_string(&record).ok()?;
    let record = format!("{} {text}", blake3::hash(text.as_bytes()).to_hex());
    Some(Remembered { key: key(folder, walked), digest: package.digest.clone(), record })
}

/// What the shelf gives of a package whose files a reader holds.
pub(crate) struct Taken {
    pub(crate) fragment: Fragment,
    pub(crate) digest: String,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) extra: BTreeSet<String>,
}

/// Looks for a package among those kept. The reader may have read further files afterwards.
pub(crate) fn take(shelf: &dyn Shelf, folder: Option<&str>, reader: &mut Reader) -> Option<Taken> {
    let (walked, _) = reader.digests();
    let text = shelf.record(&key(folder, walked.iter()))?;
    let (hash, text) = text.split_once(' ')?;
    if blake3::hash(text.as_bytes()).to_hex().as_str() != hash {
        return None;
    }
    let record: Record = serde_json::from_str(text).ok()?;
    if record.compiler != compiler_id() || record.format != FRAGMENT_FORMAT {
        return None;
    }
    let mut report = Report::default();
    for path in &record.extra {
        reader.get(path, &mut report);
    }
    if !report.is_empty() {
        return None;
    }
    let (files, digest) = reader.digests();
    if digest != record.digest {
        return None;
    }
    let fragment = decode_fragment(&shelf.fragment(&digest)?).ok()?;
    let same = fragment.plugin_id == record.plugin_id && fragment.files == files;
    same.then_some(Taken { fragment, digest, diagnostics: record.diagnostics, extra: record.extra })
}

/// Names what compiling depends on: the folder's name and the walked files.
fn key<'a>(folder: Option<&str>, walked: impl Iterator<Item = &'a FileEntry>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    };
    part(folder.unwrap_or_default());
    for file in walked {
        part(&file.path);
        part(&file.digest);
    }
    hasher.finalize().to_hex().to_string()
}

/// The compiled package of what was taken.
pub(crate) fn compiled(
    dir: &std::path::Path,
    reader: Reader,
    discovery: crate::Discovery,
    taken: Taken,
) -> (Compiled, BTreeSet<String>) {
    let root = reader.root().map(std::path::Path::to_owned).unwrap_or_default();
    let plugin_id = Some(crate::PluginId::from(taken.fragment.plugin_id.as_str()));
    let package =
        Package { fragment: taken.fragment.into(), digest: taken.digest, files: reader.finish(), root, discovery };
    let compiled =
        Compiled { dir: dir.to_owned(), plugin_id, package: Some(package.into()), diagnostics: taken.diagnostics };
    (compiled, taken.extra)
}
