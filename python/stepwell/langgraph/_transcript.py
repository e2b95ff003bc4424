"""What a graph says, as events that everybody reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from stepwell._types import JsonObject
from stepwell.langgraph._messages import to_message

_LANE_BYTES = 128


def lane_of(ns: str) -> str:
    """The lane of a namespace: the graph itself is `main`."""
    name = "".join(char for char in ns if char.isprintable()) or "main"
    if len(name.encode()) <= _LANE_BYTES:
        return name
    return "ns-" + hashlib.sha256(ns.encode()).hexdigest()[:32]


def conversation(
    values: Mapping[str, Any], known: Mapping[str, int] | None = None
) -> Iterable[tuple[str, BaseMessage]]:
    """The messages of a state, each with a name that it keeps; without the first ones of a channel,
    if so many are known."""
    for channel in sorted(values):
        value = values[channel]
        if type(value) is not list:
            continue
        first = known.get(channel, 0) if known else 0
        for index, message in enumerate(value[first:] if first else value, first):
            if isinstance(message, BaseMessage):
                yield message.id or f"{channel}.{index}.{message.type}.{message.text[:40]}", message


def spoken(
    values: Mapping[str, Any], ns: str, names: set[str], known: Mapping[str, int]
) -> list[JsonObject]:
    """Events of the messages that are not in the transcript yet, which they are then. It has those
    with these names, and the first ones of each channel, as many as are known."""
    events: list[JsonObject] = []
    for name, message in conversation(values, known):
        if name in names:
            continue
        names.add(name)
        said = to_message(message, lane_of(ns))
        if said is not None:
            events.append(said.event())
    return events


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
