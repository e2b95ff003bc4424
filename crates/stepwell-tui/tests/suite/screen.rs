//! The screen itself, as a terminal shows it.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::text::Line;
use stepwell_tui::{Picture, Screen};

const COLUMNS: u16 = 20;
const ROWS: u16 = 6;

/// What is written, for the terminal.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Vec<u8>>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Shown {
    screen: Screen<Wire>,
    wire: Wire,
    terminal: vt100::Parser,
}

impl Shown {
    fn new(row: u16) -> Self {
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 1000);
        for nth in 0..row {
            terminal.process(format!("shell {nth}\r\n").as_bytes());
        }
        let wire = Wire::default();
        Self { screen: Screen::new(wire.clone(), (COLUMNS, ROWS), Some(row)), wire, terminal }
    }

    fn show(&mut self, printed: &[&str], picture: &Picture) {
        let printed = printed.iter().map(|line| Line::from((*line).to_owned())).collect();
        self.screen.show(printed, picture).expect("memory takes it");
        self.pass();
    }

    fn pass(&mut self) {
        let bytes = self.wire.0.take();
        self.terminal.process(&bytes);
    }

    /// Everything, with what scrolled away.
    fn all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        self.terminal.screen_mut().set_scrollback(usize::MAX);
        let back = self.terminal.screen().scrollback();
        for at in (1..=back).rev() {
            self.terminal.screen_mut().set_scrollback(at);
            all.extend(self.terminal.screen().rows(0, COLUMNS).take(1));
        }
        self.terminal.screen_mut().set_scrollback(0);
        all.extend(self.terminal.screen().rows(0, COLUMNS));
        while all.last().is_some_and(String::is_empty) {
            all.pop();
        }
        all
    }
}

fn picture(lines: &[&str]) -> Picture {
    let lines = lines.iter().map(|line| Line::from((*line).to_owned())).collect();
    Picture { lines, cursor: Some((2, 0)), full: false }
}

#[test]
fn printed_lines_stay_in_the_scrollback_in_order_above_the_live_part() {
    let mut shown = Shown::new(2);
    shown.show(&[], &picture(&[">", "status"]));
    assert_eq!(shown.all(), ["shell 0", "shell 1", ">", "status"]);
    let mut expected = vec!["shell 0".to_owned(), "shell 1".to_owned()];
    for nth in 0..20 {
        let line = format!("line {nth}");
        shown.show(&[&line, "12345678901234567890"], &picture(&["> x", "status"]));
        expected.extend([line, "12345678901234567890".to_owned()]);
        let mut all = expected.clone();
        all.extend(["> x".to_owned(), "status".to_owned()]);
        assert_eq!(shown.all(), all, "after {nth}");
    }
}

#[test]
fn the_live_part_grows_and_shrinks_without_losing_a_line() {
    let mut shown = Shown::new(3);
    shown.show(&["a"], &picture(&[">", "s"]));
    shown.show(&[], &picture(&["1", "2", "3", ">", "s"]));
    shown.show(&["b"], &picture(&[">", "s"]));
    shown.show(&["c"], &picture(&["1", ">", "s"]));
    assert_eq!(shown.all(), ["shell 0", "shell 1", "shell 2", "a", "b", "c", "1", ">", "s"]);
}

#[test]
fn a_page_covers_the_screen_and_gives_it_back_with_what_happened_meanwhile() {
    let mut shown = Shown::new(0);
    shown.show(&["a"], &picture(&[">", "s"]));
    let page = Picture { full: true, ..picture(&["page", "", "", "", "", "foot"]) };
    shown.show(&["b"], &page);
    assert!(shown.terminal.screen().alternate_screen());
    assert_eq!(shown.terminal.screen().contents().lines().next(), Some("page"));
    shown.show(&["c"], &picture(&[">", "s"]));
    assert!(!shown.terminal.screen().alternate_screen());
    assert_eq!(shown.all(), ["a", "b", "c", ">", "s"]);
}

#[test]
fn closing_leaves_the_conversation_and_a_clean_line() {
    let mut shown = Shown::new(0);
    shown.show(&["a"], &picture(&[">", "s"]));
    shown.screen.close().unwrap();
    shown.pass();
    assert_eq!(shown.all(), ["a"]);
    assert_eq!(shown.terminal.screen().cursor_position(), (1, 0));
    assert!(!shown.terminal.screen().hide_cursor());
}

#[test]
fn after_a_resize_the_live_part_is_drawn_where_the_cursor_is() {
    let mut shown = Shown::new(0);
    shown.show(&["a", "b"], &picture(&[">", "s"]));
    shown.screen.resize(COLUMNS, ROWS);
    assert!(shown.screen.is_lost());
    let row = shown.terminal.screen().cursor_position().0;
    shown.screen.found(Some(row));
    shown.show(&["c"], &picture(&[">", "s"]));
    assert_eq!(shown.all(), ["a", "b", "c", ">", "s"]);
}

#[test]
fn a_terminal_that_does_not_say_where_the_cursor_is_keeps_the_live_part_where_it_was() {
    let mut shown = Shown::new(0);
    shown.show(&["a", "b"], &picture(&[">", "s"]));
    shown.screen.resize(COLUMNS, ROWS);
    shown.screen.found(None);
    shown.show(&["c"], &picture(&[">", "s"]));
    assert_eq!(shown.all(), ["a", "b", "c", ">", "s"]);
}

#[test]
fn on_a_narrower_screen_lines_that_were_wrapped_are_drawn_over() {
    let mut shown = Shown::new(0);
    let rule = "─".repeat(COLUMNS.into());
    let lines = vec![Line::from(rule), Line::from(">")];
    let typed = Picture { lines, cursor: Some((1, 1)), full: false };
    shown.screen.show(Vec::new(), &typed).unwrap();
    shown.screen.resize(COLUMNS / 2, ROWS);
    // The rule takes two rows now, so the cursor is in the third.
    shown.screen.found(Some(2));
    shown.wire.0.take();
    shown.screen.show(Vec::new(), &typed).unwrap();
    let bytes = String::from_utf8(shown.wire.0.take()).unwrap();
    assert!(bytes.contains("\u{1b}[1;1H\u{1b}[K\u{1b}[2;1H\u{1b}[J"), "{bytes:?}");
}

#[test]
fn control_characters_do_not_pass_even_if_they_came_this_far() {
    let mut shown = Shown::new(0);
    shown.screen.show(vec![Line::from("a\u{1b}[2Jb\u{7}")], &picture(&["\u{1b}[2J>"])).unwrap();
    let bytes = String::from_utf8(shown.wire.0.take()).unwrap();
    assert!(bytes.contains("a[2Jb") && !bytes.contains("a\u{1b}[2J"), "{bytes:?}");
}

#[test]
fn a_live_part_at_the_top_is_never_cleared_with_the_whole_screen_at_once() {
    // Some terminals keep what stood on a screen that is cleared from its first cell on.
    let whole = b"\x1b[1;1H\x1b[J";
    let mut shown = Shown::new(0);
    for lines in [&["one"][..], &[], &["two", "three"]] {
        let printed = lines.iter().map(|line| Line::from((*line).to_owned())).collect();
        shown.screen.show(printed, &picture(&["live", "part"])).expect("memory takes it");
        let bytes = shown.wire.0.borrow().clone();
        assert!(!bytes.windows(whole.len()).any(|it| it == whole), "{bytes:?}");
        shown.pass();
    }
    assert_eq!(shown.all()[..3], ["one", "two", "three"]);
}
