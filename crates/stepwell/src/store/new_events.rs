//! Events on their way into a store.

use crate::error::Result;
use crate::log::codec::Bodies;
use crate::model::NewEvent;

/// Events to be recorded. They can be encoded and hashed before the store's turn to write, also on
/// another thread. The long texts of encoded events are only in their bodies.
#[derive(Clone, Debug, Default)]
pub struct NewEvents {
    events: Vec<NewEvent>,
    /// The bodies of the encoded events, which are the first ones, in order.
    bodies: Bodies,
}

impl From<Vec<NewEvent>> for NewEvents {
    fn from(events: Vec<NewEvent>) -> Self {
        Self { events, bodies: Bodies::default() }
    }
}

impl NewEvents {
    /// An empty list with the capacity of this one.
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

    /// Encodes the events that are not encoded yet.
    pub fn encode(&mut self) -> Result<()> {
        let encoded = self.bodies.len();
        self.events[encoded..].iter_mut().try_for_each(|event| encode(event, &mut self.bodies))
    }

    /// The events. Encoded ones lack their long texts.
    #[must_use]
    pub fn as_slice(&self) -> &[NewEvent] {
        &self.events
    }

    /// The number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Is the list empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The size of the encoded events, including texts in blobs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bodies.size()
    }

    /// All events, encoded, with their bodies.
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
