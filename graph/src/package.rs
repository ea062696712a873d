//! Packages: from a folder to a checked fragment.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rayon::prelude::*;

pub use crate::files::PackageFiles;
use crate::{
    diagnostic::{Diagnostic, Position},
    files::Reader,
    fragment::Fragment,
    ids::PluginId,
    manifest,
    report::Report,
};

/// Where a package was found. Trust comes from this, never from what the package says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discovery {
    /// Shipped with the host or loaded by its operator: trusted.
    Builtin,
    /// Installed by a player: its code needs approval in each session.
    Community,
}

/// One package version, compiled without errors.
#[derive(Clone, Debug)]
pub struct Package {
    /// What it says.
    pub fragment: Arc<Fragment>,
    /// Digest of its files, 64 hex digits.
    pub digest: String,
    /// Its files as they were read.
    pub files: PackageFiles,
    /// Real path of its folder; empty for a package compiled in memory.
    pub root: PathBuf,
    /// Where it was found.
    pub discovery: Discovery,
}

impl Package {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.fragment.plugin_id
    }

    /// Does it bring JavaScript that runs on the server?
    pub fn has_server_code(&self) -> bool {
        self.fragment.entry.is_some()
            || !self.fragment.projections.is_empty()
            || self.fragment.runtimes.iter().any(|runtime| runtime.function.is_some() || runtime.guard.is_some())
    }

    /// Does it do anything that a player must approve when it comes from the community?
    pub fn needs_approval(&self) -> bool {
        self.discovery == Discovery::Community && (self.has_server_code() || !self.fragment.runtimes.is_empty())
    }
}

/// What came of compiling one folder.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The folder as given.
    pub dir: PathBuf,
    /// The package id, when it could be read.
    pub plugin_id: Option<PluginId>,
    /// The package, when there was no error.
    pub package: Option<Arc<Package>>,
    /// Findings, by place.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Is there an error among the findings?
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads and compiles one package folder. Runs no code of it.
pub fn compile_package(dir: &Path, discovery: Discovery) -> Compiled {
    compile_traced(dir, discovery).0
}

/// As [`compile_package`], with the paths asked for outside the walked files, there or not.
pub(crate) fn compile_traced(dir: &Path, discovery: Discovery) -> (Compiled, BTreeSet<String>) {
    let mut report = Report::default();
    match Reader::folder(dir, &mut report) {
        Ok(reader) => compile_read(dir, reader, discovery, report),
        Err(error) => {
            let message = format!("the package folder cannot be read: {error}");
            report.add(Diagnostic::error("folder-unreadable", "", Position::default(), message));
            let compiled =
                Compiled { dir: dir.to_owned(), plugin_id: None, package: None, diagnostics: report.finish(None) };
            (compiled, BTreeSet::new())
        }
    }
}

/// Compiles a folder that has been read.
pub(crate) fn compile_read(
    dir: &Path,
    reader: Reader,
    discovery: Discovery,
    report: Report,
) -> (Compiled, BTreeSet<String>) {
    let name = reader.folder_name();
    compile(dir, reader, name.as_deref(), discovery, report)
}

/// Compiles files given as (path, text) pairs, for tests and tools. There is no folder, so no folder name to match.
pub fn compile_in_memory(files: &[(&str, &str)], discovery: Discovery) -> Compiled {
    let mut report = Report::default();
    let reader = Reader::in_memory(files.iter().copied(), &mut report);
    compile(Path::new(""), reader, None, discovery, report).0
}

fn compile(
    dir: &Path,
    mut reader: Reader,
    folder: Option<&str>,
    discovery: Discovery,
    mut report: Report,
) -> (Compiled, BTreeSet<String>) {
    let root = reader.root().map(Path::to_owned).unwrap_or_default();
    let mut fragment = manifest::read(&mut reader, folder, &mut report);
    let plugin_id = (!fragment.plugin_id.is_empty()).then(|| PluginId::from(fragment.plugin_id.as_str()));
    let extra = reader.extra().clone();
    let package = (!report.has_errors()).then(|| {
        let files = reader.finish();
        let (entries, digest) = files.digests();
        fragment.files = entries;
        Arc::new(Package { fragment: Arc::new(fragment), digest, files, root, discovery })
    });
    let diagnostics = report.finish(plugin_id.as_ref().map(PluginId::as_str));
    let compiled = Compiled { dir: dir.to_owned(), plugin_id, package, diagnostics };
    (compiled, extra)
}

/// Compiles folders in parallel; results in input order. Of packages with one id the first is kept.
pub fn compile_all(dirs: &[PathBuf], discovery: Discovery) -> Vec<Compiled> {
    let mut all: Vec<Compiled> = dirs.par_iter().map(|dir| compile_package(dir, discovery)).collect();
    refuse_duplicates(&mut all);
    all
}

/// Takes the package away from every result whose id an earlier result has, and says so.
pub fn refuse_duplicates(all: &mut [Compiled]) {
    let mut first: BTreeMap<PluginId, PathBuf> = BTreeMap::new();
    for compiled in all {
        let Some(id) = compiled.plugin_id.clone() else {
            continue;
        };
        match first.get(&id) {
            None => {
                first.insert(id, compiled.dir.clone());
            }
            Some(earlier) => {
                let message = format!("the package id `{id}` is already taken by {}", earlier.display());
                let duplicate = Diagnostic::error("duplicate-plugin", "PLUGIN.md", Position::default(), message)
                    .with_path("id")
                    .with_plugin(id.as_str())
                    .with_help("give one of them another id");
                compiled.diagnostics.push(duplicate);
                compiled.package = None;
            }
        }
    }
}

/// The package folders a path names: itself when it holds `PLUGIN.md` or looks like a package, else its child
/// folders that do, by name. A folder looks like a package when it has `PLUGIN.md`, `RUNTIME.md`, `runtimes/` or
/// `package.json`; compiling one without `PLUGIN.md` says that it is missing.
///
/// # Errors
/// When the folder cannot be listed.
pub fn find_packages(dir: &Path) -> io::Result<Vec<PathBuf>> {
    if dir.join("PLUGIN.md").exists() {
        return Ok(vec![dir.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let hidden = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'));
        if !hidden && path.is_dir() && looks_like_package(&path) {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() && looks_like_package(dir) {
        found.push(dir.to_owned());
    }
    Ok(found)
}

fn looks_like_package(dir: &Path) -> bool {
    ["PLUGIN.md", "RUNTIME.md", "runtimes", "package.json"].iter().any(|name| dir.join(name).exists())
}
