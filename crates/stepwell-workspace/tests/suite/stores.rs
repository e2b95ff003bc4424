//! Stores as a whole: set up, copied, restored, watched for, and what they say of themselves.

use stepwell::SessionId;
use stepwell::sqlite::Access;
use stepwell_wire::{CopyResult, Durability};
use stepwell_workspace::config::{Key, counts_in_workspace, put};
use stepwell_workspace::hooks::{HookFault, read_payload};
use stepwell_workspace::{
    CopiedSession, Error, ErrorKind, Replace, RetentionChange, StoreCopy, TrashRemark, Workspace,
    hooks, set_up, store_info, watch,
};

use crate::machine::{Machine, session};

#[test]
fn a_workspace_is_set_up_once() {
    let machine = Machine::new();
    let workspace = machine.at("project").unwrap();
    let made = set_up::set_up(&workspace, "# settings\n").unwrap();
    assert!(made.made_store && made.made_config);
    let again = set_up::set_up(&machine.at("project").unwrap(), "# settings\n").unwrap();
    assert!(!again.made_store && !again.made_config);
}

#[test]
fn one_process_watches_for_a_store() {
    let workspace = Machine::new().at("project").unwrap();
    drop(workspace.open_or_create().unwrap());
    let watch = watch::start(&workspace).unwrap();
    assert!(watch.is_some());
    assert!(watch::start(&workspace).unwrap().is_none());
    drop(watch);
    assert!(watch::start(&workspace).unwrap().is_some());
}

fn copy(from: &Workspace, to: &Workspace, id: &SessionId) -> CopiedSession {
    let source = from.open_existing(Access::Read).unwrap();
    let target = to.open_or_create().unwrap();
    let info = source.info(id).unwrap();
    StoreCopy::new(&source, &target).copy(&info).unwrap()
}

#[test]
fn the_trash_is_copied_as_a_part_of_a_session_and_never_later() {
    let machine = Machine::new();
    let (here, there) = (machine.at("here").unwrap(), machine.at("there").unwrap());
    let id = session(&here, "tidy up");
    here.open_existing(Access::Write).unwrap().delete(&id).unwrap();
    let copied = copy(&here, &there, &id);
    let [first] = &copied.sessions[..] else { unreachable!("{copied:?}") };
    assert!(first.copied == CopyResult::Made && first.trashed && copied.trash.is_none());
    there.open_existing(Access::Write).unwrap().restore_all(std::slice::from_ref(&id)).unwrap();
    let again = copy(&here, &there, &id);
    assert!(again.sessions[0].copied == CopyResult::AlreadyThere && !again.sessions[0].trashed);
    assert!(matches!(again.trash, Some(TrashRemark::OnlyHere)), "{again:?}");
}

#[test]
fn a_store_is_restored_only_over_one_that_may_be_set_aside() {
    let machine = Machine::new();
    let workspace = machine.at("project").unwrap();
    session(&workspace, "tidy up");
    let file = machine.folder("backups").join("store.db");
    set_up::back_up(&workspace.open_existing(Access::Read).unwrap(), &file).unwrap();
    let refused = set_up::restore_backup(&workspace, &file, Replace::Refused);
    assert_eq!(refused.unwrap_err().remedies(), [stepwell::Remedy::Replace]);
    let restored = set_up::restore_backup(&workspace, &file, Replace::SetAside).unwrap();
    assert_eq!(restored.sessions, 1);
    assert!(restored.replaced.is_some());
    // Each store that was replaced stays, also of two in one second.
    let again = set_up::restore_backup(&workspace, &file, Replace::SetAside).unwrap();
    assert_ne!(again.replaced, restored.replaced);
    let kept =
        [&restored, &again].map(|it| std::path::Path::new(it.replaced.as_ref().unwrap()).is_file());
    assert_eq!(kept, [true, true]);
    // What is no backup changes nothing.
    let wrong = machine.write("backups/wrong.db", "no database");
    assert!(set_up::restore_backup(&workspace, &wrong, Replace::SetAside).is_err());
    let empty = machine.at("empty").unwrap();
    let refused = set_up::restore_backup(&empty, &wrong, Replace::Refused).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Store(stepwell::ErrorKind::Incompatible), "{refused}");
    // Nor does a damaged one, and what helps a store does not help it.
    let mut bytes = std::fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    let damaged = machine.write("backups/damaged.db", "");
    std::fs::write(&damaged, bytes).unwrap();
    let refused = set_up::restore_backup(&empty, &damaged, Replace::Refused).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged);
    assert!(refused.to_string().contains(&*damaged.to_string_lossy()), "{refused}");
    assert!(workspace.place.has_store());
}

#[test]
fn a_store_in_a_folder_keeps_what_its_users_settings_say() {
    let machine = Machine::new();
    let workspace = machine.set("project", &[("sessions.retention_days", "12")]).unwrap();
    let well = workspace.open_or_create().unwrap();
    assert_eq!(
        store_info::retention(&well, &workspace.config.settings).unwrap().retention_days,
        12
    );
    let change = RetentionChange { days: Some(3), cleanup: None };
    assert!(matches!(store_info::change_retention(&well, change), Err(Error::RetentionIsSetting)));
    assert_eq!(store_info::describe(&workspace, &well).unwrap().durability, Durability::Local);
}

#[test]
fn a_workspaces_file_is_not_given_what_would_not_count_there() {
    let machine = Machine::new();
    let counts = |name: &str, text: &str| {
        counts_in_workspace(&machine.host(), Key::find(name).unwrap(), text).unwrap()
    };
    for (name, text) in [
        ("sessions.cleanup_after_days", "1"),
        ("sessions.auto_cleanup", "true"),
        ("sessions.retention_days", "2"),
        ("agent.mode", "yolo"),
        ("talk.from", "store"),
    ] {
        assert!(!counts(name, text), "{name} {text}");
    }
    for (name, text) in [
        ("sessions.cleanup_after_days", "30"),
        ("sessions.auto_cleanup", "false"),
        ("agent.mode", "confirm-all"),
        ("agent.max_errors", "9"),
        // What is no value is refused as that.
        ("sessions.cleanup_after_days", "soon"),
    ] {
        assert!(counts(name, text), "{name} {text}");
    }
    // What the user themselves allow may be said again.
    let users = machine.host().user_config().unwrap();
    put(&users, Key::find("agent.mode").unwrap(), "yolo").unwrap();
    assert!(counts("agent.mode", "yolo"));
}

#[test]
fn a_hook_is_answered_whatever_it_is_told() {
    let workspace = Machine::new().at("project").unwrap();
    let wrong = hooks::answer_pre_delegate(&workspace, read_payload(&b"{"[..]));
    assert!(matches!(wrong.fault, Some(HookFault::NoPayload(_))));
    assert_eq!(wrong.answer.reason, "invalid_json");
    let none = hooks::answer_subagent_stop(&workspace, read_payload(&b"{}"[..]));
    assert!(none.fault.is_none() && none.answer.reason == "no_session");
    let samples = hooks::samples(&workspace).unwrap();
    assert_eq!(samples.len(), 4);
    assert_eq!(samples[0].answer["should_resume"], true);
}
