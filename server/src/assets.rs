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
    unpack_files(&data_dir.join("packages"), embedded::PACKAGES)
        .map_err(|(path, error)| ServerError::Unwritable { path, message: error.to_string() })
}

type Failure = (PathBuf, io::Error);

fn unpack_files(parent: &Path, files: &[(&str, &[u8])]) -> Result<Shipped, Failure> {
    let folder = parent.join(digest(files));
    let shipped = Shipped { plugins: folder.clone(), worlds: folder.join(WORLDS) };
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
    clear(&folder).map_err(|error| (folder.clone(), error))?;
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

/// Removes whatever has taken the place: a folder, a file, a link (the link, never what it points to).
fn clear(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Links are not followed: what they point to may change after the check, or never end.
fn is_whole(folder: &Path, files: &[(&str, &[u8])]) -> bool {
    let same = |path: &str, bytes: &[u8]| {
        let target = folder.join(path);
        let is_file =
            fs::symlink_metadata(&target).is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
        is_file && fs::read(&target).is_ok_and(|found| found == bytes)
    };
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir())
        && count(folder).is_ok_and(|found| found == files.len())
        && files.iter().all(|(path, bytes)| same(path, bytes))
}

fn count(folder: &Path) -> io::Result<usize> {
    let mut files = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        files += if kind.is_dir() {
            count(&entry.path())?
        } else if kind.is_file() {
            1
        } else {
            return Err(io::Error::other("neither a file nor a folder"));
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
        assert_eq!(fs::read(shipped.worlds.join("w/world.yaml")).unwrap(), b"two");
        let stamp = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(unpack_files(parent.path(), FILES).unwrap(), shipped);
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), stamp, "a whole copy is not written again");

        fs::write(&file, "changed").unwrap();
        fs::write(shipped.plugins.join("a/extra.js"), "extra").unwrap();
        unpack_files(parent.path(), FILES).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert!(!shipped.plugins.join("a/extra.js").exists());
        let left: Vec<_> = fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing half-written stays");
    }

    /// Whoever may write in the data folder gets no say in which packages are trusted, and no file outside it is
    /// touched.
    #[cfg(unix)]
    #[test]
    fn links_and_files_in_the_place_of_the_copy_are_replaced() {
        use std::os::unix::fs::symlink;
        let parent = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let other = unpack_files(outside.path(), FILES).unwrap();
        let place = parent.path().join(digest(FILES));
        let planted: [&dyn Fn(); 5] = [
            &|| fs::write(&place, "a file").unwrap(),
            &|| symlink(outside.path().join("nowhere"), &place).unwrap(),
            &|| symlink(&other.plugins, &place).unwrap(),
            &|| {
                unpack_files(parent.path(), FILES).unwrap();
                fs::remove_file(place.join("a/PLUGIN.md")).unwrap();
                symlink(other.plugins.join("a/PLUGIN.md"), place.join("a/PLUGIN.md")).unwrap();
            },
            &|| {
                unpack_files(parent.path(), FILES).unwrap();
                fs::remove_dir_all(place.join("a")).unwrap();
                symlink(other.plugins.join("a"), place.join("a")).unwrap();
            },
        ];
        for (number, plant) in planted.iter().enumerate() {
            clear(&place).unwrap();
            plant();
            let shipped = unpack_files(parent.path(), FILES).unwrap();
            let kind = |path: &Path| fs::symlink_metadata(path).unwrap().file_type();
            assert!(kind(&shipped.plugins).is_dir(), "{number}");
            assert!(kind(&shipped.plugins.join("a")).is_dir(), "{number}");
            assert!(kind(&shipped.plugins.join("a/PLUGIN.md")).is_file(), "{number}");
            assert!(is_whole(&other.plugins, FILES), "{number}: what a link points to stays");
        }
    }

    /// The build puts files here by relative path; none leads out of the folder.
    #[test]
    fn no_embedded_path_leaves_its_folder() {
        for (path, _) in embedded::PACKAGES.iter().chain(embedded::PAGE) {
            let inside = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
            assert!(inside, "{path}");
        }
    }

    #[test]
    fn other_content_has_another_folder() {
        assert_ne!(digest(FILES), digest(&FILES[..1]));
        assert_ne!(digest(&[("ab", b"c")]), digest(&[("a", b"bc")]));
    }

    #[test]
    fn the_page_and_the_packages_are_in_the_binary() {
        assert!(embedded::PAGE.iter().any(|(path, _)| *path == "index.html"));
        assert!(embedded::PACKAGES.iter().any(|(path, _)| path.ends_with("PLUGIN.md")));
        assert!(embedded::PACKAGES.iter().any(|(path, _)| path.ends_with("world.yaml")));
        assert!(!embedded::PACKAGES.iter().any(|(path, _)| path.contains("node_modules")));
    }
}
