//! What commands answer, in words: the same on the command line and in a conversation.

mod context;
mod details;
mod history;
mod import;
mod json;
mod lists;
mod work;

pub use details::status_cell;
pub use history::undo;
pub use import::{Verbosity, imported, nothing, problem, searched, summary};
pub use json::json;
pub use lists::gates_table;

use stepwell::log::Redactor;
use stepwell::model::Time;
use stepwell_runtime::ErrorKind;
use stepwell_runtime::command::Reply;

use crate::console::Paint;
use crate::explained::Explained;
use crate::table::Table;
use crate::text;

/// An answer in words.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The answer.
    pub lines: Vec<String>,
    /// Notes beside the answer, for people and programs.
    pub notes: Vec<String>,
    /// What a person could do next. Programs read none of it.
    pub hints: Vec<String>,
    /// Why nothing was done.
    pub refused: Option<Refusal>,
}

/// Why nothing was done.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In words, with what would help.
    pub why: Explained,
    /// What the caller should do.
    pub kind: ErrorKind,
}

/// How an answer is shown.
#[derive(Clone, Debug)]
pub struct Style {
    /// Whether in colours.
    pub paint: Paint,
    /// The columns that there are; absent, as many as it takes.
    pub columns: Option<usize>,
    /// What takes secrets out.
    pub redactor: Redactor,
    /// The time.
    pub now: Time,
}

impl Style {
    /// A line without secrets, no wider than the columns. Half a secret is no longer known as one, so
    /// it goes before the line is cut.
    #[must_use]
    pub fn cut(&self, line: &str) -> String {
        let line = self.redactor.redact(line);
        match self.columns {
            Some(columns) => text::cut(&line, columns),
            None => line.into_owned(),
        }
    }

    /// A table without secrets, as wide as the columns.
    #[must_use]
    pub fn table(&self, table: &Table) -> Vec<String> {
        let table = table.mapped(|text| self.redactor.redact(text).into_owned());
        table.lines(self.paint, self.columns)
    }
}

impl Rendered {
    fn line(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], ..Self::default() }
    }

    fn lines(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn refused(kind: ErrorKind, message: String, hint: Option<String>) -> Self {
        let refused = Some(Refusal { why: Explained { message, hint }, kind });
        Self { refused, ..Self::default() }
    }
}

/// An answer in words.
#[must_use]
pub fn words(reply: &Reply, style: &Style) -> Rendered {
    match reply {
        Reply::Details(page) => details::page(page, style),
        Reply::Label(label) => history::label(label),
        Reply::Tags(tags) => history::tags(tags),
        Reply::Pin(pin) => {
            let says = if pin.pinned { "is pinned" } else { "is not pinned" };
            Rendered::line(format!("{} {says}", pin.id))
        }
        Reply::MessagePin(pinned) => history::message_pin(pinned, style),
        Reply::Checkpoints(id, checkpoints) => lists::checkpoints(id, checkpoints, style),
        Reply::CheckpointMade(made) => {
            let name = text::visible(&made.checkpoint);
            Rendered::line(format!("{}: {name} is seq {}", made.id, made.seq))
        }
        Reply::Rewind(moved) => history::moved(moved, style),
        Reply::RewindFinished { was_cut_off: true, .. } => Rendered::default(),
        Reply::RewindFinished { id, was_cut_off: false } => {
            Rendered::default().note(format!("No rewind of {id} was cut off."))
        }
        Reply::Forked(forked) => Rendered::line(forked.id.to_string()),
        Reply::Compaction(done) => history::compaction(done, style),
        Reply::CompactionUndone(undone) => history::compaction_undone(undone),
        Reply::NoCompaction(id) => Rendered::refused(
            ErrorKind::Invalid,
            format!("{id} has no compaction to take back"),
            Some(format!("stepwell show {id} --view shows what the model sees")),
        ),
        Reply::CompactionDiff(id, changes) => context::changes(id, changes, style),
        Reply::Exported(exported) => history::exported(exported),
        Reply::HandedOver(handed) => history::handed_over(handed),
        Reply::Diff(patches) => context::diff(patches, style),
        Reply::Files(files) => lists::files(files, style),
        Reply::Context(view) => context::view(view, style),
        Reply::State(state) => work::state(state, style),
        Reply::Tasks(tasks) => work::tasks(tasks, style),
        Reply::TasksChanged(tasks) => work::tasks_changed(tasks),
        Reply::Phase(phase) => work::phase(phase),
        Reply::Deleted { asked, removal, days } => history::deleted(asked, removal, *days),
        Reply::Restored(removal) => history::restored(removal),
        Reply::Gates(gates) => lists::gates(gates, style),
        Reply::Found(hits) => lists::hits(hits, style),
        Reply::Models(models) => lists::models(models, style),
        Reply::Ledger(ledger) => lists::ledger(ledger, style),
        Reply::Settings(settings) => lists::settings(settings, style),
        Reply::Setting(setting) => lists::setting(setting),
        Reply::Servers { servers, named_in } => lists::servers(servers, named_in.as_deref(), style),
        Reply::Imported(report) => import::report(report),
    }
}
