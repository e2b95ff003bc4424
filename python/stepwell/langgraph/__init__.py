"""LangGraph on Stepwell.

    from stepwell.langgraph import StepwellSaver

    graph = builder.compile(checkpointer=StepwellSaver(".stepwell"))

`StepwellSaver` keeps checkpoints, `StepwellStore` keeps long-term memory. Both serve sync and
async graphs.
"""

from stepwell._names import presented
from stepwell.langgraph._messages import from_messages, to_message
from stepwell.langgraph._moving import copy_checkpoints
from stepwell.langgraph._saver import StepwellSaver
from stepwell.langgraph._store import StepwellStore

__all__ = ["StepwellSaver", "StepwellStore", "copy_checkpoints", "from_messages", "to_message"]

presented(globals(), __all__)
