use std::io::{Read, Write};

use stepwell_runtime::detached::{DetachedAnswer, DetachedRequest, Performed};
use stepwell_terminal::Explained;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::runner::{self, Flags, Runner};

/// Does what a front end asks, in a process of its own.
///
/// The request is read from stdin, and the answer is one line on stdout. A run goes on after it, and
/// is shown where the log is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, app: &mut App) -> Result<Exit> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let request: DetachedRequest = serde_json::from_str(&text)
        .map_err(|error| Failure::new(Exit::Usage, format_args!("this is no request: {error}")))?;
    // What ends the front end does not end this process. It has no terminal if this fails.
    let _ = rustix::process::setsid();
    let limits = request.work.options().cloned().unwrap_or_default();
    let performed = match app.runtime().perform(request, &runner::interrupt()) {
        Ok(performed) => performed,
        Err(error) => return fail(&error),
    };
    say(&performed.answer())?;
    let Performed::Running(handle) = performed else { return Ok(Exit::Done) };
    let runner = if handle.is_flow() { Runner::Flow } else { Runner::Agent };
    let (budget, max_tokens) = (limits.budget, limits.max_tokens);
    let flags = Flags { wait: true, budget, max_tokens, ..Flags::default() };
    app.run_view().show(handle, runner, &flags)
}

fn fail(error: &stepwell_runtime::Error) -> Result<Exit> {
    let (kind, Explained { message, hint }) = (error.kind(), error.into());
    say(&DetachedAnswer::Failed { message, hint, kind })?;
    Ok(Exit::Failed)
}

/// Answers. All that follows goes to the log.
fn say(answer: &DetachedAnswer) -> Result<()> {
    let mut out = std::io::stdout();
    let line = serde_json::to_string(answer).map_err(std::io::Error::from)?;
    writeln!(out, "{line}").and_then(|()| out.flush())?;
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(std::io::Error::from)?;
    Ok(())
}
