//! What the terminal asks for: keys, runs and stores in, wishes out.

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::KeyEvent;
use stepwell::model::{Answer, Mode, Money, Phase};
use stepwell::{Recorded, Seq, SessionId};
use stepwell_agent::permission::Rule;
use stepwell_runtime::command::Command;

use crate::clean::Clean;
use crate::helper::Helper;
use crate::session::{Point, Reach, SessionCard, SessionRow};
use crate::told::{Question, Told};

/// Something that happens to the terminal.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// A whole line was typed, where the screen is not redrawn.
    Line(String),
    /// Nobody types any more: what works is waited for, and then it is over.
    Closed,
    /// Ctrl+C, where whole lines are typed and it comes as a signal.
    Cancel,
    /// The process is asked to end, or its terminal is gone.
    Ending,
    /// Text was pasted.
    Paste(String),
    /// The screen has another size.
    Resize {
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// Time passed.
    Tick,
    /// Something happened in the run.
    Run(Told),
    /// Something happened in a run that goes on elsewhere.
    Elsewhere {
        /// Its session.
        session: SessionId,
        /// What happened.
        told: Told,
    },
    /// An answer to an effect.
    Reply(Reply),
}

/// How long one session is open here, as a number: what is asked for during one visit is not
/// answered in another. A session that has no name yet has one, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Visit(pub u64);

/// An answer to an effect.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Sessions to begin with: what was cut off, what waits, what was used last.
    Start(Vec<SessionRow>),
    /// A session was opened: what it is, and the last of its events that count.
    Opened(Box<Opened>),
    /// A session could not be opened.
    NotOpened {
        /// Which opening it was.
        opening: u64,
        /// Why it was not opened.
        why: Clean,
        /// What would help.
        hint: Option<Clean>,
    },
    /// Words were not said.
    NotSaid {
        /// The text.
        text: String,
        /// Why it was not said.
        why: Clean,
        /// What would help.
        hint: Option<Clean>,
    },
    /// The configuration was read again.
    Configured {
        /// The model that a new session gets.
        model: Clean,
        /// When a person is asked.
        mode: Mode,
    },
    /// The open session changed.
    Card(Box<SessionCard>),
    /// A session changed, here or elsewhere.
    Changed(SessionId),
    /// What was added to the open session.
    Grown(Box<Grown>),
    /// A model that can be asked.
    Model {
        /// Its name.
        name: String,
        /// Whom it is for.
        visit: Visit,
    },
    /// An agent that there is.
    Agent {
        /// Its name.
        name: String,
        /// Whom it is for.
        visit: Visit,
    },
    /// Events before those that are shown.
    Earlier {
        /// The session.
        session: SessionId,
        /// The events.
        events: Vec<Recorded>,
        /// Are there more?
        more: bool,
    },
    /// Sessions that were searched for.
    Found {
        /// Which search it was.
        search: u64,
        /// The sessions.
        rows: Vec<SessionRow>,
        /// Are other agents' sessions looked at?
        others: OtherAgents,
    },
    /// Other agents' sessions were looked through: a search finds more now.
    OthersRead,
    /// What is in a session, as Markdown.
    Preview {
        /// The session.
        session: SessionId,
        /// Its last messages, those with hits first.
        text: Clean,
    },
    /// Points to go back to, the newest first.
    Points {
        /// The session.
        session: SessionId,
        /// What for.
        purpose: PointsFor,
        /// The points.
        points: Vec<Point>,
    },
    /// Files whose names were asked for.
    Files(Vec<String>),
    /// Models that can be chosen.
    Models(Vec<Clean>),
    /// Agents that can be chosen.
    Agents(Vec<Clean>),
    /// Who worked for a session.
    Helpers {
        /// The session.
        session: SessionId,
        /// Its subagents, and the conversations of a flow's nodes.
        helpers: Vec<Helper>,
    },
    /// A command was carried out, or failed.
    Ran(Box<Ran>),
    /// A session of another agent was imported.
    Imported {
        /// The session.
        session: SessionId,
        /// Where it is opened.
        visit: Visit,
    },
    /// The run goes on in the background.
    Detached,
    /// The run cannot go on in the background.
    NotDetached {
        /// Why not.
        why: Clean,
        /// What would help.
        hint: Option<Clean>,
    },
    /// A command of the user's is done.
    ShellDone {
        /// The command.
        command: String,
        /// What it wrote.
        output: Clean,
        /// How it ended, if not well.
        failed: Option<Clean>,
        /// Whose it is.
        visit: Visit,
    },
    /// What was written in an editor.
    Edited(String),
    /// An answer to a question was not taken.
    NotAnswered {
        /// The session that asks.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// Why the answer was not taken.
        why: Clean,
        /// Does the question still wait?
        again: bool,
    },
    /// Something could not be done.
    Failed {
        /// What went wrong.
        why: Clean,
        /// What would help.
        hint: Option<Clean>,
    },
}

/// A session that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Which opening it was.
    pub opening: u64,
    /// Where it lies; absent, where the terminal began.
    pub place: Option<StorePlace>,
    /// What it is.
    pub card: SessionCard,
    /// The last of its events that count.
    pub events: Vec<Recorded>,
    /// Are there earlier ones?
    pub more: bool,
    /// How many of its words nobody has taken in yet.
    pub unheard: u64,
    /// Does it go on at once?
    pub resume: bool,
    /// Was it forked or taken back, and not run since?
    pub rests: bool,
    /// Did a person stop its last run? Then it waits, whatever else waits in it.
    pub stopped: bool,
    /// How many questions wait in it.
    pub waiting: u64,
    /// The last event that was read.
    pub seq: Seq,
    /// If it runs elsewhere: who runs it, and the questions that wait there.
    pub elsewhere: Option<Elsewhere>,
}

/// Where sessions lie and are worked on, if not where the terminal began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlace {
    /// The store.
    pub store: PathBuf,
    /// The folder, as it is shown.
    pub folder: Clean,
    /// The model that a new session gets there.
    pub model: Clean,
    /// When a person is asked there.
    pub mode: Mode,
}

/// What was added to a session.
#[derive(Clone, Debug)]
pub struct Grown {
    /// What it is now.
    pub card: SessionCard,
    /// The events behind the last one that was known.
    pub events: Vec<Recorded>,
    /// Is it too much to be told, so that the session is to be read anew?
    pub too_much: bool,
    /// The last event that was read.
    pub seq: Seq,
    /// How many questions wait in it.
    pub waiting: u64,
    /// If it runs elsewhere: who runs it, and the questions that wait there.
    pub elsewhere: Option<Elsewhere>,
}

/// A run that goes on elsewhere.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// Who runs it.
    pub holder: Clean,
    /// The questions that wait.
    pub questions: Vec<Question>,
}

/// A command that was carried out, or failed.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The command.
    pub command: Command,
    /// Where it was typed.
    pub visit: Visit,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a command.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was carried out.
    Done {
        /// What it found or did.
        reply: Arc<stepwell_runtime::command::Reply>,
        /// The same in words.
        text: Clean,
        /// What a person should know beside it.
        notes: Clean,
    },
    /// It failed.
    Failed {
        /// Why.
        why: Clean,
        /// What would help.
        hint: Option<Clean>,
    },
}

/// Whether sessions of other agents that were not imported are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherAgents {
    /// They are not asked for: the search does not go that far.
    #[default]
    Unasked,
    /// The user did not switch that on.
    Off,
    /// They are.
    On,
}

/// What points are shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointsFor {
    /// To go back to one.
    Rewind,
    /// To look at what happened.
    Timeline,
}

/// What a run works with, where it was changed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// The model.
    pub model: Option<String>,
    /// When a person is asked.
    pub mode: Option<Mode>,
    /// The agent.
    pub agent: Option<String>,
    /// The most dollars of the session.
    pub budget: Option<Money>,
}

/// Something that the terminal wants done. Its answer comes as an [`Input`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a key has a handful of them")]
pub enum Effect {
    /// Begin a session.
    Start {
        /// What to do.
        task: String,
        /// How.
        settings: RunSettings,
    },
    /// Begin guided work.
    StartWork {
        /// What is to be reached.
        goal: String,
        /// The phases in which nobody is asked.
        unasked: Vec<Phase>,
        /// How.
        settings: RunSettings,
    },
    /// Begin a flow.
    StartFlow {
        /// The spec's file.
        spec: String,
        /// Its variables, as they are typed: `NAME=VALUE`.
        variables: Vec<String>,
        /// How.
        settings: RunSettings,
    },
    /// Go on with a session.
    Resume {
        /// The session.
        session: SessionId,
        /// What to do next.
        say: Option<String>,
        /// How.
        settings: RunSettings,
    },
    /// Say something to the run, or to the session for its next one.
    Say {
        /// The session.
        session: SessionId,
        /// The text.
        text: String,
    },
    /// Say something to the session that is about to begin, and has no name yet.
    SayFirst(String),
    /// Answer a question.
    Answer {
        /// The session that asks.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// The answer.
        answer: Answer,
    },
    /// Allow what is asked, and from now on what is like it.
    AllowLike {
        /// The session that asks.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// What is like it.
        rule: Rule,
    },
    /// Leave the question for later: the run pauses.
    Pause,
    /// Stop the turn.
    Interrupt,
    /// Watch a session that runs elsewhere, from behind an event on.
    Watch {
        /// The session.
        session: SessionId,
        /// The last event that is known.
        after: Seq,
    },
    /// Watch no longer. What is watched goes on.
    LetGo,
    /// Ask whoever runs a session elsewhere to stop.
    StopElsewhere(SessionId),
    /// Draw the screen anew.
    Redraw,
    /// Run a command of the user's.
    Shell {
        /// The command.
        command: String,
        /// Whose it is.
        visit: Visit,
    },
    /// End the user's command that runs. It is told as done.
    StopShell,
    /// List what the start screen shows.
    ListStart,
    /// Open a session. With `resume`, it goes on at once.
    Open {
        /// The session, as it is named.
        session: String,
        /// The store that it is in; absent, it is looked for, in this one first.
        store: Option<PathBuf>,
        /// Does it go on at once?
        resume: bool,
        /// Which opening it is; only the newest one's answer counts.
        opening: u64,
    },
    /// Work from now on where the session lies that was just opened.
    Enter {
        /// Which opening it was.
        opening: u64,
    },
    /// Work again where the terminal began.
    GoHome,
    /// Read the configuration again.
    ReadConfig,
    /// Set what all of a session may cost, also for the run that works in it.
    SetBudget {
        /// The session; absent, the one that is about to begin.
        session: Option<SessionId>,
        /// The most.
        most: Money,
    },
    /// Read the open session's card again.
    ReadCard(SessionId),
    /// Read what was added to a session behind an event.
    ReadNew {
        /// The session.
        session: SessionId,
        /// The last event that is known.
        after: Seq,
    },
    /// Find out whether a model can be asked, by its name.
    CheckModel {
        /// Its name.
        name: String,
        /// Whom it is for.
        visit: Visit,
    },
    /// Find out whether there is an agent, by its name.
    CheckAgent {
        /// Its name.
        name: String,
        /// Whom it is for.
        visit: Visit,
    },
    /// Read events before a seq.
    ReadEarlier {
        /// The session.
        session: SessionId,
        /// The first event that is shown.
        before: Seq,
    },
    /// Search sessions.
    Find {
        /// Which search it is; only the newest one's answer counts.
        search: u64,
        /// The words.
        words: String,
        /// How far.
        reach: Reach,
    },
    /// Look into a session.
    Preview {
        /// The session.
        session: SessionId,
        /// The store that it is in; absent, this one.
        store: Option<PathBuf>,
        /// The words that were searched for.
        words: String,
    },
    /// List points of a session.
    ListPoints {
        /// The session.
        session: SessionId,
        /// What for.
        purpose: PointsFor,
    },
    /// List files of the workspace whose names are like this.
    ListFiles(String),
    /// List models.
    ListModels,
    /// List agents.
    ListAgents,
    /// List who worked for a session.
    ListHelpers(SessionId),
    /// Carry out a command.
    Run {
        /// The command.
        command: Command,
        /// Where it was typed.
        visit: Visit,
    },
    /// Import a session of another agent, and open it.
    Import {
        /// Its file.
        path: String,
        /// Its name here.
        session: SessionId,
        /// Where it is opened.
        visit: Visit,
    },
    /// Go on with a session in the background.
    GoOnDetached(SessionId),
    /// Put a text on the clipboard.
    Copy(String),
    /// Let the user write in their own editor.
    Edit(String),
    /// Suspend the program.
    Suspend,
    /// Leave.
    Leave,
}
