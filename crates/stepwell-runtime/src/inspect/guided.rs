//! How far guided work is, from what its nodes came to.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde_json::Value;
use stepwell::log::{Head, Timeline};
use stepwell::model::{Kind, Node, NodeKey, NodeState, TaskStatus};
use stepwell::store::Excerpt;
use stepwell::work::Tasks;
use stepwell::{Event, Recorded, Stepwell};
use stepwell_flow::Stored;
use stepwell_flow::guided::{ROUNDS, Review, is_over};
use stepwell_flow::spec::Pattern;
use stepwell_wire::{CheckResult, GuidedInfo, ReviewResult, TaskAtWork, VerificationRound};

use crate::error::Result;

/// What is read of a session.
const KINDS: [Kind; 4] = [Kind::Node, Kind::Checkpoint, Kind::Rewound, Kind::Undone];

/// How far the guided work of a session is; nothing, if it does other work.
pub(super) fn guided_info(
    well: &Stepwell,
    head: &Head,
    tasks: &Tasks,
) -> Result<Option<GuidedInfo>> {
    if !is_guided(head) {
        return Ok(None);
    }
    let wanted = Excerpt { keyed: &KINDS, last: &[] };
    let found = well.store().excerpts(std::slice::from_ref(&head.id), &wanted)?;
    let events = found.into_iter().flatten().next().unwrap_or_default();
    let timeline = Timeline::at(head.seq, events.iter());
    let events: Vec<&Recorded> =
        events.iter().filter(|event| timeline.contains(event.seq)).collect();
    let stored = Stored::after(events.iter().map(|event| &event.event));
    let rounds = stored.and_then(|stored| rounds(&stored)).unwrap_or(ROUNDS);
    let nodes = Nodes::of(events.iter().map(|event| &event.event));
    Ok(Some(nodes.info(tasks, rounds)))
}

/// Whether a session does guided work.
pub(super) fn is_guided(head: &Head) -> bool {
    head.flow.as_ref().is_some_and(|flow| flow.pattern == "guided")
}

/// How many rounds of verification there are before the work stops.
fn rounds(stored: &Stored) -> Option<u32> {
    match stored.read().ok()?.spec.pattern {
        Pattern::Guided(config) => config.rounds.map(NonZeroU32::get),
        _ => None,
    }
}

/// Nodes of guided work, with what each came to.
#[derive(Default)]
struct Nodes<'a>(BTreeMap<NodeKey, Option<&'a Value>>);

impl<'a> Nodes<'a> {
    fn of(events: impl Iterator<Item = &'a Event>) -> Self {
        let mut nodes = Self::default();
        for event in events {
            let Event::Node(Node { key, state, output, .. }) = event else { continue };
            let Ok(key) = key.parse::<NodeKey>() else { continue };
            match state {
                // Discarded: it starts over.
                NodeState::Skipped => drop(nodes.0.remove(&key)),
                _ => drop(nodes.0.insert(key, output.as_ref())),
            }
        }
        nodes
    }

    fn info(&self, tasks: &Tasks, rounds: u32) -> GuidedInfo {
        let drafts = self.0.keys().filter(|key| is_part(key, "plan").is_some()).count();
        let at_work = tasks.iter().zip(1..).filter(|(task, _)| !is_over(task.status));
        let at_work = at_work.filter_map(|(task, number)| {
            let attempts = self.0.keys().filter_map(|key| match key {
                NodeKey::Attempt(id, n) if id.as_str() == task.id => Some(*n),
                _ => None,
            });
            // A task that the user opened again has attempts too.
            let attempt = attempts.max().filter(|_| task.status != TaskStatus::Pending)?;
            Some(TaskAtWork { id: task.id.clone(), number, attempt })
        });
        let at_work = at_work.collect();
        GuidedInfo {
            drafts: u32::try_from(drafts).unwrap_or(u32::MAX),
            at_work,
            verification: self.verification(rounds),
            commit: self.output("commit", 1).map(|commit| text(commit, "response")),
        }
    }

    fn verification(&self, rounds: u32) -> Option<VerificationRound> {
        let visits = self.0.keys().filter_map(|key| match key {
            NodeKey::Phase(phase, n) if phase.as_str() == "verify" => Some(*n),
            _ => None,
        });
        let round = visits.max()?;
        let checks = self.0.iter().filter_map(|(key, output)| match key {
            NodeKey::Check(of, _) if *of == round => output.map(check),
            _ => None,
        });
        let review = self.output("review", round).map(|output| {
            let Review { issues, summary } = Review::of_output(output);
            ReviewResult { issues: issues.len(), summary }
        });
        let repairs = self.output("repairs", round).map(|output| text(output, "response"));
        let repairs = repairs.unwrap_or_default();
        let repairs = repairs.split(", ").filter(|id| !id.is_empty()).map(str::to_owned);
        Some(VerificationRound {
            round,
            most: round.div_ceil(rounds).saturating_mul(rounds),
            checks: checks.collect(),
            review,
            program: self.output("runtime", round).map(check),
            repairs: repairs.collect(),
        })
    }

    /// What a part came to.
    fn output(&self, part: &str, n: u32) -> Option<&'a Value> {
        let its = |(key, _): &(&NodeKey, &Option<&'a Value>)| is_part(key, part) == Some(n);
        self.0.iter().find(its).and_then(|(_, output)| *output)
    }
}

/// Which time a part was done, if a node is that part.
fn is_part(key: &NodeKey, part: &str) -> Option<u32> {
    match key {
        NodeKey::Work(name, n) if name.as_str() == part => Some(*n),
        _ => None,
    }
}

fn check(output: &Value) -> CheckResult {
    CheckResult { command: text(output, "command"), outcome: text(output, "outcome") }
}

fn text(output: &Value, key: &str) -> String {
    output.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stepwell::model::Task;

    use super::*;

    fn node(key: &str, output: Value) -> Event {
        let (state, output) = (NodeState::Done, Some(output));
        Node { key: key.to_owned(), state, output, usage: None, error: None }.into()
    }

    #[test]
    fn a_second_round_with_a_task_at_work_is_told() {
        let began = Node {
            key: "attempt/2/2".to_owned(),
            state: NodeState::Started,
            output: None,
            usage: None,
            error: None,
        };
        let failed = json!({ "command": "make", "outcome": "failed", "response": "no rule" });
        let events = [
            node("work/plan/1", json!({})),
            node("work/plan/2", json!({})),
            node("phase/verify/1", json!({})),
            node("check/1/0", json!({ "command": "make", "outcome": "done" })),
            node("phase/verify/2", json!({})),
            node("check/2/0", failed),
            node("work/review/2", json!({ "response": "hm", "issues": [{ "description": "x" }] })),
            node("work/repairs/2", json!({ "response": "fix-2-1, fix-2-2" })),
            node("attempt/1/1", json!({ "status": "done" })),
            node("attempt/2/1", json!({ "status": "failed" })),
            began.into(),
        ];
        let task = |id: &str, status| Task { id: id.to_owned(), status, ..Task::default() };
        let tasks: Tasks = [
            task("1", TaskStatus::Done),
            task("2", TaskStatus::Running),
            task("3", TaskStatus::Pending),
        ]
        .into_iter()
        .collect();
        let info = Nodes::of(events.iter()).info(&tasks, 3);
        assert_eq!((info.drafts, info.commit), (2, None));
        let at_work = TaskAtWork { id: "2".to_owned(), number: 2, attempt: 2 };
        assert_eq!(info.at_work, [at_work]);
        let failed = CheckResult { command: "make".to_owned(), outcome: "failed".to_owned() };
        let review = ReviewResult { issues: 1, summary: "hm".to_owned() };
        let expected = VerificationRound {
            round: 2,
            most: 3,
            checks: vec![failed],
            review: Some(review),
            program: None,
            repairs: vec!["fix-2-1".to_owned(), "fix-2-2".to_owned()],
        };
        assert_eq!(info.verification, Some(expected));
        // After a resume there are as many rounds again.
        let fourth = [node("phase/verify/4", json!({}))];
        let fourth = Nodes::of(fourth.iter()).info(&tasks, 3).verification.unwrap();
        assert_eq!((fourth.round, fourth.most), (4, 6));
    }
}
