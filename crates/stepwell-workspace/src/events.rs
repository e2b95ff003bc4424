//! A session's events, a page at a time.

use stepwell::{Damage, Order, Recorded, SessionId, Span, Stepwell};

/// How many events are read at a time where all are looked at.
const PAGE: usize = 1_000;

/// Looks at a session's events from a span on, page by page. The answer is the damage
/// that ended it.
///
/// # Errors
/// If the store cannot be read, or whatever `look` says.
pub fn each_event<E: From<stepwell::Error>>(
    well: &Stepwell,
    id: &SessionId,
    mut span: Span,
    mut look: impl FnMut(Recorded) -> Result<(), E>,
) -> Result<Option<Damage>, E> {
    let mut left = span.limit;
    loop {
        span.limit = left.min(PAGE);
        let slice = well.store().events(id, span)?;
        let Some(last) = slice.events.last().map(|event| event.seq) else {
            return Ok(slice.damage);
        };
        left -= slice.events.len().min(left);
        slice.events.into_iter().try_for_each(&mut look)?;
        if slice.damage.is_some() || left == 0 {
            return Ok(slice.damage);
        }
        match span.order {
            Order::Oldest => span.from = last.next(),
            Order::Newest if last <= span.from => return Ok(None),
            Order::Newest => span.to = last.prev(),
        }
    }
}
