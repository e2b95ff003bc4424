"""What a graph says, as events that everybody reads."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from stepwell import _core
from stepwell._well import dumps
from stepwell.langgraph._messages import to_message
from stepwell.types import JsonObject, Message, event

_LANE_BYTES = 128


def lane_of(ns: str) -> str:
    """The lane of a namespace: the graph itself is `main`."""
    name = "".join(char for char in ns if char.isprintable()) or "main"
    if len(name.encode()) <= _LANE_BYTES:
        return name
    return "ns-" + hashlib.sha256(ns.encode()).hexdigest()[:32]


def message_of(item: Any) -> BaseMessage | None:
    """A message of a state: LangChain's own, or a dict with a role and a content."""
    if isinstance(item, BaseMessage):
        return item
    if type(item) is dict and "content" in item and isinstance(item.get("role"), str):
        try:
            return convert_to_messages([item])[0]
        except (ValueError, NotImplementedError):
            return None
    return None


def lists_of(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of a state, those that a delta channel was kept as included."""
    found: dict[str, list[Any]] = {}
    for channel in sorted(values):
        value = values[channel]
        if isinstance(value, _DeltaSnapshot):
            value = value.value
        if type(value) is list:
            found[channel] = value
    return found


Named = Iterable[tuple[str, str, BaseMessage]]
"""Messages, each with its channel and a name that it keeps."""


def conversation(lists: Mapping[str, list[Any]], known: Mapping[str, int] | None = None) -> Named:
    """The messages of a state; without the first ones of a channel, if so many are known."""
    for channel, value in lists.items():
        first = known.get(channel, 0) if known else 0
        for index, item in enumerate(value[first:] if first else value, first):
            message = message_of(item)
            if message is not None:
                name = message.id or f"{channel}.{index}.{message.type}.{message.text[:40]}"
                yield channel, name, message


class Transcript:
    """What a lane shows of a namespace's messages, and how that becomes what the state has."""

    def __init__(self, core: _core.Well, session: str, ns: str) -> None:
        self.core = core
        self.session = session
        self.lane = lane_of(ns)

    def grown(self, lists: Mapping[str, list[Any]], known: Mapping[str, int], said: Said) -> Change:
        """The messages behind those that are known are new: nothing else changed."""
        change = Change(said, shown=said.shown)
        for channel, name, message in conversation(lists, known):
            change.said.channels.add(channel)
            if name not in change.said.names:
                change.said.names.add(name)
                change.say(to_message(message, self.lane))
        return change

    def edited(self, lists: Mapping[str, list[Any]], said: Said, at: int | None) -> Change:
        """Messages were removed or replaced: those that the state does not have go, and those that
        are not where it has them are said again behind the others. With `at` the session is about
        to be rewound to there."""
        change = Change(Said(set(), set(), None))
        wanted: list[Message] = []
        for channel, name, message in conversation(lists):
            change.said.channels.add(channel)
            told = to_message(message, self.lane)
            if name not in change.said.names and told is not None:
                wanted.append(told)
            change.said.names.add(name)
        shown = said.shown
        if shown is None or at is not None:
            shown = [(digest, seq) for seq, digest in self.core.shown(self.session, self.lane, at)]
        places: dict[str, deque[int]] = {}
        for place, (digest, _) in enumerate(shown):
            places.setdefault(digest, deque()).append(place)
        # Messages of several channels stand in the order in which they were said.
        ordered, start = len(change.said.channels) < 2, 0
        kept: list[tuple[str, int]] = []
        for told in wanted:
            left = places.get(digest_of(told), deque())
            while left and left[0] < start:
                left.popleft()
            # Behind one that has to be said again, those of its list have to be, too.
            if not left or (ordered and change.told):
                change.say(told)
                continue
            place = left.popleft()
            kept.append(shown[place])
            start = place + 1 if ordered else 0
        stays = {seq for _, seq in kept}
        gone = [seq for _, seq in shown if seq not in stays]
        if gone:
            pinned = [seq for seq in stays if gone[0] < seq < gone[-1]]
            body = {"lane": self.lane, "from": gone[0], "to": gone[-1], "pinned": sorted(pinned)}
            change.first = [event("compacted", body)]
        change.shown = kept
        return change


@dataclass
class Said:
    """What a lane was told of a state."""

    names: set[str] = field(default_factory=set)
    """Of the messages that are in the transcript."""
    channels: set[str] = field(default_factory=set)
    """Those that hold messages."""
    shown: list[tuple[str, int]] | None = None
    """Digests of the messages that the lane shows, and where they are, if that is known."""

    def unplaced(self) -> Said:
        """The same, when it is not known where they are."""
        return Said(self.names, self.channels)


@dataclass
class Change:
    """How a transcript changes with a checkpoint."""

    said: Said
    first: list[JsonObject] = field(default_factory=list)
    told: list[Message] = field(default_factory=list)
    shown: list[tuple[str, int]] | None = None
    """What is shown before the new messages."""

    def say(self, message: Message | None) -> None:
        """Says a message, if it says something."""
        if message is not None:
            self.told.append(message)

    def events(self) -> list[JsonObject]:
        """What is recorded."""
        return [*self.first, *(message.event() for message in self.told)]

    def done(self, first: int) -> Said:
        """What the lane was told when the events are recorded, the first of them there."""
        if self.shown is not None:
            at = first + len(self.first)
            self.shown += [(digest_of(it), at + number) for number, it in enumerate(self.told)]
            self.said.shown = self.shown
        return self.said


def digest_of(message: Message) -> str:
    """A name of what a message says."""
    return _core.message_digest(dumps(message.body()))


def said_by(values: Mapping[str, Any]) -> Said:
    """What a lane was told when it was told all of a state."""
    said = Said()
    for channel, name, _ in conversation(lists_of(values)):
        said.names.add(name)
        said.channels.add(channel)
    return said


def task_of(values: Mapping[str, Any]) -> str:
    """What the user asked for, as far as a first state says it."""
    start = values.get("__start__")
    for state in (values, start if isinstance(start, Mapping) else {}):
        for value in state.values():
            items = value if isinstance(value, list) else [value]
            for item in items:
                if isinstance(item, HumanMessage):
                    return item.text
                if isinstance(item, dict) and item.get("role") == "user":
                    return str(item.get("content", ""))
                if isinstance(item, tuple) and len(item) == 2 and item[0] in ("user", "human"):
                    return str(item[1])
    return ""
