//! `covel test-runtime`: a package's cases, with real execution and commit on a temporary store.

mod check;
mod execute;

use std::path::{Path, PathBuf};

use covel_graph::package::find_packages;
use serde::Serialize;
use serde_json::json;

use super::{
    DONE, REFUSED, Streams,
    args::TestArgs,
    cases::{self, Case, Mode},
    logging::LogLine,
    runtime,
};
use crate::{
    error::ServerError,
    load::{Loaded, Sources, load, unreadable},
};

/// How a case went.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseReport {
    /// Name.
    pub(super) name: String,
    /// Did all come as expected?
    pub(super) ok: bool,
    /// What did not.
    pub(super) failures: Vec<String>,
    /// Was the initial execution committed?
    pub(super) commit_status: &'static str,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit_error: Option<String>,
    /// The execution.
    pub(super) turn: Option<covel_exec::TurnDocument>,
    /// Stored data of the tested package.
    pub(super) plugin_data: Vec<serde_json::Value>,
    /// What plugins logged.
    pub(super) logs: Vec<LogLine>,
}

/// A capability of the package that this command does not host.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Unsupported {
    plugin_id: String,
    kind: &'static str,
    name: String,
}

/// The package under test and those beside it.
pub(super) struct Bench<'a> {
    /// Everything loaded.
    pub(super) loaded: &'a Loaded,
    /// The tested package.
    pub(super) plugin_id: String,
    /// Companions named on the command line.
    pub(super) companions: Vec<String>,
}

pub(super) fn run(arguments: &TestArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let (package, only_runtime) = find(arguments)?;
    let folder = arguments.plugins_dir.clone().unwrap_or_else(|| parent(&package));
    let (file, mut chosen) = match cases::read(&package)? {
        Some((file, cases)) => (Some(file), cases),
        None => (None, vec![Case { name: "smoke".to_owned(), ..Case::default() }]),
    };
    chosen.retain(|case| case.mode != Some(Mode::Live));
    if let Some(name) = &arguments.case_name {
        chosen.retain(|case| case.name == *name);
    }
    if let Some(runtime) = &only_runtime {
        chosen.retain(|case| {
            case.runtime_id.as_deref().is_some_and(|id| id == runtime || runtime.ends_with(&format!("/{id}")))
        });
    }
    if chosen.is_empty() {
        let place = file.map_or_else(|| package.display().to_string(), |file| file.display().to_string());
        return Err(ServerError::Usage(format!("no case of that name or runtime in {place}")));
    }
    let loaded = load_with(&package, &folder, &chosen, &arguments.with_plugin)?;
    let bench = Bench {
        plugin_id: loaded
            .compiled
            .first()
            .and_then(|c| c.plugin_id.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
        loaded: &loaded,
        companions: arguments.with_plugin.clone(),
    };
    let threads = runtime()?;
    let mut reports = Vec::new();
    for case in &chosen {
        let report = threads.block_on(execute::run(&bench, case, streams.logs))?;
        if !arguments.json {
            describe(&report, streams);
        }
        reports.push(report);
    }
    let ok = reports.iter().all(|report| report.ok);
    let unsupported = unsupported(&bench);
    for missing in &unsupported {
        tracing::warn!(
            "{} {} of {} needs a whole host and was not tried",
            missing.kind,
            missing.name,
            missing.plugin_id
        );
    }
    if arguments.json {
        streams.document(&json!({
            "ok": ok, "pluginId": bench.plugin_id, "cases": reports, "unsupportedCapabilities": unsupported,
        }))?;
    } else {
        let failed = reports.iter().filter(|report| !report.ok).count();
        streams.print(&format!("{}: {} cases, {failed} failed\n", bench.plugin_id, reports.len()));
    }
    Ok(if ok { DONE } else { REFUSED })
}

/// The package folder of `DIR`, `ID` or `ID/RUNTIME`, and the runtime when one was named.
fn find(arguments: &TestArgs) -> Result<(PathBuf, Option<String>), ServerError> {
    let target = &arguments.target;
    let as_folder = Path::new(target);
    if as_folder.is_dir() {
        let found = find_packages(as_folder).map_err(|error| unreadable(as_folder, &error))?;
        return match found.as_slice() {
            [one] => Ok((one.clone(), None)),
            [] => Err(ServerError::NoPackages(as_folder.to_owned())),
            many => Err(ServerError::Usage(format!("{target} holds {} packages; name one of them", many.len()))),
        };
    }
    let Some(dir) = &arguments.plugins_dir else {
        return Err(ServerError::Usage(format!(
            "{target} is no folder; give a package's folder, or its id together with --plugins-dir DIR"
        )));
    };
    let (id, runtime) = match target.split_once('/') {
        Some((id, _)) => (id, Some(target.clone())),
        None => (target.as_str(), None),
    };
    Ok((companion(dir, id)?, runtime))
}

/// The folder of a package by id. A package's folder has its id as name.
fn companion(dir: &Path, id: &str) -> Result<PathBuf, ServerError> {
    let found = find_packages(dir).map_err(|error| unreadable(dir, &error))?;
    found
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name == id))
        .ok_or_else(|| ServerError::Usage(format!("there is no package {id:?} in {}", dir.display())))
}

fn parent(package: &Path) -> PathBuf {
    let real = package.canonicalize().unwrap_or_else(|_| package.to_owned());
    real.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The package first, then every companion any case needs; missing ones are refused before any code runs.
fn load_with(package: &Path, folder: &Path, cases: &[Case], flags: &[String]) -> Result<Loaded, ServerError> {
    let mut ids: Vec<&str> = flags.iter().map(String::as_str).collect();
    ids.extend(cases.iter().flat_map(|case| case.with_plugins.iter().flatten()).map(String::as_str));
    ids.sort_unstable();
    ids.dedup();
    let own = load(&Sources { plugins: vec![package.to_owned()], ..Sources::default() })?.strict()?;
    let own_id = own.packages().first().map(|package| package.id().to_owned()).unwrap_or_default();
    let mut plugins = Vec::new();
    for id in ids.into_iter().filter(|id| *id != own_id) {
        plugins.push(companion(folder, id)?);
    }
    let mut loaded = own;
    let beside = load(&Sources { plugins, ..Sources::default() })?.strict()?;
    loaded.compiled.extend(beside.compiled);
    Ok(loaded)
}

fn unsupported(bench: &Bench<'_>) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for package in bench.loaded.packages() {
        let fragment = &package.fragment;
        let mut add = |kind, name: &str| {
            found.push(Unsupported { plugin_id: fragment.plugin_id.clone(), kind, name: name.to_owned() });
        };
        for hook in &fragment.hooks {
            add("hook", &hook.event);
        }
        for action in &fragment.actions {
            add("rpc", action);
        }
        for form in &fragment.forms {
            add("form-validator", form);
        }
        for wire in &fragment.wires {
            add("wire", wire);
        }
        for extension in &fragment.extensions {
            add("extension", &extension.point);
        }
    }
    found
}

fn describe(report: &CaseReport, streams: &mut Streams<'_>) {
    streams.print(&format!("{} {}\n", if report.ok { "pass" } else { "FAIL" }, report.name));
    for failure in &report.failures {
        streams.print(&format!("     {failure}\n"));
    }
}
