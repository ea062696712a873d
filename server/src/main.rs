//! The `covel` program.

use std::{io, process::ExitCode};

use covel_server::cli::{self, Streams};

fn main() -> ExitCode {
    let logs = cli::logging::start();
    // Not locked for good: log lines go to standard error meanwhile.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    ExitCode::from(cli::run(std::env::args_os(), &mut Streams { out: &mut out, err: &mut err, logs: &logs }))
}
