//! How far long work is, for a person who waits.

use std::io::Write as _;

use stepwell_terminal::text::{count, grouped};

use crate::app::App;

/// Says how far it is; silent in a pipe.
pub(crate) fn progress(app: &App, what: &str, done: usize, all: usize) {
    if app.terminal.output && app.terminal.can_ask {
        let end = if done == all { "\r\u{1b}[K" } else { "" };
        let text = format!("\r\u{1b}[K{} of {}{end}", grouped(done as u64), count(all, what));
        // Nobody is left to tell if stderr is closed.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
