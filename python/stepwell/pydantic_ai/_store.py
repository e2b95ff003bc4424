"""Pydantic AI's conversations in Stepwell."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from stepwell._async import run
from stepwell._continue import hand_over
from stepwell._items import filled, hollow, texts_of
from stepwell._keyed import Entry, Keyed
from stepwell._names import session_id as name_of
from stepwell._well import Session, Well, well_of
from stepwell.errors import AbsentError, ConflictError, InvalidError
from stepwell.pydantic_ai._messages import as_json, from_messages, of_json, to_messages
from stepwell.types import JsonObject, event

SYSTEM = "pydantic-ai"
_RECORD: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class StepwellConversationStore(ConversationStore):
    """Keeps conversations: one session for each, and a fork of the session for a fork.

    A deleted conversation is erased; what its forks share with it lives on in them.
    """

    def __init__(
        self, store: Well | str | os.PathLike[str] = ".stepwell", *, transcript: bool = True
    ) -> None:
        self.well = well_of(store)
        self.transcript = transcript
        # An entry's id does not say whose it is.
        self._home: dict[str, str] = {}

    def session(self, conversation_id: str) -> Session:
        """The session of the store that keeps a conversation."""
        return Session(self.well, name_of(SYSTEM, conversation_id))

    def _keyed(self, conversation_id: str, scope: str | None = None) -> Keyed:
        fields = {} if scope is None else {"scope": scope_of(scope)}
        session = name_of(SYSTEM, conversation_id)
        return Keyed(self.well, session, SYSTEM, conversation_id, fields)

    # Reading.

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """A conversation's record."""
        return await run(self._record, self._keyed(conversation_id))

    def _record(self, keyed: Keyed) -> ConversationRecord | None:
        found = keyed.get("record", "now")
        if found is None:
            return None
        record = _RECORD.validate_python(found.value)
        # A fork begins with what its parent's record was.
        if record.conversation_id != keyed.name:
            return None
        self._learn(record, keyed.session)
        return record

    def _learn(self, record: ConversationRecord, session: str) -> None:
        for entry in [record.head_id, *record.branches]:
            if entry is not None:
                self._home[entry] = session

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Records, the last saved first."""
        return await run(self._records, scope, limit)

    def _records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        query: JsonObject = {} if scope is None else {"scope": scope_of(scope)}
        found: list[ConversationRecord] = []
        for info in self.well.sessions(source=SYSTEM, **query):
            if limit is not None and len(found) >= limit:
                break
            keyed = Keyed(self.well, info.id, SYSTEM, info.source_id or "")
            record = self._record(keyed)
            if record is not None:
                found.append(record)
        return sorted(found, key=lambda it: it.updated_at, reverse=True)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """One entry."""
        return (await run(self._history, entry_id, 1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The entries up to one, in order, or only the last of them."""
        return [] if head_id is None else await run(self._history, head_id, limit)

    def _history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        keyed = Keyed(self.well, self._find(head_id), SYSTEM, "")
        chain: list[Entry] = []
        known = {it.key: it for it in keyed.every("entry")} if limit is None else {}
        at: str | None = head_id
        while at is not None and (limit is None or len(chain) < limit):
            found = known.get(at) or keyed.get("entry", at)
            if found is None:
                raise LookupError(f"no entry {at}")
            chain.append(found)
            at = found.value["parent"]
        chain.reverse()
        return self._entries(keyed, chain)

    def _find(self, entry_id: str) -> str:
        home = self._home.get(entry_id)
        if home is not None and Keyed(self.well, home, SYSTEM, "").get("entry", entry_id):
            return home
        for info in self.well.sessions(source=SYSTEM):
            if Keyed(self.well, info.id, SYSTEM, "").get("entry", entry_id):
                self._home[entry_id] = info.id
                return info.id
        raise LookupError(f"no entry {entry_id}")

    def _entries(self, keyed: Keyed, chain: Sequence[Entry]) -> list[ConversationEntry]:
        texts: dict[int, list[str]] = {}
        if chain:
            # What an entry says stands just before it.
            first = min(it.seq - it.value["said"] for it in chain)
            last = max(it.seq for it in chain)
            for said in self.well.read_events(keyed.session, after=first - 1, to=last):
                if said.kind == "message":
                    texts[said.seq] = texts_of(said.body)
        made: list[ConversationEntry] = []
        for it in chain:
            named = [
                text
                for seq in range(it.seq - it.value["said"], it.seq)
                for text in texts.get(seq, ())
            ]
            message = of_json(filled(it.value["message"], named))
            made.append(ConversationEntry(id=it.key, parent_id=it.value["parent"], message=message))
        return made

    # Writing.

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Keeps a record and its new entries together, or raises and keeps nothing."""
        await run(self._write, record, new_entries, expected_revision)

    def _write(
        self,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        keyed = self._keyed(record.conversation_id, record.scope)
        while True:
            last = keyed.last_seq()
            stored = self._record(keyed) if last else None
            if (stored.revision if stored is not None else None) != expected:
                raise ConversationConflict(record.conversation_id)
            if stored is None and not last:
                self._begin(keyed, record, entries)
                continue
            events = self._events(keyed, record, entries, stored)
            try:
                keyed.write(events, expected=last)
            except ConflictError:
                continue
            except InvalidError:
                # The view cannot go to a branch that a rewind left; the entries can.
                if events[0]["kind"] != "rewound":
                    raise
                keyed.write(events[1:], expected=last)
            self._learn(record, keyed.session)
            return

    def _begin(
        self, keyed: Keyed, record: ConversationRecord, entries: Sequence[ConversationEntry]
    ) -> None:
        """Makes the session: a fork of the one that its first entry goes on from."""
        before = entries[0].parent_id if entries else record.head_id
        if before is None:
            keyed.make()
            return
        try:
            home = self._find(before)
        except LookupError as error:
            raise ConversationConflict(record.conversation_id) from error
        found = Keyed(self.well, home, SYSTEM, "").get("entry", before)
        if found is None:
            raise ConversationConflict(record.conversation_id)
        scope = None if record.scope is None else scope_of(record.scope)
        try:
            self.well.core.fork(
                home, at=found.seq, name=keyed.session, source=(SYSTEM, keyed.name), scope=scope
            )
        except ConflictError:
            return
        except AbsentError as error:
            raise ConversationConflict(record.conversation_id) from error

    def _events(
        self,
        keyed: Keyed,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        stored: ConversationRecord | None,
    ) -> list[JsonObject]:
        before = entries[0].parent_id if entries else record.head_id
        events: list[JsonObject] = []
        if before is not None:
            found = keyed.get("entry", before)
            if found is None:
                raise ConversationConflict(record.conversation_id)
            if stored is not None and stored.head_id != before and self.transcript:
                events.append(event("rewound", {"to": found.seq, "scope": "chat"}))
        elif stored is not None and stored.head_id is not None and self.transcript:
            first = json.loads(self.well.core.info(keyed.session))["own_from"]
            events.append(event("rewound", {"to": first, "scope": "chat"}))
        for entry in entries:
            events += self._entry_events(keyed, entry)
        told = json.loads(_RECORD.dump_json(record))
        return [*events, keyed.record("record", "now", told)]

    def _entry_events(self, keyed: Keyed, entry: ConversationEntry) -> list[JsonObject]:
        said = to_messages(entry.message) if self.transcript else []
        texts = [text for it in said for text in texts_of(it.body())]
        value = {
            "parent": entry.parent_id,
            "kind": entry.kind,
            "said": len(said),
            "message": hollow(as_json(entry.message), texts),
        }
        return [*(it.event() for it in said), keyed.record("entry", entry.id, value)]

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erases a conversation."""
        await run(self._delete, conversation_id, expected_revision)

    def _delete(self, conversation_id: str, expected: str) -> None:
        keyed = self._keyed(conversation_id)
        stored = self._record(keyed)
        if stored is None or stored.revision != expected:
            raise ConversationConflict(conversation_id)
        self.well.core.purge([keyed.session])

    async def continuing(
        self, session: Session, conversation_id: str | None = None, **fields: Any
    ) -> Conversation:
        """A conversation that goes on with one that any framework began. Called again, it takes
        over what came since.

        A `ConflictError`, if it has messages of its own that did not come from there.
        """
        id = conversation_id or session.id
        made = await self.load(id) or Conversation(messages=[], conversation_id=id)
        target = self.session(id)
        last = await run(self._last_entry, id) if made.messages else 0
        taken = await run(hand_over, session, target, last)
        if taken.messages:
            made.messages = [*made.messages, *from_messages(taken.messages)]
            await self.save(made, **fields)
            await run(self.well.append, target.id, taken.lineage)
        return made

    def _last_entry(self, id: str) -> int:
        return max((it.seq for it in self._keyed(id).every("entry")), default=0)


def scope_of(scope: str) -> str:
    """What the conversations of a scope are listed by."""
    return f"pydantic-ai/{scope}"
