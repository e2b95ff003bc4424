"""Microsoft Agent Framework on Stepwell.

from stepwell.agent_framework import StepwellHistoryProvider, StepwellCheckpointStorage

agent = Agent(client, context_providers=[StepwellHistoryProvider(".stepwell")])
WorkflowBuilder(checkpoint_storage=StepwellCheckpointStorage(".stepwell"))
"""

from stepwell._names import presented
from stepwell.agent_framework._checkpoints import StepwellCheckpointStorage
from stepwell.agent_framework._history import StepwellHistoryProvider
from stepwell.agent_framework._messages import from_messages, to_message

__all__ = [
    "StepwellCheckpointStorage",
    "StepwellHistoryProvider",
    "from_messages",
    "to_message",
]

presented(globals(), __all__)
