//! chat, on a terminal: a day of work, kills, and coming back.

use std::process::Stdio;

use stepwell::model::Role;
use stepwell::store::Span;
use stepwell::store::query::{Family, Filter, Query};
use stepwell::{Event, Message, Status, StopReason};
use stepwell_strict::{Ending, Say, Strict};
use tokio::runtime::Runtime;

use crate::running;
use crate::seat::Seat;
use crate::talking::open_gate;
use crate::test_env::TestEnv;

/// What a model says over a day: it looks, writes a file, and answers more questions.
const DAY: &str = "
answers:
  - text: I write **the file**.
    calls: [{tool: write_file, arguments: {path: notes.md, content: 'first'}}]
  - text: It is written.
  - text: Of course, here is more.
  - text: 'Then otherwise: fine.'
";

fn chat(env: &TestEnv, args: &[&str]) -> Seat {
    Seat::sit(env.command(&[&["chat"], args].concat()))
}

/// What was said in the only session, and how it stands.
fn said(env: &TestEnv) -> (Status, Vec<(Role, String)>) {
    let well = env.well();
    let id = well.find("@last").unwrap();
    let events = well.store().events(&id, Span::ALL).unwrap().events;
    let messages = events.into_iter().filter_map(|event| match event.event {
        Event::Message(Message { role: Role::System | Role::Tool, .. }) => None,
        Event::Message(message) => Some((message.role, message.text())),
        _ => None,
    });
    (well.info(&id).unwrap().head.status, messages.collect())
}

#[test]
fn a_day_of_work_survives_a_kill_during_an_approval() {
    let env = running::env(DAY);
    let mut seat = chat(&env, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("write the notes\r");
    seat.until("I write the file.").until("Allow").until("arrows and Enter");
    seat.kill();
    assert!(!env.work().join("notes.md").exists());
    // It waits for its answer, and asks again.
    let mut seat = chat(&env, &[]);
    seat.until("waits for you").press("\u{1b}[B\r").until("write the notes");
    seat.answer("Allow once").until("It is written.").until("what next?");
    assert_eq!(env.read("notes.md"), "first");
    seat.press("more\r").until("here is more.").until("what next?");
    // A command of the terminal, one of the user's own, one that there is none of.
    seat.press("/rename my notes\r").until("my notes");
    seat.press("!cat notes.md\r").until("  first");
    seat.press("/resme\r").until("did you mean /resume?");
    // Back to before what was said last.
    seat.press("/rewind\r").until("Go back to").press("\r").until("Bring back:").press("\r");
    seat.until_gone("Go back to").until("the session was changed").until("› more");
    seat.press("\u{15}then otherwise\r").until("working").until("what next?");
    let (screen, code) = seat.leave();
    assert!(screen.contains("Saved. stepwell chat "), "{screen}");
    assert_eq!(code, Some(0));
    let (status, messages) = said(&env);
    assert_eq!(status, Status::Success);
    let words: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(words[0], "write the notes");
    assert!(words.contains(&"then otherwise") && words.contains(&"more"), "{words:?}");
    assert!(words.iter().any(|text| text.starts_with("I ran `cat notes.md`")), "{words:?}");
    // All of it is there when it is opened again.
    let mut seat = chat(&env, &["my notes"]);
    seat.until("then otherwise").until("what next?");
    assert!(!seat.screen().contains("› more"), "what was taken back is not shown");
    seat.leave();
}

/// A chat whose model has been asked, and stopped in the middle of its answer.
fn while_it_speaks(env: &TestEnv, strict: &Strict, runtime: &Runtime) -> Seat {
    strict.push(Say::text("Half of the answer").ending(Ending::SilentAfter(5)));
    let mut seat = chat(env, &["--model", "local/large"]);
    seat.until("what is to be done?").press("tell me\r");
    runtime.block_on(strict.arrived(1));
    seat
}

#[test]
fn a_kill_while_the_model_speaks_loses_nothing_that_was_said() {
    let (env, strict, _runtime) = running::with_provider("openai");
    strict.push(Say::text("Half of the answer").ending(Ending::SilentAfter(5)));
    let mut seat = chat(&env, &["--model", "local/large"]);
    seat.until("what is to be done?").press("tell me\r").until("Half of the answer");
    // What is said meanwhile is on record at once.
    seat.press("and be brief\r").until("» and be brief");
    while env.well().info(&env.well().find("@last").unwrap()).unwrap().head.unheard == 0 {
        std::thread::yield_now();
    }
    seat.kill();
    strict.push(Say::text("The whole answer."));
    strict.push(Say::text("The brief answer."));
    let mut seat = chat(&env, &["@last"]);
    seat.until("tell me").until("answer.").until("what next?");
    seat.leave();
    let (status, messages) = said(&env);
    assert_eq!(status, Status::Success);
    let mine: Vec<&str> = messages
        .iter()
        .filter(|(role, _)| *role == Role::User)
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(mine, ["tell me", "and be brief"]);
}

#[test]
fn stepwell_alone_talks_on_a_terminal_and_helps_in_a_pipe() {
    let env = TestEnv::new();
    let mut seat = Seat::sit(env.command(&[]));
    seat.until("Say what to do.");
    assert_eq!(seat.leave().1, Some(0));
    let piped = env.quietly(&[]);
    assert_eq!(piped.code, Some(2));
    assert!(format!("{}{}", piped.stdout, piped.stderr).contains("Usage: stepwell"));
    let piped = env.quietly(&["chat"]);
    assert_eq!(piped.code, Some(2));
    assert!(piped.stderr.contains("needs a terminal"), "{}", piped.stderr);
}

#[test]
fn a_screen_reader_gets_lines_and_no_escapes() {
    let mut env = running::env(DAY);
    let ran = env.feed(
        &["chat", "--plain", "--model", "script:script.yaml", "--mode", "yolo"],
        "write the notes\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}'));
    for line in ["you: write the notes", "tool write_file", "agent: It is written."] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert_eq!(env.read("notes.md"), "first");
}

#[test]
fn control_c_stops_the_turn_of_a_screen_reader_and_loses_nothing() {
    let (env, strict, runtime) = running::with_provider("openai");
    strict.push(Say::text("Half of the answer").ending(Ending::SilentAfter(5)));
    let mut seat = chat(&env, &["--plain", "--model", "local/large"]);
    seat.until("Say what to do.").press("tell me\n");
    runtime.block_on(strict.arrived(1));
    seat.interrupt().until("Ctrl+C again leaves").until("stopped; say something to go on");
    let head = env.well().info(&env.well().find("@last").unwrap()).unwrap().head;
    assert_eq!(head.stop_reason, Some(StopReason::UserInterrupt));
    strict.push(Say::text("The whole answer."));
    seat.press("once more\n").until("The whole answer.").press("/quit\n");
    let (screen, code) = seat.end();
    assert!(screen.contains("Saved. stepwell chat "), "{screen}");
    assert_eq!(code, Some(0));
}

#[test]
fn what_models_and_tools_say_cannot_drive_the_terminal() {
    let env = running::env(
        r#"
answers:
  - text: "I look.\u001b]0;owned\u0007\u001b[2J\u009b31m"
    calls: [{tool: run_command, arguments: {command: "printf '\\033]52;c;aGk=\\007seen\\033[8m'"}}]
  - text: "It is \u202edone."
"#,
    );
    let mut seat = chat(&env, &["--model", "script:script.yaml", "--mode", "yolo"]);
    seat.until("what is to be done?").press("look\r").until("It is done.").until("what next?");
    assert!(seat.screen().contains("I look.") && seat.screen().contains("seen"));
    let written = seat.written();
    for drives in ["owned", "\u{1b}]52", "\u{1b}[2J", "\u{9b}", "\u{1b}[8m", "\u{202e}"] {
        assert!(!written.contains(drives), "{drives:?} was written: {written:?}");
    }
    seat.leave();
}

#[test]
fn forty_columns_without_colours_are_enough() {
    let mut env = running::env(DAY);
    env.set("NO_COLOR", "1");
    let command = env.command(&["chat", "--model", "script:script.yaml"]);
    let mut seat = Seat::sit_before(command, (40, 20));
    seat.until("what is to be done?").press("write the notes\r").answer("Allow once");
    seat.until("It is written.").until("what next?");
    seat.press("\u{12}").until("Sessions").press("\u{1b}").until("what next?");
    let written = seat.written();
    let colour = regex::Regex::new("\u{1b}\\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7]|38;5)m?[;m]").unwrap();
    assert!(!colour.is_match(&written), "{:?}", colour.find(&written));
    seat.leave();
}

#[test]
fn a_run_elsewhere_is_watched_and_answered_on_the_same_screen() {
    let env = running::env(DAY);
    let args = ["run", "write the notes", "--wait", "--model", "script:script.yaml"];
    let mut command = env.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    open_gate(&env);
    let mut seat = Seat::sit(env.command(&["attach", "@last"]));
    seat.until("runs it").until("I write the file.");
    seat.answer("Allow once").until("It is written.").until("it ended there: success");
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(env.read("notes.md"), "first");
    // From now on it is a conversation like any other.
    seat.press("more\r").until("here is more.").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
}

#[test]
fn an_answer_elsewhere_is_seen_while_it_comes_and_once() {
    let (half, whole) = ("Half an answer,", "Half an answer, and the rest of it.");
    for how in [&["attach", "@last"][..], &["attach", "@last", "--plain"]] {
        let (env, strict, runtime) = running::with_provider("openai");
        strict.push(Say::text(whole).ending(Ending::PausedAfter(4)));
        let mut command = env.command(&["run", "tell me", "--model", "local/large"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        runtime.block_on(strict.arrived(1));
        let mut seat = Seat::sit(env.command(how));
        seat.until(half);
        let (_, messages) = said(&env);
        assert!(messages.iter().all(|(role, _)| *role != Role::Assistant), "{messages:?}");
        strict.go_on();
        seat.until(whole);
        assert_eq!(run.wait().unwrap().code(), Some(0));
        let (screen, code) = match how.len() {
            2 => {
                seat.until("it ended there: success");
                seat.leave()
            }
            _ => seat.end(),
        };
        assert_eq!((screen.matches(half).count(), code), (1, Some(0)), "{screen}");
    }
}

#[test]
fn a_run_that_is_watched_goes_on_when_the_watcher_leaves() {
    let env = running::env(DAY);
    let args = ["run", "write the notes", "--wait", "--model", "script:script.yaml"];
    let mut command = env.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let (id, gate) = open_gate(&env);
    let mut seat = chat(&env, &["@last"]);
    seat.until("runs it").until("arrows and Enter");
    let (screen, _) = seat.leave();
    assert!(screen.contains("It goes on; stepwell attach"), "{screen}");
    let answered = env.quietly(&["gates", "answer", &gate, "yes"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(env.well().info(&id).unwrap().head.status, Status::Success);
}

#[test]
fn detach_leaves_the_run_to_the_background_where_it_asks_again() {
    let env = running::env(DAY);
    let mut seat = chat(&env, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("write the notes\r").until("arrows and Enter");
    seat.press("/detach\r");
    let (screen, code) = seat.end();
    assert!(screen.contains("It goes on in the background"), "{screen}");
    assert_eq!(code, Some(0));
    let (id, gate) = open_gate(&env);
    let answered = env.quietly(&["gates", "answer", &gate, "yes"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    // It is followed until it ends.
    let followed = env.quietly(&["attach", id.as_str()]);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(env.well().info(&id).unwrap().head.status, Status::Success);
    assert_eq!(env.read("notes.md"), "first");
}

#[test]
fn a_session_of_another_agent_is_found_read_in_and_opened() {
    let mut env = crate::foreign::agents();
    env.say("config set --user other_agents.index true");
    let mut seat = Seat::sit_before(env.command(&[]), (100, 24));
    seat.until("what is to be done?").press("\u{12}").until("this workspace");
    seat.press("\u{12}").until("everywhere").until("claude-code");
    seat.press("\r").until_gone("everywhere").until("what next?");
    let filter = Filter { family: Family::Roots, ..Filter::default() };
    let roots = Query { filter, ..Query::default() };
    let imported = env.well().list(&roots).unwrap().sessions;
    assert_eq!(imported.len(), 1, "only the one that was opened is read in");
    assert_eq!(seat.leave().1, Some(0));
}

#[test]
fn guided_work_is_led_from_a_goal_to_its_questions_in_the_conversation() {
    let env = running::env(
        r#"
answers:
  - text: '{"questions": [{"question": "Which port?", "suggestions": ["80", "8080"]}]}'
"#,
    );
    let mut seat = chat(&env, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("/discuss add a health check\r");
    seat.until("guided work: add a health check").until("discuss");
    seat.press("\u{3}").until("Ctrl+C again").press("\u{3}");
    assert_eq!(seat.end().1, Some(0));
    let well = env.well();
    let head = well.info(&well.find("@last").unwrap()).unwrap().head;
    assert_eq!(head.flow.unwrap().pattern, "guided");
}

#[test]
fn after_a_resize_the_live_part_stays_where_it_was() {
    let env = TestEnv::new();
    let mut seat = Seat::sit(env.command(&[]));
    let row = |seat: &Seat, text| seat.screen().lines().position(|line| line.starts_with(text));
    // The live part moves down once, when it is known what there is to greet with.
    seat.until("Say what to do.").until("› what is to be done?");
    let before = row(&seat, "› what is to be done?");
    seat.resize((100, 24)).until(&"─".repeat(100));
    let after = row(seat.press("hello").until("› hello"), "› hello");
    assert_eq!(after, before, "{}", seat.screen());
    seat.press("\u{15}");
    assert_eq!(seat.leave().1, Some(0));
}

#[test]
fn the_newest_session_is_resumed_at_once_if_the_user_wants_that() {
    let mut env = running::env(DAY);
    let paused = env.quietly(&["run", "write the notes", "--model", "script:script.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    env.say("config set sessions.resume_on_startup true");
    let mut seat = Seat::sit(env.command(&[]));
    seat.until("write the notes").answer("Deny").until("not allowed");
    seat.until("It is written.").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
    assert!(!env.work().join("notes.md").exists());
}

#[test]
fn the_beginning_of_a_command_is_seen_however_many_blanks_follow_and_a_long_change_is_read_first() {
    let blanks = " ".repeat(3000);
    let content = (1..=501).map(|n| format!("line {n}\\n")).collect::<String>();
    let env = running::env(&format!(
        r#"
answers:
  - text: I look.
    calls: [{{tool: run_command, arguments: {{command: "echo HEAD > evil.txt; echo{blanks}; ls"}}}}]
  - text: I write.
    calls: [{{tool: write_file, arguments: {{path: long.txt, content: "{content}"}}}}]
  - text: It is done.
"#
    ));
    let mut seat = chat(&env, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("go\r").until("arrows and Enter");
    assert!(seat.screen().contains("Allow run echo HEAD > evil.txt; echo ␣×3000 ; ls?"));
    seat.answer("Deny").until("I write.").until("more lines: Ctrl+O shows them");
    // Nobody allows what they were not shown the end of.
    seat.answer("Allow once").until("what it would do").press("\u{1b}[F").until("+line 501");
    seat.press("q").until("arrows and Enter");
    assert!(!env.work().join("long.txt").exists());
    seat.answer("Allow once").until("It is done.").until("what next?");
    assert!(env.read("long.txt").ends_with("line 501\n"));
    assert!(!env.work().join("evil.txt").exists());
    seat.leave();
}

#[test]
fn a_session_that_a_person_stopped_stays_stopped_until_they_say_something() {
    let (mut env, strict, runtime) = running::with_provider("openai");
    let mut seat = while_it_speaks(&env, &strict, &runtime);
    seat.press("\u{1b}").until("stopped; say something to go on");
    seat.leave();
    // Opening it runs nothing.
    let mut seat = chat(&env, &["@last"]);
    seat.until("it was stopped").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
    assert_eq!(strict.asked().len(), 1, "no model was asked");
    // Nor does starting without a task take it up.
    env.say("config set sessions.resume_on_startup true");
    let mut seat = chat(&env, &[]);
    seat.until("what is to be done?").until("stopped");
    seat.leave();
    let run = env.quietly(&["run"]);
    assert!(run.stderr.contains("there is no session here to resume"), "{}", run.stderr);
    // Words do.
    strict.push(Say::text("The whole answer."));
    let mut seat = chat(&env, &["@last"]);
    seat.until("it was stopped").press("go on\r").until("The whole answer.").until("what next?");
    seat.leave();
}

#[test]
fn a_question_that_somebody_left_is_asked_again_when_they_come_back() {
    let env = running::env(DAY);
    let mut seat = chat(&env, &["--model", "script:script.yaml"]);
    seat.until("what is to be done?").press("write the notes\r").until("Allow write notes.md");
    seat.leave();
    let head = env.well().info(&env.well().find("@last").unwrap()).unwrap().head;
    assert_eq!(head.stop_reason, Some(StopReason::Gate), "it was left, not stopped");
    let mut seat = chat(&env, &["@last"]);
    seat.until("Allow write notes.md");
    seat.leave();
}

#[test]
fn a_run_that_died_before_it_heard_a_stop_stays_stopped() {
    let (env, strict, runtime) = running::with_provider("openai");
    let seat = while_it_speaks(&env, &strict, &runtime);
    // It no longer answers: it hears nothing of the stop.
    seat.freeze();
    let stopped = env.quietly(&["stop", "@last"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    seat.kill();
    let head = env.well().info(&env.well().find("@last").unwrap()).unwrap().head;
    assert_eq!(head.stop_reason, Some(StopReason::UserInterrupt));
    let mut seat = chat(&env, &["@last"]);
    seat.until("it was stopped").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
    assert_eq!(strict.asked().len(), 1, "no model was asked");
}

#[test]
fn leaving_while_a_model_works_stops_the_session() {
    let (env, strict, runtime) = running::with_provider("openai");
    let seat = while_it_speaks(&env, &strict, &runtime);
    assert_eq!(seat.leave().1, Some(0));
    let head = env.well().info(&env.well().find("@last").unwrap()).unwrap().head;
    assert_eq!(head.stop_reason, Some(StopReason::UserInterrupt));
    let mut seat = chat(&env, &["@last"]);
    seat.until("it was stopped").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
    assert_eq!(strict.asked().len(), 1, "no model was asked");
}
