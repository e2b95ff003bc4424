//! Keys at a question of the run.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stepwell::{Answer, Grant, SessionId};

use super::typed;
use crate::clean::Clean;
use crate::draw::shows_all_of_question;
use crate::effect::Effect;
use crate::page::Content;
use crate::state::{Asked, Refusal, State};
use crate::told::QuestionKind;

/// A key that is pressed sooner was meant for something else: nobody reads as fast.
const TOO_SOON: Duration = Duration::from_millis(300);

impl State {
    /// A key at a question. Absent, it is for the conversation: who is typing when a question comes
    /// does not answer it with what they type.
    pub(super) fn question_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let asked = self.questions.first()?;
        if asked.reason.is_some() {
            return self.reason_key(key);
        }
        if asked.question.kind == QuestionKind::Words {
            return self.words_key(key);
        }
        let (since, focused) = (asked.since, asked.focused);
        if !self.editor.is_empty() && !focused {
            if key.code == KeyCode::Tab && self.completion.is_none() {
                self.questions[0].focused = true;
                return Some(Vec::new());
            }
            return None;
        }
        let c = match (key.code, typed(key)) {
            (KeyCode::Tab, _) if focused => {
                self.questions[0].focused = false;
                return Some(Vec::new());
            }
            (_, Some(c)) => c,
            _ => return None,
        };
        if !matches!(c, 'y' | 'a' | 'n' | 'N' | 'd' | 'l') {
            return focused.then(Vec::new);
        }
        if self.now.saturating_sub(since) < TOO_SOON {
            self.say_briefly("a question just came up: read it, then answer");
            return Some(Vec::new());
        }
        Some(self.choose(c))
    }

    fn choose(&mut self, c: char) -> Vec<Effect> {
        match c {
            'y' => self.allow(Answer::ALLOW_ONCE, shows_all_of_question(self)),
            'a' => {
                let all = shows_all_of_question(self);
                self.allow(Answer::Allow { scope: Grant::Always }, all)
            }
            'l' => self.later(),
            'd' => {
                self.show_question();
                Vec::new()
            }
            c => {
                let refusal = if c == 'N' { Refusal::Never } else { Refusal::Once };
                if let Some(asked) = self.questions.first_mut() {
                    asked.reason = Some(refusal);
                }
                // What was typed is not the reason.
                let typed = self.editor.text().to_owned();
                self.editor.remember(&typed);
                self.editor.clear();
                Vec::new()
            }
        }
    }

    /// Allows what is asked. Nobody allows what they were not shown the end of: it is shown first.
    fn allow(&mut self, answer: Answer, shown: bool) -> Vec<Effect> {
        if shown || self.asked().is_none_or(|asked| asked.read) {
            return self.answer(answer);
        }
        self.show_question();
        self.say_briefly("not all of it was shown: read it, then answer");
        Vec::new()
    }

    /// Shows all of the question: what is asked, and what would be done.
    pub(super) fn show_question(&mut self) {
        let Some(asked) = self.questions.first_mut() else { return };
        asked.read = true;
        let question = &asked.question;
        let content = match question.detail.as_ref().is_some_and(crate::diff::is_diff) {
            true => Content::Diff(question.all()),
            false => Content::Plain(question.all()),
        };
        self.open_text("what it would do", content);
    }

    /// Keys while the reason for a no is typed. Enter sends it; none is needed.
    fn reason_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        match key.code {
            KeyCode::Esc => {
                self.questions.first_mut()?.reason = None;
                self.editor.clear();
                Some(Vec::new())
            }
            KeyCode::Enter
                if !key.modifiers.intersects(KeyModifiers::SHIFT | KeyModifiers::ALT) =>
            {
                let never = self.questions.first()?.reason == Some(Refusal::Never);
                let reason = self.editor.text().trim().to_owned();
                self.editor.clear();
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                Some(self.answer(Answer::Deny { reason, never }))
            }
            _ => None,
        }
    }

    /// Keys at a question that wants words: they are typed as always, and Enter answers.
    fn words_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let plain = !key.modifiers.intersects(KeyModifiers::SHIFT | KeyModifiers::ALT);
        if key.code != KeyCode::Enter || !plain || self.editor.text().starts_with('/') {
            return None;
        }
        let asked = self.questions.first()?;
        // Enter alone gives an answer only to a question that was read.
        if self.editor.is_empty() && self.now.saturating_sub(asked.since) < TOO_SOON {
            self.say_briefly("a question just came up: read it, then answer");
            return Some(Vec::new());
        }
        let question = &asked.question;
        let default = question.default.as_ref().map(ToString::to_string);
        let text = match self.editor.text().trim() {
            "" => default?,
            text => text.to_owned(),
        };
        self.editor.take();
        Some(self.answer(Answer::Text(text)))
    }

    /// A whole line as an answer.
    pub(super) fn question_line(&mut self, line: &str) -> Vec<Effect> {
        let line = line.trim();
        if line.starts_with('/') {
            return self.slash(line);
        }
        let Some(asked) = self.asked() else { return Vec::new() };
        if asked.question.kind == QuestionKind::Words {
            let default = asked.question.default.as_ref().map(ToString::to_string);
            let text = if line.is_empty() { default } else { Some(line.to_owned()) };
            return text.map_or_else(Vec::new, |text| self.answer(Answer::Text(text)));
        }
        let all = !crate::plain::is_cut(&asked.question);
        match line {
            "a" => self.allow(Answer::Allow { scope: Grant::Always }, all),
            "d" | "details" => {
                self.show_question();
                Vec::new()
            }
            "N" => self.answer(Answer::Deny { reason: None, never: true }),
            "l" | "later" => self.later(),
            line => match Answer::read(line) {
                Answer::Text(_) => {
                    self.note("answer yes, always, no, no: WHY, never or later");
                    Vec::new()
                }
                answer @ Answer::Allow { .. } => self.allow(answer, all),
                answer => self.answer(answer),
            },
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        let Some(asked) = self.take_question() else { return Vec::new() };
        let (session, gate) = (asked.question.session.clone(), asked.question.gate.clone());
        self.answering.push(asked);
        vec![Effect::Answer { session, gate, answer }]
    }

    /// Takes a question away that was answered elsewhere. What was being typed for it stays typed,
    /// and is sent to nobody unasked. False, if it was not asked here.
    pub(super) fn take_away(&mut self, session: &SessionId, gate: &str) -> bool {
        let Some(at) = self.questions.iter().position(|asked| asked.is(session, gate)) else {
            return false;
        };
        let asked = self.questions.remove(at);
        if at == 0 {
            let words = asked.question.kind == QuestionKind::Words;
            self.typed_for_question |= (words || asked.reason.is_some()) && !self.editor.is_empty();
            self.taken_away = Some(self.now);
            self.next_question();
        }
        true
    }

    /// Enter while what is typed was meant for a question that is gone.
    pub(super) fn keep_typed(&mut self, key: KeyEvent) -> bool {
        if self.editor.is_empty() {
            self.typed_for_question = false;
        }
        let keeps = self.typed_for_question && key.code == KeyCode::Enter;
        if keeps {
            self.typed_for_question = false;
            self.say_briefly("not sent: the question was answered elsewhere; Enter again sends it");
        }
        keeps
    }

    /// A line that was meant for a question which somebody else answered.
    pub(super) fn keep_line(&mut self, line: &str) -> bool {
        let Some(taken) = self.taken_away.take() else { return false };
        let too_soon = self.asked().is_some() && self.now.saturating_sub(taken) < TOO_SOON;
        let is_answer = self.asked().is_none() && !matches!(Answer::read(line), Answer::Text(_));
        if too_soon || is_answer {
            self.note("not taken: the question was answered elsewhere");
        }
        too_soon || is_answer
    }

    /// Takes the first question away. The next one comes up only now.
    fn take_question(&mut self) -> Option<Asked> {
        let asked = (!self.questions.is_empty()).then(|| self.questions.remove(0));
        self.next_question();
        asked
    }

    /// The first question is another: whoever pressed a key just now did not mean it.
    pub(super) fn next_question(&mut self) {
        if let Some(next) = self.questions.first_mut() {
            next.since = self.now;
        }
    }

    /// An answer was not taken. A question that still waits is asked again.
    pub(super) fn not_answered(&mut self, of: (&SessionId, &str), why: &Clean, again: bool) {
        let (session, gate) = of;
        if let Some(at) = self.answering.iter().position(|asked| asked.is(session, gate)) {
            let asked = self.answering.remove(at);
            if again {
                self.questions.insert(0, Asked { reason: None, ..asked });
            }
        }
        self.trouble(why, None);
    }

    pub(super) fn later(&mut self) -> Vec<Effect> {
        self.take_question();
        self.note("left for later: it waits for an answer, here or elsewhere");
        // Whoever only watches leaves the question to others.
        if self.is_watching() { Vec::new() } else { vec![Effect::Pause] }
    }
}
