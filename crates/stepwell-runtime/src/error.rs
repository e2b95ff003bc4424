//! What can go wrong with a run before it begins or when it cannot be saved, and what would help.

mod advice;
mod kind;
mod remedy;

use std::path::PathBuf;

use stepwell::{Gate, Seq, SessionId};
use stepwell_agent::provider::CallError;
use stepwell_flow::NoAnswer;

use crate::report::RunReport;

pub use kind::ErrorKind;
pub use remedy::{Remedy, SuggestedModel, TokenLimit};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, naming the thing and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store said so.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// The workspace did.
    #[error(transparent)]
    Workspace(#[from] stepwell_workspace::Error),
    /// The agent did.
    #[error(transparent)]
    Agent(#[from] stepwell_agent::Error),
    /// What a session does to files did.
    #[error(transparent)]
    Files(#[from] stepwell_files::Error),
    /// The flow or its spec did.
    #[error(transparent)]
    Flow(#[from] stepwell_flow::Error),
    /// Nobody said which model is to be asked.
    #[error("no model was named")]
    NoModel {
        /// One that can be asked here, or could be with a key.
        suggested: SuggestedModel,
    },
    /// Somebody else chose the session's model, and its user none.
    #[error("{}", others_model(who, *namesake))]
    OthersModel {
        /// The model.
        model: String,
        /// Who chose it.
        who: stepwell::Who,
        /// Have they the user's own name?
        namesake: bool,
    },
    /// Neither the spec nor the user says which model a flow's agent asks.
    #[error("no model was named")]
    NoFlowModel,
    /// A name means no model.
    #[error("{0}")]
    ModelName(String),
    /// A script cannot be read.
    #[error("the script {}: {why}", path.display())]
    Script {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The configuration names a protocol that there is none of.
    #[error("providers.{provider}: {protocol:?} is no protocol")]
    Protocol {
        /// The provider.
        provider: String,
        /// What it says.
        protocol: String,
    },
    /// The user's prices cannot be understood.
    #[error("{0}")]
    Prices(String),
    /// The command that gives a key failed.
    #[error("the command for the key of {of} failed")]
    KeyCommand {
        /// Whose key.
        of: String,
    },
    /// A provider cannot be asked.
    #[error("{error}")]
    Provider {
        /// Why not.
        error: CallError,
        /// The variable that would hold its key, if there is one.
        variable: Option<String>,
    },
    /// There is no such agent.
    #[error("there is no agent {name:?}")]
    NoAgent {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A budget on a model whose price nobody knows cannot be kept.
    #[error("the price of {what} is not known, so a budget cannot be kept")]
    NoPrice {
        /// The model.
        what: String,
        /// Where tokens can be limited instead.
        limit: TokenLimit,
    },
    /// A budget for all of a session needs the price of all that was done.
    #[error(
        "the price of {calls} of the session's calls is not known, so a budget for all of it \
         cannot be kept"
    )]
    Unpriced {
        /// How many calls have no price.
        calls: u64,
    },
    /// A tool that an agent is to have cannot be had.
    #[error("{at}: {error}")]
    Tools {
        /// Where the tools are listed.
        at: String,
        /// What is wrong.
        error: Box<stepwell_agent::Error>,
        /// What would help.
        remedy: Box<Remedy>,
    },
    /// A folder that is captured leads out of the workspace.
    #[error("{key} = {name:?}: it leads out of the workspace, to {}", to.display())]
    RootOutside {
        /// Where the setting comes from.
        source_of: Option<stepwell_workspace::config::Source>,
        /// The setting.
        key: &'static str,
        /// The folder.
        name: String,
        /// Where it leads.
        to: PathBuf,
    },
    /// No thread could be started.
    #[error("no threads to run on: {0}")]
    Thread(std::io::Error),
    /// It was interrupted before it began; nothing was recorded.
    #[error("interrupted before it began")]
    Interrupted,
    /// Sessions are not saved here, so none can be resumed.
    #[error("sessions.auto_save is off, so a session cannot be resumed")]
    NotSaved,
    /// Another program drives the session.
    #[error("{session} is driven by an agent of yours, not by Stepwell")]
    External {
        /// The session.
        session: SessionId,
    },
    /// The session was abandoned.
    #[error("{session} was abandoned")]
    Abandoned {
        /// The session.
        session: SessionId,
        /// Is it a flow?
        is_flow: bool,
    },
    /// A flow is finished: nothing is left to do.
    #[error("{session} is finished: there is nothing left to do")]
    Finished {
        /// The session.
        session: SessionId,
    },
    /// More to do was said to a flow.
    #[error("{session} is a flow: it takes answers to its questions, and no other text")]
    IsFlow {
        /// The session.
        session: SessionId,
        /// Is it waiting for an answer?
        waits: bool,
    },
    /// A flow that nobody runs was to be made shorter.
    #[error("{session} is a flow: its agents' conversations are compacted while it runs")]
    FlowNotRunning {
        /// The session.
        session: SessionId,
    },
    /// An answer was given to a dry run, which changes nothing and so cannot record it.
    #[error("a dry run answers nothing: {session} was left as it is")]
    DryAnswer {
        /// The session.
        session: SessionId,
    },
    /// What has a meaning for flows only was asked of a session that is none.
    #[error("{what} is for flows, and {session} is none")]
    NoFlow {
        /// The session.
        session: SessionId,
        /// What was asked.
        what: &'static str,
    },
    /// Somebody else runs the session.
    #[error(transparent)]
    RunsElsewhere(stepwell::Error),
    /// Somebody else rewinds a session of this workspace: its files would get mixed up.
    #[error(transparent)]
    RewoundElsewhere(stepwell::Error),
    /// A rewind was cut off, and files changed since that it would overwrite.
    #[error("a rewind of {session} was cut off at seq {began}, and files changed since")]
    RewindConflict {
        /// The session.
        session: SessionId,
        /// Where the rewind began.
        began: Seq,
    },
    /// The session does not wait for an answer.
    #[error("{session} does not wait for an answer")]
    NotWaiting {
        /// The session.
        session: SessionId,
    },
    /// The session runs elsewhere, and does not wait for an answer.
    #[error("{session} runs elsewhere, and does not wait for an answer")]
    NotWaitingElsewhere {
        /// The session.
        session: SessionId,
    },
    /// No question of that name waits.
    #[error("{name:?} is no question that waits in {session}")]
    NoGate {
        /// The session.
        session: SessionId,
        /// The name.
        name: String,
        /// Those that wait.
        open: Vec<Gate>,
    },
    /// Several questions wait, and none was named.
    #[error("{} questions wait in {session}", open.len())]
    SeveralGates {
        /// The session.
        session: SessionId,
        /// Those that wait.
        open: Vec<Gate>,
    },
    /// An answer does not fit its question.
    #[error("[{gate}] {why}")]
    BadAnswer {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// What is wrong with it.
        why: NoAnswer,
    },
    /// A rule for later calls holds a secret. It would not be stored as it is, and so never fit.
    #[error(
        "the pattern holds a secret, which is not stored; put * in its place, or answer only this call"
    )]
    SecretRule {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
    },
    /// Words neither allow nor deny what is asked.
    #[error("{text:?} neither allows nor denies what is asked: {asked}")]
    Unclear {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// The words.
        text: String,
        /// What is asked.
        asked: String,
    },
    /// Somebody else answered first; theirs is the answer.
    #[error("[{gate}] was answered by {who} at {at}")]
    AnsweredBefore {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// Who answered.
        who: String,
        /// When they answered.
        at: stepwell::Time,
        /// How the session stands since.
        since: SinceAnswer,
    },
    /// A question of that name was answered in another session than the one that waits with it.
    #[error("{before}")]
    AnsweredOther {
        /// Who answered it, and when.
        before: Box<Error>,
        /// What waits under that name.
        choices: Vec<GateChoice>,
    },
    /// A name fits several questions, or only such as wait in other stores.
    #[error("{}", unclear_gate(name, *elsewhere, choices.len()))]
    UnclearGate {
        /// The name.
        name: String,
        /// Do they wait in other stores?
        elsewhere: bool,
        /// Those questions.
        choices: Vec<GateChoice>,
    },
    /// No question of that name waits anywhere, and none was answered lately.
    #[error("no question {name:?} waits")]
    NoQuestion {
        /// The name.
        name: String,
    },
    /// An answer is not taken.
    #[error("[{gate}] {why}")]
    AnswerRefused {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
        /// Why not.
        why: String,
    },
    /// Something was said to a flow, and not to which of its conversations.
    #[error("{session} is a flow: say to which of its lanes")]
    NoLane {
        /// The session.
        session: SessionId,
        /// Its lanes.
        known: Vec<String>,
    },
    /// Something was said to a conversation that has not begun.
    #[error("{session} has no conversation {:?}", lane.as_str())]
    NoSuchLane {
        /// The session.
        session: SessionId,
        /// What was named.
        lane: stepwell::Lane,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A run's command asked for what only a person may do.
    #[error("{what} is for people: an agent cannot do it from within its own run")]
    OnlyPeople {
        /// What was asked for.
        what: &'static str,
    },
    /// The session does not run.
    #[error("{session} does not run")]
    NotRunning {
        /// The session.
        session: SessionId,
    },
    /// Somebody else changed the spec that a flow goes by, until it was taken.
    #[error("the spec that {session} goes by was changed meanwhile")]
    SpecMoved {
        /// The session.
        session: SessionId,
    },
    /// A flow's spec is not where it was.
    #[error("the spec of {session} is not where it was")]
    SpecGone {
        /// The session.
        session: SessionId,
    },
    /// A changed spec lacks or changes what is done already.
    #[error("the changed spec lacks or changes what is done already: {}", nodes.join(", "))]
    SpecBreaks {
        /// The session.
        session: SessionId,
        /// Those nodes.
        nodes: Vec<String>,
    },
    /// A variable held a secret, which is not kept.
    #[error("{name} holds a secret, which is not kept with {session}")]
    SecretVariable {
        /// The session.
        session: SessionId,
        /// The variable.
        name: String,
    },
    /// A variable is not what the flow began with.
    #[error("variable {name}: {session} did not begin with that")]
    OtherVariable {
        /// The session.
        session: SessionId,
        /// The variable.
        name: String,
    },
    /// A flow needs a secret that is not set.
    #[error("the flow needs {variable} in the environment")]
    MissingSecret {
        /// The variable.
        variable: String,
    },
    /// A flow that someone else began would do something that the user did not allow.
    #[error("this flow was not begun by you, and would {does}")]
    NotYours {
        /// What it would do.
        does: String,
    },
    /// Guided work was asked for in a way that makes no sense.
    #[error("{why}")]
    Outline {
        /// What is wrong.
        why: String,
    },
    /// Tasks cannot be done in worktrees.
    #[error("tasks cannot be done in worktrees here: {why}")]
    NoWorktrees {
        /// Why not.
        why: String,
    },
    /// Guardrails allow a tool that there is none of.
    #[error("security.guardrails.allow_tools: there is no tool {name:?}")]
    Guardrail {
        /// The tool.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A flow's agent cannot have its tools.
    #[error("{0}")]
    FlowTools(String),
    /// A server of a spec is described wrongly.
    #[error("tools.mcp.{server}: {why}")]
    SpecServer {
        /// The server.
        server: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Something is wrong with one of a flow's agents.
    #[error("agent {agent}: {error}")]
    OfAgent {
        /// The agent.
        agent: String,
        /// What is wrong.
        error: Box<Error>,
    },
    /// What a run did could not be saved, so it stopped.
    #[error("the {what} stopped: what it did could not be saved: {error}")]
    Unsaved {
        /// `run` or `flow`.
        what: &'static str,
        /// Why not.
        error: stepwell::Error,
        /// How far it was.
        report: Box<RunReport>,
    },
    /// A run stopped with an error of its own.
    #[error("{error}")]
    Broken {
        /// What went wrong.
        error: Box<Error>,
        /// How far it was.
        report: Box<RunReport>,
    },
    /// Files that the session changed, someone else changed since: nothing was moved.
    #[error("files that {session} changed, someone else changed since: {}", conflicts.join(", "))]
    RewindRefused {
        /// The session.
        session: SessionId,
        /// Those files; none, if only work that was done since is in the way.
        conflicts: Vec<String>,
    },
    /// The session did not change a file.
    #[error("{session} did not change {path:?}")]
    NotChanged {
        /// The session.
        session: SessionId,
        /// The file.
        path: String,
    },
    /// What a file held is not known.
    #[error("{path} at seq {at}: {why}")]
    NoContent {
        /// The session.
        session: SessionId,
        /// The file.
        path: String,
        /// The point in the session.
        at: Seq,
        /// Why not.
        why: String,
    },
    /// No rewind was taken back, so that none can be done again.
    #[error("{session} has no undone rewind to redo")]
    NothingToRedo {
        /// The session.
        session: SessionId,
    },
    /// There is no move to take back.
    #[error("{session} has no rewind to undo")]
    NothingToTakeBack {
        /// The session.
        session: SessionId,
    },
    /// The thread of a run ended without an answer: a defect of ours.
    #[error("the run's thread ended unexpectedly")]
    Panicked,
}

/// A question that waits, and what to type for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateChoice {
    /// A part of the session's id, and the question's name.
    pub typed: String,
    /// What is asked.
    pub prompt: String,
}

fn unclear_gate(name: &str, elsewhere: bool, count: usize) -> String {
    match (elsewhere, count) {
        (false, _) => format!("{name:?} waits in {count} sessions"),
        (true, 1) => format!("{name:?} waits in another of your stores, not here"),
        (true, _) => format!("{name:?} waits in other stores of yours, {count} times, not here"),
    }
}

/// How a session stands after one of its questions was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinceAnswer {
    /// Somebody runs it.
    Runs,
    /// Nobody does, and it can be resumed.
    Stopped,
    /// Its run has ended.
    Ended,
}

/// Whose choice a session's model was. A name can be anyone's: what counts is what this machine
/// noted of its user.
fn others_model(who: &stepwell::Who, namesake: bool) -> String {
    match namesake {
        true => format!(
            "{who} chose the model of this session, and your home folder does not note that this \
             was you"
        ),
        false => format!("{who} chose the model of this session, not you"),
    }
}
