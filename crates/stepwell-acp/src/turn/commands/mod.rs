//! Slash commands that work in an editor: those of the one table that need no terminal.

use stepwell::{
    Change, Checkpoint, CheckpointReason, Edited, Filter, Mode, Rank, Scope, Search, Seq,
    SystemPrompts,
};
use stepwell_runtime::{Error, Interrupt, RewindRequest, ServerQuery, inspect};
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
const WORK: [Verb; 21] = [
    Verb::Help,
    Verb::Gates,
    Verb::Search,
    Verb::Rename,
    Verb::Tag,
    Verb::Untag,
    Verb::Pin,
    Verb::Unpin,
    Verb::Checkpoint,
    Verb::Rewind,
    Verb::Diff,
    Verb::Compact,
    Verb::Model,
    Verb::Models,
    Verb::Mode,
    Verb::Agent,
    Verb::Cost,
    Verb::Status,
    Verb::Goal,
    Verb::Tasks,
    Verb::Mcp,
];

/// The commands of the table that work here.
pub(crate) fn offered() -> impl Iterator<Item = &'static SlashCommand> {
    SLASH_COMMANDS.iter().filter(|command| WORK.contains(&command.verb))
}

/// How many hits of a search are shown.
const HITS: usize = 10;

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

    /// Carries it out; the answer is for the user.
    pub(crate) fn run(&self, on: &Conversation) -> Result<String> {
        match self.verb {
            Verb::Model | Verb::Mode | Verb::Agent => self.choose(on),
            Verb::Help => Ok(help()),
            Verb::Mcp => servers(on),
            Verb::Models => Ok(listed(&on.models(), "No model was used yet.")),
            _ if on.head()?.is_none() => Ok("This session has nothing yet.".to_owned()),
            Verb::Gates => gates(on),
            Verb::Search => self.search(on),
            Verb::Diff => diff(on),
            Verb::Cost | Verb::Status => status(on),
            Verb::Tasks => tasks(on),
            Verb::Compact => compact(on),
            Verb::Rewind => self.rewind(on),
            Verb::Checkpoint => self.checkpoint(on),
            _ => self.edit(on),
        }
    }

    /// Changes what later runs work with.
    fn choose(&self, on: &Conversation) -> Result<String> {
        let (wanted, holds) = (self.arguments.trim().to_owned(), on.holds()?);
        if wanted.is_empty() {
            return Ok(match self.verb {
                Verb::Mode => format!("Mode: {}", holds.mode.as_str()),
                Verb::Model => format!("Model: {}", holds.model),
                _ => format!("Agent: {}", holds.agent),
            });
        }
        match self.verb {
            Verb::Mode => match Mode::ALL.into_iter().find(|mode| mode.as_str() == wanted) {
                Some(mode) => on.chosen().mode = Some(mode),
                None => return Ok(format!("There is no mode {wanted:?}.")),
            },
            Verb::Model => on.chosen().model = Some(wanted.clone()),
            _ => on.chosen().agent = Some(wanted.clone()),
        }
        Ok(format!("From the next turn on: {wanted}"))
    }

    fn search(&self, on: &Conversation) -> Result<String> {
        let text = self.arguments.clone();
        if !text.chars().any(char::is_alphanumeric) {
            return Ok("Type what to search for: /search WORDS".to_owned());
        }
        let well = on.runtime().open_at_best(&on.runtime().place.store)?;
        let (filter, rank, system) = (Filter::default(), Rank::Newest, SystemPrompts::Skipped);
        let found = well.search(&Search { text, filter, rank, limit: HITS, system })?;
        let hit = |hit: stepwell::Hit| {
            format!("- {} seq {}: {}", hit.session, hit.seq, hit.snippet.text.replace('\n', " "))
        };
        let lines: Vec<String> = found.hits.into_iter().map(hit).collect();
        Ok(listed(&lines, "Nothing found."))
    }

    fn rewind(&self, on: &Conversation) -> Result<String> {
        let well = on.runtime().existing(stepwell::Access::Read)?;
        let to = match self.arguments.trim() {
            "" => well.last_words(on.id())?,
            point => well.point(on.id(), point)?,
        };
        drop(well);
        let done = on.runtime().rewind(&RewindRequest::new(on.id().clone(), to, Scope::Both))?;
        Ok(match done {
            stepwell_files::rewind::Done::Rewound { .. } => {
                format!("Rewound to seq {to}, with files.")
            }
            stepwell_files::rewind::Done::Refused(_) => format!(
                "Nothing was done: files that someone else changed are in the way. \
                 `stepwell rewind {} --to {to} --dry-run` shows them.",
                on.id()
            ),
        })
    }

    fn checkpoint(&self, on: &Conversation) -> Result<String> {
        let name = match self.arguments.trim() {
            "" => "editor",
            name => name,
        };
        let (name, reason) = (name.to_owned(), CheckpointReason::Manual);
        let made = Checkpoint { name: name.clone(), reason, metadata: Default::default() };
        let well = on.runtime().existing(stepwell::Access::Write)?;
        let seq = well.checkpoint(on.id(), made)?;
        Ok(format!("Checkpoint {name} at seq {seq}."))
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
        on.runtime().existing(stepwell::Access::Write)?.edit(on.id(), edited)?;
        Ok("Done.".to_owned())
    }
}

fn listed(lines: &[String], nothing: &str) -> String {
    if lines.is_empty() { nothing.to_owned() } else { lines.join("\n") }
}

fn help() -> String {
    let lines = offered().map(|command| format!("- `{}`: {}", command.usage(), command.help));
    lines.collect::<Vec<_>>().join("\n")
}

fn gates(on: &Conversation) -> Result<String> {
    let open = on.open_gates()?.into_iter();
    let line =
        |open: stepwell_runtime::OpenGate| format!("- {}: {}", open.gate.id, open.gate.prompt);
    let lines: Vec<String> = open.map(line).collect();
    Ok(listed(&lines, "Nothing waits for you."))
}

fn diff(on: &Conversation) -> Result<String> {
    let well = on.runtime().existing(stepwell::Access::Read)?;
    let patches = inspect::patches(&well, on.id(), Seq::ZERO, Seq::MAX)?;
    let patches = patches.into_iter().map(|patch| patch.diff).collect::<Vec<_>>();
    Ok(match patches.is_empty() {
        true => "No file was changed.".to_owned(),
        false => format!("```diff\n{}\n```", patches.join("\n")),
    })
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

fn status(on: &Conversation) -> Result<String> {
    let Some(head) = on.head()? else { return Ok(String::new()) };
    let (spent, holds) = (&head.spent, on.holds()?);
    Ok(format!(
        "{} is {}: {}, {} tokens in, {} out, ${}.\nAgent {}, model {}, mode {}.",
        head.id,
        head.status,
        stepwell::counted(head.steps, "step"),
        spent.usage.input,
        spent.usage.output,
        spent.cost,
        holds.agent,
        holds.model,
        holds.mode.as_str(),
    ))
}

fn tasks(on: &Conversation) -> Result<String> {
    let well = on.runtime().existing(stepwell::Access::Read)?;
    let work = well.work(on.id())?;
    let line = |task: &stepwell::Task| format!("- [{}] {}", task.status, task.description);
    let lines: Vec<String> = work.tasks.iter().map(line).collect();
    Ok(listed(&lines, "Nothing is planned."))
}

fn compact(on: &Conversation) -> Result<String> {
    let shrunk = on.runtime().compact(on.id(), &Interrupt::default())?;
    Ok(match shrunk {
        stepwell_runtime::Shrunk::Done(compacted) => format!(
            "Compacted: about {} tokens are {} now.",
            compacted.tokens_before, compacted.tokens_after
        ),
        _ => "There is nothing to compact.".to_owned(),
    })
}
