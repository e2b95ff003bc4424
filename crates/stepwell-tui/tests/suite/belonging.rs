//! What belongs to which session: settings, words, commands, answers that come late.

use std::path::PathBuf;

use stepwell::model::Mode;
use stepwell::{Message, Seq, Status};
use stepwell_tui::{
    Clean, Effect, Ended, Input, OtherAgents, Point, PointsFor, Reply, RunSettings, StorePlace,
    Told, Visit,
};

use crate::answers::{configured, deleted, forked, moved};
use crate::chat::{own_done, resume, start};
use crate::stage::{Stage, card, id, open, opened, recorded, row, shell};

fn said(session: &str, text: &str) -> Effect {
    Effect::Say { session: id(session), text: text.into() }
}

fn failed(why: &str) -> Told {
    Told::Ended(Ended { status: Status::Failed, why: Clean::new(why), hint: None })
}

/// Another session, which waits for an answer.
fn waiting() -> Reply {
    let mut other = opened(Status::Paused);
    (other.card.id, other.waiting) = (id("s-two"), 1);
    Reply::Opened(Box::new(other))
}

#[test]
fn what_was_chosen_for_a_session_is_not_carried_over_new_into_the_next_one() {
    let mut stage = Stage::open();
    stage.send("/mode yolo");
    stage.reply(Reply::Model { name: "local/x".into(), visit: Visit(1) });
    stage.send("/budget 5");
    stage.send("/new");
    assert_eq!(stage.state.mode(), Mode::ConfirmSensitive);
    let settings = RunSettings::default();
    let resume = Effect::Resume { session: id("s-two"), say: None, settings };
    assert_eq!(stage.reply(waiting()), [resume], "nothing runs unasked");
    // The same if the session was deleted.
    let mut stage = Stage::open();
    stage.send("/mode yolo");
    stage.reply(deleted("s-one"));
    stage.reply(waiting());
    assert_eq!(stage.state.mode(), Mode::ConfirmSensitive);
}

#[test]
fn what_the_program_was_started_with_holds_for_new_sessions_and_for_no_other_old_one() {
    let settings = RunSettings { mode: Some(Mode::Yolo), ..RunSettings::default() };
    let mut stage = Stage::new();
    stage.state = stage.state.with_settings(settings.clone());
    stage.reply(Reply::Opened(Box::new(opened(Status::Success))));
    stage.send("/new");
    assert_eq!(stage.state.settings, settings);
    stage.reply(waiting());
    assert_eq!(stage.state.settings, RunSettings::default());
}

#[test]
fn no_other_session_is_opened_while_a_command_of_ones_own_runs() {
    for line in ["/new", "/resume s-two", "/flow a.yaml", "/discuss a goal"] {
        let mut stage = Stage::open();
        stage.send("!make");
        stage.send("words for the first");
        assert!(stage.send(line).is_empty(), "{line}");
        assert!(stage.screen().contains("your command runs"), "{}", stage.screen());
        assert!(stage.state.session().is_some());
        let effects = stage.reply(own_done("make", Clean::new("out"), None));
        let told = said("s-one", "I ran `make`:\n\n```\nout\n```");
        assert_eq!(effects[..2], [told, said("s-one", "words for the first")], "{line}");
    }
    let mut stage = Stage::open();
    stage.send("!make");
    stage.key("ctrl+r");
    let rows = vec![row("s-two", "another")];
    stage.reply(Reply::Found { search: 1, rows, others: OtherAgents::Unasked });
    assert!(stage.key("enter").is_empty());
}

#[test]
fn what_a_command_of_ones_own_wrote_is_told_to_the_session_that_it_was_run_in() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("!make"), [shell("make")]);
    stage.send("words for the first");
    // The session goes away meanwhile, and another one is begun.
    stage.reply(deleted("s-one"));
    assert_eq!(
        stage.state.composer.editor.text(),
        "words for the first",
        "what waited is typed again"
    );
    let effects = stage.reply(own_done("make", Clean::new("out"), None));
    assert_eq!(effects, [said("s-one", "I ran `make`:\n\n```\nout\n```")]);
    stage.state.composer.editor.clear();
    assert_eq!(stage.send("go"), start("go"), "the next one is not told");
}

#[test]
fn what_is_typed_while_a_session_is_being_opened_is_said_to_it() {
    let mut stage = Stage::new();
    stage.reply(Reply::Start(vec![row("s-two", "another")]));
    stage.key("down");
    assert_eq!(stage.key("enter"), [open("s-two", true, 1)]);
    stage.type_text("hello");
    assert!(stage.key("enter").is_empty(), "no session begins");
    assert!(stage.screen().contains("» hello"), "{}", stage.screen());
    assert!(stage.send("/resume s-three").is_empty());
    let mut other = opened(Status::Success);
    other.card.id = id("s-two");
    let effects = stage.reply(Reply::Opened(Box::new(other)));
    let settings = RunSettings::default();
    let say = Some("hello".to_owned());
    let resume = Effect::Resume { session: id("s-two"), say, settings };
    assert_eq!(effects, [resume], "and what else was typed waits for its turn");
    assert!(stage.state.is_working());
    assert!(stage.screen().contains("the agent works"), "{}", stage.screen());
}

#[test]
fn an_answer_to_an_opening_that_is_not_awaited_changes_nothing() {
    let mut stage = Stage::open();
    stage.send("go");
    let mut late = opened(Status::Success);
    (late.card.id, late.opening) = (id("s-two"), 1);
    assert!(stage.input(Input::Reply(Reply::Opened(Box::new(late)))).is_empty());
    assert!(stage.state.is_working());
    assert_eq!(stage.state.session().map(|card| card.id.clone()), Some(id("s-one")));
}

#[test]
fn words_for_a_session_that_cannot_be_opened_are_typed_again() {
    let mut stage = Stage::new();
    let effects = stage.state.open_session("nope".into(), None, true);
    assert_eq!(effects, [open("nope", true, 1)]);
    stage.send("hello");
    let why = Clean::new("no session is called nope");
    stage.reply(Reply::NotOpened { opening: 1, why, hint: None });
    assert_eq!(stage.state.composer.editor.text(), "hello");
    assert!(stage.printed().contains("no session is called nope"));
    assert!(!stage.state.is_opening());
}

#[test]
fn whoever_leaves_while_a_session_is_being_opened_has_their_words_kept() {
    let mut stage = Stage::new();
    stage.state.open_session("s-one".into(), None, true);
    stage.send("hello");
    assert!(stage.send("/quit").is_empty());
    let effects = stage.reply(Reply::Opened(Box::new(opened(Status::Interrupted))));
    assert_eq!(effects, [said("s-one", "hello"), Effect::Leave], "nothing goes on");
    // Who leaves again does not wait, and sees what was not sent.
    let mut stage = Stage::new();
    stage.state.open_session("s-one".into(), None, true);
    stage.send("hello");
    stage.send("/quit");
    assert_eq!(stage.send("/quit"), [Effect::Leave]);
    assert_eq!(stage.state.farewell().as_deref(), Some("Not sent:\nhello"));
}

/// A session of another store of the user's.
fn far(opening: u64) -> Reply {
    let mut far = opened(Status::Success);
    (far.card.id, far.opening) = (id("s-far"), opening);
    far.place = Some(StorePlace {
        store: PathBuf::from("/far/.stepwell"),
        folder: Clean::new("~/far"),
        model: Clean::new("far/model"),
        mode: Mode::ConfirmAll,
    });
    Reply::Opened(Box::new(far))
}

#[test]
fn a_new_session_is_begun_where_the_terminal_began_and_the_screen_says_where_that_is() {
    let mut stage = Stage::open();
    stage.send("/resume s-far");
    assert_eq!(stage.reply(far(2)), [Effect::Enter { opening: 2 }]);
    assert_eq!(stage.state.folder(), &Clean::new("~/far"));
    assert_eq!(stage.state.mode(), Mode::ConfirmAll, "as it is configured there");
    assert_eq!(stage.send("/new"), [Effect::GoHome, Effect::ListStart]);
    stage.reply(Reply::Start(Vec::new()));
    assert!(stage.screen().contains("Stepwell in ~/project"), "{}", stage.screen());
    assert_eq!(stage.state.mode(), Mode::ConfirmSensitive);
}

#[test]
fn a_session_of_another_store_is_read_anew_there() {
    let mut stage = Stage::open();
    stage.send("/resume s-far");
    stage.reply(far(2));
    stage.send("/undo");
    let store = Some("/far/.stepwell".into());
    let anew = Effect::Open { session: "s-far".into(), store, resume: false, opening: 3 };
    assert_eq!(stage.reply(moved("s-far")), [anew]);
}

#[test]
fn what_comes_late_of_a_session_that_was_left_is_not_taken_for_the_next_ones() {
    let mut stage = Stage::open();
    stage.send("/new");
    stage.reply(Reply::Card(Box::new(card(Status::Success))));
    assert!(stage.state.session().is_none(), "it is not open again");
    stage.reply(Reply::Model { name: "local/x".into(), visit: Visit(1) });
    stage.reply(Reply::Agent { name: "plan".into(), visit: Visit(1) });
    assert_eq!(stage.state.settings, RunSettings::default());
    let point =
        Point { seq: Seq::new(3), kind: "you", when: Clean::default(), text: Clean::new("x") };
    let points = vec![point];
    stage.reply(Reply::Points { session: id("s-one"), purpose: PointsFor::Rewind, points });
    assert!(stage.state.page.is_none(), "nobody goes back by the points of another session");
    // A fork that was asked for before is not opened over what goes on now.
    assert!(stage.reply(forked("s-one", "s-fork")).is_empty());
    assert!(stage.printed().contains("/resume s-fork opens it"));
    // What changed another session does not have this one read anew.
    let mut stage = Stage::open();
    assert!(stage.reply(moved("s-two")).is_empty());
}

#[test]
fn a_budget_is_checked_and_on_record_at_once() {
    let mut stage = Stage::open();
    assert!(stage.send("/budget abc").is_empty());
    assert!(stage.printed().contains("✗ /budget abc:"));
    assert_eq!(stage.state.settings.budget, None);
    let most = "5".parse().unwrap();
    let session = Some(id("s-one"));
    assert_eq!(stage.send("/budget $5"), [Effect::SetBudget { session, most }]);
    assert!(stage.screen().contains("the session may cost $5"), "{}", stage.screen());
    assert!(!stage.screen().contains("next call"));
}

#[test]
fn a_budget_reaches_the_run_that_works_and_the_one_that_is_beginning() {
    let most = "0.01".parse().unwrap();
    let mut stage = Stage::open();
    stage.send("go");
    let session = Some(id("s-one"));
    assert_eq!(stage.send("/budget 0.01"), [Effect::SetBudget { session, most }]);
    assert!(stage.screen().contains("$0.01, from the next call"), "{}", stage.screen());
    let mut stage = Stage::new();
    assert!(stage.send("/budget 0.01").is_empty(), "a session begins with it");
    stage.send("go");
    let session = None;
    assert_eq!(stage.send("/budget 0.01"), [Effect::SetBudget { session, most }]);
}

#[test]
fn words_of_a_run_that_cannot_begin_are_typed_again_and_wait_nowhere() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("important words"), [resume(Some("important words"))]);
    stage.type_text("more");
    stage.told(failed("openai: it needs a key"));
    assert_eq!(stage.state.composer.editor.text(), "important words\n\nmore");
    assert!(stage.state.composer.queue.is_empty());
    stage.state.composer.editor.clear();
    stage.send("next words");
    stage.told(Told::Began(id("s-one")));
    stage.record(Message::user("next words"));
    assert_eq!(stage.end(Status::Success), [Effect::ReadCard(id("s-one"))], "it does not go on");
    assert!(!stage.state.is_working());
    // Where lines are typed, they are told of.
    let mut stage = Stage::open();
    stage.input(Input::Line("important words".into()));
    stage.told(failed("openai: it needs a key"));
    assert!(stage.printed().contains("not sent: important words"));
}

#[test]
fn words_that_a_run_does_not_hear_do_not_begin_one_for_ever() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Began(id("s-one")));
    stage.record(Message::user("go"));
    stage.send("and tests");
    let again = [Effect::ReadCard(id("s-one")), resume(None)];
    assert_eq!(stage.end(Status::Success), again);
    stage.told(Told::Began(id("s-one")));
    assert_eq!(stage.end(Status::Success), [Effect::ReadCard(id("s-one"))]);
    assert!(!stage.state.is_working());
    assert_eq!(stage.state.composer.editor.text(), "and tests");
}

#[test]
fn words_that_could_not_be_said_are_typed_again() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.told(Told::Began(id("s-one")));
    stage.send("and tests");
    let (text, why) = ("and tests".to_owned(), Clean::new("the disk is full"));
    stage.reply(Reply::NotSaid { text, why, hint: None });
    assert_eq!(stage.state.composer.editor.text(), "and tests");
    assert_eq!(stage.state.composer.queue, [Clean::new("go")]);
}

#[test]
fn a_flow_that_cannot_begin_leaves_the_open_session_open() {
    for line in ["/flow nosuch.yaml", "/discuss a goal"] {
        let mut stage = Stage::open();
        stage.send(line);
        assert!(stage.state.is_working() && stage.state.session().is_none());
        stage.told(failed("nosuch.yaml: no such file"));
        assert!(stage.printed().contains("no such file"), "{line}");
        assert_eq!(stage.send("go on"), [resume(Some("go on"))], "{line}");
        assert!(stage.state.transcript.last_answer().is_some());
    }
}

#[test]
fn words_that_wait_before_there_is_a_session_begin_one_when_the_user_leaves() {
    let mut stage = Stage::new();
    stage.send("!make");
    stage.send("what went wrong?");
    assert_eq!(stage.key("ctrl+d"), [Effect::StopShell]);
    let done = Reply::ShellDone {
        command: "make".into(),
        output: Clean::new("half"),
        failed: None,
        visit: Visit(0),
    };
    let task = "I ran `make`:\n\n```\nhalf\n```\n\nwhat went wrong?".to_owned();
    let begin = Effect::Start { task, settings: RunSettings::default() };
    assert_eq!(stage.reply(done), [begin, Effect::Leave]);
    // It has a name by the time that the farewell is said.
    stage.told(Told::Began(id("s-one")));
    let farewell = "Saved. stepwell chat s-one comes back to it";
    assert_eq!(stage.state.farewell().as_deref(), Some(farewell));
    // Or it could not begin, and the words are not lost.
    let mut stage = Stage::new();
    stage.send("!make");
    stage.send("what went wrong?");
    stage.key("ctrl+d");
    stage.key("ctrl+d");
    stage.told(failed("no model is set"));
    assert_eq!(stage.state.farewell().as_deref(), Some("Not sent:\nwhat went wrong?"));
}

#[test]
fn what_was_said_before_is_recalled_when_a_session_is_opened_again() {
    let mut stage = Stage::new();
    let mut again = opened(Status::Success);
    let own = Message::user("I ran `git status`:\n\n```\nclean\n```\n\nand now?");
    again.events.push(recorded(5, own));
    again.events.push(recorded(6, Message::user(stepwell_agent::provider::NOT_DONE)));
    stage.reply(Reply::Opened(Box::new(again)));
    for text in ["and now?", "!git status", "tidy up"] {
        stage.key("up");
        assert_eq!(stage.state.composer.editor.text(), text);
    }
}

#[test]
fn a_setting_that_was_changed_holds_at_once() {
    let mut stage = Stage::open();
    assert_eq!(stage.reply(configured()), [Effect::ReadConfig]);
    let model = Clean::new("local/new");
    stage.reply(Reply::Configured { model, mode: Mode::ConfirmAll });
    assert_eq!(stage.state.mode(), Mode::ConfirmAll);
    stage.wait(5).send("/new");
    assert!(stage.screen().contains("confirm-all"), "{}", stage.screen());
}
