//! Claims about counts by status.

use stepwell::model::StatusChanged;
use stepwell::store::Counts;
use stepwell::store::query::{Filter, TrashScope};
use stepwell::{Created, Status};

use crate::claims::claims;
use crate::harness::{created, id};
use crate::{Fixture, Harness};

claims! { $ count = count_claims for Fixture:
    an_empty_store_counts_nothing,
    every_status_is_counted,
    a_count_follows_a_change_of_status,
    a_count_has_the_conditions_of_a_list,
    a_trashed_session_counts_only_in_the_trash,
    a_purged_session_is_not_counted,
}

fn set<F: Fixture>(w: &Harness<F>, name: &str, status: Status) -> stepwell::store::Lease {
    let lease = w.begin(name);
    let change = StatusChanged { status, reason: None, error: None };
    w.add(&lease, change);
    lease
}

fn counts<F: Fixture>(w: &Harness<F>) -> Counts {
    w.store().count(&Filter::default()).unwrap()
}

fn an_empty_store_counts_nothing<F: Fixture>(w: &mut Harness<F>) {
    assert_eq!(counts(w), Counts::default());
    assert_eq!(counts(w).total(), 0);
}

fn every_status_is_counted<F: Fixture>(w: &mut Harness<F>) {
    for (n, status) in Status::ALL.into_iter().enumerate() {
        for copy in 0..=n {
            set(w, &format!("s{n}-{copy}"), status);
        }
    }
    let counts = counts(w);
    let expected = Status::ALL.into_iter().zip(1..).collect();
    assert_eq!(counts.by_status, expected);
    assert_eq!((counts.total(), counts.damaged), (36, 0));
}

fn a_count_follows_a_change_of_status<F: Fixture>(w: &mut Harness<F>) {
    let lease = set(w, "a", Status::Paused);
    assert_eq!(counts(w).by_status, [(Status::Paused, 1)].into());
    let change = StatusChanged { status: Status::Success, reason: None, error: None };
    w.add(&lease, change);
    assert_eq!(counts(w).by_status, [(Status::Success, 1)].into());
}

fn a_count_has_the_conditions_of_a_list<F: Fixture>(w: &mut Harness<F>) {
    w.make(Created { agent: "coder".to_owned(), ..created("a") });
    w.make(created("b"));
    set(w, "c", Status::Failed);
    let filter = |filter: Filter| w.store().count(&filter).unwrap().by_status;
    let by_agent = Filter { agent: Some("coder".to_owned()), ..Filter::default() };
    assert_eq!(filter(by_agent), [(Status::Interrupted, 1)].into());
    let by_status = Filter { status: vec![Status::Failed, Status::Success], ..Filter::default() };
    assert_eq!(filter(by_status), [(Status::Failed, 1)].into());
    let by_prefix = Filter { prefix: Some("b".to_owned()), ..Filter::default() };
    assert_eq!(filter(by_prefix), [(Status::Interrupted, 1)].into());
}

fn a_trashed_session_counts_only_in_the_trash<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.make(created("b"));
    w.store().maintain().trash(&[id("a").into()]).unwrap();
    assert_eq!(counts(w).total(), 1);
    let at = |place| {
        let filter = Filter { place, ..Filter::default() };
        w.store().count(&filter).unwrap().total()
    };
    assert_eq!((at(TrashScope::Trash), at(TrashScope::Anywhere)), (1, 2));
}

fn a_purged_session_is_not_counted<F: Fixture>(w: &mut Harness<F>) {
    w.make(created("a"));
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    assert_eq!(w.store().count(&filter).unwrap(), Counts::default());
}
