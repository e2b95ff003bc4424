//! How things look. Colours are the terminal's own sixteen, so that its theme is followed.

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    colour: bool,
}

impl Theme {
    /// With the terminal's colours.
    pub const COLOUR: Self = Self { colour: true };
    /// Without any.
    pub const PLAIN: Self = Self { colour: false };

    fn ink(self, colour: Color) -> Style {
        match self.colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// Text that matters less.
    #[must_use]
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Text that matters more.
    #[must_use]
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is selected.
    #[must_use]
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What Stepwell itself points out.
    #[must_use]
    pub fn accent(self) -> Style {
        self.ink(Color::Cyan)
    }

    /// What went well, and lines that came.
    #[must_use]
    pub fn good(self) -> Style {
        self.ink(Color::Green)
    }

    /// What went wrong, and lines that went.
    #[must_use]
    pub fn bad(self) -> Style {
        self.ink(Color::Red)
    }

    /// What waits for the user.
    #[must_use]
    pub fn warn(self) -> Style {
        self.ink(Color::Yellow)
    }

    /// Code.
    #[must_use]
    pub fn code(self) -> Style {
        self.ink(Color::Cyan)
    }

    /// A link's address.
    #[must_use]
    pub fn link(self) -> Style {
        self.ink(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    /// Places in a diff.
    #[must_use]
    pub fn place(self) -> Style {
        self.ink(Color::Magenta)
    }
}
