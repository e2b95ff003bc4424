//! What other agents' hooks ask: whether a delegated task has a session to take up, and
//! that a session has ended. Every answer is one JSON object, and no fault of ours
//! reaches the caller.

mod answer;
mod claude;
mod delegate;
mod log;
mod settings;
mod settings_file;
mod stop;

use serde_json::{Map, Value};
use stepwell::sessions::ResumeLimits;

use crate::config;

pub use answer::{
    HookAnswer, HookFault, answer_pre_delegate, answer_subagent_stop, read_payload, samples,
};
pub use delegate::{Delegating, Delegation, pre_delegate};
pub use log::Log;
pub use settings::{Settings, Unchanged};
pub use settings_file::SettingsFile;
pub use stop::{not_stopped, subagent_stop};

/// The limits within which an agent that Stepwell does not run is resumed.
#[must_use]
pub fn resume_limits(settings: &config::Settings) -> ResumeLimits {
    ResumeLimits {
        timeout: settings.resume_timeout,
        max_errors: u64::from(settings.max_errors.get()),
        ..ResumeLimits::default()
    }
}

/// What delegations go by, for sessions that work in a folder.
#[must_use]
pub fn delegating<'a>(settings: &config::Settings, folder: &'a str) -> Delegating<'a> {
    let turns = usize::try_from(settings.agent_turns.get()).unwrap_or(usize::MAX);
    Delegating { limits: resume_limits(settings), workspace: folder, turns }
}

/// What a hook was told: a JSON object.
pub type Payload = Map<String, Value>;

/// A text in a payload, if it is there and says something.
fn text<'a>(payload: &'a Payload, name: &str) -> Option<&'a str> {
    payload.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// An object in a payload.
fn object<'a>(payload: &'a Payload, name: &str) -> Option<&'a Payload> {
    payload.get(name).and_then(Value::as_object)
}
