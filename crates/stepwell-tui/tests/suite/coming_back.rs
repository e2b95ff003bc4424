//! Stopping, leaving and coming back; and what is shown of a session then.

use std::time::Duration;

use stepwell::{Message, Status};
use stepwell_runtime::command::SessionCommand;
use stepwell_runtime::inspect::Depth;
use stepwell_tui::{Clean, Effect, Helper, Input, Reply, SessionRow, Told, plain_start};

use crate::answers::{forked, of};
use crate::chat::resume;
use crate::stage::{Stage, id, opened, recorded, row};

#[test]
fn what_was_not_cut_off_asks_no_model_when_it_is_opened() {
    // A fork, or one that was taken back: nothing stopped it.
    let mut rests = opened(Status::Interrupted);
    rests.rests = true;
    let mut stage = Stage::new();
    assert!(stage.reply(Reply::Opened(Box::new(rests))).is_empty());
    assert!(!stage.state.is_working());
    // One that ended before it was done says how it goes on.
    let mut stage = Stage::new();
    assert!(stage.reply(Reply::Opened(Box::new(opened(Status::Partial)))).is_empty());
    assert!(stage.printed().contains("it ended before it was done"));
    assert_eq!(stage.send("/continue"), [resume(None)]);
}

#[test]
fn a_session_that_a_person_stopped_stays_stopped_when_it_is_opened() {
    for (waiting, unheard) in [(0, 0), (1, 0), (0, 1)] {
        let mut stopped = opened(Status::Interrupted);
        (stopped.stopped, stopped.waiting, stopped.unheard) = (true, waiting, unheard);
        let mut stage = Stage::new();
        assert!(stage.reply(Reply::Opened(Box::new(stopped))).is_empty());
        assert!(!stage.state.is_working());
        assert!(stage.printed().contains("it was stopped: say what is next, or /continue"));
        assert_eq!(stage.send("/continue"), [resume(None)]);
    }
}

#[test]
fn lists_say_how_a_session_stands_in_the_same_words() {
    let mut rows = vec![row("s-1", "a"), row("s-2", "b"), row("s-3", "c"), row("s-4", "d")];
    rows[0].waiting = 1;
    (rows[1].status, rows[1].cut_off) = (Status::Interrupted, true);
    (rows[2].status, rows[2].rests) = (Status::Interrupted, true);
    rows[3].status = Status::Interrupted;
    let words: Vec<&str> = rows.iter().map(SessionRow::standing).collect();
    assert_eq!(words, ["waits for you", "cut off", "ready", "stopped"]);
    for columns in [40, 60, 80] {
        let mut stage = Stage::sized(columns, 20);
        stage.reply(Reply::Start(rows.clone()));
        let (screen, plain) = (stage.screen(), plain_start(&stage.state).join("\n"));
        for word in words.iter() {
            assert!(screen.contains(word), "{columns}: {screen}");
            assert!(plain.contains(word), "{plain}");
        }
    }
}

#[test]
fn what_the_model_was_told_in_the_users_place_is_not_shown_as_their_words() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.printed();
    stage.record(Message::user(stepwell_agent::provider::NOT_DONE));
    assert_eq!(stage.printed(), "· the agent was told to go on");
}

#[test]
fn control_c_stops_the_turn_and_twice_leaves_where_lines_are_typed() {
    let mut stage = Stage::open();
    stage.input(Input::Line("go".into()));
    assert_eq!(stage.input(Input::Cancel), [Effect::Interrupt]);
    assert!(!stage.state.has_left());
    assert!(stage.state.flash().is_some_and(|said| said.as_str().contains("Ctrl+C again leaves")));
    // What is said of the second one holds as long as the second one does.
    stage.now += Duration::from_millis(1600);
    stage.input(Input::Tick);
    assert!(stage.state.flash().is_none());
    stage.end(Status::Interrupted);
    stage.input(Input::Cancel);
    assert_eq!(stage.input(Input::Cancel), [Effect::Leave]);
    let farewell = stage.state.farewell().unwrap();
    assert_eq!(farewell, "Saved. stepwell chat s-one comes back to it");
    // A process that is to end leaves at once.
    let mut stage = Stage::open();
    assert_eq!(stage.input(Input::Ending), [Effect::Leave]);
}

#[test]
fn what_is_typed_to_come_back_stays_on_one_line_of_forty_columns() {
    let mut stage = Stage::sized(40, 20);
    let mut session = opened(Status::Success);
    session.card.id = id("20261116-160051-cb3e3b");
    stage.reply(Reply::Opened(Box::new(session)));
    let farewell = stage.state.farewell().unwrap();
    assert!(farewell.lines().all(|line| line.len() <= 40), "{farewell}");
    assert!(farewell.contains("stepwell chat 20261116-160051-cb3e3b\n"), "{farewell}");
}

#[test]
fn an_edit_that_is_unfolded_shows_what_it_changed() {
    let edit = r#"{"path":"a.txt","old_text":"old line","new_text":"new line"}"#;
    for details in [false, true] {
        let mut stage = Stage::open();
        stage.send("go");
        stage.printed();
        if details {
            stage.key("ctrl+o");
        }
        stage.record(Message::assistant("").calling("c9", "edit_file", edit));
        stage.record(Message::tool_result("c9", "a.txt: written"));
        let printed = stage.printed();
        assert!(printed.contains("a.txt: written"), "{printed}");
        assert_eq!(printed.contains("  -old line\n  +new line"), details, "{printed}");
        // The whole conversation always shows it.
        stage.key("ctrl+t");
        assert!(stage.screen().contains("+new line"), "{}", stage.screen());
    }
}

#[test]
fn a_tool_is_not_named_twice() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.printed();
    stage.start_tool("c1", "run cargo test");
    assert!(stage.screen().contains("◐ run cargo test"), "{}", stage.screen());
    stage.start_tool("c2", "cargo test");
    assert!(stage.screen().contains("◐ run_command cargo test"), "{}", stage.screen());
}

#[test]
fn a_fork_says_that_it_is_another_session() {
    let mut stage = Stage::open();
    stage.printed();
    stage.reply(forked("s-one", "s-two"));
    let mut fork = opened(Status::Interrupted);
    (fork.card.id, fork.resume, fork.rests) = (id("s-two"), false, true);
    stage.reply(Reply::Opened(Box::new(fork)));
    let printed = stage.printed();
    assert!(printed.contains("another session: s-two, a fork of s-one"), "{printed}");
}

#[test]
fn who_works_for_a_session_is_listed_with_what_it_is_to_do() {
    let mut stage = Stage::open();
    stage.send("go");
    let told = Told::Recorded(Box::new(recorded(1, Message::user("look at the tests"))));
    stage.told(Told::Within { name: Clean::new("s-sub"), told: Box::new(told) });
    let titles: Vec<_> = stage.state.helpers.iter().map(Helper::title).collect();
    assert_eq!(titles, [Clean::new("s-sub look at the tests")]);
    stage.send("/agents");
    assert!(stage.screen().contains("s-sub look at the tests"), "{}", stage.screen());
    stage.key("enter");
    assert!(stage.screen().contains("› look at the tests"), "{}", stage.screen());
}

#[test]
fn who_worked_for_a_session_before_is_read_and_can_be_looked_at() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/agents"), [Effect::ListHelpers(id("s-one"))]);
    let mut helper = Helper::new(Clean::new("s-sub"));
    (helper.task, helper.ended) = (Clean::new("explore: look around"), Some(Status::Success));
    helper.transcript.record(&recorded(1, Message::assistant("It is all there.")));
    let session = id("s-one");
    stage.reply(Reply::Helpers { session: session.clone(), helpers: vec![helper] });
    let screen = stage.screen();
    assert!(screen.contains("s-sub explore: look around · success"), "{screen}");
    stage.key("enter");
    assert!(stage.screen().contains("It is all there."), "{}", stage.screen());
    // Where nobody did, the family is shown.
    let mut stage = Stage::open();
    let shown = stage.reply(Reply::Helpers { session, helpers: Vec::new() });
    assert_eq!(shown, [of("s-one", SessionCommand::Show(Depth::Family))]);
}
