"""Transcripts of the Claude Agent SDK in Stepwell."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from stepwell import _core
from stepwell._async import run
from stepwell._continue import alternating, hand_over
from stepwell._items import ItemLog
from stepwell._names import session_id as name_of
from stepwell._well import Session, Well, dumps, well_of
from stepwell.claude._entries import from_messages, to_message
from stepwell.errors import AbsentError, ConflictError
from stepwell.types import JsonObject, SessionInfo, record

SYSTEM = "claude"
_SUMMARY = f"{SYSTEM}/summary/now"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_MAINS = 4096
"""So many names of sessions are remembered."""


class StepwellSessionStore(SessionStore):
    """Keeps the transcripts of sessions and of their subagents.

    `store` is a store, or the name of one. A line with a `uuid` that is there already is ignored.
    A deleted session is erased, with its subagents'.
    """

    def __init__(
        self, store: Well | str | os.PathLike[str] = ".stepwell", *, transcript: bool = True
    ) -> None:
        self.well = well_of(store)
        self.transcript = transcript
        self._mains: dict[tuple[str, str], str] = {}

    def session(self, key: SessionKey) -> Session:
        """The session of the store that keeps a transcript."""
        return Session(self.well, self._log(key).session)

    def _log(self, key: SessionKey) -> ItemLog:
        project, id, sub = key["project_key"], key["session_id"], key.get("subpath")
        main = self._main(project, id)
        scope = scope_of(project)
        fields: dict[str, Any] = {"scope": scope}
        name, session = id, main
        if sub:
            name, session = sub, name_of(SYSTEM, project, id, sub)
            fields = {"scope": f"{scope}\x1f{id}", "origin": {"subagent": {"parent": main}}}
        return ItemLog(
            self.well, session, SYSTEM, name, to_message, transcript=self.transcript, fields=fields
        )

    def _main(self, project: str, id: str) -> str:
        """The session that keeps a transcript. It bears the transcript's own name, as an import
        gives it, so that both are one; unless another session has that name, as one has that was
        imported before."""
        if (project, id) not in self._mains:
            derived = name_of(SYSTEM, project, id)
            ours = _UUID.match(id) and not self.well.has(derived) and self._may_have(project, id)
            if len(self._mains) >= _MAINS:
                self._mains.clear()
            self._mains[project, id] = id if ours else derived
        return self._mains[project, id]

    def _may_have(self, project: str, id: str) -> bool:
        try:
            info = SessionInfo.of(json.loads(self.well.core.info(id)))
        except AbsentError:
            return True
        return (info.source, info.source_id, info.scope) == (SYSTEM, id, scope_of(project))

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Keeps lines of a transcript, in order, all or none."""
        if entries:
            await run(self._append, key, entries)

    def _append(
        self,
        key: SessionKey,
        entries: list[SessionStoreEntry],
        lineage: Sequence[JsonObject] = (),
    ) -> None:
        log = self._log(key)
        if key.get("subpath"):
            # What a subagent said goes with the session that started it.
            self._log({"project_key": key["project_key"], "session_id": key["session_id"]}).make()
        while True:
            last = log.last_seq()
            new = self._new(log, entries) if last else dedup(entries)
            events = [it for entry in new for it in log.events_of(entry, id=event_id(entry))]
            if not key.get("subpath") and new:
                folded = fold_session_summary(self._summary(log.session), key, new)
                events.append(record(SYSTEM, "summary", "now", dumps(folded)))
            if not events:
                return
            try:
                log.append([*events, *lineage], expected=last or None, items=new)
                return
            except ConflictError:
                # Another process wrote: some of these may be there now.
                if not last and not self.well.has(log.session):
                    raise

    def _new(self, log: ItemLog, entries: list[SessionStoreEntry]) -> list[SessionStoreEntry]:
        def is_new(entry: SessionStoreEntry) -> bool:
            id = event_id(entry)
            return id is None or self.well.core.event(log.session, id) is None

        return [entry for entry in dedup(entries) if is_new(entry)]

    def _summary(self, session: str) -> SessionSummaryEntry | None:
        try:
            rows = self.well.core.records(session, _SUMMARY, _SUMMARY + "\0", newest=True, limit=1)
        except AbsentError:
            return None
        found: SessionSummaryEntry | None = json.loads(rows[0][2]) if rows else None
        return found

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All lines of a transcript; None, if nothing was ever written."""
        kept = await run(self._log(key).all)
        return [it.item for it in kept] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project."""
        found = await run(self._sessions, project_key)
        return [{"session_id": it.source_id or "", "mtime": milliseconds(it)} for it in found]

    def _sessions(self, project_key: str) -> list[SessionInfo]:
        found = self.well.sessions(source=SYSTEM, scope=scope_of(project_key))
        # One in which only a subagent spoke was never written to.
        return [it for it in found if it.seq > 1]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The summaries of a project's sessions."""
        return await run(self._summaries, project_key)

    def _summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        summaries: list[SessionSummaryEntry] = []
        for info in self._sessions(project_key):
            found = self._summary(info.id)
            if found is not None:
                found["mtime"] = milliseconds(info)
                summaries.append(found)
        return summaries

    async def delete(self, key: SessionKey) -> None:
        """Erases a transcript; of a session, with its subagents'."""
        await run(self.well.core.purge, [self._log(key).session])

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subagents of a session."""
        scope = f"{scope_of(key['project_key'])}\x1f{key['session_id']}"
        found = await run(self.well.sessions, source=SYSTEM, scope=scope)
        return [it.source_id or "" for it in found]

    def continuing(self, session: Session, key: SessionKey) -> SessionKey:
        """Begins a transcript with a conversation that any framework began, to be resumed. Called
        again, it takes over what came since.

        A `ConflictError`, if it has messages of its own that did not come from there.
        """
        log = self._log(key)
        taken = hand_over(session, self.session(key), log.last_item())
        if taken.messages:
            kept = log.newest(1)
            parent = kept[0].item.get("uuid") if kept else None
            entries: Any = from_messages(alternating(taken.messages), key["session_id"], parent)
            self._append(key, entries, taken.lineage)
        return key


def scope_of(project_key: str) -> str:
    """What the sessions of a project are listed by."""
    return f"claude/{project_key}"


def dedup(entries: list[SessionStoreEntry]) -> list[SessionStoreEntry]:
    """The entries without those that repeat another's id."""
    seen: set[str] = set()
    kept: list[SessionStoreEntry] = []
    for entry in entries:
        id = event_id(entry)
        if id is None or id not in seen:
            kept.append(entry)
        if id is not None:
            seen.add(id)
    return kept


def event_id(entry: SessionStoreEntry) -> str | None:
    """The event that stands for an entry, if it has a name."""
    name = entry.get("uuid")
    return _core.derived_id(f"{SYSTEM}/{name}".encode()) if name else None


def milliseconds(info: SessionInfo) -> int:
    """When a session was last written to."""
    return int(info.updated_at.timestamp() * 1000)
