//! Listing sessions: full pages, the newest first, wherever they are.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stepwell::model::Time;
use stepwell::{Created, Message, Stepwell};

use crate::client::{Client, TestEnv};

/// Makes sessions that are over; of some another program takes care.
fn fill(well: &Stepwell, count: usize, is_driven: bool) {
    for n in 0..count {
        let created = Created::new(well.new_id(), format!("task {n}"));
        let created = if is_driven { created.driven_externally() } else { created };
        drop(well.create(created).unwrap());
    }
}

/// Every page, and how long each is.
fn pages(client: &mut Client, cwd: &Value) -> (Vec<usize>, Vec<Value>) {
    let (mut lengths, mut all, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let mut asked = json!({"cwd": cwd, "cursor": cursor});
        asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let page = client.ask("session/list", &asked).unwrap();
        let sessions = page["sessions"].as_array().unwrap().clone();
        lengths.push(sessions.len());
        all.extend(sessions);
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            return (lengths, all);
        }
    }
}

#[test]
fn pages_are_full_and_the_newest_first_over_all_stores() {
    let env = TestEnv::new("[]").with_home(false);
    let other = tempfile::tempdir().unwrap();
    let folder = std::fs::canonicalize(other.path()).unwrap();
    let (here, there) = (
        env.runtime().workspace().open_or_create().unwrap(),
        env.runtime_in(folder).workspace().open_or_create().unwrap(),
    );
    // Those that other programs drive fill no page.
    for well in [&here, &there, &here] {
        fill(well, 30, false);
        fill(well, 60, true);
    }
    let mut client = env.greeted(&json!({}));
    let (lengths, all) = pages(&mut client, &Value::Null);
    assert_eq!(lengths, [50, 40]);
    let ids: BTreeSet<String> = all.iter().map(|it| it["sessionId"].to_string()).collect();
    assert_eq!(ids.len(), 90);
    let times: Vec<Time> =
        all.iter().map(|it| it["updatedAt"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
    let (lengths, _) = pages(&mut client, &json!(env.root()));
    assert_eq!(lengths, [50, 10]);
}

#[test]
fn a_session_that_changes_between_two_pages_shifts_no_other() {
    let env = TestEnv::new("[]");
    let well = env.runtime().workspace().open_or_create().unwrap();
    fill(&well, 60, false);
    let mut client = env.greeted(&json!({}));
    let cwd = env.root();
    let first = client.ask("session/list", &json!({"cwd": cwd})).unwrap();
    let oldest = well
        .list(&stepwell::store::query::Query::default())
        .unwrap()
        .sessions
        .pop()
        .unwrap()
        .head
        .id;
    well.lock(&oldest).unwrap().append(Message::user("again")).unwrap();
    fill(&well, 5, false);
    let next = json!({"cwd": cwd, "cursor": first["nextCursor"]});
    let second = client.ask("session/list", &next).unwrap();
    let sessions = second["sessions"].as_array().unwrap();
    // The one that changed is among the newest now.
    assert_eq!(sessions.len(), 9);
    let known = first["sessions"].as_array().unwrap();
    assert!(
        sessions.iter().all(|it| known.iter().all(|known| known["sessionId"] != it["sessionId"]))
    );
}
