use stepwell::model::PhaseSet;
use stepwell_runtime::RunRequest;
use stepwell_runtime::detached::Work;

use super::detach;
use super::resume;
use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;
use crate::runner::{self, Flags, Runner};
use crate::typed::{self, one_of};

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
    #[command(flatten)]
    flags: Flags,
}

/// Sets of phases, as they are typed.
const PHASES: &[(&str, PhaseSet)] =
    &[("workflow", PhaseSet::Workflow), ("lifecycle", PhaseSet::Lifecycle)];

impl Args {
    /// Words for a session that is there are the user's.
    pub(super) fn reach(&self) -> Reach {
        Reach::widens_if(self.detach || self.session.is_some(), self.flags.reach())
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(task) = args.task.clone() else { return resume::at_startup(&args.flags, app) };
    let task = typed::task(task)?;
    if args.detach {
        let (phases, options) = (args.phases, args.flags.detached());
        return detach::start(Work::Run { task, session: None, phases, options }, app);
    }
    if let Some(name) = &args.session {
        return resume::say_more(name, task, &args.flags, app);
    }
    let request = RunRequest {
        task,
        session: None,
        phases: args.phases,
        options: args.flags.options(Runner::Agent, app.console()),
        interrupt: runner::interrupt(),
    };
    let handle = app.runtime().start(request)?;
    app.run_view().show(handle, Runner::Agent, &args.flags)
}
