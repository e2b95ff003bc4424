//! Calls that were interrupted or not run: what they changed, and the result that the model
//! receives.

use stepwell::model::{Outcome, ToolTarget};

use super::moves::Settled;

/// What an interrupted call changed, judged by the files on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The whole change was made.
    Made,
    /// Nothing was changed.
    Untouched,
    /// Neither: the files changed in another way.
    Other,
}

/// Judges an interrupted call by the current state of its target files.
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

/// The result that the model receives for a call that did not run, or whose end was not recorded.
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
