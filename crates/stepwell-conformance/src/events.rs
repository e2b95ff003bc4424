//! Claims about reading events by range.

use stepwell::store::{Order, Slice, Span};
use stepwell::{Error, Seq};

use crate::claims::claims;
use crate::harness::{id, say, seqs, texts};
use crate::{Fixture, Harness};

claims! { $ events = events_claims for Fixture:
    all_events_come_oldest_first,
    a_range_has_both_its_ends,
    backwards_the_newest_come_first,
    every_range_is_the_same_in_both_orders,
    a_limit_cuts_from_the_end_that_comes_first,
    a_limit_of_nothing_gives_nothing,
    an_empty_range_gives_nothing,
    a_range_beyond_the_end_gives_nothing,
    a_range_over_the_end_gives_what_is_there,
    events_after_a_seq_leave_it_out,
    events_of_no_session_are_an_error,
    what_was_read_is_undamaged_and_unscrubbed,
    events_read_by_another_handle_are_the_same,
}

fn span(from: u64, to: u64) -> Span {
    Span { from: Seq::new(from), to: Seq::new(to), ..Span::ALL }
}

fn read<F: Fixture>(w: &Harness<F>, span: Span) -> Slice {
    let slice = w.store().events(&id("a"), span).unwrap();
    assert_eq!(slice.damage, None);
    slice
}

fn ten<F: Fixture>(w: &Harness<F>) {
    let lease = w.begin("a");
    w.chat(&lease, "x", 9);
}

fn all_events_come_oldest_first<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    let all = read(w, Span::ALL).events;
    assert_eq!(seqs(&all), (1..=10).collect::<Vec<_>>());
    assert_eq!(texts(&all)[0], "x 1");
    assert_eq!(texts(&all)[8], "x 9");
}

fn a_range_has_both_its_ends<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    assert_eq!(seqs(&read(w, span(3, 5)).events), [3, 4, 5]);
    assert_eq!(seqs(&read(w, span(1, 1)).events), [1]);
    assert_eq!(seqs(&read(w, span(10, 10)).events), [10]);
    assert_eq!(seqs(&read(w, span(0, 2)).events), [1, 2]);
}

fn backwards_the_newest_come_first<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    let mut all = read(w, Span::ALL).events;
    all.reverse();
    assert_eq!(read(w, Span::last(usize::MAX)).events, all);
    assert_eq!(seqs(&read(w, Span::last(3)).events), [10, 9, 8]);
}

fn every_range_is_the_same_in_both_orders<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    let all = read(w, Span::ALL).events;
    for from in 1..=11 {
        for to in 0..=11 {
            let up = read(w, span(from, to)).events;
            let mut down = read(w, Span { order: Order::Newest, ..span(from, to) }).events;
            down.reverse();
            let expected: Vec<_> = all
                .iter()
                .filter(|event| (from..=to).contains(&event.seq.get()))
                .cloned()
                .collect();
            assert_eq!(up, expected, "{from}..={to}");
            assert_eq!(down, expected, "{from}..={to} backwards");
        }
    }
}

fn a_limit_cuts_from_the_end_that_comes_first<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    for limit in 1..=12 {
        let up = Span { limit, ..span(3, 9) };
        let down = Span { order: Order::Newest, ..up };
        let expected: Vec<_> = (3..=9).take(limit).collect();
        assert_eq!(seqs(&read(w, up).events), expected);
        let expected: Vec<_> = (3..=9).rev().take(limit).collect();
        assert_eq!(seqs(&read(w, down).events), expected);
    }
}

fn a_limit_of_nothing_gives_nothing<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    for order in [Order::Oldest, Order::Newest] {
        let none = Span { limit: 0, order, ..Span::ALL };
        assert_eq!(read(w, none), Slice::default());
    }
}

fn an_empty_range_gives_nothing<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    for (from, to) in [(5, 4), (9, 2), (1, 0), (0, 0), (u64::from(u32::MAX), 1)] {
        assert_eq!(read(w, span(from, to)), Slice::default(), "{from}..={to}");
    }
}

fn a_range_beyond_the_end_gives_nothing<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    for order in [Order::Oldest, Order::Newest] {
        for from in [11, 12, 500] {
            let beyond = Span { order, ..span(from, 1_000) };
            assert_eq!(read(w, beyond), Slice::default(), "{from}");
        }
    }
}

fn a_range_over_the_end_gives_what_is_there<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    assert_eq!(seqs(&read(w, span(9, 99)).events), [9, 10]);
    let down = Span { order: Order::Newest, limit: 1, ..span(9, 99) };
    assert_eq!(seqs(&read(w, down).events), [10]);
}

fn events_after_a_seq_leave_it_out<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    assert_eq!(seqs(&read(w, Span::after(Seq::new(8))).events), [9, 10]);
    assert_eq!(read(w, Span::after(Seq::ZERO)).events.len(), 10);
    assert!(read(w, Span::after(Seq::new(10))).events.is_empty());
}

fn events_of_no_session_are_an_error<F: Fixture>(w: &mut Harness<F>) {
    let error = w.store().events(&id("a"), Span::ALL).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
    let error = w.store().lanes(&id("a")).unwrap_err();
    assert!(matches!(error, Error::NoSession(_)), "{error}");
}

fn what_was_read_is_undamaged_and_unscrubbed<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    let slice = read(w, Span::ALL);
    assert_eq!((slice.scrubbed, slice.damage.clone()), (0, None));
    assert_eq!(slice.intact(&id("a")).unwrap().len(), 10);
}

fn events_read_by_another_handle_are_the_same<F: Fixture>(w: &mut Harness<F>) {
    ten(w);
    let other = w.another();
    let slice = other.events(&id("a"), Span::ALL).unwrap();
    assert_eq!(slice.events, w.log("a"));
    let lease = w.begin("b");
    w.add(&lease, say("made after the other was opened"));
    assert_eq!(other.events(&id("b"), Span::ALL).unwrap().events.len(), 2);
}
