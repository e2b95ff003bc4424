//! Messages to a session whose runner is killed again and again: each is in the view once, in
//! order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use rustix::process::Signal;
use stepwell::{Event, Lane, Seq, SessionId, Status, Stepwell};
use stepwell_torture::{Asker, Person, Said, Task};

use crate::talker::{Talker, TestEnv};
use crate::{number, timed};

/// How many processes send messages.
const SPEAKERS: u64 = 8;

/// How many answers a script has for each kill: more than come before it.
const ANSWERS: u64 = 80;

/// A script of answers that continue the work, or that end it.
fn script(kills: u64, answer: impl Fn(u64) -> String) -> String {
    (0..ANSWERS * kills).fold(String::new(), |mut script, n| {
        writeln!(script, "- {}", answer(n)).unwrap();
        script
    })
}

/// Waits until a session has this many more events.
fn wait_for(well: &Stepwell, id: &SessionId, from: Seq, more: u64) {
    let mut seq = from;
    while seq.get() < from.get() + more {
        seq = well.store().wait_after(id, seq, Duration::from_secs(60)).unwrap();
    }
}

#[test]
fn each_word_is_in_the_view_once_and_in_order_however_often_the_runner_is_killed() {
    let words = number("STEPWELL_TORTURE_WORDS", 1_000);
    let kills = number("STEPWELL_TORTURE_KILLS", 50);
    let env = TestEnv::new(Asker::Agent, None);
    // Each answer reads another file, because an agent that repeats itself is stopped.
    env.file(
        "script.yaml",
        &script(kills, |n| {
            format!("{{calls: [{{tool: read_file, arguments: {{path: f{n}}}}}], delay_ms: 2}}")
        }),
    );
    let (mut runner, id) = env.start(Asker::Agent, Person::Watches);
    let well = env.well();
    let speaker = |n| env.talker(Task::Say { session: id.clone(), words: format!("speaker {n}") });
    let mut speakers: Vec<Talker> = (0..SPEAKERS).map(speaker).collect();
    let ((), took) = timed(|| {
        let mut said = 0;
        for kill in 0..kills {
            let head = well.info(&id).unwrap().head.seq;
            // Messages come while it works, and while it starts.
            while said < words * (kill + 1) / kills {
                speakers[usize::try_from(said % SPEAKERS).unwrap()].go();
                said += 1;
            }
            // It dies a little later each time, so that it dies at every stage.
            wait_for(&well, &id, head, 8 + kill % 11);
            runner.signal(Signal::KILL);
            runner.last_words();
            runner = env.resume(&id, Person::Watches);
        }
        speakers.into_iter().for_each(|speaker| drop(speaker.rest()));
        runner.signal(Signal::KILL);
        runner.last_words();
    });
    // The last run reads the rest, and is done.
    env.file("script.yaml", &script(kills, |_| "{text: Done.}".to_owned()));
    let last = env.resume(&id, Person::Watches).rest();
    assert_eq!(last, [Said::Ended(Status::Success)]);
    println!("{words} words, {kills} kills: {took:?}");
    check(&env, &well, &id, words);
}

/// Compares the view with the messages.
fn check(env: &TestEnv, well: &Stepwell, id: &SessionId, words: u64) {
    let said: Vec<(Seq, String)> = env
        .events(|event| match event.event {
            Event::Said(said) => Some((event.seq, said.text)),
            _ => None,
        })
        .into_iter()
        .map(|(_, said)| said)
        .collect();
    assert_eq!(u64::try_from(said.len()).unwrap(), words);
    // The messages that took in a queued one.
    let taking: BTreeMap<Seq, Seq> = env
        .events(|event| match event.event {
            Event::Message(message) => Some((event.seq, message.said?)),
            _ => None,
        })
        .into_iter()
        .map(|(_, pair)| pair)
        .collect();
    let view = well.lock(id).unwrap().view(&Lane::main()).unwrap();
    let shown = view.messages.into_iter();
    let heard: Vec<(Seq, String)> =
        shown.filter_map(|it| Some((*taking.get(&it.seq)?, it.message.text()))).collect();
    assert_eq!(heard, said, "each once, in the order in which it was said");
}
