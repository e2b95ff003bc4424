//! The conversation: typing, sending, streaming, stopping, leaving.

use std::time::Duration;

use stepwell::model::Mode;
use stepwell::{Message, Seq, Status};
use stepwell_tui::{
    Block, Clean, Effect, Ended, Input, Page, PointsFor, Reach, Reply, RunSettings, Told,
    ToolOutcome, Visit,
};

use crate::answers::moved;
use crate::stage::{Stage, card, id, open, opened, row, shell};

pub(crate) fn start(task: &str) -> Vec<Effect> {
    vec![Effect::Start { task: task.into(), settings: RunSettings::default() }]
}

pub(crate) fn resume(say: Option<&str>) -> Effect {
    Effect::Resume {
        session: id("s-one"),
        say: say.map(Into::into),
        settings: RunSettings::default(),
    }
}

/// A command of the user's own in the session that was opened first is done.
pub(crate) fn own_done(command: &str, output: Clean, failed: Option<Clean>) -> Reply {
    Reply::ShellDone { command: command.into(), output, failed, visit: Visit(1) }
}

#[test]
fn what_is_typed_first_begins_a_session() {
    let mut stage = Stage::new();
    stage.reply(Reply::Start(vec![row("s-1", "fix the build"), row("s-2", "write docs")]));
    insta::assert_snapshot!(stage.screen(), @"
    Stepwell in ~/project
    Say what to do, or go on with (Up, Down, Enter):
      fix the build                             success · 3m ago
      write docs                                success · 3m ago
    ────────────────────────────────────────────────────────────
    › what is to be done?
    anthropic/sonnet · confirm-sensitive
    ");
    stage.type_text("tidy");
    stage.key("ctrl+j");
    stage.type_text("up");
    assert_eq!(stage.key("enter"), start("tidy\nup"));
    insta::assert_snapshot!(stage.screen(), @"
    ◐ working 0s · Esc stops
    » tidy up
    ────────────────────────────────────────────────────────────
    › say something: it is told before its next step
    anthropic/sonnet · confirm-sensitive
    ");
    assert_eq!(stage.told(Told::Began(id("s-one"))), [Effect::ReadCard(id("s-one"))]);
}

#[test]
fn the_start_screen_resumes_what_is_selected() {
    let mut stage = Stage::new();
    stage.reply(Reply::Start(vec![row("s-1", "fix the build"), row("s-2", "write docs")]));
    stage.key("down");
    stage.key("down");
    assert_eq!(stage.key("enter"), [open("s-2", true, 1)]);
    // Typing deselects.
    let mut stage = Stage::new();
    stage.reply(Reply::Start(vec![row("s-1", "fix the build")]));
    stage.key("down");
    stage.type_text("x");
    assert_eq!(stage.key("enter"), start("x"));
}

#[test]
fn an_opened_session_shows_its_last_messages_and_goes_on_only_if_it_was_cut_off() {
    let mut stage = Stage::new();
    assert!(stage.reply(Reply::Opened(Box::new(opened(Status::Success)))).is_empty());
    insta::assert_snapshot!(stage.printed(), @r#"

    › tidy up
    ● read_file {"path":"a.txt"}
      one
      two
      three
      … 2 more lines

    Done: all is tidy.
    "#);
    insta::assert_snapshot!(stage.screen(), @"
    ────────────────────────────────────────────────────────────
    › what next?
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
    let mut stage = Stage::new();
    assert_eq!(stage.reply(Reply::Opened(Box::new(opened(Status::Interrupted)))), [resume(None)]);
    assert!(stage.state.is_working());
    let mut waiting = opened(Status::Paused);
    waiting.waiting = 1;
    assert_eq!(Stage::new().reply(Reply::Opened(Box::new(waiting))), [resume(None)]);
}

#[test]
fn an_answer_is_printed_as_its_parts_are_settled_and_never_twice() {
    let mut stage = Stage::open();
    stage.printed();
    assert_eq!(stage.send("go"), [resume(Some("go"))]);
    stage.record(Message::user("go"));
    assert_eq!(stage.printed(), "\n› go");
    stage.told(Told::Text("First *par".into()));
    assert_eq!(stage.printed(), "");
    insta::assert_snapshot!(stage.screen(), @"

    First *par
    ◐ working 0s · Esc stops
    ────────────────────────────────────────────────────────────
    › say something: it is told before its next step
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
    stage.told(Told::Text("t*.\n\nSecond".into()));
    assert_eq!(stage.printed(), "\nFirst part.");
    stage.told(Told::Text(" part.".into()));
    stage.record(Message::assistant("First *part*.\n\nSecond part."));
    assert_eq!(stage.printed(), "\nSecond part.");
    stage.end(Status::Success);
    assert_eq!(stage.printed(), "");
}

#[test]
fn an_answer_that_did_not_stream_is_printed_when_it_is_on_record() {
    let mut stage = Stage::open();
    stage.printed();
    stage.record(Message::assistant("Hello"));
    assert_eq!(stage.printed(), "\nHello");
}

#[test]
fn tools_are_live_while_they_run_and_printed_in_order() {
    let mut stage = Stage::open();
    stage.printed();
    stage.send("go");
    stage.record(Message::user("go"));
    stage.start_tool("c1", "cargo test");
    stage.start_tool("c2", "ls");
    stage.told(Told::ToolFinished {
        call: "c2".into(),
        outcome: ToolOutcome::Done,
        output: Clean::new("a\nb"),
    });
    stage.told(Told::ToolOutput {
        call: "c1".into(),
        ran: Duration::from_secs(75),
        tail: Clean::new("compiling"),
    });
    assert_eq!(stage.printed(), "\n› go");
    insta::assert_snapshot!(stage.screen(), @"
    ◐ run_command cargo test 1m 15s
      compiling
    ● run_command ls
      a
      b
    ◐ working 0s · Esc stops
    ────────────────────────────────────────────────────────────
    › say something: it is told before its next step
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
    stage.told(Told::ToolFinished {
        call: "c1".into(),
        outcome: ToolOutcome::Failed,
        output: Clean::new("no\n1\n2\n3"),
    });
    // What is recorded of it afterwards changes nothing.
    stage.record(Message::tool_result("c1", "no"));
    assert_eq!(
        stage.printed(),
        "● run_command cargo test failed\n  no\n  1\n  2\n  … 1 more lines\n● run_command ls\n  a\n  b"
    );
}

#[test]
fn thinking_is_shown_only_on_request() {
    let mut stage = Stage::open();
    stage.printed();
    stage.told(Told::Thinking("hmm".into()));
    assert!(!stage.screen().contains("hmm"));
    stage.send("/thinking");
    assert!(stage.screen().contains("∴ hmm"));
    stage.told(Told::Text("so".into()));
    assert_eq!(stage.printed(), "\n∴ hmm");
}

#[test]
fn ctrl_o_unfolds_what_tools_write_from_then_on() {
    let mut stage = Stage::open();
    stage.printed();
    stage.key("ctrl+o");
    stage.start_tool("c1", "seq 5");
    let output = Clean::new("1\n2\n3\n4\n5");
    stage.told(Told::ToolFinished { call: "c1".into(), outcome: ToolOutcome::Done, output });
    assert!(stage.printed().ends_with("  5"));
}

#[test]
fn words_while_it_works_are_queued_and_leave_the_queue_when_they_are_on_record() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.record(Message::user("go"));
    let say = Effect::Say { session: id("s-one"), text: "and tests".into() };
    assert_eq!(stage.send("and tests"), [say]);
    assert_eq!(stage.state.composer.queue, [Clean::new("and tests")]);
    stage.record(Message::user("and tests"));
    assert!(stage.state.composer.queue.is_empty());
}

#[test]
fn words_that_come_as_the_turn_ends_begin_the_next_one() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.record(Message::user("go"));
    stage.send("and tests");
    let effects = stage.end(Status::Success);
    assert_eq!(effects, [Effect::ReadCard(id("s-one")), resume(None)]);
    assert!(stage.state.is_working());
}

#[test]
fn words_before_the_session_has_a_name_are_said_when_it_has() {
    let mut stage = Stage::new();
    stage.send("one");
    assert_eq!(stage.send("two"), [Effect::SayFirst("two".into())]);
    assert_eq!(stage.told(Told::Began(id("s-one"))), [Effect::ReadCard(id("s-one"))]);
}

#[test]
fn a_call_that_waits_when_the_session_is_opened_is_shown_once() {
    let mut waiting = opened(Status::Paused);
    waiting.waiting = 1;
    waiting.events.truncate(2);
    let mut stage = Stage::new();
    stage.reply(Reply::Opened(Box::new(waiting)));
    assert_eq!(stage.printed(), "\n› tidy up");
    stage.start_tool("c1", "a.txt");
    let output = Clean::new("one");
    stage.told(Told::ToolFinished { call: "c1".into(), outcome: ToolOutcome::Done, output });
    assert_eq!(stage.printed(), "● run_command a.txt\n  one");
}

#[test]
fn words_right_after_the_session_has_a_name_reach_it() {
    let mut stage = Stage::new();
    stage.send("one");
    stage.told(Told::Began(id("s-one")));
    let say = Effect::Say { session: id("s-one"), text: "two".into() };
    assert_eq!(stage.send("two"), [say]);
}

#[test]
fn a_session_that_changed_is_not_printed_again() {
    let mut stage = Stage::open();
    stage.printed();
    let mut changed = opened(Status::Success);
    changed.events.truncate(1);
    changed.resume = false;
    changed.seq = Seq::new(5);
    stage.reply(Reply::Opened(Box::new(changed)));
    assert_eq!(stage.printed(), "· the session was changed; Ctrl+T shows what counts now");
    stage.key("ctrl+t");
    assert!(!stage.screen().contains("all is tidy"));
    // What nothing was added to did not change.
    let mut stage = Stage::open();
    stage.printed();
    let mut same = opened(Status::Success);
    same.resume = false;
    stage.reply(Reply::Opened(Box::new(same)));
    assert_eq!(stage.printed(), "");
}

#[test]
fn what_was_chosen_at_the_start_holds_for_the_session_that_is_opened_first() {
    let mut stage = Stage::new();
    stage.state.settings.model = Some("local/x".into());
    stage.reply(Reply::Opened(Box::new(opened(Status::Success))));
    assert_eq!(stage.state.settings.model.as_deref(), Some("local/x"));
    let mut other = opened(Status::Success);
    other.card.id = id("s-two");
    stage.reply(Reply::Opened(Box::new(other)));
    assert_eq!(stage.state.settings.model, None);
}

#[test]
fn a_run_that_cannot_begin_gives_the_words_back() {
    let mut stage = Stage::new();
    stage.send("one");
    let why = Clean::new("no model is set");
    let hint = Some(Clean::new("set model.name"));
    stage.told(Told::Ended(Ended { status: Status::Failed, why, hint }));
    assert_eq!(stage.state.composer.editor.text(), "one");
    assert_eq!(stage.printed(), "✗ no model is set\n· hint: set model.name");
    assert!(!stage.state.is_working());
}

#[test]
fn escape_stops_the_turn_and_twice_goes_back() {
    let mut stage = Stage::open();
    stage.send("go");
    assert_eq!(stage.key("esc"), [Effect::Interrupt]);
    assert!(stage.screen().contains("stopping"));
    stage.end(Status::Interrupted);
    assert!(stage.printed().contains("stopped; say something to go on"));
    stage.wait(5).key("esc");
    let list = Effect::ListPoints { session: id("s-one"), purpose: PointsFor::Rewind };
    assert_eq!(stage.key("esc"), [list]);
    // Slowly, it is two single ones.
    stage.wait(5).key("esc");
    assert!(stage.wait(5).key("esc").is_empty());
}

#[test]
fn ctrl_c_cancels_what_is_nearest_and_twice_leaves() {
    let mut stage = Stage::open();
    stage.type_text("draft");
    assert!(stage.key("ctrl+c").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "");
    stage.key("up");
    assert_eq!(stage.state.composer.editor.text(), "draft", "what was cancelled can be had again");
    stage.wait(5).key("ctrl+c");
    stage.send("go");
    assert_eq!(stage.wait(5).key("ctrl+c"), [Effect::Interrupt]);
    assert_eq!(stage.key("ctrl+c"), [Effect::Leave]);
    assert!(stage.state.has_left());
}

#[test]
fn ctrl_d_leaves_only_if_nothing_is_typed() {
    let mut stage = Stage::open();
    stage.type_text("ab");
    stage.key("home");
    assert!(stage.key("ctrl+d").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "b");
    stage.key("delete");
    assert_eq!(stage.key("ctrl+d"), [Effect::Leave]);
}

#[test]
fn every_editing_key_edits() {
    for (keys, text) in [
        (&["home", "x"][..], "xone two"),
        (&["ctrl+a", "x"], "xone two"),
        (&["ctrl+a", "ctrl+e", "x"], "one twox"),
        (&["left", "x"], "one twxo"),
        (&["ctrl+b", "ctrl+f", "x"], "one twox"),
        (&["home", "right", "x"], "oxne two"),
        (&["alt+left", "x"], "one xtwo"),
        (&["ctrl+left", "ctrl+left", "ctrl+right", "x"], "onex two"),
        (&["alt+b", "x"], "one xtwo"),
        (&["home", "alt+f", "x"], "onex two"),
        (&["backspace"], "one tw"),
        (&["ctrl+h"], "one tw"),
        (&["alt+backspace"], "one "),
        (&["ctrl+w"], "one "),
        (&["ctrl+w", "ctrl+y", "ctrl+y"], "one twotwo"),
        (&["ctrl+u"], ""),
        (&["home", "ctrl+k"], ""),
        (&["home", "delete"], "ne two"),
        (&["home", "alt+d"], " two"),
        (&["home", "ctrl+delete"], " two"),
        (&["ctrl+j", "x"], "one two\nx"),
        (&["shift+enter", "x"], "one two\nx"),
        (&["alt+enter", "x"], "one two\nx"),
        (&["\\", "enter", "x"], "one two\nx"),
        (&["ctrl+a", "end", "x"], "one twox"),
        (&["ctrl+j", "x", "up", "y"], "oyne two\nx"),
        (&["ctrl+p"], "before"),
        (&["ctrl+p", "ctrl+n"], "one two"),
        (&["up"], "before"),
        (&["up", "down"], "one two"),
    ] {
        let mut stage = Stage::open();
        stage.state.composer.editor.remember("before");
        stage.type_text("one two");
        for key in keys {
            assert!(stage.key(key).is_empty(), "{keys:?}");
        }
        assert_eq!(stage.state.composer.editor.text(), text, "{keys:?}");
    }
}

#[test]
fn other_keys_do_what_help_says() {
    let mut stage = Stage::open();
    assert_eq!(stage.key("ctrl+z"), [Effect::Suspend]);
    stage.type_text("draft");
    assert_eq!(stage.key("ctrl+g"), [Effect::Edit("draft".into())]);
    stage.reply(Reply::Edited("edited\n".into()));
    assert_eq!(stage.state.composer.editor.text(), "edited");
    let find = Effect::Find { search: 1, words: String::new(), reach: Reach::Workspace };
    assert_eq!(stage.key("ctrl+r"), [find]);
    stage.key("esc");
    stage.key("ctrl+t");
    assert!(matches!(stage.state.page, Some(Page::Text(_))));
    stage.key("ctrl+t");
    assert!(stage.state.page.is_none());
    stage.state.composer.editor.clear();
    stage.key("?");
    assert!(stage.screen().starts_with("help"));
    stage.key("q");
    // Behind words it is a question mark.
    stage.type_text("why?");
    assert_eq!(stage.state.composer.editor.text(), "why?");
}

#[test]
fn shift_tab_changes_when_a_person_is_asked_for_the_next_run() {
    let mut stage = Stage::open();
    // From the usual one, never being asked comes last.
    for mode in [Mode::ConfirmAll, Mode::Yolo, Mode::ConfirmSensitive, Mode::ConfirmAll] {
        stage.key("shift+tab");
        assert_eq!(stage.state.mode(), mode);
    }
    let settings = RunSettings { mode: Some(Mode::ConfirmAll), ..RunSettings::default() };
    let resume = Effect::Resume { session: id("s-one"), say: Some("go".into()), settings };
    assert_eq!(stage.send("go"), [resume]);
}

#[test]
fn an_at_sign_completes_files() {
    let mut stage = Stage::open();
    stage.printed();
    assert_eq!(stage.type_text("see @ma").last(), Some(&Effect::ListFiles("ma".into())));
    stage.reply(Reply::Files(vec!["src/main.rs".into(), "src/map.rs".into()]));
    insta::assert_snapshot!(stage.screen(), @"
    ────────────────────────────────────────────────────────────
    › see @ma
      src/main.rs
      src/map.rs
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
    stage.key("down");
    stage.key("tab");
    assert_eq!(stage.state.composer.editor.text(), "see @src/map.rs ");
}

#[test]
fn an_exclamation_mark_runs_a_command_and_the_model_is_told() {
    let mut stage = Stage::open();
    stage.printed();
    assert_eq!(stage.send("!git status"), [shell("git status")]);
    let output = Clean::new("clean\n");
    let reply = own_done("git status", output, None);
    let text = "I ran `git status`:\n\n```\nclean\n```".to_owned();
    assert_eq!(stage.reply(reply), [Effect::Say { session: id("s-one"), text }]);
    assert_eq!(stage.printed(), "\n› !git status\n  clean");
    // Before there is a session, its first task tells of it.
    let mut stage = Stage::new();
    stage.send("!false");
    let failed = Some(Clean::new("exit status 1"));
    assert!(
        stage
            .reply(Reply::ShellDone {
                command: "false".into(),
                output: Clean::default(),
                failed,
                visit: Visit(0)
            })
            .is_empty()
    );
    assert_eq!(stage.send("why?"), start("I ran `false`:\n\n```\n\n```\n(exit status 1)\n\nwhy?"));
}

#[test]
fn what_a_model_says_cannot_drive_the_terminal() {
    let mut stage = Stage::open();
    stage.printed();
    stage.told(Told::Text("a\u{1b}]52;c;".into()));
    stage.told(Told::Text("ZXZpbA==\u{7}b\u{1b}[2J\n\nc".into()));
    stage.start_tool("c\u{1b}[1m", "\u{1b}[31mrm -rf\u{1b}[0m\u{202e}");
    let all = stage.printed() + &stage.screen();
    assert!(!all.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{all:?}");
    assert!(all.contains("ab"));
}

#[test]
fn forty_columns_and_wide_characters_fit() {
    let mut stage = Stage::sized(40, 12);
    stage.reply(Reply::Opened(Box::new(opened(Status::Success))));
    stage.printed();
    stage.send("go");
    stage.told(Told::Text(
        "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 e\u{301}👩\u{200d}💻".into(),
    ));
    stage.input(Input::Paste("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 ende".into()));
    insta::assert_snapshot!(stage.screen(), @"

    漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字
    漢字漢字 é👩‍💻
    ◐ working 0s · Esc stops
    » go
    ────────────────────────────────────────
    › 漢字漢字漢字漢字漢字漢字漢字漢字漢字
      漢字漢字 ende
    confirm-sensitive · $0.12 ($0.88 left)
    ");
}

#[test]
fn a_resize_keeps_what_is_typed_and_said() {
    let mut stage = Stage::open();
    stage.type_text("draft");
    stage.key("ctrl+t");
    stage.input(Input::Resize { columns: 30, rows: 8 });
    assert!(stage.screen().lines().all(|line| line.chars().count() <= 30));
    stage.key("q");
    assert_eq!(stage.state.composer.editor.text(), "draft");
    stage.input(Input::Resize { columns: 1, rows: 1 });
    stage.screen();
}

#[test]
fn subagents_have_a_line_each_and_ask_by_name() {
    let mut stage = Stage::open();
    stage.printed();
    stage.send("go");
    let within = |told| Told::Within { name: Clean::new("scout"), told: Box::new(told) };
    stage.told(within(Told::Text("looking".into())));
    assert!(stage.screen().contains("├ scout looking"));
    stage.told(within(Told::Asked(Box::new(crate::stage::question("g1")))));
    assert!(stage.screen().contains("scout asks: May write_file"));
    stage.told(within(Told::Ended(Ended {
        status: Status::Success,
        why: Clean::default(),
        hint: None,
    })));
    assert!(!stage.screen().contains("├ scout"));
}

#[test]
fn a_flow_takes_no_words_and_they_are_not_lost() {
    let mut stage = Stage::open();
    let mut flow = card(Status::Success);
    flow.is_flow = true;
    stage.reply(Reply::Card(Box::new(flow)));
    assert!(stage.send("hello").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "hello");
}

#[test]
fn a_cut_off_stream_says_so() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.printed();
    stage.told(Told::Text("half an ans".into()));
    stage.end(Status::Interrupted);
    assert!(stage.printed().starts_with("\nhalf an ans\n· the answer was cut off"));
    assert!(stage.state.transcript.blocks().contains(&Block::Answer(Clean::new("half an ans"))));
}

#[test]
fn when_nobody_types_any_more_what_works_is_waited_for() {
    let mut stage = Stage::open();
    stage.send("go");
    assert!(stage.input(Input::Closed).is_empty());
    let effects = stage.told(Told::Asked(Box::new(crate::stage::question("g1"))));
    assert_eq!(effects, [Effect::Pause]);
    assert_eq!(stage.end(Status::Paused).last(), Some(&Effect::Leave));
    assert_eq!(Stage::open().input(Input::Closed), [Effect::Leave]);
}

#[test]
fn nothing_is_said_to_a_session_while_it_is_being_changed() {
    let mut stage = Stage::open();
    stage.send("/undo");
    assert!(stage.send("go").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "go");
    assert_eq!(stage.reply(moved("s-one")), [open("s-one", false, 2)]);
    // It is read anew first, and what is typed is said then.
    assert!(stage.key("enter").is_empty());
    let mut same = opened(Status::Success);
    same.resume = false;
    assert_eq!(stage.reply(Reply::Opened(Box::new(same))), [resume(Some("go"))]);
}

#[test]
fn a_line_is_a_message_where_nothing_is_redrawn() {
    let mut stage = Stage::open();
    assert_eq!(stage.input(Input::Line("go".into())), [resume(Some("go"))]);
    assert_eq!(stage.input(Input::Line("/quit".into())), [Effect::Leave]);
}

#[test]
fn what_is_typed_behind_a_command_of_ones_own_is_said_behind_what_it_writes() {
    let done = |command: &str| own_done(command, Clean::new("out"), None);
    let said = |text: &str| Effect::Say { session: id("s-one"), text: text.into() };
    let mut stage = Stage::open();
    assert_eq!(stage.send("!make"), [shell("make")]);
    assert!(stage.send("what went wrong?").is_empty());
    assert!(stage.send("!make test").is_empty());
    assert!(stage.screen().contains("» what went wrong?"), "{}", stage.screen());
    let settings = RunSettings::default();
    assert_eq!(
        stage.reply(done("make")),
        [
            said("I ran `make`:\n\n```\nout\n```"),
            said("what went wrong?"),
            Effect::Resume { session: id("s-one"), say: None, settings },
            shell("make test"),
        ]
    );
    assert_eq!(stage.reply(done("make test")), [said("I ran `make test`:\n\n```\nout\n```")]);
}

#[test]
fn a_command_of_ones_own_is_seen_to_run_and_is_stopped_by_a_key() {
    for key in ["esc", "ctrl+c"] {
        let mut stage = Stage::open();
        stage.send("!make");
        stage.wait(3).input(Input::Tick);
        let screen = stage.screen();
        assert!(screen.contains("your command runs 3s · Esc stops"), "{screen}");
        assert_eq!(stage.key(key), [Effect::StopShell]);
    }
}

#[test]
fn whoever_leaves_ends_their_command_and_what_it_wrote_and_what_waited_is_kept() {
    let said = |text: &str| Effect::Say { session: id("s-one"), text: text.into() };
    let mut stage = Stage::open();
    stage.send("!make");
    stage.send("what went wrong?");
    stage.send("!make test");
    assert_eq!(stage.key("ctrl+d"), [Effect::StopShell]);
    assert!(!stage.state.has_left());
    let failed = Some(Clean::new("stopped"));
    let done = own_done("make", Clean::new("half"), failed);
    let effects = stage.reply(done);
    assert_eq!(effects.len(), 3, "{effects:?}");
    let own = format!("{:?}", effects[0]);
    assert!(own.contains("I ran `make`") && own.contains("stopped"), "{own}");
    assert_eq!(effects[1..], [said("what went wrong?"), Effect::Leave]);
    assert!(stage.state.has_left());
    // Whoever leaves twice does not wait, and loses no words.
    let mut stage = Stage::open();
    stage.send("!make");
    stage.send("and now?");
    assert_eq!(stage.key("ctrl+d"), [Effect::StopShell]);
    assert_eq!(stage.key("ctrl+d"), [said("and now?"), Effect::Leave]);
}

#[test]
fn each_answer_of_a_model_has_what_was_spent_read_again() {
    let mut stage = Stage::open();
    stage.send("go");
    let mut answer = Message::assistant("done");
    answer.usage = Some(stepwell::model::Usage::default());
    assert_eq!(stage.record(answer), [Effect::ReadCard(id("s-one"))]);
}
