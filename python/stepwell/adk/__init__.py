"""Google's Agent Development Kit on Stepwell.

from stepwell.adk import StepwellSessionService

Runner(agent=agent, app_name="app", session_service=StepwellSessionService(".stepwell"))
"""

from stepwell._names import presented
from stepwell.adk._artifacts import StepwellArtifactService
from stepwell.adk._events import to_message
from stepwell.adk._memory import StepwellMemoryService
from stepwell.adk._moving import copy_sessions
from stepwell.adk._sessions import StepwellSessionService

__all__ = [
    "StepwellArtifactService",
    "StepwellMemoryService",
    "StepwellSessionService",
    "copy_sessions",
    "to_message",
]

presented(globals(), __all__)
