//! The mark of a session that was written for another system: which session it goes on from.

use serde::{Deserialize, Serialize};
use stepwell::log::Head;
use stepwell::model::Time;
use stepwell::store::Span;
use stepwell::{Seq, SessionId, Stepwell};

use crate::Result;
use crate::json::fields::Fields;

/// The field of a line, or of a file beside the session, that holds the mark.
pub(crate) const CONTINUES: &str = "continues";

/// A session that another one goes on from, and how far it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The session.
    pub session: SessionId,
    /// Its last event when it was written.
    pub seq: Seq,
    /// When that happened: another store may have another session of the same name. As a number of
    /// microseconds, since each format writes moments in its own way.
    #[serde(with = "micros")]
    pub at: Time,
}

impl Mark {
    /// The mark of a session that is written under a name. Under its own one, that of the
    /// system that it came from, it is itself and bears none.
    pub(crate) fn of(well: &Stepwell, head: &Head, there: (&str, &str)) -> Result<Option<Self>> {
        let own = head.source.as_ref();
        if own.is_some_and(|own| (own.system.as_str(), own.id.as_str()) == there) {
            return Ok(None);
        }
        let last = Span { limit: 1, ..Span::after(head.seq.prev()) };
        let last = well.store().events(&head.id, last)?.events.into_iter().next();
        Ok(last.map(|last| Self { session: head.id.clone(), seq: last.seq, at: last.at }))
    }

    /// The mark in the fields of a line.
    pub(crate) fn within(fields: &Fields<'_>) -> Option<Self> {
        serde_json::from_str(fields.raw(CONTINUES)?).ok()
    }

    /// The mark as JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it has no map and no key that is no text")
    }
}

/// A moment as microseconds since 1970.
mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use stepwell::model::Time;

    pub(super) fn serialize<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(at.as_micros())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        i64::deserialize(from).map(Time::from_micros)
    }
}
