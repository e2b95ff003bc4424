//! Options for creating sessions, and closing what was opened.

use stepwell::sessions::{ForkAt, NewSession};
use stepwell::{Message, Seq, Status, Stepwell};

#[test]
fn a_session_starts_with_the_given_events_and_closes() {
    let well = Stepwell::in_memory();
    let events = vec![Message::user("first").into()];
    let session = well.create(NewSession { created: well.draft("t"), events }).unwrap();
    let id = session.id().clone();
    session.step([Message::assistant("second")]).unwrap();
    session.close().unwrap();
    assert_eq!(well.info(&id).unwrap().head.status, Status::Interrupted);
    well.lock(&id).unwrap().close().unwrap();
    let fork = well.fork(&id, Seq::new(2)).unwrap();
    assert_eq!(fork.info().unwrap().head.seq, Seq::new(3));
    let begins = vec![Message::user("other").into()];
    let fork = well.fork(&id, ForkAt { at: None, begins }).unwrap();
    assert_eq!(fork.info().unwrap().head.seq, Seq::new(6));
    drop(fork);
    well.close().unwrap();
}
