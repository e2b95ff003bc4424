"""LangGraph's checkpoints in Stepwell."""

from __future__ import annotations

import contextlib
import functools
import heapq
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from stepwell._async import run
from stepwell._continue import continuation
from stepwell._well import Session, Well, well_of
from stepwell.errors import AbsentError, ConflictError, InvalidError
from stepwell.langgraph import _prune
from stepwell.langgraph._continue import Continuing
from stepwell.langgraph._messages import from_messages
from stepwell.langgraph._questions import asks_or_answers, told, unanswered
from stepwell.langgraph._reading import (
    SEPARATOR,
    Found,
    Reading,
    after,
    config_of,
    place,
    steadily,
)
from stepwell.langgraph._site import Site, memory_of
from stepwell.langgraph._transcript import task_of
from stepwell.langgraph._values import SYSTEM, Attachments, Namespace, Ref
from stepwell.langgraph._writing import Writing
from stepwell.types import record

_QUESTIONS = "\0questions"
"""The key of the lock for the questions of a whole thread, in place of a namespace."""

_PATIENCE = 20
"""How often a put checks whether the answers of a resumed graph are recorded."""


class StepwellSaver(BaseCheckpointSaver[Any]):
    """Keeps a graph's checkpoints: one session for each thread, for sync and async graphs.

    `store` is a store, or the name of one: a folder or `postgres://…`. With `transcript` the
    messages of the state are also kept as the session's conversation, so that `stepwell show`,
    search and other frameworks see them. `cache` is for how many namespaces of threads the last
    state is remembered, so that a step writes only what is new.
    """

    def __init__(
        self,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        serde: SerializerProtocol | None = None,
        transcript: bool = True,
        cache: int = 128,
    ) -> None:
        super().__init__(serde=serde)
        self.well = well_of(store)
        self._owns = not isinstance(store, Well)
        self.transcript = transcript
        self._memory = memory_of(self.well, self.serde, transcript, cache)

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> StepwellSaver:
        """A saver on the store of that name, made as LangGraph's own savers are: for a `with` or an
        `async with` block, which closes it."""
        return cls(conn_string, **options)

    def __enter__(self) -> StepwellSaver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> StepwellSaver:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await run(self.close)

    def close(self) -> None:
        """Closes the store, if it was opened by its name. A well that was given stays open."""
        if self._owns:
            self.well.close()

    @property
    def _site(self) -> Site:
        # LangGraph gives copies of a saver another serializer.
        return Site(self.well, self.serde, self.transcript, self._memory)

    # Names.

    def session_of(self, thread_id: str) -> str:
        """The session that keeps a thread."""
        return self._site.session_of(thread_id)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """A number that grows. Values are found through their checkpoint, so that branches may
        give the same number twice."""
        if isinstance(current, str):
            # A thread that another saver began keeps its kind of versions.
            return f"{int(current.split('.')[0]) + 1:032}.0"
        return 1 if current is None else int(current) + 1

    def continuing(self, session: Session, thread_id: str | None = None) -> Sequence[BaseMessage]:
        """The messages of a conversation that any framework began, as input for a graph:
        `graph.invoke({"messages": saver.continuing(session, "1")}, config)`.

        With `thread_id`, only those that the thread does not have yet, and the thread records
        where they came from. A `ConflictError`, if it has messages that did not come from there.
        """
        if thread_id is None:
            return from_messages(continuation(session), session.id)
        return Continuing(self._site, session, thread_id).messages(self.get_tuple)

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread."""
        thread, ns, id = place(config)
        site = self._site

        def read() -> CheckpointTuple | None:
            reading = Reading(site, thread, ns)
            found = reading.checkpoint(id) if id else reading.newest()
            return None if found is None else reading.checkpoint_tuple(found, remember=True)

        try:
            return steadily(site, thread, read)
        except AbsentError:
            if self.well.has(site.session_of(thread)):
                raise
            return None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first."""
        last = get_checkpoint_id(before) if before else None
        only = get_checkpoint_id(config) if config else None
        given = 0
        for reading, found in self._rows(config):
            if limit is not None and given >= limit:
                return
            if (only and found.id != only) or (last and found.id >= last):
                continue
            fitting = self._fitting(reading, found, filter)
            if fitting is not None:
                yield fitting
                given += 1

    def _fitting(
        self, reading: Reading, found: Found, filter: dict[str, Any] | None
    ) -> CheckpointTuple | None:
        """A checkpoint, if it fits a filter, and was not erased meanwhile."""

        def fits(reading: Reading, found: Found) -> CheckpointTuple | None:
            if filter:
                metadata = reading.metadata(found)
                if any(metadata.get(name) != wanted for name, wanted in filter.items()):
                    return None
            return reading.checkpoint_tuple(found)

        def again() -> CheckpointTuple | None:
            fresh = Reading(reading.site, reading.thread, reading.ns)
            there = fresh.checkpoint(found.id)
            return None if there is None else fits(fresh, there)

        try:
            return fits(reading, found)
        except AbsentError:
            return steadily(self._site, reading.thread, again)

    def _rows(self, config: RunnableConfig | None) -> Iterator[tuple[Reading, Found]]:
        """Every checkpoint of a thread or of all, the largest id first."""
        if config is None:
            threads = [info.source_id or "" for info in self.well.sessions(source=SYSTEM)]
            ns = None
        else:
            threads = [str(config["configurable"]["thread_id"])]
            ns = config["configurable"].get("checkpoint_ns")
        if ns is not None and config is not None:
            reading = Reading(self._site, threads[0], ns)
            for found in reading.newest_first():
                yield reading, found
            return
        site = self._site
        readings = [
            Reading(site, thread, ns)
            for thread in threads
            for ns in Reading(site, thread, "").namespaces()
        ]
        # Each gives its own in that order, as far as they are wanted.
        rows = (((reading, found) for found in reading.newest_first()) for reading in readings)
        yield from heapq.merge(*rows, key=lambda row: row[1].id, reverse=True)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel was built of, along the chain of parents."""
        if not channels:
            return {}
        thread, ns, id = place(config)
        site = self._site

        def read(*, gaps: bool = False) -> Mapping[str, DeltaChannelHistory]:
            reading = Reading(site, thread, ns)
            try:
                target = reading.checkpoint(id) if id else reading.newest()
            except AbsentError:
                target = None
            history = _prune.history(reading, target, channels, gaps=gaps)
            return {name: _prune.loaded(reading, found) for name, found in history.items()}

        try:
            return steadily(site, thread, read)
        except AbsentError:
            # What was never there is no history.
            return read(gaps=True)

    # Writing.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keeps a checkpoint. It is durable when this returns."""
        thread, ns, parent = place(config)
        said = get_checkpoint_metadata(config, metadata)
        with self._memory.turn(thread, ns):
            while True:
                state = self._state_at(thread, ns, parent)
                if parent and not state.checkpoint and said.get("counters_since_delta_snapshot"):
                    raise ConflictError(
                        f"thread {thread}: checkpoint {parent} was erased while the graph went on "
                        "from it, and its delta channels cannot be read without it"
                    )
                try:
                    Writing(self._site, config, state).write(checkpoint, said, new_versions)
                    break
                except ConflictError:
                    # What this builds on was erased meanwhile. It is read again, as it is now.
                    self._memory.forget(thread)
                    if not state.record:
                        raise
                except BaseException:
                    # What is remembered speaks of this checkpoint already.
                    self._memory.forget_last(thread, ns)
                    raise
        if state.asked and self.transcript:
            self._close_questions(thread, ns, state.asked)
        return config_of(thread, ns, checkpoint["id"])

    def _close_questions(self, thread: str, ns: str, asked: Sequence[Ref]) -> None:
        """Closes the questions of the checkpoint that a graph went on from. Mostly their tasks have
        kept the answers by now, or are about to. In a run that keeps them nowhere, nobody will."""
        # Another process may close or erase them meanwhile.
        with contextlib.suppress(AbsentError, InvalidError):
            for _ in range(_PATIENCE):
                with self._memory.turn(thread, _QUESTIONS):
                    if not unanswered(Reading(self._site, thread, ns), asked):
                        return
                time.sleep(0.01)
            with self._memory.turn(thread, _QUESTIONS):
                if closing := unanswered(Reading(self._site, thread, ns), asked):
                    self._site.append(thread, closing)

    def _state_at(self, thread: str, ns: str, parent: str | None) -> Namespace:
        """What is known of the checkpoint that a new one follows."""
        state = self._memory.last(thread, ns)
        if state is not None and state.checkpoint == (parent or ""):
            return state
        if parent is None:
            return Namespace()
        site = self._site
        if not self.well.has(site.session_of(thread)):
            return Namespace()

        def read() -> Namespace:
            reading = Reading(site, thread, ns)
            found = reading.checkpoint(parent)
            if found is None:
                return Namespace()
            reading.checkpoint_tuple(found, remember=True)
            return self._memory.last(thread, ns) or Namespace()

        return steadily(site, thread, read)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keeps what a task wrote."""
        thread, ns, id = place(config)
        attachments = Attachments()
        refs = [
            [WRITES_IDX_MAP.get(channel, index), channel, attachments.any(self.serde, value)]
            for index, (channel, value) in enumerate(writes)
        ]
        data = {"t": task_id, "p": task_path, "w": refs}
        kept = attachments.record("writes", f"{ns}{SEPARATOR}{id}", data)
        if not self.transcript or not asks_or_answers(writes):
            self._site.append(thread, [kept], attachments.blobs, task_of(dict(writes)))
            return
        # Tasks that run at once look one after the other at which questions are open.
        with self._memory.turn(thread, _QUESTIONS):
            asked = told(Reading(self._site, thread, ns), id, task_id, writes)
            try:
                self._site.append(thread, [kept, *asked], attachments.blobs, task_of(dict(writes)))
            except InvalidError:
                # A question that another process closed meanwhile is no reason to lose this.
                self._site.append(thread, [kept], attachments.blobs)

    # Removing.

    def delete_thread(self, thread_id: str) -> None:
        """Erases a thread for good."""
        self._memory.forget(thread_id)
        self.well.core.purge([self.session_of(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erases the checkpoints of some runs, whichever threads they are in."""
        for info in self.well.sessions(source=SYSTEM):
            thread = info.source_id or ""
            if any(self._has_run(info.id, run) for run in run_ids):
                plan = functools.partial(_prune.delete_runs, self._site, thread, set(run_ids))
                _prune.carry_out(plan)
                self._memory.forget(thread)

    def _has_run(self, session: str, run: str) -> bool:
        key = f"{SYSTEM}/run/{run}"
        return bool(self.well.core.records(session, key, after(key), limit=1))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread. Into a new one it costs the same however long the thread is."""
        source, target = self.session_of(source_thread_id), self.session_of(target_thread_id)
        if not self.well.has(source):
            return
        if not self.well.has(target):
            self.well.core.fork(source, name=target, source=(SYSTEM, target_thread_id))
            return

        def copy() -> None:
            rows = self.well.core.records(source, f"{SYSTEM}/", f"{SYSTEM}0")
            rows.sort()
            events = []
            for _, key, data, blobs in rows:
                _, topic, name = key.split("/", 2)
                events.append(record(SYSTEM, topic, name, data, blobs=blobs))
            if events:
                self.well.append(target, events)

        steadily(self._site, source_thread_id, copy)
        self._memory.forget(target_thread_id)

    def prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
    ) -> None:
        """Erases all but the newest checkpoint of each namespace, or the threads as a whole.
        What delta channels are built of stays."""
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
            elif self.well.has(self.session_of(thread)):
                _prune.carry_out(functools.partial(_prune.keep_latest, self._site, thread))
                self._memory.forget(thread)

    # The same for asyncio.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        rows = self.list(config, filter=filter, before=before, limit=limit)
        while (found := await run(next, rows, None)) is not None:
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See `put_writes`."""
        await run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await run(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await run(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await run(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
    ) -> None:
        """See `prune`."""
        await run(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `get_delta_channel_history`."""
        return await run(self.get_delta_channel_history, config=config, channels=channels)
