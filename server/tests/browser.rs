//! The page in a real browser: Chromium plays one story against `covel play` with the offline storyteller.
//!
//! Needs Node and Chromium. Without Chromium this test fails and says what to do; `COVEL_SKIP_BROWSER=1` leaves it out.

#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Names under which systems install Chromium.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_story_is_played_in_chromium() {
    if env::var_os("COVEL_SKIP_BROWSER").is_some_and(|value| value == "1") {
        return;
    }
    let chromium = chromium().unwrap_or_else(|| {
        panic!(
            "this test needs Chromium. Install it (Debian: apt-get install chromium), name it in COVEL_CHROMIUM, \
             or leave this test out with COVEL_SKIP_BROWSER=1."
        )
    });
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    install(&work);
    let data = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_covel"))
        .args(["play", "--port", "0", "--json", "--data"])
        .arg(data.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = server.stdout.take().unwrap();
    let _server = Server(server);
    let address = address(out);
    let picture = work.join("page.png");
    let run = Command::new("node")
        .current_dir(&work)
        .arg("drive.mjs")
        .args([address.as_str(), chromium.to_str().unwrap()])
        .arg(&picture)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(
        fs::metadata(&picture).unwrap().len() > 10_000,
        "a picture of the page is at {}",
        picture.display()
    );
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("COVEL_CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .find(|candidate| candidate.is_file())
}

/// Puts the driving script and its one package beside each other, outside the source tree.
fn install(work: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    fs::create_dir_all(work).unwrap();
    let lock = fs::read(source.join("package-lock.json")).unwrap();
    let installed = fs::read(work.join("package-lock.json")).is_ok_and(|old| old == lock)
        && work
            .join("node_modules/playwright-core/package.json")
            .is_file();
    for file in ["package.json", "package-lock.json", ".npmrc", "drive.mjs"] {
        fs::copy(source.join(file), work.join(file)).unwrap();
    }
    if !installed {
        let npm = Command::new("npm")
            .current_dir(work)
            .args(["ci", "--ignore-scripts"])
            .output()
            .unwrap();
        assert!(
            npm.status.success(),
            "npm ci failed: {}",
            String::from_utf8_lossy(&npm.stderr)
        );
    }
}

/// The address the server prints when it listens.
fn address(out: impl std::io::Read) -> String {
    let mut lines = BufReader::new(out);
    let mut text = String::new();
    loop {
        assert_ne!(
            lines.read_line(&mut text).unwrap(),
            0,
            "the server ended before it listened: {text}"
        );
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(&text) {
            return document["address"].as_str().unwrap().to_owned();
        }
    }
}
