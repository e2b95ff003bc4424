"""OpenAI Agents on Stepwell.

from stepwell.openai import StepwellSession

await Runner.run(agent, "hi", session=StepwellSession("user-123", ".stepwell"))
"""

from stepwell._names import presented
from stepwell.openai._items import from_messages, to_message
from stepwell.openai._moving import copy_sqlite_sessions
from stepwell.openai._session import StepwellSession

__all__ = ["StepwellSession", "copy_sqlite_sessions", "from_messages", "to_message"]

presented(globals(), __all__)
