//! Publishing again: packages that did not change are not read, packages whose bytes did not change are not compiled.
//!
//! A folder is looked at, not read: paths, lengths, modification times (and on Unix inode and change time) make its
//! fingerprint. The same fingerprint means the same package, unless a file was modified so recently that a second
//! write could have kept its times; then, and whenever the fingerprint differs, the content decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use rayon::prelude::*;

use crate::{
    files::{Reader, skipped},
    limits::{MAX_FOLDER_DEPTH, MAX_PACKAGE_FILES},
    package::{Compiled, Discovery, compile_traced, refuse_duplicates},
    report::Report,
};

/// File times are this coarse on the coarsest file systems in use (FAT: two seconds).
const COARSEST_TIME: Duration = Duration::from_secs(2);

/// Compiled packages of the last call, by folder. Holds what the last call named, so its size is bounded by that.
#[derive(Debug, Default)]
pub struct PackageCache {
    kept: Mutex<BTreeMap<(PathBuf, bool), Kept>>,
}

/// What a call found unchanged, re-read and compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Taken as they were, after a look at the folder.
    pub unchanged: usize,
    /// Read again and found to have the same content.
    pub verified: usize,
    /// Compiled.
    pub compiled: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    fingerprint: Option<Fingerprint>,
    /// Files outside the walked ones that compiling asked for, there or not.
    extra: BTreeSet<String>,
    compiled: Compiled,
}

/// A folder as it looks from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    hash: blake3::Hash,
    /// The newest modification time is too recent to be relied on.
    fresh: bool,
}

enum Outcome {
    Unchanged(Kept),
    Verified(Kept),
    Compiled(Kept),
}

impl PackageCache {
    /// As [`crate::compile_all`], compiling only what changed since the last call.
    pub fn compile_all(&self, dirs: &[PathBuf], discovery: Discovery) -> (Vec<Compiled>, CacheUse) {
        let known = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let trusted = discovery == Discovery::Builtin;
        let outcomes: Vec<Outcome> =
            dirs.par_iter().map(|dir| refresh(dir, discovery, known.get(&(dir.clone(), trusted)))).collect();
        let mut used = CacheUse::default();
        let mut all = Vec::with_capacity(outcomes.len());
        // What other calls keep under the other discovery stays.
        let mut next: BTreeMap<(PathBuf, bool), Kept> =
            known.into_iter().filter(|((_, other), _)| *other != trusted).collect();
        for (dir, outcome) in dirs.iter().zip(outcomes) {
            let (count, kept) = match outcome {
                Outcome::Unchanged(kept) => (&mut used.unchanged, kept),
                Outcome::Verified(kept) => (&mut used.verified, kept),
                Outcome::Compiled(kept) => (&mut used.compiled, kept),
            };
            *count += 1;
            all.push(kept.compiled.clone());
            next.insert((dir.clone(), trusted), kept);
        }
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = next;
        refuse_duplicates(&mut all);
        (all, used)
    }
}

fn refresh(dir: &Path, discovery: Discovery, known: Option<&Kept>) -> Outcome {
    let nothing = BTreeSet::new();
    // Looked at before it is read: a write in between shows as a difference next time.
    let seen = fingerprint(dir, known.map_or(&nothing, |kept| &kept.extra)).ok();
    if let (Some(kept), Some(seen)) = (known, &seen)
        && !seen.fresh
        && kept.fingerprint.as_ref().is_some_and(|before| before.hash == seen.hash)
    {
        let mut kept = kept.clone();
        kept.fingerprint = Some(seen.clone());
        return Outcome::Unchanged(kept);
    }
    if let Some(kept) = known
        && let Some(package) = &kept.compiled.package
        && content(dir, &kept.extra).as_deref() == Some(package.digest.as_str())
    {
        let mut kept = kept.clone();
        kept.fingerprint = seen;
        return Outcome::Verified(kept);
    }
    let (compiled, extra) = compile_traced(dir, discovery);
    // A fingerprint counts when it was taken before reading and of all that was read. A package with errors has none:
    // what else it would have looked for is not known, so it is compiled each time.
    let complete = known.map_or(extra.is_empty(), |kept| kept.extra == extra) && compiled.package.is_some();
    Outcome::Compiled(Kept { fingerprint: seen.filter(|_| complete), extra, compiled })
}

/// Digest of a package's files as they are now, when they can be read without a finding.
fn content(dir: &Path, extra: &BTreeSet<String>) -> Option<String> {
    let mut report = Report::default();
    let mut reader = Reader::folder(dir, &mut report).ok()?;
    for path in extra {
        reader.get(path, &mut report);
    }
    report.finish(None).is_empty().then(|| reader.finish().digests().1)
}

/// Looks at the files a package is made of.
fn fingerprint(dir: &Path, extra: &BTreeSet<String>) -> io::Result<Fingerprint> {
    let mut look = Look { hasher: blake3::Hasher::new(), newest: SystemTime::UNIX_EPOCH, files: 0 };
    let root = fs::canonicalize(dir)?;
    look.walk(&root, "", 0)?;
    for path in extra {
        match fs::metadata(root.join(path)) {
            Ok(found) => look.file(path, &found)?,
            Err(_) => look.name(path, b'-'),
        }
    }
    let fresh = match SystemTime::now().duration_since(look.newest) {
        Ok(age) => age < COARSEST_TIME,
        // A time in the future is no time to rely on.
        Err(_) => true,
    };
    Ok(Fingerprint { hash: look.hasher.finalize(), fresh })
}

struct Look {
    hasher: blake3::Hasher,
    newest: SystemTime,
    files: usize,
}

impl Look {
    fn walk(&mut self, dir: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name());
            self.files += 1;
            if depth > MAX_FOLDER_DEPTH || self.files > MAX_PACKAGE_FILES * 2 {
                return Err(io::Error::other("beyond the limits of a package"));
            }
        }
        names.sort();
        for name in names {
            let text = name.to_string_lossy();
            if skipped(&text) {
                continue;
            }
            let path = dir.join(&name);
            let relative = format!("{prefix}{text}");
            // Links are followed, as reading does; whether one leads out is read at the first compile, and a link
            // set anew has another inode or other times.
            let link = fs::symlink_metadata(&path)?;
            if link.is_symlink() {
                self.file(&relative, &link)?;
            }
            let found = fs::metadata(&path)?;
            if found.is_dir() {
                self.name(&relative, b'd');
                self.walk(&path, &format!("{relative}/"), depth + 1)?;
            } else {
                self.file(&relative, &found)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, path: &str, kind: u8) {
        self.hasher.update(&[kind]).update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes());
    }

    fn file(&mut self, path: &str, found: &fs::Metadata) -> io::Result<()> {
        self.name(path, b'f');
        let modified = found.modified()?;
        self.newest = self.newest.max(modified);
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.hasher.update(&found.len().to_le_bytes()).update(&since.as_nanos().to_le_bytes());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            for number in [found.ino(), found.dev(), found.ctime() as u64, found.ctime_nsec() as u64] {
                self.hasher.update(&number.to_le_bytes());
            }
        }
        Ok(())
    }
}
