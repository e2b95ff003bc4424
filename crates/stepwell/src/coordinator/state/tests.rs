//! Every order in which calls and the ends of drains can arrive, played through the pure core.
//!
//! A few actors each have a script of calls. [`explore`] plays every interleaving of them, with every
//! drain ending at every possible moment, well or badly. What must hold is read off the history of
//! events, never off the core's own fields.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Demand, Ending, Failure, Keys, Next, Outcome, Refused};

type Key = char;
const KEYS: [Key; 2] = ['a', 'b'];
type Script = Vec<(Key, Call)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Run,
    Wake,
    Interrupt,
    AwaitIdle,
    Close,
    /// The same, at a moment when the system starts no thread.
    RunWithoutThread,
    WakeWithoutThread,
}
use Call::{AwaitIdle, Close, Interrupt, Run, RunWithoutThread, Wake, WakeWithoutThread};

/// Names one drain: no two tokens are equal unless one is a clone of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token(u64);

impl Default for Token {
    fn default() -> Self {
        thread_local!(static NEXT: Cell<u64> = const { Cell::new(0) });
        Self(NEXT.replace(NEXT.get() + 1))
    }
}

/// Names one call that blocks: the actor and its place in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Caller {
    actor: usize,
    call: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Started(Key, Token),
    Joined(Key, Caller),
    Woken(Key),
    Interrupted(Key),
    AwaitedBy(Key, Caller),
    Closed,
    Unserved(Key),
    Ended(Key),
    Idle(Key),
}

#[derive(Clone, Debug)]
struct Actor<'a> {
    script: &'a [(Key, Call)],
    next: usize,
    /// The key of the `run` or `await_idle` it has not returned from.
    blocked: Option<Key>,
}

#[derive(Clone, Debug)]
struct World<'a> {
    keys: Keys<Key, Caller, Token>,
    actors: Vec<Actor<'a>>,
    history: Vec<Event>,
}

/// What an exploration came across.
#[derive(Default)]
struct Seen {
    interleavings: u64,
    states: u64,
    situations: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn note(&mut self, situation: &'static str, happened: bool) {
        if happened {
            *self.situations.entry(situation).or_default() += 1;
        }
    }
}

impl<'a> World<'a> {
    fn new(scripts: &'a [Script]) -> Self {
        let actor = |script: &'a Script| Actor { script, next: 0, blocked: None };
        Self { keys: Keys::new(), actors: scripts.iter().map(actor).collect(), history: Vec::new() }
    }

    /// The running drain of `key`, and what has happened since it started.
    fn running(&self, key: Key) -> Option<(Token, &[Event])> {
        for (at, event) in self.history.iter().enumerate().rev() {
            match *event {
                Event::Started(of, token) if of == key => {
                    return Some((token, &self.history[at + 1..]));
                }
                Event::Ended(of) if of == key => return None,
                _ => {}
            }
        }
        None
    }

    /// Those who have awaited `key` since it was last idle, and have to wait still.
    fn idlers(&self, key: Key) -> Vec<Caller> {
        let idle = self.history.iter().rposition(|event| *event == Event::Idle(key));
        let since = &self.history[idle.map_or(0, |at| at + 1)..];
        let mut started = false;
        let mut idlers = Vec::new();
        for event in since {
            match *event {
                Event::Started(of, _) if of == key => started = true,
                Event::AwaitedBy(of, caller) if of == key && started => idlers.push(caller),
                _ => {}
            }
        }
        idlers
    }

    fn closed(&self) -> bool {
        self.history.contains(&Event::Closed)
    }

    fn woken(&self, key: Key) -> bool {
        self.running(key).is_some_and(|(_, since)| since.contains(&Event::Woken(key)))
    }

    fn interrupted(&self, key: Key) -> bool {
        let hit = |event: &Event| [Event::Interrupted(key), Event::Closed].contains(event);
        self.running(key).is_some_and(|(_, since)| since.iter().any(hit))
    }

    fn call(&mut self, actor: usize, seen: &mut Seen) {
        let place = self.actors[actor].next;
        let (key, call) = self.actors[actor].script[place];
        self.actors[actor].next += 1;
        let caller = Caller { actor, call: place };
        match call {
            Run | RunWithoutThread => self.run(key, caller, call == Run, seen),
            Wake | WakeWithoutThread => self.wake(key, call == Wake, seen),
            Interrupt => self.interrupt(key, seen),
            AwaitIdle => self.await_idle(key, caller, seen),
            Close => self.close(seen),
        }
    }

    fn run(&mut self, key: Key, caller: Caller, has_thread: bool, seen: &mut Seen) {
        let running = self.running(key).is_some();
        seen.note("a run joins although a wake is pending", self.woken(key));
        seen.note("a run joins a drain that is interrupted", self.interrupted(key));
        match self.keys.run(&key, caller) {
            Err(refused) => return self.refused(refused, seen),
            Ok(Demand::Recorded) => assert!(running, "joined nothing: {self:?}"),
            Ok(Demand::Start(_)) if !has_thread => return self.abandon(key, seen),
            Ok(Demand::Start(token)) => self.start(key, token),
        }
        assert!(!self.closed(), "accepted after close: {self:?}");
        self.history.push(Event::Joined(key, caller));
        self.actors[caller.actor].blocked = Some(key);
    }

    fn wake(&mut self, key: Key, has_thread: bool, seen: &mut Seen) {
        let running = self.running(key).is_some();
        seen.note("wakes coalesce", self.woken(key));
        seen.note("a wake after the interrupt", self.interrupted(key));
        match self.keys.wake(&key) {
            Err(refused) => return self.refused(refused, seen),
            Ok(Demand::Recorded) => {
                assert!(running, "recorded with nothing: {self:?}");
                self.history.push(Event::Woken(key));
            }
            Ok(Demand::Start(_)) if !has_thread => return self.abandon(key, seen),
            Ok(Demand::Start(token)) => {
                self.history.push(Event::Woken(key));
                self.start(key, token);
            }
        }
        assert!(!self.closed(), "accepted after close: {self:?}");
    }

    fn interrupt(&mut self, key: Key, seen: &mut Seen) {
        let running = self.running(key).map(|(token, _)| token);
        seen.note("an interrupt of an idle key", running.is_none());
        seen.note("an interrupt while a wake is pending", self.woken(key));
        assert_eq!(self.keys.interrupt(&key), running, "hit another drain: {self:?}");
        if running.is_some() {
            self.history.push(Event::Interrupted(key));
        }
    }

    fn await_idle(&mut self, key: Key, caller: Caller, seen: &mut Seen) {
        let idle = self.running(key).is_none();
        seen.note("an await of an idle key", idle);
        let given_back = self.keys.await_idle(&key, caller);
        assert_eq!(given_back, idle.then_some(caller), "{self:?}");
        if !idle {
            self.history.push(Event::AwaitedBy(key, caller));
            self.actors[caller.actor].blocked = Some(key);
        }
    }

    fn close(&mut self, seen: &mut Seen) {
        let already = self.closed();
        let mut stopping = self.keys.close();
        stopping.sort_by_key(|stopping| stopping.key);
        let running: Vec<_> = self.busy().into_iter().filter_map(|k| self.running(k)).collect();
        let expected: Vec<Token> = running.into_iter().map(|(token, _)| token).collect();
        let fired: Vec<Token> = stopping.iter().map(|stopping| stopping.token).collect();
        assert_eq!(fired, expected, "not exactly what runs was stopped: {self:?}");
        for stopping in &stopping {
            let dropped = self.woken(stopping.key) && !already;
            assert_eq!(stopping.wake_dropped, dropped, "{self:?}");
            seen.note("a shutdown drops a wake", dropped);
            if dropped {
                self.history.push(Event::Unserved(stopping.key));
            }
        }
        self.history.push(Event::Closed);
    }

    fn start(&mut self, key: Key, token: Token) {
        assert!(self.running(key).is_none(), "two drains at once: {self:?}");
        let reused = |event: &Event| matches!(event, Event::Started(_, other) if *other == token);
        assert!(!self.history.iter().any(reused), "an old token: {self:?}");
        self.history.push(Event::Started(key, token));
    }

    fn abandon(&mut self, key: Key, seen: &mut Seen) {
        assert!(self.running(key).is_none(), "two drains at once: {self:?}");
        self.keys.abandon(&key);
        seen.note("a start fails", true);
    }

    fn refused(&self, refused: Refused, seen: &mut Seen) {
        assert!(self.closed() && refused == Refused::ShutDown, "{refused:?}: {self:?}");
        seen.note("a demand is refused", true);
    }

    fn end(&mut self, key: Key, well: bool, seen: &mut Seen) {
        let (token, since) = self.running(key).expect("only a running drain is ended");
        let joined = |event: &Event| match *event {
            Event::Joined(of, caller) if of == key => Some(caller),
            _ => None,
        };
        let waiters: Vec<Caller> = since.iter().filter_map(joined).collect();
        let failure = Arc::new(Failure::Error(token));
        let ending: Ending<Token> = if well { Ok(()) } else { Err(Arc::clone(&failure)) };
        let outcome = match well {
            _ if self.interrupted(key) => Outcome::Interrupted,
            true => Outcome::Done,
            false => Outcome::Failed(failure),
        };
        let (woken, idlers) = (self.woken(key), self.idlers(key));
        seen.note("a failure while a wake is pending", woken && !well);
        seen.note("an interrupted drain with a wake pending ends", woken && self.interrupted(key));
        seen.note("an idler outlasts a drain", woken && !idlers.is_empty());
        seen.note("several wait for one drain", waiters.len() > 1);

        let mut ended = self.keys.ended(&key, &ending);

        assert_eq!(ended.outcome, outcome, "the outcome of another drain: {self:?}");
        ended.waiters.sort_unstable();
        assert_eq!(ended.waiters, sorted(waiters), "not exactly those who joined: {self:?}");
        self.history.push(Event::Ended(key));
        self.release(&ended.waiters);
        match ended.next {
            Next::Drain(token) => {
                assert!(woken && !self.closed(), "a drain nobody asked for: {self:?}");
                self.start(key, token);
            }
            Next::Idle(let_go) => {
                assert!(!woken || self.closed(), "a wake was lost: {self:?}");
                assert_eq!(sorted(let_go.clone()), sorted(idlers), "{self:?}");
                self.history.push(Event::Idle(key));
                self.release(&let_go);
            }
        }
    }

    /// Each of these returns from the call it is blocked in, which it can do only once.
    fn release(&mut self, callers: &[Caller]) {
        for caller in callers {
            let actor = &mut self.actors[caller.actor];
            let waits = actor.blocked.is_some() && actor.next == caller.call + 1;
            assert!(waits, "{caller:?} was answered twice: {:?}", self.history);
            self.actors[caller.actor].blocked = None;
        }
    }

    fn busy(&self) -> Vec<Key> {
        KEYS.into_iter().filter(|key| self.running(*key).is_some()).collect()
    }

    /// What holds in every state, whatever came before.
    fn check(&self) {
        let mut entries: Vec<Key> = self.keys.active.keys().copied().collect();
        entries.sort_unstable();
        assert_eq!(entries, self.busy(), "an idle key has an entry, or a busy one none: {self:?}");
        for actor in &self.actors {
            if let Some(key) = actor.blocked {
                assert!(self.running(key).is_some(), "waits for nothing: {self:?}");
                assert!(self.keys.is_busy(&key), "{self:?}");
            }
        }
    }

    /// What holds when every script is through and every drain has ended.
    fn check_the_end(&self) {
        let through =
            |actor: &Actor<'_>| actor.blocked.is_none() && actor.next == actor.script.len();
        assert!(self.actors.iter().all(through), "somebody still waits: {self:?}");
        assert!(self.keys.active.is_empty(), "memory is left behind: {self:?}");
        for (at, event) in self.history.iter().enumerate() {
            let Event::Woken(key) = *event else { continue };
            let served = |later: &Event| matches!(later, Event::Started(of, _) | Event::Unserved(of) if *of == key);
            assert!(self.history[at..].iter().any(served), "a wake was lost: {self:?}");
        }
    }
}

fn sorted(mut callers: Vec<Caller>) -> Vec<Caller> {
    callers.sort_unstable();
    callers
}

/// Plays everything that can happen next, and so on to the end.
fn explore(world: &World<'_>, seen: &mut Seen) {
    seen.states += 1;
    world.check();
    let mut stuck = true;
    let mut branch = |happens: &dyn Fn(&mut World<'_>, &mut Seen)| {
        stuck = false;
        let mut next = world.clone();
        happens(&mut next, seen);
        explore(&next, seen);
    };
    for (at, actor) in world.actors.iter().enumerate() {
        if actor.blocked.is_none() && actor.next < actor.script.len() {
            branch(&|world, seen| world.call(at, seen));
        }
    }
    for key in world.busy() {
        branch(&|world, seen| world.end(key, true, seen));
        branch(&|world, seen| world.end(key, false, seen));
    }
    if stuck {
        seen.interleavings += 1;
        world.check_the_end();
    }
}

fn on(key: Key, calls: &[Call]) -> Script {
    calls.iter().map(|call| (key, *call)).collect()
}

/// Fails if a situation that the scripts are there for never came up.
fn assert_came_up(seen: &Seen, situations: &[&str]) {
    for situation in situations {
        assert!(seen.situations.contains_key(situation), "never came up: {situation}");
    }
}

fn report(name: &str, seen: &Seen) {
    println!("{name}: {} interleavings, {} states", seen.interleavings, seen.states);
}

#[test]
fn every_interleaving_of_four_busy_actors_keeps_the_contract() {
    let scripts = [
        on('a', &[Run, Wake]),
        on('a', &[Wake, Wake]),
        on('a', &[Interrupt, AwaitIdle]),
        on('a', &[Run]),
    ];
    let mut seen = Seen::default();
    explore(&World::new(&scripts), &mut seen);
    report("four actors", &seen);
    assert!(seen.interleavings > 50_000, "{}", seen.interleavings);
    assert_came_up(
        &seen,
        &[
            "a run joins although a wake is pending",
            "a run joins a drain that is interrupted",
            "wakes coalesce",
            "a wake after the interrupt",
            "an interrupt of an idle key",
            "an interrupt while a wake is pending",
            "an await of an idle key",
            "a failure while a wake is pending",
            "an interrupted drain with a wake pending ends",
            "an idler outlasts a drain",
            "several wait for one drain",
        ],
    );
}

const CALLS: [Call; 5] = [Run, Wake, Interrupt, AwaitIdle, Close];

/// Any two scripts of two calls, with any third from `thirds`.
fn explore_any_three(thirds: &[Script]) -> Seen {
    let mut seen = Seen::default();
    let pairs = two_calls();
    for (at, first) in pairs.iter().enumerate() {
        for second in &pairs[at..] {
            for third in thirds {
                let scripts = [first.clone(), second.clone(), third.clone()];
                explore(&World::new(&scripts), &mut seen);
            }
        }
    }
    seen
}

fn two_calls() -> Vec<Script> {
    CALLS.iter().flat_map(|one| CALLS.map(|two| on('a', &[*one, two]))).collect()
}

#[test]
fn every_interleaving_of_any_three_short_scripts_keeps_the_contract() {
    let seen = explore_any_three(&[on('a', &[Wake])]);
    report("any three short scripts", &seen);
    assert!(seen.interleavings > 100_000, "{}", seen.interleavings);
    assert_came_up(&seen, &["a demand is refused", "a shutdown drops a wake"]);
}

#[test]
#[ignore = "tens of millions of interleavings take minutes; run after a change to the core"]
fn every_interleaving_of_any_three_scripts_of_two_calls_keeps_the_contract() {
    let seen = explore_any_three(&two_calls());
    report("any three scripts of two calls", &seen);
    assert!(seen.interleavings > 10_000_000, "{}", seen.interleavings);
}

#[test]
fn every_interleaving_of_two_keys_keeps_the_contract_for_each() {
    let scripts = [
        vec![('a', Run), ('b', Wake)],
        vec![('b', Run), ('a', Interrupt)],
        vec![('a', Wake), ('b', AwaitIdle)],
    ];
    let mut seen = Seen::default();
    explore(&World::new(&scripts), &mut seen);
    let closing = [vec![('a', Wake), ('b', Wake), ('a', Close)], vec![('b', Wake), ('a', Run)]];
    explore(&World::new(&closing), &mut seen);
    report("two keys", &seen);
    assert!(seen.interleavings > 10_000, "{}", seen.interleavings);
}

#[test]
fn every_interleaving_with_a_start_that_fails_leaves_the_key_idle() {
    let scripts = [
        on('a', &[RunWithoutThread, Run]),
        on('a', &[Wake, WakeWithoutThread]),
        on('a', &[Interrupt, AwaitIdle]),
    ];
    let mut seen = Seen::default();
    explore(&World::new(&scripts), &mut seen);
    report("failing starts", &seen);
    assert_came_up(&seen, &["a start fails"]);
}
