"""What reading and writing checkpoints share: the store, and what is remembered of it."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from stepwell._names import session_id
from stepwell._well import Well
from stepwell.errors import AbsentError, ConflictError
from stepwell.langgraph._values import SYSTEM, ListState, Namespace
from stepwell.types import JsonObject

_CACHE_BYTES = 64 << 20
"""So many bytes of lists are remembered, so that what was put here is not read again."""


_memories: weakref.WeakSet[Memory] = weakref.WeakSet()
"""All that is remembered in this process."""


class Memory:
    """The last state of the namespaces that were used last, so that a step writes only what is
    new."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        self._bytes = _CACHE_BYTES
        self.begin()
        _memories.add(self)

    def begin(self) -> None:
        """Begins with nothing. So does a forked child: what another thread of its parent was
        changing at that moment is half done, and its locks are never given back."""
        self._lock = threading.Lock()
        self._turns: weakref.WeakValueDictionary[tuple[str, str], threading.Lock] = (
            weakref.WeakValueDictionary()
        )
        self.runs: set[tuple[str, str]] = set()
        """The runs that are known to have written to a thread."""
        self._namespaces: OrderedDict[tuple[str, str], Namespace] = OrderedDict()

    def turn(self, thread: str, ns: str) -> threading.Lock:
        """Held by the one that puts a checkpoint of a namespace."""
        with self._lock:
            return self._turns.setdefault((thread, ns), threading.Lock())

    def last(self, thread: str, ns: str) -> Namespace | None:
        """The last state of a namespace that was seen here."""
        return self._namespaces.get((thread, ns))

    def lists_at(
        self, thread: str, ns: str, checkpoint: str, record: int
    ) -> Mapping[str, ListState]:
        """The lists of a checkpoint, if it is the last one that was seen here. Else they have to be
        put together from those before it."""
        state = self.last(thread, ns)
        is_last = state is not None and (state.checkpoint, state.record) == (checkpoint, record)
        return state.lists if state is not None and is_last else {}

    def remember(self, thread: str, ns: str, state: Namespace) -> None:
        """Keeps the last state of a namespace, and lets go of what was not used for long."""
        with self._lock:
            self._namespaces[(thread, ns)] = state
            self._namespaces.move_to_end((thread, ns))
            while len(self._namespaces) > self._size:
                self._namespaces.popitem(last=False)
            # Of the namespaces that were used last, the elements are remembered, too.
            room = self._bytes
            for kept in reversed(self._namespaces.values()):
                for state_of in kept.lists.values():
                    if state_of.parts is not None:
                        room -= state_of.parts.size
                        if room < 0:
                            state_of.parts = None

    def forget_last(self, thread: str, ns: str) -> None:
        """Lets go of the last state of a namespace."""
        with self._lock:
            self._namespaces.pop((thread, ns), None)

    def forget(self, thread: str) -> None:
        """Lets go of all that is known of a thread."""
        with self._lock:
            for key in [key for key in self._namespaces if key[0] == thread]:
                del self._namespaces[key]
            self.runs = {run for run in self.runs if run[0] != thread}


_shared: weakref.WeakKeyDictionary[Well, dict[tuple[bool, int], Memory]] = (
    weakref.WeakKeyDictionary()
)
_sharing = threading.Lock()


def _after_fork() -> None:
    global _sharing
    _sharing = threading.Lock()
    for memory in list(_memories):
        memory.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def memory_of(well: Well, serde: SerializerProtocol, transcript: bool, size: int) -> Memory:
    """What the savers of a store remember together, so that one that is made for each request need
    not read what another one put. A serializer that is not LangGraph's may encrypt by a key of its
    own: what it made is for its saver alone."""
    if type(serde) is not JsonPlusSerializer:
        return Memory(size)
    with _sharing:
        memories = _shared.setdefault(well, {})
        return memories.setdefault((transcript, size), Memory(size))


@dataclass(frozen=True)
class Site:
    """Where checkpoints are kept, and how."""

    well: Well
    serde: SerializerProtocol
    transcript: bool
    """Are messages also kept as the session's conversation?"""
    memory: Memory

    def session_of(self, thread: str) -> str:
        """The session that keeps a thread."""
        return session_id(SYSTEM, thread)

    def append(
        self,
        thread: str,
        events: Sequence[JsonObject],
        blobs: Sequence[bytes] = (),
        task: str = "",
        intact: int | None = None,
    ) -> tuple[int, int]:
        """Appends to a thread's session, which is made at its first write. `intact` is where the
        record is that this builds on: a `ConflictError`, if it was erased."""
        id = self.session_of(thread)
        try:
            return self.well.append(id, events, attachments=blobs, intact=intact)
        except AbsentError:
            if intact is not None:
                raise ConflictError(f"thread {thread} was deleted meanwhile") from None
            self.well.ensure(id, SYSTEM, thread, task=task)
            return self.well.append(id, events, attachments=blobs)
