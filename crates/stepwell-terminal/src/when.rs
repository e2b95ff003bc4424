//! Moments and lengths of time as people type them.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use stepwell::model::Time;
use stepwell_workspace::parse_duration;

/// A moment as typed: absolute, or so long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// That moment.
    At(Time),
    /// So long before now.
    Ago(Duration),
    /// The beginning of a day, so many days before today.
    Day(i32),
}

impl When {
    /// The moment that is meant.
    #[must_use]
    pub fn resolve(self, now: Time) -> Time {
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
        if let Ok(length) = parse_duration(ago) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
