//! The commands, one file each. A command's doc comment is its help.

mod abandon;
mod acp;
mod agent;
mod attach;
mod backup;
mod chat;
mod checkpoint;
mod cleanup;
mod compact;
mod completions;
mod config;
mod convert;
mod delete;
mod demo;
mod detach;
mod detached;
mod diff;
mod doctor;
mod du;
mod export;
mod files;
mod flow;
mod fork;
mod formats;
mod gates;
mod handoff;
mod hook;
mod import;
mod init;
mod label;
mod ledger;
mod log;
mod man;
mod mcp;
mod meta;
mod models;
mod phase;
mod pin;
mod pin_message;
mod purge;
mod restore;
mod resume;
mod rewind;
mod run;
mod say;
mod schema;
mod scrub;
mod search;
mod serve;
mod sessions;
mod show;
mod state;
mod stats;
mod stop;
mod store;
mod supervise;
mod tag;
mod tasks;
mod trash;
mod verify;
mod watch;
mod work;
mod worktrees;

use std::io::Write;
use std::process::ExitCode;

use crate::app::{App, Needs};
use crate::failure::{Exit, Failure, Result};

/// Lists the commands once: each is a module of the same name with `Args` and `run`.
macro_rules! commands {
    ($($(#[$meta:meta])* $name:ident = $module:ident::$args:ident => $run:path,)*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        #[command(defer = true)]
        pub(crate) enum Command {
            $($(#[$meta])* $name($module::$args),)*
        }

        /// The definition with what each command takes, which is left open until it is typed.
        pub(crate) fn filled_in(definition: clap::Command) -> clap::Command {
            let each = [$(<$module::$args as clap::Args>::augment_args,)*];
            let mut each = each.into_iter();
            definition.mut_subcommands(|command| match each.next() {
                Some(fill_in) => fill_in(command.defer(std::convert::identity)),
                None => command,
            })
        }

        /// Does it.
        pub(crate) fn run(command: &Command, app: &mut App) -> Result<Exit> {
            match command {
                $(Command::$name(args) => $run(args, app),)*
            }
        }
    };
}

commands! {
    Chat = chat::Args => chat::run,
    Run = run::Args => run::run,
    Resume = resume::Args => resume::run,
    Work = work::Args => work::run,
    Flow = flow::Args => flow::run,
    Gates = gates::Args => gates::run,
    Say = say::Args => say::run,
    Attach = attach::Args => attach::run,
    Stop = stop::Args => stop::run,
    Demo = demo::Args => demo::run,
    #[command(name = "__supervise", hide = true)]
    Supervise = supervise::Args => supervised,
    #[command(name = "__detached", hide = true)]
    Detached = detached::Args => detached::run,
    Serve = serve::Args => serve::run,
    #[command(visible_alias = "ls")]
    Sessions = sessions::Args => sessions::run,
    Show = show::Args => show::run,
    Log = log::Args => log::run,
    Search = search::Args => search::run,
    Stats = stats::Args => stats::run,
    Ledger = ledger::Args => ledger::run,
    Du = du::Args => du::run,
    State = state::Args => state::run,
    Phase = phase::Args => phase::run,
    Tasks = tasks::Args => tasks::run,
    Label = label::Args => label::run,
    Meta = meta::Args => meta::run,
    Tag = tag::Args => tag::tag,
    Untag = tag::UntagArgs => tag::untag,
    Pin = pin::Args => pin::pin,
    Unpin = pin::UnpinArgs => pin::unpin,
    Compact = compact::Args => compact::run,
    PinMessage = pin_message::Args => pin_message::pin,
    UnpinMessage = pin_message::UnpinArgs => pin_message::unpin,
    Rewind = rewind::Args => rewind::run,
    Diff = diff::Args => diff::run,
    Files = files::Args => files::run,
    Checkpoint = checkpoint::Args => checkpoint::run,
    Fork = fork::Args => fork::run,
    Worktrees = worktrees::Args => worktrees::run,
    Abandon = abandon::Args => abandon::run,
    Delete = delete::Args => delete::run,
    Trash = trash::Args => trash::run,
    Cleanup = cleanup::Args => cleanup::run,
    Purge = purge::Args => purge::run,
    Scrub = scrub::Args => scrub::run,
    Export = export::Args => export::run,
    Import = import::Args => import::run,
    Convert = convert::Args => convert::run,
    Formats = formats::Args => formats::run,
    Watch = watch::Args => watch::run,
    Backup = backup::Args => backup::run,
    Restore = restore::Args => restore::run,
    Store = store::Args => store::run,
    Agent = agent::Args => agent::run,
    Hook = hook::Args => hook::run,
    Mcp = mcp::Args => mcp::run,
    Acp = acp::Args => acp::run,
    Init = init::Args => init::run,
    Config = config::Args => config::run,
    Models = models::Args => models::run,
    Verify = verify::Args => verify::run,
    Doctor = doctor::Args => doctor::run,
    Schema = schema::Args => schema::run,
    Completions = completions::Args => completions::run,
    Man = man::Args => man::run,
}

/// Never reached: `watched` takes its turn before there is an app.
fn supervised(_args: &supervise::Args, _app: &mut App) -> Result<Exit> {
    Ok(Exit::Done)
}

impl Command {
    /// Watches over another command, if that is what was asked.
    pub(crate) fn watched(&self) -> Option<ExitCode> {
        match self {
            Self::Supervise(args) => Some(supervise::watch(args)),
            _ => None,
        }
    }

    /// What it needs before it can begin.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::Flow(args) => args.needs(),
            Self::Doctor(_) | Self::Schema(_) | Self::Completions(_) | Self::Man(_) => {
                Needs::Nothing
            }
            _ => Needs::Workspace,
        }
    }
}

/// Ends a command that could not even begin. A hook answers all the same.
pub(crate) fn could_not_begin(command: &Command, failure: Failure) -> ExitCode {
    let answer = match command {
        Command::Hook(args) => hook::answer_to_fault(args),
        _ => None,
    };
    let exit = failure.report();
    match answer {
        Some(answer) => {
            // Whoever asked is gone if this fails.
            let _ = writeln!(std::io::stdout(), "{answer}");
            ExitCode::SUCCESS
        }
        None => exit,
    }
}
