//! Questions that wait, in words.

use stepwell::Gate;
use stepwell_runtime::flow::is_permission;
use stepwell_wire::{OpenGate, WaitingGate};

use crate::text::{cut, one_line, second, visible};

/// How much of a subagent's task is shown.
const TASK: usize = 40;

/// Whether a question asks whether a tool may run.
#[must_use]
pub fn asks_for_leave(gate: &WaitingGate) -> bool {
    let call = gate.call.clone().map(Box::new);
    is_permission(&Gate { call, ..Gate::new(&gate.id, "") })
}

/// Who asks a question, and where, if several stores are looked at. A flow has no agent of its own:
/// what it is for says which one it is.
#[must_use]
pub fn asked_by(open: &OpenGate) -> String {
    let task = cut(&one_line(open.task.as_deref().unwrap_or_default()), TASK);
    let mut who = open.agent.as_deref().map_or_else(|| task.clone(), one_line);
    if let Some(parent) = &open.parent {
        who.push_str(&format!(" of {parent} ({task})"));
    }
    if let Some(store) = &open.store {
        who.push_str(&format!(" in {}", visible(store)));
    }
    who.trim().to_owned()
}

/// What is asked, with what counts if nobody answers.
#[must_use]
pub fn asked(open: &OpenGate) -> String {
    let WaitingGate { prompt, default, deadline, .. } = &open.gate;
    let mut ends = Vec::new();
    ends.extend(deadline.map(|deadline| format!("until {}", second(deadline))));
    ends.extend(default.as_ref().map(|default| format!("default: {}", one_line(default))));
    let ends = if ends.is_empty() { String::new() } else { format!("({}) ", ends.join(", ")) };
    format!("{ends}{}", one_line(prompt))
}

#[cfg(test)]
mod tests {
    use stepwell::gates::{Asked, Asker};
    use stepwell::{Seq, Time};

    use super::*;

    #[test]
    fn a_question_says_who_asks_and_what_counts_if_nobody_answers() {
        let gate = Gate { default: Some("no".to_owned()), ..Gate::new("call_1", "write\nx?") };
        let at = Time::from_micros(0);
        let asked_at = Asked { gate, seq: Seq::new(7), at, answer: None, answered_at: None };
        let (agent, task) = ("builder".to_owned(), "task 2: the page".to_owned());
        let asker = Asker { agent, task, parent: Some("above".parse().unwrap()) };
        let mut open = OpenGate::new("below".parse().unwrap(), &asked_at, asker);
        assert_eq!(asked_by(&open), "builder of above (task 2: the page)");
        assert_eq!(asked(&open), "(default: no) write x?");
        assert!(asks_for_leave(&open.gate));
        (open.parent, open.store) = (None, Some("/home/ann/x".to_owned()));
        assert_eq!(asked_by(&open), "builder in /home/ann/x");
        (open.agent, open.store) = (None, None);
        assert_eq!(asked_by(&open), "task 2: the page");
    }
}
