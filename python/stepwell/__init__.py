"""Durable sessions for AI agents, in one store for every framework.

    import stepwell

    with stepwell.open(".stepwell") as well:
        session = well.create("fix the login")
        session.append(stepwell.Message.user("fix the login"))
        for message in session.messages():
            print(message.role, message.text)

Adapters are modules of their own and import their framework only when they are used:
`stepwell.langgraph`, `stepwell.openai`, `stepwell.claude`, `stepwell.strands`,
`stepwell.adk`, `stepwell.pydantic_ai`, `stepwell.agent_framework`.
"""

from stepwell._agents import AgentSession, ResumeDecision
from stepwell._async import AsyncAgentSession, AsyncSession, AsyncWell, aopen
from stepwell._core import __version__
from stepwell._types import Event, Hit, Message, SessionInfo, Status, StopReason, Verdict
from stepwell._well import Session, Well, memory, open
from stepwell.errors import (
    AbsentError,
    BusyError,
    ConflictError,
    DamagedError,
    DeniedError,
    FencedError,
    FullError,
    IncompatibleError,
    InvalidError,
    StepwellError,
    StorageError,
)

__all__ = [
    "AbsentError",
    "AgentSession",
    "AsyncAgentSession",
    "AsyncSession",
    "AsyncWell",
    "BusyError",
    "ConflictError",
    "DamagedError",
    "DeniedError",
    "Event",
    "FencedError",
    "FullError",
    "Hit",
    "IncompatibleError",
    "InvalidError",
    "Message",
    "ResumeDecision",
    "Session",
    "SessionInfo",
    "Status",
    "StepwellError",
    "StopReason",
    "StorageError",
    "Verdict",
    "Well",
    "__version__",
    "aopen",
    "memory",
    "open",
]
