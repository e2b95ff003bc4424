use std::time::Duration;

use stepwell::sqlite::Access;
use stepwell::store::query::LedgerRows;
use stepwell::upkeep::{CleanupReason, Exemption, Plan, Policy};
use stepwell::{SessionId, Status, Stepwell};
use stepwell_terminal::note;
use stepwell_terminal::reply::undo;
use stepwell_terminal::text::{bytes, count};
use stepwell_wire::{CleanupItem, CleanupKept, CleanupTotal};
use stepwell_workspace::config::{Key, Source};
use stepwell_workspace::housekeeping::{
    DAY, Whose, cleanup_age, plan_cleanup, purge, shrink, tidy,
};
use stepwell_workspace::store_info;

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Moves old sessions to the trash.
///
/// Takes sessions without activity for --older-than days, or else for
/// sessions.cleanup_after_days (7). Their rows of the ledger stay. With --purge they are erased for
/// good instead, with their rows and those of older sessions, and the disk is free at once. Running and pinned sessions stay, those whose rewind was
/// cut off, and whatever these grew out of. Of a team's store only sessions that your own role
/// began are taken.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Takes sessions without activity for this many days.
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    older_than: Option<u32>,
    /// Takes only sessions with this status; may be repeated.
    #[arg(long, value_delimiter = ',')]
    status: Vec<Status>,
    /// Takes only sessions with this tag; if repeated, with all of them.
    #[arg(long, value_delimiter = ',')]
    tag: Vec<String>,
    /// Keeps this many of the newest. On its own, takes all others, whatever their age.
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,
    /// Takes the oldest until the rest fit this size: 500MB, 2GB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_bytes: Option<u64>,
    /// Erases them for good, which frees the disk at once, after asking.
    #[arg(long)]
    purge: bool,
    /// Also takes sessions that other roles of a team's store began.
    #[arg(long)]
    everyone: bool,
    /// Only shows what would be removed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

/// A number of bytes, with a unit or without.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "not a size; use one such as 500MB or 2GB".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    let unit: u64 = match text[split..].trim().to_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" => 1_000,
        "M" | "MB" => 1_000_000,
        "G" | "GB" => 1_000_000_000,
        "T" | "TB" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        Reach::Erases.unless_dry(self.dry_run)
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let policy = Policy {
        older_than: older_than(args, app),
        keep_last: args.keep_last,
        max_bytes: args.max_bytes,
        status: args.status.clone(),
        tags: args.tag.clone(),
        driver: None,
        rows: if args.purge { LedgerRows::Included } else { LedgerRows::Hidden },
        silence: app.workspace.config.settings.resume_timeout,
    };
    let fate = if args.purge { Fate::Erased } else { Fate::Trash };
    let whose = if args.everyone { Whose::Everyones } else { Whose::Mine };
    clean(&policy, Mode { dry_run: args.dry_run, fate, whose, consent: args.consent }, app)
}

/// The age given, or the configured one; none if another rule stands alone.
fn older_than(args: &Args, app: &App) -> Option<Duration> {
    match args.older_than {
        Some(days) => Some(DAY * days),
        None if args.keep_last.is_some() || args.max_bytes.is_some() => None,
        None => {
            let age = ShorterAge {
                key: "sessions.cleanup_after_days",
                own: app.workspace.config.settings.cleanup_after_days.get(),
                unit: "days",
                by_hand: "cleanup --older-than",
            };
            tell_of_ignored(&age, app);
            Some(cleanup_age(&app.workspace))
        }
    }
}

/// Says that the project's file asks for a shorter age, which does not count.
pub(super) fn tell_of_ignored(age: &ShorterAge, app: &App) {
    let Some(key) = Key::find(age.key) else { return };
    let Source::Ignored { file, asked, .. } = store_info::setting_source(&app.workspace, key)
    else {
        return;
    };
    let ShorterAge { own, unit, by_hand, .. } = age;
    note(format_args!(
        "{} says {} = {asked}, which is ignored: a project cannot shorten your own {own} {unit}.",
        file.display(),
        key.name
    ));
    note(format_args!(
        "hint: stepwell {by_hand} {asked} does it now; stepwell config set --user {} {asked} for \
         all of your projects",
        key.name
    ));
}

/// An age of the settings that a project cannot shorten.
pub(super) struct ShorterAge {
    /// Its key.
    pub(super) key: &'static str,
    /// The user's own.
    pub(super) own: u32,
    /// What that counts.
    pub(super) unit: &'static str,
    /// The command that takes the project's age.
    pub(super) by_hand: &'static str,
}

/// How a cleanup is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) dry_run: bool,
    pub(crate) fate: Fate,
    pub(crate) whose: Whose,
    pub(crate) consent: Consent,
}

/// What becomes of the sessions that a cleanup takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They can be taken back for a while.
    Trash,
    /// They are gone, and their disk space is free.
    Erased,
}

/// Shows what a policy takes, asks, and takes it.
pub(crate) fn clean(policy: &Policy, mode: Mode, app: &mut App) -> Result<Exit> {
    let Some(looking) = app.workspace.open_if_present()? else {
        return total(0, app);
    };
    let plan = plan_cleanup(&looking, policy, mode.whose)?;
    drop(looking);
    for (id, why) in &plan.protected {
        let stays_because = protection(id, why);
        if app.out.is_json() {
            app.out.object(&CleanupKept { session: id.clone(), stays_because })?;
        } else {
            note(format_args!("{id} stays: {stays_because}"));
        }
    }
    if mode.dry_run {
        return dry_run(&plan, app);
    }
    if plan.take.is_empty() {
        return total(0, app);
    }
    let (n, size) = (count(plan.take.len(), "session"), bytes(plan.bytes()));
    match mode.fate {
        Fate::Trash => {
            mode.consent.ask(
                app.terminal,
                &format!("Move {n} ({size}) to the trash?"),
                Unasked::GoOn,
            )?;
        }
        Fate::Erased => {
            mode.consent.ask(
                app.terminal,
                &format!("Erase {n} ({size}) for good?"),
                Unasked::Refuse,
            )?;
        }
    }
    let well = app.workspace.open_existing(Access::Write)?;
    let removal = well.clean_up(&plan)?;
    for taken in plan.take.iter().filter(|taken| removal.taken.contains(&taken.id)) {
        say(taken, true, app)?;
    }
    for (id, error) in &removal.left {
        note(format_args!("{id} stays: {error}"));
    }
    total(removal.taken.len(), app)?;
    let roots = plan.take.into_iter().map(|taken| taken.id);
    let roots: Vec<SessionId> = roots.filter(|id| removal.taken.contains(id)).collect();
    match mode.fate {
        Fate::Trash => {
            let days = app.workspace.config.settings.retention_days.get();
            undo(&roots, days.into()).into_iter().for_each(note);
        }
        Fate::Erased => erase(&roots, &well, app)?,
    }
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

/// Erases what was just moved to the trash, and gives its space back.
fn erase(roots: &[SessionId], well: &Stepwell, app: &App) -> Result<()> {
    for id in roots {
        purge(&app.workspace, well, id, &|_| true)?;
    }
    shrink(&app.workspace, well);
    note("This cannot be undone.");
    Ok(())
}

fn dry_run(plan: &Plan, app: &mut App) -> Result<Exit> {
    plan.take.iter().try_for_each(|taken| say(taken, false, app))?;
    if !app.out.is_json() {
        let n: usize = plan.take.iter().map(|taken| 1 + taken.subagents).sum();
        app.out.line(format_args!("Sessions that would be removed: {n}"))?;
    }
    Ok(Exit::Done)
}

fn total(removed: usize, app: &mut App) -> Result<Exit> {
    let line = format!("Sessions removed: {removed}");
    app.out.answer(&CleanupTotal { sessions_removed: removed }, line)?;
    Ok(Exit::Done)
}

fn say(taken: &stepwell::upkeep::CleanupItem, removed: bool, app: &mut App) -> Result<()> {
    let because = match taken.because {
        CleanupReason::Age => "age",
        CleanupReason::Count => "count",
        CleanupReason::Bytes => "bytes",
    };
    let (id, size) = (&taken.id, bytes(taken.bytes));
    let below = match taken.subagents {
        0 => String::new(),
        n => format!(" with {}", count(n, "subagent")),
    };
    let verb = if removed { "Removed" } else { "Would remove" };
    let object = CleanupItem {
        session: id.clone(),
        because: because.to_owned(),
        bytes: taken.bytes,
        subagents: taken.subagents,
        removed,
    };
    app.out.answer(&object, format_args!("{verb} {id}{below} ({because}, {size})"))
}

fn protection(id: &SessionId, why: &Exemption) -> String {
    let below =
        |id: &SessionId| format!("{id} below it is running, pinned, damaged or half rewound");
    match why {
        Exemption::Running => "it is running".to_owned(),
        Exemption::Pinned => "it is pinned".to_owned(),
        Exemption::Damaged => "it is damaged; stepwell delete takes it all the same".to_owned(),
        Exemption::HalfRewound => {
            format!("a rewind of it was cut off; stepwell rewind {id} --finish finishes it")
        }
        Exemption::Descendant(id) => below(id),
        Exemption::AnotherUsers => "another role began it; --everyone takes it too".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units_or_none() {
        assert_eq!(size("500MB"), Ok(500_000_000));
        assert_eq!(size("2 gb"), Ok(2_000_000_000));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["", "-1", "MB", "1.5GB", "1XB", "99999999999999999999", "99999999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
