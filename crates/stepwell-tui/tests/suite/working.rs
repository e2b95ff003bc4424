//! Guided work and flows, by their commands.

use stepwell::model::{Answer, Gate, GateAnswered, Node, NodeState, Phase};
use stepwell::{Lane, Message, Status};
use stepwell_runtime::command::SessionCommand;
use stepwell_tui::{Clean, Effect, QuestionKind, Reply, RunSettings, Told, Visit};

use crate::answers::of;
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
        assert!(stage.state.is_working() && stage.state.session().is_none());
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
    let moved = SessionCommand::EnterPhase("execute".to_owned());
    assert_eq!(Stage::open().send("/execute"), [of("s-one", moved)]);
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
    // One that is typed is looked for before it is taken.
    let check = Effect::CheckAgent { name: "plan".into(), visit: Visit(1) };
    assert_eq!(stage.send("/agent plan"), [check]);
    assert_eq!(stage.state.settings.agent.as_deref(), Some("review"));
    stage.reply(Reply::Agent { name: "plan".into(), visit: Visit(1) });
    assert_eq!(stage.state.settings.agent.as_deref(), Some("plan"));
}

fn node(state: NodeState) -> Node {
    Node { key: "work/plan/1".into(), state, output: None, usage: None, error: None }
}

#[test]
fn a_flow_shows_its_nodes_questions_and_answers_and_not_what_its_agents_are_asked() {
    let mut stage = Stage::open();
    stage.send("/work add a health check");
    stage.told(Told::Began(id("s-two")));
    let lane: Lane = "plan".parse().expect("a lane's name");
    stage.record(Message { lane, ..Message::user("Answer with one JSON object") });
    stage.record(node(NodeState::Started));
    stage.record(node(NodeState::Done));
    stage.record(Gate::new("g1", "1. Write the page\n\nIs this the plan?"));
    stage.record(GateAnswered::new("g1", Answer::Text("approve".into()), "me".to_owned()));
    let printed = stage.printed();
    assert!(!printed.contains("JSON"), "{printed}");
    assert!(printed.contains("· work/plan/1 done"), "{printed}");
    assert!(printed.contains("Is this the plan?"), "{printed}");
    assert!(printed.contains("› approve"), "{printed}");
}

#[test]
fn a_node_that_is_over_has_no_line_and_can_still_be_looked_at() {
    let mut stage = Stage::open();
    stage.send("/work add a health check");
    let name = Clean::new("work/plan/1");
    let within = |told| Told::Within { name: Clean::new("work/plan/1"), told: Box::new(told) };
    stage.told(within(Told::Text("I plan.".into())));
    assert!(stage.screen().contains("├ work/plan/1 I plan."), "{}", stage.screen());
    stage.told(Told::NodeOver { name, status: Status::Success });
    assert!(!stage.screen().contains("├ work/plan/1"));
    stage.send("/agents");
    stage.key("enter");
    assert!(stage.screen().contains("I plan."), "{}", stage.screen());
}

#[test]
fn a_question_of_several_lines_is_shown_as_it_is_and_can_be_left() {
    let mut stage = asking("plan");
    let mut plan = question("g2");
    (plan.kind, plan.detail) = (QuestionKind::Words, None);
    plan.prompt = Clean::new("1. Write the page\n2. Test it\n\nIs this the plan?");
    stage.send("/later");
    stage.told(Told::Asked(Box::new(plan)));
    let screen = stage.screen();
    assert!(screen.contains("? 1. Write the page\n  2. Test it\n"), "{screen}");
    stage.key("ctrl+o");
    assert!(stage.screen().contains("Is this the plan?"), "{}", stage.screen());
    stage.key("q");
    assert_eq!(stage.send("/later"), [Effect::Pause]);
    assert!(stage.state.asked().is_none());
}
