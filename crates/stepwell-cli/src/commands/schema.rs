use stepwell::sessions::nearest;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_wire::{AnswerForm, SchemaInfo, all};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Lists what --json prints, or prints the JSON Schema of one answer.
///
/// Each command prints one object, or one object on each line for lists. Fields are added in later
/// versions, and never renamed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The answer, such as session-item; without it, all are listed.
    name: Option<String>,
}

const COLUMNS: &[Column] = &[left("NAME"), left("COMMANDS"), left("WHAT")];

/// Which command answers with what.
const COMMANDS: &[(&str, &[&str])] = &[
    ("abandon", &["abandoned"]),
    ("attach", &["event"]),
    ("agent cleanup", &["cleanup-item", "cleanup-kept", "cleanup-total"]),
    ("agent create", &["agent-created"]),
    ("agent finalize", &["agent"]),
    ("agent get", &["agent"]),
    ("agent list", &["agent", "agent-unreadable"]),
    ("agent say", &["agent"]),
    ("agent should-resume", &["resume-decision"]),
    ("agent turns", &["agent-turn"]),
    ("agent update", &["agent"]),
    ("backup", &["backup"]),
    ("checkpoint", &["checkpoint", "checkpoint-made"]),
    ("cleanup", &["cleanup-item", "cleanup-kept", "cleanup-total"]),
    ("compact", &["compaction", "compaction-diff", "compaction-undone"]),
    ("config", &["setting", "setting-unset"]),
    ("convert", &["converted"]),
    ("delete", &["deleted"]),
    ("diff", &["file-diff"]),
    ("doctor", &["finding"]),
    ("du", &["disk-use", "disk-use-total"]),
    ("export", &["exported"]),
    ("files", &["file-content", "file-version"]),
    ("flow plan", &["flow-plan"]),
    ("flow run", &["detached", "event", "flow-next", "flow-plan", "flow-report", "run-report"]),
    ("flow validate", &["flow-check"]),
    ("fork", &["fork"]),
    ("formats", &["format"]),
    ("gates", &["gate", "gate-change"]),
    ("gates answer", &["gate-answered"]),
    ("hook install", &["hook-installed"]),
    ("hook pre-delegate", &["delegation"]),
    ("hook subagent-stop", &["hook-stop"]),
    ("hook test", &["hook-sample"]),
    ("hook uninstall", &["hook-installed"]),
    ("import", &["imported"]),
    ("init", &["store-made"]),
    ("label", &["label"]),
    ("ledger", &["ledger-entry"]),
    ("log", &["event"]),
    ("man", &["manual-pages"]),
    ("mcp install", &["mcp-installed"]),
    ("mcp list", &["mcp-server"]),
    ("mcp uninstall", &["mcp-installed"]),
    ("acp install", &["mcp-installed"]),
    ("acp uninstall", &["mcp-installed"]),
    ("meta", &["metadata"]),
    ("models", &["favourite", "models", "models-adopted"]),
    ("models prices", &["model-price", "prices-taken"]),
    ("phase", &["phase"]),
    ("pin", &["pin"]),
    ("pin-message", &["message-pin"]),
    ("purge", &["erased"]),
    ("restore", &["store-restored"]),
    ("resume", &["detached", "event", "flow-next", "flow-report", "handed-over", "run-report"]),
    ("rewind", &["rewind", "unfinished-rewind"]),
    ("run", &["detached", "event", "run-report"]),
    ("say", &["said"]),
    ("schema", &["schema"]),
    ("scrub", &["scrubbed"]),
    ("search", &["search-hit"]),
    ("sessions", &["session-item"]),
    ("show", &["session-details", "view"]),
    ("state", &["work"]),
    ("stats", &["statistics"]),
    ("stop", &["stop-asked"]),
    ("store copy", &["copied"]),
    ("store role", &["role-script"]),
    ("store retention", &["store-retention"]),
    ("store status", &["store"]),
    ("tag", &["tags"]),
    ("tasks", &["task"]),
    ("trash empty", &["erased"]),
    ("trash list", &["session"]),
    ("trash restore", &["restored"]),
    ("unpin", &["pin"]),
    ("unpin-message", &["message-pin"]),
    ("untag", &["tags"]),
    ("verify", &["verified"]),
    ("watch", &["imported"]),
    ("work", &["event", "flow-plan", "flow-report", "run-report"]),
    ("worktrees list", &["worktree"]),
    ("worktrees remove", &["worktree-removed"]),
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(name) = &args.name else { return list(app) };
    let schema = find(name)?.schema().to_value();
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    app.out.line(text)?;
    Ok(Exit::Done)
}

fn list(app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    for form in all() {
        let (name, about, commands) = (form.name.to_owned(), form.about(), commands(form.name));
        if app.out.is_json() {
            app.out.object(&SchemaInfo { name, about, commands })?;
        } else {
            table.push(vec![name.into(), commands.join(", ").into(), about.into()]);
        }
    }
    if !app.out.is_json() {
        app.print(&table)?;
    }
    Ok(Exit::Done)
}

/// The commands that answer so.
fn commands(name: &str) -> Vec<String> {
    let answers = |(_, names): &&(&str, &[&str])| names.contains(&name);
    COMMANDS.iter().filter(answers).map(|(command, _)| (*command).to_owned()).collect()
}

fn find(name: &str) -> Result<&'static AnswerForm> {
    all().iter().find(|form| form.name == name).ok_or_else(|| {
        let failure = Failure::new(Exit::Absent, format_args!("there is no answer {name:?}"));
        match nearest(name, all().iter().map(|form| form.name)) {
            Some(near) => failure.hint(format_args!("did you mean {near}?")),
            None => failure.hint("stepwell schema lists them"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::definition;

    #[test]
    fn every_answer_has_a_command_and_every_command_a_place() {
        for form in all() {
            assert!(!commands(form.name).is_empty(), "no command answers with {}", form.name);
        }
        for (command, names) in COMMANDS {
            let mut words = command.split(' ');
            let found = words.try_fold(definition(), |at, word| at.find_subcommand(word).cloned());
            assert!(found.is_some(), "{command}");
            for name in *names {
                assert!(all().iter().any(|form| form.name == *name), "{command}: {name}");
            }
        }
    }

    /// These have no answer in JSON: what they print is text, or JSON whatever was asked for.
    const TEXT: [&str; 7] = ["chat", "completions", "demo", "flow", "hook", "models", "serve"];

    #[test]
    fn every_command_says_what_it_answers_with() {
        for command in definition().get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = command.get_name();
            let said = |(known, _): &(&str, &[&str])| known.split(' ').next() == Some(name);
            assert!(TEXT.contains(&name) || COMMANDS.iter().any(said), "{name}");
        }
    }
}
