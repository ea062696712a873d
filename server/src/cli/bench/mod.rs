//! `covel bench`: what turns cost on this machine, in under a minute.
//!
//! Wall-clock on a shared machine lies. So every figure comes with its spread, durable turns stand beside a raw sync of
//! the same moment, and the run before is shown beside this one.

mod client;
mod fixtures;
mod profiles;
mod samples;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use covel_exec::{Ambient as _, SystemAmbient, iso_time};
use serde::{Deserialize, Serialize};

use super::{
    DONE, Streams,
    args::{BenchArgs, BenchProfile},
    runtime, serving,
};
use crate::{error::ServerError, load::read_text};
use samples::Row;

/// Where the last run is kept, in the data folder.
const KEPT: &str = "bench.json";

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// Program version.
    version: String,
    /// Was it built with checks for development? Then the figures say little.
    debug_build: bool,
    /// When, ISO time.
    at: String,
    /// Operating system.
    os: String,
    /// Processor family.
    arch: String,
    /// Threads that run at once.
    cpus: usize,
    /// Figures, in microseconds.
    rows: Vec<Row>,
}

pub(super) fn run(arguments: &BenchArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let profiles = if arguments.profile.is_empty() { &BenchProfile::ALL[..] } else { &arguments.profile };
    let kept = serving::data_folder(arguments.data.as_deref()).map(|folder| folder.join(KEPT));
    let before = kept.as_ref().ok().and_then(|path| read(path));
    let time = Duration::from_secs(arguments.seconds.into());
    // On the disk that is asked about.
    let folder = match &arguments.data {
        Some(folder) => {
            let unwritable =
                |error: std::io::Error| ServerError::Unwritable { path: folder.clone(), message: error.to_string() };
            fs::create_dir_all(folder).map_err(unwritable)?;
            tempfile::tempdir_in(folder).map_err(unwritable)?
        }
        None => tempfile::tempdir()
            .map_err(|error| ServerError::Unwritable { path: std::env::temp_dir(), message: error.to_string() })?,
    };
    let host = runtime()?;
    let mut rows = Vec::new();
    for (at, profile) in profiles.iter().enumerate() {
        if profiles[..at].contains(profile) {
            continue;
        }
        streams.complain(&format!("measuring {} for {} s ...", profile.name(), time.as_secs()));
        rows.extend(host.block_on(profiles::run(*profile, time, folder.path()))?);
    }
    if let Some(before) = &before {
        compare(&mut rows, before);
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: cfg!(debug_assertions),
        at: iso_time(SystemAmbient::default().now_millis()),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rows,
    };
    if arguments.json {
        streams.document(&report)?;
    } else {
        streams.print(&text(&report, before.as_ref()));
    }
    let keep = kept.and_then(|path| write(&path, &report, before));
    if let Err(error) = keep {
        // The figures were shown; only the next comparison is lost.
        streams.complain(&format!("covel: this run is not kept for the next one: {error}"));
    }
    Ok(DONE)
}

/// Files of an earlier run larger than this are none of ours.
const MAX_KEPT_BYTES: u64 = 1024 * 1024;

/// An earlier run. A file that is damaged, or not ours, is no reason not to measure.
fn read(path: &Path) -> Option<Report> {
    if fs::metadata(path).ok()?.len() > MAX_KEPT_BYTES {
        return None;
    }
    serde_json::from_str(&read_text(path).ok()?).ok()
}

/// Keeps the newest figures of every profile, also of those that were not measured this time.
fn write(path: &PathBuf, report: &Report, before: Option<Report>) -> Result<(), ServerError> {
    let unwritable = |error: std::io::Error| ServerError::Unwritable { path: path.clone(), message: error.to_string() };
    let mut kept = report.clone();
    let measured = |row: &Row| report.rows.iter().any(|new| new.profile == row.profile);
    kept.rows.extend(before.into_iter().flat_map(|before| before.rows).filter(|row| !measured(row)));
    let text = serde_json::to_string_pretty(&kept).map_err(|error| ServerError::Internal(error.to_string()))?;
    let Some(folder) = path.parent() else { return Err(unwritable(ErrorKind::NotFound.into())) };
    fs::create_dir_all(folder).map_err(unwritable)?;
    // Whole or not at all.
    let file = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
    fs::write(file.path(), text).map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error)).map(drop)
}

fn compare(rows: &mut [Row], before: &Report) {
    if before.debug_build != cfg!(debug_assertions) {
        return;
    }
    let known: BTreeMap<_, _> = before.rows.iter().map(|row| ((&row.profile, &row.name, &row.part), row.p50)).collect();
    for row in rows {
        row.before_p50 = known.get(&(&row.profile, &row.name, &row.part)).copied();
    }
}

fn text(report: &Report, before: Option<&Report>) -> String {
    let mut text = format!("covel {} on {} {}, {} threads\n", report.version, report.os, report.arch, report.cpus);
    if report.debug_build {
        text.push_str("This is a development build: build with --release for figures that mean something.\n");
    }
    let mut profile = "";
    for row in &report.rows {
        if row.profile != profile {
            let (what, part) = (row.profile.as_str(), "");
            let _ = writeln!(
                text,
                "\n{what:<28} {part:<15} {:>9} {:>9} {:>9} {:>9} {:>8}  {}",
                "p50", "p95", "p99", "max", "samples", "before"
            );
            profile = &row.profile;
        }
        let _ = write!(
            text,
            "{:<28} {:<15} {:>9} {:>9} {:>9} {:>9} {:>8}",
            row.name,
            row.part,
            time(row.p50),
            time(row.p95),
            time(row.p99),
            time(row.max),
            row.samples
        );
        if let Some(was) = row.before_p50 {
            let _ = write!(text, "  {} ({:+.0} %)", time(was), (row.p50 / was - 1.0) * 100.0);
        }
        if let Some(rate) = row.per_second {
            let _ = write!(text, "  {rate:.0}/s");
        }
        text.push('\n');
    }
    if let Some(before) = before.filter(|_| report.rows.iter().any(|row| row.before_p50.is_some())) {
        let _ = writeln!(text, "\nbefore: covel {} at {}", before.version, before.at);
    }
    text
}

/// Microseconds, for people.
fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1.0 => format!("{:.0} ns", micros * 1e3),
        _ if micros < 100.0 => format!("{micros:.1} us"),
        _ if micros < 10_000.0 => format!("{micros:.0} us"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        let shown: Vec<String> = [0.4, 1.0, 99.94, 100.0, 9_999.0, 10_000.0, 1_234_567.0].map(time).into();
        assert_eq!(shown, ["400 ns", "1.0 us", "99.9 us", "100 us", "9999 us", "10.0 ms", "1234.6 ms"]);
    }
}
