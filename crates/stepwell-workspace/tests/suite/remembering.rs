//! What is looked after by the way: the trash, old sessions, crashes, what hooks ask.

use std::sync::Arc;
use std::time::Duration;

use stepwell::Status;
use stepwell::clock::Clock;
use stepwell::model::Time;
use stepwell::sessions::lifecycle::{self, Begin};
use stepwell::sqlite::Access;
use stepwell_workspace::hooks::{delegating, pre_delegate, subagent_stop};
use stepwell_workspace::housekeeping::{DAY, tidy};
use stepwell_workspace::{Host, Notice, Workspace, crashes};

use crate::machine::{Machine, session};

/// A clock that stands so far in the future.
#[derive(Debug)]
struct Later(Duration);

impl Clock for Later {
    fn now(&self) -> Time {
        stepwell::clock::SystemClock.now().plus(self.0)
    }
}

/// The same workspace after some time.
fn later(machine: &Machine, after: Duration, settings: &str) -> Workspace {
    // The user's own file: a project's can neither shorten a time nor turn cleanup on.
    machine.write("home/.config/stepwell/config.toml", settings);
    let here = machine.at("one").unwrap();
    let host = Host { clock: Arc::new(Later(after)), ..machine.host() };
    Workspace::locate(host, machine.wanted("one"), here.notices.clone()).unwrap()
}

#[test]
fn the_trash_is_emptied_when_its_time_is_over_and_that_is_told() {
    let machine = Machine::new();
    let here = machine.at("one").unwrap();
    let id = session(&here, "a task");
    here.open_existing(Access::Write).unwrap().delete(&id).unwrap();
    let soon = later(&machine, DAY * 29, "");
    tidy(&soon, &soon.open_existing(Access::Write).unwrap());
    assert!(machine.notices().is_empty());
    let late = later(&machine, DAY * 31, "");
    let well = late.open_existing(Access::Write).unwrap();
    tidy(&late, &well);
    assert_eq!(machine.notices(), [Notice::TrashEmptied { sessions: 1, days: 30 }]);
    assert!(!well.store().exists(&id).unwrap());
}

#[test]
fn old_sessions_are_cleaned_up_once_a_day_and_only_if_asked_for() {
    let machine = Machine::new();
    session(&machine.at("one").unwrap(), "a task");
    let after = DAY * 9;
    let unasked = later(&machine, after, "");
    tidy(&unasked, &unasked.open_existing(Access::Write).unwrap());
    assert!(machine.notices().is_empty());
    let asked = later(&machine, after, "[sessions]\nauto_cleanup = true\n");
    let well = asked.open_existing(Access::Write).unwrap();
    tidy(&asked, &well);
    assert_eq!(machine.notices(), [Notice::CleanedUp { sessions: 1 }]);
}

#[test]
fn a_crash_is_announced_once() {
    let machine = Machine::new();
    let here = machine.at("one").unwrap();
    // Its runner is gone without a word.
    let (one, two) = (session(&here, "one"), session(&here, "two"));
    let well = here.open_existing(Access::Write).unwrap();
    assert_eq!(well.info(&one).unwrap().head.status, Status::Interrupted);
    let told = crashes::unannounced(&here, &well, Some(&two)).unwrap();
    let told: Vec<_> = told.into_iter().map(|info| info.head.id).collect();
    assert_eq!(told, [one]);
    assert!(crashes::unannounced(&here, &well, None).unwrap().is_empty());
}

#[test]
fn an_agent_ends_once_and_its_end_is_final() {
    let machine = Machine::new();
    let here = machine.at("one").unwrap();
    let well = here.open_or_create().unwrap();
    let begin = Begin {
        id: "agent-1".parse().ok(),
        agent: "reviewer".to_owned(),
        purpose: "review".to_owned(),
        workspace: String::new(),
        metadata: [("task_id".to_owned(), "T1".into())].into(),
    };
    lifecycle::create(&well, begin).unwrap();
    let asked = serde_json::json!({ "agent_id": "agent-1" });
    let asked = asked.as_object().unwrap().clone();
    let answer = pre_delegate(&well, asked.clone(), delegating(&here.config.settings, "")).unwrap();
    assert_eq!(answer.answer.agent_id.as_deref(), Some("agent-1"));
    assert_eq!(subagent_stop(&well, &asked).unwrap().reason, "finalized");
    assert_eq!(subagent_stop(&well, &asked).unwrap().reason, "already_finalized");
}
