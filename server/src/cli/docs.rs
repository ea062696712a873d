//! Man pages and completions, from the one definition of flags.

use clap::CommandFactory;

use super::{
    DONE, Streams,
    args::{Cli, CompletionArgs, ManArgs},
};
use crate::error::ServerError;

pub(super) fn man(arguments: &ManArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let mut program = Cli::command();
    // Gives every command its full name and the shared flags.
    program.build();
    let command = match &arguments.page {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone().version(env!("CARGO_PKG_VERSION")),
            None => {
                return Err(ServerError::Usage(format!("there is no command {name:?}; `covel help` lists them")));
            }
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(|error| ServerError::Internal(error.to_string()))?;
    streams.print(&String::from_utf8_lossy(&page));
    Ok(DONE)
}

pub(super) fn completions(arguments: &CompletionArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "covel", &mut script);
    streams.print(&String::from_utf8_lossy(&script));
    Ok(DONE)
}
