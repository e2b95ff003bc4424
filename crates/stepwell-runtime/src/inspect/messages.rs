//! What was said in a session, and what of it still counts.

use stepwell::log::Timeline;
use stepwell::store::{Damage, Span};
use stepwell::{Event, Recorded, Seq, SessionId, Stepwell};

use crate::error::{Error, Result};

/// How many events that count are looked at to find messages: a step has a few of other kinds.
const LOOK_BACK: usize = 100;

/// The last messages of a session that count, oldest first, and the damage that hides others.
///
/// # Errors
/// If its log cannot be read.
pub fn last_messages(
    well: &Stepwell,
    id: &SessionId,
    timeline: &Timeline,
    limit: usize,
) -> Result<(Vec<Recorded>, Option<Damage>)> {
    let (mut last, mut looked, mut to) = (Vec::new(), 0, Seq::MAX);
    let damage = loop {
        let slice = well.store().events(id, Span { to, ..Span::last(LOOK_BACK) })?;
        let Some(oldest) = slice.events.last().map(|event| event.seq) else { break slice.damage };
        for event in slice.events.into_iter().filter(|event| timeline.contains(event.seq)) {
            looked += 1;
            if matches!(event.event, Event::Message(_)) && last.len() < limit {
                last.push(event);
            }
        }
        let enough = looked >= LOOK_BACK || last.len() >= limit || oldest <= Seq::FIRST;
        if enough || slice.damage.is_some() {
            break slice.damage;
        }
        to = oldest.prev();
    };
    last.reverse();
    Ok((last, damage))
}

/// How many of a session's messages were rewound.
pub(super) fn rewound(well: &Stepwell, id: &SessionId, timeline: &Timeline) -> Result<u64> {
    let mut rewound = 0;
    well.log(id, Span::ALL).each(|event| {
        let counts = !matches!(event.event, Event::Message(_)) || timeline.contains(event.seq);
        rewound += u64::from(!counts);
        Ok::<_, Error>(())
    })?;
    Ok(rewound)
}
