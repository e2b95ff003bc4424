"""Agents that report the phases of their work: created, updated, resumed, finalized."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stepwell._well import Session, dumps
from stepwell.types import JsonObject, ResumeDecision

RESUME_TIMEOUT = 30 * 60.0
"""How many seconds ago an agent's last activity may be, if nobody says otherwise."""

MAX_ERRORS = 3
"""How many errors are too many to resume."""


class AgentSession(Session):
    """The session of an agent that Stepwell does not run.

    Its phases are initializing, investigating, planning, approval, executing and validating; it
    ends as completed, failed or abandoned.
    """

    def state(self) -> JsonObject:
        """How it stands: phase, metadata, history, errors, and when it ended."""
        state: JsonObject = json.loads(self.well.core.agent_state(self.id))
        return state

    def phases(self) -> list[JsonObject]:
        """Every move from phase to phase: `from_phase`, `to_phase`, `timestamp`."""
        return list(self.state()["history"])

    def update(
        self,
        *,
        phase: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        goal: str | None = None,
        error: str | None = None,
        ready: bool | None = None,
    ) -> None:
        """Records what the agent says of itself, all or none. Metadata is merged; None forgets a
        key. `ready` overrides what the phase says about resuming."""
        given = {
            "phase": phase,
            "metadata": dict(metadata or {}),
            "goal": goal,
            "error": error,
            "ready": ready,
        }
        self.well.core.agent_update(self.id, dumps(given))

    def should_resume(
        self, *, timeout: float = RESUME_TIMEOUT, max_errors: int = MAX_ERRORS
    ) -> ResumeDecision:
        """Whether it can be resumed now: ready, in a phase that can be, active within `timeout`
        seconds, and with fewer than `max_errors` errors."""
        decided = json.loads(self.well.core.resume_decision(self.id, timeout, max_errors))
        return ResumeDecision(**decided)

    def turns(self, last: int = 5) -> list[JsonObject]:
        """The last turns of its conversation, oldest first: `at`, `role`, `text`."""
        return list(json.loads(self.well.core.agent_turns(self.id, last)))

    def resume_metadata(self, *, turns: int = 5) -> JsonObject:
        """What an agent needs to go on: where it was, what it remembers, and its last turns."""
        state = self.state()
        return {
            "previous_phase": state["phase"],
            "created_at": state["created_at"],
            "last_updated": state["last_updated"],
            "history": state["history"],
            "session_metadata": state["metadata"],
            "turns": self.turns(turns),
        }

    def finalize(
        self, outcome: str, *, summary: str | None = None, error: str | None = None
    ) -> bool:
        """Ends it as `completed`, `failed` or `abandoned`. False if it had ended so before; to end
        it in another way is an `InvalidError`."""
        given = {"summary": summary, "error": error}
        return self.well.core.agent_finalize(self.id, outcome, dumps(given))
