"""A conversation of a framework's own items, each kept with what it says.

An item is JSON. What it says is a `message` event, which everybody reads; the rest of it is a
`foreign` event behind that, in which texts that the message holds are only named. So the item
comes back as it was, and its text is stored once. An item that says nothing is a `foreign`
event alone.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepwell._well import Well, dumps
from stepwell.errors import AbsentError, ConflictError
from stepwell.types import Event, JsonObject, Message, event

_NAMED = "\x00text"
"""The only key of an object that stands for a text of the message."""

_WORTH = 24
"""A shorter text is repeated: naming it would take as much."""

_FIRST_PAGE = 16


@dataclass(frozen=True)
class Kept:
    """An item, and where its events begin."""

    seq: int
    item: Any
    at: datetime.datetime
    id: str | None
    end: int
    """Where its last event is."""


class ItemLog:
    """The items of one session."""

    def __init__(
        self,
        well: Well,
        session: str,
        system: str,
        name: str,
        to_message: Callable[[Any], Message | None],
        *,
        transcript: bool = True,
        fields: JsonObject | None = None,
    ) -> None:
        self.well = well
        self.session = session
        self.system = system
        self.name = name
        self.to_message = to_message
        self.transcript = transcript
        self.fields = fields or {}

    def events_of(
        self, item: Any, id: str | None = None, at: str | None = None
    ) -> list[JsonObject]:
        """The events that keep an item; `id` names its last one."""
        said = self.to_message(item) if self.transcript else None
        if said is None:
            return [self._foreign("itself", item, id, at)]
        texts = texts_of(said.body())
        return [said.event(at=at), self._foreign("event", hollow(item, texts), id, at)]

    def _foreign(self, about: str, item: Any, id: str | None, at: str | None) -> JsonObject:
        body = {"system": self.system, "about": about, "data": dumps(item)}
        return event("foreign", body, id=id, at=at)

    def add(
        self,
        items: Sequence[Any],
        *,
        before: Sequence[JsonObject] = (),
        behind: Sequence[JsonObject] = (),
        expected: int | None = None,
    ) -> tuple[int, int]:
        """Appends items, all or none, with other events around them."""
        events = [*before, *(it for item in items for it in self.events_of(item)), *behind]
        return self.append(events, expected=expected, items=items)

    def append(
        self,
        events: Sequence[JsonObject],
        *,
        expected: int | None = None,
        items: Sequence[Any] = (),
    ) -> tuple[int, int]:
        """Appends events to the session, which is made at its first write."""
        try:
            return self.well.append(self.session, events, expected=expected)
        except AbsentError:
            self.make(items)
            return self.well.append(self.session, events, expected=expected)

    def make(self, items: Sequence[Any] = ()) -> None:
        """Makes the session, unless it is there."""
        said = (self.to_message(item) for item in items)
        task = next((it.text for it in said if it is not None and it.role == "user"), "")
        self.well.ensure(self.session, self.system, self.name, **{"task": task, **self.fields})

    def last_seq(self) -> int:
        """Where the log ends; 0, if there is none."""
        try:
            return self.well.core.last_seq(self.session)
        except AbsentError:
            return 0

    def last_item(self) -> int:
        """Where the last item that counts ends; 0, if there is none."""
        found = self.newest(1)
        return found[0].end if found else 0

    def all(self) -> list[Kept]:
        """Every item that counts, in order."""
        try:
            events = self.well.read_events(self.session, live=True)
        except AbsentError:
            return []
        return list(self._kept(events))

    def newest(self, count: int) -> list[Kept]:
        """The last items that count, in order. Reads no more of the log than that takes."""
        if count <= 0:
            return []
        page = max(_FIRST_PAGE, 2 * count + 8)
        while True:
            try:
                events = self.well.read_events(self.session, live=True, newest=True, limit=page)
            except AbsentError:
                return []
            found = list(self._kept(reversed(events), cut=True))
            whole = bool(events) and events[-1].seq == 1
            # Of the first item in sight the message may be out of sight.
            if whole or len(found) > count:
                return found[-count:]
            if page >= self.last_seq():
                return list(self.all())[-count:]
            page *= 4

    def _kept(self, events: Any, cut: bool = False) -> Iterator[Kept]:
        before: Event | None = None
        for found in events:
            if found.kind == "message":
                before = found
            elif found.kind == "foreign" and found.body["system"] == self.system:
                item = json.loads(found.body["data"])
                seq = found.seq
                if found.body.get("about", "event") == "event":
                    if before is None:
                        if cut:
                            continue
                        raise ConflictError(f"{self.session}: item {found.seq} lost its message")
                    item, seq = filled(item, texts_of(before.body)), before.seq
                if found.body.get("about") != "session":
                    yield Kept(seq, item, found.at, found.id, found.seq)

    def pop(self) -> Any | None:
        """Takes the last item back, by a rewind that can be undone."""
        while True:
            last = self.last_seq()
            found = self.newest(1) if last else []
            if not found:
                return None
            try:
                self.well.core.rewind(self.session, found[0].seq - 1, expected=last)
            except ConflictError:
                continue
            return found[0].item

    def clear(self) -> None:
        """Takes every item back, by a rewind that can be undone."""
        if self.newest(1):
            info = json.loads(self.well.core.info(self.session))
            self.well.core.rewind(self.session, info["own_from"])


def texts_of(body: JsonObject) -> list[str]:
    """The texts of a message that are worth naming."""
    found: list[str] = []
    for part in body["parts"]:
        for content in part.values():
            found += [
                content[name]
                for name in ("text", "arguments", "data")
                if isinstance(content.get(name), str) and len(content[name]) >= _WORTH
            ]
    return found


def hollow(item: Any, texts: Sequence[str]) -> Any:
    """An item in which these texts are only named."""
    if isinstance(item, str):
        return {_NAMED: texts.index(item)} if len(item) >= _WORTH and item in texts else item
    if isinstance(item, dict):
        return {name: hollow(value, texts) for name, value in item.items()}
    return [hollow(it, texts) for it in item] if isinstance(item, list) else item


def filled(item: Any, texts: Sequence[str]) -> Any:
    """The item that a hollow one stands for."""
    if isinstance(item, dict):
        if len(item) == 1 and _NAMED in item:
            return texts[item[_NAMED]]
        return {name: filled(value, texts) for name, value in item.items()}
    return [filled(it, texts) for it in item] if isinstance(item, list) else item
