//! Moments and lengths of time as people type them.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use stepwell::Time;

/// A moment as typed: absolute, or so long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// That moment.
    At(Time),
    /// So long before now.
    Ago(Duration),
    /// The beginning of a day, so many days before today.
    Day(i32),
}

impl When {
    pub(crate) fn resolve(self, now: Time) -> Time {
        match self {
            Self::At(time) => time,
            Self::Ago(length) => now.minus(length),
            Self::Day(days) => {
                let zone = TimeZone::system();
                let stamp = jiff::Timestamp::from_microsecond(now.as_micros()).unwrap_or_default();
                let today = zone.to_datetime(stamp).date();
                let day = today.checked_sub(jiff::Span::new().days(days)).unwrap_or(today);
                local(day.at(0, 0, 0, 0)).unwrap_or(now)
            }
        }
    }
}

fn local(moment: DateTime) -> Option<Time> {
    let zoned = moment.to_zoned(TimeZone::system()).ok()?;
    Some(Time::from_micros(zoned.timestamp().as_microsecond()))
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "now" => return Ok(Self::Ago(Duration::ZERO)),
            "today" => return Ok(Self::Day(0)),
            "yesterday" => return Ok(Self::Day(1)),
            _ => {}
        }
        let ago = text.strip_suffix(" ago").unwrap_or(text);
        if let Ok(length) = length(ago) {
            return Ok(Self::Ago(length));
        }
        let time = text.parse::<Time>().ok();
        let civil = || local(text.parse::<DateTime>().ok()?);
        let day = || local(text.parse::<Date>().ok()?.at(0, 0, 0, 0));
        let example = "2026-02-23, 2026-02-23T14:30, 7d, 12h, today or yesterday";
        let time = time.or_else(day).or_else(civil);
        time.map(Self::At).ok_or_else(|| format!("not a time; use one such as {example}"))
    }
}

/// The units of lengths, in seconds.
const UNITS: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];

/// A length of time such as `30m`, `2h` or `7d`. A number alone has no unit and is refused.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let wrong = || "not a length of time; use one such as 90s, 30m, 12h, 7d or 2w".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let seconds = number.checked_mul(*seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

/// A length of time in its largest whole unit.
pub(crate) fn show_length(length: Duration) -> String {
    let seconds = length.as_secs();
    let fits = |(_, unit): &&(&str, u64)| seconds >= *unit && seconds.is_multiple_of(*unit);
    // Weeks are read, never shown: 14d says more than 2w.
    let largest = UNITS.iter().rev().skip(1).find(fits);
    largest
        .map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_back_as_they_show() {
        for text in ["0s", "90s", "30m", "12h", "7d", "14d"] {
            assert_eq!(show_length(length(text).unwrap()), text);
        }
        assert_eq!(length("2w").unwrap(), length("14d").unwrap());
        for wrong in ["", "7", "d", "-1d", "1.5h", "7 d", "7days", "99999999999999999999d"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
        assert!(length(&format!("{}w", u64::MAX)).is_err());
    }

    #[test]
    fn moments_are_absolute_or_before_now() {
        let now: Time = "2026-02-23T14:30:22Z".parse().unwrap();
        let at = |text: &str| text.parse::<When>().unwrap().resolve(now).to_string();
        assert_eq!(at("2h"), "2026-02-23T12:30:22Z");
        assert_eq!(at("7d ago"), "2026-02-16T14:30:22Z");
        assert_eq!(at("2026-02-23T16:30:22+02:00"), "2026-02-23T14:30:22Z");
        assert_eq!(at("now"), "2026-02-23T14:30:22Z");
        for wrong in ["", "soon", "2026-13-01", "-3d"] {
            assert!(wrong.parse::<When>().is_err(), "{wrong}");
        }
    }
}
