//! The `stepwell` command: sessions on the command line.
//!
//! stdout is the answer and stderr everything else. This is the only crate that reads
//! the environment; it does so in `host` and `terminal`.

#![allow(
    clippy::doc_markdown,
    reason = "an argument's doc comment is its help, read on a terminal"
)]

mod app;
mod args;
mod ask;
mod commands;
mod completion;
mod failure;
mod foreign;
mod global;
mod host;
mod log;
mod output;
mod progress;
mod reach;
mod runner;
mod selection;
mod terminal;
mod typed;

use std::process::ExitCode;
use stepwell_workspace::mirror;

use app::App;
use failure::Failure;

/// Long sessions are read by several threads at once: with the system's allocator, on which they
/// wait for each other, that takes longer than one thread does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (host, terminal) = (host::of_this_process(), terminal::of_this_process());
    if completion::answered(args::definition, &host, std::env::args_os().collect()) {
        return ExitCode::SUCCESS;
    }
    let typed: Vec<_> = std::env::args_os().collect();
    let cli = match args::parse(typed, terminal.output && terminal.can_ask) {
        Ok(cli) => cli,
        Err(error) => return args::report(&error),
    };
    if let Some(exit) = cli.command.watched() {
        return exit;
    }
    log::start(&cli.global, &host);
    let mut app = match App::new(&cli.global, host, terminal, cli.command.needs(), args::definition)
    {
        Ok(app) => app,
        Err(failure) => return commands::could_not_begin(&cli.command, failure),
    };
    let ended = commands::run(&cli.command, &mut app);
    mirror::refresh(&app.workspace);
    if app.workspace.redactor().taken() > 0 {
        stepwell_terminal::note(format_args!(
            "note: what looks like a secret was not stored; [redacted:RULE] stands in its place"
        ));
    }
    // What was answered so far is the user's, also if the rest failed.
    let flushed = app.out.flush();
    match ended.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
