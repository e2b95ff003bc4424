//! Claims about events of a newer version: kept, and skipped.

use stepwell::model::{Kind, Unknown};
use stepwell::{Error, Event, NewEvent};

use crate::claims::claims;
use crate::harness::{event_id, id, say};
use crate::{Fixture, Harness};

claims! { $ unknown = unknown_claims for Fixture:
    an_unknown_kind_is_kept_byte_for_byte,
    a_newer_version_of_a_known_kind_is_kept_byte_for_byte,
    an_unknown_kind_changes_nothing_in_the_head_but_the_seq,
    a_large_unknown_body_is_kept_byte_for_byte,
    an_unknown_kind_is_no_fact_and_is_not_found,
    an_unknown_kind_needs_the_lease,
    an_unknown_kind_that_is_not_json_is_refused,
    a_known_kind_in_disguise_is_refused,
    an_unknown_kind_asked_for_again_is_recorded_once,
    a_fork_keeps_shared_unknown_kinds,
}

fn unknown(kind: &str, version: u32, body: &str) -> NewEvent {
    let unknown = Unknown { kind: kind.to_owned(), version, body: body.to_owned() };
    NewEvent::from(Event::Unknown(unknown))
}

const ODD: &str = "{ \"z\":1,\n\t\"a\": [1.0,  2e3, \"\\u00e9é\"], \"z\": null }";

fn an_unknown_kind_is_kept_byte_for_byte<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let event = unknown("telepathy", 7, ODD);
    w.add(&lease, event.clone());
    w.reopen();
    assert_eq!(w.log("a")[1].event, event.event);
    w.assert_folded("a");
}

fn a_newer_version_of_a_known_kind_is_kept_byte_for_byte<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for kind in ["message", "edited", "gate"] {
        let event = unknown(kind, 2, ODD);
        w.add(&lease, event.clone());
        assert_eq!(w.log("a").pop().unwrap().event, event.event);
    }
    w.assert_folded("a");
}

fn an_unknown_kind_changes_nothing_in_the_head_but_the_seq<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let before = w.head("a");
    w.add(&lease, unknown("message", 2, "{\"role\":\"user\"}"));
    let after = w.head("a");
    assert_eq!(after.seq, before.seq.next());
    assert_eq!(stepwell::log::Head { seq: before.seq, ..after }, before);
    assert!(w.store().lanes(&id("a")).unwrap().is_empty());
}

fn a_large_unknown_body_is_kept_byte_for_byte<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let body = format!("{{ \"x\" :  \"{}\" }}", "y".repeat(200_000));
    let event = unknown("telepathy", 1, &body);
    w.add(&lease, event.clone());
    assert_eq!(w.log("a")[1].event, event.event);
    w.assert_folded("a");
}

fn an_unknown_kind_is_no_fact_and_is_not_found<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let body = "{\"id\":\"t\",\"text\":\"unheardof\"}";
    w.add(&lease, unknown("task", 2, body));
    w.add(&lease, say("heardof"));
    assert!(w.store().keyed_events(&id("a"), Kind::ALL).unwrap().is_empty());
    assert!(w.hits("unheardof").is_empty());
    assert_eq!(w.hits("heardof").len(), 1);
}

fn an_unknown_kind_needs_the_lease<F: Fixture>(w: &mut Harness<F>) {
    w.begin("a");
    let error = w.tell("a", unknown("edited", 2, "{}")).unwrap_err();
    assert!(matches!(error, Error::NeedsLease { .. }), "{error}");
}

fn an_unknown_kind_that_is_not_json_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for body in ["", "{", "{} {}", "telepathy"] {
        let event = unknown("telepathy", 1, body);
        let error = w.try_add(&lease, vec![event]).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
    }
    assert_eq!(w.log("a").len(), 1);
}

fn a_known_kind_in_disguise_is_refused<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    for (kind, version) in [("message", 1), ("created", 1), ("scrubbed", 0), ("", 3)] {
        let event = unknown(kind, version, "{}");
        let error = w.try_add(&lease, vec![event]).unwrap_err();
        assert!(matches!(error, Error::Illegal { .. }), "{error}");
    }
    assert_eq!(w.log("a").len(), 1);
}

fn an_unknown_kind_asked_for_again_is_recorded_once<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let event = unknown("telepathy", 7, ODD).with_id(event_id("x"));
    let first = w.add(&lease, event.clone());
    assert_eq!(w.add(&lease, event), first);
    let other = unknown("telepathy", 7, "{}").with_id(event_id("x"));
    let error = w.try_add(&lease, vec![other]).unwrap_err();
    assert!(matches!(error, Error::EventIdReused { .. }), "{error}");
}

fn a_fork_keeps_shared_unknown_kinds<F: Fixture>(w: &mut Harness<F>) {
    let lease = w.begin("a");
    let event = unknown("telepathy", 7, ODD);
    w.add(&lease, event.clone());
    w.fork("a", 2, "f");
    w.release(&lease);
    w.store().maintain().purge(&[id("a").into()]).unwrap();
    assert_eq!(w.log("f")[1].event, event.event);
    w.assert_folded("f");
}
