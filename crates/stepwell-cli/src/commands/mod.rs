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
use crate::reach::Reach;
use crate::reach::Reach::{Erases, Reads, Widens, Writes};

/// Lists the commands once, as they are typed: each is a module of the same name with `Args` and
/// `run`, and says how far it reaches.
macro_rules! commands {
    ($(
        $(#[$meta:meta])*
        $name:ident($typed:literal $(| $alias:literal)?) = $module:ident::$args:ident => $run:path,
            $reach:expr;
    )*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $(#[command(name = $typed $(, visible_alias = $alias)?)] $(#[$meta])* $name($module::$args),)*
        }

        /// Does it, if it may be done here.
        pub(crate) fn run(command: &Command, app: &mut App) -> Result<Exit> {
            match command {
                $(Command::$name(args) => {
                    let reach: fn(&$module::$args) -> Reach = $reach;
                    reach(args).permit(concat!("stepwell ", $typed), &app.workspace.host)?;
                    $run(args, app)
                })*
            }
        }
    };
}

commands! {
    Chat("chat") = chat::Args => chat::run, |_| Widens;
    Run("run") = run::Args => run::run, run::Args::reach;
    Resume("resume") = resume::Args => resume::run, resume::Args::reach;
    Work("work") = work::Args => work::run, work::Args::reach;
    Flow("flow") = flow::Args => flow::run, flow::Args::reach;
    Gates("gates") = gates::Args => gates::run, gates::Args::reach;
    Say("say") = say::Args => say::run, |_| Widens;
    Attach("attach") = attach::Args => attach::run, |_| Reads;
    Stop("stop") = stop::Args => stop::run, |_| Writes;
    Demo("demo") = demo::Args => demo::run, |_| Writes;
    #[command(hide = true)]
    Supervise("__supervise") = supervise::Args => supervised, |_| Reads;
    #[command(hide = true)]
    Detached("__detached") = detached::Args => detached::run, |_| Widens;
    Serve("serve") = serve::Args => serve::run, |_| Widens;
    Sessions("sessions" | "ls") = sessions::Args => sessions::run, |_| Reads;
    Show("show") = show::Args => show::run, |_| Reads;
    Log("log") = log::Args => log::run, |_| Reads;
    Search("search") = search::Args => search::run, |_| Reads;
    Stats("stats") = stats::Args => stats::run, |_| Reads;
    Ledger("ledger") = ledger::Args => ledger::run, |_| Reads;
    Du("du") = du::Args => du::run, |_| Reads;
    State("state") = state::Args => state::run, state::Args::reach;
    Phase("phase") = phase::Args => phase::run, |_| Writes;
    Tasks("tasks") = tasks::Args => tasks::run, |_| Writes;
    Label("label") = label::Args => label::run, |_| Writes;
    Meta("meta") = meta::Args => meta::run, |_| Writes;
    Tag("tag") = tag::Args => tag::tag, |_| Writes;
    Untag("untag") = tag::UntagArgs => tag::untag, |_| Writes;
    Pin("pin") = pin::Args => pin::pin, |_| Writes;
    Unpin("unpin") = pin::UnpinArgs => pin::unpin, |_| Erases;
    Compact("compact") = compact::Args => compact::run, |_| Writes;
    PinMessage("pin-message") = pin_message::Args => pin_message::pin, |_| Writes;
    UnpinMessage("unpin-message") = pin_message::UnpinArgs => pin_message::unpin, |_| Writes;
    Rewind("rewind") = rewind::Args => rewind::run, rewind::Args::reach;
    Diff("diff") = diff::Args => diff::run, |_| Reads;
    Files("files") = files::Args => files::run, |_| Reads;
    Checkpoint("checkpoint") = checkpoint::Args => checkpoint::run, |_| Writes;
    Fork("fork") = fork::Args => fork::run, |_| Writes;
    Worktrees("worktrees") = worktrees::Args => worktrees::run, worktrees::Args::reach;
    Abandon("abandon") = abandon::Args => abandon::run, |_| Writes;
    Delete("delete") = delete::Args => delete::run, |_| Erases;
    Trash("trash") = trash::Args => trash::run, trash::Args::reach;
    Cleanup("cleanup") = cleanup::Args => cleanup::run, cleanup::Args::reach;
    Purge("purge") = purge::Args => purge::run, |_| Erases;
    Scrub("scrub") = scrub::Args => scrub::run, |_| Erases;
    Export("export") = export::Args => export::run, |_| Reads;
    Import("import") = import::Args => import::run, |_| Writes;
    Convert("convert") = convert::Args => convert::run, |_| Reads;
    Formats("formats") = formats::Args => formats::run, |_| Reads;
    Watch("watch") = watch::Args => watch::run, |_| Writes;
    Backup("backup") = backup::Args => backup::run, |_| Writes;
    Restore("restore") = restore::Args => restore::run, restore::Args::reach;
    Store("store") = store::Args => store::run, store::Args::reach;
    Agent("agent") = agent::Args => agent::run, |_| Writes;
    Hook("hook") = hook::Args => hook::run, hook::Args::reach;
    Mcp("mcp") = mcp::Args => mcp::run, mcp::Args::reach;
    Acp("acp") = acp::Args => acp::run, |_| Widens;
    Init("init") = init::Args => init::run, |_| Writes;
    Config("config") = config::Args => config::run, config::Args::reach;
    Models("models") = models::Args => models::run, models::Args::reach;
    Verify("verify") = verify::Args => verify::run, |_| Reads;
    Doctor("doctor") = doctor::Args => doctor::run, doctor::Args::reach;
    Schema("schema") = schema::Args => schema::run, |_| Reads;
    Completions("completions") = completions::Args => completions::run, |_| Reads;
    Man("man") = man::Args => man::run, |_| Reads;
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
