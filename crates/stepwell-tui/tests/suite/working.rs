//! Guided work and flows, by their commands.

use stepwell::{Answer, Phase, Status};
use stepwell_tui::{Clean, Effect, Purpose, QuestionKind, Reply, RunSettings, Told};

use crate::stage::{Stage, card, id, question};

fn work(goal: &str, unasked: &[Phase]) -> Vec<Effect> {
    let (goal, unasked, settings) = (goal.into(), unasked.to_vec(), RunSettings::default());
    vec![Effect::StartWork { goal, unasked, settings }]
}

#[test]
fn a_goal_begins_guided_work_at_the_phase_that_was_named() {
    use Phase::{Discuss, Execute, Plan};
    for (line, unasked) in [
        ("/discuss add a health check", &[][..]),
        ("/work add a health check", &[]),
        ("/plan add a health check", &[Discuss]),
        ("/execute add a health check", &[Discuss, Plan]),
        ("/verify add a health check", &[Discuss, Plan, Execute]),
        ("/ship add a health check", &[Discuss, Plan, Execute]),
    ] {
        let mut stage = Stage::open();
        assert_eq!(stage.send(line), work("add a health check", unasked), "{line}");
        assert!(stage.state.is_working() && stage.state.session.is_none());
        assert!(stage.send("/plan something else").is_empty(), "one at a time");
    }
}

#[test]
fn without_a_goal_the_command_says_what_it_wants() {
    let mut stage = Stage::new();
    assert!(stage.send("/plan").is_empty());
    assert!(stage.screen().contains("/plan GOAL"), "{}", stage.screen());
}

#[test]
fn a_conversation_with_phases_is_moved() {
    let arguments = ["phase", "s-one", "execute"].map(str::to_owned).to_vec();
    let command = Effect::Command { arguments, purpose: Purpose::Show("phase") };
    assert_eq!(Stage::open().send("/execute"), [command]);
}

/// Guided work that asks something in a phase.
fn asking(phase: &str) -> Stage {
    let mut stage = Stage::open();
    stage.send("go");
    let mut guided = card(Status::Running);
    (guided.is_flow, guided.is_guided) = (true, true);
    guided.phase = Some(Clean::new(phase));
    stage.reply(Reply::Card(Box::new(guided)));
    let mut asked = question("g1");
    asked.kind = QuestionKind::Words;
    stage.told(Told::Asked(Box::new(asked)));
    stage.wait(2);
    stage
}

#[test]
fn guided_work_is_led_on_by_the_answer_to_what_it_asks() {
    for (phase, line, answer) in [
        ("discuss", "/plan", "skip all"),
        ("plan", "/execute", "approve"),
        ("ship", "/ship", "commit"),
    ] {
        let answer = Answer::Text(answer.into());
        let answer = Effect::Answer { session: id("s-one"), gate: "g1".into(), answer };
        assert_eq!(asking(phase).send(line), [answer], "{line}");
    }
    let mut stage = asking("plan");
    assert!(stage.send("/discuss").is_empty());
    assert!(stage.screen().contains("reject"), "{}", stage.screen());
    let mut stage = asking("verify");
    assert!(stage.send("/ship").is_empty(), "it goes on by itself");
}

#[test]
fn guided_work_that_stopped_goes_on() {
    let mut stage = asking("plan");
    stage.end(Status::Paused);
    let settings = RunSettings::default();
    let resume = Effect::Resume { session: id("s-one"), say: None, settings };
    assert_eq!(stage.send("/execute"), [resume]);
}

#[test]
fn a_flow_is_begun_with_its_variables() {
    let mut stage = Stage::open();
    let effect = Effect::StartFlow {
        spec: "flows/review.yaml".into(),
        variables: vec!["who=me".into()],
        settings: RunSettings::default(),
    };
    assert_eq!(stage.send("/flow flows/review.yaml who=me"), [effect]);
    assert!(Stage::open().send("/flow").is_empty());
}

#[test]
fn an_agent_is_chosen_from_a_list_or_typed() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/agent"), [Effect::ListAgents]);
    stage.reply(Reply::Agents(vec![Clean::new("build"), Clean::new("review")]));
    stage.key("down");
    stage.key("enter");
    assert_eq!(stage.state.settings.agent.as_deref(), Some("review"));
    stage.send("/agent plan");
    assert_eq!(stage.state.settings.agent.as_deref(), Some("plan"));
}
