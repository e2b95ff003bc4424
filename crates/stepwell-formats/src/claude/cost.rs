//! What a session cost, as its transcript says: a `cost-state` line holds the sum so far, and the lines of
//! one answer repeat its tokens.

use std::collections::{HashSet, VecDeque};
use std::path::Path;

use stepwell::model::Money;

use super::said::hash;
use crate::Result;
use crate::journal::tree::AsItIs;
use crate::json::fields::Fields;
use crate::read::input::Input;

/// The sum that a line tells, if it knows the price of every call.
pub(super) fn told(line: &Fields<'_>) -> Option<Money> {
    let is_whole = !line.is_true("hasUnknownModelCost");
    let sum = line.get::<f64>("totalCostUSD").filter(|_| is_whole)?;
    Money::from_f64(sum).filter(|sum| !sum.is_zero())
}

/// What a fork had copied of its parent when it began. Its own sums go on from the parent's.
#[derive(Debug)]
pub(super) struct Copied {
    /// The parent's name.
    pub(super) session: String,
    /// The last answer that was copied.
    pub(super) answer: String,
}

impl Copied {
    /// The session that made the call of a line, and the line's name, if that is not the session
    /// that the line stands in.
    pub(super) fn of(line: &Fields<'_>) -> Option<Self> {
        let forked = || Some(line.object("forkedFrom")?.text("sessionId")?.into_owned());
        let asked = line.text("requestSessionId").map(std::borrow::Cow::into_owned);
        let session = asked.or_else(forked)?;
        let is_own = line.text("sessionId").as_deref() == Some(session.as_str());
        let answer = line.text("uuid").unwrap_or_default().into_owned();
        (!is_own).then_some(Self { session, answer })
    }

    /// What the parent had cost by then, by its own transcript; `None`, if that is not there.
    pub(super) fn cost(&self, input: &Input, fork: &Path) -> Result<Option<Money>> {
        if self.session.contains(['/', '\\', '\0']) {
            return Ok(None);
        }
        let parent = fork.with_file_name(format!("{}.jsonl", self.session));
        if !parent.is_file() {
            return Ok(None);
        }
        let mut lines = input.glance(&parent)?;
        let mut is_past = false;
        while let Some(line) = lines.next_line()? {
            let Ok((_, line)) = line.object() else { continue };
            is_past |= line.text("uuid").as_deref() == Some(self.answer.as_str());
            if is_past && line.text("type").as_deref() == Some("cost-state") {
                return Ok(told(&line));
            }
        }
        Ok(None)
    }
}

/// How many calls are remembered. The lines of one answer stand close together; so many
/// calls later none of them comes any more.
const MAX_CALLS: usize = 1 << 16;

/// The calls that were counted last.
#[derive(Debug, Default)]
pub(super) struct Counted {
    known: HashSet<u64, AsItIs>,
    /// The same, oldest first.
    order: VecDeque<u64>,
}

impl Counted {
    /// Is this call new? Then it is counted now.
    pub(super) fn insert(&mut self, message: &str, request: &str) -> bool {
        let call = hash(&(message, request));
        if !self.known.insert(call) {
            return false;
        }
        self.order.push_back(call);
        if self.order.len() > MAX_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_once_and_what_is_remembered_is_bounded() {
        let mut counted = Counted::default();
        assert!(counted.insert("m", "r") && !counted.insert("m", "r"));
        assert!(counted.insert("m", "s") && counted.insert("mr", ""));
        for n in 0..3 * MAX_CALLS {
            let call = n.to_string();
            assert!(counted.insert(&call, ""));
            assert!(!counted.insert(&call, ""));
        }
        assert_eq!((counted.known.len(), counted.order.len()), (MAX_CALLS, MAX_CALLS));
    }
}
