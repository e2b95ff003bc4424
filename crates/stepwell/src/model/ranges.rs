//! Compact sets of seqs.

use serde::{Deserialize, Serialize};

use super::position::Seq;

/// Seqs as ranges, both ends included: `[[2,40],[44,44]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SeqRanges(Vec<(Seq, Seq)>);

impl SeqRanges {
    /// Is the set empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many seqs it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(first, last)| (last.get() + 1).saturating_sub(first.get())).sum()
    }

    /// Does it hold this seq?
    #[must_use]
    pub fn contains(&self, seq: Seq) -> bool {
        // No binary search: another program may have written the ranges in any order.
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// The ranges, each with its first and last.
    pub fn iter(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        self.0.iter().copied()
    }

    /// The largest seq.
    #[must_use]
    pub fn last(&self) -> Option<Seq> {
        self.0.iter().map(|(_, last)| *last).max()
    }

    /// The smallest seq.
    #[must_use]
    pub fn first(&self) -> Option<Seq> {
        self.0.iter().map(|(first, _)| *first).min()
    }
}

impl FromIterator<Seq> for SeqRanges {
    fn from_iter<I: IntoIterator<Item = Seq>>(seqs: I) -> Self {
        let mut seqs: Vec<Seq> = seqs.into_iter().collect();
        seqs.sort_unstable();
        seqs.dedup();
        let mut ranges: Vec<(Seq, Seq)> = Vec::new();
        for seq in seqs {
            match ranges.last_mut() {
                Some((_, last)) if last.next() == seq => *last = seq,
                _ => ranges.push((seq, seq)),
            }
        }
        Self(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seqs_become_ranges_whatever_their_order() {
        let ranges: SeqRanges = [7, 3, 2, 9, 8, 3].map(Seq::new).into_iter().collect();
        assert_eq!(serde_json::to_string(&ranges).unwrap(), "[[2,3],[7,9]]");
        assert_eq!((ranges.count(), ranges.last()), (5, Some(Seq::new(9))));
        for n in 0..12 {
            assert_eq!(ranges.contains(Seq::new(n)), [2, 3, 7, 8, 9].contains(&n), "{n}");
        }
        assert!(SeqRanges::default().is_empty());
    }
}
