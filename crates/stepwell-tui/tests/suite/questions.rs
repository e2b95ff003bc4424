//! Questions of a run, and every way to answer them.

use stepwell::model::{Answer, Grant, Outcome, ToolFinished};
use stepwell::{Lane, Message};
use stepwell_tui::{Clean, Effect, Input, QuestionKind, Reply, Told, plain_question};

use crate::stage::{Stage, id, question};

fn asked() -> Stage {
    let mut stage = Stage::open();
    stage.printed();
    stage.send("go");
    stage.record(Message::user("go"));
    stage.printed();
    stage.told(Told::Asked(Box::new(question("g1"))));
    stage.wait(2);
    stage.input(Input::Tick);
    stage
}

fn answer(gate: &str, answer: Answer) -> Vec<Effect> {
    vec![Effect::Answer { session: id("s-one"), gate: gate.into(), answer }]
}

#[test]
fn a_question_shows_the_diff_and_its_keys() {
    insta::assert_snapshot!(asked().screen(), @"
    ◐ waiting for you 2s

    ? May write_file change notes.md?
      --- a/notes.md
      +++ b/notes.md
      @@ -1 +1 @@
      -old
      +new
      arrows and Enter answer · words say no
      Allow once
      Always allow any call of write_file in this session
      Deny · Never allow any call of write_file in this session
      Details · Later
    ────────────────────────────────────────────────────────────
    ›
    anthropic/sonnet · confirm-sensitive · $0.12 ($0.88 left)
    ");
}

#[test]
fn a_sentence_typed_at_a_question_never_allows_it() {
    for sentence in ["actually, use git rm", "yes but use git rm", "always ask me", "pnpm, not npm"]
    {
        let mut stage = asked();
        assert!(stage.type_text(sentence).is_empty(), "{sentence}");
        assert_eq!(stage.state.composer.editor.text(), sentence);
        assert_eq!(stage.key("enter"), answer("g1", Answer::deny(sentence)));
    }
    // Nor does a lone word that allows it where lines are typed.
    for word in ["y", "yes", "always"] {
        let mut stage = asked();
        assert!(stage.type_text(word).is_empty(), "{word}");
        assert!(stage.key("enter").is_empty(), "{word}");
        assert!(stage.screen().contains("words allow nothing"), "{}", stage.screen());
    }
}

#[test]
fn an_answer_is_chosen_with_the_arrows_and_given_with_enter() {
    assert_eq!(asked().choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
    assert_eq!(
        asked().choose("Always allow any"),
        answer("g1", Answer::Allow { scope: Grant::Always })
    );
    let no = |never| answer("g1", Answer::Deny { reason: None, never });
    assert_eq!(asked().choose("Deny"), no(false));
    assert_eq!(asked().choose("Never"), no(true));
    let mut stage = asked();
    assert_eq!(stage.choose("Later"), [Effect::Pause]);
    assert!(stage.state.asked().is_none());
    let mut stage = asked();
    stage.choose("Details");
    assert!(stage.screen().starts_with("what it would do"));
    stage.key("q");
    assert_eq!(stage.choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
    // Enter alone gives nothing, and a letter takes the choice back.
    let mut stage = asked();
    assert!(stage.key("enter").is_empty());
    assert!(stage.screen().contains("arrow keys choose an answer"), "{}", stage.screen());
    stage.key("down");
    assert!(stage.screen().contains("[Allow once]"), "{}", stage.screen());
    stage.type_text("not this");
    assert_eq!(stage.key("enter"), answer("g1", Answer::deny("not this")));
}

#[test]
fn a_question_whose_answer_did_not_fit_is_asked_again() {
    let mut stage = asked();
    stage.choose("Allow once");
    let refused = |again| Reply::NotAnswered {
        session: id("s-one"),
        gate: "g1".into(),
        why: Clean::new("it wants a number"),
        again,
    };
    assert!(stage.state.asked().is_none());
    stage.reply(refused(true));
    assert!(stage.printed().contains("it wants a number"));
    assert_eq!(stage.choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
    stage.reply(refused(false));
    assert!(stage.state.asked().is_none());
}

#[test]
fn a_call_that_was_not_allowed_is_said_to_be_so() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.printed();
    stage.record(Message::assistant("").calling("c9", "write_file", "{}"));
    stage.record(ToolFinished {
        call_id: "c9".into(),
        outcome: Outcome::Denied,
        lane: Lane::main(),
        duration_ms: 1,
    });
    stage.record(Message::tool_result("c9", "the user did not allow this"));
    assert!(stage.printed().contains("not allowed"));
}

#[test]
fn the_reason_for_a_no_can_be_thought_better_of() {
    let mut stage = asked();
    stage.type_text("yna");
    stage.key("ctrl+u");
    assert_eq!(stage.choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn text_that_was_typed_before_a_question_came_is_a_message_and_no_answer() {
    let typing = || {
        let mut stage = Stage::open();
        stage.send("go");
        stage.type_text("mayb");
        stage.told(Told::Asked(Box::new(question("g1"))));
        stage.wait(2);
        assert!(stage.type_text("ey any").is_empty());
        assert_eq!(stage.state.composer.editor.text(), "maybey any");
        assert!(stage.screen().contains("Enter sends these words as a message"));
        stage
    };
    let mut stage = typing();
    let said = Effect::Say { session: id("s-one"), text: "maybey any".into() };
    assert_eq!(stage.key("enter"), [said]);
    assert!(stage.state.asked().is_some());
    // Tab puts it aside until the question is gone. It chooses nothing, however often.
    let mut stage = typing();
    stage.key("tab");
    stage.key("tab");
    assert!(stage.key("enter").is_empty());
    assert!(stage.state.composer.editor.is_empty());
    assert_eq!(stage.choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
    assert_eq!(stage.state.composer.editor.text(), "maybey any");
}

#[test]
fn a_key_that_comes_too_soon_was_meant_for_something_else() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Asked(Box::new(question("g1"))));
    assert!(stage.choose("Allow once").is_empty());
    assert!(stage.state.asked().is_some());
    assert_eq!(stage.wait(1).choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away_and_says_who() {
    let mut stage = asked();
    stage.told(answered("g1"));
    assert!(stage.state.asked().is_none());
    assert_eq!(stage.printed(), "· Answered by me@here at 12:30:00 elsewhere: no");
    // What was answered here is not told again, whoever the answer names.
    let mut stage = asked();
    stage.choose("Allow once");
    stage.told(answered("g1"));
    assert_eq!(stage.printed(), "");
}

/// Somebody answered: perhaps the same user, in another process.
fn answered(gate: &str) -> Told {
    Told::Answered {
        session: id("s-one"),
        gate: gate.into(),
        answer: Clean::new("no"),
        who: Clean::new("me@here"),
        at: Clean::new("12:30:00"),
    }
}

#[test]
fn the_reason_for_a_no_is_not_sent_to_the_model_when_the_question_was_answered_elsewhere() {
    let mut stage = asked();
    stage.type_text("too ris");
    stage.told(answered("g1"));
    stage.type_text("ky");
    assert!(stage.key("enter").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "too risky");
    assert!(stage.screen().contains("not sent"), "{}", stage.screen());
    // Whoever wants to say it, says it.
    let said = Effect::Say { session: id("s-one"), text: "too risky".into() };
    assert_eq!(stage.key("enter"), [said]);
}

#[test]
fn words_that_are_typed_for_a_question_do_not_answer_the_next_one() {
    let words = |gate| {
        let mut words = question(gate);
        words.kind = QuestionKind::Words;
        words.default = Some(Clean::new("ship it"));
        Told::Asked(Box::new(words))
    };
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(words("g1"));
    stage.type_text("not yet");
    stage.told(words("g2"));
    stage.told(answered("g1"));
    assert!(stage.key("enter").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "not yet");
    // Nor does Enter alone give the default of a question that just came up.
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(words("g1"));
    stage.told(words("g2"));
    stage.wait(1);
    stage.told(answered("g1"));
    assert!(stage.key("enter").is_empty());
    assert_eq!(stage.wait(1).key("enter"), answer("g2", Answer::Text("ship it".into())));
}

#[test]
fn a_line_that_answers_a_question_which_is_gone_is_not_said_to_the_model() {
    let mut stage = asked();
    stage.told(answered("g1"));
    assert!(stage.input(Input::Line("no: too risky".into())).is_empty());
    assert!(stage.printed().contains("not taken"));
    let said = Effect::Say { session: id("s-one"), text: "be quick".into() };
    assert_eq!(stage.input(Input::Line("be quick".into())), [said]);
}

#[test]
fn several_questions_are_answered_in_turn_and_each_once() {
    let mut stage = asked();
    stage.told(Told::Asked(Box::new(question("g2"))));
    stage.told(Told::Asked(Box::new(question("g2"))));
    assert!(stage.screen().contains("1 more questions wait"));
    stage.wait(1);
    assert_eq!(stage.choose("Allow once"), answer("g1", Answer::ALLOW_ONCE));
    // The second one came up only now: the same key pressed twice is not meant for it.
    assert!(stage.choose("Allow once").is_empty());
    assert_eq!(stage.wait(1).choose("Allow once"), answer("g2", Answer::ALLOW_ONCE));
    assert!(stage.state.asked().is_none());
}

#[test]
fn a_flow_asks_for_words_and_enter_alone_takes_the_default() {
    let mut words = question("g1");
    words.kind = QuestionKind::Words;
    words.default = Some(Clean::new("ship it"));
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Asked(Box::new(words.clone())));
    stage.wait(1);
    assert_eq!(stage.key("enter"), answer("g1", Answer::Text("ship it".into())));
    stage.told(Told::Asked(Box::new(words)));
    stage.type_text("yes, but later");
    assert_eq!(stage.key("enter"), answer("g1", Answer::Text("yes, but later".into())));
}

#[test]
fn escape_at_a_question_stops_the_turn() {
    assert_eq!(asked().key("esc"), [Effect::Interrupt]);
}

#[test]
fn lines_answer_where_nothing_is_redrawn() {
    for (line, effects) in [
        ("yes", answer("g1", Answer::ALLOW_ONCE)),
        ("a", answer("g1", Answer::Allow { scope: Grant::Always })),
        ("no: too risky", answer("g1", Answer::deny("too risky"))),
        ("never", answer("g1", Answer::Deny { reason: None, never: true })),
        ("later", vec![Effect::Pause]),
        ("maybe", vec![]),
    ] {
        assert_eq!(asked().input(Input::Line(line.into())), effects, "{line}");
    }
    let stage = asked();
    insta::assert_snapshot!(plain_question(stage.state.asked().unwrap()).join("\n"), @"
    question: May write_file change notes.md?
    --- a/notes.md
    +++ b/notes.md
    @@ -1 +1 @@
    -old
    +new
    answer yes, always (Always allow any call of write_file in this session), no, no: WHY, never (Never allow any call of write_file in this session) or later
    ");
}

/// A screen of a size, on which a command is asked about.
fn asked_to_run(command: &str, (columns, rows): (u16, u16)) -> Stage {
    let mut long = question("g1");
    long.prompt = Clean::new(&format!("Allow run {command}?"));
    long.detail = None;
    asked_at(long, (columns, rows))
}

fn asked_at(question: stepwell_tui::Question, (columns, rows): (u16, u16)) -> Stage {
    let mut stage = Stage::sized(columns, rows);
    stage.send("go");
    stage.told(Told::Asked(Box::new(question)));
    stage.wait(2);
    stage
}

#[test]
fn blanks_cannot_push_the_beginning_of_a_command_off_the_screen() {
    for (size, blanks) in [((80, 24), 3000), ((120, 40), 6000)] {
        let command = format!("echo HEAD > evil.txt; echo{}; ls", " ".repeat(blanks));
        let mut stage = asked_to_run(&command, size);
        let shown = format!("Allow run echo HEAD > evil.txt; echo ␣×{blanks} ; ls?");
        assert!(stage.screen().contains(&shown), "{}", stage.screen());
        assert_eq!(
            stage.choose("Allow once"),
            answer("g1", Answer::ALLOW_ONCE),
            "all of it is shown"
        );
    }
}

#[test]
fn a_command_that_does_not_fit_is_cut_at_its_end_and_allowed_only_once_all_of_it_was_shown() {
    let command = format!("echo HEAD > evil.txt; {}; rm -r notes", "echo x; ".repeat(500));
    for key in ["Allow once", "Always allow any"] {
        let mut stage = asked_to_run(&command, (80, 24));
        let screen = stage.screen();
        assert!(screen.contains("? Allow run echo HEAD > evil.txt; echo x;"), "{screen}");
        assert!(screen.contains(" more characters: Ctrl+O shows them"), "{screen}");
        assert!(screen.contains("Ctrl+O shows all of it first"), "{screen}");
        assert!(stage.choose(key).is_empty(), "its end was not shown");
        assert!(stage.screen().starts_with("what it would do"), "{}", stage.screen());
        stage.key("end");
        assert!(stage.screen().contains("rm -r notes?"), "{}", stage.screen());
        stage.key("q");
        let grant = if key == "Allow once" { Grant::Once } else { Grant::Always };
        assert_eq!(stage.choose(key), answer("g1", Answer::Allow { scope: grant }));
    }
    // Whoever says no need not read it.
    let mut stage = asked_to_run(&command, (80, 24));
    assert_eq!(stage.choose("Deny"), answer("g1", Answer::Deny { reason: None, never: false }));
}

#[test]
fn the_beginning_of_a_question_is_seen_on_every_screen_whatever_else_there_is() {
    let command = format!("echo HEAD; {}", "echo x; ".repeat(500));
    for rows in 4..30 {
        let mut stage = asked_to_run(&command, (40, rows));
        for word in ["one", "two", "three", "four"] {
            stage.state.composer.queue.push(Clean::new(word));
        }
        stage.input(Input::Paste("some\nlines\nthat\nare\ntyped\nmeanwhile".into()));
        let screen = stage.screen();
        assert!(screen.contains("? Allow run echo HEAD"), "{rows}: {screen}");
        assert!(screen.lines().count() < usize::from(rows), "{rows}: {screen}");
    }
}

#[test]
fn a_long_diff_says_how_many_lines_are_hidden_and_all_of_them_can_be_read() {
    let mut long = question("g1");
    let added: String = (1..=501).map(|n| format!("+line {n}\n")).collect();
    long.detail = Some(Clean::new(&format!("@@ -0,0 +1,501 @@\n{added}")));
    let mut stage = asked_at(long.clone(), (80, 24));
    let screen = stage.screen();
    let shown = screen.lines().filter(|line| line.starts_with("  +line ")).count();
    assert!(
        screen.contains(&format!("  … {} more lines: Ctrl+O shows them", 501 - shown)),
        "{screen}"
    );
    assert!(stage.choose("Allow once").is_empty());
    stage.key("end");
    assert!(stage.screen().contains("+line 501"), "{}", stage.screen());
    // Where nothing is redrawn, it is the same.
    let mut stage = asked_at(long, (80, 24));
    assert!(plain_question(stage.state.asked().unwrap()).join("\n").contains("details shows all"));
    assert!(stage.input(Input::Line("yes".into())).is_empty());
    assert!(stage.state.page.take().is_some());
    assert_eq!(stage.input(Input::Line("yes".into())), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn a_long_question_for_words_keeps_its_beginning_and_its_end() {
    let mut words = question("g1");
    words.kind = QuestionKind::Words;
    words.detail = None;
    let plan: String = (1..=60).map(|n| format!("{n}. a task\n")).collect();
    words.prompt = Clean::new(&format!("{plan}\nIs this the plan?"));
    let stage = asked_at(words, (80, 24));
    let screen = stage.screen();
    assert!(screen.contains("? 1. a task"), "{screen}");
    assert!(screen.contains("more lines: Ctrl+O shows them\n  Is this the plan?"), "{screen}");
}

/// A question about a call that has not run.
fn asked_before_a_call() -> Stage {
    let mut stage = Stage::open();
    stage.send("go");
    stage.printed();
    stage.record(Message::assistant("").calling("c9", "write_file", "{}"));
    stage.told(Told::Asked(Box::new(question("g1"))));
    stage.wait(2);
    stage
}

#[test]
fn a_call_that_never_ran_was_not_cut_off() {
    let mut stage = asked_before_a_call();
    stage.key("esc");
    stage.end(stepwell::Status::Interrupted);
    let printed = stage.printed();
    assert!(printed.contains("write_file {} not run"), "{printed}");
    assert!(!printed.contains("cut off"), "{printed}");
}

#[test]
fn a_call_that_was_left_for_later_waits_and_was_not_cut_off() {
    let mut stage = asked_before_a_call();
    stage.choose("Later");
    stage.end(stepwell::Status::Paused);
    let printed = stage.printed();
    assert!(printed.contains("write_file {} waits for you"), "{printed}");
    assert!(!printed.contains("cut off"), "{printed}");
}
