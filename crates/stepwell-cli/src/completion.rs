//! What a shell offers while a command is typed: sessions, labels, checkpoints, models, modes,
//! agents, formats and settings, as they are here and now.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::CompleteEnv;
use stepwell::SessionInfo;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell_agent::agent::builtin;
use stepwell_agent::permission::Mode;
use stepwell_formats::Format;
use stepwell_runtime::model_names;
use stepwell_terminal::text::{cut, one_line, without_secrets};
use stepwell_terminal::wording::POINT_FORMS;
use stepwell_workspace::config::{KEYS, Key};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

/// The variable by which a shell says that it wants completions. No other program's variable
/// may be taken for it: a command would then do nothing.
pub(crate) const VARIABLE: &str = "_STEPWELL_COMPLETE";

/// How many of the newest sessions are offered. A longer list helps nobody.
const SESSIONS: usize = 200;

/// How much of a task stands beside a session.
const TASK: usize = 60;

/// Answers a shell that wants completions of what can be typed. Says whether one did.
pub(crate) fn answered(
    definition: fn() -> Command,
    host: &Host,
    words: Vec<std::ffi::OsString>,
) -> bool {
    let folder = host.folder.clone();
    let typed = Arc::new(Typed::new(host.clone(), &words));
    let offering = || offering(definition(), &typed);
    CompleteEnv::with_factory(offering)
        .var(VARIABLE)
        .try_complete(words, folder.as_deref())
        .unwrap_or(true)
}

/// The definition, with what can be offered for each argument.
fn offering(command: Command, typed: &Arc<Typed>) -> Command {
    // What is restored is in the trash, and nothing else can be.
    let sessions = if command.get_name() == "restore" { Offer::Trashed } else { Offer::Sessions };
    let command = command.mut_args(|arg| match Offer::of(&arg, sessions) {
        Some(offer) => {
            let typed = Arc::clone(typed);
            let completer = move |current: &OsStr| {
                let current = current.to_string_lossy();
                typed.offers(offer, &current).unwrap_or_default()
            };
            arg.add(ArgValueCompleter::new(completer))
        }
        None => arg,
    });
    command.mut_subcommands(|command| offering(command, typed))
}

/// What is offered for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Sessions,
    /// Sessions in the trash.
    Trashed,
    Labels,
    Checkpoints,
    Models,
    Modes,
    Agents,
    /// Formats that are read.
    Read,
    /// Formats that are written.
    Written,
    /// Keys of settings.
    Keys,
}

impl Offer {
    fn of(arg: &Arg, sessions: Self) -> Option<Self> {
        let named = arg.get_value_names().and_then(|names| names.first());
        match (arg.get_id().as_str(), named.map(clap::builder::Str::as_str)) {
            (_, Some(POINT_FORMS)) => Some(Self::Checkpoints),
            ("from", Some("FORMAT")) => Some(Self::Read),
            (_, Some("FORMAT")) => Some(Self::Written),
            ("session" | "sessions", _) => Some(sessions),
            ("label", _) if arg.get_long().is_some() => Some(Self::Labels),
            ("model", _) => Some(Self::Models),
            ("mode", _) => Some(Self::Modes),
            ("agent", _) => Some(Self::Agents),
            ("key", _) => Some(Self::Keys),
            _ => None,
        }
    }
}

fn formats(which: impl Fn(&Format) -> bool) -> Vec<String> {
    Format::all().filter(which).map(|it| it.to_string()).collect()
}

/// What was typed so far.
struct Typed {
    host: Host,
    words: Vec<String>,
}

impl Typed {
    /// A shell passes what was typed after `--`.
    fn new(host: Host, words: &[std::ffi::OsString]) -> Self {
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        Self { host, words: words.skip_while(|word| word != "--").skip(1).collect() }
    }

    /// The value of an option that stands before what is completed.
    fn option(&self, names: &[&str]) -> Option<PathBuf> {
        let at = self.words.iter().position(|word| names.contains(&word.as_str()))?;
        self.words.get(at + 1).map(Into::into)
    }

    fn workspace(&self) -> Option<Workspace> {
        let mut host = self.host.clone();
        if let Some(folder) = self.option(&["-C"]) {
            host.folder = Some(std::fs::canonicalize(folder).ok()?);
        }
        let variable = || host.variable("STEPWELL_STORE").map(PathBuf::from);
        let store = self.option(&["--store"]).or_else(variable);
        let wanted = Wanted { folder: host.folder.clone(), store, overrides: Vec::new() };
        // Whoever types is told nothing meanwhile.
        Workspace::locate_or_defaults(host, wanted, Notices::to(|_| ()))
            .ok()
            .map(|(found, _)| found)
    }

    /// What is offered. Where something cannot be read, nothing is.
    fn offers(&self, offer: Offer, current: &str) -> Option<Vec<CompletionCandidate>> {
        let begins = |name: &String| name.starts_with(current) && is_plain(name);
        let plain = |names: Vec<String>| {
            names.into_iter().filter(begins).map(CompletionCandidate::new).collect()
        };
        match offer {
            Offer::Read => Some(plain(formats(|it| it.reader().is_some()))),
            Offer::Written => Some(plain(formats(|it| it.writer().is_some()))),
            Offer::Agents => {
                let (builtin, own) =
                    (builtin().into_keys(), self.workspace()?.config.agents.clone().into_keys());
                Some(plain(builtin.chain(own).collect()))
            }
            Offer::Models => Some(plain(model_names(&self.workspace()?, current))),
            Offer::Modes => Some(plain(Mode::ALL.map(|mode| mode.as_str().to_owned()).to_vec())),
            Offer::Keys => {
                let keys = KEYS.iter().filter(|key| key.name.starts_with(current));
                let offer = |key: &Key| {
                    CompletionCandidate::new(key.name).help(Some(key.says.trim().into()))
                };
                Some(keys.map(offer).collect())
            }
            Offer::Checkpoints => Some(plain(self.checkpoints()?)),
            Offer::Labels => {
                let labels = self.sessions(TrashScope::Kept)?.into_iter();
                Some(plain(labels.filter_map(|it| it.head.label).collect()))
            }
            Offer::Sessions => {
                let mut offers = named(&self.sessions(TrashScope::Kept)?, current);
                if !current.is_empty() && "@last".starts_with(current) {
                    offers.push(CompletionCandidate::new("@last"));
                }
                Some(offers)
            }
            Offer::Trashed => Some(named(&self.sessions(TrashScope::Trash)?, current)),
        }
    }

    fn sessions(&self, place: TrashScope) -> Option<Vec<SessionInfo>> {
        let well = self.workspace()?.open_if_present().ok()??;
        let filter = Filter { place, ..Filter::default() };
        Some(well.list(&Query { filter, limit: SESSIONS, ..Query::default() }).ok()?.sessions)
    }

    /// The checkpoints of the session that was typed before.
    fn checkpoints(&self) -> Option<Vec<String>> {
        let well = self.workspace()?.open_if_present().ok()??;
        let names = self.words.iter().skip(2).filter(|word| !word.is_empty());
        let id = names.filter(|word| !word.starts_with('-')).find_map(|it| well.find(it).ok())?;
        let made = well.checkpoints(&id).ok()?.into_iter();
        Some(made.map(|it| it.checkpoint.name).collect())
    }
}

/// Does a name hold no secret? A name that was imported may, and then the shell must not show it.
fn is_plain(name: &str) -> bool {
    without_secrets(name) == name
}

/// Names of sessions that begin with what was typed: whole ids, their endings, labels.
fn named(sessions: &[SessionInfo], current: &str) -> Vec<CompletionCandidate> {
    let mut offers = Vec::new();
    for info in sessions {
        let (id, head) = (&info.head.id, &info.head);
        let about = format!("{}, {}", head.status, cut(&one_line(&head.task), TASK));
        let mut offer = |name: &str| {
            offers.push(CompletionCandidate::new(name).help(Some(about.clone().into())));
        };
        let label = head.label.as_ref().filter(|label| label.starts_with(current));
        if let Some(label) = label.filter(|label| is_plain(label)) {
            offer(label);
        }
        let shared = |other: &&SessionInfo| other.head.id.ending() == id.ending();
        let tells = id.ending().len() < id.as_str().len()
            && sessions.iter().filter(shared).take(2).count() == 1;
        if tells && id.ending().starts_with(current) {
            offer(id.ending());
        } else if id.as_str().starts_with(current) {
            offer(id.as_str());
        }
    }
    offers
}
