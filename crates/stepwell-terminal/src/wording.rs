//! The words of the command line for what the libraries say in types: the next command to type,
//! and what a person should know although they did not ask.

mod imports;
mod runs;

use stepwell::{NoPoint, PhaseSet, SessionInfo};
use stepwell_workspace::config::Source;
use stepwell_workspace::{ConfigPlace, Notice, Remedy};

use crate::console::note;
use crate::text::{count, one_line};

pub use imports::{no_session, taken_in};
pub use runs::{
    choose_model, compacted_later, heard, run_notice, run_remedy, runtime_notice, settings, who,
    work_change,
};

/// How points of a session are written: a seq, a checkpoint's name, or N steps back.
pub const POINT_FORMS: &str = "SEQ|CHECKPOINT|-N";

/// The hint that follows an error.
pub fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::SetUpTeamStore => "stepwell init sets the database up, if this role may".to_owned(),
        Remedy::LeavePasswordOut => "leave the password out and set PGPASSWORD where the server is \
             started, or keep the address in your own settings: stepwell config set --user store.url \
             ADDRESS"
            .to_owned(),
        Remedy::WriteAddress => "postgres://user@host:port/database?namespace=team".to_owned(),
        Remedy::BackUpServer => {
            "pg_dump --schema=stepwell, or stepwell store copy … to a folder".to_owned()
        }
        Remedy::RestoreServer => {
            "pg_restore, or stepwell store copy FOLDER postgres://…".to_owned()
        }
        Remedy::ReplaceStore => {
            "--replace keeps it beside the restored one; --store FOLDER restores elsewhere"
                .to_owned()
        }
        Remedy::StopSessions => "stepwell stop ID stops one".to_owned(),
        Remedy::ListSessions => "stepwell sessions --all lists what is here".to_owned(),
        Remedy::MakeStore => "there is no store here; stepwell init makes one".to_owned(),
        Remedy::Restore(id) => format!("{id} is in the trash; stepwell trash restore {id}"),
        Remedy::LookOutsideTrash(id) => format!("{id} is not in the trash"),
        Remedy::ShowRow(row) => {
            format!("it was erased; stepwell show {row} shows the row that it left in the ledger")
        }
        Remedy::UseStore(store) => format!("it is elsewhere; add --store {}", store.display()),
        Remedy::RewindOnlyChat(id) => format!("stepwell rewind {id} --chat leaves files alone"),
        Remedy::BringWorktreeBack(id) => format!(
            "stepwell run \"TASK\" --session {id} brings it back; stepwell rewind {id} --chat \
             leaves files alone"
        ),
        Remedy::ResumeThere { session, root, store } => format!(
            "stepwell -C {} --store {} resume {session} brings it back there",
            root.display(),
            store.display()
        ),
        Remedy::ShowSession(id) => format!("stepwell show {id} shows what it has"),
        Remedy::HandOverFlow(id) => {
            format!("stepwell resume {id} --with strands continues a flow")
        }
        Remedy::SetHome => "set HOME".to_owned(),
        Remedy::ListWorktrees => "stepwell worktrees lists what there is".to_owned(),
        Remedy::ListSettings => "stepwell config list shows them all".to_owned(),
        Remedy::Write(near) => format!("did you mean {near}?"),
        Remedy::MendRecentModels => {
            "mend it or remove it; it holds recent models and favourites".to_owned()
        }
    }
}

/// The hint for a text that means no point of a session.
pub fn no_point(no_point: &NoPoint) -> Option<String> {
    Some(match no_point {
        NoPoint::Event { .. } | NoPoint::NoStep => return None,
        NoPoint::Checkpoint { session, known, .. } => match &known[..] {
            [] => format!("stepwell checkpoint {session} NAME makes one"),
            known => {
                let names: Vec<String> = known.iter().map(|name| one_line(name)).collect();
                format!("it has {}", names.join(", "))
            }
        },
        NoPoint::Steps { session, .. } => format!("stepwell show {session} --events"),
        NoPoint::NothingDone { session, .. } => {
            format!("--to {POINT_FORMS} goes further back; stepwell show {session} --events")
        }
        NoPoint::NothingSaid { session } => {
            format!("--to {POINT_FORMS}; stepwell show {session} --events")
        }
    })
}

/// The phases of an agent's life.
pub fn phases() -> String {
    let names = PhaseSet::Lifecycle.phases().iter().map(|phase| phase.as_str());
    format!("the phases are {}", names.collect::<Vec<_>>().join(", "))
}

/// What a notice says on stderr.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::GitignoreNotChanged { why } => {
            format!("warning: .gitignore could not be changed: {why}")
        }
        Notice::RegistryNotRead { why } => {
            format!("warning: the list of known stores cannot be read: {why}")
        }
        Notice::StoreNotOpened { why } => format!("warning: {why}"),
        Notice::SessionElsewhere { name, root } => format!("{name} is in {}", root.display()),
        Notice::NotTidied { why } => {
            format!("warning: old sessions were not looked for: {why}")
        }
        Notice::SpaceNotFreed { why } => {
            format!("warning: the space was not given back to the disk: {why}")
        }
        Notice::PricesNotRead { why } => {
            format!("warning: {why}; the prices that ship are used")
        }
        Notice::TrashEmptied { sessions, days } => {
            let gone = count(*sessions, "session");
            let days = stepwell::counted(*days, "day");
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
        Notice::MirrorNotCurrent { why } => {
            format!("warning: STATE.md and TASKS.md are not current: {why}")
        }
        Notice::WorktreeRestored { session } => {
            format!("Brought the worktree back that {session} works in.")
        }
        Notice::WorktreeRemoved { session } => {
            format!("Removed the worktree of subagent {session}: nothing in it is left to merge.")
        }
        Notice::WorktreeNotRemoved { session, why } => {
            format!("warning: the worktree of {session} cannot be removed: {why}")
        }
        Notice::WorktreesNotChecked { why } => {
            format!("warning: subagents' worktrees were not looked at: {why}")
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
pub fn tell_of_half(info: &SessionInfo) {
    let head = &info.head;
    if let (Some(began), None) = (head.rewinding, &info.held) {
        let session = head.id.clone();
        let notice = stepwell_runtime::Notice::HalfRewound { session, began };
        runtime_notice(&notice, head.updated_at, false).into_iter().for_each(note);
    }
}
