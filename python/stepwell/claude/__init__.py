"""The Claude Agent SDK on Stepwell.

from stepwell.claude import StepwellSessionStore

options = ClaudeAgentOptions(session_store=StepwellSessionStore(".stepwell"))
"""

from stepwell._names import presented
from stepwell.claude._entries import to_message
from stepwell.claude._store import StepwellSessionStore

__all__ = ["StepwellSessionStore", "to_message"]

presented(globals(), __all__)
