//! Slash commands that work in an editor: those of the one table that need no terminal.

mod history;
mod settings;
mod work;

use stepwell::model::{Change, Edited};
use stepwell::store::query::{Filter, Rank, Search, SystemPrompts};
use stepwell_runtime::{Error, Interrupt, ServerQuery, Shrunk};
use stepwell_workspace::slash::{Invocation, SLASH_COMMANDS, SlashCommand, UnknownCommand, Verb};

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

/// How many hits of a search are shown.
const HITS: usize = 10;

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
            Verb::Search => self.search(on),
            Verb::Diff => history::diff(on, typed),
            Verb::Files => history::files(on, typed),
            Verb::Export => history::export(on, typed),
            Verb::Rewind | Verb::Undo | Verb::Redo => history::rewind(on, self.verb, typed),
            Verb::Checkpoint if typed.is_empty() => history::checkpoints(on),
            Verb::Save if typed.is_empty() => history::checkpoint(on, "saved"),
            Verb::Checkpoint | Verb::Save => history::checkpoint(on, typed),
            Verb::Fork => history::fork(on, typed),
            Verb::Cost | Verb::Status => settings::status(on),
            Verb::Context => settings::context(on),
            Verb::Tasks => work::tasks(on),
            Verb::Phase => work::phase(on, typed),
            Verb::Goal if typed.is_empty() => work::goal(on),
            Verb::Compact => compact(on, typed, interrupt),
            _ => self.edit(on),
        }
    }

    fn search(&self, on: &Conversation) -> Result<String> {
        let text = self.arguments.clone();
        if !text.chars().any(char::is_alphanumeric) {
            return Ok("Type what to search for: /search WORDS".to_owned());
        }
        let well = on
            .runtime()
            .workspace()
            .open_writable_if_possible(&on.runtime().workspace().place.store)?;
        let (filter, rank, system) = (Filter::default(), Rank::Newest, SystemPrompts::Skipped);
        let found = well.search(&Search { text, filter, rank, limit: HITS, system })?;
        let hit = |hit: stepwell::store::query::Hit| {
            format!("- {} seq {}: {}", hit.session, hit.seq, hit.snippet.text())
        };
        let lines: Vec<String> = found.hits.into_iter().map(hit).collect();
        Ok(listed(&lines, "Nothing found."))
    }

    /// Changes the session's own attributes.
    fn edit(&self, on: &Conversation) -> Result<String> {
        let words = || self.arguments.split_whitespace().map(str::to_owned).collect();
        let text = || Change::Set(self.arguments.trim().to_owned());
        let is_empty = self.arguments.trim().is_empty();
        let edited = match self.verb {
            Verb::Pin => Edited { pinned: Some(true), ..Edited::default() },
            Verb::Unpin => Edited { pinned: Some(false), ..Edited::default() },
            _ if is_empty => return Ok("Type what it shall be, behind the command.".to_owned()),
            Verb::Rename => Edited { label: text(), ..Edited::default() },
            Verb::Goal => Edited { goal: text(), ..Edited::default() },
            Verb::Tag => Edited { tag: words(), ..Edited::default() },
            Verb::Untag => Edited { untag: words(), ..Edited::default() },
            _ => return Ok("This command does not work here.".to_owned()),
        };
        on.runtime()
            .workspace()
            .open_existing(stepwell::sqlite::Access::Write)?
            .edit(on.id(), edited)?;
        Ok("Done.".to_owned())
    }
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

fn compact(on: &Conversation, typed: &str, interrupt: &Interrupt) -> Result<String> {
    if typed == "undo" {
        let undone = on.runtime().hold_whole(on.id())?.undo_last_compaction()?;
        return Ok(match undone {
            Some(seq) => format!("The compaction at seq {seq} is undone."),
            None => "There is no compaction to take back.".to_owned(),
        });
    }
    match on.runtime().compact(on.id(), interrupt)? {
        Shrunk::Done(compacted) => Ok(format!(
            "Compacted: about {} tokens are {} now. `/compact undo` takes it back.",
            compacted.tokens_before, compacted.tokens_after
        )),
        Shrunk::Interrupted => Err(Error::Interrupted),
        Shrunk::AsShortAsItGets => Ok("There is nothing to compact.".to_owned()),
    }
}

/// The first line of a text, not too long.
fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
