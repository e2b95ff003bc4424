//! Plans a compaction: from the sizes of the messages and the limits, selects a range of the log to
//! replace. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

use stepwell::log::MessageOrigin;
use stepwell::model::{Compacted, Role};
use stepwell::work::Pins;
use stepwell::{Lane, Seq};

use super::window::{Entry, Window};

/// Why the conversation should shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It approaches the context length.
    Near,
    /// It has too many messages.
    Long,
    /// The phase changed.
    Phase,
    /// The provider refused the request as too long.
    Refused,
    /// A person asked for it.
    Asked,
}

/// The available tokens, as counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Tokens beside the conversation: instructions and tools.
    pub fixed: u64,
    /// The conversation should stay below this.
    pub limit: u64,
    /// The most that fits.
    pub full: u64,
}

/// How much of the newest messages stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// At most this many tokens.
    pub tokens: u64,
    /// At most this many messages.
    pub messages: Option<usize>,
}

/// The input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The messages in the window.
    pub entries: &'a [Entry],
    /// The seqs of the standing instructions.
    pub systems: &'a [Seq],
    /// The message with the original request.
    pub goal: Option<Seq>,
    /// Messages that the user pinned.
    pub pins: &'a Pins,
    /// The available tokens.
    pub room: Room,
    /// How much of the newest messages stays.
    pub keep: Keep,
    /// Why the conversation has to shrink.
    pub why: Why,
}

/// The messages to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first seq of the range.
    pub from: Seq,
    /// The last seq of the range.
    pub to: Seq,
    /// Messages in the range that stay.
    pub pinned: Vec<Seq>,
    /// The indexes of the window's messages that go.
    pub covered: Vec<usize>,
    /// Tokens before the compaction, with instructions and tools.
    pub before: u64,
    /// Tokens of the messages that go.
    pub taken: u64,
    /// The most tokens of the summary.
    pub room: u64,
    /// Tokens that are free beside the messages that stay.
    pub left: u64,
}

/// Below this room a summary is useless.
const LEAST_SUMMARY: u64 = 120;

/// The most tokens of a summary.
const MOST_SUMMARY: u64 = 4_096;

/// A summary gets at most one part in this many of the limit.
const SUMMARY_SHARE: u64 = 8;

/// A compaction before the context is full must free at least one part in this many of the limit.
/// Each one costs a call, and there is still room above the limit.
const LEAST_GAIN: u64 = 4;

/// A compaction leaves at most one part in this many of the limit. Leaving less would lose more
/// than needed; leaving more would fill up again after a few steps.
const LEAVES: u64 = 2;

impl Plan {
    /// The messages to replace; `None` if a compaction is not worth it.
    #[must_use]
    pub fn of(ask: &Ask<'_>) -> Option<Self> {
        let units = units(ask);
        let total = ask.room.fixed + sum(&units, |_| true);
        let ask = &ask.tightened(total, sum(&units, |unit| !unit.protected));
        let kept = kept(&units, ask);
        let plan = Self::covering(&units, &kept, ask);
        // Summarising only a summary gains nothing.
        let goes = units.iter().zip(&kept).filter(|(unit, kept)| !**kept && !unit.summary);
        let fresh: u64 = goes.map(|(unit, _)| unit.tokens).sum();
        let worth = match ask.why {
            Why::Near => total > ask.room.full || fresh >= ask.room.limit / LEAST_GAIN,
            Why::Phase => fresh >= ask.keep.tokens,
            Why::Long | Why::Refused | Why::Asked => true,
        };
        if worth && fresh > 0 {
            return plan;
        }
        // Nothing else can go, so messages that should have stayed go too.
        let full = total > ask.room.full || ask.why == Why::Refused;
        let only: Vec<bool> = units.iter().map(|unit| unit.protected).collect();
        if full { Self::covering(&units, &only, ask) } else { None }
    }

    /// The event of this plan, without a summary.
    #[must_use]
    pub fn event(&self, lane: Lane) -> Compacted {
        Compacted { pinned: self.pinned.clone(), ..Compacted::new(lane, self.from, self.to) }
    }

    /// The plan that replaces all units but these.
    fn covering(units: &[Unit], kept: &[bool], ask: &Ask<'_>) -> Option<Self> {
        let of = |keeps: bool| {
            units.iter().zip(kept).filter(move |(_, kept)| **kept == keeps).map(|(unit, _)| unit)
        };
        let from = of(false).map(|unit| unit.place).min()?;
        let last = of(false).map(|unit| unit.place).max()?;
        // Results may be recorded after the last covered seq. They go too, unless a message that
        // stays lies between.
        let stays = of(true).map(|unit| unit.place).chain(ask.systems.iter().copied());
        let next = stays.filter(|place| *place > last).min();
        let came = of(false).flat_map(|unit| unit.seqs.iter().copied()).max().unwrap_or(last);
        let to = last.max(next.map_or(came, |next| came.min(next.prev())));
        let range = from..=to;
        let mut pinned: Vec<Seq> = of(true)
            .flat_map(|unit| unit.seqs.iter().copied())
            .chain(ask.systems.iter().copied())
            .filter(|seq| range.contains(seq))
            .collect();
        pinned.sort_unstable();
        pinned.dedup();
        let covered: Vec<usize> = of(false).flat_map(|unit| unit.range.clone()).collect();
        let taken = of(false).map(|unit| unit.tokens).sum();
        let stays: u64 = ask.room.fixed + of(true).map(|unit| unit.tokens).sum::<u64>();
        let (before, left) = (stays + taken, ask.room.full.saturating_sub(stays));
        let room = summary_room(&ask.room).min(left).min(taken);
        let room =
            if room < LEAST_SUMMARY || of(false).all(|unit| unit.summary) { 0 } else { room };
        Some(Self { from, to, pinned, covered, before, taken, room, left })
    }
}

fn sum(units: &[Unit], which: fn(&Unit) -> bool) -> u64 {
    units.iter().filter(|unit| which(unit)).map(|unit| unit.tokens).sum()
}

fn summary_room(room: &Room) -> u64 {
    (room.limit / SUMMARY_SHARE).clamp(LEAST_SUMMARY, MOST_SUMMARY)
}

/// Messages that must go or stay together: a single message, or calls with their results.
struct Unit {
    range: Range<usize>,
    place: Seq,
    /// The seqs of its messages.
    seqs: Vec<Seq>,
    tokens: u64,
    protected: bool,
    /// The number of its calls without a recorded result.
    open: usize,
    summary: bool,
}

fn units(ask: &Ask<'_>) -> Vec<Unit> {
    let request =
        |entry: &&Entry| entry.made == MessageOrigin::Recorded && entry.role == Role::User;
    let latest = ask.entries.iter().rev().find(request).map(|entry| entry.seq);
    let mut units: Vec<Unit> = Vec::with_capacity(ask.entries.len());
    for (n, entry) in ask.entries.iter().enumerate() {
        let named =
            |seq: Seq| ask.pins.contains(seq) || ask.goal == Some(seq) || latest == Some(seq);
        if let (MessageOrigin::Results, Some(unit)) = (entry.made, units.last_mut()) {
            unit.range.end = n + 1;
            unit.tokens += entry.tokens;
            unit.seqs.extend(entry.answers.iter().flatten());
            unit.open = unit.open.saturating_sub(entry.answers.iter().flatten().count());
            // A pinned part protects the whole unit.
            unit.protected |= entry.answers.iter().flatten().any(|seq| named(*seq));
            continue;
        }
        let summary = entry.made == MessageOrigin::Summary;
        units.push(Unit {
            range: n..n + 1,
            place: entry.place,
            seqs: if summary { Vec::new() } else { vec![entry.seq] },
            tokens: entry.tokens,
            protected: !summary && named(entry.seq),
            open: entry.calls,
            summary,
        });
    }
    // A call without a known result stays. So does everything else in a message that holds a
    // result, because the log can only drop whole messages.
    let mut tied: BTreeSet<Seq> = BTreeSet::new();
    for unit in &mut units {
        let own = ask.entries[unit.range.start].seq;
        unit.protected |= unit.open > 0 || (!unit.summary && tied.contains(&own));
        if unit.protected {
            tied.extend(&unit.seqs);
        }
    }
    units
}

/// Which units stay: the protected ones, and as many of the newest as `keep` allows and fit.
fn kept(units: &[Unit], ask: &Ask<'_>) -> Vec<bool> {
    let mut kept: Vec<bool> = units.iter().map(|unit| unit.protected).collect();
    let protected = ask.room.fixed + sum(units, |unit| unit.protected);
    let room = summary_room(&ask.room);
    let most = match ask.why {
        // The limit is a number of messages, whatever their size.
        Why::Long => ask.room.limit,
        _ => ask.room.limit / LEAVES,
    };
    let (mut tokens, mut messages) = (0_u64, 0);
    for (n, unit) in units.iter().enumerate().rev() {
        messages += unit.range.len();
        if unit.summary || ask.keep.messages.is_some_and(|most| messages > most) {
            break;
        }
        if unit.protected {
            continue;
        }
        let fits = |most: u64| protected + tokens + unit.tokens + room <= most;
        // The model has not read the newest unit yet, so it stays if it fits at all.
        let newest = n + 1 == units.len() && fits(ask.room.full);
        if !(newest || tokens + unit.tokens <= ask.keep.tokens && fits(most)) {
            break;
        }
        tokens += unit.tokens;
        kept[n] = true;
    }
    kept
}

impl<'a> Ask<'a> {
    /// The input of a plan for a window.
    #[must_use]
    pub fn new(window: &'a Window, pins: &'a Pins, room: Room, keep: Keep, why: Why) -> Self {
        let (entries, systems) = (window.entries(), window.systems());
        Self { entries, systems, goal: window.first_request(), pins, room, keep, why }
    }

    /// After a refusal the conversation must become smaller than it is now, because our count is
    /// lower than the provider's.
    fn tightened(mut self, total: u64, free: u64) -> Self {
        if self.why == Why::Refused {
            self.room.limit = self.room.limit.min(total / 4 * 3);
            self.room.full = self.room.full.min(total / 10 * 9);
            self.keep.tokens = self.keep.tokens.min(free / 2);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation written as letters with tokens: `u`ser, `a`gent, `c`all with its result,
    /// `o`pen call, `s`ummary. Seqs count by ten; a result directly follows its call.
    fn entries(told: &[(char, u64)]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (n, (who, tokens)) in (1..).zip(told) {
            let (seq, tokens) = (Seq::new(n * 10), *tokens);
            let entry = |made, role, answers, tokens| Entry {
                seq,
                place: seq,
                made,
                role,
                calls: 0,
                answers,
                tokens,
            };
            let call =
                || Entry { calls: 1, ..entry(MessageOrigin::Recorded, Role::Assistant, vec![], 0) };
            let result = |by| entry(MessageOrigin::Results, Role::Tool, vec![by], tokens);
            match who {
                'u' => entries.push(entry(MessageOrigin::Recorded, Role::User, vec![], tokens)),
                'a' => {
                    entries.push(entry(MessageOrigin::Recorded, Role::Assistant, vec![], tokens));
                }
                's' => entries.push(entry(MessageOrigin::Summary, Role::User, vec![], tokens)),
                'c' => entries.extend([call(), result(Some(Seq::new(n * 10 + 3)))]),
                _ => entries.extend([call(), result(None)]),
            }
        }
        entries
    }

    const ROOM: Room = Room { fixed: 100, limit: 10_000, full: 20_000 };

    fn planned(told: &[(char, u64)], why: Why, pins: &[u64]) -> Option<Plan> {
        planned_in(ROOM, Keep { tokens: 2_000, messages: None }, told, why, pins)
    }

    fn planned_in(
        room: Room,
        keep: Keep,
        told: &[(char, u64)],
        why: Why,
        pins: &[u64],
    ) -> Option<Plan> {
        let entries = entries(told);
        let pins: Pins = pins.iter().copied().map(Seq::new).collect();
        let goal = Some(Seq::new(10));
        let (entries, systems) = (entries.as_slice(), [Seq::new(2), Seq::new(25)]);
        Plan::of(&Ask { entries, systems: &systems, goal, pins: &pins, room, keep, why })
    }

    fn numbers(seqs: &[Seq]) -> Vec<u64> {
        seqs.iter().map(|seq| seq.get()).collect()
    }

    #[test]
    fn what_is_old_goes_in_whole_steps_and_what_is_new_or_protected_stays() {
        let told = [
            ('u', 50),
            ('c', 3_000),
            ('c', 3_000),
            ('c', 3_000),
            ('u', 50),
            ('c', 900),
            ('c', 900),
        ];
        let plan = planned(&told, Why::Near, &[]).unwrap();
        // The original request at 10 lies before the range, the instructions at 25 lie within it.
        assert_eq!((plan.from.get(), plan.to.get()), (20, 43));
        assert_eq!(numbers(&plan.pinned), [25]);
        assert_eq!(plan.covered, [1, 2, 3, 4, 5, 6]);
        assert_eq!((plan.before, plan.taken), (11_000, 9_000));
        assert_eq!(plan.room, 1_250);
    }

    #[test]
    fn a_pinned_call_stays_with_its_result_and_a_pinned_result_with_its_call() {
        let told = [('u', 50), ('c', 3_000), ('c', 3_000), ('c', 3_000), ('u', 50), ('c', 900)];
        for pin in [30, 33] {
            let plan = planned(&told, Why::Asked, &[pin]).unwrap();
            assert_eq!(numbers(&plan.pinned), [25, 30, 33], "{pin}");
            assert_eq!(plan.covered, [1, 2, 5, 6], "{pin}");
        }
    }

    #[test]
    fn an_unanswered_call_and_the_latest_request_stay_wherever_they_are() {
        let told = [('u', 50), ('o', 500), ('u', 3_000), ('c', 5_000), ('c', 5_000)];
        let plan = planned(&told, Why::Near, &[]).unwrap();
        // The newest stays, because the model has not read it.
        assert_eq!(plan.covered, [4, 5]);
        assert_eq!((plan.from.get(), plan.to.get()), (40, 43));
        assert!(plan.pinned.is_empty());
    }

    #[test]
    fn the_newest_goes_too_if_it_does_not_fit_at_all() {
        let plan = planned(&[('u', 50), ('c', 25_000)], Why::Near, &[]).unwrap();
        assert_eq!(plan.covered, [1, 2]);
        assert_eq!(planned(&[('u', 50), ('c', 15_000)], Why::Near, &[]), None);
    }

    #[test]
    fn an_earlier_summary_goes_into_the_next_one_and_never_alone() {
        let told = [('u', 50), ('s', 900), ('c', 3_000), ('c', 6_000), ('c', 900)];
        assert_eq!(planned(&told, Why::Near, &[]).unwrap().covered, [1, 2, 3, 4, 5]);
        for why in [Why::Near, Why::Asked, Why::Phase] {
            assert_eq!(planned(&[('u', 9_900), ('s', 900), ('c', 900)], why, &[]), None);
        }
    }

    #[test]
    fn a_compaction_near_the_limit_frees_enough_to_be_worth_its_call() {
        let told = [('u', 8_000), ('c', 900), ('c', 1_500)];
        assert_eq!(planned(&told, Why::Near, &[]), None);
        assert!(planned(&told, Why::Asked, &[]).is_some());
        let phase = [('u', 50), ('c', 1_900), ('c', 1_900)];
        assert_eq!(planned(&phase, Why::Phase, &[]), None);
        let phase = [('u', 50), ('c', 2_100), ('c', 1_900)];
        assert!(planned(&phase, Why::Phase, &[]).is_some());
    }

    #[test]
    fn what_was_refused_shrinks_until_only_protected_items_are_left() {
        let told = [('u', 50), ('c', 300), ('c', 300)];
        assert_eq!(planned(&told, Why::Refused, &[]).unwrap().covered, [1, 2]);
        let told = [('u', 50), ('s', 100), ('c', 300)];
        assert_eq!(planned(&told, Why::Refused, &[]).unwrap().covered, [1, 2, 3]);
        let plan = planned(&[('u', 50), ('s', 100)], Why::Refused, &[]).unwrap();
        assert_eq!((plan.covered, plan.room), (vec![1], 0));
        assert_eq!(planned(&[('u', 50)], Why::Refused, &[]), None);
        assert_eq!(planned(&[('u', 50), ('c', 300)], Why::Refused, &[20]), None);
    }

    #[test]
    fn truncation_keeps_so_many_messages_and_no_half_step() {
        let told: Vec<_> = std::iter::once(('u', 50)).chain([('c', 10); 10]).collect();
        let keep = |messages| Keep { tokens: u64::MAX, messages: Some(messages) };
        let plan = planned_in(ROOM, keep(6), &told, Why::Long, &[]).unwrap();
        assert_eq!(plan.covered, (1..15).collect::<Vec<_>>());
        // A step of two messages does not fit in the one that is left.
        let plan = planned_in(ROOM, keep(7), &told, Why::Long, &[]).unwrap();
        assert_eq!(plan.covered, (1..15).collect::<Vec<_>>());
        assert_eq!(planned_in(ROOM, keep(21), &told, Why::Long, &[]), None);
    }

    #[test]
    fn a_result_that_came_late_does_not_take_what_stays_along() {
        // The result of the call at 20 was recorded after the request at 30.
        let mut entries = entries(&[('u', 50), ('c', 5_000), ('u', 50)]);
        entries[2].answers = vec![Some(Seq::new(35))];
        let (pins, goal) = (Pins::default(), Some(Seq::new(10)));
        let keep = Keep { tokens: 10, messages: None };
        let (why, room) = (Why::Asked, ROOM);
        let ask = Ask { entries: &entries, systems: &[], goal, pins: &pins, room, keep, why };
        let plan = Plan::of(&ask).unwrap();
        assert_eq!((plan.from.get(), plan.to.get()), (20, 29));
        assert!(plan.pinned.is_empty());
    }
}
