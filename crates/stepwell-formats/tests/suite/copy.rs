//! Copying sessions out of a store that is only read.

use std::path::Path;
use std::sync::Arc;

use stepwell::sessions::Deps;
use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::store::query::{Filter, Query, TrashScope};
use stepwell::store::{Order, Span};
use stepwell::{Recorded, SessionId, SessionInfo, Stepwell};
use stepwell_formats::copy;

/// A store with something of everything.
fn worked() -> tempfile::TempDir {
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../stepwell/tests/suite/golden/v1.db.zst");
    let bytes = zstd::decode_all(&*std::fs::read(golden).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stepwell.db"), bytes).unwrap();
    folder
}

fn sessions(well: &Stepwell) -> Vec<SessionInfo> {
    let filter = Filter { place: TrashScope::Kept, ..Filter::default() };
    // Parents come first.
    well.list(&Query { filter, order: Order::Oldest, ..Query::default() }).unwrap().sessions
}

fn log(well: &Stepwell, id: &SessionId) -> Vec<Recorded> {
    well.store().events(id, Span::ALL).unwrap().intact(id).unwrap()
}

#[test]
fn sessions_are_copied_whole_and_their_store_stays_as_it_is() {
    let folder = worked();
    let before = std::fs::read(folder.path().join("stepwell.db")).unwrap();
    let options = SqliteOptions { access: Access::Read, ..SqliteOptions::default() };
    let old = SqliteStore::open_with(folder.path(), options).unwrap();
    let old = Stepwell::with(Arc::new(old), Deps::default());
    let target = tempfile::tempdir().unwrap();
    let new = Stepwell::open(target.path()).unwrap();
    let there = sessions(&old);
    assert!(there.len() > 2);
    for info in &there {
        copy(&old, &new, &info.head.id).unwrap();
    }
    for info in &there {
        let id = &info.head.id;
        assert_eq!(log(&new, id), log(&old, id), "{id}");
        let copied = new.store().info(id).unwrap();
        assert_eq!((&copied.head.status, copied.head.spent), (&info.head.status, info.head.spent));
        let verdict = new.store().maintain().verify(id).unwrap();
        assert!(verdict.is_sound(), "{id}: {verdict:?}");
    }
    drop(old);
    assert_eq!(std::fs::read(folder.path().join("stepwell.db")).unwrap(), before);
}
