"""What a graph asks and fails at, as events that everybody reads.

LangGraph keeps a task's answers in a list, in the order of its questions, and writes the list when
the task goes on: with the next question, or when the task is done. So the last one answers what the
task was kept with as its question until then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from stepwell._well import Well
from stepwell.errors import AbsentError
from stepwell.langgraph._reading import Reading
from stepwell.langgraph._values import Namespace, Ref
from stepwell.types import JsonObject, event

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task of what was given to the graph. Which question that answers, a task says later."""

UNTOLD = '(the graph went on; what it was told is not recorded with durability "exit")'
"""The answer to a question that was answered, when nobody said how."""

Writes = Sequence[tuple[str, Any]]


def asks_or_answers(writes: Writes) -> bool:
    """Does a task ask, answer or fail with this?"""
    return any(channel in (ERROR, INTERRUPT, RESUME) for channel, _ in writes)


def told(reading: Reading, checkpoint: str | None, task: str, writes: Writes) -> list[JsonObject]:
    """Events of what a task asks, what it was answered, and what it failed at."""
    errors = [str(value)[:2000] for channel, value in writes if channel == ERROR]
    events = [event("error", {"message": error}) for error in errors]
    events += [event("status", {"status": "failed", "error": error}) for error in errors[-1:]]
    given = [value for channel, value in writes if channel == RESUME and task != NULL_TASK]
    asked = [it for channel, value in writes if channel == INTERRUPT for it in interrupts(value)]
    if not given and not asked:
        return events
    waiting, untold = gates(reading.site.well, reading.session)
    answered: list[str] = []
    if given and checkpoint:
        # The last list has all of its answers.
        answer = given[-1][-1] if isinstance(given[-1], list) and given[-1] else given[-1]
        kept = [ref for of, at, ref in reading.writes(checkpoint) if (of, at) == (task, INTERRUPT)]
        answered = [id for id in ids_of(reading, kept) if id in waiting or id in untold]
        # Questions of several tasks below this one are answered there.
        if len(answered) == 1:
            if answered[0] in untold:
                events.append(event("gate", {"id": answered[0], "prompt": untold[answered[0]]}))
            events.append(answer_event(answered[0], text_of(answer)))
        else:
            answered = []
    new = dict(asked)
    left = waiting - set(answered)
    fresh = [id for id in new if id not in left]
    events += [event("gate", {"id": id, "prompt": new[id]}) for id in fresh]
    if fresh:
        events.append(event("status", {"status": "paused", "reason": "gate"}))
    elif answered and not left:
        events.append(event("status", {"status": "idle"}))
    return events


def went_on(state: Namespace) -> list[JsonObject]:
    """The event that a graph went on from a checkpoint at which it had failed."""
    return [event("status", {"status": "idle"})] if state.failed else []


def unanswered(reading: Reading, kept: Sequence[Ref]) -> list[JsonObject]:
    """Events that close the questions of a checkpoint that a graph went on from: each that is
    still open was answered, and nobody said how."""
    waiting, _ = gates(reading.site.well, reading.session)
    closed = [id for id in ids_of(reading, kept) if id in waiting]
    events = [answer_event(id, UNTOLD) for id in closed]
    return [*events, event("status", {"status": "idle"})] if closed else []


def interrupts(value: Any) -> list[tuple[str, str]]:
    """The interrupts that a task wrote: the id and the question of each. A value that is none is a
    question by itself."""
    found: list[tuple[str, str]] = []
    for it in value if isinstance(value, list | tuple) else [value]:
        text = text_of(getattr(it, "value", it))
        id = getattr(it, "id", None) or hashlib.sha256(text.encode()).hexdigest()[:32]
        found.append((str(id), text))
    return found


def ids_of(reading: Reading, refs: Iterable[Ref]) -> list[str]:
    """The ids of the interrupts that were kept so, each once."""
    return list(dict.fromkeys(id for ref in refs for id, _ in interrupts(reading.value(ref))))


def gates(well: Well, session: str) -> tuple[set[str], dict[str, str]]:
    """The questions that a session waits for, and those whose answers nobody told, with their
    texts."""
    try:
        facts = json.loads(well.core.keyed(session, ["gate", "gate_answered"]))
    except AbsentError:
        return set(), {}
    prompts = {it["body"]["id"]: it["body"]["prompt"] for it in facts if it["kind"] == "gate"}
    last = {it["body"]["id"]: it["body"].get("answer") for it in facts}
    waiting = {id for id, answer in last.items() if answer is None}
    return waiting, {id: prompts[id] for id, answer in last.items() if answer == UNTOLD}


def answer_event(id: str, answer: str) -> JsonObject:
    """The event that answers a question."""
    return event("gate_answered", {"id": id, "answer": answer, "who": "langgraph"})


def text_of(value: Any) -> str:
    """A question or an answer as text."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
