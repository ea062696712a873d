//! What the binary carries: the page, the shipped packages, the demo world.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{error::ServerError, http::Page};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Folder of the shipped packages inside an unpacked copy.
const WORLDS: &str = "worlds";

/// The page.
pub fn page() -> Page {
    Page::new(embedded::PAGE)
}

/// An unpacked copy of the shipped packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Folder of packages.
    pub plugins: PathBuf,
    /// Folder of worlds.
    pub worlds: PathBuf,
}

/// Unpacks the shipped packages below a data folder, once a content: the folder's name is the digest of what is in it.
/// A copy that was changed or cut short is replaced.
///
/// # Errors
/// When the folder cannot be written.
pub fn unpack(data_dir: &Path) -> Result<Shipped, ServerError> {
    unpack_files(&data_dir.join("packages"), embedded::PACKAGES).map_err(|(path, error)| {
        ServerError::Unwritable {
            path,
            message: error.to_string(),
        }
    })
}

type Failure = (PathBuf, io::Error);

fn unpack_files(parent: &Path, files: &[(&str, &[u8])]) -> Result<Shipped, Failure> {
    let folder = parent.join(digest(files));
    let shipped = Shipped {
        plugins: folder.clone(),
        worlds: folder.join(WORLDS),
    };
    if is_whole(&folder, files) {
        return Ok(shipped);
    }
    fs::create_dir_all(parent).map_err(|error| (parent.to_owned(), error))?;
    // Beside its final place, so that one rename puts it there whole. A crash leaves a folder nobody uses.
    let fresh = tempfile::Builder::new()
        .prefix(".unpacking-")
        .tempdir_in(parent)
        .map_err(|error| (parent.to_owned(), error))?;
    for (path, bytes) in files {
        let target = fresh.path().join(path);
        let write = || {
            if let Some(dir) = target.parent() {
                fs::create_dir_all(dir)?;
            }
            fs::write(&target, bytes)
        };
        write().map_err(|error| (target.clone(), error))?;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| (folder.clone(), error))?;
    }
    match fs::rename(fresh.path(), &folder) {
        Ok(()) => {}
        // Another process was faster with the same content.
        Err(_) if is_whole(&folder, files) => {}
        Err(error) => return Err((folder, error)),
    }
    Ok(shipped)
}

fn digest(files: &[(&str, &[u8])]) -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

fn is_whole(folder: &Path, files: &[(&str, &[u8])]) -> bool {
    files
        .iter()
        .all(|(path, bytes)| fs::read(folder.join(path)).is_ok_and(|found| found == *bytes))
        && count(folder).is_ok_and(|found| found == files.len())
}

fn count(folder: &Path) -> io::Result<usize> {
    let mut files = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files += if entry.file_type()?.is_dir() {
            count(&entry.path())?
        } else {
            1
        };
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &[u8])] = &[("a/PLUGIN.md", b"one"), ("worlds/w/world.yaml", b"two")];

    #[test]
    fn unpacking_is_once_and_repairs_what_was_changed() {
        let parent = tempfile::tempdir().unwrap();
        let shipped = unpack_files(parent.path(), FILES).unwrap();
        let file = shipped.plugins.join("a/PLUGIN.md");
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert_eq!(
            fs::read(shipped.worlds.join("w/world.yaml")).unwrap(),
            b"two"
        );
        let stamp = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(unpack_files(parent.path(), FILES).unwrap(), shipped);
        assert_eq!(
            fs::metadata(&file).unwrap().modified().unwrap(),
            stamp,
            "a whole copy is not written again"
        );

        fs::write(&file, "changed").unwrap();
        fs::write(shipped.plugins.join("a/extra.js"), "extra").unwrap();
        unpack_files(parent.path(), FILES).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert!(!shipped.plugins.join("a/extra.js").exists());
        let left: Vec<_> = fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing half-written stays");
    }

    #[test]
    fn other_content_has_another_folder() {
        assert_ne!(digest(FILES), digest(&FILES[..1]));
        assert_ne!(digest(&[("ab", b"c")]), digest(&[("a", b"bc")]));
    }

    #[test]
    fn the_page_and_the_packages_are_in_the_binary() {
        assert!(embedded::PAGE.iter().any(|(path, _)| *path == "index.html"));
        assert!(
            embedded::PACKAGES
                .iter()
                .any(|(path, _)| path.ends_with("PLUGIN.md"))
        );
        assert!(
            embedded::PACKAGES
                .iter()
                .any(|(path, _)| path.ends_with("world.yaml"))
        );
        assert!(
            !embedded::PACKAGES
                .iter()
                .any(|(path, _)| path.contains("node_modules"))
        );
    }
}
