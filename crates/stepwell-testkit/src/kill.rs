//! Kills the process at a chosen point, as `kill -9` would.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The points passed so far, and the one at which to kill the process.
static RUN: Mutex<Run> = Mutex::new(Run { kind: String::new(), n: 0, passed: BTreeMap::new() });

struct Run {
    kind: String,
    n: usize,
    passed: BTreeMap<String, usize>,
}

/// Kills this process when it passes a point of this kind for the `n`th time; never, if `n` is 0.
pub fn at(kind: impl Into<String>, n: usize) {
    *RUN.lock() = Run { kind: kind.into(), n, passed: BTreeMap::new() };
}

/// Passes a point of a kind, or dies there.
pub fn pass(kind: &str) {
    let mut run = RUN.lock();
    let passed = run.passed.entry(kind.to_owned()).or_default();
    *passed += 1;
    if *passed == run.n && kind == run.kind {
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    }
}

/// How often points of a kind were passed.
pub fn passed(kind: &str) -> usize {
    RUN.lock().passed.get(kind).copied().unwrap_or_default()
}
