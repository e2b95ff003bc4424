//! Claims about queries over several sessions at once.

use stepwell::model::{Change, Edited, Kind, Question, StatusChanged, Task};
use stepwell::store::{Excerpt, LOOK_BACK};
use stepwell::{Error, Event, Recorded, Result, SessionId, Status};

use crate::claims::claims;
use crate::harness::{id, say, seqs, targets};
use crate::{Fixture, Harness};

claims! { $ several = several_claims for Fixture:
    excerpts_hold_beginnings_keyed_events_and_the_last_of_a_kind,
    an_excerpt_of_a_fork_goes_through_what_it_shares,
    an_event_too_far_back_is_not_looked_for,
    excerpts_are_read_whole,
    a_session_that_is_not_there_hides_no_other,
    subagents_of_several_sessions_are_found_all_the_way_down,
}

const WANTED: Excerpt<'_> = Excerpt { keyed: &[Kind::Task, Kind::Question], last: &[Kind::Status] };

fn task(name: &str) -> Task {
    Task { id: name.to_owned(), ..Task::default() }
}

fn status(status: Status) -> StatusChanged {
    StatusChanged { status, reason: None, error: None }
}

fn excerpts<F: Fixture>(w: &Harness<F>, names: &[&str]) -> Vec<Result<Vec<Recorded>>> {
    let ids: Vec<SessionId> = names.iter().map(|name| id(name)).collect();
    w.store().excerpts(&ids, &WANTED).unwrap()
}

fn excerpts_hold_beginnings_keyed_events_and_the_last_of_a_kind<F: Fixture>(w: &mut Harness<F>) {
    let a = w.begin("a");
    w.add(&a, task("t")); // 2
    w.add(&a, status(Status::Failed)); // 3
    w.add(&a, say("x"));
    w.add(&a, status(Status::Running)); // 5
    w.add(&a, say("y"));
    let b = w.begin("b");
    w.add(&b, say("z"));
    let found: Vec<Vec<u64>> =
        excerpts(w, &["b", "a", "b"]).into_iter().map(|it| seqs(&it.unwrap())).collect();
    assert_eq!(found, [vec![1], vec![1, 2, 5], vec![1]]);
    assert!(excerpts(w, &[]).is_empty());
}

fn an_excerpt_of_a_fork_goes_through_what_it_shares<F: Fixture>(w: &mut Harness<F>) {
    let a = w.begin("a");
    w.add(&a, task("shared")); // 2
    w.add(&a, status(Status::Running)); // 3
    w.add(&a, task("parent's")); // 4
    let f = w.fork("a", 3, "f"); // 4
    w.add(&f, task("own")); // 5
    let g = w.fork("f", 4, "g"); // 5
    w.add(&g, say("x"));
    let log = |name: &str, seqs: &[u64]| -> Vec<Recorded> {
        let wanted = |event: &Recorded| seqs.contains(&event.seq.get());
        w.log(name).into_iter().filter(wanted).collect()
    };
    let mut found = excerpts(w, &["f", "g"]).into_iter().map(Result::unwrap);
    assert_eq!(found.next().unwrap(), log("f", &[1, 2, 3, 4, 5]));
    assert_eq!(found.next().unwrap(), log("g", &[1, 2, 3, 5]));
}

fn an_event_too_far_back_is_not_looked_for<F: Fixture>(w: &mut Harness<F>) {
    let a = w.begin("a");
    w.add(&a, status(Status::Running)); // 2
    let label = |n: usize| Edited { label: Change::Set(n.to_string()), ..Edited::default() };
    (1..LOOK_BACK).for_each(|n| w.edit("a", label(n)));
    let last = |w: &Harness<F>| seqs(excerpts(w, &["a"])[0].as_ref().unwrap());
    assert_eq!(last(w), [1, 2]);
    w.edit("a", label(0));
    assert_eq!(last(w), [1]);
}

fn excerpts_are_read_whole<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b"] {
        let lease = w.begin(name);
        let text = format!("why {name}? ").repeat(20_000);
        w.add(&lease, Question::new("q", text));
    }
    for (name, found) in ["a", "b"].into_iter().zip(excerpts(w, &["a", "b"])) {
        assert_eq!(found.unwrap(), w.log(name));
    }
}

fn a_session_that_is_not_there_hides_no_other<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let found = excerpts(w, &["nobody", "a"]);
    assert!(matches!(found[0], Err(Error::NoSession(_))), "{found:?}");
    assert!(matches!(found[1].as_ref().unwrap()[0].event, Event::Created(_)));
}

fn subagents_of_several_sessions_are_found_all_the_way_down<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b", "other"] {
        let lease = w.begin(name);
        w.add(&lease, say("x"));
    }
    w.subagent("a", "a1");
    w.tick();
    w.subagent("a", "a2");
    w.subagent("a1", "a11");
    w.subagent("b", "b1");
    w.subagent("other", "o1");
    w.fork("a", 1, "fork");
    let below = |names: &[&str]| -> Vec<String> {
        let ids: Vec<SessionId> = names.iter().map(|name| id(name)).collect();
        let found = w.store().below(&ids).unwrap();
        found.into_iter().map(|it| it.head.id.to_string()).collect()
    };
    let mut all = below(&["a", "b", "fork", "nobody"]);
    let place = |name: &str| all.iter().position(|it| it == name);
    assert!(place("a1") < place("a2"), "{all:?}");
    all.sort_unstable();
    assert_eq!(all, ["a1", "a11", "a2", "b1"]);
    assert!(below(&[]).is_empty());
    w.store().maintain().trash(&targets(&["b"])).unwrap();
    assert_eq!(below(&["b"]), ["b1"], "wherever it is kept");
}
