//! A spec whose file changed since its flow began.

use std::path::Path;

use similar::TextDiff;
use stepwell::Head;
use stepwell_flow::revision::compare;
use stepwell_flow::spec::Spec;
use stepwell_flow::{Memo, Stored};

use super::FLOW;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;

/// How many lines of a difference are shown.
const SHOWN: usize = 40;

/// What is new: a spec to be kept, and the nodes that begin anew by it.
pub(super) type Accepted = Option<(Stored, Vec<String>)>;

/// The spec to go on with: the stored one, or the one on disk if it is wanted and what is done
/// still stands by it.
pub(super) fn settle(
    (stored, old): (&Stored, Spec),
    head: &Head,
    memo: &Memo,
    wants_current: bool,
) -> Result<(Spec, Accepted)> {
    let path = head.metadata.get(FLOW).and_then(|kept| kept.get("spec")?.as_str());
    let now = path.and_then(|path| std::fs::read_to_string(path).ok().map(|now| (path, now)));
    let Some((path, now)) = now else {
        if wants_current {
            let message = format!("the spec of {} is not where it was", head.id);
            return Err(Failure::new(Exit::Absent, message)
                .hint("without --use-current-spec the stored one is used"));
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
        note(format_args!(
            "warning: {path} changed since this flow began; the stored spec is used \
             (--use-current-spec goes on with the changed one)"
        ));
        show(&stored.spec, &now);
        return Ok((old, None));
    }
    let (text, reading) = Spec::load(Path::new(path), path)?;
    let new = reading.spec;
    let revision = compare(&old, &new, memo);
    if !revision.broken.is_empty() {
        show(&stored.spec, &text);
        let message = format!(
            "the changed spec lacks or changes what is done already: {}",
            revision.broken.join(", ")
        );
        return Err(Failure::new(Exit::Absent, message).hint(format_args!(
            "stepwell resume {} goes on with the stored spec; stepwell flow run begins anew",
            head.id
        )));
    }
    let kept = Stored::new(&text, new.files());
    Ok((new, Some((kept, revision.anew))))
}

/// Shows what changed.
fn show(old: &str, new: &str) {
    let diff = TextDiff::from_lines(old, new);
    let text = diff.unified_diff().context_radius(1).header("stored", "now").to_string();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(SHOWN) {
        note(line);
    }
    if lines.len() > SHOWN {
        note(format_args!("… {} more lines", lines.len() - SHOWN));
    }
}
