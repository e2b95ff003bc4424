//! Questions that wait, in words.

use std::collections::BTreeSet;

use stepwell::SessionId;
use stepwell::model::Gate;
use stepwell_runtime::flow::is_permission;
use stepwell_wire::{OpenGate, WaitingGate};

use crate::console::note;
use crate::text::{cut, one_line, second, visible};

/// How much of a subagent's task is shown.
const TASK: usize = 40;

/// Whether a question asks whether a tool may run.
#[must_use]
pub fn asks_for_leave(gate: &WaitingGate) -> bool {
    let call = gate.call.clone().map(Box::new);
    is_permission(&Gate { call, ..Gate::new(&gate.id, "") })
}

/// What to type to answer the questions of a list: a hint for each kind that is in it.
#[must_use]
pub fn hints(open: &[OpenGate]) -> Vec<String> {
    let has = |fits: &dyn Fn(&OpenGate) -> bool| open.iter().any(fits);
    let mut hints = Vec::new();
    if has(&|it| !asks_for_leave(&it.gate)) {
        hints.push(
            "stepwell resume SESSION --respond \"your answer\" (--gate GATE, if several wait)"
                .to_owned(),
        );
    }
    if has(&|it| asks_for_leave(&it.gate) && !gate_holds_secret(&it.gate)) {
        // An agent asks one at a time.
        let mut sessions = BTreeSet::new();
        let which = match open.iter().all(|it| sessions.insert(&it.session_id)) {
            true => "",
            false => " (--gate GATE, where several wait)",
        };
        hints.push(format!("stepwell resume SESSION --approve, or --deny{which}"));
    }
    if has(&|it| gate_holds_secret(&it.gate)) {
        hints.push(format!(
            "stepwell gates answer SESSION/GATE no, for a call with a secret: {ONLY_NO}"
        ));
    }
    hints
}

/// Who asks a question, and where, if several stores are looked at. A question of a flow itself has
/// no agent: what the flow is for says which one it is.
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
    if gate_holds_secret(&open.gate) {
        ends.push("holds a secret: from elsewhere only no".to_owned());
    }
    ends.extend(default.as_ref().map(|default| format!("default: {}", one_line(default))));
    let ends = if ends.is_empty() { String::new() } else { format!("({}) ", ends.join(", ")) };
    format!("{ends}{}", one_line(prompt))
}

/// What to type to answer a question from elsewhere. A call that holds a secret can be allowed only
/// where it runs.
#[must_use]
pub fn how_to_answer(session: &SessionId, gate: &Gate) -> String {
    let typed = format!("stepwell gates answer {session}/{}", visible(&gate.id));
    if gate.call.as_ref().is_some_and(|call| call.holds_secret) {
        return format!("{typed} no --reason \"why\"; {ONLY_NO}");
    }
    match is_permission(gate) {
        true => format!("{typed} yes, or no --reason \"why\""),
        false => format!("{typed} \"your answer\""),
    }
}

/// Says what a session waits with that nobody here is asked, and how it is answered.
pub fn tell_waiting(session: &SessionId, gate: &Gate) {
    let (prompt, how) = (one_line(&gate.prompt), how_to_answer(session, gate));
    note(format_args!("{session} waits: {prompt}\nhint: {how}"));
}

/// Why a call that holds a secret cannot be allowed from elsewhere.
const ONLY_NO: &str = "it holds a secret that is not kept, so only the terminal that runs it can \
                       allow it";

fn gate_holds_secret(gate: &WaitingGate) -> bool {
    gate.call.as_ref().is_some_and(|call| call.holds_secret)
}

#[cfg(test)]
mod tests {
    use stepwell::Seq;
    use stepwell::model::{AskedCall, Effect, Time};
    use stepwell::work::{Asked, Asker};

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

    #[test]
    fn a_call_that_holds_a_secret_is_said_to_take_only_a_no_from_elsewhere() {
        let session: SessionId = "below".parse().unwrap();
        let plain = Gate::new("call_1", "run it?");
        let how = how_to_answer(&session, &plain);
        assert_eq!(how, "stepwell gates answer below/call_1 yes, or no --reason \"why\"");
        let words = how_to_answer(&session, &Gate::new("work/approve/1", "Is this the plan?"));
        assert_eq!(words, "stepwell gates answer below/work/approve/1 \"your answer\"");
        let call = AskedCall {
            tool: "run_command".to_owned(),
            effect: Effect::Unsafe,
            arguments: String::new(),
            detail: None,
            choices: Vec::new(),
            holds_secret: true,
        };
        let secret = Gate { call: Some(Box::new(call)), ..plain };
        let how = how_to_answer(&session, &secret);
        assert!(!how.contains("yes"), "{how}");
        assert!(how.starts_with("stepwell gates answer below/call_1 no --reason"), "{how}");
        let (seq, at) = (Seq::new(7), Time::from_micros(0));
        let waits = Asked { gate: secret, seq, at, answer: None, answered_at: None };
        let open = OpenGate::new(session, &waits, Asker::default());
        assert_eq!(asked(&open), "(holds a secret: from elsewhere only no) run it?");
        // Below a list only what works is named.
        let below = hints(&[open]);
        assert_eq!(below.len(), 1, "{below:?}");
        assert!(below[0].starts_with("stepwell gates answer SESSION/GATE no"), "{below:?}");
    }
}
