//! Trash, restore, purge and repair.

use std::collections::{BTreeSet, HashMap};

use super::query::TrashScope;
use super::read::{self, find};
use super::rows::{Base, Key, Rows, SessionRow, TxnContext};
use super::{Removal, Target, Verdict};
use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{Digest, Origin, Seq, SessionId};
use crate::store::lease::LeaseInfo;

/// How many sessions are looked up, and erased, at a time.
const AT_ONCE: usize = 1_000;

/// Moves sessions to the trash, with their subagents' sessions.
pub fn trash(rows: &dyn Rows, world: TxnContext<'_>, targets: &[Target]) -> Result<Removal> {
    in_batches(targets, |targets| {
        let mut known = Known::of(rows, world, targets)?;
        let mut going = BTreeSet::new();
        let removal = each(targets, |target, removal| {
            let mut family = known.judge(target)?;
            if family.iter().any(|member| going.contains(&member.key)) {
                write_trashed(rows, world, &mut going)?;
                family = known.judge(target)?;
            }
            if family[0].trashed_at.is_some() {
                return Err(Error::Trashed(target.id.clone()));
            }
            for member in family.into_iter().filter(|member| member.trashed_at.is_none()) {
                going.insert(member.key);
                removal.taken.push(member.head.id);
            }
            Ok(())
        })?;
        write_trashed(rows, world, &mut going)?;
        Ok(removal)
    })
}

fn write_trashed(rows: &dyn Rows, world: TxnContext<'_>, going: &mut BTreeSet<Key>) -> Result<()> {
    let keys: Vec<Key> = std::mem::take(going).into_iter().collect();
    if keys.is_empty() { Ok(()) } else { rows.set_trashed(&keys, world.now) }
}

/// Does something to some targets at a time.
fn in_batches(
    targets: &[Target],
    act: impl FnMut(&[Target]) -> Result<Removal>,
) -> Result<Removal> {
    targets.chunks(AT_ONCE).map(act).try_fold(Removal::default(), |mut all, some| {
        let Removal { taken, left } = some?;
        all.taken.extend(taken);
        all.left.extend(left);
        Ok(all)
    })
}

/// What is known of some targets before the first of them is judged: most need no other look.
struct Known<'a> {
    rows: &'a dyn Rows,
    world: TxnContext<'a>,
    /// Those that may have subagents.
    parents: BTreeSet<SessionId>,
    /// Each as it was read, until it is judged.
    read: HashMap<SessionId, SessionRow>,
}

impl<'a> Known<'a> {
    fn of(rows: &'a dyn Rows, world: TxnContext<'a>, targets: &[Target]) -> Result<Self> {
        let ids: Vec<SessionId> = targets.iter().map(|target| target.id.clone()).collect();
        let parents = rows.parents_among(&ids)?;
        let named = |row: SessionRow| (row.head.id.clone(), row);
        let read = rows.sessions(&ids)?.into_iter().map(named).collect();
        Ok(Self { rows, world, parents, read })
    }

    /// The session and its subagents' sessions, itself first, if they may go: none of them runs,
    /// and the session is still where it was judged.
    fn judge(&mut self, target: &Target) -> Result<Vec<SessionRow>> {
        let row = match self.read.remove(&target.id) {
            Some(row) => row,
            None => find(self.rows, &target.id)?,
        };
        if let Some(expected) = target.unless_past.filter(|seq| *seq != row.head.seq) {
            let (session, actual) = (target.id.clone(), row.head.seq);
            return Err(Error::UnexpectedSeq { session, expected, actual });
        }
        let elsewhere = match target.place {
            TrashScope::Kept if row.trashed_at.is_some() => Some("it is in the trash"),
            TrashScope::Trash if row.trashed_at.is_none() => Some("it is not in the trash"),
            _ => None,
        };
        let refuse = |session: &SessionId, why: &str| Error::Illegal {
            session: session.clone(),
            kind: "a removal".to_owned(),
            why: why.to_owned(),
        };
        if let Some(why) = elsewhere {
            return Err(refuse(&target.id, why));
        }
        let may_be_parent = self.parents.contains(&target.id);
        let family = if may_be_parent { family(self.rows, row)? } else { vec![row] };
        if let Some(pinned) = family.iter().find(|member| member.head.pinned)
            && target.unless_past.is_some()
        {
            return Err(refuse(&pinned.head.id, "it is pinned"));
        }
        for member in &family {
            if let Some(LeaseInfo { holder, expires, .. }) = member.runner(self.world) {
                let session = member.head.id.clone();
                return Err(Error::Held { session, holder: Box::new(holder), expires });
            }
        }
        Ok(family)
    }
}

/// Brings sessions back from the trash, with the subagents that went with them.
pub fn restore(rows: &dyn Rows, ids: &[SessionId]) -> Result<Removal> {
    let targets: Vec<Target> = ids.iter().cloned().map(Target::from).collect();
    each(&targets, |target, removal| {
        let row = find(rows, &target.id)?;
        let Some(when) = row.trashed_at else {
            let why = "it is not in the trash".to_owned();
            let kind = "a restore".to_owned();
            return Err(Error::Illegal { session: target.id.clone(), kind, why });
        };
        // A subagent's session is found below its parent, or not at all.
        if let Origin::Subagent { parent } = &row.head.origin
            && find(rows, parent).is_ok_and(|parent| parent.trashed_at.is_some())
        {
            return Err(Error::Trashed(parent.clone()));
        }
        for mut member in family(rows, row)? {
            if member.trashed_at == Some(when) {
                member.trashed_at = None;
                rows.update_session(&member)?;
                removal.taken.push(member.head.id);
            }
        }
        Ok(())
    })
}

/// Erases sessions for good, with their subagents' sessions.
pub fn purge(rows: &dyn Rows, world: TxnContext<'_>, targets: &[Target]) -> Result<Removal> {
    in_batches(targets, |targets| {
        let mut known = Known::of(rows, world, targets)?;
        let mut going = Going::of(&known)?;
        let removal = each(targets, |target, removal| {
            let mut family = known.judge(target)?;
            if family.iter().any(|member| going.keys.contains(&member.key)) {
                going.erase()?;
                family = known.judge(target)?;
            }
            let trashed = family[0].trashed_at.is_some();
            for member in family {
                // What was brought back from the trash stays when the rest of it goes.
                if trashed && member.trashed_at.is_none() {
                    continue;
                }
                if going.take(&member)? == Heirs::Some {
                    // What was read of them is no longer so.
                    known.read.clear();
                }
                removal.taken.push(member.head.id);
            }
            Ok(())
        })?;
        going.erase()?;
        Ok(removal)
    })
}

/// Are there forks that took over a session's events?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heirs {
    Some,
    None,
}

/// Sessions that are about to be erased together.
struct Going<'a> {
    rows: &'a dyn Rows,
    keys: BTreeSet<Key>,
    /// Those of which it is known that no fork shares their events.
    unshared: BTreeSet<Key>,
}

impl<'a> Going<'a> {
    fn of(known: &Known<'a>) -> Result<Self> {
        let rows = known.rows;
        let mut unshared: BTreeSet<Key> = known.read.values().map(|row| row.key).collect();
        let keys: Vec<Key> = unshared.iter().copied().collect();
        for forked in rows.forked_among(&keys)? {
            unshared.remove(&forked);
        }
        Ok(Self { rows, keys: BTreeSet::new(), unshared })
    }

    fn take(&mut self, row: &SessionRow) -> Result<Heirs> {
        let mut heirs = Heirs::None;
        if !self.unshared.contains(&row.key) && !self.rows.forks(row.key)?.is_empty() {
            // A fork that goes too is no heir.
            self.erase()?;
            // Whoever shares events now may be shared from now on.
            self.unshared.clear();
            hand_over(self.rows, row)?;
            heirs = Heirs::Some;
        }
        self.keys.insert(row.key);
        Ok(heirs)
    }

    fn erase(&mut self) -> Result<()> {
        let keys: Vec<Key> = std::mem::take(&mut self.keys).into_iter().collect();
        if keys.is_empty() { Ok(()) } else { self.rows.erase(&keys) }
    }
}

/// Does something to each target. What one target refuses leaves it, and is told; what
/// the store refuses ends all.
fn each(
    targets: &[Target],
    mut act: impl FnMut(&Target, &mut Removal) -> Result<()>,
) -> Result<Removal> {
    let mut removal = Removal::default();
    for target in targets {
        match act(target, &mut removal) {
            Ok(()) => {}
            Err(
                error @ (Error::NoSession(_)
                | Error::Held { .. }
                | Error::UnexpectedSeq { .. }
                | Error::Trashed(_)
                | Error::Illegal { .. }),
            ) => removal.left.push((target.id.clone(), error)),
            Err(error) => return Err(error),
        }
    }
    Ok(removal)
}

/// A session and its subagents' sessions, itself first.
fn family(rows: &dyn Rows, row: SessionRow) -> Result<Vec<SessionRow>> {
    let mut below = rows.subagents(&row.head.id)?;
    // A circle cannot be made through a store; in a forged one it is its own subagent.
    below.retain(|key| *key != row.key);
    let mut family = vec![row];
    for key in below {
        family.extend(rows.session_by_key(key)?);
    }
    Ok(family)
}

/// Events that forks share go to the fork that shares most of them; the others
/// share them there from now on. So a shared prefix lives until its last user.
fn hand_over(rows: &dyn Rows, row: &SessionRow) -> Result<()> {
    let forks = rows.forks(row.key)?;
    let Some(heir) = forks.iter().copied().max_by_key(|fork| (fork.at, -fork.key)) else {
        return Ok(());
    };
    rows.adopt(heir, row)?;
    let own = row.own_from();
    for fork in forks.iter().filter(|fork| fork.key != heir.key) {
        // A fork from below this session's own events shares them further down.
        if fork.at >= own {
            rows.rebase(fork.key, Base { key: heir.key, at: fork.at })?;
        }
    }
    Ok(())
}

/// Rebuilds what is derived from a session's events.
pub fn repair(rows: &dyn Rows, id: &SessionId) -> Result<Verdict> {
    let row = find(rows, id)?;
    let key = row.key;
    let stored = rows.last_own(key)?.unwrap_or(Seq::ZERO);
    let last = stored.max(row.head.seq);
    let row = SessionRow { head: Head { seq: last, ..row.head.clone() }, ..row };
    let read::Reread { mut verdict, state, chain } = read::reread(rows, &row)?;
    let damage = verdict.damage.clone();
    let (head, lanes) = match state {
        Some(state) => (Head { seq: last, ..state.head }, state.lanes),
        None => (row.head.clone(), read::lanes(rows, &row)?),
    };
    let chain = if damage.is_none() { chain } else { Digest::GENESIS };
    let repaired = SessionRow { head, chain, damage, lane: None, ..row };
    rows.replace_lanes(key, &lanes)?;
    rows.drop_snapshots(key)?;
    rows.update_session(&repaired)?;
    rows.reindex(&repaired)?;
    if verdict.damage.is_none() {
        verdict.derived = super::Derived::Right;
    }
    Ok(verdict)
}
