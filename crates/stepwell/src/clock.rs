//! Sources of time and randomness, which the caller provides.

use std::fmt::Debug;

use crate::model::{Digest, Time};

/// A source of time.
pub trait Clock: Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
}

/// A source of random bytes.
pub trait Entropy: Debug + Send + Sync {
    /// 32 unpredictable bytes.
    fn random(&self) -> [u8; 32];
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now(&self) -> Time {
        Time::from_micros(jiff::Timestamp::now().as_microsecond())
    }
}

/// The machine's source of cryptographic randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is where randomness comes from")]
    fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        if getrandom::fill(&mut bytes).is_err() {
            // The kernel has no randomness. The clock and the process id are not secret, but an id
            // made of them is still unique.
            let facts = format!("{:?} {}", SystemClock.now(), std::process::id());
            bytes = *Digest::of(facts.as_bytes()).as_bytes();
        }
        bytes
    }
}
