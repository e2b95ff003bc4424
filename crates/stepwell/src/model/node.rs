//! Keys of a flow's nodes, under which their results are recorded.

use std::fmt;
use std::str::FromStr;

use super::id::{InvalidName, MAX_NAME_BYTES};
use super::text::as_text;

/// The key of a node: unique in its session, and the same in every run of it. A node with a
/// recorded result never runs again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKey {
    /// `step/0`: a step of a chain.
    Step(u32),
    /// `router/1`: an attempt to choose a route.
    Router(u32),
    /// `review/1`: a person's review of a route, a plan or an evaluation.
    Review(u32),
    /// `route/billing/0`: a step of a route.
    Route(NodeId, u32),
    /// `branch/web/0`: a step of a branch.
    Branch(NodeId, u32),
    /// `reduce`: the node that merges branches or workers.
    Reduce,
    /// `task/fetch`: a task of a task graph.
    Task(NodeId),
    /// `produce`: the first draft.
    Produce,
    /// `evaluate/1`: the score of a draft.
    Evaluate(u32),
    /// `revise/1`: the draft after it.
    Revise(u32),
    /// `plan/1`: the plan for a round of workers.
    Plan(u32),
    /// `worker/1/0`: a worker of a round.
    Worker(u32, u32),
    /// `writeup`: the final text about the merged results.
    Writeup,
    /// `node/start/1`: a visit to a node of a graph.
    Visit(NodeId, u32),
    /// `phase/plan/1`: a visit to a phase of guided work.
    Phase(NodeId, u32),
    /// `work/approve/2`: a part of guided work, and the number of its repetition.
    Work(NodeId, u32),
    /// `attempt/3/1`: an attempt at a planned task.
    Attempt(NodeId, u32),
    /// `decide/3/1`: the decision about a planned task after a failed attempt.
    Decide(NodeId, u32),
    /// `check/2/0`: a check in a round of verification.
    Check(u32, u32),
}

/// The id of a flow's part, as its author wrote it: 1 to 63 bytes without a slash, so that a key
/// can be parsed, and short enough for two of them to name a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(String);

/// The longest id of a flow's part, in bytes.
pub const MAX_NODE_ID_BYTES: usize = 63;

// Two ids and a slash fit in a lane's name.
const _: () = assert!(2 * MAX_NODE_ID_BYTES < MAX_NAME_BYTES);

impl NodeId {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let refuse = |why| Err(InvalidName::new("name of a node", text, why));
        if text.is_empty() {
            refuse("it is empty")
        } else if text.len() > MAX_NODE_ID_BYTES {
            refuse("it is longer than 63 bytes")
        } else if text.chars().any(|c| c == '/' || c.is_whitespace() || c.is_control()) {
            refuse("it holds a slash, a space or a control character")
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(NodeId);

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Step(n) => format!("step/{n}"),
            Self::Router(n) => format!("router/{n}"),
            Self::Review(n) => format!("review/{n}"),
            Self::Route(id, n) => format!("route/{id}/{n}"),
            Self::Branch(id, n) => format!("branch/{id}/{n}"),
            Self::Reduce => "reduce".to_owned(),
            Self::Task(id) => format!("task/{id}"),
            Self::Produce => "produce".to_owned(),
            Self::Evaluate(n) => format!("evaluate/{n}"),
            Self::Revise(n) => format!("revise/{n}"),
            Self::Plan(n) => format!("plan/{n}"),
            Self::Worker(round, n) => format!("worker/{round}/{n}"),
            Self::Writeup => "writeup".to_owned(),
            Self::Visit(id, n) => format!("node/{id}/{n}"),
            Self::Phase(id, n) => format!("phase/{id}/{n}"),
            Self::Work(id, n) => format!("work/{id}/{n}"),
            Self::Attempt(id, n) => format!("attempt/{id}/{n}"),
            Self::Decide(id, n) => format!("decide/{id}/{n}"),
            Self::Check(round, n) => format!("check/{round}/{n}"),
        };
        f.pad(&text)
    }
}

impl FromStr for NodeKey {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let refuse = |why| InvalidName::new("key of a node", text, why);
        // Only the canonical spelling is accepted: a node has one key.
        let number = |n: &str| {
            let read = n.parse::<u32>().ok().filter(|read| read.to_string() == n);
            read.ok_or_else(|| refuse("expected a number"))
        };
        let parts: Vec<&str> = text.split('/').collect();
        Ok(match parts.as_slice() {
            ["reduce"] => Self::Reduce,
            ["produce"] => Self::Produce,
            ["writeup"] => Self::Writeup,
            ["step", n] => Self::Step(number(n)?),
            ["router", n] => Self::Router(number(n)?),
            ["review", n] => Self::Review(number(n)?),
            ["evaluate", n] => Self::Evaluate(number(n)?),
            ["revise", n] => Self::Revise(number(n)?),
            ["plan", n] => Self::Plan(number(n)?),
            ["task", id] => Self::Task(id.parse()?),
            ["route", id, n] => Self::Route(id.parse()?, number(n)?),
            ["branch", id, n] => Self::Branch(id.parse()?, number(n)?),
            ["worker", round, n] => Self::Worker(number(round)?, number(n)?),
            ["node", id, n] => Self::Visit(id.parse()?, number(n)?),
            ["phase", id, n] => Self::Phase(id.parse()?, number(n)?),
            ["work", id, n] => Self::Work(id.parse()?, number(n)?),
            ["attempt", id, n] => Self::Attempt(id.parse()?, number(n)?),
            ["decide", id, n] => Self::Decide(id.parse()?, number(n)?),
            ["check", round, n] => Self::Check(number(round)?, number(n)?),
            _ => return Err(refuse("no flow has such a node")),
        })
    }
}

as_text!(NodeKey);

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &[
        "step/0",
        "router/1",
        "review/1",
        "route/billing/0",
        "branch/web/12",
        "reduce",
        "task/fetch",
        "produce",
        "evaluate/1",
        "revise/1",
        "plan/1",
        "worker/1/0",
        "writeup",
        "node/start/1",
        "phase/plan/1",
        "work/approve/2",
        "attempt/fix-1-0/1",
        "decide/3/1",
        "check/2/0",
    ];

    #[test]
    fn every_key_reads_back_as_it_was_written() {
        for text in KEYS {
            let key: NodeKey = text.parse().unwrap();
            assert_eq!(key.to_string(), *text);
            assert_eq!(serde_json::to_value(&key).unwrap(), *text);
            assert_eq!(serde_json::from_value::<NodeKey>((*text).into()).unwrap(), key);
        }
    }

    #[test]
    fn a_key_has_one_spelling() {
        for wrong in ["", "step", "step/01", "step/+1", "step/-1", "step/0/", "task/a/b", "task/"] {
            assert!(wrong.parse::<NodeKey>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_would_make_a_key_ambiguous_is_refused() {
        for wrong in ["a/b", "", "a b", "a\n", &*"x".repeat(64)] {
            assert!(wrong.parse::<NodeId>().is_err(), "{wrong}");
        }
        assert!("écrire-2".parse::<NodeId>().is_ok());
    }
}
