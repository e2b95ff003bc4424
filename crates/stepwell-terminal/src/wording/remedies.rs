//! The next command to type: what the libraries offer against an error, as commands.

use stepwell::error::{Action, Listing};
use stepwell::{Remedy, SessionId};

use super::{ASKED, POINT_FORMS};
use crate::text::{cut, one_line, visible};

/// How many names a hint lists: as many as a person reads.
const NAMES: usize = 20;

/// The hint that follows an error.
#[must_use]
pub fn hint(remedies: &[Remedy]) -> Option<String> {
    let hints: Vec<String> = remedies.iter().map(remedy).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn remedy(remedy: &Remedy) -> String {
    let said = match remedy {
        Remedy::Session(action, id) => return of_session(*action, id),
        Remedy::List(listing) => listed(*listing),
        Remedy::Choose(names) => return choose(names),
        Remedy::MoreOfTheId => "type more of the id, or all of it",
        Remedy::Answer(open) => {
            let each = open.iter().map(|it| {
                let (typed, asked) = (visible(&it.typed), cut(&one_line(&it.prompt), ASKED));
                format!("\n  stepwell gates answer {typed} ANSWER    {asked}")
            });
            return format!("these wait:{}", each.collect::<String>());
        }
        Remedy::Model { name, key } => {
            let (key, demo) = match key {
                Some(key) => (format!(", with a key in {key}"), "; stepwell demo needs none"),
                None => (String::new(), ""),
            };
            return format!(
                "add --model {name}{key}; stepwell config set --user model.name {name} keeps \
                 it{demo}"
            );
        }
        Remedy::SetVariable(name) => return format!("set {name}"),
        Remedy::SetConfig { key, value } => {
            return format!("stepwell config set {key} {value}; --config {key}={value} for once");
        }
        Remedy::GiveVariables(names) => {
            let each: Vec<_> = names.iter().map(|name| format!("--var {name}=TEXT")).collect();
            return format!("add {}", each.join(" "));
        }
        Remedy::Correct(what) => return format!("correct {what}"),
        Remedy::LimitRun => {
            "limit this run: --max-tokens N, or --budget USD where its model's price is known"
        }
        Remedy::ChooseMode => {
            "if that is what you want, say when you are asked: --mode confirm-sensitive"
        }
        Remedy::BeginFlow => "stepwell flow run SPEC begins anew",
        Remedy::MakeStore => "stepwell init makes one",
        Remedy::CopyStore => "stepwell store copy FROM TO copies a store",
        Remedy::UseStore(store) => return format!("add --store {}", store.display()),
        Remedy::ResumeThere { session, root, store } => {
            let (root, store) = (root.display(), store.display());
            return format!(
                "stepwell -C {root} --store {store} resume {session} continues it there"
            );
        }
        Remedy::Repair => "stepwell doctor",
        Remedy::Replace => "--force replaces it",
        Remedy::OtherPlace => "name another place, or move that away",
        Remedy::Wait => "type the command again when that is done",
        Remedy::Retry => "when that is corrected, type the command again",
        Remedy::Upgrade => "install a newer stepwell",
    };
    said.to_owned()
}

fn choose(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMES).map(|name| one_line(name)).collect();
    match &shown[..] {
        [one] => format!("did you mean {one}?"),
        shown if names.len() > NAMES => format!("expected one of: {}, …", shown.join(", ")),
        shown => format!("expected one of: {}", shown.join(", ")),
    }
}

const fn listed(listing: Listing) -> &'static str {
    match listing {
        Listing::Sessions => "stepwell sessions --all lists what is here",
        Listing::Gates => "stepwell gates lists those that do",
        Listing::Worktrees => "stepwell worktrees lists what there is",
        Listing::Settings => "stepwell config list shows them all",
        Listing::Servers => "stepwell mcp list lists your MCP servers",
        Listing::Formats => "stepwell formats lists them",
        Listing::Variables => "stepwell flow plan SPEC lists the variables",
        Listing::SpecKeys => "docs/flows.md describes specs; stepwell flow schema helps an editor",
    }
}

fn of_session(action: Action, id: &SessionId) -> String {
    match action {
        Action::Resume => format!("stepwell resume {id} continues it"),
        Action::Say => format!("stepwell run \"TASK\" --session {id} continues it"),
        Action::Respond => format!(
            "stepwell resume {id} --respond \"your answer\", or --approve, --deny; stepwell gates \
             shows the question"
        ),
        Action::Show => format!("stepwell show {id} shows it"),
        Action::ShowEvents => format!("stepwell show {id} --events shows what it did"),
        Action::ShowMessages => {
            format!("stepwell show {id} --view shows messages with their seqs")
        }
        Action::ShowFiles => format!("stepwell files {id} lists what it changed"),
        Action::ShowTasks => format!("stepwell tasks {id} shows what is planned"),
        Action::ShowPhase => format!("stepwell agent get {id}"),
        Action::AskDriver => format!("stepwell agent should-resume {id}"),
        Action::Follow => format!("stepwell log -f {id} follows it"),
        Action::Attach => format!("stepwell resume {id} --attach follows it"),
        Action::Stop => format!("stepwell stop {id} stops it"),
        Action::Restore => format!("stepwell trash restore {id} brings it back"),
        Action::Rewind => format!("stepwell rewind {id} --to {POINT_FORMS} takes steps back"),
        Action::RewindChat => format!("stepwell rewind {id} --chat leaves files alone"),
        Action::FinishRewind => format!("stepwell rewind {id} --finish finishes it"),
        Action::Verify => format!("stepwell verify {id}"),
        Action::Unlabel => format!("stepwell label {id} --clear takes it away"),
        Action::Checkpoint => format!("stepwell checkpoint {id} NAME makes one"),
        Action::Ask => format!("stepwell state {id} ask \"TEXT\" asks one"),
        Action::Export => format!("stepwell export {id} brings the rest along"),
        Action::HandOver => format!("stepwell resume {id} --with strands continues a flow"),
    }
}
