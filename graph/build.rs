//! Names the compiler: a digest of its sources and of what it is built with.
//!
//! A fragment kept by one compiler is not taken by another, whose rules may differ.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hasher},
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let mut files = BTreeSet::new();
    sources(Path::new("src"), &mut files);
    let lock = PathBuf::from("../Cargo.lock");
    if lock.exists() {
        println!("cargo::rerun-if-changed=../Cargo.lock");
        files.insert(lock);
    }
    let mut hasher = DefaultHasher::new();
    for file in &files {
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write(&fs::read(file).unwrap_or_default());
    }
    println!("cargo::rustc-env=COVEL_COMPILER={:016x}", hasher.finish());
}

fn sources(dir: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else {
            files.insert(path);
        }
    }
}
