//! The answers that a question about a tool offers, in the order in which they are shown.

use stepwell::model::Choice as Offered;

use crate::clean::Clean;
use crate::told::{Always, Question};

/// An answer to whether a tool may run. A person chooses one with the arrow keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Allow this call.
    Once,
    /// Allow every call of the tool in this session.
    Always,
    /// Allow calls that match a pattern, which is typed next.
    Like,
    /// Refuse this call.
    No,
    /// Refuse every call of the tool in this session.
    Never,
    /// Show all of the question.
    Details,
    /// Leave the question open.
    Later,
}

impl Choice {
    /// What a question offers. An answer that would have no effect is not offered.
    #[must_use]
    pub fn offered(question: &Question) -> Vec<Self> {
        let always = question.always.as_ref();
        let mut offered = vec![Self::Once];
        offered.extend(always.map(|_| Self::Always));
        offered.extend(always.and_then(Always::like).map(|_| Self::Like));
        offered.extend([Self::No, Self::Never, Self::Details, Self::Later]);
        offered
    }

    /// What is shown for it.
    #[must_use]
    pub fn label(self, question: &Question) -> String {
        let tool = question.tool.as_ref().map(Clean::as_str).unwrap_or_default();
        let like = question.always.as_ref().and_then(Always::like);
        match self {
            Self::Once => Offered::Once.label(tool, None),
            Self::Always => Offered::Always.label(tool, None),
            Self::Like => Offered::Always.label(tool, like.as_ref().map(Clean::as_str)),
            Self::No => Offered::Deny.label(tool, None),
            Self::Never => Offered::Never.label(tool, None),
            Self::Details => "Details".to_owned(),
            Self::Later => "Later".to_owned(),
        }
    }

    /// The choice beside another; before the first key, the first or the last one.
    #[must_use]
    pub fn beside(chosen: Option<Self>, question: &Question, step: Step) -> Option<Self> {
        let offered = Self::offered(question);
        let at = chosen.and_then(|chosen| offered.iter().position(|it| *it == chosen));
        match (at, step) {
            (None, Step::Forward) => offered.first(),
            (None, Step::Back) => offered.last(),
            (Some(at), Step::Forward) => offered.get(at + 1).or(offered.last()),
            (Some(at), Step::Back) => offered.get(at.saturating_sub(1)),
        }
        .copied()
    }
}

/// Which way an arrow key moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next choice.
    Forward,
    /// To the one before.
    Back,
}
