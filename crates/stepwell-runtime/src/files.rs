//! A session's files, as runs need them: what is captured, and a rewind that was cut off.

use std::sync::Arc;

use stepwell::backend::Login;
use stepwell::error::Action;
use stepwell::log::Head;
use stepwell::log::Redactor;
use stepwell::model::Who;
use stepwell::store::query::{Filter, Query};
use stepwell::trust::Runs;
use stepwell::{
    Error as StoreError, Remedy, Seq, Session, SessionId, SessionInfo, Stepwell, Store,
};
use stepwell_agent::tool::ToolEnv;
use stepwell_files::capture::Limits;
use stepwell_files::rewind::{self, Foreign};
use stepwell_files::safe_path::Root;
use stepwell_files::site::{Site, Whose};
use stepwell_workspace::Workspace;
use stepwell_workspace::config::Key;

use crate::error::{Error, ErrorKind, Result};
use crate::notice::{LeftFile, Notice};
use crate::runtime::Runtime;

/// What is captured of files.
#[must_use]
pub fn limits(workspace: &Workspace) -> Limits {
    let settings = &workspace.config.settings;
    Limits {
        roots: settings.file_roots.names(),
        max_file: settings.max_file_bytes.get().into(),
        max_held: settings.max_held_bytes.get().into(),
        max_files: settings.max_files.get() as usize,
    }
}

/// Refuses a folder of `files.roots` that a link leads out of the workspace: nothing in it would
/// be captured. One that is not there yet may come.
pub(crate) fn check_roots(place: &ToolEnv, runtime: &Runtime) -> Result<()> {
    const KEY: &str = "files.roots";
    let Ok(root) = place.root.canonicalize() else { return Ok(()) };
    for name in runtime.workspace().config.settings.file_roots.names() {
        let Ok(to) = root.join(&name).canonicalize() else { continue };
        if to.starts_with(&root) {
            continue;
        }
        let why = format!("{KEY} = {name:?}: it leads out of the workspace, to {}", to.display());
        let at = Key::find(KEY).map(|key| runtime.workspace().config.source(key).place());
        let remedies = vec![Remedy::SetConfig { key: KEY, value: "." }];
        return Err(match at {
            Some(at) => stepwell_workspace::Error::Config { at, why, remedies }.into(),
            None => Error::config(why),
        });
    }
    Ok(())
}

/// Where a session's files are, and what is none of them.
///
/// # Errors
/// If its folder is gone.
pub fn root(head: &Head, workspace: &Workspace) -> Result<Root> {
    let store = std::fs::canonicalize(&workspace.place.store).ok();
    Ok(Root { store, path: workspace.session_folder(Some(head))? })
}

/// Where files of a session are looked at and put.
#[must_use]
pub fn site<'a>(
    root: &'a Root,
    redactor: &'a Redactor,
    whose: &'a Recorders,
    workspace: &Workspace,
) -> Site<'a> {
    Site { root, redactor, max_file: limits(workspace).max_file, whose }
}

/// Who recorded what in a session's log: by its settings, which begin runs, and by the login that a
/// team's server notes.
#[derive(Debug)]
pub struct Recorders {
    store: Arc<dyn Store>,
    session: SessionId,
    runs: Runs,
    login: Option<String>,
    /// This account's name, where no server knows logins. A run under that name is the user's, also
    /// in a workspace that was moved or copied, which the notes do not know.
    account: Option<Who>,
}

impl Recorders {
    /// Those of a session.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(well: &Stepwell, session: &SessionId) -> Result<Self> {
        let (store, runs) = (Arc::clone(well.store()), well.weigh(session)?.runs);
        let login = store.login()?;
        let account = login.is_none().then(|| well.claim().holder.who());
        Ok(Self { store, session: session.clone(), runs, login, account })
    }
}

impl Whose for Recorders {
    fn whose(&self, seq: Seq) -> Option<String> {
        let others = self.runs.others(seq).filter(|who| self.account.as_ref() != Some(who));
        if let Some(who) = others {
            let role = who.login.as_ref().map(|login| format!(" (role {login})"));
            return Some(format!("{who}{}", role.unwrap_or_default()));
        }
        let login = self.login.as_ref()?;
        match self.store.written_by(&self.session, seq) {
            Ok(Login::Noted(Some(by))) if by == *login => None,
            Ok(Login::Noted(Some(by))) => Some(format!("role {by}")),
            Ok(Login::Unknown) => None,
            Ok(Login::Noted(None)) | Err(_) => Some("nobody known".to_owned()),
        }
    }
}

/// Finishes the rewinds that were cut off in this workspace, whoever's they are: what a run
/// does to files would get mixed up with them.
pub(crate) fn settle_all(well: &Stepwell, runtime: &Runtime) -> Result<()> {
    for info in halves(well, runtime)? {
        let session = info.head.id;
        let held = well.lock(&session).map_err(|error| match error {
            StoreError::Held { .. } => {
                let kind = ErrorKind::Store(stepwell::ErrorKind::Busy);
                let why = format!("{error}: it is being rewound");
                Error::refused(kind, why).helped_by(Remedy::Wait)
            }
            error => error.into(),
        });
        finish_rewind(&mut held?, Foreign::Refused, runtime)?;
    }
    Ok(())
}

/// Refuses a run that must not change files, if there are some in this workspace that would
/// have to be moved first.
pub(crate) fn refuse_halves(well: &Stepwell, runtime: &Runtime) -> Result<()> {
    halves(well, runtime)?.iter().try_for_each(|it| Ok(it.refuse_half_rewound()?))
}

/// The sessions whose files may be half moved in this workspace.
fn halves(well: &Stepwell, runtime: &Runtime) -> Result<Vec<SessionInfo>> {
    let filter = Filter { rewinding: true, ..Filter::default() };
    let mut half = Vec::new();
    for info in well.sessions(Query { filter, ..Query::default() }) {
        let info = info?;
        // What cannot be read is in every list.
        if info.head.rewinding.is_some() {
            half.push(info);
        }
    }
    // Where the files are gone, or in another folder, nothing gets mixed up.
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        half.into_iter().partition(|info| root(&info.head, runtime.workspace()).is_ok());
    elsewhere.iter().for_each(|info| tell_of_half(info, runtime));
    Ok(here)
}

/// Finishes a rewind that was cut off, if there is one, and says so. Whoever holds a session
/// to write to it does this first. Tells whether there was one.
///
/// # Errors
/// If files changed since that it would overwrite.
pub fn finish_rewind(session: &mut Session, foreign: Foreign, runtime: &Runtime) -> Result<bool> {
    let head = session.info()?.head;
    if head.rewinding.is_none() {
        return Ok(false);
    }
    let (root, redactor) = (root(&head, runtime.workspace())?, Redactor::new([]));
    let whose = Recorders::of(session.well(), session.id())?;
    let site = site(&root, &redactor, &whose, runtime.workspace());
    let Some(settled) = rewind::finish_rewind(session, &site, foreign, &mut |_| {})? else {
        return Ok(false);
    };
    let (session, began) = (session.id().clone(), settled.began);
    let left = settled.left.into_iter();
    let left = left.map(|left| LeftFile { path: left.path, why: left.why.clone() });
    if settled.seq.is_none() {
        left.for_each(|left| runtime.tell(Notice::RewindConflict(left)));
        let why = format!(
            "a rewind of {session} was cut off at seq {began}, and files changed since; to finish \
             it leaves those as they are"
        );
        return Err(Error::invalid(why).helped(Action::FinishRewind, &session));
    }
    runtime.tell(Notice::RewindFinished { session, began, left: left.collect() });
    Ok(true)
}

/// Finishes a rewind of a session that was cut off, if there is one and its files can be had: who
/// forks it shares them.
pub(crate) fn finish_rewind_of(well: &Stepwell, id: &SessionId, runtime: &Runtime) -> Result<()> {
    let info = well.info(id)?;
    if info.head.rewinding.is_none() {
        return Ok(());
    }
    if root(&info.head, runtime.workspace()).is_err() {
        tell_of_half(&info, runtime);
        return Ok(());
    }
    if info.held.is_some() {
        info.refuse_half_rewound()?;
    }
    finish_rewind(&mut well.lock(id)?, Foreign::Refused, runtime).map(drop)
}

/// Says that a session's files are half moved, if they are.
fn tell_of_half(info: &SessionInfo, runtime: &Runtime) {
    if let (Some(began), None) = (info.head.rewinding, &info.held) {
        runtime.tell(Notice::HalfRewound { session: info.head.id.clone(), began });
    }
}
