//! Rewinds: moving a session back, what the model is shown and the files that it changed.

use std::path::PathBuf;

use stepwell::model::{Kind, Origin, Scope};
use stepwell::store::Scrub;
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::{Seq, Session, SessionId, Stepwell};
use stepwell_agent::redact::Redactor;
use stepwell_files::backups;
use stepwell_files::history::History;
use stepwell_files::plan::Others;
use stepwell_files::rewind::{self, Done, Foreign, Preview};
use stepwell_files::rewind_history::{self, Asked};
use stepwell_files::safe_path::Root;

use crate::error::Result;
use crate::files;
use crate::runtime::Runtime;

/// Asks for a session to be moved back, or for a move to be taken back.
#[derive(Clone, Debug)]
pub struct RewindRequest {
    /// The session.
    pub session: SessionId,
    /// Where to, and what is moved.
    pub asked: Asked,
}

impl RewindRequest {
    /// A move back to an event. Files that someone else changed since are in its way.
    #[must_use]
    pub const fn new(session: SessionId, to: Seq, scope: Scope) -> Self {
        let asked = Asked { to, scope, undoes: None, others: Others::Respected };
        Self { session, asked }
    }
}

impl Runtime {
    /// Moves a session back. A rewind that was cut off is finished first.
    ///
    /// # Errors
    /// If somebody runs it, or a file cannot be moved.
    pub fn rewind(&self, request: &RewindRequest) -> Result<Done> {
        let mut session = self.acting_well(&*self.writing()?).lock(&request.session)?;
        files::finish_rewind(&mut session, Foreign::Refused, self)?;
        self.rewind_held(&mut session, &request.asked)
    }

    /// The same for a session that is held and whole.
    ///
    /// # Errors
    /// If a file cannot be moved.
    pub fn rewind_held(&self, session: &mut Session, asked: &Asked) -> Result<Done> {
        let (head, redactor) = (session.info()?.head, Redactor::new([]));
        // A chat can be moved back where there is no folder.
        let root = match asked.scope.moves_files() {
            true => files::root(&head, self)?,
            false => Root::new(PathBuf::new()),
        };
        let whose = files::Recorders::of(session.well(), session.id())?;
        let site = files::site(&root, &redactor, &whose, self);
        let done = rewind::rewind(session, &site, asked, &mut |_| {})?;
        if let Done::Rewound { .. } = done {
            let_go(session, self)?;
        }
        Ok(done)
    }

    /// What a rewind would do.
    ///
    /// # Errors
    /// If the session cannot be read, or its folder is gone.
    pub fn preview_rewind(&self, session: &SessionId, asked: &Asked) -> Result<Preview> {
        let well = self.existing(stepwell::sqlite::Access::Read)?;
        let (head, redactor) = (well.info(session)?.head, Redactor::new([]));
        let root = match asked.scope.moves_files() {
            true => files::root(&head, self)?,
            false => Root::new(PathBuf::new()),
        };
        let whose = files::Recorders::of(&well, session)?;
        let site = files::site(&root, &redactor, &whose, self);
        Ok(rewind::preview(&**well.store(), session, asked, &site)?)
    }
}

/// Lets go of contents that no view holds, but for the newest of each file. The log says so.
fn let_go(session: &Session, runtime: &Runtime) -> Result<()> {
    let keep = runtime.config.settings.max_backups_per_file.get() as usize;
    let info = session.info()?;
    let facts = session.keyed_events(&rewind_history::MOVES)?;
    // What a move set aside is there again when the move is taken back.
    let reach = rewind_history::within_reach(&facts, info.head.seq);
    let needed = rewind_history::recorded_by(&facts);
    let history = History::of(session.keyed_events(&[Kind::File])?);
    let due = |shared: Seq| {
        backups::due(&history, keep, |seq| {
            seq < info.own_from
                || seq <= shared
                || reach.iter().any(|branch| branch.contains(seq))
                || needed.iter().any(|range| range.contains(&seq))
        })
    };
    // Every session is looked at for forks, so only if it matters.
    if due(Seq::ZERO).is_empty() {
        return Ok(());
    }
    let due = due(shared_up_to(session.well(), session.id())?);
    if due.is_empty() {
        return Ok(());
    }
    tracing::info!(session = %session.id(), versions = due.len(), "versions_let_go");
    let replacements = due.into_iter().map(|(seq, change)| (seq, change.into())).collect();
    let (id, epoch) = (session.id().clone(), Some(session.lease().epoch));
    let rule = "files.max_backups_per_file".to_owned();
    session.well().store().maintain().scrub(Scrub { session: id, epoch, rule, replacements })?;
    Ok(())
}

/// The last event of a session that another one may show. A fork whose parent was purged may
/// share events of any session.
fn shared_up_to(well: &Stepwell, id: &SessionId) -> Result<Seq> {
    let mut last = Seq::ZERO;
    let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    for info in well.sessions(Query { filter, ..Query::default() }) {
        if let Origin::Fork { parent, at } = &info?.head.origin
            && (parent == id || !well.store().exists(parent)?)
        {
            last = last.max(*at);
        }
    }
    Ok(last)
}
