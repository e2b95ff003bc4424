use std::path::PathBuf;

use stepwell_runtime::FlowRequest;
use stepwell_runtime::detached::Work;
use stepwell_terminal::note;
use stepwell_terminal::text::visible;

use super::spec;
use crate::app::App;
use crate::commands::detach;
use crate::commands::resume;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;
use crate::runner::{self, Flags, FlowFlags, Runner};
use crate::typed::{each_once, variable};

/// Runs a workflow. What each of its agents does is saved before the next thing begins.
///
/// Ends with 0 when it is done, 5 at a limit, 8 when it waits for your answer, 130 when it was
/// interrupted; each can be resumed, and nothing that is done is paid again.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dry_run", |arg| arg.help(runner::FLOW_DRY_RUN)))]
pub(crate) struct Args {
    /// The spec, YAML or JSON.
    spec: PathBuf,
    /// Sets a variable of the flow; may be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Goes on with the newest unfinished session of the same spec and variables, if there is
    /// one.
    #[arg(long)]
    auto_resume: bool,
    /// Starts it in the background, prints its id and leaves: it goes on after you log out.
    #[arg(long, conflicts_with_all = ["events", "dry_run"])]
    detach: bool,
    #[command(flatten)]
    own: FlowFlags,
    #[command(flatten)]
    flags: Flags,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        Reach::widens_if(self.detach, self.flags.reach())
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.flags.agent.is_some() {
        let message = "--agent has no meaning here: the spec names the flow's agents";
        return Err(Failure::new(Exit::Usage, message));
    }
    let request = FlowRequest::read(args.spec.clone(), &args.spec.display().to_string())?;
    spec::warn(&args.spec, &request.reading);
    let runtime = app.runtime();
    let request = FlowRequest {
        options: args.flags.options(Runner::Flow, app.console()),
        flow: args.own.options(),
        ..request.with_variables(&each_once(&args.variables)?)?
    };
    if args.auto_resume
        && app.workspace.place.has_store()
        && app.workspace.config.settings.auto_save
        && let Some(id) = runtime.unfinished_flow(&request)?
    {
        note(format_args!("Resuming {id}"));
        let (variables, own) = (args.variables.clone(), args.own.clone());
        let resumed = resume::Args::of_flow(variables, own, args.flags.clone());
        return match args.detach {
            true => resume::detach(&resumed, id, app),
            false => resume::go_on(&resumed, &id, Runner::Flow, app),
        };
    }
    if args.detach {
        let (variables, flow) = (each_once(&args.variables)?, args.own.options());
        let (spec, options) = (args.spec.clone(), args.flags.detached());
        return detach::start(Work::Flow { spec, variables, options, flow }, app);
    }
    if args.flags.dry_run {
        let plan = runtime.plan_flow(&request)?;
        match app.out.is_json() {
            true => app.out.object(&stepwell_wire::Plan::from(&plan))?,
            false => app.out.line(visible(&plan.text()).trim_end())?,
        }
        note("This was a dry run: nobody was asked, and nothing was written.");
        return Ok(Exit::Done);
    }
    let handle = runtime.start_flow(FlowRequest { interrupt: runner::interrupt(), ..request })?;
    app.run_view().show(handle, Runner::Flow, &args.flags)
}
