//! Two files that tell of one session: which of them is believed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stepwell::log::Head;
use stepwell::model::Time;
use stepwell::{Event, Recorded};

use crate::read::neutral::is_original;

/// How the file that tells of a session stands to what was told of it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    /// It says itself that it is newer; or it is the same file, which says nothing of when it
    /// changed and has not become shorter. Whatever it tells counts.
    Newer,
    /// Nothing says that it is newer or older. What it tells differently counts, but it takes
    /// nothing back by ending earlier.
    Unclear,
    /// It does not say that it is newer, and is another file that was not changed later, or one that
    /// is torn. Only what goes on from what is known counts.
    Older,
    /// It says itself that it is older, or was put together from other files where the session's own
    /// told of it before. Nothing of it counts, however long it is.
    Outdated,
}

/// What becomes of something that is told in place of what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What is known from there on is taken back, and this told instead.
    Replace,
    /// It waits for what follows: it may be the end of a shorter telling.
    Wait,
    /// It counts if it is new, and waits if it is known further on.
    Search,
    /// It is left out, and all that follows.
    LeaveOut,
}

impl Precedence {
    /// That of the file at a path, which says that the session changed last at `updated_at`.
    pub(super) fn of(path: &Path, updated_at: Option<Time>, head: &Head) -> Self {
        let known = known_update(head);
        match (updated_at, known) {
            (Some(this), Some(known)) if this > known => return Self::Newer,
            (Some(this), Some(known)) if this < known => return Self::Outdated,
            // It lost what it said of itself before: it is torn.
            (None, Some(_)) => return Self::Older,
            _ => {}
        }
        let Some(last) = told_by(head).filter(|last| last != path) else {
            let silent = updated_at.is_none() || known.is_none();
            return if silent && has_grown(path, head) { Self::Newer } else { Self::Unclear };
        };
        // Nothing that they say tells them apart.
        match (changed(&last), changed(path)) {
            (None, _) => Self::Unclear,
            (Some(last), Some(this)) if this > last => Self::Unclear,
            _ => Self::Older,
        }
    }

    /// What becomes of what is told where something else is known. What only goes on always
    /// counts, and what only ends earlier never: it is an older copy, whenever it was made.
    pub(super) fn judge(self, known: &Recorded, told: &Event) -> Verdict {
        match self {
            Self::Newer => Verdict::Replace,
            Self::Outdated => Verdict::LeaveOut,
            _ if is_front(&known.event, told) => Verdict::Replace,
            Self::Older => Verdict::LeaveOut,
            Self::Unclear if is_front(told, &known.event) => Verdict::LeaveOut,
            Self::Unclear if is_said(told) => Verdict::Search,
            Self::Unclear => Verdict::Wait,
        }
    }
}

/// What a telling has at its end in place of what is known: of each kind of event, how many.
#[derive(Debug, Default)]
pub(super) struct Ends {
    known: BTreeMap<String, usize>,
    told: BTreeMap<String, usize>,
}

impl Ends {
    /// Something that is known, and was not told again.
    pub(super) fn known(&mut self, event: &Event) {
        count(&mut self.known, event);
    }

    /// Something that was told, and is not known.
    pub(super) fn told(&mut self, event: &Event) {
        count(&mut self.told, event);
    }

    /// Is less told than is known, of any kind of event?
    pub(super) fn is_shorter(&self) -> bool {
        self.known.iter().any(|(kind, known)| self.told.get(kind).is_none_or(|told| told < known))
    }

    /// Is there anything that was known and not told again?
    pub(super) fn differ(&self) -> bool {
        !self.known.is_empty()
    }
}

fn count(counts: &mut BTreeMap<String, usize>, event: &Event) {
    if !is_trailer(event) {
        *counts.entry(event.kind().to_owned()).or_default() += 1;
    }
}

/// Is it part of what was said and done? All else may be told at the end, as a whole.
pub(super) fn is_said(event: &Event) -> bool {
    matches!(
        event,
        Event::Message(_)
            | Event::ToolStarted(_)
            | Event::ToolFinished(_)
            | Event::Node(_)
            | Event::Gate(_)
    )
}

/// Is it told at the end, and anew each time?
pub(super) fn is_trailer(event: &Event) -> bool {
    matches!(
        event,
        Event::Status(_) | Event::Edited(_) | Event::Foreign(_) | Event::GateAnswered(_)
    ) || is_original(event)
}

/// Is all that is known of a session put together from other files than its own?
pub(super) fn is_recovered(head: &Head) -> bool {
    head.facts.provenance.as_ref().is_some_and(|it| it.recovered)
}

/// When a session had changed last, by the files that told of it.
fn known_update(head: &Head) -> Option<Time> {
    head.facts.provenance.as_ref()?.updated_at
}

/// Is the file no shorter than it was when it was read? Sessions grow; one that says nothing of
/// when it changed may have been put back.
fn has_grown(path: &Path, head: &Head) -> bool {
    let known = head.facts.provenance.as_ref().and_then(|it| it.bytes);
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file);
    known.is_some_and(|known| found.is_some_and(|found| found.len() >= known))
}

/// The file that told of a session last.
pub(super) fn told_by(head: &Head) -> Option<PathBuf> {
    Some(PathBuf::from(&head.facts.provenance.as_ref()?.from))
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

/// Is one message the front of another?
fn is_front(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::Message(one), Event::Message(other)) => {
            one.role == other.role
                && one.lane == other.lane
                && one.parts.len() < other.parts.len()
                && other.parts.starts_with(&one.parts)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use stepwell::model::{Compacted, Part, Role, StatusChanged, Step};
    use stepwell::{Lane, Message, Seq, Status};

    use super::*;

    fn said(parts: &[&str]) -> Event {
        Message::new(Role::Assistant, parts.iter().map(|text| Part::text(*text)).collect()).into()
    }

    fn known(event: Event) -> Recorded {
        Recorded { seq: Seq::new(2), at: Time::from_micros(1), id: None, event }
    }

    fn status() -> Event {
        StatusChanged { status: Status::Success, reason: None, error: None }.into()
    }

    fn hidden() -> Event {
        Compacted::new(Lane::main(), Seq::new(2), Seq::new(2)).into()
    }

    #[test]
    fn what_may_be_the_end_of_a_shorter_telling_waits() {
        let judge =
            |claim: Precedence, told: &Event| claim.judge(&known(said(&["one", "two"])), told);
        let longer = said(&["one", "two", "three"]);
        for claim in [Precedence::Newer, Precedence::Unclear, Precedence::Older] {
            assert_eq!(judge(claim, &longer), Verdict::Replace, "{claim:?}");
        }
        assert_eq!(judge(Precedence::Outdated, &longer), Verdict::LeaveOut);
        assert_eq!(judge(Precedence::Newer, &status()), Verdict::Replace);
        for end in [status(), hidden()] {
            assert_eq!(judge(Precedence::Unclear, &end), Verdict::Wait);
            assert_eq!(judge(Precedence::Older, &end), Verdict::LeaveOut);
        }
        assert_eq!(judge(Precedence::Unclear, &said(&["one"])), Verdict::LeaveOut);
        assert_eq!(judge(Precedence::Unclear, &said(&["else"])), Verdict::Search);
        assert_eq!(judge(Precedence::Older, &said(&["else"])), Verdict::LeaveOut);
    }

    #[test]
    fn an_end_is_shorter_if_it_has_less_of_anything_but_what_is_told_anew_each_time() {
        let ends = |known: &[Event], told: &[Event]| {
            let mut ends = Ends::default();
            known.iter().for_each(|event| ends.known(event));
            told.iter().for_each(|event| ends.told(event));
            ends.is_shorter()
        };
        let step = || Event::from(Step { lane: Lane::main(), n: 1 });
        assert!(!ends(&[status()], &[]));
        assert!(!ends(&[], &[hidden(), status()]));
        assert!(!ends(&[hidden(), status()], &[hidden()]));
        assert!(ends(&[hidden()], &[status()]));
        assert!(ends(&[said(&["x"]), step(), hidden()], &[hidden(), status()]));
    }
}
