//! Slash commands that work in an editor: those of the one table that need no terminal.

mod points;
mod settings;
mod words;

use stepwell_runtime::command::{
    self, Command as Asked, Invocation, SLASH_COMMANDS, SessionCommand, SlashCommand,
    UnknownCommand, Verb, slash,
};
use stepwell_runtime::{Error, Interrupt, ServerQuery};

use super::conversation::Conversation;

type Result<T, E = Error> = std::result::Result<T, E>;

/// A slash command that was typed.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    verb: Verb,
    arguments: String,
}

/// A slash command that cannot be carried out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotHere {
    /// There is none of that name.
    Unknown(UnknownCommand),
    /// It needs a terminal.
    NeedsTerminal(&'static str),
}

impl std::fmt::Display for NotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(UnknownCommand { typed, nearest: Some(nearest) }) => {
                write!(f, "There is no command /{typed}; did you mean /{nearest}?")
            }
            Self::Unknown(UnknownCommand { typed, nearest: None }) => {
                write!(f, "There is no command /{typed}; /help lists them.")
            }
            Self::NeedsTerminal(name) => {
                write!(f, "/{name} needs a terminal; /help lists what works here.")
            }
        }
    }
}

/// Those that work here.
const WORK: [Verb; 30] = [
    Verb::Help,
    Verb::Gates,
    Verb::Search,
    Verb::Rename,
    Verb::Tag,
    Verb::Untag,
    Verb::Pin,
    Verb::Unpin,
    Verb::Export,
    Verb::Checkpoint,
    Verb::Save,
    Verb::Rewind,
    Verb::Undo,
    Verb::Redo,
    Verb::Fork,
    Verb::Diff,
    Verb::Files,
    Verb::Context,
    Verb::Compact,
    Verb::Model,
    Verb::Models,
    Verb::Mode,
    Verb::Agent,
    Verb::Budget,
    Verb::Cost,
    Verb::Status,
    Verb::Goal,
    Verb::Tasks,
    Verb::Phase,
    Verb::Mcp,
];

/// The commands of the table that work here.
pub(crate) fn offered() -> impl Iterator<Item = &'static SlashCommand> {
    SLASH_COMMANDS.iter().filter(|command| WORK.contains(&command.verb))
}

/// The longest line about one thing of several.
const LONGEST_LINE: usize = 100;

impl Command {
    /// Reads a prompt; none, if it is no command: a path is none.
    ///
    /// # Errors
    /// If it is a command that there is none of, or that does not work here. It is not meant for
    /// the model.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, NotHere> {
        let text = text.trim();
        let Some(typed) = text.strip_prefix('/') else { return Ok(None) };
        let word = typed.split_whitespace().next().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_?".contains(c);
        if word.is_empty() || typed.starts_with(char::is_whitespace) || !word.chars().all(is_word) {
            return Ok(None);
        }
        match Invocation::parse(text) {
            Ok(Invocation { command, arguments }) if WORK.contains(&command.verb) => {
                Ok(Some(Self { verb: command.verb, arguments }))
            }
            Ok(Invocation { command, .. }) => Err(NotHere::NeedsTerminal(command.name)),
            Err(unknown) => Err(NotHere::Unknown(unknown)),
        }
    }

    /// Carries it out; the answer is for the user. Whoever asks the interrupt ends what takes long.
    pub(crate) fn run(&self, on: &Conversation, interrupt: &Interrupt) -> Result<String> {
        let typed = self.arguments.trim();
        match self.verb {
            Verb::Help => Ok(help(typed)),
            Verb::Model | Verb::Mode | Verb::Agent => settings::choose(on, self.verb, typed),
            Verb::Budget => settings::budget(on, typed),
            Verb::Models => Ok(listed(&on.models(), "No model was used yet.")),
            Verb::Mcp => servers(on),
            _ if on.head()?.is_none() => Ok("This session has nothing yet.".to_owned()),
            Verb::Gates => gates(on),
            Verb::Cost | Verb::Status => settings::status(on),
            Verb::Rewind if typed.is_empty() => points::points(on),
            verb => carry_out(verb, typed, on, interrupt),
        }
    }
}

/// Carries out what the runtime does for every front end.
fn carry_out(verb: Verb, typed: &str, on: &Conversation, interrupt: &Interrupt) -> Result<String> {
    let mut command = match slash::read(verb, typed, Some(on.id())) {
        Ok(command) => command,
        Err(why) => return Ok(why.to_string()),
    };
    // A path is meant from where the editor works.
    if let Asked::Session(_, SessionCommand::Export(export)) = &mut command {
        export.path = on.root().join(&export.path);
    }
    let done: command::Reply = on.runtime().run(command, interrupt)?;
    let redactor = on.runtime().workspace().redactor().with_own_count();
    Ok(words::words(&done, &redactor))
}

fn listed(lines: &[String], nothing: &str) -> String {
    if lines.is_empty() { nothing.to_owned() } else { lines.join("\n") }
}

/// Help on one command, or on all that work here.
fn help(about: &str) -> String {
    let Some(command) = SlashCommand::find(about.trim_start_matches('/')) else {
        let lines = offered().map(|command| format!("- `{}`: {}", command.usage(), command.help));
        return lines.collect::<Vec<_>>().join("\n");
    };
    let mut text = format!("`{}`: {}.", command.usage(), command.help);
    if !command.aliases.is_empty() {
        let also: Vec<String> = command.aliases.iter().map(|alias| format!("/{alias}")).collect();
        text.push_str(&format!(" Also {}.", also.join(", ")));
    }
    if !WORK.contains(&command.verb) {
        text.push_str(" It needs a terminal: `stepwell chat`.");
    }
    text
}

fn gates(on: &Conversation) -> Result<String> {
    let open = on.open_gates()?.into_iter();
    let line =
        |open: stepwell_runtime::OpenGate| format!("- {}: {}", open.gate.id, open.gate.prompt);
    let lines: Vec<String> = open.map(line).collect();
    Ok(listed(&lines, "Nothing waits for you."))
}

/// The MCP servers of the session: those that are named here, asked for their tools, and those that
/// the editor brought.
fn servers(on: &Conversation) -> Result<String> {
    let session = on.head()?.map(|head| head.id);
    let agent = on.chosen().agent.clone();
    let query = ServerQuery { session, agent, asks: true };
    let mut lines = Vec::new();
    for server in on.runtime().mcp_servers(&query)? {
        let state = server.problem.unwrap_or_else(|| server.state.as_str().to_owned());
        lines.push(format!("- {} ({}): {state}", server.name, server.transport.as_str()));
        lines.extend(server.tools.iter().map(|tool| format!("  - `{}`", tool.name)));
    }
    lines.extend(on.brought_servers().map(|name| format!("- {name}: brought by the editor")));
    Ok(listed(&lines, "No MCP servers are named."))
}

/// The first line of a text, not too long.
fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
