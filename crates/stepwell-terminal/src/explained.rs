//! Errors for people: what went wrong, and the next command to type.

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

impl From<&Error> for Explained {
    fn from(error: &Error) -> Self {
        let hint = shell_hint(error).or_else(|| wording::hint(&error.remedies()));
        Self { message: error.to_string(), hint }
    }
}

/// What a shell or the store's owner does against an error of the store.
fn shell_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::Link { link, target } => {
            let (shown, leads) = (link.display(), target.display());
            match link.file_name().is_some_and(|name| name == stepwell::store::STORE_FOLDER) {
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
        Error::NotAMember { namespace, .. } => {
            format!("its owner runs: stepwell store role {namespace} ROLE | psql")
        }
        _ => return None,
    })
}

/// An error in its own words, unless it is one of another crate.
macro_rules! explained_from {
    ($($of:ident { $($inner:ident)|* })*) => {$(
        impl From<&$of::Error> for Explained {
            fn from(error: &$of::Error) -> Self {
                match error {
                    $($of::Error::$inner(error) => error.into(),)*
                    error => Self {
                        message: error.to_string(),
                        hint: wording::hint(&error.remedies()),
                    },
                }
            }
        }
    )*};
}

explained_from! {
    stepwell_formats { Store }
    stepwell_files { Store }
    stepwell_agent { Store | Files }
    stepwell_flow { Store | Agent }
    stepwell_runtime { Store | Workspace | Agent | Files | Flow }
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
        Self { message, hint: wording::hint(&error.remedies()) }
    }
}
