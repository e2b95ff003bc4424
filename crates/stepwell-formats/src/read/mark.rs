//! The mark of a session that was written for another system: which session it goes on from.

use stepwell::Stepwell;
use stepwell::log::Head;
use stepwell::model::Mark;
use stepwell::store::Span;

use crate::Result;
use crate::json::fields::Fields;

/// The field of a line, or of a file beside the session, that holds the mark.
pub(crate) const CONTINUES: &str = "continues";

/// The mark of a session that is written under a name. Under its own one, that of the
/// system that it came from, it is itself and bears none.
pub(crate) fn mark_of(well: &Stepwell, head: &Head, there: (&str, &str)) -> Result<Option<Mark>> {
    let own = head.source.as_ref();
    if own.is_some_and(|own| (own.system.as_str(), own.id.as_str()) == there) {
        return Ok(None);
    }
    let last = Span { limit: 1, ..Span::after(head.seq.prev()) };
    let last = well.store().events(&head.id, last)?.events.into_iter().next();
    Ok(last.map(|last| Mark { session: head.id.clone(), seq: last.seq, at: last.at }))
}

/// The mark in the fields of a line.
pub(crate) fn mark_within(fields: &Fields<'_>) -> Option<Mark> {
    serde_json::from_str(fields.raw(CONTINUES)?).ok()
}

/// The mark as JSON.
pub(crate) fn mark_json(mark: &Mark) -> String {
    serde_json::to_string(mark).expect("it has no map and no key that is no text")
}
