//! How users name sessions: by id, by label, or by a part of an id that no other shares.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::model::{Change, Edited, Origin, Seq, SessionId};
use crate::sessions::well::Stepwell;
use crate::store::query::{Family, Filter, LedgerRows, Query, TrashScope};

/// How many candidates an error about an ambiguous name lists.
const CANDIDATES: usize = 10;

/// The fewest characters of an id that lists highlight. Fewer might be unique today and ambiguous
/// tomorrow.
const SHORTEST: usize = 4;

impl Stepwell {
    /// The session with a name: an id, a label, `@last`, or a part of exactly one id. A session in
    /// the trash is found only by its whole id.
    pub fn find(&self, name: &str) -> Result<SessionId> {
        self.find_in(TrashScope::Kept, name)
    }

    /// The session with a name. Labels and parts of ids are searched in one place: in the trash,
    /// outside of it, or both.
    pub fn find_in(&self, place: TrashScope, name: &str) -> Result<SessionId> {
        let found = self.try_find(place, name);
        if let Err(Error::NoMatch(name)) = &found {
            tracing::info!(name, "session_not_found");
        }
        found
    }

    /// Like [`find_in`](Self::find_in), without logging a miss.
    ///
    /// A label has precedence over a part of an id. The start of an id's
    /// [ending](SessionId::ending) comes next, because ids that begin with the time differ there.
    /// Then come the start of the whole id, and any other part. A session has precedence over its
    /// subagents whose ids contain its own.
    pub fn try_find(&self, place: TrashScope, name: &str) -> Result<SessionId> {
        if let Ok(id) = name.parse::<SessionId>()
            && self.store().exists(&id)?
        {
            return Ok(id);
        }
        let absent = || Error::NoMatch(name.to_owned());
        if name == "@last" {
            let filter = Filter { family: Family::Roots, place, ..Filter::default() };
            let newest = self.ids_of(filter, 1)?.pop();
            return newest.ok_or_else(absent);
        }
        if name.is_empty() {
            return Err(absent());
        }
        let typed = || name.to_owned();
        let any = || Filter { place, ..Filter::default() };
        let filters = [
            Filter { label: Some(typed()), ..any() },
            Filter { endings: vec![typed()], ..any() },
            Filter { prefix: Some(typed()), ..any() },
            Filter { part: Some(typed()), ..any() },
            // A ledger row matches only if no live session does.
            Filter { part: Some(typed()), rows: LedgerRows::Included, ..any() },
        ];
        for filter in filters {
            let by_ending = !filter.endings.is_empty();
            let mut ids = self.ids_of(filter, CANDIDATES)?;
            // An id without a hyphen has no separate ending.
            ids.retain(|id| !by_ending || has_ending(id));
            let shortest = ids.iter().min_by_key(|id| id.as_str().len()).cloned();
            match shortest {
                None => {}
                // Subagents' ids may extend their parent's: the parent is meant.
                Some(id) if self.bear_its_name(&id, &ids)? => return Ok(id),
                Some(_) => return Err(Error::Ambiguous { name: typed(), candidates: ids }),
            }
        }
        Err(absent())
    }

    /// Are the others subagents of this session whose ids extend its own?
    fn bear_its_name(&self, id: &SessionId, ids: &[SessionId]) -> Result<bool> {
        for other in ids.iter().filter(|other| *other != id) {
            let is_below = other.as_str().contains(id.as_str())
                && matches!(&self.info(other)?.head.origin, Origin::Subagent { parent, .. } if parent == id);
            if !is_below {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sets or clears a session's label, by which it can then be found.
    ///
    /// # Errors
    /// [`Error::LabelTaken`] if another session has the label.
    pub fn label(&self, id: &SessionId, label: Option<&str>) -> Result<Seq> {
        if let Some(label) = label {
            self.refuse_taken_label(label, Some(id))?;
        }
        let label = label.map_or(Change::Clear, |label| Change::Set(label.to_owned()));
        self.edit(id, Edited { label, ..Edited::default() })
    }

    /// Refuses a label that a session other than `own` has: a label names one session.
    ///
    /// # Errors
    /// [`Error::LabelTaken`], which names that session.
    pub fn refuse_taken_label(&self, label: &str, own: Option<&SessionId>) -> Result<()> {
        let filter = Filter { label: Some(label.to_owned()), ..Filter::default() };
        let bearers = self.ids_of(filter, 2)?;
        match bearers.into_iter().find(|other| Some(other) != own) {
            None => Ok(()),
            Some(session) => Err(Error::LabelTaken { session, label: label.to_owned() }),
        }
    }

    /// For each id, the part that is enough to name it, as a range of its bytes.
    pub fn sufficient_parts(&self, ids: &[SessionId]) -> Result<Vec<Range<usize>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let begun = |id: &SessionId| front(id.ending(), SHORTEST).to_owned();
        let mut endings: Vec<String> = ids.iter().map(begun).collect();
        endings.sort_unstable();
        endings.dedup();
        let all = self.ids_of(Filter { endings, ..Filter::default() }, usize::MAX)?;
        Ok(telling_parts(ids, &all))
    }

    fn ids_of(&self, filter: Filter, limit: usize) -> Result<Vec<SessionId>> {
        let page = self.store().list(&Query { filter, limit, ..Query::default() })?;
        Ok(page.sessions.into_iter().map(|it| it.head.id).collect())
    }
}

/// For each id, the shortest part that no other of `all` shares, as a range of its bytes: the start
/// of its [ending](SessionId::ending), or the whole id.
#[must_use]
pub fn telling_parts(ids: &[SessionId], all: &[SessionId]) -> Vec<Range<usize>> {
    let mut sharing: BTreeMap<&str, Vec<&SessionId>> = BTreeMap::new();
    for id in all {
        sharing.entry(front(id.ending(), SHORTEST)).or_default().push(id);
    }
    let part = |id: &SessionId| {
        let (whole, ending) = (id.as_str(), id.ending());
        let start = whole.len() - ending.len();
        let others = sharing.get(front(ending, SHORTEST));
        let others: Vec<&str> =
            others.into_iter().flatten().filter(|it| **it != id).map(|it| it.ending()).collect();
        let lengths = SHORTEST.min(ending.len())..=ending.len();
        let is_alone = |n: &usize| !others.iter().any(|other| other.starts_with(front(ending, *n)));
        match lengths.into_iter().find(is_alone) {
            Some(n) if n > 0 && has_ending(id) => start..start + n,
            _ => 0..whole.len(),
        }
    };
    ids.iter().map(part).collect()
}

/// Is an id's ending shorter than the id?
fn has_ending(id: &SessionId) -> bool {
    id.ending().len() < id.as_str().len()
}

/// The first `length` characters. Ids are ASCII.
fn front(text: &str, length: usize) -> &str {
    &text[..length.min(text.len())]
}

/// The similarity of two names, from 0 to 1, ignoring case.
#[must_use]
pub fn likeness(one: &str, other: &str) -> f64 {
    strsim::jaro_winkler(&one.to_lowercase(), &other.to_lowercase())
}

/// The known name that a mistyped one most likely meant, if any is similar.
#[must_use]
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is not a mistyped name, and comparing it is slow.
    if typed.len() > 64 {
        return None;
    }
    let rated = known.into_iter().map(|one| (one, likeness(typed, one)));
    // Below this, a suggestion is a guess.
    rated.filter(|(_, rate)| *rate > 0.8).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[&str]) -> Vec<SessionId> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn lists_highlight_the_shortest_unique_part_of_an_id() {
        let all =
            ids(&["20260302-120000-abcd12", "20260302-120000-abcd34", "20260302-120000-ffff00"]);
        let parts = telling_parts(&all, &all);
        let shown: Vec<_> = all.iter().zip(parts).map(|(id, at)| &id.as_str()[at]).collect();
        assert_eq!(shown, ["abcd1", "abcd3", "ffff"]);
    }

    #[test]
    fn an_id_whose_ending_starts_another_ones_is_highlighted_whole() {
        let all = ids(&["a-one", "b-one", "c-oneness", "two"]);
        let parts = telling_parts(&all, &all);
        let shown: Vec<_> = all.iter().zip(parts).map(|(id, at)| &id.as_str()[at]).collect();
        assert_eq!(shown, ["a-one", "b-one", "onen", "two"]);
    }

    #[test]
    fn a_label_names_one_session() {
        let well = Stepwell::in_memory();
        let made = || well.create(well.draft("t")).unwrap().id().clone();
        let (one, other) = (made(), made());
        well.label(&one, Some("auth")).unwrap();
        well.label(&one, Some("auth")).unwrap();
        let Err(Error::LabelTaken { session, .. }) = well.label(&other, Some("auth")) else {
            panic!("two sessions have one label")
        };
        assert_eq!(session, one);
        well.label(&one, None).unwrap();
        well.label(&other, Some("auth")).unwrap();
        assert_eq!(well.find("auth").unwrap(), other);
    }

    #[test]
    fn a_typo_finds_the_nearest_name_and_other_words_find_none() {
        let known = ["sessions", "search", "show", "store"];
        assert_eq!(nearest("sesions", known), Some("sessions"));
        assert_eq!(nearest("serach", known), Some("search"));
        assert_eq!(nearest("SHOW", known), Some("show"));
        assert_eq!(nearest("banana", known), None);
    }
}
