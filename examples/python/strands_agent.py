"""A Strands agent whose messages are kept, with a model that is a script."""

import sys
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.models.model import Model

import stepwell
from stepwell.strands import StepwellSessionManager


class Script(Model):
    """Says the same thing always."""

    def update_config(self, **config: Any) -> None:
        """Has none."""

    def get_config(self) -> dict[str, Any]:
        """Has none."""
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Is not asked for."""
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """One message, as a provider streams it."""
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "I am a script."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
for prompt in ("hello", "again"):
    manager = StepwellSessionManager("demo", well)
    agent = Agent(
        model=Script(), session_manager=manager, agent_id="default", callback_handler=None
    )
    agent(prompt)
print([message.text for message in well.session("strands.demo").messages()])
