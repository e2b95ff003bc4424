//! Sessions whose rewind was cut off: what others do about it, and what they must not do.

use stepwell::model::{Kind, Rewinding, Scope};
use stepwell::{Event, Seq};

use crate::rewinding::{status, worked};
use crate::test_env::TestEnv;

#[test]
fn a_fork_of_a_session_whose_rewind_was_cut_off_begins_with_whole_files() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    let ran = env.quietly(&["fork", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("A rewind of {id} that was cut off")), "{}", ran.stderr);
    assert!(env.work().join("link").symlink_metadata().is_err());
    // Someone is in the way: nothing is forked.
    let env = worked();
    let id = cut_rewind_off(&env, "notes.txt");
    env.file("notes.txt", "mine\n");
    let ran = env.quietly(&["fork", &id]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn the_trash_keeps_a_session_whose_rewind_was_cut_off() {
    let mut env = worked();
    let id = cut_rewind_off(&env, "link");
    // As earlier versions did.
    env.well().delete_all(&[id.parse().unwrap()], &|_| false).unwrap();
    env.set("STEPWELL_NOW", "2027-03-09T12:00:00Z");
    let says = format!("stepwell trash restore {id}, then stepwell rewind {id} --finish");
    let ran = env.quietly(&["trash", "empty", "--yes"]);
    assert!(ran.stderr.contains(&says), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "");
    env.file("other.yaml", "- {text: Done.}\n");
    let run = ["run", "something else", "--model", "script:other.yaml"];
    assert_eq!(env.quietly(&run).code, Some(0));
    let ran = env.quietly(&["label", "@last", "x"]);
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    for typed in [&["trash", "restore", &id][..], &["rewind", &id, "--finish"], &["delete", &id]] {
        let ran = env.quietly(typed);
        assert_eq!(ran.code, Some(0), "{typed:?}: {}", ran.stderr);
    }
    let ran = env.quietly(&["trash", "empty", "--yes"]);
    assert_eq!(ran.stdout, format!("Erased {id}\n"));
}

#[test]
fn a_flow_begins_and_goes_on_with_whole_files() {
    let env = worked();
    env.file(
        "flow.yaml",
        "version: 0\nname: one\nagents: {a: {prompt: go}}\npattern:\n  type: chain\n  config:\n    \
         steps: [{agent: a, input: go}, {type: hitl, prompt: 'Is it good?'}]\n",
    );
    env.file("lanes.yaml", "lanes:\n  a: [{text: Done.}]\n");
    let id = env.well().find("@last").unwrap().to_string();
    let flow = ["flow", "run", "flow.yaml", "--model", "script:lanes.yaml"];
    let finishes = |typed: &[&str], code, file: &str| {
        cut_rewind_of(&env, &id, file);
        let ran = env.quietly(typed);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        let finished = format!("A rewind of {id} that was cut off");
        assert!(ran.stderr.contains(&finished), "{typed:?}: {}", ran.stderr);
        assert!(env.work().join(file).symlink_metadata().is_err());
    };
    finishes(&flow, 8, "link");
    let sessions = env.quietly(&["sessions", "--json"]).json();
    let flow = sessions.iter().find(|it| it["id"] != id).unwrap()["id"].as_str().unwrap();
    finishes(&["resume", flow, "--respond", "yes"], 0, "data.bin");
}

#[test]
fn what_would_get_in_the_way_of_a_rewind_that_goes_on_is_busy() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    let well = env.well();
    let _held = well.lock(&id.parse().unwrap()).unwrap();
    env.file("other.yaml", "- {text: Done.}\n");
    for typed in [
        &["fork", &id][..],
        &["rewind", &id, "--dry-run"],
        &["rewind", &id, "--finish"],
        &["checkpoint", &id, "x"],
        &["delete", &id],
        &["run", "something else", "--model", "script:other.yaml"],
    ] {
        // The real time: a lease must not look as if it had run out.
        let ran = env.command(typed).env_remove("STEPWELL_NOW").output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(6), "{typed:?}: {said}");
    }
    assert!(env.work().join("link").symlink_metadata().is_ok());
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn cleaning_up_by_the_way_says_what_stays() {
    let mut env = worked();
    let id = cut_rewind_off(&env, "link");
    env.set("STEPWELL_NOW", "2027-03-09T12:00:00Z");
    let cleaning = ["--config", "sessions.auto_cleanup=true"];
    let other = env.well().create(env.well().draft("another")).unwrap().id().to_string();
    let ran = env.quietly(&[&["label", &other, "x"], &cleaning[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let says = format!("{id} stays: a rewind of it was cut off; stepwell rewind {id} --finish");
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 2);
}

#[test]
fn a_rewind_that_was_cut_off_is_finished_by_the_next_command() {
    let commands: [&[&str]; 4] = [
        &["checkpoint", "@last", "later"],
        &["rewind", "@last", "--to", "3", "--chat"],
        &["resume", "@last"],
        &["run", "more", "--session", "@last", "--mode", "yolo"],
    ];
    for command in commands {
        let env = worked();
        cut_rewind_off(&env, "link");
        assert!(env.work().join("link").symlink_metadata().is_ok());
        let ran = env.quietly(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("that was cut off at seq"), "{command:?}: {}", ran.stderr);
        let facts = env
            .well()
            .store()
            .keyed_events(&env.well().find("@last").unwrap(), &[Kind::Rewound])
            .unwrap();
        assert!(!facts.is_empty());
        let resumes = command[0] == "resume" || command[0] == "run";
        // The run that goes on makes it once more.
        assert_eq!(env.work().join("link").symlink_metadata().is_ok(), resumes, "{command:?}");
    }
}

/// Leaves a rewind of the last session cut off, just after it was recorded what it would do.
pub(crate) fn cut_rewind_off(env: &TestEnv, name: &str) -> String {
    cut_rewind_of(env, "@last", name)
}

/// The same for a session.
pub(crate) fn cut_rewind_of(env: &TestEnv, id: &str, name: &str) -> String {
    let well = env.well();
    let session = well.lock(&well.find(id).unwrap()).unwrap();
    let facts = session.keyed_events(&[Kind::File]).unwrap().into_iter();
    let moves: Vec<_> = facts
        .filter_map(|fact| match fact.event {
            Event::File(file) if file.path == name => Some(stepwell::model::FileChanged {
                before: file.after,
                after: file.before,
                ..file
            }),
            _ => None,
        })
        .collect();
    let (to, scope, files) = (Seq::new(3), Scope::Both, moves.len() as u64);
    let begun = Rewinding::Begun { to, scope, undoes: None, files };
    let events = [begun.into()].into_iter().chain(moves.into_iter().map(Into::into));
    session.append_all(events.collect()).unwrap();
    session.id().to_string()
}

#[test]
fn a_rewind_that_was_cut_off_is_told_of_and_finished_by_a_run_of_another_session() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    for looks in [&["sessions"][..], &["show", &id], &["files", &id], &["rewind", &id, "--dry-run"]]
    {
        let ran = env.quietly(looks);
        assert_eq!(ran.code, Some(0), "{looks:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("a rewind of"), "{looks:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    }
    assert!(env.quietly(&["sessions", "--json"]).json()[0]["rewinding"].is_u64());
    env.file("other.yaml", "- {text: Done.}\n");
    let ran = env.quietly(&["run", "something else", "--model", "script:other.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("A rewind of {id} that was cut off")), "{}", ran.stderr);
    assert!(env.work().join("link").symlink_metadata().is_err());
    let listed = env.quietly(&["sessions"]);
    assert!(!listed.stderr.contains("rewind"), "{}", listed.stderr);
}

#[test]
fn a_rewind_that_was_cut_off_and_that_someone_is_in_the_way_of_is_named() {
    let env = worked();
    let id = cut_rewind_off(&env, "notes.txt");
    env.file("notes.txt", "mine\n");
    env.file("other.yaml", "- {text: Done.}\n");
    let run = ["run", "something else", "--model", "script:other.yaml"];
    let sessions = env.quietly(&["sessions", "--json"]).json().len();
    for refused in [&run[..], &["resume", &id], &["rewind", &id], &["checkpoint", &id, "x"]] {
        let ran = env.quietly(refused);
        assert_eq!(ran.code, Some(1), "{refused:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("conflict notes.txt"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    }
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), sessions);
    let ran = env.quietly(&["rewind", &id, "--finish"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("left notes.txt"), "{}", ran.stderr);
    assert_eq!(env.read("notes.txt"), "mine\n");
    assert_eq!(env.quietly(&run).code, Some(0));
}

/// Types this, which is refused with the command that finishes the rewind that was cut off.
fn is_refused_by_half(env: &TestEnv, id: &str, typed: &[&str]) {
    let seq = || env.quietly(&["show", id, "--json"]).json()[0]["seq"].clone();
    let before = seq();
    let ran = env.quietly(typed);
    assert_eq!(ran.code, Some(1), "{typed:?}: {}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(&format!("a rewind of {id} was interrupted")), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    assert_eq!(seq(), before, "{typed:?}");
}

#[test]
fn a_session_whose_rewind_was_cut_off_is_not_removed_until_it_is_finished() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    is_refused_by_half(&env, &id, &["delete", &id]);
    is_refused_by_half(&env, &id, &["purge", &id, "--yes"]);
    let cleanup = ["cleanup", "--keep-last", "0", "--yes"];
    let ran = env.quietly(&cleanup);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Sessions removed: 0\n"));
    let says = format!("{id} stays: a rewind of it was cut off; stepwell rewind {id} --finish");
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(env.quietly(&["rewind", &id, "--finish"]).code, Some(0));
    let ran = env.quietly(&cleanup);
    assert_eq!(ran.stdout.lines().last(), Some("Sessions removed: 1"), "{}", ran.stderr);
}

#[test]
fn what_would_be_set_aside_when_a_rewind_is_finished_is_refused_before() {
    let env = worked();
    let phases = ["run", "go", "--model", "script:script.yaml", "--phases", "workflow"];
    env.file("script.yaml", "- {text: Done.}\n");
    let id = cut_rewind_off(&env, "link");
    for typed in [
        &["tasks", &id, "add", "more"][..],
        &["state", &id, "goal", "another"],
        &["state", &id, "ask", "why?"],
        &["pin-message", &id, "2"],
        &["unpin-message", &id, "2"],
        &["compact", &id, "--truncate"],
    ] {
        is_refused_by_half(&env, &id, typed);
    }
    assert_eq!(env.quietly(&["rewind", &id, "--finish"]).code, Some(0));
    assert_eq!(env.quietly(&["tasks", &id, "add", "more"]).code, Some(0));
    assert_eq!(env.quietly(&phases).code, Some(0));
    let id = cut_rewind_off(&env, "none");
    is_refused_by_half(&env, &id, &["phase", &id, "initialize"]);
}

#[test]
fn a_dry_run_moves_no_files_of_a_rewind_that_was_cut_off() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    env.file("other.yaml", "- {text: Done.}\n");
    let (before, model) = (status(&env), "script:other.yaml");
    for typed in [
        &["resume", &id, "--dry-run", "--model", model][..],
        &["run", "more", "--session", &id, "--dry-run", "--model", model],
        &["run", "something else", "--dry-run", "--model", model],
    ] {
        is_refused_by_half(&env, &id, typed);
    }
    assert_eq!(status(&env), before);
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn a_dry_run_of_a_rewind_says_what_finishing_the_one_that_was_cut_off_would_do() {
    let env = worked();
    let id = cut_rewind_off(&env, "link");
    let dry = ["rewind", &id, "--to", "3", "--dry-run"];
    let ran = env.quietly(&dry);
    let says = format!(
        "{id}: finishing what was cut off, back to seq 3, chat and files (not done: --dry-run)\n  \
         remove   link\n"
    );
    assert_eq!((ran.code, ran.stdout), (Some(0), says), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    std::fs::remove_file(env.work().join("link")).unwrap();
    env.file("link", "mine");
    let ran = env.quietly(&[&dry[..], &["--json"]].concat()).json();
    assert!(ran[0]["cut_off"].is_u64(), "{ran:?}");
    assert_eq!(ran[0]["left"][0]["path"], "link");
    assert_eq!(ran[0]["files"], serde_json::json!([]));
    assert_eq!(env.read("link"), "mine");
}
