//! Kill -9 during a fork.

use std::process::Stdio;

use stepwell::failpoint::FAILPOINTS;
use stepwell::model::Origin;
use stepwell::store::Span;
use stepwell::store::query::Query;
use stepwell::{Event, Lane, Message, Status, Stepwell};

use crate::child::{torture, was_killed};

#[test]
fn a_fork_that_is_killed_exists_completely_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::open(folder.path()).unwrap();
    let parent = well.create(well.draft("the task")).unwrap();
    for n in 0..20 {
        parent.append(Message::user(format!("message {n}"))).unwrap();
    }
    let (id, shown) = (parent.id().clone(), parent.view(&Lane::main()).unwrap());
    drop((parent, well));
    let (mut killed, mut complete) = (0, 0);
    for point in FAILPOINTS {
        for n in 1.. {
            let mut command = torture("fork", folder.path());
            command.args([id.as_str(), point, &n.to_string()]);
            let status = command.stdout(Stdio::null()).status().unwrap();
            let died = was_killed(status);
            assert!(died || status.success(), "{point} {n}: {status}");
            let found = forks(folder.path(), &shown);
            assert!(died || found == complete + 1, "{point} {n}: the fork does not exist");
            complete = found;
            if !died {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 4, "{killed} kills are not enough");
}

/// Checks all forks, and returns their number.
fn forks(folder: &std::path::Path, shown: &stepwell::View) -> usize {
    let well = Stepwell::open(folder).unwrap();
    let all = well.list(&Query { limit: 1_000, ..Query::default() }).unwrap().sessions;
    let forks = all.iter().filter(|it| matches!(it.head.origin, Origin::Fork { .. }));
    forks
        .inspect(|fork| {
            let (id, head) = (&fork.head.id, &fork.head);
            assert_eq!((head.status, head.stop_reason), (Status::Interrupted, None), "{id}");
            let span = Span { from: fork.own_from, ..Span::ALL };
            let own = well.store().events(id, span).unwrap().intact(id).unwrap();
            let kinds: Vec<bool> =
                own.iter().map(|it| matches!(it.event, Event::Created(_))).collect();
            assert_eq!(kinds, [true, false], "{id}");
            let session = well.lock(id).unwrap();
            assert_eq!(session.view(&Lane::main()).unwrap(), *shown, "{id}");
            assert!(well.store().maintain().verify(id).unwrap().damage.is_none(), "{id}");
        })
        .count()
}
