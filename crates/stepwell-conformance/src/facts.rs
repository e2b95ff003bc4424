//! Claims about keyed events, found without reading the log.

use stepwell::model::{
    Change, Checkpoint, Edited, Failure, Kind, Permission, Question, Step, Task,
};
use stepwell::{Error, Event, Lane, Seq};

use crate::claims::claims;
use crate::harness::{id, say, seqs};
use crate::{Fixture, Harness};

claims! { $ facts = facts_claims for Fixture:
    facts_of_a_kind_come_in_order,
    facts_of_several_kinds_come_in_order_together,
    events_without_a_key_are_no_facts,
    only_an_edit_of_the_goal_or_of_pins_is_a_fact,
    no_kinds_give_no_facts,
    facts_of_a_fork_include_the_shared_ones_up_to_its_point,
    facts_of_no_session_are_an_error,
    facts_are_read_whole,
}

fn task(name: &str) -> Task {
    Task { id: name.to_owned(), ..Task::default() }
}

fn allow(rule: &str) -> Permission {
    Permission::new(rule, true)
}

fn facts<F: Fixture>(w: &Harness<F>, name: &str, kinds: &[Kind]) -> Vec<u64> {
    seqs(&w.store().keyed_events(&id(name), kinds).unwrap())
}

fn facts_of_a_kind_come_in_order<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, task("z"));
    w.add(&lease, say("x"));
    w.add(&lease, allow("sh"));
    w.add(&lease, task("a"));
    w.add(&lease, task("z"));
    assert_eq!(facts(w, "a", &[Kind::Task]), [2, 5, 6]);
    assert_eq!(facts(w, "a", &[Kind::Permission]), [4]);
    assert!(facts(w, "a", &[Kind::Gate]).is_empty());
}

fn facts_of_several_kinds_come_in_order_together<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, task("t"));
    w.add(&lease, allow("sh"));
    w.add(&lease, task("t"));
    let kinds = [Kind::Permission, Kind::Task];
    assert_eq!(facts(w, "a", &kinds), [2, 3, 4]);
}

fn events_without_a_key_are_no_facts<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("x"));
    let step = Step { lane: Lane::main(), n: 1 };
    w.add(&lease, step);
    let failure = Failure { message: "x".to_owned() };
    w.add(&lease, failure);
    w.add(&lease, task("t"));
    assert_eq!(facts(w, "a", Kind::ALL), [5]);
}

fn only_an_edit_of_the_goal_or_of_pins_is_a_fact<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let label = Edited { label: Change::Set("l".to_owned()), ..Edited::default() };
    let goal = Edited { goal: Change::Clear, ..Edited::default() };
    let pin = Edited { pin_messages: [Seq::FIRST].into(), ..Edited::default() };
    w.edit("a", label);
    w.edit("a", goal);
    w.edit("a", pin);
    assert_eq!(facts(w, "a", &[Kind::Edited]), [3, 4]);
}

fn no_kinds_give_no_facts<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, task("t"));
    assert!(facts(w, "a", &[]).is_empty());
}

fn facts_of_a_fork_include_the_shared_ones_up_to_its_point<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, task("shared")); // 2
    w.add(&lease, task("parent's")); // 3
    let fork = w.fork("a", 2, "f"); // 3
    w.add(&fork, task("own")); // 4
    let found = w.store().keyed_events(&id("f"), &[Kind::Task]).unwrap();
    assert_eq!(seqs(&found), [2, 4]);
    assert_eq!(found[1].event, Event::Task(task("own")));
    assert_eq!(facts(w, "a", &[Kind::Task]), [2, 3]);
}

fn facts_of_no_session_are_an_error<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().keyed_events(&id("a"), &[Kind::Task]).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

fn facts_are_read_whole<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let long = Question::new("q", "why? ".repeat(20_000));
    let checkpoint = Checkpoint { name: "before".to_owned(), ..Checkpoint::default() };
    w.add(&lease, long);
    w.add(&lease, checkpoint);
    let kinds = [Kind::Question, Kind::Checkpoint];
    let found = w.store().keyed_events(&id("a"), &kinds).unwrap();
    assert_eq!(found, w.log("a")[1..]);
}
