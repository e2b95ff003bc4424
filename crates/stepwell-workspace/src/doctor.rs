//! Looking a workspace's store over, and repairing what can be: the file, its permissions, sessions
//! that are known to be damaged, runs whose process died, and what lies around the store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stepwell::model::{Driver, StatusChanged};
use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, LedgerRows, Query, TrashScope};
use stepwell::{SessionId, Status, Stepwell, StopReason};

use crate::error::Result;
use crate::heal::heal;
use crate::notice::Notice;
use crate::registry::Registry;
use crate::workspace::Workspace;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The configuration can be read.
    Config,
    /// Every store that the user is known to have is still there.
    KnownStores,
    /// The store's folder and files are the user's alone.
    Permissions,
    /// The store can be written to.
    Lock,
    /// The store's file and its search index are sound.
    Store,
    /// No session is known to be damaged.
    Sessions,
    /// No lease is left of a process that died.
    Leases,
    /// Git does not see the store.
    Gitignore,
}

impl Check {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::KnownStores => "known stores",
            Self::Permissions => "permissions",
            Self::Lock => "lock",
            Self::Store => "store",
            Self::Sessions => "sessions",
            Self::Leases => "leases",
            Self::Gitignore => "gitignore",
        }
    }

    /// Does a problem here put data at risk?
    #[must_use]
    pub const fn is_about_data(self) -> bool {
        matches!(self, Self::Store | Self::Sessions | Self::Lock)
    }

    /// Is a problem here only untidy?
    #[must_use]
    pub const fn is_harmless(self) -> bool {
        matches!(self, Self::KnownStores | Self::Leases | Self::Gitignore)
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// What is wrong; nothing, if all is well.
    pub problems: Vec<String>,
    /// What a repair does about it.
    pub repair: Option<&'static str>,
    /// Was it repaired?
    pub repaired: bool,
}

impl Finding {
    fn new(check: Check, problems: Vec<String>) -> Self {
        Self { check, problems, repair: None, repaired: false }
    }

    fn repairable(self, how: &'static str) -> Self {
        Self { repair: Some(how).filter(|_| !self.problems.is_empty()), ..self }
    }

    /// Is something wrong that was not repaired?
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.problems.is_empty() && !self.repaired
    }
}

/// Whether what is found is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is changed.
    No,
    /// Whatever can be is repaired.
    Yes,
}

/// Remembers damage that a reader came upon, so that lists show it. A store that cannot be
/// written stays as it is.
pub fn note_damage(workspace: &Workspace, id: &SessionId) {
    if let Ok(well) = workspace.open_existing(Access::Write) {
        // Reading it again is what marks it; what it finds was told already.
        let _ = well.store().maintain().verify(id);
    }
}

/// Looks a workspace over. `config_fault` says why its configuration could not be read, if so.
///
/// # Errors
/// If the store can be opened and then not be read.
pub fn examine(
    workspace: &Workspace,
    config_fault: Option<&str>,
    repair: Repair,
) -> Result<Vec<Finding>> {
    let config = config_fault.map(ToOwned::to_owned).into_iter().collect();
    let mut findings = vec![Finding::new(Check::Config, config), known_stores(workspace, repair)];
    let place = &workspace.place;
    if !place.has_store() {
        return Ok(findings);
    }
    if place.team.is_none() {
        findings.push(permissions(&place.store, repair));
    }
    match workspace.open_existing(Access::Read) {
        Ok(well) => {
            findings.push(lock(workspace));
            findings.extend(examine_store(&well)?);
        }
        Err(error) => findings.push(Finding::new(Check::Store, vec![error.to_string()])),
    }
    if repair == Repair::Yes {
        repair_store(&mut findings, workspace);
    }
    findings.push(gitignore(workspace, repair));
    Ok(findings)
}

/// What can be seen of the store without changing anything.
fn examine_store(well: &Stepwell) -> Result<Vec<Finding>> {
    let file = match well.store().maintain().integrity() {
        Ok(found) => found,
        Err(error) => vec![error.to_string()],
    };
    // Permissions have a check of their own.
    let file: Vec<String> =
        file.into_iter().filter(|line| !line.starts_with("others can read")).collect();
    let mut damaged = Vec::new();
    for info in well.sessions(everywhere()) {
        let info = info?;
        if let Some(damage) = &info.damage {
            let (id, seq, what) = (&info.head.id, damage.seq, &damage.what);
            damaged.push(format!("{id} at seq {seq}: {what}"));
        }
    }
    let stale = well.store().maintain().stale_leases()?.into_iter();
    let stale = stale.map(|(id, holder)| format!("{id}: {holder} died without giving it back"));
    Ok(vec![
        match file.iter().any(|line: &String| line.contains("search")) {
            true => Finding::new(Check::Store, file).repairable("build the search index anew"),
            false => Finding::new(Check::Store, file),
        },
        Finding::new(Check::Sessions, damaged).repairable("rebuild their heads from their events"),
        Finding::new(Check::Leases, stale.collect()).repairable("take them back"),
    ])
}

fn everywhere() -> Query {
    let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
    let filter = Filter { place, rows, ..Filter::default() };
    Query { filter, ..Query::default() }
}

fn repair_store(findings: &mut [Finding], workspace: &Workspace) {
    // A store that cannot be opened for writing has a finding of its own.
    let Ok(well) = workspace.open_existing(Access::Write) else { return };
    // Searches do so anyway; whoever repairs saves them the time.
    let _ = well.store().maintain().catch_up(&|_| {});
    let whole = || well.store().maintain().integrity().is_ok_and(|found| found.is_empty());
    let told = |repaired: Result<bool>| {
        repaired.unwrap_or_else(|error| {
            workspace.notices.tell(Notice::RepairFailed { why: error.to_string() });
            false
        })
    };
    for finding in findings.iter_mut().filter(|finding| finding.repair.is_some()) {
        finding.repaired = match finding.check {
            Check::Store => well.store().maintain().rebuild_search().is_ok() && whole(),
            Check::Sessions => told(rebuild(&well, workspace)),
            Check::Leases => told(take_back(&well, workspace)),
            _ => finding.repaired,
        };
    }
}

/// Rebuilds every session that is known to be damaged. Says whether all are sound now.
fn rebuild(well: &Stepwell, workspace: &Workspace) -> Result<bool> {
    let known = well.sessions(everywhere()).collect::<Result<Vec<_>, _>>()?;
    let damaged = known.into_iter().filter(|info| info.damage.is_some());
    let ids: Vec<SessionId> = damaged.map(|info| info.head.id).collect();
    let mut sound = true;
    for session in ids {
        heal(well, &session, workspace)?;
        let verdict = well.store().maintain().repair(&session)?;
        sound &= verdict.is_sound();
        if let Some(damage) = verdict.damage {
            workspace.notices.tell(Notice::StaysDamaged { session, seq: damage.seq });
        }
    }
    Ok(sound)
}

/// Takes every stale lease back, and records the runs that they stood for as interrupted.
fn take_back(well: &Stepwell, workspace: &Workspace) -> Result<bool> {
    let mut all = true;
    for (id, _) in well.store().maintain().stale_leases()? {
        let recorded = well.lock(&id).and_then(|session| {
            let head = session.info()?.head;
            // Held by us, what the dead one left says that it runs.
            match head.status == Status::Running && head.driver == Driver::Own {
                true => session.append(INTERRUPTED).map(drop),
                false => Ok(()),
            }
        });
        if let Err(error) = recorded {
            workspace.notices.tell(Notice::RepairFailed { why: format!("{id}: {error}") });
            all = false;
        }
    }
    Ok(all)
}

/// What is recorded of a run whose process died.
const INTERRUPTED: StatusChanged =
    StatusChanged { status: Status::Interrupted, reason: Some(StopReason::Crashed), error: None };

fn lock(workspace: &Workspace) -> Finding {
    // A write of nothing takes the lock and gives it back.
    let tried = workspace
        .open_existing(Access::Write)
        .and_then(|well| Ok(well.store().maintain().restore(&[])?));
    Finding::new(Check::Lock, tried.err().map(|error| error.to_string()).into_iter().collect())
}

fn permissions(store: &Path, repair: Repair) -> Finding {
    let mut problems = Vec::new();
    let mut paths = vec![(store.to_owned(), 0o700)];
    match fs::read_dir(store) {
        Ok(entries) => {
            let files = entries.flatten().filter(|it| it.file_type().is_ok_and(|it| it.is_file()));
            paths.extend(files.map(|entry| (entry.path(), 0o600)));
        }
        Err(error) => problems.push(format!("{}: {error}", store.display())),
    }
    let wants = repair == Repair::Yes;
    let mut repaired = wants && problems.is_empty();
    for (path, wanted) in paths {
        let Ok(meta) = fs::metadata(&path) else { continue };
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            problems.push(format!("{} has mode {mode:03o}, not {wanted:03o}", path.display()));
            let private = fs::Permissions::from_mode(wanted);
            repaired &= wants && fs::set_permissions(&path, private).is_ok();
        }
    }
    let repaired = repaired && !problems.is_empty();
    let finding = Finding::new(Check::Permissions, problems).repairable("close them to others");
    Finding { repaired, ..finding }
}

fn known_stores(workspace: &Workspace, repair: Repair) -> Finding {
    let Some(registry) = Registry::of(&workspace.host) else {
        return Finding::new(Check::KnownStores, Vec::new());
    };
    let stores = match registry.all() {
        Ok(stores) => stores,
        Err(error) => {
            let problem = format!("the list cannot be read: {error}");
            return Finding::new(Check::KnownStores, vec![problem]);
        }
    };
    let gone: Vec<_> =
        stores.into_iter().filter(|store| !store.join("stepwell.db").exists()).collect();
    let problems: Vec<String> =
        gone.iter().map(|store| format!("{} is gone", store.display())).collect();
    let repaired = repair == Repair::Yes
        && !problems.is_empty()
        && gone.iter().all(|store| registry.remove(store).is_ok());
    let finding = Finding::new(Check::KnownStores, problems).repairable("forget them");
    Finding { repaired, ..finding }
}

fn gitignore(workspace: &Workspace, repair: Repair) -> Finding {
    let place = &workspace.place;
    let problems = match place.is_ignored() {
        Ok(true) => Vec::new(),
        Ok(false) => vec!["git would see the store".to_owned()],
        Err(error) => vec![format!(".gitignore cannot be read: {error}")],
    };
    let hide = || stepwell::sqlite::hide_from_git(&place.store).is_ok() && place.ignore().is_ok();
    let repaired = !problems.is_empty() && repair == Repair::Yes && hide();
    let finding = Finding::new(Check::Gitignore, problems).repairable("hide it from git");
    Finding { repaired, ..finding }
}
