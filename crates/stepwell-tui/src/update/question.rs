//! Keys at a question of the run.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stepwell::SessionId;
use stepwell::model::{Answer, Grant};
use stepwell_agent::permission::TypedChoice;

use crate::choice::{Choice, Step};
use crate::composer::typed;
use crate::draw::shows_all_of_question;
use crate::effect::Effect;
use crate::gates::Asked;
use crate::page::{Content, Page, TextPage};
use crate::state::State;
use crate::told::QuestionKind;

/// A key that is pressed sooner was meant for something else: nobody reads as fast.
const TOO_SOON: Duration = Duration::from_millis(300);

/// How a question is answered.
const HOW: &str = "arrow keys choose an answer, Enter gives it";

impl Asked {
    fn step(&mut self, step: Step) {
        self.choice = Choice::beside(self.choice, &self.question, step);
    }
}

/// Is it pressed without Shift and Alt, which make Enter begin a new line?
const fn is_plain(key: KeyEvent) -> bool {
    !key.modifiers.intersects(KeyModifiers::SHIFT.union(KeyModifiers::ALT))
}

impl State {
    /// A key at a question. Absent, it is for the conversation.
    pub(super) fn question_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let asked = self.gates.questions.first()?;
        if asked.pattern {
            return self.pattern_key(key);
        }
        match asked.question.kind {
            QuestionKind::Words => self.words_key(key),
            QuestionKind::Approval => self.approval_key(key),
        }
    }

    /// A key at the question whether a tool may run. A letter is always text: only an answer that
    /// the arrow keys chose, with nothing typed, allows anything.
    fn approval_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        self.begin_reply();
        if self.composer.completion.is_some() {
            return None;
        }
        let asked = self.gates.questions.first_mut()?;
        let (is_empty, replying) = (self.composer.editor.is_empty(), asked.replying);
        match key.code {
            KeyCode::Down | KeyCode::Right if is_empty => asked.step(Step::Forward),
            KeyCode::Up | KeyCode::Left if is_empty => asked.step(Step::Back),
            KeyCode::Tab if is_empty => self.say_briefly(HOW),
            KeyCode::Tab => {
                let before = self.composer.aside.take().map(|text| format!("{text}\n\n"));
                self.composer.aside =
                    Some(before.unwrap_or_default() + self.composer.editor.text());
                self.composer.editor.clear();
            }
            KeyCode::Enter if is_plain(key) && is_empty => return Some(self.confirm()),
            KeyCode::Enter if is_plain(key) && replying => return self.refuse_in_words(),
            _ => {
                if typed(key).is_some() {
                    asked.choice = None;
                }
                return None;
            }
        }
        Some(Vec::new())
    }

    /// Text that begins while a question is shown is a reply to it.
    pub(super) fn begin_reply(&mut self) {
        if self.composer.editor.is_empty()
            && let Some(asked) = self.gates.questions.first_mut()
        {
            asked.replying = true;
        }
    }

    /// Gives the answer that was chosen.
    fn confirm(&mut self) -> Vec<Effect> {
        let Some(asked) = self.asked() else { return Vec::new() };
        let Some(choice) = asked.choice else {
            self.say_briefly(HOW);
            return Vec::new();
        };
        if self.is_too_soon() {
            return Vec::new();
        }
        let shown = shows_all_of_question(self);
        match choice {
            Choice::Once => self.allow(Answer::ALLOW_ONCE, shown),
            Choice::Always => self.allow_always(shown),
            Choice::Like => self.type_pattern(shown),
            Choice::No => self.answer(Answer::Deny { reason: None, never: false }),
            Choice::Never => self.answer(Answer::Deny { reason: None, never: true }),
            Choice::Details => {
                self.show_question();
                Vec::new()
            }
            Choice::Later => self.later(),
        }
    }

    /// Says no, with what was typed as the reason. Absent, what is typed is something else: a
    /// command, or a line that goes on.
    fn refuse_in_words(&mut self) -> Option<Vec<Effect>> {
        let typed = self.composer.editor.text().trim().to_owned();
        let goes_on = self.composer.editor.before_cursor().ends_with('\\');
        if goes_on || typed.is_empty() || typed.starts_with(['/', '!']) {
            return None;
        }
        if self.is_too_soon() {
            return Some(Vec::new());
        }
        let answer = match Answer::read(&typed) {
            Answer::Allow { .. } => {
                self.say_briefly("words allow nothing: clear them, then arrows and Enter answer");
                return Some(Vec::new());
            }
            Answer::Text(reason) => Answer::deny(reason),
            refusal => refusal,
        };
        self.composer.editor.take();
        Some(self.answer(answer))
    }

    /// Did the question come up so recently that a key was meant for something else?
    fn is_too_soon(&mut self) -> bool {
        let since = self.asked().map(|asked| asked.since);
        let too_soon = since.is_some_and(|since| self.now.saturating_sub(since) < TOO_SOON);
        if too_soon {
            self.say_briefly("a question just came up: read it, then answer");
        }
        too_soon
    }

    /// Allows what is asked. Nobody allows what they were not shown the end of: it is shown first.
    fn allow(&mut self, answer: Answer, shown: bool) -> Vec<Effect> {
        match self.was_shown(shown) {
            true => self.answer(answer),
            false => Vec::new(),
        }
    }

    /// Was the end of what is asked shown? If not, all of it is shown now, from its beginning.
    fn was_shown(&mut self, shown: bool) -> bool {
        let shown = shown || self.asked().is_none_or(|asked| asked.read);
        if !shown {
            self.show_question();
            self.say_briefly("not all of it was shown: read it to its end, then answer");
        }
        shown
    }

    /// Allows every call of the tool in this session.
    fn allow_always(&mut self, shown: bool) -> Vec<Effect> {
        match self.asked().is_some_and(|asked| asked.question.always.is_some()) {
            true => self.allow(Answer::Allow { scope: Grant::Always }, shown),
            false => {
                self.say_briefly("this is asked every time: once allows this call");
                Vec::new()
            }
        }
    }

    /// Has a pattern typed, whose like is allowed from now on.
    fn type_pattern(&mut self, shown: bool) -> Vec<Effect> {
        let always = self.asked().and_then(|asked| asked.question.always.as_ref());
        let Some(always) = always.filter(|always| always.call.is_some()) else {
            self.say_briefly("there is no pattern for this");
            return Vec::new();
        };
        let like = always.like().unwrap_or_default();
        if !self.was_shown(shown) {
            return Vec::new();
        }
        self.composer.editor.set(like.as_str());
        if let Some(asked) = self.gates.questions.first_mut() {
            asked.pattern = true;
        }
        Vec::new()
    }

    /// Keys while a pattern is typed. Enter allows what is like it.
    fn pattern_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        match key.code {
            KeyCode::Esc => {
                self.gates.questions.first_mut()?.pattern = false;
                self.composer.editor.clear();
                Some(Vec::new())
            }
            KeyCode::Enter => {
                let pattern = self.composer.editor.text().trim().to_owned();
                let effects = self.allow_like(&pattern);
                if !effects.is_empty() {
                    self.composer.editor.clear();
                }
                Some(effects)
            }
            _ => None,
        }
    }

    /// Allows what is asked, and from now on what is like a pattern. It has to fit what is asked.
    fn allow_like(&mut self, pattern: &str) -> Vec<Effect> {
        let always = self.asked().and_then(|asked| asked.question.always.as_ref());
        let call = always.and_then(|always| always.call.as_ref());
        let choice = TypedChoice::read(&format!("a {pattern}"), call);
        let TypedChoice::Answer(_, Some(rule)) = choice else {
            self.say_briefly(format!("{pattern:?} does not fit this call; * stands for anything"));
            return Vec::new();
        };
        let Some(asked) = self.gates.take_first(self.now) else { return Vec::new() };
        let (session, gate) = (asked.question.session.clone(), asked.question.gate.clone());
        self.gates.answering.push(Asked { pattern: false, ..asked });
        vec![Effect::AllowLike { session, gate, rule }]
    }

    /// Shows all of the question: what is asked, and what would be done.
    pub(super) fn show_question(&mut self) {
        let Some(asked) = self.gates.questions.first() else { return };
        let about = (asked.question.session.clone(), asked.question.gate.clone());
        let question = &asked.question;
        let content = match question.detail.as_ref().is_some_and(crate::diff::is_diff) {
            true => Content::Diff(question.all()),
            false => Content::Plain(question.all()),
        };
        self.open_text("what it would do", content);
        if let Some(Page::Text(page)) = &mut self.page {
            page.about = Some(about);
        }
    }

    /// Keys at a question that wants words: they are typed as always, and Enter answers.
    fn words_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        if key.code != KeyCode::Enter
            || !is_plain(key)
            || self.composer.editor.text().starts_with('/')
        {
            return None;
        }
        // Enter alone gives an answer only to a question that was read.
        if self.composer.editor.is_empty() && self.is_too_soon() {
            return Some(Vec::new());
        }
        let question = &self.gates.questions.first()?.question;
        let default = question.default.as_ref().map(ToString::to_string);
        let text = match self.composer.editor.text().trim() {
            "" => default?,
            text => text.to_owned(),
        };
        self.composer.editor.take();
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
        let effects = self.approval_line(line, all);
        // Where nothing is redrawn, a page is written whole.
        if matches!(&self.page, Some(Page::Text(TextPage { about: Some(_), .. })))
            && let Some(asked) = self.gates.questions.first_mut()
        {
            asked.read = true;
        }
        effects
    }

    /// A whole line as an answer to whether a tool may run.
    fn approval_line(&mut self, line: &str, all: bool) -> Vec<Effect> {
        let pattern = line.strip_prefix("always ").or_else(|| line.strip_prefix("a "));
        if let Some(pattern) = pattern.map(str::trim) {
            return match self.was_shown(all) {
                true => self.allow_like(pattern),
                false => Vec::new(),
            };
        }
        match line {
            "a" | "always" => self.allow_always(all),
            "d" | "details" => {
                self.show_question();
                Vec::new()
            }
            "N" => self.answer(Answer::Deny { reason: None, never: true }),
            "l" | "later" => self.later(),
            line => match Answer::read(line) {
                Answer::Text(_) => {
                    let answers = self.asked().map(|asked| crate::plain::answers(&asked.question));
                    self.note(format!("answer {}", answers.unwrap_or_default()));
                    Vec::new()
                }
                answer @ Answer::Allow { .. } => self.allow(answer, all),
                answer => self.answer(answer),
            },
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        let Some(asked) = self.gates.take_first(self.now) else { return Vec::new() };
        let (session, gate) = (asked.question.session.clone(), asked.question.gate.clone());
        self.gates.answering.push(asked);
        vec![Effect::Answer { session, gate, answer }]
    }

    /// Takes a question away that was answered elsewhere. What was being typed for it stays typed,
    /// and is sent to nobody unasked. False, if it was not asked here.
    pub(super) fn take_away(&mut self, session: &SessionId, gate: &str) -> bool {
        let Some(at) = self.gates.questions.iter().position(|asked| asked.is(session, gate)) else {
            return false;
        };
        let asked = self.gates.questions.remove(at);
        if at == 0 {
            let words = asked.question.kind == QuestionKind::Words;
            let typed = words || asked.pattern || asked.replying;
            self.gates.typed_for_question |= typed && !self.composer.editor.is_empty();
            self.gates.taken_away = Some(self.now);
            self.gates.next_comes_up(self.now);
        }
        true
    }

    /// Enter while what is typed was meant for a question that is gone.
    pub(super) fn keep_typed(&mut self, key: KeyEvent) -> bool {
        if self.composer.editor.is_empty() {
            self.gates.typed_for_question = false;
        }
        let keeps = self.gates.typed_for_question && key.code == KeyCode::Enter;
        if keeps {
            self.gates.typed_for_question = false;
            self.say_briefly("not sent: the question was answered elsewhere; Enter again sends it");
        }
        keeps
    }

    /// A line that was meant for a question which somebody else answered.
    pub(super) fn keep_line(&mut self, line: &str) -> bool {
        let Some(taken) = self.gates.taken_away.take() else { return false };
        let too_soon = self.asked().is_some() && self.now.saturating_sub(taken) < TOO_SOON;
        let is_answer = self.asked().is_none() && !matches!(Answer::read(line), Answer::Text(_));
        if too_soon || is_answer {
            self.note("not taken: the question was answered elsewhere");
        }
        too_soon || is_answer
    }

    pub(super) fn later(&mut self) -> Vec<Effect> {
        self.gates.take_first(self.now);
        self.note("left for later: it waits for an answer, here or elsewhere");
        // Whoever only watches leaves the question to others.
        if self.is_watching() { Vec::new() } else { vec![Effect::Pause] }
    }
}
