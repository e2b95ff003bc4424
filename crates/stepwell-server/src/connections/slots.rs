//! Slots for connections. A connection with a valid token keeps its slot.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The peer of a request's connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    place: Arc<SlotState>,
}

impl Peer {
    /// Marks the connection as authenticated, so that it keeps its slot.
    pub(crate) fn is_known(&self) {
        self.place.is_known.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct SlotState {
    is_known: AtomicBool,
    needed: Notify,
}

/// The slots.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Occupied>>,
}

#[derive(Debug, Default)]
struct Occupied {
    next: u64,
    /// By age, the oldest first.
    places: BTreeMap<u64, Arc<SlotState>>,
}

/// A slot, free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u64,
    peer: Peer,
    taken: Arc<Mutex<Occupied>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), taken: Arc::default() }
    }

    /// Takes a slot. If none is free, the oldest connection without a token is closed; if all have
    /// tokens, this waits.
    pub(crate) async fn acquire(&self, address: SocketAddr) -> Slot {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                self.make_room();
                // The semaphore is never closed.
                Arc::clone(&self.free).acquire_owned().await.ok()
            }
        };
        let place = Arc::new(SlotState::default());
        let mut taken = self.taken.lock();
        let number = taken.next;
        taken.next += 1;
        taken.places.insert(number, Arc::clone(&place));
        drop(taken);
        let peer = Peer { address, place };
        Slot { number, peer, taken: Arc::clone(&self.taken), _permit: permit }
    }

    fn make_room(&self) {
        let mut taken = self.taken.lock();
        let is_stranger = |place: &Arc<SlotState>| !place.is_known.load(Ordering::Relaxed);
        let oldest = taken.places.iter().find(|(_, place)| is_stranger(place));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(place) = taken.places.remove(&number)
        {
            place.needed.notify_one();
        }
    }
}

impl Slot {
    pub(crate) fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// Waits until the slot is needed for another connection.
    pub(crate) async fn is_needed(&self) {
        self.peer.place.needed.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.taken.lock().places.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_whoever_is_known_stays() {
        let slots = Slots::new(2);
        let from: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let known = slots.acquire(from).await;
        known.peer().is_known();
        let stranger = slots.acquire(from).await;
        let waits = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(from).await }
        });
        tokio::select! {
            () = stranger.is_needed() => {}
            () = known.is_needed() => panic!("whoever showed a token stays"),
        }
        drop(stranger);
        let newcomer = waits.await.unwrap();
        newcomer.peer().is_known();
        // All are authenticated, so the next one waits for a free slot.
        let mut waits = Box::pin(slots.acquire(from));
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(known);
        waits.await;
    }
}
