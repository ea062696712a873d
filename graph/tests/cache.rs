//! Publishing again compiles what changed and nothing else.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use covel_graph::{CacheUse, Discovery, PackageCache};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Sets the file times back, as if the files had lain there for a while.
fn settle(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            settle(&path);
        } else {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
    }
}

fn packages(root: &Path, count: usize) -> Vec<PathBuf> {
    let dirs: Vec<PathBuf> = (0..count).map(|at| root.join(format!("p{at}"))).collect();
    for (at, dir) in dirs.iter().enumerate() {
        let manifest = format!(
            "---\nid: p{at}\nkind: plugin\ndescription: A package.\nruntime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./handler.js }}\n---\n"
        );
        write(&dir.join("PLUGIN.md"), &manifest);
        write(&dir.join("handler.js"), "export default () => ({ outcome: 'success' });");
    }
    settle(root);
    dirs
}

#[test]
fn only_what_changed_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = packages(folder.path(), 6);
    let cache = PackageCache::default();
    let compile = || cache.compile_all(&dirs, Discovery::Builtin);
    let (first, used) = compile();
    assert_eq!(used, CacheUse { compiled: 6, ..CacheUse::default() });
    let (second, used) = compile();
    assert_eq!(used, CacheUse { unchanged: 6, ..CacheUse::default() });
    for (a, b) in first.iter().zip(&second) {
        assert!(Arc::ptr_eq(a.package.as_ref().unwrap(), b.package.as_ref().unwrap()));
    }
    fs::write(dirs[3].join("handler.js"), "export default () => ({ outcome: 'failed' });").unwrap();
    let (third, used) = compile();
    assert_eq!(used, CacheUse { unchanged: 5, compiled: 1, ..CacheUse::default() });
    assert_ne!(third[3].package.as_ref().unwrap().digest, first[3].package.as_ref().unwrap().digest);
    // Other discovery, other trust: nothing is shared.
    let (other, used) = cache.compile_all(&dirs, Discovery::Community);
    assert_eq!(used.compiled, 6);
    assert_eq!(other[0].package.as_ref().unwrap().discovery, Discovery::Community);
}

/// A write of the same length within the resolution of file times must not be missed.
#[test]
fn a_fresh_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = packages(folder.path(), 1);
    let cache = PackageCache::default();
    let handler = dirs[0].join("handler.js");
    fs::write(&handler, "export default () => 1;").unwrap();
    let (first, _) = cache.compile_all(&dirs, Discovery::Builtin);
    let (_, used) = cache.compile_all(&dirs, Discovery::Builtin);
    assert_eq!(used, CacheUse { verified: 1, ..CacheUse::default() });
    fs::write(&handler, "export default () => 2;").unwrap();
    let (second, used) = cache.compile_all(&dirs, Discovery::Builtin);
    assert_eq!(used.compiled, 1);
    assert_ne!(first[0].package.as_ref().unwrap().digest, second[0].package.as_ref().unwrap().digest);
}

#[test]
fn a_touched_file_is_verified_and_not_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = packages(folder.path(), 2);
    let cache = PackageCache::default();
    let (first, _) = cache.compile_all(&dirs, Discovery::Builtin);
    let file = fs::File::options().write(true).open(dirs[1].join("PLUGIN.md")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(30)).unwrap();
    let (second, used) = cache.compile_all(&dirs, Discovery::Builtin);
    assert_eq!(used, CacheUse { unchanged: 1, verified: 1, ..CacheUse::default() });
    assert!(Arc::ptr_eq(first[1].package.as_ref().unwrap(), second[1].package.as_ref().unwrap()));
    assert_eq!(cache.compile_all(&dirs, Discovery::Builtin).1.unchanged, 2);
}

/// Files come, go and break; what is kept follows.
#[test]
fn added_removed_and_broken_files_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = packages(folder.path(), 1);
    let cache = PackageCache::default();
    let compile = || {
        settle(folder.path());
        let (mut all, used) = cache.compile_all(&dirs, Discovery::Builtin);
        (all.remove(0), used)
    };
    compile();
    write(&dirs[0].join("notes/more.txt"), "more");
    let (with, used) = compile();
    assert_eq!((used.compiled, with.package.unwrap().files.len()), (1, 3));
    fs::remove_file(dirs[0].join("notes/more.txt")).unwrap();
    let (without, used) = compile();
    assert_eq!((used.compiled, without.package.unwrap().files.len()), (1, 2));
    fs::remove_file(dirs[0].join("handler.js")).unwrap();
    let (broken, _) = compile();
    assert!(broken.package.is_none() && broken.has_errors());
    // A package with errors is never taken for done.
    assert_eq!(compile().1.compiled, 1);
    write(&dirs[0].join("handler.js"), "export default () => 3;");
    assert!(compile().0.package.is_some());
    fs::remove_dir_all(&dirs[0]).unwrap();
    fs::create_dir_all(folder.path()).unwrap();
    assert!(compile().0.package.is_none());
}

/// A file that a manifest names inside a folder the walk passes over is part of the package all the same.
#[test]
fn a_named_file_in_a_skipped_folder_counts() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = packages(folder.path(), 1);
    let manifest =
        fs::read_to_string(dirs[0].join("PLUGIN.md")).unwrap().replace("./handler.js", "./node_modules/h.js");
    write(&dirs[0].join("PLUGIN.md"), &manifest);
    write(&dirs[0].join("node_modules/h.js"), "export default () => 1;");
    let cache = PackageCache::default();
    let compile = || {
        settle(folder.path());
        cache.compile_all(&dirs, Discovery::Builtin)
    };
    assert!(compile().0[0].package.is_some());
    compile();
    let (first, used) = cache.compile_all(&dirs, Discovery::Builtin);
    assert_eq!(used.unchanged, 1);
    write(&dirs[0].join("node_modules/h.js"), "export default () => 2;");
    let (second, used) = compile();
    assert_eq!(used.compiled, 1);
    assert_ne!(first[0].package.as_ref().unwrap().digest, second[0].package.as_ref().unwrap().digest);
}
