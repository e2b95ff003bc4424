//! Moments as other systems write them: with an offset, without one, in seconds, or as a zero
//! that means none.

use stepwell::model::Time;

use crate::json::fields::text_of;

/// The moment in a JSON value, if it holds one.
pub(crate) fn moment(raw: &str) -> Option<Time> {
    match text_of(raw) {
        Some(text) => written(text.trim()),
        None => seconds(raw.parse().ok()?),
    }
}

fn written(text: &str) -> Option<Time> {
    // The zero of Go's times, and of those who count from there.
    if text.starts_with("0001-") || text.starts_with("0000-") {
        return None;
    }
    let naive = || {
        let is_plain = text.len() >= 16 && text.is_ascii() && text.as_bytes()[4] == b'-';
        format!("{text}Z").parse().ok().filter(|_| is_plain)
    };
    text.parse().ok().or_else(naive).or_else(|| seconds(text.parse().ok()?))
}

/// Seconds since 1970; zero means none.
fn seconds(seconds: f64) -> Option<Time> {
    let micros = (seconds * 1e6).round();
    let sound = seconds.is_finite() && seconds > 0.0 && micros < 253_402_207_200_000_000.0;
    sound.then(|| Time::from_micros(micros as i64))
}

/// A moment as seconds since 1970.
pub(crate) fn epoch(at: Time) -> String {
    let micros = at.as_micros();
    let seconds = micros as f64 / 1e6;
    serde_json::to_string(&seconds).unwrap_or_else(|_| "0.0".to_owned())
}

/// How moments are written in one file: all alike, with as many digits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// As Python writes them in UTC: to the microsecond, `+00:00` behind them.
    Offset,
    /// To the microsecond, with a `Z` behind them.
    Zulu,
    /// As JavaScript writes them: to the millisecond, with a `Z` behind them.
    Millis,
}

impl TimeForm {
    /// The form of a moment that a file has already; without one, Python's.
    pub(crate) fn of(kept: Option<&str>) -> Self {
        let is_zulu = kept.and_then(text_of).is_some_and(|text| text.trim().ends_with('Z'));
        if is_zulu { Self::Zulu } else { Self::Offset }
    }

    /// A moment in this form.
    pub(crate) fn text(self, at: Time) -> String {
        match self {
            Self::Offset => format!("{}+00:00", format!("{at:.6}").trim_end_matches('Z')),
            Self::Zulu => format!("{at:.6}"),
            Self::Millis => format!("{at:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_moment_is_the_same_moment() {
        let at: Time = "2026-01-08T18:05:30.25Z".parse().unwrap();
        for raw in [
            "\"2026-01-08T18:05:30.25Z\"",
            "\"2026-01-08T18:05:30.250000+00:00\"",
            "\"2026-01-08T23:35:30.25+05:30\"",
            "\"2026-01-08T18:05:30.25\"",
            "\"2026-01-08 18:05:30.25\"",
            "1767895530.25",
            "\"1767895530.25\"",
        ] {
            assert_eq!(moment(raw), Some(at), "{raw}");
        }
        assert_eq!(moment(&epoch(at)), Some(at));
        assert_eq!(TimeForm::of(None).text(at), "2026-01-08T18:05:30.250000+00:00");
        let zulu = TimeForm::of(Some("\"2026-01-01T00:00:00Z\""));
        assert_eq!(zulu.text(at), "2026-01-08T18:05:30.250000Z");
        let at: Time = "2026-01-08T18:05:30.999999Z".parse().unwrap();
        assert_eq!(TimeForm::Millis.text(at), "2026-01-08T18:05:30.999Z");
    }

    #[test]
    fn what_means_no_moment_is_none() {
        for raw in [
            "\"0001-01-01T00:00:00Z\"",
            "0",
            "0.0",
            "-5",
            "1e300",
            "null",
            "\"\"",
            "\"yesterday\"",
            "\"ééééé\"",
            "{}",
        ] {
            assert_eq!(moment(raw), None, "{raw}");
        }
    }
}
