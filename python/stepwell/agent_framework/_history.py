"""Agent Framework's histories in Stepwell."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from agent_framework import HistoryProvider
from agent_framework import Message as ChatMessage

from stepwell._async import run
from stepwell._continue import hand_over
from stepwell._items import ItemLog
from stepwell._names import session_id as name_of
from stepwell._well import Session, Well, well_of
from stepwell.agent_framework._messages import from_messages, to_message

SYSTEM = "agent-framework"


class StepwellHistoryProvider(HistoryProvider):
    """Keeps what was said in each session of an agent."""

    def __init__(
        self,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        source_id: str = "stepwell",
        transcript: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self.well = well_of(store)
        self.transcript = transcript

    def session(self, session_id: str | None) -> Session:
        """The session of the store."""
        return Session(self.well, self._log(session_id).session)

    def _log(self, session_id: str | None) -> ItemLog:
        name = session_id or "default"
        session = name_of(SYSTEM, name)
        return ItemLog(self.well, session, SYSTEM, name, to_message, transcript=self.transcript)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[ChatMessage]:
        """What was said, in order."""
        kept = await run(self._log(session_id).all)
        return [ChatMessage.from_dict(it.item) for it in kept]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[ChatMessage],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keeps messages, all or none."""
        items = items_of(messages)
        if items:
            await run(self._log(session_id).add, items)

    async def continuing(self, session: Session, session_id: str) -> None:
        """Begins a session with a conversation that any framework began. Called again, it takes
        over what came since.

        A `ConflictError`, if it has messages of its own that did not come from there.
        """
        await run(self._take_over, session, session_id)

    def _take_over(self, session: Session, session_id: str) -> None:
        log = self._log(session_id)
        taken = hand_over(session, self.session(session_id), log.last_item())
        if taken.messages:
            log.add(items_of(from_messages(taken.messages)), behind=taken.lineage)


def items_of(messages: Sequence[ChatMessage]) -> list[Any]:
    """Messages as they are kept."""
    return [json.loads(json.dumps(it.to_dict(), default=str)) for it in messages]
