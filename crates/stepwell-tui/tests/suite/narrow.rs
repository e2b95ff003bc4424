//! Narrow screens, and what stands on the first and the last line of pages.

use stepwell_runtime::command::Command;
use stepwell_tui::{Clean, Effect, OtherAgents, Reach, Reply, SessionRow, Visit};

use crate::answers::deleted;
use crate::stage::{Stage, id, row};

fn picker(columns: u16, rows: Vec<SessionRow>) -> Stage {
    let mut stage = Stage::sized(columns, 20);
    stage.key("ctrl+r");
    stage.reply(Reply::Found { search: 1, rows, others: OtherAgents::Unasked });
    stage
}

fn foot(stage: &Stage) -> String {
    stage.screen().lines().next_back().unwrap_or_default().to_owned()
}

#[test]
fn every_page_says_how_to_leave_it_on_forty_columns() {
    let mut stage = Stage::sized(40, 20);
    stage.send("/help");
    assert!(foot(&stage).contains("q back"), "{}", foot(&stage));
    let mut stage = picker(40, vec![row("s-1", "fix the build")]);
    assert!(foot(&stage).contains("Esc back"), "{}", foot(&stage));
    for columns in [40, 80] {
        stage = picker(columns, vec![row("s-1", "fix the build")]);
        stage.key("tab");
        let screen = stage.screen();
        for action in ["r rename", "d delete", "u undelete", "c Claude Code", "x Codex", "Esc back"]
        {
            assert!(screen.contains(action), "{columns}: {screen}");
        }
        assert!(!screen.contains('…'), "{screen}");
    }
}

#[test]
fn a_title_leaves_out_what_does_not_fit_and_says_where_the_key_leads() {
    let title = |stage: &Stage| stage.screen().lines().next().unwrap_or_default().to_owned();
    let mut stage = picker(40, vec![row("s-1", "a"), row("s-2", "b")]);
    assert!(title(&stage).ends_with("2 · this workspace"), "{}", title(&stage));
    assert!(title(&stage).starts_with("Sessions  "), "{}", title(&stage));
    stage = picker(80, vec![row("s-1", "a")]);
    assert!(title(&stage).ends_with("1 · this workspace · Ctrl+R everywhere"), "{}", title(&stage));
    stage.key("ctrl+r");
    stage.reply(Reply::Found { search: 2, rows: vec![], others: OtherAgents::On });
    assert!(title(&stage).ends_with("0 · everywhere · Ctrl+R this workspace"), "{}", title(&stage));
    let many = (0..200).map(|n| row(&format!("s-{n}"), "a")).collect();
    let stage = picker(80, many);
    assert!(title(&stage).contains("the newest 200"), "{}", title(&stage));
}

#[test]
fn what_just_happened_hides_no_keys() {
    let mut stage = Stage::open();
    stage.key("esc");
    assert!(stage.screen().contains("Esc again goes back"));
    stage.key("?");
    assert!(foot(&stage).contains("q back"), "{}", foot(&stage));
    assert!(!stage.screen().contains("Esc again"), "{}", stage.screen());
    let mut stage = picker(60, vec![row("s-1", "a")]);
    stage.key("tab");
    stage.key("y");
    assert!(stage.screen().starts_with("Sessions"), "{}", stage.screen());
    assert!(stage.screen().lines().next().is_some_and(|line| line.ends_with("copied: s-1")));
    assert!(foot(&stage).contains("Enter resume"), "{}", foot(&stage));
}

#[test]
fn one_key_brings_back_what_was_just_deleted_also_if_nothing_else_is_listed() {
    let mut stage = picker(60, vec![row("s-1", "a")]);
    stage.key("delete");
    stage.reply(deleted("s-1"));
    stage.reply(Reply::Found { search: 2, rows: vec![], others: OtherAgents::Unasked });
    assert!(foot(&stage).contains("u brings it back"), "{}", foot(&stage));
    let command = Command::Restore(vec!["s-1".to_owned()]);
    let restore = [Effect::Run { command, visit: Visit(0) }];
    assert_eq!(stage.key("u"), restore);
    // Every other key goes on; then it is among the actions.
    let mut stage = picker(60, vec![row("s-1", "a")]);
    stage.key("delete");
    stage.reply(deleted("s-1"));
    stage.reply(Reply::Found { search: 2, rows: vec![], others: OtherAgents::Unasked });
    let find = Effect::Find { search: 3, words: "x".into(), reach: Reach::Workspace };
    assert_eq!(stage.key("x"), [find]);
    stage.key("tab");
    assert_eq!(stage.key("u"), restore);
}

#[test]
fn the_start_lists_anew_what_was_changed_in_the_picker() {
    let mut stage = Stage::new();
    stage.reply(Reply::Start(vec![row("s-1", "a")]));
    stage.key("ctrl+r");
    let rows = vec![row("s-1", "a")];
    stage.reply(Reply::Found { search: 1, rows, others: OtherAgents::Unasked });
    stage.key("delete");
    let effects = stage.reply(deleted("s-1"));
    assert!(effects.contains(&Effect::ListStart), "{effects:?}");
}

#[test]
fn a_hit_is_marked_once() {
    let mut hit = row("s-1", "a");
    hit.hits = vec![Clean::new("…run_command is here")];
    let mut stage = picker(60, vec![hit]);
    stage.reply(Reply::Preview { session: id("s-1"), text: Clean::new("hello") });
    assert!(stage.screen().contains("\n… run_command is here"), "{}", stage.screen());
}

#[test]
fn a_list_of_models_that_is_empty_says_what_can_be_typed() {
    let mut stage = Stage::new();
    stage.reply(Reply::Models(vec![]));
    assert!(stage.screen().contains("type one, such as anthropic/NAME"), "{}", stage.screen());
}

#[test]
fn the_mode_stays_and_what_was_spent_comes_before_the_context_and_the_title() {
    let status = |columns: u16, model: &str| {
        let mut stage = Stage::sized(columns, 20);
        let mut opened = crate::stage::opened(stepwell::Status::Success);
        opened.card.model = Clean::new(model);
        opened.card.title = Clean::new("make the whole build green again, at last");
        stage.reply(Reply::Opened(Box::new(opened)));
        stage.wait(60).input(stepwell_tui::Input::Tick);
        foot(&stage)
    };
    let long = "openrouter/anthropic/claude-sonnet-4-5-20260929-thinking";
    for columns in [40, 60, 80] {
        for model in ["anthropic/sonnet", long] {
            let line = status(columns, model);
            assert!(line.contains("confirm-sensitive"), "{columns}: {line}");
            assert!(columns == 40 || line.contains("$0.12 ($0.88 left)"), "{columns}: {line}");
        }
    }
    let line = status(60, "anthropic/sonnet");
    assert!(line.contains("anthropic/sonnet") && !line.contains("context"), "{line}");
    let line = status(120, "anthropic/sonnet");
    assert!(line.contains("12% of context") && line.contains("make the whole"), "{line}");
}
