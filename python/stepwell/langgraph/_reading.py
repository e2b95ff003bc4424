"""Reading checkpoints: one range of records, and the blobs that they name."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    writes_sort_key,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from stepwell import _core
from stepwell.errors import AbsentError
from stepwell.langgraph._packing import DICTIONARIES, unpacked
from stepwell.langgraph._site import Site
from stepwell.langgraph._transcript import said_by
from stepwell.langgraph._values import (
    SYSTEM,
    Blobs,
    ListState,
    Namespace,
    Parts,
    Ref,
    Segment,
    cut,
    load,
    named,
)
from stepwell.types import JsonObject

SEPARATOR = "\x1f"
"""Stands between a namespace and a checkpoint's id."""

_PAGE = 64

T = TypeVar("T")

Row = tuple[int, str, str, list[bytes]]
"""A record: its seq, key, data and blobs."""


def key_of(topic: str, ns: str, checkpoint: str) -> str:
    """What a record of a checkpoint is found by."""
    return f"{SYSTEM}/{topic}/{ns}{SEPARATOR}{checkpoint}"


def after(key: str) -> str:
    """The least key behind another."""
    return key + "\0"


def place(config: RunnableConfig) -> tuple[str, str, str | None]:
    """The thread, namespace and checkpoint that a config names."""
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns", ""), get_checkpoint_id(config)


def config_of(thread: str, ns: str, checkpoint: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": ns,
            "checkpoint_id": checkpoint,
        }
    }


def copied(value: Any) -> Any:
    """A value of JSON that shares nothing that can change."""
    if isinstance(value, dict):
        return {name: copied(it) for name, it in value.items()}
    return [copied(it) for it in value] if isinstance(value, list) else value


def gone(thread: str, base: str, at: str) -> AbsentError:
    """What is said of a checkpoint that another one needs."""
    return AbsentError(f"thread {thread}: checkpoint {base} is gone, on which {at} builds")


def steadily(site: Site, thread: str, read: Callable[[], T]) -> T:
    """Reads again as long as something is missing and the session goes on: a prune erased it
    meanwhile."""
    seen = 0
    while True:
        try:
            return read()
        except AbsentError:
            at = site.well.core.last_seq(site.session_of(thread))
            if at == seen:
                raise
            seen = at


class Found:
    """A checkpoint's record."""

    def __init__(self, seq: int, key: str, text: str, blobs: list[bytes]) -> None:
        self.ns, self.id = key.removeprefix(f"{SYSTEM}/checkpoint/").rsplit(SEPARATOR, 1)
        self._seq, self._text, self._blobs = seq, text, blobs

    @functools.cached_property
    def data(self) -> JsonObject:
        """What it says. Of many that are read at once, few are looked into."""
        return unpacked(self._text, self._blobs)

    @property
    def record(self) -> int:
        """Where its record is."""
        return self._seq

    @property
    def seq(self) -> int:
        """Where it stands: one that was written anew, where it stood."""
        seq: int = self.data.get("q", self._seq)
        return seq

    @property
    def is_gone(self) -> bool:
        """Was it erased?"""
        return not self._text


@dataclass(frozen=True)
class Newest:
    """The newest checkpoint of a namespace, as it was read last. Nobody changes it."""

    chain: bytes | None
    """Where the session's chain ended: if it still does, nothing was written since."""
    found: Found
    writes: list[Row]
    """What tasks wrote at it."""


class Reading:
    """Reads the checkpoints of one namespace of a thread."""

    def __init__(self, site: Site, thread: str, ns: str) -> None:
        self.site = site
        self.thread = thread
        self.ns = ns
        self.core = site.well.core
        self.session = site.session_of(thread)
        self.blobs = Blobs(site.well.core)
        self._newest: Newest | None = None
        self._seen: dict[str, Found | None] = {}
        self._writes: dict[str, list[Row]] = {}
        self._chains: dict[tuple[str, str], list[Ref]] = {}

    def config(self, checkpoint: str) -> RunnableConfig:
        """The config that names a checkpoint."""
        return config_of(self.thread, self.ns, checkpoint)

    def newest(self) -> Found | None:
        """The newest checkpoint. What was written at it is read with it."""
        first, end = key_of("checkpoint", self.ns, ""), f"{SYSTEM}/checkpoint/{self.ns}\x20"
        fronts = (f"{SYSTEM}/checkpoint/", f"{SYSTEM}/writes/")
        last = self.site.memory.last(self.thread, self.ns)
        known: Newest | None = last.newest if last is not None else None
        chain = known.chain if known is not None else None
        asked = (self.session, first, end, *fronts, list(DICTIONARIES), chain)
        try:
            read = self.core.newest_record(*asked)
        except AbsentError:
            read = None
        if read is None:
            return None
        if read[1] is not None:
            known = Newest(read[0], Found(*read[1][0]), read[1][1])
        assert known is not None
        found = known.found
        if found.is_gone:
            return next(self.newest_first(), None)
        self._newest, self._writes[found.id] = known, known.writes
        return found

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

    def namespaces(self) -> Iterator[str]:
        """The namespaces of the thread: one look for each, however many checkpoints they have."""
        front = f"{SYSTEM}/checkpoint/"
        first = front
        while True:
            try:
                rows = self.core.records(self.session, first, f"{SYSTEM}/checkpoint0", limit=1)
            except AbsentError:
                return
            if not rows:
                return
            ns = rows[0][1].removeprefix(front).rsplit(SEPARATOR, 1)[0]
            yield ns
            first = f"{front}{ns}\x20"

    def _take(self, rows: Sequence[Row]) -> Iterator[Found]:
        last = ""
        for seq, key, data, blobs in rows:
            # Of records with one key the last one counts, and it comes first here.
            if key != last:
                last = key
                found = Found(seq, key, data, blobs)
                if not found.is_gone:
                    yield found

    def checkpoint(self, id: str) -> Found | None:
        """One checkpoint."""
        if id not in self._seen:
            key = key_of("checkpoint", self.ns, id)
            rows = self.core.records(self.session, key, after(key), newest=True, limit=1)
            self._seen[id] = next(self._take(rows), None)
        return self._seen[id]

    def checkpoint_now(self, id: str) -> Found | None:
        """One checkpoint, whatever was read of it before."""
        self._seen.pop(id, None)
        return self.checkpoint(id)

    def _look_ahead(self, id: str, count: int) -> None:
        """Reads the checkpoints before one at once: most lists are told along them."""
        first, end = key_of("checkpoint", self.ns, ""), key_of("checkpoint", self.ns, id)
        rows = self.core.records(self.session, first, end, newest=True, limit=count)
        for found in self._take(rows):
            self._seen.setdefault(found.id, found)

    def _read_chains(self, lists: Mapping[str, Ref], at: str) -> None:
        """Reads what the checkpoints before one say of its lists."""
        building = {name: ref for name, ref in lists.items() if "b" in ref}
        if not building:
            return
        first, end = key_of("checkpoint", self.ns, ""), key_of("checkpoint", self.ns, at)
        count = max(ref.get("c", _PAGE) for ref in building.values())
        asked = [(name, ref["b"]) for name, ref in building.items()]
        told = self.core.list_chains(self.session, first, end, count, asked, list(DICTIONARIES))
        for name, chain in zip(building, told, strict=True):
            # One that goes by another branch is read checkpoint by checkpoint.
            if chain is not None:
                self._chains[(at, name)] = json.loads(chain)

    def segments(self, ref: Ref, channel: str, at: str) -> list[Segment] | None:
        """All parts of a list; None, if the value is no list that is told by parts."""
        if "t" in ref:
            return None
        # From the newest back to the one that tells all.
        chain = [ref, *self._chains.pop((at, channel), ())]
        while "b" in chain[-1]:
            base = chain[-1]["b"]
            if base not in self._seen:
                self._look_ahead(at, chain[-1].get("c", _PAGE))
            found = self.checkpoint(base)
            told = found.data["v"][channel][1] if found is not None else None
            if told is None:
                raise gone(self.thread, base, at)
            chain.append(told)
            at = base
        parts: list[Segment] = list(chain[-1]["s"])
        length = chain[-1]["n"]
        for told in reversed(chain[:-1]):
            # Most lists only grow.
            if told["k"] != length:
                parts = cut(parts, told["k"], self.blobs.expand)[0]
            parts += told["a"]
            length = told["n"]
        return parts

    def metadata(self, found: Found) -> CheckpointMetadata:
        """A checkpoint's metadata."""
        return self.value(found.data["m"])  # type: ignore[no-any-return]

    def value(self, ref: Ref) -> Any:
        """A value by itself."""
        if "t" not in ref:
            return self.blobs.read_list(ref["s"], self.site.serde)[0]
        self.blobs.fetch(named(ref))
        return load(ref, self.blobs, self.site.serde)

    def _lists_at(self, found: Found) -> Mapping[str, ListState]:
        return self.site.memory.lists_at(self.thread, self.ns, found.id, found.record)

    def refs(self, found: Found) -> dict[str, tuple[Ref, list[Segment] | None]]:
        """What a checkpoint says of its channels, each list with all its parts."""
        told = found.data["v"].items()
        known = self._lists_at(found)
        lists = {name: ref for name, (_, ref) in told if ref is not None and "t" not in ref}
        self._read_chains({name: ref for name, ref in lists.items() if name not in known}, found.id)
        return {
            name: (
                ref,
                known[name].segments if name in known else self.segments(ref, name, found.id),
            )
            for name, (_, ref) in told
            if ref is not None
        }

    def checkpoint_tuple(self, found: Found, *, remember: bool = False) -> CheckpointTuple:
        """A checkpoint as LangGraph wants it."""
        refs = self.refs(found)
        writes = self.writes(found.id)
        data = found.data
        wanted = [*named(data.get("c", {})), *named(data["m"])]
        for ref, _ in refs.values():
            wanted += named(ref) if "t" in ref else ()
        for write in writes:
            wanted += named(write[2])
        self.blobs.fetch(wanted)
        values, lists = self._values(found, refs, remember=remember)
        if remember:
            self.site.memory.remember(
                self.thread, self.ns, self.state(found, values, lists, writes)
            )
        checkpoint = cast("Checkpoint", {**self.rest(found), "channel_values": values})
        return CheckpointTuple(
            config=self.config(found.id),
            checkpoint=checkpoint,
            metadata=self.value(data["m"]),
            parent_config=self.config(data["p"]) if data.get("p") else None,
            pending_writes=[(task, channel, self.value(ref)) for task, channel, ref in writes],
        )

    def _values(
        self,
        found: Found,
        refs: Mapping[str, tuple[Ref, list[Segment] | None]],
        *,
        remember: bool,
    ) -> tuple[dict[str, Any], dict[str, ListState]]:
        """The values of a checkpoint's channels, and its lists as a later put has to know them."""
        serde, last = self.site.serde, self._lists_at(found)
        values: dict[str, Any] = {}
        lists: dict[str, ListState] = {}
        for name, (ref, segments) in refs.items():
            if segments is None:
                values[name] = load(ref, self.blobs, serde)
                continue
            parts = last[name].parts if name in last else None
            if parts is not None and remember:
                values[name], known = last[name].read(parts, serde)
            elif parts is not None:
                values[name] = []
                parts.load(last[name].length, serde, values[name])
            else:
                values[name], read = self.blobs.read_list(segments, serde)
                parts = Parts.of(read)
                known = _core.KnownElements()
                if remember:
                    known.remember_read(values[name], 0)
            if remember:
                chain, length = ref.get("c", 1), len(values[name])
                lists[name] = ListState(known, list(segments), found.id, chain, length, parts)
                lists[name].read_by = serde
        return values, lists

    def rest(self, found: Found) -> dict[str, Any]:
        """What a checkpoint says besides its values."""
        told = found.data
        if "r" not in told:
            rest: dict[str, Any] = self.value(told["c"])
            return rest
        versions = {name: it for name, (it, _) in told["v"].items() if it is not None}
        # What is remembered of the newest checkpoint is read again.
        return {**copied(told["r"]), "id": found.id, "channel_versions": versions}

    def state(
        self,
        found: Found,
        values: Mapping[str, Any],
        lists: dict[str, ListState],
        writes: Sequence[tuple[str, str, Ref]],
    ) -> Namespace:
        """What a later put has to know of a checkpoint."""
        told = found.data["v"]
        # Where its messages are, the one that put it knows.
        last = self.site.memory.last(self.thread, self.ns)
        if last is None or (last.checkpoint, last.record) != (found.id, found.record):
            last = Namespace(said=said_by(values) if self.site.transcript else None)
        return Namespace(
            checkpoint=found.id,
            seq=found.seq,
            record=found.record,
            versions={name: version for name, (version, _) in told.items()},
            refs={name: ref for name, (_, ref) in told.items() if ref is not None},
            lists=lists,
            newest=self._newest,
            asked=[ref for _, channel, ref in writes if channel == INTERRUPT],
            failed=any(channel == ERROR for _, channel, _ in writes),
            said=last.said,
            replayed=last.replayed,
        )

    def writes(self, checkpoint: str) -> list[tuple[str, str, Ref]]:
        """What tasks wrote at a checkpoint, in the order in which it is applied."""
        key = key_of("writes", self.ns, checkpoint)
        rows = self._writes.pop(checkpoint, None)
        if rows is None:
            try:
                rows = self.core.records(self.session, key, after(key))
            except AbsentError:
                return []
        kept: dict[tuple[str, int], tuple[tuple[str, str, int], str, str, Ref]] = {}
        for _, _, data, blobs in rows:
            if not data:
                continue
            told = unpacked(data, blobs)
            for index, channel, ref in told["w"]:
                where = (told["t"], index)
                # Of special channels the last write counts, of the others the first.
                if index < 0 or where not in kept:
                    order = writes_sort_key(told["p"], told["t"], index)
                    kept[where] = (order, told["t"], channel, ref)
        ordered = sorted(kept.values(), key=lambda write: write[0])
        return [(task, channel, ref) for _, task, channel, ref in ordered]
