//! The words of the command line for what the libraries say in types: the next command to type,
//! and what a person should know although they did not ask.

mod imports;
mod remedies;
mod runs;

use stepwell::SessionInfo;
use stepwell_formats::{Format, Losses};
use stepwell_workspace::config::Source;
use stepwell_workspace::{ConfigPlace, Notice};

use crate::text::{count, visible};

pub use imports::{no_session, taken_in};
pub use remedies::hint;
pub use runs::{
    choose_model, compacted_later, heard, run_notice, runtime_notice, settings, who, work_change,
};

/// How much of a question is shown.
const ASKED: usize = 100;

/// How points of a session are written: a seq, a checkpoint's name, or N steps back.
pub const POINT_FORMS: &str = "SEQ|CHECKPOINT|-N";

/// What a notice says on stderr.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Warning { what, why } => format!("warning: {what}: {why}"),
        Notice::SessionElsewhere { name, root } => format!("{name} is in {}", root.display()),
        Notice::TrashEmptied { sessions, days } => {
            let gone = count(*sessions, "session");
            let days = stepwell::model::counted(*days, "day");
            format!("Erased {gone} that had been in the trash for {days}.")
        }
        Notice::CleanedUp { sessions } => {
            format!("Cleaned up {}; stepwell trash list shows them.", count(*sessions, "session"))
        }
        Notice::HalfRewoundKept { session } => format!(
            "{session} stays: a rewind of it was cut off; stepwell rewind {session} --finish \
             finishes it"
        ),
        Notice::HalfRewoundKeptInTrash { session } => format!(
            "{session} stays in the trash: a rewind of it was cut off\n\
             hint: stepwell trash restore {session}, then stepwell rewind {session} --finish"
        ),
        Notice::RepairFailed { why } => format!("error: {why}"),
        Notice::StaysDamaged { session, seq } => {
            format!("{session} stays damaged at seq {seq}; 1 to {} can be read", seq.prev())
        }
        Notice::WorktreeRestored { session } => {
            format!("Brought the worktree back that {session} works in.")
        }
        Notice::WorktreeRemoved { session } => {
            format!("Removed the worktree of subagent {session}: nothing in it is left to merge.")
        }
    }
}

/// Where a setting came from.
pub fn source(source: &Source) -> String {
    match source {
        Source::Default => "default".to_owned(),
        Source::File(path) => path.display().to_string(),
        Source::Variable(name) => name.clone(),
        Source::Override => "--config".to_owned(),
        Source::Ignored { file, counts, .. } => {
            format!("{} (ignored: {})", self::source(counts), file.display())
        }
        Source::StoreDecides => "ignored: stepwell store retention decides".to_owned(),
    }
}

/// Where the configuration is wrong.
pub fn config_place(place: &ConfigPlace) -> String {
    match place {
        ConfigPlace::Override => "--config".to_owned(),
        place => place.to_string(),
    }
}

/// Says that a session's files are half moved, if they are.
#[must_use]
pub fn half_rewound(info: &SessionInfo) -> Vec<String> {
    let head = &info.head;
    match (head.rewinding, &info.held) {
        (Some(began), None) => {
            let session = head.id.clone();
            let notice = stepwell_runtime::Notice::HalfRewound { session, began };
            runtime_notice(&notice, head.updated_at, false).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Says what a format cannot hold.
#[must_use]
pub fn losses(format: Format, losses: &Losses) -> Option<String> {
    let lost = || format!("warning: {format} cannot hold: {}", visible(&losses.to_string()));
    (!losses.is_empty()).then(lost)
}
