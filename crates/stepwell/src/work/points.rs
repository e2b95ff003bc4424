//! Points of a session, as people name them: a seq, a checkpoint, or a number of steps back.

use crate::error::{Error, NoPoint, Result};
use crate::log::Timeline;
use crate::model::{Event, Kind, Lane, Recorded, Role, Seq, SessionId};
use crate::sessions::Stepwell;
use crate::store::{Order, Span};
use crate::work::checkpoints::is_numbered;

/// The prefix of a checkpoint's name that would otherwise mean something else.
const NAMED: &str = "checkpoint:";

/// The prefix of a phase's name: the point where the work last entered it.
const PHASE: &str = "phase:";

impl Stepwell {
    /// The point that a text names: a seq, `-N` for N steps back, or a checkpoint's name (the
    /// latest with that name). A number is never a checkpoint's name, except after `checkpoint:`.
    /// `phase:NAME` is the point where the work last entered a phase.
    ///
    /// # Errors
    /// [`Error::NoPoint`] if it names none.
    pub fn point(&self, id: &SessionId, text: &str) -> Result<Seq> {
        let session = || id.clone();
        let checkpoints = self.checkpoints(id)?;
        let named = |name: &str| {
            let mut newest_first = checkpoints.iter().rev();
            newest_first.find(|it| it.checkpoint.name == name).map(|it| it.seq)
        };
        let of_phase = || named(&format!("phase-{}", text.strip_prefix(PHASE)?));
        let by_prefix = || text.strip_prefix(NAMED).and_then(&named).or_else(of_phase);
        if !is_numbered(text)
            && let Some(seq) = named(text).or_else(by_prefix)
        {
            return Ok(seq);
        }
        let digits = |steps: &&str| steps.bytes().all(|byte| byte.is_ascii_digit());
        let back = text.strip_prefix('-').filter(digits).and_then(|steps| steps.parse().ok());
        if let Some(steps) = back {
            return self.steps_back(id, steps);
        }
        let last = self.store().info(id)?.head.seq;
        let no_point = match text.parse() {
            Ok(n) if n >= 1 && n <= last.get() => return Ok(Seq::new(n)),
            Ok(seq) => NoPoint::Event { session: session(), seq, last },
            Err(_) => {
                let known = checkpoints.into_iter().map(|it| it.checkpoint.name).collect();
                NoPoint::Checkpoint { session: session(), name: text.to_owned(), known }
            }
        };
        Err(no_point.into())
    }

    /// The user's last message to the main agent that counts, if the agent has answered it.
    ///
    /// # Errors
    /// [`Error::NoPoint`] without a message or an answer.
    pub fn last_words(&self, id: &SessionId) -> Result<Seq> {
        let mut done = false;
        let said = self.newest(id, |event| {
            let Event::Message(message) = &event.event else { return None };
            let ours = message.lane == Lane::main();
            done |= ours && message.role == Role::Assistant;
            (ours && message.is_from_user()).then_some(event.seq)
        })?;
        let session = id.clone();
        match said {
            Some(said) if done => Ok(said),
            Some(said) => Err(NoPoint::NothingDone { session, said }.into()),
            None => Err(NoPoint::NothingSaid { session }.into()),
        }
    }

    /// The point just before the Nth last answer of the main agent that counts.
    fn steps_back(&self, id: &SessionId, asked: usize) -> Result<Seq> {
        if asked == 0 {
            return Err(NoPoint::NoStep.into());
        }
        let (mut has, mut passed) = (0, false);
        let before = self.newest(id, |event| {
            // The next event visited is the one before the answer.
            if passed {
                return Some(event.seq);
            }
            if let Event::Message(message) = &event.event
                && message.role == Role::Assistant
                && message.lane == Lane::main()
            {
                has += 1;
                passed = has == asked;
            }
            None
        })?;
        let few = || Error::from(NoPoint::Steps { session: id.clone(), has, asked });
        before.ok_or_else(few)
    }

    /// The first result of `ask` for the events that count, from the newest to the oldest.
    fn newest<T>(
        &self,
        id: &SessionId,
        mut ask: impl FnMut(&Recorded) -> Option<T>,
    ) -> Result<Option<T>> {
        let moves = self.store().keyed_events(id, &[Kind::Rewound, Kind::Undone])?;
        let timeline = Timeline::at(self.store().info(id)?.head.seq, moves.iter());
        for event in self.log(id, Span { order: Order::Newest, ..Span::ALL }) {
            let event = event?;
            if timeline.contains(event.seq)
                && let Some(answer) = ask(&event)
            {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Checkpoint, Message, Scope};
    use crate::sessions::Session;

    fn talked(well: &Stepwell) -> Session {
        let session = well.create(well.draft("talk")).unwrap();
        session.append(Message::user("begin")).unwrap();
        session.step([Message::assistant("one")]).unwrap();
        session.checkpoint("middle").unwrap();
        session.append(Message::user("go on")).unwrap();
        session.step([Message::assistant("two")]).unwrap();
        session
    }

    #[test]
    fn a_point_is_a_seq_a_checkpoint_or_steps_back() {
        let well = Stepwell::in_memory();
        let session = talked(&well);
        let at = |text: &str| well.point(session.id(), text).map(Seq::get);
        assert_eq!(at("1").unwrap(), 1);
        assert_eq!(at("middle").unwrap(), 5);
        assert_eq!(at("checkpoint:middle").unwrap(), 5);
        assert_eq!(at("-1").unwrap(), 6);
        assert_eq!(at("-2").unwrap(), 2);
        assert_eq!(well.last_words(session.id()).unwrap().get(), 6);
    }

    #[test]
    fn an_error_about_a_point_lists_the_known_ones() {
        let well = Stepwell::in_memory();
        let session = talked(&well);
        let wrong = |text: &str| match well.point(session.id(), text) {
            Err(Error::NoPoint(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(matches!(wrong("99"), NoPoint::Event { seq: 99, .. }));
        assert!(matches!(wrong("0"), NoPoint::Event { seq: 0, .. }));
        assert!(matches!(wrong("-0"), NoPoint::NoStep));
        assert!(matches!(wrong("-3"), NoPoint::Steps { has: 2, asked: 3, .. }));
        let NoPoint::Checkpoint { known, .. } = wrong("end") else { panic!() };
        assert_eq!(known, ["middle"]);
    }

    #[test]
    fn a_number_names_a_checkpoint_only_with_a_prefix() {
        let well = Stepwell::in_memory();
        let session = talked(&well);
        let old = Checkpoint { name: "2".to_owned(), ..Checkpoint::default() };
        let named = session.append(old).unwrap();
        assert_eq!(well.point(session.id(), "2").unwrap().get(), 2);
        assert_eq!(well.point(session.id(), "checkpoint:2").unwrap(), named);
    }

    #[test]
    fn rewound_events_do_not_count() {
        let well = Stepwell::in_memory();
        let session = talked(&well);
        session.rewind(Seq::new(5), Scope::Chat).unwrap();
        assert_eq!(well.point(session.id(), "-1").unwrap().get(), 2);
        assert_eq!(well.last_words(session.id()).unwrap().get(), 2);
        session.append(Message::user("and now?")).unwrap();
        let why = well.last_words(session.id()).unwrap_err();
        assert!(matches!(why, Error::NoPoint(NoPoint::NothingDone { .. })));
    }
}
