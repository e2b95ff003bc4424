//! Runs that go on elsewhere, and those who work for a session.

use stepwell::model::{Answer, GateAnswered};
use stepwell::{Message, Seq, Status};
use stepwell_tui::{
    Clean, Effect, Elsewhere, Ended, Grown, Input, Reply, RunSettings, Told, ToolOutcome, ToolRun,
};

use crate::stage::{Stage, id, open, opened, question, recorded};

/// A session that another process runs, which asks something.
fn watched() -> Stage {
    let mut stage = Stage::new();
    let mut there = opened(Status::Running);
    let questions = vec![question("g1")];
    there.elsewhere = Some(Elsewhere { holder: Clean::new("process 7 on host"), questions });
    let effects = stage.reply(Reply::Opened(Box::new(there)));
    assert_eq!(effects, [Effect::Watch { session: id("s-one"), after: Seq::new(4) }]);
    stage.wait(2);
    stage
}

fn elsewhere(stage: &mut Stage, told: Told) -> Vec<Effect> {
    stage.input(Input::Elsewhere { session: id("s-one"), told })
}

fn ended(status: Status) -> Told {
    Told::Ended(Ended { status, why: Clean::default(), hint: None })
}

#[test]
fn a_session_that_runs_elsewhere_is_watched_and_its_questions_are_asked_here() {
    let mut stage = watched();
    assert!(stage.printed().contains("process 7 on host runs it"));
    assert!(stage.screen().contains("arrows and Enter"), "{}", stage.screen());
    let answer =
        Effect::Answer { session: id("s-one"), gate: "g1".into(), answer: Answer::ALLOW_ONCE };
    assert_eq!(stage.choose("Allow once"), [answer]);
    assert!(stage.screen().contains("works elsewhere"), "{}", stage.screen());
}

#[test]
fn words_reach_the_run_elsewhere_and_others_words_do_not_take_mine_away() {
    let mut stage = watched();
    stage.choose("Later");
    let said = Effect::Say { session: id("s-one"), text: "be quick".into() };
    assert_eq!(stage.send("be quick"), [said]);
    elsewhere(&mut stage, Told::Recorded(Box::new(recorded(5, Message::user("hello from here")))));
    assert!(stage.screen().contains("» be quick"), "{}", stage.screen());
    elsewhere(&mut stage, Told::Recorded(Box::new(recorded(6, Message::user("be quick")))));
    assert!(!stage.screen().contains("» be quick"));
    assert!(stage.printed().contains("› hello from here"));
}

#[test]
fn escape_does_not_stop_a_run_elsewhere_but_a_command_does() {
    let mut stage = watched();
    assert!(
        stage.choose("Later").is_empty(),
        "a question is left to others without pausing anything"
    );
    assert!(stage.key("esc").is_empty());
    assert!(stage.screen().contains("/stop stops it there"), "{}", stage.screen());
    assert_eq!(stage.send("/stop"), [Effect::StopElsewhere(id("s-one"))]);
}

#[test]
fn what_ended_elsewhere_can_go_on_here() {
    let mut stage = watched();
    elsewhere(&mut stage, ended(Status::Interrupted));
    assert!(stage.printed().contains("/continue goes on here"));
    let settings = RunSettings::default();
    let resume = Effect::Resume { session: id("s-one"), say: None, settings };
    assert_eq!(stage.send("/continue"), [resume]);
}

#[test]
fn a_question_whose_runner_is_gone_still_waits_for_an_answer() {
    let mut stage = watched();
    let run = ToolRun {
        call: "c1".into(),
        tool: Clean::new("run_command"),
        preview: Clean::new("cargo test"),
    };
    elsewhere(&mut stage, Told::ToolStarted(run));
    elsewhere(&mut stage, ended(Status::Interrupted));
    assert!(stage.printed().contains("its question waits"));
    let screen = stage.screen();
    assert!(screen.contains("arrows and Enter") && !screen.contains("cut off"), "{screen}");
    let answer =
        Effect::Answer { session: id("s-one"), gate: "g1".into(), answer: Answer::ALLOW_ONCE };
    assert_eq!(stage.choose("Allow once"), [answer]);
    // Somebody else may be quicker.
    let mut stage = watched();
    elsewhere(&mut stage, ended(Status::Interrupted));
    let card = opened(Status::Interrupted).card;
    let events = vec![recorded(5, GateAnswered::new("g1", Answer::ALLOW_ONCE, "ann@desk"))];
    let grown =
        Grown { card, events, too_much: false, seq: Seq::new(5), waiting: 0, elsewhere: None };
    stage.reply(Reply::Grown(Box::new(grown)));
    assert!(!stage.screen().contains("arrows and Enter"), "{}", stage.screen());
}

#[test]
fn another_session_can_be_opened_while_one_is_watched() {
    let mut stage = watched();
    assert_eq!(stage.send("/resume s-two"), [open("s-two", true, 2)]);
    let mut other = opened(Status::Success);
    other.card.id = id("s-two");
    stage.reply(Reply::Opened(Box::new(other)));
    assert!(!stage.state.is_watching());
    // What still comes of the other one is not taken for this one's.
    stage.printed();
    elsewhere(&mut stage, Told::Notice(Clean::new("too late")));
    assert!(!stage.printed().contains("too late"));
    let mut stage = watched();
    assert_eq!(stage.send("/new"), [Effect::LetGo, Effect::ListStart]);
}

#[test]
fn when_nobody_types_any_more_a_watched_run_is_watched_to_its_end() {
    let mut stage = watched();
    assert!(stage.input(Input::Closed).is_empty());
    assert_eq!(elsewhere(&mut stage, ended(Status::Success)).last(), Some(&Effect::Leave));
}

/// A run in which two subagents work.
fn with_helpers() -> Stage {
    let mut stage = Stage::open();
    stage.send("go");
    for name in ["s-red", "s-blue"] {
        let run = ToolRun {
            call: "c1".into(),
            tool: Clean::new("run_command"),
            preview: Clean::new("cargo test"),
        };
        within(&mut stage, name, Told::ToolStarted(run));
    }
    stage
}

fn within(stage: &mut Stage, name: &str, told: Told) {
    stage.told(Told::Within { name: Clean::new(name), told: Box::new(told) });
}

#[test]
fn subagents_have_a_line_each_while_they_work() {
    let mut stage = with_helpers();
    assert!(stage.screen().contains("├ s-red run_command cargo test"), "{}", stage.screen());
    within(&mut stage, "s-red", ended(Status::Success));
    assert!(!stage.screen().contains("├ s-red"));
    assert!(stage.screen().contains("├ s-blue"));
}

#[test]
fn a_subagent_that_is_done_or_was_answered_says_so() {
    let mut stage = with_helpers();
    within(&mut stage, "s-red", Told::Asked(Box::new(question("g1"))));
    assert!(stage.screen().contains("├ s-red asks you"), "{}", stage.screen());
    let answered = Told::Answered {
        session: id("s-one"),
        gate: "g1".into(),
        answer: Clean::new("yes"),
        who: Clean::new("ann"),
        at: Clean::new("now"),
    };
    within(&mut stage, "s-red", answered);
    assert!(!stage.screen().contains("asks you"), "{}", stage.screen());
    let over =
        stepwell::model::StatusChanged { status: Status::Success, reason: None, error: None };
    within(&mut stage, "s-red", Told::Recorded(Box::new(recorded(9, over))));
    assert!(!stage.screen().contains("├ s-red"), "{}", stage.screen());
    assert!(stage.screen().contains("├ s-blue"));
}

#[test]
fn a_subagent_is_watched_on_a_page_that_grows_while_it_works() {
    let mut stage = with_helpers();
    assert!(stage.send("/agents").is_empty());
    assert!(stage.screen().contains("Who works here"), "{}", stage.screen());
    stage.key("down");
    stage.key("enter");
    assert!(stage.screen().starts_with("s-blue"), "{}", stage.screen());
    assert!(stage.screen().contains("run_command cargo test"), "{}", stage.screen());
    let output = Clean::new("all green");
    let done = Told::ToolFinished { call: "c1".into(), outcome: ToolOutcome::Done, output };
    within(&mut stage, "s-blue", done);
    within(&mut stage, "s-blue", Told::Text("It is ti".into()));
    assert!(stage.screen().contains("all green") && stage.screen().contains("It is ti"));
    within(&mut stage, "s-blue", Told::Text("dy.".into()));
    assert!(stage.screen().contains("It is tidy."), "{}", stage.screen());
    assert!(!stage.screen().contains("It is ti\n"), "{}", stage.screen());
    within(&mut stage, "s-red", Told::Text("not here".into()));
    assert!(!stage.screen().contains("not here"));
}

#[test]
fn a_subagent_that_asks_is_named_and_stays_to_be_looked_at_when_all_is_over() {
    let mut stage = with_helpers();
    within(&mut stage, "s-red", Told::Asked(Box::new(question("g1"))));
    assert!(stage.screen().contains("s-red asks: May write_file"), "{}", stage.screen());
    stage.end(Status::Interrupted);
    stage.send("/agents");
    stage.key("enter");
    assert!(stage.screen().contains("cut off"), "{}", stage.screen());
}

fn grown(events: Vec<stepwell::Recorded>, seq: u64) -> Grown {
    Grown {
        card: opened(Status::Success).card,
        events,
        too_much: false,
        seq: Seq::new(seq),
        waiting: 0,
        elsewhere: None,
    }
}

#[test]
fn an_idle_conversation_shows_what_others_added() {
    let mut stage = Stage::open();
    stage.printed();
    let read = |after| Effect::ReadNew { session: id("s-one"), after: Seq::new(after) };
    assert_eq!(stage.reply(Reply::Changed(id("s-one"))), [read(4)]);
    let said = vec![
        // What is known already is not shown twice.
        recorded(4, Message::assistant("Done: **all** is tidy.")),
        recorded(5, Message::user("typed elsewhere")),
        recorded(6, Message::assistant("Done there.")),
    ];
    stage.reply(Reply::Grown(Box::new(grown(said, 7))));
    assert_eq!(stage.printed(), "\n› typed elsewhere\n\nDone there.");
    assert_eq!(stage.reply(Reply::Changed(id("s-one"))), [read(7)]);
    assert!(stage.reply(Reply::Changed(id("s-two"))).is_empty());
    // What a run of this process does is told by the run.
    stage.send("go on");
    assert!(stage.reply(Reply::Changed(id("s-one"))).is_empty());
}

#[test]
fn an_idle_conversation_watches_a_run_that_begins_elsewhere() {
    let mut stage = Stage::open();
    let mut grown = grown(vec![recorded(5, Message::user("typed elsewhere"))], 5);
    let holder = Clean::new("process 7 on host");
    grown.elsewhere = Some(Elsewhere { holder, questions: Vec::new() });
    let watch = Effect::Watch { session: id("s-one"), after: Seq::new(5) };
    assert_eq!(stage.reply(Reply::Grown(Box::new(grown))), [watch]);
    assert!(stage.printed().contains("› typed elsewhere"));
    assert!(stage.screen().contains("works elsewhere"), "{}", stage.screen());
}

#[test]
fn a_session_that_was_moved_back_elsewhere_is_read_anew() {
    let mut stage = Stage::open();
    let back = stepwell::model::Rewound {
        to: Seq::FIRST,
        scope: stepwell::model::Scope::Both,
        restored: stepwell::model::Restored::default(),
    };
    let grown = grown(vec![recorded(5, back)], 5);
    assert_eq!(stage.reply(Reply::Grown(Box::new(grown))), [open("s-one", false, 2)]);
}

#[test]
fn a_call_that_was_asked_for_before_it_was_watched_keeps_its_arguments() {
    let mut stage = Stage::new();
    let mut there = opened(Status::Running);
    let call = Message::assistant("").calling("c9", "run_command", r#"{"command":"ls -l"}"#);
    there.events.push(recorded(5, call));
    there.elsewhere = Some(Elsewhere { holder: Clean::new("process 7"), questions: Vec::new() });
    stage.reply(Reply::Opened(Box::new(there)));
    let (tool, preview) = (Clean::new("run_command"), Clean::default());
    let run = ToolRun { call: "c9".into(), tool, preview };
    elsewhere(&mut stage, Told::ToolStarted(run));
    let (outcome, output) = (ToolOutcome::Done, Clean::new("a.txt"));
    elsewhere(&mut stage, Told::ToolFinished { call: "c9".into(), outcome, output });
    let printed = stage.printed();
    assert!(printed.contains(r#"run_command {"command":"ls -l"}"#), "{printed}");
}
