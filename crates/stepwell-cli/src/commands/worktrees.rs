use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_terminal::text::{one_line, word};
use stepwell_wire::WorktreeState;
use stepwell_wire::{Worktree, WorktreeRemoved};
use stepwell_workspace::{
    Loss, SubagentWorktree, WorktreeStays, subagent_worktrees, worktrees_named,
};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;

/// Lists and removes the git worktrees of subagents.
///
/// One that is clean or merged goes by itself. What is listed holds work that is not merged:
/// git merge stepwell/ID takes it over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists them.
    List,
    /// Removes one, with its branch.
    Remove {
        /// The subagent's session, or a part of its id.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Also if it holds work that is not merged, which is then lost.
        #[arg(long)]
        force: bool,
    },
}

const COLUMNS: &[Column] =
    &[left("SESSION"), left("STATUS"), left("WORKTREE"), left("BRANCH"), left("TASK")];

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            None | Some(Action::List) => Reach::Reads,
            Some(Action::Remove { .. }) => Reach::Erases,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let found = match app.workspace.open_if_present()? {
        Some(well) => subagent_worktrees(&app.workspace, &well)?,
        None => Vec::new(),
    };
    match &args.action {
        None | Some(Action::List) => list(&found, app),
        Some(Action::Remove { session, force }) => {
            let site = find(&found, session)?;
            remove(site, *force, app)
        }
    }
}

fn list(found: &[SubagentWorktree], app: &mut App) -> Result<Exit> {
    if app.out.is_json() {
        found.iter().try_for_each(|site| app.out.object(&Worktree::from(site)))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        app.out.line("No worktrees of subagents.")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    for site in found {
        let head = site.session.as_ref().map(|it| &it.head);
        table.push(vec![
            site.id.as_str().into(),
            head.map_or("erased", |head| head.status.as_str()).into(),
            state(site).into(),
            site.worktree.branch.as_str().into(),
            one_line(head.map_or("", |head| head.task.as_str())).into(),
        ]);
    }
    app.print(&table)?;
    Ok(Exit::Done)
}

/// How a worktree stands, in a word or two.
fn state(site: &SubagentWorktree) -> String {
    let state = match &site.state {
        Ok(it) if it.paths.is_empty() => word(it.state),
        Ok(it) => {
            let first = it.paths.iter().take(2).map(|path| one_line(path)).collect::<Vec<_>>();
            let more = if it.paths.len() > 2 { ", …" } else { "" };
            format!("{}: {}{more}", word(it.state), first.join(", "))
        }
        Err(_) => "unknown".to_owned(),
    };
    if site.used_by.is_some() { format!("{state}, in use") } else { state }
}

/// The worktree that a name means.
fn find<'a>(found: &'a [SubagentWorktree], name: &str) -> Result<&'a SubagentWorktree> {
    let absent = |message: String| {
        Failure::new(Exit::Absent, message).hint("stepwell worktrees lists what there is")
    };
    match worktrees_named(found, name)[..] {
        [site] => Ok(site),
        [] => Err(absent(format!("no worktree matches {name:?}"))),
        ref named => {
            let ids: Vec<&str> = named.iter().map(|site| site.id.as_str()).collect();
            Err(absent(format!("{name:?} could be {}", ids.join(", "))))
        }
    }
}

fn remove(site: &SubagentWorktree, force: bool, app: &mut App) -> Result<Exit> {
    let id = &site.id;
    let refuse = |why: String| Failure::new(Exit::Failed, format_args!("{id}: {why}"));
    let loss = if force { Loss::Accepted } else { Loss::Refused };
    site.remove_asked(loss).map_err(|stays| match stays {
        WorktreeStays::AtWork(user) => refuse(format!("{} is at work in it", user.id))
            .hint(format_args!("stepwell stop {} stops it", user.id)),
        WorktreeStays::NotDone(user) => refuse(format!("{} works in it and is not done", user.id))
            .hint(format_args!(
                "stepwell resume {} continues it; --force removes it all the same",
                user.resumed
            )),
        WorktreeStays::Holds => why_not(site),
        WorktreeStays::Git(why) => refuse(why),
    })?;
    let line = format!("Removed the worktree of {id}");
    app.out.answer(&WorktreeRemoved { removed: id.clone() }, line)?;
    if force {
        note("This cannot be undone.");
    }
    Ok(Exit::Done)
}

/// Why a worktree is not removed unless that is forced, and what to do.
fn why_not(site: &SubagentWorktree) -> Failure {
    let (id, branch, path) = (&site.id, &site.worktree.branch, site.worktree.path.display());
    let look = format!("look into {path}; --force removes it for good");
    let stray = site.state.as_ref().ok().and_then(|it| it.stray.as_deref());
    let tip = stray.unwrap_or(branch);
    let merge = format!("git merge {tip} takes them over; --force removes them for good");
    let (why, hint) = match &site.state {
        Err(why) => (format!("git cannot say how it stands: {}", one_line(why)), look),
        Ok(it) => {
            let paths = it.paths.iter().map(|path| one_line(path)).collect::<Vec<_>>().join(", ");
            match it.state {
                WorktreeState::Uncommitted => {
                    ("it holds changes that are not committed".to_owned(), look)
                }
                WorktreeState::Ignored => (
                    format!("it holds files that git ignores, and nothing else keeps: {paths}"),
                    look,
                ),
                WorktreeState::Nested => {
                    (format!("it holds git repositories of their own: {paths}"), look)
                }
                WorktreeState::Elsewhere => {
                    (format!("something other than {branch} is checked out in it"), look)
                }
                WorktreeState::CheckedOut => (
                    format!("its branch {branch} is checked out in {paths}"),
                    "check something else out there first: git switch BRANCH".to_owned(),
                ),
                WorktreeState::Broken => (site.worktree.broken(), look),
                WorktreeState::Unmerged
                | WorktreeState::Clean
                | WorktreeState::Merged
                | WorktreeState::Gone => ("it holds commits that are not merged".to_owned(), merge),
            }
        }
    };
    Failure::new(Exit::Failed, format_args!("{id}: {why}")).hint(hint)
}
