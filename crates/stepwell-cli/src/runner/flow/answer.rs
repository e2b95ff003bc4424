//! Answers to a flow's questions, as they are typed.

use std::collections::BTreeMap;

use stepwell::{Answer, Gate, GateAnswered, Head, NodeKey, SessionId};
use stepwell_agent::redact::Redactor;
use stepwell_flow::spec::Spec;
use stepwell_flow::{Memo, NoAnswer, accept};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::text::{cut, one_line};

/// What is typed to a flow that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    /// The answer.
    pub(crate) text: Option<String>,
    /// Which question it answers, if there are several.
    pub(crate) gate: Option<String>,
    /// Is the spec as it is on disk now to be gone on with?
    pub(crate) use_current_spec: bool,
    /// Variables, typed again: their secrets are not kept.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Reply {
    /// The answer to one of the open questions, if one was typed.
    pub(super) fn to(
        &self,
        memo: &Memo,
        spec: &Spec,
        (head, redactor): (&Head, &Redactor),
        app: &App,
    ) -> Result<Option<GateAnswered>> {
        let Some(text) = &self.text else { return Ok(None) };
        let gate = self.chosen(&memo.open(), &head.id)?;
        let answer = match gate.id.parse::<NodeKey>() {
            Ok(key) => {
                let described = stepwell_flow::revision::gate_of(spec, &key);
                accept(gate, described, text, app.now()).map_err(|why| refused(gate, &why, head))?
            }
            Err(_) => verdict(text).ok_or_else(|| unclear(gate, text, head))?,
        };
        let answer = redactor.redact(&answer).into_owned();
        // A flow asked for words, and an agent for leave.
        let answer = match gate.id.parse::<NodeKey>() {
            Ok(_) => Answer::Text(answer),
            Err(_) => Answer::read(&answer),
        };
        Ok(Some(GateAnswered::new(gate.id.clone(), answer, who(app))))
    }

    fn chosen<'a>(&self, open: &[&'a Gate], id: &SessionId) -> Result<&'a Gate> {
        let listed = || {
            let line = |gate: &&Gate| format!("{} ({})", gate.id, cut(&one_line(&gate.prompt), 40));
            open.iter().map(line).collect::<Vec<_>>().join(", ")
        };
        match (&self.gate, open) {
            (_, []) => {
                let message = format!("{id} does not wait for an answer");
                Err(Failure::new(Exit::Failed, message)
                    .hint(format_args!("stepwell resume {id} goes on with it")))
            }
            (Some(named), open) => {
                open.iter().find(|gate| gate.id == *named).copied().ok_or_else(|| {
                    let message = format!("{named:?} is no question that waits in {id}");
                    Failure::new(Exit::Absent, message)
                        .hint(format_args!("these wait: {}", listed()))
                })
            }
            (None, [gate]) => Ok(gate),
            (None, _) => {
                let message = format!("{} questions wait in {id}", open.len());
                Err(Failure::new(Exit::Usage, message)
                    .hint(format_args!("add --gate, with one of: {}", listed())))
            }
        }
    }
}

/// Does a gate ask whether a tool may run? Other questions are named after their nodes.
pub(crate) fn is_permission(gate: &Gate) -> bool {
    gate.id.parse::<NodeKey>().is_err()
}

/// What a word about a tool comes to, as it is recorded; what is behind a colon is the reason.
fn verdict(text: &str) -> Option<String> {
    let (word, reason) = text.split_once(':').unwrap_or((text, ""));
    let word = word.trim().trim_end_matches(['.', '!']).to_lowercase();
    match (word.as_str(), reason.trim()) {
        ("approve" | "approved" | "allow" | "yes" | "y", _) => Some("approve".to_owned()),
        ("deny" | "denied" | "no" | "n", "") => Some("deny".to_owned()),
        ("deny" | "denied" | "no" | "n", reason) => Some(format!("deny: {reason}")),
        _ => None,
    }
}

fn refused(gate: &Gate, why: &NoAnswer, head: &Head) -> Failure {
    let failure = Failure::new(Exit::Usage, format_args!("[{}] {why}", gate.id));
    failure.hint(match why {
        NoAnswer::Late { .. } => format!("stepwell resume {} goes on with the default", head.id),
        _ => format!(
            "stepwell resume {} --respond \"your answer\"; stepwell gates shows the question",
            head.id
        ),
    })
}

fn unclear(gate: &Gate, text: &str, head: &Head) -> Failure {
    let asked = cut(&one_line(&gate.prompt), 60);
    let message = format!("{text:?} neither allows nor denies what is asked: {asked}");
    let which = format!("stepwell resume {} --gate {}", head.id, gate.id);
    Failure::new(Exit::Usage, message)
        .hint(format_args!("{which} --approve, or --deny --reason \"why\""))
}

/// Who answers: the user, by the name that the machine knows them by.
pub(super) fn who(app: &App) -> String {
    app.host.variable("USER").unwrap_or_else(|| "the user".to_owned())
}
