//! How often a growing conversation is compacted: a simulation without a model.

use stepwell::Seq;
use stepwell::log::MessageOrigin;
use stepwell::model::Role;
use stepwell::work::Pins;
use stepwell_agent::context::plan::{Ask, Plan, Why};
use stepwell_agent::context::tokens::Calibration;
use stepwell_agent::context::window::Entry;
use stepwell_agent::context::{Context, Policy, Seen};

/// Tokens of the instructions and tools, of the original request, and of one step.
const FIXED: u64 = 2_500;
const TASK: u64 = 200;
const STEP: u64 = 450;

fn entry(seq: u64, made: MessageOrigin, role: Role, tokens: u64) -> Entry {
    let (seq, calls, answers) = (Seq::new(seq), 0, Vec::new());
    Entry { seq, place: seq, made, role, calls, answers, tokens }
}

/// How often a run of this many steps is compacted in a context of this many tokens, and the least
/// free context for the next answer.
fn compactions(steps: u64, length: u64) -> (u64, u64) {
    let context = Context { length: Some(length), ..Context::default() };
    let (policy, calibration) = (Policy::default(), Calibration::default());
    let seen = Seen { calibration, length: context.length };
    let room = context.room(&seen, FIXED, 8_192);
    let mut entries = vec![entry(1, MessageOrigin::Recorded, Role::User, TASK)];
    let (mut count, mut seq, mut free) = (0, 10, u64::MAX);
    for _ in 0..steps {
        let total = FIXED + entries.iter().map(|entry| entry.tokens).sum::<u64>();
        if total > room.limit {
            let (keep, why) = (policy.keeps(Why::Near, &calibration), Why::Near);
            let (pins, goal) = (Pins::default(), Some(Seq::new(1)));
            let ask = Ask { entries: &entries, systems: &[], goal, pins: &pins, room, keep, why };
            if let Some(plan) = Plan::of(&ask) {
                count += 1;
                let first = plan.covered[0];
                let mut n = 0;
                entries.retain(|_| {
                    n += 1;
                    !plan.covered.contains(&(n - 1))
                });
                let mut summary =
                    entry(plan.to.get(), MessageOrigin::Summary, Role::User, plan.room);
                summary.place = plan.to;
                entries.insert(first, summary);
                let after = FIXED + entries.iter().map(|entry| entry.tokens).sum::<u64>();
                assert!(after <= room.limit / 2 + STEP, "{after} of {}", room.limit);
            }
        }
        let total = FIXED + entries.iter().map(|entry| entry.tokens).sum::<u64>();
        free = free.min(length.saturating_sub(total));
        let mut call = entry(seq, MessageOrigin::Recorded, Role::Assistant, 50);
        call.calls = 1;
        let mut result = entry(seq, MessageOrigin::Results, Role::Tool, STEP - 50);
        result.answers = vec![Some(Seq::new(seq + 1))];
        entries.extend([call, result]);
        seq += 10;
    }
    (count, free)
}

#[test]
fn a_compaction_leaves_half_so_that_the_next_is_far_off() {
    // Each compaction frees about half of a limit that is half of the context.
    for (length, most) in [(24_000, 22), (32_000, 16), (128_000, 1), (200_000, 0)] {
        let (count, free) = compactions(300, length);
        assert!(count <= most, "{count} compactions in 300 steps at {length}");
        assert!(free > length / 8, "{free} of {length} are left");
    }
}
