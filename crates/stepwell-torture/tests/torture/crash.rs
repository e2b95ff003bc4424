//! Kill -9, at every failpoint and at random, and what is left.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stepwell::{FAILPOINTS, SessionId, SqliteStore};
use stepwell_torture::{Dice, Line};

use crate::child::{Victim, torture, was_killed};
use crate::ledger::{Depth, Ledger};
use crate::{rounds, seed, timed};

/// A store that takes longer than this to open and to take the next append waited
/// for something: a lease lasts 30 s, a busy store is given up after 10.
const AT_ONCE: Duration = Duration::from_secs(5);

/// After so many kills a new session begins, so that reading all of one again after
/// every kill does not come to dominate.
const KILLS_A_SESSION: u64 = 10;

#[test]
fn an_acknowledged_event_survives_300_kills_at_every_failpoint_and_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, beside) = std::thread::scope(|scope| {
        let alone = scope.spawn(|| Killer::new(folder.path(), "alone", Test::Reopens).run());
        let beside = scope.spawn(|| Killer::new(folder.path(), "beside", Test::StaysOpen).run());
        (alone.join(), beside.join())
    });
    let (alone, beside) = (alone.unwrap(), beside.unwrap());
    let kills = alone.kills + beside.kills;
    eprintln!(
        "crash: {kills} kills ({} at failpoints, {} at random); {} events acknowledged and kept; \
         {} appends landed unacknowledged",
        alone.at_points + beside.at_points,
        kills - alone.at_points - beside.at_points,
        alone.ledger.events() + beside.ledger.events(),
        alone.landed + beside.landed,
    );
    assert!(kills >= 300 || rounds() < 12, "{kills} kills are not enough");
}

/// What the test itself does with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// Opens it after each kill: the store recovers from its log alone.
    Reopens,
    /// Has it open all the time: the dead process leaves locks and shared memory to
    /// one that lives.
    StaysOpen,
}

struct Killer {
    folder: PathBuf,
    name: &'static str,
    test: Test,
    store: Option<SqliteStore>,
    dice: Dice,
    ledger: Ledger,
    kills: u64,
    at_points: u64,
    landed: u64,
}

/// How a process is to die.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// By its own hand, at the nth time that it passes a point.
    At(&'static str, u64),
    /// From outside: after so many lines, and so long after.
    After(u64, Duration),
}

impl Killer {
    fn new(folder: &Path, name: &'static str, test: Test) -> Self {
        Self {
            folder: folder.join(name),
            name,
            test,
            store: None,
            dice: Dice::new(seed() ^ test as u64),
            ledger: Ledger::default(),
            kills: 0,
            at_points: 0,
            landed: 0,
        }
    }

    fn run(mut self) -> Self {
        for round in 0..rounds().div_ceil(2) {
            for point in FAILPOINTS {
                // Early, when each thing is done for the first time, and anywhere.
                let most = match *point {
                    "open.before_link" | "open.after_link" => 1,
                    point if point.starts_with("search") || point.starts_with("purge") => 2,
                    _ => 30,
                };
                let n = (round + 1).min(3).min(most);
                let n = if round < 3 { n } else { self.dice.between(1, most) };
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
        let lines = self.dice.below(50);
        Death::After(lines, Duration::from_micros(self.dice.below(4_000)))
    }

    fn kill(&mut self, death: Death) {
        let fresh = match death {
            Death::At(point, _) => point.starts_with("open"),
            // A process that makes the store is worth killing too.
            Death::After(..) => self.dice.one_in(7),
        };
        let result = if fresh { self.kill_maker(death) } else { self.kill_writer(death) };
        if let Err(what) = result {
            let (name, seed, kills) = (self.name, seed(), self.kills);
            panic!("{name}, seed {seed}, kill {kills}, {death:?}: {what}");
        }
    }

    /// Kills a process that makes a store of its own.
    fn kill_maker(&mut self, death: Death) -> Result<(), String> {
        let folder = self.folder.with_extension(format!("new-{}", self.kills));
        let death = match death {
            Death::After(_, time) => Death::After(0, time * 3),
            at @ Death::At(..) => at,
        };
        let mut ledger = Ledger::default();
        let session: SessionId = "new".parse().unwrap();
        self.let_die(&folder, &session, death, &mut ledger)?;
        let seed = self.dice.roll();
        let (store, time) = timed(|| SqliteStore::open(&folder));
        let store = store.map_err(|error| format!("opening: {error}"))?;
        at_once(time)?;
        ledger.go_on(&store, &session, seed)?;
        ledger.check(&store, Depth::Whole)?;
        drop(store);
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())
    }

    /// Kills a process that writes to the store of all rounds.
    fn kill_writer(&mut self, death: Death) -> Result<(), String> {
        let session = format!("s{}", self.kills / KILLS_A_SESSION);
        let session: SessionId = session.parse().unwrap();
        let mut ledger = std::mem::take(&mut self.ledger);
        let folder = self.folder.clone();
        self.let_die(&folder, &session, death, &mut ledger)?;
        let token = self.dice.roll();
        let (result, time) = timed(|| {
            if self.store.is_none() {
                let opened = SqliteStore::open(&folder);
                self.store = Some(opened.map_err(|error| format!("opening: {error}"))?);
            }
            let store = self.store.as_ref().unwrap();
            ledger.go_on(store, &session, token)
        });
        self.landed += u64::from(result?);
        at_once(time)?;
        if self.test == Test::Reopens {
            self.store = None;
        }
        self.ledger = ledger;
        Ok(())
    }

    fn let_die(
        &mut self,
        folder: &Path,
        session: &SessionId,
        death: Death,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        let victim = Victim::start(&mut self.command(folder, session, death));
        let mut hear = |line: Line| ledger.hear(&line);
        let (rest, status) = match death {
            Death::At(..) => victim.finish(),
            Death::After(lines, time) => {
                (0..lines).map_while(|_| victim.next()).for_each(&mut hear);
                victim.next_within(time).map(&mut hear);
                victim.kill()
            }
        };
        rest.into_iter().for_each(hear);
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
            .arg(self.dice.roll().to_string());
        if let Death::At(point, n) = death {
            command.arg(point).arg(n.to_string());
        }
        command
    }
}

fn at_once(time: Duration) -> Result<(), String> {
    if time < AT_ONCE { Ok(()) } else { Err(format!("it took {time:?} to go on")) }
}
