//! Lengths of time as people write them, such as `30m`.

use std::time::Duration;

/// The units of lengths, in seconds.
const UNITS: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];

/// Reads a length of time such as `30m`, `2h` or `7d`. A number alone has no unit and is refused.
///
/// # Errors
/// If it is none; the text says what is expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "not a length of time; use one such as 90s, 30m, 12h, 7d or 2w".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let seconds = number.checked_mul(*seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

/// A length of time in its largest whole unit.
#[must_use]
pub fn show_duration(length: Duration) -> String {
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
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
        assert_eq!(parse_duration("2w").unwrap(), parse_duration("14d").unwrap());
        for wrong in ["", "7", "d", "-1d", "1.5h", "7 d", "7days", "99999999999999999999d"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_duration(&format!("{}w", u64::MAX)).is_err());
    }
}
