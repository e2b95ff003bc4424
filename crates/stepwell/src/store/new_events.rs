//! Events on their way into a store.

use crate::error::Result;
use crate::log::codec::Bodies;
use crate::model::NewEvent;

/// Events to be recorded. They can be encoded and hashed before the store's turn to write comes,
/// on another thread perhaps; the long texts of those that were are in their bodies, and nowhere
/// else.
#[derive(Clone, Debug, Default)]
pub struct NewEvents {
    events: Vec<NewEvent>,
    /// The bodies of the first ones, in order: of those that were encoded.
    bodies: Bodies,
}

impl From<Vec<NewEvent>> for NewEvents {
    fn from(events: Vec<NewEvent>) -> Self {
        Self { events, bodies: Bodies::default() }
    }
}

impl NewEvents {
    /// None yet, and room for as many as these.
    #[must_use]
    pub fn room_for(&self) -> Self {
        Self { events: Vec::with_capacity(self.events.len()), bodies: self.bodies.room_for() }
    }

    /// Adds an event, and encodes it.
    pub fn push(&mut self, mut event: NewEvent) -> Result<()> {
        self.encode()?;
        encode(&mut event, &mut self.bodies)?;
        self.events.push(event);
        Ok(())
    }

    /// Encodes those that were not.
    pub fn encode(&mut self) -> Result<()> {
        let encoded = self.bodies.len();
        self.events[encoded..].iter_mut().try_for_each(|event| encode(event, &mut self.bodies))
    }

    /// Those that there are. The long texts of encoded ones are not in them.
    #[must_use]
    pub fn as_slice(&self) -> &[NewEvent] {
        &self.events
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many bytes the encoded ones have, long texts included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bodies.size()
    }

    /// All of them, encoded, with their bodies.
    pub(super) fn into_parts(mut self) -> Result<(Vec<NewEvent>, Bodies)> {
        self.encode()?;
        Ok((self.events, self.bodies))
    }
}

fn encode(event: &mut NewEvent, bodies: &mut Bodies) -> Result<()> {
    bodies.push(event)?;
    event.event.shed();
    Ok(())
}
