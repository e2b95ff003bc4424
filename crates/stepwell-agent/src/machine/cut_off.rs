//! Calls that were cut off or not run: what they did, and what a model is told of them.

use stepwell::model::{Outcome, ToolTarget};

use super::moves::Settled;

/// How a call that was cut off stands, by what is on disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its change was made.
    Made,
    /// Nothing was changed.
    Untouched,
    /// Neither: something else happened to its targets.
    Other,
}

/// What a call that was cut off did, given what its targets are now.
#[must_use]
pub fn inspect(targets: &[ToolTarget], now: &[Option<stepwell::model::Digest>]) -> Found {
    let all = |is: fn(&ToolTarget) -> &Option<stepwell::model::Digest>| {
        targets.len() == now.len() && targets.iter().zip(now).all(|(target, now)| is(target) == now)
    };
    if targets.is_empty() {
        Found::Other
    } else if all(|target| &target.after) {
        Found::Made
    } else if all(|target| &target.before) {
        Found::Untouched
    } else {
        Found::Other
    }
}

/// What a model is told of a call that was not run, or whose end nobody saw.
#[must_use]
pub fn told(settled: &Settled) -> (String, Outcome) {
    match settled {
        Settled::Unknown => (stepwell::log::INTERRUPTED.to_owned(), Outcome::Unknown),
        Settled::Denied(reason) if reason.is_empty() => {
            ("the user did not allow this".to_owned(), Outcome::Denied)
        }
        Settled::Denied(reason) => {
            (format!("the user did not allow this: {reason}"), Outcome::Denied)
        }
        Settled::Unasked(reason) => (format!("not run: {reason}"), Outcome::Denied),
        Settled::Passed => {
            ("not run: the user said something else first".to_owned(), Outcome::Denied)
        }
        Settled::NoSuchTool => ("there is no such tool".to_owned(), Outcome::Failed),
    }
}
