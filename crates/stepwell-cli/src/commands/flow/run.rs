use std::path::PathBuf;

use stepwell::Access;

use super::spec;
use crate::app::App;
use crate::commands::resume;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::runner::Flags;
use crate::runner::flow::{Asked, FlowFlags, Reply, each_once, start, unfinished, variable};

/// Runs a workflow. What each of its agents does is saved before the next thing begins.
///
/// Ends with 0 when it is done, 5 at a limit, 8 when it waits for your answer, 130 when it was
/// interrupted; each can be resumed, and nothing that is done is paid again.
#[derive(Debug, clap::Args)]
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
    #[command(flatten)]
    own: FlowFlags,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.flags.agent.is_some() {
        let message = "--agent has no meaning here: the spec names the flow's agents";
        return Err(Failure::new(Exit::Usage, message));
    }
    let loaded = spec::load(&args.spec)?;
    spec::warn(&args.spec, &loaded.reading);
    let set = each_once(&args.variables)?;
    let variables = loaded.reading.spec.inputs.resolve(&set).map_err(stepwell_flow::Error::from)?;
    let asked = Asked { path: &args.spec, text: &loaded.text, reading: &loaded.reading, variables };
    if args.auto_resume && app.place.has_store() && app.config.settings.auto_save {
        let well = app.existing(Access::Write)?;
        if let Some(id) = unfinished(&asked, &well, app)? {
            note(format_args!("Resuming {id}"));
            let reply = Reply { variables: set, ..Reply::default() };
            return resume::flow((&well, &id), &reply, (&args.flags, &args.own), app);
        }
    }
    start(&asked, &args.flags, &args.own, app)
}
