//! Sessions whose rewind was cut off: what others do about it, and what they must not do.

use crate::rewinding::{cut_rewind_of, cut_rewind_off, worked};

#[test]
fn a_fork_of_a_session_whose_rewind_was_cut_off_begins_with_whole_files() {
    let desk = worked();
    let id = cut_rewind_off(&desk, "link");
    let ran = desk.quietly(&["fork", &id]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("A rewind of {id} that was cut off")), "{}", ran.stderr);
    assert!(desk.work().join("link").symlink_metadata().is_err());
    // Someone is in the way: nothing is forked.
    let desk = worked();
    let id = cut_rewind_off(&desk, "notes.txt");
    desk.file("notes.txt", "mine\n");
    let ran = desk.quietly(&["fork", &id]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("stepwell rewind {id} --finish")), "{}", ran.stderr);
    assert_eq!(desk.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn the_trash_keeps_a_session_whose_rewind_was_cut_off() {
    let mut desk = worked();
    let id = cut_rewind_off(&desk, "link");
    // As earlier versions did.
    desk.well().delete(&id.parse().unwrap()).unwrap();
    desk.set("STEPWELL_NOW", "2027-03-09T12:00:00Z");
    let says = format!("stepwell trash restore {id}, then stepwell rewind {id} --finish");
    let ran = desk.quietly(&["trash", "empty", "--yes"]);
    assert!(ran.stderr.contains(&says), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "");
    desk.file("other.yaml", "- {text: Done.}\n");
    let run = ["run", "something else", "--model", "script:other.yaml"];
    assert_eq!(desk.quietly(&run).code, Some(0));
    let ran = desk.quietly(&["label", "@last", "x"]);
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    for typed in [&["trash", "restore", &id][..], &["rewind", &id, "--finish"], &["delete", &id]] {
        let ran = desk.quietly(typed);
        assert_eq!(ran.code, Some(0), "{typed:?}: {}", ran.stderr);
    }
    let ran = desk.quietly(&["trash", "empty", "--yes"]);
    assert_eq!(ran.stdout, format!("Erased {id}\n"));
}

#[test]
fn a_flow_begins_and_goes_on_with_whole_files() {
    let desk = worked();
    desk.file(
        "flow.yaml",
        "version: 0\nname: one\nagents: {a: {prompt: go}}\npattern:\n  type: chain\n  config:\n    \
         steps: [{agent: a, input: go}, {type: hitl, prompt: 'Is it good?'}]\n",
    );
    desk.file("lanes.yaml", "lanes:\n  a: [{text: Done.}]\n");
    let id = desk.well().find("@last").unwrap().to_string();
    let flow = ["flow", "run", "flow.yaml", "--model", "script:lanes.yaml"];
    let finishes = |typed: &[&str], code, file: &str| {
        cut_rewind_of(&desk, &id, file);
        let ran = desk.quietly(typed);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        let finished = format!("A rewind of {id} that was cut off");
        assert!(ran.stderr.contains(&finished), "{typed:?}: {}", ran.stderr);
        assert!(desk.work().join(file).symlink_metadata().is_err());
    };
    finishes(&flow, 8, "link");
    let sessions = desk.quietly(&["sessions", "--json"]).json();
    let flow = sessions.iter().find(|it| it["id"] != id).unwrap()["id"].as_str().unwrap();
    finishes(&["resume", flow, "--respond", "yes"], 0, "data.bin");
}

#[test]
fn what_would_get_in_the_way_of_a_rewind_that_goes_on_is_busy() {
    let desk = worked();
    let id = cut_rewind_off(&desk, "link");
    let well = desk.well();
    let _held = well.hold(&id.parse().unwrap()).unwrap();
    desk.file("other.yaml", "- {text: Done.}\n");
    for typed in [
        &["fork", &id][..],
        &["rewind", &id, "--dry-run"],
        &["rewind", &id, "--finish"],
        &["checkpoint", &id, "x"],
        &["delete", &id],
        &["run", "something else", "--model", "script:other.yaml"],
    ] {
        // The real time: a lease must not look as if it had run out.
        let ran = desk.command(typed).env_remove("STEPWELL_NOW").output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(6), "{typed:?}: {said}");
    }
    assert!(desk.work().join("link").symlink_metadata().is_ok());
    assert_eq!(desk.quietly(&["sessions", "--json"]).json().len(), 1);
}

#[test]
fn cleaning_up_by_the_way_says_what_stays() {
    let mut desk = worked();
    let id = cut_rewind_off(&desk, "link");
    desk.set("STEPWELL_NOW", "2027-03-09T12:00:00Z");
    let cleaning = ["--config", "sessions.auto_cleanup=true"];
    let other = desk.well().create(desk.well().draft("another")).unwrap().id().to_string();
    let ran = desk.quietly(&[&["label", &other, "x"], &cleaning[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let says = format!("{id} stays: a rewind of it was cut off; stepwell rewind {id} --finish");
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(desk.quietly(&["sessions", "--json"]).json().len(), 2);
}
