//! The slash commands: one table that gives help, completion and documentation to every front end
//! in which people type them.

use stepwell::sessions::nearest;

/// What a slash command does. A front end matches on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the name of a command, which the table explains")]
pub enum Verb {
    Help,
    New,
    Continue,
    Later,
    Resume,
    Sessions,
    Rename,
    Tag,
    Untag,
    Pin,
    Unpin,
    Delete,
    Save,
    Checkpoint,
    Rewind,
    Undo,
    Redo,
    Fork,
    Diff,
    Files,
    Timeline,
    Transcript,
    Search,
    Export,
    Import,
    Compact,
    Context,
    Keep,
    Model,
    Models,
    Mode,
    Agent,
    Budget,
    Cost,
    Status,
    Goal,
    Tasks,
    Phase,
    Discuss,
    Plan,
    Execute,
    Verify,
    Ship,
    Gates,
    Stop,
    Agents,
    Flow,
    Mcp,
    With,
    Ledger,
    Config,
    Copy,
    Thinking,
    Web,
    Detach,
    Quit,
}

/// What a command is about; help is ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The conversation.
    Talk,
    /// Sessions, their names and where to find them.
    Sessions,
    /// Going back and branching.
    History,
    /// What the model sees and what it works with.
    Model,
    /// Plans, phases and progress.
    Work,
    /// Everything else.
    More,
}

impl Group {
    /// Every group, in the order of the help.
    pub const ALL: [Self; 6] =
        [Self::Talk, Self::Sessions, Self::History, Self::Model, Self::Work, Self::More];

    /// Its title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Talk => "Talk",
            Self::Sessions => "Sessions",
            Self::History => "Go back and branch",
            Self::Model => "Model and context",
            Self::Work => "Work",
            Self::More => "More",
        }
    }
}

/// One slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// What it does.
    pub verb: Verb,
    /// Its name, without the slash.
    pub name: &'static str,
    /// Its arguments, as help shows them; in brackets what may be left out.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What else it is called. Some have two words.
    pub aliases: &'static [&'static str],
    /// What it is about.
    pub group: Group,
}

const fn command(
    verb: Verb,
    group: Group,
    [name, arguments, help]: [&'static str; 3],
    aliases: &'static [&'static str],
) -> SlashCommand {
    SlashCommand { verb, name, arguments, help, aliases, group }
}

use Group::{History, Model, More, Sessions, Talk, Work};

/// Every slash command, in the order of the help.
pub const SLASH_COMMANDS: &[SlashCommand] = &[
    command(Verb::Help, Talk, ["help", "[COMMAND]", "Shows keys and commands"], &["?", "keys"]),
    command(Verb::New, Talk, ["new", "[TASK]", "Begins a new session"], &["clear", "reset"]),
    command(
        Verb::Continue,
        Talk,
        ["continue", "", "Goes on where the session stopped"],
        &["go", "session continue"],
    ),
    command(Verb::Stop, Talk, ["stop", "", "Stops what the agent is doing"], &["cancel"]),
    command(Verb::Later, Talk, ["later", "", "Leaves the question for later: it waits"], &[]),
    command(Verb::Gates, Talk, ["gates", "", "Lists questions that wait for you"], &["approvals"]),
    command(Verb::Copy, Talk, ["copy", "[id]", "Copies the last answer, or the session's id"], &[]),
    command(
        Verb::Thinking,
        Talk,
        ["thinking", "", "Shows or hides the model's thinking"],
        &["think"],
    ),
    command(
        Verb::Detach,
        Talk,
        ["detach", "", "Leaves, and lets the run go on in the background"],
        &["background"],
    ),
    command(Verb::Quit, Talk, ["quit", "", "Leaves; the session can be resumed"], &["exit", "q"]),
    command(
        Verb::Resume,
        Sessions,
        ["resume", "[SESSION]", "Resumes a session; without one, shows a list"],
        &["session resume", "load", "session load"],
    ),
    command(
        Verb::Sessions,
        Sessions,
        ["sessions", "", "Lists sessions"],
        &["session list", "session", "history"],
    ),
    command(Verb::Search, Sessions, ["search", "[WORDS]", "Searches sessions"], &["find"]),
    command(
        Verb::Status,
        Sessions,
        ["status", "", "Shows what this session is and what it spent"],
        &["session info", "info", "session status"],
    ),
    command(
        Verb::Rename,
        Sessions,
        ["rename", "NAME", "Gives the session a name"],
        &["label", "title", "session rename"],
    ),
    command(Verb::Tag, Sessions, ["tag", "TAG…", "Adds tags"], &["session tag"]),
    command(Verb::Untag, Sessions, ["untag", "TAG…", "Takes tags away"], &[]),
    command(
        Verb::Pin,
        Sessions,
        ["pin", "", "Keeps cleanup away from the session"],
        &["session pin"],
    ),
    command(Verb::Unpin, Sessions, ["unpin", "", "Lets cleanup take the session again"], &[]),
    command(
        Verb::Delete,
        Sessions,
        ["delete", "[SESSION]", "Moves a session to the trash"],
        &["session delete", "rm"],
    ),
    command(
        Verb::Export,
        Sessions,
        ["export", "[markdown|html|json] [PATH] [--force]", "Writes the session to a file"],
        &["session export", "share"],
    ),
    command(
        Verb::Import,
        Sessions,
        ["import", "[PATH]", "Reads sessions of other agents in"],
        &["session import"],
    ),
    command(
        Verb::With,
        Sessions,
        ["with", "claude|codex|qwen|pi|strands", "Hands the session over to another agent"],
        &["handoff"],
    ),
    command(
        Verb::Checkpoint,
        History,
        ["checkpoint", "[NAME]", "Names this point, to come back to; without a name, lists them"],
        &["session checkpoint", "session checkpoints", "checkpoints"],
    ),
    command(
        Verb::Save,
        History,
        ["save", "[NAME]", "Names this point; every step is saved anyway"],
        &["session save"],
    ),
    command(
        Verb::Rewind,
        History,
        ["rewind", "[SEQ|CHECKPOINT|-N] [--force]", "Goes back; without a point, shows them"],
        &["rollback", "back", "session rollback"],
    ),
    command(Verb::Undo, History, ["undo", "[--force]", "Takes the last rewind back"], &[]),
    command(Verb::Redo, History, ["redo", "[--force]", "Takes the last undo back"], &[]),
    command(
        Verb::Fork,
        History,
        ["fork", "[SEQ|CHECKPOINT|-N]", "Goes on in a new session that shares this one's past"],
        &["branch", "session fork"],
    ),
    command(Verb::Timeline, History, ["timeline", "", "Shows every step"], &["log", "events"]),
    command(Verb::Transcript, History, ["transcript", "", "Shows the whole conversation"], &[]),
    command(
        Verb::Diff,
        History,
        ["diff", "[FROM]", "Shows what the session did to files"],
        &["changes"],
    ),
    command(
        Verb::Files,
        History,
        ["files", "[PATH]", "Lists the files that the session changed"],
        &[],
    ),
    command(
        Verb::Model,
        Model,
        ["model", "[NAME]", "Changes the model; without a name, shows a list"],
        &["provider"],
    ),
    command(Verb::Models, Model, ["models", "", "Lists recent models and favourites"], &[]),
    command(
        Verb::Mode,
        Model,
        ["mode", "[confirm-all|confirm-sensitive|yolo]", "Changes when you are asked"],
        &["approve", "permissions"],
    ),
    command(Verb::Agent, Model, ["agent", "[NAME]", "Changes the agent"], &[]),
    command(
        Verb::Budget,
        Model,
        ["budget", "[DOLLARS]", "Shows or sets what the session may cost"],
        &[],
    ),
    command(Verb::Cost, Model, ["cost", "", "Shows what was spent"], &["usage", "tokens"]),
    command(Verb::Context, Model, ["context", "", "Shows what the model is sent"], &["view"]),
    command(
        Verb::Compact,
        Model,
        [
            "compact",
            "[undo]",
            "Makes the conversation shorter: a summary stands in for what is old",
        ],
        &["compress", "summarize"],
    ),
    command(
        Verb::Keep,
        Model,
        ["keep", "SEQ", "Keeps a message in the conversation, whatever is compacted"],
        &["pin-message"],
    ),
    command(Verb::Goal, Work, ["goal", "[TEXT]", "Shows or sets what the work is to achieve"], &[]),
    command(Verb::Tasks, Work, ["tasks", "", "Shows the plan"], &["todo", "todos"]),
    command(Verb::Phase, Work, ["phase", "[NAME]", "Shows or changes the phase"], &[]),
    command(
        Verb::Discuss,
        Work,
        ["discuss", "[GOAL]", "Leads from a goal to a commit: questions, plan, work, checks"],
        &["work"],
    ),
    command(
        Verb::Plan,
        Work,
        ["plan", "[GOAL]", "The same without questions; in guided work, goes on to the plan"],
        &[],
    ),
    command(
        Verb::Execute,
        Work,
        ["execute", "[GOAL]", "The same with the first plan; in guided work, approves the plan"],
        &[],
    ),
    command(
        Verb::Verify,
        Work,
        ["verify", "[GOAL]", "The same up to the checks, unasked; in guided work, goes on to them"],
        &[],
    ),
    command(
        Verb::Ship,
        Work,
        ["ship", "[GOAL]", "The same up to the commit, unasked; in guided work, commits"],
        &[],
    ),
    command(
        Verb::Agents,
        Work,
        ["agents", "", "Shows subagents and nodes, to watch or read one; else the family"],
        &["subagents", "tree"],
    ),
    command(Verb::Flow, Work, ["flow", "SPEC [NAME=VALUE…]", "Runs a workflow"], &["flows"]),
    command(Verb::Ledger, Work, ["ledger", "", "Lists what came of sessions"], &[]),
    command(Verb::Mcp, More, ["mcp", "", "Lists the session's MCP servers and their tools"], &[]),
    command(
        Verb::Config,
        More,
        ["config", "[KEY [VALUE]]", "Shows or changes settings"],
        &["settings"],
    ),
    command(Verb::Web, More, ["web", "", "Says how to see the sessions in a browser"], &[]),
];

/// A command as somebody typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Which one.
    pub command: &'static SlashCommand,
    /// What stands behind its name.
    pub arguments: String,
}

/// A command that there is none of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCommand {
    /// What was typed, without the slash.
    pub typed: String,
    /// The one that was perhaps meant.
    pub nearest: Option<&'static str>,
}

impl SlashCommand {
    /// The command of a name or an alias.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.to_lowercase();
        SLASH_COMMANDS.iter().find(|command| command.names().any(|known| known == name))
    }

    /// Its name, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// How it is typed: `/name ARGUMENTS`.
    #[must_use]
    pub fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }

    /// Those whose name or alias begins so, those by name first.
    #[must_use]
    pub fn beginning_with(typed: &str) -> Vec<&'static Self> {
        let typed = typed.to_lowercase();
        let by_name = |command: &&Self| command.name.starts_with(&typed);
        let by_alias = |command: &&Self| {
            !by_name(command) && command.aliases.iter().any(|alias| alias.starts_with(&typed))
        };
        let named = SLASH_COMMANDS.iter().filter(by_name);
        named.chain(SLASH_COMMANDS.iter().filter(by_alias)).collect()
    }
}

impl Invocation {
    /// Reads a line that begins with a slash. A name of two words counts before its first one.
    ///
    /// # Errors
    /// If there is no such command.
    pub fn parse(line: &str) -> Result<Self, UnknownCommand> {
        let line = line.trim();
        let line = line.strip_prefix('/').unwrap_or(line);
        let (first, rest) = split_word(line);
        let (second, after) = split_word(rest);
        if !second.is_empty()
            && let Some(command) = SlashCommand::find(&format!("{first} {second}"))
        {
            return Ok(Self { command, arguments: after.to_owned() });
        }
        let names = || SLASH_COMMANDS.iter().flat_map(SlashCommand::names);
        // A name that others begin with takes nothing else behind it.
        let mut longer = names()
            .filter(|name| name.strip_prefix(first).is_some_and(|rest| rest.starts_with(' ')));
        if !second.is_empty() && longer.next().is_some() {
            let typed = format!("{first} {second}");
            let known = names().filter(|name| name.contains(' '));
            let nearest = nearest(&typed, known);
            return Err(UnknownCommand { typed, nearest });
        }
        match SlashCommand::find(first) {
            Some(command) => Ok(Self { command, arguments: rest.to_owned() }),
            None => {
                Err(UnknownCommand { typed: first.to_owned(), nearest: nearest(first, names()) })
            }
        }
    }
}

/// The first word of a text, and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The table as Markdown, for documentation.
    fn markdown() -> String {
        let mut text = String::new();
        for group in Group::ALL {
            text.push_str(&format!(
                "### {}\n\n| command | what it does | also |\n|---|---|---|\n",
                group.title()
            ));
            for command in SLASH_COMMANDS.iter().filter(|command| command.group == group) {
                let also: Vec<String> =
                    command.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
                let usage = command.usage().replace('|', "\\|");
                text.push_str(&format!("| `{usage}` | {} | {} |\n", command.help, also.join(" ")));
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn no_name_or_alias_means_two_commands() {
        let mut seen = BTreeSet::new();
        for command in SLASH_COMMANDS {
            assert_eq!(Invocation::parse(&command.usage()).unwrap().command, command);
            for name in command.names() {
                assert!(seen.insert(name), "/{name} is there twice");
                assert_eq!(name, name.to_lowercase());
                assert_eq!(SlashCommand::find(name), Some(command));
            }
        }
    }

    #[test]
    fn the_issue_and_the_seeds_find_their_spellings() {
        for (typed, verb, arguments) in [
            ("/save before the change", Verb::Save, "before the change"),
            ("/session checkpoint one", Verb::Checkpoint, "one"),
            ("/session list", Verb::Sessions, ""),
            ("/session info", Verb::Status, ""),
            ("/export markdown out.md", Verb::Export, "markdown out.md"),
            ("/rollback", Verb::Rewind, ""),
            ("/compress", Verb::Compact, ""),
            ("/Help", Verb::Help, ""),
            ("/exit", Verb::Quit, ""),
            ("/goal  ship it ", Verb::Goal, "ship it"),
        ] {
            let read = Invocation::parse(typed).unwrap();
            assert_eq!((read.command.verb, read.arguments.as_str()), (verb, arguments), "{typed}");
        }
    }

    #[test]
    fn an_unknown_command_names_the_nearest() {
        let unknown = Invocation::parse("/resme now").unwrap_err();
        assert_eq!((unknown.typed.as_str(), unknown.nearest), ("resme", Some("resume")));
        assert_eq!(Invocation::parse("/banana").unwrap_err().nearest, None);
        let unknown = Invocation::parse("/session chekpoint x").unwrap_err();
        assert_eq!(unknown.typed, "session chekpoint");
        assert_eq!(unknown.nearest, Some("session checkpoint"));
        assert!(Invocation::parse("/session nope").is_err());
        assert!(Invocation::parse("/session").is_ok());
    }

    #[test]
    fn the_documentation_lists_every_command() {
        let docs = include_str!("../../../../docs/chat.md");
        assert!(docs.contains(markdown().trim_end()), "docs/chat.md should have:\n{}", markdown());
    }

    #[test]
    fn completion_offers_names_before_aliases() {
        let offered: Vec<_> =
            SlashCommand::beginning_with("ex").into_iter().map(|command| command.name).collect();
        assert_eq!(offered, ["export", "execute", "quit"]);
        assert_eq!(SlashCommand::beginning_with("").len(), SLASH_COMMANDS.len());
    }
}
