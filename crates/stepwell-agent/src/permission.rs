//! Which calls run without a question.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stepwell::Effect;

/// When a person is asked. The stricter mode is the lesser one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Before every call.
    ConfirmAll,
    /// Before a call that changes something: reads run.
    #[default]
    ConfirmSensitive,
    /// Never.
    Yolo,
}

impl Mode {
    /// Every mode, with its word.
    pub const ALL: [(&'static str, Self); 3] = [
        ("confirm-all", Self::ConfirmAll),
        ("confirm-sensitive", Self::ConfirmSensitive),
        ("yolo", Self::Yolo),
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmAll => "confirm-all",
            Self::ConfirmSensitive => "confirm-sensitive",
            Self::Yolo => "yolo",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == text);
        found
            .map(|(_, mode)| mode)
            .ok_or_else(|| "use confirm-all, confirm-sensitive or yolo".to_owned())
    }
}

/// May a call run?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// A person says.
    Ask,
}

/// Judges a call by the mode, its effect, and what the user said of its tool before.
#[must_use]
pub const fn judge(mode: Mode, effect: Effect, remembered: Option<bool>) -> Verdict {
    match (remembered, mode, effect) {
        (Some(true), _, _)
        | (None, Mode::Yolo, _)
        | (None, Mode::ConfirmSensitive, Effect::Pure) => Verdict::Allow,
        (Some(false), _, _) => Verdict::Deny,
        (None, _, _) => Verdict::Ask,
    }
}
