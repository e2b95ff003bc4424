//! The terminal that the process was started in, if it was started in one.

use std::io::IsTerminal;

use stepwell_terminal::Terminal;

/// The terminal of this process.
#[expect(clippy::disallowed_methods, reason = "this is where the environment comes from")]
pub(crate) fn of_this_process() -> Terminal {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let number = |name| set(name).and_then(|columns| columns.to_str()?.parse().ok());
    let columns = number("COLUMNS");
    let (output, input) = (std::io::stdout(), std::io::stdin());
    Terminal {
        can_ask: input.is_terminal() && std::io::stderr().is_terminal(),
        output: output.is_terminal(),
        // Who shows the answer elsewhere says how wide it may be.
        width: number("STEPWELL_COLUMNS")
            .or_else(|| columns.filter(|_| output.is_terminal()))
            .or_else(|| width(&output))
            .filter(|width| *width > 0),
        plain: set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb"),
    }
}

/// The screen's columns and rows; the usual ones, where nobody says.
pub(crate) fn size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

fn width(output: &std::io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    Some(usize::from(size.ws_col))
}
