//! Answers to a flow's questions.

use stepwell::log::Head;
use stepwell::log::Redactor;
use stepwell::model::{Answer, Gate, GateAnswered, Time, Who};
use stepwell::work::Gates;
use stepwell::{Remedy, SessionId, Stepwell};
use stepwell_flow::Memo;
use stepwell_flow::spec::Spec;

use super::agents;
use super::change::Current;
use super::settings::spec_path;
use super::stored::{read, settled_spec};
use crate::error::{Error, Result};
use crate::gate_answer::{Fitting, answered_before};
use crate::request::{FlowOptions, Given};
use crate::runtime::Runtime;

/// The answer to a question of a flow that somebody else may run. It needs no agents.
pub(crate) fn fitting_answer(
    runtime: &Runtime,
    well: &Stepwell,
    head: &Head,
    given: &Given,
    flow: &FlowOptions,
) -> Result<GateAnswered> {
    let fitted = answer_that_fits(runtime, well, head, given, flow);
    // Whoever comes late is told who was first, also if that was a moment ago.
    if let (Err(_), Some(name)) = (&fitted, &given.gate)
        && Gates::named(&**well.store(), &head.id, name)?.open().next().is_none()
        && let Some(before) = answered_before(well, &head.id, name)?
    {
        return Err(before);
    }
    fitted
}

fn answer_that_fits(
    runtime: &Runtime,
    well: &Stepwell,
    head: &Head,
    given: &Given,
    flow: &FlowOptions,
) -> Result<GateAnswered> {
    let history = read(well, head)?;
    if history.memo.open().is_empty() {
        let session = head.id.clone();
        let elsewhere = well.info(&session)?.held.is_some();
        return Err(Error::NotWaiting { session, elsewhere });
    }
    let path = spec_path(&well.weigh(&head.id)?);
    let current = Current { path, wanted: flow.use_current_spec };
    let (spec, ..) = settled_spec(&history, head, &current, runtime)?;
    let redactor = agents::redactor(&spec, runtime)?;
    let (memo, who, now) = (&history.memo, runtime.who(), well.now());
    Answering { session: &head.id, spec: &spec, memo, redactor: &redactor, who, now }.fit(given)
}

/// What an answer to one of a flow's questions has to fit.
pub(super) struct Answering<'a> {
    pub(super) session: &'a SessionId,
    pub(super) spec: &'a Spec,
    pub(super) memo: &'a Memo,
    pub(super) redactor: &'a Redactor,
    pub(super) who: Who,
    pub(super) now: Time,
}

impl Answering<'_> {
    /// The answer to one of the open questions, made to fit it.
    pub(super) fn fit(self, given: &Given) -> Result<GateAnswered> {
        let open = self.memo.open();
        let gate = chosen(given.gate.as_deref(), &open, self.session)?;
        let fitting = Fitting { session: self.session, gate, spec: Some(self.spec) };
        let answer = fitting.answer(given.answer.clone(), self.now)?;
        let plain = |text: &str| self.redactor.redact(text).into_owned();
        let answer = match answer {
            Answer::Text(text) => Answer::Text(plain(&text)),
            Answer::Deny { reason, never } => {
                Answer::Deny { reason: reason.as_deref().map(plain), never }
            }
            answer => answer,
        };
        Ok(GateAnswered::new(gate.id.clone(), answer, self.who))
    }
}

/// The question that is meant: the named one, or the only one.
fn chosen<'a>(named: Option<&str>, open: &[&'a Gate], id: &SessionId) -> Result<&'a Gate> {
    let (session, all) = (id.clone(), || open.iter().map(|gate| (*gate).clone()).collect());
    match (named, open) {
        (_, []) => Err(Error::NotWaiting { session, elsewhere: false }),
        (Some(name), open) => open
            .iter()
            .find(|gate| gate.id == name)
            .copied()
            .ok_or_else(|| Error::NoGate { session, name: name.to_owned(), open: all() }),
        (None, [gate]) => Ok(gate),
        (None, _) => Err(Error::usage(format!("{} questions wait in {session}", open.len()))
            .helped_by(Remedy::answer(id, open.iter().copied()))),
    }
}
