//! Reading many events at once, with helper threads, gives the same result as reading a few at a
//! time.

use stepwell::sqlite::SqliteStore;
use stepwell::store::{Order, Slice, Span};
use stepwell::{Created, Message, Seq, SessionId, Stepwell, Store};

const EVENTS: u64 = 1_700;

/// Reads too few events at a time for helpers.
fn piece_by_piece(store: &dyn Store, id: &SessionId, span: Span) -> Slice {
    const FEW: usize = 100;
    let mut whole = Slice::default();
    let mut rest = span;
    while whole.events.len() < span.limit && rest.from <= rest.to {
        let limit = FEW.min(span.limit - whole.events.len());
        let piece = store.events(id, Span { limit, ..rest }).unwrap();
        let Some(last) = piece.events.last().map(|event| event.seq) else {
            whole.damage = piece.damage;
            break;
        };
        let full = piece.events.len() == limit;
        whole.events.extend(piece.events);
        whole.scrubbed += piece.scrubbed;
        whole.pruned += piece.pruned;
        whole.replaced.extend(piece.replaced);
        whole.damage = piece.damage;
        if whole.damage.is_some() || !full {
            break;
        }
        match span.order {
            Order::Oldest => rest.from = last.next(),
            Order::Newest if last == Seq::FIRST => break,
            Order::Newest => rest.to = last.prev(),
        }
    }
    whole
}

fn long_session(store: &std::path::Path) -> SessionId {
    let well = Stepwell::open(store).unwrap();
    let id: SessionId = "long".parse().unwrap();
    let session = well.create(Created::new(id.clone(), "long")).unwrap();
    let message = |n: u64| {
        // Some texts are moved into blobs, which the reading thread fetches.
        let size = if n.is_multiple_of(311) { 70_000 } else { 40 };
        Message::user(format!("{n} {}", "x".repeat(size))).into()
    };
    session.append_all((1..EVENTS).map(message).collect()).unwrap();
    id
}

fn spans() -> Vec<Span> {
    let mut spans = Vec::new();
    for order in [Order::Oldest, Order::Newest] {
        for (from, to) in [(1, EVENTS), (1, 1_000), (2, 700), (600, EVENTS), (1, EVENTS + 50)] {
            for limit in [usize::MAX, 501, 777, 1] {
                spans.push(Span { from: Seq::new(from), to: Seq::new(to), order, limit });
            }
        }
    }
    spans
}

fn assert_same(store: &dyn Store, id: &SessionId) {
    for span in spans() {
        let (at_once, in_pieces) =
            (store.events(id, span).unwrap(), piece_by_piece(store, id, span));
        assert_eq!(at_once.damage, in_pieces.damage, "{span:?}");
        assert!(at_once == in_pieces, "{span:?}");
    }
}

#[test]
fn a_long_read_equals_many_short_ones() {
    let folder = tempfile::tempdir().unwrap();
    let id = long_session(folder.path());
    let store = SqliteStore::open(folder.path()).unwrap();
    let store: &dyn Store = &store;
    assert_same(store, &id);
    assert_eq!(store.events(&id, Span::ALL).unwrap().events.len() as u64, EVENTS);
    let last = store.events(&id, Span::last(1_000)).unwrap();
    assert_eq!(last.events[0].seq, Seq::new(EVENTS));
    assert_eq!(last.events[999].seq, Seq::new(EVENTS - 999));
}

#[test]
fn the_first_damage_ends_a_long_read_wherever_it_is() {
    for (sql, damaged) in [
        (
            "UPDATE events SET body = replace(body, '650 ', '651 ') WHERE pos & 4294967295 = 651",
            651,
        ),
        ("DELETE FROM events WHERE pos & 4294967295 = 1200", 1_200),
        ("UPDATE events SET at = at + 1 WHERE pos & 4294967295 = 3", 3),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let id = long_session(folder.path());
        let raw = rusqlite::Connection::open(folder.path().join("stepwell.db")).unwrap();
        assert_eq!(raw.execute(sql, []).unwrap(), 1, "{sql}");
        drop(raw);
        let store = SqliteStore::open(folder.path()).unwrap();
        let store: &dyn Store = &store;
        assert_same(store, &id);
        let up = store.events(&id, Span::ALL).unwrap();
        assert_eq!(up.events.len() as u64, damaged - 1, "{sql}");
        assert_eq!(up.damage.unwrap().seq, Seq::new(damaged), "{sql}");
        let down = store.events(&id, Span::last(usize::MAX)).unwrap();
        assert_eq!(down.damage.unwrap().seq, Seq::new(damaged), "{sql}");
    }
}
