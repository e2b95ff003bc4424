//! Rewinds a session for the crash tests, and kills itself at a given point.
//!
//! `stepwell-test-rewinder WORKSPACE SEQ N`: rewinds the session `run` to SEQ, or, if SEQ is 0,
//! undoes the last rewind; an interrupted rewind is finished first. At the Nth stage the process
//! kills itself, as `kill -9` would; with 0 it survives. A further argument `left` leaves files
//! alone that someone else changed during an interrupted rewind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use stepwell::log::Redactor;
use stepwell::model::Scope;
use stepwell::{Seq, Stepwell};
use stepwell_files::plan::Others;
use stepwell_files::rewind::{Done, Foreign, Stage, finish_rewind, rewind};
use stepwell_files::rewind_history::{Asked, Direction, MOVES, taking_back};
use stepwell_files::safe_path::Root;
use stepwell_files::site::Site;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let root = PathBuf::from(&args[1]);
    let (to, n): (u64, usize) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let foreign = match args.get(4).map(String::as_str) {
        Some("left") => Foreign::Left,
        _ => Foreign::Refused,
    };
    let mut seen = 0;
    let mut watch = |_: Stage<'_>| {
        seen += 1;
        if seen == n {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
        }
    };
    let redactor = Redactor::new([]);
    let site = Site {
        root: &Root::new(root.clone()),
        redactor: &redactor,
        max_file: 1 << 20,
        whose: &stepwell_files::site::Own,
    };
    let well = Stepwell::open(root.join(".stepwell")).unwrap();
    let mut session = well.lock(&"run".parse().unwrap()).unwrap();
    if let Some(settled) = finish_rewind(&mut session, &site, foreign, &mut watch).unwrap() {
        assert!(settled.seq.is_some() && settled.left.is_empty(), "{settled:?}");
        return;
    }
    let others = Others::Respected;
    let asked = match to {
        0 => {
            let head = session.info().unwrap().head.seq;
            taking_back(&session.keyed_events(&MOVES).unwrap(), head, Direction::Back, others)
                .unwrap()
        }
        to => Asked { to: Seq::new(to), scope: Scope::Both, undoes: None, others },
    };
    let done = rewind(&mut session, &site, &asked, &mut watch).unwrap();
    assert!(matches!(done, Done::Rewound { .. }), "{done:?}");
}
