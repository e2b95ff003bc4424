//! What an import found and did.

use stepwell_formats::{Became, Error, Mode};
use stepwell_runtime::command::import::{
    ImportProblem, ImportReport, ImportStopped, ImportedPlace, SearchedPlace,
};

use super::Rendered;
use crate::explained::Explained;
use crate::text::count;
use crate::wording;

/// How much is said of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Everything.
    All,
    /// Everything, of an import that was not done.
    Would,
    /// All but the sessions.
    NotSessions,
    /// The sessions that changed. What cannot be read is read again and again.
    OnlyNews,
}

impl Verbosity {
    /// Is a session named of which this became?
    #[must_use]
    pub fn shows(self, became: Became) -> bool {
        match self {
            Self::NotSessions => false,
            Self::OnlyNews => became != Became::Unchanged,
            Self::All | Self::Would => true,
        }
    }
}

impl From<Mode> for Verbosity {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Write => Self::All,
            Mode::Look => Self::Would,
        }
    }
}

pub(super) fn report(report: &ImportReport) -> Rendered {
    let mut answer = Rendered::default();
    answer.notes.extend(report.searched.iter().map(searched));
    answer.notes.extend(report.problems.iter().map(problem));
    for place in &report.places {
        let of_place = imported(place, report.mode.into());
        answer.lines.extend(of_place.lines);
        answer.notes.extend(of_place.notes);
    }
    match summary(report) {
        Some(summary) => answer.lines.push(summary),
        None => answer.notes.extend(nothing(report)),
    }
    answer
}

/// The whole in numbers, if anything was read.
#[must_use]
pub fn summary(report: &ImportReport) -> Option<String> {
    let would = if report.mode == Mode::Look { "Would be: " } else { "" };
    report.stopped.is_none().then(|| format!("{would}{}", report.summary))
}

/// Why nothing was read.
#[must_use]
pub fn nothing(report: &ImportReport) -> Option<String> {
    let why = match report.stopped? {
        ImportStopped::NothingFound => {
            "no sessions of other agents were found; stepwell formats says where was looked"
        }
        ImportStopped::Declined => "nothing was done",
    };
    Some(why.to_owned())
}

/// How many files lie in an agent's folder.
#[must_use]
pub fn searched(SearchedPlace { format, path, files }: &SearchedPlace) -> String {
    format!("{}: {} in {}", format.title(), count(*files, "file"), path.display())
}

/// What could not be read, and why.
#[must_use]
pub fn problem(problem: &ImportProblem) -> String {
    match problem {
        ImportProblem::NotFound(path, error) => {
            format!("not recognised: {}: {error}", path.display())
        }
        ImportProblem::NotRecognised(path, only, searched) => {
            let why = wording::no_session(*only, searched);
            format!("not recognised: {}: {why}", path.display())
        }
        ImportProblem::Damaged(error) => format!("damaged: {error}"),
        ImportProblem::Unreadable(error) => format!("warning: {error}"),
    }
}

/// What one file or folder brought.
#[must_use]
pub fn imported(place: &ImportedPlace, verbosity: Verbosity) -> Rendered {
    let ImportedPlace { path, report, .. } = place;
    let mut answer = Rendered::default();
    let would = verbosity == Verbosity::Would;
    let shown = report.sessions.iter().filter(|it| verbosity.shows(it.became));
    answer.lines.extend(shown.filter_map(|it| wording::taken_in(it, would)));
    if verbosity != Verbosity::OnlyNews {
        let warning =
            |it: &stepwell_formats::Warning| format!("warning: {}: {}", it.place, it.what);
        answer.notes.extend(report.warnings.iter().map(warning));
        if report.more_warnings > 0 {
            let more = usize::try_from(report.more_warnings).unwrap_or(usize::MAX);
            let more = count(more, "warning");
            answer.notes.push(format!("warning: {}: {more} more", path.display()));
        }
    }
    if let Some(error) = &report.fault {
        let word = if report.is_skipped() { "skipped" } else { "damaged" };
        let named = matches!(
            error,
            Error::Unreadable { .. }
                | Error::Foreign { .. }
                | Error::FileTooLarge { .. }
                | Error::Locked { .. }
        );
        let Explained { message, hint } = error.into();
        let at = if named { String::new() } else { format!("{}: ", path.display()) };
        answer.notes.push(format!("{word}: {at}{message}"));
        answer.notes.extend(hint.map(|hint| format!("hint: {hint}")));
    }
    answer
}
