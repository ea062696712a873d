//! Bundles the JavaScript every isolate loads, and writes a table of it for `src/builtin.rs`.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

fn main() {
    if let Err(error) = bundle() {
        // A build script has no better way to speak to its user.
        eprintln!("covel-abi: {error}");
        std::process::exit(1);
    }
}

fn bundle() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let js = root.join("js");
    for watched in ["js/src", "js/build.mjs", "js/package.json", "js/package-lock.json", "sdk/src", "sdk/package.json"]
    {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    // The copy is bundled, so that two builds of one checkout do not write into each other's node_modules.
    let work = out.join("work");
    copy(&js, &work.join("js"))?;
    copy(&root.join("sdk"), &work.join("sdk"))?;
    let work_js = work.join("js");
    if stale(&work_js) {
        run(Command::new(npm()).args(["ci", "--ignore-scripts", "--no-progress"]).current_dir(&work_js), "npm ci")?;
        fs::write(work_js.join("node_modules/.covel-stamp"), fs::read(work_js.join("package-lock.json"))?)?;
    }
    let dist = out.join("modules");
    run(Command::new("node").arg("build.mjs").arg(&dist).current_dir(&work_js), "node build.mjs")?;
    table(&dist, &out.join("modules.rs"))?;
    author(&root.join("sdk"), &work, &dist, &out.join("author.rs"))
}

/// What authors get beside their package, as it would lie in `node_modules`: the SDK as it is here, and of zod its types
/// and the bundle isolates load.
fn author(sdk: &Path, work: &Path, dist: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    const SDK: &str = "@covel/plugin-handlers-utils";
    let zod = work.join("js/node_modules/zod");
    let mut files = vec![(format!("{SDK}/package.json"), sdk.join("package.json"))];
    for (name, path) in listed(&sdk.join("src"))? {
        // Declarations of what only the host has.
        if name != "host.d.ts" {
            files.push((format!("{SDK}/src/{name}"), path));
        }
    }
    let own = work.join("author");
    fs::create_dir_all(&own)?;
    let manifest = fs::read_to_string(zod.join("package.json"))?;
    let version = manifest.split("\"version\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let version = version.ok_or("zod's package.json names no version")?;
    fs::write(
        own.join("package.json"),
        format!(
            "{{\n  \"name\": \"zod\",\n  \"version\": \"{version}\",\n  \"description\": \"The types and the bundle the host preloads.\",\n  \
             \"license\": \"MIT\",\n  \"type\": \"module\",\n  \"exports\": {{ \".\": {{ \"types\": \"./index.d.ts\", \"default\": \"./index.js\" }} }}\n}}\n"
        ),
    )?;
    // The bundle carries one language; so do these types.
    fs::write(own.join("locales.d.ts"), "export { default as en } from \"./en.js\";\n")?;
    files.push(("zod/package.json".into(), own.join("package.json")));
    files.push(("zod/LICENSE".into(), zod.join("LICENSE")));
    files.push(("zod/index.js".into(), dist.join("zod.js")));
    files.push(("zod/index.d.ts".into(), zod.join("index.d.ts")));
    files.push(("zod/v4/locales/index.d.ts".into(), own.join("locales.d.ts")));
    files.push(("zod/v4/locales/en.d.ts".into(), zod.join("v4/locales/en.d.ts")));
    for folder in ["classic", "core"] {
        for (name, path) in listed(&zod.join("v4").join(folder))? {
            if name.ends_with(".d.ts") {
                files.push((format!("zod/v4/{folder}/{name}"), path));
            }
        }
    }
    let mut rows = String::from(
        "/// Path below `node_modules` and text of each file.\npub const NODE_MODULES: &[(&str, &str)] = &[\n",
    );
    for (name, path) in files {
        writeln!(rows, "    ({name:?}, include_str!({:?})),", path.display().to_string())?;
    }
    rows.push_str("];\n");
    fs::write(target, rows)?;
    Ok(())
}

/// Name and path of the files of a folder, by name.
fn listed(folder: &Path) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

fn npm() -> &'static str {
    if cfg!(windows) { "npm.cmd" } else { "npm" }
}

/// Are the installed packages other than the lock file says?
fn stale(js: &Path) -> bool {
    let stamp = fs::read(js.join("node_modules/.covel-stamp")).ok();
    stamp.is_none() || stamp != fs::read(js.join("package-lock.json")).ok()
}

fn run(command: &mut Command, what: &str) -> Result<(), Box<dyn Error>> {
    let output = command.output().map_err(|error| {
        format!("cannot run `{what}`: {error}. Node.js 20 or newer with npm must be on the PATH to build this crate")
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "`{what}` failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// Mirrors a folder, leaving what is unchanged and skipping installed packages.
fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "node_modules" || name == "dist" {
            continue;
        }
        let (source, target) = (entry.path(), to.join(&name));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else if newer(&source, &target) {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn newer(source: &Path, target: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    !target.exists() || time(source) > time(target) || fs::read(source).ok() != fs::read(target).ok()
}

fn table(dist: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(dist.join("modules.json"))?;
    let mut rows =
        String::from("/// Name and source of each host module.\npub(crate) const MODULES: &[(&str, &str)] = &[\n");
    // One `"name": "file"` pair a line, as build.mjs writes it.
    for line in text.lines() {
        let mut quoted = line.split('"').skip(1).step_by(2);
        if let (Some(name), Some(file)) = (quoted.next(), quoted.next()) {
            writeln!(rows, "    ({name:?}, include_str!({:?})),", dist.join(file).display().to_string())?;
        }
    }
    rows.push_str("];\n");
    fs::write(target, rows)?;
    Ok(())
}
