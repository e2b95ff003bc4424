//! Claims about gates: each takes one answer.

use stepwell::model::{Answer, Gate, GateAnswered, Grant, Restored, Rewound, Scope, Undone};
use stepwell::{Error, Event, Seq};

use crate::claims::claims;
use crate::harness::id;
use crate::{Fixture, Harness};

claims! { $ gate = gate_claims for Fixture:
    an_open_gate_is_counted_until_it_is_answered,
    a_gate_takes_one_answer,
    a_gate_that_was_not_asked_takes_no_answer,
    a_gate_is_asked_again_only_once_it_was_answered,
    of_two_gates_each_takes_its_own_answer,
    a_gate_asked_and_answered_in_one_append_is_closed,
    a_gate_that_a_rewind_dropped_takes_no_answer,
    a_gate_whose_answer_a_rewind_dropped_is_open_again,
    a_gate_whose_rewind_was_undone_stays_answered,
    a_fork_answers_its_own_copy_of_an_open_gate,
    an_answer_is_read_back_as_it_was_meant,
    an_answer_given_at_what_a_rewind_dropped_is_refused,
}

fn ask(id: &str) -> Gate {
    Gate::new(id, format!("{id}?"))
}

fn answer(id: &str, who: &str) -> GateAnswered {
    GateAnswered::new(id, "yes", who)
}

fn an_answer_is_read_back_as_it_was_meant<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let answers = [
        Answer::ALLOW_ONCE,
        Answer::Allow { scope: Grant::Always },
        Answer::deny("too risky"),
        Answer::Deny { reason: None, never: true },
        Answer::Text("yes".to_owned()),
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        let gate = format!("g{n}");
        w.add(&lease, ask(&gate));
        let given = GateAnswered::new(gate, answer, "ann@laptop");
        let at = w.tell("a", given.clone()).unwrap().last;
        let log = w.log("a");
        let Event::GateAnswered(read) = &log[at.get() as usize - 1].event else { panic!("{at}") };
        assert_eq!(*read, given);
    }
    w.assert_folded("a");
}

fn an_answer_given_at_what_a_rewind_dropped_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    let seen = w.add(&lease, crate::harness::say("more")).last;
    w.add(&lease, rewind(2));
    let why = refused(w, answer("g", "ann").having_seen(seen));
    assert!(why.contains("has been rewound"), "{why}");
    w.tell("a", answer("g", "ann").having_seen(Seq::new(2))).unwrap();
    assert_eq!(w.head("a").open_gates, 0);
}

fn rewind(to: u64) -> Rewound {
    Rewound { to: Seq::new(to), scope: Scope::Chat, restored: Restored::default() }
}

fn refused<F: Fixture>(w: &Harness<F>, answer: GateAnswered) -> String {
    match w.tell("a", answer).unwrap_err() {
        Error::Illegal { session, kind, why } => {
            assert_eq!((session, &*kind), (id("a"), "gate_answered"));
            why
        }
        error => panic!("{error}"),
    }
}

fn an_open_gate_is_counted_until_it_is_answered<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.add(&lease, ask("h"));
    assert_eq!(w.head("a").open_gates, 2);
    w.tell("a", answer("g", "ann")).unwrap();
    assert_eq!(w.head("a").open_gates, 1);
    w.assert_folded("a");
}

fn a_gate_takes_one_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.tell("a", answer("g", "ann")).unwrap();
    let why = refused(w, answer("g", "bob"));
    assert!(why.contains("ann"), "{why}");
    assert_eq!(w.log("a").len(), 3);
}

fn a_gate_that_was_not_asked_takes_no_answer<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let why = refused(w, answer("g", "ann"));
    assert!(why.contains("unknown gate"), "{why}");
}

fn a_gate_is_asked_again_only_once_it_was_answered<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    let error = w.try_add(&lease, vec![ask("g").into()]).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
    w.tell("a", answer("g", "ann")).unwrap();
    w.add(&lease, ask("g"));
    assert_eq!(w.head("a").open_gates, 1);
    w.tell("a", answer("g", "bob")).unwrap();
    let why = refused(w, answer("g", "cy"));
    assert!(why.contains("bob"), "{why}");
    assert_eq!(w.head("a").open_gates, 0);
    w.assert_folded("a");
}

fn of_two_gates_each_takes_its_own_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.add(&lease, ask("h"));
    w.tell("a", answer("h", "ann")).unwrap();
    refused(w, answer("h", "bob"));
    w.tell("a", answer("g", "bob")).unwrap();
    assert_eq!(w.head("a").open_gates, 0);
}

fn a_gate_asked_and_answered_in_one_append_is_closed<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let events = vec![ask("g").into(), answer("g", "default").into()];
    w.try_add(&lease, events).unwrap();
    assert_eq!(w.head("a").open_gates, 0);
    refused(w, answer("g", "ann"));
}

fn a_gate_that_a_rewind_dropped_takes_no_answer<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.add(&lease, rewind(1));
    assert_eq!(w.head("a").open_gates, 0);
    refused(w, answer("g", "ann"));
    w.add(&lease, ask("g"));
    w.tell("a", answer("g", "ann")).unwrap();
    w.assert_folded("a");
}

fn a_gate_whose_answer_a_rewind_dropped_is_open_again<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.tell("a", answer("g", "ann")).unwrap();
    w.add(&lease, rewind(2));
    assert_eq!(w.head("a").open_gates, 1);
    w.tell("a", answer("g", "bob")).unwrap();
    assert_eq!(w.head("a").open_gates, 0);
    w.assert_folded("a");
}

fn a_gate_whose_rewind_was_undone_stays_answered<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.tell("a", answer("g", "ann")).unwrap();
    w.add(&lease, rewind(2));
    let undo =
        Undone::Rewind { of: Seq::new(4), scope: Scope::Chat, restored: Restored::default() };
    w.add(&lease, undo);
    assert_eq!(w.head("a").open_gates, 0);
    let why = refused(w, answer("g", "bob"));
    assert!(why.contains("ann"), "{why}");
}

fn a_fork_answers_its_own_copy_of_an_open_gate<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, ask("g"));
    w.fork("a", 2, "f");
    assert_eq!(w.head("f").open_gates, 1);
    w.tell("f", answer("g", "ann")).unwrap();
    assert_eq!((w.head("f").open_gates, w.head("a").open_gates), (0, 1));
    w.tell("a", answer("g", "bob")).unwrap();
    w.assert_folded("a");
    w.assert_folded("f");
}
