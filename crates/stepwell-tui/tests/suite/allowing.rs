//! What an answer allows: only what was shown to its end, and no more than it says.

use stepwell::model::{Answer, Grant, ToolCall};
use stepwell_agent::permission::Rule;
use stepwell_tui::{Always, Clean, Effect, Input, Question, Told, plain_question};

use crate::stage::{Stage, id, question};

fn asked(question: Question) -> Stage {
    let mut stage = Stage::sized(80, 24);
    stage.send("go");
    stage.told(Told::Asked(Box::new(question)));
    stage.wait(2);
    stage
}

fn answer(answer: Answer) -> Vec<Effect> {
    vec![Effect::Answer { session: id("s-one"), gate: "g1".into(), answer }]
}

/// A question that is longer than the screen.
fn long() -> Question {
    let added: String = (1..=300).map(|n| format!("+line {n}\n")).collect();
    let detail = Some(Clean::new(&format!("@@ -0,0 +1,300 @@\n{added}")));
    Question { detail, ..question("g1") }
}

/// A question about a command.
fn runs(command: &str) -> Question {
    let call = ToolCall {
        id: "c1".into(),
        name: "run_command".into(),
        arguments: format!(r#"{{"command":"{command}"}}"#),
        opaque: None,
    };
    let always = Some(Always { call: Some(call) });
    let prompt = Clean::new(&format!("Allow run {command}?"));
    let tool = Some(Clean::new("run_command"));
    Question { prompt, tool, always, detail: None, ..question("g1") }
}

#[test]
fn a_page_that_was_left_before_its_end_allows_nothing() {
    for key in ["Allow once", "Always allow any"] {
        let mut stage = asked(long());
        assert!(stage.choose(key).is_empty(), "it is shown first");
        stage.key("q");
        assert!(stage.choose(key).is_empty(), "its end was not shown");
        assert!(stage.screen().starts_with("what it would do"), "{}", stage.screen());
        stage.key(" ");
        stage.key("q");
        assert!(stage.choose(key).is_empty(), "nor was it a page further");
        stage.key("G");
        assert!(stage.screen().contains("+line 300"), "{}", stage.screen());
        stage.key("q");
        let scope = if key == "Allow once" { Grant::Once } else { Grant::Always };
        assert_eq!(stage.choose(key), answer(Answer::Allow { scope }));
    }
    // Page by page is as good.
    let mut stage = asked(long());
    stage.choose("Details");
    for _ in 0..20 {
        stage.key(" ");
    }
    stage.key("q");
    assert_eq!(stage.choose("Allow once"), answer(Answer::ALLOW_ONCE));
}

#[test]
fn what_one_question_showed_does_not_count_for_the_next() {
    let mut stage = asked(long());
    stage.told(Told::Asked(Box::new(Question { gate: "g2".into(), ..long() })));
    stage.choose("Details");
    stage.told(Told::Answered {
        session: id("s-one"),
        gate: "g1".into(),
        answer: Clean::new("no"),
        who: Clean::new("me@here"),
        at: Clean::new("12:30:00"),
    });
    stage.key("G");
    stage.key("q");
    assert!(stage.wait(1).choose("Allow once").is_empty());
}

#[test]
fn always_says_for_what_and_a_pattern_is_offered() {
    let mut stage = asked(runs("cargo test --all"));
    let screen = stage.screen();
    let shown = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for label in [
        "Always allow any call of run_command in this session",
        "Always allow calls of run_command like cargo test* in this session",
        "Never allow any call of run_command in this session",
    ] {
        assert!(shown.contains(label), "{label}: {screen}");
    }
    assert!(stage.choose("Always allow calls").is_empty());
    assert_eq!(stage.state.composer.editor.text(), "cargo test*");
    let rule = Rule::parse("run_command(cargo test*)");
    let like = vec![Effect::AllowLike { session: id("s-one"), gate: "g1".into(), rule }];
    assert_eq!(stage.key("enter"), like);
    assert!(stage.state.asked().is_none() && stage.state.composer.editor.is_empty());
    // A pattern that does not fit what is asked allows nothing, and it can be thought better of.
    let mut stage = asked(runs("cargo test --all"));
    stage.choose("Always allow calls");
    stage.key("ctrl+u");
    stage.type_text("rm*");
    assert!(stage.key("enter").is_empty());
    assert!(stage.screen().contains("does not fit"), "{}", stage.screen());
    stage.key("esc");
    assert_eq!(stage.choose("Allow once"), answer(Answer::ALLOW_ONCE));
    // Where lines are typed, it is the same.
    let mut stage = asked(runs("cargo test --all"));
    let lines = plain_question(stage.state.asked().unwrap()).join("\n");
    for label in [
        "always (Always allow any call of run_command in this session), always cargo test* (",
        "never (Never allow any call of run_command in this session)",
    ] {
        assert!(lines.contains(label), "{label}: {lines}");
    }
    assert_eq!(stage.input(Input::Line("a cargo test*".into())), like);
}

#[test]
fn what_is_asked_every_time_offers_no_always() {
    let mut stage = asked(Question { always: None, ..question("g1") });
    assert!(!stage.screen().contains("Always"), "{}", stage.screen());
    assert!(stage.screen().contains("Never allow any call of write_file"), "{}", stage.screen());
    assert!(stage.input(Input::Line("always".into())).is_empty());
    assert!(stage.state.asked().is_some());
}
