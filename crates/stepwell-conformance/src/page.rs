//! Claims about lists: their order, and complete paging without repetitions.

use stepwell::model::{Step, Usage};
use stepwell::store::Order;
use stepwell::store::query::{Cursor, Family, Filter, Query, Sort};
use stepwell::{Created, Lane, Message};

use crate::claims::claims;
use crate::harness::{created, id, say};
use crate::{Fixture, Harness};

claims! { $ page = page_claims for Fixture:
    by_default_the_last_updated_come_first,
    sorted_by_update_in_both_orders,
    sorted_by_birth_in_both_orders,
    sorted_by_cost_in_both_orders,
    sorted_by_steps_in_both_orders,
    sessions_that_are_equal_are_sorted_by_birth,
    pages_of_every_size_cover_everything_once,
    pages_of_a_filtered_list_cover_what_matches_once,
    pages_stay_in_place_while_sessions_are_added,
    pages_stay_in_place_while_sessions_go,
    the_last_page_says_that_it_is_the_last,
    a_page_of_nothing_is_empty,
    a_cursor_survives_being_written_down,
    a_cursor_works_in_another_handle,
}

const SORTS: [Sort; 4] = [Sort::Updated, Sort::Created, Sort::Cost, Sort::Steps];

/// Five sessions with a different order for each sort key: updated c e a d b, created a b c d e,
/// cost b (a d) e c, steps e d c b a.
fn five<F: Fixture>(w: &Harness<F>) {
    let mut leases = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        leases.push(w.begin(name));
        w.tick();
    }
    for (n, cents) in [(2, 9), (4, 4), (0, 2), (3, 2), (1, 1)] {
        let cost = stepwell::model::Money::from_picos(cents * 10_000_000_000);
        let paid = Message::assistant("x").spending(Usage::default(), Some(cost));
        let steps = (0..5 - n).map(|n| Step { lane: Lane::main(), n: n as u64 + 1 }.into());
        let events = std::iter::once(paid.into()).chain(steps).collect();
        w.try_add(&leases[n], events).unwrap();
        w.tick();
    }
}

fn sorted<F: Fixture>(w: &Harness<F>, sort: Sort, order: Order) -> String {
    w.page_of(&Query { sort, order, ..Query::default() }).concat()
}

fn both_ways<F: Fixture>(w: &Harness<F>, sort: Sort, ascending: &str) {
    five(w);
    assert_eq!(sorted(w, sort, Order::Oldest), ascending);
    let descending: String = ascending.chars().rev().collect();
    assert_eq!(sorted(w, sort, Order::Newest), descending);
}

fn by_default_the_last_updated_come_first<F: Fixture>(w: &mut Harness<F>) {
    five(w);
    assert_eq!(w.page_of(&Query::default()).concat(), "bdaec");
    w.edit("c", stepwell::model::Edited::default());
    assert_eq!(w.page_of(&Query::default()).concat(), "cbdae");
}

fn sorted_by_update_in_both_orders<F: Fixture>(w: &mut Harness<F>) {
    both_ways(w, Sort::Updated, "ceadb");
}

fn sorted_by_birth_in_both_orders<F: Fixture>(w: &mut Harness<F>) {
    both_ways(w, Sort::Created, "abcde");
}

fn sorted_by_cost_in_both_orders<F: Fixture>(w: &mut Harness<F>) {
    both_ways(w, Sort::Cost, "badec");
}

fn sorted_by_steps_in_both_orders<F: Fixture>(w: &mut Harness<F>) {
    both_ways(w, Sort::Steps, "edcba");
}

fn sessions_that_are_equal_are_sorted_by_birth<F: Fixture>(w: &mut Harness<F>) {
    for name in ["c", "a", "b"] {
        w.make(created(name));
    }
    for sort in SORTS {
        assert_eq!(sorted(w, sort, Order::Oldest), "cab", "{sort:?}");
        assert_eq!(sorted(w, sort, Order::Newest), "bac", "{sort:?}");
    }
}

/// All pages in order; `between` runs after each.
fn pages<F: Fixture>(w: &Harness<F>, query: &Query, mut between: impl FnMut(usize)) -> Vec<String> {
    let mut all = Vec::new();
    let mut query = query.clone();
    for n in 0.. {
        let page = w.store().list(&query).unwrap();
        assert!(page.sessions.len() <= query.limit);
        all.extend(page.sessions.iter().map(|one| one.head.id.to_string()));
        let Some(next) = page.next else { break };
        assert_eq!(page.sessions.len(), query.limit);
        query.after = Some(next);
        between(n);
    }
    all
}

fn pages_of_every_size_cover_everything_once<F: Fixture>(w: &mut Harness<F>) {
    five(w);
    w.make(created("f"));
    w.make(created("g"));
    for sort in SORTS {
        for order in [Order::Oldest, Order::Newest] {
            let whole = w.page_of(&Query { sort, order, ..Query::default() });
            assert_eq!(whole.len(), 7);
            for limit in 1..=8 {
                let query = Query { sort, order, limit, ..Query::default() };
                assert_eq!(pages(w, &query, |_| {}), whole, "{query:?}");
            }
        }
    }
}

fn pages_of_a_filtered_list_cover_what_matches_once<F: Fixture>(w: &mut Harness<F>) {
    w.begin("root");
    for n in 0..5 {
        w.subagent("root", &format!("child-{n}"));
        w.make(Created { agent: "other".to_owned(), ..created(&format!("x{n}")) });
    }
    for limit in 1..=6 {
        let query = Query {
            filter: Filter { family: Family::ChildrenOf(id("root")), ..Filter::default() },
            limit,
            ..Query::default()
        };
        let found = pages(w, &query, |_| {});
        let expected: Vec<_> = (0..5).rev().map(|n| format!("child-{n}")).collect();
        assert_eq!(found, expected);
    }
}

fn pages_stay_in_place_while_sessions_are_added<F: Fixture>(w: &mut Harness<F>) {
    let old: Vec<_> = (0..9).map(|n| format!("old-{n}")).collect();
    for name in &old {
        w.make(created(name));
        w.tick();
    }
    let query = Query { limit: 2, ..Query::default() };
    let mut seen = pages(w, &query, |n| {
        w.tick();
        w.make(created(&format!("new-{n}")));
    });
    seen.retain(|name| name.starts_with("old"));
    seen.reverse();
    assert_eq!(seen, old);
}

fn pages_stay_in_place_while_sessions_go<F: Fixture>(w: &mut Harness<F>) {
    for n in 0..6 {
        w.make(created(&format!("s{n}")));
        w.tick();
    }
    let query = Query { limit: 2, order: Order::Oldest, ..Query::default() };
    let seen = pages(w, &query, |n| {
        // Removes the session at which the page ended.
        let shown = id(&format!("s{}", 2 * n + 1));
        w.store().maintain().purge(&[shown.into()]).unwrap();
    });
    assert_eq!(seen.concat(), "s0s1s2s3s4s5");
}

fn the_last_page_says_that_it_is_the_last<F: Fixture>(w: &mut Harness<F>) {
    for name in ["a", "b", "c", "d"] {
        w.make(created(name));
    }
    for (limit, more) in [(1, true), (3, true), (4, false), (5, false)] {
        let query = Query { limit, ..Query::default() };
        let page = w.store().list(&query).unwrap();
        assert_eq!(page.next.is_some(), more, "{limit}");
    }
    let whole = w.store().list(&Query::default()).unwrap();
    assert!(whole.next.is_none());
}

fn a_page_of_nothing_is_empty<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    let query = Query { limit: 0, ..Query::default() };
    assert!(w.store().list(&query).unwrap().sessions.is_empty());
}

fn first_page<F: Fixture>(w: &Harness<F>) -> Cursor {
    for name in ["a", "b", "c"] {
        w.make(created(name));
        w.tick();
    }
    let query = Query { limit: 1, ..Query::default() };
    w.store().list(&query).unwrap().next.unwrap()
}

fn a_cursor_survives_being_written_down<F: Fixture>(w: &mut Harness<F>) {
    let cursor = first_page(w);
    let text = serde_json::to_string(&cursor).unwrap();
    w.reopen();
    let query = Query { after: Some(serde_json::from_str(&text).unwrap()), ..Query::default() };
    assert_eq!(w.page_of(&query).concat(), "ba");
}

fn a_cursor_works_in_another_handle<F: Fixture>(w: &mut Harness<F>) {
    let cursor = first_page(w);
    let lease = w.begin("d");
    w.add(&lease, say("x"));
    let query = Query { after: Some(cursor), ..Query::default() };
    let page = w.another().list(&query).unwrap();
    let names: String = page.sessions.iter().map(|one| one.head.id.as_str()).collect();
    assert_eq!(names, "ba");
}
