//! Exact amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use super::text::as_text;

/// An amount in US dollars, in whole picodollars (10⁻¹²), so that addition never rounds. A token at
/// $0.0375 per million costs 37,500 of them; the cheapest price in use is several digits above the
/// last place.
/// Its JSON form is a decimal text such as `"1.25"`, because most readers treat a JSON number as a
/// float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i128);

/// Decimal places.
const PLACES: usize = 12;
const UNIT: i128 = 1_000_000_000_000;

impl Money {
    /// Zero dollars.
    pub const ZERO: Self = Self(0);

    /// An amount in picodollars. The smallest `i128` becomes the next larger one, which can be
    /// negated.
    #[must_use]
    pub const fn from_picos(picos: i128) -> Self {
        Self(if picos == i128::MIN { i128::MIN + 1 } else { picos })
    }

    /// The sum, or the largest amount if it overflows.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::from_picos(self.0.saturating_add(other.0))
    }

    /// The difference, or the smallest amount if it overflows.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self::from_picos(self.0.saturating_sub(other.0))
    }

    /// The amount in picodollars.
    #[must_use]
    pub const fn as_picos(self) -> i128 {
        self.0
    }

    /// The cost of `tokens` at this price per million, rounded to the nearest picodollar, halves
    /// away from zero.
    #[must_use]
    pub const fn per_million(self, tokens: u64) -> Self {
        let whole = self.0.saturating_mul(tokens as i128);
        let half = if whole < 0 { -500_000 } else { 500_000 };
        Self::from_picos(whole.saturating_add(half) / 1_000_000)
    }

    /// The nearest amount to a float, which other systems store. `None` for NaN and infinities.
    #[must_use]
    pub fn from_f64(dollars: f64) -> Option<Self> {
        // `{:.12}` prints the nearest decimal; parsing it keeps the arithmetic exact.
        if dollars.is_finite() { format!("{dollars:.12}").parse().ok() } else { None }
    }

    /// Is the amount zero?
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_picos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// The shortest exact decimal; with a precision, rounded to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let mut picos = self.0.unsigned_abs();
        let places = f.precision().unwrap_or(PLACES).min(PLACES);
        let cut = 10_u128.pow(u32::try_from(PLACES - places).unwrap_or(0));
        picos = (picos + cut / 2) / cut * cut;
        let unit = UNIT.unsigned_abs();
        let (whole, part) = (picos / unit, picos % unit);
        // Formatted by hand for speed: a head holds several amounts and is written at every append.
        let (mut digits, mut rest) = ([b'0'; PLACES], u64::try_from(part).unwrap_or(0));
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        let digits = std::str::from_utf8(&digits).unwrap_or_default();
        let digits = match f.precision() {
            Some(_) => &digits[..places],
            None => digits.trim_end_matches('0'),
        };
        let point = if digits.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{digits}")
    }
}

/// A text that is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount such as 1.25 (at most 12 decimal places)")]
pub struct NotMoney(pub String);

impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let refuse = || NotMoney(text.to_owned());
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let numeric = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !numeric(whole) || !numeric(part) || part.len() > PLACES {
            return Err(refuse());
        }
        let whole: i128 = whole.parse().map_err(|_| refuse())?;
        let part: i128 = format!("{part:0<PLACES$}").parse().map_err(|_| refuse())?;
        let picos = whole.checked_mul(UNIT).and_then(|w| w.checked_add(part)).ok_or_else(refuse)?;
        Ok(Self(if negative { -picos } else { picos }))
    }
}

as_text!(Money);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hundred_thousand_additions_do_not_drift() {
        let step: Money = "0.0000003".parse().unwrap();
        let total: Money = std::iter::repeat_n(step, 100_000).sum();
        assert_eq!(total, "0.03".parse().unwrap());
        // A float does drift, or this test would show nothing.
        let float: f64 = std::iter::repeat_n(0.000_000_3_f64, 100_000).sum();
        assert!(float.to_bits() != 0.03_f64.to_bits());
    }

    #[test]
    fn prices_per_million_tokens_are_exact() {
        let price: Money = "0.0375".parse().unwrap();
        assert_eq!(price.per_million(1).to_string(), "0.0000000375");
        assert_eq!(price.per_million(1_000_000), price);
    }

    #[test]
    fn an_amount_prints_shortest_or_rounded() {
        let amount: Money = "1.2305".parse().unwrap();
        assert_eq!(amount.to_string(), "1.2305");
        assert_eq!(format!("{amount:.2}"), "1.23");
        assert_eq!(format!("{amount:.3}"), "1.231");
        assert_eq!(format!("{:.4}", Money::ZERO), "0.0000");
        assert_eq!(format!("{:.2}", "0.999".parse::<Money>().unwrap()), "1.00");
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in ["", "-", ".", "1.", ".5", "1e3", "1,2", "0.0000000000001", "NaN", "+1"] {
            assert!(text.parse::<Money>().is_err(), "{text:?} was accepted");
        }
        assert_eq!(Money::from_f64(f64::NAN), None);
        assert_eq!(Money::from_f64(0.1 + 0.2).unwrap().to_string(), "0.3");
    }

    proptest! {
        #[test]
        fn text_round_trips(picos in prop_oneof![
            any::<i128>(), Just(i128::MIN), Just(i128::MAX), -1000_i128..1000,
        ]) {
            let amount = Money::from_picos(picos);
            prop_assert_eq!(amount.to_string().parse::<Money>().unwrap(), amount);
        }
    }
}
