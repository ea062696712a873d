//! Publishing again: packages that did not change are not read, packages whose bytes did not change are not compiled.
//!
//! A folder is looked at, not read: paths, lengths, modification times (and on Unix inode and change time) make its
//! fingerprint. The same fingerprint means the same package, unless a file was modified so recently that a second
//! write could have kept its times; then, and whenever the fingerprint differs, the content decides. A folder seen
//! for the first time is looked up on a [`Shelf`] of packages compiled in earlier runs, when there is one.

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
    package::{Compiled, Discovery, compile_read, compile_traced, refuse_duplicates},
    report::Report,
    shelf::{self, Remembered, Shelf},
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
    /// Taken from the shelf: read, not parsed.
    pub reopened: usize,
    /// Compiled.
    pub compiled: usize,
}

impl std::ops::AddAssign for CacheUse {
    fn add_assign(&mut self, other: Self) {
        self.unchanged += other.unchanged;
        self.verified += other.verified;
        self.reopened += other.reopened;
        self.compiled += other.compiled;
    }
}

/// What publishing folders came to.
#[derive(Debug, Default)]
pub struct Publication {
    /// Every folder's result, in input order.
    pub compiled: Vec<Compiled>,
    /// What had to be done for it.
    pub used: CacheUse,
    /// Records of the packages compiled now, to be kept with their fragments.
    pub remember: Vec<Remembered>,
}

#[derive(Clone, Debug)]
struct Kept {
    fingerprint: Option<Fingerprint>,
    /// Files outside the walked ones that compiling asked for, there or not.
    extra: BTreeSet<String>,
    compiled: Compiled,
    /// The folder's own name, which a manifest may have to match.
    folder: Option<String>,
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
    Reopened(Kept),
    Compiled(Kept),
}

impl PackageCache {
    /// As [`crate::compile_all`], compiling only what changed since the last call.
    pub fn compile_all(&self, dirs: &[PathBuf], discovery: Discovery) -> (Vec<Compiled>, CacheUse) {
        let published = self.publish(dirs, discovery, None);
        (published.compiled, published.used)
    }

    /// Compiles only what changed since the last call and is not on the shelf.
    pub fn publish(&self, dirs: &[PathBuf], discovery: Discovery, shelf: Option<&dyn Shelf>) -> Publication {
        let mut known = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let trusted = discovery == Discovery::Builtin;
        // A folder named twice is looked at twice; the second time it is not known.
        let known_here: Vec<Option<Kept>> = dirs.iter().map(|dir| known.remove(&(dir.clone(), trusted))).collect();
        let outcomes: Vec<Outcome> =
            dirs.par_iter().zip(known_here).map(|(dir, before)| refresh(dir, discovery, before, shelf)).collect();
        let mut published = Publication::default();
        // What other calls keep under the other discovery stays.
        known.retain(|(_, other), _| *other != trusted);
        for (dir, outcome) in dirs.iter().zip(outcomes) {
            let used = &mut published.used;
            let (count, kept) = match outcome {
                Outcome::Unchanged(kept) => (&mut used.unchanged, kept),
                Outcome::Verified(kept) => (&mut used.verified, kept),
                Outcome::Reopened(kept) => (&mut used.reopened, kept),
                Outcome::Compiled(kept) => {
                    published.remember.extend(shelf::remember(&kept.compiled, kept.folder.as_deref(), &kept.extra));
                    (&mut used.compiled, kept)
                }
            };
            *count += 1;
            published.compiled.push(kept.compiled.clone());
            known.insert((dir.clone(), trusted), kept);
        }
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = known;
        refuse_duplicates(&mut published.compiled);
        published
    }
}

fn refresh(dir: &Path, discovery: Discovery, known: Option<Kept>, shelf: Option<&dyn Shelf>) -> Outcome {
    let nothing = BTreeSet::new();
    let extra_before = known.as_ref().map_or(&nothing, |kept| &kept.extra);
    // Looked at before it is read: a write in between shows as a difference next time.
    let seen = fingerprint(dir, extra_before).ok();
    let same = |kept: &Kept| {
        let both = kept.fingerprint.as_ref().zip(seen.as_ref());
        both.is_some_and(|(before, now)| !now.fresh && before.hash == now.hash)
    };
    let of_known = known.as_ref().map(|kept| kept.extra.clone());
    match known {
        Some(kept) if same(&kept) => return Outcome::Unchanged(Kept { fingerprint: seen, ..kept }),
        Some(kept) => {
            let digest = kept.compiled.package.as_ref().map(|package| package.digest.as_str());
            if digest.is_some() && content(dir, &kept.extra).as_deref() == digest {
                return Outcome::Verified(Kept { fingerprint: seen, ..kept });
            }
        }
        None => {}
    }
    // A fingerprint counts when it was taken before reading and of all that was read. A package with errors has none:
    // what else it would have looked for is not known, so it is compiled each time.
    let keep = |(compiled, extra): (Compiled, BTreeSet<String>)| {
        let complete = of_known.as_ref().map_or(extra.is_empty(), |before| *before == extra);
        let fingerprint = seen.filter(|_| complete && compiled.package.is_some());
        Kept { fingerprint, extra, compiled, folder: folder_name(dir) }
    };
    let Some(shelf) = shelf else { return Outcome::Compiled(keep(compile_traced(dir, discovery))) };
    let mut report = Report::default();
    let Ok(mut reader) = Reader::folder(dir, &mut report) else {
        return Outcome::Compiled(keep(compile_traced(dir, discovery)));
    };
    if !report.is_empty() {
        return Outcome::Compiled(keep(compile_read(dir, reader, discovery, report)));
    }
    let name = reader.folder_name();
    match shelf::take(shelf, name.as_deref(), &mut reader) {
        Some(taken) => Outcome::Reopened(keep(shelf::compiled(dir, reader, discovery, taken))),
        // What was read of a record that did not fit is no part of the package.
        None if reader.extra().is_empty() => Outcome::Compiled(keep(compile_read(dir, reader, discovery, report))),
        None => Outcome::Compiled(keep(compile_traced(dir, discovery))),
    }
}

fn folder_name(dir: &Path) -> Option<String> {
    let real = fs::canonicalize(dir).ok()?;
    real.file_name().and_then(|name| name.to_str()).map(str::to_owned)
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
    look.walk(dir, &mut String::new(), 0)?;
    for path in extra {
        match fs::metadata(dir.join(path)) {
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
    /// One listing a folder and one look a file: what an entry is, the listing says on most file systems.
    fn walk(&mut self, dir: &Path, prefix: &mut String, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            self.files += 1;
            if depth > MAX_FOLDER_DEPTH || self.files > MAX_PACKAGE_FILES * 2 {
                return Err(io::Error::other("beyond the limits of a package"));
            }
            let name = entry.file_name();
            if !skipped(&name.to_string_lossy()) {
                entries.push((name, entry));
            }
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let start = prefix.len();
        for (name, entry) in entries {
            prefix.push_str(&name.to_string_lossy());
            let mut is_dir = entry.file_type()?.is_dir();
            if !is_dir {
                // Of a link itself first. Links are followed, as reading does; whether one leads out is read at the
                // first compile, and a link set anew has another inode or other times.
                let own = entry.metadata()?;
                let found = if own.is_symlink() {
                    self.file(prefix, &own)?;
                    fs::metadata(entry.path())?
                } else {
                    own
                };
                is_dir = found.is_dir();
                if !is_dir {
                    self.file(prefix, &found)?;
                }
            }
            if is_dir {
                self.name(prefix, b'd');
                prefix.push('/');
                self.walk(&entry.path(), prefix, depth + 1)?;
            }
            prefix.truncate(start);
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
