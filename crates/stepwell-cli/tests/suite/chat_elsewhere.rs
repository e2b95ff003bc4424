//! chat, on a terminal, while others work in the same session; and what it shows of imports.

use std::process::Stdio;

use stepwell::model::Gate;
use stepwell::store::{Append, Processes as _, SystemProcesses, Write};
use stepwell::{Message, Status};

use crate::running;
use crate::seat::Seat;
use crate::talking::open_gate;
use crate::test_env::TestEnv;

const MODEL: [&str; 2] = ["--model", "script:script.yaml"];

fn chat(env: &TestEnv, args: &[&str]) -> Seat {
    Seat::sit(env.command(&[&["chat"], args].concat()))
}

#[test]
fn a_question_that_the_same_user_answers_elsewhere_is_said_to_be_answered() {
    let env = running::env(
        "
answers:
  - text: I write.
    calls: [{tool: write_file, arguments: {path: notes.md, content: 'first'}}]
  - text: It is written.
",
    );
    let mut seat = chat(&env, &MODEL);
    seat.until("what is to be done?").press("write the notes\r").until("arrows and Enter");
    seat.press("too ris").until("› too ris");
    let (_, gate) = open_gate(&env);
    let answered = env.quietly(&["gates", "answer", &gate, "yes"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    seat.until("elsewhere: yes").until("It is written.");
    // What was typed for the question is not said to the model.
    seat.press("\r").until("not sent").until("› too ris");
    seat.press("\u{15}").until("what next?");
    assert!(seat.screen().contains("Answered by "), "{}", seat.screen());
    seat.leave();
    let well = env.well();
    let id = well.find("@last").unwrap();
    assert_eq!(well.info(&id).unwrap().head.unheard, 0);
    assert_eq!(env.read("notes.md"), "first");
}

#[test]
fn on_every_screen_a_question_goes_when_it_is_answered_elsewhere_and_says_by_whom() {
    let script = "
answers:
  - text: I write.
    calls: [{tool: write_file, arguments: {path: notes.md, content: 'first'}}]
  - text: It is written.
";
    let who = SystemProcesses.this().who().name;
    let answered = format!("Answered by {who}");
    for (args, begins, question) in [
        (&["chat"][..], Some("what is to be done?"), "arrows and Enter"),
        (&["chat", "--plain"], Some("Say what to do."), "answer yes, always"),
        (&["run", "write the notes"], None, "Allow "),
    ] {
        let env = running::env(script);
        let mut seat = Seat::sit_before(env.command(&[args, &MODEL].concat()), (120, 24));
        if let Some(begins) = begins {
            seat.until(begins).press("write the notes\r");
        }
        seat.until(question);
        let (id, gate) = open_gate(&env);
        let given = env.quietly(&["gates", "answer", &gate, "yes"]);
        assert_eq!(given.code, Some(0), "{}", given.stderr);
        // Nobody presses a key here.
        seat.until(&answered).until("elsewhere: yes").until("It is written.");
        if args == ["chat"] {
            seat.until("what next?");
            assert!(!seat.screen().contains(question), "{}", seat.screen());
        }
        let written = seat.written();
        let at = |text: &str| written.rfind(text).unwrap();
        assert!(at(question) < at(&answered), "it is asked no more: {written}");
        let code = if begins.is_some() { seat.leave().1 } else { seat.end().1 };
        assert_eq!(code, Some(0), "{args:?}");
        assert_eq!(env.well().info(&id).unwrap().head.status, Status::Success);
        assert_eq!(env.read("notes.md"), "first");
    }
}

/// A screen on which something is asked.
struct Asking {
    /// What shows it.
    args: &'static [&'static str],
    /// What it says before it is told what to do.
    begins: Option<&'static str>,
    /// What it asks with.
    question: &'static str,
}

const ASKING: [Asking; 6] = [
    Asking { args: &["chat"], begins: Some("what is to be done?"), question: "arrows and Enter" },
    Asking { args: &["chat", "--plain"], begins: Some("Say what to do."), question: "answer yes" },
    Asking { args: &["run", "write"], begins: None, question: "Answer: " },
    Asking { args: &["flow", "run", "flow.yaml"], begins: None, question: "Answer: " },
    Asking { args: &["attach", "@last"], begins: None, question: "arrows and Enter" },
    Asking { args: &["attach", "@last", "--plain"], begins: None, question: "Answer: " },
];

impl Asking {
    /// Waits for a question, answers it elsewhere, and sees the answer here without a key pressed.
    fn is_answered_elsewhere(&self) {
        let write = "{calls: [{tool: write_file, arguments: {path: notes.md, content: first}}]}";
        let env = running::env(&format!("answers: [{write}, {{text: It is written.}}]"));
        if self.args[0] == "flow" {
            env.file("flow.yaml", ASKING_FLOW);
            let script = format!("lanes: {{writer: [{write}, {{text: It is written.}}]}}");
            env.file("script.yaml", &script);
        }
        let args = match self.args[0] {
            "attach" => {
                let run = [&["run", "write", "--detach"][..], &MODEL].concat();
                assert_eq!(env.quietly(&run).code, Some(0));
                open_gate(&env);
                self.args.to_vec()
            }
            _ => [self.args, &MODEL].concat(),
        };
        let mut seat = Seat::sit_before(env.command(&args), (120, 24));
        if let Some(begins) = self.begins {
            seat.until(begins).press("write the notes\r");
        }
        seat.until(self.question);
        let (_, gate) = open_gate(&env);
        let given = env.quietly(&["gates", "answer", &gate, "yes"]);
        assert_eq!(given.code, Some(0), "{}", given.stderr);
        seat.until("elsewhere: yes");
        seat.until("It is written.");
        seat.kill();
    }
}

const ASKING_FLOW: &str = "
version: 0
name: notes
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write., tools: [write_file]}
pattern: {type: chain, config: {steps: [{agent: writer, input: Write the notes.}]}}
";

#[test]
fn a_prompt_that_is_answered_elsewhere_goes() {
    ASKING.iter().for_each(Asking::is_answered_elsewhere);
}

#[test]
fn an_idle_chat_shows_what_goes_on_in_its_session_elsewhere() {
    let env = running::env(
        "
answers:
  - text: First answer.
  - text: Second answer.
  - text: Third answer.
",
    );
    let mut seat = chat(&env, &MODEL);
    seat.until("what is to be done?").press("begin\r").until("First answer.").until("what next?");
    let id = env.well().find("@last").unwrap();
    let mut run =
        env.command(&[&["run", "typed elsewhere", "--session", id.as_str()][..], &MODEL].concat());
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(run.spawn().unwrap().wait().unwrap().code(), Some(0));
    seat.until("› typed elsewhere").until("Second answer.").until("what next?");
    seat.press("and here\r").until("Third answer.").until("what next?");
    assert_eq!(seat.leave().1, Some(0));
    assert_eq!(env.well().info(&id).unwrap().head.status, Status::Success);
}

#[test]
fn what_was_just_said_is_found_though_nothing_else_brought_the_index_up_to_date() {
    let env = running::env("answers: [{text: A quokka is small.}]");
    let well = env.well();
    for (task, said) in [("animals", "The wombat digs."), ("plants", "The fern unrolls.")] {
        let session = well.create(well.draft(task)).unwrap();
        session.step([Message::assistant(said)]).unwrap();
        session.finish(Status::Success, None).unwrap();
    }
    let mut seat = Seat::sit_before(env.command(&["chat"]), (100, 24));
    seat.until("what is to be done?").press("\u{12}").until("2 · this workspace");
    seat.press("wombat").until("1 · this workspace").until("animals");
    seat.press("\u{1b}").until("what is to be done?");
    seat.leave();
}

#[test]
fn a_secret_of_an_imported_session_is_not_shown() {
    let env = running::env("answers: [{text: Done.}]");
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let well = env.well();
    let session = well.create(well.draft("imported")).unwrap();
    let words = Message::user(format!("the wombat's token is {secret} here"));
    let (epoch, events) = (Some(session.lease().epoch), vec![words.into()]);
    let append =
        Append { session: session.id().clone(), epoch, expected: None, events: events.into() };
    // As an import writes it: past what redacts.
    well.store().write(Write::Append(append)).unwrap();
    let id = session.id().to_string();
    session.finish(Status::Success, None).unwrap();
    let mut seat = Seat::sit_before(env.command(&["chat", &id]), (120, 24));
    seat.until("the wombat's token is").until("what next?");
    seat.press("\u{14}").until("transcript").press("q").until("what next?");
    seat.press("\u{12}").until("Sessions").press("wombat").until("find: wombat");
    seat.until("token is [redacted").press("\u{1b}").until_gone("Sessions").until("what next?");
    seat.press("/timeline\r").until("Timeline").until("the wombat's");
    seat.press("\u{1b}").until_gone("Timeline").until("what next?");
    let written = seat.written();
    assert!(!written.contains("aB3dE5gH7jK9mN1paB3d"), "{written}");
    seat.leave();
}

#[test]
fn a_model_of_no_provider_is_refused_in_the_conversation() {
    let env = running::env("answers: [{text: Done.}]");
    let mut seat = chat(&env, &MODEL);
    seat.until("what is to be done?").press("/model opnai/gpt\r");
    seat.until("unknown provider").until("openai/gpt");
    seat.press("go\r").until("Done.").until("what next?");
    seat.leave();
}

#[test]
fn what_waits_is_shown_first_however_old_it_is_and_what_is_in_the_trash_is_not_opened() {
    let env = running::env("answers: [{text: Done.}]");
    let well = env.well();
    let old = well.create(well.draft("the old question")).unwrap();
    old.append(Gate::new("g1", "May it?")).unwrap();
    old.finish(Status::Paused, None).unwrap();
    let mut ids = Vec::new();
    for n in 0..60 {
        let session = well.create(well.draft(format!("quick {n}"))).unwrap();
        ids.push(session.id().to_string());
        session.finish(Status::Success, None).unwrap();
    }
    let mut seat = Seat::sit_before(env.command(&["chat"]), (100, 24));
    seat.until("what is to be done?").until("the old question").until("waits for you");
    assert_eq!(env.quietly(&["delete", &ids[7]]).code, Some(0));
    seat.press(&format!("/resume {}\r", ids[7])).until("trash").until("what is to be done?");
    seat.leave();
}
