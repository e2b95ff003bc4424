"""A session of OpenAI Agents in Stepwell."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from agents.memory.session import SessionABC, _await_mutation, _CompactionSnapshot
from agents.memory.session_settings import (
    SessionSettings,
    coerce_session_settings,
    resolve_session_limit,
)

from stepwell._async import run, start
from stepwell._continue import hand_over
from stepwell._items import ItemLog
from stepwell._names import session_id as name_of
from stepwell._well import Session, Well, well_of
from stepwell.errors import ConflictError
from stepwell.openai._items import from_messages, to_message
from stepwell.types import event

SYSTEM = "openai"


class StepwellSession(SessionABC):
    """Keeps the items of a conversation.

    `store` is a store, or the name of one. What is popped or cleared is taken back by a rewind,
    which `stepwell` or `Session.undo` can undo; with `erase_on_clear` a clear erases. With
    `transcript` each item is also a message that `stepwell show`, search and other frameworks see.
    """

    def __init__(
        self,
        session_id: str,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        transcript: bool = True,
        erase_on_clear: bool = False,
    ) -> None:
        self.session_id = session_id
        settings = SessionSettings() if session_settings is None else session_settings
        self.session_settings = coerce_session_settings(settings)
        self.well = well_of(store)
        self.erase_on_clear = erase_on_clear
        session = name_of(SYSTEM, session_id)
        self._log = ItemLog(
            self.well, session, SYSTEM, session_id, to_message, transcript=transcript
        )

    @property
    def session(self) -> Session:
        """The session of the store."""
        return Session(self.well, self._log.session)

    @classmethod
    def continuing(
        cls, session: Session, session_id: str | None = None, **options: Any
    ) -> StepwellSession:
        """A session that goes on with a conversation that any framework began. Called again, it
        takes over what came since.

        A `ConflictError`, if it has messages of its own that did not come from there.
        """
        made = cls(session_id or session.id, session.well, **options)
        taken = hand_over(session, made.session, made._log.last_item())
        if taken.messages:
            made._log.add(from_messages(taken.messages), behind=taken.lineage)
        return made

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The last items, in order."""
        most = resolve_session_limit(limit, self.session_settings)
        unlimited = most is None or most < 0
        found = await (run(self._log.all) if unlimited else run(self._log.newest, most or 0))
        return [kept.item for kept in found]

    async def add_items(self, items: list[Any]) -> None:
        """Keeps items, all or none."""
        if items:
            await _await_mutation(start(self._log.add, [_plain(item) for item in items]))

    async def pop_item(self) -> Any | None:
        """Takes the last item back."""
        return await _await_mutation(start(self._log.pop))

    async def clear_session(self) -> None:
        """Takes every item back, or erases them."""
        if self.erase_on_clear:
            await _await_mutation(start(self.well.core.purge, [self._log.session]))
        else:
            await _await_mutation(start(self._log.clear))

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None
    ) -> _CompactionSnapshot | None:
        """The last items, and how to replace some of them at once, if nothing came between."""
        last = await run(self._log.last_seq)
        found = await run(self._log.newest, limit + 1)
        complete, shown = len(found) <= limit, found[-limit:]

        def replace(start: int, output: list[Any]) -> bool:
            if not shown[start:]:
                return False
            front = self._log.all()
            front = front[: len(front) - len(shown) + start]
            kept = front
            while prune_prefix is not None and kept and prune_prefix(kept[0].item):
                kept = kept[1:]
            # Items at the front can only go by taking all of them back.
            again = [it.item for it in kept] if len(kept) < len(front) else []
            first = front[0].seq if len(kept) < len(front) else shown[start].seq
            back = event("rewound", {"to": first - 1, "scope": "chat"})
            try:
                items = [_plain(item) for item in output]
                self._log.add([*again, *items], before=[back], expected=last)
            except ConflictError:
                return False
            return True

        async def replace_suffix(start: int, output: list[Any]) -> bool:
            return await _await_mutation(run(replace, start, output))

        return _CompactionSnapshot([kept.item for kept in shown], complete, replace_suffix)


def _plain(item: Any) -> Any:
    """An item as JSON."""
    return item.model_dump(exclude_unset=True) if hasattr(item, "model_dump") else item
