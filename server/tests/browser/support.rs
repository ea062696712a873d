//! What tests with a browser need: Chromium, and the packages that drive it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Names under which systems install Chromium.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Is the test left out by wish?
pub(crate) fn left_out() -> bool {
    env::var_os("COVEL_SKIP_BROWSER").is_some_and(|value| value == "1")
}

/// The browser.
pub(crate) fn chromium() -> PathBuf {
    found("COVEL_CHROMIUM", &NAMES).unwrap_or_else(|| {
        panic!(
            "this test needs Chromium. Install it (Debian: apt-get install chromium), name it in COVEL_CHROMIUM, \
             or leave this test out with COVEL_SKIP_BROWSER=1."
        )
    })
}

/// The program a variable names, else the first of these on the path.
pub(crate) fn found(variable: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(named) = env::var_os(variable) {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
        .find(|candidate| candidate.is_file())
}

/// Puts the driving scripts and their packages beside each other, outside the source tree.
pub(crate) fn installed() -> PathBuf {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    fs::create_dir_all(&work).unwrap();
    let lock = fs::read(source.join("package-lock.json")).unwrap();
    let installed = fs::read(work.join("package-lock.json")).is_ok_and(|old| old == lock)
        && ["playwright-core", "mermaid"]
            .iter()
            .all(|name| work.join("node_modules").join(name).join("package.json").is_file());
    for file in ["package.json", "package-lock.json", ".npmrc", "launch.mjs", "drive.mjs", "render.mjs", "webview.mjs"]
    {
        fs::copy(source.join(file), work.join(file)).unwrap();
    }
    if !installed {
        let npm = Command::new("npm").current_dir(&work).args(["ci", "--ignore-scripts"]).output().unwrap();
        assert!(npm.status.success(), "npm ci failed: {}", String::from_utf8_lossy(&npm.stderr));
    }
    work
}
