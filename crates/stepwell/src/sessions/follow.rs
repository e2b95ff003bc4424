//! Following a session: its events as they are recorded, until it stops.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::model::{Recorded, Seq, SessionId, Status};
use crate::sessions::subscribe::{Notice, Subscription};
use crate::sessions::well::Stepwell;
use crate::store::Span;
use crate::store::changes::{ChangeKind, SessionChange};

/// Reads a session's log from a given event, and then each event as it is recorded.
#[derive(Debug)]
pub struct Follower<'a> {
    well: &'a Stepwell,
    id: SessionId,
    /// The next event to read.
    next: Seq,
    news: Subscription,
}

/// The state of a followed session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// More events may come.
    GoesOn,
    /// It stopped, and all of its events were read.
    Stopped,
    /// It was purged.
    Erased,
}

impl Stepwell {
    /// Follows a session from a given event.
    pub fn follow(&self, id: &SessionId, from: Seq) -> Result<Follower<'_>> {
        // Subscribed before the first read, so that no event is missed.
        let news = self.subscribe_to(id)?;
        Ok(Follower { well: self, id: id.clone(), next: from, news })
    }
}

impl Follower<'_> {
    /// Passes every event since the last call to `look`.
    ///
    /// # Errors
    /// Errors of the store, [`Error::Damaged`], and errors that `look` returns.
    pub fn look<E: From<Error>>(
        &mut self,
        mut look: impl FnMut(Recorded) -> Result<(), E>,
    ) -> Result<Followed, E> {
        // Read before the events, so that a stop cannot hide an event recorded in between.
        let stopped = self.has_stopped()?;
        let next = &mut self.next;
        let log = self.well.log(&self.id, Span { from: *next, ..Span::ALL });
        let damage = log.each(|event| {
            *next = event.seq.next();
            look(event)
        });
        let damage = match damage {
            Err(_) if !self.well.store().exists(&self.id)? => return Ok(Followed::Erased),
            other => other?,
        };
        match damage {
            Some(damage) => Err(damage.into_error(&self.id).into()),
            None if stopped => Ok(Followed::Stopped),
            None => Ok(Followed::GoesOn),
        }
    }

    /// Waits until the session may have changed, or `patience` has passed.
    pub fn wait(&self, patience: Duration) -> Result<Followed> {
        let is_removal = |notice: &Notice| {
            matches!(notice, Notice::Changed(SessionChange { kind: ChangeKind::Removed, .. }))
        };
        let removed = self.news.next(patience)?.is_some_and(|notice| is_removal(&notice));
        match removed && !self.well.store().exists(&self.id)? {
            true => Ok(Followed::Erased),
            false => Ok(Followed::GoesOn),
        }
    }

    fn has_stopped(&self) -> Result<bool> {
        match self.well.store().info(&self.id) {
            Ok(info) => {
                let runs = matches!(info.head.status, Status::Running | Status::Paused);
                Ok(!runs || info.trashed_at.is_some())
            }
            Err(Error::NoSession(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl Stepwell {
    /// Waits until a session has an event after `seq`, or `timeout` has passed. Returns its last
    /// seq. One waiter polls on behalf of all.
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub fn wait_after(&self, id: &SessionId, seq: Seq, timeout: Duration) -> Result<Seq> {
        let started = Instant::now();
        // Subscribed before the first read, so that no change is missed.
        let subscription = self.subscribe_to(id)?;
        loop {
            let last = self.store().info(id)?.head.seq;
            let left = timeout.saturating_sub(started.elapsed());
            if last > seq || left.is_zero() {
                return Ok(last);
            }
            subscription.next(left)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    #[test]
    fn a_follower_sees_each_event_once_and_ends_with_the_session() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("work")).unwrap();
        let id = session.id().clone();
        let mut follower = well.follow(&id, Seq::FIRST).unwrap();
        let mut seen = Vec::new();
        let mut look = |follower: &mut Follower<'_>| {
            let mut new = Vec::new();
            let state = follower
                .look(|event| {
                    new.push(event.seq.get());
                    Ok::<_, Error>(())
                })
                .unwrap();
            seen.extend(new);
            (state, seen.clone())
        };
        assert_eq!(look(&mut follower), (Followed::GoesOn, vec![1]));
        session.append(Message::user("hello")).unwrap();
        assert_eq!(follower.wait(Duration::from_secs(10)).unwrap(), Followed::GoesOn);
        assert_eq!(look(&mut follower), (Followed::GoesOn, vec![1, 2]));
        session.finish(Status::Success, None).unwrap();
        assert_eq!(look(&mut follower), (Followed::Stopped, vec![1, 2, 3]));
        well.purge(&id).unwrap();
        let mut news = std::iter::repeat_with(|| follower.wait(Duration::from_secs(10)).unwrap());
        assert!(news.any(|state| state == Followed::Erased));
    }
}
