//! Moments in time, to the microsecond, in UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::text::as_text;

/// A moment, in microseconds since 1970 UTC. This is a store's precision, so a stored time reads
/// back equal. Prints as RFC 3339.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// Years -9999..9999, the range that RFC 3339 and `jiff` can print.
const RANGE: std::ops::RangeInclusive<i64> = -377_705_023_201_000_000..=253_402_207_200_000_000;

impl Time {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The moment `micros` after 1970 UTC, clamped to the years that can be printed.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros < *RANGE.start() {
            Self(*RANGE.start())
        } else if micros > *RANGE.end() {
            Self(*RANGE.end())
        } else {
            Self(micros)
        }
    }

    /// Microseconds since 1970 UTC.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The moment `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// The moment `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_sub(micros))
    }

    /// The moment as `YYYYMMDD-HHMMSS`, UTC: the start of a default session id.
    #[must_use]
    pub fn compact(self) -> String {
        self.timestamp().strftime("%Y%m%d-%H%M%S").to_string()
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not an RFC 3339 time with an offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-02-23T14:30:22Z")]
pub struct NotATime(pub String);

impl FromStr for Time {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let stamp: Timestamp = text.parse().map_err(|_| NotATime(text.to_owned()))?;
        Ok(Self::from_micros(stamp.as_microsecond()))
    }
}

as_text!(Time);

/// Serializes a time inside an event with microseconds, so that all times in an archive have one
/// form.
#[expect(clippy::ref_option, reason = "serde hands over a reference")]
pub(super) fn to_micros<S: serde::Serializer>(at: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => to.collect_str(&format_args!("{at:.6}")),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_reads_with_any_offset_and_prints_in_utc() {
        let time: Time = "2026-02-23T16:30:22.5+02:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-02-23T14:30:22.5Z");
        assert_eq!(time.compact(), "20260223-143022");
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        assert!("2026-02-23T16:30:22".parse::<Time>().is_err());
        assert!("yesterday".parse::<Time>().is_err());
    }

    #[test]
    fn differences_never_go_below_zero() {
        let early = Time::from_micros(5);
        assert_eq!(early.since(early.plus(Duration::from_secs(1))), Duration::ZERO);
        assert_eq!(Time::from_micros(i64::MAX).plus(Duration::MAX), Time::from_micros(i64::MAX));
    }

    proptest! {
        #[test]
        fn text_round_trips_to_the_microsecond(micros in any::<i64>()) {
            let time = Time::from_micros(micros);
            prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }
    }
}
