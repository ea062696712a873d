//! The files of a package: read once, contained by real path, held as bytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    diagnostic::{Diagnostic, Position},
    fragment::FileEntry,
    limits::{MAX_FOLDER_DEPTH, MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES, MAX_TEXT_FILE_BYTES},
    report::Report,
};

/// Folders that hold no part of a running package. A file inside one is read only when a manifest names it.
const SKIPPED: &[&str] = &["node_modules", "tests", "test", "target"];
/// Endings of files that must be text.
const TEXT: &[&str] =
    &["md", "yaml", "yml", "json", "js", "mjs", "cjs", "ts", "mts", "cts", "html", "css", "txt", "svg", "csv", "toml"];

/// Is an entry of this name passed over when a package is walked?
pub(crate) fn skipped(name: &str) -> bool {
    name.starts_with('.') || SKIPPED.contains(&name)
}

/// The files of one package version, by package-relative path with `/`. Cloning shares them.
#[derive(Clone, Default)]
pub struct PackageFiles(Arc<BTreeMap<String, Arc<[u8]>>>);

impl PackageFiles {
    /// The bytes of a file.
    pub fn get(&self, path: &str) -> Option<&Arc<[u8]>> {
        self.0.get(path)
    }

    /// A file as text; `None` when it is absent or not UTF-8. A byte-order mark is left out.
    pub fn text(&self, path: &str) -> Option<&str> {
        let text = std::str::from_utf8(self.0.get(path)?).ok()?;
        Some(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// Paths and bytes, by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Arc<[u8]>)> {
        self.0.iter().map(|(path, bytes)| (path.as_str(), bytes))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every file with its digest, and the digest of them all (64 hex digits).
    pub(crate) fn digests(&self) -> (Vec<FileEntry>, String) {
        digests(&self.0)
    }
}

fn digests(files: &BTreeMap<String, Arc<[u8]>>) -> (Vec<FileEntry>, String) {
    let mut whole = blake3::Hasher::new();
    let entries = files
        .iter()
        .map(|(path, bytes)| {
            let digest = blake3::hash(bytes);
            whole.update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes()).update(digest.as_bytes());
            FileEntry { path: path.clone(), digest: digest.to_hex().to_string(), bytes: bytes.len() as u64 }
        })
        .collect();
    (entries, whole.finalize().to_hex().to_string())
}

impl std::fmt::Debug for PackageFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, Arc<[u8]>)> for PackageFiles {
    fn from_iter<T: IntoIterator<Item = (String, Arc<[u8]>)>>(files: T) -> Self {
        Self(Arc::new(files.into_iter().collect()))
    }
}

/// Reads a package while it is compiled: the walked files, and named ones from skipped folders on demand.
pub(crate) struct Reader {
    /// Real path of the root; `None` for files given in memory.
    root: Option<PathBuf>,
    files: BTreeMap<String, Arc<[u8]>>,
    bytes: u64,
    full: bool,
    /// Paths asked for in folders the walk passes over, there or not.
    extra: BTreeSet<String>,
}

impl Reader {
    /// Files given in memory, under the same limits as files of a folder.
    pub(crate) fn in_memory<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, report: &mut Report) -> Self {
        let mut reader = Self { root: None, files: BTreeMap::new(), bytes: 0, full: false, extra: BTreeSet::new() };
        for (path, text) in files {
            if reader.files.len() >= MAX_PACKAGE_FILES {
                reader.too_many(report);
                break;
            }
            if text.len() as u64 > MAX_TEXT_FILE_BYTES {
                report.add(too_large(path));
            } else {
                reader.files.insert(path.to_owned(), Arc::from(text.as_bytes()));
            }
        }
        reader
    }

    /// Walks a folder. Whatever cannot be taken is reported and left out.
    pub(crate) fn folder(dir: &Path, report: &mut Report) -> io::Result<Self> {
        let root = fs::canonicalize(dir)?;
        let mut reader =
            Self { root: Some(root.clone()), files: BTreeMap::new(), bytes: 0, full: false, extra: BTreeSet::new() };
        reader.walk(&root, "", 0, report)?;
        Ok(reader)
    }

    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// As [`PackageFiles::digests`], of what is read so far.
    pub(crate) fn digests(&self) -> (Vec<FileEntry>, String) {
        digests(&self.files)
    }

    /// The name of the folder, when there is one.
    pub(crate) fn folder_name(&self) -> Option<String> {
        self.root().and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned)
    }

    pub(crate) fn finish(self) -> PackageFiles {
        PackageFiles(Arc::new(self.files))
    }

    /// Paths asked for in folders the walk passes over.
    pub(crate) fn extra(&self) -> &BTreeSet<String> {
        &self.extra
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// A file by package-relative path, read from a skipped folder if need be.
    pub(crate) fn get(&mut self, path: &str, report: &mut Report) -> Option<Arc<[u8]>> {
        if let Some(bytes) = self.files.get(path) {
            return Some(bytes.clone());
        }
        let root = self.root.clone()?;
        if path.split('/').any(skipped) {
            self.extra.insert(path.to_owned());
        }
        let real = fs::canonicalize(root.join(path)).ok()?;
        if !real.starts_with(&root) {
            report.add(outside(path));
            return None;
        }
        if !fs::metadata(&real).ok()?.is_file() {
            return None;
        }
        self.take(&real, path, report);
        self.files.get(path).cloned()
    }

    /// A file as text, byte-order mark left out. Files that are not UTF-8 were reported when they were read.
    pub(crate) fn text(&mut self, path: &str, report: &mut Report) -> Option<String> {
        let bytes = self.get(path, report)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        Some(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())
    }

    fn walk(&mut self, dir: &Path, prefix: &str, depth: usize, report: &mut Report) -> io::Result<()> {
        if depth > MAX_FOLDER_DEPTH {
            let message = format!("folders are nested more than {MAX_FOLDER_DEPTH} deep");
            report.add(Diagnostic::error("folder-too-deep", prefix, Position::default(), message));
            return Ok(());
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name());
            // A folder may list far more than a package may hold; stop before sorting a million names.
            if names.len() > MAX_PACKAGE_FILES * 2 {
                self.too_many(report);
                return Ok(());
            }
        }
        names.sort();
        for name in names {
            let Some(text) = name.to_str() else {
                let shown = format!("{prefix}{}", name.to_string_lossy());
                let message = "this file name is not UTF-8";
                report.add(Diagnostic::error("non-utf8-name", &shown, Position::default(), message));
                continue;
            };
            if skipped(text) {
                continue;
            }
            let relative = format!("{prefix}{text}");
            let path = dir.join(&name);
            let Some(real) = self.contained(&path, &relative, report) else {
                continue;
            };
            let kind = fs::metadata(&real)?;
            if kind.is_dir() {
                // A link to a folder above it would never end.
                if dir.starts_with(&real) {
                    let message = "this link leads to a folder that contains it";
                    report.add(Diagnostic::error("symlink-loop", &relative, Position::default(), message));
                    continue;
                }
                self.walk(&real, &format!("{relative}/"), depth + 1, report)?;
            } else if kind.is_file() {
                self.take(&real, &relative, report);
            } else {
                let message = "this is neither a file nor a folder";
                report.add(Diagnostic::error("not-a-file", &relative, Position::default(), message));
            }
            if self.full {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The real path behind a directory entry, if it stays inside the package.
    fn contained(&self, path: &Path, relative: &str, report: &mut Report) -> Option<PathBuf> {
        let link = fs::symlink_metadata(path).ok()?.is_symlink();
        if !link {
            return Some(path.to_owned());
        }
        match fs::canonicalize(path) {
            Ok(real) if self.root.as_ref().is_some_and(|root| real.starts_with(root)) => Some(real),
            Ok(_) => {
                report.add(outside(relative));
                None
            }
            Err(error) => {
                let message = format!("this link leads nowhere: {error}");
                report.add(Diagnostic::error("symlink-broken", relative, Position::default(), message));
                None
            }
        }
    }

    fn take(&mut self, real: &Path, relative: &str, report: &mut Report) {
        if self.files.len() >= MAX_PACKAGE_FILES {
            self.too_many(report);
            return;
        }
        let is_text =
            relative.rsplit_once('.').is_some_and(|(_, end)| TEXT.contains(&end.to_ascii_lowercase().as_str()));
        let limit = if is_text { MAX_TEXT_FILE_BYTES } else { MAX_PACKAGE_BYTES - self.bytes };
        let bytes = match read_at_most(real, limit) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                report.add(if is_text { too_large(relative) } else { package_too_large(relative) });
                return;
            }
            Err(error) => {
                let message = format!("this file cannot be read: {error}");
                report.add(Diagnostic::error("file-unreadable", relative, Position::default(), message));
                return;
            }
        };
        if is_text && let Err(error) = std::str::from_utf8(&bytes) {
            report.add(not_utf8(relative, &bytes, error.valid_up_to()));
            return;
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_PACKAGE_BYTES {
            report.add(package_too_large(relative));
            self.full = true;
            return;
        }
        self.files.insert(relative.to_owned(), bytes.into());
    }

    fn too_many(&mut self, report: &mut Report) {
        self.full = true;
        let message = format!("a package may have at most {MAX_PACKAGE_FILES} files");
        report.add(Diagnostic::error("too-many-files", "PLUGIN.md", Position::default(), message));
    }
}

fn too_large(path: &str) -> Diagnostic {
    let message = format!("a text file may have at most {MAX_TEXT_FILE_BYTES} bytes");
    Diagnostic::error("file-too-large", path, Position::default(), message)
}

fn package_too_large(path: &str) -> Diagnostic {
    let message = format!("a package may have at most {MAX_PACKAGE_BYTES} bytes in all");
    Diagnostic::error("package-too-large", path, Position::default(), message)
}

fn outside(path: &str) -> Diagnostic {
    Diagnostic::error("symlink-outside", path, Position::default(), "this link leads out of the package")
        .with_help("copy the file into the package")
}

fn not_utf8(path: &str, bytes: &[u8], valid: usize) -> Diagnostic {
    let before = &bytes[..valid];
    let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() as u32 + 1;
    Diagnostic::error("non-utf8-text", path, Position { line, column }, "this text file is not UTF-8")
        .with_help("save it as UTF-8")
}

/// `None` when the file is longer than `limit`, whatever its metadata says.
fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Why a path in a manifest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathProblem {
    Empty,
    Absolute,
    Leaves,
    Characters,
}

/// A path written in a manifest, from `base` (a package-relative folder, empty for the root), as a
/// package-relative path. It may climb, but never out of the package.
pub(crate) fn resolve(base: &str, text: &str) -> Result<String, PathProblem> {
    if text.trim().is_empty() {
        return Err(PathProblem::Empty);
    }
    if text.contains(['\\', '\0', '\n']) {
        return Err(PathProblem::Characters);
    }
    let drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    if text.starts_with('/') || text.contains("://") || drive {
        return Err(PathProblem::Absolute);
    }
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(PathProblem::Leaves);
                }
            }
            _ => parts.push(part),
        }
    }
    if parts.is_empty() { Err(PathProblem::Empty) } else { Ok(parts.join("/")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_climb_but_never_leave() {
        assert_eq!(resolve("", "./a/b.js"), Ok("a/b.js".into()));
        assert_eq!(resolve("runtimes/x", "../../server/a.js"), Ok("server/a.js".into()));
        assert_eq!(resolve("runtimes/x", "handler.js"), Ok("runtimes/x/handler.js".into()));
        assert_eq!(resolve("runtimes/x", "../../../a.js"), Err(PathProblem::Leaves));
        assert_eq!(resolve("", "/etc/passwd"), Err(PathProblem::Absolute));
        assert_eq!(resolve("", "C:/x"), Err(PathProblem::Absolute));
        assert_eq!(resolve("", "file://x"), Err(PathProblem::Absolute));
        assert_eq!(resolve("", "a\\b"), Err(PathProblem::Characters));
        assert_eq!(resolve("", "  "), Err(PathProblem::Empty));
        assert_eq!(resolve("a", ".."), Err(PathProblem::Empty));
    }
}
