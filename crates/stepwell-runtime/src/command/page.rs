//! A session on one page, and lists over many sessions.

use std::collections::BTreeMap;
use std::path::Path;

use stepwell::log::LaneState;
use stepwell::model::Estimate;
use stepwell::store::Damage;
use stepwell::store::query::{Family, Filter, Hit, Query, Rank, Search, SystemPrompts};
use stepwell::{Lane, Recorded, SessionId, SessionInfo, Stepwell};
use stepwell_wire::{Models, OpenGate, SessionStatus};
use stepwell_workspace::{
    Estimates, LedgerLines, Location, NamedWell, Opening, RecentModelsFile, doctor, known_stores,
    ledger,
};

use super::asked::{GatesWanted, LedgerWanted, SearchWanted};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{self, Depth, Details, open_gates, sessions_with_gates};
use crate::runtime::Runtime;

/// How many of the last messages are shown.
pub const LAST_MESSAGES: usize = 5;

/// A session in detail.
#[derive(Debug)]
pub struct SessionPage {
    /// The session.
    pub details: Details,
    /// Its conversations.
    pub lanes: BTreeMap<Lane, LaneState>,
    /// Its last messages that count.
    pub last: Vec<Recorded>,
    /// What hides earlier messages.
    pub damage: Option<Damage>,
    /// Its estimated cost, where no provider reported it.
    pub estimate: Option<Estimate>,
}

pub(super) fn read(
    runtime: &Runtime,
    well: &Stepwell,
    id: &SessionId,
    depth: Depth,
) -> Result<SessionPage> {
    let mut details = inspect::details(well, id, depth)?;
    let head = &details.info.head;
    let estimate = Estimates::new(runtime.workspace()).of(head, &head.spent);
    details.answer.estimate = estimate.map(|it| it.cost.into());
    let (last, unfound) = inspect::last_messages(well, id, &details.timeline, LAST_MESSAGES)?;
    let damage = unfound.or_else(|| details.info.damage.clone());
    if damage.is_some() {
        doctor::note_damage(runtime.workspace(), id);
    }
    let lanes = well.store().lanes(id).unwrap_or_default();
    Ok(SessionPage { details, lanes, last, damage, estimate })
}

impl Runtime {
    pub(super) fn gates(&self, wanted: &GatesWanted) -> Result<Vec<OpenGate>> {
        let mut wells: Vec<(Option<String>, Stepwell)> = Vec::new();
        if wanted.everywhere {
            let all = known_stores::open_all(self.workspace(), Opening::Read);
            for NamedWell { name, well } in all {
                wells.push((Some(name.display().to_string()), well));
            }
        } else if let Some(well) = self.workspace().open_if_present()? {
            wells.push((None, well));
        }
        let mut all = Vec::new();
        for (store, well) in &wells {
            let waiting = match &wanted.session {
                Some(name) => vec![self.workspace().find_session(well, name)?],
                None => sessions_with_gates(well)?,
            };
            for id in waiting {
                let open = open_gates(well, Some(&id))?.into_iter();
                all.extend(open.map(|open| OpenGate { store: store.clone(), ..open }));
            }
        }
        Ok(all)
    }

    pub(super) fn search(&self, wanted: SearchWanted) -> Result<Vec<Hit>> {
        let well = self.workspace().open_writable_if_possible(&self.workspace().place.store)?;
        let SearchWanted { text, limit } = wanted;
        let (filter, rank, system) = (Filter::default(), Rank::Newest, SystemPrompts::Skipped);
        Ok(well.search(&Search { text, filter, rank, limit, system })?.hits)
    }

    pub(super) fn recent_model_names(&self) -> Result<Models> {
        let shelf = RecentModelsFile::of(&self.workspace().host).ok_or_else(|| {
            Error::refused(ErrorKind::Invalid, "there is no place to remember models in")
                .helped_by(stepwell::Remedy::SetVariable("HOME or XDG_STATE_HOME".to_owned()))
        })?;
        let models = shelf.read()?;
        let most = self.workspace().config.settings.max_recent.get();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let recent = models.recent[..models.recent.len().min(most)].to_vec();
        let favourites = models.favourites().into_iter().map(ToOwned::to_owned).collect();
        Ok(Models { recent, favourites })
    }

    pub(super) fn ledger(&self, wanted: &LedgerWanted) -> Result<LedgerLines> {
        let mut ledger = LedgerLines::default();
        if wanted.everywhere {
            let all = known_stores::open_all(self.workspace(), Opening::Read);
            for NamedWell { name, well } in all {
                let root = Location::named(&name, &self.workspace().place.root).root;
                ledger.extend(self.ledger_of(wanted, &well, &root)?);
            }
        } else if let Some(well) = self.workspace().open_if_present()? {
            ledger = self.ledger_of(wanted, &well, &self.workspace().place.root)?;
        }
        Ok(ledger)
    }

    /// The lines of one store, the last that ended first.
    fn ledger_of(
        &self,
        wanted: &LedgerWanted,
        well: &Stepwell,
        root: &Path,
    ) -> Result<LedgerLines> {
        let filter = Filter { family: Family::Roots, ..wanted.filter.clone() };
        let query = Query { filter, ..Query::default() };
        let takes = |info: &SessionInfo| {
            wanted.statuses.is_empty() || wanted.statuses.contains(&SessionStatus::from(info))
        };
        let wanted = stepwell_workspace::LedgerWanted { root, query, takes: &takes };
        Ok(ledger::read(self.workspace(), well, wanted)?)
    }
}
