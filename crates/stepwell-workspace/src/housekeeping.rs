//! What is done by the way when a person changes something: the trash lets go of what
//! has been in it for long enough, and, if asked for, old sessions are cleaned up.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::time::{Duration, SystemTime};

use stepwell::model::{Driver, Origin};
use stepwell::sessions::EmptyTrash;
use stepwell::store::Removal;
use stepwell::store::query::{Family, Filter, LedgerRows, Query, TrashScope};
use stepwell::upkeep::{CanFinish, Exemption, Plan, Policy};
use stepwell::{Error, SessionId, SessionInfo, Stepwell};
use stepwell_postgres::Retention;

use crate::atomic_file::replace_private_file;
use crate::engine::team_store;
use crate::error::Result;
use crate::ledger;
use crate::ledger::LedgerWanted;
use crate::notice::Notice;
use crate::run_logs::RunLogs;
use crate::workspace::Workspace;

/// A day.
pub const DAY: Duration = Duration::from_secs(86_400);

/// What is erased and cleaned up by the way, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    /// For how many days the trash keeps a session.
    retention_days: u32,
    /// How old a session is that is moved to the trash; absent, none is.
    cleanup: Option<Duration>,
    /// The same for sessions of agents that Stepwell does not run.
    agents: Option<Duration>,
}

/// The rules of a store: those that the owner of a team's store made, or the user's own.
fn rules(workspace: &Workspace, well: &Stepwell) -> Result<Rules> {
    if let Some(store) = team_store(well) {
        let Retention { days, cleanup_after_days } = store.retention()?;
        let cleanup = cleanup_after_days.map(|days| DAY * days);
        return Ok(Rules { retention_days: days, cleanup, agents: cleanup });
    }
    let settings = &workspace.config.settings;
    let hours = u64::from(settings.agent_cleanup_hours.get());
    Ok(Rules {
        retention_days: settings.retention_days.get(),
        cleanup: settings.auto_cleanup.then(|| cleanup_age(workspace)),
        agents: settings.auto_cleanup.then(|| Duration::from_secs(hours * 3600)),
    })
}

/// How long the trash of a store keeps a session.
///
/// # Errors
/// If a team's store cannot be asked.
pub fn retention(workspace: &Workspace, well: &Stepwell) -> Result<Duration> {
    Ok(DAY * rules(workspace, well)?.retention_days)
}

/// How old a session is when cleanup takes it.
#[must_use]
pub fn cleanup_age(workspace: &Workspace) -> Duration {
    DAY * workspace.config.settings.cleanup_after_days.get()
}

/// Empties the trash of what is due, and cleans up if that is wanted. Says so.
///
/// It is done apart from what the user asked for, which was kept already: if it fails, that is a
/// notice.
pub fn tidy(workspace: &Workspace, well: &Stepwell) {
    // A run's own command erases nothing, also not by the way: whose settings it reads is its choice.
    if workspace.host.environment.is_in_run() {
        return;
    }
    if let Err(error) = try_tidy(workspace, well) {
        workspace.notices.tell(Notice::warning("old sessions were not looked for", &error));
    }
}

fn try_tidy(workspace: &Workspace, well: &Stepwell) -> Result<()> {
    let rules = rules(workspace, well)?;
    let older_than = DAY * rules.retention_days;
    let removal = empty_trash(workspace, well, older_than, Whose::Mine)?;
    if !removal.taken.is_empty() {
        let (sessions, days) = (removal.taken.len(), rules.retention_days);
        workspace.notices.tell(Notice::TrashEmptied { sessions, days });
    }
    let Some(older_than) = rules.cleanup.filter(|_| is_due(workspace)) else { return Ok(()) };
    let silence = workspace.config.settings.resume_timeout;
    let policy = Policy { older_than: Some(older_than), silence, ..Policy::default() };
    let plan = plan_cleanup(well, &policy, Whose::Mine)?;
    for (id, _) in plan.protected.iter().filter(|(_, why)| *why == Exemption::HalfRewound) {
        workspace.notices.tell(Notice::HalfRewoundKept { session: id.clone() });
    }
    let mut removal = well.clean_up(&plan)?;
    let policy = Policy { older_than: rules.agents, driver: Some(Driver::External), ..policy };
    let agents = well.clean_up(&plan_cleanup(well, &policy, Whose::Mine)?)?;
    removal.taken.extend(agents.taken);
    if !removal.taken.is_empty() {
        workspace.notices.tell(Notice::CleanedUp { sessions: removal.taken.len() });
    }
    Ok(())
}

/// Whose sessions are meant. In a store of one user all are theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those that this user began, with all below them.
    Mine,
    /// Those of everyone in the store.
    Everyones,
}

/// What a cleanup would take.
///
/// # Errors
/// If the store cannot be read.
pub fn plan_cleanup(well: &Stepwell, policy: &Policy, whose: Whose) -> Result<Plan> {
    let plan = well.plan_cleanup(policy)?;
    let ids: Vec<SessionId> = plan.take.iter().map(|item| item.id.clone()).collect();
    Ok(plan.but(&of_others(well, &ids, whose)?))
}

/// Those of some sessions that are to stay because another login of the store's server began
/// them.
///
/// # Errors
/// If the server cannot be asked.
pub fn of_others(well: &Stepwell, ids: &[SessionId], whose: Whose) -> Result<BTreeSet<SessionId>> {
    match (team_store(well), whose) {
        (Some(store), Whose::Mine) => Ok(store.with_others(ids)?),
        _ => Ok(BTreeSet::new()),
    }
}

/// Gives the space of what was erased back to the disk. The erasing was kept already: if this
/// fails, that is a notice.
pub fn shrink(workspace: &Workspace, well: &Stepwell) {
    if let Err(error) = well.store().maintain().shrink() {
        workspace.notices.tell(Notice::warning("the space was not given back to the disk", &error));
    }
}

/// Erases what has been in the trash for at least so long; not a session that alone knows how its
/// files get whole again, which is named, nor those that it would go with.
pub fn empty_trash(
    workspace: &Workspace,
    well: &Stepwell,
    older_than: Duration,
    whose: Whose,
) -> Result<Removal> {
    let limit = well.now().minus(older_than);
    let (place, rows) = (TrashScope::Trash, LedgerRows::Included);
    let filter = Filter { place, rows, ..Filter::default() };
    let mut due = Vec::new();
    for info in well.sessions(Query { filter, ..Query::default() }) {
        let info = info?;
        if info.trashed_at.is_some_and(|when| when <= limit) {
            due.push(info.head.id);
        }
    }
    if due.is_empty() {
        return Ok(Removal::default());
    }
    let mut stay = half_rewound(workspace, well, limit)?;
    stay.extend(of_others(well, &due, whose)?);
    let commits = commits_of(workspace, well, &due)?;
    let removal = well.empty_trash(EmptyTrash { older_than, keep: stay, commits })?;
    RunLogs::of(&workspace.place.store).forget(&removal.taken)?;
    Ok(removal)
}

/// How many commits sessions made that are about to go: only what is known now can be told later.
fn commits_of(
    workspace: &Workspace,
    well: &Stepwell,
    going: &[SessionId],
) -> Result<BTreeMap<SessionId, usize>> {
    let going: HashSet<&SessionId> = going.iter().collect();
    let takes = |info: &SessionInfo| going.contains(&info.head.id);
    let query =
        Query { filter: Filter { family: Family::Roots, ..Filter::default() }, ..Query::default() };
    let wanted = LedgerWanted { root: &workspace.place.root, query, takes: &takes };
    let lines = ledger::read(workspace, well, wanted)?.lines.into_iter();
    Ok(lines.filter_map(|line| Some((line.came.head.id, line.commits?))).collect())
}

/// Erases sessions of the trash for good with all below them, and what runs of theirs wrote in the
/// background.
///
/// # Errors
/// If the store cannot be written. Some of them may be gone by then.
pub fn purge_trashed(workspace: &Workspace, well: &Stepwell, ids: &[SessionId]) -> Result<Removal> {
    let removal = well.purge_trashed(ids)?;
    RunLogs::of(&workspace.place.store).forget(&removal.taken)?;
    Ok(removal)
}

/// Erases a session for good with all below it, and what runs of theirs wrote in the background.
///
/// # Errors
/// If a rewind of it can still be finished, or it runs.
pub fn purge(
    workspace: &Workspace,
    well: &Stepwell,
    id: &SessionId,
    can_finish: CanFinish<'_>,
) -> Result<Vec<SessionId>> {
    let erased = well.purge_unless(id, can_finish)?;
    RunLogs::of(&workspace.place.store).forget(&erased)?;
    Ok(erased)
}

/// Sessions of the trash that alone know how their files get whole again, and those that they
/// would go with. Those that were due by now are named.
fn half_rewound(
    workspace: &Workspace,
    well: &Stepwell,
    limit: stepwell::model::Time,
) -> Result<BTreeSet<SessionId>> {
    let filter = Filter { place: TrashScope::Trash, rewinding: true, ..Filter::default() };
    let mut stay = BTreeSet::new();
    for info in well.sessions(Query { filter, ..Query::default() }) {
        let info = info?;
        if !alone_knows_its_files(workspace, &info) {
            continue;
        }
        if info.trashed_at.is_some_and(|when| when <= limit) {
            let session = info.head.id.clone();
            workspace.notices.tell(Notice::HalfRewoundKeptInTrash { session });
        }
        let mut above = Some(info.head);
        while let Some(head) = above {
            stay.insert(head.id);
            above = match head.origin {
                // One that was erased by hand ends the chain.
                Origin::Subagent { parent } => match well.store().info(&parent) {
                    Ok(info) => Some(info.head),
                    Err(Error::NoSession(_)) => None,
                    Err(error) => return Err(error.into()),
                },
                Origin::Root | Origin::Fork { .. } => None,
            };
        }
    }
    Ok(stay)
}

/// Does a session alone know how its files get whole again? Where they are gone, or the log is
/// damaged, nobody can finish that.
fn alone_knows_its_files(workspace: &Workspace, info: &SessionInfo) -> bool {
    let head = &info.head;
    let is_there = info.damage.is_none() && workspace.session_folder(Some(head)).is_ok();
    is_there && head.rewinding.is_some()
}

/// Is a day over since the last time? Notes that this is the next one.
fn is_due(workspace: &Workspace) -> bool {
    let mark = workspace.place.store.join("cleaned-up");
    let last = fs::symlink_metadata(&mark).and_then(|meta| meta.modified()).ok();
    let since_epoch = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    let last = last.and_then(since_epoch).map(|at| stepwell::model::Time::EPOCH.plus(at));
    let due = last.is_none_or(|last| workspace.now().since(last) >= DAY);
    // A mark that cannot be made means that it is looked at again next time.
    due && replace_private_file(&mark, b"\n").is_ok()
}
