"""What a graph says, asks and fails at, as events that everybody reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from stepwell._types import JsonObject, event
from stepwell._well import Well
from stepwell.errors import AbsentError
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


def gates(writes: Sequence[tuple[str, Any]]) -> list[JsonObject]:
    """Interrupts as questions that the session waits for, and errors."""
    events: list[JsonObject] = []
    for channel, value in writes:
        if channel == ERROR:
            events.append(event("error", {"message": str(value)[:2000]}))
        if channel != INTERRUPT:
            continue
        for interrupt in value if isinstance(value, list | tuple) else [value]:
            asked = getattr(interrupt, "value", interrupt)
            prompt = asked if isinstance(asked, str) else json.dumps(asked, default=str)
            id = f"{getattr(interrupt, 'id', '')}-{digest(prompt)}".strip("-")
            events.append(event("gate", {"id": id, "prompt": prompt}))
            events.append(event("status", {"status": "paused", "reason": "gate"}))
    return events


def answers(well: Well, session: str, writes: Sequence[tuple[str, Any]]) -> list[JsonObject]:
    """What a resumed graph was told, as answers to its open questions."""
    given = [value for channel, value in writes if channel == RESUME]
    if not given:
        return []
    try:
        facts = json.loads(well.core.keyed(session, ["gate", "gate_answered"]))
    except AbsentError:
        return []
    closed = {it["body"]["id"] for it in facts if it["kind"] == "gate_answered"}
    value = given[0][-1] if isinstance(given[0], list) and given[0] else given[0]
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    asked = [it["body"]["id"] for it in facts if it["kind"] == "gate"]
    events = [
        event("gate_answered", {"id": id, "answer": text, "who": "langgraph"})
        for id in asked
        if id not in closed
    ]
    return [*events, event("status", {"status": "idle"})] if events else []


def digest(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
