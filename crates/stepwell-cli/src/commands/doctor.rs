use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stepwell::{
    Access, Driver, Filter, Place, Query, SessionId, Status, StatusChanged, StopReason,
};
use stepwell_wire::CheckFinding;

use super::verify::every;
use crate::app::{App, Well};
use crate::failure::{Exit, Result};
use crate::output::{Style, note};
use crate::text::visible;

/// Looks the store over and says what it would repair; --repair does it.
///
/// Looks at the file, its permissions, the sessions that are known to be damaged, runs
/// whose process died, and the list of your stores. `verify` re-reads every event. Ends with
/// 0 only if nothing was found, or all of it was repaired.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Repairs what can be.
    #[arg(long)]
    repair: bool,
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    check: &'static str,
    /// What is wrong; nothing, if all is well.
    problems: Vec<String>,
    /// What a repair does about it.
    repair: Option<&'static str>,
    repaired: bool,
    /// Wrong, but not in a way that makes data worse.
    harmless: bool,
}

impl Finding {
    fn new(check: &'static str, problems: Vec<String>) -> Self {
        Self { check, problems, repair: None, repaired: false, harmless: false }
    }

    fn repairable(self, how: &'static str) -> Self {
        Self { repair: Some(how).filter(|_| !self.problems.is_empty()), ..self }
    }

    fn harmless(self) -> Self {
        Self { harmless: true, ..self }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut findings = vec![configuration(app), registry(app, args.repair)];
    if app.place.has_store() {
        if app.place.team.is_none() {
            findings.push(permissions(&app.place.store, args.repair));
        }
        match app.existing(Access::Read) {
            Ok(well) => {
                findings.push(lock(app));
                findings.extend(examine(&well)?);
            }
            Err(error) => findings.push(Finding::new("store", vec![error.to_string()])),
        }
        if args.repair {
            repair(&mut findings, app);
        }
        findings.push(ignored(app, args.repair));
    } else {
        note("There is no store here; stepwell init makes one.");
    }
    let mut worst = Exit::Done;
    for finding in &findings {
        print(finding, app)?;
        if finding.problems.is_empty() || finding.repaired {
            continue;
        }
        worst = match (finding.check, worst) {
            ("store" | "sessions" | "lock", _) | (_, Exit::Damaged) => Exit::Damaged,
            _ => Exit::Failed,
        };
    }
    if !args.repair && findings.iter().any(|finding| finding.repair.is_some()) {
        note("hint: stepwell doctor --repair does what is said above");
    }
    Ok(worst)
}

fn print(finding: &Finding, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.object(&CheckFinding {
            check: finding.check.to_owned(),
            problems: finding.problems.clone(),
            repair: finding.repair.map(ToOwned::to_owned),
            repaired: finding.repaired,
        });
    }
    let (style, word) = match (finding.problems.is_empty(), finding.repaired) {
        (true, _) => (Style::Green, "ok"),
        (false, true) => (Style::Green, "repaired"),
        (false, false) if finding.harmless => (Style::Yellow, "wrong"),
        (false, false) => (Style::Red, "wrong"),
    };
    let check = finding.check;
    app.out.line(format_args!("{:<12} {}", check, app.out.paint.paint(style, word)))?;
    for problem in &finding.problems {
        app.out.line(format_args!("  {}", visible(problem)))?;
    }
    match finding.repair {
        Some(repair) if !finding.repaired => app.out.line(format_args!("  would {repair}")),
        _ => Ok(()),
    }
}

/// What can be seen without changing anything.
fn examine(well: &Well) -> Result<Vec<Finding>> {
    let file = match well.engine.integrity() {
        Ok(found) => found,
        Err(error) => vec![error.to_string()],
    };
    // Permissions have a check of their own.
    let file: Vec<String> =
        file.into_iter().filter(|line| !line.starts_with("others can read")).collect();
    let mut damaged = Vec::new();
    let filter = Filter { place: Place::Anywhere, ..Filter::default() };
    for standing in well.sessions(Query { filter, ..Query::default() }) {
        let standing = standing?;
        if let Some(damage) = &standing.damage {
            let (id, seq, what) = (&standing.head.id, damage.seq, &damage.what);
            damaged.push(format!("{id} at seq {seq}: {what}"));
        }
    }
    let stale = well.engine.stale_leases()?.into_iter();
    let stale = stale.map(|(id, holder)| format!("{id}: {holder} died without giving it back"));
    Ok(vec![
        match file.iter().any(|line: &String| line.contains("search")) {
            true => Finding::new("store", file).repairable("build the search index anew"),
            false => Finding::new("store", file),
        },
        Finding::new("sessions", damaged).repairable("rebuild their heads from their events"),
        Finding::new("leases", stale.collect()).repairable("take them back").harmless(),
    ])
}

fn repair(findings: &mut [Finding], app: &App) {
    // A store that cannot be opened for writing has a finding of its own.
    let Ok(well) = app.existing(Access::Write) else { return };
    // Searches do so anyway; whoever repairs saves them the time.
    let _ = well.engine.catch_up();
    let whole = || well.engine.integrity().is_ok_and(|found| found.is_empty());
    for finding in findings.iter_mut().filter(|finding| finding.repair.is_some()) {
        finding.repaired = match finding.check {
            "store" => well.engine.rebuild_search().is_ok() && whole(),
            "sessions" => said(rebuild(&well)),
            "leases" => said(take_back(&well)),
            _ => finding.repaired,
        };
    }
}

/// What a repair came to; why it failed is told.
fn said(repaired: Result<bool>) -> bool {
    repaired.unwrap_or_else(|failure| {
        note(format_args!("error: {failure}"));
        false
    })
}

/// Rebuilds every session that is known to be damaged. Says whether all are sound now.
fn rebuild(well: &Well) -> Result<bool> {
    let mut sound = true;
    for id in every(well)? {
        if damaged(well, &id)? {
            let verdict = well.store().repair(&id)?;
            if let Some(damage) = &verdict.damage {
                let readable = damage.seq.prev();
                note(format_args!(
                    "{id} stays damaged at seq {}; 1 to {readable} can be read",
                    damage.seq
                ));
            }
            sound &= verdict.is_sound();
        }
    }
    Ok(sound)
}

fn damaged(well: &Well, id: &SessionId) -> Result<bool> {
    Ok(well.standing(id)?.damage.is_some())
}

/// Takes every stale lease back, and records the runs that they stood for as interrupted.
fn take_back(well: &Well) -> Result<bool> {
    let mut all = true;
    for (id, _) in well.engine.stale_leases()? {
        let recorded = well.hold(&id).and_then(|session| {
            let head = session.standing()?.head;
            // Held by us, what the dead one left says that it runs.
            match head.status == Status::Running && head.driver == Driver::Own {
                true => session.append(INTERRUPTED).map(drop),
                false => Ok(()),
            }
        });
        if let Err(error) = recorded {
            note(format_args!("{id}: {error}"));
            all = false;
        }
    }
    Ok(all)
}

/// What is recorded of a run whose process died.
const INTERRUPTED: StatusChanged =
    StatusChanged { status: Status::Interrupted, reason: Some(StopReason::Crashed), error: None };

/// The store can be written to: nobody keeps it locked, and it is not read-only.
fn lock(app: &App) -> Finding {
    // A write of nothing takes the lock and gives it back.
    let tried = app.existing(Access::Write).and_then(|well| Ok(well.store().restore(&[])?));
    let problems = match tried {
        Err(error) => vec![error.to_string()],
        Ok(_) => Vec::new(),
    };
    Finding::new("lock", problems)
}

/// The configuration can be read.
fn configuration(app: &App) -> Finding {
    Finding::new("config", app.config_fault.iter().cloned().collect())
}

/// The store's folder and files are the user's alone.
fn permissions(store: &Path, repair: bool) -> Finding {
    let mut problems = Vec::new();
    let mut paths = vec![(store.to_owned(), 0o700)];
    match fs::read_dir(store) {
        Ok(entries) => {
            let files = entries.flatten().filter(|it| it.file_type().is_ok_and(|it| it.is_file()));
            paths.extend(files.map(|entry| (entry.path(), 0o600)));
        }
        Err(error) => problems.push(format!("{}: {error}", store.display())),
    }
    let mut repaired = repair && problems.is_empty();
    for (path, wanted) in paths {
        let Ok(meta) = fs::metadata(&path) else { continue };
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            problems.push(format!("{} has mode {mode:03o}, not {wanted:03o}", path.display()));
            let private = fs::Permissions::from_mode(wanted);
            repaired &= repair && fs::set_permissions(&path, private).is_ok();
        }
    }
    let repaired = repaired && !problems.is_empty();
    Finding { repaired, ..Finding::new("permissions", problems).repairable("close them to others") }
}

/// Every known store is still there.
fn registry(app: &App, repair: bool) -> Finding {
    let check = "known stores";
    let stores = match app.registry().map(|registry| (registry.all(), registry)) {
        None => return Finding::new(check, Vec::new()),
        Some((Err(error), _)) => {
            return Finding::new(check, vec![format!("the list cannot be read: {error}")])
                .harmless();
        }
        Some((Ok(stores), registry)) => (stores, registry),
    };
    let (stores, registry) = stores;
    let gone = stores.iter().filter(|store| !store.join("stepwell.db").exists());
    let gone: Vec<_> = gone.cloned().collect();
    let repaired = repair && gone.iter().all(|store| registry.remove(store).is_ok());
    let problems: Vec<String> =
        gone.iter().map(|store| format!("{} is gone", store.display())).collect();
    let repaired = repaired && !problems.is_empty();
    let finding = Finding::new(check, problems).repairable("forget them").harmless();
    Finding { repaired, ..finding }
}

/// Git does not see the store.
fn ignored(app: &App, repair: bool) -> Finding {
    let problems = match app.place.is_ignored() {
        Ok(true) => Vec::new(),
        Ok(false) => vec!["git would see the store".to_owned()],
        Err(error) => vec![format!(".gitignore cannot be read: {error}")],
    };
    let hide = || stepwell::hide_from_git(&app.place.store).and_then(|_| app.place.ignore());
    let repaired = !problems.is_empty() && repair && hide().is_ok();
    let finding = Finding::new("gitignore", problems).repairable("hide it from git");
    Finding { repaired, ..finding.harmless() }
}
