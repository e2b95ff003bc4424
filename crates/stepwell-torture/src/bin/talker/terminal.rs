//! A person at the terminal of a run, as in `stepwell run`. The process dies as soon as the answer
//! is recorded.

use std::cell::Cell;
use std::sync::Arc;

use stepwell::clock::SystemClock;
use stepwell_runtime::{RunEvent, RunHandle};
use stepwell_terminal::lines::{AgentLines, Answers, FlowLines, Show, watch};
use stepwell_terminal::{Console, Form, Paint, Terminal};
use stepwell_torture::Asker;

use crate::run::die;

thread_local! {
    /// How many answers this thread still records before the process dies.
    static ANSWERS: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Shows a run and its questions until the one under test is answered.
pub(crate) fn attend(handle: &RunHandle, asker: Asker) {
    // The start of a subagent needs an approval first.
    let answers = if asker == Asker::Subagent { 2 } else { 1 };
    ANSWERS.set(answers);
    // This thread only records answers.
    stepwell::failpoint::on_failpoint(|name| {
        if name == "write.after_commit" {
            ANSWERS.set(ANSWERS.get().saturating_sub(1));
            if ANSWERS.get() == 0 {
                die();
            }
        }
    });
    let terminal = Terminal { can_ask: true, output: false, width: None, plain: true };
    let console = Console { terminal, form: Form::Text, paint: Paint::Plain };
    let lines: Box<dyn Show> = match asker {
        Asker::Flow => Box::new(FlowLines::new(console, Arc::new(SystemClock), false)),
        _ => Box::new(AgentLines::new(console, Arc::new(SystemClock), false, None)),
    };
    watch(handle, &mut UntilAnswered { lines, answers }, Answers::Here);
}

/// Dies if another thread recorded this thread's answer.
struct UntilAnswered {
    lines: Box<dyn Show>,
    answers: usize,
}

impl Show for UntilAnswered {
    fn see(&mut self, event: &RunEvent) {
        self.answers -= usize::from(is_answer(event));
        if self.answers == 0 {
            die();
        }
        self.lines.see(event);
    }

    fn make_room(&mut self) {
        self.lines.make_room();
    }

    fn paint(&self) -> Paint {
        self.lines.paint()
    }
}

fn is_answer(event: &RunEvent) -> bool {
    match event {
        RunEvent::Child { event, .. } | RunEvent::Within { event, .. } => is_answer(event),
        event => matches!(event, RunEvent::Answered(_)),
    }
}
