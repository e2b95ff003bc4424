//! What would help against an error.

use stepwell::{Gate, SessionId};

use super::GateChoice;

/// A model that a user could name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedModel {
    /// Its name.
    pub model: &'static str,
    /// The variable that holds its key.
    pub variable: &'static str,
    /// Is that set?
    pub has_key: bool,
}

/// Where tokens can be limited instead of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenLimit {
    /// For the run.
    Run,
    /// In a flow's spec.
    Spec,
}

/// What would help. A front end says it in its own words: the command line with commands, a
/// server with routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Name a model, such as this one.
    NameModel(SuggestedModel),
    /// Say that you take this model.
    TakeModel(String),
    /// Name a model, or have the spec name one.
    NameFlowModel,
    /// Use one of the protocols that there are.
    UseProtocol(&'static [&'static str]),
    /// Set a variable of the environment.
    SetVariable(String),
    /// Name one of these.
    NameOneOf(Vec<String>),
    /// A person does it, at a terminal of their own.
    AskPerson,
    /// Set the model's price, or limit tokens.
    SetPrice(TokenLimit),
    /// Limit this run instead of the whole session.
    LimitRun,
    /// Mend where a spec describes this server.
    MendSpecServer(String),
    /// Mend the configuration of this server, or the agent's tools.
    MendServer(String),
    /// Look at which servers the configuration has.
    ListServers,
    /// Capture the whole workspace.
    CaptureAll(&'static str),
    /// Turn saving on.
    SaveSessions,
    /// Ask the program that drives the session.
    AskDriver(SessionId),
    /// Begin the flow anew.
    BeginFlow,
    /// Say something to the session.
    Say(SessionId),
    /// Look at the flow's events, or take nodes back.
    ShowOrRewind(SessionId),
    /// Resume the session.
    Resume(SessionId),
    /// Watch the session where it runs, or stop it.
    AttachOrStop(SessionId),
    /// Watch the session where it runs.
    Attach(SessionId),
    /// Try again when somebody else is done.
    TryLater,
    /// The session is being rewound: try again when that is done.
    AwaitRewind(SessionId),
    /// Finish the rewind that was cut off.
    FinishRewind(SessionId),
    /// Finish the rewind that was cut off, and leave files that changed since as they are.
    FinishLeaving(SessionId),
    /// Restore the session from the trash, then finish its rewind.
    RestoreAndFinish(SessionId),
    /// Name one of the questions that wait.
    NameGate(Vec<Gate>),
    /// Type one of these in place of a question's bare name.
    TypeGate(Vec<GateChoice>),
    /// Look at which questions wait.
    ListGates,
    /// These questions wait.
    OpenGates(Vec<Gate>),
    /// Answer the question in words.
    Respond(SessionId),
    /// The default is the answer: resume the session.
    TakeDefault(SessionId),
    /// Allow or deny this question.
    AllowOrDeny {
        /// The session.
        session: SessionId,
        /// The question's name.
        gate: String,
    },
    /// Look at the session.
    Show(SessionId),
    /// Look at the session's events.
    ShowEvents(SessionId),
    /// Look at which files the session changed.
    ListFiles(SessionId),
    /// Use the stored spec.
    UseStoredSpec,
    /// Use the stored spec, or begin anew.
    UseStoredSpecOrBegin(SessionId),
    /// Give the variable again.
    GiveVariable {
        /// The session.
        session: SessionId,
        /// The variable.
        name: String,
    },
    /// Answer without a dry run.
    AnswerForGood,
    /// With other variables it is another flow.
    BeginOtherFlow,
    /// Choose when to be asked, which makes the session the user's own.
    ChooseMode,
    /// When that is mended, resume the session.
    MendAndResume(SessionId),
}
