"""LangGraph's checkpoints in Stepwell."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

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
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from stepwell import _core
from stepwell._async import run
from stepwell._continue import continuation
from stepwell._names import session_id
from stepwell._types import JsonObject, event, record
from stepwell._well import Session, Well, dumps, well_of
from stepwell.errors import AbsentError, InvalidError
from stepwell.langgraph import _prune
from stepwell.langgraph._messages import from_messages
from stepwell.langgraph._transcript import answers, conversation, gates, spoken, task_of
from stepwell.langgraph._values import (
    Attachments,
    Blobs,
    ListState,
    Namespace,
    Ref,
    Segment,
    cut,
    load,
    named,
    plain_rest,
    put_list,
)

SYSTEM = "langgraph"
_SEP = "\x1f"
_PAGE = 64


def key_of(topic: str, ns: str, checkpoint: str) -> str:
    """What a record of a checkpoint is found by."""
    return f"{SYSTEM}/{topic}/{ns}{_SEP}{checkpoint}"


def after(key: str) -> str:
    """The least key behind another."""
    return key + "\0"


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
        self.transcript = transcript
        self._cache_size = cache
        self._namespaces: OrderedDict[tuple[str, str], Namespace] = OrderedDict()
        self._runs: set[tuple[str, str]] = set()
        self._lock = threading.RLock()

    # Names.

    def session_of(self, thread_id: str) -> str:
        """The session that keeps a thread."""
        return session_id(SYSTEM, thread_id)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """A number that grows. Values are found through their checkpoint, so that branches may
        give the same number twice."""
        if isinstance(current, str):
            # A thread that another saver began keeps its kind of versions.
            return f"{int(current.split('.')[0]) + 1:032}.0"
        return 1 if current is None else int(current) + 1

    def continuing(self, session: Session) -> Sequence[BaseMessage]:
        """The messages of a conversation that any framework began, as input for a graph:
        `graph.invoke({"messages": saver.continuing(session)}, config)`."""
        return from_messages(continuation(session))

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread."""
        thread, ns, id = place(config)
        reading = Reading(self, thread, ns)
        try:
            found = reading.checkpoint(id) if id else reading.newest()
        except AbsentError:
            return None
        return None if found is None else reading.checkpoint_tuple(found, remember=True)

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
            if filter:
                metadata = reading.metadata(found)
                if any(metadata.get(name) != wanted for name, wanted in filter.items()):
                    continue
            yield reading.checkpoint_tuple(found)
            given += 1

    def _rows(self, config: RunnableConfig | None) -> Iterator[tuple[Reading, Found]]:
        """Every checkpoint of a thread or of all, the largest id first."""
        if config is None:
            threads = [info.source_id or "" for info in self.well.sessions(system=SYSTEM)]
            ns = None
        else:
            threads = [str(config["configurable"]["thread_id"])]
            ns = config["configurable"].get("checkpoint_ns")
        if ns is not None and config is not None:
            reading = Reading(self, threads[0], ns)
            for found in reading.newest_first():
                yield reading, found
            return
        rows: list[tuple[Reading, Found]] = []
        for thread in threads:
            readings: dict[str, Reading] = {}
            for found in Reading(self, thread, "").all_namespaces():
                reading = readings.setdefault(found.ns, Reading(self, thread, found.ns))
                rows.append((reading, found))
        rows.sort(key=lambda row: row[1].id, reverse=True)
        yield from rows

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel was built of, along the chain of parents."""
        if not channels:
            return {}
        thread, ns, id = place(config)
        reading = Reading(self, thread, ns)
        try:
            target = reading.checkpoint(id) if id else reading.newest()
        except AbsentError:
            target = None
        history = _prune.history(reading, target, channels)
        return {name: _prune.loaded(reading, found) for name, found in history.items()}

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
        with self._lock:
            state = self._state_at(thread, ns, parent)
            writing = Writing(self, thread, ns, state)
            return writing.put(config, checkpoint, metadata, new_versions)

    def _state_at(self, thread: str, ns: str, parent: str | None) -> Namespace:
        """What is known of the checkpoint that a new one follows."""
        state = self._namespaces.get((thread, ns))
        if state is not None and state.checkpoint == (parent or ""):
            return state
        if parent is None:
            return Namespace()
        reading = Reading(self, thread, ns)
        try:
            found = reading.checkpoint(parent)
        except AbsentError:
            found = None
        if found is None:
            return Namespace()
        reading.checkpoint_tuple(found, remember=True)
        return self._namespaces[(thread, ns)]

    def _remember(self, thread: str, ns: str, state: Namespace) -> None:
        with self._lock:
            self._namespaces[(thread, ns)] = state
            self._namespaces.move_to_end((thread, ns))
            while len(self._namespaces) > self._cache_size:
                self._namespaces.popitem(last=False)

    def _forget(self, thread: str) -> None:
        with self._lock:
            for key in [key for key in self._namespaces if key[0] == thread]:
                del self._namespaces[key]
            self._runs = {run for run in self._runs if run[0] != thread}

    def append(
        self, thread: str, events: Sequence[JsonObject], blobs: Sequence[bytes] = (), task: str = ""
    ) -> tuple[int, int]:
        """Appends to a thread's session, which is made at its first write."""
        id = self.session_of(thread)
        try:
            return self.well.append(id, events, attachments=blobs)
        except AbsentError:
            self.well.ensure(id, SYSTEM, thread, task=task)
            return self.well.append(id, events, attachments=blobs)

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
        data = dumps({"t": task_id, "p": task_path, "w": refs})
        kept = record(
            SYSTEM, "writes", f"{ns}{_SEP}{id}", data, attach=range(len(attachments.blobs))
        )
        asked = gates(writes) if self.transcript else []
        asked += answers(self.well, self.session_of(thread), writes) if self.transcript else []
        try:
            self.append(thread, [kept, *asked], attachments.blobs, task_of(dict(writes)))
        except InvalidError:
            # A question that was asked before, or answered meanwhile, is no reason to lose this.
            if not asked:
                raise
            self.append(thread, [kept], attachments.blobs)

    # Removing.

    def delete_thread(self, thread_id: str) -> None:
        """Erases a thread for good."""
        self._forget(thread_id)
        self.well.core.purge([self.session_of(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erases the checkpoints of some runs, whichever threads they are in."""
        for info in self.well.sessions(system=SYSTEM):
            thread = info.source_id or ""
            if any(self._has_run(info.id, run) for run in run_ids):
                self._forget(thread)
                _prune.delete_runs(self, thread, set(run_ids))

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
        self._forget(target_thread_id)
        front = f"{SYSTEM}/"
        rows = self.well.core.records(source, front, f"{SYSTEM}0")
        rows.sort()
        events = []
        for _, key, data, blobs in rows:
            _, topic, name = key.split("/", 2)
            events.append(record(SYSTEM, topic, name, data, blobs=blobs))
        if events:
            self.well.append(target, events)

    def prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
    ) -> None:
        """Erases all but the newest checkpoint of each namespace, or the threads as a whole.
        What delta channels are built of stays."""
        for thread in thread_ids:
            self._forget(thread)
            if strategy == "delete":
                self.delete_thread(thread)
            elif self.well.has(self.session_of(thread)):
                _prune.keep_latest(self, thread)

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


def place(config: RunnableConfig) -> tuple[str, str, str | None]:
    """The thread, namespace and checkpoint that a config names."""
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), get_checkpoint_id(config)


class Found:
    """A checkpoint's record."""

    __slots__ = ("data", "id", "ns", "seq")

    def __init__(self, seq: int, key: str, data: str) -> None:
        self.ns, self.id = key.removeprefix(f"{SYSTEM}/checkpoint/").rsplit(_SEP, 1)
        self.data: JsonObject = json.loads(data) if data else {}
        # One that was written anew stands where it stood.
        self.seq: int = self.data.get("q", seq)

    @property
    def is_gone(self) -> bool:
        """Was it erased?"""
        return "v" not in self.data


class Reading:
    """Reads the checkpoints of one namespace of a thread."""

    def __init__(self, saver: StepwellSaver, thread: str, ns: str) -> None:
        self.saver = saver
        self.thread = thread
        self.ns = ns
        self.core = saver.well.core
        self.session = saver.session_of(thread)
        self.blobs = Blobs(saver.well.core)
        self._seen: dict[str, Found | None] = {}

    def config(self, checkpoint: str) -> RunnableConfig:
        """The config that names a checkpoint."""
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.ns,
                "checkpoint_id": checkpoint,
            }
        }

    def newest(self) -> Found | None:
        """The newest checkpoint."""
        return next(self.newest_first(page=1), None)

    def newest_first(self, page: int = _PAGE) -> Iterator[Found]:
        """Every checkpoint, the largest id first."""
        first, end = key_of("checkpoint", self.ns, ""), f"{SYSTEM}/checkpoint/{self.ns}\x20"
        while True:
            try:
                rows = self.core.records(self.session, first, end, newest=True, limit=page)
            except AbsentError:
                return
            yield from self._take(rows)
            if len(rows) < page:
                return
            end = rows[-1][1]
            page = _PAGE

    def all_namespaces(self) -> Iterator[Found]:
        """Every checkpoint of the thread."""
        front = f"{SYSTEM}/checkpoint"
        try:
            rows = self.core.records(self.session, f"{front}/", f"{front}0", newest=True)
        except AbsentError:
            return
        yield from self._take(rows)

    def _take(self, rows: Sequence[tuple[int, str, str, list[bytes]]]) -> Iterator[Found]:
        last = ""
        for seq, key, data, _ in rows:
            # Of records with one key the last one counts, and it comes first here.
            if key != last:
                last = key
                found = Found(seq, key, data)
                if not found.is_gone:
                    yield found

    def checkpoint(self, id: str) -> Found | None:
        """One checkpoint."""
        if id not in self._seen:
            key = key_of("checkpoint", self.ns, id)
            rows = self.core.records(self.session, key, after(key), newest=True, limit=1)
            self._seen[id] = next(self._take(rows), None)
        return self._seen[id]

    def _look_ahead(self, id: str) -> None:
        """Reads the checkpoints before one at once: most lists are told along them."""
        first, end = key_of("checkpoint", self.ns, ""), key_of("checkpoint", self.ns, id)
        rows = self.core.records(self.session, first, end, newest=True, limit=_PAGE)
        for found in self._take(rows):
            self._seen.setdefault(found.id, found)

    def segments(self, ref: Ref, channel: str, at: str) -> list[Segment] | None:
        """All parts of a list; None, if the value is no list that is told by parts."""
        if "t" in ref:
            return None
        # From the newest back to the one that tells all.
        chain = [ref]
        while "b" in chain[-1]:
            base = chain[-1]["b"]
            if base not in self._seen:
                self._look_ahead(at)
            found = self.checkpoint(base)
            told = found.data["v"][channel][1] if found is not None else None
            if told is None:
                raise AbsentError(
                    f"thread {self.thread}: checkpoint {base} is gone, on which {at} builds"
                )
            chain.append(told)
            at = base
        parts: list[Segment] = list(chain[-1]["s"])
        for told in reversed(chain[:-1]):
            parts = cut(parts, told["k"])[0] + told["a"]
        return parts

    def metadata(self, found: Found) -> CheckpointMetadata:
        """A checkpoint's metadata."""
        return self.value(found.data["m"])  # type: ignore[no-any-return]

    def value(self, ref: Ref) -> Any:
        """A value by itself."""
        segments = None if "t" in ref else ref["s"]
        self.blobs.fetch(named(ref))
        return load(ref, segments, self.blobs, self.saver.serde)

    def refs(self, found: Found) -> dict[str, tuple[Ref, list[Segment] | None]]:
        """What a checkpoint says of its channels, each list with all its parts."""
        told = found.data["v"].items()
        return {
            name: (ref, self.segments(ref, name, found.id))
            for name, (_, ref) in told
            if ref is not None
        }

    def checkpoint_tuple(self, found: Found, *, remember: bool = False) -> CheckpointTuple:
        """A checkpoint as LangGraph wants it."""
        refs = self.refs(found)
        writes = self.writes(found.id)
        data = found.data
        wanted = [*named(data.get("c", {})), *named(data["m"])]
        for ref, segments in refs.values():
            wanted += named(ref) if segments is None else named({"s": segments})
        for write in writes:
            wanted += named(write[2])
        self.blobs.fetch(wanted)
        serde = self.saver.serde
        values = {
            name: load(ref, segments, self.blobs, serde) for name, (ref, segments) in refs.items()
        }
        if remember:
            self.saver._remember(self.thread, self.ns, self.state(found, values, refs))
        checkpoint = cast("Checkpoint", {**self.rest(found), "channel_values": values})
        return CheckpointTuple(
            config=self.config(found.id),
            checkpoint=checkpoint,
            metadata=self.value(data["m"]),
            parent_config=self.config(data["p"]) if data.get("p") else None,
            pending_writes=[(task, channel, self.value(ref)) for task, channel, ref in writes],
        )

    def rest(self, found: Found) -> dict[str, Any]:
        """What a checkpoint says besides its values."""
        told = found.data
        if "r" not in told:
            rest: dict[str, Any] = self.value(told["c"])
            return rest
        versions = {name: it for name, (it, _) in told["v"].items() if it is not None}
        return {**told["r"], "id": found.id, "channel_versions": versions}

    def state(
        self,
        found: Found,
        values: Mapping[str, Any],
        refs: Mapping[str, tuple[Ref, Sequence[Segment] | None]] | None = None,
    ) -> Namespace:
        """What a later put has to know of a checkpoint."""
        told = found.data["v"]
        state = Namespace(
            checkpoint=found.id,
            seq=found.seq,
            versions={name: version for name, (version, _) in told.items()},
            refs={name: ref for name, (_, ref) in told.items() if ref is not None},
            spoken={name for name, _ in conversation(values)},
        )
        for name, value in values.items():
            ref, segments = (refs or {})[name]
            if segments is not None:
                known = _core.KnownElements()
                known.remember(value, 0)
                chain = ref.get("c", 1)
                state.lists[name] = ListState(known, list(segments), found.id, chain, len(value))
        return state

    def writes(self, checkpoint: str) -> list[tuple[str, str, Ref]]:
        """What tasks wrote at a checkpoint, in the order in which it is applied."""
        key = key_of("writes", self.ns, checkpoint)
        try:
            rows = self.core.records(self.session, key, after(key))
        except AbsentError:
            return []
        kept: dict[tuple[str, int], tuple[tuple[str, str, int], str, str, Ref]] = {}
        for _, _, data, _ in rows:
            if not data:
                continue
            told = json.loads(data)
            for index, channel, ref in told["w"]:
                where = (told["t"], index)
                # Of special channels the last write counts, of the others the first.
                if index < 0 or where not in kept:
                    order = writes_sort_key(told["p"], told["t"], index)
                    kept[where] = (order, told["t"], channel, ref)
        ordered = sorted(kept.values(), key=lambda write: write[0])
        return [(task, channel, ref) for _, task, channel, ref in ordered]

    def pending(self, checkpoint: str) -> list[PendingWrite]:
        """The same, with their values."""
        writes = self.writes(checkpoint)
        self.blobs.fetch(name for write in writes for name in named(write[2]))
        return [(task, channel, self.value(ref)) for task, channel, ref in writes]


class Writing:
    """Writes one checkpoint."""

    def __init__(self, saver: StepwellSaver, thread: str, ns: str, state: Namespace) -> None:
        self.saver = saver
        self.thread = thread
        self.ns = ns
        self.last = state
        self.attachments = Attachments()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Writes it, with what it says and the run that it belongs to, in one append."""
        saver, id = self.saver, checkpoint["id"]
        rest: dict[str, Any] = {**checkpoint}
        values: dict[str, Any] = rest.pop("channel_values")
        lists: dict[str, ListState] = {}
        told: dict[str, list[Any]] = {
            name: [version, self.channel(name, version, values, new_versions, id, lists)]
            for name, version in checkpoint["channel_versions"].items()
        }
        for name in values.keys() - told.keys():
            told[name] = [None, self.changed(name, values[name], id, lists)]
        whole = get_checkpoint_metadata(config, metadata)
        data: JsonObject = {"v": told}
        typed, plain = saver.serde.dumps_typed(rest), plain_rest(rest)
        # What a serializer encrypts is not to be read.
        if plain is not None and typed[0] == "msgpack":
            data["r"] = plain
        else:
            data["c"] = self.attachments.value(typed)
        data["m"] = self.attachments.value(saver.serde.dumps_typed(whole))
        _, _, parent = place(config)
        if parent:
            data["p"] = parent
        said = self.transcript(values)
        events = [*said, *self.run(whole)]
        kept = record(
            SYSTEM,
            "checkpoint",
            f"{self.ns}{_SEP}{id}",
            dumps(data),
            attach=range(len(self.attachments.blobs)),
        )
        task = task_of(values) if not parent else ""
        _, seq = saver.append(self.thread, [*events, kept], self.attachments.blobs, task)
        refs = {name: ref for name, (_, ref) in told.items() if ref is not None}
        state = Namespace(
            checkpoint=id,
            seq=seq,
            is_newest=True,
            versions=dict(checkpoint["channel_versions"]),
            refs=refs,
            lists=lists,
            spoken=self.last.spoken,
        )
        saver._remember(self.thread, self.ns, state)
        return Reading(saver, self.thread, self.ns).config(id)

    def channel(
        self,
        name: str,
        version: Any,
        values: Mapping[str, Any],
        new_versions: ChannelVersions,
        id: str,
        lists: dict[str, ListState],
    ) -> Ref | None:
        """What a channel holds; of one that did not change, what it held before."""
        if name not in new_versions and self.last.versions.get(name) == version:
            ref = self.last.refs.get(name)
            if name in self.last.lists:
                lists[name] = self.last.lists[name]
            if ref is None or "t" in ref or not ref.get("a", True):
                return ref
            # The checkpoint that told of the list is named, however often it is passed on.
            chain = ref.get("c", 1) + 1
            return {"n": ref["n"], "b": self.last.checkpoint, "k": ref["n"], "a": [], "c": chain}
        return self.changed(name, values[name], id, lists) if name in values else None

    def changed(self, name: str, value: Any, id: str, lists: dict[str, ListState]) -> Ref:
        """A value that is new here."""
        serde = self.saver.serde
        if type(value) is not list or not value:
            return self.attachments.value(serde.dumps_typed(value))
        ref, lists[name] = put_list(
            value, self.last.lists.get(name), (id, self.attachments, serde), self.read
        )
        return ref

    def read(self, segments: Sequence[Segment]) -> list[bytes]:
        """The bytes of some segments."""
        blobs = Blobs(self.saver.well.core)
        blobs.fetch(named({"s": segments}))
        return [blobs.data(segment[2], segment[3]) for segment in segments]

    def run(self, metadata: Mapping[str, Any]) -> list[JsonObject]:
        """Says that a run wrote to this thread, once."""
        run_id = metadata.get("run_id")
        if not run_id or (self.thread, str(run_id)) in self.saver._runs:
            return []
        self.saver._runs.add((self.thread, str(run_id)))
        return [record(SYSTEM, "run", str(run_id))]

    def transcript(self, values: Mapping[str, Any]) -> list[JsonObject]:
        """The messages that are new, and a rewind if an earlier checkpoint is gone on from."""
        if not self.saver.transcript:
            return []
        events: list[JsonObject] = []
        if not self.ns and self.last.seq and not self.last.is_newest:
            newest = Reading(self.saver, self.thread, "").newest()
            if newest is not None and newest.seq > self.last.seq:
                events.append(event("rewound", {"to": self.last.seq, "scope": "chat"}))
        return events + spoken(values, self.ns, self.last.spoken)
