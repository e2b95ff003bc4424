//! Slash commands: what each does in the conversation.

use stepwell::model::Change;
use stepwell::{Message, Status};
use stepwell_runtime::command::{Reply as Answer, SLASH_COMMANDS, SessionCommand};
use stepwell_tui::{Clean, Effect, Input, Reply, RunSettings, Told, Visit};
use stepwell_wire::Pin;

use crate::answers::{about, forked, not_run, of, ran};
use crate::chat::{resume, start};
use crate::stage::{Stage, card, id, open};

#[test]
fn a_slash_offers_commands_and_enter_takes_the_selected_one() {
    let mut stage = Stage::open();
    stage.printed();
    stage.type_text("/thi");
    insta::assert_snapshot!(stage.screen(), @"
    ────────────────────────────────────────────────────────────
    › /thi
      /thinking Shows or hides the model's thinking
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
    stage.key("enter");
    assert!(stage.state.view.thinking);
    stage.type_text("/re");
    stage.key("down");
    stage.key("tab");
    assert_eq!(stage.state.composer.editor.text(), "/rename ");
    stage.type_text("x");
    let named = SessionCommand::Label(Change::Set("x".to_owned()));
    assert_eq!(stage.key("enter"), [of("s-one", named)]);
}

#[test]
fn an_unknown_command_names_the_nearest_and_a_path_is_no_command() {
    let mut stage = Stage::open();
    stage.printed();
    assert!(stage.send("/resme x").is_empty());
    assert_eq!(stage.printed(), "✗ there is no command /resme; did you mean /resume?");
    assert_eq!(stage.send("/etc/hosts is odd"), [resume(Some("/etc/hosts is odd"))]);
}

#[test]
fn every_command_does_something_or_says_why_not() {
    for command in SLASH_COMMANDS {
        for with in ["", " x"] {
            let mut stage = Stage::open();
            stage.printed();
            let before = stage.screen();
            let effects = stage.send(&format!("/{}{with}", command.name));
            let said =
                !effects.is_empty() || stage.screen() != before || !stage.printed().is_empty();
            assert!(said, "/{}{with} is silent", command.name);
            assert_eq!(stage.state.composer.editor.text(), "");
        }
    }
}

#[test]
fn what_looks_like_a_flag_is_not_passed_on() {
    for command in SLASH_COMMANDS {
        for flag in ["--help", "-h"] {
            let mut stage = Stage::open();
            stage.printed();
            assert!(stage.send(&format!("/{} {flag}", command.name)).is_empty());
            let printed = stage.printed();
            let said = printed.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(command.help), "/{} {flag}: {said}", command.name);
        }
        if command.arguments.is_empty() {
            let mut stage = Stage::open();
            assert!(stage.send(&format!("/{} --json", command.name)).is_empty());
            let says = format!("/{} takes nothing behind it", command.name);
            assert!(stage.screen().contains(&says), "{}", stage.screen());
        }
    }
}

#[test]
fn without_a_session_commands_about_one_say_so() {
    for command in ["/status", "/fork", "/rewind", "/diff", "/rename x", "/compact"] {
        let mut stage = Stage::new();
        assert!(stage.send(command).is_empty());
        assert!(stage.screen().contains("no session is open yet"), "{command}");
    }
}

#[test]
fn help_about_a_command_that_there_is_none_of_names_the_nearest() {
    let mut stage = Stage::open();
    stage.printed();
    stage.send("/help resme");
    assert_eq!(stage.printed(), "✗ there is no command /resme; did you mean /resume?");
    assert!(stage.state.page.is_none());
    stage.send("/help /new");
    assert!(stage.printed().contains("/new [TASK]"));
    assert!(stage.state.session().is_some(), "help about a command does not run it");
}

#[test]
fn a_question_mark_on_a_line_of_its_own_shows_the_keys_where_nothing_is_redrawn() {
    let mut stage = Stage::open();
    assert!(stage.input(Input::Line("?".into())).is_empty());
    assert!(stage.screen().starts_with("help"), "{}", stage.screen());
}

#[test]
fn of_other_offers_the_first_is_selected() {
    let mut stage = Stage::open();
    stage.type_text("/");
    stage.key("down");
    stage.key("down");
    stage.type_text("mo");
    stage.key("tab");
    assert_eq!(stage.state.composer.editor.text(), "/model ");
}

#[test]
fn a_variable_of_a_flow_may_have_blanks_in_it() {
    let variables = vec!["goal=use tabs".to_owned(), "n=1".to_owned()];
    let (spec, settings) = ("a.yaml".to_owned(), RunSettings::default());
    let begin = Effect::StartFlow { spec, variables, settings };
    for line in ["/flow a.yaml goal=\"use tabs\" n=1", "/flow a.yaml --var goal='use tabs' n=1"] {
        assert_eq!(Stage::open().send(line), std::slice::from_ref(&begin), "{line}");
    }
}

#[test]
fn what_goes_wrong_is_told_once() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Began(id("s-one")));
    stage.printed();
    stage.record(stepwell::model::Failure { message: "the model is gone".into() });
    let why = Clean::new("the model is gone");
    let ended = stepwell_tui::Ended { status: Status::Failed, why, hint: None };
    stage.told(Told::Ended(ended));
    assert_eq!(stage.printed(), "✗ the model is gone");
}

#[test]
fn new_begins_another_session_but_not_while_one_works() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/new write docs"), start("write docs"));
    assert!(stage.send("/new").is_empty());
    assert!(stage.screen().contains("Esc stops it first"));
    stage.told(Told::Began(id("s-one")));
    stage.reply(Reply::Card(Box::new(card(Status::Running))));
    stage.record(Message::user("write docs"));
    stage.end(Status::Interrupted);
    assert_eq!(stage.send("/clear"), [Effect::ListStart]);
}

#[test]
fn answers_of_commands_are_shown_by_their_length() {
    let mut stage = Stage::open();
    stage.printed();
    let pinned = |text: &str| {
        let answer = Pin { id: id("s-one"), pinned: true };
        ran(about("s-one", SessionCommand::Pin), Answer::Pin(answer), text)
    };
    stage.reply(pinned("short\n"));
    assert_eq!(stage.printed(), "  short");
    stage.reply(pinned(&"line\n".repeat(30)));
    assert!(stage.screen().starts_with("pin"));
    assert_eq!(stage.reply(forked("s-one", "s-two")), [open("s-two", false, 2)]);
    stage.key("q");
    let pin = about("s-one", SessionCommand::Pin);
    stage.reply(not_run(pin, "no such thing", Some("try another")));
    assert_eq!(stage.printed(), "✗ no such thing\n· hint: try another");
}

#[test]
fn copy_takes_the_last_answer_or_the_id() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/copy"), [Effect::Copy("Done: **all** is tidy.".into())]);
    assert_eq!(stage.send("/copy id"), [Effect::Copy("s-one".into())]);
    assert!(Stage::new().send("/copy").is_empty());
}

#[test]
fn detach_hands_the_run_over_and_without_one_leaves() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/detach"), [Effect::Leave]);
    let mut stage = Stage::open();
    stage.send("go");
    // It stops here first: one runner per session.
    assert_eq!(stage.send("/detach"), [Effect::Interrupt]);
    assert_eq!(stage.end(Status::Interrupted), [Effect::GoOnDetached(id("s-one"))]);
    // What goes on in the background is neither cut off nor watched from here.
    assert!(!stage.printed().contains("cut off"));
    assert!(stage.reply(Reply::Changed(id("s-one"))).is_empty());
    assert_eq!(stage.reply(Reply::Detached), [Effect::Leave]);
    assert!(stage.state.is_detached());
}

#[test]
fn a_run_that_cannot_go_on_in_the_background_stays_here() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.send("/detach");
    stage.end(Status::Interrupted);
    let not = Reply::NotDetached { why: Clean::new("no such model"), hint: None };
    assert!(stage.reply(not).is_empty());
    assert!(!stage.state.has_left() && !stage.state.is_detached());
    assert!(stage.printed().contains("no such model"));
}

#[test]
fn a_run_that_was_done_before_it_could_be_detached_is_left() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.record(Message::user("go"));
    stage.send("/detach");
    assert_eq!(stage.end(Status::Success), [Effect::Leave]);
    assert!(!stage.state.is_detached());
}

#[test]
fn a_model_that_is_typed_is_looked_for_before_it_is_taken() {
    let mut stage = Stage::open();
    let check = Effect::CheckModel { name: "nope/x".into(), visit: Visit(1) };
    assert_eq!(stage.send("/model nope/x"), [check]);
    assert_eq!(stage.state.settings.model, None);
    let why = Clean::new("unknown provider \"nope\"");
    stage.reply(Reply::Failed { why, hint: None });
    assert_eq!(stage.state.settings.model, None);
    assert!(stage.printed().contains("unknown provider"));
    stage.reply(Reply::Model { name: "openai/gpt".into(), visit: Visit(1) });
    assert_eq!(stage.state.settings.model.as_deref(), Some("openai/gpt"));
}
