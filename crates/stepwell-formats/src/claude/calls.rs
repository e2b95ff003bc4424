//! Calls of the model whose tokens were counted: several lines of one answer repeat them.

use std::collections::{HashSet, VecDeque};

use super::said::hash;
use crate::journal::tree::AsItIs;

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
