//! `covel new`: a package to begin with, and what an editor needs to check it without a network.

use std::{fs, io, path::Path};

use covel_abi::author::NODE_MODULES;
use covel_graph::ids::is_package_id;
use serde_json::json;

use super::{
    DONE, Streams,
    args::{NewArgs, Template},
};
use crate::{error::ServerError, limits::MAX_PACKAGE_NAME};

/// Files of one template: path in the package, text.
type Files = &'static [(&'static str, &'static str)];

/// The files of a folder below `templates`.
macro_rules! files {
    ($folder:literal: $($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../templates/", $folder, "/", $path)))),*]
    };
}

/// What every package begins with.
const COMMON: Files = files!("common": "package.json" "tsconfig.json");
const GIT_IGNORE: &str = include_str!("../../templates/common/gitignore");

impl Template {
    fn files(self) -> Files {
        match self {
            Self::Function => {
                files!("function": "PLUGIN.md" "README.md" "server/count.js" "schemas/count.schema.json" "tests/runtime-cases.json")
            }
            Self::Agent => {
                files!("agent": "PLUGIN.md" "README.md" "server/index.js" "schemas/note.schema.json" "tests/runtime-cases.json")
            }
            Self::Panel => {
                files!("panel": "PLUGIN.md" "README.md" "server/index.js" "server/pin.js" "ui/board.json" "schemas/note.schema.json" "tests/runtime-cases.json")
            }
            Self::Service => {
                files!("service": "PLUGIN.md" "README.md" "server/index.js" "server/try.js" "tests/runtime-cases.json")
            }
            Self::Extension => {
                files!("extension": "PLUGIN.md" "README.md" "server/index.js" "server/keep.js" "schemas/promise.schema.json" "tests/runtime-cases.json")
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Agent => "agent",
            Self::Panel => "panel",
            Self::Service => "service",
            Self::Extension => "extension",
        }
    }
}

pub(super) fn run(arguments: &NewArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    match (&arguments.types, &arguments.name) {
        (Some(package), _) => types(package, arguments.json, streams),
        (None, Some(name)) => package(name, arguments, streams),
        (None, None) => Err(ServerError::Usage("name the package".to_owned())),
    }
}

/// Writes the types anew: after a checkout, which does not hold them, or for another version of this program.
fn types(package: &Path, json: bool, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    if !package.join("PLUGIN.md").is_file() {
        return Err(ServerError::NoPackages(package.to_owned()));
    }
    let modules = package.join("node_modules");
    write_types(&modules)?;
    if json {
        streams
            .document(&json!({ "path": modules, "version": env!("CARGO_PKG_VERSION"), "files": NODE_MODULES.len() }))?;
    } else {
        streams.print(&format!("the types of this version are in {}\n", modules.display()));
    }
    Ok(DONE)
}

fn package(name: &str, arguments: &NewArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    if !is_package_id(name) || name.len() > MAX_PACKAGE_NAME {
        let rule = format!(
            "start with a lowercase letter, then lowercase letters, digits and `-`, at most {MAX_PACKAGE_NAME} characters"
        );
        return Err(ServerError::BadName { name: name.chars().take(2 * MAX_PACKAGE_NAME).collect(), rule });
    }
    let target = arguments.dir.join(name);
    // A link to nowhere counts as being there, too.
    if fs::symlink_metadata(&target).is_ok() {
        return Err(ServerError::Exists(target));
    }
    let failed =
        |path: &Path, error: &io::Error| ServerError::Unwritable { path: path.to_owned(), message: error.to_string() };
    fs::create_dir_all(&arguments.dir).map_err(|error| failed(&arguments.dir, &error))?;
    // Beside its place, so that it is there whole or not at all.
    let mut place = tempfile::Builder::new();
    place.prefix(".covel-new-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A package is an ordinary folder: the system's mask decides who may read it.
        place.permissions(fs::Permissions::from_mode(0o777));
    }
    let fresh = place.tempdir_in(&arguments.dir).map_err(|error| failed(&arguments.dir, &error))?;
    let shown = display_name(name);
    let mut written = vec![".gitignore"];
    write(&fresh.path().join(".gitignore"), GIT_IGNORE)?;
    for (path, text) in COMMON.iter().chain(arguments.template.files()) {
        write(&fresh.path().join(path), &text.replace("__id__", name).replace("__name__", &shown))?;
        written.push(path);
    }
    written.sort_unstable();
    write_types(&fresh.path().join("node_modules"))?;
    fs::rename(fresh.path(), &target).map_err(|error| failed(&target, &error))?;
    // The folder has moved; there is nothing left to remove.
    let _ = fresh.keep();

    let template = arguments.template.name();
    if arguments.json {
        streams.document(&json!({ "id": name, "template": template, "path": target, "files": written }))?;
        return Ok(DONE);
    }
    let place = target.display();
    streams.print(&format!("{place}: a package of template {template}\n"));
    for file in &written {
        streams.print(&format!("  {file}\n"));
    }
    streams.print(&format!(
        "\nNext:\n  covel validate {place}\n  covel test-runtime {place}\n  covel turn --plugins {place} --message \"I look around.\"\n\
         An editor that knows TypeScript checks its code: the types are in node_modules.\n"
    ));
    Ok(DONE)
}

/// `tide-clock` is shown as `Tide clock`.
fn display_name(id: &str) -> String {
    let words = id.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut letters = words.chars();
    letters.next().map_or(words.clone(), |first| first.to_uppercase().chain(letters).collect())
}

fn write_types(modules: &Path) -> Result<(), ServerError> {
    NODE_MODULES.iter().try_for_each(|(path, text)| write(&modules.join(path), text))
}

fn write(path: &Path, text: &str) -> Result<(), ServerError> {
    let put = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)
    };
    put().map_err(|error| ServerError::Unwritable { path: path.to_owned(), message: error.to_string() })
}
