"""A thread that goes on with a conversation of another framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from stepwell._continue import continuation, lineage, nothing_new
from stepwell._well import Session
from stepwell.errors import ConflictError, InvalidError
from stepwell.langgraph._messages import from_messages
from stepwell.langgraph._site import Site


@dataclass(frozen=True)
class Continuing:
    """A thread, and the session whose messages it takes over."""

    site: Site
    source: Session
    thread: str

    def messages(
        self, read: Callable[[RunnableConfig], CheckpointTuple | None]
    ) -> Sequence[BaseMessage]:
        """What a graph is to be given. The state says what the thread has: a program may end
        between this and the graph's first step."""
        told = continuation(self.source)
        if not told:
            raise InvalidError(f"session {self.source.id} has no conversation to go on with")
        given = from_messages(told, self.source.id)
        found = read({"configurable": {"thread_id": self.thread}})
        there = [] if found is None else state_ids(found.checkpoint["channel_values"])
        ours = {it.id for it in given}
        new = [it for it in given if it.id not in set(there)]
        target = Session(self.site.well, self.site.session_of(self.thread))
        if there and not ours & set(there):
            raise ConflictError(
                f"thread {self.thread} has messages already, which are not those of session "
                f"{self.source.id}: go on with another thread"
            )
        if there and new and there[-1] not in ours:
            raise ConflictError(
                f"session {self.source.id} and thread {self.thread} both went on since the one was "
                "handed over to the other: go on with another thread"
            )
        if not new:
            nothing_new(self.source, target)
        elif not any(it.seq == told[-1].seq for it in target.continues()[-1:]):
            task = next((it.text for it in told if it.role == "user"), "")
            self.site.append(self.thread, lineage(self.source, told[-1].seq), task=task)
        return new


def state_ids(values: dict[str, Any]) -> list[str]:
    """The ids of the messages of a state, in order."""
    return [
        str(it.id)
        for value in values.values()
        if isinstance(value, list)
        for it in value
        if isinstance(it, BaseMessage)
    ]
