//! Changes of the same files by other sessions of the store.
//!
//! A scan before and after a command cannot tell the command's changes from anyone else's in that
//! time. If another session of the same store made a change, its log says so, and a rewind must not
//! undo its work.

use std::collections::HashMap;

use stepwell::model::{FileState, Kind, Time};
use stepwell::store::{Order, Span};
use stepwell::{Seq, SessionId, Store};
use stepwell_wire::LeftFile;

use crate::error::Result;
use crate::history::{Entry, History};
use crate::others::others;
use crate::plan::Plan;

/// The file states that other sessions recorded, by path.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    by_path: HashMap<String, Vec<(SessionId, FileState)>>,
}

impl Claims {
    /// The changes of a workspace's other sessions since a session was at `to`.
    pub(crate) fn of(
        store: &dyn Store,
        id: &SessionId,
        history: &History,
        to: Seq,
    ) -> Result<Self> {
        let mut claims = Self::default();
        // Most sessions change nothing after the point, or are alone.
        if !history.entries().iter().any(|entry| entry.seq > to) {
            return Ok(claims);
        }
        let since = time_of(store, id, to)?;
        for other in others(store, id, since)? {
            let facts = store.keyed_events(&other, &[Kind::File])?;
            let theirs = History::of(facts.into_iter().filter(|it| it.at >= since));
            claims.add(&other, &theirs, history);
        }
        Ok(claims)
    }

    /// Adds the files as another session left them. Changes that both sessions share, because one
    /// is a fork of the other, count as this session's, also after a rewind.
    fn add(&mut self, other: &SessionId, theirs: &History, ours: &History) {
        let ours = ours.entries();
        let (shared, own): (Vec<&Entry>, Vec<&Entry>) =
            theirs.entries().iter().partition(|entry| ours.contains(entry));
        let last: HashMap<&str, &FileState> =
            own.iter().map(|it| (it.change.path.as_str(), &it.change.after)).collect();
        for (path, after) in last {
            let is_shared = |it: &&Entry| it.change.path == path && it.change.after == *after;
            if !shared.iter().any(is_shared) {
                self.by_path
                    .entry(path.to_owned())
                    .or_default()
                    .push((other.clone(), after.clone()));
            }
        }
    }

    /// Turns moves into conflicts if they would undo another session's work: both sessions recorded
    /// the same change after `to`.
    pub(crate) fn object_to(&self, plan: &mut Plan, history: &History, to: Seq) {
        let mut moves = std::mem::take(&mut plan.moves);
        moves.retain(|change| {
            let ours = history.entries().iter().filter(|it| it.seq > to);
            let mut ours = ours.filter(|it| it.change.path == change.path);
            let claims = self.by_path.get(&change.path).map(Vec::as_slice).unwrap_or_default();
            let claim = ours.find_map(|entry| {
                claims
                    .iter()
                    .find(|(_, after)| *after == entry.change.after && *after != change.after)
            });
            if let Some((other, _)) = claim {
                let why = format!("session {other} changed it too");
                plan.conflicts.push(LeftFile { path: change.path.clone(), why });
            }
            claim.is_none()
        });
        plan.moves = moves;
    }
}

/// The time of an event; before the first one, the session's creation.
fn time_of(store: &dyn Store, id: &SessionId, seq: Seq) -> Result<Time> {
    let from = seq.max(Seq::FIRST);
    let span = Span { from, to: from, order: Order::Oldest, limit: 1 };
    let events = store.events(id, span)?.intact(id)?;
    Ok(events.first().map_or(Time::EPOCH, |event| event.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::{history, text};

    fn objected(ours: &History, theirs: &History, to: u64) -> Plan {
        let mut plan = Plan::default();
        for (path, net) in ours.net(Seq::new(to), Seq::MAX) {
            let (before, after) = (net.after, net.before);
            plan.moves.push(stepwell::model::FileChanged {
                path,
                before,
                after,
                renamed_from: None,
            });
        }
        let mut claims = Claims::default();
        claims.add(&"other".parse().unwrap(), theirs, ours);
        claims.object_to(&mut plan, ours, Seq::new(to));
        plan
    }

    #[test]
    fn what_another_session_finished_meanwhile_is_a_conflict() {
        let ours =
            history(&[(3, "mine", "", "m"), (4, "theirs", "", "t"), (6, "theirs", "t", "u")]);
        let plan = objected(&ours, &history(&[(9, "theirs", "", "t")]), 0);
        assert_eq!(plan.moves.len(), 1);
        assert_eq!(plan.conflicts[0].path, "theirs");
        assert_eq!(plan.conflicts[0].why, "session other changed it too");
    }

    #[test]
    fn what_was_built_on_another_sessions_work_goes_back_to_it() {
        let ours = history(&[(3, "a", "t", "m")]);
        let plan = objected(&ours, &history(&[(9, "a", "", "t")]), 0);
        assert!(plan.conflicts.is_empty());
        assert_eq!(plan.moves[0].after, text("t"));
    }

    #[test]
    fn what_a_fork_shares_is_no_conflict_even_if_it_came_back() {
        let ours = history(&[(3, "a", "", "x")]);
        let back = [(3, "a", "", "x"), (5, "a", "x", ""), (7, "a", "", "x")];
        for theirs in [&back[..1], &back] {
            assert!(objected(&ours, &history(theirs), 0).conflicts.is_empty());
        }
    }

    #[test]
    fn what_another_session_took_back_is_no_claim() {
        let ours = history(&[(3, "a", "1", "2")]);
        let theirs = history(&[(5, "a", "1", "2"), (6, "a", "2", "1")]);
        assert!(objected(&ours, &theirs, 0).conflicts.is_empty());
    }
}
