use std::io::{self, IsTerminal, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use stepwell::lifecycle::{self, Begin, Update};
use stepwell::{Access, Stepwell};
use stepwell_wire::{HookInstalled, HookSample};
use stepwell_workspace::hooks::{
    Delegation, Log, Payload, SettingsFile, not_stopped, pre_delegate, subagent_stop,
};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::visible;

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
        /// Whose.
        #[arg(value_enum)]
        agent: Host,
    },
    /// Takes the hooks out of another agent's settings.
    Uninstall {
        /// Whose.
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

/// The most that a hook reads.
const LIMIT: u64 = 50 << 20;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match args.action {
        Action::PreDelegate => delegate(app),
        Action::SubagentStop => stop(app),
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
    if io::stdin().is_terminal() {
        return Err("a JSON object is read from stdin".to_owned());
    }
    let mut text = Vec::new();
    io::stdin().take(LIMIT + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LIMIT {
        return Err(format!("more than {LIMIT} bytes"));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    // Where it is wrong, not what it says: that may be a secret, and this is logged.
    serde_json::from_slice(text).map_err(|error| {
        format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column())
    })
}

/// Does a hook's work. No fault in it, not even a panic, reaches the caller.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failure::Said { message, .. })) => Err(message),
        Ok(Err(Failure::ClosedPipe)) => Err("closed pipe".to_owned()),
        Err(_) => Err("a fault in stepwell itself".to_owned()),
    }
}

fn delegate(app: &mut App) -> Result<Exit> {
    let payload = match payload() {
        Ok(payload) => payload,
        Err(why) => {
            log(app, &format!("pre-delegate invalid_json {why}"));
            note(format_args!("error: stdin holds no JSON object: {why}"));
            app.out.object(&Delegation::no("invalid_json", None).answer)?;
            return Ok(Exit::Failed);
        }
    };
    let limits = app.resume_limits();
    let workspace = app.place.root.display().to_string();
    let asked = payload.clone();
    let answer = guarded(|| match app.place.has_store() {
        false => Ok(Delegation::no("no_existing_session", Some(asked))),
        true => Ok(pre_delegate(&*app.existing(Access::Write)?, asked, limits, &workspace)?),
    });
    let answer = answer.unwrap_or_else(|why| {
        note(format_args!("error: {why}"));
        log(app, &format!("pre-delegate error {why}"));
        Delegation::no("error", Some(payload))
    });
    let Delegation { answer, why } = answer;
    let id = answer.agent_id.as_deref().unwrap_or("-");
    log(app, &format!("pre-delegate {} {id} {why}", answer.reason));
    app.out.object(&answer)?;
    Ok(Exit::Done)
}

fn stop(app: &mut App) -> Result<Exit> {
    let payload = match payload() {
        Ok(payload) => payload,
        Err(why) => {
            log(app, &format!("subagent-stop invalid_json {why}"));
            note(format_args!("error: stdin holds no JSON object: {why}"));
            app.out.object(&not_stopped("invalid_json", None))?;
            return Ok(Exit::Failed);
        }
    };
    let answer = guarded(|| match app.place.has_store() {
        false => Ok(not_stopped("no_session", None)),
        true => Ok(subagent_stop(&*app.existing(Access::Write)?, &payload)?),
    });
    let answer = answer.unwrap_or_else(|why| {
        note(format_args!("error: {why}"));
        log(app, &format!("subagent-stop error {why}"));
        let named = payload.get("agent_id").and_then(|id| id.as_str());
        not_stopped("error", named.map(ToOwned::to_owned))
    });
    let id = answer.agent_id.as_deref().unwrap_or("-");
    log(app, &format!("subagent-stop {} {id}", answer.reason));
    app.out.object(&answer)?;
    Ok(Exit::Done)
}

/// Writes to the hooks' log. A log that cannot be written is no reason to fail.
fn log(app: &App, says: &str) {
    if let Some(log) = Log::of(&app.place.store)
        && let Err(error) = log.write(app.now(), says)
    {
        tracing::warn!(%error, "hooks_log_not_written");
    }
}

fn install(app: &mut App) -> Result<Exit> {
    let file = SettingsFile::below(&app.place.root);
    let changed = file.install()?;
    // Delegations are recorded from now on: there must be a store to record them in.
    drop(app.make()?);
    let says = if changed { "Added the hooks to" } else { "The hooks are in" };
    told(&file, changed, says, app)
}

fn uninstall(app: &mut App) -> Result<Exit> {
    let file = SettingsFile::below(&app.place.root);
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

/// Runs each hook on samples, over a store in memory that holds one agent to take up.
fn test(app: &mut App) -> Result<Exit> {
    let well = Stepwell::in_memory();
    let limits = app.resume_limits();
    let workspace = app.place.root.display().to_string();
    let begin = Begin {
        id: "agent-sample".parse().ok(),
        agent: "terraform-architect".to_owned(),
        purpose: "approval_workflow".to_owned(),
        workspace: workspace.clone(),
        metadata: [("task_id".to_owned(), "T001".into())].into(),
    };
    let id = lifecycle::create(&well, begin)?;
    let phase = Some(stepwell::Phase::Approval);
    lifecycle::update(&well, &id, Update { phase, ..Update::default() })?;
    let named = serde_json::json!({ "agent_name": "terraform-architect", "agent_id": id });
    let claude = |event: &str| {
        serde_json::json!({
            "session_id": "sample-conversation", "transcript_path": "", "hook_event_name": event,
            "tool_name": "Task", "agent_type": "reviewer",
            "tool_input": { "subagent_type": "reviewer", "description": "review the change" },
        })
    };
    let samples = [
        ("pre-delegate", "an agent's own", named.clone()),
        ("pre-delegate", "Claude Code's", claude("PreToolUse")),
        ("subagent-stop", "an agent's own", named),
        ("subagent-stop", "Claude Code's", claude("SubagentStop")),
    ];
    for (hook, sample, input) in samples {
        let serde_json::Value::Object(input) = input else { continue };
        let answer = match hook {
            "pre-delegate" => {
                serde_json::to_value(pre_delegate(&well, input.clone(), limits, &workspace)?.answer)
            }
            _ => serde_json::to_value(subagent_stop(&well, &input)?),
        };
        let answer = answer.unwrap_or_default();
        let line = format!("{hook} on {sample} sample\n  {answer}");
        let (hook, sample) = (hook.to_owned(), sample.to_owned());
        app.out.answer(&HookSample { hook, sample, input, answer }, line)?;
    }
    let file = SettingsFile::below(&app.place.root);
    note(match file.installed()? {
        0 => "Not installed here: stepwell hook install claude".to_owned(),
        n => format!("{n} of 2 hooks are installed in {}", file.path().display()),
    });
    if !app.place.has_store() {
        note("There is no store here yet: stepwell init makes one.");
    }
    note("Nothing was changed: the samples ran over a store in memory.");
    Ok(Exit::Done)
}
