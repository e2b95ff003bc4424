//! A slash line as a [`Command`]: the same in a conversation in the terminal and in an editor.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stepwell::model::{Change, Scope};
use stepwell::{Seq, SessionId};
use stepwell_formats::{Existing, Format, Length};
use stepwell_workspace::handoff::HandOver;

use super::asked::{
    Command, ConfigCommand, Export, Folder, GatesWanted, ImportRequest, LedgerWanted, MoveCommand,
    RewindTo, SearchWanted, SessionCommand, SettingsFile, Shortening,
};
use super::table::Verb;
use crate::inspect::Depth;
use crate::servers::ServerQuery;

/// How many hits of a search are shown.
const HITS: usize = 10;

/// Sections of settings that only the user's own file may have.
const OWN: [&str; 3] = ["other_agents.", "store.", "talk."];

/// Why a slash line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// It is about a session, and none is open.
    NoSession,
    /// Something is missing behind it, or is not as it should be.
    Asks(&'static str),
    /// The front end carries it out itself, or it works only elsewhere.
    NotACommand,
}

impl std::fmt::Display for Misread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoSession => "no session is open yet",
            Self::Asks(question) => question,
            Self::NotACommand => "this is not for here",
        })
    }
}

/// Reads the words behind a slash command. Commands about a session are about the one that is open.
///
/// # Errors
/// If that is no command, or something is missing.
pub fn read(verb: Verb, typed: &str, open: Option<&SessionId>) -> Result<Command, Misread> {
    let typed = typed.trim();
    if let Some(command) = of_all(verb, typed, open)? {
        return Ok(command);
    }
    let session = open.ok_or(Misread::NoSession);
    let what = match of_session(verb, typed)? {
        Some(what) => what,
        None => of_history(verb, typed, open)?.ok_or(Misread::NotACommand)?,
    };
    Ok(Command::Session(session?.to_string(), what))
}

/// Commands that need no session.
fn of_all(verb: Verb, typed: &str, open: Option<&SessionId>) -> Result<Option<Command>, Misread> {
    Ok(Some(match verb {
        Verb::Delete => {
            let named = (!typed.is_empty()).then(|| typed.to_owned());
            let name = named.or_else(|| open.map(ToString::to_string));
            Command::Delete(vec![name.ok_or(Misread::NoSession)?])
        }
        Verb::Import if typed.is_empty() => Command::Import(ImportRequest::dry_run()),
        Verb::Import => Command::Import(ImportRequest::of(PathBuf::from(typed))),
        Verb::Models => Command::Models,
        Verb::Gates => Command::Gates(GatesWanted { session: None, everywhere: true }),
        Verb::Ledger => Command::Ledger(LedgerWanted::default()),
        Verb::Search if !typed.chars().any(char::is_alphanumeric) => {
            return Err(Misread::Asks("which words? /search WORDS"));
        }
        Verb::Search => Command::Search(SearchWanted { text: typed.to_owned(), limit: HITS }),
        Verb::Mcp => {
            let session = open.cloned();
            Command::Servers(ServerQuery { session, agent: None, asks: true })
        }
        Verb::Config => Command::Config(config(typed)),
        _ => return Ok(None),
    }))
}

fn config(typed: &str) -> ConfigCommand {
    match typed.split_once(char::is_whitespace) {
        None if typed.is_empty() => ConfigCommand::List,
        None => ConfigCommand::Get(typed.to_owned()),
        Some((key, value)) => {
            // Some are the user's own, and belong in no project.
            let is_own = OWN.iter().any(|own| key.starts_with(own));
            let file = if is_own { SettingsFile::User } else { SettingsFile::Workspace };
            ConfigCommand::Set { key: key.to_owned(), value: value.trim().to_owned(), file }
        }
    }
}

/// Commands about the session that is open.
fn of_session(verb: Verb, typed: &str) -> Result<Option<SessionCommand>, Misread> {
    use SessionCommand as Do;
    let text = || Some(typed.to_owned()).filter(|typed| !typed.is_empty());
    let words = || typed.split_whitespace().map(str::to_owned).collect();
    let needed = |question| text().ok_or(Misread::Asks(question));
    Ok(Some(match verb {
        Verb::Status | Verb::Budget | Verb::Cost => Do::Show(Depth::Alone),
        Verb::Rename => Do::Label(Change::Set(needed("which name? /rename NAME")?)),
        Verb::Tag => Do::Tag { add: words(), remove: Default::default() },
        Verb::Untag => {
            needed("which tags? /untag TAG…")?;
            Do::Tag { add: Default::default(), remove: words() }
        }
        Verb::Pin => Do::Pin,
        Verb::Unpin => Do::Unpin,
        Verb::With => {
            let is_it = |format: &Format| format.successor().is_some_and(|it| it.agent == typed);
            let agent = typed.parse().ok().filter(|it: &Format| it.successor().is_some());
            let agent = agent.or_else(|| Format::all().find(is_it));
            let question = "with whom? /with claude, codex, qwen, pi or strands";
            let agent = agent.ok_or(Misread::Asks(question))?;
            Do::HandOver { agent, how: HandOver::Write }
        }
        Verb::Files => Do::Files(text()),
        Verb::Context => Do::Context,
        Verb::Keep => {
            let question = "which message? /keep SEQ; /context shows the seqs";
            let seq = needed(question)?.parse().map_err(|_| Misread::Asks(question))?;
            Do::PinMessage(Seq::new(seq))
        }
        Verb::Goal => text().map_or(Do::State, Do::Goal),
        Verb::Tasks => Do::Tasks(Vec::new()),
        Verb::Phase => text().map_or(Do::Phase, Do::EnterPhase),
        _ => return Ok(None),
    }))
}

/// Commands about points of the session, and what is written of it.
fn of_history(
    verb: Verb,
    typed: &str,
    open: Option<&SessionId>,
) -> Result<Option<SessionCommand>, Misread> {
    use SessionCommand as Do;
    let text = || Some(typed.to_owned()).filter(|typed| !typed.is_empty());
    let named = |name: String| Do::Checkpoint { name, metadata: BTreeMap::new() };
    Ok(Some(match verb {
        Verb::Checkpoint => text().map_or(Do::Checkpoints, named),
        Verb::Save => named(text().unwrap_or_else(|| "saved".to_owned())),
        Verb::Rewind => {
            let (point, flags) = flagged(typed, &["--force", "--both", "--chat", "--files"]);
            if point.is_empty() {
                let question = "which point? /rewind POINT [--force]; /rewind shows them";
                return Err(Misread::Asks(question));
            }
            let scope = match () {
                () if flags.contains(&"--chat") => Scope::Chat,
                () if flags.contains(&"--files") => Scope::Files,
                () => Scope::Both,
            };
            let force = flags.contains(&"--force");
            let to = RewindTo::Point(point.to_owned());
            Do::Rewind(MoveCommand { scope, force, ..MoveCommand::to(to) })
        }
        Verb::Undo | Verb::Redo => {
            let (rest, flags) = flagged(typed, &["--force"]);
            if !rest.is_empty() {
                return Err(Misread::Asks("it takes no point: /rewind goes back to one"));
            }
            let to = if verb == Verb::Undo { RewindTo::Undo } else { RewindTo::Redo };
            Do::Rewind(MoveCommand { force: !flags.is_empty(), ..MoveCommand::to(to) })
        }
        Verb::Fork => Do::Fork { at: text(), label: None },
        Verb::Diff => Do::Diff { from: text(), to: None },
        Verb::Compact if typed == "undo" => Do::UndoCompaction,
        Verb::Compact => Do::Compact(Shortening::Summary),
        Verb::Export => Do::Export(export(typed, open.ok_or(Misread::NoSession)?)?),
        _ => return Ok(None),
    }))
}

/// The text without the flags at its end, and the flags.
fn flagged<'a>(typed: &'a str, known: &[&'static str]) -> (&'a str, Vec<&'static str>) {
    let (mut rest, mut flags) = (typed, Vec::new());
    while let Some(flag) = known.iter().find(|flag| {
        rest.strip_suffix(**flag).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
    }) {
        rest = rest[..rest.len() - flag.len()].trim_end();
        flags.insert(0, *flag);
    }
    (rest, flags)
}

/// A format, then a path; or a path alone, from whose ending the format follows. A path has a slash
/// or an ending, so that a mistyped format is not taken for one.
fn export(typed: &str, session: &SessionId) -> Result<Export, Misread> {
    // A file that is there is replaced only if that is said.
    let (typed, flags) = flagged(typed, &["--force"]);
    let existing = if flags.is_empty() { Existing::Keep } else { Existing::Replace };
    let format = |word: &str| match word {
        "markdown" | "md" => Some(Format::MARKDOWN),
        "html" => Some(Format::HTML),
        "json" | "jsonl" => word.parse().ok(),
        _ => None,
    };
    let (first, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let (format, path) = match format(first) {
        Some(known) => (known, rest.trim()),
        None if typed.is_empty() => (Format::MARKDOWN, ""),
        None if !typed.contains(['/', '.']) => {
            let question = "which format? /export markdown, html, json or jsonl, then a path";
            return Err(Misread::Asks(question));
        }
        None => {
            let ending = typed.rsplit('.').next().and_then(format);
            (ending.unwrap_or(Format::MARKDOWN), typed)
        }
    };
    let ending = if format == Format::MARKDOWN { "md" } else { format.as_str() };
    let path = match path {
        "" => format!("{session}.{ending}"),
        path => path.to_owned(),
    };
    let (path, folder, length) = (PathBuf::from(path), Folder::Workspace, Length::Whole);
    Ok(Export { format, path, folder, existing, length })
}
