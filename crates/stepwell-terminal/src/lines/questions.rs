//! Questions at a terminal: asked when they come, and let go of when somebody else answers.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stepwell::SessionId;
use stepwell::model::{Answer, Choice, ToolCall};
use stepwell_agent::permission::{Rule, TypedChoice, may_be_remembered};
use stepwell_runtime::flow::is_permission;
use stepwell_runtime::{
    Attached, Error, EventStream, FlowOptions, GateAnswer, Given, OpenGate, RunEvent, RunHandle,
    Runtime, SayRequest,
};
use tokio::time::Instant;

use crate::console::{Paint, Style, note};
use crate::gates::tell_waiting;
use crate::text::{one_line, second, visible};

/// Shows a run's events.
pub trait Show {
    /// Shows what happened.
    fn see(&mut self, event: &RunEvent);

    /// Makes room for a question.
    fn make_room(&mut self);

    /// Whether questions are asked in colours.
    fn paint(&self) -> Paint;
}

/// How often it is looked whether someone who is asked is still to answer.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Behind a question that was answered elsewhere, what is typed sooner was meant for that one:
/// nobody reads as fast.
const TOO_SOON: Duration = Duration::from_millis(600);

/// How many lines of a change are shown before it is asked for more.
const SHOWN_LINES: usize = 60;

/// Whoever is talked to: a run of this process, or one elsewhere.
pub(super) trait Talk {
    fn id(&self) -> &SessionId;

    /// Answers a question, and has a rule remembered with it.
    fn answer(&self, open: &OpenGate, answer: Answer, rule: Option<&Rule>) -> Result<(), Error>;

    /// Nobody answers now.
    fn pause(&self);
}

impl Talk for RunHandle {
    fn id(&self) -> &SessionId {
        self.id()
    }

    fn answer(&self, open: &OpenGate, answer: Answer, rule: Option<&Rule>) -> Result<(), Error> {
        self.answer_remembering(&open.gate.id, answer, rule, self.who().clone()).map(drop)
    }

    fn pause(&self) {
        self.pause();
    }
}

/// A run that goes on elsewhere, and what it is talked to with.
pub struct Elsewhere<'a> {
    /// What answers and words go through.
    pub runtime: &'a Runtime,
    /// The run.
    pub attached: &'a Attached,
}

impl Talk for Elsewhere<'_> {
    fn id(&self) -> &SessionId {
        self.attached.id()
    }

    fn answer(&self, open: &OpenGate, answer: Answer, _: Option<&Rule>) -> Result<(), Error> {
        let given = Given { gate: Some(open.gate.id.clone()), answer };
        let (flow, seen) = (FlowOptions::default(), Some(open.seq));
        self.runtime.answer_having_seen(&open.session, &given, &flow, seen).map(drop)
    }

    /// Whoever only watches leaves the question to others.
    fn pause(&self) {}
}

/// Who answers the questions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Whoever sits at this terminal, or anyone else.
    Here,
    /// Somebody elsewhere, while the run waits.
    Elsewhere,
    /// Nobody now: the run pauses, and its report says what it wants.
    Later,
}

/// Shows a run until it is over, and asks its questions if someone can be asked.
pub fn watch(handle: &RunHandle, screen: &mut dyn Show, answers: Answers) {
    let mut events = Events::new(handle.events());
    while let Some(event) = events.next_event() {
        screen.see(&event);
        if let Some(open) = event.question() {
            match answers {
                Answers::Here => ask(handle, open, screen, &mut events),
                Answers::Elsewhere => tell_waiting(&open.session, &open.gate),
                Answers::Later => {}
            }
        }
    }
}

/// Shows a run that goes on elsewhere, until it is over or whoever watches leaves. What they type
/// answers its questions, is said to its model, or stops it. Tells whether it is over.
pub fn attend(there: &Elsewhere<'_>, screen: &mut dyn Show, asks: bool) -> bool {
    let mut events = Events::new(there.attached.events());
    loop {
        let event = match asks {
            // Nobody types: only events are waited for.
            false => events.next_event(),
            true => match events.take_or_line() {
                Next::Event(event) => event.map(|event| *event),
                Next::Line(line) => {
                    said(there, line.trim());
                    continue;
                }
                Next::Left => return false,
            },
        };
        let Some(event) = event else { return true };
        screen.see(&event);
        match event.question() {
            Some(open) if asks => ask(there, open, screen, &mut events),
            // What is shown from the past may have been answered.
            Some(open) if events.outcome(open).is_none() => tell_waiting(&open.session, &open.gate),
            _ => {}
        }
        if matches!(event, RunEvent::Ended { .. }) {
            return true;
        }
    }
}

/// What was typed to a run elsewhere that asks nothing.
fn said(there: &Elsewhere<'_>, line: &str) {
    let done = match line {
        "" => return,
        "/stop" => there.runtime.stop(there.id(), None).map(drop),
        text => {
            let words = SayRequest { text: text.to_owned(), lane: None, now: false };
            there.runtime.say(there.id(), words).map(drop)
        }
    };
    if let Err(error) = done {
        note(error);
    }
}

/// A run's events, with those that came while someone was asked.
struct Events {
    stream: EventStream,
    next: VecDeque<RunEvent>,
    /// Was the last question answered elsewhere? What is typed then may be meant for it.
    taken_away: bool,
}

impl Events {
    fn new(stream: EventStream) -> Self {
        Self { stream, next: VecDeque::new(), taken_away: false }
    }

    fn next_event(&mut self) -> Option<RunEvent> {
        self.next.pop_front().or_else(|| self.stream.next())
    }

    /// The next event, or a line that was typed meanwhile.
    fn take_or_line(&mut self) -> Next {
        let stdin = io::stdin();
        loop {
            if let Some(event) = self.next.pop_front().or_else(|| self.stream.try_next()) {
                return Next::Event(Some(Box::new(event)));
            }
            if self.stream.is_closed() {
                return Next::Event(None);
            }
            match line_within(&stdin) {
                Ok(None) => {}
                Ok(Some(line)) => return Next::Line(line),
                Err(Closed) => return Next::Left,
            }
        }
    }

    /// How a question was answered elsewhere, or that it is void, if either is so by now.
    fn outcome(&mut self, open: &OpenGate) -> Option<Option<GateAnswer>> {
        while let Some(event) = self.stream.try_next() {
            self.next.push_back(event);
        }
        self.next.iter().find_map(|event| event.settles(open)).map(Option::<&GateAnswer>::cloned)
    }
}

/// What comes next where someone may type.
enum Next {
    Event(Option<Box<RunEvent>>),
    Line(String),
    /// Nobody types any more.
    Left,
}

/// The input has ended.
struct Closed;

/// A line, if one is typed soon.
fn line_within(stdin: &io::Stdin) -> Result<Option<String>, Closed> {
    let mut waiting = [PollFd::new(stdin, PollFlags::IN)];
    match poll(&mut waiting, Some(&LOOK)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(_) => return Err(Closed),
    }
    // A terminal gives a whole line at once.
    let mut line = [0; 4096];
    match rustix::io::read(stdin, &mut line) {
        Ok(0) | Err(_) => Err(Closed),
        Ok(len) => Ok(Some(String::from_utf8_lossy(&line[..len]).into_owned())),
    }
}

/// Asks a question until it is answered, here or elsewhere. Whoever does not want to answer now has
/// the run pause.
fn ask(handle: &dyn Talk, open: &OpenGate, screen: &mut dyn Show, events: &mut Events) {
    if events.outcome(open).is_some() {
        return;
    }
    screen.make_room();
    let mut err = io::stderr();
    // What was typed before the question is no answer to it.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let (shown, after_another) = (Instant::now(), std::mem::take(&mut events.taken_away));
    let mut question = Question::new(handle, open, screen.paint());
    question.show();
    loop {
        let _ = write!(err, "{}: ", question.wanted()).and_then(|()| err.flush());
        match typed(events, open) {
            Typed::Line(_) if is_too_soon(after_another, shown.elapsed()) => {
                note("this question just came up: read it, then answer");
            }
            Typed::Line(line) => match question.answer(&line, handle) {
                Heard::Done => return,
                Heard::Again => {}
            },
            Typed::Nothing => {
                let _ = writeln!(err);
                return handle.pause();
            }
            Typed::Elsewhere(answer) => {
                let _ = writeln!(err);
                if let Some(answer) = answer {
                    let at = second(answer.at);
                    let (who, answer) = (&answer.who, &answer.answer);
                    note(format_args!("Answered by {who} at {at} elsewhere: {answer}"));
                }
                events.taken_away = true;
                return;
            }
        }
    }
}

/// Was a line typed too soon after a question came up to be meant for it?
fn is_too_soon(after_another: bool, shown: Duration) -> bool {
    after_another && shown < TOO_SOON
}

/// What came of asking.
enum Typed {
    Line(String),
    /// Nobody types: the input has ended.
    Nothing,
    /// Somebody else answered, or the question is void.
    Elsewhere(Option<GateAnswer>),
}

fn typed(events: &mut Events, open: &OpenGate) -> Typed {
    let stdin = io::stdin();
    loop {
        if let Some(answer) = events.outcome(open) {
            return Typed::Elsewhere(answer);
        }
        match line_within(&stdin) {
            Ok(None) => {}
            Ok(Some(line)) => return Typed::Line(line),
            Err(Closed) => return Typed::Nothing,
        }
    }
}

/// What became of a line that was typed.
enum Heard {
    Done,
    Again,
}

/// A question, as it is put at a terminal.
struct Question<'a> {
    open: &'a OpenGate,
    preview: String,
    detail: Option<&'a str>,
    /// The call that it is about, if this process carries it out.
    call: Option<ToolCall>,
    paint: Paint,
    /// Was all of what would be done shown?
    read: bool,
}

impl<'a> Question<'a> {
    fn new(handle: &dyn Talk, open: &'a OpenGate, paint: Paint) -> Self {
        let here = open.here.as_ref();
        let preview = here.map_or(open.gate.prompt.as_str(), |here| &here.preview);
        // A question that the session passes on names its subagent itself.
        let preview = match (open.session == *handle.id(), &open.task) {
            (true, _) => preview.to_owned(),
            (false, Some(task)) => format!("for subagent {} ({task}): {preview}", open.session),
            (false, None) => format!("for subagent {}: {preview}", open.session),
        };
        // What a flow's agent asks for is on record only.
        let asked = open.gate.call.as_deref();
        let detail = here.and_then(|here| here.detail.as_deref());
        let detail = detail.or_else(|| asked.and_then(|asked| asked.detail.as_deref()));
        let call = here.and_then(|here| here.call.clone().or_else(|| recorded_call(open)));
        let read = detail.is_none_or(|detail| detail.lines().count() <= SHOWN_LINES);
        Self { open, preview, detail, call, paint, read }
    }

    /// Does it ask for words, as a flow does?
    fn asks_for_words(&self) -> bool {
        !is_permission(&self.open.gate)
    }

    fn call(&self) -> Option<&ToolCall> {
        self.call.as_ref()
    }

    /// Shows what there is to know before the question itself.
    fn show(&self) {
        let mut err = io::stderr();
        self.show_detail(SHOWN_LINES);
        if !self.read {
            let more = self.detail.map_or(0, |detail| detail.lines().count()) - SHOWN_LINES;
            let more = format!("… {more} more lines: d shows all of them");
            let _ = writeln!(err, "{}", self.paint.paint(Style::Dim, &more));
        }
        if self.call().is_none() {
            for line in self.preview.lines() {
                let _ = writeln!(err, "{}", self.paint.paint(Style::Bold, &visible(line)));
            }
        }
    }

    /// Shows so many lines of what would be done.
    fn show_detail(&self, most: usize) {
        let mut err = io::stderr();
        for line in self.detail.into_iter().flat_map(str::lines).take(most) {
            let style = match line.bytes().next() {
                Some(b'+') => Style::Green,
                Some(b'-') => Style::Red,
                _ => Style::Dim,
            };
            let _ = writeln!(err, "{}", self.paint.paint(style, line));
        }
    }

    /// What can be typed.
    fn wanted(&self) -> String {
        if let Some(call) = self.call() {
            let allow = format!("Allow {}?", one_line(&self.preview));
            return format!("{}\n{}", self.paint.paint(Style::Bold, &allow), choices(call));
        }
        match (self.asks_for_words(), &self.open.gate.default) {
            (false, _) => format!("Allow it?\n{}", answers(&[])),
            (true, Some(default)) => format!("Your answer [{}]", one_line(default)),
            (true, None) => "Your answer (Ctrl+D: later)".to_owned(),
        }
    }

    /// Gives the answer that a line means.
    fn answer(&mut self, line: &str, handle: &dyn Talk) -> Heard {
        let (answer, rule) = if self.asks_for_words() {
            (Answer::Text(line.trim_end_matches(['\n', '\r']).to_owned()), None)
        } else {
            match TypedChoice::read(line.trim(), self.call()) {
                // Nobody allows what they were not shown the end of.
                TypedChoice::Answer(Answer::Allow { .. }, _) if !self.read => {
                    self.show_all();
                    note("not all of it was shown: read it, then answer");
                    return Heard::Again;
                }
                TypedChoice::Answer(answer, rule) => (answer, rule),
                TypedChoice::DoesNotFit(pattern) => {
                    note(format_args!("{pattern:?} does not fit this call"));
                    return Heard::Again;
                }
                TypedChoice::Unclear => {
                    match line.trim() {
                        "" => {}
                        "d" | "details" => self.show_all(),
                        _ => note("no answer yet: y allows it, n and your words refuse it"),
                    }
                    return Heard::Again;
                }
            }
        };
        match handle.answer(self.open, answer, rule.as_ref()) {
            Ok(()) | Err(Error::NoGate { .. }) => Heard::Done,
            Err(error @ Error::BadAnswer { is_late: false, .. }) => {
                note(error);
                Heard::Again
            }
            // Somebody was quicker, or it cannot be saved: the run says what comes of that.
            Err(error) => {
                note(error);
                Heard::Done
            }
        }
    }

    fn show_all(&mut self) {
        self.show_detail(usize::MAX);
        self.read = true;
    }
}

/// The call of a question as it is on record.
fn recorded_call(open: &OpenGate) -> Option<ToolCall> {
    let asked = open.gate.call.as_deref()?;
    let (id, name) = (open.gate.id.clone(), asked.tool.clone());
    Some(ToolCall { id, name, arguments: asked.arguments.clone(), opaque: None })
}

/// What can be answered to the question about a call, a line for each answer. A choice that would be
/// made in vain is not offered.
fn choices(call: &ToolCall) -> String {
    let label = |choice: Choice| visible(&choice.label(&call.name, None));
    let mut lines = Vec::new();
    if may_be_remembered(call) {
        lines.push(format!("  a  {}", label(Choice::Always)));
        lines.extend(Rule::like(call).map(|like| {
            let meant = Choice::Always.label(&call.name, Some(&like));
            format!("  a {like}  {meant}", like = visible(&like), meant = visible(&meant))
        }));
    }
    lines.push(format!("  v  {}", label(Choice::Never)));
    answers(&lines)
}

/// The answers to any question about a call, and more.
fn answers(more: &[String]) -> String {
    let [yes, no] = [Choice::Once, Choice::Deny].map(|choice| choice.label("", None));
    let more: String = more.iter().map(|line| format!("{line}\n")).collect();
    format!("  y  {yes}\n  n  {no}, and why\n{more}Answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_that_is_remembered_says_what_it_is_about() {
        let arguments = r#"{"command": "cargo test --all"}"#.to_owned();
        let call = ToolCall { id: "c".into(), name: "run_command".into(), arguments, opaque: None };
        let lines = "  y  Allow once
  n  Deny, and why
  a  Always allow any call of run_command in this session
  a cargo test*  Always allow calls of run_command like cargo test* in this session
  v  Never allow any call of run_command in this session
Answer";
        assert_eq!(choices(&call), lines);
    }

    #[test]
    fn what_is_typed_as_a_question_follows_one_that_was_answered_elsewhere_is_no_answer_to_it() {
        let after = |milliseconds| Duration::from_millis(milliseconds);
        assert!(is_too_soon(true, after(150)));
        assert!(!is_too_soon(true, after(1_000)));
        assert!(!is_too_soon(false, after(0)), "whoever answered the last one here may go on");
    }
}
