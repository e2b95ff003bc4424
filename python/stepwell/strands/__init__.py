"""Strands on Stepwell.

from stepwell.strands import StepwellSessionManager, StepwellStorage

Agent(session_manager=StepwellSessionManager("s1", ".stepwell"))
Agent(session_manager=SnapshotSessionManager("s1", storage=StepwellStorage(".stepwell")))
"""

from stepwell._names import presented
from stepwell.strands._messages import from_messages, to_message
from stepwell.strands._repository import StepwellRepository, StepwellSessionManager
from stepwell.strands._storage import StepwellStorage

__all__ = [
    "StepwellRepository",
    "StepwellSessionManager",
    "StepwellStorage",
    "from_messages",
    "to_message",
]

presented(globals(), __all__)
