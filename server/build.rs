//! Builds the page (npm, Vite) and lists its files and the shipped packages for embedding.
//!
//! The page is built into cargo's own output folder, so that two builds never meet. `COVEL_PAGE_DIST` names a folder
//! with a page built elsewhere; then neither Node nor npm is needed.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, exit},
    time::SystemTime,
};

/// What the page is made of; a change in one of these builds it again.
const PAGE_SOURCES: &[&str] =
    &["src", "public", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", ".npmrc"];
/// Parts of a package that a running host never reads.
const NOT_SHIPPED: &[&str] = &["node_modules", "tests", "dist", ".git"];

fn main() {
    if let Err(message) = run() {
        // Lines with this prefix are what cargo shows of a failed build script first.
        for line in message.lines() {
            println!("cargo::error={line}");
        }
        exit(1);
    }
}

fn run() -> Result<(), String> {
    let here = folder("CARGO_MANIFEST_DIR")?;
    let out = folder("OUT_DIR")?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=COVEL_PAGE_DIST");
    let dist = match env::var_os("COVEL_PAGE_DIST") {
        Some(dist) => {
            println!("cargo::rerun-if-changed={}", Path::new(&dist).display());
            PathBuf::from(dist)
        }
        None => build_page(&here.join("web"), &out.join("page"))?,
    };
    if !dist.join("index.html").is_file() {
        return Err(format!("the page is not complete: {} has no index.html", dist.display()));
    }
    let plugins = here.join("../plugins");
    let mut list = String::new();
    table(&mut list, "PAGE", &dist, &files(&dist, &[])?)?;
    table(&mut list, "PACKAGES", &plugins, &packages(&plugins)?)?;
    write_if_changed(&out.join("embedded.rs"), &list)
}

fn folder(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("cargo sets no {variable}"))
}

fn build_page(web: &Path, dist: &Path) -> Result<PathBuf, String> {
    for source in PAGE_SOURCES {
        let path = web.join(source);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    if !web.join("package.json").is_file() {
        return Err(format!("the page's project is missing: {} has no package.json", web.display()));
    }
    // Two builds of one checkout may run at a time; only one of them installs. Any file that npm does not touch will do.
    let guard = web.join("tsconfig.json");
    let lock = File::open(&guard).map_err(|error| describe(&guard, &error))?;
    lock.lock().map_err(|error| describe(&guard, &error))?;
    if !is_installed(web) {
        npm(web, &["ci", "--no-audit", "--no-fund"])?;
    }
    drop(lock);
    let target = dist.to_str().ok_or("the build folder's name is not UTF-8")?;
    npm(web, &["run", "build", "--", "--outDir", target, "--emptyOutDir"])?;
    Ok(dist.to_owned())
}

/// npm writes its own lock file into `node_modules` last, so one that is not older than ours means: all there.
fn is_installed(web: &Path) -> bool {
    let changed = |path: &str| -> Option<SystemTime> { fs::metadata(web.join(path)).ok()?.modified().ok() };
    match (changed("node_modules/.package-lock.json"), changed("package-lock.json")) {
        (Some(installed), Some(wanted)) => installed >= wanted,
        _ => false,
    }
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let command = format!("npm {} (in {})", arguments.join(" "), web.display());
    match Command::new(program).args(arguments).current_dir(web).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{command} failed\n{}\n{}",
            String::from_utf8_lossy(&output.stdout).trim_end(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err("building the page needs Node.js 20 or newer with npm, and there is no npm on the PATH.\n\
             Install Node.js (https://nodejs.org, or your system's nodejs and npm packages), \n\
             or set COVEL_PAGE_DIST to a folder with a page that was built elsewhere."
                .to_owned())
        }
        Err(error) => Err(format!("{command} could not be started: {error}")),
    }
}

/// Files of all shipped packages and worlds, and the folders cargo has to watch.
fn packages(plugins: &Path) -> Result<Vec<String>, String> {
    println!("cargo::rerun-if-changed={}", plugins.display());
    let mut all = Vec::new();
    for path in files(plugins, NOT_SHIPPED)? {
        // Files beside the packages are for people who read the source.
        if path.contains('/') {
            all.push(path);
        }
    }
    Ok(all)
}

/// Paths with `/` below a folder, sorted.
fn files(root: &Path, skipped: &[&str]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(|error| describe(&path, &error))? {
            let entry = entry.map_err(|error| describe(&path, &error))?;
            let kind = entry.file_type().map_err(|error| describe(&path, &error))?;
            let name = entry.file_name().into_string().map_err(|name| format!("{} is not UTF-8", name.display()))?;
            if skipped.contains(&name.as_str()) || (!skipped.is_empty() && name.starts_with('.')) {
                continue;
            }
            let below = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if kind.is_dir() {
                folders.push(below);
            } else if kind.is_file() {
                found.push(below);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn table(list: &mut String, name: &str, root: &Path, files: &[String]) -> Result<(), String> {
    let root = root.canonicalize().map_err(|error| describe(root, &error))?;
    // Writing to a string does not fail.
    let _ = writeln!(list, "pub(super) static {name}: &[(&str, &[u8])] = &[");
    for file in files {
        let path = root.join(file);
        let path = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
        let _ = writeln!(list, "    ({file:?}, include_bytes!({path:?})),");
    }
    let _ = writeln!(list, "];");
    Ok(())
}

fn write_if_changed(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| describe(path, &error))
}

fn describe(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
