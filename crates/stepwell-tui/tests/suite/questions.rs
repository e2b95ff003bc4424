//! Questions of a run, and every way to answer them.

use stepwell::{Answer, Grant, Lane, Message, Outcome, ToolFinished};
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
      y once · a always · n no · N never · d details · l later
    ────────────────────────────────────────────────────────────
    ›
    anthropic/sonnet · confirm-sensitive · 12% of context
    ");
}

#[test]
fn each_key_gives_its_answer() {
    assert_eq!(asked().key("y"), answer("g1", Answer::ALLOW_ONCE));
    assert_eq!(asked().key("a"), answer("g1", Answer::Allow { scope: Grant::Always }));
    let mut stage = asked();
    assert!(stage.key("n").is_empty());
    stage.type_text("too risky");
    assert_eq!(stage.key("enter"), answer("g1", Answer::deny("too risky")));
    let mut stage = asked();
    stage.key("N");
    assert_eq!(stage.key("enter"), answer("g1", Answer::Deny { reason: None, never: true }));
    let mut stage = asked();
    assert_eq!(stage.key("l"), [Effect::Pause]);
    assert!(stage.state.asked().is_none());
    let mut stage = asked();
    stage.key("d");
    assert!(stage.screen().starts_with("what it would do"));
    stage.key("q");
    assert_eq!(stage.key("y"), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn a_question_whose_answer_did_not_fit_is_asked_again() {
    let mut stage = asked();
    stage.key("y");
    let refused = |again| Reply::NotAnswered {
        session: id("s-one"),
        gate: "g1".into(),
        why: Clean::new("it wants a number"),
        again,
    };
    assert!(stage.state.asked().is_none());
    stage.reply(refused(true));
    assert!(stage.printed().contains("it wants a number"));
    assert_eq!(stage.key("y"), answer("g1", Answer::ALLOW_ONCE));
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
    stage.key("n");
    stage.type_text("yna");
    stage.key("esc");
    assert_eq!(stage.key("y"), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn who_types_when_a_question_comes_does_not_answer_it() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.type_text("mayb");
    stage.told(Told::Asked(Box::new(question("g1"))));
    stage.wait(2);
    assert!(stage.type_text("ey any").is_empty());
    assert_eq!(stage.state.editor.text(), "maybey any");
    assert!(stage.screen().contains("Tab answers it"));
    stage.key("tab");
    assert_eq!(stage.key("y"), answer("g1", Answer::ALLOW_ONCE));
    assert_eq!(stage.state.editor.text(), "maybey any");
}

#[test]
fn a_key_that_comes_too_soon_was_meant_for_something_else() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Asked(Box::new(question("g1"))));
    assert!(stage.key("y").is_empty());
    assert!(stage.state.asked().is_some());
    assert_eq!(stage.wait(1).key("y"), answer("g1", Answer::ALLOW_ONCE));
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away_and_says_who() {
    let mut stage = asked();
    let told = |here| Told::Answered {
        session: id("s-one"),
        gate: "g1".into(),
        answer: Clean::new("no"),
        who: Clean::new("ann@laptop"),
        here,
    };
    stage.told(told(false));
    assert!(stage.state.asked().is_none());
    assert_eq!(stage.printed(), "· answered by ann@laptop: no");
    assert!(stage.key("y").is_empty());
    let mut stage = asked();
    stage.key("y");
    stage.told(told(true));
    assert_eq!(stage.printed(), "");
}

#[test]
fn several_questions_are_answered_in_turn_and_each_once() {
    let mut stage = asked();
    stage.told(Told::Asked(Box::new(question("g2"))));
    stage.told(Told::Asked(Box::new(question("g2"))));
    assert!(stage.screen().contains("1 more questions wait"));
    stage.wait(1);
    assert_eq!(stage.key("y"), answer("g1", Answer::ALLOW_ONCE));
    assert_eq!(stage.key("y"), answer("g2", Answer::ALLOW_ONCE));
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
    answer yes, always, no, no: WHY, never or later
    ");
}
