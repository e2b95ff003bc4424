//! Checkpoints: points with a name.

use crate::error::{Error, Result};
use crate::model::{
    Checkpoint, Event, InvalidName, Kind, Phase, PhaseSet, Seq, SessionId, Time, WorkChange,
};
use crate::sessions::Stepwell;

/// A checkpoint with its event.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCheckpoint {
    /// The point that it names.
    pub seq: Seq,
    /// When it was made.
    pub at: Time,
    /// Its name, reason and metadata.
    pub checkpoint: Checkpoint,
    /// The phase at the point, if the session has phases.
    pub phase: Option<Phase>,
}

impl Stepwell {
    /// Makes a checkpoint at a session's present point, also while it runs.
    ///
    /// # Errors
    /// If the name is invalid, or the session's files are half moved.
    pub fn checkpoint(&self, id: &SessionId, checkpoint: Checkpoint) -> Result<Seq> {
        let Checkpoint { name, metadata, .. } = checkpoint.made_by(self.acting_who());
        let made = self.change_work(id, WorkChange::Checkpoint { name, metadata })?;
        Ok(made.map(|it| it.seq).unwrap_or_default())
    }

    /// A session's checkpoints, in order. Of several with the same name, the last one counts.
    pub fn checkpoints(&self, id: &SessionId) -> Result<Vec<RecordedCheckpoint>> {
        let facts = self.store().keyed_events(id, &[Kind::Checkpoint, Kind::Phase])?.into_iter();
        let mut phase = self.store().info(id)?.head.phases.map(PhaseSet::initial);
        let checkpoints = facts.filter_map(|fact| match fact.event {
            Event::Checkpoint(checkpoint) => {
                Some(RecordedCheckpoint { seq: fact.seq, at: fact.at, checkpoint, phase })
            }
            Event::Phase(change) => {
                phase = Some(change.to);
                None
            }
            _ => None,
        });
        Ok(checkpoints.collect())
    }
}

/// Is the text a number: a seq, or a number of steps back?
#[must_use]
pub fn is_numbered(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl Checkpoint {
    /// Refuses a name that cannot name a point.
    pub fn check(&self) -> Result<()> {
        check_name(&self.name)
    }
}

/// Refuses a text that cannot name a point. Imported sessions may have such names.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let refuse = |why| Err(Error::from(InvalidName::new("checkpoint name", name, why)));
    if name.trim().is_empty() {
        refuse("it is empty")
    } else if name.chars().any(char::is_control) {
        refuse("it holds a control character")
    } else if is_numbered(name) {
        refuse("a number means a seq, or steps back")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    #[test]
    fn a_name_that_would_mean_another_point_is_refused_and_nothing_is_recorded() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("work")).unwrap();
        let id = session.id().clone();
        session.append(Message::user("hello")).unwrap();
        let before = session.info().unwrap().head.seq;
        for name in ["", "  ", "12", "-3", "+1", "a\nb"] {
            assert!(matches!(session.checkpoint(name), Err(Error::InvalidName(_))), "{name:?}");
        }
        assert_eq!(session.info().unwrap().head.seq, before);
        drop(session);
        let named = Checkpoint { name: "v1".to_owned(), ..Checkpoint::default() };
        let seq = well.checkpoint(&id, named).unwrap();
        let known = well.checkpoints(&id).unwrap();
        assert_eq!((known.len(), known[0].seq, &*known[0].checkpoint.name), (1, seq, "v1"));
    }
}
