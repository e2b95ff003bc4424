//! Which error is of which kind, and what would help against it.

use stepwell::Owner;
use stepwell_flow::NoAnswer;

use super::{Error, ErrorKind, Remedy, SinceAnswer};

impl Error {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) | Self::RunsElsewhere(error) | Self::RewoundElsewhere(error) => {
                ErrorKind::Store(error.kind())
            }
            Self::Workspace(error) => ErrorKind::Workspace(error.kind()),
            Self::Agent(stepwell_agent::Error::Store(error))
            | Self::Flow(stepwell_flow::Error::Store(error))
            | Self::Files(stepwell_files::Error::Store(error)) => ErrorKind::Store(error.kind()),
            Self::Files(stepwell_files::Error::HalfMoved { .. }) | Self::Unsaved { .. } => {
                ErrorKind::Unsaved
            }
            Self::KeyCommand { .. } => ErrorKind::Credentials,
            Self::Provider { error, .. }
                if error.fault == stepwell_agent::provider::Fault::Auth =>
            {
                ErrorKind::Credentials
            }
            Self::Flow(_)
            | Self::NoModel { .. }
            | Self::OthersModel { .. }
            | Self::NoFlowModel
            | Self::ModelName(_)
            | Self::Script { .. }
            | Self::Protocol { .. }
            | Self::Prices(_)
            | Self::Provider { .. }
            | Self::NoAgent { .. }
            | Self::NoPrice { .. }
            | Self::Unpriced { .. }
            | Self::Tools { .. }
            | Self::RootOutside { .. }
            | Self::NotSaved
            | Self::Finished { .. }
            | Self::NoGate { .. }
            | Self::NoQuestion { .. }
            | Self::SpecGone { .. }
            | Self::SpecBreaks { .. }
            | Self::SecretVariable { .. }
            | Self::MissingSecret { .. }
            | Self::Guardrail { .. }
            | Self::FlowTools(_)
            | Self::NoWorktrees { .. }
            | Self::SpecServer { .. } => ErrorKind::Config,
            Self::NoFlow { .. }
            | Self::DryAnswer { .. }
            | Self::NoLane { .. }
            | Self::Outline { .. }
            | Self::NoSuchLane { .. }
            | Self::SeveralGates { .. }
            | Self::UnclearGate { .. }
            | Self::BadAnswer { .. }
            | Self::SecretRule { .. }
            | Self::Unclear { .. }
            | Self::OtherVariable { .. } => ErrorKind::Usage,
            Self::SpecMoved { .. }
            | Self::NotWaitingElsewhere { .. }
            | Self::AnsweredOther { .. }
            | Self::AnsweredBefore { .. } => ErrorKind::Busy,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::OfAgent { error, .. } | Self::Broken { error, .. } => error.kind(),
            Self::Agent(_)
            | Self::Files(_)
            | Self::Thread(_)
            | Self::External { .. }
            | Self::OnlyPeople { .. }
            | Self::Abandoned { .. }
            | Self::IsFlow { .. }
            | Self::FlowNotRunning { .. }
            | Self::RewindConflict { .. }
            | Self::NotWaiting { .. }
            | Self::AnswerRefused { .. }
            | Self::NotRunning { .. }
            | Self::RewindRefused { .. }
            | Self::NothingToTakeBack { .. }
            | Self::NothingToRedo { .. }
            | Self::NotChanged { .. }
            | Self::NoContent { .. }
            | Self::NotYours { .. }
            | Self::Panicked => ErrorKind::Invalid,
        }
    }

    /// What would help, if that is known here. The errors of other crates say it themselves.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoModel { suggested } => Remedy::NameModel(suggested.clone()),
            Self::OthersModel { model, .. } => Remedy::TakeModel(model.clone()),
            Self::NoFlowModel => Remedy::NameFlowModel,
            Self::Protocol { .. } => Remedy::UseProtocol(&["openai", "anthropic", "gemini"]),
            Self::Provider { variable, error } => {
                let auth = error.fault == stepwell_agent::provider::Fault::Auth;
                Remedy::SetVariable(variable.clone().filter(|_| auth)?)
            }
            Self::MissingSecret { variable } => Remedy::SetVariable(variable.clone()),
            Self::NoAgent { known, .. }
            | Self::Guardrail { known, .. }
            | Self::NoLane { known, .. }
            | Self::NoSuchLane { known, .. } => Remedy::NameOneOf(known.clone()),
            Self::NoPrice { limit, .. } => Remedy::SetPrice(*limit),
            Self::Unpriced { .. } => Remedy::LimitRun,
            Self::Tools { remedy, .. } => (**remedy).clone(),
            Self::RootOutside { key, .. } => Remedy::CaptureAll(key),
            Self::NotSaved => Remedy::SaveSessions,
            Self::External { session } => Remedy::AskDriver(session.clone()),
            Self::Abandoned { is_flow: true, .. } => Remedy::BeginFlow,
            Self::Abandoned { session, .. } => Remedy::Say(session.clone()),
            Self::Finished { session } => Remedy::ShowOrRewind(session.clone()),
            Self::DryAnswer { .. } => Remedy::AnswerForGood,
            Self::IsFlow { session, waits: true } => Remedy::Respond(session.clone()),
            Self::IsFlow { session, .. }
            | Self::FlowNotRunning { session }
            | Self::NotWaiting { session } => Remedy::Resume(session.clone()),
            Self::RunsElsewhere(stepwell::Error::Held { session, .. }) => {
                Remedy::AttachOrStop(session.clone())
            }
            Self::RewoundElsewhere(stepwell::Error::Held { session, .. }) => {
                Remedy::AwaitRewind(session.clone())
            }
            Self::Store(stepwell::Error::BeingRewound { .. }) | Self::SpecMoved { .. } => {
                Remedy::TryLater
            }
            Self::Store(stepwell::Error::HalfRewound { session, trashed: true, .. }) => {
                Remedy::RestoreAndFinish(session.clone())
            }
            Self::Store(stepwell::Error::HalfRewound { session, .. }) => {
                Remedy::FinishRewind(session.clone())
            }
            Self::RewindConflict { session, .. } => Remedy::FinishLeaving(session.clone()),
            Self::NotWaitingElsewhere { session } => Remedy::Attach(session.clone()),
            Self::AnsweredBefore { session, since, .. } => match since {
                SinceAnswer::Runs => Remedy::Attach(session.clone()),
                SinceAnswer::Stopped => Remedy::Resume(session.clone()),
                SinceAnswer::Ended => Remedy::Show(session.clone()),
            },
            Self::AnsweredOther { choices, .. } | Self::UnclearGate { choices, .. } => {
                Remedy::TypeGate(choices.clone())
            }
            Self::NoQuestion { .. } => Remedy::ListGates,
            Self::NoGate { open, .. } => Remedy::OpenGates(open.clone()),
            Self::OnlyPeople { .. } => Remedy::AskPerson,
            Self::SeveralGates { open, .. } => Remedy::NameGate(open.clone()),
            Self::BadAnswer { session, why: NoAnswer::Late { .. }, .. } => {
                Remedy::TakeDefault(session.clone())
            }
            Self::BadAnswer { session, .. } | Self::SecretRule { session, .. } => {
                Remedy::Respond(session.clone())
            }
            Self::Unclear { session, gate, .. } => {
                Remedy::AllowOrDeny { session: session.clone(), gate: gate.clone() }
            }
            Self::NothingToTakeBack { session } | Self::NothingToRedo { session } => {
                Remedy::ShowEvents(session.clone())
            }
            Self::NotRunning { session } => Remedy::Show(session.clone()),
            Self::NotChanged { session, .. } => Remedy::ListFiles(session.clone()),
            Self::SpecGone { .. } => Remedy::UseStoredSpec,
            Self::SpecBreaks { session, .. } => Remedy::UseStoredSpecOrBegin(session.clone()),
            Self::SecretVariable { session, name } => {
                Remedy::GiveVariable { session: session.clone(), name: name.clone() }
            }
            Self::OtherVariable { .. } => Remedy::BeginOtherFlow,
            Self::NotYours { .. } => Remedy::ChooseMode,
            Self::OfAgent { error, .. } | Self::Broken { error, .. } => return error.remedy(),
            // Somebody else went on with it, and may be done.
            Self::Unsaved { error: stepwell::Error::Fenced { .. }, report, .. } => {
                Remedy::Show(report.session.clone())
            }
            Self::Unsaved { report, .. } => Remedy::MendAndResume(report.session.clone()),
            _ => return None,
        })
    }

    /// Who holds the session, if that is why it cannot be run.
    #[must_use]
    pub fn holder(&self) -> Option<&Owner> {
        match self {
            Self::Store(stepwell::Error::Held { holder, .. })
            | Self::RunsElsewhere(stepwell::Error::Held { holder, .. }) => Some(holder),
            _ => None,
        }
    }
}
