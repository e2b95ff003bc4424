"""ADK's memory over what Stepwell keeps anyway."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from stepwell._async import run
from stepwell._well import Well, well_of
from stepwell.adk._sessions import SYSTEM, app_scope
from stepwell.types import Hit

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

_MOST = 20


class StepwellMemoryService(BaseMemoryService):
    """Finds what was said in a user's sessions, by its words. Nothing has to be added: what a
    `StepwellSessionService` on the same store keeps is searched as it is."""

    def __init__(self, store: Well | str | os.PathLike[str] = ".stepwell") -> None:
        self.well = well_of(store)

    async def add_session_to_memory(self, session: Session) -> None:
        """Does nothing: it is there."""

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Does nothing: they are there."""

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What holds words of a query, those first that hold most of them."""
        return SearchMemoryResponse(memories=await run(self._search, app_name, user_id, query))

    def _search(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        scope = app_scope(app_name) + quote(user_id, safe="")
        hits: dict[tuple[str, int], tuple[int, Hit]] = {}
        for word in dict.fromkeys(re.findall(r"\w+", query.lower())):
            found = self.well.search(f'"{word}"', source=SYSTEM, scope=scope, limit=5 * _MOST)
            for hit in found:
                count, _ = hits.get((hit.session, hit.seq), (0, hit))
                hits[hit.session, hit.seq] = (count + 1, hit)
        best = sorted(hits.values(), key=lambda it: it[0], reverse=True)[:_MOST]
        return [entry for _, hit in best if (entry := self._entry(hit)) is not None]

    def _entry(self, hit: Hit) -> MemoryEntry | None:
        events = self.well.read_events(hit.session, after=hit.seq - 1, to=hit.seq)
        if not events or events[0].kind != "message":
            return None
        body = events[0].body
        said = [types.Part(text=part["text"]["text"]) for part in body["parts"] if "text" in part]
        if not said:
            return None
        role = "user" if body["role"] == "user" else "model"
        content = types.Content(role=role, parts=said)
        return MemoryEntry(content=content, author=body["role"], timestamp=events[0].at.isoformat())
