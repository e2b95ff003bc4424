"""Pydantic AI on Stepwell.

from stepwell.pydantic_ai import StepwellConversationStore

store = StepwellConversationStore(".stepwell")
conversation = await store.load("c1") or Conversation(conversation_id="c1")
await store.save(await agent.run("hi", conversation=conversation))
"""

from stepwell._names import presented
from stepwell.pydantic_ai._messages import from_messages, to_messages
from stepwell.pydantic_ai._store import StepwellConversationStore

__all__ = ["StepwellConversationStore", "from_messages", "to_messages"]

presented(globals(), __all__)
