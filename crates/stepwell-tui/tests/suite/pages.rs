//! Pages: finding sessions, going back, reading.

use stepwell::model::{Change, Scope};
use stepwell::{Seq, Status};
use stepwell_runtime::command::{
    Command, ConfigCommand, MoveCommand, Reply as Answer, SessionCommand, SettingsFile,
};
use stepwell_tui::{
    Clean, Effect, Foreign, Input, OtherAgents, Page, Point, PointsFor, Reach, Reply, Visit,
};
use stepwell_wire::Pin;
use stepwell_workspace::handoff::HandOver;

use crate::answers::{about, deleted, moved, not_moved, of, point, ran, restored, run};
use crate::stage::{Stage, id, open, opened, recorded, row};

fn fork(at: Option<&str>) -> SessionCommand {
    SessionCommand::Fork { at: at.map(str::to_owned), label: None }
}

fn delete(session: &str) -> Effect {
    run(Command::Delete(vec![session.to_owned()]))
}

fn check(name: &str) -> Effect {
    Effect::CheckModel { name: name.into(), visit: Visit(1) }
}

fn picker() -> Stage {
    let mut stage = Stage::open();
    stage.key("ctrl+r");
    let mut second = row("s-2", "write the docs");
    second.hits = vec![Clean::new("where the hit is"), Clean::new("and another")];
    second.label = Some(Clean::new("docs"));
    stage.reply(Reply::Found {
        search: 1,
        rows: vec![row("s-1", "fix the build"), second],
        others: OtherAgents::Unasked,
    });
    stage
}

#[test]
fn the_picker_lists_previews_and_resumes() {
    let mut stage = picker();
    let preview = Effect::Preview { session: id("s-2"), store: None, words: String::new() };
    assert_eq!(stage.key("down"), [preview]);
    stage.reply(Reply::Preview { session: id("s-2"), text: Clean::new("**you**: write the docs") });
    insta::assert_snapshot!(stage.screen(), @"
    Sessions             2 · this workspace · Ctrl+R everywhere
    find:
      fix the build                            success · 3m ago
      docs                                     success · 3m ago







    s-2
    … where the hit is
    … and another
    you: write the docs




    Enter resume · Tab actions · Esc back
    ");
    assert_eq!(stage.key("enter"), [open("s-2", true, 2)]);
}

#[test]
fn a_wide_screen_shows_the_preview_beside_the_list() {
    let mut stage = picker();
    stage.input(Input::Resize { columns: 100, rows: 8 });
    stage.reply(Reply::Preview { session: id("s-1"), text: Clean::new("hello") });
    insta::assert_snapshot!(stage.screen(), @"
    Sessions                                                     2 · this workspace · Ctrl+R everywhere
    find:
      fix the build                  success · 3m ago │ s-1
      docs                           success · 3m ago │ hello
                                                      │
                                                      │
                                                      │
    Enter resume · Tab actions · Esc back
    ");
}

#[test]
fn each_key_searches_and_only_the_newest_answer_counts() {
    let mut stage = picker();
    let effects = stage.type_text("do");
    let find =
        |search, words: &str| Effect::Find { search, words: words.into(), reach: Reach::Workspace };
    assert_eq!(effects, [find(2, "d"), find(3, "do")]);
    stage.reply(Reply::Found { search: 2, rows: vec![], others: OtherAgents::Unasked });
    assert!(stage.screen().contains("fix the build"), "an older answer is not shown");
    stage.reply(Reply::Found { search: 3, rows: vec![], others: OtherAgents::Unasked });
    assert!(stage.screen().contains("nothing is like that"));
    for (search, reach) in [(4, Reach::Everywhere), (5, Reach::Session), (6, Reach::Workspace)] {
        assert_eq!(stage.key("ctrl+r"), [Effect::Find { search, words: "do".into(), reach }]);
    }
    stage.key("esc");
    assert!(stage.state.page.is_none());
}

#[test]
fn every_action_of_the_picker_does_its_work() {
    let act = |key: &str| {
        let mut stage = picker();
        stage.key("down");
        stage.key("tab");
        let effects = stage.key(key);
        (stage, effects)
    };
    assert_eq!(act("p").1, [of("s-2", SessionCommand::Pin)]);
    assert_eq!(act("f").1, [of("s-2", fork(None))]);
    assert_eq!(act("y").1, [Effect::Copy("s-2".into())]);
    assert_eq!(act("d").1, [delete("s-2")]);
    let hand_over = |agent: &str| {
        let agent = agent.parse().unwrap();
        [of("s-2", SessionCommand::HandOver { agent, how: HandOver::Write })]
    };
    assert_eq!(act("c").1, hand_over("claude-code"));
    assert_eq!(act("x").1, hand_over("codex"));
    let (mut stage, _) = act("r");
    stage.type_text("!");
    let docs = SessionCommand::Label(Change::Set("docs!".to_owned()));
    assert_eq!(stage.key("enter"), [of("s-2", docs)]);
    let (mut stage, _) = act("r");
    stage.key("ctrl+u");
    assert_eq!(stage.key("enter"), [of("s-2", SessionCommand::Label(Change::Clear))]);
    let (mut stage, _) = act("t");
    stage.type_text("a b");
    let (add, remove) = (["a", "b"].map(str::to_owned).into(), [].into());
    assert_eq!(stage.key("enter"), [of("s-2", SessionCommand::Tag { add, remove })]);
    let (mut stage, _) = act("t");
    assert!(stage.key("enter").is_empty());
    let (mut stage, _) = act("z");
    assert!(stage.screen().contains("r rename"));
    stage.key("esc");
    assert!(stage.screen().contains("Tab actions"));
}

#[test]
fn a_session_of_another_agent_is_read_in_and_opened() {
    let mut stage = Stage::open();
    stage.key("ctrl+r");
    stage.key("ctrl+r");
    let mut theirs = row("c-1", "mend the oven");
    theirs.foreign = Some(Foreign {
        system: Clean::new("claude"),
        path: "/home/me/.claude/projects/p/c-1.jsonl".into(),
        about: Clean::new("mend the oven, it smokes"),
    });
    let found = Reply::Found { search: 2, rows: vec![theirs], others: OtherAgents::On };
    assert!(stage.reply(found).is_empty(), "there is no store to look into");
    let screen = stage.screen();
    assert!(screen.contains("claude") && screen.contains("it smokes"), "{screen}");
    stage.key("tab");
    assert!(stage.key("d").is_empty(), "what is another's is not deleted");
    let path = "/home/me/.claude/projects/p/c-1.jsonl".to_owned();
    let import = Effect::Import { path, session: id("c-1"), visit: Visit(1) };
    assert_eq!(stage.key("enter"), [import]);
    // When more of them is known, the search is made again.
    let again = Effect::Find { search: 3, words: String::new(), reach: Reach::Everywhere };
    assert_eq!(stage.reply(Reply::OthersRead), [again]);
}

#[test]
fn who_searches_everywhere_is_told_how_other_agents_sessions_are_found() {
    let mut stage = Stage::sized(120, 20);
    stage.key("ctrl+r");
    stage.key("ctrl+r");
    stage.reply(Reply::Found { search: 2, rows: vec![], others: OtherAgents::Off });
    assert!(stage.screen().contains("/config other_agents.index true"), "{}", stage.screen());
    stage.key("esc");
    let (key, value) = ("other_agents.index".to_owned(), "true".to_owned());
    let set = ConfigCommand::Set { key, value, file: SettingsFile::User };
    let set = Effect::Run { command: Command::Config(set), visit: Visit(0) };
    assert_eq!(stage.send("/config other_agents.index true"), [set]);
}

#[test]
fn what_was_deleted_can_be_brought_back() {
    let mut stage = picker();
    stage.key("delete");
    assert!(matches!(stage.reply(deleted("s-1"))[..], [Effect::Find { .. }]));
    stage.key("tab");
    assert_eq!(stage.key("u"), [run(Command::Restore(vec!["s-1".to_owned()]))]);
    stage.reply(restored("s-1"));
    let screen = stage.screen();
    assert!(screen.contains("it is back") && !screen.contains("in the trash"), "{screen}");
    stage.key("tab");
    assert!(stage.key("u").is_empty());
}

#[test]
fn a_session_of_another_store_is_only_opened_from_here() {
    let mut stage = Stage::new();
    stage.key("ctrl+r");
    let mut far = row("s-9", "far away");
    far.store = Some("/elsewhere".into());
    stage.reply(Reply::Found { search: 1, rows: vec![far], others: OtherAgents::Unasked });
    stage.key("tab");
    assert!(stage.key("d").is_empty());
    let store = Some("/elsewhere".into());
    let open = Effect::Open { session: "s-9".into(), store, resume: true, opening: 1 };
    assert_eq!(stage.key("enter"), [open]);
}

#[test]
fn nothing_else_is_opened_while_the_agent_works() {
    let mut stage = Stage::open();
    stage.send("go");
    stage.key("ctrl+r");
    stage.reply(Reply::Found {
        search: 1,
        rows: vec![row("s-1", "fix")],
        others: OtherAgents::Unasked,
    });
    assert!(stage.key("enter").is_empty());
    stage.key("esc");
    assert!(stage.send("/resume s-1").is_empty());
}

fn points(purpose: PointsFor) -> Stage {
    let mut stage = Stage::open();
    let point = |seq, kind, text: &str| Point {
        seq: Seq::new(seq),
        kind,
        when: Clean::new("3m ago"),
        text: Clean::new(text),
    };
    let points = vec![
        point(9, "you", "now the tests"),
        point(4, "checkpoint", "before"),
        point(1, "you", "tidy up"),
    ];
    stage.reply(Reply::Points { session: id("s-one"), purpose, points });
    stage
}

#[test]
fn going_back_asks_what_comes_back() {
    let mut stage = points(PointsFor::Rewind);
    stage.key("down");
    assert!(stage.key("enter").is_empty());
    insta::assert_snapshot!(stage.screen(), @"
    Go back to                                                3
         9 you           3m ago now the tests
         4 checkpoint    3m ago before
         1 you           3m ago tidy up









    Bring back:
      the conversation and the files
      the conversation only
      the files only
      both, over what others changed
      files only, over what others changed
    Enter does it · Esc back
    ");
    stage.key("down");
    let back = MoveCommand { scope: Scope::Chat, ..point("4") };
    assert_eq!(stage.key("enter"), [of("s-one", SessionCommand::Rewind(back))]);
    assert!(stage.state.page.is_none());
}

#[test]
fn one_goes_back_over_what_others_changed_only_if_that_is_chosen() {
    for (downs, scope, force) in
        [(0, Scope::Both, false), (3, Scope::Both, true), (9, Scope::Files, true)]
    {
        let mut stage = points(PointsFor::Rewind);
        stage.key("enter");
        for _ in 0..downs {
            stage.key("down");
        }
        let wanted = SessionCommand::Rewind(MoveCommand { scope, force, ..point("9") });
        assert_eq!(stage.key("enter"), [of("s-one", wanted)]);
        let (why, hint) = ("1 file, someone else changed since", "add --force to overwrite them");
        stage.reply(not_moved("s-one", why, Some(hint)));
        let printed = stage.printed();
        assert!(printed.contains("Esc Esc goes back over what others changed"), "{printed}");
        assert!(!printed.contains("add --force"), "{printed}");
    }
}

#[test]
fn what_was_said_there_is_typed_again() {
    let mut stage = points(PointsFor::Rewind);
    stage.key("enter");
    stage.key("enter");
    // Not before it was taken back, and not if that is refused.
    assert_eq!(stage.state.composer.editor.text(), "");
    let mut refused = points(PointsFor::Rewind);
    refused.key("enter");
    refused.key("enter");
    refused.reply(not_moved("s-one", "f.txt was changed", None));
    assert_eq!(refused.state.composer.editor.text(), "");
    assert_eq!(stage.reply(moved("s-one")), [open("s-one", false, 2)]);
    assert_eq!(stage.state.composer.editor.text(), "now the tests");
}

#[test]
fn the_selection_stays_with_its_session_wherever_that_is_listed() {
    let mut stage = picker();
    stage.key("down");
    stage.key("tab");
    assert_eq!(stage.key("p"), [of("s-2", SessionCommand::Pin)]);
    let pinned = Answer::Pin(Pin { id: id("s-2"), pinned: true });
    stage.reply(ran(about("s-2", SessionCommand::Pin), pinned, ""));
    let rows = vec![row("s-2", "write the docs"), row("s-1", "fix the build")];
    stage.reply(Reply::Found { search: 2, rows, others: OtherAgents::Unasked });
    stage.key("tab");
    assert_eq!(stage.key("d"), [delete("s-2")]);
    // Another search begins at the top.
    let mut stage = picker();
    stage.key("down");
    stage.type_text("b");
    let rows = vec![row("s-1", "fix the build"), row("s-2", "write the docs")];
    stage.reply(Reply::Found { search: 2, rows, others: OtherAgents::Unasked });
    assert_eq!(stage.key("enter"), [open("s-1", true, 2)]);
}

#[test]
fn a_session_that_is_in_two_stores_is_opened_in_the_one_of_its_row() {
    let mut stage = picker();
    let mut copy = row("s-1", "fix the build");
    copy.store = Some("/copy/.stepwell".into());
    let rows = vec![row("s-1", "fix the build"), copy];
    stage.reply(Reply::Found { search: 1, rows, others: OtherAgents::Unasked });
    stage.key("down");
    let store = Some("/copy/.stepwell".into());
    let open = Effect::Open { session: "s-1".into(), store, resume: true, opening: 2 };
    assert_eq!(stage.key("enter"), [open]);
}

#[test]
fn points_can_be_forked_from_and_compared_with() {
    let mut stage = points(PointsFor::Timeline);
    stage.key("G");
    assert_eq!(stage.key("f"), [of("s-one", fork(Some("1")))]);
    let diff = SessionCommand::Diff { from: Some("1".to_owned()), to: None };
    assert_eq!(stage.key("d"), [of("s-one", diff)]);
    stage.key("g");
    stage.key("enter");
    assert!(stage.screen().starts_with("9 you"));
    stage.key("q");
    assert!(stage.state.page.is_none());
    let mut stage = points(PointsFor::Timeline);
    stage.key("r");
    assert!(stage.screen().contains("Bring back:"));
    stage.key("esc");
    stage.key("esc");
    assert!(stage.state.page.is_none());
}

#[test]
fn a_long_text_is_read_page_by_page() {
    let mut stage = Stage::open();
    stage.send("/help");
    let top = |stage: &Stage| match &stage.state.page {
        Some(Page::Text(page)) => page.top,
        _ => panic!("no page"),
    };
    let last = match &stage.state.page {
        Some(Page::Text(page)) => page.lines.len() - 18,
        _ => panic!("no page"),
    };
    for (key, at) in [
        ("down", 1),
        ("j", 2),
        ("up", 1),
        ("k", 0),
        (" ", 18),
        ("b", 0),
        ("pagedown", 18),
        ("pageup", 0),
        ("G", last),
        ("down", last),
        ("g", 0),
        ("end", last),
        ("home", 0),
    ] {
        stage.key(key);
        assert_eq!(top(&stage), at, "{key}");
    }
}

#[test]
fn the_transcript_begins_at_its_end_and_reads_earlier_messages_at_its_top() {
    let mut stage = Stage::new();
    let mut session = opened(Status::Success);
    session.more = true;
    session.events =
        (50..90).map(|n| recorded(n, stepwell::Message::user(format!("message {n}")))).collect();
    stage.reply(Reply::Opened(Box::new(session)));
    stage.key("ctrl+t");
    assert!(stage.screen().contains("message 89"));
    let read = Effect::ReadEarlier { session: id("s-one"), before: Seq::new(50) };
    assert_eq!(stage.key("g"), [read]);
    let events =
        (10..50).map(|n| recorded(n, stepwell::Message::user(format!("message {n}")))).collect();
    stage.reply(Reply::Earlier { session: id("s-one"), events, more: false });
    assert!(stage.screen().contains("message 50"), "what was read stays where it was");
    assert!(stage.key("g").is_empty());
    assert!(stage.screen().contains("message 10"));
    // What was there before is not printed again.
    assert!(!stage.printed().contains("message 10"));
}

#[test]
fn a_model_is_chosen_from_a_list_or_typed() {
    let mut stage = Stage::open();
    assert_eq!(stage.send("/model"), [Effect::ListModels]);
    let models = || Reply::Models(vec![Clean::new("openai/gpt"), Clean::new("anthropic/opus")]);
    stage.reply(models());
    stage.type_text("opu");
    assert_eq!(stage.key("enter"), [check("anthropic/opus")]);
    stage.reply(models());
    stage.type_text("local/zzz");
    assert_eq!(stage.key("enter"), [check("local/zzz")]);
    stage.reply(Reply::Model { name: "local/zzz".into(), visit: Visit(1) });
    assert_eq!(stage.state.settings.model.as_deref(), Some("local/zzz"));
}

#[test]
fn the_mode_is_chosen_from_a_list_or_typed() {
    let mut stage = Stage::open();
    stage.send("/mode");
    stage.key("up");
    stage.key("enter");
    assert_eq!(stage.state.mode(), stepwell::model::Mode::ConfirmAll);
    stage.send("/mode yolo");
    assert_eq!(stage.state.mode(), stepwell::model::Mode::Yolo);
    stage.printed();
    stage.send("/mode always");
    assert!(stage.printed().contains("expected one of"));
}

#[test]
fn a_diff_is_shown_on_a_page() {
    let mut stage = Stage::open();
    let diff = about("s-one", SessionCommand::Diff { from: None, to: None });
    let text = "diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n";
    stage.reply(ran(diff, Answer::Diff(Vec::new()), text));
    assert!(stage.screen().starts_with("diff"));
    assert!(stage.screen().contains("+b"));
}
