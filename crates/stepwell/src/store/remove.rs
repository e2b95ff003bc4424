//! Trash, restore, purge and repair.

use std::collections::BTreeSet;

use super::query::TrashScope;
use super::read::{self, find};
use super::rows::{Base, Key, Rows, SessionRow, TxnContext};
use super::{Removal, Target, Verdict};
use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{Digest, Origin, Seq, SessionId};
use crate::store::lease::LeaseInfo;

/// Moves sessions to the trash, with their subagents' sessions.
pub fn trash(rows: &dyn Rows, world: TxnContext<'_>, targets: &[Target]) -> Result<Removal> {
    let ids: Vec<SessionId> = targets.iter().map(|target| target.id.clone()).collect();
    let parents = rows.parents_among(&ids)?;
    let judge = |target: &Target| judge(rows, world, target, |id| parents.contains(id));
    // Rows are written together: one statement is cheaper than one per row.
    let mut going = BTreeSet::new();
    let removal = each(targets, |target, removal| {
        let mut family = judge(target)?;
        if family.iter().any(|member| going.contains(&member.key)) {
            write_trashed(rows, world, &mut going)?;
            family = judge(target)?;
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
}

fn write_trashed(rows: &dyn Rows, world: TxnContext<'_>, going: &mut BTreeSet<Key>) -> Result<()> {
    let keys: Vec<Key> = std::mem::take(going).into_iter().collect();
    if keys.is_empty() { Ok(()) } else { rows.set_trashed(&keys, world.now) }
}

/// Restores sessions from the trash, with the subagents' sessions that were moved there together
/// with them.
pub fn restore(rows: &dyn Rows, ids: &[SessionId]) -> Result<Removal> {
    let targets: Vec<Target> = ids.iter().cloned().map(Target::from).collect();
    each(&targets, |target, removal| {
        let row = find(rows, &target.id)?;
        let Some(when) = row.trashed_at else {
            let why = "it is not in the trash".to_owned();
            let kind = "a restore".to_owned();
            return Err(Error::Illegal { session: target.id.clone(), kind, why });
        };
        // A subagent's session cannot be restored without its parent.
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
    each(targets, |target, removal| {
        let family = judge(rows, world, target, |_| true)?;
        let trashed = family[0].trashed_at.is_some();
        for member in family {
            // A subagent's session that was restored stays when the rest of the family is purged.
            if trashed && member.trashed_at.is_none() {
                continue;
            }
            hand_over(rows, &member)?;
            rows.erase(member.key)?;
            removal.taken.push(member.head.id);
        }
        Ok(())
    })
}

/// Acts on each target. If a target is refused, it is left and reported. Errors of the store end
/// the whole operation.
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

/// The session and its subagents' sessions, if they may be removed: none of them runs, and the
/// session has not changed since it was judged.
fn judge(
    rows: &dyn Rows,
    world: TxnContext<'_>,
    target: &Target,
    may_be_parent: impl Fn(&SessionId) -> bool,
) -> Result<Vec<SessionRow>> {
    let row = find(rows, &target.id)?;
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
    let family = if may_be_parent(&target.id) { family(rows, row)? } else { vec![row] };
    if let Some(pinned) = family.iter().find(|member| member.head.pinned)
        && target.unless_past.is_some()
    {
        return Err(refuse(&pinned.head.id, "it is pinned"));
    }
    for member in &family {
        if let Some(LeaseInfo { holder, expires, .. }) = member.runner(world) {
            let session = member.head.id.clone();
            return Err(Error::Held { session, holder: Box::new(holder), expires });
        }
    }
    Ok(family)
}

/// A session and its subagents' sessions, the session first.
fn family(rows: &dyn Rows, row: SessionRow) -> Result<Vec<SessionRow>> {
    let mut below = rows.subagents(&row.head.id)?;
    // A store cannot create a cycle; in a forged one, a session is its own subagent.
    below.retain(|key| *key != row.key);
    let mut family = vec![row];
    for key in below {
        family.extend(rows.session_by_key(key)?);
    }
    Ok(family)
}

/// Moves shared events to the fork that shares the most. The other forks then share that fork's
/// copy, so a shared prefix exists until its last user is purged.
fn hand_over(rows: &dyn Rows, row: &SessionRow) -> Result<()> {
    let forks = rows.forks(row.key)?;
    let Some(heir) = forks.iter().copied().max_by_key(|fork| (fork.at, -fork.key)) else {
        return Ok(());
    };
    rows.adopt(heir, row)?;
    let own = row.own_from();
    for fork in forks.iter().filter(|fork| fork.key != heir.key) {
        // Forks below this session's own events share an ancestor's rows.
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
