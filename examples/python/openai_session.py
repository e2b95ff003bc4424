"""A session of OpenAI Agents, gone on with in Pydantic AI. No model is asked: items stand in."""

import asyncio
import sys

import stepwell
from stepwell.openai import StepwellSession


async def main() -> None:
    well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    session = StepwellSession("user-123", well)
    # What Runner.run(agent, "…", session=session) adds by itself.
    await session.add_items(
        [
            {"role": "user", "content": "what is the refund policy?"},
            {"role": "assistant", "content": "thirty days"},
        ]
    )
    print(await session.get_items(limit=1))
    await session.pop_item()
    session.session.undo()
    print([message.text for message in session.session.messages()])


asyncio.run(main())
