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

from stepwell._agents import AgentSession
from stepwell._core import __version__
from stepwell._names import presented
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
    NothingNewWarning,
    StepwellError,
    StorageError,
)
from stepwell.types import (
    Continued,
    Event,
    Hit,
    Message,
    ResumeDecision,
    SessionInfo,
    SessionQuery,
    Status,
    StopReason,
    ToolCall,
    ToolResult,
    Verdict,
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
    "Continued",
    "DamagedError",
    "DeniedError",
    "Event",
    "FencedError",
    "FullError",
    "Hit",
    "IncompatibleError",
    "InvalidError",
    "Message",
    "NothingNewWarning",
    "ResumeDecision",
    "Session",
    "SessionInfo",
    "SessionQuery",
    "Status",
    "StepwellError",
    "StopReason",
    "StorageError",
    "ToolCall",
    "ToolResult",
    "Verdict",
    "Well",
    "__version__",
    "aopen",
    "memory",
    "open",
]


_LATER = ("AsyncAgentSession", "AsyncSession", "AsyncWell", "aopen")

presented(globals(), [name for name in __all__ if name not in _LATER])


def __getattr__(name: str) -> object:
    # asyncio takes as long to import as all the rest: only a program that uses it does.
    if name in _LATER:
        from stepwell import _async

        globals().update({it: getattr(_async, it) for it in _LATER})
        presented(globals(), _LATER)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
