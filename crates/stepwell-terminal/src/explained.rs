//! Errors for people: what went wrong, and the next command to type.

use std::fmt::Display;

use stepwell::Error;

use crate::wording;

/// An error as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What went wrong.
    pub message: String,
    /// The next command to type.
    pub hint: Option<String>,
}

impl Explained {
    fn plain(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    fn with_hint(message: impl Display, hint: impl Display) -> Self {
        Self { message: message.to_string(), hint: Some(hint.to_string()) }
    }
}

impl From<&Error> for Explained {
    fn from(error: &Error) -> Self {
        Self { message: error.to_string(), hint: hint(error) }
    }
}

/// What to type after an error of the store.
fn hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoPoint(no_point) => return wording::no_point(no_point),
        Error::Task { session, .. } => format!("stepwell tasks {session} shows what is planned"),
        Error::NoQuestion { session, asked, .. } => match &asked[..] {
            [] => format!("nothing was asked; stepwell state {session} ask \"TEXT\" does"),
            asked => format!("asked were {}", asked.join(", ")),
        },
        Error::LabelTaken { session, .. } => {
            format!("stepwell label {session} --clear takes it away")
        }
        Error::FinalPhase { session, .. } => format!("stepwell agent get {session}"),
        Error::NotAnAgent { session } => format!("stepwell show {session}"),
        Error::NoEvent { session, .. } | Error::NotAMessage { session, .. } => {
            format!("stepwell show {session} --view shows messages with their seqs")
        }
        Error::UnknownPhase { .. } => wording::phases(),
        Error::BeingRewound { .. } => "try again when that is done".to_owned(),
        Error::HalfRewound { session: id, trashed, .. } => {
            let finish = format!("stepwell rewind {id} --finish finishes it");
            match trashed {
                true => format!("stepwell trash restore {id} brings it back; then {finish}"),
                false => finish,
            }
        }
        Error::NoMatch(_) | Error::NoSession(_) => {
            "stepwell sessions --all lists what is here".to_owned()
        }
        Error::Ambiguous { .. } => "type more of the id, or all of it".to_owned(),
        Error::NoStore(_) => "stepwell init makes a store here".to_owned(),
        Error::Trashed(id) => format!("stepwell trash restore {id}"),
        Error::Exists(id) => format!("stepwell show {id}"),
        Error::Held { session, .. } => format!("stepwell log -f {session} follows it"),
        Error::Busy { .. } => "type the command again".to_owned(),
        Error::Damaged { session, .. } => format!("stepwell verify {session}"),
        Error::DamagedStore { .. } | Error::DamagedBlob { .. } => "stepwell doctor".to_owned(),
        Error::Link { link, target } => {
            let (shown, leads) = (link.display(), target.display());
            match link.file_name().is_some_and(|name| name == stepwell::STORE_FOLDER) {
                true => {
                    format!("rm {shown} removes the link; stepwell --store {leads} uses its folder")
                }
                false => format!("rm {shown} removes the link"),
            }
        }
        Error::Shared { file, .. } => {
            let shown = file.display();
            format!(
                "cp -p {shown} {shown}.own && mv {shown}.own {shown} gives it a copy of its own"
            )
        }
        // The object's name is not repeated here: it is not ours, and a hint is pasted into a shell.
        Error::ForeignObject { path, .. } => {
            format!("if you do not know who made the store, remove it: {}", path.display())
        }
        Error::Newer { .. } => "install a newer stepwell".to_owned(),
        Error::NotAMember { namespace, .. } => {
            format!("its owner runs: stepwell store role {namespace} ROLE | psql")
        }
        Error::Full { .. } => "make room, then type the command again".to_owned(),
        _ => return None,
    })
}

impl From<&stepwell_formats::Error> for Explained {
    fn from(error: &stepwell_formats::Error) -> Self {
        use stepwell_formats::Error as Formats;
        let hint = match error {
            Formats::Store(error) => return error.into(),
            Formats::Differs { session, .. } => {
                format!("stepwell show {session} shows the one here")
            }
            Formats::NotWhole { session, .. } => {
                format!("copy or import {session} first: that adds the rest")
            }
            Formats::NoParent { parent, .. } => format!("export {parent}, which brings it along"),
            Formats::Newer { .. } => "install a newer stepwell".to_owned(),
            Formats::NotRecognised { .. } => "stepwell formats lists them".to_owned(),
            Formats::Locked { .. } => "type the command again".to_owned(),
            Formats::Exists { .. } | Formats::ExistsBeside { .. } => {
                "--force replaces it".to_owned()
            }
            Formats::NotReplaced { .. } | Formats::InTheWay { .. } | Formats::Stranger { .. } => {
                "name another place, or move that away".to_owned()
            }
            Formats::NoEnding { path, ending } => {
                format!("name it {}.{ending}", path.display())
            }
            error => return Self::plain(error),
        };
        Self::with_hint(error, hint)
    }
}

impl From<&stepwell_agent::Error> for Explained {
    fn from(error: &stepwell_agent::Error) -> Self {
        use stepwell_agent::Error as Agent;
        match error {
            Agent::Store(error) => error.into(),
            Agent::Files(error) => error.into(),
            Agent::NothingToSend { session, .. } => {
                let hint =
                    format!("stepwell run \"TASK\" --session {session} says something in it");
                Self::with_hint(error, hint)
            }
            error => Self::plain(error),
        }
    }
}

impl From<&stepwell_files::Error> for Explained {
    fn from(error: &stepwell_files::Error) -> Self {
        use stepwell_files::Error as Files;
        match error {
            Files::Store(error) => error.into(),
            Files::HalfMoved { .. } => Self::with_hint(
                error,
                "when that is mended, type the command again: it is finished first",
            ),
            error => Self::plain(error),
        }
    }
}

impl From<&stepwell_flow::Error> for Explained {
    fn from(error: &stepwell_flow::Error) -> Self {
        use stepwell_flow::Error as Flow;
        use stepwell_flow::spec::{BadVariable, SpecError};
        match error {
            Flow::Store(error) => error.into(),
            Flow::Agent(error) => error.into(),
            Flow::Spec(SpecError::Invalid { .. }) => Self::with_hint(
                error,
                "docs/flows.md describes specs; stepwell flow schema helps an editor",
            ),
            Flow::Variable(BadVariable::Missing { name, others, .. }) => {
                let all = std::iter::once(name).chain(others);
                let add: Vec<_> = all.map(|name| format!("--var {name}=TEXT")).collect();
                Self::with_hint(error, format_args!("add {}", add.join(" ")))
            }
            Flow::Variable(_) => {
                Self::with_hint(error, "stepwell flow plan SPEC lists the variables")
            }
            error => Self::plain(error),
        }
    }
}

impl From<&stepwell_workspace::Error> for Explained {
    fn from(error: &stepwell_workspace::Error) -> Self {
        use stepwell_workspace::Error as Workspace;
        let message = match error {
            Workspace::Store(error) => return error.into(),
            Workspace::Formats(error) => return error.into(),
            Workspace::Config { at, why, .. } => format!("{}: {why}", wording::config_place(at)),
            error => error.to_string(),
        };
        Self { message, hint: error.remedy().map(|remedy| wording::remedy(&remedy)) }
    }
}

impl From<&stepwell_runtime::Error> for Explained {
    fn from(error: &stepwell_runtime::Error) -> Self {
        use stepwell_runtime::Error as Run;
        let message = match error {
            Run::Store(error) => return error.into(),
            Run::Workspace(error) => return error.into(),
            Run::Agent(error) => return error.into(),
            Run::Files(error) => return error.into(),
            Run::Flow(error) => return error.into(),
            Run::Broken { error, .. } => return Self::from(&**error),
            Run::RootOutside { source_of, .. } => {
                let source = source_of.as_ref().map(wording::source).unwrap_or_default();
                format!("{source}: {error}")
            }
            Run::OtherVariable { .. } => error.to_string().replacen("variable ", "--var ", 1),
            error => error.to_string(),
        };
        Self { message, hint: error.remedy().map(|remedy| wording::run_remedy(&remedy)) }
    }
}
