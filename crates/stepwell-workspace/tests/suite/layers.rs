//! The configuration's layers: which one wins, and what a project may not say.

use stepwell::Remedy;
use stepwell::error::Listing;
use stepwell::model::Mode;
use stepwell_workspace::config::{Key, Source};
use stepwell_workspace::{ConfigPlace, Error, ErrorKind, store_info};

use crate::machine::Machine;

const USERS: &str = "home/.config/stepwell/config.toml";
const PROJECTS: &str = "project/stepwell.toml";

#[test]
fn each_layer_wins_over_the_one_before_and_says_so() {
    let mut machine = Machine::new();
    let key = Key::find("agent.max_errors").unwrap();
    let now = |machine: &Machine, given: &[(&str, &str)]| {
        let here = machine.set("project", given).unwrap();
        (here.config.settings.max_errors.get(), here.config.source(key).clone())
    };
    assert_eq!(now(&machine, &[]), (3, Source::Default));
    let path = machine.write(USERS, "[agent]\nmax_errors = 4\n");
    let path = std::fs::canonicalize(path).unwrap();
    assert_eq!(now(&machine, &[]), (4, Source::File(path)));
    let path = machine.write(PROJECTS, "[agent]\nmax_errors = 5\n");
    let path = std::fs::canonicalize(path).unwrap();
    assert_eq!(now(&machine, &[]), (5, Source::File(path)));
    machine.variables.insert("STEPWELL_AGENT_MAX_ERRORS".into(), "6".into());
    let variable = Source::Variable("STEPWELL_AGENT_MAX_ERRORS".into());
    assert_eq!(now(&machine, &[]), (6, variable));
    assert_eq!(now(&machine, &[("agent.max_errors", "7")]), (7, Source::Override));
}

#[test]
fn a_project_may_ask_for_more_care_than_its_user_and_never_for_less() {
    let machine = Machine::new();
    let mode = |users: &str, projects: &str| {
        machine.write(USERS, &format!("[agent]\nmode = \"{users}\"\n"));
        machine.write(PROJECTS, &format!("[agent]\nmode = \"{projects}\"\n"));
        machine.at("project").unwrap().config.settings.mode
    };
    assert_eq!(mode("confirm-sensitive", "yolo"), Mode::ConfirmSensitive);
    assert_eq!(mode("confirm-all", "yolo"), Mode::ConfirmAll);
    assert_eq!(mode("yolo", "confirm-all"), Mode::ConfirmAll);
    assert_eq!(mode("yolo", "yolo"), Mode::Yolo);
}

#[test]
fn what_a_project_may_not_shorten_is_shown_as_ignored() {
    let machine = Machine::new();
    let file = machine.write(PROJECTS, "[sessions]\nretention_days = 3\nid_length = 9\n");
    let file = std::fs::canonicalize(file).unwrap();
    let source = |key: &str| {
        store_info::setting_source(&machine.at("project").unwrap(), Key::find(key).unwrap())
    };
    let counts = Box::new(Source::Default);
    let asked = || "3".to_owned();
    let ignored = Source::Ignored { file: file.clone(), asked: asked(), counts };
    assert_eq!(source("sessions.retention_days"), ignored);
    assert_eq!(source("sessions.id_length"), Source::File(file.clone()));
    let users = machine.write(USERS, "[sessions]\nretention_days = 40\n");
    let users = std::fs::canonicalize(users).unwrap();
    let counts = Box::new(Source::File(users));
    assert_eq!(source("sessions.retention_days"), Source::Ignored { file, asked: asked(), counts });
    // One that keeps sessions for longer counts.
    let file = machine.write(PROJECTS, "[sessions]\nretention_days = 50\n");
    assert_eq!(
        source("sessions.retention_days"),
        Source::File(std::fs::canonicalize(file).unwrap())
    );
}

#[test]
fn what_sends_keys_or_starts_programs_belongs_into_the_users_own_file() {
    let machine = Machine::new();
    for section in [
        "[providers.openai]\nbase_url = \"https://elsewhere.test\"\n",
        "[prices.\"openai/gpt-4o\"]\ninput = 0\n",
        "[mcp.files]\ncommand = \"server\"\n",
        "[store]\nurl = \"postgres://elsewhere.test/db\"\n",
        "[agents.build]\nprompt = \"obey\"\n",
    ] {
        machine.write(PROJECTS, section);
        let error = machine.at("project").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{section}");
    }
}

#[test]
fn a_fault_names_its_line_and_what_was_perhaps_meant() {
    let mut machine = Machine::new();
    let path = machine.write(PROJECTS, "[sessions]\n\ncleanup_days = 9\n");
    let path = std::fs::canonicalize(path).unwrap();
    match machine.at("project").unwrap_err() {
        Error::Config { at, why, .. } => {
            assert_eq!(at, ConfigPlace::File { path: path.clone(), line: Some(3) });
            assert!(why.contains("sessions.cleanup_after_days"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    machine.write(PROJECTS, "[qwertz]\nuiop = 1\n");
    let unlike_any = machine.at("project").unwrap_err();
    assert_eq!(unlike_any.remedies(), [Remedy::List(Listing::Settings)], "{unlike_any}");
    std::fs::remove_file(path).unwrap();
    machine.variables.insert("STEPWELL_SESSIONS_CLEANUP_DAYS".into(), "3".into());
    let meant = "STEPWELL_SESSIONS_CLEANUP_AFTER_DAYS".to_owned();
    let error = machine.at("project").unwrap_err();
    assert_eq!(error.remedies(), [Remedy::Choose(vec![meant])]);
    // Others that begin like ours are not about the configuration.
    machine.variables.clear();
    machine.variables.insert("STEPWELL_LOG".into(), "info".into());
    assert!(machine.at("project").is_ok());
    let given = machine.set("project", &[("agent.max_errors", "none")]).unwrap_err();
    assert!(matches!(given, Error::Config { at: ConfigPlace::Override, .. }));
}

#[test]
fn a_password_in_an_address_is_in_no_error() {
    let machine = Machine::new();
    let given = [("store.url", "mysql://user:s3cret@host/db")];
    let error = machine.set("project", &given).unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    machine.write(USERS, "[store]\nurl = \"postgres://user:s3cret@host/db?nonsense=1\"\n");
    if let Err(error) = machine.at("project") {
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
