//! The coordinator on real threads. Nothing sleeps: every test steers its drains through channels.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use super::{Coordinator, Failure, Interrupt, Outcome, Refused, lock};

const KEY: u32 = 7;

/// Long enough that only a defect lets it pass.
const FOREVER: Duration = Duration::from_secs(20);

type Sessions = Coordinator<u32, &'static str>;

/// What a test has a drain do next.
enum Act {
    Succeed,
    Fail,
    Panic,
    PanicWithoutMessage,
    /// Reports whether it has been interrupted, and succeeds.
    Look,
    /// Waits for the interrupt, reports whether it came, and succeeds or fails.
    SucceedOnInterrupt,
    FailOnInterrupt,
}

/// The test's end of a coordinator whose drains do as they are told.
struct Stage {
    sessions: Sessions,
    started: Receiver<()>,
    acts: Sender<Act>,
    interrupted: Receiver<bool>,
}

impl Stage {
    fn new() -> Self {
        let (announce, started) = mpsc::channel();
        let (acts, next) = mpsc::channel();
        let (report, interrupted) = mpsc::channel();
        let next = Mutex::new(next);
        let sessions = Coordinator::new(move |_: &u32, interrupt: &Interrupt| {
            announce.send(()).unwrap();
            let act = lock(&next).recv_timeout(FOREVER).unwrap();
            match act {
                Act::Succeed => Ok(()),
                Act::Fail => Err("disk full"),
                Act::Panic => panic!("drain {} broke", 1),
                Act::PanicWithoutMessage => std::panic::panic_any(5),
                Act::Look => {
                    report.send(interrupt.is_requested()).unwrap();
                    Ok(())
                }
                Act::SucceedOnInterrupt => {
                    report.send(interrupt.wait(FOREVER)).unwrap();
                    Ok(())
                }
                Act::FailOnInterrupt => {
                    report.send(interrupt.wait(FOREVER)).unwrap();
                    Err("stopped halfway")
                }
            }
        });
        Self { sessions, started, acts, interrupted }
    }

    /// Returns once the next drain is running.
    fn await_start(&self) {
        self.started.recv_timeout(FOREVER).expect("a drain starts");
    }

    fn act(&self, act: Act) {
        self.acts.send(act).unwrap();
    }

    fn await_waiting(&self, count: usize) {
        while lock(&self.sessions.board).keys.waiting(&KEY) != count {
            thread::yield_now();
        }
    }

    /// What `count` callers of `run` learn from the drain that is running when `act` is played.
    fn joined_by(&self, count: usize, act: Act) -> Vec<Outcome<&'static str>> {
        let sessions = &self.sessions;
        thread::scope(|scope| {
            let run = |_| scope.spawn(|| sessions.run(&KEY));
            let runners: Vec<_> = (0..count).map(run).collect();
            self.await_waiting(count);
            self.act(act);
            runners.into_iter().map(|runner| runner.join().unwrap()).collect()
        })
    }

    fn await_idle(&self) {
        self.sessions.await_idle(&KEY).unwrap();
        assert!(!self.sessions.is_busy(&KEY));
        assert!(self.started.try_recv().is_err(), "a drain nobody asked for");
    }
}

fn failed(error: &'static str) -> Outcome<&'static str> {
    Outcome::Failed(Arc::new(Failure::Error(error)))
}

#[test]
fn a_run_drains_an_idle_key_and_leaves_it_idle() {
    let stage = Stage::new();
    assert!(!stage.sessions.is_busy(&KEY));
    assert_eq!(stage.joined_by(1, Act::Succeed), [Outcome::Done]);
    assert!(!stage.sessions.is_busy(&KEY));
    assert!(lock(&stage.sessions.board).threads.is_empty());
}

#[test]
fn everyone_who_joined_a_drain_learns_of_its_one_failure() {
    let stage = Stage::new();
    let outcomes = stage.joined_by(4, Act::Fail);
    stage.await_start();
    stage.await_idle();
    let [Outcome::Failed(first), rest @ ..] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(**first, Failure::Error("disk full"));
    for outcome in rest {
        assert!(matches!(outcome, Outcome::Failed(other) if Arc::ptr_eq(first, other)));
    }
}

#[test]
fn a_panic_is_a_failure_and_the_key_goes_on() {
    let stage = Stage::new();
    stage.sessions.wake(&KEY).unwrap();
    stage.await_start();
    stage.sessions.wake(&KEY).unwrap();
    let panicked = |message: &str| Outcome::Failed(Arc::new(Failure::Panicked(message.to_owned())));
    assert_eq!(stage.joined_by(1, Act::Panic), [panicked("drain 1 broke")]);
    stage.await_start();
    let outcomes = stage.joined_by(2, Act::PanicWithoutMessage);
    assert_eq!(outcomes, vec![panicked("a value that is not a string"); 2]);
    stage.await_idle();
    assert_eq!(stage.joined_by(1, Act::Succeed), [Outcome::Done]);
}

#[test]
fn wakes_during_a_drain_are_followed_by_exactly_one_more_however_it_ended() {
    for act in [Act::Succeed, Act::Fail, Act::Panic, Act::SucceedOnInterrupt] {
        let stage = Stage::new();
        stage.sessions.wake(&KEY).unwrap();
        stage.await_start();
        for _ in 0..5 {
            stage.sessions.wake(&KEY).unwrap();
        }
        if matches!(act, Act::SucceedOnInterrupt) {
            assert!(stage.sessions.interrupt(&KEY));
        }
        stage.act(act);
        stage.await_start();
        assert!(stage.sessions.is_busy(&KEY));
        stage.act(Act::Succeed);
        stage.await_idle();
    }
}

#[test]
fn a_run_joins_the_running_drain_although_a_wake_is_pending() {
    let stage = Stage::new();
    stage.sessions.wake(&KEY).unwrap();
    stage.await_start();
    stage.sessions.wake(&KEY).unwrap();
    assert_eq!(stage.joined_by(1, Act::Fail), [failed("disk full")]);
    stage.await_start();
    assert_eq!(stage.joined_by(1, Act::Succeed), [Outcome::Done]);
    stage.await_idle();
}

#[test]
fn an_interrupt_stops_the_running_drain_whatever_it_returns() {
    let stage = Stage::new();
    for act in [Act::Look, Act::SucceedOnInterrupt, Act::FailOnInterrupt] {
        stage.sessions.wake(&KEY).unwrap();
        stage.await_start();
        assert!(stage.sessions.interrupt(&KEY));
        assert_eq!(stage.joined_by(2, act), vec![Outcome::Interrupted; 2]);
        assert_eq!(stage.interrupted.recv(), Ok(true));
        stage.await_idle();
    }
}

#[test]
fn an_interrupt_cuts_a_wait_short() {
    let stage = Stage::new();
    stage.sessions.wake(&KEY).unwrap();
    stage.await_start();
    stage.act(Act::SucceedOnInterrupt);
    assert!(stage.sessions.interrupt(&KEY));
    assert_eq!(stage.interrupted.recv(), Ok(true));
}

#[test]
fn an_interrupt_does_not_reach_the_next_drain() {
    let stage = Stage::new();
    assert!(!stage.sessions.interrupt(&KEY), "the key is idle");
    assert_eq!(stage.joined_by(1, Act::Look), [Outcome::Done]);
    assert_eq!(stage.interrupted.recv(), Ok(false));
    stage.await_start();

    stage.sessions.wake(&KEY).unwrap();
    stage.await_start();
    stage.sessions.wake(&KEY).unwrap();
    assert!(stage.sessions.interrupt(&KEY));
    stage.act(Act::Look);
    assert_eq!(stage.interrupted.recv(), Ok(true));
    stage.await_start();
    assert_eq!(stage.joined_by(1, Act::Look), [Outcome::Done]);
    assert_eq!(stage.interrupted.recv(), Ok(false));
}

#[test]
fn a_wait_that_nobody_interrupts_times_out() {
    assert!(!Interrupt::default().wait(Duration::from_millis(1)));
    assert!(!Interrupt::default().is_requested());
}

#[test]
fn different_keys_drain_in_parallel() {
    let both = Barrier::new(2);
    let sessions = Coordinator::new(move |_: &u32, _: &Interrupt| {
        both.wait();
        Ok::<(), ()>(())
    });
    sessions.wake(&1).unwrap();
    assert_eq!(sessions.run(&2), Outcome::Done);
    sessions.await_idle(&1).unwrap();
}

#[test]
fn a_shutdown_stops_what_runs_refuses_the_rest_and_names_the_wakes_it_drops() {
    let stage = Stage::new();
    stage.sessions.wake(&KEY).unwrap();
    stage.await_start();
    stage.sessions.wake(&KEY).unwrap();
    let sessions = &stage.sessions;
    thread::scope(|scope| {
        let runner = scope.spawn(|| sessions.run(&KEY));
        stage.await_waiting(1);
        stage.act(Act::SucceedOnInterrupt);
        assert_eq!(stage.sessions.shutdown(), [KEY]);
        assert_eq!(stage.interrupted.recv(), Ok(true));
        assert!(!stage.sessions.is_busy(&KEY));
        assert_eq!(runner.join().unwrap(), Outcome::Interrupted);
    });
    assert_eq!(stage.sessions.run(&KEY), Outcome::Refused(Refused::ShutDown));
    assert_eq!(stage.sessions.wake(&KEY), Err(Refused::ShutDown));
    assert!(!stage.sessions.interrupt(&KEY));
    stage.await_idle();
    assert!(stage.sessions.shutdown().is_empty());
}

#[test]
fn a_drop_waits_until_the_drains_and_what_they_captured_are_gone() {
    for _ in 0..200 {
        let captured = Arc::new(AtomicUsize::new(0));
        let ended = Arc::clone(&captured);
        let (announce, started) = mpsc::channel();
        let sessions = Coordinator::new(move |_: &u32, interrupt: &Interrupt| {
            announce.send(()).unwrap();
            assert!(interrupt.wait(FOREVER));
            ended.fetch_add(1, Ordering::SeqCst);
            Ok::<(), ()>(())
        });
        for key in 0..3 {
            sessions.wake(&key).unwrap();
        }
        for _ in 0..3 {
            started.recv_timeout(FOREVER).unwrap();
        }
        drop(sessions);
        assert_eq!(captured.load(Ordering::SeqCst), 3);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}

#[test]
fn a_drain_that_would_wait_for_itself_is_refused() {
    let own: Arc<OnceLock<Weak<Sessions>>> = Arc::default();
    let (report, answers) = mpsc::channel();
    let inside = Arc::clone(&own);
    let sessions = Arc::new(Coordinator::new(move |key: &u32, _: &Interrupt| {
        let sessions = inside.get().and_then(Weak::upgrade).unwrap();
        if *key == KEY {
            report.send((sessions.run(key), sessions.await_idle(key))).unwrap();
            assert_eq!(sessions.run(&(KEY + 1)), Outcome::Done, "another key is fine");
        }
        Ok(())
    }));
    own.set(Arc::downgrade(&sessions)).unwrap();
    assert_eq!(sessions.run(&KEY), Outcome::Done);
    let (run, idle) = answers.recv().unwrap();
    assert_eq!(run, Outcome::Refused(Refused::OwnDrain));
    assert_eq!(idle, Err(Refused::OwnDrain));
}

#[test]
fn a_coordinator_can_be_dropped_by_its_own_drain() {
    let own: Arc<OnceLock<Weak<Sessions>>> = Arc::default();
    let inside = Arc::clone(&own);
    let (announce, events) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let sessions = Arc::new(Coordinator::new(move |key: &u32, interrupt: &Interrupt| {
        let sessions = inside.get().and_then(Weak::upgrade).unwrap();
        sessions.wake(key).unwrap();
        announce.send("holds it").unwrap();
        lock(&released).recv_timeout(FOREVER).unwrap();
        drop(sessions);
        assert!(interrupt.is_requested());
        announce.send("dropped it").unwrap();
        Ok(())
    }));
    own.set(Arc::downgrade(&sessions)).unwrap();
    sessions.wake(&KEY).unwrap();
    assert_eq!(events.recv_timeout(FOREVER), Ok("holds it"));
    drop(sessions);
    release.send(()).unwrap();
    assert_eq!(events.recv_timeout(FOREVER), Ok("dropped it"));
    // The drain's end of the channel goes with the drain: its thread has come to an end.
    assert_eq!(events.recv_timeout(FOREVER), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_key_whose_thread_cannot_start_is_refused_and_stays_idle() {
    let mut stage = Stage::new();
    let usual = stage.sessions.thread;
    // More than any address space holds.
    stage.sessions.thread = || thread::Builder::new().stack_size(1 << 48);
    assert!(matches!(stage.sessions.wake(&KEY), Err(Refused::NoThread(_))));
    assert!(!stage.sessions.is_busy(&KEY));
    assert!(matches!(stage.sessions.run(&KEY), Outcome::Refused(Refused::NoThread(_))));
    stage.await_idle();
    stage.sessions.thread = usual;
    assert_eq!(stage.joined_by(1, Act::Succeed), [Outcome::Done]);
}

#[test]
fn no_item_is_left_undrained_by_eight_threads_that_wake_run_and_interrupt() {
    const THREADS: usize = 8;
    const WAKES: usize = 1000;
    const KEYS: usize = 3;

    #[derive(Default)]
    struct Inbox {
        waiting: AtomicUsize,
        drained: AtomicUsize,
        draining: AtomicBool,
    }
    let inboxes: Arc<[Inbox; KEYS]> = Arc::default();
    let drains = AtomicUsize::new(0);
    let work = Arc::clone(&inboxes);
    let sessions = Coordinator::new(move |key: &usize, _: &Interrupt| {
        let inbox = &work[*key];
        assert!(!inbox.draining.swap(true, Ordering::SeqCst), "two drains of one key");
        inbox.drained.fetch_add(inbox.waiting.swap(0, Ordering::SeqCst), Ordering::SeqCst);
        let count = drains.fetch_add(1, Ordering::SeqCst);
        inbox.draining.store(false, Ordering::SeqCst);
        assert!(count % 97 != 96, "every now and then a drain panics");
        if count % 5 == 4 { Err("every now and then a drain fails") } else { Ok(()) }
    });
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sessions, inboxes) = (&sessions, &inboxes);
            scope.spawn(move || {
                for wake in 0..WAKES {
                    let key = (thread + wake) % KEYS;
                    inboxes[key].waiting.fetch_add(1, Ordering::SeqCst);
                    sessions.wake(&key).unwrap();
                    match wake % 10 {
                        3 => drop(sessions.interrupt(&key)),
                        6 => drop(sessions.run(&key)),
                        9 => sessions.await_idle(&key).unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
    let mut drained = 0;
    for (key, inbox) in inboxes.iter().enumerate() {
        sessions.await_idle(&key).unwrap();
        assert_eq!(inbox.waiting.load(Ordering::SeqCst), 0, "left undrained for {key}");
        drained += inbox.drained.load(Ordering::SeqCst);
    }
    assert_eq!(drained, THREADS * WAKES);
    assert!(lock(&sessions.board).threads.is_empty());
}

#[test]
fn a_coordinator_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Coordinator<String, std::io::Error>>();
}
