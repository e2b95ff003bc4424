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

from typing import TYPE_CHECKING

from stepwell._agents import AgentSession, ResumeDecision
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

if TYPE_CHECKING:
    from stepwell._async import AsyncAgentSession, AsyncSession, AsyncWell, aopen

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


def __getattr__(name: str) -> object:
    # asyncio takes as long to import as all the rest: only a program that uses it does.
    if name in ("AsyncAgentSession", "AsyncSession", "AsyncWell", "aopen"):
        from stepwell import _async

        return getattr(_async, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
