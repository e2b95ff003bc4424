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

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use crate::app::{App, Needs};
use crate::failure::{Exit, Failure, Result};

/// Adds what a command takes to its definition.
type FillIn = fn(clap::Command) -> clap::Command;

/// Lists the commands once, as they are typed: each is a module of the same name with `Args` and
/// `run`.
macro_rules! commands {
    ($(
        $(#[$meta:meta])*
        $name:ident($typed:literal $(| $alias:literal)?) = $module:ident::$args:ident => $run:path,
    )*) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $(#[command(name = $typed $(, visible_alias = $alias)?)] $(#[$meta])* $name($module::$args),)*
        }

        /// A definition of the commands that are among these words alone; of the first one, if
        /// none is. To define them all takes longer than most commands do.
        pub(crate) fn named(definition: clap::Command, words: &[OsString]) -> clap::Command {
            let all: &[(&[&str], FillIn)] = &[
                $((&[$typed $(, $alias)?], <$module::$args as clap::Args>::augment_args),)*
            ];
            let typed = |names: &[&str]| words.iter().any(|word| names.iter().any(|it| word == it));
            let mut named: Vec<_> = all.iter().filter(|(names, _)| typed(names)).collect();
            if named.is_empty() {
                named.extend(all.first());
            }
            let command = |(names, fill_in): &(&[&'static str], FillIn)| {
                clap::Command::new(names[0]).aliases(names[1..].iter().copied()).defer(*fill_in)
            };
            definition.subcommands(named.into_iter().map(command))
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
    Chat("chat") = chat::Args => chat::run,
    Run("run") = run::Args => run::run,
    Resume("resume") = resume::Args => resume::run,
    Work("work") = work::Args => work::run,
    Flow("flow") = flow::Args => flow::run,
    Gates("gates") = gates::Args => gates::run,
    Say("say") = say::Args => say::run,
    Attach("attach") = attach::Args => attach::run,
    Stop("stop") = stop::Args => stop::run,
    Demo("demo") = demo::Args => demo::run,
    #[command(hide = true)]
    Supervise("__supervise") = supervise::Args => supervised,
    #[command(hide = true)]
    Detached("__detached") = detached::Args => detached::run,
    Serve("serve") = serve::Args => serve::run,
    Sessions("sessions" | "ls") = sessions::Args => sessions::run,
    Show("show") = show::Args => show::run,
    Log("log") = log::Args => log::run,
    Search("search") = search::Args => search::run,
    Stats("stats") = stats::Args => stats::run,
    Ledger("ledger") = ledger::Args => ledger::run,
    Du("du") = du::Args => du::run,
    State("state") = state::Args => state::run,
    Phase("phase") = phase::Args => phase::run,
    Tasks("tasks") = tasks::Args => tasks::run,
    Label("label") = label::Args => label::run,
    Meta("meta") = meta::Args => meta::run,
    Tag("tag") = tag::Args => tag::tag,
    Untag("untag") = tag::UntagArgs => tag::untag,
    Pin("pin") = pin::Args => pin::pin,
    Unpin("unpin") = pin::UnpinArgs => pin::unpin,
    Compact("compact") = compact::Args => compact::run,
    PinMessage("pin-message") = pin_message::Args => pin_message::pin,
    UnpinMessage("unpin-message") = pin_message::UnpinArgs => pin_message::unpin,
    Rewind("rewind") = rewind::Args => rewind::run,
    Diff("diff") = diff::Args => diff::run,
    Files("files") = files::Args => files::run,
    Checkpoint("checkpoint") = checkpoint::Args => checkpoint::run,
    Fork("fork") = fork::Args => fork::run,
    Worktrees("worktrees") = worktrees::Args => worktrees::run,
    Abandon("abandon") = abandon::Args => abandon::run,
    Delete("delete") = delete::Args => delete::run,
    Trash("trash") = trash::Args => trash::run,
    Cleanup("cleanup") = cleanup::Args => cleanup::run,
    Purge("purge") = purge::Args => purge::run,
    Scrub("scrub") = scrub::Args => scrub::run,
    Export("export") = export::Args => export::run,
    Import("import") = import::Args => import::run,
    Convert("convert") = convert::Args => convert::run,
    Formats("formats") = formats::Args => formats::run,
    Watch("watch") = watch::Args => watch::run,
    Backup("backup") = backup::Args => backup::run,
    Restore("restore") = restore::Args => restore::run,
    Store("store") = store::Args => store::run,
    Agent("agent") = agent::Args => agent::run,
    Hook("hook") = hook::Args => hook::run,
    Mcp("mcp") = mcp::Args => mcp::run,
    Acp("acp") = acp::Args => acp::run,
    Init("init") = init::Args => init::run,
    Config("config") = config::Args => config::run,
    Models("models") = models::Args => models::run,
    Verify("verify") = verify::Args => verify::run,
    Doctor("doctor") = doctor::Args => doctor::run,
    Schema("schema") = schema::Args => schema::run,
    Completions("completions") = completions::Args => completions::run,
    Man("man") = man::Args => man::run,
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
