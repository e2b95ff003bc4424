"""A Pydantic AI conversation that is saved, branched and forked, with a model for tests."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.test import TestModel

from stepwell.pydantic_ai import StepwellConversationStore


async def main() -> None:
    store = StepwellConversationStore(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    agent = Agent(TestModel(custom_output_text="noted"))
    conversation = await store.load("demo") or Conversation(conversation_id="demo")
    await store.save(await agent.run("remember this", conversation=conversation))
    fork = await store.fork("demo")
    print(len(fork.messages), "messages in the fork")
    print([it.text for it in store.session("demo").messages()])


asyncio.run(main())
