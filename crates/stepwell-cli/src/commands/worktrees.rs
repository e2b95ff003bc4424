use stepwell_files::worktree::State;
use stepwell_wire::{Worktree, WorktreeRemoved};
use stepwell_workspace::{SubagentWorktree, subagent_worktrees};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::table::{Align, Column, Table};
use crate::text::one_line;
use crate::wire;

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

const COLUMNS: &[Column] = &[
    Column { name: "SESSION", align: Align::Left },
    Column { name: "STATUS", align: Align::Left },
    Column { name: "WORKTREE", align: Align::Left },
    Column { name: "BRANCH", align: Align::Left },
    Column { name: "TASK", align: Align::Left },
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let found = match app.look()? {
        Some(well) => subagent_worktrees(app, &well)?,
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
        Ok(it) if it.paths.is_empty() => wire::word(it.state),
        Ok(it) => {
            let first = it.paths.iter().take(2).map(|path| one_line(path)).collect::<Vec<_>>();
            let more = if it.paths.len() > 2 { ", …" } else { "" };
            format!("{}: {}{more}", wire::word(it.state), first.join(", "))
        }
        Err(_) => "unknown".to_owned(),
    };
    if site.used_by.is_some() { format!("{state}, in use") } else { state }
}

/// The worktree that a name means.
fn find<'a>(found: &'a [SubagentWorktree], name: &str) -> Result<&'a SubagentWorktree> {
    if let Some(site) = found.iter().find(|site| site.id.as_str() == name) {
        return Ok(site);
    }
    // Every id has nothing in it, which so means none.
    let has = |site: &&SubagentWorktree| !name.is_empty() && site.id.as_str().contains(name);
    let ends = |site: &&SubagentWorktree| !name.is_empty() && site.id.ending().starts_with(name);
    let mut named: Vec<&SubagentWorktree> = found.iter().filter(ends).collect();
    if named.is_empty() {
        named = found.iter().filter(has).collect();
    }
    let absent = |message: String| {
        Failure::new(Exit::Absent, message).hint("stepwell worktrees lists what there is")
    };
    match named[..] {
        [site] => Ok(site),
        [] => Err(absent(format!("no worktree matches {name:?}"))),
        _ => {
            let ids: Vec<&str> = named.iter().map(|site| site.id.as_str()).collect();
            Err(absent(format!("{name:?} could be {}", ids.join(", "))))
        }
    }
}

fn remove(site: &SubagentWorktree, force: bool, app: &mut App) -> Result<Exit> {
    let id = &site.id;
    let refuse = |why: String| Failure::new(Exit::Failed, format_args!("{id}: {why}"));
    if let Some(user) = site.used_by.as_ref().filter(|user| user.at_work) {
        return Err(refuse(format!("{} is at work in it", user.id))
            .hint(format_args!("stepwell stop {} stops it", user.id)));
    }
    if site.state.as_ref().is_ok_and(|it| it.state == State::CheckedOut) {
        return Err(why_not(site));
    }
    if force {
        site.worktree.remove_by_force().map_err(refuse)?;
    } else if let Some(user) = &site.used_by {
        let why = format!("{} works in it and is not done", user.id);
        return Err(refuse(why).hint(format_args!(
            "stepwell resume {} goes on with it; --force removes it all the same",
            user.resumed
        )));
    } else if site.is_done() || site.is_gone() {
        site.remove().map_err(refuse)?;
    } else {
        return Err(why_not(site));
    }
    let removed = id.clone();
    let line = format!("Removed the worktree of {id}");
    app.out.answer(&WorktreeRemoved { removed }, line)?;
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
                State::Uncommitted => ("it holds changes that are not committed".to_owned(), look),
                State::Ignored => (
                    format!("it holds files that git ignores, and nothing else keeps: {paths}"),
                    look,
                ),
                State::Nested => (format!("it holds git repositories of their own: {paths}"), look),
                State::Elsewhere => {
                    (format!("something other than {branch} is checked out in it"), look)
                }
                State::CheckedOut => (
                    format!("its branch {branch} is checked out in {paths}"),
                    "check something else out there first: git switch BRANCH".to_owned(),
                ),
                State::Broken => (site.worktree.broken(), look),
                State::Unmerged | State::Clean | State::Merged | State::Gone => {
                    ("it holds commits that are not merged".to_owned(), merge)
                }
            }
        }
    };
    Failure::new(Exit::Failed, format_args!("{id}: {why}")).hint(hint)
}
