//! What a format must do to be written, and where its files go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use stepwell::log::Head;
use stepwell::model::Estimate;
use stepwell::sessions::Kin;
use stepwell::store::query::TrashScope;
use stepwell::store::{Damage, Span};
use stepwell::{Event, Lane, Recorded, Seq, SessionId, SessionInfo, Stepwell};

use crate::read::neutral::is_original;
use crate::read::neutral::without_facts;
use crate::read::reader::Homes;
use crate::{Error, Result};

/// Writes sessions in the form of one system.
///
/// What the form cannot hold is counted in [`Exported::losses`], never left out in silence.
pub trait Writer: Sync {
    /// What a session is there.
    fn shape(&self) -> Shape {
        Shape::File
    }

    /// How the names of its files end.
    fn ending(&self) -> &'static str {
        "json"
    }

    /// What the system calls the file or the folder of a session, from the folder in which it
    /// keeps them.
    fn place(&self, head: &Head) -> PathBuf {
        match self.shape() {
            Shape::Folder => head.id.as_str().into(),
            Shape::File => format!("{}.{}", head.id, self.ending()).into(),
        }
    }

    /// Where the sessions of subagents go.
    fn subagents(&self) -> Subagents {
        Subagents::Within
    }

    /// The paths of all that is in a session's folder, or in the one beside its file, as
    /// patterns: `*` stands for letters and `#` for digits. Of a folder, what is always there
    /// is first. A folder that holds anything else is somebody else's, and is never replaced.
    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Writes a session, of a damaged one what can be read.
    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported>;

    /// Could the system have given a session this name? Names come out of files, and this one
    /// is to stand in a command: it MUST NOT be taken for anything but a name there.
    fn is_name(&self, id: &str) -> bool {
        is_token(id)
    }

    /// The agent that goes on with sessions of others in this form, if there is one.
    fn successor(&self) -> Option<Successor> {
        None
    }

    /// Where the system would look for the session, and how it is told to go on with it.
    /// `None` if it takes up no sessions of others.
    fn handoff(&self, _session: &Handover<'_>, _homes: &Homes<'_>) -> Option<Handoff> {
        None
    }
}

/// Is it a plain word, which no command takes for an option?
pub(crate) fn is_token(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    text.bytes().all(plain) && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

/// The name that a session has in a system: its own if it came from there and that is a plain
/// word, else the one that it has here.
pub(crate) fn name_there(head: &Head, system: &str) -> String {
    let source = head.source.as_ref().filter(|it| it.system == system && is_token(&it.id));
    source.map_or_else(|| head.id.to_string(), |source| source.id.clone())
}

/// Is it written as UUIDs are?
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    groups.len() == 5
        && groups.iter().zip(lengths).all(|(group, length)| {
            group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

/// What a session is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One file; what does not fit goes into a folder of the same name beside it.
    File,
    /// A folder.
    Folder,
}

/// Where the sessions of a session's subagents go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subagents {
    /// With it, as far as the form can hold them.
    Within,
    /// Each is a session of its own, and names the one that started it.
    Apart,
}

/// What is said of the data that another system keeps with a session.
pub(crate) const FOREIGN: &str = "other systems' own data";

/// What is said of the sessions of subagents that are not with the one that started them.
pub(crate) const SUBAGENTS: &str = "sessions of subagents";

/// An agent that goes on with sessions of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Its name, as people type it.
    pub agent: &'static str,
    /// The sessions that it takes up in this form.
    pub takes: Takes,
}

/// The sessions that an agent takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Conversations.
    Conversations,
    /// Workflows, whatever was said in them.
    Flows,
    /// Conversations, and workflows as the conversation of their agents.
    Both,
}

impl Takes {
    pub(crate) fn is_for(self, head: &Head) -> bool {
        match self {
            Self::Conversations => head.flow.is_none(),
            Self::Flows => head.flow.is_some(),
            Self::Both => true,
        }
    }
}

/// A session that another agent is to go on with.
#[derive(Clone, Copy, Debug)]
pub struct Handover<'a> {
    /// How it stands.
    pub head: &'a Head,
    /// A name for it that no other session of any system bears: the same for the same
    /// session at the same seq.
    pub uuid: &'a str,
    /// The folder that it works in.
    pub workspace: &'a Path,
}

/// How another agent goes on with a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// Where the session is to be written.
    pub path: PathBuf,
    /// The folder below which the system finds a session by its name.
    pub found_below: PathBuf,
    /// The command that continues it.
    pub command: Vec<String>,
    /// The folder to run it in.
    pub folder: PathBuf,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Sessions, those of subagents included.
    pub sessions: usize,
    /// Events that were read for it.
    pub events: u64,
    /// The sessions that could not be read to their end, and where they break off.
    pub damaged: Vec<(SessionId, Damage)>,
    /// What the form cannot hold.
    pub losses: Losses,
}

impl Exported {
    /// Adds what was written of another session.
    pub(crate) fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.events += other.events;
        self.damaged.extend(other.damaged);
        self.losses.extend(other.losses);
    }
}

/// What a form cannot hold, and how many of each there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<&'static str, Loss>);

/// Things of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Loss {
    count: u64,
    /// What they are called, where they have names.
    names: BTreeSet<String>,
}

/// How many names are told.
const MAX_NAMES: usize = 20;

impl Losses {
    /// Counts one more.
    pub fn count(&mut self, what: &'static str) {
        self.0.entry(what).or_default().count += 1;
    }

    /// Counts one more, which has a name.
    pub fn name(&mut self, what: &'static str, name: impl Into<String>) {
        let loss = self.0.entry(what).or_default();
        loss.count += 1;
        loss.names.insert(name.into());
    }

    /// Counts something no longer, since it has a place after all.
    pub(crate) fn forget(&mut self, what: &'static str) {
        self.0.remove(what);
    }

    /// Adds those of another session.
    pub fn extend(&mut self, other: Self) {
        for (what, Loss { count, names }) in other.0 {
            let loss = self.0.entry(what).or_default();
            loss.count += count;
            loss.names.extend(names);
        }
    }

    /// What was left out, in words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(what, loss)| (*what, loss.count))
    }

    /// Was everything held?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As it stands in a warning: `checkpoints (1: before)`.
impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, (what, Loss { count, names })) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{what} ({count}")?;
            let told: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
            match names.len().saturating_sub(MAX_NAMES) {
                _ if told.is_empty() => write!(f, ")")?,
                0 => write!(f, ": {})", told.join(", "))?,
                more => write!(f, ": {} and {more} more)", told.join(", "))?,
            }
        }
        Ok(())
    }
}

/// What an event is called in a warning that a form cannot hold it.
#[must_use]
pub fn word_for(event: &Event) -> &'static str {
    match event {
        Event::ToolStarted(_) | Event::ToolFinished(_) => "records of tools' runs",
        Event::Phase(_) => "phases",
        Event::File(_) | Event::Rewinding(_) => "changes of files",
        Event::Node(_) => "nodes of a flow",
        Event::Gate(_) | Event::GateAnswered(_) => "questions for a human",
        Event::Checkpoint(_) => "checkpoints",
        Event::Permission(_) => "permissions",
        Event::Artifact(_) => "artifacts",
        Event::Task(_) | Event::Question(_) => "tasks and questions",
        Event::Error(_) => "errors",
        Event::Edited(_) => "attributes of the session",
        Event::Compacted(_) => "compactions of other lanes",
        Event::Settings(_) => "settings of runs",
        Event::Said(_) | Event::StopAsked(_) | Event::WorkAsked(_) => {
            "messages and wishes from outside"
        }
        Event::Rewound(_) | Event::Undone(_) => "rewinds",
        Event::Scrubbed(_) => "notes of what was erased",
        Event::Record(_) => "other programs' records",
        Event::Foreign(_) => FOREIGN,
        Event::Message(_) => "messages",
        Event::Created(_) => "how the session began",
        Event::Step(_) => "steps",
        Event::Status(_) => "statuses",
        Event::Unknown(_) => "records of a newer version",
    }
}

/// Counts an event that a form cannot hold, by its name if it has one.
pub(crate) fn count_event(losses: &mut Losses, what: &'static str, event: &Event) {
    let mut named = false;
    let mut name = |name: &str| {
        match named {
            // Several names of one thing.
            true => drop(losses.0.entry(what).or_default().names.insert(name.to_owned())),
            false => losses.name(what, name),
        }
        named = true;
    };
    match event {
        Event::Checkpoint(checkpoint) => name(&checkpoint.name),
        Event::Created(created) => {
            if !created.workspace.is_empty() {
                name("workspace");
            }
            if created.project.is_some() {
                name("project");
            }
        }
        Event::Foreign(foreign) => name(&foreign.system),
        Event::Message(message) if message.lane != Lane::main() => name(message.lane.as_str()),
        Event::Edited(edited) => {
            let edited = without_facts(edited);
            let fields = serde_json::to_value(&edited).unwrap_or_default();
            let keys = fields.as_object().into_iter().flat_map(|it| it.keys());
            let known = ["metadata", "elsewhere"];
            keys.filter(|key| !known.contains(&key.as_str())).for_each(|key| name(key));
            // What was done before it came here, by what it is.
            let before = edited.elsewhere.as_ref().and_then(|it| serde_json::to_value(it).ok());
            let sums = before.as_ref().and_then(|it| it.as_object());
            for sum in sums.into_iter().flat_map(|it| it.keys()) {
                name(match sum.as_str() {
                    "usage" => "tokens",
                    "last_error" => "last error",
                    other => other,
                });
            }
            edited.metadata.keys().for_each(|key| name(&format!("metadata.{key}")));
        }
        _ => {}
    }
    if !named {
        losses.count(what);
    }
}

/// Looks at a session's events in order, up to the last or to the damage, which is the
/// answer. The records that keep the files that it came in are passed over.
pub fn each_event(
    well: &Stepwell,
    id: &SessionId,
    look: &mut dyn FnMut(Recorded) -> Result<()>,
) -> Result<Option<Damage>> {
    let to = well.info(id)?.head.seq;
    well.log(id, Span { to, ..Span::ALL }).each(|event| match is_original(&event.event) {
        true => Ok(()),
        false => look(event),
    })
}

/// The sessions of a session's subagents, oldest first.
pub fn subagents(well: &Stepwell, id: &SessionId) -> Result<Vec<SessionInfo>> {
    Ok(well.children(id, Kin::Subagents, TrashScope::Kept)?)
}

/// Where a session is written to.
pub struct Outlet<'a> {
    main: Main<'a>,
    /// The folder for what does not fit into the one file.
    folder: Option<PathBuf>,
    /// What the file or the folder will be called, without an ending.
    name: Option<String>,
    /// The folder in which the session goes on, if somebody said so.
    workspace: Option<PathBuf>,
    wishes: Wishes,
}

/// What a user may wish of an export, where its format can do it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How much of a long conversation is written.
    pub length: Length,
    /// What it is written for.
    pub purpose: Purpose,
    /// What the session may have cost, where nobody said it: pages show it.
    pub estimate: Option<Estimate>,
    /// The last event that a page tells of; absent, all are told.
    pub up_to: Option<Seq>,
}

/// What a session is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To be kept: what came from the same system goes back as it came.
    #[default]
    Keep,
    /// To be gone on with: no call is left without a result.
    Continue,
}

/// How much of a long conversation is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// All of it.
    #[default]
    Whole,
    /// As much as the system itself would keep.
    AsThere,
}

enum Main<'a> {
    Stream(&'a mut dyn Write),
    File(BufWriter<File>),
    None,
}

impl std::fmt::Debug for Outlet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> Outlet<'a> {
    /// A stream, beside which nothing can be put.
    pub fn stream(to: &'a mut dyn Write) -> Self {
        Self::new(Main::Stream(to), None, None)
    }

    /// A place on disk: a file, if the session is one, and a folder for the rest.
    pub(crate) fn place(file: Option<File>, folder: PathBuf, name: Option<String>) -> Self {
        let main = file.map_or(Main::None, |file| Main::File(BufWriter::new(file)));
        Self::new(main, Some(folder), name)
    }

    fn new(main: Main<'a>, folder: Option<PathBuf>, name: Option<String>) -> Self {
        Self { main, folder, name, workspace: None, wishes: Wishes::default() }
    }

    /// Makes sure that the one file is on the disk.
    pub(crate) fn sync(&mut self) -> std::io::Result<()> {
        match &mut self.main {
            Main::File(file) => file.flush().and_then(|()| file.get_ref().sync_all()),
            Main::Stream(_) | Main::None => Ok(()),
        }
    }

    /// The one file of the session.
    pub fn main(&mut self) -> Result<&mut dyn Write> {
        match &mut self.main {
            Main::Stream(to) => Ok(*to),
            Main::File(file) => Ok(file),
            Main::None => Err(Error::Shape { wants: "a file" }),
        }
    }

    /// A new file in the session's folder, by its path below it. `None` where a stream is
    /// written, which has no folder.
    pub fn file(&mut self, name: &str) -> Result<Option<BufWriter<File>>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = below(folder, name)?;
        if let Some(parent) = path.parent() {
            make_folder(parent).map_err(Error::Write)?;
        }
        private(&path).map(|file| Some(BufWriter::new(file))).map_err(Error::Write)
    }

    /// A folder in the session's folder, by its path below it: systems look into some that
    /// are empty. Where a stream is written, nothing is made.
    pub fn folder(&mut self, name: &str) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        make_folder(&below(folder, name)?).map_err(Error::Write)
    }

    /// What the file or the folder will be called, without an ending.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The folder in which the session goes on, if that is not the one that it worked in.
    #[must_use]
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// The same outlet for a session that goes on in a folder.
    #[must_use]
    pub fn in_workspace(mut self, workspace: &Path) -> Self {
        self.workspace = Some(workspace.to_owned());
        self
    }

    /// What the user wishes.
    #[must_use]
    pub fn wishes(&self) -> Wishes {
        self.wishes
    }

    /// The same outlet for someone who wishes something.
    #[must_use]
    pub fn wishing(mut self, wishes: Wishes) -> Self {
        self.wishes = wishes;
        self
    }

    /// Is there a folder for more files?
    #[must_use]
    pub fn has_folder(&self) -> bool {
        self.folder.is_some()
    }
}

/// A path below a folder, however the name was come by.
fn below(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    match plain && !name.is_empty() && !name.contains('\0') {
        true => Ok(folder.join(path)),
        false => Err(Error::Outside { name: name.to_owned() }),
    }
}

/// A new file that is the user's alone, as the store is.
pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)
}

pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
