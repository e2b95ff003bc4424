//! The questions of a run, and the answers that were given here.

use std::time::Duration;

use stepwell::SessionId;

use crate::choice::Choice;
use crate::told::Question;

/// The questions of the run.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Questions that wait, the oldest first.
    pub questions: Vec<Asked>,
    /// Questions that were answered here; whether the answer counted is not known yet.
    pub(crate) answering: Vec<Asked>,
    /// The text in the input line was meant for a question that somebody else answered: it is not
    /// sent unasked.
    pub(crate) typed_for_question: bool,
    /// When a question was answered elsewhere that a line may still be meant for.
    pub(crate) taken_away: Option<Duration>,
}

/// A question, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The question.
    pub question: Question,
    /// Since when it is shown.
    pub since: Duration,
    /// The answer that the arrow keys chose. Enter gives it.
    pub choice: Option<Choice>,
    /// Is the text in the input line a reply to this question? Text that was there when the
    /// question came is a message.
    pub replying: bool,
    /// Was it shown to its end, on a page or as lines?
    pub read: bool,
    /// Is a pattern being typed that is allowed from now on?
    pub pattern: bool,
}

impl Asked {
    /// A question that comes up now.
    #[must_use]
    pub const fn new(question: Question, since: Duration) -> Self {
        Self { question, since, choice: None, replying: false, read: false, pattern: false }
    }

    /// Is it this one?
    #[must_use]
    pub fn is(&self, session: &SessionId, gate: &str) -> bool {
        self.question.gate == gate && self.question.session == *session
    }
}

impl Gates {
    /// The question that keys answer now.
    #[must_use]
    pub fn asked(&self) -> Option<&Asked> {
        self.questions.first()
    }

    /// Asks a question, unless it waits already.
    pub(crate) fn ask(&mut self, question: Question, now: Duration) {
        if !self.questions.iter().any(|it| it.is(&question.session, &question.gate)) {
            self.questions.push(Asked::new(question, now));
        }
    }

    /// Takes the first question away. The next one comes up only now.
    pub(crate) fn take_first(&mut self, now: Duration) -> Option<Asked> {
        let asked = (!self.questions.is_empty()).then(|| self.questions.remove(0));
        self.next_comes_up(now);
        asked
    }

    /// The first question is another: a key that was pressed just now was not meant for it.
    pub(crate) fn next_comes_up(&mut self, now: Duration) {
        if let Some(next) = self.questions.first_mut() {
            next.since = now;
        }
    }

    /// An answer was recorded, or refused for good.
    pub(crate) fn settle(&mut self, session: &SessionId, gate: &str) {
        self.answering.retain(|asked| !asked.is(session, gate));
    }

    /// An answer did not count. A question that still waits is asked again.
    pub(crate) fn ask_again(&mut self, session: &SessionId, gate: &str, still_waits: bool) {
        if let Some(at) = self.answering.iter().position(|asked| asked.is(session, gate)) {
            let asked = self.answering.remove(at);
            if still_waits {
                self.questions.insert(0, Asked { choice: None, ..asked });
            }
        }
    }

    /// Forgets all questions: the session to which they belong is left.
    pub(crate) fn clear(&mut self) {
        self.questions.clear();
        self.answering.clear();
    }
}
