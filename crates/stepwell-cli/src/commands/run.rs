use std::io::Read;

use stepwell::PhaseSet;
use stepwell_runtime::{ResumeRequest, RunRequest};

use super::resume;
use crate::app::App;
use crate::detach;
use crate::failure::{Exit, Failure, Result};
use crate::runner::{self, Flags, Runner};
use crate::typed::one_of;

/// Runs an agent on a task. Each step is saved before the next begins.
///
/// Ends with 0 when it is done, 5 at a limit, 8 when it waits for you, 130 when it was
/// interrupted; each can be resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; - reads it from stdin. Without one, sessions.resume_on_startup takes up
    /// the newest session that can be resumed.
    task: Option<String>,
    /// Adds the task to this session, and goes on there.
    #[arg(long, value_name = "SESSION", requires = "task")]
    session: Option<String>,
    /// The phases that the session's work goes through: workflow or lifecycle.
    #[arg(long, value_name = "SET", value_parser = one_of(PHASES), conflicts_with = "session", requires = "task")]
    phases: Option<PhaseSet>,
    /// Starts it in the background, prints its id and leaves: it goes on after you log out.
    #[arg(long, requires = "task", conflicts_with_all = ["session", "events"])]
    detach: bool,
    /// This process is the one in the background.
    #[arg(long, hide = true)]
    detached: bool,
    #[command(flatten)]
    flags: Flags,
}

/// Sets of phases, as they are typed.
const PHASES: &[(&str, PhaseSet)] =
    &[("workflow", PhaseSet::Workflow), ("lifecycle", PhaseSet::Lifecycle)];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(task) = args.task.clone() else { return resume::at_startup(&args.flags, app) };
    let as_typed = task.clone();
    let task = typed(task)?;
    if args.detach {
        let task = detach::Task { typed: &as_typed, text: &task };
        let (workspace, out) = app.split();
        return detach::start(Some(&task), workspace, out);
    }
    if let Some(name) = &args.session {
        return say_more(name, task, &args.flags, app);
    }
    let request = RunRequest {
        task,
        session: None,
        phases: args.phases,
        options: args.flags.options(Runner::Agent, app.console()),
        interrupt: runner::interrupt(),
    };
    if args.detached {
        detach::leave_terminal()?;
    }
    let handle = app.runtime().start(request)?;
    if args.detached {
        detach::say_id(handle.id())?;
    }
    app.run_view().show(handle, Runner::Agent, &args.flags)
}

/// A task as it was typed, or from stdin.
pub(super) fn typed(mut task: String) -> Result<String> {
    if task == "-" {
        task.clear();
        std::io::stdin().read_to_string(&mut task).map_err(|error| {
            Failure::new(Exit::Usage, format_args!("the task cannot be read from stdin: {error}"))
        })?;
    }
    if task.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "the task is empty"));
    }
    Ok(task)
}

/// Gives a session that is there more to do, and goes on with it.
pub(super) fn say_more(name: &str, text: String, flags: &Flags, app: &mut App) -> Result<Exit> {
    resume::refuse_unsaved(app)?;
    app.go_to_session(name)?;
    let (_, id) = app.session(name, stepwell::Access::Write)?;
    let runtime = app.runtime();
    let request = ResumeRequest {
        say: Some(text),
        options: flags.options(Runner::Agent, app.console()),
        interrupt: runner::interrupt(),
        ..ResumeRequest::new(id.clone(), runtime.trust(&id))
    };
    app.run_view().show(runtime.resume(request)?, Runner::Agent, flags)
}
