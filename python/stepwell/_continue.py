"""Going on elsewhere with a conversation that another framework began."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepwell._well import Session, dumps
from stepwell.errors import ConflictError, InvalidError, NothingNewWarning
from stepwell.types import CONTINUES, JsonObject, Message, event, record


def continuation(session: Session, lane: str = "main") -> list[Message]:
    """The conversation, without what only the framework that began it told its model."""
    return [message for message in session.messages(lane) if message.role != "system"]


@dataclass(frozen=True)
class HandOver:
    """What a session takes over from another one."""

    messages: Sequence[Message]
    """What it does not have yet."""
    lineage: Sequence[JsonObject]
    """The events that it records behind them: where they came from."""


def hand_over(source: Session, target: Session, last: int) -> HandOver:
    """What `target` takes over from `source`: all of it the first time, later what came since.
    `last` is the seq of the target's last message; 0, if it has none.

    A `ConflictError`, if the target has messages that did not come from there, or both went on.
    """
    messages = continuation(source)
    if not messages:
        raise InvalidError(f"session {source.id} has no conversation to go on with")
    before = [it for it in target.continues() if it.session == source.id] if last else []
    if last and not before:
        raise ConflictError(
            f"session {target.id} has messages already, which are not those of {source.id}: "
            "go on with a session that has another name"
        )
    if before:
        messages = [it for it in messages if it.seq > before[-1].seq]
        if messages and last > before[-1].at:
            raise ConflictError(
                f"sessions {source.id} and {target.id} both went on since the one was handed over "
                "to the other: go on with a session that has another name"
            )
    if not messages:
        nothing_new(source, target)
    return HandOver(messages, lineage(source, messages[-1].seq) if messages else ())


def nothing_new(source: Session, target: Session) -> None:
    """Says that a hand-over had nothing to hand over."""
    text = f"session {target.id} has all messages of {source.id} already"
    warnings.warn(text, NothingNewWarning, stacklevel=4)


def lineage(source: Session, seq: int) -> list[JsonObject]:
    """The events that say where a session's messages came from: one for people, in its metadata,
    and one for the next hand-over."""
    system, topic = CONTINUES
    return [
        event("edited", {"metadata": {"continues": f"{source.id}@{seq}"}}),
        record(system, topic, source.id, dumps({"seq": seq})),
    ]


def alternating(messages: Iterable[Message]) -> list[Message]:
    """The same conversation with the model and the others in turns, the others first: some
    providers refuse any other. What one side says in several messages becomes one."""
    made: list[Message] = []
    for message in messages:
        if made and (made[-1].role == "assistant") == (message.role == "assistant"):
            parts = [*made[-1].parts, *message.parts]
            made[-1] = dataclasses.replace(made[-1], parts=parts)
        else:
            made.append(message)
    if made and made[0].role == "assistant":
        made.insert(0, Message.user(_GO_ON))
    return made


_GO_ON = "Go on."
"""Said in place of a user who said nothing before the model did."""
