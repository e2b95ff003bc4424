//! Kill -9 at every failpoint and at random moments, and what is left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stepwell::SessionId;
use stepwell::failpoint::FAILPOINTS;
use stepwell::sqlite::SqliteStore;
use stepwell_torture::{Line, Rng};

use crate::child::{TortureProcess, torture, was_killed};
use crate::ledger::{Depth, Ledger};
use crate::{rounds, seed};

/// After this many kills a new session is used, because every kill reads the whole session
/// again.
const KILLS_PER_SESSION: u64 = 10;

#[test]
fn an_acknowledged_event_survives_300_kills_at_every_failpoint_and_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let (reopened, open) = std::thread::scope(|scope| {
        let reopened = Killer::new(folder.path(), "reopened", StoreUse::Reopens);
        let open = Killer::new(folder.path(), "open", StoreUse::StaysOpen);
        let (reopened, open) = (scope.spawn(|| reopened.run()), scope.spawn(|| open.run()));
        (reopened.join(), open.join())
    });
    let (reopened, open) = (reopened.unwrap(), open.unwrap());
    let kills = reopened.kills + open.kills;
    eprintln!(
        "crash: {kills} kills ({} at failpoints, {} at random); {} events acknowledged and kept; \
         {} appends landed unacknowledged",
        reopened.at_points + open.at_points,
        kills - reopened.at_points - open.at_points,
        reopened.ledger.events() + open.ledger.events(),
        reopened.landed + open.landed,
    );
    assert!(kills >= 300 || rounds() < 12, "{kills} kills are not enough");
}

/// How the test itself uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreUse {
    /// Opens it after each kill: the store recovers from its log alone.
    Reopens,
    /// Keeps it open all the time: the killed process leaves locks and shared memory to a
    /// running one.
    StaysOpen,
}

struct Killer {
    folder: PathBuf,
    name: &'static str,
    store_use: StoreUse,
    store: Option<SqliteStore>,
    rng: Rng,
    ledger: Ledger,
    kills: u64,
    at_points: u64,
    landed: u64,
}

/// How a process is killed.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// By itself, when it passes a failpoint for the nth time.
    At(&'static str, u64),
    /// By the test: after this many lines, and this time.
    After(u64, Duration),
}

impl Killer {
    fn new(folder: &Path, name: &'static str, store_use: StoreUse) -> Self {
        Self {
            folder: folder.join(name),
            name,
            store_use,
            store: None,
            rng: Rng::new(seed() ^ store_use as u64),
            ledger: Ledger::default(),
            kills: 0,
            at_points: 0,
            landed: 0,
        }
    }

    fn run(mut self) -> Self {
        for round in 0..rounds().div_ceil(2) {
            for point in FAILPOINTS {
                // Early, when each operation runs for the first time, and later anywhere.
                let max = match *point {
                    "open.before_link" | "open.after_link" => 1,
                    point if point.starts_with("search") || point.starts_with("purge") => 2,
                    _ => 30,
                };
                let n = (round + 1).min(3).min(max);
                let n = if round < 3 { n } else { self.rng.between(1, max) };
                self.kill(Death::At(point, n));
            }
            for _ in 0..14 {
                let death = self.random_death();
                self.kill(death);
            }
        }
        let store = self.store.take();
        drop(store);
        let store = SqliteStore::open(&self.folder).unwrap();
        if let Err(what) = self.ledger.check(&store, Depth::Whole) {
            panic!("{}, seed {}, at the end: {what}", self.name, seed());
        }
        self
    }

    fn random_death(&mut self) -> Death {
        let lines = self.rng.below(50);
        Death::After(lines, Duration::from_micros(self.rng.below(4_000)))
    }

    fn kill(&mut self, death: Death) {
        let fresh = match death {
            Death::At(point, _) => point.starts_with("open"),
            // Processes that create the store are killed, too.
            Death::After(..) => self.rng.one_in(7),
        };
        let result = if fresh { self.kill_creator(death) } else { self.kill_writer(death) };
        if let Err(what) = result {
            let (name, seed, kills) = (self.name, seed(), self.kills);
            panic!("{name}, seed {seed}, kill {kills}, {death:?}: {what}");
        }
    }

    /// Kills a process that creates its own store.
    fn kill_creator(&mut self, death: Death) -> Result<(), String> {
        let folder = self.folder.with_extension(format!("new-{}", self.kills));
        let death = match death {
            Death::After(_, time) => Death::After(0, time * 3),
            at @ Death::At(..) => at,
        };
        let mut ledger = Ledger::default();
        let session: SessionId = "new".parse().unwrap();
        self.run_and_kill(&folder, &session, death, &mut ledger)?;
        let seed = self.rng.next_u64();
        let store = SqliteStore::open(&folder).map_err(|error| format!("opening: {error}"))?;
        ledger.resume(&store, &session, seed)?;
        ledger.check(&store, Depth::Whole)?;
        drop(store);
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())
    }

    /// Kills a process that writes to the store that all rounds share.
    fn kill_writer(&mut self, death: Death) -> Result<(), String> {
        let session = format!("s{}", self.kills / KILLS_PER_SESSION);
        let session: SessionId = session.parse().unwrap();
        let mut ledger = std::mem::take(&mut self.ledger);
        let folder = self.folder.clone();
        self.run_and_kill(&folder, &session, death, &mut ledger)?;
        let token = self.rng.next_u64();
        if self.store.is_none() {
            let opened = SqliteStore::open(&folder);
            self.store = Some(opened.map_err(|error| format!("opening: {error}"))?);
        }
        let store = self.store.as_ref().unwrap();
        // A lease of a dead process is taken over at once, without waiting for its end.
        self.landed += u64::from(ledger.resume(store, &session, token)?);
        if self.store_use == StoreUse::Reopens {
            self.store = None;
        }
        self.ledger = ledger;
        Ok(())
    }

    fn run_and_kill(
        &mut self,
        folder: &Path,
        session: &SessionId,
        death: Death,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        let process = TortureProcess::start(&mut self.command(folder, session, death));
        let mut record = |line: Line| ledger.record(&line);
        let (rest, status) = match death {
            Death::At(..) => process.finish(),
            Death::After(lines, time) => {
                (0..lines).map_while(|_| process.next()).for_each(&mut record);
                process.next_within(time).map(&mut record);
                process.kill()
            }
        };
        rest.into_iter().for_each(record);
        if !was_killed(status) {
            return Err(format!("the process was not killed: {status}"));
        }
        self.kills += 1;
        self.at_points += u64::from(matches!(death, Death::At(..)));
        Ok(())
    }

    fn command(&mut self, folder: &Path, session: &SessionId, death: Death) -> Command {
        let mut command = torture("write", folder);
        command
            .arg(session.as_str())
            .arg(format!("{}-{}", self.name, self.kills))
            .arg(self.rng.next_u64().to_string());
        if let Death::At(point, n) = death {
            command.arg(point).arg(n.to_string());
        }
        command
    }
}
