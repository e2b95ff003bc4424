use std::io::{self, IsTerminal};

use stepwell_terminal::note;
use stepwell_terminal::text::visible;
use stepwell_wire::{Answer, HookInstalled};
use stepwell_workspace::hooks;
use stepwell_workspace::hooks::{
    Delegation, HookAnswer, HookFault, Payload, SettingsFile, not_stopped, read_payload,
};

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Answers other agents' hooks, and installs them.
///
/// pre-delegate and subagent-stop read a JSON object from stdin and answer with one. A
/// fault of Stepwell's own is answered with reason "error" and exit code 0, so that it
/// never stops the agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Says whether a task that is about to be delegated has a session to resume.
    PreDelegate,
    /// Ends the session of an agent that stopped.
    SubagentStop,
    /// Adds the hooks to another agent's settings.
    Install {
        /// Which agent's.
        #[arg(value_enum)]
        agent: Host,
    },
    /// Takes the hooks out of another agent's settings.
    Uninstall {
        /// Which agent's.
        #[arg(value_enum)]
        agent: Host,
    },
    /// Runs each hook on a sample and says what it would do. Changes nothing.
    Test,
}

/// An agent that has hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Host {
    Claude,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            Action::PreDelegate | Action::SubagentStop => Reach::Writes,
            Action::Install { .. } | Action::Uninstall { .. } => Reach::Widens,
            Action::Test => Reach::Reads,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match args.action {
        Action::PreDelegate => answer(&hooks::answer_pre_delegate(&app.workspace, payload()), app),
        Action::SubagentStop => {
            answer(&hooks::answer_subagent_stop(&app.workspace, payload()), app)
        }
        Action::Install { agent: Host::Claude } => install(app),
        Action::Uninstall { agent: Host::Claude } => uninstall(app),
        Action::Test => test(app),
    }
}

/// A hook is answered even where nothing else works: what to print if the configuration
/// or the folder is wrong.
pub(crate) fn answer_to_fault(args: &Args) -> Option<String> {
    let answer = match args.action {
        Action::PreDelegate => serde_json::to_string(&Delegation::no("error", None).answer),
        Action::SubagentStop => serde_json::to_string(&not_stopped("error", None)),
        _ => return None,
    };
    answer.ok()
}

/// What stdin says, or why it says nothing.
fn payload() -> Result<Payload, String> {
    match io::stdin().is_terminal() {
        true => Err("a JSON object is read from stdin".to_owned()),
        false => read_payload(io::stdin()),
    }
}

/// Answers a hook. Only one that was told nothing fails.
fn answer<T: Answer>(answered: &HookAnswer<T>, app: &mut App) -> Result<Exit> {
    let exit = match &answered.fault {
        None => Exit::Done,
        Some(HookFault::Ours(why)) => {
            note(format_args!("error: {why}"));
            Exit::Done
        }
        Some(HookFault::NoPayload(why)) => {
            note(format_args!("error: stdin holds no JSON object: {why}"));
            Exit::Failed
        }
    };
    app.out.object(&answered.answer)?;
    Ok(exit)
}

fn install(app: &mut App) -> Result<Exit> {
    let file = SettingsFile::below(&app.workspace.place.root);
    let changed = file.install()?;
    // Delegations are recorded from now on: there must be a store to record them in.
    drop(app.workspace.open_or_create()?);
    let says = if changed { "Added the hooks to" } else { "The hooks are in" };
    told(&file, changed, says, app)
}

fn uninstall(app: &mut App) -> Result<Exit> {
    let file = SettingsFile::below(&app.workspace.place.root);
    let changed = file.uninstall()?;
    let says = if changed { "Took the hooks out of" } else { "No hooks of ours are in" };
    told(&file, changed, says, app)
}

fn told(file: &SettingsFile, changed: bool, says: &str, app: &mut App) -> Result<Exit> {
    let settings = file.path().display().to_string();
    let line = format!("{says} {}", visible(&settings));
    app.out.answer(&HookInstalled { settings, changed }, line)?;
    Ok(Exit::Done)
}

/// Says what each hook answers to samples.
fn test(app: &mut App) -> Result<Exit> {
    for sample in hooks::samples(&app.workspace)? {
        let line = format!("{} on {} sample\n  {}", sample.hook, sample.sample, sample.answer);
        app.out.answer(&sample, line)?;
    }
    let file = SettingsFile::below(&app.workspace.place.root);
    note(match file.installed()? {
        0 => "Not installed here: stepwell hook install claude".to_owned(),
        n => format!("{n} of 2 hooks are installed in {}", file.path().display()),
    });
    if !app.workspace.place.has_store() {
        note("There is no store here yet: stepwell init makes one.");
    }
    note("Nothing was changed: the samples ran over a store in memory.");
    Ok(Exit::Done)
}
