//! The messages on the branch that is live while a journal is read.

use stepwell::Seq;

/// Every message that was told, and the one that it follows.
#[derive(Debug, Default)]
pub(crate) struct LiveMessages {
    /// In order of their places. The second is the index of the message before it.
    told: Vec<(Seq, Option<usize>)>,
    tip: Option<usize>,
}

impl LiveMessages {
    /// A message was told at a place.
    pub(crate) fn add(&mut self, place: Seq) {
        self.told.push((place, self.tip));
        self.tip = Some(self.told.len() - 1);
    }

    /// The conversation goes on from an earlier place.
    pub(crate) fn go_back(&mut self, to: Seq) {
        self.tip = self.told.partition_point(|(place, _)| *place <= to).checked_sub(1);
    }

    /// The messages on the branch, the last one first.
    pub(crate) fn back(&self) -> impl Iterator<Item = Seq> + '_ {
        let mut at = self.tip;
        std::iter::from_fn(move || {
            let (place, before) = *self.told.get(at?)?;
            at = before;
            Some(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_was_left_can_be_gone_back_to() {
        let mut live = LiveMessages::default();
        let places = |live: &LiveMessages| live.back().map(Seq::get).collect::<Vec<_>>();
        [2, 4, 6].into_iter().for_each(|place| live.add(Seq::new(place)));
        live.go_back(Seq::new(3));
        live.add(Seq::new(9));
        assert_eq!(places(&live), [9, 2]);
        live.go_back(Seq::new(7));
        assert_eq!(places(&live), [6, 4, 2]);
        live.go_back(Seq::FIRST);
        assert_eq!(places(&live), [] as [u64; 0]);
    }
}
