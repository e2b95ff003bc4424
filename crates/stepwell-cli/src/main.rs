//! The `stepwell` command: sessions on the command line.
//!
//! stdout is the answer and stderr everything else. This is the only crate that reads
//! the environment; it does so once, in `world`.

#![allow(
    clippy::doc_markdown,
    reason = "an argument's doc comment is its help, read on a terminal"
)]

mod app;
mod args;
mod ask;
mod calibrations;
mod commands;
mod config;
mod cutoff;
mod engine;
mod failure;
mod files;
mod foreign;
mod git;
mod global;
mod handoff;
mod hooks;
mod housekeeping;
mod kept;
mod known;
mod lifecycle;
mod log;
mod mirror;
mod models;
mod output;
mod place;
mod point;
mod readiness;
mod registry;
mod runner;
mod selection;
mod table;
mod text;
mod when;
mod wire;
mod worktrees;
mod world;

use std::process::ExitCode;

use app::App;
use failure::Failure;
use world::World;

fn main() -> ExitCode {
    let world = World::of_this_process();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return args::report(&error),
    };
    if let Some(exit) = cli.command.watched() {
        return exit;
    }
    log::start(&cli.global, &world);
    let mut app = match App::new(&cli.global, world, cli.command.needs(), args::definition) {
        Ok(app) => app,
        Err(failure) => return commands::could_not_begin(&cli.command, failure),
    };
    let ended = commands::run(&cli.command, &mut app);
    mirror::after(&app);
    // What was answered so far is the user's, also if the rest failed.
    let flushed = app.out.flush();
    match ended.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
