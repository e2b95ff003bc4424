//! Fits requests into the model's context: the room for the answer, and repeated requests.

use std::hash::{DefaultHasher, Hash, Hasher};

use stepwell::StopReason;
use stepwell::log::MessageOrigin;
use stepwell::model::{Failure, Part};

use super::{Notice, Run};
use crate::error::Result;
use crate::machine::Stop;
use crate::provider::{CallError, Fault};

/// The fewest output tokens that are worth a request.
const LEAST_ANSWER: u64 = 256;

/// An answer is not limited further than this to make a request fit, because a step rarely fits in
/// fewer tokens.
const SHORT_ANSWER: u64 = 1_024;

/// Our token count may be off by one part in this many.
const MISCOUNT: u64 = 8;

impl Run<'_> {
    /// The output limit of the next answer: as configured, at most the free part of the context.
    pub(super) fn max_output(&self) -> u64 {
        let most = self.answers.shortest_refused.map_or(u64::MAX, |refused| refused / 2);
        let most = most.min(self.setup.max_output);
        let Some(length) = self.compactor.seen.length else { return most };
        let input = self.compactor.seen.calibration.estimate(self.request.counted(&self.window));
        let left = length.saturating_sub(input.saturating_add(input / MISCOUNT));
        most.min(left.max(LEAST_ANSWER))
    }

    /// Was a request refused as too long, mostly because of the room for its answer? Then that room
    /// shrinks first, and no message has to go.
    pub(super) fn can_shorten_answer(&mut self) -> bool {
        self.max_output()
            > self.compactor.seen.calibration.estimate(self.request.counted(&self.window))
            && self.can_halve_answer()
    }

    /// Halves the output limit while a useful answer still fits.
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

    /// Stops a run that would repeat an earlier request exactly: after a compaction the model may
    /// have lost its recent work, and would only repeat it.
    pub(super) fn stuck(&mut self) -> Result<Option<(Stop, Option<CallError>)>> {
        let shrank = self.compactor.truncated
            || self.window.entries().iter().any(|entry| entry.made == MessageOrigin::Summary);
        if !shrank || self.compactor.asked.insert(self.fingerprint()) {
            return Ok(None);
        }
        let what = "the conversation does not fit, and everything that fits was sent before: the \
            model would only repeat its work"
            .to_owned();
        let provider = self.setup.provider.name().to_owned();
        let error = CallError { provider, what, fault: Fault::ContextFull };
        self.record(vec![Failure { message: error.to_string() }.into()])?;
        Ok(Some((Stop::limit(StopReason::ContextFull), Some(error))))
    }

    /// A digest of the next request's contents, without values that change from request to request
    /// without a meaning. The room for the answer counts only if a refusal lowered it, because the
    /// free context varies with every token count.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.answers.shortest_refused.hash(&mut hasher);
        self.window.instructions().hash(&mut hasher);
        for message in self.window.messages() {
            message.role.hash(&mut hasher);
            for part in &message.parts {
                // A part is plain data, so serialisation cannot fail.
                serde_json::to_string(&words_of(part)).unwrap_or_default().hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// A part without the provider's ids and signatures.
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
