"""LangGraph on Stepwell.

    from stepwell.langgraph import StepwellSaver

    graph = builder.compile(checkpointer=StepwellSaver(".stepwell"))

`StepwellSaver` keeps checkpoints, `StepwellStore` keeps long-term memory. Both serve sync and
async graphs.
"""

from stepwell.langgraph._messages import from_messages, to_message
from stepwell.langgraph._saver import StepwellSaver
from stepwell.langgraph._store import StepwellStore

__all__ = ["StepwellSaver", "StepwellStore", "from_messages", "to_message"]
