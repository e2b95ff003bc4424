//! Asking before something is done that a person should see first.

use std::io::{self, BufRead, Write};

use stepwell_terminal::Terminal;

use crate::failure::{Exit, Failure, Result};

/// What to do where nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// Go on: it can be undone.
    GoOn,
    /// Refuse: it cannot.
    Refuse,
    /// Refuse: it is another program's.
    RefuseForeign,
}

/// Whether the user said yes beforehand.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Consent {
    /// Does it without asking.
    #[arg(short = 'y', long)]
    yes: bool,
}

impl Consent {
    /// Did the user say yes beforehand?
    pub(crate) fn given(self) -> bool {
        self.yes
    }

    /// Asks, unless the user said yes beforehand. No is a failure that says so.
    pub(crate) fn ask(self, terminal: Terminal, question: &str, unasked: Unasked) -> Result<()> {
        if self.yes || (!terminal.can_ask && unasked == Unasked::GoOn) {
            return Ok(());
        }
        if !terminal.can_ask {
            let message = match unasked {
                Unasked::RefuseForeign => {
                    "these are another program's, and nobody can be asked here"
                }
                _ => "this cannot be undone, and nobody can be asked here",
            };
            return Err(Failure::new(Exit::Failed, message).hint("add --yes to do it"));
        }
        let mut errors = io::stderr();
        write!(errors, "{question} [y/N] ")?;
        errors.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Failed, "nothing was done")),
        }
    }
}
