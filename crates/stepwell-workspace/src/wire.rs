//! What programs get to read of worktrees and agents.

use stepwell_wire::{AgentError, AgentTurn, PhaseMove, Worktree};

use crate::lifecycle::{Agent, Passage, Turn};
use crate::worktrees::SubagentWorktree;

impl From<&SubagentWorktree> for Worktree {
    fn from(site: &SubagentWorktree) -> Self {
        let (head, state) = (site.session.as_ref().map(|it| &it.head), site.state.as_ref());
        Self {
            id: site.id.clone(),
            branch: site.worktree.branch.clone(),
            path: site.worktree.path.display().to_string(),
            state: state.ok().map(|it| it.state.into()),
            paths: state.map(|it| it.paths.clone()).unwrap_or_default(),
            commit: state.ok().and_then(|it| it.stray.clone()),
            error: state.err().cloned(),
            in_use: site.used_by.is_some(),
            used_by: site.used_by.as_ref().map(|it| it.id.clone()),
            status: head.map(|head| head.status),
            task: head.map(|head| head.task.clone()),
            parent: head.and_then(|head| head.origin.parent().cloned()),
        }
    }
}

impl From<Passage> for PhaseMove {
    fn from(passage: Passage) -> Self {
        let Passage { from_phase, to_phase, timestamp } = passage;
        Self { from_phase, to_phase, timestamp }
    }
}

impl From<Turn> for AgentTurn {
    fn from(turn: Turn) -> Self {
        let Turn { at, role, text } = turn;
        Self { at, role, text }
    }
}

impl From<Agent> for stepwell_wire::Agent {
    fn from(agent: Agent) -> Self {
        let Agent { head, history, finalized_at, summary } = agent;
        let last_error = head.last_error;
        Self {
            agent_id: head.id,
            agent_name: head.agent,
            purpose: head.task,
            created_at: head.created_at,
            last_updated: head.updated_at,
            phase: head.phase,
            status: head.status,
            metadata: head.metadata,
            resume_ready: head.ready,
            history: history.into_iter().map(PhaseMove::from).collect(),
            resumes: head.resumes,
            turns: head.messages,
            error_count: head.errors,
            last_error: last_error.map(|it| AgentError { message: it.message, timestamp: it.at }),
            finalized_at,
            summary,
            duration_seconds: finalized_at.map(|at| at.since(head.created_at).as_secs()),
        }
    }
}
