//! Claims about search: where words are found, in which order and sessions.

use std::time::Duration;

use stepwell::log::Redactor;
use stepwell::model::{
    Edited, Failure, FileChanged, FileState, Node, NodeState, Part, Role, StatusChanged, Task,
    Text, Time,
};
use stepwell::store::query::{Family, Filter, Hit, Rank, Search, TrashScope};
use stepwell::store::{Append, Write};
use stepwell::{Created, Event, Message, Seq, Status};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ search = search_claims for Fixture:
    words_are_found_in_the_task,
    words_are_found_in_messages_and_thinking,
    words_are_found_in_calls_and_results,
    words_are_found_in_paths_and_errors,
    words_are_found_in_what_nodes_came_to,
    words_are_found_in_spilled_texts,
    a_hit_says_where_when_and_what,
    the_newest_hits_come_first,
    an_imported_event_comes_where_its_time_puts_it,
    events_of_one_moment_do_not_push_older_ones_ahead,
    ranked_hits_come_by_relevance,
    a_limit_keeps_the_first_hits,
    events_after_the_first_search_are_found,
    what_was_acknowledged_is_found_after_reopening,
    what_another_handle_wrote_is_found,
    what_each_of_many_threads_wrote_is_found_by_it_at_once,
    a_filter_holds_for_hits,
    every_condition_of_a_filter_holds_for_hits,
    a_trashed_session_is_found_only_in_the_trash,
    a_restored_session_is_found_again,
    a_purged_session_is_never_found,
    many_events_are_all_found_once,
}

fn hit<F: Fixture>(w: &Harness<F>, word: &str) -> Hit {
    let found = w.store().search(&Search::new(word), &Redactor::default()).unwrap();
    assert_eq!((found.hits.len(), found.unseen), (1, 0), "{word}: {found:?}");
    found.hits.into_iter().next().unwrap()
}

fn words_are_found_in_the_task<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "Repair the aqueduct"));
    w.make(Created::new(id("b"), "something else"));
    let hit = hit(w, "aqueduct");
    assert_eq!((hit.session, hit.seq), (id("a"), Seq::FIRST));
    assert_eq!(hit.kind, "created");
}

fn words_are_found_in_messages_and_thinking<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("a spoken cistern"));
    let thought = Part::Thinking(Text { text: "a silent viaduct".to_owned(), opaque: None });
    w.add(&lease, Message::new(Role::Assistant, vec![thought]));
    assert_eq!(hit(w, "cistern").seq, Seq::new(2));
    assert_eq!(hit(w, "viaduct").seq, Seq::new(3));
}

fn words_are_found_in_calls_and_results<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let call = Message::assistant("").calling("c1", "excavate", "{\"depth\": \"fathom\"}");
    w.add(&lease, call);
    w.add(&lease, Message::tool_result("c1", "struck groundwater"));
    assert_eq!(hit(w, "fathom").seq, Seq::new(2));
    assert_eq!(hit(w, "excavate").seq, Seq::new(2));
    assert_eq!(hit(w, "groundwater").seq, Seq::new(3));
}

fn words_are_found_in_paths_and_errors<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let file = FileChanged {
        path: "src/conduit.rs".to_owned(),
        before: FileState::Absent,
        after: FileState::Absent,
        renamed_from: Some("src/sluice.rs".to_owned()),
    };
    let failure = Failure { message: "pipe burst".to_owned() };
    let status = StatusChanged {
        status: Status::Failed,
        reason: None,
        error: Some("drought declared".to_owned()),
    };
    let task =
        Task { id: "t".to_owned(), description: "dredge the canal".to_owned(), ..Task::default() };
    let events: [Event; 4] = [file.into(), failure.into(), status.into(), task.into()];
    for event in events {
        w.add(&lease, event);
    }
    for (word, seq, kind) in [
        ("conduit", 2, "file"),
        ("sluice", 2, "file"),
        ("burst", 3, "error"),
        ("drought", 4, "status"),
        ("dredge", 5, "task"),
    ] {
        let hit = hit(w, word);
        assert_eq!((hit.seq.get(), &*hit.kind), (seq, kind), "{word}");
    }
}

/// The session of a graph may have no conversation.
fn words_are_found_in_what_nodes_came_to<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let node = |key: &str, output: Option<&str>, error: Option<&str>| Node {
        key: key.to_owned(),
        state: if error.is_some() { NodeState::Failed } else { NodeState::Done },
        output: output.map(|text| serde_json::json!({ "response": text })),
        usage: None,
        error: error.map(str::to_owned),
    };
    w.add(&lease, node("task/dig", Some("a finished aqueduct"), None));
    w.add(&lease, node("task/fill", None, Some("the cistern leaks")));
    let found = hit(w, "aqueduct");
    assert_eq!((found.session, found.seq, found.kind.as_str()), (id("a"), Seq::new(2), "node"));
    assert_eq!(hit(w, "cistern").seq, Seq::new(3));
}

fn words_are_found_in_spilled_texts<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let long = "filler ".repeat(20_000);
    w.add(&lease, say(&format!("{long} needle")));
    assert_eq!(hit(w, "needle").seq, Seq::new(2));
}

fn a_hit_says_where_when_and_what<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.tick();
    let then = w.now();
    w.add(&lease, say("a spoken cistern"));
    w.tick();
    let hit = hit(w, "cistern");
    assert_eq!((hit.session, hit.seq), (id("a"), Seq::new(2)));
    assert_eq!((hit.at, &*hit.kind), (then, "message"));
    assert_eq!(hit.snippet.text(), "a spoken cistern");
    assert_eq!(hit.snippet.matches(), std::iter::once(9..16).collect::<Vec<_>>());
}

fn the_newest_hits_come_first<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    for (n, lease) in [&a, &b, &b, &a, &b].into_iter().enumerate() {
        w.tick();
        w.add(lease, say(&format!("well {n}")));
    }
    let order = [("b", 4), ("a", 3), ("b", 3), ("b", 2), ("a", 2)];
    let order = order.map(|(name, seq)| (name.to_owned(), seq));
    assert_eq!(w.hits("well"), order);
}

fn an_imported_event_comes_where_its_time_puts_it<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    w.tick();
    w.add(&a, say("well, now"));
    assert_eq!(w.hits("well").len(), 1);
    w.add(&b, say("well, long ago").at(Time::from_micros(5_000_000)));
    let names: Vec<_> = w.hits("well").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b"]);
}

fn events_of_one_moment_do_not_push_older_ones_ahead<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    let early = w.now();
    let late = early.plus(Duration::from_secs(2));
    w.add(&a, say("well, early").at(early));
    w.add(&a, say("well, late").at(late));
    assert_eq!(w.hits("well").len(), 2);
    w.add(&b, say("well, early too").at(early));
    let first = w.hits("well").remove(0);
    assert_eq!(first, ("a".to_owned(), 3));
}

fn ranked_hits_come_by_relevance<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("well well well"));
    w.tick();
    w.add(&lease, say(&format!("well {}", "and so on ".repeat(50))));
    let search = Search { rank: Rank::Relevance, ..Search::new("well") };
    let seqs: Vec<_> = w.found(&search).into_iter().map(|(_, seq)| seq).collect();
    assert_eq!(seqs, [2, 3]);
    let seqs: Vec<_> = w.hits("well").into_iter().map(|(_, seq)| seq).collect();
    assert_eq!(seqs, [3, 2]);
}

fn a_limit_keeps_the_first_hits<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for _ in 0..5 {
        w.tick();
        w.add(&lease, say("well"));
    }
    for rank in [Rank::Newest, Rank::Relevance] {
        for limit in 0..=6 {
            let search = Search { limit, rank, ..Search::new("well") };
            assert_eq!(w.found(&search).len(), limit.min(5), "{rank:?}");
        }
    }
    let two = Search { limit: 2, ..Search::new("well") };
    assert_eq!(w.found(&two), w.hits("well")[..2]);
}

fn events_after_the_first_search_are_found<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for n in 0..5 {
        assert_eq!(w.hits("well").len(), n);
        w.add(&lease, say("well"));
        w.tick();
    }
    let fork = w.fork("a", 3, "f");
    w.add(&fork, say("well, forked"));
    assert_eq!(w.hits("well").len(), 6);
}

fn what_was_acknowledged_is_found_after_reopening<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    w.add(&lease, say("well"));
    w.reopen();
    assert_eq!(w.hits("well").len(), 1);
    w.add(&lease, say("well"));
    w.reopen();
    assert_eq!(w.hits("well").len(), 2);
}

fn what_another_handle_wrote_is_found<F: Fixture>(w: &mut Harness<F>) {
    let other = w.another();
    let lease = w.begin("a");
    assert!(w.hits("well").is_empty());
    w.add(&lease, say("well"));
    let found = other.search(&Search::new("well"), &Redactor::default()).unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(w.hits("well").len(), 1);
}

fn what_each_of_many_threads_wrote_is_found_by_it_at_once<F: Fixture>(w: &mut Harness<F>) {
    let leases: Vec<_> = (0..4).map(|n| w.begin(&format!("s{n}"))).collect();
    let other = w.another();
    let handles = [w.store(), &*other];
    std::thread::scope(|scope| {
        for (n, lease) in leases.iter().enumerate() {
            let store = handles[n % 2];
            scope.spawn(move || {
                for round in 0..8 {
                    let word = format!("word{n}x{round}");
                    let append = Append {
                        session: lease.session.clone(),
                        epoch: Some(lease.epoch),
                        expected: None,
                        events: vec![say(&word)].into(),
                    };
                    store.write(Write::Append(append)).unwrap();
                    let found = store.search(&Search::new(&word), &Redactor::default()).unwrap();
                    assert_eq!(found.hits.len(), 1, "{word}");
                }
            });
        }
    });
    let all = Search { limit: usize::MAX, ..Search::new("word*") };
    assert_eq!(w.found(&all).len(), 32);
}

fn a_filter_holds_for_hits<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b"] {
        w.make(Created { agent: format!("agent-{name}"), ..Created::new(id(name), "well") });
    }
    let search = Search {
        filter: Filter { agent: Some("agent-b".to_owned()), ..Filter::default() },
        ..Search::new("well")
    };
    assert_eq!(w.found(&search), [("b".to_owned(), 1)]);
    let ranked = Search { rank: Rank::Relevance, ..search };
    assert_eq!(w.found(&ranked), [("b".to_owned(), 1)]);
}

fn every_condition_of_a_filter_holds_for_hits<F: Fixture>(w: &mut Harness<F>) {
    w.begin_as(Created::new(id("root"), "well"));
    w.tick();
    w.begin_as(Created {
        agent: "coder".to_owned(),
        model: "large".to_owned(),
        workspace: "/x".to_owned(),
        origin: stepwell::model::Origin::Subagent { parent: id("root") },
        ..Created::new(id("match"), "Well, the TÄSK")
    });
    let edit = Edited {
        label: stepwell::model::Change::Set("l".to_owned()),
        tag: ["t".to_owned()].into(),
        ..Edited::default()
    };
    w.edit("match", edit);
    let now = w.now();
    w.tick();
    w.make(Created::new(id("other"), "well"));
    let none = Filter::default;
    let filters = [
        Filter { agent: Some("coder".into()), ..none() },
        Filter { model: Some("large".into()), ..none() },
        Filter { workspace: Some("/x".into()), ..none() },
        Filter { tags: vec!["t".into()], ..none() },
        Filter { label: Some("l".into()), ..none() },
        Filter { task: Some("täsk".into()), ..none() },
        Filter { family: Family::ChildrenOf(id("root")), ..none() },
        Filter { since: Some(now), until: Some(w.now()), ..none() },
        Filter { prefix: Some("mat".into()), ..none() },
        Filter { status: vec![Status::Running], prefix: Some("m".into()), ..none() },
    ];
    for filter in filters {
        let search = Search { filter: filter.clone(), ..Search::new("well") };
        let expected = [("match".to_owned(), 1)];
        assert_eq!(w.found(&search), expected, "{filter:?}");
    }
    let roots =
        Search { filter: Filter { family: Family::Roots, ..none() }, ..Search::new("well") };
    assert_eq!(w.found(&roots).len(), 2);
}

fn placed(place: TrashScope) -> Search {
    Search { filter: Filter { place, ..Filter::default() }, ..Search::new("well") }
}

fn a_trashed_session_is_found_only_in_the_trash<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "well"));
    assert_eq!(w.hits("well").len(), 1);
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert!(w.hits("well").is_empty());
    assert_eq!(w.found(&placed(TrashScope::Trash)).len(), 1);
    assert_eq!(w.found(&placed(TrashScope::Anywhere)).len(), 1);
    w.make(Created::new(id("b"), "well"));
    w.store().maintain().trash(&[id("b").into()]).unwrap();
    assert_eq!(w.found(&placed(TrashScope::Trash)).len(), 2);
}

fn a_restored_session_is_found_again<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "well"));
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert!(w.hits("well").is_empty());
    w.store().maintain().restore(&[id("a")]).unwrap();
    assert_eq!(w.hits("well"), [("a".to_owned(), 1)]);
}

fn a_purged_session_is_never_found<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created::new(id("a"), "well"));
    w.make(Created::new(id("b"), "well"));
    assert_eq!(w.hits("well").len(), 2);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert_eq!(w.hits("well"), [("b".to_owned(), 1)]);
    w.store().maintain().purge(&[id("b").into()]).unwrap();
    assert!(w.found(&placed(TrashScope::Anywhere)).is_empty());
    w.make(created("a"));
    assert!(w.hits("well").is_empty());
}

fn many_events_are_all_found_once<F: Fixture>(w: &mut Harness<F>) {
    let (a, b) = (w.begin("a"), w.begin("b"));
    for _ in 0..13 {
        w.chat(&a, "well", 100);
        w.chat(&b, "well", 10);
    }
    let search = Search { limit: usize::MAX, ..Search::new("well") };
    let mut found = w.found(&search);
    assert_eq!(found.len(), 1_430);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 1_430);
}
