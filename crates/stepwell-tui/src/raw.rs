//! The terminal while keys are read one by one, and as it was before.

use std::io;
use std::sync::Once;

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::execute;
use crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

/// The terminal while keys are read one by one. Dropping it brings back what was before.
#[derive(Debug)]
pub(crate) struct Raw {
    is_raw: bool,
}

impl Raw {
    pub(crate) fn enter() -> io::Result<Self> {
        restore_on_panic();
        let mut raw = Self { is_raw: false };
        raw.again()?;
        Ok(raw)
    }

    /// Reads keys one by one again.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_raw = true;
        // Terminals that do not know Shift+Enter apart from Enter ignore the second.
        let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
        execute!(io::stdout(), EnableBracketedPaste, PushKeyboardEnhancementFlags(flags))
    }

    /// Brings back what was before.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.is_raw) {
            restore();
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The terminal as a shell expects it. If it is gone, there is nobody left to tell.
fn restore() {
    let _ = execute!(io::stdout(), PopKeyboardEnhancementFlags, DisableBracketedPaste, Show);
    let _ = disable_raw_mode();
}

/// A panic of the thread that draws leaves the terminal usable, and its message readable.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let drawing = std::thread::current().id();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == drawing {
                let _ = execute!(io::stdout(), LeaveAlternateScreen);
                restore();
                before(panic);
            }
        }));
    });
}
