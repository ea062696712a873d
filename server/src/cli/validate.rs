//! `covel validate`: every finding in one run, no code of a package executed.

use std::path::{Path, PathBuf};

use covel_graph::{Diagnostic, ManifestKind, Severity, link, manifest_schema};
use serde_json::json;

use super::{
    DONE, REFUSED, Streams,
    args::{SchemaKind, ValidateArgs},
};
use crate::{
    error::ServerError,
    load::{Sources, load, read_text, unreadable},
};

pub(super) fn run(arguments: &ValidateArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    if let Some(kind) = arguments.schema {
        let kind = match kind {
            SchemaKind::Plugin => ManifestKind::Plugin,
            SchemaKind::Runtime => ManifestKind::Runtime,
        };
        streams.document(&manifest_schema(kind))?;
        return Ok(DONE);
    }
    let mut loaded = load(&sources(&arguments.dirs)?)?;
    loaded.check_books();
    let mut diagnostics = loaded.diagnostics.clone();
    let packages = loaded.packages();
    if packages.len() > 1 {
        // What is only wrong in company, such as a cycle through two packages.
        match link::link(&packages) {
            Ok(linked) => diagnostics.extend(linked.diagnostics.iter().map(|found| loaded.located(found))),
            Err(error) => return Err(ServerError::Internal(error.to_string())),
        }
    }
    if arguments.warnings_as_errors {
        for found in &mut diagnostics {
            found.severity = Severity::Error;
        }
    }
    let ok = !diagnostics.iter().any(Diagnostic::is_error);
    if arguments.json {
        streams.document(&json!({ "ok": ok, "diagnostics": diagnostics }))?;
    } else {
        let mut source = (String::new(), String::new());
        for diagnostic in &diagnostics {
            if source.0 != diagnostic.file {
                // Only to show the line: a file that cannot be read is shown without it.
                let text = read_text(Path::new(&diagnostic.file)).unwrap_or_default();
                source = (diagnostic.file.clone(), text.trim_start_matches('\u{feff}').to_owned());
            }
            streams.print(&format!("{}\n", diagnostic.render(&source.1)));
        }
        let errors = diagnostics.iter().filter(|found| found.is_error()).count();
        streams.print(&format!(
            "{} packages, {} worlds: {errors} errors, {} warnings\n",
            loaded.compiled.len(),
            loaded.worlds.len(),
            diagnostics.len() - errors
        ));
    }
    Ok(if ok { DONE } else { REFUSED })
}

/// A folder may hold packages, worlds, or both: `plugins/` of this project has its worlds in a subfolder.
fn sources(dirs: &[PathBuf]) -> Result<Sources, ServerError> {
    let mut sources = Sources::default();
    for dir in dirs {
        // Reading it first, so that a missing folder is one clear refusal.
        std::fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
        let worlds = covel_graph::world::find_worlds(dir).map_err(|error| unreadable(dir, &error))?;
        let packages = covel_graph::package::find_packages(dir).map_err(|error| unreadable(dir, &error))?;
        if packages.is_empty() && worlds.is_empty() {
            return Err(ServerError::NoPackages(dir.clone()));
        }
        if !packages.is_empty() {
            sources.plugins.push(dir.clone());
        }
        if !worlds.is_empty() {
            sources.worlds.push(dir.clone());
        }
    }
    Ok(sources)
}
