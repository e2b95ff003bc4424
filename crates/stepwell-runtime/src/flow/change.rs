//! A spec whose file changed since its flow began.

use std::path::Path;

use similar::TextDiff;
use stepwell::error::Action;
use stepwell::{Remedy, SessionId};
use stepwell_flow::revision::compare;
use stepwell_flow::spec::Spec;
use stepwell_flow::{Memo, Stored};

use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::runtime::Runtime;

/// What is new: a spec to be kept, and the nodes that begin anew by it.
pub(crate) type Accepted = Option<(Stored, Vec<String>)>;

/// A spec's file, and whether what is in it now is wanted.
pub(crate) struct Current {
    pub(crate) path: Option<String>,
    pub(crate) wanted: bool,
}

/// A flow as it began, and what it did.
pub(crate) struct Began<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) stored: &'a Stored,
    pub(crate) memo: &'a Memo,
}

impl Began<'_> {
    /// The spec to go on with: the stored one, or the one on disk if it is wanted and what is done
    /// still stands by it.
    pub(crate) fn decide(
        &self,
        old: Spec,
        current: &Current,
        runtime: &Runtime,
    ) -> Result<(Spec, Accepted)> {
        let Self { session, stored, memo } = *self;
        let (path, wants_current) = (current.path.as_deref(), current.wanted);
        let now = path.and_then(|path| std::fs::read_to_string(path).ok().map(|now| (path, now)));
        let Some((path, now)) = now else {
            if wants_current {
                let why = format!("the spec of {session} is not where it was; a copy is stored");
                return Err(Error::config(why).helped(Action::Resume, session));
            }
            return Ok((old, None));
        };
        let files_changed = !stored.files.is_empty()
            && Spec::load(Path::new(path), path)
                .is_ok_and(|(_, reading)| reading.spec.files() != stored.files);
        if now == stored.spec && !files_changed {
            return Ok((old, None));
        }
        if !wants_current {
            let (path, diff) = (path.to_owned(), diff(&stored.spec, &now));
            runtime.tell(Notice::SpecChanged { path, diff });
            return Ok((old, None));
        }
        let (text, reading) =
            Spec::load(Path::new(path), path).map_err(stepwell_flow::Error::from)?;
        let new = reading.spec;
        let revision = compare(&old, &new, memo);
        if !revision.broken.is_empty() {
            runtime.tell(Notice::SpecDiff(diff(&stored.spec, &text)));
            let nodes = revision.broken.join(", ");
            let why = format!("the changed spec lacks or changes what is done already: {nodes}");
            let refused = Error::config(why).helped(Action::Resume, session);
            return Err(refused.helped_by(Remedy::BeginFlow));
        }
        let kept = Stored::new(&text, new.files());
        Ok((new, Some((kept, revision.anew))))
    }
}

/// What changed, as a unified diff.
fn diff(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().context_radius(1).header("stored", "now").to_string()
}
