//! The commands of the `covel` program.
//!
//! Standard output carries the document a command is asked for and nothing else; log lines and complaints go to
//! standard error. Exit status: 0 as wanted, 1 it ran and the answer is no, 2 usage or unreadable input.

pub mod args;
mod bench;
mod cases;
mod data;
mod docs;
mod jobs;
pub mod logging;
mod new;
mod plan;
mod replay;
mod serving;
mod snapshot;
mod test_runtime;
mod text;
mod trace;
mod turn;
mod validate;

use std::{ffi::OsString, io::Write};

use clap::{Parser, error::ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::ServerError;
use args::{Cli, Command, JsonArgs};
use logging::Logs;

/// It went as wanted.
pub const DONE: u8 = 0;
/// It ran; the answer is no: not committed, not valid, a case failed.
pub const REFUSED: u8 = 1;
/// Usage or unreadable input.
pub const UNUSABLE: u8 = 2;

/// Where a command writes, and the log of this process.
pub struct Streams<'a> {
    /// Documents.
    pub out: &'a mut dyn Write,
    /// Complaints.
    pub err: &'a mut dyn Write,
    /// Log lines of plugins, kept for cases that expect some.
    pub logs: &'a Logs,
}

impl Streams<'_> {
    /// Prints text. A reader that went away is no error of ours.
    fn print(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }

    /// Prints one JSON document.
    fn document<T: Serialize>(&mut self, value: &T) -> Result<(), ServerError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| ServerError::Internal(error.to_string()))?;
        self.print(&text);
        self.print("\n");
        Ok(())
    }

    fn complain(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }
}

/// Runs a command line and answers the exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let wants_json = arguments.iter().any(|argument| argument == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            streams.print(&error.to_string());
            return DONE;
        }
        Err(error) => {
            let text = error.render().to_string();
            if wants_json {
                let message = text.trim().trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
                refuse(streams, true, &ServerError::Usage(message));
            } else {
                streams.complain(text.trim_end());
            }
            return UNUSABLE;
        }
    };
    match dispatch(&cli.command, streams) {
        Ok(status) => status,
        Err(error) => {
            refuse(streams, wants_json, &error);
            match error {
                ServerError::Interrupted => REFUSED,
                _ => UNUSABLE,
            }
        }
    }
}

fn refuse(streams: &mut Streams<'_>, json: bool, error: &ServerError) {
    if !json {
        if let ServerError::Packages(diagnostics) = error {
            for diagnostic in diagnostics {
                streams.complain(&diagnostic.to_string());
            }
        }
        streams.complain(&format!("covel: {error}"));
        return;
    }
    let mut body = json!({ "code": error.code(), "message": error.to_string() });
    if let ServerError::Packages(diagnostics) = error {
        body["diagnostics"] = json!(diagnostics);
    }
    // An object of strings always has a JSON form.
    let _ = streams.document(&json!({ "error": body }));
}

fn dispatch(command: &Command, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    match command {
        Command::Play(arguments) => serving::play(arguments, streams),
        Command::Serve(arguments) => serving::serve(arguments, streams),
        Command::Turn(arguments) => turn::run(arguments, streams),
        Command::Plan(arguments) => plan::run(arguments, streams),
        Command::Snapshot(arguments) => snapshot::run(arguments, streams),
        Command::New(arguments) => new::run(arguments, streams),
        Command::Validate(arguments) => validate::run(arguments, streams),
        Command::TestRuntime(arguments) => test_runtime::run(arguments, streams),
        Command::Trace(arguments) => trace::run(arguments, streams),
        Command::Replay(arguments) => replay::run(arguments, streams),
        Command::Data(arguments) => data::run(arguments, streams),
        Command::Jobs(arguments) => jobs::run(arguments, streams),
        Command::Bench(arguments) => bench::run(arguments, streams),
        Command::Man(arguments) => docs::man(arguments, streams),
        Command::Completions(arguments) => docs::completions(arguments, streams),
        Command::Version(arguments) => version(arguments, streams),
    }
}

fn version(arguments: &JsonArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let version = env!("CARGO_PKG_VERSION");
    if arguments.json {
        let body: Value = json!({ "name": "covel", "version": version });
        streams.document(&body)?;
    } else {
        streams.print(&format!("covel {version}\n"));
    }
    Ok(DONE)
}

/// A runtime for commands that run turns.
fn runtime() -> Result<tokio::runtime::Runtime, ServerError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| ServerError::Internal(format!("no threads: {error}")))
}
