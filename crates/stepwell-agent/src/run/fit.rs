//! Fitting a request into the model's context: the room for its answer, and requests that only
//! repeat themselves.

use std::hash::{DefaultHasher, Hash, Hasher};

use stepwell::StopReason;
use stepwell::log::MessageOrigin;
use stepwell::model::{Failure, Part};

use super::{Notice, Run};
use crate::error::Result;
use crate::machine::Stop;
use crate::provider::{CallError, Fault};

/// The fewest tokens of an answer that are worth asking for.
const LEAST_ANSWER: u64 = 256;

/// An answer is not made shorter than this to have a request taken: what is said in fewer tokens
/// is rarely a whole step.
const SHORT_ANSWER: u64 = 1_024;

/// Our count of tokens may be off by one part in so many.
const MISCOUNT: u64 = 8;

impl Run<'_> {
    /// The most tokens of the next answer: as many as were set, and no more than are left of the
    /// context beside the conversation.
    pub(super) fn max_output(&self) -> u64 {
        let most = self.answers.shortest_refused.map_or(u64::MAX, |refused| refused / 2);
        let most = most.min(self.setup.max_output);
        let Some(length) = self.compactor.seen.length else { return most };
        let input = self.compactor.seen.calibration.estimate(self.request.counted(&self.window));
        let left = length.saturating_sub(input.saturating_add(input / MISCOUNT));
        most.min(left.max(LEAST_ANSWER))
    }

    /// Was a request refused as too long of which the larger part is room for the answer? Then
    /// that becomes less first: nothing that was said has to go for it.
    pub(super) fn can_shorten_answer(&mut self) -> bool {
        self.max_output()
            > self.compactor.seen.calibration.estimate(self.request.counted(&self.window))
            && self.can_halve_answer()
    }

    /// Asks for a shorter answer, as long as it can be one that is of use.
    pub(super) fn can_halve_answer(&mut self) -> bool {
        let refused = self.max_output();
        if refused < 2 * SHORT_ANSWER {
            return false;
        }
        self.answers.shortest_refused = Some(refused);
        let now = self.max_output();
        let provider = self.setup.provider.name().to_owned();
        self.front.events.notice(Notice::ShorterAnswers { provider, tokens: now });
        true
    }

    /// Why the model is not asked, if it was asked the very same before: after the conversation
    /// shrank, what it did since may be gone from it, and it would only do it again.
    pub(super) fn stuck(&mut self) -> Result<Option<(Stop, Option<CallError>)>> {
        let shrank = self.compactor.truncated
            || self.window.entries().iter().any(|entry| entry.made == MessageOrigin::Summary);
        if !shrank || self.compactor.asked.insert(self.fingerprint()) {
            return Ok(None);
        }
        let what = "the conversation does not fit, and all that fits of it was sent before: the \
                    model would only repeat what it did"
            .to_owned();
        let provider = self.setup.provider.name().to_owned();
        let error = CallError { provider, what, fault: Fault::ContextFull };
        self.record(vec![Failure { message: error.to_string() }.into()])?;
        Ok(Some((Stop::limit(StopReason::ContextFull), Some(error))))
    }

    /// What the next request says, as a number: the words, and nothing that differs from one time
    /// to the next without saying something. So the room for the answer counts only as far as a
    /// refusal made it less; what is left of the context moves with every answer's count of tokens.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.answers.shortest_refused.hash(&mut hasher);
        self.window.instructions().hash(&mut hasher);
        for message in self.window.messages() {
            message.role.hash(&mut hasher);
            for part in &message.parts {
                // A part is plain data, of which everything can be written.
                serde_json::to_string(&words_of(part)).unwrap_or_default().hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// A part without what its provider gave it on the way: ids of calls, signatures.
fn words_of(part: &Part) -> Part {
    let mut part = part.clone();
    match &mut part {
        Part::ToolCall(call) => {
            call.id.clear();
            call.opaque = None;
        }
        Part::ToolResult(result) => result.call_id.clear(),
        Part::Text(text) | Part::Thinking(text) => text.opaque = None,
        Part::Image(_) => {}
    }
    part
}
